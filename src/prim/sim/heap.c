/* SPDX-License-Identifier: MIT */
/*
 * heap.c - malloc and its family, as long as an execution lasts.
 *
 * Memory is never given out twice in one execution: so a use after free is noticed, and every execution sees the same
 * addresses. A block belongs to the process that has allocated it: no other process may touch it, and it is not a
 * leak if its process is dead. The linker routes the calls here (--wrap).
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
static unsigned char owner[ARENA_BYTES / GRAIN];   /* process, plus one; 0: freed */
static size_t next_grain;
static size_t blocks_in_use[SIM_PROCESSES];

void sim_heap_reset(void) {
    memset(arena, 0xA5, next_grain * GRAIN); /* callers must not rely on zeroes */
    memset(owner, 0, next_grain);
    next_grain = 0;
    memset(blocks_in_use, 0, sizeof blocks_in_use);
}

static bool heap_in_arena(const volatile void *variable) {
    return (uintptr_t)variable >= (uintptr_t)arena && (uintptr_t)variable < (uintptr_t)arena + ARENA_BYTES;
}

static size_t heap_grain_of(const volatile void *variable) {
    return ((uintptr_t)variable - (uintptr_t)arena) / GRAIN;
}

const char *sim_heap_trouble(const volatile void *variable) {
    if (!heap_in_arena(variable) || owner[heap_grain_of(variable)] == sim_process + 1) {
        return NULL;
    }
    return owner[heap_grain_of(variable)] ? "another process's memory" : "freed memory";
}

size_t sim_heap_in_use(void) {
    size_t blocks = 0;
    for (unsigned process = 0; process < SIM_PROCESSES; process++) {
        blocks += sim_dead(process) ? 0 : blocks_in_use[process];
    }
    return blocks;
}

static void *heap_take(size_t bytes) {
    size_t grains = (bytes + GRAIN - 1) / GRAIN + (bytes == 0);
    sim_check(next_grain + grains <= ARENA_BYTES / GRAIN, "the simulated heap is full");
    void *block = arena + next_grain * GRAIN;
    block_grains[next_grain] = (uint32_t)grains;
    memset(&owner[next_grain], (int)sim_process + 1, grains);
    next_grain += grains;
    blocks_in_use[sim_process]++;
    return block;
}

void *__wrap_malloc(size_t bytes) {
    return sim_executing ? heap_take(bytes) : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return sim_executing ? memset(heap_take(count * bytes), 0, count * bytes) : __real_calloc(count, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    if (!sim_executing) {
        return __real_aligned_alloc(alignment, bytes);
    }
    sim_check(alignment <= GRAIN, "alignment %zu", alignment);
    return heap_take(bytes);
}

void __wrap_free(void *block) {
    if (!heap_in_arena(block)) {
        __real_free(block);
        return;
    }
    size_t grain = heap_grain_of(block);
    sim_check(owner[grain], "freed twice");
    sim_check(owner[grain] == sim_process + 1, "another process's memory is freed");
    memset(&owner[grain], 0, block_grains[grain]);
    memset(block, 0xDD, block_grains[grain] * GRAIN);
    blocks_in_use[sim_process]--;
}
