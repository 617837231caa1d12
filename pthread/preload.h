/* SPDX-License-Identifier: MIT */
/*
 * preload.h - libvigil-pthread.so: the mutexes, conditions, read-write locks, semaphores, barriers and onces of
 * pthreads on Vigil's lines. `vigil run` preloads it into a program, which then needs no change.
 *
 * OBJECTS
 *
 * An object of ours has glibc's type and size, and begins with Vigil's word. All-zero memory, and what the static
 * initialisers make, is an object of ours. An object whose attributes ask for what Vigil does not have (process-shared,
 * robust, priority inheritance or protection) stays glibc's: its init is passed on, and glibc's own fields say so from
 * then on:
 *
 *     pthread_mutex_t      __kind          one of the bits FOREIGN_KIND
 *     pthread_cond_t       __wrefs         bit 0
 *     pthread_rwlock_t     __shared        not zero
 *     sem_t, pthread_barrier_t             the object lacks OBJECT_MARK, which our init writes
 *
 * THE HOLDER OF A LOCK
 *
 * A mutex and a read-write lock that is held for writing have the identity of their holder (start.c), where gdb looks
 * for it, and the address that called lock. Both are plain stores next to the lock's word. A thread that has to wait
 * also takes an entry in the table of waits (waits.c); the report (report.c) and the profile (profile.c) are made of
 * those. A lock without waiters costs no more than this, and a load when it is unlocked (record.h).
 */
#ifndef VIGIL_PRELOAD_H
#define VIGIL_PRELOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <vigil/vigil.h>

#include "serve.h"
#include "symbol.h"

#define PRELOAD_API __attribute__((visibility("default")))
#define CALLER      __builtin_return_address(0)

/* In a semaphore and a barrier of ours. */
#define OBJECT_MARK UINT64_C(0x6c696769762d7470)

/* start.c: options, identities, fork. */
struct preload_options {
    bool check;              /* vigil run --check */
    bool profile;            /* vigil run --profile */
    bool json;               /* the profile as JSON */
    int signal;              /* that asks for a report; 0: none */
    uint32_t first_pid;      /* the process that vigil run became */
    char profile_path[1024]; /* empty: stderr */
};
extern struct preload_options preload;
/* Make it ready, once. Called by the constructor, or by an earlier call that needs it. */
void preload_begin(void);
/* The calling thread's identity, never zero. It is unique among the living threads, and a forked child's thread keeps
 * that of the thread that forked. */
extern _Thread_local uint32_t preload_identity; /* zero: not made yet */
uint32_t preload_identify(void);
static inline uint32_t preload_self(void) {
    return __builtin_expect(preload_identity != 0, 1) ? preload_identity : preload_identify();
}
/* As the system's tools name it. */
uint32_t preload_thread_id(uint32_t identity);
/* How often this process and its ancestors have forked. */
uint32_t preload_generation(void);

/* clock.c: deadlines are nanoseconds of the monotonic clock. */
#define DEADLINE_NEVER INT64_MAX
#define DEADLINE_TRY   INT64_C(0) /* do not wait at all */
/* False: the clock is not one of the two, or the nanoseconds are out of range. */
bool deadline_is_valid(clockid_t clock, const struct timespec *at);
int64_t deadline_of(clockid_t clock, const struct timespec *at);
/* The timeout that ends then. */
int64_t deadline_timeout_ns(int64_t deadline_ns);
/* A lock could not be waited for, because there is no memory for waiters: sleep a millisecond. Returns true. */
bool deadline_pause(void);

/* waits.c: the threads that wait now, in the table of serve.h. */
struct wait_scope {    /* of one wait, on its thread's stack */
    struct wait *wait; /* null: the table is full */
    enum wait_kind kind;
    const void *lock, *site;
    int64_t since_ns;
    bool counts;              /* for the profile: it was contended. True unless it is changed */
    bool got;                 /* what it waited for. False unless it is changed */
    const uint32_t *releaser; /* in the lock: the thread that has released it last; null: it has no such word */
    const void *retaken;      /* the mutex that the thread has again after a wait at a condition; null: none */
};
void wait_begin(struct wait_scope *scope, enum wait_kind kind, const void *lock, const void *site);
void wait_end(const struct wait_scope *scope);
/* Of a wait at a condition or semaphore: when to look whether the thread is cancelled. That is at the deadline, unless
 * pthread_cancel cannot end the wait. */
int64_t wait_slice(const struct wait_scope *scope, int64_t deadline_ns);
/* Copies entry number `index` if it is in use. False: it is not. `*more`: there may be others behind it. */
bool wait_copy(uint32_t index, struct wait *copy, bool *more);
const char *wait_kind_name(uint32_t kind);

/* cancel.c: a thread that may be cancelled at any moment may not be while it is in our lines. `type` is as before. */
int cancel_defer(void);
void cancel_as_before(int type);

