/* SPDX-License-Identifier: MIT */
/*
 * Words of a cluster: the key of a name, a decimal number, and a line of waiters for it.
 *
 *     NAME           the word; absent: 0
 *     NAME!wait/L    leased. A waiter with the lease L; the order is that of create_revision
 *     NAME!in/L      leased. That waiter has joined the line; it may have been woken since, or has left ("left")
 *
 * To wait: read the word; then, in one transaction, compare that the word has not changed since (by its mod_revision),
 * and put the waiter's keys. A notify that comes later finds the first. If no reply comes, the same is asked again: the
 * transaction compares that the second key is not there. So it is carried out once, and if that was before, also if it
 * has been woken meanwhile, the second key says so.
 *
 * To notify: read the first keys of the line, and delete them: the deletions that were done are the waiters that were
 * woken. A waiter whose first key is gone while the second is there has been woken. To give up, a waiter deletes the
 * first and changes the second: if the first was not there any more, the waiter has been woken, and says so.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bug.h"
#include "remote.h"

#define SECOND_NS     INT64_C(1000000000)
#define WAIT_LEAVE_NS (3 * SECOND_NS) /* how long it is tried to delete the key, after the deadline */

/* One operation on a word. */

struct word {
    vigil_remote *remote;
    struct etcd_call call;
    vigil_remote_done *done;
    void *data;
    char name[PLACE_NAME + 1];
    int64_t value;        /* STORE, CAS: the new one */
    int64_t expected;     /* CAS */
    int64_t count, woken; /* NOTIFY: how many are left to wake; how many have been */
    int64_t deadline_ns;
};

static void word_end(struct word *word, int status, int64_t value) {
    remote_end(word->remote, true);
    word->done(status, value, word->data);
    free(word);
}

static int word_begin(struct word **result, vigil_remote *remote, const char *name, vigil_remote_done *done,
                      void *data) {
    if (!remote || !name || !done) return VIGIL_ENULL;
    if (!remote_name_is_good(name)) return VIGIL_ENAME;
    if (etcd_is_over(remote->etcd)) return VIGIL_ECLOSING;
    struct word *word = calloc(1, sizeof *word);
    if (!word) return VIGIL_ENOMEM;
    *word = (struct word){.remote = remote, .done = done, .data = data};
    word->deadline_ns = etcd_now_ns(remote->etcd) + REMOTE_CALL_NS;
    strcpy(word->name, name);
    remote_begin(remote, true);
    *result = word;
    return VIGIL_PENDING;
}

static void word_send(struct word *word, const struct etcd_txn *txn,
                      void (*done)(struct etcd_call *, const struct etcd_reply *)) {
    word->call = (struct etcd_call){.done = done, .data = word};
    etcd_txn(word->remote->etcd, &word->call, txn, word->deadline_ns);
}

/* The value that a range has found: VIGIL_OK, or VIGIL_ETYPE. */
static int word_value(const struct etcd_result *result, int64_t *value) {
    *value = 0;
    if (!result->pair_count || remote_is_number(&result->pairs->value, value)) return VIGIL_OK;
    return VIGIL_ETYPE;
}

static void word_loaded(struct etcd_call *call, const struct etcd_reply *reply) {
    struct word *word = call->data;
    int64_t value = 0;
    int status = reply->status == VIGIL_OK ? word_value(&reply->results[0], &value) : reply->status;
    word_end(word, status, value);
}

int vigil_remote_word_load(vigil_remote *remote, const char *name, vigil_remote_done *done, void *data) {
    struct word *word;
    int status = word_begin(&word, remote, name, done, data);
    if (status != VIGIL_PENDING) return status;
    const struct etcd_txn txn = {.then = {{.action = ETCD_RANGE, .key = remote_bytes(word->name)}}, .then_count = 1};
    word_send(word, &txn, word_loaded);
    return status;
}

/* It has stored, whatever was there before. */
static void word_stored(struct etcd_call *call, const struct etcd_reply *reply) {
    struct word *word = call->data;
    int64_t before = 0;
    if (reply->status == VIGIL_OK && word_value(&reply->results[0], &before) != VIGIL_OK) before = 0;
    word_end(word, reply->status, before);
}

