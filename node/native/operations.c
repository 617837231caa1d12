/* SPDX-License-Identifier: MIT */
/* Waiting. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "environment.h"

static void *operations_pointer(double address) {
    return (void *)(uintptr_t)address;
}

static int64_t operations_timeout_ns(double timeout_ms) {
    if (!(timeout_ms < 9.2e12)) return VIGIL_FOREVER; /* some 292 years; NaN too */
    return timeout_ms > 0 ? (int64_t)ceil(timeout_ms * 1e6) : 0;
}

static struct operation *operations_get(const struct environment *environment, int32_t id) {
    bool exists = id >= 0 && (uint32_t)id < environment->chunk_count * OPERATIONS_CHUNK;
    return exists ? &environment->chunks[id / OPERATIONS_CHUNK][id % OPERATIONS_CHUNK] : NULL;
}

/* Operations never move: the library has their addresses while they are pending. */
static bool operations_more(struct environment *environment) {
    uint32_t count = environment->chunk_count;
    struct operation **chunks = realloc(environment->chunks, (count + 1) * sizeof *chunks);
    if (!chunks) return false;
    environment->chunks = chunks;
    chunks[count] = calloc(OPERATIONS_CHUNK, sizeof *chunks[count]);
    if (!chunks[count]) return false;
    environment->chunk_count++;
    for (int32_t i = OPERATIONS_CHUNK - 1; i >= 0; i--) {
        struct operation *operation = &chunks[count][i];
        operation->environment = environment;
        operation->id = (int32_t)count * OPERATIONS_CHUNK + i;
        operation->next = environment->free;
        environment->free = operation;
    }
    return true;
}

static struct operation *operations_new(struct environment *environment) {
    if (!environment->free && !operations_more(environment)) return NULL;
    struct operation *operation = environment->free;
    environment->free = operation->next;
    return operation;
}

static void operations_free(struct operation *operation) {
    operation->next = operation->environment->free;
    operation->environment->free = operation;
}

/*
 * The operation has been given what it waited for, and its caller cannot use that: let the next waiter have it. The
 * signal of a condition, too.
 */
static void operations_pass_on(const struct operation *operation) {
    void *address = operation->address;
    holdings_add(operation->environment, operation->entry, -holdings_weight(operation->kind, operation->permits));
    switch (operation->kind) {
    case KIND_WAIT32:
    case KIND_WAIT64: vigil_notify(address, 1); break;
    case KIND_CONDITION:
        if (operation->status != VIGIL_TIMED_OUT) vigil_cond_signal(operation->cond);
        vigil_mutex_unlock(address);
        break;
    case KIND_MUTEX: vigil_mutex_unlock(address); break;
    case KIND_READ: vigil_rwlock_read_unlock(address); break;
    case KIND_WRITE: vigil_rwlock_write_unlock(address); break;
    case KIND_PERMITS: vigil_sem_release(address, operation->permits); break;
    case KIND_NAMED: named_pass_on(operation); break;
    default: break; /* a barrier: the round is complete; a once: it is done */
    }
}

static bool operations_was_given(const struct operation *operation) {
    bool timed_out_with_mutex = operation->kind == KIND_CONDITION && operation->status == VIGIL_TIMED_OUT;
    return operation->status == VIGIL_OK || operation->status == VIGIL_OWNER_DIED || timed_out_with_mutex;
}

/* Write down that the environment holds what the operation was given. */
static void operations_take(struct operation *operation) {
    bool mutex = operation->kind == KIND_MUTEX || operation->kind == KIND_CONDITION;
    if (!operations_was_given(operation)) return;
    if (mutex && operation->permits) holdings_sign(operation->environment, operation->address);
    holdings_add(operation->environment, operation->entry, holdings_weight(operation->kind, operation->permits));
}

/* Before an operation becomes pending: room for its outcome. */
static bool operations_reserve(struct environment *environment) {
    if (environment->pending < environment->outcome_room) return true;
    uint32_t room = environment->outcome_room ? 2 * environment->outcome_room : 64;
    struct outcome *outcomes = realloc(environment->outcomes, room * sizeof *outcomes);
    if (!outcomes) return false;
    environment->outcomes = outcomes;
    environment->outcome_room = room;
    return true;
}

static void operations_add_outcome(struct environment *environment, struct outcome outcome) {
    uint32_t first = environment->outcome_first, count = environment->outcome_end - first;
    if (environment->outcome_end == environment->outcome_room) {
        memmove(environment->outcomes, environment->outcomes + first, count * sizeof outcome);
        environment->outcome_first = 0;
        environment->outcome_end = count;
    }
    environment->outcomes[environment->outcome_end++] = outcome;
}

