/* SPDX-License-Identifier: MIT */
/* Many event loops at one mutex: how many of them a release wakes up. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <vigil/agent.h>
#include <vigil/mutex.h>

enum { HOLD_NS = 50000, RUN_MS = 1000, RUN_MS_QUICK = 30 };

static struct { _Alignas(128) vigil_mutex mutex; } contended;
static bool stopped;
static pthread_barrier_t all_in_line;

/* An event loop on a thread of its own. */
struct loop {
    _Alignas(128) pthread_t thread;
    vigil_agent *agent;
    vigil_request request;
    uint64_t grants, sleeps;
};

/* How often this thread has gone to sleep, and so has been woken up. */
static uint64_t sleeps_of_thread(void) {
    struct rusage usage;
    must(getrusage(RUSAGE_THREAD, &usage) == 0);
    return (uint64_t)usage.ru_nvcsw;
}

static void hold_and_unlock(struct loop *loop) {
    uint64_t start_ns = now_ns();
    while (now_ns() - start_ns < HOLD_NS) continue;
    loop->grants++;
    must(vigil_mutex_unlock(&contended.mutex) == VIGIL_OK);
}

static void on_granted(vigil_op *op, int status);

/* Lock again and again, until the mutex is not available at once. */
static void ask(struct loop *loop) {
    while (!__atomic_load_n(&stopped, __ATOMIC_RELAXED)) {
        int status = vigil_mutex_lock_async(loop->agent, &loop->request, &contended.mutex, VIGIL_FOREVER, on_granted);
        if (status == VIGIL_PENDING) return;
        must(status == VIGIL_OK);
        hold_and_unlock(loop);
    }
}

static void on_granted(vigil_op *op, int status) {
    must(status == VIGIL_OK);
    hold_and_unlock(op->data);
    ask(op->data);
}

static void *loop_main(void *argument) {
    struct loop *loop = argument;
    must(vigil_agent_create(&loop->agent, 0) == VIGIL_OK);
    loop->request.op.data = loop;
    ask(loop);
    pthread_barrier_wait(&all_in_line);
    uint64_t before = sleeps_of_thread();
    must(vigil_agent_run(loop->agent) == VIGIL_OK);
    loop->sleeps = sleeps_of_thread() - before;
    must(vigil_agent_destroy(loop->agent) == VIGIL_OK);
    return NULL;
}

/* The mutex stays locked until all loops are in line. */
static double wakes_per_grant(unsigned count, vigil_mutex unlocked) {
    const struct timespec run = {.tv_sec = is_quick() ? 0 : RUN_MS / 1000,
                                 .tv_nsec = is_quick() ? RUN_MS_QUICK * 1000000 : 0};
    struct loop *loops = aligned_alloc(_Alignof(struct loop), count * sizeof *loops);
    uint64_t grants = 0, sleeps = 0;
    must(loops != NULL && pthread_barrier_init(&all_in_line, NULL, count + 1) == 0);
    contended.mutex = unlocked;
    stopped = false;
    must(vigil_mutex_lock(&contended.mutex) == VIGIL_OK);
    for (unsigned i = 0; i < count; i++) {
        loops[i] = (struct loop){.grants = 0};
        must(pthread_create(&loops[i].thread, NULL, loop_main, &loops[i]) == 0);
    }
    pthread_barrier_wait(&all_in_line);
    must(vigil_mutex_unlock(&contended.mutex) == VIGIL_OK);
    nanosleep(&run, NULL);
    __atomic_store_n(&stopped, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(loops[i].thread, NULL);
        grants += loops[i].grants;
        sleeps += loops[i].sleeps;
    }
    pthread_barrier_destroy(&all_in_line);
    free(loops);
    return (double)sleeps / (double)grants;
}

static void release_wakes(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = wakes_per_grant((unsigned)job->n, (vigil_mutex)VIGIL_MUTEX_INIT);
    figures[1] = wakes_per_grant((unsigned)job->n, (vigil_mutex)VIGIL_MUTEX_FAIR);
}

const struct skill our_loops[] = {
    {"release_wakes", release_wakes, false},
    {0},
};
