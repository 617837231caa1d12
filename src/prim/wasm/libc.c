/* SPDX-License-Identifier: MIT */
/*
 * libc.c - the functions of the C library that the core needs, and no other: a module is loaded by every page.
 *
 * THE HEAP
 *
 * A block is a header of 16 bytes and what follows. Its size is a multiple of 64, and so is the address behind its
 * header: what the caller gets begins at a cache line. Blocks that are free are in a list in the order of their
 * addresses, and neighbours are merged. What lies above `heap_top` has never been used, and so is zero: large blocks,
 * as that of the lot, come from there, and only what is touched costs memory.
 *
 * A thread may be terminated while it has the gate. After each store the heap is in order, apart from memory that is
 * lost: a block in the list is always described, and never covers another one. So the thread that learns of the end
 * opens the gate, which names its holder, and there is nothing to repair: prim_wasm.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "prim.h"
#include "prim_wasm.h"

#define HEAP_LINE   64u
#define HEAP_HEADER 16u
#define HEAP_PAGE   65536u
#define HEAP_MOST   (UINT32_MAX / 2)

_Thread_local int errno;

struct heap_block {
    uint32_t bytes; /* with the header */
    struct heap_block *next;
};

/* The gate: 0 is open; else twice the number of the thread that has locked it, plus HEAP_SLEEPER if a thread may sleep
 * on it. The rest is under the gate. */
#define HEAP_SLEEPER 1u
uint32_t prim_wasm_door;
static struct heap_block *heap_free;
static uintptr_t heap_top, heap_end;
static bool heap_is_fixed; /* it does not grow */

/* A thread that has slept does not know whether others still do. */
static void heap_lock(void) {
    uint32_t mine = 2 * prim_thread_id();
    for (uint32_t seen = 0; !prim_cas_acquire(&prim_wasm_door, &seen, mine); seen = 0) {
        uint32_t marked = seen | HEAP_SLEEPER;
        if (seen == marked || (seen && prim_cas_acquire(&prim_wasm_door, &seen, marked)))
            prim_park(&prim_wasm_door, marked, PRIM_NEVER);
        mine |= HEAP_SLEEPER;
    }
}

static void heap_unlock(void) {
    if (prim_exchange_acq_rel(&prim_wasm_door, 0) & HEAP_SLEEPER) prim_wake(&prim_wasm_door);
}

/* If the memory has grown by other means since, what lies between is not ours: go on behind it. */
static bool heap_grow(uint32_t bytes) {
    if (heap_is_fixed) return false;
    uint32_t pages = (bytes + HEAP_LINE + HEAP_PAGE - 1) / HEAP_PAGE;
    size_t before = __builtin_wasm_memory_grow(0, pages);
    if (before == SIZE_MAX) return false;
    if (before * HEAP_PAGE != heap_end) heap_top = before * HEAP_PAGE + HEAP_LINE - HEAP_HEADER;
    prim_store_release(&heap_end, (before + pages) * HEAP_PAGE);
    return true;
}

static struct heap_block *heap_take_new(uint32_t bytes) {
    if (heap_top + bytes > heap_end && !heap_grow(bytes)) return NULL; /* heap_top may be above, see heap_grow */
    struct heap_block *block = (struct heap_block *)heap_top;
    heap_top += bytes;
    block->bytes = bytes;
    return block;
}

/* The first that is large enough; what is left of it stays in the list. */
static struct heap_block *heap_take_free(uint32_t bytes) {
    struct heap_block **link = &heap_free;
    while (*link && (*link)->bytes < bytes) link = &(*link)->next;
    struct heap_block *block = *link;
    if (!block) return NULL;
    if (block->bytes > bytes) {
        struct heap_block *rest = (struct heap_block *)((uintptr_t)block + bytes);
        *rest = (struct heap_block){block->bytes - bytes, block->next};
        block->bytes = bytes;
        prim_store_release(link, rest);
    } else {
        *link = block->next;
    }
    return block;
}

