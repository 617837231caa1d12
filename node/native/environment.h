/* SPDX-License-Identifier: MIT */
/*
 * environment.h - a JavaScript environment (a page, a main thread, a worker) at Vigil. What is here, in operations.c,
 * holdings.c and locks.c serves Node (napi/) and the browser (web/native) alike.
 *
 * Each environment has one agent, made at its first wait. Every wait, also a blocking one, is an asynchronous operation
 * of that agent:
 *
 *     asynchronous   the event loop learns that the agent's bell has rung, dispatches the agent, and passes all
 *                    outcomes to JavaScript in one call: deliver(count), which resolves promises
 *     blocking       the thread sleeps until the bell rings, or until the environment is ended: environment_sleep
 *
 * Callbacks of operations only write down the outcome. JavaScript runs in `deliver` alone, never in a dispatch.
 *
 * Arguments and results of the frequent calls are in `scratch`, memory that JavaScript reads and writes as typed
 * arrays: converting values through Node-API costs more than the calls themselves.
 *
 * When the environment ends, its operations are cancelled, what they were given meanwhile goes to the next waiter, and
 * what the environment holds is given up (holdings.c): the next holder is told that its owner died.
 */
#ifndef VIGIL_NODE_ENVIRONMENT_H
#define VIGIL_NODE_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <vigil/vigil.h>

/* What an operation waits for. lib/core.js has the same numbers. */
enum kind {
    KIND_WAIT32,
    KIND_WAIT64,
    KIND_MUTEX,
    KIND_READ,
    KIND_WRITE,
    KIND_PERMITS,
    KIND_CONDITION,
    KIND_BARRIER,
    KIND_NAMED,
    KIND_ONCE,
    KINDS
};

#define SCRATCH_BATCH 1000
struct scratch {
    double address, second; /* of the word; of the mutex of a condition, or the handle of a named lock */
    double timeout_ms;
    double count;      /* to notify, and how many were */
    int64_t wide;      /* expected, of 64 bits */
    int32_t value;     /* expected, of 32 bits; permits; flags of a named lock; of a mutex: 1 if it must be signed */
    int32_t ref;       /* whether the operation keeps the environment alive */
    int32_t id;        /* of the operation that was started */
    int32_t entry;     /* of the lock in the holdings; -1: its word names the holder, or nothing does */
    int32_t delivered; /* of the batch: how many outcomes JavaScript has looked at */
    int32_t padding;
    struct outcome {
        int32_t id, status;
    } batch[SCRATCH_BATCH]; /* for deliver */
};

/* What an end of the operation needs is in its first cache lines. */
struct operation {
    struct environment *environment;
    struct operation *next; /* of those that are free, or finished */
    void *address;          /* of a condition: that of its mutex */
    vigil_cond *cond;
    void *named; /* a vigil_named, see napi/named.c */
    uint32_t permits;
    int32_t entry; /* of the lock in the holdings, or -1 */
    int32_t id;
    int status;
    uint8_t kind;
    bool pending, finished, blocking, referenced;
    union { /* the request begins with its op */
        vigil_op op;
        vigil_request request;
    };
};

#define OPERATIONS_CHUNK 256

struct environment {
    struct scratch *scratch;
    vigil_agent *agent; /* null until the first wait */
    uint32_t pending;   /* asynchronous operations that have not been delivered */
    bool ends;

    struct operation **chunks;
    uint32_t chunk_count;
    struct operation *free;

    /* Outcomes that have not been delivered, in order; there is room for all that are pending. Their operations are
     * not free before all are delivered: JavaScript knows them by their numbers. Until then they are not touched again:
     * there may be many. */
    struct outcome *outcomes;
    uint32_t outcome_first, outcome_end, outcome_room;
    uint32_t outcomes_referenced; /* of these, how many keep the environment alive */
    struct operation *finished, **finished_last;

    struct holdings *holdings;
    uint32_t thread_id; /* by which a mutex names its holder */
};

/* The agent; null: see *error. */
vigil_agent *environment_agent(struct environment *environment, int *error);

/*
 * Below, what JavaScript calls: each takes one number and returns one, mostly a status. Further arguments and results
 * are in the scratch.
 */

