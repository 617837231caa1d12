/* SPDX-License-Identifier: MIT */
/* Threads, or processes, that contend for a mutex, and how often each of them gets it. */
#include "bench.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

enum { THREADS_MAX = 32, STEPS_INSIDE = 8, STEPS_OUTSIDE = 40, STEPS_100NS = 75 };

enum { READERS_AND_WRITERS = 4 };

/* The more threads, the longer it takes until each of them has had many turns on a processor. */
enum { MS_PER_THREAD = 60, MS_PER_THREAD_QUICK = 2 };

struct contester {
    _Alignas(128) struct contest *contest;
    void *(*main)(void *);
    pthread_t thread;
    struct partner partner;         /* in place of the thread, in a contest of processes */
    uint64_t served, served_before; /* in all, and when the measured time began */
    uint64_t longest_wait_ns;
    uint64_t written; /* of those served, how many wrote: for readers and writers */
};

/* What the mutex protects. */
struct protected {
    _Alignas(128) uint64_t served;
    uint64_t chain;
};

struct contest {
    struct lock lock;
    struct rwlock rwlock;
    uint64_t one_in;      /* this many calls writes; zero: not a contest of readers and writers */
    unsigned steps;       /* of their work */
    struct turns turns;
    const struct arena *arena; /* null: a contest of threads */
    guest_function *guest;
    unsigned threads; /* or processes; includes the guest, which is the last */
    pthread_barrier_t start;
    struct contester contesters[THREADS_MAX];
    struct protected protected;
    _Alignas(128) bool stopped;
};

/* Of the contest that is running. */
static struct protected *protected;

/* Dependent steps: a multiplication and an addition each, some 1.3 ns. */
static uint64_t work(uint64_t chain, unsigned steps) {
    for (; steps > 0; steps--) {
        chain = chain * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(chain));
    }
    return chain;
}

void work_inside(void) {
    protected->chain = work(protected->chain, STEPS_INSIDE);
    protected->served++;
}

void work_outside(void) {
    work(1, STEPS_OUTSIDE);
}

void count_served(uint64_t *served) {
    __atomic_store_n(served, *served + 1, __ATOMIC_RELAXED);
}

static bool is_stopped(const struct contest *contest) {
    return __atomic_load_n(&contest->stopped, __ATOMIC_RELAXED);
}

static void *serve(void *argument) {
    struct contester *self = argument;
    struct lock lock = self->contest->lock;
    pthread_barrier_wait(&self->contest->start);
    while (!is_stopped(self->contest)) {
        lock.lock();
        work_inside();
        lock.unlock();
        count_served(&self->served);
        work_outside();
    }
    return NULL;
}

static void *serve_by_the_clock(void *argument) {
    struct contester *self = argument;
    struct lock lock = self->contest->lock;
    pthread_barrier_wait(&self->contest->start);
    while (!is_stopped(self->contest)) {
        uint64_t start = now_ns();
        lock.lock();
        uint64_t wait_ns = now_ns() - start;
        work_inside();
        lock.unlock();
        count_served(&self->served);
        work_outside();
        if (wait_ns > self->longest_wait_ns) self->longest_wait_ns = wait_ns;
    }
    return NULL;
}

static void read_inside(unsigned steps) {
    uint64_t served = __atomic_load_n(&protected->served, __ATOMIC_RELAXED);
    work(served, steps);
    must(__atomic_load_n(&protected->served, __ATOMIC_RELAXED) == served);
}

static void write_inside(struct contester *self, unsigned steps) {
    work(protected->served, steps);
    __atomic_store_n(&protected->served, protected->served + 1, __ATOMIC_RELAXED);
    self->written++;
}

static uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *serve_readers_and_writers(void *argument) {
    struct contester *self = argument;
    struct rwlock rwlock = self->contest->rwlock;
    uint64_t one_in = self->contest->one_in, state = (uint64_t)(self - self->contest->contesters) + 1;
    unsigned steps = self->contest->steps;
    pthread_barrier_wait(&self->contest->start);
    while (!is_stopped(self->contest)) {
        if (random_next(&state) % one_in == 0) {
            rwlock.write_lock();
            write_inside(self, steps);
            rwlock.write_unlock();
        } else {
            rwlock.read_lock();
            read_inside(steps);
            rwlock.read_unlock();
        }
        count_served(&self->served);
    }
    return NULL;
}

static void *serve_turns(void *argument) {
    struct contester *self = argument;
    void (*take)(uint64_t random) = self->contest->turns.take;
    uint64_t state = (uint64_t)(self - self->contest->contesters) + 1;
    pthread_barrier_wait(&self->contest->start);
    while (!is_stopped(self->contest)) {
        take(random_next(&state));
        count_served(&self->served);
    }
    return NULL;
}

static void *serve_guest(void *argument) {
    struct contester *self = argument;
    pthread_barrier_wait(&self->contest->start);
    self->contest->guest(&self->served, &self->contest->stopped);
    return NULL;
}

static void sleep_ms(unsigned ms) {
    struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&rest, NULL);
}

/* Reads the counts of all, and leaves in `served` what was added since the last time. */
static uint64_t take_counts(struct contest *contest, uint64_t served[THREADS_MAX]) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < contest->threads; i++) {
        struct contester *contester = &contest->contesters[i];
        uint64_t now = __atomic_load_n(&contester->served, __ATOMIC_RELAXED);
        served[i] = now - contester->served_before;
        contester->served_before = now;
        sum += served[i];
    }
    return sum;
}

