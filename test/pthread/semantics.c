/* SPDX-License-Identifier: MIT */
/*
 * Every function that libvigil-pthread.so stands in for, against what glibc documents. The same program is run as it is
 * and under vigil run, and has to be right both times.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;

#define EXPECT(expected, call)                                                                                         \
    do {                                                                                                               \
        long got = (long)(call), wanted = (long)(expected);                                                            \
        if (got != wanted) {                                                                                           \
            fprintf(stderr, "%s:%d: %s is %ld, not %ld\n", __FILE__, __LINE__, #call, got, wanted);                    \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)
#define EXPECT_ERRNO(expected, call)                                                                                   \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        EXPECT(-1, call);                                                                                              \
        EXPECT(expected, errno);                                                                                       \
    } while (0)

static struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec at;
    clock_gettime(clock, &at);
    int64_t ns = (int64_t)at.tv_sec * 1000000000 + at.tv_nsec + (int64_t)ms * 1000000;
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}

static int64_t ns_since(clockid_t clock, struct timespec then) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)(now.tv_sec - then.tv_sec) * 1000000000 + now.tv_nsec - then.tv_nsec;
}

static const struct timespec invalid = {.tv_sec = 1, .tv_nsec = 1000000000}, past = {.tv_sec = 1};

/* Threads. */

struct task {
    pthread_t thread;
    void *(*run)(void *);
    void *argument;
    pid_t id;
};

static void *begin_task(void *argument) {
    struct task *task = argument;
    __atomic_store_n(&task->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    return task->run(task->argument);
}

static void start(struct task *task, void *(*run)(void *), void *argument) {
    *task = (struct task){.run = run, .argument = argument};
    if (pthread_create(&task->thread, NULL, begin_task, task) != 0) abort();
}

static long finish(struct task *task) {
    void *result;
    EXPECT(0, pthread_join(task->thread, &result));
    return (long)(intptr_t)result;
}

/* Returns when the system says that the thread sleeps. */
static void until_asleep(struct task *task) {
    pid_t id;
    while (!(id = __atomic_load_n(&task->id, __ATOMIC_ACQUIRE))) sched_yield();
    for (char state = 0; state != 'S';) {
        char path[64], line[512] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)id);
        FILE *stat = fopen(path, "re");
        if (!stat) return; /* it has ended */
        if (fgets(line, sizeof line, stat)) state = strrchr(line, ')')[2];
        fclose(stat);
        sched_yield();
    }
}

/* Runs a call on another thread and returns its result. */
static long elsewhere(void *(*run)(void *), void *argument) {
    struct task task;
    start(&task, run, argument);
    return finish(&task);
}

#define ON_THREAD(name, type, call)                                                                                    \
    static void *name(void *argument) {                                                                                \
        type *object = argument;                                                                                       \
        return (void *)(intptr_t)(call);                                                                               \
    }

/* Mutexes. */

ON_THREAD(try_mutex, pthread_mutex_t, pthread_mutex_trylock(object))
ON_THREAD(unlock_mutex, pthread_mutex_t, pthread_mutex_unlock(object))

static void *lock_and_unlock(void *argument) {
    int error = pthread_mutex_lock(argument);
    return (void *)(intptr_t)(error ? error : pthread_mutex_unlock(argument));
}

static void make_mutex(pthread_mutex_t *mutex, int type) {
    pthread_mutexattr_t attributes;
    EXPECT(0, pthread_mutexattr_init(&attributes));
    EXPECT(0, pthread_mutexattr_settype(&attributes, type));
    EXPECT(0, pthread_mutex_init(mutex, &attributes));
    EXPECT(0, pthread_mutexattr_destroy(&attributes));
}

static void mutex_times_out(pthread_mutex_t *mutex) {
    struct timespec at = in_ms(CLOCK_REALTIME, 5);
    EXPECT(ETIMEDOUT, pthread_mutex_timedlock(mutex, &at));
    EXPECT(true, ns_since(CLOCK_REALTIME, at) >= 0);
    at = in_ms(CLOCK_MONOTONIC, 5);
    EXPECT(ETIMEDOUT, pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &at));
    EXPECT(true, ns_since(CLOCK_MONOTONIC, at) >= 0);
    EXPECT(ETIMEDOUT, pthread_mutex_timedlock(mutex, &past));
    EXPECT(EINVAL, pthread_mutex_timedlock(mutex, &invalid));
    EXPECT(EINVAL, pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &at));
}
ON_THREAD(time_out, pthread_mutex_t, (mutex_times_out(object), 0))

static void normal_mutex(pthread_mutex_t *mutex) {
    EXPECT(0, pthread_mutex_lock(mutex));
    EXPECT(EBUSY, pthread_mutex_trylock(mutex));
    EXPECT(EBUSY, elsewhere(try_mutex, mutex));
    EXPECT(EBUSY, pthread_mutex_destroy(mutex));
    EXPECT(0, elsewhere(time_out, mutex));
    struct task waiter;
    start(&waiter, lock_and_unlock, mutex);
    until_asleep(&waiter);
    EXPECT(0, pthread_mutex_unlock(mutex));
    EXPECT(0, finish(&waiter));
    EXPECT(0, pthread_mutex_trylock(mutex));
    EXPECT(0, pthread_mutex_unlock(mutex));
    EXPECT(0, pthread_mutex_timedlock(mutex, &invalid)); /* the time is not looked at: the mutex is free */
    EXPECT(0, pthread_mutex_unlock(mutex));
}

