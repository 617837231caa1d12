/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bug.h"

#define SECOND_NS      INT64_C(1000000000)
#define CALL_NS        (2 * SECOND_NS)  /* how long a call may take, at least */
#define LEAVE_NS       (3 * SECOND_NS)  /* how long leaving is tried */
#define RETRY_FIRST_NS (SECOND_NS / 20) /* the first pause after a failure; it doubles up to the last */
#define RETRY_LAST_NS  SECOND_NS
#define WATCH_AFTER_NS (SECOND_NS / 100) /* a lock that is held for less is not worth a watch */

static void place_go(struct place *place);

/* The record. */

static uint32_t place_check_of(const struct place_record *record) {
    const unsigned char *bytes = (const unsigned char *)record;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < offsetof(struct place_record, check); i++) hash = (hash ^ bytes[i]) * 16777619u;
    return hash | 1;
}

static void place_save(struct place *place) {
    place->record.check = place_check_of(&place->record);
    if (place->saved) *place->saved = place->record;
}

static struct place_record place_load(const struct place_record *saved) {
    struct place_record record = saved ? *saved : (struct place_record){0};
    return record.check == place_check_of(&record) || BUG(torn_record_used) ? record : (struct place_record){0};
}

static struct etcd_bytes place_bytes(const char *text) {
    return (struct etcd_bytes){text, strlen(text)};
}

static void place_name_keys(struct place *place) {
    const struct place_record *record = &place->record;
    unsigned long long lease = (unsigned long long)record->lease;
    snprintf(place->texts->line_key, PLACE_KEY, "%s!line/%llx.%u", place->name, lease, record->number);
    snprintf(place->texts->held_key, PLACE_KEY, "%s!held/%c.%llx.%u", place->name,
             place->mode == PLACE_ALONE ? 'x' : 's', lease, record->number);
}

static void place_be_at(struct place *place, enum place_at at, int64_t created) {
    place->record.at = (uint8_t)at;
    place->record.use = PLACE_UNUSED;
    place->record.created = created;
    if (at == PLACE_NOWHERE) place->dead_known = false; /* that key's mark is the cluster's now */
    if (!BUG(reserve_kept)) place->record.token = 0;
    place_save(place);
}

/* The lease is gone, and all keys with it. */
static void place_forget_lease(struct place *place) {
    etcd_cancel(place->etcd, &place->renewal); /* its reply would be about the next lease */
    place->record = (struct place_record){.died = place->record.died};
    place->unsure = false;
    place->token = 0;
    place_be_at(place, PLACE_NOWHERE, 0);
}

/* Keys. A range is all keys that begin with a prefix: up to the prefix with its last character increased. */

struct place_range {
    char from[PLACE_KEY], to[PLACE_KEY];
};

static struct place_range place_range(const struct place *place, const char *kind) {
    struct place_range range;
    int length = snprintf(range.from, PLACE_KEY, "%s!%s", place->name, kind);
    memcpy(range.to, range.from, (size_t)length + 1);
    range.to[length - 1]++;
    return range;
}

static struct place_range place_line(const struct place *place) {
    return place_range(place, "line/");
}

/* Those that must not be there when we are granted it; for a slot, those that count. */
static struct place_range place_in_the_way(const struct place *place) {
    return place_range(place, place->mode == PLACE_SHARED ? "held/x." : "held/");
}

static struct place_range place_mark(const struct place *place) {
    return place_range(place, place->mode == PLACE_SLOT ? "slots" : "mark"); /* its `to` is not used */
}

/* Transactions are put together by these. */

static void place_if(struct etcd_txn *txn, const char *key, const char *range_end, enum etcd_target target,
                     int64_t revision) {
    txn->compares[txn->compare_count++] = (struct etcd_compare){
        .key = place_bytes(key), .range_end = place_bytes(range_end), .target = target, .revision = revision};
}

static void place_if_empty(struct etcd_txn *txn, const struct place_range *range) {
    place_if(txn, range->from, range->to, ETCD_CREATE_REVISION, 0);
}

static struct etcd_operation place_get(const char *key) {
    return (struct etcd_operation){.action = ETCD_RANGE, .key = place_bytes(key)};
}

static struct etcd_operation place_list(const struct place_range *range, enum etcd_order order, int64_t limit) {
    return (struct etcd_operation){.action = ETCD_RANGE,
                                   .key = place_bytes(range->from),
                                   .range_end = place_bytes(range->to),
                                   .order = order,
                                   .limit = limit};
}

static struct etcd_operation place_delete(const char *key) {
    return (struct etcd_operation){.action = ETCD_DELETE, .key = place_bytes(key)};
}

static struct etcd_operation place_put(const struct place *place, const char *key, bool leased) {
    return (struct etcd_operation){.action = ETCD_PUT,
                                   .key = place_bytes(key),
                                   .value = place_bytes(place->texts->text),
                                   .lease = leased ? place->record.lease : 0};
}

/* The mark is ours from now on. `text`: of us, or of the holder that died. */
static struct etcd_operation place_put_mark_at(struct place *place, const char *key, const char *text) {
    snprintf(place->texts->mark, sizeof place->texts->mark, "%llx.%u %s", (unsigned long long)place->record.lease,
             place->record.number, text);
    struct etcd_operation put = place_put(place, key, false);
    put.value = place_bytes(place->texts->mark);
    return put;
}

static void place_then(struct etcd_txn *txn, struct etcd_operation operation) {
    txn->then[txn->then_count++] = operation;
}

