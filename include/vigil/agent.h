/* SPDX-License-Identifier: MIT */
/*
 * vigil/agent.h - agents: how event loops wait.
 *
 * A thread that must not block waits through an agent. The agent has one file descriptor to poll, which covers
 * deadlines too, and one function to call when it is readable. So it fits any loop:
 *
 *     vigil_agent *agent;
 *     vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK);
 *     struct pollfd seat = { .fd = vigil_agent_fd(agent), .events = POLLIN };
 *     for (;;) {
 *         poll(&seat, 1, -1);                     or epoll, libuv, GLib, libevent, io_uring ...
 *         vigil_agent_dispatch(agent);            runs the callbacks that are due
 *     }
 *
 * A program without a loop of its own calls vigil_agent_run.
 *
 * An agent belongs to the thread that created it. Only that thread may use it, except for three functions that any
 * thread may call: vigil_agent_post, vigil_agent_stop and vigil_agent_wake. Of the functions here, only
 * vigil_agent_wake may be called in a signal handler. Callbacks run on the thread of the agent, inside dispatch, run
 * or destroy, one after the other and with no internal lock held. They may start, cancel, notify and post.
 *
 * Every call below returns VIGIL_ENULL for a null agent. Those for the thread of the agent return VIGIL_EWRONGTHREAD
 * on other threads. A thread must destroy its agents before it ends: no other thread can.
 *
 * FORK. The child's copy of an agent is unusable: every call on it returns VIGIL_EFORKED, except destroy, which frees
 * its memory and descriptors and calls no callbacks. Its operations are unusable as well: zero an operation before
 * using it with another agent. The same is true of workers: join frees them. A callback may fork. In the child, the
 * dispatch, run or destroy that called it returns VIGIL_EFORKED when the callback has returned, and after that the
 * agent can be destroyed. (A worker whose own callback forks cannot be joined in the child: call exec or _exit
 * there.) The parent is not affected. This holds for fork, not for a bare clone.
 */
#ifndef VIGIL_AGENT_H
#define VIGIL_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"
#include "wait.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_agent vigil_agent;

/*
 * A flag for vigil_agent_create: while the agent exists, blocking calls on its thread are refused with
 * VIGIL_EMAYNOTBLOCK. vigil_agent_run is not refused.
 */
#define VIGIL_AGENT_MAY_NOT_BLOCK 1u

/*
 * Creates an agent for this thread: VIGIL_OK. VIGIL_ENULL, VIGIL_EINVAL (unknown flags), VIGIL_ENOMEM, VIGIL_ELIMIT
 * (too many agents), VIGIL_ECOPIES (see wait.h), VIGIL_ESYSTEM (no descriptor is available).
 */
VIGIL_API int vigil_agent_create(vigil_agent **agent, unsigned flags);

/*
 * Runs what has been posted, ends every pending operation with VIGIL_CANCELLED (each callback is called once;
 * operations that were notified before get VIGIL_OK) and every watch with no events, and frees the agent. Callbacks
 * cannot start anything new on it. No thread may post to it from now on. VIGIL_EREENTRANT inside a callback of the
 * agent, VIGIL_EWRONGTHREAD on other threads.
 */
VIGIL_API int vigil_agent_destroy(vigil_agent *agent);

/*
 * The descriptor to poll for reading; always the same number. When it is readable, call vigil_agent_dispatch, which
 * may find nothing to do (after a deadline that was cancelled, for example). Do not read it or close it.
 * VIGIL_ESYSTEM if no descriptor is available.
 */
VIGIL_API int vigil_agent_fd(vigil_agent *agent);

/*
 * Runs the callbacks and posted functions that are due and returns how many, or an error; VIGIL_EREENTRANT inside a
 * callback of the agent. It never blocks. Callbacks that keep making more work do not keep it here forever: it
 * returns after some rounds, and the descriptor stays readable.
 */
VIGIL_API int64_t vigil_agent_dispatch(vigil_agent *agent);

/*
 * Dispatches until nothing keeps the agent going (no pending operation with a ref, no ref of the agent, nothing
 * posted), or until it is stopped or woken: VIGIL_OK. The second form also ends, with VIGIL_TIMED_OUT, when
 * vigil_now_ns() reaches `deadline_ns` (VIGIL_FOREVER: never); what was due by then has run. VIGIL_EREENTRANT inside
 * a callback of the agent.
 */
VIGIL_API int vigil_agent_run(vigil_agent *agent);
VIGIL_API int vigil_agent_run_until(vigil_agent *agent, int64_t deadline_ns);

/*
 * Makes the current vigil_agent_run return or, if none is running, the next one, after what was posted before. It is
 * a post like any other, with the same errors. Any thread may call it.
 */
VIGIL_API int vigil_agent_stop(vigil_agent *agent);

/*
 * Has the thread of the agent call `function(agent, argument)` in its loop, once, in the order of the posts. Any
 * thread may call it. VIGIL_ENULL, VIGIL_EFORKED, VIGIL_ECLOSING (in a callback that vigil_agent_destroy calls),
 * VIGIL_ELIMIT.
 */
typedef void vigil_function(vigil_agent *agent, void *argument);
VIGIL_API int vigil_agent_post(vigil_agent *agent, vigil_function *function, void *argument);

