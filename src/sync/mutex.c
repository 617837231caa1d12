/* SPDX-License-Identifier: MIT */
/*
 * The mutex. vigil/mutex.h says what its word can be, lock.h how waiters wait and why none is forgotten.
 *
 * CHANGES OF THE WORD
 *
 *     a newcomer        0 -> 1         takes it
 *                       0 -> 3         reserves it, and waits: the called thread has been passed often (mutex_coming)
 *     a called waiter   0 -> 2         takes it. There may be others behind it, which no other thread would call
 *                       3 -> 2         the same; only if it is SLOT_CALLED
 *     a waiter          1 -> 2         so that the release will be noticed. Joins the line only while it is 2 or 3
 *     a decliner        3 -> 2         outside of segments: becomes the holder, until it has released it to the next
 *     the holder        1 -> 0         releases it; there are no waiters
 *                       1, 2 -> 0      in private memory, while the bucket's word is zero: by a store (U1 in lot.h). It
 *                                      has read 1; if a waiter has changed that to 2, the waiter will see the 0
 *                                      before it joins, or the holder sees the waiter (U2) and calls it
 *                       2 -> 0, 3      releases it, under the lock of its bucket, and calls waiters in line
 *                       2 -> 0         without that lock, calling no waiter, while a thread that was called is coming
 *     vigil_mutex_abandon, in place of a holder that has ended: as the holder. The same step sets DIED
 *     any process       under the lock of its bucket, for the waiters in line (mutex_must_call): recovery, the keeper,
 *                       a signaller (cond.c) and, in a segment, a decliner or a waiter that has just joined
 *                       1, 2 -> 0, 3   in a segment, in place of a dead holder; sets DIED
 *                       3 -> 0, 3      the reservation is for a dead process, or has expired
 *                       0 -> 3         it is fair and has not been reserved
 *                       1 -> 2         it is held
 *
 * To join is to compare the word and link the slot, under the lock of the bucket, and a 2 is changed only under that
 * lock: so a waiter joins before the holder looks at the line, and is seen. A holder that stores 0 over a 2 looks at
 * the line after that (mutex_calling): if the mutex is free, it calls the head; if there is a new holder, it makes the
 * word 2 again. A line is not empty then, so a new holder changes the word by compare-and-exchange, or has stored 0
 * before it could see the line, and looks in its turn. A 3 is changed without that lock, but a
 * waiter that joins on a 3 is a guard of the reservation. While a thread is coming a 2 is changed without it, too; then
 * that thread is responsible for the line.
 *
 * Each holder sees what the previous one did: each store that releases pairs with the acquiring CAS that takes the
 * lock. That holds also across a 0 -> 3 in between: it is a read-modify-write, and so continues the release sequence.
 *
 * THE OWNER
 *
 * The holder puts the number of its process into the word, so that in a segment its death is known. The death is
 * noticed by a waiter that joins the line, if the process has been struck off already, and else by the process that
 * recovers (recovery/recovery.h). They cannot both miss it:
 *
 *     the joiner                                   the recoverer
 *     M1  join the line   (under its lock)         C1  strike the dead member off   (seq_cst)
 *     M2  fence           (seq_cst)                C2  fence                        (seq_cst)
 *     M3  load the word, and whether its           C3  look at every line
 *         holder is gone
 *
 * A robust mutex also has a thread as its owner, if it was taken by a blocking call: the word says BY_THREAD, and the
 * thread has a note (robust.h). When the thread ends, mutex_abandon does what the thread has not done: it unlocks the
 * mutex as usual, and sets DIED. It runs on that thread, so there is nothing for others to notice.
 *
 * For any other holder that has ended, while its process goes on, vigil_mutex_abandon does the same on some thread.
 * DIED is set by the very store or CAS that releases the mutex (mutex_release_held), so the acquiring CAS that takes it
 * reads both. Before that step nothing has changed: if the process is killed, in a segment, its number is in the word.
 */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* this is where they are */
#endif
#include "vigil/mutex.h"

#include "lot/arguments.h"
#include "lot/copies.h"
#include "lot/gift.h"
#include "recovery/hold.h"
#include "mutex.h"
#include "robust.h"
#include "shm/events.h"