static void place_else(struct etcd_txn *txn, struct etcd_operation operation) {
    txn->otherwise[txn->otherwise_count++] = operation;
}

static void place_copy(char *text, size_t bytes, const struct etcd_pair *pair) {
    size_t length = pair->value.length < bytes ? pair->value.length : bytes - 1;
    if (length) memcpy(text, pair->value.data, length);
    text[length] = 0;
}

/* The text of a mark, without what it begins with. */
static void place_copy_dead(struct place *place, const struct etcd_pair *mark) {
    place_copy(place->texts->dead, sizeof place->texts->dead, mark);
    const char *space = strchr(place->texts->dead, ' ');
    if (space) memmove(place->texts->dead, space + 1, strlen(space));
}

static int64_t place_call_by(const struct place *place) {
    int64_t half_ns = place->ttl_s * SECOND_NS / 2;
    return etcd_now_ns(place->etcd) + (half_ns > CALL_NS ? half_ns : CALL_NS);
}

static void place_send(struct place *place, const struct etcd_txn *txn,
                       void (*done)(struct etcd_call *, const struct etcd_reply *)) {
    place->call.done = done;
    place->call.data = place;
    etcd_txn(place->etcd, &place->call, txn, place_call_by(place));
}

/* Failures. */

static void place_tell(struct place *place, enum place_news news, int status) {
    place->told(place, news, status);
}

static void place_retry_due(struct etcd_timer *timer) {
    place_go(timer->data);
}

static void place_pause(struct place *place) {
    int64_t pause_ns = RETRY_FIRST_NS << (place->failures < 5 ? place->failures : 5);
    if (pause_ns > RETRY_LAST_NS) pause_ns = RETRY_LAST_NS;
    pause_ns -=
        (int64_t)(etcd_random(place->etcd) % (uint64_t)(pause_ns / 2)); /* so that clients do not come at once */
    place->failures++;
    place->retry.due = place_retry_due;
    place->retry.data = place;
    etcd_timer(place->etcd, &place->retry, etcd_now_ns(place->etcd) + pause_ns);
}

static bool place_passes(int status) {
    return status == VIGIL_EUNREACHABLE || status == VIGIL_TIMED_OUT;
}

static void place_left(struct place *place, int status) {
    place_stop(place);
    place_tell(place, PLACE_LEFT, status);
}

/* A holder that must stop midway has not released it: the mark stays, for the next to be told. */
static void place_lose(struct place *place, int64_t left_ns) {
    if (place->goal == GOAL_HOLD && place->mode == PLACE_ALONE && !BUG(loss_unmarked)) {
        place->record.died = 1;
        place_save(place);
    }
    place_stop(place);
    place->left_ns = left_ns > 0 ? left_ns : 0;
    place_tell(place, PLACE_LOST, VIGIL_ELOST);
}

static int64_t place_ends_at(const struct place *place) {
    return place->record.renewed_ns + place->record.ttl_s * SECOND_NS;
}

/* VIGIL_TIMED_OUT would say that the lock is not free: a try whose call has no reply does not know that. */
static void place_fail(struct place *place, int status) {
    if (status == VIGIL_TIMED_OUT) status = VIGIL_EUNREACHABLE;
    if (place->goal == GOAL_LEAVE) {
        place_forget_lease(place);
        place_left(place, status);
    } else {
        place_stop(place);
        place_tell(place, PLACE_FAILED, status);
    }
}

/* What is held is lost by the lease alone; and what there is no memory for now may be left a little later. */
static bool place_must_go_on(const struct place *place, int status) {
    bool held = place->granted && !(BUG(holder_fails) && status == VIGIL_ENOMEM);
    return held || (place->goal == GOAL_LEAVE && status == VIGIL_ENOMEM);
}

/* What may pass is waited for; a try does not wait. */
static bool place_waits_out(const struct place *place, int status) {
    return place_passes(status) && (place->goal != GOAL_TRY || BUG(try_waits));
}

/* Whether the reply is one. If not, this sees to it that something else happens. */
static bool place_has_reply(struct place *place, const struct etcd_reply *reply) {
    if (reply->status == VIGIL_OK) {
        place->failures = 0;
        return true;
    }
    if (reply->maybe_done) place->unsure = true;
    if (reply->status == VIGIL_ENOTFOUND) { /* the lease has ended */
        place_forget_lease(place);
        place_go(place);
    } else if (place_waits_out(place, reply->status) || place_must_go_on(place, reply->status)) {
        place_pause(place);
    } else {
        place_fail(place, reply->status);
    }
    return false;
}

/* A call that changes keys is on its way: if we are killed, its outcome is not known. */
static void place_doubt(struct place *place) {
    place->record.doubt = !BUG(no_doubt);
    place_save(place);
}

static void place_no_doubt(struct place *place) {
    place->record.doubt = place->unsure;
}

/* The lease. */

static int64_t place_lost_at(const struct place *place) {
    return place->record.renewed_ns + place->record.ttl_s * SECOND_NS / 100 * 85;
}

static bool place_lease_is_fresh(const struct place *place, int64_t now_ns) {
    bool fresh = (now_ns < place_lost_at(place) && now_ns >= place->record.renewed_ns) || BUG(stale_grant);
    return place->record.lease && place->record.renewed_ns && fresh;
}

static void place_lease_gone(struct place *place) {
    bool held = place->granted;
    place_forget_lease(place);
    if (held) place_lose(place, 0);
    else place_go(place);
}

