/* SPDX-License-Identifier: MIT */
/*
 * Locks of a cluster, and the line of this machine before them.
 *
 * A request that wants the lock alone first takes a named lock of the machine (vigil/named.h), fair, and with it the
 * record of the machine's place, which is in the data of that lock. Then it goes for the place in the cluster, from
 * wherever the record says that the machine is. Only a holder of the named lock changes the record, or the keys.
 *
 *     IDLE      nothing. The place may keep: the machine holds the lock, and no process uses it
 *     LOCAL     waits for the named lock; before that, for the number of the cluster, which is part of its name
 *     REMOTE    has the named lock, and waits for the place
 *     HELD      holds
 *     LEAVING   has the named lock, and gives up the place. `after` says what comes then
 *
 * A request that gives up while it waits for the place, and a release, unlock the named lock first: the next process of
 * the machine takes over the place. Then they try to take it again. If they get it, no process wants it, and they give
 * up the place.
 *
 * Requests that share, and slots, have a place of their own, in a record of their own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bug.h"
#include "remote.h"

#define AGAIN_NS INT64_C(200000000)  /* the pause before a call that has failed is made again */
#define OFFER_NS INT64_C(1000000000) /* the pause before a place that is wanted is offered again */

enum lock_state { LOCK_IDLE, LOCK_LOCAL, LOCK_REMOTE, LOCK_HELD, LOCK_LEAVING };
enum lock_after { AFTER_NOTHING, AFTER_RELEASE, AFTER_CLOSE };

struct vigil_remote_lock {
    vigil_remote *remote;
    char name[PLACE_NAME + 1];
    vigil_remote_lock_options options;
    vigil_named *named; /* null: not opened yet */
    bool named_held;
    bool described;
    uint32_t pid;
    char what[64];

    enum lock_state state;
    enum lock_after after;
    bool taking;    /* vigil_remote_lock_take has not returned yet */
    bool queued;    /* a request waits for the end of LOCK_LEAVING */
    bool cancelled; /* LOCAL: too late, the named lock will be ours */
    bool lost;
    bool slots_known;
    bool was_alone; /* the place's record is that of the machine */
    bool mistrusts; /* the machine's record may be of a key that is gone */
    bool *freed;    /* where to say so; null: nowhere */
    int outcome;    /* of a request that is refused soon */
    unsigned how;
    int64_t deadline_ns;
    vigil_remote_callback *callback;
    void *data;
    vigil_remote_callback *released;
    void *released_data;
    vigil_remote_closed *closed;
    void *closed_data;

    struct place place;
    struct etcd_call call;
    struct etcd_timer timer;
};

static void lock_begin(vigil_remote_lock *lock);
static void lock_has_left(vigil_remote_lock *lock, int status);
static void lock_told(struct place *place, enum place_news news, int status);

static bool lock_is_alone(const vigil_remote_lock *lock) {
    return !lock->options.slots && !(lock->how & VIGIL_NAMED_SHARED);
}

static struct place_record *lock_record(vigil_remote_lock *lock) {
    _Static_assert(sizeof(struct place_record) <= VIGIL_NAMED_DATA, "the record is in the data of the named lock");
    return lock->named_held ? vigil_named_data(lock->named) : NULL;
}

static void lock_set_state(vigil_remote_lock *lock, enum lock_state state) {
    bool was_busy = lock->state != LOCK_IDLE && lock->state != LOCK_HELD;
    bool is_busy = state != LOCK_IDLE && state != LOCK_HELD;
    lock->state = state;
    if (is_busy && !was_busy) remote_keep_going(lock->remote);
    if (was_busy && !is_busy) remote_let_end(lock->remote);
}

static void lock_unlock_named(vigil_remote_lock *lock) {
    if (lock->named_held) vigil_named_unlock(lock->named);
    lock->named_held = false;
}

/* The holder that was killed, from the named lock. */
static void lock_name_dead(vigil_remote_lock *lock) {
    vigil_named_holder dead = {0};
    vigil_named_death(lock->named, &dead);
    remote_describe(lock->place.texts->dead, dead.pid, dead.taken_at, dead.text);
}

