/* SPDX-License-Identifier: MIT */
/*
 * copies A B OTHER - several copies of the library in one process: the program's own, one each in the shared objects A
 * and B, and one of another version in OTHER.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../sanitizers.h"
#include "copy.h"

#define MILLISECOND         INT64_C(1000000)
#define SECOND              INT64_C(1000000000)
#define LOAD(place)         __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define STORE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
#define AWAIT(condition)                                                                                               \
    do {                                                                                                               \
        while (!(condition)) sched_yield();                                                                            \
    } while (0)

static const struct copy own = COPY_CALLS;
static const struct copy *a, *b, *other;

static void check(int64_t is, int64_t should, const char *text, int line) {
    if (is == should) return;
    fprintf(stderr, "copies.c:%d: %s is %lld, not %lld\n", line, text, (long long)is, (long long)should);
    abort();
}
#define CHECK(is, should) check((is), (should), #is, __LINE__)

static const struct copy *load(const char *path) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const void *calls = object ? dlsym(object, "copy_calls") : NULL;
    if (calls) return calls;
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

static pthread_t start(void *(*main)(void *), const void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, main, (void *)(uintptr_t)argument), 0);
    return thread;
}

static void join(pthread_t thread) {
    CHECK(pthread_join(thread, NULL), 0);
}

/* Two threads load two objects at the same time, and each waits for the other through its own copy. */

static pthread_barrier_t both;
static uint32_t hello;

struct loading {
    const char *path;
    const struct copy *copy;
};

static void *load_and_meet(void *argument) {
    struct loading *loading = argument;
    pthread_barrier_wait(&both);
    loading->copy = load(loading->path);
    CHECK(loading->copy->wait32(&hello, 0, 60 * SECOND), VIGIL_OK);
    return NULL;
}

static void copies_are_loaded_at_the_same_time(const char *path_a, const char *path_b) {
    struct loading first = {path_a, NULL}, second = {path_b, NULL};
    pthread_barrier_init(&both, NULL, 2);
    pthread_t threads[] = {start(load_and_meet, &first), start(load_and_meet, &second)};
    AWAIT(own.waiters(&hello) == 2);
    CHECK(own.notify(&hello, VIGIL_ALL), 2);
    join(threads[0]);
    join(threads[1]);
    a = first.copy;
    b = second.copy;
}

/* Threads. */

static uint32_t word;

static void *wait_through(void *copy) {
    CHECK(((const struct copy *)copy)->wait32(&word, 0, 60 * SECOND), VIGIL_OK);
    return NULL;
}

static void a_notification_reaches_threads_of_all_copies(void) {
    const struct copy *all[] = {&own, a, b};
    for (int waiting = 0; waiting < 3; waiting++) {
        for (int notifying = 0; notifying < 3; notifying++) {
            pthread_t thread = start(wait_through, all[waiting]);
            AWAIT(all[notifying]->waiters(&word) == 1);
            CHECK(all[notifying]->notify(&word, VIGIL_ALL), 1);
            CHECK(all[waiting]->notify(&word, VIGIL_ALL), 0);
            join(thread);
        }
    }
}

/* Event loops. */

static uint32_t agent_ready;

static void notified(vigil_op *op, int status) {
    CHECK(status, VIGIL_OK);
    *(int *)op->data += 1;
}

static void *notify_agent(void *copy) {
    AWAIT(LOAD(agent_ready));
    CHECK(((const struct copy *)copy)->notify(&word, 1), 1);
    return NULL;
}

static void a_loop_of_one_copy_is_notified_by_another(void) {
    vigil_agent *agent;
    int calls = 0;
    vigil_op op = {.data = &calls};
    CHECK(a->agent_create(&agent, 0), VIGIL_OK);
    pthread_t thread = start(notify_agent, b);
    CHECK(a->wait32_async(agent, &op, &word, 0, VIGIL_FOREVER, notified), VIGIL_PENDING);
    STORE(agent_ready, 1);
    CHECK(a->agent_run(agent), VIGIL_OK);
    CHECK(calls, 1);
    join(thread);
    CHECK(a->agent_destroy(agent), VIGIL_OK);
}

/* Locks. */

#define ROUNDS (UNDER_TSAN ? 2000 : 20000)
static vigil_mutex mutex;
static vigil_sem permits;
static int64_t counter;

static void *count(void *argument) {
    const struct copy *copy = argument;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(copy->mutex_lock(&mutex), VIGIL_OK);
        counter++;
        CHECK(copy->mutex_unlock(&mutex), VIGIL_OK);
        CHECK(copy->sem_acquire(&permits, 1), VIGIL_OK);
        CHECK(copy->sem_release(&permits, 1), VIGIL_OK);
    }
    return NULL;
}