/* real.c: glibc's own functions, for objects that stay glibc's. */
#define REAL_FUNCTIONS(X)                                                                                              \
    X(pthread_mutex_init, NULL)                                                                                        \
    X(pthread_mutex_destroy, NULL)                                                                                     \
    X(pthread_mutex_lock, NULL)                                                                                        \
    X(pthread_mutex_trylock, NULL)                                                                                     \
    X(pthread_mutex_timedlock, NULL)                                                                                   \
    X(pthread_mutex_clocklock, NULL)                                                                                   \
    X(pthread_mutex_unlock, NULL)                                                                                      \
    X(pthread_cond_init, "GLIBC_2.3.2")                                                                                \
    X(pthread_cond_destroy, "GLIBC_2.3.2")                                                                             \
    X(pthread_cond_wait, "GLIBC_2.3.2")                                                                                \
    X(pthread_cond_timedwait, "GLIBC_2.3.2")                                                                           \
    X(pthread_cond_clockwait, NULL)                                                                                    \
    X(pthread_cond_signal, "GLIBC_2.3.2")                                                                              \
    X(pthread_cond_broadcast, "GLIBC_2.3.2")                                                                           \
    X(pthread_rwlock_init, NULL)                                                                                       \
    X(pthread_rwlock_destroy, NULL)                                                                                    \
    X(pthread_rwlock_rdlock, NULL)                                                                                     \
    X(pthread_rwlock_tryrdlock, NULL)                                                                                  \
    X(pthread_rwlock_timedrdlock, NULL)                                                                                \
    X(pthread_rwlock_clockrdlock, NULL)                                                                                \
    X(pthread_rwlock_wrlock, NULL)                                                                                     \
    X(pthread_rwlock_trywrlock, NULL)                                                                                  \
    X(pthread_rwlock_timedwrlock, NULL)                                                                                \
    X(pthread_rwlock_clockwrlock, NULL)                                                                                \
    X(pthread_rwlock_unlock, NULL)                                                                                     \
    X(sem_init, NULL)                                                                                                  \
    X(sem_destroy, NULL)                                                                                               \
    X(sem_wait, NULL)                                                                                                  \
    X(sem_trywait, NULL)                                                                                               \
    X(sem_timedwait, NULL)                                                                                             \
    X(sem_clockwait, NULL)                                                                                             \
    X(sem_post, NULL)                                                                                                  \
    X(sem_getvalue, NULL)                                                                                              \
    X(pthread_barrier_init, NULL)                                                                                      \
    X(pthread_barrier_destroy, NULL)                                                                                   \
    X(pthread_barrier_wait, NULL)                                                                                      \
    X(pthread_cancel, NULL)                                                                                            \
    X(pthread_join, NULL)                                                                                              \
    X(sigaction, NULL)                                                                                                 \
    X(signal, NULL)                                                                                                    \
    X(__register_atfork, NULL)

enum real_number {
#define REAL_NUMBER(name, version) REAL_##name,
    REAL_FUNCTIONS(REAL_NUMBER)
#undef REAL_NUMBER
        REAL_COUNT
};
void *real_function(enum real_number number);
#define REAL(name) ((__typeof__(&name))(uintptr_t)real_function(REAL_##name))

/* mutex.c, for conditions. */
#define FOREIGN_KIND 0xf0 /* of glibc's __kind: robust, inherit, protect, shared */
struct mutex_state {      /* what a wait takes away, and puts back */
    unsigned count;
    const void *site;
};
static inline bool mutex_is_foreign(const pthread_mutex_t *mutex) {
    return mutex->__data.__kind & FOREIGN_KIND;
}
static inline vigil_mutex *mutex_word(pthread_mutex_t *mutex) {
    return (vigil_mutex *)(void *)&mutex->__data.__lock;
}
/* Zero, or EPERM: no thread holds it, or the mutex is of a kind that knows that the caller does not. */
int mutex_release_state(pthread_mutex_t *mutex, struct mutex_state *state);
void mutex_restore_state(pthread_mutex_t *mutex, const struct mutex_state *state);
/* Between those two: release it, and take it again. */
void mutex_leave(pthread_mutex_t *mutex, const void *site);
void mutex_retake(pthread_mutex_t *mutex, const void *site);

/* bridge.c: conditions that stay glibc's, with mutexes of ours. */
int bridge_signal(pthread_cond_t *cond, int (*signal)(pthread_cond_t *));
/* As pthread_cond_wait if `at` is null; else as _timedwait if `clock` is null, or as _clockwait. */
int bridge_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, const clockid_t *clock, const struct timespec *at,
                const void *site);
void bridge_in_child(void);

/* sem.c, for reports. */
struct semaphore {
    vigil_sem word;
    uint32_t taker;     /* the thread that has taken a permit last; zero: none has */
    uint32_t unused[2]; /* glibc's own fields end here */
    uint64_t mark;
    const void *site; /* where that was */
};

/* order.c: vigil run --check. True from order_enter: the call must be checked, and order_leave follows it. */
bool order_enter(void);
void order_leave(void);
/* What stands for file and line in calls of vigil_check_...: the report has the function's name instead. */
#define ORDER_FILE "pthread"
int order_site(const void *site);
void order_begin(void);
void order_forget(const void *lock, uint64_t length);

struct text;
/* profile.c: vigil run --profile. */
void profile_add(const struct wait_scope *scope, int64_t waited_ns);
void profile_in_child(void);
void profile_write(void);
/* The longest so far, as a part of a report: see there. */
void profile_report(struct text *text, bool json);

/* text.c: text in a buffer, or on its way to a descriptor. No stdio, no memory, no locks. */
struct text {
    int fd; /* -1: what does not fit is lost */
    size_t used, room;
    char *at;
};
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_json(struct text *text, const char *value); /* with quotes */
void text_flush(struct text *text);

/* report.c: which thread waits for what. May be called from a signal handler. False: another thread is making one. */
bool report_write(struct text *text, enum serve_form form);

/* serve.c: the signal, and what vigil show, top and trace look at. */
void serve_begin(void);
void serve_in_child(void);

#endif