/* With the named lock held. If there is no memory for the place, the named lock is given up. `died`: its holder was
 * killed; the record remembers that from now on. */
static bool lock_has_place(vigil_remote_lock *lock, bool died) {
    bool prepared = place_prepare(&lock->place);
    if (prepared && died) lock_name_dead(lock);
    if (prepared && died) vigil_named_consistent(lock->named);
    if (!prepared && died) lock->named_held = vigil_named_abandon(lock->named) != VIGIL_OK;
    if (!prepared) lock_unlock_named(lock);
    return prepared;
}

/* Without waiting, to give up the place. */
static bool lock_trylock_named(vigil_remote_lock *lock) {
    if (lock->named_held) return true;
    int status = lock->named ? vigil_named_trylock(lock->named, VIGIL_NAMED_FAIR) : VIGIL_TIMED_OUT;
    lock->named_held = status == VIGIL_OK || status == VIGIL_OWNER_DIED;
    if (status == VIGIL_OWNER_DIED && lock_has_place(lock, true)) place_inherit(&lock->place, lock_record(lock), true);
    return lock->named_held;
}

/* Ends. */

static void lock_free(vigil_remote_lock *lock, int status) {
    vigil_remote_closed *closed = lock->closed;
    void *data = lock->closed_data;
    place_free(&lock->place);
    etcd_cancel(lock->remote->etcd, &lock->call);
    etcd_timer(lock->remote->etcd, &lock->timer, ETCD_NEVER);
    lock_unlock_named(lock);
    if (lock->named) vigil_named_close(lock->named);
    lock_set_state(lock, LOCK_IDLE);
    remote_end(lock->remote, false);
    if (lock->freed) *lock->freed = true;
    free(lock);
    if (closed) closed(status, data);
}

/* The request has ended, and the handle is idle, or holds. */
static void lock_finish(vigil_remote_lock *lock, enum lock_state state, int status) {
    etcd_timer(lock->remote->etcd, &lock->timer, ETCD_NEVER);
    lock_set_state(lock, state);
    if (status != VIGIL_CANCELLED) lock->callback(lock, status, lock->data);
}

static void lock_leave(vigil_remote_lock *lock, enum lock_after after, bool drops_lease) {
    lock_set_state(lock, LOCK_LEAVING);
    lock->after = after;
    place_leave(&lock->place, lock_record(lock), drops_lease);
}

static void lock_has_left(vigil_remote_lock *lock, int status) {
    enum lock_after after = lock->after;
    lock->after = AFTER_NOTHING;
    lock_unlock_named(lock);
    if (after == AFTER_CLOSE) {
        lock_free(lock, status);
        return;
    }
    if (lock->queued) { /* a request came meanwhile: it begins now */
        lock->queued = false;
        lock_begin(lock);
        return;
    }
    lock_set_state(lock, LOCK_IDLE);
    if (after == AFTER_RELEASE && lock->released) lock->released(lock, status, lock->released_data);
}

/* The next process of the machine takes over the place; if none waits, it is given up: returns whether it is. */
static bool lock_give_up_unless_wanted_here(vigil_remote_lock *lock, enum lock_after after, bool drops_lease) {
    lock_unlock_named(lock);
    if (!lock_trylock_named(lock)) return false;
    lock_leave(lock, after, drops_lease);
    return true;
}

/* The request ends without the lock, and now: to give up the place may take some seconds, if the cluster cannot be
 * reached. The callback comes last, because it may close the handle. */
static void lock_give_up(vigil_remote_lock *lock, int status) {
    etcd_timer(lock->remote->etcd, &lock->timer, ETCD_NEVER);
    place_stop(&lock->place);
    if (!lock_is_alone(lock)) lock_leave(lock, AFTER_NOTHING, false);
    else if (!lock_give_up_unless_wanted_here(lock, AFTER_NOTHING, false)) lock_set_state(lock, LOCK_IDLE);
    if (status != VIGIL_CANCELLED) lock->callback(lock, status, lock->data);
}

