/* SPDX-License-Identifier: MIT */
/*
 * Barriers. A thread that has come back may destroy the barrier while others are on their way out; so destroy waits for
 * those, as glibc's does.
 */
#include "preload.h"

#include <errno.h>
#include <limits.h>

#define MOST_PARTIES 65535u /* of Vigil's: a larger one is glibc's */

struct barrier {
    vigil_barrier barrier;
    uint32_t inside;
    uint32_t unused[3]; /* glibc's own fields end here */
    uint64_t mark;
};
_Static_assert(sizeof(struct barrier) <= sizeof(pthread_barrier_t), "it must fit");

static struct barrier *barrier_of(pthread_barrier_t *barrier) {
    return (struct barrier *)(void *)barrier;
}

static bool barrier_is_foreign(pthread_barrier_t *barrier) {
    return barrier_of(barrier)->mark != OBJECT_MARK;
}

PRELOAD_API int pthread_barrier_wait(pthread_barrier_t *object) {
    if (barrier_is_foreign(object)) return REAL(pthread_barrier_wait)(object);
    struct barrier *barrier = barrier_of(object);
    struct wait_scope scope;
    int status;
    __atomic_fetch_add(&barrier->inside, 1, __ATOMIC_RELAXED);
    wait_begin(&scope, WAIT_BARRIER, barrier, CALLER);
    do status = vigil_barrier_wait(&barrier->barrier);
    while ((status == VIGIL_ENOMEM || status == VIGIL_ELIMIT) && deadline_pause());
    scope.counts = status != VIGIL_LAST;
    scope.got = true;
    wait_end(&scope);
    if (__atomic_sub_fetch(&barrier->inside, 1, __ATOMIC_RELEASE) == 0) vigil_notify(&barrier->inside, VIGIL_ALL);
    return status == VIGIL_LAST ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

PRELOAD_API int pthread_barrier_init(pthread_barrier_t *object, const pthread_barrierattr_t *attributes,
                                     unsigned count) {
    int shared = PTHREAD_PROCESS_PRIVATE;
    if (attributes) pthread_barrierattr_getpshared(attributes, &shared);
    barrier_of(object)->mark = 0;
    if (shared != PTHREAD_PROCESS_PRIVATE || count == 0 || count > MOST_PARTIES)
        return REAL(pthread_barrier_init)(object, attributes, count);
    *barrier_of(object) = (struct barrier){.barrier = VIGIL_BARRIER_INIT(count), .mark = OBJECT_MARK};
    return 0;
}

PRELOAD_API int pthread_barrier_destroy(pthread_barrier_t *object) {
    if (barrier_is_foreign(object)) return REAL(pthread_barrier_destroy)(object);
    uint32_t *inside = &barrier_of(object)->inside, seen;
    while ((seen = __atomic_load_n(inside, __ATOMIC_ACQUIRE))) vigil_wait32(inside, seen, VIGIL_FOREVER);
    barrier_of(object)->mark = 0;
    return 0;
}