static bool place_tick(struct place *place);

static void place_renewed(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    bool gone = reply->status == VIGIL_ENOTFOUND || (reply->status == VIGIL_OK && reply->ttl_s <= 0);
    if (gone) {
        place_lease_gone(place);
        return;
    }
    if (reply->status == VIGIL_OK) {
        place->record.renewed_ns = BUG(deadline_from_reply) ? etcd_now_ns(place->etcd) : call->sent_ns;
        place->next_renewal_ns = call->sent_ns + place->record.ttl_s * SECOND_NS / 3;
        place_save(place);
    } else if (place_waits_out(place, reply->status) || reply->status == VIGIL_ENOMEM || place->granted) {
        place->next_renewal_ns = etcd_now_ns(place->etcd) + place->record.ttl_s * SECOND_NS / 20;
    } else {
        place_fail(place, reply->status);
        return;
    }
    if (place_tick(place)) place_go(place);
}

static void place_renew(struct place *place) {
    place->renewal.done = place_renewed;
    place->renewal.data = place;
    int64_t now_ns = etcd_now_ns(place->etcd), third_ns = place->record.ttl_s * SECOND_NS / 3;
    etcd_renew(place->etcd, &place->renewal, place->record.lease,
               now_ns + (third_ns > SECOND_NS ? third_ns : SECOND_NS));
}

static void place_clock_due(struct etcd_timer *timer) {
    place_tick(timer->data);
}

static void place_give_up_leaving(struct place *place) {
    place_forget_lease(place);
    place_left(place, VIGIL_EUNREACHABLE);
}

/* Renew the lease in time; and if that does not succeed, say so in time: returns false then, and the owner may have
 * freed the place. */
static bool place_tick_at(struct place *place, int64_t now_ns) {
    const struct place_record *record = &place->record;
    if (place->goal == GOAL_LEAVE && now_ns >= place->leave_by_ns) {
        place_give_up_leaving(place);
        return false;
    }
    if (place->goal == GOAL_NONE || place->goal == GOAL_LEAVE || !record->lease || !record->renewed_ns) return true;
    int64_t lost_at_ns = place_lost_at(place);
    if (place->granted && now_ns >= lost_at_ns) {
        place_lose(place, place_ends_at(place) - now_ns);
        return false;
    }
    int64_t renew_at_ns = record->renewed_ns + record->ttl_s * SECOND_NS / 3;
    if (renew_at_ns < place->next_renewal_ns) renew_at_ns = place->next_renewal_ns;
    if (!place->renewal.pending && now_ns >= renew_at_ns) place_renew(place);
    int64_t next_ns = place->renewal.pending ? ETCD_NEVER : renew_at_ns;
    if (place->granted && lost_at_ns < next_ns) next_ns = lost_at_ns;
    place->clock.due = place_clock_due;
    place->clock.data = place;
    etcd_timer(place->etcd, &place->clock, next_ns);
    return true;
}

static bool place_tick(struct place *place) {
    return place_tick_at(place, etcd_now_ns(place->etcd));
}

static void place_lease_granted(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (reply->status != VIGIL_OK) place_forget_lease(place); /* a lease without keys ends by itself */
    if (!place_has_reply(place, reply)) return;
    place->record.renewed_ns = call->sent_ns;
    place->record.ttl_s = (uint16_t)(reply->ttl_s < UINT16_MAX ? reply->ttl_s : UINT16_MAX);
    place->next_renewal_ns = 0;
    place_save(place);
    if (place_tick(place)) place_go(place);
}

static void place_ask_for_lease(struct place *place) {
    place_forget_lease(place);
    place->record.lease = (int64_t)(etcd_random(place->etcd) >> 1 | 1);
    place_save(place);
    place->call.done = place_lease_granted;
    place->call.data = place;
    etcd_grant(place->etcd, &place->call, place->record.lease, place->ttl_s, place_call_by(place));
}

/* A key of the lease may yet appear: so the lease must go, and we begin anew. If the key has been granted alone, it has
 * left a mark. */
static void place_unmarked(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (!place_has_reply(place, reply)) return;
    place->unmark = 0;
    place_go(place);
}

/* Only a mark of that key: this may be carried out late, and then the mark may be of a later grant. */
static void place_remove_own_mark(struct place *place) {
    struct etcd_txn txn = {0};
    struct place_range mark = place_range(place, "mark");
    char from[40], to[40];
    snprintf(from, sizeof from, "%llx.%u ", (unsigned long long)place->unmark, place->unmark_number);
    snprintf(to, sizeof to, "%llx.%u!", (unsigned long long)place->unmark, place->unmark_number); /* ! follows space */
    struct etcd_compare compare = {.key = place_bytes(mark.from), .target = ETCD_VALUE};
    compare.relation = ETCD_GREATER;
    compare.value = place_bytes(from);
    txn.compares[txn.compare_count++] = compare;
    compare.relation = ETCD_LESS;
    compare.value = place_bytes(to);
    txn.compares[txn.compare_count++] = compare;
    if (BUG(any_mark_removed)) txn.compare_count = 0;
    place_then(&txn, place_delete(mark.from));
    place_send(place, &txn, place_unmarked);
}

