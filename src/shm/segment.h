/* SPDX-License-Identifier: MIT */
/*
 * segment.h - segments inside: the file, and the processes that use it.
 *
 * THE FILE
 *
 *     0            header     what it is and where everything lies: written once, then constant; behind it the length
 *     buckets_at   buckets    the lot: the lines of waiters on words of this segment (lot/shared.h)
 *     members_at   members    one row of 64 bytes for each process
 *     claims_at    claims     the owner of each slot
 *     slots_at     slots
 *     events_at    events     the last events, while an observer records them (events.h)
 *     user_at      the user's bytes, up to `length` now and `max_length` ever; the file ends with them
 *
 * All of it follows from four numbers, members, waiters, buckets and max_length, so a header is right if its layout is
 * the one that format_layout() computes. Members, claims, slots and events have memory as far as they have been needed
 * so far (backing.h). A process that opens a file copies the constant part once, checks the copy, and from then on
 * uses the copy.
 *
 * LIFE OF THE FILE. SIGKILL may come between any two lines.
 *
 *     draft      no name leads to it. Its maker fills it in and becomes its first member.
 *                  Killed: the kernel frees it. (Where O_TMPFILE is refused, a hidden temporary name stays behind.)
 *     linked     complete, with the one step that gives it its name; of several makers one wins that step.
 *     unlinked   the members keep it; gone when the last of them has left or died.
 *
 * Anonymous files stay drafts. A name may be unlinked at any time, or only if no process has the file open:
 *
 *     U1  lock the door (below)
 *     U2  if no process has a lock on it, unlink      a process that has found the name before, and joins now, finds
 *     U3  unlock the door                             that it leads elsewhere, leaves, and looks for the name again
 *
 * The file never becomes shorter. To grow it:
 *
 *     G1  extend the file to the new length           by fallocate, which never shortens, also if others grow it too
 *     G2  CAS the length in the header (seq_cst)
 *                  Killed after G1: bytes that are not counted yet; the next G1 finds them.
 *
 * So a process that reads a length may touch that many bytes; and a process that opens the file reads the length
 * before the file's size.
 *
 * NUMBERS. A process has the same number in all its segments: 25 random bits, never zero, drawn when it opens a
 * segment and has no other. Whatever a process owns in a segment, such as a lock, carries that number, which is in
 * the member's row as well. A number that is in no member's row is that of a process that has died or left: so
 * a row can be used again at once. A process that leaves one of its segments and comes back has the same number
 * there; its incarnation (format.h) tells its new slots from its old ones, so that a process that cleans up after the
 * old member cannot mistake one for the other. A process that finds its own number taken in a segment, which happens
 * once in 2^26 times, draws another one if it has no segment yet, and otherwise cannot open it.
 *
 * LIFE OF A MEMBER'S ROW. The truth is a kernel lock on a byte of the file for each row (far beyond the
 * content), held through the open file description of the process that has the row. The kernel drops it when the
 * process ends, however it ends, and whatever namespace it is in; a process that is stopped keeps it.
 *
 *     lock    life                  means
 *     free    generation, 0         free: never used, or its member has left
 *     held    generation, 0         joining, not yet a member; or leaving, not any more
 *     held    generation, JOINED    member
 *     free    generation, JOINED    its member is dead
 *
 *     J0  lock the door, another byte, waiting     killed: unlocked again
 *     J1  lock the byte, without waiting           killed: as it was before
 *     J2  store pid, name, number, relay ...       killed: as it was before, or a number that no member has
 *     J3  store the next generation, JOINED        killed: dead, and all processes can see it
 *     J4  unlock the door, and poke the keeper     killed: dead, and the door unlocked
 *         that must watch this member
 *     L1  store the same generation, without       killed: left
 *     L2  unlock the byte                          killed: left
 *     D1  count the death of a member that is dead, and still JOINED     killed: it is counted again, which is harmless
 *     D2  CAS: the same generation, without                              killed: left. Fails: another process did it
 *         count it once more: a process that has seen the first count may have looked before D2
 *
 * Apart from D1 and D2, only the process that holds the lock stores into a row, except for its relay, and except
 * for a joiner that finds no other member alive (below); and no kill leaves a row half done. A joiner takes the
 * first row of which it gets the lock, be it free or dead; if it is dead, the joiner does D1 and D2 before J2. A
 * living member's lock is held as long as its row says JOINED: so a process that finds JOINED, then no lock, and
 * then, by D2, the same life as before, knows that this generation is dead, and has struck it off. Striking off takes
 * no kernel lock, which the threads of one process would share. If another process strikes off the dead member while
 * a joiner that replaces it is between J1 and J3, J3 stores the same. The other way round, a dead member passes for
 * alive while a joiner that has its lock is between J1 and J3: for an instant, unless the joiner is stopped just
 * then.
 *
 * What the dead member did is visible to a process that finds its lock free, through the kernel; and, since all
 * processes load `life` with acquire, and J3, L1 and D2 store it with release or more, to all that find it gone. So
 * is the count of D1: see segment_deaths.
 *
 * A joiner that finds, with the door locked, no other member alive empties the lot: so whatever earlier members have
 * left there is gone, and nothing in the lot is believed that no living process has written.
 *
 * The mapping holds on to the open file description as the descriptor does, and a forked child has both. So the child
 * drops them at once (memory/segment.c, in_child), and no thread may open or close a segment, or unlink a name by U1
 * to U3, while another thread forks: `gate`. A process that is killed before its child has dropped them passes for
 * alive until then. Other processes are only given descriptors of another description. Exec drops both.
 *
 * A process is a member once: opening a segment that is open already counts the open, and returns the same buffer.
 *
 * WHERE IT IS DONE
 *
 *     format.c            the layout, the header, and the checks of a header
 *     backing.c           memory for members, slots and events
 *     table.c             which segments this process has open
 *     member.c            the members' rows: J0 to J4, L1 and L2, D1 and D2
 *     events.c            the events
 *     memory/segment.c    drafts, names and descriptors, mapping, growing, fork: what the public functions do
 *
 * The lot of a segment (lot/shared.h) uses src/shm, and src/memory uses both. So the files of src/shm include only
 * each other, src/prim, the public headers, and from src/base the buffer that a segment contains.
 */