int vigil_remote_word_store(vigil_remote *remote, const char *name, int64_t value, vigil_remote_done *done,
                            void *data) {
    struct word *word;
    char text[24];
    int status = word_begin(&word, remote, name, done, data);
    if (status != VIGIL_PENDING) return status;
    snprintf(text, sizeof text, "%" PRId64, value);
    const struct etcd_bytes key = remote_bytes(word->name);
    const struct etcd_txn txn = {
        .then = {{.action = ETCD_RANGE, .key = key}, {.action = ETCD_PUT, .key = key, .value = remote_bytes(text)}},
        .then_count = 2};
    word_send(word, &txn, word_stored);
    return status;
}

/* A value is compared by its number, not by its text: so it is read first, and compared by its revision. */

static void word_swapped(struct etcd_call *call, const struct etcd_reply *reply);

static void word_swap_if_equal(struct word *word, const struct etcd_reply *reply) {
    const struct etcd_result *found = &reply->results[0];
    const struct etcd_bytes key = remote_bytes(word->name);
    char text[24];
    int64_t value = 0;
    int status = reply->status == VIGIL_OK ? word_value(found, &value) : reply->status;
    if (status == VIGIL_OK && value != word->expected) status = VIGIL_NOT_EQUAL;
    if (status != VIGIL_OK) {
        word_end(word, status, value);
        return;
    }
    snprintf(text, sizeof text, "%" PRId64, word->value);
    const struct etcd_txn txn = {
        .compares = {{.key = key,
                      .target = ETCD_MOD_REVISION,
                      .revision = found->pair_count ? found->pairs->mod_revision : 0}},
        .then = {{.action = ETCD_PUT, .key = key, .value = remote_bytes(text)}},
        .otherwise = {{.action = ETCD_RANGE, .key = key}},
        .compare_count = 1,
        .then_count = 1,
        .otherwise_count = 1,
    };
    word_send(word, &txn, word_swapped);
}

static void word_swapped(struct etcd_call *call, const struct etcd_reply *reply) {
    struct word *word = call->data;
    if (reply->status == VIGIL_OK && reply->succeeded) word_end(word, VIGIL_OK, word->expected);
    else word_swap_if_equal(word, reply);
}

static void word_read_to_swap(struct etcd_call *call, const struct etcd_reply *reply) {
    word_swap_if_equal(call->data, reply);
}

int vigil_remote_word_cas(vigil_remote *remote, const char *name, int64_t expected, int64_t desired,
                          vigil_remote_done *done, void *data) {
    struct word *word;
    int status = word_begin(&word, remote, name, done, data);
    if (status != VIGIL_PENDING) return status;
    word->expected = expected;
    word->value = desired;
    const struct etcd_txn txn = {.then = {{.action = ETCD_RANGE, .key = remote_bytes(word->name)}}, .then_count = 1};
    word_send(word, &txn, word_read_to_swap);
    return status;
}

/* Notify: the oldest keys, some at a time, until enough are woken or none is left. A key is never used again: so it can
 * be deleted without comparing. */

static void word_wake_next(struct word *word);

static void word_woken(struct etcd_call *call, const struct etcd_reply *reply) {
    struct word *word = call->data;
    if (reply->status != VIGIL_OK) {
        word_end(word, word->woken ? VIGIL_OK : reply->status, word->woken);
        return;
    }
    for (unsigned i = 0; i < reply->result_count; i++) word->woken += reply->results[i].count;
    word_wake_next(word);
}

static void word_has_line(struct etcd_call *call, const struct etcd_reply *reply) {
    struct word *word = call->data;
    const struct etcd_result *line = &reply->results[0];
    if (reply->status != VIGIL_OK || !line->pair_count || word->woken >= word->count) {
        word_end(word, word->woken ? VIGIL_OK : reply->status, word->woken);
        return;
    }
    struct etcd_txn txn = {0};
    for (size_t i = 0; i < line->pair_count && txn.then_count < ETCD_OPERATIONS; i++)
        txn.then[txn.then_count++] = (struct etcd_operation){.action = ETCD_DELETE, .key = line->pairs[i].key};
    word_send(word, &txn, word_woken);
}

