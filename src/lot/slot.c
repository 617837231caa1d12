/* SPDX-License-Identifier: MIT */
/*
 * Where slots come from.
 *
 * Slots lie in chunks of up to 64. A chunk's `free` has a bit for each slot that is free and that no thread has
 * taken. A thread takes all free slots of one chunk at once and then uses them up in order, without atomics: so
 * waiters that join one after the other have neighbouring slots, whatever the order in which slots became free. Any
 * thread may release a slot. It keeps what it releases, for its next waits, as long as that is of one chunk: a release
 * that begins another chunk gives these spare slots back. So one wait after the other, or the end of many in order,
 * costs next to no atomics. A thread keeps nothing if the library would not learn of its end.
 *
 * A chunk is in the lot's set of available chunks when some bit of its `free` is set. The thread that changes `free`
 * from zero puts the chunk into the set, a moment later. The thread that takes the chunk out of the set then changes
 * `free` to zero, by an exchange: a bit that is given back in between is taken too; a bit that is given back later
 * finds zero again. So no chunk is put into the set twice, and none is forgotten. The lowest chunk is taken first:
 * slots are used in the order of their addresses even after many waiters have come and gone.
 */
#include "base/word_lock.h"
#include "lot.h"
#include "shared.h"

/* The set: levels of bitmaps; a bit says whether the word below it has any bit set. Under the gate. */

static void slot_make_available(struct lot *lot, uint32_t number) {
    for (unsigned level = 0; level < LOT_LEVELS; level++, number /= 64) {
        lot->available[level][number / 64] |= UINT64_C(1) << number % 64;
    }
}

static void slot_make_unavailable(struct lot *lot, uint32_t number) {
    for (unsigned level = 0; level < LOT_LEVELS; level++, number /= 64) {
        lot->available[level][number / 64] &= ~(UINT64_C(1) << number % 64);
        if (lot->available[level][number / 64]) return;
    }
}

static uint32_t slot_lowest_available(const struct lot *lot) {
    uint32_t number = 0;
    for (unsigned level = LOT_LEVELS; level-- > 0;) {
        uint64_t bits = lot->available[level][number];
        if (!bits) return 0;
        number = number * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return number;
}

/* From so many chunks on, use large pages: their waiters, if each is in a line of its own, touch most pages anyway. */
#define MANY 1024u

/* Slots are backed by memory in doubling steps, so that a program that uses mlockall does not lock the whole range. */
static bool slot_open_more(struct lot *lot) {
    uint32_t from = lot->chunks_open, to = 2 * from;
    size_t bytes = sizeof(struct slot) * SLOT_CHUNK * (to - from);
    if (!prim_map_open(&lot->slots[from * SLOT_CHUNK], bytes, from >= MANY)) return false;
    lot->chunks_open = to;
    return true;
}

static uint32_t slot_new_chunk(struct lot *lot) {
    uint32_t number = lot->chunks_used;
    if (number == lot->chunk_limit || (number >= lot->chunks_open && !slot_open_more(lot))) return 0;
    prim_store_relaxed(&lot->chunks_used, number + 1);
    if (number == MANY) prim_map_densely(lot->buckets, sizeof(struct bucket) << PRIM_BUCKET_BITS);
    prim_store_relaxed(&lot->chunks[number].free, UINT64_MAX >> (64 - SLOT_CHUNK));
    return number;
}

static uint32_t slot_take_chunk(struct lot *lot) {
    word_lock(&lot->gate);
    uint32_t number = slot_lowest_available(lot);
    if (number) slot_make_unavailable(lot, number);
    else number = slot_new_chunk(lot);
    word_unlock(&lot->gate, false);
    return number;
}

/* Release: pairs with the exchange in slot_acquire. The thread that takes these slots sees them as we left them. */
static void slot_give_back(struct lot *lot, uint32_t chunk, uint64_t bits) {
    if (!bits) return;
    uint64_t before = prim_fetch_or_acq_rel(&lot->chunks[chunk].free, bits);
    if (before) return;
    word_lock(&lot->gate);
    slot_make_available(lot, chunk);
    word_unlock(&lot->gate, false);
}

static void slot_give_back_spare(struct lot *lot, struct prim_thread *self) {
    slot_give_back(lot, self->spare_chunk, self->spare_slots);
    if (!BUG(spares_kept)) self->spare_slots = 0;
}

static void slot_give_back_rest(struct lot *lot, struct prim_thread *self) {
    slot_give_back(lot, self->chunk, self->chunk_free);
    self->chunk_free = 0;
}

static uint32_t slot_take_lowest(uint32_t chunk, uint64_t *bits) {
    uint32_t lowest = (uint32_t)__builtin_ctzll(*bits);
    *bits &= *bits - 1;
    return chunk * SLOT_CHUNK + lowest;
}

uint32_t slot_acquire(struct lot *lot) {
    if (is_shared(lot)) return shared_acquire(lot);
    struct prim_thread *self = prim_self();
    if (self->spare_slots) return slot_take_lowest(self->spare_chunk, &self->spare_slots);
    bool keeps = true;
    if (!self->chunk_free) {
        self->chunk = slot_take_chunk(lot);
        if (!self->chunk) return 0;
        self->chunk_free = prim_exchange_acq_rel(&lot->chunks[self->chunk].free, 0);
        keeps = prim_keep_self(false);
    }
    uint32_t slot = slot_take_lowest(self->chunk, &self->chunk_free);
    if (!keeps) slot_give_back_rest(lot, self);
    return slot;
}

void slot_release(struct lot *lot, uint32_t index) {
    if (is_shared(lot)) {
        shared_release(lot, index);
        return;
    }
    struct prim_thread *self = prim_self();
    prim_store_relaxed(&lot->slots[index].seat, 0);
    if (self->spare_chunk != index / SLOT_CHUNK && !BUG(spares_mixed)) slot_give_back_spare(lot, self);
    self->spare_chunk = index / SLOT_CHUNK;
    self->spare_slots |= UINT64_C(1) << index % SLOT_CHUNK;
    if (!prim_keep_self(false)) slot_give_back_spare(lot, self);
}

void slot_release_all(struct lot *lot, struct prim_thread *self) {
    slot_give_back_spare(lot, self);
    slot_give_back_rest(lot, self);
}

uint32_t slot_bound(struct lot *lot) {
    return prim_load_relaxed(&lot->chunks_used) * SLOT_CHUNK;
}