/*
 * Wakes the thread of the agent without a callback: the descriptor becomes readable, and the current vigil_agent_run
 * or, if none is running, the next one returns VIGIL_OK, after what was posted before. A dispatch also consumes the
 * wake, and then the next run does not return because of it. Wakes that have not been consumed count as one. What the
 * caller wrote before is visible to the thread of the agent then. Any thread and any signal handler may call it:
 * errno is preserved. VIGIL_ENULL, VIGIL_EFORKED.
 *
 *     static void on_sigterm(int sig) { __atomic_store_n(&terminate, 1, __ATOMIC_RELAXED); vigil_agent_wake(agent); }
 */
VIGIL_API int vigil_agent_wake(vigil_agent *agent);

/*
 * A ref keeps vigil_agent_run going without a pending operation, for example to serve posts. Refs are counted;
 * VIGIL_EINVAL for an unref without a ref.
 */
VIGIL_API int vigil_agent_ref(vigil_agent *agent);
VIGIL_API int vigil_agent_unref(vigil_agent *agent);

/*
 * vigil_agent_alive - whether a pending operation with a ref, or a ref of the agent, keeps vigil_agent_run going; what
 * has been posted does not count. False for a null agent, in the child of a fork, and on other threads.
 *
 * vigil_agent_on_alive - have `function(agent, argument)` called whenever that has changed, for a loop that ends when
 * nothing keeps it alive (adapter/vigil_uv.h): VIGIL_OK. It is called on the thread of the agent: inside the call that
 * starts or cancels an operation or changes a ref or, if that call is made in a callback, at the end of the dispatch.
 * It must not make such a call itself. An agent has one such function; null: none.
 */
VIGIL_API bool vigil_agent_alive(const vigil_agent *agent);
VIGIL_API int vigil_agent_on_alive(vigil_agent *agent, vigil_function *function, void *argument);

/*
 * Descriptors of others: sockets, pipes, timers. The agent's own descriptor is readable while one of them is ready, and
 * dispatch and run call the callback of each that is ready. So what is built on an agent still fits any loop.
 *
 *     static void on_ready(vigil_watch *watch, unsigned events) { ... read or write, without blocking ... }
 *     static vigil_watch watch;                       zeroed before its first use, not moved while it watches
 *     vigil_agent_watch(agent, &watch, fd, VIGIL_READABLE, on_ready);
 *     ...
 *     vigil_agent_unwatch(&watch);                    before the descriptor is closed
 *
 * vigil_agent_watch - from now on call `callback(watch, events)` in each dispatch, and round of a run, in which the
 * descriptor is ready for some of `events` (VIGIL_READABLE, VIGIL_WRITABLE): VIGIL_OK. It is called until the
 * descriptor is not ready any more, or not watched. An error and a hang-up count as ready for all of `events`. For a
 * watch that watches this descriptor on this agent already, it changes `events` and the callback. A watch does not keep
 * vigil_agent_run going: use vigil_agent_ref. VIGIL_ENULL, VIGIL_EINVAL (no or unknown events), VIGIL_EINUSE (the watch
 * watches another descriptor, or on another agent), VIGIL_EFORKED, VIGIL_EWRONGTHREAD, VIGIL_ECLOSING, VIGIL_ESYSTEM
 * (see errno: EEXIST if another watch of this agent has the descriptor, EPERM for a file that is always ready, ENOSYS
 * where agents have no such descriptor, which is everywhere but on Linux).
 *
 * vigil_agent_unwatch - end that: VIGIL_OK, and its callback is not called any more, not even if the descriptor was
 * ready before. VIGIL_EIDLE: it did not watch. VIGIL_ENULL, VIGIL_EFORKED, VIGIL_EWRONGTHREAD.
 *
 * Callbacks may watch and unwatch, including their own watch, and may free it afterwards. vigil_agent_destroy ends each
 * watch and calls its callback once, with no events.
 */
#define VIGIL_READABLE 1u
#define VIGIL_WRITABLE 2u
typedef struct vigil_watch vigil_watch;
typedef void vigil_watch_callback(vigil_watch *watch, unsigned events);
struct vigil_watch {
    void *data; /* the caller's; the library does not touch it */

    /* The library's. */
    vigil_watch_callback *callback;
    vigil_agent *agent;                    /* null: it does not watch */
    vigil_watch *next, **link;             /* in the list of the agent's watches */
    vigil_watch *next_ready, **ready_link; /* in the list of those to be called; null: it is not in it */
    int fd;
    uint32_t events, ready;
};
VIGIL_API int vigil_agent_watch(vigil_agent *agent, vigil_watch *watch, int fd, unsigned events,
                                vigil_watch_callback *callback);
VIGIL_API int vigil_agent_unwatch(vigil_watch *watch);

/*
 * A worker: a thread with an agent of its own, which it serves until it is stopped. `main` is the first function
 * posted to it, and may be null. The thread of a worker may block.
 *
 *     vigil_worker *worker;
 *     vigil_worker_start(&worker, NULL, NULL);
 *     vigil_agent_post(vigil_worker_agent(worker), say, "hello");
 *     vigil_worker_stop(worker);              what was posted before still runs
 *     vigil_worker_join(worker);              ends its pending operations, frees it
 *
 * Functions that are posted after a stop may be dropped. Start returns VIGIL_OK, VIGIL_ENULL, VIGIL_ENOMEM,
 * VIGIL_ELIMIT, VIGIL_ECOPIES or VIGIL_ESYSTEM; stop returns what vigil_agent_post does, and any thread may call it.
 * Join waits until the thread has ended, which it does only after a stop, and frees the worker. Call it once, not on
 * the worker's own thread (VIGIL_EWRONGTHREAD), and not on a thread whose agent refuses blocking (VIGIL_EMAYNOTBLOCK):
 * destroy that agent first.
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