#ifndef VIGIL_SHM_SEGMENT_H
#define VIGIL_SHM_SEGMENT_H

#include "base/buffer.h"
#include "format.h"

/* A segment that this process, or an observer in it, has open. */
struct segment {
    struct vigil_buffer buffer; /* what the user has */
    unsigned char *base;        /* the file, mapped up to layout.end */
    struct segment_layout layout;
    uint64_t device, inode; /* which file it is */
    int fd;                 /* its description holds our row's lock; -1 in the child of a fork */
    uint32_t members;       /* rows */
    uint32_t self;          /* the index of our row; an observer has none: UINT32_MAX */
    uint32_t opens;         /* under the gate: how many times the user has opened it */
    char label[SEGMENT_LABEL_BYTES];
    struct lot *lot; /* null until it is needed: see lot/shared.h */
    uint32_t found_mask;
    uint32_t found[]; /* atomic: the rows of members, hashed by their numbers: see segment_find_member */
};

static inline struct segment_header *segment_header(const struct segment *segment) {
    return (struct segment_header *)(void *)segment->base;
}

/* The index of our row. */
static inline uint32_t segment_self(const struct segment *segment) {
    return segment->self;
}

static inline struct segment_member *segment_member(const struct segment *segment, uint32_t number) {
    return (struct segment_member *)(void *)(segment->base + segment->layout.members_at) + number;
}

/* Whether a whole 32-bit word at offset `at` of the file is within the first `bytes` of the user's bytes. */
static inline bool segment_has(const struct segment *segment, uint64_t at, uint64_t bytes) {
    uint64_t begin = segment->layout.user_at;
    return at >= begin && at - begin < bytes && bytes - (at - begin) >= sizeof(uint32_t);
}

#endif