static void recursive_mutex(pthread_mutex_t *mutex) {
    for (int i = 0; i < 3; i++) EXPECT(0, pthread_mutex_lock(mutex));
    EXPECT(0, pthread_mutex_trylock(mutex));
    EXPECT(0, pthread_mutex_timedlock(mutex, &past));
    EXPECT(EBUSY, elsewhere(try_mutex, mutex));
    EXPECT(EPERM, elsewhere(unlock_mutex, mutex));
    for (int i = 0; i < 4; i++) EXPECT(0, pthread_mutex_unlock(mutex));
    EXPECT(EBUSY, elsewhere(try_mutex, mutex));
    EXPECT(EBUSY, pthread_mutex_destroy(mutex));
    EXPECT(0, pthread_mutex_unlock(mutex));
    EXPECT(EPERM, pthread_mutex_unlock(mutex));
    EXPECT(0, elsewhere(lock_and_unlock, mutex));
}

static void errorcheck_mutex(pthread_mutex_t *mutex) {
    EXPECT(EPERM, pthread_mutex_unlock(mutex));
    EXPECT(0, pthread_mutex_lock(mutex));
    EXPECT(EDEADLK, pthread_mutex_lock(mutex));
    EXPECT(EBUSY, pthread_mutex_trylock(mutex));
    EXPECT(EDEADLK, pthread_mutex_timedlock(mutex, &past));
    EXPECT(EPERM, elsewhere(unlock_mutex, mutex));
    EXPECT(0, elsewhere(time_out, mutex));
    EXPECT(0, pthread_mutex_unlock(mutex));
    EXPECT(EPERM, pthread_mutex_unlock(mutex));
}

static void test_mutex_kinds(void) {
    static pthread_mutex_t zero = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                           errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
                           adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    pthread_mutex_t mutex;
    normal_mutex(&zero);
    normal_mutex(&adaptive);
    recursive_mutex(&recursive);
    errorcheck_mutex(&errorcheck);
    EXPECT(0, pthread_mutex_init(&mutex, NULL));
    normal_mutex(&mutex);
    EXPECT(0, pthread_mutex_destroy(&mutex));
    EXPECT(EINVAL, pthread_mutex_lock(&mutex));
    make_mutex(&mutex, PTHREAD_MUTEX_NORMAL);
    normal_mutex(&mutex);
    EXPECT(0, pthread_mutex_destroy(&mutex));
    make_mutex(&mutex, PTHREAD_MUTEX_RECURSIVE);
    recursive_mutex(&mutex);
    EXPECT(0, pthread_mutex_destroy(&mutex));
    make_mutex(&mutex, PTHREAD_MUTEX_ERRORCHECK);
    errorcheck_mutex(&mutex);
    EXPECT(0, pthread_mutex_destroy(&mutex));
}

struct counter {
    pthread_mutex_t mutex;
    long count;
};
static void *count_up(void *argument) {
    struct counter *counter = argument;
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&counter->mutex);
        counter->count++;
        pthread_mutex_unlock(&counter->mutex);
    }
    return NULL;
}

static void test_mutex_excludes(void) {
    static struct counter counter;
    struct task tasks[4];
    for (int i = 0; i < 4; i++) start(&tasks[i], count_up, &counter);
    for (int i = 0; i < 4; i++) finish(&tasks[i]);
    EXPECT(80000, counter.count);
}

/* What Vigil does not have stays glibc's. */

static void *die_with(void *argument) {
    pthread_mutex_lock(argument);
    return NULL;
}

static void test_robust(void) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    EXPECT(0, pthread_mutexattr_init(&attributes));
    EXPECT(0, pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    EXPECT(0, pthread_mutex_init(&mutex, &attributes));
    elsewhere(die_with, &mutex);
    EXPECT(EOWNERDEAD, pthread_mutex_lock(&mutex));
    EXPECT(0, pthread_mutex_consistent(&mutex));
    EXPECT(0, pthread_mutex_unlock(&mutex));
    EXPECT(0, pthread_mutex_destroy(&mutex));
}

static void test_inherit(void) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    EXPECT(0, pthread_mutexattr_init(&attributes));
    EXPECT(0, pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT));
    EXPECT(0, pthread_mutex_init(&mutex, &attributes));
    EXPECT(0, pthread_mutex_lock(&mutex));
    EXPECT(EBUSY, elsewhere(try_mutex, &mutex));
    struct timespec at = in_ms(CLOCK_REALTIME, 5); /* a condition of ours with a mutex of glibc's */
    EXPECT(ETIMEDOUT, pthread_cond_timedwait(&cond, &mutex, &at));
    EXPECT(EBUSY, elsewhere(try_mutex, &mutex));
    EXPECT(0, pthread_mutex_unlock(&mutex));
    EXPECT(0, pthread_cond_destroy(&cond));
    EXPECT(0, pthread_mutex_destroy(&mutex));
}

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    sem_t sem;
    int ready;
};

static void make_shared(struct shared *shared) {
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;
    pthread_rwlockattr_t rwlock;
    pthread_barrierattr_t barrier;
    pthread_mutexattr_init(&mutex);
    pthread_condattr_init(&cond);
    pthread_rwlockattr_init(&rwlock);
    pthread_barrierattr_init(&barrier);
    EXPECT(0, pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_mutex_init(&shared->mutex, &mutex));
    EXPECT(0, pthread_cond_init(&shared->cond, &cond));
    EXPECT(0, pthread_rwlock_init(&shared->rwlock, &rwlock));
    EXPECT(0, pthread_barrier_init(&shared->barrier, &barrier, 2));
    EXPECT(0, sem_init(&shared->sem, 1, 0));
}

