/* SPDX-License-Identifier: MIT */
/* The hand-written solution: an eventfd each way, one side blocks in read, the other is an epoll loop. Threads or
 * processes. */
#include "alone.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int to_pong, to_ping, epoll;

static void open_descriptors(void) {
    to_pong = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    to_ping = eventfd(0, EFD_CLOEXEC);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event interest = {.events = EPOLLIN};
    must(to_pong >= 0 && to_ping >= 0 && epoll >= 0);
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, to_pong, &interest) == 0);
}

static void close_descriptors(void) {
    close(epoll);
    close(to_ping);
    close(to_pong);
}

static void throw_ball(int fd) {
    const uint64_t one = 1;
    must(write(fd, &one, sizeof one) == sizeof one);
}

static void ping(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        throw_ball(to_pong);
        uint64_t count;
        must(read(to_ping, &count, sizeof count) == sizeof count);
    }
}

static void pong(uint64_t n) {
    for (uint64_t served = 0; served < n;) {
        struct epoll_event event;
        if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
        uint64_t count;
        must(read(to_pong, &count, sizeof count) == sizeof count);
        served++;
        throw_ball(to_ping);
    }
}

static void pingpong_async(const struct job *job, double figures[FIGURES_MAX]) {
    open_descriptors();
    figures[0] = per_round_trip_ns(ping, pong, job->n);
    close_descriptors();
}

/* A fork inherits the descriptors. */
static const struct arena arena = {.open = open_descriptors, .close = close_descriptors};

static void shared_pingpong_async(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = shared_per_round_trip_ns(&arena, ping, pong, job->n);
}

static void idle_loop_open(uint64_t index) {
    struct epoll_event interest = {.events = EPOLLIN};
    const struct itimerspec hour = {.it_value.tv_sec = HOUR_NS / 1000000000};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
        bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    (void)index;
    must(poll >= 0 && timer >= 0 && timerfd_settime(timer, 0, &hour, NULL) == 0);
    must(epoll_ctl(poll, EPOLL_CTL_ADD, bell, &interest) == 0 && epoll_ctl(poll, EPOLL_CTL_ADD, timer, &interest) == 0);
}

static void idle_agents(const struct job *job, double figures[FIGURES_MAX]) {
    idle_loops(job, "eventfd+epoll", idle_loop_open, figures);
}

static const struct skill skills[] = {
    {"pingpong_async", pingpong_async, false},
    {"pingpong_async_run", pingpong_async, false},
    {"idle_agents", idle_agents, false},
    {"shared_pingpong_async", shared_pingpong_async, false},
    {"shared_pingpong_async_run", shared_pingpong_async, false},
    {0},
};
extern const struct skill epoll_bounded[];
const struct contestant contestant_epoll = {.name = "eventfd+epoll", .skills = {skills, epoll_bounded}};
