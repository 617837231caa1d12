/* SPDX-License-Identifier: MIT */
/*
 * The lock for readers and writers. vigil/rwlock.h says what its word can be, lock.h how waiters wait and why none is
 * forgotten.
 *
 * CHANGES OF THE WORD
 *
 *     a reader            adds itself, and then looks whether it may read. If not, it is counted in error, and takes
 *                         that back as if it had read. So nothing may depend on the number except whether it is zero;
 *                         and a thread that sees that it is not can rely on a reader that will yet make it less
 *                         If the word says LANES it goes to a lane instead, and does not change the word (lanes.h)
 *     a writer            closes the lanes (lanes.h): counts the readers there, and clears LANES. Sets WRITER when
 *                         there is neither that nor a reader, nor LANES
 *     a waiter            sets WAITERS. Joins the line only while the word still is what it saw. If readers hold the
 *                         lock, it updates the line after PATIENCE_NS
 *     a line update       with readers inside and a writer at the head of the line: sets SAVED, which keeps new readers
 *                         out
 *     the last to leave   without WAITERS: removes itself. With it, under the lock of the bucket: removes itself, says
 *                         what is RESERVED or SAVED, and calls the waiters in line that can have the lock now. Clears
 *                         WAITERS if the line is empty, or if its head is called and is a thread, which sets it again.
 *                         A reader that is not the last does not update the line
 *     a thief             in a segment: sets WRITER in place of all holders, see STEALING in recovery/hold.h. Clears
 *                         RESERVED and SAVED. WAITERS stays, and the thief updates the line when it leaves
 *     a writer's end      vigil_rwlock_write_abandon, in place of a writer that has ended: leaves as the writer would,
 *                         and sets DIED in the same step
 *     a called waiter     takes the lock, or not, and sets WAITERS in the same step
 *     a waiter that       does what the last to leave does, without removing itself: others may have waited only for
 *     gives up            it, see below
 *
 * All of these are read-modify-writes, so what was done before a release is seen by each later holder. DIED, which is
 * set by a release, is in the very word that the next holder changes. A reader that has added itself to such a word
 * takes that back, and tries again with a compare-and-exchange, so that it is told: the inline reader needs no branch
 * of its own.
 *
 * In a segment no reader is counted in error, and every change is made under the lock of the bucket, together with the
 * hold of the process (recovery/hold.h). When the process is dead its share is given back. If it was
 * writing the word says DIED from then on, until a writer calls vigil_rwlock_consistent.
 *
 * NO WAITER IS FORGOTTEN
 *
 * While waiters are in line WAITERS is set, or a thread that has been called has not come yet. (In a segment, where
 * that thread may be killed: WAITERS is set.) It is cleared under the lock of the bucket, and only if the line is empty
 * or such a thread has just been called; and the thread sets it, whether it can take the lock or not. So the writer, or
 * the last of the readers, updates the line when it leaves, unless that is left to the thread that comes: holders that
 * take and leave the lock meanwhile need not call all others, one after the other, only to see them come too late. That
 * calls the head; if that is a reader, then also the readers directly behind it. Each of the other waiters waits
 * for a holder, or for a waiter that has been called and will hold the lock (lock.h), with these exceptions:
 *
 *     RESERVED    is no reason to wait for long: a waiter that joins the line meanwhile is a guard (lock.h).
 *     called      a reader that has been called and has taken the lock updates the line: readers may have come back to
 *                 it because of the reservation that this reader has ended; and if a writer is its head now, SAVED is
 *                 due.
 *     leaving     a writer leaves the line, and readers have waited behind it while others read: it updates the line.
 *                 That is a thread that has timed out or been interrupted, or an event loop that has given its
 *                 request up, whether that is in line or called (decline). If no waiter is left, the lock is not
 *                 RESERVED any more: the waiter that left may have been the one for which it was, which had come, found
 *                 a reader that was counted in error, and gone back to the line. If it was for another one, which has
 *                 yet to come, that one takes its chance with newcomers.
 *
 * A lock is RESERVED for the head of the line if that has waited for PATIENCE_NS, once in that time (lock_may_reserve):
 * else a long line would have every lock and unlock wait for a thread to wake up. Or if the head is a thread that has
 * not fallen asleep yet: that thread will be here before a newcomer could be through.
 *
 * SAVED is set only while there are readers, and the last of them clears it. Readers that were called before it was set
 * may still come in: they are few, and were first. SAVED has no guard.
 *
 * A writer that finds readers inside does not set SAVED at once, since a lock that changes hands for each writer makes
 * all threads sleep in turn. So new readers may pass the writer, but not for ever. If they leave no gap for PATIENCE_NS
 * the writer updates the line, and sets SAVED; if they leave one, the last of them calls the writer, and reserves the
 * lock for it when it has waited so long. Readers can also come in before a writer that joined the line while another
 * one was writing: by being called, and then they update the line; or by a downgrade, which updates the line.
 *
 * WHERE READERS PASS (the word says PASS)
 *
 * SAVED is never set, and a reader takes the lock whenever it is read, whatever else the word says. The number of
 * readers that it sees may be in error: then the reader passes a reservation. It never reads beside a writer, which
 * takes the lock only when the number is zero. A writer that finds readers sets WAITERS and joins; only the last reader
 * can make the number zero, and that one updates the line because of WAITERS. So a writer waits for readers that hold
 * the lock, perhaps for ever, but is called in the end if there are no new ones. A reader is in line because a writer
 * had the lock, or because it was RESERVED and not read. When it becomes read, all the readers in line must get it,
 * also those behind a writer (LOT_SKIP):
 *
 *     unlocking   a writer that unlocks, or downgrades, calls them together with the head of the line;
 *     called      a reader that has been called, and takes the lock, updates the line as above;
 *     FASTER      a new reader takes the lock before a writer that has been called: the new reader does not update the
 *                 line, but the writer goes back there, having seen readers, and updates it when it has joined.
 *
 * THE NUMBER OF READERS
 *
 * The upper half of the numbers that fit is not used: from there on readers are refused. To overflow the number, as
 * many threads as the upper half has numbers would have to be counted in error at once.
 */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* this is where they are */