static void use_in_child(struct shared *shared) {
    EXPECT(EBUSY, pthread_rwlock_tryrdlock(&shared->rwlock));
    EXPECT(0, sem_wait(&shared->sem));
    pthread_barrier_wait(&shared->barrier);
    EXPECT(0, pthread_mutex_lock(&shared->mutex));
    shared->ready = 1;
    EXPECT(0, pthread_cond_signal(&shared->cond));
    EXPECT(0, pthread_mutex_unlock(&shared->mutex));
    _exit(failures != 0);
}

static void test_process_shared(void) {
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    make_shared(shared);
    EXPECT(0, pthread_rwlock_wrlock(&shared->rwlock));
    pid_t child = fork();
    if (child == 0) use_in_child(shared);
    EXPECT(0, sem_post(&shared->sem));
    pthread_barrier_wait(&shared->barrier);
    EXPECT(0, pthread_mutex_lock(&shared->mutex));
    while (!shared->ready) EXPECT(0, pthread_cond_wait(&shared->cond, &shared->mutex));
    EXPECT(0, pthread_mutex_unlock(&shared->mutex));
    EXPECT(0, pthread_rwlock_unlock(&shared->rwlock));
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
    EXPECT(0, pthread_barrier_destroy(&shared->barrier));
    EXPECT(0, sem_destroy(&shared->sem));
    munmap(shared, sizeof *shared);
}

/* Conditions. */

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t not_empty, not_full;
    int count;
    long sum;
};
#define ITEMS 20000

static void *put(void *argument) {
    struct queue *queue = argument;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&queue->mutex);
        while (queue->count == 4) pthread_cond_wait(&queue->not_full, &queue->mutex);
        queue->count++;
        pthread_cond_signal(&queue->not_empty);
        pthread_mutex_unlock(&queue->mutex);
    }
    return NULL;
}

static void *get(void *argument) {
    struct queue *queue = argument;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&queue->mutex);
        while (queue->count == 0) pthread_cond_wait(&queue->not_empty, &queue->mutex);
        queue->count--;
        queue->sum++;
        pthread_mutex_unlock(&queue->mutex);
        pthread_cond_signal(&queue->not_full); /* without the mutex */
    }
    return NULL;
}

/* It stays glibc's. */
static void make_shared_cond(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    EXPECT(0, pthread_condattr_init(&attributes));
    EXPECT(0, pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_cond_init(cond, &attributes));
}

static void test_cond_queue(int protocol, bool shared) {
    static struct queue queue;
    struct task tasks[4];
    pthread_mutexattr_t attributes;
    memset(&queue, 0, sizeof queue);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutex_init(&queue.mutex, &attributes);
    if (shared) make_shared_cond(&queue.not_empty);
    if (shared) make_shared_cond(&queue.not_full);
    for (int i = 0; i < 4; i++) start(&tasks[i], i % 2 ? put : get, &queue);
    for (int i = 0; i < 4; i++) finish(&tasks[i]);
    EXPECT(2 * ITEMS, queue.sum);
    EXPECT(0, queue.count);
    EXPECT(0, pthread_cond_destroy(&queue.not_empty));
}

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool open;
    int waiting;
};
static void *pass_gate(void *argument) {
    struct gate *gate = argument;
    pthread_mutex_lock(&gate->mutex);
    gate->waiting++;
    while (!gate->open) pthread_cond_wait(&gate->cond, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
    return NULL;
}

static void until_waiting(struct gate *gate, int count) {
    for (int waiting = 0; waiting < count; sched_yield()) {
        pthread_mutex_lock(&gate->mutex);
        waiting = gate->waiting;
        pthread_mutex_unlock(&gate->mutex);
    }
}

static void test_broadcast(void) {
    static struct gate gate;
    struct task tasks[8];
    for (int i = 0; i < 8; i++) start(&tasks[i], pass_gate, &gate);
    until_waiting(&gate, 8);
    pthread_mutex_lock(&gate.mutex);
    gate.open = true;
    EXPECT(0, pthread_cond_broadcast(&gate.cond));
    pthread_mutex_unlock(&gate.mutex);
    EXPECT(0, pthread_cond_destroy(&gate.cond)); /* allowed from now on */
    memset(&gate.cond, 0xff, sizeof gate.cond);
    for (int i = 0; i < 8; i++) finish(&tasks[i]);
}

static void cond_times_out(pthread_cond_t *cond, clockid_t clock) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    EXPECT(0, pthread_mutex_lock(&mutex));
    struct timespec at = in_ms(clock, 5);
    EXPECT(ETIMEDOUT, pthread_cond_timedwait(cond, &mutex, &at));
    EXPECT(true, ns_since(clock, at) >= 0);
    at = in_ms(CLOCK_MONOTONIC, 5);
    EXPECT(ETIMEDOUT, pthread_cond_clockwait(cond, &mutex, CLOCK_MONOTONIC, &at));
    EXPECT(true, ns_since(CLOCK_MONOTONIC, at) >= 0);
    at = in_ms(CLOCK_REALTIME, 5);
    EXPECT(ETIMEDOUT, pthread_cond_clockwait(cond, &mutex, CLOCK_REALTIME, &at));
    EXPECT(ETIMEDOUT, pthread_cond_timedwait(cond, &mutex, &past));
    EXPECT(EINVAL, pthread_cond_timedwait(cond, &mutex, &invalid));
    EXPECT(EINVAL, pthread_cond_clockwait(cond, &mutex, CLOCK_PROCESS_CPUTIME_ID, &at));
    EXPECT(EBUSY, elsewhere(try_mutex, &mutex));
    EXPECT(0, pthread_mutex_unlock(&mutex));
}