#define UNLOCKED  0u
#define LOCKED    1u
#define CONTENDED 2u
#define RESERVED  3u
#define STATE     3u
#define FAIR      4u
#define COMING    8u /* in private memory: a called thread is on its way, see mutex_coming() */
#define DIED      8u /* in a segment, or robust: the owner died; until vigil_mutex_consistent */
#define BY_THREAD MUTEX_BY_THREAD
#define ROBUST    MUTEX_ROBUST
#define STORED    (1u << 30) /* with CONTENDED, if not robust: the holder has found no waiters, and may store */
#define NUMBER    0x1ffffff0u
#define PASSED    16u /* with COMING */
#define PASSES    0xffff0u
#define UNCOUNTED PASSES
#define CAME      (COMING | NUMBER)

bool mutex_is_fair(uint32_t seen) {
    return seen & FAIR;
}

static bool mutex_is_held(uint32_t seen) {
    return (seen & STATE) == LOCKED || (seen & STATE) == CONTENDED;
}

/* Whether the bit of value 8 means DIED, not COMING. */
static bool mutex_notes_death(uint32_t seen, bool shared) {
    return shared || (seen & ROBUST);
}

/* The bits that stay in the word when the holder changes. */
static uint32_t mutex_kept(uint32_t seen, bool shared) {
    return seen & (mutex_notes_death(seen, shared) ? FAIR | DIED | ROBUST : FAIR);
}

/*
 * The word after another has said that it is contended. A holder whose word is LOCKED and nothing else may be storing
 * UNLOCKED right now: a waiter that finds the line empty needs a fence (mutex_stored, WF in lot/lot.h). Other holders
 * release by compare-and-exchange, or under the lock of the bucket: no fence is needed while a lock is passed on in a
 * crowd.
 */
static uint32_t mutex_contended(uint32_t seen) {
    return (seen & ~STATE) | CONTENDED | (seen == LOCKED && !BUG(stored_unsaid) ? STORED : 0);
}

bool mutex_stored(uint32_t seen) {
    return seen == LOCKED || (seen & (STORED | ROBUST)) == STORED;
}

static uint32_t mutex_mine(void) {
    return prim_load_relaxed(&vigil__holder) & NUMBER;
}

/*
 * While a thread that has been called is on its way, there is no need to call another: it will take the mutex and call
 * the next, or say that the mutex is contended. So the word says that a thread is coming, and the first called waiter
 * to arrive clears that. A fork's child has none of its parent's threads: therefore the word also has the generation,
 * in the nine bits from bit 20 on.
 *
 * The thread may take long if the holders of the mutex, one after the other, also occupy the processors. So the bits
 * below count how often newcomers have passed it by, from one on. When that has been often enough, the next newcomer
 * leaves the mutex reserved and waits in line. Nothing is counted if the thread was called beside another waiter, which
 * may never come: the reservation would not be for the thread.
 *
 * Not in a segment: there the word has the holder's number, and a process may be killed on its way. Nor if the mutex is
 * robust: there the bit is DIED.
 */
static uint32_t mutex_coming(bool beside) {
    return (prim_generation & 0x1ffu) << 20 | COMING | (beside ? UNCOUNTED : PASSED);
}

static bool mutex_may_come(uint32_t seen, bool shared) {
    return !mutex_notes_death(seen, shared) && (seen & COMING);
}

static bool mutex_is_coming(uint32_t seen, bool shared) {
    return mutex_may_come(seen, shared) && seen >> 20 == mutex_coming(false) >> 20;
}

static bool mutex_passed_often(uint32_t seen, bool shared) {
    if (!mutex_is_coming(seen, shared) || (seen & PASSES) == UNCOUNTED || BUG(passed_for_ever)) return false;
    return (seen & PASSES) >= PRIM_PASSES * PASSED;
}

/* The word after a newcomer has taken it. */
static uint32_t mutex_barged(uint32_t seen, bool shared) {
    if (!mutex_may_come(seen, shared)) return mutex_kept(seen, shared) | LOCKED | mutex_mine();
    return (seen | LOCKED) + ((seen & PASSES) != UNCOUNTED ? PASSED : 0);
}

/* An event for observers of a segment: shm/events.h. */
static void mutex_record_event(const uint32_t *word, int type) {
    struct segment *segment = segment_of(word);
    if (segment && events_wanted(segment)) lot_record_lock_event(lot_in(segment), type, SLOT_MUTEX, word, 1, false);
}

static int mutex_taken(const uint32_t *word, uint32_t seen, bool shared) {
    if (shared) mutex_record_event(word, VIGIL_EVENT_GRANTED);
    return mutex_notes_death(seen, shared) && (seen & DIED) ? VIGIL_OWNER_DIED : VIGIL_OK;
}

