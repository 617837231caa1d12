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
#define OP_REQUEST      4u  /* part of a vigil_request: its callback is the library's, and also gets OP_TAKEN_BACK */
#define OP_UNREFERENCED 16u /* after it was pending: it was not OP_REFERENCED at its end */
#define OP_ENDS_ITSELF        8u  /* its callback ends it and, at its deadline, takes it out of the line first. Also the
                             * agent's place in a lock's line, which is not counted as pending */

/* As a status for an OP_REQUEST: the caller has cancelled it, and must not be called back. If it is an OP_ENDS_ITSELF
 * as well, and the op's callback does not end it, the cancellation was too late. */
#define OP_TAKEN_BACK 0x200

/* Hash lists of the queues of requests for locks, by the lock's word: see sync/request.c. */
#define AGENT_QUEUES 64u

struct vigil_agent {
    struct seat seat;
    uint8_t padding[64 - sizeof(struct seat)]; /* other threads write to the seat, only the agent's to the rest */

    struct lot *lot;
    struct prim_thread *thread; /* that the agent belongs to; null until a worker's thread has adopted it */
    uint32_t generation;        /* prim_generation when it was created; if that differs: we are a fork's child */
    unsigned flags;
    bool dispatching, closing, stopping;
    bool woken;   /* this dispatch or run has taken a wake */
    bool kept;    /* the agent has called keeper_ready: see sync/request.c */
    bool alarmed; /* the descriptor is in use, and alarm_ns is what it is set to */
    bool alive;   /* as on_alive has been told, or was when it was set */
    uint64_t alarm_ns;
    uint64_t pending; /* operations; below: those of them that keep vigil_agent_run going */
    uint64_t pending_referenced;
    uint64_t references; /* by vigil_agent_ref, which keep it going too */
    vigil_function *on_alive;
    void *on_alive_argument;
    vigil_watch *watches, *ready; /* all, and those whose callback is about to be called: see watches.c */
    struct vigil_request *queues[AGENT_QUEUES];
    struct timers timers;
};

/* Whether we are the child of a fork, and the agent belongs to the parent. */
bool agent_forked(const vigil_agent *agent);

/* VIGIL_OK if the calling thread may use the agent, else an error. */
int agent_check(const vigil_agent *agent);

/* Create an agent that belongs to no thread yet; make it belong to the calling thread. */
int agent_new(vigil_agent **agent, unsigned flags);
void agent_adopt(vigil_agent *agent);

/* The end, in two steps: on the agent's thread, and then on any thread, once no thread posts any more. Posts in between
 * are dropped. The agent stays awake in between, so that no post rings. */
int agent_close(vigil_agent *agent);
void agent_free(vigil_agent *agent);

/* Whether an operation can be started. */
int agent_check_start(const vigil_agent *agent, const vigil_op *op, const struct word *word, vigil_callback *callback);

/* vigil_wait32_async after agent_check_start. */
int agent_wait(vigil_agent *agent, vigil_op *op, const struct word *word, uint64_t deadline_ns,
               vigil_callback *callback, enum slot_kind kind);

/* The part of agent_wait that joins the line, with a slot: false if the word differs. */
bool agent_join(vigil_agent *agent, vigil_op *op, uint32_t slot, const struct word *word, enum slot_kind kind);

/*
 * A slot of the agent's lot, to wait for the word at that address; zero: none is available. If the word is in a segment
 * a second slot comes with it, which will be in line there (lot/shared.h): agent_slot returns the slot that is in
 * line.
 */
uint32_t agent_slot_acquire(vigil_agent *agent, const volatile void *address);
void agent_slot_release(vigil_agent *agent, uint32_t slot);
struct agent_slot {
    struct lot *lot;
    uint32_t slot;
};
struct agent_slot agent_slot(const vigil_agent *agent, uint32_t slot);

/* As lot_leave. */
bool agent_leave(vigil_agent *agent, const vigil_op *op);

/* The operation becomes pending, and ends. It may have a slot (else 0) and a timer. */
void agent_begin(vigil_agent *agent, vigil_op *op);
void agent_end(vigil_agent *agent, vigil_op *op);

/* Start a timer for the operation's deadline_ns. */
void agent_start_timer(vigil_agent *agent, vigil_op *op, uint64_t now_ns);

/* pending_referenced or references have changed: call on_alive if the agent has become alive, or no longer is. In a
 * dispatch only at its end: most operations that end there are followed by another. */
void agent_call_on_alive(vigil_agent *agent);
static inline void agent_note_alive(vigil_agent *agent) {
    if (agent->on_alive && !agent->dispatching) agent_call_on_alive(agent);
}

/* Call the callbacks of the watches whose descriptors are ready; returns how many. And, at the end, of all of them. */
int64_t agent_serve_watches(vigil_agent *agent);
void agent_end_watches(vigil_agent *agent);
static inline bool agent_has_watches(const vigil_agent *agent) {
    return PRIM_WATCHES && agent->watches;
}

/* The earliest deadline may be earlier now: set the descriptor's alarm. */
void agent_set_alarm(vigil_agent *agent);

#endif
