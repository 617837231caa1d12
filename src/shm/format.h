/* SPDX-License-Identifier: MIT */
/* format.h - the content of a segment's file, and the check that a file is a segment: see segment.h. */
#ifndef VIGIL_SHM_FORMAT_H
#define VIGIL_SHM_FORMAT_H

#include "prim.h"
#include "vigil/segment.h"

#define SEGMENT_MAGIC        "VigilSeg" /* its 8 letters */
#define SEGMENT_BYTE_ORDER   0x01020304u
#define SEGMENT_VERSION      8u
#define SEGMENT_PAGE         (UINT64_C(1) << 16) /* the largest page size of the machines that we run on */
#define SEGMENT_BACKED       UINT64_C(4096)      /* the unit in which backing.c gets memory */
#define SEGMENT_MEMBERS_MOST (1u << 16)
#define SEGMENT_WAITERS_MOST (1u << 20)
#define SEGMENT_LENGTH_MOST  (UINT64_C(1) << 61) /* so that no sum of sizes overflows */
#define SEGMENT_LOCKS_AT     (UINT64_C(1) << 62) /* the lock of row n is on byte n after this */
#define SEGMENT_DOOR_AT      (SEGMENT_LOCKS_AT - 1)

/* Where the areas begin, in bytes from the file's beginning, and how many of each there are. */
struct segment_layout {
    uint64_t buckets_at, buckets; /* of 8 bytes; a power of two */
    uint64_t members_at, members; /* of 64 bytes */
    uint64_t claims_at;           /* of 4 bytes, one for each slot */
    uint64_t slots_at, slots;     /* of 64 bytes; the first is not used, since slot 0 means none */
    uint64_t events_at;           /* of 64 bytes */
    uint64_t user_at;
    uint64_t end; /* of the user's bytes at max_length */
};
#define SEGMENT_BUCKET_BYTES 8u
#define SEGMENT_CLAIM_BYTES  4u
#define SEGMENT_SLOT_BYTES   64u
#define SEGMENT_LABEL_BYTES  32u

struct segment_header {
    /* The same in every version of the format. */
    char magic[8];
    uint32_t byte_order;
    uint16_t word_bytes, version;

    uint32_t members, waiters, buckets, unused;
    uint64_t first_length, max_length;
    char label[SEGMENT_LABEL_BYTES]; /* for people, and for programs to recognise their own; padded with zeros */
    struct segment_layout layout;
    uint64_t checksum; /* of all bytes before it */

    /* Not constant, and alone on its cache line. */
    _Alignas(64) uint64_t length; /* atomic; only rises */
    uint32_t rows;                /* atomic: members' rows from this index on have not been used; rises by CAS */
    uint32_t members_backed;      /* atomic: how many members' rows have memory; see backing.h */
    uint32_t slots_backed;        /* atomic: the same of slots, and their claims */

    /* Of recovery (recovery/recovery.h). */
    _Alignas(64) uint32_t recovered; /* atomic: the deaths, modulo 2^32, up to which recovery is complete */
    uint32_t deaths;                 /* atomic: changes after a death has been counted in a member's row */
    uint64_t patrolled_ns;           /* atomic: when a keeper last patrolled the segment */
    uint32_t asked;                  /* atomic: the row, modulo those in use, about which it asks the kernel next */
    uint32_t waiting;                /* atomic: how many slots were taken at that patrol */
    uint32_t heirless;               /* atomic: gifts (lot/gift.h) that had no heir; too many may be counted */
    uint32_t steals;                 /* atomic: how often a lock has been stolen, or more; see recovery/hold.h */

    /* Of recording: see events.h. */
    _Alignas(64) uint64_t record_until_ns; /* atomic */
    uint64_t events;                       /* atomic: how many there have been */
    uint32_t events_backed;                /* atomic: the entries have memory; see backing.h */
};

struct segment_member {
    uint32_t life;           /* atomic: generation * 2 + SEGMENT_JOINED */
    uint32_t number;         /* atomic: the process's */
    uint64_t relay;          /* atomic: see lot/shared.h */
    uint32_t pid;            /* in its own namespace, for people to read */
    char name[16];           /* the program's, likewise; ends with a zero unless it is too long */
    uint32_t deaths;         /* atomic: how many members with this row died or left something behind, or more */
    uint32_t incarnation;    /* how often its process had joined a segment before, modulo 16: see claim_of; above it,
                              * in bits 4-31, the number of its pid namespace, for people to read */
    uint32_t keeping;        /* atomic: its process has a keeper, which watches the members behind this one */
    struct prim_pulse pulse; /* of the keeper: other keepers sleep on it, and so notice that the process has ended */
};
#define SEGMENT_JOINED 1u

static inline uint32_t segment_incarnation(const struct segment_member *row) {
    return prim_load_relaxed(&row->incarnation) % 16;
}

#define SEGMENT_RESTING     1u /* in `relay`: the keeper sleeps on it */
#define SEGMENT_NUMBER_BITS 25

/* A claim of a slot: the process's number and, above it, its incarnation. So a process that leaves and comes back with
 * the same number is not mistaken for the member that it was before. */
static inline uint32_t claim_of(uint32_t number, uint32_t incarnation) {
    return incarnation << SEGMENT_NUMBER_BITS | number;
}

static inline uint32_t claim_number(uint32_t claim) {
    return claim & ((1u << SEGMENT_NUMBER_BITS) - 1);
}
#define SEGMENT_HOLDER 16u /* a process's number times this is in the words of its locks: see vigil__holder */

/* The number in such a word. The bits above it are flags. */
static inline uint32_t segment_holder_number(uint32_t word) {
    return word / SEGMENT_HOLDER & ((1u << SEGMENT_NUMBER_BITS) - 1);
}

/* Whether the label, and whether the limits, are valid for a segment. */
bool format_label_good(const char *label);
bool format_limits_good(uint32_t members, uint32_t waiters, uint64_t first_length, uint64_t max_length);

/* How many buckets a segment for so many waiters has, unless its maker wants fewer. */
uint32_t format_buckets(uint32_t waiters);

/* Fill in the header of a new file. It must be all zero, and the options complete and checked. */
void format_fill_header(struct segment_header *header, const vigil_segment_options *options, uint32_t buckets);

/* Returns VIGIL_OK if this is the header of a segment. `had` bytes of it could be read; the others are zero. */
int format_check_header(const struct segment_header *header, uint64_t had);

struct segment;

/* Whether the descriptor refers to the segment's file. */
bool segment_is_file(const struct segment *segment, int fd);

/* How many of the user's bytes the file really has, whatever the header says: one system call. */
uint64_t segment_usable(const struct segment *segment);

#endif
