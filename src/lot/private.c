/* SPDX-License-Identifier: MIT */
/* The process's own lot, one for all copies of the library (copies.h): made at first use, emptied in the child of a
 * fork. */
#include <assert.h>

#include "copies.h"
#include "interrupt.h"
#include "line.h"

void (*lot_in_child)(void) PRIM_PROCESS;

/* One mapping holds everything: buckets, seats, chunks, bitmaps and, last and largest, the slots. */
struct layout {
    size_t seats, chunks, available[LOT_LEVELS], slots, bytes; /* offsets */
};

static struct layout private_layout_of(uint32_t chunk_limit) {
    struct layout at;
    at.seats = sizeof(struct bucket) << PRIM_BUCKET_BITS;
    at.chunks = at.seats + sizeof(struct seat *) * PRIM_SEAT_LIMIT;
    size_t end = at.chunks + sizeof(struct chunk) * chunk_limit;
    for (uint32_t level = 0, bits = chunk_limit; level < LOT_LEVELS; level++) {
        at.available[level] = end;
        bits = (bits + 63) / 64; /* words of this level are bits of the next */
        end += bits * sizeof(uint64_t);
    }
    at.slots = (end + PRIM_SLOT_ALIGNMENT - 1) / PRIM_SLOT_ALIGNMENT * PRIM_SLOT_ALIGNMENT;
    at.bytes = at.slots + sizeof(struct slot) * SLOT_CHUNK * chunk_limit;
    return at;
}

/* What it still reads keeps its place: other threads can use the others. */
static void private_leave_lane(struct lot *lot, struct prim_thread *thread) {
    if (!thread->lane) return;
    uint32_t before = prim_fetch_add_acq_rel(&lot->lane_threads[thread->lane - lot->lanes], 0u - 1u);
    assert(before != 0);
    (void)before;
    thread->lane = NULL;
}

static void private_at_thread_exit(struct prim_thread *thread) {
    if (thread->on_exit) thread->on_exit(thread);
    if (thread->robust_on_end) thread->robust_on_end(thread, false);
    private_leave_lane(copies_lot(), thread);
    slot_release_all(copies_lot(), thread);
    interrupt_thread_ends(thread);
}

static void private_number_from_one(struct lot *lot) {
    lot->chunks_used = lot->seats_used = 1; /* 0 is none */
}

/*
 * Readers in lanes are counted in their locks' words instead: then nothing but the lock says that it is held, and the
 * child can reset it, or free its memory. That may be missing in the child, or wiped (madvise), or the parent's as well
 * (MAP_SHARED): there its readers are where they were. A place of a lock whose word does not say that it has any is
 * that of a thread that was on its way in or out.
 */
static void private_count_readers(struct lot *lot) {
    for (uint32_t i = 0; i < lot->lanes_used * PRIM_LANE_PLACES; i++) {
        uint64_t *place = &lot->lanes[i / PRIM_LANE_PLACES].locks[i % PRIM_LANE_PLACES];
        uint32_t *word = (uint32_t *)(uintptr_t)*place;
        bool counts = word && prim_is_own(word) && (prim_load_relaxed(word) & LOT_LANES_OPEN);
        if (counts) prim_fetch_add_acq_rel(word, LOT_LANE_READER);
        *place = 0;
    }
    for (uint32_t i = 0; i < LOT_LANES; i++) lot->lane_threads[i] = 0;
}

void private_empty(struct lot *lot) {
    lot->gate = 0;
    private_count_readers(lot);
    if (!lot->buckets) return; /* a thread may have been making it: the child starts over */
    prim_map_clear(lot->buckets, private_layout_of(lot->chunk_limit).bytes);
    private_number_from_one(lot);
}

/*
 * The child's only thread is the one that forked. The lines it inherited are those of threads that do not exist here,
 * and any of them may have held any lock: so the lot is emptied. The child's agents learn of it by their generation.
 */
static void private_in_child(void) {
    const struct lot *lot = copies_in_child();
    struct prim_thread *self = prim_self();
    self->lane = NULL;
    if (!lot || !lot->buckets) return;
    self->chunk_free = self->spare_slots = 0;
    self->id = 0;
    self->may_not_block &= CRITICAL_DEPTH;
    self->holds_interruptions = 0;
    critical_in_child(self);
    interrupt_in_child();
    keeper_in_child();
    void (*also)(void) = prim_load_relaxed(&lot_in_child);
    if (also) also();
}