static void test_cond_clocks(void) {
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    pthread_condattr_t attributes;
    cond_times_out(&cond, CLOCK_REALTIME);
    EXPECT(0, pthread_condattr_init(&attributes));
    EXPECT(0, pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    EXPECT(0, pthread_cond_init(&cond, &attributes));
    cond_times_out(&cond, CLOCK_MONOTONIC);
    EXPECT(0, pthread_cond_destroy(&cond));
    make_shared_cond(&cond);
    cond_times_out(&cond, CLOCK_REALTIME);
    EXPECT(0, pthread_cond_destroy(&cond));
}

static void use_cond_with_kinds(pthread_cond_t *cond) {
    pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
                    recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    EXPECT(EPERM, pthread_cond_wait(cond, &errorcheck));
    EXPECT(0, pthread_mutex_lock(&errorcheck));
    struct timespec at = in_ms(CLOCK_REALTIME, 2);
    EXPECT(ETIMEDOUT, pthread_cond_timedwait(cond, &errorcheck, &at));
    EXPECT(0, pthread_mutex_unlock(&errorcheck));
    EXPECT(0, pthread_mutex_lock(&recursive));
    at = in_ms(CLOCK_REALTIME, 2);
    EXPECT(ETIMEDOUT, pthread_cond_timedwait(cond, &recursive, &at));
    EXPECT(0, pthread_mutex_unlock(&recursive));
    EXPECT(EPERM, pthread_mutex_unlock(&recursive));
}

/* In the child of a fork, whatever the other threads were doing. */
static void test_cond_after_fork(void) {
    static struct queue queue;
    struct task tasks[2];
    int status;
    make_shared_cond(&queue.not_empty);
    make_shared_cond(&queue.not_full);
    for (int i = 0; i < 2; i++) start(&tasks[i], i % 2 ? put : get, &queue);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_cond_t cond;
            make_shared_cond(&cond);
            cond_times_out(&cond, CLOCK_REALTIME);
            _exit(failures != 0);
        }
        EXPECT(child, waitpid(child, &status, 0));
        EXPECT(0, status);
    }
    for (int i = 0; i < 2; i++) finish(&tasks[i]);
    EXPECT(ITEMS, queue.sum);
}

static void test_cond_kinds(void) {
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    use_cond_with_kinds(&cond);
    make_shared_cond(&cond);
    use_cond_with_kinds(&cond);
}

/* Read-write locks. */

ON_THREAD(try_read, pthread_rwlock_t, pthread_rwlock_tryrdlock(object))
ON_THREAD(try_write, pthread_rwlock_t, pthread_rwlock_trywrlock(object))

static void *write_once(void *argument) {
    int error = pthread_rwlock_wrlock(argument);
    return (void *)(intptr_t)(error ? error : pthread_rwlock_unlock(argument));
}
static void *read_once(void *argument) {
    int error = pthread_rwlock_rdlock(argument);
    return (void *)(intptr_t)(error ? error : pthread_rwlock_unlock(argument));
}

static void *rwlock_times_out(void *argument) {
    pthread_rwlock_t *lock = argument;
    struct timespec at = in_ms(CLOCK_REALTIME, 5), monotonic = in_ms(CLOCK_MONOTONIC, 5);
    EXPECT(ETIMEDOUT, pthread_rwlock_timedrdlock(lock, &at));
    EXPECT(ETIMEDOUT, pthread_rwlock_timedwrlock(lock, &at));
    EXPECT(ETIMEDOUT, pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &monotonic));
    EXPECT(ETIMEDOUT, pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &monotonic));
    EXPECT(true, ns_since(CLOCK_REALTIME, at) >= 0 && ns_since(CLOCK_MONOTONIC, monotonic) >= 0);
    EXPECT(EINVAL, pthread_rwlock_timedrdlock(lock, &invalid));
    EXPECT(EINVAL, pthread_rwlock_clockwrlock(lock, CLOCK_PROCESS_CPUTIME_ID, &at));
    return NULL;
}

static void use_rwlock(pthread_rwlock_t *lock) {
    EXPECT(0, pthread_rwlock_rdlock(lock));
    EXPECT(0, pthread_rwlock_tryrdlock(lock));
    EXPECT(EBUSY, elsewhere(try_write, lock));
    EXPECT(0, elsewhere(read_once, lock));
    EXPECT(0, pthread_rwlock_unlock(lock));
    EXPECT(0, pthread_rwlock_unlock(lock));
    EXPECT(0, pthread_rwlock_wrlock(lock));
    EXPECT(EDEADLK, pthread_rwlock_wrlock(lock));
    EXPECT(EDEADLK, pthread_rwlock_rdlock(lock));
    EXPECT(EBUSY, elsewhere(try_read, lock));
    EXPECT(EBUSY, pthread_rwlock_trywrlock(lock));
    elsewhere(rwlock_times_out, lock);
    struct task reader, writer;
    start(&reader, read_once, lock);
    start(&writer, write_once, lock);
    until_asleep(&reader);
    until_asleep(&writer);
    EXPECT(0, pthread_rwlock_unlock(lock));
    EXPECT(0, finish(&reader));
    EXPECT(0, finish(&writer));
    EXPECT(0, pthread_rwlock_timedwrlock(lock, &past)); /* it is free */
    EXPECT(0, pthread_rwlock_unlock(lock));
}

/* A thread that reads, and reads once more while a writer waits, does not wait for that. */
static void test_reader_enters_again(void) {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct task writer;
    EXPECT(0, pthread_rwlock_rdlock(&lock));
    start(&writer, write_once, &lock);
    until_asleep(&writer);
    EXPECT(0, pthread_rwlock_rdlock(&lock));
    EXPECT(0, elsewhere(read_once, &lock));
    EXPECT(0, pthread_rwlock_unlock(&lock));
    EXPECT(0, pthread_rwlock_unlock(&lock));
    EXPECT(0, finish(&writer));
}

