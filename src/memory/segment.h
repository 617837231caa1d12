/* SPDX-License-Identifier: MIT */
/*
 * segment.h - segments inside: the file, who uses it, and which addresses belong to which.
 *
 * THE FILE
 *
 *     0            header     what it is and where everything lies: written once, then constant; behind it the length
 *     members_at   members    one record of 64 bytes for each process
 *     buckets_at   buckets    the lot: the lines of those who wait on words of this segment
 *     chunks_at    chunks
 *     slots_at     slots
 *     user_at      the user's bytes, up to `length` now and `max_length` ever; the file ends with them
 *
 * All of it follows from three numbers, members, waiters and max_length, so a header is right if its layout is the one
 * that layout_of() computes. Who opens a file copies the constant part once, checks the copy, and from then on uses
 * the copy.
 *
 * LIFE OF THE FILE. SIGKILL may come between any two lines.
 *
 *     draft      no name leads to it. Its maker fills it in and becomes its first member.
 *                  Killed: the kernel frees it. (Where O_TMPFILE is refused, a hidden temporary name stays behind.)
 *     linked     complete, with the one step that gives it its name; of several makers one wins that step.
 *     unlinked   the members keep it; gone when the last of them has left or died.
 *
 * Anonymous ones are drafts to the end. The file never becomes shorter. To grow it:
 *
 *     G1  extend the file to the new length           by fallocate, which never shortens, whoever else grows meanwhile
 *     G2  CAS the length in the header (seq_cst)
 *                  Killed after G1: bytes that nobody counts yet; the next G1 finds them.
 *
 * So whoever reads a length may touch the bytes, and who opens the file reads the length before the file's size.
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
 *     J1  lock the byte, without waiting           killed: as it was before
 *     J2  store pid and name                       killed: as it was before, but for what is for people to read
 *     J3  store the next generation, JOINED        killed: dead, to be seen by everyone
 *     L1  store the same generation, without       killed: left
 *     L2  unlock the byte                          killed: left
 *
 * Only who holds the lock stores into a record, so nothing there needs a CAS, and no kill leaves it half done.
 * A joiner takes the first record whose lock it gets, be it free or dead. A living member's lock is held as long as its
 * record says JOINED: so whoever finds JOINED, then no lock, and then the same life as before, knows that this
 * generation is dead. The other way round, a dead one passes for alive while a joiner is between J1 and J3: for an
 * instant, and then the generation changes.
 *
 * The mapping holds on to the open file description as the descriptor does, and a forked child has both. So the
 * child drops them at once (segment.c, in_child), and nothing may be opened or closed while somebody forks: `gate`.
 * Whoever is killed in between passes for alive until its child has begun. To others only descriptors of another
 * description are given. Exec drops both.
 *
 * A process is a member once: opening what is open already counts, and answers the same buffer.
 */
#ifndef VIGIL_SRC_SEGMENT_H
#define VIGIL_SRC_SEGMENT_H

#include "buffer.h"

#define SEGMENT_MAGIC        "VigilSeg" /* its 8 letters */
#define SEGMENT_BYTE_ORDER   0x01020304u
#define SEGMENT_VERSION      1u
#define SEGMENT_PAGE         (UINT64_C(1) << 16) /* the largest page of the machines that we run on */
#define SEGMENT_MEMBERS_MOST 4096u
#define SEGMENT_WAITERS_MOST (1u << 20)
#define SEGMENT_LENGTH_MOST  (UINT64_C(1) << 61) /* so that no sum of sizes overflows */
#define SEGMENT_LOCKS_AT     (UINT64_C(1) << 62) /* record n's lock is on the byte n behind this */

/* Where the areas begin, in bytes from the file's beginning, and how many records are in them. */
struct segment_layout {
    uint64_t members_at;
    uint64_t buckets_at, buckets; /* of 16 bytes; a power of two */
    uint64_t chunks_at, chunks;   /* of 16 bytes */
    uint64_t slots_at, slots;     /* of 64 bytes; the first one is left out, as 0 is the number of none */
    uint64_t user_at;
    uint64_t end; /* of the user's bytes when they are most */
};
#define SEGMENT_BUCKET_BYTES 16u
#define SEGMENT_CHUNK_BYTES  16u
#define SEGMENT_CHUNK_SLOTS  32u
#define SEGMENT_SLOT_BYTES   64u

struct segment_header {
    /* The same in every version of the format. */
    char magic[8];
    uint32_t byte_order;
    uint16_t word_bytes, version;

    uint32_t members, waiters;
    uint64_t first_length, max_length;
    struct segment_layout layout;
    uint64_t checksum; /* of all before it */

    /* Not constant, and alone on its cache line. */
    _Alignas(64) uint64_t length; /* atomic; only rises */
};

struct segment_member {
    uint32_t life;        /* atomic: generation * 2 + SEGMENT_JOINED */
    uint32_t pid;         /* in its own namespace, for people to read */
    char name[16];        /* the program's, likewise; zero at the end unless it is longer */
    uint64_t reserved[5]; /* for its mail */
};
#define SEGMENT_JOINED 1u

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
};

/* What vigil_buffer_grow and vigil_buffer_destroy do with a segment besides: G1 above; and one of the opens ends. */
int segment_extend(struct segment *segment, uint64_t new_length);
int64_t segment_close(struct segment *segment);

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

/* Whether the record's member lives; false as well if it has none. Never false for one that lives. */
bool segment_member_alive(const struct segment *segment, uint32_t number);

/*
 * Which segment an address belongs to; null: memory of this process alone.
 *
 * The segments of this process are in two tables. A change fills in the one that is not in use and then switches over,
 * by a store to segments_now: how many segments there are in the low bits, above them how many times it has
 * changed; the lowest of these says which table. A reader that finds the same number afterwards has read a table that
 * nobody was writing; also one that interrupts the writer.
 */
#define SEGMENTS_MOST  64u
#define SEGMENTS_COUNT 0xffu /* the bits of it */
#define SEGMENTS_STEP  0x100u
extern uint64_t segments_now;
struct segment *segment_find(uintptr_t address);

static inline struct segment *segment_of(const volatile void *address) {
    if (!(prim_load_acquire(&segments_now) & SEGMENTS_COUNT)) return NULL;
    return segment_find((uintptr_t)address);
}

#endif
