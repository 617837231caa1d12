/* SPDX-License-Identifier: MIT */
/*
 * segment.h - segments inside: the file, who uses it, and which addresses belong to which.
 *
 * THE FILE
 *
 *     0            header     what it is and where everything lies: written once, then constant; behind it the length
 *     members_at   members    one record of 64 bytes for each process
 *     buckets_at   buckets    the lot: the lines of those who wait on words of this segment (lot/shared.h)
 *     claims_at    claims     whose each slot is
 *     slots_at     slots
 *     events_at    events     the last things that happened, while somebody records them (events.h)
 *     user_at      the user's bytes, up to `length` now and `max_length` ever; the file ends with them
 *
 * All of it follows from three numbers, members, waiters and max_length, so a header is right if its layout is the one
 * that format_layout() computes. Who opens a file copies the constant part once, checks the copy, and from then on uses
 * the copy.
 *
 * LIFE OF THE FILE. SIGKILL may come between any two lines.
 *
 *     draft      no name leads to it. Its maker fills it in and becomes its first member.
 *                  Killed: the kernel frees it. (Where O_TMPFILE is refused, a hidden temporary name stays behind.)
 *     linked     complete, with the one step that gives it its name; of several makers one wins that step.
 *     unlinked   the members keep it; gone when the last of them has left or died.
 *
 * Anonymous ones are drafts to the end. A name may be taken away at any time, or only if nobody has the file open:
 *
 *     U1  lock the door (below)
 *     U2  if nobody has a lock on it, unlink          who has found the name before, and joins now, finds that it does
 *     U3  unlock the door                             not lead there any more, leaves, and looks for the name again
 *
 * The file never becomes shorter. To grow it:
 *
 *     G1  extend the file to the new length           by fallocate, which never shortens, whoever else grows meanwhile
 *     G2  CAS the length in the header (seq_cst)
 *                  Killed after G1: bytes that nobody counts yet; the next G1 finds them.
 *
 * So whoever reads a length may touch the bytes, and who opens the file reads the length before the file's size.
 *
 * NUMBERS. A process is known by the same number in all its segments: 26 random bits, never zero, drawn when it opens
 * one and has no other. Whatever belongs to somebody in a segment, a lock say, says so by that number, which stands in
 * the member's record as well. A number that is in no member's record is that of one who has died or left: so nothing
 * waits for a record to be used again. A process that leaves one of its segments and comes back has the same number
 * there; its slots are told from those of before by its incarnation (format.h), so that a process which is clearing up
 * after it cannot mistake one for the other. Who finds its own number taken in a segment, which happens once in 2^26
 * times, draws another one if it has no segment yet, and otherwise cannot open it.
 *
 * LIFE OF A MEMBER'S RECORD. The truth is a lock of the kernel's, on a byte of the file for each record (far beyond
 * the content), held through the open file description of the process that has the record. The kernel drops it
 * when the process ends, however it ends, and whatever namespace it lives in; a process that is stopped keeps it.
 *
 *     lock    life                  means
 *     free    generation, 0         nobody's: never used, or its member has left
 *     held    generation, 0         joining, not yet a member; or leaving, not any more
 *     held    generation, JOINED    member
 *     free    generation, JOINED    its member is dead
 *
 *     J0  lock the door, another byte, waiting     killed: open again
 *     J1  lock the byte, without waiting           killed: as it was before
 *     J2  store pid, name, number and mail         killed: as it was before, or a number that nobody goes by
 *     J3  store the next generation, JOINED        killed: dead, to be seen by everyone
 *     J4  unlock the door, and poke the keeper     killed: dead, and the door open
 *         that is to watch this member
 *     L1  store the same generation, without       killed: left
 *     L2  unlock the byte                          killed: left
 *     D1  count the death of one that is dead, and still JOINED     killed: it is counted again, which does no harm
 *     D2  CAS: the same generation, without                         killed: left. Fails: others have done it
 *         count it once more: who has seen the first count may have looked before D2
 *
 * Otherwise only who holds the lock stores into a record, except for its mail, and who joins and finds nobody alive
 * (below); and no kill leaves it half done. A joiner takes the first record whose lock it gets, be it free or dead. A
 * living member's lock is held as long as its record says JOINED: so whoever finds JOINED, then no lock, and then, by
 * D2, the same life as before, knows that this generation is dead, and has struck it off. No lock of the kernel's is
 * taken for that, which threads of one process would share. To strike off, between J1 and J3, whom a joiner replaces
 * makes no difference to J3. The other way round, a dead one passes for alive while a joiner is between J1 and J3: for
 * an instant, unless that one is stopped just then.
 *
 * What the dead one did is known to who finds its lock free, through the kernel; and, since each reads `life` with
 * acquire and J3, L1 and D2 store it with release or more, to all who find it gone. So is the count of D1: see
 * segment_deaths.
 *
 * Who joins, the door being locked, and finds no other member alive, empties the lot: so whatever the members before
 * have left there is gone, and nothing in the lot is believed that no living process has written.
 *
 * The mapping holds on to the open file description as the descriptor does, and a forked child has both. So the
 * child drops them at once (memory/segment.c, in_child), and nothing may be opened or closed, or a name be taken away
 * by U1 to U3, while somebody forks: `gate`. Whoever is killed in between passes for alive until its child has begun.
 * To others only descriptors of another description are given. Exec drops both.
 *
 * A process is a member once: opening what is open already counts, and answers the same buffer.
 *
 * WHERE IT IS DONE
 *
 *     format.c            the layout, the header, and the checks of a header
 *     table.c             which segments this process has open
 *     member.c            the members' records: J0 to J4, L1 and L2, D1 and D2
 *     events.c            the events
 *     memory/segment.c    drafts, names and descriptors, mapping, growing, fork: what the public functions do
 *
 * The lot of a segment (lot/shared.h) uses src/shm, and src/memory uses both. So the files of src/shm include only each
 * other, src/prim, the public headers, and from src/base the buffer that a segment contains.
 */
#ifndef VIGIL_SHM_SEGMENT_H
#define VIGIL_SHM_SEGMENT_H

#include "base/buffer.h"
#include "format.h"

/* One that this process has open. */
struct segment {
    struct vigil_buffer buffer; /* what the user has */
    unsigned char *base;        /* the file, mapped up to layout.end */
    struct segment_layout layout;
    uint64_t device, inode; /* which file it is */
    int fd;                 /* its description holds our record's lock; -1 in the child of a fork */
    uint32_t members;       /* records */
    uint32_t self;          /* the number of ours */
    uint32_t opens;         /* under the gate: how many times the user has it */
    char label[SEGMENT_LABEL_BYTES];
    struct lot *lot; /* null until it is needed: see lot/shared.h */
    uint32_t found_mask;
    uint32_t found[]; /* atomic: where members have been found, by their numbers: see segment_find_member */
};

static inline struct segment_header *segment_header(const struct segment *segment) {
    return (struct segment_header *)(void *)segment->base;
}

/* Our own number in it. */
static inline uint32_t segment_self(const struct segment *segment) {
    return segment->self;
}

static inline struct segment_member *segment_member(const struct segment *segment, uint32_t number) {
    return (struct segment_member *)(void *)(segment->base + segment->layout.members_at) + number;
}

/* Whether at least a word of so many of the user's bytes begins there; and whether that is where a word can be. */
static inline bool segment_has(const struct segment *segment, uint64_t at, uint64_t bytes) {
    uint64_t begin = segment->layout.user_at;
    return at >= begin && at - begin < bytes && bytes - (at - begin) >= sizeof(uint32_t);
}

#endif
