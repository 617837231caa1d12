/* SPDX-License-Identifier: MIT */
/*
 * agent.h - inside an agent.
 *
 * Everything here belongs to the agent's thread, except the seat's mail and bell (seat.h). An operation is only ever
 * touched on that thread too: a notifier knows nothing but its slot. So there is no race between a callback, a deadline
 * and a cancel; each of them races with notifiers alone, and lot_leave decides that.
 */
#ifndef VIGIL_AGENT_INSIDE_H
#define VIGIL_AGENT_INSIDE_H

#include "lot/seat.h"
#include "timers.h"
#include "vigil/agent.h"

/* vigil_op.flags */
#define OP_PENDING      1u
#define OP_REFERENCED   2u  /* counted in the agent's pending_referenced */
#define OP_REQUEST      4u  /* a vigil_request's: its callback is the library's, and is also told OP_TAKEN_BACK */
#define OP_UNREFERENCED 16u /* when it is not pending any more: it was not OP_REFERENCED in the end */
#define OP_PLACE        8u  /* its callback ends it and, at its deadline, takes it out of the line first. Also the agent's
                             * place in a lock's line, which is not counted */

/* As a status for an OP_REQUEST: cancelled by the caller, who must not be called back. If it is an OP_PLACE as well, and
 * its callback does not end it, that was too late. */
#define OP_TAKEN_BACK 0x200

/* Requests for locks queue up by the lock's word: so many lists of queues. See sync/request.c. */
#define AGENT_QUEUES 64u

struct vigil_agent {
    struct seat seat;
    uint8_t padding[64 - sizeof(struct seat)]; /* others write to the seat, only we to the rest */

    struct lot *lot;
    struct prim_thread *thread; /* whose it is; null until a worker's thread has taken it over */
    uint32_t generation;        /* prim's when it was created; another one: we are a fork's child */
    unsigned flags;
    bool dispatching, closing, stopping;
    bool woken;   /* a wake has been taken in this dispatch or run */
    bool kept;    /* the keeper knows of it: see sync/request.c */
    bool alarmed; /* the descriptor is in use, and alarm_ns is what it is set to */
    uint64_t alarm_ns;
    uint64_t pending; /* operations, and how many of them keep vigil_agent_run going */
    uint64_t pending_referenced;
    uint64_t references; /* the agent's own, which do so too */
    struct vigil_request *queues[AGENT_QUEUES];
    struct timers timers;
};

/* Whether we are the child of a fork, and the agent is the parent's. */
bool agent_forked(const vigil_agent *agent);

/* VIGIL_OK if the agent may be used by the calling thread, else which error. */
int agent_check(const vigil_agent *agent);

/* An agent that no thread has taken over yet, and the taking over. */
int agent_new(vigil_agent **agent, unsigned flags);
void agent_adopt(vigil_agent *agent);

/* The end, in two steps: on the agent's thread, and then on any, once nobody posts any more. What was posted in between
 * is dropped. The agent stays awake in between, so that nobody rings. */
int agent_close(vigil_agent *agent);
void agent_free(vigil_agent *agent);

/* Whether an operation can be started. */
int agent_check_start(const vigil_agent *agent, const vigil_op *op, const struct word *word, vigil_callback *callback);

/* What vigil_wait32_async does once that has been checked. */
int agent_wait(vigil_agent *agent, vigil_op *op, const struct word *word, uint64_t deadline_ns,
               vigil_callback *callback, enum slot_kind kind);

/* The part of it that joins the line, with a slot: false if the word differs. */
bool agent_join(vigil_agent *agent, vigil_op *op, uint32_t slot, const struct word *word, enum slot_kind kind);

/*
 * A slot of the agent's lot, for one who is to wait for what is at that address; zero: none is to be had. If that is in
 * a segment there is another slot with it, which will be in line there (lot/shared.h): agent_place answers which.
 */
uint32_t agent_slot_acquire(vigil_agent *agent, const volatile void *address);
void agent_slot_release(vigil_agent *agent, uint32_t slot);
struct agent_place {
    struct lot *lot;
    uint32_t slot;
};
struct agent_place agent_place(const vigil_agent *agent, uint32_t slot);

/* As lot_leave. */
bool agent_leave(vigil_agent *agent, const vigil_op *op);

/* Begin and end an operation's being pending. It may have a slot (else 0) and a timer. */
void agent_begin(vigil_agent *agent, vigil_op *op);
void agent_end(vigil_agent *agent, vigil_op *op);

/* Have the operation's deadline_ns watched. */
void agent_start_timer(vigil_agent *agent, vigil_op *op, uint64_t now_ns);

/* An earlier deadline than before may have come: set the descriptor's alarm. */
void agent_set_alarm(vigil_agent *agent);

#endif
