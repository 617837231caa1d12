/* SPDX-License-Identifier: MIT */
/*
 * The semaphore. vigil/sem.h says what its word can be, lock.h how waiters wait and why none is forgotten.
 *
 * CHANGES OF THE WORD
 *
 *     a newcomer          takes permits, if there are enough, neither RESERVED nor SAVED
 *     a called waiter     the same although they are RESERVED or SAVED. Ends RESERVED, and COMING; SAVED stays
 *     a waiter            sets WAITERS and ends COMING, and joins the line only while the word still is what it saw
 *     a releaser          without WAITERS: adds permits. COMING and no permits: adds one. Otherwise, under the lock of
 *                         the bucket: adds permits, says whether they are RESERVED or SAVED or a thread is COMING, and
 *                         calls the waiters in line for which there are enough; or, if the line is empty, clears
 *                         WAITERS
 *     a leaving waiter    the same, with no permits to add: others may have waited only for it
 *
 * RESERVED, SAVED and COMING exclude each other: they begin, and SAVED ends, only under the lock of the bucket.
 *
 * All of these are compare-and-exchange, so what was done before a release is seen by each later acquirer.
 *
 * If the permits are leased, in a segment, every change is made under the lock of the bucket, together with the hold
 * of the process (recovery/hold.h).
 *
 * NO WAITER IS FORGOTTEN
 *
 * A waiter is in line only while WAITERS is set: it is cleared under the lock of the bucket, and only if the line is
 * empty. So every release from then on updates the line. It calls all waiters for which there are enough permits, in
 * order, and stops at the first for which there are not; if they are RESERVED it stops after the first, so that no
 * other can be faster. When the called waiters have come, then there are too few permits for the head of the line, or
 * the head has gone back there because it saw too few; with these exceptions:
 *
 *     RESERVED    is no reason to wait for long: a waiter that joins the line meanwhile is a guard (lock.h). An
 *                 acquirer that ends the reservation by taking permits updates the line: for the waiters that have
 *                 waited because of it, and for those that have not been called because of it.
 *     leaving     a waiter that was the head of the line, and wanted many, leaves it: so it updates the line. That is
 *                 a thread that has timed out or been interrupted, or an event loop that has given its request up,
 *                 whether that is in line or called (decline).
 *
 *     COMING      a release may leave one permit for the thread that is coming: see there.
 *
 * SAVED is set if the head of the line is entitled to a turn, or there was a reservation, and there are too few permits
 * for it. It is not RESERVED: it has no guard, and no waiter behind the head gets anything, or large requests would
 * never get theirs.
 *
 * A TURN
 *
 * The head of the line is entitled to a turn if it has waited for PATIENCE_NS, once in that time (lock_may_reserve):
 * else a long line would have every release wait for a thread to wake up. Its turn lasts until it has its permits:
 * while they are SAVED, each update goes on with that, or with RESERVED once there are enough, whether or not the next
 * turn is due. If the head has left, its turn goes to the next one that has waited so long; if that has not, it ends.
 *
 * COMING (outside of segments, where a thread may be killed on its way)
 *
 * An update has called a thread, the head of the line, and has not reserved anything. That thread ends COMING when it
 * comes. A release that finds no permits, and adds one, need not call another waiter until then: if the thread finds
 * the permit it takes it; if it finds too few, it goes back to the line, and the waiters behind it wait as before, or
 * until it leaves. If a newcomer has taken the permit, it will release it. A release that leaves more than one permit
 * calls the waiters for which they are enough: they need not wait for that thread.
 *
 * A waiter that joins the line ends COMING, too. It cannot know whether that is from before a fork: in the child, the
 * thread does not exist. To end it too early costs a call, and no more.
 */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* this is where they are */
#endif
#include "sem.h"

#include "lot/arguments.h"
#include "lock.h"
#include "calls.h"
#include "lot/copies.h"

#define WAITERS  1u
#define RESERVED 2u
#define SAVED    4u
#define COMING   (RESERVED | SAVED) /* both bits: neither reserved nor saved */
#define STATE    (RESERVED | SAVED)
#define LEASED   8u
#define PERMIT   16u

static bool sem_reserved(uint32_t seen) {
    return (seen & STATE) == RESERVED;
}