static struct contest *contest_open(struct lock lock, unsigned threads) {
    struct contest *contest = shared_memory(sizeof *contest);
    contest->lock = lock;
    contest->threads = threads;
    protected = &contest->protected;
    return contest;
}

static void contest_close(struct contest *contest) {
    shared_memory_free(contest, sizeof *contest);
}

static void contester_main(void *argument) {
    struct contester *self = argument;
    self->main(self);
}

static void contester_start(struct contester *contester) {
    const struct arena *arena = contester->contest->arena;
    if (arena != NULL) partner_start(&contester->partner, arena, contester_main, contester);
    else must(pthread_create(&contester->thread, NULL, contester->main, contester) == 0);
}

static void contester_wait(struct contester *contester) {
    if (contester->contest->arena != NULL) partner_wait(&contester->partner);
    else pthread_join(contester->thread, NULL);
}

static void start_open(struct contest *contest) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    must(pthread_barrier_init(&contest->start, &attributes, contest->threads + 1) == 0);
    pthread_barrierattr_destroy(&attributes);
}

/* Waits for all to end, and checks that the mutex has kept them apart. */
static void finish(struct contest *contest) {
    uint64_t served = 0;
    __atomic_store_n(&contest->stopped, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < contest->threads; i++) {
        contester_wait(&contest->contesters[i]);
        served += contest->one_in ? contest->contesters[i].written : contest->contesters[i].served;
    }
    pthread_barrier_destroy(&contest->start);
    if (contest->turns.take == NULL) must(protected->served == served);
    else must(contest->turns.count == NULL || contest->turns.count() == served);
}

/* Lets them contend for a while and then for the measured time. Returns how many million were served per second. */
static double run(struct contest *contest, void *(*main)(void *), uint64_t served[THREADS_MAX]) {
    unsigned ms = contest->threads * (is_quick() ? MS_PER_THREAD_QUICK : MS_PER_THREAD);
    must(contest->threads <= THREADS_MAX);
    start_open(contest);
    for (unsigned i = 0; i < contest->threads; i++) {
        struct contester *contester = &contest->contesters[i];
        bool is_guest = contest->guest != NULL && i == contest->threads - 1;
        contester->contest = contest;
        contester->main = is_guest ? serve_guest : main;
        contester_start(contester);
    }
    pthread_barrier_wait(&contest->start);
    sleep_ms(ms / 10);
    take_counts(contest, served);
    uint64_t start = now_ns();
    sleep_ms(ms);
    uint64_t sum = take_counts(contest, served);
    double elapsed_us = (double)(now_ns() - start) / 1e3;
    finish(contest);
    return (double)sum / elapsed_us;
}

static void measure_throughput(struct contest *contest, double figures[FIGURES_MAX]) {
    uint64_t served[THREADS_MAX];
    figures[0] = run(contest, serve, served);
    double least = INFINITY, most = 1;
    for (unsigned i = 0; i < contest->threads; i++) {
        least = fmin(least, (double)served[i]);
        most = fmax(most, (double)served[i]);
    }
    figures[1] = least / most;
}

void contest_throughput(const struct job *job, struct lock lock, double figures[FIGURES_MAX]) {
    struct contest *contest = contest_open(lock, (unsigned)job->n);
    measure_throughput(contest, figures);
    contest_close(contest);
}

void contest_of_processes(const struct job *job, const struct arena *arena, struct lock lock,
                          double figures[FIGURES_MAX]) {
    struct contest *contest = contest_open(lock, (unsigned)job->n);
    contest->arena = arena;
    arena->open();
    measure_throughput(contest, figures);
    arena->close();
    contest_close(contest);
}

void contest_longest_wait(const struct job *job, struct lock lock, double figures[FIGURES_MAX]) {
    struct contest *contest = contest_open(lock, (unsigned)job->n);
    uint64_t served[THREADS_MAX], longest_ns = 0;
    run(contest, serve_by_the_clock, served);
    for (unsigned i = 0; i < contest->threads; i++)
        if (contest->contesters[i].longest_wait_ns > longest_ns) longest_ns = contest->contesters[i].longest_wait_ns;
    contest_close(contest);
    figures[0] = (double)longest_ns / 1e6;
}

void contest_of_readers(const struct job *job, struct rwlock rwlock, double figures[FIGURES_MAX]) {
    static const unsigned steps[] = {0, STEPS_100NS};
    uint64_t served[THREADS_MAX];
    for (unsigned i = 0; i < 2; i++) {
        struct contest *contest = contest_open((struct lock){0}, READERS_AND_WRITERS);
        contest->rwlock = rwlock;
        contest->one_in = job->n;
        contest->steps = steps[i];
        figures[i] = run(contest, serve_readers_and_writers, served);
        contest_close(contest);
    }
}

double contest_of_turns(unsigned threads, struct turns turns) {
    struct contest *contest = contest_open((struct lock){0}, threads);
    uint64_t served[THREADS_MAX];
    contest->turns = turns;
    double rate = run(contest, serve_turns, served);
    contest_close(contest);
    return rate;
}

void contest_with_guest(const struct job *job, struct lock lock, guest_function *guest, double figures[FIGURES_MAX]) {
    struct contest *contest = contest_open(lock, (unsigned)job->n + 1);
    uint64_t served[THREADS_MAX], sum = 0;
    contest->guest = guest;
    figures[0] = run(contest, serve, served);
    for (unsigned i = 0; i < contest->threads; i++) sum += served[i];
    figures[1] = (double)served[contest->threads - 1] * contest->threads / (double)sum;
    contest_close(contest);
}
