/* SPDX-License-Identifier: MIT */
/* Semaphores. There is no static initialiser: those that our sem_init made have its mark, all others are glibc's. */
#include "preload.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include "prim.h"
#include "record.h"

_Static_assert(sizeof(struct semaphore) <= sizeof(sem_t), "it must fit");

static struct semaphore *semaphore_of(sem_t *sem) {
    return (struct semaphore *)(void *)sem;
}

static bool sem_is_foreign(sem_t *sem) {
    return semaphore_of(sem)->mark != OBJECT_MARK;
}

/* For reports: many semaphores are used as locks, and then the last taker is the holder. */
static int taken(struct semaphore *semaphore, const void *site) {
    __atomic_store_n(&semaphore->taker, preload_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&semaphore->site, site, __ATOMIC_RELAXED);
    return 0;
}

static int fail(int error) {
    errno = error;
    return -1;
}

/* A signal handler that has run meanwhile, and pthread_cancel: VIGIL_INTERRUPTED. See lot/interrupt.h. */
static int acquire_once(vigil_sem *word, int64_t deadline_ns) {
    struct prim_thread *self = prim_self();
    int status;
    self->signalled = false;
    pthread_testcancel();
    self->heeds_signals = true;
    do status = vigil__sem_acquire_slowly(word, 1, deadline_timeout_ns(deadline_ns));
    while ((status == VIGIL_ENOMEM || status == VIGIL_ELIMIT) && deadline_pause());
    self->heeds_signals = false;
    if (status == VIGIL_INTERRUPTED) pthread_testcancel();
    return status;
}

/*
 * A signal handler ends the wait, as it does in glibc. (vigil_sem_acquire itself goes on.) So does pthread_cancel; but
 * not while the thread does not allow it: then the wait goes on.
 */
static int acquire(vigil_sem *word, int64_t deadline_ns, const struct wait_scope *scope) {
    int status;
    int64_t end_ns;
    do {
        end_ns = wait_slice(scope, deadline_ns);
        status = acquire_once(word, end_ns);
    } while ((status == VIGIL_INTERRUPTED && !prim_self()->signalled) ||
             (status == VIGIL_TIMED_OUT && end_ns < deadline_ns));
    switch (status) {
    case VIGIL_OK: return 0;
    case VIGIL_TIMED_OUT: return ETIMEDOUT;
    case VIGIL_INTERRUPTED: return EINTR;
    default: return EINVAL;
    }
}

static int sem_wait_deferred(vigil_sem *word, int64_t deadline_ns, const void *site) {
    __attribute__((cleanup(wait_end))) struct wait_scope scope; /* also when the thread is cancelled */
    wait_begin(&scope, WAIT_SEM, word, site);
    int64_t end_ns = wait_slice(&scope, deadline_ns);
    if (scope.wait) scope.wait->heeds_signals = end_ns != DEADLINE_NEVER; /* else the system goes on with it */
    int error = acquire(word, deadline_ns, &scope);
    scope.got = !error;
    return error;
}

static int wait_until(vigil_sem *word, int64_t deadline_ns, const void *site) {
    int type = cancel_defer();
    int error = sem_wait_deferred(word, deadline_ns, site);
    cancel_as_before(type);
    return error;
}

PRELOAD_API int sem_wait(sem_t *sem) {
    if (sem_is_foreign(sem)) return REAL(sem_wait)(sem);
    struct semaphore *semaphore = semaphore_of(sem);
    pthread_testcancel();
    if (vigil_sem_tryacquire(&semaphore->word, 1) == VIGIL_OK) return taken(semaphore, CALLER);
    int error = wait_until(&semaphore->word, DEADLINE_NEVER, CALLER);
    return error ? fail(error) : taken(semaphore, CALLER);
}

static int wait_on(struct semaphore *semaphore, clockid_t clock, const struct timespec *at, const void *site) {
    pthread_testcancel();
    if (!deadline_is_valid(clock, at)) return fail(EINVAL);
    if (vigil_sem_tryacquire(&semaphore->word, 1) == VIGIL_OK) return taken(semaphore, site);
    int error = wait_until(&semaphore->word, deadline_of(clock, at), site);
    return error ? fail(error) : taken(semaphore, site);
}

PRELOAD_API int sem_timedwait(sem_t *sem, const struct timespec *at) {
    if (sem_is_foreign(sem)) return REAL(sem_timedwait)(sem, at);
    return wait_on(semaphore_of(sem), CLOCK_REALTIME, at, CALLER);
}

PRELOAD_API int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *at) {
    if (sem_is_foreign(sem)) return REAL(sem_clockwait)(sem, clock, at);
    return wait_on(semaphore_of(sem), clock, at, CALLER);
}

PRELOAD_API int sem_trywait(sem_t *sem) {
    if (sem_is_foreign(sem)) return REAL(sem_trywait)(sem);
    struct semaphore *semaphore = semaphore_of(sem);
    return vigil_sem_tryacquire(&semaphore->word, 1) == VIGIL_OK ? taken(semaphore, CALLER) : fail(EAGAIN);
}

#define WAITERS 1u /* as vigil/sem.h has it */
static void record_post(const vigil_sem *word) {
    if (__atomic_load_n(&word->word, __ATOMIC_RELAXED) & WAITERS) record_event(SERVE_CALLS, WAIT_SEM, word, 0, 0);
}

PRELOAD_API int sem_post(sem_t *sem) {
    if (sem_is_foreign(sem)) return REAL(sem_post)(sem);
    if (is_recorded()) record_post(&semaphore_of(sem)->word);
    return vigil_sem_release(&semaphore_of(sem)->word, 1) == VIGIL_OK ? 0 : fail(EOVERFLOW);
}

PRELOAD_API int sem_getvalue(sem_t *sem, int *value) {
    if (sem_is_foreign(sem)) return REAL(sem_getvalue)(sem, value);
    *value = (int)vigil_sem_value(&semaphore_of(sem)->word);
    return 0;
}

PRELOAD_API int sem_init(sem_t *sem, int shared, unsigned value) {
    semaphore_of(sem)->mark = 0;
    if (shared || value > VIGIL_SEM_MAX) return REAL(sem_init)(sem, shared, value);
    *semaphore_of(sem) = (struct semaphore){.word = VIGIL_SEM_INIT(value), .mark = OBJECT_MARK};
    return 0;
}

PRELOAD_API int sem_destroy(sem_t *sem) {
    if (sem_is_foreign(sem)) return REAL(sem_destroy)(sem);
    semaphore_of(sem)->mark = 0;
    return 0;
}