void operations_end_with(struct operation *operation, int status) {
    struct environment *environment = operation->environment;
    operation->status = status;
    operation->finished = true;
    operations_take(operation);
    if (environment->ends) {
        if (operations_was_given(operation)) operations_pass_on(operation);
        return;
    }
    if (operation->blocking) {
        vigil_agent_wake(environment->agent); /* see environment_sleep */
        return;
    }
    operation->pending = false;
    environment->outcomes_referenced += operation->referenced;
    operations_add_outcome(environment, (struct outcome){operation->id, status});
    operation->next = NULL;
    *environment->finished_last = operation;
    environment->finished_last = &operation->next;
}

static void operations_on_end(vigil_op *op, int status) {
    operations_end_with((struct operation *)((char *)op - offsetof(struct operation, op)), status);
}

/* What JavaScript has put into the scratch says what to wait for. */
/* JavaScript does what is done once, and that may take long. So a waiter whose turn it is declines, and the once is new
 * again: for the first that begins. */
static int operations_decline_once(void *unused) {
    (void)unused;
    return IS_NEW;
}

static int operations_begin_one(struct environment *environment, struct operation *operation, enum kind kind) {
    const struct scratch *scratch = environment->scratch;
    vigil_agent *agent = environment->agent;
    void *address = operations_pointer(scratch->address), *second = operations_pointer(scratch->second);
    int64_t timeout_ns = operations_timeout_ns(scratch->timeout_ms);
    uint32_t value = (uint32_t)scratch->value;
    bool word = kind == KIND_WAIT32 || kind == KIND_WAIT64; /* of which there may be many */
    memset(&operation->request, 0, word ? sizeof operation->op : sizeof operation->request);
    operation->kind = (uint8_t)kind;
    operation->address = kind == KIND_CONDITION ? second : address;
    operation->named = NULL;
    operation->cond = address;
    operation->permits = value;
    bool counted = kind >= KIND_MUTEX && kind <= KIND_CONDITION;
    operation->entry = counted ? scratch->entry : -1;
    operation->finished = operation->blocking = operation->referenced = false;
    switch (kind) {
    case KIND_WAIT32: return vigil_wait32_async(agent, &operation->op, address, value, timeout_ns, operations_on_end);
    case KIND_WAIT64:
        return vigil_wait64_async(agent, &operation->op, address, (uint64_t)scratch->wide, timeout_ns,
                                  operations_on_end);
    case KIND_MUTEX: return vigil_mutex_lock_async(agent, &operation->request, address, timeout_ns, operations_on_end);
    case KIND_READ:
        return vigil_rwlock_read_lock_async(agent, &operation->request, address, timeout_ns, operations_on_end);
    case KIND_WRITE:
        return vigil_rwlock_write_lock_async(agent, &operation->request, address, timeout_ns, operations_on_end);
    case KIND_PERMITS:
        return vigil_sem_acquire_async(agent, &operation->request, address, value, timeout_ns, operations_on_end);
    case KIND_CONDITION:
        return vigil_cond_wait_async(agent, &operation->request, address, second, timeout_ns, operations_on_end);
    case KIND_BARRIER:
        return vigil_barrier_wait_async(agent, &operation->request, address, timeout_ns, operations_on_end);
    case KIND_NAMED: return named_start(environment, operation, value, timeout_ns);
    case KIND_ONCE:
        return vigil_once_call_async(agent, &operation->request, address, operations_decline_once, NULL, timeout_ns,
                                     operations_on_end);
    default: return VIGIL_EINVAL;
    }
}

vigil_agent *environment_agent(struct environment *environment, int *error) {
    if (environment->agent) return environment->agent;
    *error = environment->ends ? VIGIL_ECLOSING : vigil_agent_create(&environment->agent, 0);
    return environment->agent;
}

static int operations_try(struct environment *environment, int32_t kind, struct operation **started) {
    int status = VIGIL_ENOMEM;
    if (!environment_agent(environment, &status)) return status;
    struct operation *operation = operations_new(environment);
    if (!operation) return VIGIL_ENOMEM;
    status = operations_begin_one(environment, operation, kind >= 0 && kind < KINDS ? (enum kind)kind : KINDS);
    *started = operation;
    if (status == VIGIL_PENDING) {
        if (kind == KIND_CONDITION) holdings_add(environment, operation->entry, -1); /* the mutex has been released */
        return status;
    }
    operation->status = status;
    operations_take(operation);
    operations_free(operation);
    return status;
}

