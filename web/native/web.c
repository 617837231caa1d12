/* SPDX-License-Identifier: MIT */
/*
 * web.c - an environment of a browser: a page or a worker, with an instance of this module.
 *
 * JavaScript calls what is exported here, each function with its environment first. It looks after the agent's bell, a
 * word of memory (prim_wasm.h), and calls web_dispatch when that has rung, or when the alarm goes off.
 *
 * THE END OF A WORKER
 *
 * A worker that is terminated just stops. Its environment stays in memory, and so does its stack and thread-local data.
 * The environment that has created the memory learns of the end (lib/death.js), and finds the worker's: web_find. It
 * makes a new instance of the module with the very stack and thread-local data of the worker, and calls web_end in it:
 * to the library that is the worker's thread, which ends as one that closes would. What it waited for is cancelled,
 * what it was given goes to the next waiter, and what it holds is given up.
 *
 * A worker whose environment is not found was terminated while it attached: it has taken nothing but memory.
 *
 * That is right if the worker was not inside of the library, whose own data would be half changed. JavaScript engines
 * stop a worker where it sleeps, where a loop begins or goes back, and where a function begins that calls others, in
 * WebAssembly as well. So `state` says whether the library was at work; a worker that sleeps in a blocking call is not.
 * web_end then returns VIGIL_ECORRUPT, and changes nothing. JavaScript sets web_damaged, and no environment calls the
 * library any more: lib/death.js. The same if a call ends in an exception, after which `state` stays INSIDE.
 *
 * So that this cannot happen, another environment stops the worker outside before it terminates it: web_stop.
 *
 *     state      OUTSIDE -> INSIDE     the environment's own thread, by compare-and-exchange: web_enter
 *                INSIDE -> OUTSIDE     the same
 *                OUTSIDE -> STOPPED    any thread, by compare-and-exchange: web_stop
 *                STOPPED -> OUTSIDE    the thread that ends it, when the worker does not exist any more: web_end
 *
 * While it is STOPPED, the worker does not get past web_enter: it sleeps there until it is terminated. JavaScript that
 * changes locks without a call of the library goes on, but whichever change was its last, the words are in order
 * (holdings.c of node/native).
 *
 * Only the environment's own thread changes the rest of its struct web. Another thread reads that when the worker has
 * stopped for good: the browser grants the Web Lock after that, and so orders the two.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "node/native/environment.h"
#include "prim_wasm.h"

#define COUNTS_FIRST 64u

/* look.c: write up to `most` lines to scratch.address. Returns how many. */
int32_t look_lines(struct environment *environment, int32_t most);

enum web_state { OUTSIDE, INSIDE, STOPPED };

struct web {
    struct environment environment; /* first */
    struct web *next;
    void *area;     /* of its thread: prim_wasm.h */
    uint32_t state; /* atomic: enum web_state */
    bool closed;
    int32_t *counts; /* see node/native/holdings.c */
    uint32_t counts_length;
    int32_t batch_count; /* outcomes that are being delivered */
    struct scratch scratch;
};

/* All environments, the newest first. Each thread adds its own, when it is complete; only the environment that has
 * created the memory takes others out, and looks for them. */
static struct web *webs; /* atomic */

/* INSIDE already: what JavaScript is called for there calls the library. The exception is damage (lib/index.js). */
static void web_enter(struct web *web) {
    for (uint32_t seen = OUTSIDE; !prim_cas_acquire(&web->state, &seen, INSIDE); seen = OUTSIDE) {
        if (seen == INSIDE) __builtin_trap();
        prim_park(&web->state, STOPPED, PRIM_NEVER);
    }
}

static void web_leave(struct web *web) {
    prim_store_release(&web->state, OUTSIDE);
}

/* Beginning. */

static bool web_grow_counts(struct web *web, uint32_t length) {
    int32_t *counts = realloc(web->counts, length * sizeof *counts);
    if (!counts) return false;
    memset(counts + web->counts_length, 0, (length - web->counts_length) * sizeof *counts);
    web->counts = counts;
    web->counts_length = length;
    holdings_set_counts(&web->environment, counts, length);
    return true;
}

static struct web *web_add(struct web *web) {
    web->next = prim_load_relaxed(&webs);
    while (!prim_cas_acq_rel(&webs, &web->next, web)) {
    }
    return web;
}

