/* SPDX-License-Identifier: MIT */
/*
 * vigil/barrier.h - a meeting point: nobody goes on until all are there.
 *
 *     static vigil_barrier barrier = VIGIL_BARRIER_INIT(3);       for three parties
 *
 *     a thread         vigil_barrier_wait(&barrier);
 *     an event loop    vigil_barrier_wait_async(agent, &request, &barrier, VIGIL_FOREVER, all_are_there);
 *
 * Parties are whoever arrives: threads and event loops, one loop with several requests as well. When as many have
 * arrived as there are parties, all of them go on, and the next round begins at once: who has gone on may arrive again
 * while others have not yet noticed. Everything that any of them did before it arrived is visible to all of them after.
 *
 * The last one to arrive never waits, and is told apart: its answer is VIGIL_LAST, that of all the others VIGIL_OK. So
 * each round has exactly one VIGIL_LAST, for what is to be done once in each.
 *
 * An arrival counts until it is taken back, by a deadline, by vigil_cancel or by the end of the agent. Then the round
 * needs somebody else. Once a round is complete nothing can be taken back: VIGIL_OK it is, late deadline or not.
 *
 * In a segment (segment.h) parties are of any of its processes. One that is killed, or ends, takes its arrivals with
 * it. If it is killed while it completes a round, then the round is complete, and it may be that nobody is VIGIL_LAST.
 *
 * A party that has gone on (its wait has returned, or its callback has begun) may free the barrier, if no other is
 * going to arrive any more: the library does not touch it for those that have been told to go on and have not yet
 * returned. A wait that is to time out or to be cancelled must have come back before.
 */
#ifndef VIGIL_BARRIER_H
#define VIGIL_BARRIER_H

#include <stdint.h>

#include "agent.h"
#include "request.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_barrier {
    uint32_t word;    /* the round, in the upper half, and, except in segments, how many have arrived for it */
    uint32_t parties; /* from 1 to 65535 */
} vigil_barrier;

#define VIGIL_BARRIER_INIT(parties) {0u, (parties)}

/*
 * vigil_barrier_wait - arrive, and block until all have: VIGIL_OK, or VIGIL_LAST for who completes the round.
 *
 * The timed forms return VIGIL_TIMED_OUT when `timeout_ns` has passed, or vigil_now_ns() has reached `deadline_ns`, and
 * have not arrived then; with zero or less, or a deadline that has passed, they arrive only if they are the last.
 * VIGIL_CANCELLED if the memory is forgotten meanwhile: before that barrier is used
 * again, it has to be initialised.
 *
 * Errors; who gets one has not arrived: VIGIL_ENULL, VIGIL_EMISALIGNED, VIGIL_EINVAL (parties); VIGIL_EMAYNOTBLOCK,
 * where it would have to wait on a thread that may not block; VIGIL_ENOMEM and VIGIL_ELIMIT as in vigil_wait32.
 */
VIGIL_API int vigil_barrier_wait(vigil_barrier *barrier);
VIGIL_API int vigil_barrier_wait_for(vigil_barrier *barrier, int64_t timeout_ns);
VIGIL_API int vigil_barrier_wait_until(vigil_barrier *barrier, int64_t deadline_ns);

/*
 * vigil_barrier_wait_async - the same without blocking, on the agent's thread.
 *
 * VIGIL_LAST: the callback is never called. VIGIL_PENDING: it has arrived, and callback(&request->op, status) is called
 * once, from the agent's dispatch, with VIGIL_OK, VIGIL_TIMED_OUT or VIGIL_CANCELLED. vigil_cancel(&request->op) takes
 * the arrival back, or returns VIGIL_ETOOLATE: the round is complete, or the memory forgotten, and the callback will be
 * called. Errors as of vigil_wait32_async, and VIGIL_EINVAL.
 */
VIGIL_API int vigil_barrier_wait_async(vigil_agent *agent, vigil_request *request, vigil_barrier *barrier,
                                       int64_t timeout_ns, vigil_callback *callback);

#ifdef __cplusplus
}
#endif
#endif