/* `new`: the memory has not been used before. */
static void *heap_take(size_t wanted, bool *new) {
    if (wanted > HEAP_MOST) return NULL;
    uint32_t bytes = ((uint32_t)wanted + HEAP_HEADER + HEAP_LINE - 1) / HEAP_LINE * HEAP_LINE;
    struct heap_block *block = heap_take_free(bytes);
    *new = !block;
    if (!block) block = heap_take_new(bytes);
    return block ? (char *)block + HEAP_HEADER : NULL;
}

static void *heap_allocate(size_t bytes, bool *new) {
    heap_lock();
    void *memory = heap_take(bytes, new);
    heap_unlock();
    if (!memory) errno = ENOMEM;
    return memory;
}

static void heap_merge_with_next(struct heap_block *block) {
    struct heap_block *next = block->next;
    if (!next || (uintptr_t)block + block->bytes != (uintptr_t)next) return;
    uint32_t bytes = block->bytes + next->bytes;
    block->next = next->next;
    prim_store_release(&block->bytes, bytes);
}

static void heap_give(struct heap_block *block) {
    struct heap_block **link = &heap_free, *before = NULL;
    while (*link && *link < block) before = *link, link = &before->next;
    block->next = *link;
    prim_store_release(link, block);
    heap_merge_with_next(block);
    if (before) heap_merge_with_next(before);
}

void *malloc(size_t bytes) {
    bool new;
    return heap_allocate(bytes, &new);
}

void *calloc(size_t count, size_t each) {
    bool new;
    size_t bytes;
    if (__builtin_mul_overflow(count, each, &bytes)) bytes = SIZE_MAX;
    void *memory = heap_allocate(bytes, &new);
    if (memory && !new) memset(memory, 0, bytes);
    return memory;
}

void free(void *memory) {
    if (!memory) return;
    heap_lock();
    heap_give((struct heap_block *)(void *)((char *)memory - HEAP_HEADER));
    heap_unlock();
}

void *realloc(void *memory, size_t bytes) {
    void *moved = malloc(bytes);
    if (!memory || !moved) return moved;
    size_t had = ((struct heap_block *)(void *)((char *)memory - HEAP_HEADER))->bytes - HEAP_HEADER;
    memcpy(moved, memory, had < bytes ? had : bytes);
    free(memory);
    return moved;
}

void prim_wasm_set_heap(uintptr_t from, uintptr_t to) {
    heap_top = (from + HEAP_LINE - 1) / HEAP_LINE * HEAP_LINE + HEAP_LINE - HEAP_HEADER;
    heap_end = to;
    heap_is_fixed = true;
}

/* Behind the door, which is the gate. The calling thread has no thread-local data. */
void *prim_wasm_take_area(size_t stack_bytes) {
    bool new;
    return heap_take(stack_bytes + __builtin_wasm_tls_size(), &new);
}

void prim_wasm_give_area(void *area) {
    heap_give((struct heap_block *)(void *)((char *)area - HEAP_HEADER));
}

/* Memory and strings. The builtins of the first three are instructions. A compiler that recognises what a loop does
 * must not replace it by a call of the very function. */

#define ITSELF __attribute__((no_builtin))

ITSELF void *memset(void *to, int byte, size_t bytes) {
    return __builtin_memset(to, byte, bytes);
}

ITSELF void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    return __builtin_memcpy(to, from, bytes);
}

ITSELF void *memmove(void *to, const void *from, size_t bytes) {
    return __builtin_memmove(to, from, bytes);
}

ITSELF int memcmp(const void *a, const void *b, size_t bytes) {
    const unsigned char *one = a, *other = b;
    for (; bytes; bytes--, one++, other++) {
        if (*one != *other) return *one - *other;
    }
    return 0;
}

ITSELF size_t strlen(const char *text) {
    const char *end = text;
    while (*end) end++;
    return (size_t)(end - text);
}

ITSELF int strcmp(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return (unsigned char)*a - (unsigned char)*b;
}

/* The end. */

_Noreturn void abort(void) {
    __builtin_trap();
}

_Noreturn void __assert_fail(const char *condition, const char *file, int line, const char *function) {
    (void)line;
    (void)function;
    prim_write(2, file, strlen(file));
    prim_write(2, ": ", 2);
    prim_write(2, condition, strlen(condition));
    prim_write(2, "\n", 1);
    abort();
}