static void place_revoked(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (reply->status == VIGIL_ENOTFOUND) {
        place->failures = 0;
    } else if (!place_has_reply(place, reply)) {
        return;
    }
    if (place->record.doubt && place->mode == PLACE_ALONE && !place->record.died) {
        place->unmark = place->record.lease;
        place->unmark_number = place->record.number;
    }
    place_forget_lease(place);
    place_go(place);
}

/* It may be revoked late, when we have been killed: the next process of the machine must not use it. If there is doubt,
 * that one revokes it too. */
static void place_disown_lease(struct place *place) {
    struct place_record none = {.died = place->record.died};
    none.check = place_check_of(&none);
    if (place->saved && !place->record.doubt && !BUG(lease_left)) *place->saved = none;
}

static void place_revoke(struct place *place) {
    etcd_cancel(place->etcd, &place->renewal); /* its reply would save the lease again */
    place_disown_lease(place);
    place->call.done = place_revoked;
    place->call.data = place;
    etcd_revoke(place->etcd, &place->call, place->record.lease, place_call_by(place));
}

static void place_refresh_lease(struct place *place) {
    if (place->record.lease && place->record.renewed_ns) {
        if (!place->renewal.pending) place_renew(place); /* it comes back here by place_renewed */
    } else {
        place_ask_for_lease(place);
    }
}

/* In line. */

static void place_ahead_told(struct etcd_watch *watch, enum etcd_news news, const struct etcd_pair *pair,
                             int64_t revision) {
    struct place *place = watch->data;
    (void)pair;
    (void)revision;
    if (news == ETCD_WATCH_CREATED && BUG(watched_from_now)) return;
    if (news == ETCD_WATCH_LOST && BUG(watch_lost_unnoticed)) return;
    bool holders = !place->texts->ahead_key[0];
    /* The reply of a call that is pending may be older than this news. */
    if (news == ETCD_WATCH_DELETED && holders && place->mode != PLACE_SLOT &&
        (!place->call.pending || BUG(news_undone))) {
        place->admit = true;
        place->mark = 0; /* a release removes it. If it is there still, the transaction fails, and shows it */
    } else {
        place->look = true;
    }
    place_go(place);
}

/* Our own key is gone: deleted by hand, or with the lease. */
static void place_own_told(struct etcd_watch *watch, enum etcd_news news, const struct etcd_pair *pair,
                           int64_t revision) {
    struct place *place = watch->data;
    (void)pair;
    (void)revision;
    (void)news;
    place->look = true;
    place_go(place);
}

static void place_watch_own(struct place *place, const char *key) {
    if (place->own_watch.pending) return;
    place->own_watch.told = place_own_told;
    place->own_watch.data = place;
    etcd_watch(place->etcd, &place->own_watch, place_bytes(key), place_bytes(""), true);
}

static void place_unwatch(struct place *place) {
    etcd_unwatch(place->etcd, &place->ahead_watch);
    etcd_unwatch(place->etcd, &place->own_watch);
    if (place->texts) place->texts->ahead_key[0] = 0;
}

static void place_watch_before(struct place *place, const struct etcd_pair *before) {
    char key[PLACE_KEY];
    snprintf(key, sizeof key, "%.*s", (int)before->key.length, (const char *)before->key.data);
    if (place->ahead_watch.pending && strcmp(key, place->texts->ahead_key) == 0) return;
    etcd_unwatch(place->etcd, &place->ahead_watch);
    memcpy(place->texts->ahead_key, key, sizeof key);
    place->ahead_watch.told = place_ahead_told;
    place->ahead_watch.data = place;
    etcd_watch(place->etcd, &place->ahead_watch, place_bytes(place->texts->ahead_key), place_bytes(""), true);
}

static void place_watch_holders(struct place *place) {
    struct place_range held = place_in_the_way(place);
    if (place->ahead_watch.pending && !place->texts->ahead_key[0]) return;
    etcd_unwatch(place->etcd, &place->ahead_watch);
    place->texts->ahead_key[0] = 0;
    place->ahead_watch.told = place_ahead_told;
    place->ahead_watch.data = place;
    etcd_watch(place->etcd, &place->ahead_watch, place_bytes(held.from), place_bytes(held.to), true);
}

/* Of more than 9 digits, the first ones: there are never so many holders. */
static int64_t place_number_in(const struct etcd_pair *pair) {
    char text[10];
    int64_t number = 0;
    place_copy(text, sizeof text, pair);
    for (const char *digit = text; *digit >= '0' && *digit <= '9'; digit++) number = number * 10 + (*digit - '0');
    return number;
}

/* What stands before us: the next in line, else the holders. */
static void place_see(struct place *place, const struct etcd_pair *before, const struct etcd_result *held,
                      const struct etcd_result *mark) {
    const struct etcd_pair *said = mark->pair_count ? mark->pairs : NULL;
    bool slots = place->mode == PLACE_SLOT;
    place->mark = said ? said->mod_revision : 0;
    if (said && !slots) place_copy_dead(place, said);
    bool free = slots ? held->count < (said ? place_number_in(said) : 0) : held->count == 0;
    place->admit = (!before || BUG(line_jumped)) && free;
    if (place->goal != GOAL_HOLD) return;
    if (before) place_watch_before(place, before);
    else place_watch_holders(place);
    place_watch_own(place, place->texts->line_key);
}

enum { LOOK_OWN, LOOK_BEFORE, LOOK_HELD, LOOK_MARK, LOOK_OWN_HELD };