/* Readers in line are let in together, also from behind a writer: one that reads can wait for another to do so. */
struct readers {
    pthread_rwlock_t lock;
    sem_t read;
};
static void *read_until_another_does(void *argument) {
    struct readers *readers = argument;
    EXPECT(0, pthread_rwlock_rdlock(&readers->lock));
    EXPECT(0, sem_wait(&readers->read));
    EXPECT(0, pthread_rwlock_unlock(&readers->lock));
    return NULL;
}
static void *read_and_post(void *argument) {
    struct readers *readers = argument;
    EXPECT(0, pthread_rwlock_rdlock(&readers->lock));
    EXPECT(0, sem_post(&readers->read));
    EXPECT(0, pthread_rwlock_unlock(&readers->lock));
    return NULL;
}

static void readers_pass(struct readers *readers) {
    struct task first, writer, second;
    EXPECT(0, sem_init(&readers->read, 0, 0));
    EXPECT(0, pthread_rwlock_wrlock(&readers->lock));
    start(&first, read_until_another_does, readers);
    until_asleep(&first);
    start(&writer, write_once, &readers->lock);
    until_asleep(&writer);
    start(&second, read_and_post, readers);
    until_asleep(&second);
    EXPECT(0, pthread_rwlock_unlock(&readers->lock));
    EXPECT(0, finish(&first));
    EXPECT(0, finish(&second));
    EXPECT(0, finish(&writer));
}

static void test_readers_pass(void) {
    static struct readers readers = {.lock = PTHREAD_RWLOCK_INITIALIZER};
    readers_pass(&readers);
    EXPECT(0, pthread_rwlock_init(&readers.lock, NULL));
    readers_pass(&readers);
}

static void test_rwlock(void) {
    static pthread_rwlock_t zero, writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    pthread_rwlock_t made;
    use_rwlock(&zero);
    use_rwlock(&writers);
    EXPECT(0, pthread_rwlock_init(&made, NULL));
    use_rwlock(&made);
    EXPECT(0, pthread_rwlock_destroy(&made));
    test_reader_enters_again();
    test_readers_pass();
}

/* Semaphores. */

ON_THREAD(wait_for_sem, sem_t, sem_wait(object) == 0 ? 0 : errno)

static sem_t posted_by_handler;
static void post_it(int number) {
    (void)number;
    sem_post(&posted_by_handler);
}
static void do_nothing(int number) {
    (void)number;
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    EXPECT(0, sigaction(number, &action, NULL));
}

/* A signal handler that runs during sem_wait ends it. */
static void test_sem_interrupted(void) {
    sem_t sem;
    struct task waiter;
    long result;
    handle(SIGUSR1, do_nothing);
    EXPECT(0, sem_init(&sem, 0, 0));
    start(&waiter, wait_for_sem, &sem);
    until_asleep(&waiter);
    while (pthread_tryjoin_np(waiter.thread, (void **)&result) == EBUSY) {
        pthread_kill(waiter.thread, SIGUSR1);
        sched_yield();
    }
    EXPECT(EINTR, result);
    EXPECT(0, sem_destroy(&sem));
}

static void test_sem_in_handler(void) {
    handle(SIGALRM, post_it);
    EXPECT(0, sem_init(&posted_by_handler, 0, 0));
    struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
    timer_t timer;
    EXPECT(0, timer_create(CLOCK_MONOTONIC, NULL, &timer));
    EXPECT(0, timer_settime(timer, 0, &soon, NULL));
    while (sem_wait(&posted_by_handler) != 0) EXPECT(EINTR, errno);
    EXPECT(0, timer_delete(timer));
}

static void test_sem(void) {
    sem_t sem;
    int value;
    EXPECT_ERRNO(EINVAL, sem_init(&sem, 0, (unsigned)SEM_VALUE_MAX + 1));
    EXPECT(0, sem_init(&sem, 0, 2));
    EXPECT(0, sem_getvalue(&sem, &value));
    EXPECT(2, value);
    EXPECT(0, sem_wait(&sem));
    EXPECT(0, sem_trywait(&sem));
    EXPECT_ERRNO(EAGAIN, sem_trywait(&sem));
    struct timespec at = in_ms(CLOCK_REALTIME, 5), monotonic = in_ms(CLOCK_MONOTONIC, 5);
    EXPECT_ERRNO(ETIMEDOUT, sem_timedwait(&sem, &at));
    EXPECT_ERRNO(ETIMEDOUT, sem_clockwait(&sem, CLOCK_MONOTONIC, &monotonic));
    EXPECT(true, ns_since(CLOCK_REALTIME, at) >= 0 && ns_since(CLOCK_MONOTONIC, monotonic) >= 0);
    EXPECT_ERRNO(EINVAL, sem_timedwait(&sem, &invalid));
    EXPECT_ERRNO(EINVAL, sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &at));
    struct task waiter;
    start(&waiter, wait_for_sem, &sem);
    until_asleep(&waiter);
    EXPECT(0, sem_post(&sem));
    EXPECT(0, finish(&waiter));
    EXPECT(0, sem_getvalue(&sem, &value));
    EXPECT(0, value);
    EXPECT(0, sem_destroy(&sem));
    EXPECT(0, sem_init(&sem, 0, SEM_VALUE_MAX));
    EXPECT_ERRNO(EOVERFLOW, sem_post(&sem));
    EXPECT(0, sem_destroy(&sem));
}

