/* SPDX-License-Identifier: MIT */
/*
 * vigil/barrier.h - a meeting point: no party goes on until all have arrived.
 *
 *     static vigil_barrier barrier = VIGIL_BARRIER_INIT(3);       for three parties
 *
 *     a thread         vigil_barrier_wait(&barrier);
 *     an event loop    vigil_barrier_wait_async(agent, &request, &barrier, VIGIL_FOREVER, all_are_there);
 *
 * Each call that arrives is a party: threads and event loops, and one loop may arrive with several requests. When as
 * many have arrived as there are parties, all of them go on, and the next round begins at once: a party that has gone
 * on may arrive again while others have not yet returned. Everything that any party did before it arrived is visible
 * to all of them after.
 *
 * The last party to arrive never waits. It gets VIGIL_LAST, and all others get VIGIL_OK. So each round has exactly
 * one VIGIL_LAST, for work that must be done once per round.
 *
 * An arrival counts until it is taken back, by a deadline, an interruption, vigil_cancel or the end of the agent.
 * Then the round needs another party. Once a round is complete no arrival can be taken back: even a party whose
 * deadline has passed gets VIGIL_OK.
 *
 * In a segment (segment.h) the parties may be in any of its processes. The arrivals of a process that ends or is
 * killed are taken back. If it is killed while it completes a round, the round is complete, and it may be that no
 * party gets VIGIL_LAST.
 *
 * A party that has gone on (its wait has returned, or its callback has begun) may free the barrier, if no other party
 * will arrive any more: the library does not touch it on behalf of parties that have been told to go on and have not
 * yet returned. Waits that time out, are interrupted or are cancelled must have returned before.
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
    uint32_t word;    /* upper half: the round; lower half, except in segments: how many have arrived for it */
    uint32_t parties; /* from 1 to 65535 */
} vigil_barrier;

#define VIGIL_BARRIER_INIT(parties) {0u, (parties)}

/*
 * vigil_barrier_wait - arrive, and block until all parties have arrived: VIGIL_OK, or VIGIL_LAST for the party that
 * completes the round.
 *
 * The timed forms return VIGIL_TIMED_OUT when `timeout_ns` has passed, or vigil_now_ns() has reached `deadline_ns`;
 * then the caller has not arrived. With a timeout of zero or less, or a deadline that has passed, they arrive only if
 * they are the last. VIGIL_INTERRUPTED (thread.h): the caller has not arrived. VIGIL_CANCELLED if the memory is
 * forgotten meanwhile: the barrier must be initialised before it is used again.
 *
 * Errors; the caller has not arrived: VIGIL_ENULL, VIGIL_EMISALIGNED, VIGIL_EINVAL (parties); VIGIL_EMAYNOTBLOCK if
 * it is not the last and its thread may not block, whatever the timeout; VIGIL_ENOMEM, VIGIL_ELIMIT and
 * VIGIL_ECOPIES as in vigil_wait32.
 */
VIGIL_API int vigil_barrier_wait(vigil_barrier *barrier);
VIGIL_API int vigil_barrier_wait_for(vigil_barrier *barrier, int64_t timeout_ns);
VIGIL_API int vigil_barrier_wait_until(vigil_barrier *barrier, int64_t deadline_ns);

/*
 * vigil_barrier_wait_async - the same without blocking. Call it on the thread of the agent.
 *
 * VIGIL_LAST: the round is complete, and the callback is never called. VIGIL_TIMED_OUT: the timeout is zero or less,
 * and it is not the last; it has not arrived. VIGIL_PENDING: it has arrived, and callback(&request->op, status) is
 * called once, from the agent's dispatch, with VIGIL_OK, VIGIL_TIMED_OUT or VIGIL_CANCELLED.
 * vigil_cancel(&request->op) takes the arrival back, or returns VIGIL_ETOOLATE: then the round is complete, or the
 * memory forgotten, and the callback will be called. Errors as in vigil_wait32_async, and VIGIL_EINVAL.
 */
VIGIL_API int vigil_barrier_wait_async(vigil_agent *agent, vigil_request *request, vigil_barrier *barrier,
                                       int64_t timeout_ns, vigil_callback *callback);

#ifdef __cplusplus
}
#endif
#endif
