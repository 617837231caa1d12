/* SPDX-License-Identifier: MIT */
/*
 * How it begins, and the identities of threads.
 *
 * Other libraries' constructors may run before ours and use locks, so nothing depends on it: the locks need no
 * preparation, and preload_begin is also called when such a library registers handlers for fork. Ours are thus the
 * first to run in a child: when others unlock there what they have locked before the fork, the lines are in order.
 */
#include "preload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lot/lot.h"
#include "signals.h"

struct preload_options preload;

/*
 * An identity is the thread's id and, above that, how many forks lie between: the thread of a child has the one of the
 * thread that forked, which is not an id in this process, and could otherwise be given to another thread.
 */
#define ID_BITS 22 /* the system's limit is 2^22 */
#define ID_MASK ((1u << ID_BITS) - 1)

static uint32_t generation, forked_as; /* the identity that the child's first thread has brought along */
_Thread_local uint32_t preload_identity;

uint32_t preload_identify(void) {
    preload_identity = (uint32_t)syscall(SYS_gettid) | generation << ID_BITS;
    return preload_identity;
}

uint32_t preload_thread_id(uint32_t identity) {
    return identity == forked_as ? (uint32_t)getpid() : identity & ID_MASK;
}

uint32_t preload_generation(void) {
    return __atomic_load_n(&generation, __ATOMIC_RELAXED);
}

static void in_child(void) {
    generation++;
    forked_as = preload_identity;
    bridge_in_child();
    profile_in_child();
    serve_in_child();
}

static int report_signal(const char *name) {
    if (!name || !*name) return SIGUSR2;
    return strcmp(name, "none") == 0 ? 0 : signal_named(name);
}

static void read_options(void) {
    const char *profile = getenv("VIGIL_RUN_PROFILE"), *pid = getenv("VIGIL_RUN_PID");
    preload.profile = profile;
    if (profile && strcmp(profile, "-") != 0 && strlen(profile) < sizeof preload.profile_path)
        strcpy(preload.profile_path, profile);
    preload.json = getenv("VIGIL_RUN_JSON");
    preload.check = getenv("VIGIL_RUN_CHECK");
    preload.signal = report_signal(getenv("VIGIL_RUN_SIGNAL"));
    preload.first_pid = pid ? (uint32_t)strtoul(pid, NULL, 10) : 0;
}

void preload_begin(void) {
    static uint32_t begun;
    if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL)) return;
    int errno_before = errno;
    lot_private(); /* with its own handler for fork, which must be the first */
    pthread_atfork(NULL, NULL, in_child);
    read_options();
    if (preload.check) order_begin();
    serve_begin();
    errno = errno_before;
}

__attribute__((constructor)) static void construct(void) {
    for (enum real_number number = 0; number < REAL_COUNT; number++) real_function(number);
    preload_begin();
}

__attribute__((destructor)) static void destruct(void) {
    if (preload.profile) profile_write();
}

/* What pthread_atfork calls. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);
PRELOAD_API int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso) {
    preload_begin();
    return REAL(__register_atfork)(prepare, parent, child, dso);
}

/*
 * The once of the library's own objects (see CMakeLists.txt): ours would wait in lines that are not there yet. One may
 * be run by the function of another.
 */
int preload_library_once(pthread_once_t *once, void (*initialise)(void));
int preload_library_once(pthread_once_t *once, void (*initialise)(void)) {
    enum { NEW = PTHREAD_ONCE_INIT, DONE, RUNNING };
    int seen = NEW;
    if (__atomic_compare_exchange_n(once, &seen, RUNNING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        initialise();
        __atomic_store_n(once, DONE, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(once, __ATOMIC_ACQUIRE) != DONE) syscall(SYS_sched_yield);
    return 0;
}