static void test_named_sem(void) {
    char name[64];
    snprintf(name, sizeof name, "/vigil-test-%d", (int)getpid());
    sem_t *sem = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    if (sem == SEM_FAILED) return; /* no /dev/shm */
    EXPECT(0, sem_unlink(name));
    EXPECT(0, sem_wait(sem));
    EXPECT_ERRNO(EAGAIN, sem_trywait(sem));
    EXPECT(0, sem_post(sem));
    EXPECT(0, sem_close(sem));
}

/* Barriers. */

#define ROUNDS 500
struct rounds {
    pthread_barrier_t barrier;
    int arrived[ROUNDS], serial[ROUNDS];
};
static void *go_round(void *argument) {
    struct rounds *rounds = argument;
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&rounds->arrived[i], 1, __ATOMIC_RELAXED);
        int result = pthread_barrier_wait(&rounds->barrier);
        EXPECT(4, __atomic_load_n(&rounds->arrived[i], __ATOMIC_RELAXED));
        if (result == PTHREAD_BARRIER_SERIAL_THREAD) __atomic_fetch_add(&rounds->serial[i], 1, __ATOMIC_RELAXED);
        else EXPECT(0, result);
    }
    return NULL;
}

/* Any thread that has come back may destroy it. */
struct freed {
    pthread_barrier_t barrier;
    char page[4096];
};
static void *meet_and_free(void *argument) {
    struct freed *freed = argument;
    if (pthread_barrier_wait(&freed->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        EXPECT(0, pthread_barrier_destroy(&freed->barrier));
        munmap(freed, sizeof *freed);
    }
    return NULL;
}

static void test_barrier(void) {
    static struct rounds rounds;
    struct task tasks[4];
    EXPECT(EINVAL, pthread_barrier_init(&rounds.barrier, NULL, 0));
    EXPECT(0, pthread_barrier_init(&rounds.barrier, NULL, 4));
    for (int i = 0; i < 4; i++) start(&tasks[i], go_round, &rounds);
    for (int i = 0; i < 4; i++) finish(&tasks[i]);
    for (int i = 0; i < ROUNDS; i++) EXPECT(1, rounds.serial[i]);
    EXPECT(0, pthread_barrier_destroy(&rounds.barrier));
    for (int i = 0; i < 50; i++) {
        struct freed *freed = mmap(NULL, sizeof *freed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(0, pthread_barrier_init(&freed->barrier, NULL, 3));
        for (int j = 0; j < 3; j++) start(&tasks[j], meet_and_free, freed);
        for (int j = 0; j < 3; j++) finish(&tasks[j]);
    }
}

/* Once. */

static pthread_once_t once_plain, once_cancelled, once_forked;
static int calls, cancelled_calls;
static sem_t in_function, may_return;

static void call(void) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}
static void *call_once_here(void *argument) {
    (void)argument;
    EXPECT(0, pthread_once(&once_plain, call));
    EXPECT(1, __atomic_load_n(&calls, __ATOMIC_RELAXED));
    return NULL;
}

static void call_and_be_cancelled(void) {
    if (cancelled_calls++) return;
    sem_post(&in_function);
    for (;;) pause();
}
static void *call_cancelled(void *argument) {
    (void)argument;
    pthread_once(&once_cancelled, call_and_be_cancelled);
    return NULL;
}

static void call_slowly(void) {
    sem_post(&in_function);
    sem_wait(&may_return);
}
static void *call_during_fork(void *argument) {
    (void)argument;
    pthread_once(&once_forked, call_slowly);
    return NULL;
}
static void exit_well(void) {
    _exit(0);
}

static void test_once(void) {
    struct task tasks[8], waiter;
    int status;
    for (int i = 0; i < 8; i++) start(&tasks[i], call_once_here, NULL);
    for (int i = 0; i < 8; i++) finish(&tasks[i]);
    EXPECT(0, sem_init(&in_function, 0, 0));
    EXPECT(0, sem_init(&may_return, 0, 0));

    start(&tasks[0], call_cancelled, NULL);
    while (sem_wait(&in_function) != 0) continue;
    start(&waiter, call_cancelled, NULL);
    until_asleep(&waiter);
    EXPECT(0, pthread_cancel(tasks[0].thread));
    EXPECT((long)(intptr_t)PTHREAD_CANCELED, finish(&tasks[0]));
    EXPECT(0, finish(&waiter)); /* after the cancellation it has called the function itself */
    EXPECT(2, cancelled_calls);

    start(&tasks[0], call_during_fork, NULL);
    while (sem_wait(&in_function) != 0) continue;
    pid_t child = fork();
    if (child == 0) {
        pthread_once(&once_forked, exit_well);
        _exit(1);
    }
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
    EXPECT(0, sem_post(&may_return));
    finish(&tasks[0]);
}

/* Cancellation. */

struct cancelled {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    sem_t sem, ready;
    int cleaned;
};
static void clean(void *argument) {
    struct cancelled *cancelled = argument;
    cancelled->cleaned++; /* with the mutex held */
    EXPECT(EBUSY, elsewhere(try_mutex, &cancelled->mutex));
    EXPECT(0, pthread_mutex_unlock(&cancelled->mutex));
}
static void *wait_until_cancelled(void *argument) {
    struct cancelled *cancelled = argument;
    pthread_mutex_lock(&cancelled->mutex);
    pthread_cleanup_push(clean, cancelled);
    sem_post(&cancelled->ready);
    for (;;) pthread_cond_wait(&cancelled->cond, &cancelled->mutex);
    pthread_cleanup_pop(0);
}
static void *wait_for_sem_until_cancelled(void *argument) {
    struct cancelled *cancelled = argument;
    sem_post(&cancelled->ready);
    while (sem_wait(&cancelled->sem) != 0) continue;
    return NULL;
}
static void *wait_while_disabled(void *argument) {
    struct cancelled *cancelled = argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sem_post(&cancelled->ready);
    EXPECT(0, sem_wait(&cancelled->sem));
    cancelled->cleaned++;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    return NULL;
}

/* A waiter that has been signalled is cancelled when the condition is gone: it comes back, and ends later. */
struct signalled {
    struct gate gate;
    pthread_cond_t *cond; /* instead of the gate's */
};
static void *pass_and_be_cancelled(void *argument) {
    struct signalled *signalled = argument;
    struct gate *gate = &signalled->gate;
    pthread_mutex_lock(&gate->mutex);
    gate->waiting++;
    while (!gate->open) pthread_cond_wait(signalled->cond, &gate->mutex);
    gate->waiting--;
    pthread_mutex_unlock(&gate->mutex);
    pthread_testcancel();
    return NULL;
}

static void test_cancel_after_signal(void) {
    static struct signalled signalled;
    struct gate *gate = &signalled.gate;
    struct task task;
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    signalled.cond = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(0, pthread_cond_init(signalled.cond, NULL));
    start(&task, pass_and_be_cancelled, &signalled);
    until_waiting(gate, 1);
    pthread_mutex_lock(&gate->mutex);
    gate->open = true;
    EXPECT(0, pthread_cond_broadcast(signalled.cond));
    EXPECT(0, pthread_cond_destroy(signalled.cond));
    EXPECT(0, munmap(signalled.cond, size));
    EXPECT(0, pthread_cancel(task.thread));
    pthread_mutex_unlock(&gate->mutex);
    EXPECT((long)(intptr_t)PTHREAD_CANCELED, finish(&task));
    EXPECT(0, gate->waiting);
}

/* A cancellation does not end the wait while the thread has cancellation disabled. */
static void *time_out_while_disabled(void *argument) {
    struct timespec at = in_ms(CLOCK_MONOTONIC, 50);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    EXPECT_ERRNO(ETIMEDOUT, sem_clockwait(argument, CLOCK_MONOTONIC, &at));
    EXPECT(true, ns_since(CLOCK_MONOTONIC, at) >= 0);
    return NULL;
}

static void test_cancel_disabled(void) {
    static struct cancelled cancelled;
    struct task task;
    EXPECT(0, sem_init(&cancelled.sem, 0, 0));
    EXPECT(0, sem_init(&cancelled.ready, 0, 0));
    start(&task, wait_while_disabled, &cancelled);
    while (sem_wait(&cancelled.ready) != 0) continue;
    EXPECT(0, pthread_cancel(task.thread));
    EXPECT(0, sem_post(&cancelled.sem));
    EXPECT((long)(intptr_t)PTHREAD_CANCELED, finish(&task));
    EXPECT(1, cancelled.cleaned);
    start(&task, time_out_while_disabled, &cancelled.sem);
    until_asleep(&task);
    EXPECT(0, pthread_cancel(task.thread));
    EXPECT(0, finish(&task));
}

/* Threads that may be cancelled at any moment: the line is in order afterwards. */
static void unlock_gate(void *argument) {
    struct gate *gate = argument;
    pthread_mutex_unlock(&gate->mutex);
}
static void *wait_at_gate_asynchronously(void *argument) {
    struct gate *gate = argument;
    pthread_mutex_lock(&gate->mutex);
    pthread_cleanup_push(unlock_gate, gate);
    gate->waiting++;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) pthread_cond_wait(&gate->cond, &gate->mutex);
    pthread_cleanup_pop(0);
}
static void *wait_for_sem_asynchronously(void *argument) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    while (sem_wait(argument) != 0) continue;
    return NULL;
}