/* A woken waiter spins briefly before it requeues: a short critical section may be over soon. */
static uint32_t mutex_wait_for_a_chance(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    if (!mutex_is_held(seen)) return seen;
    unsigned budget = spin_budget(PRIM_SPIN_LOCK);
    for (unsigned spins = 0; spins < budget && mutex_is_held(seen);) {
        spins += spin_apart();
        seen = prim_load_relaxed(word);
    }
    spin_learn(!mutex_is_held(seen));
    return seen;
}

int mutex_take(uint32_t *word, uint32_t argument, enum lock_privilege privilege, uint32_t *result) {
    (void)argument;
    bool shared = segment_of(word), may_barge = privilege == NEWCOMER, may_take_reserved = privilege == CALLED;
    uint32_t seen = may_barge ? prim_load_relaxed(word) : mutex_wait_for_a_chance(word);
    for (;;) {
        uint32_t state = seen & STATE, contended = mutex_contended(seen);
        if (!may_barge && mutex_may_come(seen, shared)) contended &= ~CAME; /* the thread has arrived */
        uint32_t ours = mutex_kept(seen, shared) | CONTENDED | mutex_mine();
        if (state == UNLOCKED && may_barge && mutex_passed_often(seen, shared)) {
            *result = RESERVED;
            if (prim_cas_acquire(word, &seen, *result)) return VIGIL_PENDING;
        } else if (state == UNLOCKED) {
            if (may_barge) ours = mutex_barged(seen, shared);
            else if (BUG(taken_as_alone)) ours = LOCKED;
            if (prim_cas_acquire(word, &seen, ours)) return mutex_taken(word, seen, shared);
        } else if (state == RESERVED && may_take_reserved) {
            if (BUG(taken_without_asking)) {
                prim_store_relaxed(word, ours);
                return VIGIL_OK;
            }
            if (prim_cas_acquire(word, &seen, ours)) return mutex_taken(word, seen, shared);
        } else if (state != RESERVED && seen != contended && !(BUG(not_contended) && privilege == CALLED)) {
            *result = contended;
            if (prim_cas_acquire(word, &seen, contended)) return VIGIL_PENDING;
        } else {
            *result = seen;
            return VIGIL_PENDING;
        }
    }
}

bool mutex_reserved(uint32_t seen) {
    return (seen & STATE) == RESERVED;
}

uint64_t mutex_patience_ns(uint32_t seen) {
    if (!mutex_reserved(seen)) return PRIM_NEVER;
    return mutex_is_fair(seen) ? FAIR_PATIENCE_NS : PATIENCE_NS;
}

/* Releasing. */

/* Distinguishes a reservation from the next: the time, and the low bits of the number of the process it is for. */
#define RESERVED_FOR    0x1fffu
#define RESERVED_FOR_AT 4
#define RESERVED_AT     17
#define RESERVED_MS     (NUMBER >> RESERVED_AT)

static uint32_t mutex_reservation(const struct mutex_release *release) {
    uint32_t now = (uint32_t)prim_now_coarse_ms();
    return RESERVED | (now & RESERVED_MS) << RESERVED_AT | (release->reserved_for & RESERVED_FOR) << RESERVED_FOR_AT;
}

static uint32_t mutex_owner_of(const struct lot *lot, const struct slot *slot) {
    return is_shared(lot) ? claim_number(prim_load_relaxed(&lot->share->claims[slot - lot->slots])) : 0;
}

static bool mutex_begin_release(uint32_t *word, const struct slot *head, void *context) {
    struct mutex_release *release = context;
    uint32_t seen = prim_load_relaxed(word);
    release->held = (seen & STATE) == CONTENDED; /* if not, another thread has unlocked it, too */
    release->reserve = head && (mutex_is_fair(seen) || lock_may_reserve(head));
    release->flags = mutex_kept(seen, is_shared(release->lot)) | release->died;
    return release->held;
}

static void mutex_set_free(void *context) {
    const struct mutex_release *release = context;
    if (release->free_already) return;
    PROBE(lock_released, release->word);
    if (release->reserve) PROBE(lock_reserved, release->word);
    bool own_and_plain = !mutex_notes_death(release->flags, is_shared(release->lot)) && !mutex_is_fair(release->flags);
    bool say_coming = release->threads && own_and_plain;
    uint32_t state = say_coming ? UNLOCKED | mutex_coming(release->loop_first) : UNLOCKED;
    bool to_be_told_apart = mutex_is_fair(release->flags) || is_shared(release->lot);
    if (release->reserve) state = to_be_told_apart ? mutex_reservation(release) : RESERVED;
    if (BUG(unlock_unordered)) prim_store_relaxed(release->word, release->flags | state);
    else prim_store_release(release->word, release->flags | state);
}

