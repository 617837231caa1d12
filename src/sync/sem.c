/* SPDX-License-Identifier: MIT */
/*
 * The semaphore. vigil/sem.h says what its word can be, lock.h who waits and why nobody does so in vain.
 *
 * WHO MAY CHANGE THE WORD
 *
 *     a newcomer          takes permits, if there are enough, neither RESERVED nor SAVED
 *     who was called      the same although they are RESERVED or SAVED
 *     who must wait       sets WAITERS, and joins the line only while the word still is what he saw
 *     who releases        without WAITERS: adds permits. With it, under the lock of the bucket: adds permits, says what
 *                         is RESERVED or SAVED, and calls those in line for whom there are enough; or, if nobody is in
 *                         line, clears WAITERS
 *     who leaves          the same, with no permits to add: others may have waited for him only
 *
 * All of these are compare-and-exchange, so what was done before a release is seen by whoever takes anything later.
 *
 * NOBODY WAITS IN VAIN
 *
 * Somebody is in line only while WAITERS is set: it is cleared under the lock of the bucket, and only if nobody is. So
 * every release from then on looks at the line. It calls all for whom there are enough permits, in order, and stops at
 * the first for whom there are not: an event loop is called, but the permits are counted out to threads only, for it
 * may not come. If they are RESERVED it stops at the first thread, so that no other can be faster. When those who have
 * been called have come, then there are too few for the head of the line, or it has gone back there having seen that
 * there are; with these exceptions:
 *
 *     RESERVED    is no reason to wait for long: who joins the line meanwhile is a guard (lock.h). Who takes permits
 *                 and so ends the reservation looks at the line: for those who have waited because of it, and for those
 *                 who have not been called because of it.
 *     leaving     somebody who was at the head of the line, and wanted many, leaves it: so he looks at the line. That
 *                 is a thread whose time is up and an event loop that has given its request up, whether that is in
 *                 line, or called (decline).
 *
 * SAVED is set if the head of the line has waited long enough and there are too few permits for it. It is not RESERVED:
 * nobody guards it, and nobody behind the head gets anything, or large requests would never get theirs.
 */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* this is where they are */
#endif
#include "vigil/sem.h"

#include "check.h"
#include "lock.h"

#define WAITERS  1u
#define RESERVED 2u
#define SAVED    4u
#define PERMIT   8u

/* Looking at the line, under the lock of its bucket. */

struct look {
    uint32_t *word;
    uint32_t released; /* permits to be added */
    bool afresh;       /* what is reserved is so no longer */
    bool only_saved;   /* if nothing is saved any more, somebody else has looked */
    bool begun, over, reserves;
    uint32_t permits;       /* when we looked, */
    uint64_t wanted_by_all; /* by all that have been called, */
    uint32_t for_threads;   /* and by the threads among them */
};

static uint32_t wanted(const struct slot *slot) {
    return (uint32_t)slot->argument;
}

static uint32_t flags_for(const struct look *look, uint32_t seen, const struct slot *head, bool entitled) {
    uint32_t reserved = look->afresh ? 0 : seen & RESERVED;
    if (!head) return reserved;
    if (!reserved && !entitled) return WAITERS;
    return WAITERS | (wanted(head) <= look->permits ? RESERVED : SAVED);
}

static void release(struct look *look, const struct slot *head) {
    bool entitled = head && head->began_ns && prim_now_ns() >= head->began_ns + PATIENCE_NS;
    uint32_t seen = prim_load_relaxed(look->word), flags;
    do {
        bool too_many = look->released > VIGIL_SEM_MAX - seen / PERMIT;
        look->over = too_many || (look->only_saved && !(seen & SAVED));
        if (look->over) return;
        look->permits = seen / PERMIT + look->released;
        flags = flags_for(look, seen, head, entitled);
    } while (!prim_cas_release(look->word, &seen, look->permits * PERMIT | flags));
    look->reserves = flags & RESERVED;
    if (look->released) PROBE(lock_released, look->word);
    if (look->released && (flags & RESERVED)) PROBE(lock_reserved, look->word);
}

static uint32_t call(const struct slot *slot, void *context) {
    struct look *look = context;
    if (!look->begun) {
        look->begun = true;
        release(look, slot);
    }
    if (!slot || look->over || wanted(slot) > look->permits - look->for_threads) return LOT_STAY;
    if (look->reserves && look->for_threads) return LOT_STAY;
    look->wanted_by_all += wanted(slot);
    if (!slot->seat || BUG(sem_counts_on_loops)) look->for_threads += wanted(slot);
    if (!slot->began_ns) return VIGIL_OK; /* a plain wait */
    return look->wanted_by_all <= look->permits ? SLOT_CALLED : SLOT_BESIDE;
}

static void look_at_line(struct look look) {
    if (prim_load_relaxed(look.word) & (WAITERS | RESERVED)) lot_call(lot_private(), key_of(look.word), call, &look);
}

/* The kind. */

static bool may_take(uint32_t seen, uint32_t permits, enum standing standing) {
    if (permits > seen / PERMIT) return false;
    if (seen & SAVED) return standing == CALLED || BUG(sem_saved_in_vain);
    return !(seen & RESERVED) || standing == CALLED;
}

