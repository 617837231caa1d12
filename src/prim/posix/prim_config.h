/* SPDX-License-Identifier: MIT */
#ifndef VIGIL_PRIM_CONFIG_H
#define VIGIL_PRIM_CONFIG_H

_Static_assert(sizeof(void *) == 8, "Vigil is for 64-bit systems: the lot needs the address space");

/* Private memory only: there are no segments. */
#define PRIM_SEGMENTS 0

/* Whether an agent can watch descriptors of others: see prim_bell_watch. */
#define PRIM_WATCHES 0

/* Copies of the library in one process do not find each other here: lot/copies.h. */
#define PRIM_COPIES  0
#define PRIM_AT_LOAD __attribute__((unused))

#include "sizes.h"

/* Whether there may be prim_fence_everywhere. */
#define PRIM_FENCES_EVERYWHERE 0

/* Whether there is ppoll, which is in POSIX since 2024. Without it, times are rounded up to milliseconds. The tests
 * define it too: test/CMakeLists.txt. */
#ifndef PRIM_PPOLL
#ifdef __APPLE__
#define PRIM_PPOLL 0
#else
#define PRIM_PPOLL 1
#endif
#endif

/* For headers that describe segments. */
#define PRIM_EVENTS 1024u

/* Per-thread data. */
#define PRIM_SELF _Thread_local

/* Planted bugs exist in the simulator only: see prim/sim/prim_config.h. */
#define BUG(name) 0

/* For variables of which each process has its own: see prim/sim/prim_config.h. */
#define PRIM_PROCESS

/* See prim.h, and prim.c. */
struct prim_bell {
    int read_fd, write_fd; /* a pipe; the first is also the descriptor to poll */
    struct alarm *alarm;   /* null until prim_bell_fd */
    uint32_t rings;        /* atomic */
};

#endif