#endif
#include "rwlock.h"

#include "lot/arguments.h"
#include "lanes.h"
#include "lock.h"
#include "calls.h"

#define WRITER   1u
#define WAITERS  2u
#define RESERVED 4u
#define SAVED    8u
#define READER   RWLOCK_READER
#define READERS  RWLOCK_READERS
#define TOO_MANY (1u << 27)
#define LANES    RWLOCK_LANES   /* readers may be in lanes */
#define CLOSING  RWLOCK_CLOSING /* with LANES: they are being counted */
#define PASS     RWLOCK_PASS    /* readers pass writers that wait: constant */
#define DIED     (1u << 31) /* a writer died, or was given up; until vigil_rwlock_consistent */

/* What a thread wants, or has. Also lock_kind's `argument`. */
enum share { TO_READ = READER, TO_WRITE = WRITER };
_Static_assert((WRITER | READERS) == HOLD_RWLOCK, "as an observer reads the word");
_Static_assert(READER == HOLD_READER, "as in holds");

/* Changing the word. */

static struct hold rwlock_change_of(uint32_t given, uint32_t taken) {
    return (struct hold){.kind = SLOT_RWLOCK, .given = given, .taken = taken};
}

/* The same for a holder that may have been robbed; number 0: it cannot have been. */
static struct hold rwlock_change_by(uint32_t number, uint32_t given, uint32_t taken) {
    return (struct hold){.kind = SLOT_RWLOCK, .given = given, .taken = taken, .number = number};
}

/* VIGIL_OK; VIGIL_NOT_EQUAL: the word differs and is in `seen`; in a segment, also other statuses of hold_change. */
static int rwlock_change(uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold) {
    return hold_change_or_cas(segment_of(word), word, seen, to, hold);
}

static int rwlock_change_when_locked(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold) {
    if (is_shared(lot)) return hold_change_locked(lot, word, to, hold);
    return prim_cas_release(word, seen, to) ? VIGIL_OK : VIGIL_NOT_EQUAL;
}

/* Looking at the line, under the lock of its bucket. */