/* A request. */

static void lock_deadline_due(struct etcd_timer *timer) {
    vigil_remote_lock *lock = timer->data;
    if (lock->state == LOCK_REMOTE) {
        lock_give_up(lock, VIGIL_TIMED_OUT);
    } else if (lock->queued) {
        lock->queued = false;
        lock->callback(lock, VIGIL_TIMED_OUT, lock->data);
    }
}

static void lock_await_deadline(vigil_remote_lock *lock) {
    lock->timer.due = lock_deadline_due;
    lock->timer.data = lock;
    etcd_timer(lock->remote->etcd, &lock->timer, lock->deadline_ns ? lock->deadline_ns : ETCD_NEVER);
}

static void lock_refuse_soon(vigil_remote_lock *lock, int status);

static void lock_go_remote(vigil_remote_lock *lock, bool died) {
    struct place *place = &lock->place;
    if (!lock_has_place(lock, died)) {
        lock_refuse_soon(lock, VIGIL_ENOMEM);
        return;
    }
    lock_set_state(lock, LOCK_REMOTE);
    if (lock->was_alone && !lock_is_alone(lock)) place->record = (struct place_record){0};
    lock->was_alone = lock_is_alone(lock);
    remote_describe(place->texts->text, lock->pid, time(NULL), lock->what);
    if (lock->mistrusts && lock->named_held) place_spend_reserve(lock_record(lock));
    lock->mistrusts = false;
    place->mode = lock->options.slots ? PLACE_SLOT : lock->how & VIGIL_NAMED_SHARED ? PLACE_SHARED : PLACE_ALONE;
    lock_await_deadline(lock);
    place_take(place, lock_record(lock), died, !lock->deadline_ns, lock->taking);
}

/* The request had been cancelled. If the named lock is ours all the same, so is the place that the process before us
 * has left to us. */
static void lock_end_cancelled(vigil_remote_lock *lock, bool died) {
    enum lock_after after = lock->after; /* it may have been closed since */
    lock->cancelled = false;
    lock_set_state(lock, LOCK_LEAVING);
    if (lock->named_held && lock_has_place(lock, died)) {
        place_inherit(&lock->place, lock_record(lock), died && !BUG(death_cancelled));
        lock->was_alone = true;
        if (lock_give_up_unless_wanted_here(lock, after, after == AFTER_CLOSE)) return;
    }
    lock_has_left(lock, VIGIL_OK);
}

static void lock_local_ended(vigil_named *named, int status, void *data) {
    vigil_remote_lock *lock = data;
    (void)named;
    lock->named_held = status == VIGIL_OK || status == VIGIL_OWNER_DIED;
    if (lock->cancelled) {
        lock_end_cancelled(lock, status == VIGIL_OWNER_DIED);
        return;
    }
    if (status != VIGIL_OK && status != VIGIL_OWNER_DIED) {
        lock_finish(lock, LOCK_IDLE, status);
        return;
    }
    lock_go_remote(lock, status == VIGIL_OWNER_DIED);
}

/* The name of the lock of this machine. Slashes make paths of names: they are replaced. A hash keeps such names apart,
 * and a dot before them keeps them apart from names that have no slash. */
static void lock_local_name(const vigil_remote_lock *lock, char name[256]) {
    uint32_t hash = 2166136261u;
    for (const char *at = lock->name; *at; at++) hash = (hash ^ (unsigned char)*at) * 16777619u;
    bool slashes = strchr(lock->name, '/');
    int length = snprintf(name, 256, "etcd-%016llx%c%s", (unsigned long long)lock->remote->cluster, slashes ? '.' : '-',
                          lock->name);
    for (char *at = name; *at; at++)
        if (*at == '/') *at = '_';
    if (slashes) snprintf(name + length, 256 - (size_t)length, "-%08x", hash);
}

