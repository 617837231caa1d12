/* SPDX-License-Identifier: MIT */
/*
 * A program of its own, with its own memory, that knows nothing of Vigil: it has a count, which its threads may not
 * change at the same time, a word for a lock, and a function that reserves memory. Each thread is a worker with an
 * instance of this module; what they call here needs no stack.
 *
 *     clang-19 --target=wasm32 -O2 -nostdlib -matomics -mbulk-memory -Wl,--no-entry,--shared-memory,--import-memory \
 *              -Wl,--initial-memory=131072,--max-memory=67108864 host.c -o host.wasm
 */
#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(#name)))
#define PAGE         65536u

extern unsigned char __heap_base;
static uintptr_t used; /* up to there */
static volatile uint32_t count;
static uint32_t lock;

/* A multiple of 64; zero: there is no memory. Called by one thread, before there are others. */
EXPORT(reserve) uintptr_t reserve(uint32_t bytes) {
    uintptr_t from = ((used ? used : (uintptr_t)&__heap_base) + 63) / 64 * 64, to = from + bytes;
    uintptr_t pages = (to + PAGE - 1) / PAGE, had = __builtin_wasm_memory_size(0);
    if (pages > had && __builtin_wasm_memory_grow(0, pages - had) == SIZE_MAX) return 0;
    used = to;
    return from;
}

EXPORT(lock_address) uint32_t *lock_address(void) {
    return &lock;
}

EXPORT(increment) void increment(void) {
    count = count + 1; /* not atomic */
}

EXPORT(get_count) uint32_t get_count(void) {
    return count;
}