struct rwlock_update {
    struct lot *lot;
    uint32_t *word;
    uint32_t held, kept;   /* by us until now, and from now on */
    uint32_t number;       /* by which we hold it: see rwlock_number; 0: whatever it is */
    uint32_t died;         /* DIED, if we leave in place of a writer that has ended */
    bool drop_reservation; /* drop the reservation */
    bool gave_up;          /* a waiter has left the line: drop it if that was the last one */
    bool if_still_saved;   /* if it is not SAVED any more, another thread has updated the line */
    bool over;
    uint32_t now;           /* the word without flags, after this change */
    bool pass;              /* readers may have it although a writer is before them in line */
    bool any, writer, loop; /* have been called */
};
_Static_assert(sizeof(struct rwlock_update) <= RECOVERY_CALL_BYTES, "it must fit");

static bool rwlock_holds(uint32_t seen, uint32_t share) {
    return share == TO_READ ? seen & READERS : (seen & share) == share;
}

static bool rwlock_writes(const struct slot *slot) {
    return slot->wants == TO_WRITE;
}

static bool rwlock_lets_readers_pass(uint32_t seen) {
    return (seen & PASS) && !BUG(rwlock_pass_ignored);
}

/* A waiter that, when called, comes and sets WAITERS. */
static bool rwlock_is_thread_here(const struct rwlock_update *update, const struct slot *slot) {
    return !is_shared(update->lot) && slot->kind != SLOT_PLAIN && !slot->seat;
}

static uint32_t rwlock_flags_for(const struct rwlock_update *update, uint32_t seen, const struct slot *head,
                                 bool entitled) {
    uint32_t reserved = update->drop_reservation ? 0 : seen & RESERVED;
    if (!head) return update->gave_up && !BUG(rwlock_reserved_for_nobody) ? 0 : reserved;
    if (update->now & WRITER) return WAITERS;
    if (update->now && rwlock_writes(head)) return WAITERS | (update->pass ? 0 : SAVED);
    return (rwlock_is_thread_here(update, head) ? 0 : WAITERS) | (reserved || entitled ? RESERVED : 0);
}

static bool rwlock_is_entitled(const struct rwlock_update *update, const struct slot *head) {
    if (!head || head->kind == SLOT_PLAIN) return false;
    bool is_awake = rwlock_is_thread_here(update, head) && prim_load_relaxed(&head->state) == SLOT_WAITING;
    return is_awake || lock_may_reserve(head);
}

/* The flags that an update leaves as they are. A segment has no lanes: there only damage says so, and it ends here. */
static uint32_t rwlock_kept(const struct rwlock_update *update) {
    return is_shared(update->lot) ? PASS | DIED : PASS | DIED | LANES | CLOSING;
}

static bool rwlock_begin(uint32_t *word, const struct slot *head, void *context) {
    struct rwlock_update *update = context;
    (void)word;
    bool entitled = rwlock_is_entitled(update, head);
    uint32_t seen = prim_load_relaxed(update->word), flags;
    int status;
    do {
        update->over = !rwlock_holds(seen, update->held) || (update->if_still_saved && !(seen & SAVED));
        if (update->over) return false;
        update->now = (seen & (WRITER | READERS)) - update->held + update->kept;
        update->pass = rwlock_lets_readers_pass(seen);
        flags = rwlock_flags_for(update, seen, head, entitled);
        uint32_t to = update->now | flags | (seen & rwlock_kept(update)) | update->died;
        status = rwlock_change_when_locked(update->lot, update->word, &seen, to,
                                           rwlock_change_by(update->number, update->held, update->kept));
    } while (status == VIGIL_NOT_EQUAL);
    update->over = status != VIGIL_OK;
    if (update->over) return false;
    if (update->held) PROBE(lock_released, update->word);
    if (update->held && (flags & RESERVED)) PROBE(lock_reserved, update->word);
    return true;
}

/* Together with the holders and the waiters that have been called. */
static bool rwlock_can_have(const struct rwlock_update *update, const struct slot *slot) {
    if (update->now & WRITER) return false;
    return rwlock_writes(slot) ? !update->now && !update->any : !update->writer;
}