static int operations_take_back(struct operation *operation) {
    return operation->named ? named_take_back(operation) : vigil_cancel(&operation->op);
}

int32_t operations_start(struct environment *environment, int32_t kind) {
    struct operation *operation = NULL;
    if (!operations_reserve(environment)) return VIGIL_ENOMEM;
    int status = operations_try(environment, kind, &operation);
    if (status != VIGIL_PENDING) return status;
    operation->pending = true;
    environment->pending++;
    environment->scratch->id = operation->id;
    if (!environment_attend(environment)) {
        operations_take_back(operation);
        operation->pending = false;
        environment->pending--;
        operations_free(operation);
        return VIGIL_ESYSTEM;
    }
    operation->referenced = environment->scratch->ref;
    if (operation->referenced) environment_ref(environment);
    return status;
}

int32_t operations_cancel(struct environment *environment, int32_t id) {
    struct operation *operation = operations_get(environment, id);
    if (!operation || !operation->pending) return VIGIL_EIDLE; /* it may have ended, but not been delivered */
    int status = operations_take_back(operation);
    if (status) return status;
    if (operation->referenced) environment_unref(environment, 1);
    environment->pending--;
    operation->pending = false;
    operations_free(operation);
    return VIGIL_OK;
}

int32_t operations_notify(struct environment *environment, int32_t unused) {
    (void)unused;
    struct scratch *scratch = environment->scratch;
    double wanted = scratch->count;
    int64_t count = wanted < 9e18 ? (int64_t)wanted : VIGIL_ALL;
    int64_t notified = vigil_notify(operations_pointer(scratch->address), count);
    scratch->count = (double)notified;
    return notified > 0 ? (int32_t)environment->pending : 0;
}

void operations_give_up(struct operation *operation) {
    while (!operation->finished && operations_take_back(operation) == VIGIL_ETOOLATE)
        vigil_agent_dispatch(operation->environment->agent);
    if (operation->finished && operations_was_given(operation)) operations_pass_on(operation);
}

int32_t operations_block(struct environment *environment, int32_t kind) {
    struct operation *operation = NULL;
    int status = operations_try(environment, kind, &operation);
    if (status != VIGIL_PENDING) return status;
    operation->blocking = true;
    status = environment_sleep(operation);
    operations_free(operation);
    if (operations_have_outcomes(environment)) vigil_agent_wake(environment->agent); /* the loop delivers them */
    return status;
}

/* Outcomes. */

int32_t operations_fill(struct environment *environment) {
    uint32_t count = environment->outcome_end - environment->outcome_first;
    if (count > SCRATCH_BATCH) count = SCRATCH_BATCH;
    const struct outcome *first = environment->outcomes + environment->outcome_first;
    if (count) memcpy(environment->scratch->batch, first, count * sizeof *first);
    environment->outcome_first += count;
    environment->pending -= count;
    environment->scratch->delivered = 0;
    return (int32_t)count;
}

/* All have been delivered: their operations are free. */
static void operations_free_finished(struct environment *environment) {
    environment_unref(environment, environment->outcomes_referenced);
    environment->outcomes_referenced = environment->outcome_first = environment->outcome_end = 0;
    *environment->finished_last = environment->free;
    environment->free = environment->finished;
    environment->finished = NULL;
    environment->finished_last = &environment->finished;
}

static void operations_pass_on_outcome(struct environment *environment, struct outcome outcome) {
    const struct operation *operation = operations_get(environment, outcome.id);
    if (operations_was_given(operation)) operations_pass_on(operation);
}

void operations_empty(struct environment *environment, int32_t count, int32_t delivered) {
    for (int32_t i = delivered; i < count; i++) operations_pass_on_outcome(environment, environment->scratch->batch[i]);
    if (!operations_have_outcomes(environment)) operations_free_finished(environment);
}

bool operations_begin(struct environment *environment) {
    environment->finished_last = &environment->finished;
    return holdings_begin(environment);
}

void operations_end(struct environment *environment) {
    environment->ends = true;
    while (operations_have_outcomes(environment))
        operations_pass_on_outcome(environment, environment->outcomes[environment->outcome_first++]);
    if (environment->agent) vigil_agent_destroy(environment->agent);
    environment->agent = NULL;
    for (uint32_t i = 0; i < environment->chunk_count; i++) free(environment->chunks[i]);
    free(environment->chunks);
    free(environment->outcomes);
}