static int lock_open_named(vigil_remote_lock *lock) {
    char name[256];
    if (lock->named) return VIGIL_OK;
    lock_local_name(lock, name);
    int status = vigil_named_open(&lock->named, name, NULL);
    if (status != VIGIL_OK) lock->named = NULL;
    if (status != VIGIL_OK || !lock->options.ties || vigil_named_tie(lock->named) >= 0) return status;
    vigil_named_close(lock->named); /* the next request ties anew */
    lock->named = NULL;
    return VIGIL_ESYSTEM;
}

static void lock_refusal_due(struct etcd_timer *timer) {
    vigil_remote_lock *lock = timer->data;
    lock_local_ended(lock->named, lock->outcome, lock);
}

/* From the agent's dispatch, and not before vigil_remote_lock_take has returned. */
static void lock_refuse_soon(vigil_remote_lock *lock, int status) {
    lock->outcome = status;
    lock->timer.due = lock_refusal_due;
    lock->timer.data = lock;
    etcd_timer(lock->remote->etcd, &lock->timer, etcd_now_ns(lock->remote->etcd));
}

static void lock_go_local(vigil_remote_lock *lock) {
    int status = lock_open_named(lock);
    if (status == VIGIL_OK) {
        vigil_named_describe(lock->named, lock->what, lock->pid);
        int64_t left_ns = lock->deadline_ns - etcd_now_ns(lock->remote->etcd);
        if (!lock->deadline_ns || left_ns < 0) left_ns = 0;
        if (lock->deadline_ns == ETCD_NEVER) left_ns = VIGIL_FOREVER;
        status =
            vigil_named_lock_async(lock->remote->agent, lock->named, VIGIL_NAMED_FAIR, left_ns, lock_local_ended, lock);
    }
    if (status == VIGIL_OK || status == VIGIL_OWNER_DIED) lock_local_ended(lock->named, status, lock);
    else if (status != VIGIL_PENDING && BUG(refused_at_once)) lock_local_ended(lock->named, status, lock);
    else if (status != VIGIL_PENDING) lock_refuse_soon(lock, status);
}

static bool lock_passes(int status) {
    return status == VIGIL_EUNREACHABLE || status == VIGIL_TIMED_OUT;
}

static int64_t lock_call_by(const vigil_remote_lock *lock, int64_t within_ns) {
    int64_t by_ns = etcd_now_ns(lock->remote->etcd) + within_ns;
    return lock->deadline_ns && lock->deadline_ns < by_ns ? lock->deadline_ns : by_ns;
}

static void lock_again_due(struct etcd_timer *timer) {
    lock_begin(timer->data);
}

/* The cluster has been reached before: it is tried until the timeout. */
static void lock_begin_again(vigil_remote_lock *lock) {
    int64_t now_ns = etcd_now_ns(lock->remote->etcd), at_ns = now_ns + AGAIN_NS;
    if (now_ns >= lock->deadline_ns) {
        lock_finish(lock, LOCK_IDLE, lock->deadline_ns ? VIGIL_TIMED_OUT : VIGIL_EUNREACHABLE);
        return;
    }
    lock->timer.due = lock_again_due;
    lock->timer.data = lock;
    etcd_timer(lock->remote->etcd, &lock->timer, at_ns < lock->deadline_ns ? at_ns : lock->deadline_ns);
}

/* The number of slots is agreed on by the first. */
static void lock_slots_known(struct etcd_call *call, const struct etcd_reply *reply) {
    vigil_remote_lock *lock = call->data;
    int status = reply->status;
    if (status == VIGIL_OK && !reply->succeeded) {
        char text[16] = "";
        const struct etcd_result *result = &reply->results[0];
        if (result->pair_count)
            snprintf(text, sizeof text, "%.*s",
                     (int)(result->pairs->value.length < 15 ? result->pairs->value.length : 15),
                     (const char *)result->pairs->value.data);
        if (strtoul(text, NULL, 10) != lock->options.slots) status = VIGIL_EINVAL;
    }
    if (lock_passes(status)) {
        lock_begin_again(lock);
        return;
    }
    if (status != VIGIL_OK) {
        lock_finish(lock, LOCK_IDLE, status);
        return;
    }
    lock->slots_known = true;
    lock_begin(lock);
}