static uint32_t rwlock_call(const struct slot *slot, void *context) {
    struct rwlock_update *update = context;
    bool plain = slot->kind == SLOT_PLAIN; /* waits in its own way: no keeper guards a called loop for it */
    if (!rwlock_can_have(update, slot)) {
        if (plain && update->loop) return VIGIL_OK;
        return update->pass && !update->writer && !(update->now & WRITER) ? LOT_SKIP : LOT_STAY;
    }
    if (plain) return VIGIL_OK;
    update->any = true;
    update->writer |= rwlock_writes(slot);
    update->loop |= slot->seat != 0;
    return SLOT_CALLED;
}

static const struct lot_release rwlock_releasing = {rwlock_begin, rwlock_call, NULL, NULL};

static void rwlock_update_line(struct rwlock_update update) {
    if (!(prim_load_relaxed(update.word) & (WAITERS | RESERVED))) return;
    update.lot = lot_for(update.word);
    if (update.lot) lot_call(update.lot, update.word, &rwlock_releasing, &update);
}

/* A process has died. */

static bool rwlock_begin_afresh(uint32_t *word, const struct slot *head, void *context) {
    *(struct rwlock_update *)context =
        (struct rwlock_update){.lot = lot_for(word), .word = word, .drop_reservation = true};
    return rwlock_begin(word, head, context);
}

const struct lot_release rwlock_recovery = {rwlock_begin_afresh, rwlock_call, NULL, NULL};

uint32_t rwlock_give_back(uint32_t seen, uint32_t held) {
    return (seen - held) | (held & WRITER ? DIED : 0);
}

/* The kind. */

static bool rwlock_may_take(uint32_t seen, uint32_t share, enum lock_privilege privilege) {
    if ((seen & WRITER) || (share == TO_WRITE && (seen & (READERS | LANES)))) return false;
    uint32_t readers = BUG(lanes_not_passed) ? READERS : READERS | LANES;
    if (share == TO_READ && (seen & readers) && rwlock_lets_readers_pass(seen)) return true;
    if (seen & SAVED) return privilege == CALLED || privilege == BESIDE || BUG(rwlock_readers_pass);
    return !(seen & RESERVED) || privilege == CALLED;
}

static int rwlock_taken(uint32_t seen) {
    return seen & DIED ? VIGIL_OWNER_DIED : VIGIL_OK;
}

static void rwlock_decline(uint32_t *word) {
    rwlock_update_line((struct rwlock_update){.word = word, .drop_reservation = true});
}

static void rwlock_close_lanes(uint32_t *word);

/* Whether readers may be in lanes, and this copy of the library can use them. */
static bool rwlock_has_lanes(const uint32_t *word, uint32_t seen) {
    return PRIM_LANES && (seen & LANES) && !segment_of(word) && lot_private();
}

/* A writer closes the lanes before it looks at the word. */
static uint32_t rwlock_look(uint32_t *word, uint32_t seen, uint32_t share) {
    while (share == TO_WRITE && !(seen & CLOSING) && rwlock_has_lanes(word, seen)) {
        rwlock_close_lanes(word);
        seen = prim_load_relaxed(word);
    }
    return seen;
}

static int rwlock_take(uint32_t *word, uint32_t share, enum lock_privilege privilege, uint32_t *result) {
    bool came = privilege != NEWCOMER && !segment_of(word) && !BUG(rwlock_comes_silently);
    uint32_t seen = prim_load_relaxed(word), others = came ? WAITERS : 0;
    int status = VIGIL_NOT_EQUAL;
    while (status == VIGIL_NOT_EQUAL) {
        seen = rwlock_look(word, seen, share);
        if (rwlock_may_take(seen, share, privilege)) {
            status = rwlock_change(word, &seen, ((seen & ~RESERVED) + share) | others, rwlock_change_of(0, share));
            if (status != VIGIL_OK) continue;
            bool further = share == TO_READ && privilege != NEWCOMER && !BUG(rwlock_not_further);
            if (further) rwlock_update_line((struct rwlock_update){.word = word});
            return rwlock_taken(seen);
        }
        *result = seen | WAITERS;
        status = *result == seen ? VIGIL_OK : rwlock_change(word, &seen, *result, rwlock_change_of(0, 0));
        if (status == VIGIL_OK) return VIGIL_PENDING;
    }
    if (privilege != NEWCOMER) rwlock_decline(word); /* we were called, and cannot have the lock */
    return status;
}