static bool mutex_must_call(uint32_t *word, struct mutex_release *release);

/*
 * For mutex_must_call, which found it not held: reserve it for the head of the line, or set it free if the line is
 * empty. False: it is held now, and the word says that others wait.
 */
static bool mutex_settle(struct mutex_release *release, const struct slot *head) {
    uint32_t reserved_for = head ? mutex_owner_of(release->lot, head) : 0, seen = release->seen;
    for (;;) {
        release->reserved_for = reserved_for;
        uint32_t settled = release->flags | (head ? mutex_reservation(release) : UNLOCKED);
        if (prim_cas_acq_rel(release->word, &seen, settled)) break;
        if (!mutex_must_call(release->word, release)) return false;
        if (!release->to_be_settled) return true; /* another thread has done so */
        seen = release->seen;
    }
    release->to_be_settled = false;
    return true;
}

static uint32_t mutex_outcome(const struct slot *slot, struct mutex_release *release) {
    bool beside = release->called++ || (release->free_already && !release->reserve);
    uint32_t call = beside ? SLOT_BESIDE : SLOT_CALLED;
    if (slot->kind != SLOT_PLAIN) return call;
    release->reserve = false; /* a plain waiter does not know what reserved means */
    return VIGIL_OK;
}

/*
 * The waiters to call (lock.h): up to the first that knows the rules; if the mutex is fair, only the first. Of those
 * that a condition has moved here, which want the mutex for a moment each, more than one: while one holds it the next
 * are waking up. Not the waiters behind them: one that is awake could be faster, again and again (see cond_wait_late).
 */
static uint32_t mutex_call(const struct slot *slot, void *context) {
    struct mutex_release *release = context;
    if (release->threads && !gift_is_given(slot) && !BUG(called_beside_moved)) release->enough_called = true;
    if (release->enough_called) return release->loop_called && slot->kind == SLOT_PLAIN ? VIGIL_OK : LOT_STAY;
    if (!release->called) {
        release->loop_first = slot->seat || slot->kind == SLOT_PLAIN;
        release->reserved_for = mutex_owner_of(release->lot, slot);
    }
    bool knows_rules = slot->kind != SLOT_PLAIN, thread = knows_rules && !slot->seat;
    bool one_of_many = thread && gift_is_given(slot) && !release->reserve;
    release->threads += thread;
    release->loop_called |= knows_rules && !thread;
    release->enough_called = knows_rules && (!one_of_many || release->threads == BROADCAST_AT_ONCE);
    if (mutex_is_fair(release->flags)) release->enough_called = true;
    return mutex_outcome(slot, release);
}

static const struct lot_release mutex_releasing = {mutex_begin_release, mutex_call, mutex_set_free, NULL};

/* Whether it is reserved for a process that is dead. */
static bool mutex_is_for_the_dead(const struct lot *lot, uint32_t seen) {
    const struct segment *segment = is_shared(lot) ? lot->share->segment : NULL;
    if (!segment || !mutex_reserved(seen)) return false;
    prim_fence_seq_cst(); /* as in segment_find_member */
    for (uint32_t i = 0; i < segment_rows(segment); i++) {
        const struct segment_member *member = segment_member(segment, i);
        if (!(prim_load_acquire(&member->life) & SEGMENT_JOINED)) continue;
        if (((prim_load_acquire(&member->number) ^ seen >> RESERVED_FOR_AT) & RESERVED_FOR) == 0) return false;
    }
    return true;
}

static bool mutex_holder_is_gone(const struct lot *lot, uint32_t seen) {
    uint32_t number = segment_holder_number(seen);
    return is_shared(lot) && mutex_is_held(seen) && number && is_gone(lot, number) && !BUG(dead_holder_kept);
}

/*
 * A waiter must be called if the mutex is not held. The caller does not take it for that: if it were killed meanwhile,
 * it would look like a dead holder. An unfair mutex is free then, for the first that takes it; a fair one is reserved
 * for the head of the line, in one step, so that no newcomer takes it in between.
 */