static void lock_agree_on_slots(vigil_remote_lock *lock) {
    char key[PLACE_KEY], value[16];
    snprintf(key, sizeof key, "%s!slots", lock->name);
    snprintf(value, sizeof value, "%u", lock->options.slots);
    struct etcd_bytes at = {key, strlen(key)};
    struct etcd_txn txn = {
        .compares = {{.key = at, .target = ETCD_CREATE_REVISION}},
        .then = {{.action = ETCD_PUT, .key = at, .value = {value, strlen(value)}}},
        .otherwise = {{.action = ETCD_RANGE, .key = at}},
        .compare_count = 1,
        .then_count = 1,
        .otherwise_count = 1,
    };
    lock->call = (struct etcd_call){.done = lock_slots_known, .data = lock};
    etcd_txn(lock->remote->etcd, &lock->call, &txn, lock_call_by(lock, REMOTE_CALL_NS));
}

static void lock_cluster_known(struct etcd_call *call, const struct etcd_reply *reply) {
    vigil_remote_lock *lock = call->data;
    if (lock->remote->cluster && lock_passes(reply->status)) { /* another handle has reached it meanwhile */
        lock_begin_again(lock);
        return;
    }
    if (reply->status != VIGIL_OK) {
        bool waited = lock->deadline_ns && etcd_now_ns(lock->remote->etcd) >= lock->deadline_ns;
        bool early = reply->status == VIGIL_TIMED_OUT && !waited;
        lock_finish(lock, LOCK_IDLE, early ? VIGIL_EUNREACHABLE : reply->status);
        return;
    }
    lock->remote->cluster = reply->cluster;
    lock_begin(lock);
}

static void lock_ask_for_cluster(vigil_remote_lock *lock) {
    lock->call = (struct etcd_call){.done = lock_cluster_known, .data = lock};
    etcd_status(lock->remote->etcd, &lock->call, lock_call_by(lock, REMOTE_REACH_NS));
}

/* A slot is in the cluster's line only, and a semaphore of one handle may have any number of them. */
static void lock_begin(vigil_remote_lock *lock) {
    lock_set_state(lock, LOCK_LOCAL);
    if (!lock->remote->cluster) lock_ask_for_cluster(lock);
    else if (lock->options.slots && !lock->slots_known) lock_agree_on_slots(lock);
    else if (lock_is_alone(lock)) lock_go_local(lock);
    else lock_go_remote(lock, false);
}

/* No request is pending, and none is being released: the next may be queued. */
static bool lock_is_on_its_way_out(const vigil_remote_lock *lock) {
    return (lock->state == LOCK_LEAVING || lock->cancelled) && lock->after == AFTER_NOTHING && !lock->queued;
}

/* The machine holds it alone, and a request of this handle wants to share it. */
static void lock_give_back_what_is_kept(vigil_remote_lock *lock) {
    if (lock_trylock_named(lock)) lock_leave(lock, AFTER_NOTHING, false);
    else place_stop(&lock->place);
}

int vigil_remote_lock_take(vigil_remote_lock *lock, unsigned how, int64_t timeout_ns, vigil_remote_callback *callback,
                           void *data) {
    if (!lock || !callback) return VIGIL_ENULL;
    bool shared = how & VIGIL_NAMED_SHARED;
    if (how & ~(unsigned)(VIGIL_NAMED_SHARED | VIGIL_NAMED_FAIR) || (shared && lock->options.slots))
        return VIGIL_EINVAL;
    if (etcd_is_over(lock->remote->etcd)) return VIGIL_ECLOSING;
    if (lock->state != LOCK_IDLE && !lock_is_on_its_way_out(lock)) return VIGIL_EINUSE;
    int64_t now_ns = etcd_now_ns(lock->remote->etcd);
    bool for_ever = timeout_ns >= ETCD_NEVER - now_ns;
    if (lock->state == LOCK_IDLE && lock->place.goal == GOAL_KEEP && shared) lock_give_back_what_is_kept(lock);
    lock->how = how;
    lock->deadline_ns = timeout_ns <= 0 ? 0 : for_ever ? ETCD_NEVER : now_ns + timeout_ns;
    lock->callback = callback;
    lock->data = data;
    lock->lost = false;
    lock->queued = lock->state != LOCK_IDLE;
    lock->taking = true;
    if (!lock->queued || !BUG(queue_without_deadline)) lock_await_deadline(lock);
    if (!lock->queued) lock_begin(lock);
    lock->taking = false;
    return VIGIL_PENDING;
}