static void place_add_look(const struct place *place, struct etcd_operation *operations, unsigned *count,
                           const struct place_range *line, const struct place_range *held,
                           const struct place_range *mark) {
    operations[LOOK_OWN] = place_get(place->texts->line_key);
    operations[LOOK_BEFORE] = place_list(line, ETCD_NEWEST_FIRST, 1);
    operations[LOOK_BEFORE].created_before = place->record.created;
    operations[LOOK_HELD] = place_list(held, ETCD_OLDEST_FIRST, 1);
    operations[LOOK_MARK] = place_get(mark->from);
    operations[LOOK_OWN_HELD] = place_get(place->texts->held_key);
    *count = LOOK_OWN_HELD + 1;
}

static void place_use_look(struct place *place, const struct etcd_result *results) {
    const struct etcd_result *before = &results[LOOK_BEFORE], *held = &results[LOOK_OWN_HELD];
    if (results[LOOK_OWN].pair_count) {
        place_see(place, before->pair_count ? before->pairs : NULL, &results[LOOK_HELD], &results[LOOK_MARK]);
        return;
    }
    place_unwatch(place);
    /* We may have been admitted: by the process that had the place before, or without seeing the reply. */
    if (held->pair_count) place_be_at(place, PLACE_HELD, held->pairs->create_revision);
    else place_be_at(place, PLACE_NOWHERE, 0);
}

static void place_looked(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (reply->status != VIGIL_OK) place->look = true; /* before the owner is told, and may free the place */
    if (!place_has_reply(place, reply)) return;
    if (reply->result_count > LOOK_OWN_HELD) place_use_look(place, reply->results);
    place_go(place);
}

static void place_look_around(struct place *place) {
    struct etcd_txn txn = {0};
    struct place_range line = place_line(place), held = place_in_the_way(place), mark = place_mark(place);
    place_add_look(place, txn.then, &txn.then_count, &line, &held, &mark);
    place->look = false;
    place_send(place, &txn, place_looked);
}

/* Held. */

/* A transaction of that revision has proven that the key is there. */
static void place_prove(struct place *place, int64_t revision) {
    place->token = place->record.token = revision * PLACE_TOKENS;
    place_save(place);
}

/*
 * A proof at the revision r brings PLACE_TOKENS tokens: r * PLACE_TOKENS, and those above it for the processes of this
 * machine that follow, without a call. While the key is there no other machine is granted the lock. So grants before
 * have proofs of smaller revisions, and grants after it is gone have greater ones: whenever a token of the reserve is
 * given, it is greater than all given before the key was put, and smaller than all given after it is gone. That the key
 * is there still is known as of the proof, and from then on by the end of the lease: as for a holder that holds it for
 * long. The token is saved before it is given; so no other process gives it again. Hand-overs are counted since it was
 * seen that no other machine waits; so the last one that is allowed looks whether one does, if that is not known.
 */
static bool place_has_reserve(const struct place *place) {
    const struct place_record *record = &place->record;
    bool left = record->token && (record->token + 1) % PLACE_TOKENS != 0;
    bool looks = record->handovers >= VIGIL_REMOTE_HANDOVERS && !record->wanted_ns && !BUG(reserve_uncounted);
    return place->mode == PLACE_ALONE && left && !looks && !record->died;
}

static void place_take_reserve(struct place *place) {
    _Static_assert(VIGIL_REMOTE_HANDOVERS < PLACE_TOKENS, "each hand-over has its token");
    place->token = place->record.token + 1;
    if (!BUG(reserve_unsaved)) place->record.token = place->token;
    place->wanted = place->record.wanted_ns != 0;
    place->unnamed = true;
}

void place_spend_reserve(struct place_record *saved) {
    struct place_record record = place_load(saved);
    record.token = 0;
    record.check = place_check_of(&record);
    *saved = record;
}

static void place_hold(struct place *place, int64_t revision) {
    place_unwatch(place);
    place_no_doubt(place);
    place->look = place->admit = place->wanted = false;
    place->record.handovers = 0;
    place->record.wanted_ns = 0;
    place_be_at(place, PLACE_HELD, revision);
    place_prove(place, revision);
}

static void place_see_no_others(struct place *place) {
    place->wanted = false;
    place->record.wanted_ns = 0;
    place->record.handovers = 0;
    place_save(place);
}

static void place_see_others(struct place *place, bool others) {
    if (!others) place_see_no_others(place);
    if (!others || place->mode != PLACE_ALONE) return;
    bool news = !place->wanted;
    place->wanted = true;
    if (!place->record.wanted_ns) {
        place->record.wanted_ns = etcd_now_ns(place->etcd);
        place_save(place);
    }
    if (news && place->granted) place_tell(place, PLACE_WANTED, VIGIL_OK);
}

static void place_admitted(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (reply->status != VIGIL_OK) place->look = true; /* it may have been carried out */
    if (!place_has_reply(place, reply)) return;
    place_no_doubt(place);
    if (reply->succeeded) {
        const struct etcd_result *line = &reply->results[reply->result_count - 1];
        place_hold(place, reply->revision);
        place_see_others(place, line->pair_count != 0);
    } else if (reply->result_count > LOOK_OWN_HELD) {
        place_save(place);
        place_use_look(place, reply->results);
    }
    place_go(place);
}