static void word_wake_next(struct word *word) {
    char from[PLACE_KEY], to[PLACE_KEY];
    int64_t left = word->count - word->woken;
    snprintf(from, sizeof from, "%s!wait/", word->name);
    snprintf(to, sizeof to, "%s!wait0", word->name); /* the character after the slash */
    const struct etcd_txn txn = {.then = {{.action = ETCD_RANGE,
                                           .key = remote_bytes(from),
                                           .range_end = remote_bytes(to),
                                           .order = ETCD_OLDEST_FIRST,
                                           .limit = left < 1                 ? 1
                                                    : left < ETCD_OPERATIONS ? left
                                                                             : ETCD_OPERATIONS}},
                                 .then_count = 1};
    word->deadline_ns = etcd_now_ns(word->remote->etcd) + REMOTE_CALL_NS;
    word_send(word, &txn, word_has_line);
}

int vigil_remote_word_notify(vigil_remote *remote, const char *name, int64_t count, vigil_remote_done *done,
                             void *data) {
    struct word *word;
    if (count < 0) return VIGIL_ECOUNT;
    int status = word_begin(&word, remote, name, done, data);
    if (status != VIGIL_PENDING) return status;
    word->count = count;
    word_wake_next(word);
    return status;
}

/* Wait. wait_go decides what comes next; each reply, watch and timer notes what it has found, and calls it. */

struct vigil_remote_wait {
    vigil_remote *remote;
    vigil_remote_done *done;
    void *data;
    char name[PLACE_NAME + 1], key[PLACE_KEY], in_key[PLACE_KEY];
    int64_t expected;
    int64_t lease; /* 0: none yet */
    int64_t read;  /* mod_revision of the word when it was read as expected; -1: not yet */
    bool reached;  /* the cluster has replied */
    bool joined;   /* the key has been put */
    bool doubt;    /* it may have been */
    bool look;     /* whether it is still there */
    bool leaves;   /* the deadline has passed: delete the key, unless it is gone already */
    int64_t leave_by_ns;
    struct etcd_call call, renewal;
    struct etcd_watch watch;
    struct etcd_timer pause, clock, deadline;
};

static void wait_go(vigil_remote_wait *wait);

static int64_t wait_soon(const vigil_remote_wait *wait, int64_t ns) {
    return etcd_now_ns(wait->remote->etcd) + ns;
}

static struct etcd_call wait_call(vigil_remote_wait *wait,
                                  void (*done)(struct etcd_call *, const struct etcd_reply *)) {
    return (struct etcd_call){.done = done, .data = wait};
}

static void wait_send(vigil_remote_wait *wait, const struct etcd_txn *txn,
                      void (*done)(struct etcd_call *, const struct etcd_reply *)) {
    wait->call = wait_call(wait, done);
    etcd_txn(wait->remote->etcd, &wait->call, txn, wait_soon(wait, REMOTE_CALL_NS));
}

static void wait_free(vigil_remote_wait *wait) {
    remote_end(wait->remote, true);
    free(wait);
}

static void wait_revoked(struct etcd_call *call, const struct etcd_reply *reply) {
    (void)reply; /* a lease that has not been revoked ends by itself */
    wait_free(call->data);
}

/* Nothing is told any more. With the lease, the key goes. */
static void wait_stop(vigil_remote_wait *wait) {
    struct etcd *etcd = wait->remote->etcd;
    etcd_unwatch(etcd, &wait->watch);
    etcd_timer(etcd, &wait->pause, ETCD_NEVER);
    etcd_timer(etcd, &wait->clock, ETCD_NEVER);
    etcd_timer(etcd, &wait->deadline, ETCD_NEVER);
    etcd_cancel(etcd, &wait->renewal);
    etcd_cancel(etcd, &wait->call);
    if (!wait->lease || etcd_is_over(etcd)) {
        wait_free(wait);
        return;
    }
    wait->call = wait_call(wait, wait_revoked);
    etcd_revoke(etcd, &wait->call, wait->lease, wait_soon(wait, REMOTE_CALL_NS));
}