static bool sem_is_saved(uint32_t seen) {
    return (seen & STATE) == SAVED;
}

static bool sem_is_coming(uint32_t seen) {
    return (seen & STATE) == COMING;
}

/* Changing the word. */

static struct hold sem_change_of(uint32_t released, uint32_t acquired) {
    return (struct hold){.kind = SLOT_SEM, .given = released, .taken = acquired};
}

/* VIGIL_OK; VIGIL_NOT_EQUAL: the word differs and is in `seen`; if leased, also other statuses of hold_change. */
static int sem_change(uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold) {
    return hold_change_or_cas((*seen & LEASED) && segment_of(word), word, seen, to, hold);
}

static int sem_change_when_locked(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold) {
    if ((*seen & LEASED) && is_shared(lot)) return hold_change_locked(lot, word, to, hold);
    return prim_cas_release(word, seen, to) ? VIGIL_OK : VIGIL_NOT_EQUAL;
}

/* Looking at the line, under the lock of its bucket. */

struct sem_update {
    struct lot *lot;
    uint32_t *word;
    uint32_t released;     /* permits to be added */
    bool drop_reservation; /* drop the reservation */
    bool if_still_saved;   /* if it is not SAVED any more, another thread has updated the line */
    bool reserves;
    int over;         /* VIGIL_OK: go on; else the status to stop with */
    uint32_t permits; /* in the word, after this change */
    uint32_t called;  /* permits that the called waiters want */
    bool loop;        /* a loop has been called */
};
_Static_assert(sizeof(struct sem_update) <= RECOVERY_CALL_BYTES, "it must fit");

static uint32_t sem_wanted(const struct slot *slot) {
    return (uint32_t)slot->wants;
}

/* A waiter that, when called, comes and ends COMING. */
static bool sem_is_thread_here(const struct sem_update *update, const struct slot *slot) {
    return !is_shared(update->lot) && slot->kind != SLOT_PLAIN && !slot->seat;
}

static uint32_t sem_flags_for(const struct sem_update *update, uint32_t seen, const struct slot *head, bool entitled) {
    bool reserved = !update->drop_reservation && sem_reserved(seen);
    if (!head) return reserved ? RESERVED : 0;
    bool enough = sem_wanted(head) <= update->permits;
    if (reserved || entitled) return WAITERS | (enough ? RESERVED : SAVED);
    return WAITERS | (enough && sem_is_thread_here(update, head) ? COMING : 0);
}

/* Whether the head of the line may have permits reserved or saved for it: see A TURN. */
static bool sem_is_entitled(uint32_t seen, const struct slot *head) {
    if (!head || head->kind == SLOT_PLAIN) return false;
    return sem_is_saved(seen) && !BUG(sem_saved_for_a_moment) ? lock_has_waited(head) : lock_may_reserve(head);
}

static int sem_refusal(const struct sem_update *update, uint32_t seen) {
    if (update->released > VIGIL_SEM_MAX - seen / PERMIT) return VIGIL_ERANGE;
    return update->if_still_saved && !sem_is_saved(seen) ? VIGIL_CANCELLED : VIGIL_OK;
}

static bool sem_begin(uint32_t *word, const struct slot *head, void *context) {
    struct sem_update *update = context;
    (void)word;
    uint32_t seen = prim_load_relaxed(update->word), flags;
    /* Once, as it uses up the turn; SAVED begins and ends only under the lock. */
    bool entitled = sem_refusal(update, seen) == VIGIL_OK && sem_is_entitled(seen, head);
    do {
        update->over = sem_refusal(update, seen);
        if (update->over) return false;
        update->permits = seen / PERMIT + update->released;
        flags = sem_flags_for(update, seen, head, entitled);
        uint32_t to = update->permits * PERMIT | flags | (seen & LEASED);
        update->over = sem_change_when_locked(update->lot, update->word, &seen, to, sem_change_of(update->released, 0));
    } while (update->over == VIGIL_NOT_EQUAL);
    if (update->over) return false;
    update->reserves = sem_reserved(flags);
    if (update->released) PROBE(lock_released, update->word);
    if (update->released && update->reserves) PROBE(lock_reserved, update->word);
    return true;
}

