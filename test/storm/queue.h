/* SPDX-License-Identifier: MIT */
/* queue.h - what the members of the queue's storm (queue.c) and its judge (queue_judge.c) share. */
#ifndef VIGIL_STORM_QUEUE_H
#define VIGIL_STORM_QUEUE_H

#include "ledger.h"

/* The conditions; each is what one role waits for. */
#define NOT_EMPTY 0u
#define NOT_FULL  1u

enum role { CONSUMER = NOT_EMPTY, PRODUCER = NOT_FULL };

/* A request of an event loop that produces or consumes. */
struct seeker {
    vigil_request request; /* first, so that one is the other */
    vigil_agent *agent;
    struct actor *page;
    uint64_t *seed;
    enum role role;
    bool pending;
    bool resident; /* waits again whenever it has acted */
    bool retires;  /* acts no more */
};

void seeker_begins(struct seeker *seeker);

/* Takes the mutex, blocking, and repairs what a dead owner has left. Returns whether there was one. */
bool visit(struct actor *me, uint64_t *seed);

#endif