static void wait_end(vigil_remote_wait *wait, int status) {
    vigil_remote_done *done = wait->done;
    void *data = wait->data;
    wait_stop(wait);
    done(status, 0, data);
}

/* It has not joined, and will not. If that is not certain, it may have been woken. */
static void wait_end_outside(vigil_remote_wait *wait) {
    wait_end(wait, wait->doubt ? VIGIL_ELOST : VIGIL_TIMED_OUT);
}

static void wait_pause_due(struct etcd_timer *timer) {
    wait_go(timer->data);
}

/* Whether the reply is one; if not, this sees to it that something else happens. */
static bool wait_has_reply(vigil_remote_wait *wait, const struct etcd_reply *reply) {
    bool passes = reply->status == VIGIL_EUNREACHABLE || reply->status == VIGIL_TIMED_OUT ||
                  (reply->status == VIGIL_ENOMEM && wait->joined); /* it may be woken any moment */
    if (reply->status == VIGIL_OK) wait->reached = true;
    if (reply->status == VIGIL_OK) return true;
    if (passes && !wait->reached && !wait->remote->cluster && !wait->leaves) {
        wait_end(wait, VIGIL_EUNREACHABLE);
        return false;
    }
    if (passes && wait->leaves && wait->joined && wait_soon(wait, 0) >= wait->leave_by_ns) {
        wait_end(wait, VIGIL_ELOST); /* it may have been woken */
        return false;
    }
    if (wait->leaves && !wait->joined) {
        wait_end_outside(wait);
        return false;
    }
    if (!passes) {
        wait_end(wait, reply->status == VIGIL_ENOTFOUND ? VIGIL_ELOST : wait->leaves ? VIGIL_TIMED_OUT : reply->status);
        return false;
    }
    wait->pause = (struct etcd_timer){.due = wait_pause_due, .data = wait};
    int64_t jitter_ns = (int64_t)(etcd_random(wait->remote->etcd) % (SECOND_NS / 4));
    etcd_timer(wait->remote->etcd, &wait->pause, wait_soon(wait, SECOND_NS / 4 + jitter_ns));
    return false;
}

/* The lease. */

static void wait_renewed(struct etcd_call *call, const struct etcd_reply *reply) {
    vigil_remote_wait *wait = call->data;
    bool gone = reply->status == VIGIL_ENOTFOUND || (reply->status == VIGIL_OK && reply->ttl_s <= 0);
    int64_t ttl_ns = wait->remote->ttl_s * SECOND_NS, pause_ns = reply->status == VIGIL_OK ? ttl_ns / 3 : ttl_ns / 20;
    if (gone) wait_end(wait, VIGIL_ELOST);
    else etcd_timer(wait->remote->etcd, &wait->clock, wait_soon(wait, pause_ns));
}

static void wait_clock_due(struct etcd_timer *timer) {
    vigil_remote_wait *wait = timer->data;
    wait->renewal = wait_call(wait, wait_renewed);
    etcd_renew(wait->remote->etcd, &wait->renewal, wait->lease, wait_soon(wait, wait->remote->ttl_s * SECOND_NS / 3));
}

static void wait_leased(struct etcd_call *call, const struct etcd_reply *reply) {
    vigil_remote_wait *wait = call->data;
    if (reply->status != VIGIL_OK) wait->lease = 0; /* one that was granted all the same ends by itself */
    if (!wait_has_reply(wait, reply)) return;
    wait->clock = (struct etcd_timer){.due = wait_clock_due, .data = wait};
    etcd_timer(wait->remote->etcd, &wait->clock, wait_soon(wait, wait->remote->ttl_s * SECOND_NS / 3));
    wait_go(wait);
}

static void wait_ask_for_lease(vigil_remote_wait *wait) {
    wait->lease = (int64_t)(etcd_random(wait->remote->etcd) >> 1 | 1);
    snprintf(wait->key, sizeof wait->key, "%s!wait/%llx", wait->name, (unsigned long long)wait->lease);
    snprintf(wait->in_key, sizeof wait->in_key, "%s!in/%llx", wait->name, (unsigned long long)wait->lease);
    wait->call = wait_call(wait, wait_leased);
    etcd_grant(wait->remote->etcd, &wait->call, wait->lease, wait->remote->ttl_s, wait_soon(wait, REMOTE_CALL_NS));
}