static uint32_t sem_call(const struct slot *slot, void *context) {
    struct sem_update *update = context;
    bool plain = slot->kind == SLOT_PLAIN; /* waits in its own way */
    bool enough = sem_wanted(slot) <= update->permits - update->called && !(update->reserves && update->called);
    if (!enough) return plain && update->loop ? VIGIL_OK : LOT_STAY;
    if (plain) return VIGIL_OK;
    update->called += sem_wanted(slot);
    update->loop |= slot->seat != 0;
    return SLOT_CALLED;
}

static const struct lot_release sem_releasing = {sem_begin, sem_call, NULL, NULL};

static void sem_update_line(struct sem_update update) {
    if (!(prim_load_relaxed(update.word) & (WAITERS | RESERVED))) return;
    update.lot = lot_for(update.word);
    if (update.lot) lot_call(update.lot, update.word, &sem_releasing, &update);
}

/* The same after permits have been released without the lock. Other threads may have taken them and freed the memory
 * since: look at the word only if a waiter is in line, for then the memory is still in use. */
static bool sem_begin_if_any(uint32_t *word, const struct slot *head, void *context) {
    return head && sem_begin(word, head, context);
}

static void sem_update_line_if_any(uint32_t *word) {
    static const struct lot_release release_if_any = {sem_begin_if_any, sem_call, NULL, NULL};
    struct sem_update update = {.word = word};
    prim_fence_seq_cst(); /* as N2: a waiter that is not in line yet sees the permits */
    update.lot = lot_for_if_used(word);
    if (update.lot && lot_occupied(update.lot, word)) lot_call(update.lot, word, &release_if_any, &update);
}

/* A process has died. */

static bool sem_begin_afresh(uint32_t *word, const struct slot *head, void *context) {
    *(struct sem_update *)context = (struct sem_update){.lot = lot_for(word), .word = word, .drop_reservation = true};
    return sem_begin(word, head, context);
}

const struct lot_release sem_recovery = {sem_begin_afresh, sem_call, NULL, NULL};

uint32_t sem_give_back(uint32_t seen, uint32_t held) {
    return seen + held * PERMIT;
}

/* The kind. */

static bool sem_may_take(uint32_t seen, uint32_t permits, enum lock_privilege privilege) {
    if (permits > seen / PERMIT) return false;
    if (sem_is_saved(seen)) return privilege == CALLED || BUG(sem_saved_in_vain);
    return !sem_reserved(seen) || privilege == CALLED;
}

static void sem_decline(uint32_t *word) {
    sem_update_line((struct sem_update){.word = word, .drop_reservation = true});
}

/* The state after a caller has taken permits. */
static uint32_t sem_state_when_taken(uint32_t seen, enum lock_privilege privilege) {
    bool came = privilege != NEWCOMER && !BUG(sem_comes_silently);
    return sem_reserved(seen) || (sem_is_coming(seen) && came) ? seen & ~STATE : seen;
}

/* And after it has found that it must wait. */
static uint32_t sem_state_when_waiting(uint32_t seen) {
    return (sem_is_coming(seen) && !BUG(sem_comes_silently) ? seen & ~STATE : seen) | WAITERS;
}

static int sem_take(uint32_t *word, uint32_t permits, enum lock_privilege privilege, uint32_t *result) {
    uint32_t seen = prim_load_relaxed(word);
    int status = VIGIL_NOT_EQUAL;
    while (status == VIGIL_NOT_EQUAL) {
        if (sem_may_take(seen, permits, privilege)) {
            uint32_t to = sem_state_when_taken(seen, privilege) - permits * PERMIT;
            status = sem_change(word, &seen, to, sem_change_of(0, permits));
            if (status != VIGIL_OK) continue;
            if (sem_reserved(seen) && !BUG(sem_not_further)) sem_update_line((struct sem_update){.word = word});
            return VIGIL_OK;
        }
        *result = sem_state_when_waiting(seen);
        status = *result == seen ? VIGIL_OK : sem_change(word, &seen, *result, sem_change_of(0, 0));
        if (status == VIGIL_OK) return VIGIL_PENDING;
    }
    if (privilege != NEWCOMER) sem_decline(word); /* we were called, and cannot have the permits */
    return status;
}

