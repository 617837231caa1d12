/* SPDX-License-Identifier: MIT */
/*
 * race.c - plain accesses: each must be ordered, by acquire and release, against every other access to the same
 * variable of which one is a write. And freed memory must not be touched.
 *
 * The compiler reports plain accesses: the library is compiled with the thread sanitizer's instrumentation and linked
 * with the few functions of it below, in place of the sanitizer's own library.
 *
 * What a fiber knows of the others is part of the views in memory.c: `heard` is a vector clock. This file keeps, for
 * each variable, when each fiber last accessed it, and how.
 */
#include "engine.h"

#include <string.h>

#define VARIABLES 16384u /* a power of two */

enum access { PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE, ACCESSES };

static const char *const access_name[] = {"plain read", "plain write", "atomic read", "atomic write"};

/* Which earlier accesses a new one must come after. */
static const bool conflicts[ACCESSES][ACCESSES] = {
    [PLAIN_READ] = {[PLAIN_WRITE] = true, [ATOMIC_WRITE] = true},
    [PLAIN_WRITE] = {[PLAIN_READ] = true, [PLAIN_WRITE] = true, [ATOMIC_READ] = true, [ATOMIC_WRITE] = true},
    [ATOMIC_READ] = {[PLAIN_WRITE] = true},
    [ATOMIC_WRITE] = {[PLAIN_READ] = true, [PLAIN_WRITE] = true},
};

static struct variable {
    uintptr_t address;
    uint64_t execution;
    int16_t when[ACCESSES][SIM_FIBERS]; /* the fiber's clock; 0: never */
} variables[VARIABLES];
static uint32_t where[VARIABLES][ACCESSES][SIM_FIBERS]; /* in the code, which is linked to low addresses */
static uint64_t execution = 1;
static unsigned variable_count;

void sim_race_reset(void) {
    execution++;
    variable_count = 0;
}

static struct variable *race_variable_at(uintptr_t address) {
    unsigned hash = (unsigned)((address >> 2) * 0x9E3779B1u + address) % VARIABLES;
    while (variables[hash].execution == execution && variables[hash].address != address) {
        hash = (hash + 1) % VARIABLES;
    }
    struct variable *variable = &variables[hash];
    if (variable->execution != execution) {
        sim_check(++variable_count < VARIABLES / 2, "too many variables");
        variable->execution = execution;
        variable->address = address;
        memset(variable->when, 0, sizeof variable->when);
    }
    return variable;
}

/* For addr2line: the call itself, not its return address. */
static unsigned long race_call_before(uintptr_t code) {
    return (unsigned long)code - 1;
}

static void race_check(const struct variable *variable, enum access now, const void *code) {
    unsigned fibers = sim_fiber_count();
    for (unsigned before = 0; before < ACCESSES; before++) {
        for (unsigned fiber = 0; conflicts[now][before] && fiber < fibers; fiber++) {
            if (variable->when[before][fiber] > sim_current->knows.now.heard[fiber]) {
                sim_fail(
                    "a race: %s by %s has nothing that orders it after %s by %s; addr2line -i -e sim_test %#lx %#lx",
                    access_name[now], sim_current->name, access_name[before], sim_fiber_name(fiber),
                    race_call_before((uintptr_t)code), race_call_before(where[variable - variables][before][fiber]));
            }
        }
    }
}

static void race_note(uintptr_t address, enum access access, const void *code) {
    struct variable *variable = race_variable_at(address);
    unsigned self = sim_fiber_index(sim_current);
    int16_t clock = sim_current->knows.now.heard[self];
    if (variable->when[access][self] == clock) {
        return; /* nothing was acquired or released since we last did this here */
    }
    race_check(variable, access, code);
    variable->when[access][self] = clock;
    where[variable - variables][access][self] = (uint32_t)(uintptr_t)code;
}

void sim_race_atomic(const volatile void *variable, size_t size, bool writes, const void *code) {
    uintptr_t address = (uintptr_t)sim_address_of(variable);
    for (size_t i = 0; i < size; i += 4) {
        race_note(address + i, writes ? ATOMIC_WRITE : ATOMIC_READ, code);
    }
}

/* An access that is shorter than a word, or begins within one, has a variable of its own. */
static void race_plain(const volatile void *start, size_t size, bool writes, const void *code) {
    if (!sim_current || sim_on_own_stack(start)) {
        return;
    }
    const char *trouble = sim_heap_trouble(start);
    if (trouble) {
        sim_fail("access to %s by %s; addr2line -i -e sim_test %#lx", trouble, sim_current->name,
                 race_call_before((uintptr_t)code));
    }
    if (writes && sim_file_memory(start)) {
        sim_may_die(); /* others will find what has been written so far */
    }
    uintptr_t address = (uintptr_t)sim_address_of(start);
    for (size_t i = 0; i < size; i += 4) {
        race_note(address + i, writes ? PLAIN_WRITE : PLAIN_READ, code);
    }
}

/* ---- What the compiler's instrumentation calls ---- */

#define INSTRUMENTATION(access, size, writes)                                                                          \
    void __tsan_##access##size(void *variable);                                                                        \
    void __tsan_##access##size(void *variable) {                                                                       \
        race_plain(variable, size, writes, __builtin_return_address(0));                                               \
    }
#define INSTRUMENTATIONS(size)                                                                                         \
    INSTRUMENTATION(read, size, false)                                                                                 \
    INSTRUMENTATION(write, size, true)                                                                                 \
    INSTRUMENTATION(unaligned_read, size, false)                                                                       \
    INSTRUMENTATION(unaligned_write, size, true)
INSTRUMENTATIONS(1)
INSTRUMENTATIONS(2)
INSTRUMENTATIONS(4)
INSTRUMENTATIONS(8)
INSTRUMENTATIONS(16)

void __tsan_read_range(void *variable, unsigned long size);
void __tsan_read_range(void *variable, unsigned long size) {
    race_plain(variable, size, false, __builtin_return_address(0));
}

void __tsan_write_range(void *variable, unsigned long size);
void __tsan_write_range(void *variable, unsigned long size) {
    race_plain(variable, size, true, __builtin_return_address(0));
}

void __tsan_init(void);
void __tsan_init(void) {
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller) {
    (void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void) {
}