static void place_ask_to_hold(struct place *place) {
    struct etcd_txn txn = {0};
    struct place_range line = place_line(place), held = place_in_the_way(place), mark = place_mark(place);
    place_if(&txn, place->texts->line_key, "", ETCD_CREATE_REVISION, place->record.created);
    if (!BUG(mark_not_compared)) place_if(&txn, mark.from, "", ETCD_MOD_REVISION, place->mark);
    if (place->mode != PLACE_SLOT) place_if_empty(&txn, &held); /* the head alone counts slots, and adds to them */
    place_then(&txn, place_put(place, place->texts->held_key, true));
    place_then(&txn, place_delete(place->texts->line_key));
    if (place->mode == PLACE_ALONE)
        place_then(&txn, place_put_mark_at(place, mark.from, place->mark ? place->texts->dead : place->texts->text));
    place_then(&txn, place_list(&line, ETCD_OLDEST_FIRST, 1));
    place_add_look(place, txn.otherwise, &txn.otherwise_count, &line, &held, &mark);
    place->admit = false;
    place->record.died = place->mode != PLACE_SLOT && place->mark != 0;
    place_doubt(place);
    place_send(place, &txn, place_admitted);
}

enum { JOINED_PUT, JOINED_LINE, JOINED_HELD, JOINED_MARK };

static void place_use_joined(struct place *place, const struct etcd_reply *reply) {
    const struct etcd_result *line = &reply->results[JOINED_LINE], *held = &reply->results[JOINED_HELD];
    place_no_doubt(place);
    place_be_at(place, PLACE_IN_LINE, reply->revision);
    place_see(place, line->pair_count > 1 ? &line->pairs[1] : NULL, held, &reply->results[JOINED_MARK]);
}

static void place_joined(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (!place_has_reply(place, reply)) return;
    if (reply->succeeded && place->mode != PLACE_SLOT) place_hold(place, reply->revision);
    else if (reply->result_count > JOINED_MARK) place_use_joined(place, reply);
    place_go(place);
}

static void place_join(struct place *place) {
    struct etcd_txn txn = {0};
    struct place_range line = place_line(place), held = place_in_the_way(place), mark = place_mark(place);
    place->record.number++;
    place->record.died = 0;
    place->admit = place->look = false;
    place->token = 0;
    if (!BUG(watches_kept)) place_unwatch(place); /* what was watched was about another key */
    place_name_keys(place);
    if (place->mode != PLACE_SLOT) {
        place_if_empty(&txn, &line);
        place_if_empty(&txn, &held);
        place_if(&txn, mark.from, "", ETCD_CREATE_REVISION, 0);
        place_then(&txn, place_put(place, place->texts->held_key, true));
        if (place->mode == PLACE_ALONE) place_then(&txn, place_put_mark_at(place, mark.from, place->texts->text));
    } else {
        place_if(&txn, mark.from, "", ETCD_CREATE_REVISION, -1); /* never: a slot is always waited for in line */
    }
    place_else(&txn, place_put(place, place->texts->line_key, true));
    place_else(&txn, place_list(&line, ETCD_NEWEST_FIRST, 2));
    place_else(&txn, place_list(&held, ETCD_OLDEST_FIRST, 1));
    place_else(&txn, place_get(mark.from));
    place_doubt(place);
    place_send(place, &txn, place_joined);
}

/* The machine holds it: a new token for this holder, and the proof that it still does. */

enum { CONFIRMED_PUT, CONFIRMED_MARK, CONFIRMED_LINE };

static void place_confirmed(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (!place_has_reply(place, reply)) return;
    if (reply->succeeded) {
        const struct etcd_result *mark = &reply->results[CONFIRMED_MARK];
        place_prove(place, reply->revision);
        if (mark->pair_count) place_copy_dead(place, mark->pairs);
        if (reply->result_count > CONFIRMED_LINE)
            place_see_others(place, reply->results[CONFIRMED_LINE].pair_count != 0);
    } else {
        place_be_at(place, PLACE_NOWHERE, 0);
    }
    place_go(place);
}

static void place_confirm(struct place *place) {
    struct etcd_txn txn = {0};
    struct place_range line = place_line(place), mark = place_range(place, "mark");
    place_if(&txn, place->texts->held_key, "", ETCD_CREATE_REVISION, place->record.created);
    place_then(&txn, place_put(place, place->texts->held_key, true));
    bool marks = place->mode == PLACE_ALONE && (!place->record.died || place->dead_known);
    const char *text = place->record.died ? place->texts->dead : place->texts->text;
    place_then(&txn, marks ? place_put_mark_at(place, mark.from, text) : place_get(mark.from));
    place_then(&txn, place_list(&line, ETCD_OLDEST_FIRST, 1));
    place_send(place, &txn, place_confirmed);
}

/* While it is held: whether the key is still there, and whether others wait. */

static void place_guarded(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (reply->status != VIGIL_OK) place->look = true;
    if (!place_has_reply(place, reply)) return;
    const struct etcd_result *own = &reply->results[0], *line = &reply->results[1];
    if (!own->pair_count || own->pairs->create_revision != place->record.created) {
        bool held = place->granted;
        place_be_at(place, PLACE_NOWHERE, 0);
        if (held) place_lose(place, 0);
        else place_go(place);
        return;
    }
    place->unnamed = false;
    /* If it was handed over since the call was made, that hand-over counts: others may have come before it. */
    if (place->granted || line->pair_count || BUG(late_look_used)) place_see_others(place, line->pair_count != 0);
    place_go(place);
}

static void place_line_told(struct etcd_watch *watch, enum etcd_news news, const struct etcd_pair *pair,
                            int64_t revision) {
    struct place *place = watch->data;
    (void)pair;
    (void)revision;
    if (news == ETCD_WATCH_PUT) {
        place_see_others(place, true);
        return;
    }
    place->look = true;
    place_go(place);
}