static void copies_contend_for_locks(void) {
    CHECK(own.sem_release(&permits, 1), VIGIL_OK);
    pthread_t threads[] = {start(count, a), start(count, b), start(count, &own), start(count, a)};
    for (int i = 0; i < 4; i++) join(threads[i]);
    CHECK(counter, 4 * ROUNDS);
}

static void locked(vigil_op *op, int status) {
    CHECK(status, VIGIL_OK);
    *(int *)op->data += 1;
}

static void *lock_behind_loop(void *argument) {
    const struct copy *copy = argument;
    CHECK(copy->mutex_lock_for(&mutex, 60 * SECOND), VIGIL_OK);
    CHECK(copy->mutex_unlock(&mutex), VIGIL_OK);
    return NULL;
}

/* A loop of A is called, by an unlock in B, and does not come: the keeper of A calls the thread behind it. */
static void the_keeper_of_a_loop_learns_of_calls_by_other_copies(void) {
    vigil_agent *agent;
    int calls = 0;
    vigil_request request = {.op.data = &calls};
    CHECK(b->mutex_lock(&mutex), VIGIL_OK);
    CHECK(a->agent_create(&agent, 0), VIGIL_OK);
    CHECK(a->mutex_lock_async(agent, &request, &mutex, VIGIL_FOREVER, locked), VIGIL_PENDING);
    pthread_t thread = start(lock_behind_loop, b);
    AWAIT(own.waiters(&mutex) == 2);
    CHECK(b->mutex_unlock(&mutex), VIGIL_OK);
    join(thread);
    CHECK(calls, 0);
    CHECK(a->agent_run(agent), VIGIL_OK);
    CHECK(calls, 1);
    CHECK(a->mutex_unlock(&mutex), VIGIL_OK);
    CHECK(a->agent_destroy(agent), VIGIL_OK);
}

/*
 * A signal handler that uses B interrupts a critical section of A. That is long here, because the line is: the handler
 * mostly finds the bucket locked, by its own thread.
 */

#define LINE    20000
#define SIGNALS 200
static vigil_op line[LINE];
static uint32_t handled, counting_ends;
static int notified_in_all;

static void handle(int signal) {
    (void)signal;
    int64_t status = b->notify(&word, 1);
    assert(status == 0 || status == 1);
    STORE(handled, handled + 1);
}

static void *count_waiters(void *unused) {
    while (!LOAD(counting_ends)) a->waiters(&word);
    return unused;
}

static void a_handler_may_interrupt_another_copy(void) {
    struct sigaction action = {.sa_handler = handle}, before;
    vigil_agent *agent;
    CHECK(a->agent_create(&agent, 0), VIGIL_OK);
    for (int i = 0; i < LINE; i++) {
        line[i].data = &notified_in_all;
        CHECK(a->wait32_async(agent, &line[i], &word, 0, VIGIL_FOREVER, notified), VIGIL_PENDING);
    }
    CHECK(sigaction(SIGUSR1, &action, &before), 0);
    pthread_t thread = start(count_waiters, NULL);
    for (uint32_t i = 0; i < SIGNALS; i++) {
        CHECK(pthread_kill(thread, SIGUSR1), 0);
        AWAIT(LOAD(handled) == i + 1);
    }
    STORE(counting_ends, 1);
    join(thread);
    CHECK(sigaction(SIGUSR1, &before, NULL), 0);
    CHECK(own.notify(&word, VIGIL_ALL), LINE - SIGNALS);
    CHECK(a->agent_run(agent), VIGIL_OK);
    CHECK(notified_in_all, LINE);
    CHECK(a->agent_destroy(agent), VIGIL_OK);
}

/* Segments. */

static void a_segment_of_one_copy_is_not_memory_of_another(void) {
    vigil_buffer *buffer;
    vigil_segment_options options = {.length = 4096};
    CHECK(a->segment_create_anonymous(&buffer, &options), VIGIL_OK);
    uint32_t *shared = a->buffer_data(buffer);
    vigil_cond *cond = (vigil_cond *)(void *)(shared + 4);
    vigil_sem *sem = (vigil_sem *)(void *)(shared + 8);
    CHECK(a->notify(shared, 1), 0);
    CHECK(b->notify(shared, 1), VIGIL_ECOPIES);
    CHECK(b->waiters(shared), VIGIL_ECOPIES);
    CHECK(b->forget(shared, 64), VIGIL_ECOPIES);
    CHECK(b->wait32(shared, 0, MILLISECOND), VIGIL_ECOPIES);
    CHECK(own.notify(shared, 1), VIGIL_ECOPIES);
    CHECK(b->cond_signal(cond), VIGIL_ECOPIES);
    CHECK(b->sem_acquire(sem, 1), VIGIL_ECOPIES);
    vigil_agent *agent;
    vigil_op op = {0};
    CHECK(b->agent_create(&agent, 0), VIGIL_OK);
    CHECK(b->wait32_async(agent, &op, shared, 0, VIGIL_FOREVER, notified), VIGIL_ECOPIES);
    CHECK(b->agent_destroy(agent), VIGIL_OK);
    CHECK(a->wait32(shared, 0, MILLISECOND), VIGIL_TIMED_OUT);
    CHECK(a->buffer_destroy(buffer), VIGIL_OK);
    CHECK(b->notify(&word, 1), 0);
}

