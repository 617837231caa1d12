/* SPDX-License-Identifier: MIT */
/* Threads that wait for a condition, all of them woken at once. */
#include "bench.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

enum { WAITERS_MAX = 64, BROADCASTS = 100 };

static struct {
    struct monitor monitor;
    unsigned waiters;
    sem_t all_served; /* the C library's, for every contestant */
    /* Under the monitor's mutex: */
    unsigned generation;
    unsigned served; /* of this generation */
    bool stopped;
} crowd;

/* A thread that has seen a generation counts itself and waits for the next, which passes the mutex on. */
static void *wait_again_and_again(void *argument) {
    crowd.monitor.mutex.lock();
    while (!crowd.stopped) {
        unsigned seen = crowd.generation;
        if (++crowd.served == crowd.waiters) sem_post(&crowd.all_served);
        while (crowd.generation == seen) crowd.monitor.wait();
    }
    crowd.monitor.mutex.unlock();
    return argument;
}

static void wait_for_all(void) {
    while (sem_wait(&crowd.all_served) != 0) must(errno == EINTR);
}

/* The thread that is served last waits again before it releases the mutex, so all of them wait once we have the
 * mutex. */
static uint64_t broadcast_ns(void) {
    crowd.monitor.mutex.lock();
    must(crowd.served == crowd.waiters);
    crowd.served = 0;
    crowd.generation++;
    uint64_t start = now_ns();
    crowd.monitor.broadcast();
    crowd.monitor.mutex.unlock();
    wait_for_all();
    return now_ns() - start;
}

static void stop(void) {
    crowd.monitor.mutex.lock();
    crowd.generation++;
    crowd.stopped = true;
    crowd.monitor.broadcast();
    crowd.monitor.mutex.unlock();
}

double per_broadcast_us(struct monitor monitor, unsigned waiters) {
    pthread_t threads[WAITERS_MAX];
    uint64_t elapsed_ns = 0;
    must(waiters <= WAITERS_MAX);
    crowd.monitor = monitor;
    crowd.waiters = waiters;
    crowd.served = 0;
    crowd.stopped = false;
    sem_init(&crowd.all_served, 0, 0);
    for (unsigned i = 0; i < waiters; i++) must(pthread_create(&threads[i], NULL, wait_again_and_again, NULL) == 0);
    wait_for_all();
    broadcast_ns(); /* to warm up */
    for (unsigned i = 0; i < BROADCASTS; i++) elapsed_ns += broadcast_ns();
    stop();
    for (unsigned i = 0; i < waiters; i++) pthread_join(threads[i], NULL);
    sem_destroy(&crowd.all_served);
    return (double)elapsed_ns / BROADCASTS / 1e3;
}