int vigil_remote_lock_cancel(vigil_remote_lock *lock) {
    if (!lock) return VIGIL_ENULL;
    if (etcd_is_over(lock->remote->etcd)) return VIGIL_ECLOSING;
    if (lock->queued) {
        lock->queued = false;
        return VIGIL_OK;
    }
    if (lock->state == LOCK_REMOTE) {
        lock_give_up(lock, VIGIL_CANCELLED);
        return VIGIL_OK;
    }
    if (lock->state != LOCK_LOCAL || lock->cancelled) return VIGIL_EIDLE;
    etcd_cancel(lock->remote->etcd, &lock->call);
    lock->cancelled = lock->named && vigil_named_cancel(lock->named) == VIGIL_ETOOLATE;
    if (!lock->cancelled) lock_finish(lock, LOCK_IDLE, VIGIL_CANCELLED);
    return VIGIL_OK;
}

/* Releasing. */

/* Others wait, and this machine has had it long enough. */
static bool lock_is_others_turn(const vigil_remote_lock *lock) {
    const struct place *place = &lock->place;
    int64_t since_ns = etcd_now_ns(lock->remote->etcd) - place->record.wanted_ns;
    return place->wanted && !BUG(handover_unbounded) &&
           (place->record.handovers >= VIGIL_REMOTE_HANDOVERS ||
            since_ns > place->record.ttl_s * INT64_C(1000000000) / 2);
}

/* The next process of the machine may have the place, without being granted it by the cluster. */
static void lock_hand_over(vigil_remote_lock *lock) {
    lock->place.record.handovers++;
    place_keep(&lock->place);
}

int vigil_remote_lock_release(vigil_remote_lock *lock, vigil_remote_callback *callback, void *data) {
    if (!lock) return VIGIL_ENULL;
    if (lock->state != LOCK_HELD) return VIGIL_ENOTHELD;
    if (etcd_is_over(lock->remote->etcd)) return VIGIL_ECLOSING;
    lock->released = NULL; /* it is not called before this returns */
    if (!lock_is_alone(lock) || lock->lost || lock_is_others_turn(lock)) {
        lock_leave(lock, AFTER_RELEASE, false);
    } else {
        bool gives_up = lock->place.wanted || lock->options.gives_back;
        lock_hand_over(lock);
        if (!gives_up) lock_unlock_named(lock);
        bool leaves = gives_up && lock_give_up_unless_wanted_here(lock, AFTER_RELEASE, false);
        if (gives_up && !leaves) place_stop(&lock->place); /* the next process of the machine has the place now */
        if (!leaves) lock_set_state(lock, LOCK_IDLE);
    }
    if (lock->state == LOCK_IDLE) return VIGIL_OK;
    lock->released = callback;
    lock->released_data = data;
    return VIGIL_PENDING;
}

static void lock_offer_due(struct etcd_timer *timer);

/* No process of this machine that we know of uses the place. If another does, look again later: it may be killed. */
static void lock_offer(vigil_remote_lock *lock) {
    if (lock_trylock_named(lock)) {
        lock_leave(lock, AFTER_NOTHING, false);
        return;
    }
    if (BUG(kept_while_used)) return;
    lock->timer.due = lock_offer_due;
    lock->timer.data = lock;
    etcd_timer(lock->remote->etcd, &lock->timer, etcd_now_ns(lock->remote->etcd) + OFFER_NS);
}

static void lock_offer_due(struct etcd_timer *timer) {
    vigil_remote_lock *lock = timer->data;
    if (lock->state == LOCK_IDLE) lock_offer(lock);
}