static bool take(uint32_t *word, uint32_t permits, enum standing standing, uint32_t *result) {
    uint32_t seen = prim_load_relaxed(word);
    for (;;) {
        if (may_take(seen, permits, standing)) {
            if (!prim_cas_acquire(word, &seen, (seen & ~RESERVED) - permits * PERMIT)) continue;
            if ((seen & RESERVED) && !BUG(sem_not_further)) look_at_line((struct look){.word = word});
            return true;
        }
        if ((seen & WAITERS) || prim_cas_acquire(word, &seen, seen | WAITERS)) {
            *result = seen | WAITERS;
            return false;
        }
    }
}

static bool reserved(uint32_t seen) {
    return seen & RESERVED;
}

static void decline(uint32_t *word) {
    look_at_line((struct look){.word = word, .afresh = true});
}

/* What is saved is so for him who was the head of the line: now somebody may stand before that one. */
static void joined(uint32_t *word, uint32_t seen) {
    if ((seen & SAVED) && !BUG(sem_saved_for_another)) look_at_line((struct look){.word = word, .only_saved = true});
}

static void left(uint32_t *word) {
    if (!BUG(sem_left_silently)) look_at_line((struct look){.word = word});
}

static const struct lock_kind acquiring = {
    .take = take, .reserved = reserved, .decline = decline, .granted = lock_granted, .joined = joined, .left = left};

/* Blocking. */

static bool try_once(uint32_t *word, uint32_t permits) {
    uint32_t seen = prim_load_relaxed(word);
    while (may_take(seen, permits, NEWCOMER)) {
        if (prim_cas_acquire(word, &seen, seen - permits * PERMIT)) return true;
    }
    return false;
}

/* For as long as permits may be held only briefly, if nobody else waits. */
static bool spin_to_take(uint32_t *word, uint32_t permits) {
    for (unsigned turns = PRIM_SPIN_LOCK; turns && !(prim_load_relaxed(word) & WAITERS); turns--) {
        if (try_once(word, permits)) return true;
        prim_pause();
    }
    return false;
}

static int check_permits(uint32_t permits) {
    if (!permits) return VIGIL_EINVAL;
    return permits > VIGIL_SEM_MAX ? VIGIL_ERANGE : VIGIL_OK;
}

int vigil_sem_acquire_slowly(vigil_sem *sem, uint32_t permits, int64_t timeout_ns) {
    int error = check_address(sem, sizeof sem->word);
    if (!error) error = check_permits(permits);
    if (error) return error;
    if (try_once(&sem->word, permits)) return lock_taken(&sem->word);
    if (timeout_ns <= 0) return VIGIL_TIMED_OUT;
    if (prim_self()->may_not_block) return VIGIL_EMAYNOTBLOCK;
    uint64_t deadline_ns = timeout_ns == VIGIL_FOREVER ? PRIM_NEVER : deadline_after(prim_now_ns(), timeout_ns);
    if (spin_to_take(&sem->word, permits)) return lock_taken(&sem->word);
    int status = lock_block(&acquiring, &sem->word, permits, deadline_ns);
    if (status == VIGIL_TIMED_OUT && !BUG(sem_left_silently)) look_at_line((struct look){.word = &sem->word});
    return status;
}

/* Releasing. */

int vigil_sem_release_slowly(vigil_sem *sem, uint32_t permits) {
    int error = check_address(sem, sizeof sem->word);
    if (!error) error = check_permits(permits);
    if (error) return error;
    uint32_t seen = prim_load_relaxed(&sem->word);
    tsan_release(&sem->word);
    while (!(seen & WAITERS) || BUG(sem_released_outside)) {
        if (permits > VIGIL_SEM_MAX - seen / PERMIT) return VIGIL_ERANGE;
        if (prim_cas_release(&sem->word, &seen, seen + permits * PERMIT)) return VIGIL_OK;
    }
    struct lot *lot = lot_private();
    if (!lot) return VIGIL_ENOMEM;
    struct look look = {.word = &sem->word, .released = permits};
    lot_call(lot, key_of(&sem->word), call, &look);
    return look.over ? VIGIL_ERANGE : VIGIL_OK;
}

/* The inline functions, for those who cannot inline them. */

int vigil_sem_acquire(vigil_sem *sem, uint32_t permits) {
    return vigil_sem_acquire_slowly(sem, permits, VIGIL_FOREVER);
}

int vigil_sem_acquire_for(vigil_sem *sem, uint32_t permits, int64_t timeout_ns) {
    return vigil_sem_acquire_slowly(sem, permits, timeout_ns);
}

int vigil_sem_tryacquire(vigil_sem *sem, uint32_t permits) {
    return vigil_sem_acquire_slowly(sem, permits, 0);
}

int vigil_sem_release(vigil_sem *sem, uint32_t permits) {
    return vigil_sem_release_slowly(sem, permits);
}

uint32_t vigil_sem_value(const vigil_sem *sem) {
    return sem ? prim_load_relaxed(&sem->word) / PERMIT : 0;
}

/* Asynchronous. */

int vigil_sem_acquire_async(vigil_agent *agent, vigil_request *request, vigil_sem *sem, uint32_t permits,
                            int64_t timeout_ns, vigil_callback *callback) {
    int error = check_permits(permits);
    if (error) return error;
    return request_start(agent, request, &acquiring, (uint32_t *)(void *)sem, permits, timeout_ns, callback);
}
