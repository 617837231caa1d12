/* SPDX-License-Identifier: MIT */
/*
 * The mutex. vigil/mutex.h says what its word can be, lock.h who waits and why nobody does so in vain.
 *
 * WHO MAY CHANGE THE WORD
 *
 *     a newcomer        0 -> 1         takes it
 *                       0 -> 3         reserves it, and waits: he who is coming has been passed by often (coming())
 *     who was called    0 -> 2         takes it. There may be others behind him, whom nobody else would call
 *                       3 -> 2         the same
 *     who must wait     1 -> 2         so that its release will be noticed. Joins the line only while it is 2 or 3
 *     who declines      3 -> 2         becomes the holder, for as long as it takes to release it to the next
 *     the holder        1 -> 0         releases it; nobody has asked for more
 *                       2 -> 0, 3      releases it, under the lock of its bucket, and calls those in line
 *                       2 -> 0         without the lock, calling nobody, while one who has been called is coming
 *
 * Joining compares the word under the lock of the bucket, and a 2 is changed only under that: so who joins does so
 * before the holder looks at the line, and is seen. A 3 is changed without it, but who joins on a 3 is its guard; and
 * so is a 2 while somebody is coming, but then that one is responsible for those in line.
 *
 * What the holder did is seen by the next: each store that releases pairs with the acquiring CAS that takes the lock,
 * also across the 0 -> 3 in between, which is an exchange and so continues what the release began.
 */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* this is where they are */
#endif
#include "vigil/mutex.h"

#include "check.h"
#include "mutex.h"

#define UNLOCKED  0u
#define LOCKED    1u
#define CONTENDED 2u
#define RESERVED  3u
#define STATE     3u
#define FAIR      4u
#define TURN      8u /* a fair one counts its reservations */
#define TURNS     0xfff8u
#define PASSED    8u /* of one that is not: see coming() */
#define PASSES    0xfff8u
#define UNCOUNTED PASSES
#define COMING    0xfffffff8u

#define BROADCAST_AT_ONCE 3

#define FAIR_PATIENCE_NS UINT64_C(1000000000)

bool mutex_is_fair(uint32_t seen) {
    return seen & FAIR;
}

/*
 * While a thread that has been called is on its way, there is no need to call another: it will take the mutex, and call
 * the next, or say that it is contended. So the word says that somebody is coming, and who comes first clears it. A
 * fork's child has none of its parent's threads: therefore it says in which generation, above the 16th bit.
 *
 * It may be long in coming if those who have the mutex, one after the other, have the processors as well. So below that
 * the word counts how often newcomers have passed it by, from one on; and when that has been often enough the next one
 * leaves the mutex reserved and waits in line. Not if it was called beside somebody else, who may never come: then what
 * is reserved would not be for it, and nothing is counted.
 */
static uint32_t coming(bool beside) {
    return lot_private()->generation << 16 | (beside ? UNCOUNTED : PASSED);
}

static bool is_coming(uint32_t seen) {
    return !mutex_is_fair(seen) && (seen & PASSES) && seen >> 16 == coming(false) >> 16;
}

static bool passed_often(uint32_t seen) {
    if (mutex_is_fair(seen) || (seen & PASSES) == UNCOUNTED || BUG(passed_for_ever)) return false;
    return (seen & PASSES) >= PRIM_PASSES * PASSED;
}

/* What the word is to be when a newcomer has taken it. */
static uint32_t barged(uint32_t seen) {
    uint32_t passes = mutex_is_fair(seen) ? 0 : seen & PASSES;
    return (seen | LOCKED) + (passes && passes != UNCOUNTED ? PASSED : 0);
}

/* Who comes does not go back at once if somebody has it: a short critical section may be over soon. */
static uint32_t wait_for_a_chance(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    for (unsigned turns = PRIM_SPIN_LOCK; turns && ((seen & STATE) == LOCKED || (seen & STATE) == CONTENDED); turns--) {
        prim_pause();
        seen = prim_load_relaxed(word);
    }
    return seen;
}