static void test_cancel_asynchronous(void) {
    static struct gate gate;
    struct task task, other;
    sem_t sem;
    start(&task, wait_at_gate_asynchronously, &gate);
    until_waiting(&gate, 1);
    start(&other, pass_gate, &gate);
    until_waiting(&gate, 2);
    EXPECT(0, pthread_cancel(task.thread));
    EXPECT((long)(intptr_t)PTHREAD_CANCELED, finish(&task));
    pthread_mutex_lock(&gate.mutex);
    gate.open = true;
    EXPECT(0, pthread_cond_signal(&gate.cond));
    pthread_mutex_unlock(&gate.mutex);
    EXPECT(0, finish(&other));
    EXPECT(0, sem_init(&sem, 0, 0));
    start(&task, wait_for_sem_asynchronously, &sem);
    until_asleep(&task);
    start(&other, wait_for_sem, &sem);
    until_asleep(&other);
    EXPECT(0, pthread_cancel(task.thread));
    EXPECT((long)(intptr_t)PTHREAD_CANCELED, finish(&task));
    EXPECT(0, sem_post(&sem));
    EXPECT(0, finish(&other));
}

static void test_cancel(void) {
    static struct cancelled cancelled;
    struct task task, other;
    EXPECT(0, sem_init(&cancelled.sem, 0, 0));
    EXPECT(0, sem_init(&cancelled.ready, 0, 0));
    for (int i = 0; i < 40; i++) {
        if (i == 20) make_shared_cond(&cancelled.cond);
        start(&task, wait_until_cancelled, &cancelled);
        while (sem_wait(&cancelled.ready) != 0) continue;
        if (i % 2) until_asleep(&task);
        EXPECT(0, pthread_cancel(task.thread));
        EXPECT((long)(intptr_t)PTHREAD_CANCELED, finish(&task));
        EXPECT(i + 1, cancelled.cleaned);
    }
    for (int i = 0; i < 20; i++) {
        start(&task, wait_for_sem_until_cancelled, &cancelled);
        start(&other, wait_for_sem_until_cancelled, &cancelled);
        for (int j = 0; j < 2; j++)
            while (sem_wait(&cancelled.ready) != 0) continue;
        if (i % 2) until_asleep(&task);
        EXPECT(0, pthread_cancel(task.thread));
        EXPECT((long)(intptr_t)PTHREAD_CANCELED, finish(&task));
        EXPECT(0, sem_post(&cancelled.sem));
        EXPECT(0, finish(&other));
    }
}

