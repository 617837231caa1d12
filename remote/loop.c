/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "loop.h"

#include <stddef.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int64_t loop_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The heap. */

static struct loop_timer *loop_meld(struct loop_timer *a, struct loop_timer *b) {
    if (!a || !b) return a ? a : b;
    if (b->at_ns < a->at_ns) {
        struct loop_timer *c = a;
        a = b;
        b = c;
    }
    b->next = a->child;
    b->before = a;
    if (b->next) b->next->before = b;
    a->child = b;
    a->next = a->before = NULL;
    return a;
}

/* Joins a list of siblings: in pairs, and then the pairs from the last to the first. */
static struct loop_timer *loop_meld_all(struct loop_timer *list) {
    struct loop_timer *pairs = NULL, *root = NULL;
    while (list) {
        struct loop_timer *a = list, *b = a->next;
        list = b ? b->next : NULL;
        a->next = a->before = NULL;
        if (b) b->next = b->before = NULL;
        a = loop_meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs) {
        struct loop_timer *next = pairs->next;
        pairs->next = NULL;
        root = loop_meld(root, pairs);
        pairs = next;
    }
    return root;
}

static void loop_remove(struct loop *loop, struct loop_timer *timer) {
    struct loop_timer *below = loop_meld_all(timer->child);
    if (loop->first == timer) {
        loop->first = below;
    } else {
        if (timer->before->child == timer) timer->before->child = timer->next;
        else timer->before->next = timer->next;
        if (timer->next) timer->next->before = timer->before;
        loop->first = loop_meld(loop->first, below);
    }
    timer->child = timer->next = timer->before = NULL;
    timer->set = false;
}

/* The timerfd. It is only set to an earlier time: most deadlines never pass, and one that is too early does no harm. */

static void loop_arm(struct loop *loop, int64_t at_ns) {
    struct itimerspec alarm = {.it_value = {.tv_sec = (time_t)(at_ns / NS_PER_S), .tv_nsec = (long)(at_ns % NS_PER_S)}};
    if (at_ns == LOOP_NEVER) alarm = (struct itimerspec){0};
    timerfd_settime(loop->fd, TFD_TIMER_ABSTIME, &alarm, NULL);
    loop->armed_ns = at_ns;
}

void loop_set(struct loop *loop, struct loop_timer *timer, int64_t at_ns) {
    if (timer->set) loop_remove(loop, timer);
    if (at_ns == LOOP_NEVER) return;
    timer->at_ns = at_ns > 0 ? at_ns : 1;
    timer->set = true;
    loop->first = loop_meld(loop->first, timer);
    if (loop->agent && timer->at_ns < loop->armed_ns) loop_arm(loop, timer->at_ns);
}

static void loop_on_time(vigil_watch *watch, unsigned events) {
    struct loop *loop = watch->data;
    loop_enter(loop);
    if (!events) {
        loop->agent = NULL;
        loop->ended(loop);
    } else {
        int64_t now_ns = loop_now_ns();
        for (struct loop_timer *timer; (timer = loop->first) && timer->at_ns <= now_ns;) {
            loop_remove(loop, timer);
            timer->due(timer);
        }
        if (loop->agent) loop_arm(loop, loop->first ? loop->first->at_ns : LOOP_NEVER);
    }
    loop_leave(loop);
}

int loop_open(struct loop *loop, vigil_agent *agent) {
    loop->agent = agent;
    loop->armed_ns = LOOP_NEVER;
    loop->watch.data = loop;
    loop->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->fd < 0) return VIGIL_ESYSTEM;
    int error = vigil_agent_watch(agent, &loop->watch, loop->fd, VIGIL_READABLE, loop_on_time);
    if (error) close(loop->fd);
    return error;
}

void loop_close(struct loop *loop) {
    vigil_agent_unwatch(&loop->watch);
    close(loop->fd);
}

void loop_enter(struct loop *loop) {
    loop->inside++;
}

void loop_leave(struct loop *loop) {
    if (--loop->inside == 0) loop->left(loop);
}