/* operations.c. False: there is not enough memory. */
bool operations_begin(struct environment *environment);
/* Cancel what is pending and pass on what was given and has not been delivered. */
void operations_end(struct environment *environment);
/* A status; if that is VIGIL_PENDING, deliver will be called, and the operation is scratch.id. */
int32_t operations_start(struct environment *environment, int32_t kind);
/* As operations_start, but returns when it is over. TERMINATED: JavaScript cannot go on. */
int32_t operations_block(struct environment *environment, int32_t kind);
/* VIGIL_OK: it will not be delivered. */
int32_t operations_cancel(struct environment *environment, int32_t id);
/* Notify scratch.count waiters; it becomes how many were notified, or an error. Returns the number of operations that
 * may have ended. */
int32_t operations_notify(struct environment *environment, int32_t unused);
/* Outcomes of block() beside those of vigil/status.h. */
#define TERMINATED 0x100
/* Of KIND_ONCE: it is neither done nor being done, and the caller may begin. */
#define IS_NEW 0x101

/*
 * operations_fill moves outcomes into scratch.batch, for deliver, and returns how many. Then operations_empty must be
 * called: `delivered` says how many of them JavaScript has looked at. What the rest was given is passed on.
 */
int32_t operations_fill(struct environment *environment);
void operations_empty(struct environment *environment, int32_t count, int32_t delivered);
static inline bool operations_have_outcomes(const struct environment *environment) {
    return environment->outcome_first < environment->outcome_end;
}

/* operations.c, for environment_sleep: leave the line, and leave what was given meanwhile to the next waiter. */
void operations_give_up(struct operation *operation);
/* operations.c, for napi/named.c: the operation has ended. */
void operations_end_with(struct operation *operation, int status);

/* locks.c: what does not wait. The kind says which lock. Of a once: the caller has done what is done once, or has
 * failed, as scratch.value says. */
int32_t locks_release(struct environment *environment, int32_t kind);
void locks_end_once(void *once, bool done);
int32_t locks_consistent(struct environment *environment, int32_t kind);
/* The first waiters of the condition, as many as scratch.value says, at least one. Returns how many. */
int32_t locks_signal(struct environment *environment, int32_t unused);
int32_t locks_downgrade(struct environment *environment, int32_t unused);
/* What the word of a mutex in a segment is while this process holds it and there are no waiters. */
int32_t locks_holder(struct environment *environment, int32_t unused);

/* holdings.c: the locks that the environment may hold. */
bool holdings_begin(struct environment *environment);
void holdings_end(struct environment *environment);
/* Remember the lock at scratch.address. Returns the number of its entry, or VIGIL_ENOMEM. */
int32_t holdings_track(struct environment *environment, int32_t what);
int32_t holdings_untrack(struct environment *environment, int32_t entry);
/* Whether this environment holds the mutex in private memory at scratch.address. */
int32_t holdings_mine(struct environment *environment, int32_t unused);
/* Where JavaScript counts: replaces a shorter array. */
void holdings_set_counts(struct environment *environment, int32_t *counts, uint32_t length);
/* A mutex in private memory was granted: write down that this environment holds it. */
void holdings_sign(struct environment *environment, void *mutex);
/* Other locks are counted, see holdings.c: add to the count of the entry, unless that is -1. */
void holdings_add(struct environment *environment, int32_t entry, int32_t count);
/* Whether the environment holds a counted lock between the addresses. */
bool holdings_any_between(const struct environment *environment, const void *from, const void *to);
/* What one acquisition of a lock counts. */
int32_t holdings_weight(enum kind kind, uint32_t permits);

/* What each embedder defines: napi/addon.c and web/native. */

/* The first asynchronous operation: have the loop look after the agent. False: it cannot. */
bool environment_attend(struct environment *environment);
/* Of a pending operation: it keeps the environment alive, or so many no longer do. */
void environment_ref(struct environment *environment);
void environment_unref(struct environment *environment, uint32_t count);
/* Sleep until the operation is finished, and return its status; or one for which it has been given up: TERMINATED, an
 * error. */
int environment_sleep(struct operation *operation);

/* Locks with a name, for KIND_NAMED. */
int named_start(struct environment *environment, struct operation *operation, uint32_t flags, int64_t timeout_ns);
int named_take_back(struct operation *operation);
void named_pass_on(const struct operation *operation);

#endif