/* The first reply of the cluster to this process says whether its version has what we need. */

static void wait_cluster_known(struct etcd_call *call, const struct etcd_reply *reply) {
    vigil_remote_wait *wait = call->data;
    if (!wait_has_reply(wait, reply)) return;
    wait->remote->cluster = reply->cluster;
    wait_go(wait);
}

static void wait_ask_for_cluster(vigil_remote_wait *wait) {
    wait->call = wait_call(wait, wait_cluster_known);
    etcd_status(wait->remote->etcd, &wait->call, wait_soon(wait, REMOTE_CALL_NS));
}

/* Joining. */

static void wait_has_read(struct etcd_call *call, const struct etcd_reply *reply) {
    vigil_remote_wait *wait = call->data;
    int64_t value = 0;
    if (!wait_has_reply(wait, reply)) return;
    int status = word_value(&reply->results[0], &value);
    if (status == VIGIL_OK && value != wait->expected) status = VIGIL_NOT_EQUAL;
    if (status != VIGIL_OK) {
        wait_end(wait, status);
        return;
    }
    wait->read = reply->results[0].pair_count ? reply->results[0].pairs->mod_revision : 0;
    wait_go(wait);
}

static void wait_read(vigil_remote_wait *wait) {
    const struct etcd_txn txn = {.then = {{.action = ETCD_RANGE, .key = remote_bytes(wait->name)}}, .then_count = 1};
    wait_send(wait, &txn, wait_has_read);
}

static void wait_told(struct etcd_watch *watch, enum etcd_news news, const struct etcd_pair *pair, int64_t revision) {
    vigil_remote_wait *wait = watch->data;
    (void)news;
    (void)pair;
    (void)revision;
    wait->look = true;
    wait_go(wait);
}

static void wait_has_joined(struct etcd_call *call, const struct etcd_reply *reply) {
    vigil_remote_wait *wait = call->data;
    if (reply->status != VIGIL_OK && reply->maybe_done) wait->doubt = true;
    if (!wait_has_reply(wait, reply)) return;
    bool before = !reply->succeeded && reply->results[0].pair_count && !BUG(joined_unseen);
    wait->joined = reply->succeeded || before;
    wait->look = before;
    wait->doubt = false;
    if (!wait->joined) wait->read = -1; /* the word has changed */
    wait_go(wait);
}

static void wait_join(vigil_remote_wait *wait) {
    const struct etcd_bytes word = remote_bytes(wait->name), in = remote_bytes(wait->in_key);
    const struct etcd_txn txn = {
        .compares = {{.key = word, .target = ETCD_MOD_REVISION, .revision = wait->read},
                     {.key = in, .target = ETCD_CREATE_REVISION}},
        .then = {{.action = ETCD_PUT, .key = remote_bytes(wait->key), .lease = wait->lease},
                 {.action = ETCD_PUT, .key = in, .lease = wait->lease}},
        .otherwise = {{.action = ETCD_RANGE, .key = in}},
        .compare_count = BUG(joined_twice) ? 1 : 2,
        .then_count = 2,
        .otherwise_count = 1,
    };
    wait_send(wait, &txn, wait_has_joined);
}

/* In line. */

/* The first key is gone. Without the second one, the lease has ended. */
static void wait_end_without_key(vigil_remote_wait *wait, const struct etcd_result *in) {
    bool left = in->pair_count && in->pairs->value.length && !BUG(left_as_woken);
    wait_end(wait, left ? VIGIL_TIMED_OUT : in->pair_count ? VIGIL_OK : VIGIL_ELOST);
}

static void wait_looked(struct etcd_call *call, const struct etcd_reply *reply) {
    vigil_remote_wait *wait = call->data;
    if (!wait_has_reply(wait, reply)) return;
    if (reply->results[0].pair_count) wait_go(wait);
    else wait_end_without_key(wait, &reply->results[1]);
}