static bool mutex_must_call(uint32_t *word, struct mutex_release *release) {
    struct lot *lot = lot_for(word);
    uint32_t seen = prim_load_relaxed(word), expired = release->expired;
    for (;;) {
        bool died = mutex_holder_is_gone(lot, seen), has_expired = mutex_reserved(seen) && seen == expired;
        bool free = died || (seen & STATE) == UNLOCKED || has_expired || mutex_is_for_the_dead(lot, seen);
        *release =
            (struct mutex_release){.word = word, .lot = lot, .expired = expired, .held = true, .free_already = true};
        release->flags = mutex_kept(seen, is_shared(lot)) | (died ? DIED : 0);
        release->seen = seen;
        if (free && mutex_is_fair(seen)) {
            release->reserve = release->to_be_settled = true;
            return true;
        } else if (free) {
            if ((seen & STATE) == UNLOCKED || prim_cas_acq_rel(word, &seen, release->flags | UNLOCKED)) return true;
        } else if (mutex_is_held(seen)) {
            uint32_t contended = BUG(holder_not_told) ? seen : mutex_contended(seen);
            if (seen == contended || prim_cas_acquire(word, &seen, contended)) return false;
        } else {
            if (mutex_is_fair(seen))
                copies_guard(lot, key_of(lot, word)); /* the line may have been empty until now, and so not guarded */
            return !mutex_is_fair(seen);              /* reserved: others may be called beside */
        }
    }
}

static bool mutex_begin_call(uint32_t *word, const struct slot *head, void *context) {
    struct mutex_release *release = context;
    if (!mutex_must_call(word, release)) return false;
    return !release->to_be_settled || mutex_settle(release, head);
}

const struct lot_release mutex_recovery = {mutex_begin_call, mutex_call, mutex_set_free, mutex_stored};

/* The word says since when it is reserved, if it has room for that; if not, PATIENCE_NS have passed (guard.c). */
static bool mutex_is_long_reserved(const struct lot *lot, uint32_t seen) {
    uint32_t ms_since = ((uint32_t)prim_now_coarse_ms() - (seen >> RESERVED_AT)) & RESERVED_MS;
    if (mutex_is_fair(seen)) return ms_since >= FAIR_PATIENCE_NS / 1000000;
    return !is_shared(lot) || ms_since >= 1;
}

enum recovery_pass mutex_may_pass(uint32_t *word, void *release) {
    uint32_t seen = prim_load_relaxed(word);
    if (!mutex_reserved(seen)) return PASS_NOW;
    if (!mutex_is_long_reserved(lot_for(word), seen)) return PASS_LATER;
    ((struct mutex_release *)release)->expired = seen;
    return PASS_NOW;
}

/* As recovery does for the waiters in line. */
static void mutex_call_line(struct lot *lot, uint32_t *word, uint32_t expired) {
    struct mutex_release release = {.expired = expired};
    lot_call(lot, word, &mutex_recovery, &release);
}

/* In a segment the mutex is not taken for that: see mutex_must_call. */
void mutex_decline(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    if (!mutex_reserved(seen)) return;
    if (segment_of(word)) mutex_call_line(lot_for(word), word, seen);
    else if (prim_cas_acquire(word, &seen, mutex_kept(seen, false) | CONTENDED | mutex_mine()))
        vigil__mutex_unlock_slowly((vigil_mutex *)(void *)word);
}

void mutex_joined(uint32_t *word, uint32_t seen) {
    (void)seen; /* may be old: a reservation, say, and another waiter has taken it since */
    if (!segment_of(word)) return;
    struct lot *lot = lot_for(word);
    prim_fence_seq_cst(); /* M2 */
    uint32_t now = prim_load_relaxed(word);
    if (mutex_holder_is_gone(lot, now) || mutex_is_for_the_dead(lot, now)) mutex_call_line(lot, word, 0); /* M3 */
}

static const struct lock_kind mutex_locking;

/* Before a caller is refused: true if the mutex may be available after all. */
static bool mutex_recovered(uint32_t *word) {
    struct lot *lot = segment_of(word) ? lot_for(word) : NULL;
    uint32_t seen = prim_load_relaxed(word), number = segment_holder_number(seen);
    if (!lot) return lock_outlived_fork(&mutex_locking, word, mutex_reserved(seen));
    bool died = mutex_is_held(seen) && number && !segment_member_lives(lot->share->segment, number);
    if (mutex_reserved(seen)) hold_recovered(word);
    bool has_no_waiter = mutex_reserved(seen) && hold_has_no_waiter(word);
    if (died || has_no_waiter) mutex_call_line(lot, word, has_no_waiter ? seen : 0);
    return died || has_no_waiter;
}