/*
 * The machine holds it, this process keeps it, and others wait. They would wait for ever if it were kept on for a
 * process that does not give it up: the one that has the named lock may have been killed, or wait in the line itself,
 * behind a key of which its record does not know. So it is kept no longer. A process that uses the place renews the
 * lease itself; else the lease ends.
 */
static void lock_wanted(vigil_remote_lock *lock) {
    bool asks = lock->state == LOCK_LOCAL;
    if (lock->place.goal != GOAL_KEEP || BUG(place_kept) || (BUG(kept_while_asking) && asks)) return;
    if (!BUG(kept_while_used)) place_stop(&lock->place);
    if (!asks) lock_offer(lock);
}

/* The place was kept, and no process used it. The next one must not rely on it. */
static void lock_has_lost_unused(vigil_remote_lock *lock) {
    lock->mistrusts = !lock_trylock_named(lock) && !BUG(loss_unsaid);
    if (!lock->named_held) return;
    place_stop(&lock->place);
    if (!BUG(loss_unsaid)) place_spend_reserve(lock_record(lock));
    lock_unlock_named(lock);
}

static void lock_has_lost(vigil_remote_lock *lock) {
    if (lock->state != LOCK_HELD) {
        lock_has_lost_unused(lock);
        return;
    }
    lock->lost = true;
    if (lock->options.on_lost) lock->options.on_lost(lock, lock->place.left_ns, lock->options.data);
}

static void lock_told(struct place *place, enum place_news news, int status) {
    vigil_remote_lock *lock = place->data;
    switch (news) {
    case PLACE_GRANTED: lock_finish(lock, LOCK_HELD, status); break;
    case PLACE_NOT_FREE: lock_give_up(lock, VIGIL_TIMED_OUT); break;
    case PLACE_FAILED: lock_give_up(lock, status); break;
    case PLACE_WANTED: lock_wanted(lock); break;
    case PLACE_LOST: lock_has_lost(lock); break;
    case PLACE_LEFT: lock_has_left(lock, status); break;
    }
}

/* Handles. */

static void lock_own_name(char text[64]) {
    FILE *file = fopen("/proc/self/comm", "r");
    if (!file || !fgets(text, 64, file)) text[0] = 0;
    if (file) fclose(file);
    text[strcspn(text, "\n")] = 0;
}

int vigil_remote_lock_open(vigil_remote_lock **result, vigil_remote *remote, const char *name,
                           const vigil_remote_lock_options *options) {
    if (!result || !remote || !name) return VIGIL_ENULL;
    if (!remote_name_is_good(name)) return VIGIL_ENAME;
    if (options && options->slots > VIGIL_NAMED_SLOTS) return VIGIL_ERANGE;
    vigil_remote_lock *lock = calloc(1, sizeof *lock);
    if (!lock) return VIGIL_ENOMEM;
    lock->remote = remote;
    strcpy(lock->name, name);
    if (options) lock->options = *options;
    lock->pid = (uint32_t)getpid();
    lock_own_name(lock->what);
    lock->place = (struct place){
        .etcd = remote->etcd, .name = lock->name, .ttl_s = remote->ttl_s, .told = lock_told, .data = lock};
    remote_begin(remote, false);
    *result = lock;
    return VIGIL_OK;
}

/* What the machine has and no process uses is given up, with the lease. What is held is released: `vigil lock` closes
 * its handle while it holds, and its machine may have more such commands in line without end. */
static bool lock_close_leaves(vigil_remote_lock *lock) {
    bool turn_ends = lock_is_others_turn(lock) && !BUG(closes_unbounded);
    if (lock->state == LOCK_HELD && lock_is_alone(lock) && !lock->lost && !turn_ends) {
        if (BUG(closes_unbounded)) place_keep(&lock->place);
        else lock_hand_over(lock);
        return lock_give_up_unless_wanted_here(lock, AFTER_CLOSE, true);
    }
    bool has_place = lock->place.record.lease != 0;
    if (!has_place || (lock->state == LOCK_IDLE && lock->was_alone && !lock_trylock_named(lock))) return false;
    lock_leave(lock, AFTER_CLOSE, true);
    return true;
}