int rwlock_read_again(vigil_rwlock *lock) {
    uint32_t seen = prim_load_relaxed(&lock->word);
    int status = VIGIL_NOT_EQUAL;
    while (status == VIGIL_NOT_EQUAL && (seen & READERS) && !(seen & WRITER)) {
        status = rwlock_change(&lock->word, &seen, seen + READER, rwlock_change_of(0, TO_READ));
    }
    return status == VIGIL_OK ? rwlock_taken(seen) : status;
}

static bool rwlock_reserved(uint32_t seen) {
    return seen & RESERVED;
}

/* Readers hold it and new ones may keep coming in for ever: a waiting writer has to stop them. */
static bool rwlock_readers_may_pass(uint32_t seen) {
    uint32_t readers = BUG(lanes_never_saved) ? READERS : READERS | LANES;
    return (seen & readers) && !(seen & (WRITER | SAVED)) && !rwlock_lets_readers_pass(seen);
}

static uint64_t rwlock_patience_ns(uint32_t seen) {
    return rwlock_reserved(seen) || rwlock_readers_may_pass(seen) ? PATIENCE_NS : PRIM_NEVER;
}

static void rwlock_waited(uint32_t *word, uint32_t seen) {
    if (rwlock_readers_may_pass(seen) && !BUG(rwlock_never_saved))
        rwlock_update_line((struct rwlock_update){.word = word});
}

/* SAVED was set for the writer that was the head of the line: another waiter may be before it now. Where readers pass:
 * see FASTER above. */
static void rwlock_joined(uint32_t *word, uint32_t seen) {
    if ((seen & SAVED) && !BUG(rwlock_saved_for_another))
        rwlock_update_line((struct rwlock_update){.word = word, .if_still_saved = true});
    if ((seen & (READERS | LANES)) && rwlock_lets_readers_pass(seen) && !BUG(rwlock_readers_left))
        rwlock_update_line((struct rwlock_update){.word = word});
}

static void rwlock_left(uint32_t *word) {
    if (!BUG(rwlock_left_silently)) rwlock_update_line((struct rwlock_update){.word = word, .gave_up = true});
}

static const struct lock_kind rwlock_locking;

static bool rwlock_recovered(uint32_t *word) {
    return lock_recovered(&rwlock_locking, word, RESERVED | SAVED);
}

/* Unlocking. */

/* There may be waiters, and we are the last holder that they wait for. */
static bool rwlock_must_update(uint32_t seen, uint32_t held) {
    if ((seen & PASS) && BUG(rwlock_writer_forgotten)) return false;
    return (seen & WAITERS) && !(held == TO_READ && (seen & READERS) >= 2 * READER);
}

struct rwlock_end {
    uint32_t held, kept, died, number; /* as in struct rwlock_update */
};

/* Whether a reader has left without the count. */
static bool rwlock_leave_lane(uint32_t *word, uint32_t *seen) {
    while (rwlock_has_lanes(word, *seen)) {
        if (lanes_leave(word)) return true;
        *seen = prim_load_relaxed(word); /* a closer that has emptied the place has added to it before */
        if ((*seen & READERS) || !(*seen & LANES)) return false;
        if (lanes_leave_by_any(word)) return true;
        rwlock_close_lanes(word);
        prim_pause();
        *seen = prim_load_relaxed(word);
    }
    return false;
}

/* As the last to leave. VIGIL_NOT_EQUAL: a reader's unit of the count has gone; it may have a place instead. */
static int rwlock_leave_and_call(uint32_t *word, struct rwlock_end end) {
    struct lot *lot = lot_for(word);
    if (!lot) return lot_missing(word);
    struct rwlock_update update = {
        .lot = lot, .word = word, .held = end.held, .kept = end.kept, .died = end.died, .number = end.number};
    lot_call(lot, word, &rwlock_releasing, &update);
    if (!update.over) return VIGIL_OK;
    bool may_have_place = end.held == TO_READ && !is_shared(lot) && !BUG(lanes_not_searched);
    return may_have_place ? VIGIL_NOT_EQUAL : VIGIL_ENOTHELD;
}

