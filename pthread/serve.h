/* SPDX-License-Identifier: MIT */
/*
 * serve.h - what a process under `vigil run` shows to others: to vigil show, top and trace.
 *
 * The process has an open, unnamed file, "memfd:vigil-run", which others find as /proc/PID/fd/N; it is gone with the
 * process, however that ends. It can be opened by the process's user only, and its size is sealed. The library has it
 * mapped over a variable of its own, so that where it lies is known when the library is linked; where there is no file,
 * that variable is plain memory. The child of a fork gets a file of its own, at the same scope.
 *
 *     waits      the threads that wait now. Others read it, and the process does not notice: see waits.c
 *     text       reports. The holders are in the memory of the locks, which another process may not read: so the asking
 *                process locks the file (flock), adds one to `asked` and sends the signal, if possible to a thread that
 *                waits. The handler writes the report and stores `asked` in `answered`
 *     ring       what happens, while it is recorded: see record.h
 *
 * All of it may be written to by other processes of this user. The library checks what it reads of it, and so must
 * they.
 */
#ifndef VIGIL_SERVE_H
#define VIGIL_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#define SERVE_NAME  "vigil-run"
#define SERVE_MAGIC UINT64_C(0x32306e7572676976) /* with the version of this format */
#define SERVE_BYTES ((size_t)0x180000)           /* a multiple of all sizes of a page */
#define SERVE_ALIGN 0x10000
#define WAITS_MOST  4096u
#define EVENTS_KEPT 8192u

enum wait_kind {
    WAIT_MUTEX,
    WAIT_READ,
    WAIT_WRITE,
    WAIT_ONCE,
    WAIT_COND,
    WAIT_SEM,
    WAIT_BARRIER,
    WAIT_JOIN, /* for the end of a thread: `lock` is its handle */
    WAIT_KINDS
};

/* A thread that waits. */
struct wait {
    uint32_t sequence;      /* zero: not complete; otherwise no other wait has the same for a long time */
    uint32_t thread;        /* identity; zero: free */
    uint32_t thread_id;     /* as the system's tools name it */
    uint16_t kind;          /* enum wait_kind */
    uint16_t heeds_signals; /* a signal handler may end it */
    const void *lock;
    const void *site; /* the address that called */
    int64_t since_ns;
    uintptr_t handle; /* pthread_t */
    uint64_t name;    /* vigil_thread. At a condition or semaphore: by which the wait can be ended. Zero: it cannot */
    uint64_t unused;
};
_Static_assert(sizeof(struct wait) == 64, "a cache line");

/* What happens to a lock. */
enum serve_event_type {
    SERVE_WAITS,    /* the thread begins to wait for it */
    SERVE_GOT,      /* it has waited, and has what it waited for */
    SERVE_GAVE_UP,  /* it has not */
    SERVE_RETAKEN,  /* a mutex, which it has again after it has waited at a condition */
    SERVE_RELEASED, /* it unlocks what it has waited for */
    SERVE_CALLS,    /* it signals a condition, posts a semaphore, ends a once */
    SERVE_EVENT_TYPES
};
struct serve_event {
    uint64_t sequence; /* counted from 1; zero: not complete */
    int64_t at_ns;
    uint64_t lock;
    uint32_t thread_id;
    uint32_t by;         /* of GOT: the thread that has released the lock last; zero: not known */
    uint16_t type, kind; /* enum serve_event_type, enum wait_kind */
    uint32_t unused;
};

/* A wait and the holder, in a report. */
struct serve_holder {
    uint32_t thread_id; /* of the waiter */
    uint32_t holder;    /* its thread id; zero: none, or none that is known */
    uint64_t lock;
    uint64_t holder_site; /* where it has locked it; zero: not known */
    uint32_t readers;
    uint32_t unused;
};

enum serve_form { SERVE_TEXT, SERVE_JSON, SERVE_HOLDERS };

struct serve_head {
    uint64_t magic;
    uint32_t pid;
    int32_t signal; /* zero: none, because the program uses it itself, or was told so */
    uint32_t asked, answered;
    uint32_t form; /* enum serve_form: what is asked for */
    uint32_t length;
    uint32_t bound; /* all waits that there ever were are below */
    uint32_t sequences;
    uint32_t profiles;                                    /* not zero: a report as text or JSON has a profile */
    int64_t record_until_ns __attribute__((aligned(64))); /* zero: no recording */
    uint64_t events __attribute__((aligned(64)));         /* how many there have been */
};

struct serve {
    struct serve_head head __attribute__((aligned(64)));
    struct wait waits[WAITS_MOST];
    struct serve_event ring[EVENTS_KEPT];
    char text[SERVE_BYTES - sizeof(struct serve_head) - WAITS_MOST * sizeof(struct wait) -
              EVENTS_KEPT * sizeof(struct serve_event)];
};
_Static_assert(sizeof(struct serve) == SERVE_BYTES, "it is mapped as a whole");
#define SERVE_TEXT_BYTES (sizeof((struct serve *)0)->text)

#endif