static vigil_once once;
static int once_calls;

static int run_once(void *unused) {
    (void)unused;
    once_calls++;
    return 0;
}

/* Another version. */

static void another_version_refuses(const char *path) {
    uint32_t here = 0;
    vigil_mutex held = {0};
    vigil_agent *agent;
    other = load(path);
    CHECK(other->notify(&here, 1), VIGIL_ECOPIES);
    CHECK(other->wait32(&here, 1, MILLISECOND), VIGIL_NOT_EQUAL);
    CHECK(other->wait32(&here, 0, MILLISECOND), VIGIL_ECOPIES);
    CHECK(other->agent_create(&agent, 0), VIGIL_ECOPIES);
    CHECK(own.mutex_lock(&held), VIGIL_OK);
    CHECK(other->mutex_lock(&held), VIGIL_ECOPIES);
    CHECK(own.mutex_unlock(&held), VIGIL_OK);
    CHECK(other->mutex_lock(&held), VIGIL_OK);
    CHECK(other->mutex_unlock(&held), VIGIL_OK);
    vigil_once fresh = {0};
    CHECK(other->once_call(&fresh, run_once, NULL), VIGIL_ECOPIES);
    CHECK(own.notify(&here, 1), 0);
}

/* Fork. In the child there is one lot for all copies again, and its lines are empty. */

static void *waiting_at_fork(void *copy) {
    CHECK(((const struct copy *)copy)->wait32(&hello, 0, 60 * SECOND), VIGIL_OK);
    return NULL;
}

static void use_all_in_child(void) {
    CHECK(own.waiters(&hello), 0);
    a_notification_reaches_threads_of_all_copies();
    counter = 0;
    permits = (vigil_sem){0};
    copies_contend_for_locks();
    CHECK(b->once_call(&once, run_once, NULL), 0);
    CHECK(a->once_call(&once, run_once, NULL), 0);
    CHECK(once_calls, 1);
}

static void fork_twice(int depth) {
    fflush(NULL);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        use_all_in_child();
        if (depth > 1) fork_twice(depth - 1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
}

static void all_copies_can_be_used_after_fork(void) {
    pthread_t threads[] = {start(waiting_at_fork, a), start(waiting_at_fork, b)};
    AWAIT(own.waiters(&hello) == 2);
    fork_twice(2);
    CHECK(b->notify(&hello, VIGIL_ALL), 2);
    join(threads[0]);
    join(threads[1]);
}

/* A copy that is loaded after a fork has the same generation as the others: a once is not called twice. */
static uint32_t once_running, once_may_end;

static int run_slowly(void *unused) {
    (void)unused;
    once_calls++;
    STORE(once_running, 1);
    AWAIT(LOAD(once_may_end));
    return 0;
}

static void *call_once(void *copy) {
    CHECK(((const struct copy *)copy)->once_call(&once, run_slowly, NULL), 0);
    return NULL;
}

static void a_copy_that_is_loaded_after_a_fork_agrees(const char *path) {
    fflush(NULL);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        pthread_t first = start(call_once, &own);
        AWAIT(LOAD(once_running));
        a = load(path);
        pthread_t second = start(call_once, a);
        AWAIT(own.waiters(&once) == 1 || LOAD(once_calls) > 1);
        STORE(once_may_end, 1);
        join(first);
        join(second);
        CHECK(once_calls, 1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
}

int main(int count_of_arguments, char **paths) {
    assert(count_of_arguments == 4);
    bool may_fork = !UNDER_TSAN; /* which does not support threads in the child of a process with threads */
    if (may_fork) a_copy_that_is_loaded_after_a_fork_agrees(paths[1]);
    copies_are_loaded_at_the_same_time(paths[1], paths[2]);
    a_notification_reaches_threads_of_all_copies();
    a_loop_of_one_copy_is_notified_by_another();
    copies_contend_for_locks();
    the_keeper_of_a_loop_learns_of_calls_by_other_copies();
    a_handler_may_interrupt_another_copy();
    if (may_fork) all_copies_can_be_used_after_fork();
    a_segment_of_one_copy_is_not_memory_of_another();
    another_version_refuses(paths[3]);
    puts("ok");
    return 0;
}
