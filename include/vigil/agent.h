/* SPDX-License-Identifier: MIT */
/*
 * vigil/agent.h - an event loop's seat.
 *
 * A thread that must not block waits through an agent. The agent offers one file descriptor to poll,
 * deadlines included, and one function to call when it is readable; so it fits any loop:
 *
 *     vigil_agent *agent;
 *     vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK);
 *     struct pollfd seat = { .fd = vigil_agent_fd(agent), .events = POLLIN };
 *     for (;;) {
 *         poll(&seat, 1, -1);                     or epoll, libuv, GLib, libevent, io_uring ...
 *         vigil_agent_dispatch(agent);            runs the callbacks that are due
 *     }
 *
 * Who has no loop calls vigil_agent_run.
 *
 * An agent belongs to the thread that created it. Only that thread may use it, with three exceptions that any thread
 * may call: vigil_agent_post, vigil_agent_stop and vigil_agent_wake. Of the functions here, vigil_agent_wake and
 * vigil_now_ns may be called in signal handlers, and no other. Callbacks run on that thread, inside dispatch, run or
 * destroy, one after the other and under no lock; they may start, cancel, notify and post as they like.
 *
 * Every call below answers VIGIL_ENULL for a null agent; those for the agent's thread alone VIGIL_EWRONGTHREAD
 * elsewhere; where it says so, VIGIL_EREENTRANT or VIGIL_EFORKED. A thread that ends destroys its agents before: nobody
 * else can.
 *
 * After fork the child's copy of an agent is dead: every call on it answers VIGIL_EFORKED, except destroy, which
 * gives its memory and descriptors back and calls nobody. Its operations are of no more use there either: zero one
 * before using it with another agent. The same goes for workers: join frees them. A callback may fork; in the child,
 * the dispatch, run or destroy that called it answers VIGIL_EFORKED when it returns, and the agent can be destroyed
 * after that. (A worker whose own callback forks cannot be joined in the child: exec or _exit there.) The parent
 * notices nothing. By fork, that is, not by a bare clone.
 */
#ifndef VIGIL_AGENT_H
#define VIGIL_AGENT_H

#include <stdint.h>

#include "status.h"
#include "wait.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_agent vigil_agent;

/* Blocking waits on the agent's thread are refused with VIGIL_EMAYNOTBLOCK as long as the agent exists; vigil_agent_run
 * is not. */
#define VIGIL_AGENT_MAY_NOT_BLOCK 1u

/* VIGIL_OK, VIGIL_ENULL, VIGIL_EINVAL (unknown flags), VIGIL_ENOMEM, VIGIL_ELIMIT, VIGIL_ESYSTEM (no descriptor). */
VIGIL_API int vigil_agent_create(vigil_agent **agent, unsigned flags);

/*
 * Runs what has been posted, ends every pending operation with VIGIL_CANCELLED (each callback once; those
 * notified before get their VIGIL_OK), and frees the agent. Callbacks cannot start anything new on it. Nobody
 * may post to it any more. VIGIL_EREENTRANT inside its own callbacks, VIGIL_EWRONGTHREAD on other threads.
 */
VIGIL_API int vigil_agent_destroy(vigil_agent *agent);

/*
 * The descriptor to poll for reading. Readable means: call vigil_agent_dispatch, which may find nothing to do (a
 * deadline that was cancelled, say). Don't read it or close it. The same number every time. VIGIL_ESYSTEM when no
 * descriptor is to be had.
 */
VIGIL_API int vigil_agent_fd(vigil_agent *agent);

/*
 * Runs the callbacks and posted functions that are due and answers how many, or an error. Never blocks. A callback that
 * makes more work does not keep it here for ever: the descriptor stays readable instead.
 */
VIGIL_API int64_t vigil_agent_dispatch(vigil_agent *agent);

/*
 * Dispatches until nothing keeps the agent going (no pending operation with a ref, no agent ref, nothing
 * posted) or it is stopped: VIGIL_OK. The second form also ends, with VIGIL_TIMED_OUT, when vigil_now_ns()
 * reaches `deadline_ns` (VIGIL_FOREVER: never); what was due by then has run. VIGIL_EREENTRANT inside callbacks.
 */
VIGIL_API int vigil_agent_run(vigil_agent *agent);
VIGIL_API int vigil_agent_run_until(vigil_agent *agent, int64_t deadline_ns);

/*
 * Makes the current or, if none is running, the next vigil_agent_run return, after what was posted before. It is a post
 * like any other, with the same errors. Any thread.
 */
VIGIL_API int vigil_agent_stop(vigil_agent *agent);

/*
 * Has the agent's thread call `function(agent, argument)` from its loop, once, in the order of the posts. Any thread.
 * VIGIL_ENULL, VIGIL_EFORKED, VIGIL_ECLOSING (from a callback that the agent's end calls), VIGIL_ELIMIT.
 */
typedef void vigil_function(vigil_agent *agent, void *argument);
VIGIL_API int vigil_agent_post(vigil_agent *agent, vigil_function *function, void *argument);

/*
 * Has the agent's thread look up, without a callback: its descriptor becomes readable, and the current or, if none is
 * running, the next vigil_agent_run returns VIGIL_OK, after what was posted before. A dispatch takes the wake as well,
 * and then the next run does not return on account of it. Wakes that have not been taken yet are one. What was done
 * before is visible to the agent's thread then. Any thread, and any signal handler: errno is left as it was.
 * VIGIL_ENULL, VIGIL_EFORKED.
 *
 *     static void on_sigterm(int signal) { __atomic_store_n(&terminate, 1, __ATOMIC_RELAXED); vigil_agent_wake(agent); }
 */
VIGIL_API int vigil_agent_wake(vigil_agent *agent);

/* Keeps vigil_agent_run going without any pending operation, to serve posts, say. Counted; VIGIL_EINVAL for one unref
 * too many. */
VIGIL_API int vigil_agent_ref(vigil_agent *agent);
VIGIL_API int vigil_agent_unref(vigil_agent *agent);

/*
 * A worker: a thread with an agent of its own, which it serves until it is stopped. `main` is the first function posted
 * to it (it may be null). It may block.
 *
 *     vigil_worker *worker;
 *     vigil_worker_start(&worker, NULL, NULL);
 *     vigil_agent_post(vigil_worker_agent(worker), say, "hello");
 *     vigil_worker_stop(worker);              what was posted before still runs
 *     vigil_worker_join(worker);              ends its pending operations, frees it
 *
 * What is posted after a stop may be dropped. Start answers VIGIL_ENULL, VIGIL_ENOMEM, VIGIL_ELIMIT or VIGIL_ESYSTEM;
 * stop what vigil_agent_post does. Stop may be called from any thread. Join waits for the thread to end and frees the
 * worker: once, not on the worker's own thread (VIGIL_EWRONGTHREAD), and not where blocking is refused
 * (VIGIL_EMAYNOTBLOCK): destroy that agent first.
 */
typedef struct vigil_worker vigil_worker;
VIGIL_API int vigil_worker_start(vigil_worker **worker, vigil_function *main, void *argument);
VIGIL_API vigil_agent *vigil_worker_agent(vigil_worker *worker);
VIGIL_API int vigil_worker_stop(vigil_worker *worker);
VIGIL_API int vigil_worker_join(vigil_worker *worker);

#ifdef __cplusplus
}
#endif
#endif
