/* SPDX-License-Identifier: MIT */
/*
 * glibc's functions, found when first needed. dlsym takes glibc's own lock and, when it finds the name, allocates
 * nothing: so this may be called from inside an allocator.
 */
#include "preload.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <signal.h>

static const struct {
    const char *name, *version; /* where there are two of the name, the newer one; null: there is one */
} functions[REAL_COUNT] = {
#define REAL_NAME(name, version) {#name, version},
    REAL_FUNCTIONS(REAL_NAME)
#undef REAL_NAME
};

static void *found[REAL_COUNT];

static void *real_find(enum real_number number) {
    void *function = NULL;
#ifdef __x86_64__
    if (functions[number].version) function = dlvsym(RTLD_NEXT, functions[number].name, functions[number].version);
#endif
    return function ? function : dlsym(RTLD_NEXT, functions[number].name);
}

void *real_function(enum real_number number) {
    void *function = __atomic_load_n(&found[number], __ATOMIC_ACQUIRE);
    if (function) return function;
    function = real_find(number);
    __atomic_store_n(&found[number], function, __ATOMIC_RELEASE);
    return function;
}