static int rwlock_unlock(uint32_t *word, struct rwlock_end end) {
    uint32_t held = end.held, kept = end.kept, died = end.died;
    for (;;) {
        uint32_t seen = prim_load_relaxed(word);
        if (held == TO_READ && rwlock_leave_lane(word, &seen)) return VIGIL_OK;
        if (!rwlock_holds(seen, held)) return VIGIL_ENOTHELD;
        bool update = rwlock_must_update(seen, held) && !(died && BUG(rwlock_abandoned_silently));
        int status = update ? rwlock_leave_and_call(word, end)
                            : rwlock_change(word, &seen, (seen - held + kept) | died,
                                            rwlock_change_by(end.number, held, kept));
        if (status != VIGIL_NOT_EQUAL) return status;
    }
}

static void rwlock_close_lanes(uint32_t *word) {
    if (!lanes_close(word)) return;
    if (BUG(lanes_left_silently)) prim_fetch_add_acq_rel(word, 0u - READER);
    else rwlock_unlock(word, (struct rwlock_end){.held = TO_READ}); /* V7 in lanes.h */
}

static int rwlock_check_and_unlock(vigil_rwlock *lock, struct rwlock_end end) {
    int error = check_address(lock, sizeof lock->word);
    if (error) return error;
    tsan_release(&lock->word);
    return rwlock_unlock(&lock->word, end);
}

/* Before a reader leaves: whether it has left by its own place. If it is counted, and meets others, lanes may pay. */
static bool rwlock_leave_soon(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    if ((seen & LANES) && !segment_of(word)) {
        tsan_release(word);
        return lanes_leave(word);
    }
    if ((seen & READERS) >= 2 * READER) lanes_meet(word);
    return false;
}

int vigil__rwlock_read_unlock_slowly(vigil_rwlock *lock) {
    bool aligned = check_address(lock, sizeof lock->word) == VIGIL_OK;
    if (PRIM_LANES && aligned && rwlock_leave_soon(&lock->word)) return VIGIL_OK;
    return rwlock_check_and_unlock(lock, (struct rwlock_end){.held = TO_READ});
}

int vigil__rwlock_write_unlock_slowly(vigil_rwlock *lock) {
    return rwlock_check_and_unlock(lock, (struct rwlock_end){.held = TO_WRITE});
}

int vigil_rwlock_downgrade(vigil_rwlock *lock) {
    if (BUG(rwlock_downgrade_in_two)) {
        vigil__rwlock_write_unlock_slowly(lock);
        return vigil_rwlock_read_lock(lock);
    }
    return rwlock_check_and_unlock(lock, (struct rwlock_end){.held = TO_WRITE, .kept = TO_READ});
}

int rwlock_write_abandon_by(vigil_rwlock *lock, uint32_t number) {
    return rwlock_check_and_unlock(lock, (struct rwlock_end){.held = TO_WRITE, .died = DIED, .number = number});
}

int vigil_rwlock_write_abandon(vigil_rwlock *lock) {
    if (!BUG(rwlock_abandoned_in_two)) return rwlock_write_abandon_by(lock, 0);
    int status = rwlock_check_and_unlock(lock, (struct rwlock_end){.held = TO_WRITE});
    if (status == VIGIL_OK) prim_fetch_or_acq_rel(&lock->word, DIED);
    return status;
}

int rwlock_consistent_by(vigil_rwlock *lock, uint32_t number) {
    int error = check_address(lock, sizeof lock->word);
    if (error) return error;
    uint32_t *word = &lock->word, seen = prim_load_relaxed(word);
    int status = VIGIL_NOT_EQUAL;
    while (status == VIGIL_NOT_EQUAL) {
        if (!(seen & WRITER)) return VIGIL_ENOTHELD;
        if (!(seen & DIED)) return VIGIL_EINVAL;
        status = rwlock_change(word, &seen, seen & ~DIED, rwlock_change_by(number, WRITER, WRITER));
    }
    return status;
}