/* Null: there is not enough memory. */
WASM_EXPORT(web_begin) struct web *web_begin(void *area) {
    struct web *web = calloc(1, sizeof *web);
    if (!web) return NULL;
    web->area = area;
    web->environment.scratch = &web->scratch;
    web->environment.thread_id = prim_thread_id();
    if (operations_begin(&web->environment) && web_grow_counts(web, COUNTS_FIRST)) return web_add(web);
    free(web);
    return NULL;
}

WASM_EXPORT(web_scratch) struct scratch *web_scratch(struct web *web) {
    return &web->scratch;
}

WASM_EXPORT(web_counts) int32_t *web_counts(struct web *web) {
    return web->counts;
}

/* JavaScript stores here, to find out whether a buffer is this memory. */
uint32_t web_probe;

/* JavaScript stores 1 here when the memory is damaged. */
uint32_t web_damaged;

/* The address of the bell's word; zero: there is no agent yet. */
WASM_EXPORT(web_bell) int web_bell(struct web *web) {
    vigil_agent *agent = web->environment.agent;
    return agent ? vigil_agent_fd(agent) : 0;
}

/* What environment.h asks for. */

bool environment_attend(struct environment *environment) {
    (void)environment;
    return true;
}

/* A page lives as long as it is shown. */
void environment_ref(struct environment *environment) {
    (void)environment;
}

void environment_unref(struct environment *environment, uint32_t count) {
    (void)environment;
    (void)count;
}

/* After a dispatch the seat is at rest: the next mail rings the bell. */
int environment_sleep(struct operation *operation) {
    struct web *web = (struct web *)operation->environment;
    vigil_agent *agent = web->environment.agent;
    if (prim_self()->may_not_block) {
        operations_give_up(operation);
        return VIGIL_EMAYNOTBLOCK;
    }
    for (;;) {
        vigil_agent_dispatch(agent);
        if (operation->finished) return operation->status;
        uint64_t until_ns = timers_next(&agent->timers);
        web_leave(web); /* to spin is as to sleep: nothing is half changed */
        if (!seat_spin(&agent->seat)) prim_bell_wait(&agent->seat.bell, until_ns);
        web_enter(web);
    }
}

int named_start(struct environment *environment, struct operation *operation, uint32_t flags, int64_t timeout_ns) {
    (void)environment;
    (void)operation;
    (void)flags;
    (void)timeout_ns;
    return VIGIL_EINVAL;
}

int named_take_back(struct operation *operation) {
    (void)operation;
    return VIGIL_EINVAL;
}

void named_pass_on(const struct operation *operation) {
    (void)operation;
}

/* What JavaScript calls. */

#define WEB_CALL(name, function)                                                                                       \
    WASM_EXPORT(web_##name) int32_t web_##name(struct web *web, int32_t argument) {                                    \
        web_enter(web);                                                                                                \
        int32_t result = function(&web->environment, argument);                                                        \
        web_leave(web);                                                                                                \
        return result;                                                                                                 \
    }
WEB_CALL(start, operations_start)
WEB_CALL(block, operations_block)
WEB_CALL(cancel, operations_cancel)
WEB_CALL(notify, operations_notify)
WEB_CALL(release, locks_release)
WEB_CALL(signal, locks_signal)
WEB_CALL(consistent, locks_consistent)
WEB_CALL(downgrade, locks_downgrade)
WEB_CALL(untrack, holdings_untrack)

/* It only reads, so that a worker may be terminated there. */
WASM_EXPORT(web_mine) int32_t web_mine(struct web *web) {
    return holdings_mine(&web->environment, 0);
}

static int32_t web_track_counted(struct environment *environment, int32_t what) {
    struct web *web = (struct web *)environment;
    int32_t entry = holdings_track(environment, what);
    if (entry < (int32_t)web->counts_length || web_grow_counts(web, 2 * web->counts_length)) return entry;
    holdings_untrack(environment, entry);
    return VIGIL_ENOMEM;
}
WEB_CALL(track, web_track_counted)

