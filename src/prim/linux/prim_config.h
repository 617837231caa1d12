/* SPDX-License-Identifier: MIT */
#ifndef VIGIL_PRIM_CONFIG_H
#define VIGIL_PRIM_CONFIG_H

#include <features.h>

_Static_assert(sizeof(void *) == 8, "Vigil is for 64-bit systems: the lot needs the address space");

/* Processes share memory: there are segments. */
#define PRIM_SEGMENTS 1

/* Whether an agent can watch descriptors of others: see prim_bell_watch. */
#define PRIM_WATCHES 1

#include "sizes.h"

/* Whether there may be prim_fence_everywhere: membarrier. */
#define PRIM_FENCES_EVERYWHERE 1
_Static_assert(PRIM_BUCKET_BITS == 21, "as VIGIL__LINE_BITS in vigil/wait.h");

/* How many events of a segment are kept for observers: vigil/observe.h. */
#define PRIM_EVENTS 1024u

/* Chains of a book of names: see named/book.h. */
#define PRIM_NAME_HEADS 256u

/*
 * Per-thread data: found without an allocation, also by a signal handler, and in a library that is loaded late by
 * dlopen. glibc would allocate the data of such a library at a thread's first access to it, unless its place is fixed
 * at load time (initial-exec), for which glibc keeps some room. musl has no such room and refuses to load the library;
 * but it allocates the data of all threads in dlopen itself.
 */
#ifdef __GLIBC__
#define PRIM_SELF _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define PRIM_SELF _Thread_local
#endif

/* Whether there may be other copies of the library in the process, to be met: lot/copies.h. */
#ifndef PRIM_COPIES
#define PRIM_COPIES 1
#endif
/* A function to be called when the library is loaded: before every constructor without a priority, after prim.c's. */
#define PRIM_AT_LOAD __attribute__((constructor(102)))

/* Planted bugs exist in the simulator only: see prim/sim/prim_config.h. */
#define BUG(name) 0

/* For variables of which each process has its own: see prim/sim/prim_config.h. */
#define PRIM_PROCESS

/* See prim.h. */
struct prim_bell {
    int event_fd; /* carries the ring */
    int poll_fd;  /* an epoll of the ring and the alarm, created on first use; else -1 */
    int alarm_fd; /* timer behind poll_fd */
    uint32_t rings;
    uint32_t watched; /* descriptors of others behind poll_fd */
};

#endif