/* Blocking. */

static int mutex_try_once(uint32_t *word, uint32_t unused) {
    (void)unused;
    bool shared = segment_of(word);
    uint32_t seen = prim_load_relaxed(word);
    while ((seen & STATE) == UNLOCKED && !mutex_passed_often(seen, shared)) {
        if (!prim_cas_acquire(word, &seen, mutex_barged(seen, shared))) continue;
        lock_taken(word);
        return mutex_taken(word, seen, shared);
    }
    return VIGIL_TIMED_OUT;
}

/* For as long as a short critical section takes, if there are no waiters. (If a called thread is coming, too, the
 * others wait in line: with 16 threads and two processors, spinning then costs two fifths of mutex_contended_16.) */
static int mutex_spin_to_take(uint32_t *word, uint32_t unused) {
    (void)unused;
    for (unsigned spins = 0; spins < PRIM_SPIN_LOCK; spins += spin_apart()) {
        uint32_t seen = prim_load_relaxed(word);
        if (seen == UNLOCKED && prim_cas_acquire(word, &seen, LOCKED | mutex_mine())) {
            mutex_record_event(word, VIGIL_EVENT_GRANTED);
            return lock_taken(word);
        }
        if (seen != UNLOCKED && (seen & ~NUMBER) != LOCKED) break; /* others wait, or it is fair: to the line */
    }
    return VIGIL_TIMED_OUT;
}

/* The kinds. */

#define MUTEX_CALLS .try_once = mutex_try_once, .spin_to_take = mutex_spin_to_take, .recovered = mutex_recovered

static const struct lock_kind mutex_locking = {MUTEX_KIND, MUTEX_CALLS, .granted = lock_granted};

static void mutex_granted_to_execute(vigil_request *request, int status) {
    vigil_mutex *mutex = request->object;
    request->callback(&request->op, status); /* after which the request may be gone */
    vigil_mutex_unlock(mutex);
}

static void mutex_spin(uint32_t *word) {
    mutex_wait_for_a_chance(word);
}

static const struct lock_kind mutex_executing = {
    MUTEX_KIND, MUTEX_CALLS, .granted = mutex_granted_to_execute, .spin = mutex_spin};

/* Get the note first: there must be one when the mutex is ours. */
static int mutex_lock_robust(uint32_t *word, int64_t timeout_ns) {
    uint32_t note = robust_new();
    if (!note) return lot_private() ? VIGIL_ELIMIT : lot_missing(NULL);
    int status = lock_slowly(&mutex_locking, word, 0, timeout_ns);
    if (lock_is_ours(status)) mutex_held_by_thread(word, note);
    else robust_end(note);
    return status;
}

int vigil__mutex_lock_slowly(vigil_mutex *mutex, int64_t timeout_ns) {
    int error = check_address(mutex, sizeof mutex->word);
    if (error) return error;
    if (prim_load_relaxed(&mutex->word) & ROBUST) return mutex_lock_robust(&mutex->word, timeout_ns);
    int status = mutex_try_once(&mutex->word, 0); /* at once, as is usual while a called thread is coming */
    return status == VIGIL_TIMED_OUT ? lock_slowly(&mutex_locking, &mutex->word, 0, timeout_ns) : status;
}

/* Robust mutexes. The holder changes these flags; waiters may set CONTENDED meanwhile. */

static void mutex_change_flags(uint32_t *word, uint32_t clear, uint32_t set) {
    uint32_t seen = prim_load_relaxed(word);
    while (!prim_cas_acquire(word, &seen, (seen & ~clear) | set)) {
    }
}

void mutex_held_by_thread(uint32_t *word, uint32_t note) {
    robust_add(note, word);
    mutex_change_flags(word, 0, BY_THREAD);
}

static bool mutex_is_by_thread(uint32_t seen) {
    return mutex_is_held(seen) && (seen & ROBUST) && (seen & BY_THREAD);
}

bool mutex_may_be_unlocked(const uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    return mutex_is_by_thread(seen) ? robust_has(prim_self(), word) : mutex_is_held(seen);
}

void mutex_disown(uint32_t *word) {
    if (mutex_is_by_thread(prim_load_relaxed(word))) mutex_change_flags(word, BY_THREAD, 0);
}