int vigil_rwlock_consistent(vigil_rwlock *lock) {
    return rwlock_consistent_by(lock, 0);
}

/* Of holders that can be robbed. */

int rwlock_steal(vigil_rwlock *lock) {
    int error = check_address(lock, sizeof lock->word);
    if (error) return error;
    if (!segment_of(&lock->word)) return VIGIL_EINVAL;
    hold_recovered(&lock->word); /* so that the death of a holder is told */
    uint32_t seen, keep = WAITERS | PASS | DIED;
    int status = hold_steal(lot_for(&lock->word), &lock->word, &seen, keep, rwlock_change_of(0, TO_WRITE));
    return status == VIGIL_OK ? rwlock_taken(seen) : status;
}

uint32_t rwlock_number(void) {
    return prim_self()->hold_number;
}

bool rwlock_is_held_by(vigil_rwlock *lock, uint32_t number) {
    return hold_is_ours(lot_for(&lock->word), &lock->word, number);
}

int rwlock_read_unlock_by(vigil_rwlock *lock, uint32_t number) {
    return rwlock_check_and_unlock(lock, (struct rwlock_end){.held = TO_READ, .number = number});
}

int rwlock_write_unlock_by(vigil_rwlock *lock, uint32_t number) {
    return rwlock_check_and_unlock(lock, (struct rwlock_end){.held = TO_WRITE, .number = number});
}

/* Blocking. */

static int rwlock_try_once(uint32_t *word, uint32_t share) {
    uint32_t seen = rwlock_look(word, prim_load_relaxed(word), share);
    while (rwlock_may_take(seen, share, NEWCOMER)) {
        int status = rwlock_change(word, &seen, seen + share, rwlock_change_of(0, share));
        if (status == VIGIL_NOT_EQUAL) continue;
        if (status != VIGIL_OK) return status;
        lock_taken(word);
        return rwlock_taken(seen);
    }
    return VIGIL_TIMED_OUT;
}

static bool rwlock_may_spin(uint32_t seen) {
    return !(seen & (RESERVED | SAVED));
}

static int rwlock_spin_to_take(uint32_t *word, uint32_t share) {
    if (!segment_of(word)) spin_stand_aside();
    return lock_spin_to_take(&rwlock_locking, word, share, PRIM_SPIN_LOCK, rwlock_may_spin);
}

static const struct lock_kind rwlock_locking = {.slot = SLOT_RWLOCK,
                                                .take = rwlock_take,
                                                .reserved = rwlock_reserved,
                                                .patience_ns = rwlock_patience_ns,
                                                .waited = rwlock_waited,
                                                .decline = rwlock_decline,
                                                .granted = lock_granted,
                                                .joined = rwlock_joined,
                                                .left = rwlock_left,
                                                .try_once = rwlock_try_once,
                                                .spin_to_take = rwlock_spin_to_take,
                                                .recovered = rwlock_recovered};

static int rwlock_lock_slowly(vigil_rwlock *lock, enum share share, int64_t timeout_ns) {
    int error = check_address(lock, sizeof lock->word);
    if (error) return error;
    uint32_t *word = &lock->word;
    if (share == TO_READ && !segment_of(word) && lanes_enter(word)) return lock_taken(word);
    if (share == TO_READ && (prim_load_relaxed(word) & TOO_MANY)) return VIGIL_ELIMIT;
    return lock_slowly(&rwlock_locking, word, share, timeout_ns);
}

int vigil__rwlock_read_lock_slowly(vigil_rwlock *lock, int64_t timeout_ns) {
    return rwlock_lock_slowly(lock, TO_READ, timeout_ns);
}

int vigil__rwlock_read_lock_miscounted(vigil_rwlock *lock, int64_t timeout_ns) {
    if (lock && !BUG(rwlock_counted_in_error)) rwlock_unlock(&lock->word, (struct rwlock_end){.held = TO_READ});
    return rwlock_lock_slowly(lock, TO_READ, timeout_ns);
}