bool mutex_take(uint32_t *word, uint32_t argument, enum standing standing, uint32_t *result) {
    (void)argument;
    bool may_barge = standing == NEWCOMER;
    bool may_take_reserved = standing == CALLED;
    uint32_t seen = may_barge ? prim_load_relaxed(word) : wait_for_a_chance(word);
    for (;;) {
        uint32_t flags = seen & ~STATE, state = seen & STATE;
        if (!may_barge && !mutex_is_fair(seen)) flags &= ~COMING; /* here we are */
        *result = flags | CONTENDED;
        if (state == UNLOCKED && may_barge && passed_often(seen)) {
            *result = RESERVED;
            if (prim_cas_acquire(word, &seen, *result)) return false;
        } else if (state == UNLOCKED) {
            uint32_t taken = may_barge ? barged(seen) : BUG(taken_as_alone) ? flags | LOCKED : *result;
            if (prim_cas_acquire(word, &seen, taken)) return true;
        } else if (state == RESERVED && may_take_reserved) {
            if (BUG(taken_without_asking)) {
                prim_store_relaxed(word, *result);
                return true;
            }
            if (prim_cas_acquire(word, &seen, *result)) return true;
        } else if (state != RESERVED && seen != *result && !(BUG(not_contended) && standing == CALLED)) {
            if (prim_cas_acquire(word, &seen, *result)) return false;
        } else {
            *result = seen;
            return false;
        }
    }
}

bool mutex_reserved(uint32_t seen) {
    return (seen & STATE) == RESERVED;
}

uint64_t mutex_patience_ns(uint32_t seen) {
    if (mutex_is_fair(seen)) return FAIR_PATIENCE_NS;
    return mutex_reserved(seen) ? PATIENCE_NS : PRIM_NEVER;
}

void mutex_decline(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    if (mutex_reserved(seen) && prim_cas_acquire(word, &seen, (seen & ~STATE) | CONTENDED))
        vigil_mutex_unlock_slowly((vigil_mutex *)(void *)word);
}

/* Blocking. */

static void granted_to_execute(vigil_request *request) {
    vigil_mutex *mutex = request->object;
    request->callback(&request->op, VIGIL_OK); /* after which the request may be gone */
    vigil_mutex_unlock(mutex);
}

static const struct lock_kind locking = {MUTEX_KIND, .granted = lock_granted};
static const struct lock_kind executing = {MUTEX_KIND, .granted = granted_to_execute};

/* For as long as a short critical section takes, if nobody else waits. */
static bool spin_to_take(uint32_t *word) {
    for (unsigned turns = PRIM_SPIN_LOCK; turns; turns--) {
        uint32_t seen = prim_load_relaxed(word);
        if (seen == UNLOCKED && prim_cas_acquire(word, &seen, LOCKED)) return true;
        if (seen != UNLOCKED && seen != LOCKED) return false; /* others wait, or it is fair: to the line */
        prim_pause();
    }
    return false;
}

static bool try_once(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    while ((seen & STATE) == UNLOCKED && !passed_often(seen)) {
        if (prim_cas_acquire(word, &seen, barged(seen))) return true;
    }
    return false;
}

int vigil_mutex_lock_slowly(vigil_mutex *mutex, int64_t timeout_ns) {
    int error = check_address(mutex, sizeof mutex->word);
    if (error) return error;
    if (try_once(&mutex->word)) return lock_taken(&mutex->word);
    if (timeout_ns <= 0) return VIGIL_TIMED_OUT;
    if (prim_self()->may_not_block) return VIGIL_EMAYNOTBLOCK;
    uint64_t deadline_ns = timeout_ns == VIGIL_FOREVER ? PRIM_NEVER : deadline_after(prim_now_ns(), timeout_ns);
    if (spin_to_take(&mutex->word)) return lock_taken(&mutex->word);
    return lock_block(&locking, &mutex->word, 0, deadline_ns);
}

/* Releasing. */

static void begin_release(struct mutex_release *release, const struct slot *head) {
    uint32_t seen = prim_load_relaxed(release->word);
    release->held = (seen & STATE) == CONTENDED; /* if not, somebody else has unlocked it, too */
    release->reserve = head && (mutex_is_fair(seen) || lock_may_reserve(head));
    release->begun = true;
    release->flags = mutex_is_fair(seen) ? FAIR | ((seen + TURN) & TURNS) : 0;
}

static void set_free(const struct mutex_release *release) {
    if (!release->held || release->free_already) return;
    PROBE(lock_released, release->word);
    if (release->reserve) PROBE(lock_reserved, release->word);
    uint32_t state = release->reserve ? RESERVED : release->threads ? UNLOCKED | coming(release->loop_first) : UNLOCKED;
    if (BUG(unlock_unordered)) prim_store_relaxed(release->word, release->flags | state);
    else prim_store_release(release->word, release->flags | state);
}

static uint32_t told(const struct slot *slot, struct mutex_release *release) {
    uint32_t call = release->called++ || release->free_already ? SLOT_BESIDE : SLOT_CALLED;
    if (slot->began_ns) return call;
    release->reserve = false; /* a plain wait, of somebody who does not know what reserved means */
    return VIGIL_OK;
}

/*
 * See lock.h: everybody up to and including the first thread that knows the rules; if it is fair, the first. Of those
 * that a condition has moved here, which want the mutex for a moment each, more than one: while one has it the next are
 * waking up.
 */
