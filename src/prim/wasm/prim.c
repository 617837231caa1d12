/* SPDX-License-Identifier: MIT */
/*
 * prim.h for WebAssembly with threads: workers and a page that share a memory. The instructions memory.atomic.wait32
 * and notify park and wake; the rest comes from JavaScript: prim_wasm.h. What differs between the package for the
 * browser and programs that Emscripten links, above all threads, is in instance.c and emscripten.c.
 *
 * There are no signals, forks, processes and cancellation. Memory only grows: what is unmapped goes back to the heap.
 */
#include "prim_wasm.h"
#include "no_watches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bell_word.h"
#include "prim.h"

#define NS_PER_MS 1000000u

/* The clock. A double of milliseconds since 1970 is exact to a quarter of a microsecond. */

uint64_t prim_now_ns(void) {
    return (uint64_t)(vigil_now() * NS_PER_MS);
}

uint64_t prim_now_coarse_ms(void) {
    return (uint64_t)vigil_now();
}

unsigned prim_processors(void) {
    unsigned processors = vigil_processors();
    return processors > 1 ? processors : 1;
}

/* Parking. */

static _Thread_local bool may_not_park; /* the instruction would trap, and the caller, which loops, spins */

void prim_wasm_resume_thread(bool thread_may_park) {
    may_not_park = !thread_may_park;
}

void prim_wasm_begin_thread(bool thread_may_park, uint32_t number) {
    prim_self()->id = number;
    may_not_park = !thread_may_park;
    if (may_not_park) prim_self()->may_not_block += PRIM_MAY_NOT_BLOCK;
}

/* The embedder is called after this time, and may throw; the caller loops. That hides a wake-up that is lost: for the
 * unit tests, whose embedder does nothing then, cmake/wasm.cmake defines a time without end. */
#ifndef PRIM_PARK_MOST_NS
#define PRIM_PARK_MOST_NS UINT64_C(1000000000)
#endif
#define WAIT_TIMED_OUT 2

void prim_park(uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
    if (may_not_park) {
        vigil_spin();
        return;
    }
    uint64_t left_ns = PRIM_PARK_MOST_NS;
    if (deadline_ns != PRIM_NEVER) {
        uint64_t now_ns = prim_now_ns();
        if (deadline_ns < now_ns + left_ns) left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    }
    int outcome = __builtin_wasm_memory_atomic_wait32((int *)word, (int)expected, (int64_t)left_ns);
    if (outcome == WAIT_TIMED_OUT) vigil_spin();
}

/* On several words: on the first of them, for a slice of time. */
int prim_park_any(const struct prim_word *words, unsigned count, uint64_t deadline_ns) {
    uint64_t slice_ns = count == 1 ? PRIM_NEVER : prim_now_ns() + PRIM_SLICE_NS;
    for (unsigned i = 1; i < count; i++) {
        if (prim_load_relaxed(words[i].word) != words[i].expected) return -1;
    }
    prim_park(words[0].word, words[0].expected, slice_ns < deadline_ns ? slice_ns : deadline_ns);
    return -1;
}

static void prim_wake_some(uint32_t *word, unsigned most) {
    __builtin_wasm_memory_atomic_notify((int *)word, most);
}

void prim_wake_all(uint32_t *word) {
    prim_wake_some(word, UINT32_MAX);
}

void prim_wake(uint32_t *word) {
    prim_wake_some(word, 1);
}

/* Memory, all of it open: a block of the heap, which does not touch what it uses for the first time. A mapping begins
 * at a page, as buffers do; before it is the address of its block. */

#define MAP_PAGE 4096u

void *prim_map(size_t bytes) {
    char *block = bytes <= SIZE_MAX - MAP_PAGE ? calloc(1, bytes + MAP_PAGE) : NULL;
    if (!block) return NULL;
    char **mapping = (char **)(((uintptr_t)block + MAP_PAGE) / MAP_PAGE * MAP_PAGE);
    mapping[-1] = block;
    return mapping;
}

bool prim_map_open(void *part, size_t bytes, bool dense) {
    (void)part;
    (void)bytes;
    (void)dense;
    return true;
}

void prim_map_densely(void *part, size_t bytes) {
    (void)part;
    (void)bytes;
}

void prim_unmap(void *mapping, size_t bytes) {
    (void)bytes;
    free(((char **)mapping)[-1]);
}

void prim_map_clear(void *mapping, size_t bytes) {
    memset(mapping, 0, bytes);
}

bool prim_is_own(const void *address) {
    (void)address;
    return true;
}

/* Bells. */

bool prim_bell_open(struct prim_bell *bell) {
    *bell = (struct prim_bell){.alarm_ns = PRIM_NEVER};
    return true;
}

/* The embedder may sleep on the word, by waitAsync: no thread is going to ring any more, so it is woken here. */
void prim_bell_close(struct prim_bell *bell) {
    if (bell->alarm_ns != PRIM_NEVER) prim_bell_alarm(bell, PRIM_NEVER);
    bell_word_close(&bell->word);
}

void prim_bell_ring(struct prim_bell *bell) {
    bell_word_ring(&bell->word);
}

bool prim_bell_take(struct prim_bell *bell) {
    return bell_word_take(&bell->word);
}

void prim_bell_wait(struct prim_bell *bell, uint64_t deadline_ns) {
    bell_word_wait(&bell->word, deadline_ns);
}

int prim_bell_fd(struct prim_bell *bell) {
    return (int)(uintptr_t)&bell->word;
}

void prim_bell_alarm(struct prim_bell *bell, uint64_t deadline_ns) {
    bell->alarm_ns = deadline_ns;
    vigil_alarm(&bell->word, deadline_ns == PRIM_NEVER ? __builtin_inf() : (double)deadline_ns / NS_PER_MS);
}

/* Text. */

bool prim_write(int fd, const char *text, size_t bytes) {
    if (vigil_write(fd, text, bytes)) return true;
    errno = EIO;
    return false;
}

/* Threads: what is the same for all. */

PRIM_SELF struct prim_thread prim_thread_self;
uint32_t prim_wasm_threads;
uint32_t prim_generation;

uint32_t prim_thread_id(void) {
    struct prim_thread *self = prim_self();
    if (!self->id) self->id = prim_fetch_add_acq_rel(&prim_wasm_threads, 1) + 1;
    return self->id;
}

uint32_t prim_process_id(void) {
    return 1;
}

enum { ONCE_NEW, ONCE_RUNS, ONCE_DONE };

void prim_once(void (*initialise)(void)) {
    static uint32_t once;
    uint32_t seen = ONCE_NEW;
    if (prim_cas_acquire(&once, &seen, ONCE_RUNS)) {
        initialise();
        prim_store_release(&once, ONCE_DONE);
        prim_wake_all(&once);
    }
    while (prim_load_acquire(&once) != ONCE_DONE) prim_park(&once, ONCE_RUNS, PRIM_NEVER);
}

void *prim_meet(void *mine, size_t bytes) {
    (void)bytes;
    return mine;
}
