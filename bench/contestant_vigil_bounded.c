/* SPDX-License-Identifier: MIT */
/* A bounded queue of ours, as in example/queue.c: a mutex and two conditions, for the threads and for the loop. */
#include "bounded.h"

#include <vigil/agent.h>
#include <vigil/cond.h>

static struct {
    _Alignas(128) vigil_mutex mutex;
    vigil_cond not_empty, not_full;
    struct ring ring;
} queue;

static struct {
    vigil_agent *agent;
    vigil_request request;
    uint64_t done, all;
    uint64_t made; /* the item that is to be put */
} loop;

static void queue_lock(void) {
    must(vigil_mutex_lock(&queue.mutex) == VIGIL_OK);
}

static void queue_unlock(void) {
    must(vigil_mutex_unlock(&queue.mutex) == VIGIL_OK);
}

static void queue_put(uint64_t item) {
    queue_lock();
    while (ring_is_full(&queue.ring)) must(vigil_cond_wait(&queue.not_full, &queue.mutex) == VIGIL_OK);
    ring_push(&queue.ring, item);
    vigil_cond_signal(&queue.not_empty);
    queue_unlock();
}

static uint64_t queue_take(void) {
    queue_lock();
    while (queue.ring.count == 0) must(vigil_cond_wait(&queue.not_empty, &queue.mutex) == VIGIL_OK);
    uint64_t item = ring_pop(&queue.ring);
    vigil_cond_signal(&queue.not_full);
    queue_unlock();
    return item;
}

/* The loop. Its callbacks are called with the mutex held, and so are the steps; these return with the mutex released.
 * False: the request is pending. */

static bool loop_locks(vigil_callback *callback) {
    int status = vigil_mutex_lock_async(loop.agent, &loop.request, &queue.mutex, VIGIL_FOREVER, callback);
    must(status == VIGIL_OK || status == VIGIL_PENDING);
    return status == VIGIL_OK;
}

static void loop_waits(vigil_cond *cond, vigil_callback *callback) {
    must(vigil_cond_wait_async(loop.agent, &loop.request, cond, &queue.mutex, VIGIL_FOREVER, callback) ==
         VIGIL_PENDING);
}

static void take_step(vigil_op *op, int status) {
    uint64_t items[RING_ROOM];
    (void)op;
    must(status == VIGIL_OK);
    do {
        unsigned count = ring_pop_all(&queue.ring, items);
        if (count == 0) {
            loop_waits(&queue.not_empty, take_step);
            return;
        }
        vigil_cond_broadcast(&queue.not_full);
        queue_unlock();
        for (unsigned i = 0; i < count; i++) bounded_use(items[i]);
        loop.done += count;
    } while (loop.done < loop.all && loop_locks(take_step));
}

static void put_step(vigil_op *op, int status) {
    (void)op;
    must(status == VIGIL_OK);
    do {
        if (ring_is_full(&queue.ring)) {
            loop_waits(&queue.not_full, put_step);
            return;
        }
        ring_push(&queue.ring, loop.made);
        vigil_cond_signal(&queue.not_empty);
        queue_unlock();
        if (++loop.done < loop.all) loop.made = bounded_make(loop.done + 1);
    } while (loop.done < loop.all && loop_locks(put_step));
}

static void loop_run(vigil_callback *step, uint64_t n) {
    loop.done = 0;
    loop.all = n;
    loop.made = bounded_make(1);
    if (loop_locks(step)) step(&loop.request.op, VIGIL_OK);
    must(vigil_agent_run(loop.agent) == VIGIL_OK && loop.done == loop.all);
}

static void loop_put(uint64_t n) {
    loop_run(put_step, n);
}

static void loop_take(uint64_t n) {
    loop_run(take_step, n);
}

static void open_loop(void) {
    must(vigil_agent_create(&loop.agent, 0) == VIGIL_OK);
}

static void close_loop(void) {
    must(vigil_agent_destroy(loop.agent) == VIGIL_OK);
}

static void bounded(const struct job *job, double figures[FIGURES_MAX]) {
    static const struct bounded ours = {open_loop, close_loop, queue_put, queue_take, loop_put, loop_take};
    bounded_both_ways(job, &ours, figures);
}

const struct skill our_bounded[] = {
    {"bounded", bounded, false},
    {0},
};
