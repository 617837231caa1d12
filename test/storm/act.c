/* SPDX-License-Identifier: MIT */
/* act.c - the steps at which something can be checked: tokens that change hands, being inside a mutex, signals. */
#include "ledger.h"

#include <sched.h>

struct ledger *ledger;
struct arena *arena;

void take_token(struct actor *actor) {
    count(actor, ENDED_OK, 1);
    set_hand(actor, tokens_of(actor->hand) + 1, 0);
}

/* Offers that many of the actor's tokens. */
void offer_tokens(struct actor *actor, unsigned line, uint32_t offered) {
    uint32_t tokens = tokens_of(actor->hand);
    set_hand(actor, tokens - offered, offered);
    now_does(actor, NOTIFYING, line);
    int64_t taken = vigil_notify(&arena->lines[line].word, offered);
    DEMAND(taken >= 0 && taken <= offered, "notify returned %" PRId64 " of %u", taken, offered);
    set_hand(actor, tokens - (uint32_t)taken, 0);
    count(actor, NOTIFIED, (uint64_t)taken);
    done(actor);
}

void shout(struct actor *actor) {
    now_does(actor, NOTIFYING, SHOUTS);
    int64_t heard = vigil_notify(&arena->lines[SHOUTS].word, VIGIL_ALL);
    DEMAND(heard >= 0, "notify returned %" PRId64, heard);
    count(actor, SHOUTED, (uint64_t)heard);
    done(actor);
}

/* Names: the actor's page, and the life of the member. Never zero. */

static uint64_t name_of(const struct actor *actor) {
    uint64_t index = (uint64_t)((const char *)actor - (const char *)ledger->members) / sizeof(struct member);
    const struct member *member = &ledger->members[index];
    return NOW(member->life) / 2 << 32 | index << 16 | (uint64_t)(actor - member->actors) | 1u << 15;
}

static bool has_been_killed(uint64_t name) {
    const struct member *member = &ledger->members[name >> 16 & 0xffff];
    return NOW(member->life) != (name >> 32) * 2;
}

static void judge_ok(const struct payload *payload, unsigned mutex, uint64_t found) {
    DEMAND(found == 0, "mutex %u: granted although %" PRIx64 " is inside%s", mutex, found,
           has_been_killed(found) ? ", which has been killed, and this was not reported" : "");
    DEMAND(payload->first == payload->second, "mutex %u: granted with %" PRIu64 " and %" PRIu64, mutex, payload->first,
           payload->second);
    DEMAND(!payload->broken, "mutex %u: the one before had not said that it is consistent", mutex);
}

/*
 * Only `full` decides whether the queue is full. A producer stores the item's number, `full` and `last_put`, in this
 * order; a consumer `full` and `last_got`. If the producer or consumer was killed before it stored `full`, nothing has
 * happened; if after that, the rest is done here in its place.
 */
static void repair_queue(void) {
    if (arena->queue.full) {
        PUT(arena->queue.last_put, arena->queue.item);
        PUT(arena->queue.last_got, arena->queue.item - 1);
    } else {
        PUT(arena->queue.last_got, arena->queue.last_put);
    }
}

/*
 * Repairs what the dead owner has left behind, and marks the mutex consistent; or, except in the queue's storm,
 * sometimes leaves that to the next holder.
 */
static void repair(struct actor *actor, struct payload *payload, unsigned mutex, uint64_t found, uint64_t *seed) {
    DEMAND(found == 0 || has_been_killed(found), "mutex %u: taken from %" PRIx64 ", which is alive", mutex, found);
    count(actor, DIED_GRANTS, 1);
    if (!found) count(actor, NOBODY_INSIDE, 1);
    if (!payload->broken) PUT(actor->fresh_deaths[mutex], actor->fresh_deaths[mutex] + 1);
    payload->second = payload->first;
    if (mutex == WITH_COND) repair_queue();
    payload->broken = !ledger->is_queue && one_in(seed, 8);
    if (payload->broken) {
        count(actor, LEFT_BROKEN, 1);
        return;
    }
    int status = vigil_mutex_consistent(&arena->locks[mutex].mutex);
    DEMAND(status == VIGIL_OK, "mutex %u: consistent returned %s", mutex, vigil_status_name(status));
}

void dawdle(uint64_t *seed) {
    if (one_in(seed, 200)) usleep((useconds_t)random_below(seed, 2000));
    else if (one_in(seed, 10)) sched_yield();
    for (volatile uint64_t spins = random_below(seed, 500); spins; spins--) continue;
}

/* With the mutex held: enters the actor's name, checks what is there, and does some work. */
void go_inside(struct actor *actor, unsigned mutex, int status, uint64_t *seed) {
    struct payload *payload = &ledger->payload[mutex];
    uint64_t found = 0;
    bool free = __atomic_compare_exchange_n(&payload->inside, &found, name_of(actor), false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST);
    now_does(actor, HOLDING, mutex);
    if (status == VIGIL_OWNER_DIED) {
        if (!free) PUT(payload->inside, name_of(actor));
        repair(actor, payload, mutex, found, seed);
    } else {
        DEMAND(status == VIGIL_OK, "mutex %u: granted with %s", mutex, vigil_status_name(status));
        judge_ok(payload, mutex, found);
        if (one_in(seed, 50)) {
            status = vigil_mutex_consistent(&arena->locks[mutex].mutex);
            DEMAND(status == VIGIL_EINVAL, "no owner has died: consistent returned %s", vigil_status_name(status));
        }
    }
    PUT(payload->first, payload->first + 1);
    dawdle(seed);
    PUT(payload->second, payload->second + 1);
    PUT(actor->grants[mutex], actor->grants[mutex] + 1);
    count(actor, GRANTS, 1);
}

/* Removes the actor's name from the payload of the mutex. The mutex is still held, and is released next. */
void go_outside(struct actor *actor, unsigned mutex) {
    struct payload *payload = &ledger->payload[mutex];
    DEMAND(payload->inside == name_of(actor), "mutex %u: %" PRIx64 " came inside as well", mutex, payload->inside);
    PUT(payload->inside, 0);
    now_does(actor, UNLOCKING, mutex);
}

void release(struct actor *actor, unsigned mutex) {
    go_outside(actor, mutex);
    int status = vigil_mutex_unlock(&arena->locks[mutex].mutex);
    DEMAND(status == VIGIL_OK, "unlock returned %s", vigil_status_name(status));
    done(actor);
}

/*
 * With that mutex held, or with NO_MUTEX. Returns how many waits it ended: at most one for a signal, any number for a
 * broadcast.
 */

int64_t give_signal(struct actor *actor, unsigned mutex, unsigned cond) {
    now_does(actor, SIGNALLING, at(mutex, cond));
    int64_t taken = vigil_cond_signal(&arena->conds[cond].cond);
    DEMAND(taken == 0 || taken == 1, "signal returned %" PRId64, taken);
    count(actor, (enum tally)(SIGNALLED + cond), (uint64_t)taken);
    if (mutex == NO_MUTEX) done(actor);
    return taken;
}

void give_to_all(struct actor *actor, unsigned mutex, unsigned cond) {
    now_does(actor, BROADCASTING, at(mutex, cond));
    int64_t taken = vigil_cond_broadcast(&arena->conds[cond].cond);
    DEMAND(taken >= 0, "broadcast returned %" PRId64, taken);
    count(actor, (enum tally)(SIGNALLED + cond), (uint64_t)taken);
    if (mutex == NO_MUTEX) done(actor);
}