bool private_start(void) {
    return prim_start(private_at_thread_exit, private_in_child);
}

/* If address space is limited, make do with fewer slots. Only the first few slots are opened. */
static char *private_map(struct lot *lot) {
    for (lot->chunk_limit = PRIM_CHUNK_LIMIT; lot->chunk_limit >= PRIM_CHUNK_LEAST; lot->chunk_limit /= 2) {
        struct layout at = private_layout_of(lot->chunk_limit);
        char *mapping = prim_map(at.bytes);
        lot->chunks_open = PRIM_CHUNK_LEAST;
        size_t open_bytes = at.slots + sizeof(struct slot) * SLOT_CHUNK * lot->chunks_open;
        if (mapping && prim_map_open(mapping, open_bytes, false)) return mapping;
        if (mapping) prim_unmap(mapping, at.bytes);
    }
    return NULL;
}

/* Under the gate. */
static void private_make(struct lot *lot) {
    char *mapping = private_map(lot);
    if (!mapping) return;
    struct layout at = private_layout_of(lot->chunk_limit);
    lot->seats = (struct seat **)(void *)(mapping + at.seats);
    lot->chunks = (struct chunk *)(void *)(mapping + at.chunks);
    lot->slots = (struct slot *)(void *)(mapping + at.slots);
    for (int level = 0; level < LOT_LEVELS; level++) {
        lot->available[level] = (uint64_t *)(void *)(mapping + at.available[level]);
    }
    lot->bucket_bits = PRIM_BUCKET_BITS;
    lot->home = lot;
    private_number_from_one(lot);
    struct bucket *buckets = (struct bucket *)(void *)mapping;
    if (BUG(first_wait_missed)) prim_store_release(&lot->buckets, buckets);
    else prim_store_seq_cst(&lot->buckets, buckets); /* W0 */
}

/* Once in each copy: another copy may be making it now, or may have made it. */
static void private_initialise(void) {
    struct lot *lot = copies_lot();
    if (!lot || !private_start()) return;
    word_lock(&lot->gate);
    if (!prim_load_relaxed(&lot->buckets)) private_make(lot);
    word_unlock(&lot->gate, false);
}

struct lot *lot_private_if_used(void) {
    struct lot *lot = copies_lot();
    return lot && prim_load_acquire(&lot->buckets) ? lot : NULL;
}

struct lot *lot_private(void) {
    struct lot *lot = lot_private_if_used();
    if (lot) return lot;
    prim_once(private_initialise);
    return lot_private_if_used();
}

bool lot_surely_empty(const volatile void *address) {
    if (segments_open()) return false;
    const struct lot *lot = copies_lot_alone();
    if (!lot) return false;
    const struct bucket *buckets = prim_load_acquire(&lot->buckets);
    uint64_t key = (uint64_t)(uintptr_t)address;
    return !buckets || !prim_load_relaxed(&buckets[bucket_number_of(key, PRIM_BUCKET_BITS)].word); /* N3 */
}

struct lot *lot_for(const volatile void *address) {
    struct segment *segment = segment_of(address);
    if (segment) return lot_in(segment);
    return copies_have_segment(address) ? NULL : lot_private();
}

struct lot *lot_for_if_used(const volatile void *address) {
    struct segment *segment = segment_of(address);
    if (segment) return prim_load_acquire(&segment->lot);
    return copies_have_segment(address) ? NULL : lot_private_if_used();
}

uint32_t seat_register(struct lot *in, struct seat *seat) {
    word_lock(&in->gate);
    uint32_t number = 1;
    while (number < in->seats_used && in->seats[number]) number++;
    bool found = number < PRIM_SEAT_LIMIT;
    if (found) {
        in->seats[number] = seat;
        if (number == in->seats_used) in->seats_used++;
    }
    word_unlock(&in->gate, false);
    return found ? number : 0;
}

void seat_unregister(struct lot *in, uint32_t number) {
    word_lock(&in->gate);
    in->seats[number] = NULL;
    word_unlock(&in->gate, false);
}
