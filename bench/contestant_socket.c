/* SPDX-License-Identifier: MIT */
/* A Unix socket between two processes: both block, or one has an epoll loop. */
#include "bench.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2]; /* the end that serves, and the end that returns */

static void open_arena(void) {
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
}

static void close_arena(void) {
    close(ends[0]);
    close(ends[1]);
}

static const struct arena arena = {.open = open_arena, .close = close_arena};

static void throw_ball(unsigned side, uint32_t ball) {
    must(write(ends[side], &ball, sizeof ball) == sizeof ball);
}

static void catch_ball(unsigned side, uint32_t ball) {
    uint32_t caught;
    must(read(ends[1 - side], &caught, sizeof caught) == sizeof caught && caught == ball);
}

#include "shared_pingpong.h"

static void pong_epoll(uint64_t n) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[1], &event) == 0);
    for (uint64_t i = 0; i < n;) {
        if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
        pong(1);
        i++;
    }
    close(epoll);
}

static void shared_pingpong_async(const struct job *job, double figures[FIGURES_MAX]) {
    pinged = ponged = 0;
    figures[0] = shared_per_round_trip_ns(&arena, ping, pong_epoll, job->n);
}

static const struct skill skills[] = {
    {"shared_pingpong_block", shared_pingpong_block, false},
    {"shared_pingpong_async", shared_pingpong_async, false},
    {"shared_pingpong_async_run", shared_pingpong_async, false},
    {0},
};
const struct contestant contestant_socket = {.name = "Unix socket", .skills = {skills}};
