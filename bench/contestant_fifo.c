/* SPDX-License-Identifier: MIT */
/*
 * A mutex for tasks, in the manner of asynchronous runtimes such as tokio: a FIFO of tasks under a small lock. An
 * unlock hands the mutex to the first of them, and puts that task into its loop's list of those that can go on. That
 * list has a lock too, as any thread may wake a task, and an eventfd for a loop that sleeps in epoll.
 */
#include "await.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct task {
    struct task *next;
    bool holds; /* it has the mutex, and has awaited something */
};

struct fifo {
    _Alignas(128) pthread_mutex_t guard;
    struct task *first, **end;
};

static struct {
    struct fifo ready;
    bool asleep;
    int bell, epoll;
} loop;

static struct {
    struct fifo waiters;
    bool held;
} mutex;

/* Between two looks at its descriptors, a loop runs so many tasks: as tokio does. */
enum { TASKS_PER_POLL = 61 };

static void fifo_init(struct fifo *fifo) {
    *fifo = (struct fifo){.guard = PTHREAD_MUTEX_INITIALIZER};
    fifo->end = &fifo->first;
}

/* With the guard held. */
static void fifo_push(struct fifo *fifo, struct task *task) {
    task->next = NULL;
    *fifo->end = task;
    fifo->end = &task->next;
}

static struct task *fifo_pop(struct fifo *fifo) {
    struct task *task = fifo->first;
    if (task == NULL) return NULL;
    fifo->first = task->next;
    if (task->next == NULL) fifo->end = &fifo->first;
    return task;
}

static void task_wake(struct task *task) {
    const uint64_t one = 1;
    pthread_mutex_lock(&loop.ready.guard);
    fifo_push(&loop.ready, task);
    bool asleep = loop.asleep;
    loop.asleep = false;
    pthread_mutex_unlock(&loop.ready.guard);
    if (asleep) must(write(loop.bell, &one, sizeof one) == sizeof one);
}

/* False: the task is in line, and is woken when it has the mutex. */
static bool mutex_lock(struct task *task) {
    pthread_mutex_lock(&mutex.waiters.guard);
    bool free = !mutex.held;
    mutex.held = true;
    if (!free) fifo_push(&mutex.waiters, task);
    pthread_mutex_unlock(&mutex.waiters.guard);
    return free;
}

static void mutex_unlock(void) {
    pthread_mutex_lock(&mutex.waiters.guard);
    struct task *next = fifo_pop(&mutex.waiters);
    mutex.held = next != NULL;
    pthread_mutex_unlock(&mutex.waiters.guard);
    if (next != NULL) task_wake(next);
}

/* What a task awaits with the mutex held is its next turn, so it wakes itself. */
static void task_has_lock(struct task *task) {
    await_begin();
    task->holds = true;
    task_wake(task);
}

static void task_ask(struct task *task) {
    if (mutex_lock(task)) task_has_lock(task);
}

static void task_run(struct task *task) {
    if (!task->holds) {
        task_has_lock(task);
        return;
    }
    task->holds = false;
    bool again = await_end();
    mutex_unlock();
    if (again) task_ask(task);
}

static void loop_poll(int timeout_ms) {
    struct epoll_event event;
    uint64_t count;
    if (epoll_wait(loop.epoll, &event, 1, timeout_ms) == 1) must(read(loop.bell, &count, sizeof count) == sizeof count);
}

/* Until nothing is left that could wake a task: here, all tasks are those of this loop. */
static void loop_run(void) {
    for (unsigned ran = 0;; ran++) {
        pthread_mutex_lock(&loop.ready.guard);
        struct task *task = fifo_pop(&loop.ready);
        loop.asleep = task == NULL && mutex.held;
        pthread_mutex_unlock(&loop.ready.guard);
        if (task != NULL) task_run(task);
        else if (!mutex.held) return;
        else loop_poll(-1);
        if (ran % TASKS_PER_POLL == 0) loop_poll(0);
    }
}

static void loop_open(void) {
    struct epoll_event interest = {.events = EPOLLIN};
    fifo_init(&loop.ready);
    fifo_init(&mutex.waiters);
    loop.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop.epoll = epoll_create1(EPOLL_CLOEXEC);
    must(loop.bell >= 0 && loop.epoll >= 0 && epoll_ctl(loop.epoll, EPOLL_CTL_ADD, loop.bell, &interest) == 0);
}

static void mutex_await(const struct job *job, double figures[FIGURES_MAX]) {
    struct task *tasks = calloc(job->n, sizeof *tasks);
    must(tasks != NULL);
    loop_open();
    await_open(job->n);
    for (uint64_t i = 0; i < job->n; i++) task_ask(&tasks[i]);
    loop_run();
    figures[0] = figures[1] = await_close(); /* it is fair */
    close(loop.epoll);
    close(loop.bell);
    free(tasks);
}

static const struct skill skills[] = {
    {"mutex_await", mutex_await, false},
    {0},
};
const struct contestant contestant_fifo = {.name = "FIFO+eventfd", .skills = {skills}};
