/* SPDX-License-Identifier: MIT */
/*
 * An agent in a loop of plain epoll, beside another descriptor: a clock that ticks every few milliseconds. Three
 * threads work and notify; the loop waits for all of them, and for a notification that never comes, without ever
 * blocking anywhere but in epoll_wait.
 *
 * The program checks what it shows, and exits with 1 if anything is wrong.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <vigil/vigil.h>

#define MILLISECOND INT64_C(1000000)
#define PATIENCE_NS (20 * MILLISECOND)
#define TICK_NS     (5 * MILLISECOND)
#define TICKS       3 /* the loop ends when it has seen so many, and all waits have ended */

struct task {
    const char *name;
    uint64_t up_to, sum; /* the work: the sum of 1 to up_to */
    uint32_t done;       /* the word that the loop waits for */
    vigil_op op;
};

static struct task tasks[] = {
    {.name = "one", .up_to = 1000}, {.name = "two", .up_to = 1000000}, {.name = "three", .up_to = 10}};
#define TASKS (sizeof tasks / sizeof tasks[0])
static struct task never = {.name = "never"};

static unsigned outstanding; /* waits that have not ended; the loop's own, so it needs no lock */
static uint64_t ticks;
static int64_t began_ns;
static bool wrong;

/* On a thread of its own. */
static void work(vigil_agent *agent, void *argument) {
    struct task *task = argument;
    (void)agent;
    for (uint64_t i = 1; i <= task->up_to; i++) task->sum += i;
    __atomic_store_n(&task->done, 1, __ATOMIC_SEQ_CST);
    vigil_notify(&task->done, 1); /* the notified waiter sees the sum */
}

static void report(const struct task *task) {
    bool right = task->sum == task->up_to * (task->up_to + 1) / 2;
    printf("%s: the sum of 1 to %" PRIu64 " is %" PRIu64 "\n", task->name, task->up_to, task->sum);
    wrong |= !right;
}

/* In the loop, from vigil_agent_dispatch. */
static void on_done(vigil_op *op, int status) {
    outstanding--;
    if (status == VIGIL_OK) report(op->data);
    else wrong = true;
}

static void on_nobody(vigil_op *op, int status) {
    const struct task *task = op->data;
    outstanding--;
    printf("%s: %s\n", task->name, vigil_status_name(status));
    wrong |= status != VIGIL_TIMED_OUT || vigil_now_ns() - began_ns < PATIENCE_NS;
}

static void await(vigil_agent *agent, struct task *task, int64_t timeout_ns, vigil_callback *callback) {
    task->op.data = task;
    switch (vigil_wait32_async(agent, &task->op, &task->done, 0, timeout_ns, callback)) {
    case VIGIL_PENDING: outstanding++; break;
    case VIGIL_NOT_EQUAL: report(task); break; /* done before we came to wait */
    default: wrong = true;
    }
}

static void on_tick(int clock_fd) {
    uint64_t expired = 0;
    if (read(clock_fd, &expired, sizeof expired) == sizeof expired) ticks += expired;
}

static int start_clock(void) {
    struct itimerspec every_tick = {.it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0 || timerfd_settime(fd, 0, &every_tick, NULL) != 0) abort();
    return fd;
}

static void watch(int epoll_fd, int fd) {
    struct epoll_event readable = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &readable) != 0) abort();
}

static void loop(int epoll_fd, vigil_agent *agent, int clock_fd) {
    while (outstanding || ticks < TICKS) {
        struct epoll_event events[2];
        int ready = epoll_wait(epoll_fd, events, 2, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == clock_fd) on_tick(clock_fd);
            else vigil_agent_dispatch(agent);
        }
    }
}

int main(void) {
    vigil_agent *agent;
    if (vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK) abort();
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC), clock_fd = start_clock();
    watch(epoll_fd, vigil_agent_fd(agent));
    watch(epoll_fd, clock_fd);

    vigil_worker *workers[TASKS];
    for (size_t i = 0; i < TASKS; i++) {
        if (vigil_worker_start(&workers[i], work, &tasks[i]) != VIGIL_OK) abort();
        await(agent, &tasks[i], VIGIL_FOREVER, on_done);
    }
    began_ns = vigil_now_ns();
    await(agent, &never, PATIENCE_NS, on_nobody);
    loop(epoll_fd, agent, clock_fd);

    printf("the clock ticked %" PRIu64 " times meanwhile\n", ticks);

    vigil_agent_destroy(agent);
    for (size_t i = 0; i < TASKS; i++) {
        vigil_worker_stop(workers[i]);
        vigil_worker_join(workers[i]);
    }
    close(clock_fd);
    close(epoll_fd);
    if (wrong) printf("WRONG\n");
    return wrong;
}