/* SAVED was set for the waiter that was the head of the line: another may be before it now. */
static void sem_joined(uint32_t *word, uint32_t seen) {
    if (sem_is_saved(seen) && !BUG(sem_saved_for_another))
        sem_update_line((struct sem_update){.word = word, .if_still_saved = true});
}

static void sem_left(uint32_t *word) {
    if (!BUG(sem_left_silently)) sem_update_line((struct sem_update){.word = word});
}

static const struct lock_kind sem_acquiring;

static bool sem_recovered(uint32_t *word) {
    return lock_recovered(&sem_acquiring, word, RESERVED | SAVED);
}

/* Blocking. */

static int sem_try_once(uint32_t *word, uint32_t permits) {
    uint32_t seen = prim_load_relaxed(word);
    while (sem_may_take(seen, permits, NEWCOMER)) {
        int status = sem_change(word, &seen, seen - permits * PERMIT, sem_change_of(0, permits));
        if (status == VIGIL_OK) return lock_taken(word);
        if (status != VIGIL_NOT_EQUAL) return status;
    }
    return VIGIL_TIMED_OUT;
}

/* Whether spinning may pay: not if there are waiters, except one that is being woken. */
static bool sem_may_spin(uint32_t seen) {
    return !(seen & WAITERS) || sem_is_coming(seen);
}

/* For as long as a brief use of permits takes. */
static int sem_spin_to_take(uint32_t *word, uint32_t permits) {
    return lock_spin_to_take(&sem_acquiring, word, permits, PRIM_SPIN_LOCK, sem_may_spin);
}

static const struct lock_kind sem_acquiring = {.slot = SLOT_SEM,
                                               .take = sem_take,
                                               .reserved = sem_reserved,
                                               .decline = sem_decline,
                                               .granted = lock_granted,
                                               .joined = sem_joined,
                                               .left = sem_left,
                                               .try_once = sem_try_once,
                                               .spin_to_take = sem_spin_to_take,
                                               .recovered = sem_recovered};

static int sem_check_permits(uint32_t permits) {
    if (!permits) return VIGIL_EINVAL;
    return permits > VIGIL_SEM_MAX ? VIGIL_ERANGE : VIGIL_OK;
}

int vigil__sem_acquire_slowly(vigil_sem *sem, uint32_t permits, int64_t timeout_ns) {
    int error = check_address(sem, sizeof sem->word);
    if (!error) error = sem_check_permits(permits);
    if (error) return error;
    return lock_slowly(&sem_acquiring, &sem->word, permits, timeout_ns);
}

/* Releasing. */

/* Whether the only permit is one that the thread which is coming can take. */
static bool sem_is_covered(uint32_t seen, uint32_t permits) {
    return sem_is_coming(seen) && ((permits == 1 && seen < PERMIT) || BUG(sem_covered_by_one));
}

static int sem_release_now(uint32_t *word, uint32_t permits) {
    uint32_t seen = prim_load_relaxed(word);
    struct lot *lot = NULL;
    bool covered;
    while ((covered = sem_is_covered(seen, permits)) || !(seen & WAITERS) || !(lot = lot_for_if_used(word)) ||
           BUG(sem_released_outside)) {
        if (permits > VIGIL_SEM_MAX - seen / PERMIT) return VIGIL_ERANGE;
        /* The word was initialized so, say; a waiter may be making the lot now. */
        bool no_lot = (seen & WAITERS) && !covered;
        int refused = no_lot ? lot_refused(word) : VIGIL_OK;
        if (refused) return refused;
        int status = sem_change(word, &seen, seen + permits * PERMIT, sem_change_of(permits, 0));
        if (status == VIGIL_OK && no_lot && !BUG(sem_released_outside)) sem_update_line_if_any(word);
        if (status != VIGIL_NOT_EQUAL) return status;
    }
    struct sem_update update = {.lot = lot, .word = word, .released = permits};
    lot_call(lot, word, &sem_releasing, &update);
    return update.over;
}

static void sem_release_later(const volatile void *address, int64_t permits) {
    if (segment_of(address) && permits <= VIGIL_SEM_MAX)
        sem_release_now((uint32_t *)(uintptr_t)address, (uint32_t)permits);
}

static void sem_update_later(const volatile void *address, int64_t unused) {
    (void)unused;
    sem_update_line_if_any((uint32_t *)(uintptr_t)address);
}