uint32_t mutex_call(const struct slot *slot, void *context) {
    struct mutex_release *release = context;
    if (!release->begun) {
        begin_release(release, slot);
        release->loop_first = slot && (slot->seat || !slot->began_ns);
    }
    if (!slot || !release->held || release->enough_called) {
        set_free(release);
        return LOT_STAY;
    }
    bool sure_to_come = !slot->seat && slot->began_ns, one_of_many = slot->argument && !release->reserve;
    release->threads += sure_to_come;
    release->enough_called = sure_to_come && (!one_of_many || release->threads == BROADCAST_AT_ONCE);
    if (mutex_is_fair(release->flags) || BUG(loop_relied_upon)) release->enough_called = true;
    return told(slot, release);
}

bool mutex_must_call(uint32_t *word, struct mutex_release *release) {
    uint32_t seen = prim_load_relaxed(word);
    *release = (struct mutex_release){.word = word};
    for (;;) {
        uint32_t contended = (seen & ~STATE) | CONTENDED;
        if (seen == contended) return false;
        if (mutex_reserved(seen)) {
            release->begun = release->held = release->free_already = true;
            return !mutex_is_fair(seen);
        }
        bool locked = (seen & STATE) == LOCKED;
        if (prim_cas_acquire(word, &seen, contended)) return !locked; /* ours, if it was free: to be released */
    }
}

int vigil_mutex_unlock_slowly(vigil_mutex *mutex) {
    int error = check_address(mutex, sizeof mutex->word);
    if (error) return error;
    uint32_t *word = &mutex->word, seen = prim_load_relaxed(word);
    tsan_release(word);
    while ((seen & STATE) == LOCKED || ((seen & STATE) == CONTENDED && is_coming(seen))) {
        if (prim_cas_release(word, &seen, seen & ~STATE)) return VIGIL_OK;
    }
    if ((seen & STATE) != CONTENDED) return VIGIL_ENOTHELD;
    struct lot *lot = lot_private();
    if (!lot) { /* nobody can be in line */
        prim_store_release(word, seen & ~STATE);
        return VIGIL_OK;
    }
    if (BUG(freed_outside)) prim_store_release(word, seen & ~STATE);
    struct mutex_release release = {.word = word};
    lot_call(lot, key_of(word), mutex_call, &release);
    return release.held || BUG(freed_outside) ? VIGIL_OK : VIGIL_ENOTHELD;
}

/* The inline functions, for those who cannot inline them. */

int vigil_mutex_lock(vigil_mutex *mutex) {
    return vigil_mutex_lock_slowly(mutex, VIGIL_FOREVER);
}

int vigil_mutex_lock_for(vigil_mutex *mutex, int64_t timeout_ns) {
    return vigil_mutex_lock_slowly(mutex, timeout_ns);
}

int vigil_mutex_trylock(vigil_mutex *mutex) {
    return vigil_mutex_lock_slowly(mutex, 0);
}

int vigil_mutex_unlock(vigil_mutex *mutex) {
    return vigil_mutex_unlock_slowly(mutex);
}

bool vigil_mutex_is_locked(const vigil_mutex *mutex) {
    uint32_t state = mutex ? prim_load_relaxed(&mutex->word) & STATE : UNLOCKED;
    return state == LOCKED || state == CONTENDED;
}

int vigil_mutex_execute(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                        vigil_callback *callback) {
    return vigil_mutex_execute_slowly(agent, request, mutex, timeout_ns, callback);
}

/* Asynchronous. */

static int start(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                 vigil_callback *callback, const struct lock_kind *kind) {
    return request_start(agent, request, kind, (uint32_t *)(void *)mutex, 0, timeout_ns, callback);
}

int vigil_mutex_lock_async(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                           vigil_callback *callback) {
    return start(agent, request, mutex, timeout_ns, callback, &locking);
}

int vigil_mutex_execute_slowly(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                               vigil_callback *callback) {
    bool idle = request && callback && !(request->op.flags & OP_PENDING);
    bool ours = idle && !check_address(mutex, sizeof mutex->word) && try_once(&mutex->word);
    int status = ours ? lock_taken(&mutex->word) : start(agent, request, mutex, timeout_ns, callback, &executing);
    if (status == VIGIL_OK) {
        callback(&request->op, VIGIL_OK);
        vigil_mutex_unlock(mutex);
    }
    return status;
}

int vigil_mutex_execute_later(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                              vigil_callback *callback) {
    int status = start(agent, request, mutex, timeout_ns, callback, &locking);
    if (status == VIGIL_OK) callback(&request->op, VIGIL_OK);
    return status;
}
