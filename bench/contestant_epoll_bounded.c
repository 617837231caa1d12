/* SPDX-License-Identifier: MIT */
/* A bounded queue by hand: a mutex, conditions for the threads, an eventfd for the epoll loop. */
#include "bench.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int bell, epoll;

static void wake_loop(void) {
    const uint64_t one = 1;
    must(write(bell, &one, sizeof one) == sizeof one);
}

#include "bounded_peer.h"

static void open_descriptors(void) {
    struct epoll_event interest = {.events = EPOLLIN};
    bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    must(bell >= 0 && epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, bell, &interest) == 0);
}

static void close_descriptors(void) {
    close(epoll);
    close(bell);
}

static void loop_run(void (*step)(void), uint64_t n) {
    loop_done = 0;
    loop_all = n;
    step();
    while (loop_done < loop_all) {
        struct epoll_event event;
        uint64_t count;
        if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
        must(read(bell, &count, sizeof count) == sizeof count);
        step();
    }
}

static void loop_put(uint64_t n) {
    loop_run(loop_put_step, n);
}

static void loop_take(uint64_t n) {
    loop_run(loop_take_step, n);
}

static void bounded(const struct job *job, double figures[FIGURES_MAX]) {
    static const struct bounded by_hand = {open_descriptors, close_descriptors, queue_put,
                                           queue_take,       loop_put,          loop_take};
    bounded_both_ways(job, &by_hand, figures);
}

const struct skill epoll_bounded[] = {
    {"bounded", bounded, false},
    {0},
};