/* Returns how many outcomes are in the batch; JavaScript delivers them, and calls web_delivered. */
static int32_t web_dispatch_and_fill(struct environment *environment, int32_t unused) {
    struct web *web = (struct web *)environment;
    (void)unused;
    if (!environment->agent) return 0;
    vigil_agent_dispatch(environment->agent);
    web->batch_count = operations_fill(environment);
    return web->batch_count;
}
WEB_CALL(dispatch, web_dispatch_and_fill)

static int32_t web_empty(struct environment *environment, int32_t delivered) {
    struct web *web = (struct web *)environment;
    int32_t count = web->batch_count;
    web->batch_count = 0;
    operations_empty(environment, count, delivered);
    return operations_have_outcomes(environment);
}
WEB_CALL(delivered, web_empty)

/* The number of waiters in line for scratch.address. */
static int32_t web_count_waiters(struct environment *environment, int32_t unused) {
    (void)unused;
    return (int32_t)vigil_waiters((void *)(uintptr_t)environment->scratch->address);
}
WEB_CALL(waiters, web_count_waiters)

WASM_EXPORT(web_pending) uint32_t web_pending(const struct web *web) {
    return web->environment.pending;
}

/*
 * Memory for JavaScript's words. The last word before it, which is the heap's (libc.c) and of no use to that, is a mark
 * that depends on the address: what has none was not allocated here, or is free already.
 */
#define WEB_MARK UINT32_C(0x5649474c)

static uint32_t *web_mark_of(uint32_t address) {
    return (uint32_t *)(uintptr_t)address - 1;
}

/* Zeroed: its address, or zero. */
static int32_t web_calloc(struct environment *environment, int32_t bytes) {
    (void)environment;
    uint32_t address = (uint32_t)(uintptr_t)calloc(1, (uint32_t)bytes);
    if (address) *web_mark_of(address) = address ^ WEB_MARK;
    return (int32_t)address;
}
WEB_CALL(allocate, web_calloc)

static int32_t web_free_at(struct environment *environment, int32_t argument) {
    (void)environment;
    uint32_t address = (uint32_t)argument, marked = address ^ WEB_MARK;
    if (!address || address % sizeof(uint32_t) || !prim_cas_acquire(web_mark_of(address), &marked, 0))
        return VIGIL_EINVAL;
    free((void *)(uintptr_t)address);
    return VIGIL_OK;
}
WEB_CALL(free, web_free_at)

WEB_CALL(look, look_lines)

/* The end. */

/* The environment has no operations and holds nothing afterwards. Its memory stays: others may know its address. */
WASM_EXPORT(web_close) void web_close(struct web *web) {
    web_enter(web);
    if (web->batch_count) web_empty(&web->environment, web->scratch.delivered);
    operations_end(&web->environment);
    holdings_end(&web->environment);
    web->closed = true;
    web_leave(web);
}

/* Keep the environment at that address, of another thread, from entering the library any more. It is usually inside for
 * microseconds. */
static int32_t web_stop_other(struct environment *environment, int32_t address) {
    struct web *web = (struct web *)(uintptr_t)(uint32_t)address;
    (void)environment;
    for (;;) {
        uint32_t seen = OUTSIDE;
        if (prim_cas_acquire(&web->state, &seen, STOPPED) || seen == STOPPED) return VIGIL_OK;
        vigil_spin();
    }
}
WEB_CALL(stop, web_stop_other)

/* The environment of that thread; null: there is none, or not yet. */
WASM_EXPORT(web_find) struct web *web_find(uint32_t thread_id) {
    struct web *web = prim_load_acquire(&webs);
    while (web && web->environment.thread_id != thread_id) web = web->next;
    return web;
}

WASM_EXPORT(web_area) void *web_area(const struct web *web) {
    return web->area;
}

/* Others may be added before the first meanwhile, but nowhere else. */
static void web_remove(struct web *web) {
    struct web *before = web;
    if (prim_cas_acq_rel(&webs, &before, web->next)) return;
    while (before->next != web) before = before->next;
    before->next = web->next;
}

WASM_EXPORT(web_end) int32_t web_end(struct web *web) {
    if (prim_load_acquire(&web->state) == INSIDE) return VIGIL_ECORRUPT;
    web_remove(web);
    prim_store_relaxed(&web->state, OUTSIDE);
    if (!web->closed) web_close(web);
    free(web->counts);
    free(web);
    return VIGIL_OK;
}