/* The keys say from now on that we hold it. Else the results are the same. */
static void place_add_name(struct place *place, struct etcd_txn *txn, const struct place_range *mark) {
    place_if(txn, place->texts->held_key, "", ETCD_CREATE_REVISION, place->record.created);
    memcpy(txn->otherwise, txn->then, txn->then_count * sizeof *txn->then);
    txn->otherwise_count = txn->then_count;
    place_then(txn, place_put(place, place->texts->held_key, true));
    if (!place->record.died) place_then(txn, place_put_mark_at(place, mark->from, place->texts->text));
}

static void place_guard(struct place *place) {
    struct etcd_txn txn = {0};
    struct place_range line = place_line(place), mark = place_mark(place);
    place_watch_own(place, place->texts->held_key);
    if (place->mode == PLACE_ALONE && !place->ahead_watch.pending) {
        place->ahead_watch.told = place_line_told;
        place->ahead_watch.data = place;
        etcd_watch(place->etcd, &place->ahead_watch, place_bytes(line.from), place_bytes(line.to), false);
    }
    place->look = false;
    place_then(&txn, place_get(place->texts->held_key));
    place_then(&txn, place_list(&line, ETCD_OLDEST_FIRST, 1));
    if (place->unnamed) place_add_name(place, &txn, &mark);
    place_send(place, &txn, place_guarded);
}

static void place_marked(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (reply->status != VIGIL_OK) place->remark = place->look = true;
    if (!place_has_reply(place, reply)) return;
    place_go(place);
}

/* The mark says from now on that we hold it, and no longer that another died. */
static void place_put_mark(struct place *place) {
    struct etcd_txn txn = {0};
    struct place_range mark = place_range(place, "mark");
    place->remark = false;
    place_if(&txn, place->texts->held_key, "", ETCD_CREATE_REVISION, place->record.created);
    place_then(&txn, place_put_mark_at(place, mark.from, place->texts->text));
    place_send(place, &txn, place_marked);
}

void place_consistent(struct place *place) {
    place->record.died = 0;
    place_save(place);
    place->remark = true;
    place_go(place);
}

static void place_guard_due(struct etcd_timer *timer) {
    struct place *place = timer->data;
    if (place->own_watch.pending && !place->unnamed) return;
    place->look = true;
    place_go(place);
}

/* The lease is fresh by that reading of the clock. A later one may say that it is lost, if this process is stopped in
 * between: the owner must be told of the grant before. */
static void place_grant(struct place *place, int64_t now_ns) {
    place->granted = true;
    place->goal = GOAL_HOLD;
    place->record.use = PLACE_BUSY;
    place_save(place);
    if (!BUG(failures_kept)) place->failures = 0; /* from now on `retry` is not a pause after one */
    place->retry.due = place_guard_due;
    place->retry.data = place;
    if (!place->own_watch.pending || place->unnamed)
        etcd_timer(place->etcd, &place->retry, etcd_now_ns(place->etcd) + WATCH_AFTER_NS);
    int status = place->record.died ? VIGIL_OWNER_DIED : VIGIL_OK;
    if (place_tick_at(place, now_ns)) place_tell(place, PLACE_GRANTED, status);
}

/* Leaving. */

static void place_deleted(struct etcd_call *call, const struct etcd_reply *reply) {
    struct place *place = call->data;
    if (!place_has_reply(place, reply)) return;
    place_be_at(place, PLACE_NOWHERE, 0);
    place_go(place);
}

static void place_delete_key(struct place *place) {
    struct etcd_txn txn = {0};
    struct place_range mark = place_range(place, "mark");
    const char *key = place->record.at == PLACE_HELD ? place->texts->held_key : place->texts->line_key;
    if (!BUG(release_compares_nothing)) place_if(&txn, key, "", ETCD_CREATE_REVISION, place->record.created);
    place_then(&txn, place_delete(key));
    bool marked = place->record.at == PLACE_HELD && place->mode == PLACE_ALONE &&
                  (!place->record.died || BUG(mark_deleted_unrepaired));
    if (marked) place_then(&txn, place_delete(mark.from));
    else if (place->dead_known) place_then(&txn, place_put_mark_at(place, mark.from, place->texts->dead));
    if (!BUG(deletion_not_saved)) place->record.use = PLACE_GOING;
    place_save(place);
    place_send(place, &txn, place_deleted);
}

static void place_go_away(struct place *place) {
    const struct place_record *record = &place->record;
    if (etcd_now_ns(place->etcd) >= place->leave_by_ns) {
        place_give_up_leaving(place);
    } else if (record->lease && record->at != PLACE_NOWHERE) {
        place_delete_key(place);
    } else if (record->lease && ((record->doubt && !BUG(doubt_left)) || place->drops_lease)) {
        place_revoke(place);
    } else if (place->unmark) {
        place_remove_own_mark(place);
    } else {
        place_left(place, VIGIL_OK);
    }
}

static void place_begin_leaving(struct place *place, bool drops_lease) {
    place->goal = GOAL_LEAVE;
    place->granted = place->remark = place->look = place->admit = false;
    place->drops_lease = drops_lease;
    place->failures = 0;
    place->leave_by_ns = etcd_now_ns(place->etcd) + LEAVE_NS;
    place_unwatch(place);
    etcd_timer(place->etcd, &place->retry, ETCD_NEVER);
    place->clock.due = place_clock_due;
    place->clock.data = place;
    etcd_timer(place->etcd, &place->clock, place->leave_by_ns);
    place_go(place);
}