/* In a signal handler that must not take locks (lot/critical.h): change the word now, and update the line later. */
static int sem_release_in_handler(const struct lot_copy *interrupted, uint32_t *word, uint32_t permits) {
    uint32_t seen = prim_load_relaxed(word);
    bool noted = false;
    if ((seen & LEASED) && segment_of(word)) return interrupted->defer(sem_release_later, word, permits);
    do {
        if (permits > VIGIL_SEM_MAX - seen / PERMIT) return VIGIL_ERANGE;
        if ((seen & WAITERS) && !noted) {
            int error = lot_refused(word);
            if (!error) error = interrupted->defer(sem_update_later, word, 0);
            if (error) return error;
            noted = true;
        }
    } while (!prim_cas_release(word, &seen, seen + permits * PERMIT));
    return VIGIL_OK;
}

int vigil__sem_release_slowly(vigil_sem *sem, uint32_t permits) {
    int error = check_address(sem, sizeof sem->word);
    if (!error) error = sem_check_permits(permits);
    if (error) return error;
    tsan_release(&sem->word);
    const struct lot_copy *interrupted = copies_interrupted();
    return interrupted ? sem_release_in_handler(interrupted, &sem->word, permits)
                       : sem_release_now(&sem->word, permits);
}

/* Changing the number of permits. */

int sem_add(vigil_sem *sem, uint32_t permits) {
    uint32_t seen = prim_load_relaxed(&sem->word);
    int status = VIGIL_NOT_EQUAL;
    while (status == VIGIL_NOT_EQUAL && permits <= VIGIL_SEM_MAX - seen / PERMIT) {
        status = sem_change(&sem->word, &seen, seen + permits * PERMIT, sem_change_of(0, 0));
    }
    if (status == VIGIL_OK) sem_update_line((struct sem_update){.word = &sem->word});
    return status == VIGIL_NOT_EQUAL ? VIGIL_ERANGE : status;
}

bool sem_remove_one(vigil_sem *sem) {
    uint32_t seen = prim_load_relaxed(&sem->word);
    int status = VIGIL_NOT_EQUAL;
    while (status == VIGIL_NOT_EQUAL && seen >= PERMIT) {
        status = sem_change(&sem->word, &seen, seen - PERMIT, sem_change_of(0, 0));
    }
    return status == VIGIL_OK;
}

int sem_remove_own(vigil_sem *sem) {
    uint32_t seen = prim_load_relaxed(&sem->word);
    int status;
    do status = sem_change(&sem->word, &seen, seen, sem_change_of(1, 0));
    while (status == VIGIL_NOT_EQUAL);
    return status;
}

/* The inline functions, for callers that cannot inline them. */

int vigil_sem_acquire(vigil_sem *sem, uint32_t permits) {
    return vigil__sem_acquire_slowly(sem, permits, VIGIL_FOREVER);
}

int vigil_sem_acquire_for(vigil_sem *sem, uint32_t permits, int64_t timeout_ns) {
    return vigil__sem_acquire_slowly(sem, permits, timeout_ns);
}

int vigil_sem_acquire_until(vigil_sem *sem, uint32_t permits, int64_t deadline_ns) {
    return vigil__sem_acquire_slowly(sem, permits, vigil_until(deadline_ns));
}

int vigil_sem_tryacquire(vigil_sem *sem, uint32_t permits) {
    return vigil__sem_acquire_slowly(sem, permits, 0);
}

int vigil_sem_release(vigil_sem *sem, uint32_t permits) {
    return vigil__sem_release_slowly(sem, permits);
}

uint32_t vigil_sem_value(const vigil_sem *sem) {
    return sem ? prim_load_relaxed(&sem->word) / PERMIT : 0;
}

/* Asynchronous. */

int vigil_sem_acquire_async(vigil_agent *agent, vigil_request *request, vigil_sem *sem, uint32_t permits,
                            int64_t timeout_ns, vigil_callback *callback) {
    int error = sem_check_permits(permits);
    if (error) return error;
    uint32_t *word = (uint32_t *)(void *)sem; /* not checked yet */
    return request_start_again(agent, request, &sem_acquiring, word, permits, timeout_ns, callback);
}
