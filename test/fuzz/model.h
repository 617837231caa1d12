/* SPDX-License-Identifier: MIT */
/*
 * model.h - what the library must return, by the simplest means: one list of all waiters in the order in which they
 * came, and for each agent one list of what it has yet to be told. Most functions change the model and return what is
 * correct; model_begins is told of a callback, and checks that it may happen now.
 */
#ifndef VIGIL_FUZZ_MODEL_H
#define VIGIL_FUZZ_MODEL_H

#include "fuzz_prim.h"
#include "vigil/vigil.h"

#define AGENTS     4 /* one more than there are seats */
#define OPS        12
#define NO_AGENT   (-1)
#define FOREVER_NS UINT64_MAX

/* A waiter, or a possible one: an operation or a thread. */
struct waiter {
    enum { IDLE, IN_LINE, DECIDED, LOST } place; /* LOST: pending when the process forked */
    int agent;                                   /* NO_AGENT: a thread */
    uint64_t address, deadline_ns, came;         /* `came`: how many had come to any line before */
    int outcome;                                 /* DECIDED */
    bool referenced;
};

/* What an agent has yet to be told: the outcome of a waiter or, if that is null, a function to call. */
struct letter {
    struct waiter *waiter;
    uint64_t post; /* its number; STOP: the library's own */
    uint64_t sent; /* letters of one vigil_forget share a number, and may come in any order between lines */
    uint64_t address;
};
#define STOP 0

struct model_agent {
    vigil_agent *real; /* null: there is none */
    unsigned thread, flags;
    bool forked, dispatching, closing, stopping, has_fd;
    int64_t served;      /* callbacks since its dispatch began */
    uint64_t references; /* by vigil_agent_ref */
    size_t letters;
    struct letter mail[512];
};

extern struct model {
    struct waiter *line[OPS + FUZZ_THREADS];
    size_t waiting;
    uint64_t came, sent, posted;
    struct model_agent agents[AGENTS];
    struct waiter ops[OPS], threads[FUZZ_THREADS];
    uint64_t moved_ns; /* time of the latest action: what was due before may be late */
} model;

void model_reset(void);
void model_fork(void);

void model_join(struct waiter *waiter, int agent, uint64_t address, uint64_t deadline_ns);
void model_leave(struct waiter *waiter); /* a waiter in line */
int64_t model_notify(uint64_t address, int64_t count);
int64_t model_forget(uint64_t from, uint64_t length);
int64_t model_waiters(uint64_t address);
void model_post(int agent, uint64_t number);

/* A callback begins: is it its turn, and is that its outcome? */
void model_begins(struct waiter *waiter, int status);
void model_post_begins(int agent, uint64_t number);
/*
 * The reading of a stop is not visible. There is at most one in the mail; a caller that infers that it was read
 * reports it.
 */
bool model_has_stop(int agent);
bool model_stop_is_next(int agent, uint64_t sent_until);
void model_read_stop(int agent);

/* Whether anything keeps vigil_agent_run running; whether a deadline until then has not been served. */
bool model_referenced(int agent);
bool model_overdue(int agent, uint64_t until_ns, uint64_t came_before);
bool model_pending(int agent);
bool model_may_not_block(unsigned thread);
uint64_t model_seats(void);

#endif