static void place_go_on(struct place *place) {
    struct place_record *record = &place->record;
    int64_t now_ns = etcd_now_ns(place->etcd);
    if (place->unmark) place_remove_own_mark(place);
    else if (record->lease && record->doubt && record->at == PLACE_NOWHERE && !BUG(doubt_left)) place_revoke(place);
    else if (record->at != PLACE_NOWHERE && record->use == PLACE_GOING) place_delete_key(place);
    else if (!place_lease_is_fresh(place, now_ns) && !(BUG(reserve_outlives_lease) && place_has_reserve(place)))
        place_refresh_lease(place);
    else if (record->at == PLACE_NOWHERE) place_join(place);
    else if (record->at == PLACE_IN_LINE && place->look) place_look_around(place);
    else if (record->at == PLACE_IN_LINE && place->admit) place_ask_to_hold(place);
    else if (record->at == PLACE_HELD && !place->token && !place_has_reserve(place)) place_confirm(place);
    else if (record->at == PLACE_HELD) {
        if (!place->token) place_take_reserve(place);
        place_grant(place, BUG(clock_read_twice) ? etcd_now_ns(place->etcd) : now_ns);
    } else if (place->goal == GOAL_TRY) {
        place_stop(place);
        place_tell(place, PLACE_NOT_FREE, VIGIL_TIMED_OUT);
    }
}

static void place_go(struct place *place) {
    if (place->call.pending || (place->failures && place->retry.pending)) return;
    switch (place->goal) {
    case GOAL_NONE: break;
    case GOAL_HOLD:
    case GOAL_TRY:
    case GOAL_KEEP:
        if (!place->granted) place_go_on(place);
        else if (place->remark) place_put_mark(place);
        else if (place->look) place_guard(place);
        break;
    case GOAL_LEAVE: place_go_away(place); break;
    }
}

/* For the owner. */

bool place_prepare(struct place *place) {
    if (!place->texts) place->texts = calloc(1, sizeof *place->texts);
    return place->texts;
}

void place_free(struct place *place) {
    place_stop(place);
    free(place->texts);
}

static bool place_is_same_key(const struct place_record *one, const struct place_record *other) {
    return one->lease == other->lease && one->number == other->number && one->created == other->created;
}

/* What is known of the lease may be newer here than in the record that others have saved. */
static void place_adopt(struct place *place, struct place_record *saved, bool died) {
    struct place_record found = saved ? place_load(saved) : place->record;
    if (found.lease == place->record.lease && found.renewed_ns < place->record.renewed_ns)
        found.renewed_ns = place->record.renewed_ns;
    place->record = found;
    place->saved = saved;
    place->unsure = found.doubt;
    place->dead_known = died && found.at == PLACE_HELD && found.use == PLACE_BUSY && !BUG(death_forgotten);
    if (place->dead_known) place->record.died = 1;
    if (found.use == PLACE_BUSY) place->record.use = PLACE_UNUSED;
    place_name_keys(place);
    place_save(place);
}

/* What a call brings comes later anyway. */
static void place_begin(struct place *place, bool later) {
    bool at_once = place->record.at == PLACE_HELD && place_has_reserve(place);
    if (!later || !at_once) {
        place_go(place);
        return;
    }
    place->retry.due = place_retry_due;
    place->retry.data = place;
    etcd_timer(place->etcd, &place->retry, etcd_now_ns(place->etcd));
}

void place_take(struct place *place, struct place_record *saved, bool died, bool only_try, bool later) {
    struct place_record found = saved ? place_load(saved) : place->record;
    if (place->goal == GOAL_KEEP && !place_is_same_key(&found, &place->record)) place_stop(place);
    place_adopt(place, saved, died);
    place->goal = only_try ? GOAL_TRY : GOAL_HOLD;
    place->granted = place->wanted = place->unnamed = false;
    place->look = place->record.at == PLACE_IN_LINE;
    place->token = 0;
    if (place_tick(place)) place_begin(place, later);
}

void place_keep(struct place *place) {
    place->unnamed = false;
    place->record.use = PLACE_UNUSED;
    place_save(place);
    place->saved = NULL;
    place->goal = GOAL_KEEP;
}

void place_leave(struct place *place, struct place_record *saved, bool drops_lease) {
    struct place_record found = saved ? place_load(saved) : place->record;
    if (!place_is_same_key(&found, &place->record)) {
        place_left(place, VIGIL_OK);
        return;
    }
    if (place->goal != GOAL_HOLD) place_adopt(place, saved, false);
    place_begin_leaving(place, drops_lease);
}

void place_inherit(struct place *place, struct place_record *saved, bool died) {
    place_stop(place);
    place_adopt(place, saved, died);
}

void place_stop(struct place *place) {
    place->goal = GOAL_NONE;
    place->granted = place->look = place->admit = place->remark = place->wanted = false;
    place->unmark = 0;
    place->saved = NULL;
    place->failures = 0;
    etcd_cancel(place->etcd, &place->call);
    etcd_cancel(place->etcd, &place->renewal);
    place_unwatch(place);
    etcd_timer(place->etcd, &place->retry, ETCD_NEVER);
    etcd_timer(place->etcd, &place->clock, ETCD_NEVER);
}