/* Unlocking. With waiters, `mutex_releasing` does the rest: mutex_begin_release, mutex_call, mutex_set_free. */

/* `died`: DIED or 0. The step that releases the mutex also sets DIED, and clears BY_THREAD. */
static int mutex_release_held(uint32_t *word, uint32_t died) {
    uint32_t seen = prim_load_relaxed(word);
    bool shared = segment_of(word);
    if (shared && mutex_is_held(seen)) mutex_record_event(word, VIGIL_EVENT_RELEASED);
    tsan_release(word);
    while ((seen & STATE) == LOCKED || ((seen & STATE) == CONTENDED && mutex_is_coming(seen, shared))) {
        uint32_t unlocked = mutex_may_come(seen, shared) ? seen & ~STATE : mutex_kept(seen, shared) | died;
        if (prim_cas_release(word, &seen, unlocked)) return VIGIL_OK;
    }
    if ((seen & STATE) != CONTENDED) return VIGIL_ENOTHELD;
    struct lot *lot = lot_for(word);
    int refused = lot ? VIGIL_OK : lot_refused(word);
    if (refused) return refused;
    if (!lot) { /* no waiter can be in line */
        prim_store_release(word, mutex_kept(seen, shared) | died);
        return VIGIL_OK;
    }
    if (BUG(freed_outside)) prim_store_release(word, mutex_kept(seen, shared));
    struct mutex_release release = {.word = word, .lot = lot, .died = died};
    lot_call(lot, word, &mutex_releasing, &release);
    return release.held || BUG(freed_outside) ? VIGIL_OK : VIGIL_ENOTHELD;
}

/* Unlocking by a store: the inline functions, once more. The mutex is in memory of this process alone. */

static bool mutex_may_store(void) {
    return prim_load_relaxed(&vigil__holder) == LOCKED && prim_load_relaxed(&vigil__lines);
}

static bool mutex_has_no_line(const uint32_t *word) {
    const struct lot *lot = lot_private_if_used();
    return !lot || !lot_occupied(lot, word);
}

static bool mutex_stored_unlocked(uint32_t *word) {
    bool alone = mutex_may_store() && prim_load_relaxed(word) == LOCKED && mutex_has_no_line(word);
    if (!alone) return false;
    tsan_release(word);
    prim_store_release(word, UNLOCKED); /* U1 */
    prim_signal_fence();
    return true;
}

/*
 * After U1 another thread may have had the mutex, and have freed it: what is at that address then is another word, and
 * may have a line of its own. It is a mutex, this one or another, if a waiter for a mutex is in line.
 */
static bool mutex_begin_call_of_waiter(uint32_t *word, const struct slot *head, void *context) {
    const struct lot *lot = ((struct mutex_release *)context)->lot;
    const struct slot *waiter = head;
    while (waiter && waiter->kind != SLOT_MUTEX && !BUG(unlocked_another))
        waiter = waiter->next ? &lot->slots[waiter->next] : NULL;
    return waiter && mutex_begin_call(word, head, context);
}

static const struct lot_release mutex_calling = {mutex_begin_call_of_waiter, mutex_call, mutex_set_free, NULL};

int vigil__mutex_unlocked(vigil_mutex *mutex) {
    struct mutex_release release = {.lot = lot_private_if_used()};
    if (release.lot) lot_call(release.lot, &mutex->word, &mutex_calling, &release);
    return VIGIL_OK;
}

/* False: another thread has the note, and only that one may unlock the mutex. */
static bool mutex_remove_note(const uint32_t *word) {
    if (!mutex_is_by_thread(prim_load_relaxed(word))) return true;
    uint32_t note = robust_remove(word);
    if (note) robust_end(note);
    return note;
}

int vigil__mutex_unlock_slowly(vigil_mutex *mutex) {
    int error = check_address(mutex, sizeof mutex->word);
    if (error) return error;
    return mutex_remove_note(&mutex->word) ? mutex_release_held(&mutex->word, 0) : VIGIL_ENOTHELD;
}

static bool mutex_is_anothers(const uint32_t *word, uint32_t seen) {
    return segment_of(word) && (seen & NUMBER) != mutex_mine();
}

void mutex_abandon(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    if (!mutex_is_by_thread(seen) || mutex_is_anothers(word, seen))
        return; /* the word has been overwritten, or we had left the segment */
    if (BUG(robust_left_silently)) prim_store_release(word, mutex_kept(seen, segment_of(word)) | DIED);
    else mutex_release_held(word, BUG(robust_not_told) ? 0 : DIED);
}

