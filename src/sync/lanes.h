/* SPDX-License-Identifier: MIT */
/*
 * lanes.h - readers that do not share a cache line.
 *
 * A reader that is counted in the word takes its cache line from all others. So a lock that several threads read at the
 * same time says LANES, and then a reader stores the address of the lock in a lane instead: a cache line that, as a
 * rule, only its own thread uses. A writer closes the lanes first: it counts the readers that it finds there, and from
 * then on the lock is as any other. (The idea is from Dice and Kogan: BRAVO, USENIX ATC 2019. There a writer waits for
 * the readers that it finds, which an event loop may not do.)
 *
 * Each reader inside has one token: a unit of the count, or a place in a lane. It does not matter whose token a reader
 * takes away when it leaves. So a lock that was read-locked on one thread can be unlocked on another.
 *
 *     a reader                                        the closer: a writer that has found LANES, and not CLOSING
 *     R1  load the word: LANES and no other flag      V1  CAS the word: set CLOSING, add a READER    (seq_cst)
 *     R2  CAS place: 0 -> lock         (seq_cst)      V2  for each place of all lanes: load          (seq_cst)
 *     R3  load the word: as R1         (seq_cst)          if it has the lock:
 *         yes: it reads                               V3      add a READER to the word
 *     R4  no: CAS place: lock -> 0, and wait          V4      CAS place: lock -> 0; if that fails, it is an error
 *         as others do. If that fails, it reads       V5  take back the READERs that were errors
 *                                                     V6  clear LANES and CLOSING                    (acq_rel)
 *                                                     V7  leave as a reader
 *
 * A WRITER IS ALONE. It takes the lock only if the word has neither LANES nor readers. Let V6 be the last one before
 * that. A reader whose R3 comes before V1 in the single order S of seq_cst operations has done R2 before: so V2 sees
 * its place, unless it has left, and counts it. (The closer knows of its lane: the reader has seen lanes_used beyond
 * it, in S, before R2.) A reader whose R3 comes after V1 sees CLOSING, or what came later, and does not read. (If it
 * sees LANES once more, there was a V6 in between, and R3 sees all that was done before.) So at V6 each reader inside
 * is counted; and the closer too, which therefore leaves as the last reader would.
 *
 * R4 fails if the place has been emptied (it may have another lock by now): a closer has counted this reader, or a
 * reader that was counted has left by that place. In both cases there is a unit of the count for it, and so no writer.
 * The reader loads the place once more, to acquire: all changes of a place are read-modify-writes, so it sees what the
 * one that has emptied it had seen.
 *
 * A READER LEAVES by its own place, if that has the lock, or the count, if that is not zero, or else any place. LANES
 * is set until V6. So even if the count becomes zero meanwhile, because a reader whose place V2 has not come to has
 * left by the closer's unit, no writer comes in. When all places have been counted, the count is the readers, the
 * closer and the errors: until then, a reader may have left by any of these units. So they are taken back only then. A
 * reader that finds no token may have missed one that moved: it closes the lanes, and then the count tells. While
 * another thread closes them there is at least one token, so the reader only has to search again.
 *
 * NO WAITER IS FORGOTTEN. Places say nothing of waiters, and readers that leave by one do not look. A writer joins the
 * line only after LANES was cleared, or while CLOSING is set, and the closer leaves as a reader does: if it is the last
 * one, it updates the line. Waiters that were in line already when LANES was set are the business of a thread that was
 * called and has yet to come (rwlock.c): if that is a writer, it closes the lanes; if it is a reader, it is counted.
 *
 * WHAT WAS READ AND WRITTEN. R3 reads a word that a writer's release has led to by read-modify-writes alone, and so
 * sees what the writer did. A reader leaves a place by a CAS that releases. Either V2 sees that, or V4 fails, and then
 * the closer loads the place once more, to acquire. V1 to V7 are in the past of the writer that takes the lock.
 *
 * LANES is set by a counted reader that has met others, if the word has no other flag. Closing takes the writer some
 * time, so the lanes rest before that (LANES_REST in base/tuning.h). In a segment there are no lanes: a process may
 * die.
 *
 * The lanes are in the lot, so that all copies of the library share them. When a thread ends another one can have its
 * lane, in which the locks that it still reads keep their places. In the child of a fork each place becomes a unit of
 * the count (lot/private.c): what threads held that do not exist there stays held, until the lock is reset; and if such
 * a thread was closing the lanes of a lock at that moment, as was a reader that is counted in error, its unit stays,
 * too.
 */
#ifndef VIGIL_SYNC_LANES_H
#define VIGIL_SYNC_LANES_H

#include "lot/lot.h"

/* The word of a read-write lock: vigil/rwlock.h. */
#define RWLOCK_READER  LOT_LANE_READER
#define RWLOCK_READERS 0x0ffffff0u
#define RWLOCK_LANES   LOT_LANES_OPEN
#define RWLOCK_CLOSING (1u << 29)
#define RWLOCK_PASS    (1u << 30)

/* For a thread that has no lane yet. Null: this copy of the library cannot use them. */
struct lot_lane *lanes_new(void);

/* The place of this thread for that lock. Other threads use it too if there are more threads than lanes. */
static inline uint64_t *lanes_place(const uint32_t *word) {
    struct lot_lane *lane = prim_self()->lane ? prim_self()->lane : lanes_new();
    uint64_t hash = (uintptr_t)word / sizeof *word * UINT64_C(0x9e3779b97f4a7c15);
    return lane ? &lane->locks[(hash >> 32) % PRIM_LANE_PLACES] : NULL;
}

/* No flag but LANES, and what is constant. */
static inline bool lanes_are_open(uint32_t seen) {
    return (seen & ~(RWLOCK_READERS | RWLOCK_PASS)) == RWLOCK_LANES;
}

/* R1 to R4: whether the caller reads now. If not, nothing has changed. */
static inline bool lanes_enter(uint32_t *word) {
    if (!PRIM_LANES || !lanes_are_open(prim_load_relaxed(word))) return false; /* R1 */
    uint64_t lock = (uintptr_t)word, expected = 0, *place = lanes_place(word);
    if (!place || prim_load_relaxed(place) || !prim_cas_seq_cst(place, &expected, lock)) return false; /* R2 */
    if (lanes_are_open(prim_load_seq_cst(word)) || BUG(lanes_not_checked)) return true;                /* R3 */
    expected = lock;
    if (prim_cas_acq_rel(place, &expected, (uint64_t)0)) return false; /* R4 */
    if (!BUG(lanes_not_acquired)) prim_load_acquire(place);
    return true;
}

/* A reader leaves by that place. If not, the caller sees what was done before the place was emptied: V3. */
static inline bool lanes_leave_by(uint64_t *place, uint64_t lock) {
    if (prim_load_relaxed(place) == lock && prim_cas_release(place, &lock, (uint64_t)0)) return true;
    prim_load_acquire(place);
    return false;
}

/* By its own place; by any, of a lock whose word says LANES. False: the lock is not there. */
static inline bool lanes_leave(const uint32_t *word) {
    uint64_t *place = lanes_place(word);
    return place && lanes_leave_by(place, (uintptr_t)word);
}
bool lanes_leave_by_any(const uint32_t *word);

/* The caller is a counted reader, and meets others: perhaps open the lanes. */
void lanes_meet(uint32_t *word);

/* V1 to V6. True: the caller must leave as a reader (V7). False: another thread was faster. */
bool lanes_close(uint32_t *word);

#endif
