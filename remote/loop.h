/* SPDX-License-Identifier: MIT */
/*
 * loop.h - the agent as the client sees it: timers on the clock that goes on while the machine sleeps, and an inside
 * and an outside. Inside is where the agent has called the client. What is to be sent is sent, and what has been closed
 * is freed, when the inside is left: so whatever calls a callback may go on afterwards.
 */
#ifndef VIGIL_REMOTE_LOOP_H
#define VIGIL_REMOTE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <vigil/agent.h>

#define LOOP_NEVER INT64_MAX
#define NS_PER_MS  INT64_C(1000000)
#define NS_PER_S   INT64_C(1000000000)

/* Zeroed before its first use. A pairing heap: `before` is the parent of a first child, or the sibling on its left. */
struct loop_timer {
    int64_t at_ns;
    bool set;
    struct loop_timer *child, *next, *before;
    void (*due)(struct loop_timer *timer);
};

struct loop {
    vigil_agent *agent; /* null: it has been destroyed */
    vigil_watch watch;  /* of the timerfd */
    int fd;
    int64_t armed_ns; /* what the timerfd is set to */
    struct loop_timer *first;
    unsigned inside;
    void (*left)(struct loop *loop);  /* the inside has been left; may free the loop */
    void (*ended)(struct loop *loop); /* the agent is being destroyed */
};

int loop_open(struct loop *loop, vigil_agent *agent);
void loop_close(struct loop *loop);
void loop_enter(struct loop *loop);
void loop_leave(struct loop *loop);
int64_t loop_now_ns(void);
/* LOOP_NEVER: it is not set any more. `due` is called inside. */
void loop_set(struct loop *loop, struct loop_timer *timer, int64_t at_ns);

#endif