/* Without the agent the cluster is not told: its keys end with the lease. The next process of the machine may take the
 * place over. */
static int lock_close_without_agent(vigil_remote_lock *lock) {
    if (lock->state == LOCK_HELD && lock_is_alone(lock) && !lock->lost) lock_hand_over(lock);
    lock_free(lock, VIGIL_OK);
    return VIGIL_OK;
}

int vigil_remote_lock_close(vigil_remote_lock *lock, vigil_remote_closed *closed, void *data) {
    if (!lock) return VIGIL_ENULL;
    if (etcd_is_over(lock->remote->etcd)) return lock_close_without_agent(lock);
    bool leaving = lock_is_on_its_way_out(lock);
    if (lock->state != LOCK_IDLE && lock->state != LOCK_HELD && !leaving) return VIGIL_EBUSY;
    bool freed = false;
    lock->freed = &freed;
    if (leaving) {
        lock->after = AFTER_CLOSE;
        lock->place.drops_lease = true;
    } else if (!lock_close_leaves(lock)) {
        lock_free(lock, VIGIL_OK);
    }
    if (freed) return VIGIL_OK;
    lock->freed = NULL;
    lock->closed = closed;
    lock->closed_data = data;
    return VIGIL_PENDING;
}

/* What a kill would leave: the record and the keys as they are, and the named lock with a dead holder. */
int vigil_remote_lock_abandon(vigil_remote_lock *lock) {
    if (!lock) return VIGIL_ENULL;
    bool asks = lock->state == LOCK_LOCAL && lock->named;
    if (asks && vigil_named_cancel(lock->named) == VIGIL_ETOOLATE) return VIGIL_ETOOLATE;
    place_stop(&lock->place);
    if (lock->named_held && BUG(abandoned_unlocked)) vigil_named_unlock(lock->named);
    else if (lock->named_held) vigil_named_abandon(lock->named);
    lock->named_held = false;
    lock->closed = NULL;
    lock_free(lock, VIGIL_OK);
    return VIGIL_OK;
}

int vigil_remote_lock_describe(vigil_remote_lock *lock, const char *text, uint32_t pid) {
    if (!lock || !text) return VIGIL_ENULL;
    snprintf(lock->what, sizeof lock->what, "%s", text);
    lock->pid = pid;
    if (lock->named) vigil_named_describe(lock->named, lock->what, pid);
    return VIGIL_OK;
}

int vigil_remote_lock_tie(vigil_remote_lock *lock) {
    if (!lock) return VIGIL_ENULL;
    return lock->named && lock->options.ties ? vigil_named_tie(lock->named) : VIGIL_EINVAL;
}

int64_t vigil_remote_lock_token(const vigil_remote_lock *lock) {
    return lock && lock->state == LOCK_HELD ? lock->place.token : 0;
}

const char *vigil_remote_lock_key(const vigil_remote_lock *lock) {
    return lock && lock->state == LOCK_HELD ? lock->place.texts->held_key : "";
}

int vigil_remote_lock_death(const vigil_remote_lock *lock, vigil_remote_holder *dead) {
    if (!lock || !dead) return VIGIL_ENULL;
    if (lock->state != LOCK_HELD || !lock->place.record.died) return VIGIL_EINVAL;
    remote_read_holder(lock->place.texts->dead, strlen(lock->place.texts->dead), dead);
    return VIGIL_OK;
}

int vigil_remote_lock_consistent(vigil_remote_lock *lock) {
    if (!lock) return VIGIL_ENULL;
    if (lock->state != LOCK_HELD || !lock_is_alone(lock)) return VIGIL_ENOTHELD;
    if (!lock->place.record.died) return VIGIL_EINVAL;
    if (!lock->lost) place_consistent(&lock->place);
    return VIGIL_OK;
}

#ifdef VIGIL_REMOTE_BUGS /* the search of test/remote: a process that was killed leaves its memory */
void remote_forget(vigil_remote_lock *lock) {
    free(lock->place.texts);
    free(lock);
}
#endif
