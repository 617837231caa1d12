/* SPDX-License-Identifier: MIT */
/*
 * pthread_once, by a word and its line.
 *
 *     0                       new
 *     RUNNING | generation    a thread is calling the function
 *     ... | WAITERS           and others wait for that
 *     DONE                    for ever
 *
 * The function may be left by an exception, or because its thread is cancelled: then the once is new again. In the
 * child of a fork a once that another thread of the parent was running, which the generation shows, is new, too.
 */
#include "preload.h"

#include "record.h"

#define RUNNING    1u
#define DONE       2u
#define WAITERS    4u
#define GENERATION 8u

_Static_assert(sizeof(pthread_once_t) == sizeof(uint32_t), "a word");

struct run {
    uint32_t *word, end;
};

static void end_run(const struct run *run) {
    uint32_t seen = __atomic_exchange_n(run->word, run->end, __ATOMIC_ACQ_REL);
    if (!(seen & WAITERS)) return;
    if (is_recorded()) record_event(SERVE_CALLS, WAIT_ONCE, run->word, 0, 0);
    vigil_notify(run->word, VIGIL_ALL);
}

static void call(uint32_t *word, void (*function)(void)) {
    __attribute__((cleanup(end_run))) struct run run = {word, 0};
    function();
    run.end = DONE;
}

static void once_wait_for(uint32_t *word, uint32_t seen, const void *site) {
    uint32_t awaited = seen | WAITERS;
    if (seen != awaited &&
        !__atomic_compare_exchange_n(word, &seen, awaited, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    struct wait_scope scope;
    wait_begin(&scope, WAIT_ONCE, word, site);
    int status = vigil_wait32(word, awaited, VIGIL_FOREVER);
    scope.got = status >= 0;
    wait_end(&scope);
    if (status < 0) deadline_pause();
}

PRELOAD_API int pthread_once(pthread_once_t *once, void (*function)(void)) {
    uint32_t *word = (uint32_t *)once, seen;
    while (!((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) & DONE)) {
        uint32_t ours = RUNNING | preload_generation() * GENERATION;
        if ((seen & ~WAITERS) == ours) {
            once_wait_for(word, seen, CALLER);
        } else if (__atomic_compare_exchange_n(word, &seen, ours, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            call(word, function);
            break;
        }
    }
    return 0;
}