/* Fork, and the end of threads. */

static pthread_mutex_t at_fork = PTHREAD_MUTEX_INITIALIZER;
static void lock_at_fork(void) {
    pthread_mutex_lock(&at_fork);
}
static void unlock_at_fork(void) {
    pthread_mutex_unlock(&at_fork);
}

static bool stop;
static void *contend(void *argument) {
    (void)argument;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&at_fork);
        pthread_mutex_unlock(&at_fork);
    }
    return NULL;
}

/* A child of a fork, and its child, must not have more open descriptors than their parents. */
static int count_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1200; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void test_descriptors(void) {
    int before = count_descriptors(), status;
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) _exit(count_descriptors() != before);
        waitpid(grandchild, &status, 0);
        _exit(status != 0 || count_descriptors() != before);
    }
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
}

static void test_fork(void) {
    struct task tasks[3];
    int status;
    EXPECT(0, pthread_atfork(lock_at_fork, unlock_at_fork, unlock_at_fork));
    for (int i = 0; i < 3; i++) start(&tasks[i], contend, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct task inner[2];
            static struct counter counter;
            for (int j = 0; j < 2; j++) start(&inner[j], count_up, &counter);
            for (int j = 0; j < 2; j++) finish(&inner[j]);
            EXPECT(40000, counter.count);
            EXPECT(0, pthread_mutex_lock(&at_fork));
            _exit(failures != 0);
        }
        EXPECT(child, waitpid(child, &status, 0));
        EXPECT(0, status);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) finish(&tasks[i]);
}

static pthread_key_t key;
static pthread_mutex_t at_exit = PTHREAD_MUTEX_INITIALIZER;
static long exits;
static void lock_at_exit(void *value) {
    intptr_t left = (intptr_t)value;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&at_exit);
        exits++;
        pthread_mutex_unlock(&at_exit);
    }
    if (left > 1) pthread_setspecific(key, (void *)(left - 1)); /* and once more */
}
static void *end_with_locks(void *argument) {
    pthread_setspecific(key, argument);
    return NULL;
}
static void test_thread_exit(void) {
    struct task tasks[8];
    EXPECT(0, pthread_key_create(&key, lock_at_exit));
    for (int i = 0; i < 8; i++) start(&tasks[i], end_with_locks, (void *)4);
    for (int i = 0; i < 8; i++) finish(&tasks[i]);
    EXPECT(8 * 4 * 100, exits);
}

/* Whether the library has asked the system for fences in all threads: only then may it release mutexes by a store. */
#define MEMBARRIER_QUERY 0
#define MEMBARRIER_FENCE 8
static int show_fences(void) {
    long known = syscall(SYS_membarrier, MEMBARRIER_QUERY, 0, 0);
    bool is_known = known > 0 && (known & MEMBARRIER_FENCE);
    if (!is_known) puts("the system has none");
    else puts(syscall(SYS_membarrier, MEMBARRIER_FENCE, 0, 0) == 0 ? "registered" : "not registered");
    return 0;
}

/* Run this program where such fences are refused from the beginning, and a process that asks for one is killed. */
static int wait_without_fences(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MEMBARRIER_FENCE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof steps / sizeof steps[0], .filter = steps};
    bool filtered =
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    if (!filtered) puts("there are no filters");
    else execl("/proc/self/exe", "semantics", "waits", (char *)NULL);
    return filtered;
}

static void *lock_for_a_moment(void *mutex) {
    struct timespec until = in_ms(CLOCK_REALTIME, 20);
    return pthread_mutex_timedlock(mutex, &until) == ETIMEDOUT ? NULL : mutex;
}

static int wait_in_vain(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t waiter;
    void *failed = &waiter;
    pthread_mutex_lock(&mutex);
    pthread_create(&waiter, NULL, lock_for_a_moment, &mutex);
    pthread_join(waiter, &failed);
    puts("waited");
    return failed != NULL;
}

int main(int count, char **arguments) {
    const char *part = count > 1 ? arguments[1] : "";
    if (strcmp(part, "fences") == 0) return show_fences();
    if (strcmp(part, "without-fences") == 0) return wait_without_fences();
    if (strcmp(part, "waits") == 0) return wait_in_vain();
    alarm(500); /* rather than for ever */
    test_mutex_kinds();
    test_mutex_excludes();
    test_robust();
    test_inherit();
    test_process_shared();
    for (int shared = 0; shared < 2; shared++) {
        test_cond_queue(PTHREAD_PRIO_NONE, shared);
        test_cond_queue(PTHREAD_PRIO_INHERIT, shared);
    }
    test_broadcast();
    test_cond_clocks();
    test_cond_kinds();
    test_cond_after_fork();
    test_rwlock();
    test_sem();
    test_named_sem();
    test_sem_interrupted();
    alarm(0);
    test_sem_in_handler();
    handle(SIGALRM, SIG_DFL);
    alarm(500);
    test_barrier();
    test_once();
    test_cancel();
    test_cancel_asynchronous();
    test_cancel_disabled();
    test_cancel_after_signal();
    test_descriptors();
    test_fork();
    test_thread_exit();
    if (!failures) puts("all is as documented");
    return failures != 0;
}
