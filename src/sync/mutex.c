/* SPDX-License-Identifier: MIT */
/*
 * The mutex. vigil/mutex.h says what its word can be, lock.h who waits and why nobody does so in vain.
 *
 * WHO MAY CHANGE THE WORD
 *
 *     a newcomer        0 -> 1         takes it
 *     who was called    0 -> 2         takes it. There may be others behind him, whom nobody else would call
 *                       3 -> 2         the same. Also who has waited long enough for somebody else to do so
 *     who must wait     1 -> 2         so that its release will be noticed. Joins the line only while it is 2 or 3
 *     the holder        1 -> 0         releases it; nobody has asked for more
 *                       2 -> 0, 3      releases it, under the lock of its bucket, and calls those in line
 *
 * Joining compares the word under the lock of the bucket, and a 2 is changed only under that: so who joins does so
 * before the holder looks at the line, and is seen. A 3 is changed without it, but who joins on a 3 has a deadline.
 *
 * What the holder did is seen by the next: each store that releases pairs with the acquiring CAS that takes the lock.
 */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* this is where they are */
#endif
#include "vigil/mutex.h"

#include "check.h"
#include "lock.h"

#define UNLOCKED  0u
#define LOCKED    1u
#define CONTENDED 2u
#define RESERVED  3u
#define STATE     3u
#define FAIR      4u
#define TURN      8u /* a fair one counts its reservations */
#define TURNS     0xfff8u

#define FAIR_PATIENCE_NS UINT64_C(1000000000)

static bool take(uint32_t *word, uint32_t argument, enum standing standing, uint32_t *result) {
    (void)argument;
    bool may_barge = standing == NEWCOMER, may_take_reserved = standing == CALLED || standing == IMPATIENT;
    uint32_t seen = prim_load_relaxed(word);
    for (;;) {
        uint32_t flags = seen & ~STATE, state = seen & STATE;
        *result = flags | CONTENDED;
        if (state == UNLOCKED) {
            if (prim_cas_acquire(word, &seen, flags | (may_barge || BUG(taken_as_alone) ? LOCKED : CONTENDED)))
                return true;
        } else if (state == RESERVED && may_take_reserved) {
            if (BUG(taken_without_asking)) {
                prim_store_relaxed(word, *result);
                return true;
            }
            if (prim_cas_acquire(word, &seen, *result)) return true;
        } else if (state == LOCKED && !(BUG(not_contended) && standing == CALLED)) {
            if (prim_cas_acquire(word, &seen, *result)) return false;
        } else {
            *result = seen;
            return false;
        }
    }
}

static bool reserved(uint32_t seen) {
    return (seen & STATE) == RESERVED;
}

static uint64_t patience_ns(uint32_t seen) {
    if (seen & FAIR) return FAIR_PATIENCE_NS;
    return reserved(seen) ? PATIENCE_NS : PRIM_NEVER;
}

static void decline(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    if (reserved(seen) && prim_cas_acquire(word, &seen, (seen & ~STATE) | CONTENDED))
        vigil_mutex_unlock_slowly((vigil_mutex *)(void *)word);
}

/* Blocking. */

static void granted_in_callback(vigil_request *request) {
    request->callback(&request->op, VIGIL_OK);
}

static void granted_to_execute(vigil_request *request) {
    vigil_mutex *mutex = request->object;
    request->callback(&request->op, VIGIL_OK); /* after which the request may be gone */
    vigil_mutex_unlock(mutex);
}

static const struct lock_kind locking = {take, patience_ns, reserved, decline, granted_in_callback};
static const struct lock_kind executing = {take, patience_ns, reserved, decline, granted_to_execute};

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
    while ((seen & STATE) == UNLOCKED) {
        if (prim_cas_acquire(word, &seen, seen | LOCKED)) return true;
    }
    return false;
}

int vigil_mutex_lock_slowly(vigil_mutex *mutex, int64_t timeout_ns) {
    int error = check_address(mutex, sizeof mutex->word);
    if (error) return error;
    if (try_once(&mutex->word)) return VIGIL_OK;
    if (timeout_ns <= 0) return VIGIL_TIMED_OUT;
    if (prim_self()->may_not_block) return VIGIL_EMAYNOTBLOCK;
    uint64_t deadline_ns = timeout_ns == VIGIL_FOREVER ? PRIM_NEVER : deadline_after(prim_now_ns(), timeout_ns);
    if (spin_to_take(&mutex->word)) return VIGIL_OK;
    return lock_block(&locking, &mutex->word, 0, deadline_ns);
}

/* Releasing. */

struct release {
    uint32_t *word;
    bool begun, held, fair, enough_called;
};

static bool entitled(const struct slot *head, uint32_t flags) {
    if (!head->began_ns) return false; /* a plain wait: somebody who does not know what reserved means */
    return (flags & FAIR) || prim_now_ns() >= head->began_ns + PATIENCE_NS;
}

static void set_free(struct release *release, const struct slot *head) {
    uint32_t seen = prim_load_relaxed(release->word), flags = seen & ~STATE;
    release->begun = true;
    release->held = (seen & STATE) == CONTENDED; /* if not, somebody else has unlocked it, too */
    release->fair = flags & FAIR;
    if (!release->held) return;
    if (release->fair) flags = (flags & ~TURNS) | ((flags + TURN) & TURNS);
    prim_store_release(release->word, flags | (head && entitled(head, flags) ? RESERVED : UNLOCKED));
}

/* See lock.h: everybody up to and including the first thread; if it is fair, the first. */
static uint32_t call(const struct slot *slot, void *context) {
    struct release *release = context;
    bool first = !release->begun;
    if (first) set_free(release, slot);
    if (!slot || !release->held || release->enough_called) return LOT_STAY;
    release->enough_called = !slot->seat || release->fair || BUG(loop_relied_upon);
    return first ? SLOT_CALLED : SLOT_BESIDE;
}

int vigil_mutex_unlock_slowly(vigil_mutex *mutex) {
    int error = check_address(mutex, sizeof mutex->word);
    if (error) return error;
    uint32_t *word = &mutex->word, seen = prim_load_relaxed(word);
    while ((seen & STATE) == LOCKED) {
        if (prim_cas_release(word, &seen, seen & ~STATE)) return VIGIL_OK;
    }
    if ((seen & STATE) != CONTENDED) return VIGIL_ENOTHELD;
    struct lot *lot = lot_private();
    if (!lot) return VIGIL_ENOMEM;
    if (BUG(freed_outside)) prim_store_release(word, seen & ~STATE);
    struct release release = {.word = word};
    lot_call(lot, key_of(word), call, &release);
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
    return request_start(agent, request, kind, mutex ? &mutex->word : NULL, 0, timeout_ns, callback);
}

int vigil_mutex_lock_async(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                           vigil_callback *callback) {
    return start(agent, request, mutex, timeout_ns, callback, &locking);
}

int vigil_mutex_execute_slowly(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                               vigil_callback *callback) {
    int status = start(agent, request, mutex, timeout_ns, callback, &executing);
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