int vigil__rwlock_write_lock_slowly(vigil_rwlock *lock, int64_t timeout_ns) {
    return rwlock_lock_slowly(lock, TO_WRITE, timeout_ns);
}

/* The inline functions, for callers that cannot inline them. */

int vigil_rwlock_read_lock_for(vigil_rwlock *lock, int64_t timeout_ns) {
    int error = check_address(lock, sizeof lock->word);
    if (error) return error;
    bool shared = prim_load_relaxed(&vigil__holder) / SEGMENT_HOLDER;
    if (shared || (prim_load_relaxed(&lock->word) & LANES)) return rwlock_lock_slowly(lock, TO_READ, timeout_ns);
    uint32_t seen = prim_fetch_add_acq_rel(&lock->word, READER), told = BUG(rwlock_abandoned_unread) ? 0 : DIED;
    if (!(seen & (WRITER | RESERVED | SAVED | TOO_MANY | told))) return lock_taken(&lock->word);
    return vigil__rwlock_read_lock_miscounted(lock, timeout_ns);
}

int vigil_rwlock_read_lock(vigil_rwlock *lock) {
    return vigil_rwlock_read_lock_for(lock, VIGIL_FOREVER);
}

int vigil_rwlock_read_lock_until(vigil_rwlock *lock, int64_t deadline_ns) {
    return vigil_rwlock_read_lock_for(lock, vigil_until(deadline_ns));
}

int vigil_rwlock_read_trylock(vigil_rwlock *lock) {
    return vigil__rwlock_read_lock_slowly(lock, 0);
}

int vigil_rwlock_read_unlock(vigil_rwlock *lock) {
    int error = check_address(lock, sizeof lock->word);
    if (error) return error;
    uint32_t seen = prim_load_relaxed(&lock->word);
    bool counted = (seen & READERS) && !(seen & (WAITERS | LANES));
    if (!counted || prim_load_relaxed(&vigil__holder) / SEGMENT_HOLDER) return vigil__rwlock_read_unlock_slowly(lock);
    tsan_release(&lock->word);
    return prim_cas_release(&lock->word, &seen, seen - READER) ? VIGIL_OK : vigil__rwlock_read_unlock_slowly(lock);
}

int vigil_rwlock_write_lock(vigil_rwlock *lock) {
    return vigil__rwlock_write_lock_slowly(lock, VIGIL_FOREVER);
}

int vigil_rwlock_write_lock_for(vigil_rwlock *lock, int64_t timeout_ns) {
    return vigil__rwlock_write_lock_slowly(lock, timeout_ns);
}

int vigil_rwlock_write_lock_until(vigil_rwlock *lock, int64_t deadline_ns) {
    return vigil_rwlock_write_lock_for(lock, vigil_until(deadline_ns));
}

int vigil_rwlock_write_trylock(vigil_rwlock *lock) {
    return vigil__rwlock_write_lock_slowly(lock, 0);
}

int vigil_rwlock_write_unlock(vigil_rwlock *lock) {
    return vigil__rwlock_write_unlock_slowly(lock);
}

/* Asynchronous. */

static int rwlock_start(vigil_agent *agent, vigil_request *request, vigil_rwlock *lock, enum share share,
                        int64_t timeout_ns, vigil_callback *callback) {
    uint32_t *word = (uint32_t *)(void *)lock; /* not checked yet */
    return request_start_again(agent, request, &rwlock_locking, word, share, timeout_ns, callback);
}

int vigil_rwlock_read_lock_async(vigil_agent *agent, vigil_request *request, vigil_rwlock *lock, int64_t timeout_ns,
                                 vigil_callback *callback) {
    bool aligned = check_address(lock, sizeof lock->word) == VIGIL_OK;
    if (aligned && (prim_load_relaxed(&lock->word) & TOO_MANY)) return VIGIL_ELIMIT;
    return rwlock_start(agent, request, lock, TO_READ, timeout_ns, callback);
}

int vigil_rwlock_write_lock_async(vigil_agent *agent, vigil_request *request, vigil_rwlock *lock, int64_t timeout_ns,
                                  vigil_callback *callback) {
    return rwlock_start(agent, request, lock, TO_WRITE, timeout_ns, callback);
}
