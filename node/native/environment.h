/* SPDX-License-Identifier: MIT */
/*
 * environment.h - a Node environment (the main thread, or a worker) at Vigil.
 *
 * Each environment has one agent, made at its first wait, and one descriptor of it in its libuv loop. Every wait, also
 * a blocking one, is an asynchronous operation of that agent:
 *
 *     asynchronous   the loop finds the descriptor readable, dispatches the agent, and passes all outcomes to
 *                    JavaScript in one call: deliver(count), which resolves promises
 *     blocking       the thread sleeps on two descriptors: the agent's, and that of its own libuv loop. The second
 *                    becomes readable when worker.terminate() or process.exit() end the environment, because Node wakes
 *                    the loop for that. So a blocked worker ends at once; until then it costs nothing, or,
 *                    while its loop has work that it cannot do, a look every 10 ms
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

#include <node_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include <vigil/vigil.h>

/* What an operation waits for. lib/native.js has the same numbers. */
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
    KINDS
};

#define SCRATCH_BATCH 1000
struct scratch {
    double address, second; /* of the word; of the mutex of a condition, or the handle of a named lock */
    double timeout_ms;
    double count;      /* to notify, and how many were */
    int64_t wide;      /* expected, of 64 bits */
    int32_t value;     /* expected, of 32 bits; permits; flags of a named lock; of a mutex: 1 if it is to be signed */
    int32_t ref;       /* whether the operation keeps the environment alive */
    int32_t id;        /* of the operation that was started */
    int32_t entry;     /* of the lock in the holdings; -1: its word says who holds it, or nothing does */
    int32_t delivered; /* of the batch: how many outcomes JavaScript has looked at */
    int32_t padding;
    struct {
        int32_t id, status;
    } batch[SCRATCH_BATCH]; /* outcomes, for deliver */
};

/* What an end of the operation needs is in its first cache lines. */
struct operation {
    struct environment *environment;
    struct operation *next; /* of the free, or of the finished */
    void *address;          /* of a condition: that of its mutex */
    vigil_cond *cond;
    vigil_named *named;
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
void operations_free(struct operation *operation);

struct environment {
    napi_env napi;
    uv_loop_t *loop;
    napi_async_cleanup_hook_handle cleanup;
    napi_ref deliver, nothing; /* functions */
    napi_ref receiver;
    napi_async_context context;
    struct scratch *scratch;

    vigil_agent *agent;  /* null until the first wait */
    uv_poll_t *seat;     /* null until the first asynchronous wait */
    uint32_t referenced; /* pending operations that keep the environment alive */
    uint32_t pending;    /* asynchronous operations */
    int block_fd;        /* epoll: the agent's descriptor and the loop's; -1 until the first blocking wait */
    bool ends;

    struct operation **chunks;
    uint32_t chunk_count;
    struct operation *free, *finished, **finished_last;

    struct holdings *holdings;
    struct opened *segments;
    struct handle *handles;
    uint32_t thread_id;
};

/* Methods: napi callbacks whose data is the environment. */
typedef napi_value method(napi_env napi, napi_callback_info info);
struct environment *environment_of(napi_env napi, napi_callback_info info, size_t *argc, napi_value *argv);
void environment_define(struct environment *environment, napi_value exports, const char *name, method *method);

/* The agent; null: see *error. */
vigil_agent *environment_agent(struct environment *environment, int *error);
/* An asynchronous operation begins or ends: what keeps the loop alive. False: the loop cannot serve the agent. */
bool environment_attend(struct environment *environment);
void environment_ref(struct environment *environment);
void environment_unref(struct environment *environment);
/* Dispatch, and pass the outcomes to JavaScript; `inside`: within a call of JavaScript. */
void environment_dispatch(struct environment *environment, bool inside);
/* Whether JavaScript cannot run any more, because the worker is being terminated. */
bool environment_terminates(struct environment *environment);

int64_t timeout_ns_of(double timeout_ms);
napi_value integer(napi_env napi, int32_t value);
napi_value number(napi_env napi, double value);
double get_number(napi_env napi, napi_value value);
bool get_text(napi_env napi, napi_value value, char *text, size_t size);

/* operations.c */
void operations_define(struct environment *environment, napi_value exports);
void operations_end(struct environment *environment);

/* locks.c */
void locks_define(struct environment *environment, napi_value exports);

/* holdings.c: the locks that the environment may hold. */
void holdings_define(struct environment *environment, napi_value exports);
void holdings_end(struct environment *environment);
/* A mutex in private memory was granted: write down that this environment holds it. */
void holdings_sign(struct environment *environment, void *mutex);
/* Other locks are counted, see holdings.c: add to the count of the entry, unless that is -1. */
void holdings_add(struct environment *environment, int32_t entry, int32_t count);
/* Whether the environment holds a counted lock between the addresses. */
bool holdings_any_between(const struct environment *environment, const void *from, const void *to);
/* What one acquisition of a lock counts. */
int32_t holdings_weight(enum kind kind, uint32_t permits);

/* named.c */
void named_define(struct environment *environment, napi_value exports);
void named_end(struct environment *environment);
vigil_named *named_of(struct environment *environment, double handle);

/* segment.c */
void segment_define(struct environment *environment, napi_value exports);
void segment_end(struct environment *environment);

#endif
