/* SPDX-License-Identifier: MIT */
/*
 * heap.c - malloc and its family, as long as fibers run.
 *
 * Memory is never given out twice in one execution: what is used after it was freed is noticed, and every execution
 * sees the same addresses. The linker routes the calls here (--wrap).
 */
#include "engine.h"

#include <string.h>

#define ARENA_BYTES (1u << 20)
#define GRAIN       64u

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *block);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *block);

static _Alignas(4096) char arena[ARENA_BYTES];
static uint32_t block_grains[ARENA_BYTES / GRAIN]; /* at a block's first grain: its length */
static bool in_use[ARENA_BYTES / GRAIN];
static size_t next_grain;
static size_t blocks_in_use;

void sim_heap_reset(void) {
    memset(arena, 0xA5, next_grain * GRAIN); /* nobody may count on zeroes */
    memset(in_use, 0, next_grain);
    next_grain = 0;
    blocks_in_use = 0;
}

static bool in_arena(const volatile void *place) {
    return (uintptr_t)place >= (uintptr_t)arena && (uintptr_t)place < (uintptr_t)arena + ARENA_BYTES;
}

static size_t grain_of(const volatile void *place) {
    return ((uintptr_t)place - (uintptr_t)arena) / GRAIN;
}

bool sim_heap_freed(const volatile void *place) {
    return in_arena(place) && !in_use[grain_of(place)];
}

size_t sim_heap_in_use(void) {
    return blocks_in_use;
}

static void *take(size_t bytes) {
    size_t grains = (bytes + GRAIN - 1) / GRAIN + (bytes == 0);
    sim_check(next_grain + grains <= ARENA_BYTES / GRAIN, "the simulated heap is full");
    void *block = arena + next_grain * GRAIN;
    block_grains[next_grain] = (uint32_t)grains;
    memset(&in_use[next_grain], true, grains);
    next_grain += grains;
    blocks_in_use++;
    return block;
}

void *__wrap_malloc(size_t bytes) {
    return sim_current ? take(bytes) : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return sim_current ? memset(take(count * bytes), 0, count * bytes) : __real_calloc(count, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    if (!sim_current) {
        return __real_aligned_alloc(alignment, bytes);
    }
    sim_check(alignment <= GRAIN, "alignment %zu", alignment);
    return take(bytes);
}

void __wrap_free(void *block) {
    if (!in_arena(block)) {
        __real_free(block);
        return;
    }
    size_t grain = grain_of(block);
    sim_check(in_use[grain], "freed twice");
    memset(&in_use[grain], false, block_grains[grain]);
    memset(block, 0xDD, block_grains[grain] * GRAIN);
    blocks_in_use--;
}