int vigil_mutex_abandon(vigil_mutex *mutex) {
    int error = check_address(mutex, sizeof mutex->word);
    if (error) return error;
    uint32_t *word = &mutex->word, seen = prim_load_relaxed(word);
    if (!mutex_notes_death(seen, segment_of(word))) return VIGIL_EINVAL;
    if (!mutex_is_held(seen) || mutex_is_anothers(word, seen) || !mutex_remove_note(word)) return VIGIL_ENOTHELD;
    if (BUG(abandoned_silently)) {
        prim_store_release(word, mutex_kept(seen, segment_of(word)) | DIED);
        return VIGIL_OK;
    }
    int status = mutex_release_held(word, BUG(abandoned_in_two) ? 0 : DIED);
    if (BUG(abandoned_in_two)) mutex_change_flags(word, 0, DIED);
    return status;
}

int vigil_mutex_consistent(vigil_mutex *mutex) {
    int error = check_address(mutex, sizeof mutex->word);
    if (error) return error;
    uint32_t *word = &mutex->word, seen = prim_load_relaxed(word);
    do {
        if (!mutex_is_held(seen)) return VIGIL_ENOTHELD;
        if (!mutex_notes_death(seen, segment_of(word)) || !(seen & DIED)) return VIGIL_EINVAL;
    } while (!prim_cas_release(word, &seen, seen & ~DIED));
    return VIGIL_OK;
}

/* The inline functions, for callers that cannot inline them. */

int vigil_mutex_lock(vigil_mutex *mutex) {
    return vigil__mutex_lock_slowly(mutex, VIGIL_FOREVER);
}

int vigil_mutex_lock_for(vigil_mutex *mutex, int64_t timeout_ns) {
    return vigil__mutex_lock_slowly(mutex, timeout_ns);
}

int vigil_mutex_lock_until(vigil_mutex *mutex, int64_t deadline_ns) {
    return vigil__mutex_lock_slowly(mutex, vigil_until(deadline_ns));
}

int vigil_mutex_trylock(vigil_mutex *mutex) {
    return vigil__mutex_lock_slowly(mutex, 0);
}

int vigil_mutex_unlock(vigil_mutex *mutex) {
    bool valid = !check_address(mutex, sizeof mutex->word);
    if (valid && mutex_stored_unlocked(&mutex->word)) {
        bool alone = mutex_has_no_line(&mutex->word) || BUG(unlocked_unseen); /* U2 */
        return alone ? VIGIL_OK : vigil__mutex_unlocked(mutex);
    }
    return vigil__mutex_unlock_slowly(mutex);
}

bool vigil_mutex_is_locked(const vigil_mutex *mutex) {
    uint32_t state = mutex ? prim_load_relaxed(&mutex->word) & STATE : UNLOCKED;
    return state == LOCKED || state == CONTENDED;
}

int vigil_mutex_execute(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                        vigil_callback *callback) {
    return vigil__mutex_execute_slowly(agent, request, mutex, timeout_ns, callback);
}

/* Asynchronous. */

static int mutex_start(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                       vigil_callback *callback, const struct lock_kind *kind) {
    uint32_t *word = (uint32_t *)(void *)mutex; /* not checked yet */
    return request_start_again(agent, request, kind, word, 0, timeout_ns, callback);
}

int vigil_mutex_lock_async(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                           vigil_callback *callback) {
    return mutex_start(agent, request, mutex, timeout_ns, callback, &mutex_locking);
}

int vigil__mutex_execute_slowly(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                                vigil_callback *callback) {
    bool idle = request && callback && !(request->op.flags & OP_PENDING);
    int status = idle && !check_address(mutex, sizeof mutex->word) ? mutex_try_once(&mutex->word, 0) : VIGIL_TIMED_OUT;
    if (status == VIGIL_TIMED_OUT) status = mutex_start(agent, request, mutex, timeout_ns, callback, &mutex_executing);
    if (lock_is_ours(status)) {
        callback(&request->op, status);
        vigil_mutex_unlock(mutex);
    }
    return status;
}

int vigil_mutex_execute_later(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                              vigil_callback *callback) {
    int status = mutex_start(agent, request, mutex, timeout_ns, callback, &mutex_locking);
    if (lock_is_ours(status)) callback(&request->op, status);
    return status;
}