static void wait_look(vigil_remote_wait *wait) {
    const struct etcd_txn txn = {.then = {{.action = ETCD_RANGE, .key = remote_bytes(wait->key)},
                                          {.action = ETCD_RANGE, .key = remote_bytes(wait->in_key)}},
                                 .then_count = 2};
    wait->look = false;
    wait_send(wait, &txn, wait_looked);
}

static void wait_left(struct etcd_call *call, const struct etcd_reply *reply) {
    vigil_remote_wait *wait = call->data;
    if (!wait_has_reply(wait, reply)) return;
    if (reply->succeeded) wait_end_without_key(wait, &reply->results[0]);
    else wait_end(wait, VIGIL_TIMED_OUT);
}

/* The second key remembers that: if it was carried out and the reply is lost, and if a call to join comes late. */
static void wait_leave(vigil_remote_wait *wait) {
    const struct etcd_bytes key = remote_bytes(wait->key), in = remote_bytes(wait->in_key);
    const struct etcd_txn txn = {
        .compares = {{.key = key, .target = ETCD_CREATE_REVISION}},
        .then = {{.action = ETCD_RANGE, .key = in}},
        .otherwise = {{.action = ETCD_DELETE, .key = key},
                      {.action = ETCD_PUT, .key = in, .value = remote_bytes("left"), .lease = wait->lease}},
        .compare_count = 1,
        .then_count = 1,
        .otherwise_count = 2,
    };
    wait_send(wait, &txn, wait_left);
}

static void wait_watch(vigil_remote_wait *wait) {
    if (wait->watch.pending) return;
    wait->watch = (struct etcd_watch){.told = wait_told, .data = wait};
    etcd_watch(wait->remote->etcd, &wait->watch, remote_bytes(wait->key), remote_bytes(""), true);
}

static void wait_go(vigil_remote_wait *wait) {
    if (wait->call.pending || wait->pause.pending) return;
    if (wait->leaves && !wait->joined) {
        wait_end_outside(wait);
    } else if (!wait->remote->cluster) {
        wait_ask_for_cluster(wait);
    } else if (!wait->lease) {
        wait_ask_for_lease(wait);
    } else if (!wait->joined) {
        if (wait->read < 0) wait_read(wait);
        else wait_join(wait);
    } else if (wait->leaves) {
        wait_leave(wait);
    } else {
        wait_watch(wait);
        if (wait->look) wait_look(wait);
    }
}

static void wait_deadline_due(struct etcd_timer *timer) {
    vigil_remote_wait *wait = timer->data;
    wait->leaves = true;
    wait->leave_by_ns = wait_soon(wait, WAIT_LEAVE_NS);
    wait_go(wait);
}

int vigil_remote_word_wait(vigil_remote *remote, const char *name, int64_t expected, int64_t timeout_ns,
                           vigil_remote_done *done, void *data, vigil_remote_wait **result) {
    if (!remote || !name || !done) return VIGIL_ENULL;
    if (!remote_name_is_good(name)) return VIGIL_ENAME;
    if (etcd_is_over(remote->etcd)) return VIGIL_ECLOSING;
    vigil_remote_wait *wait = calloc(1, sizeof *wait);
    if (!wait) return VIGIL_ENOMEM;
    *wait = (vigil_remote_wait){.remote = remote, .done = done, .data = data, .expected = expected, .read = -1};
    strcpy(wait->name, name);
    wait->deadline = (struct etcd_timer){.due = wait_deadline_due, .data = wait};
    int64_t now_ns = etcd_now_ns(remote->etcd);
    if (timeout_ns < ETCD_NEVER - now_ns)
        etcd_timer(remote->etcd, &wait->deadline, now_ns + (timeout_ns > 0 ? timeout_ns : 0));
    remote_begin(remote, true);
    if (result) *result = wait;
    wait_read(wait); /* a word that differs needs no lease */
    return VIGIL_PENDING;
}

int vigil_remote_word_cancel(vigil_remote_wait *wait) {
    if (!wait) return VIGIL_ENULL;
    wait_stop(wait);
    return VIGIL_OK;
}
