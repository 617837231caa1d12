/* SPDX-License-Identifier: MIT */
/*
 * seat.h - where an agent's mail arrives.
 *
 * The mail is a stack of chains of slots. A chain is linked by `next`, oldest first, and named by its oldest slot,
 * whose `tail` is the newest and whose `prev` is the chain below it in the stack. Any thread may push a chain; the
 * agent takes the whole stack at once and joins the chains so that it reads them in the order of arrival. Mail for
 * the waiters of one line is pushed under the bucket's lock and so in line order.
 *
 * One word holds the top and two flags that say whether a push must ring the agent's bell:
 *
 *     AWAKE   The agent is looking after its mail and will look again before it rests. Set and cleared by the agent
 *             only; cleared in one step with finding that there is no mail, or while RUNG is set (seat_rest_rung).
 *     RUNG    The thread that set it rings or has rung, and the agent has not taken that ring yet. Set by a push that
 *             finds both flags clear, or by the agent itself when it rests with mail; cleared by the agent only,
 *             after it has taken the ring.
 *
 * A third flag, WOKEN, is mail without a slot: the agent must look up (vigil_agent_wake). Any thread may set it, as a
 * push sets the top, and so may a signal handler: setting it takes no lock. It counts as a push below. The agent
 * clears it in the step that collects the other mail: all that was pushed before.
 *
 * A push rings if it finds both flags clear. So there is one ring for each rest, never two unless the agent takes one
 * in between; and whenever there is mail, the agent is awake, or a ring has arrived or is on its way:
 *
 *     rest    CAS from (AWAKE, no mail) to (resting, no mail). A push before it makes it fail; a push after it rings.
 *     take    The ring first, then clear RUNG. The other way round a second ring could be taken together with the
 *             first, and RUNG would stay set with no ring to come.
 *
 * From setting RUNG until it rings, the pusher may use the seat (next_rung, threads_before, bell), and no other pusher
 * does: the next pusher to find RUNG clear comes after the agent cleared it, which comes after it took this ring. An
 * agent that ends waits for a ring that is due.
 */
#ifndef VIGIL_SEAT_H
#define VIGIL_SEAT_H

#include "lot.h"

#define MAIL_AWAKE 1u
#define MAIL_RUNG  2u
#define MAIL_WOKEN 4u
#define MAIL_FLAGS 7u
#define MAIL_SLOT  8u /* slot numbers stand above the flags */

struct seat {
    uint32_t mail;
    uint32_t number;
    struct seat *next_rung;  /* in the list of seats to ring, of the thread that set RUNG */
    uint32_t threads_before; /* how many threads are woken before it is rung: struct wakes in line.h */
    uint32_t thread_id;      /* of the agent's thread, for people to read */
    struct prim_bell bell;
};

/* Push the chain from `oldest` to `newest`. True: the caller must ring the seat's bell, when it holds no lock. */
bool seat_push(struct lot *lot, struct seat *seat, uint32_t oldest, uint32_t newest);

/* Set WOKEN. Returns as above. */
bool seat_wake(struct seat *seat);

/* The agent's side, on its thread only. */
void seat_attend(struct seat *seat); /* set AWAKE; take the ring if it has arrived */
/* Returns all mail, oldest first, linked by `next`; 0: none. Clears WOKEN, and sets `woken` if it was set. */
uint32_t seat_collect(struct lot *lot, struct seat *seat, bool *woken);
bool seat_has_mail(struct seat *seat);   /* or WOKEN */
bool seat_spin(struct seat *seat);       /* spin until seat_has_mail, as long as that pays; false: it has none */
bool seat_rest(struct seat *seat);       /* false: there is mail, or WOKEN: stay awake */
void seat_rest_rung(struct seat *seat);  /* rest even with mail, and make sure that the bell is rung */
void seat_await_ring(struct seat *seat); /* wait until a ring that is on its way has arrived, and take it */

#endif
