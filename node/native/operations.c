/* SPDX-License-Identifier: MIT */
/* Waiting: notify(), start(kind), block(kind), cancel(id), reference(id, keeps). */
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "environment.h"

/* Outcomes of block() beside those of vigil/status.h. */
#define TERMINATED 0x100

/* How long a thread that is about to block first looks for the end of its wait: less than a sleep costs. */
#define PATIENCE_NS 20000

/* How often a blocked thread checks whether it is being terminated, while its loop has other work to do. */
#define SLICE_MS 10

static void *operations_pointer(double address) {
    return (void *)(uintptr_t)address;
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

void operations_free(struct operation *operation) {
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
    case KIND_NAMED: vigil_named_unlock(operation->named); break;
    default: break; /* a barrier: the round is complete */
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

static void operations_end_with(struct operation *operation, int status) {
    struct environment *environment = operation->environment;
    operation->status = status;
    operation->finished = true;
    operations_take(operation);
    if (environment->ends) {
        if (operations_was_given(operation)) operations_pass_on(operation);
        return;
    }
    if (operation->blocking) {
        vigil_agent_wake(environment->agent); /* see operations_sleep */
        return;
    }
    operation->next = NULL;
    *environment->finished_last = operation;
    environment->finished_last = &operation->next;
}

static void operations_on_end(vigil_op *op, int status) {
    operations_end_with((struct operation *)((char *)op - offsetof(struct operation, op)), status);
}

static void operations_on_named(vigil_named *named, int status, void *operation) {
    (void)named;
    operations_end_with(operation, status);
}

/* What JavaScript has put into the scratch says what to wait for. */
static int operations_begin(struct environment *environment, struct operation *operation, enum kind kind) {
    const struct scratch *scratch = environment->scratch;
    vigil_agent *agent = environment->agent;
    void *address = operations_pointer(scratch->address), *second = operations_pointer(scratch->second);
    int64_t timeout_ns = timeout_ns_of(scratch->timeout_ms);
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
    case KIND_NAMED:
        operation->named = named_of(environment, scratch->second);
        if (!operation->named) return VIGIL_EINVAL;
        return vigil_named_lock_async(agent, operation->named, value, timeout_ns, operations_on_named, operation);
    default: return VIGIL_EINVAL;
    }
}

static int operations_start(struct environment *environment, enum kind kind, struct operation **started) {
    int status = VIGIL_ENOMEM;
    if (!environment_agent(environment, &status)) return status;
    struct operation *operation = operations_new(environment);
    if (!operation) return VIGIL_ENOMEM;
    status = operations_begin(environment, operation, kind);
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
    return operation->named ? vigil_named_cancel(operation->named) : vigil_cancel(&operation->op);
}

static enum kind operations_kind(napi_env napi, napi_value value) {
    double kind = get_number(napi, value);
    return kind >= 0 && kind < KINDS ? (enum kind)kind : KINDS;
}

/* start(kind): a status; if that is VIGIL_PENDING, deliver will be called, and the operation is scratch.id. */
static napi_value operations_start_method(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct environment *environment = environment_of(napi, info, &argc, argv);
    struct operation *operation = NULL;
    int status = operations_start(environment, operations_kind(napi, argv[0]), &operation);
    if (status != VIGIL_PENDING) return integer(napi, status);
    operation->pending = true;
    environment->pending++;
    environment->scratch->id = operation->id;
    if (!environment_attend(environment)) {
        operations_take_back(operation);
        operation->pending = false;
        environment->pending--;
        operations_free(operation);
        return integer(napi, VIGIL_ESYSTEM);
    }
    operation->referenced = environment->scratch->ref;
    if (operation->referenced) environment_ref(environment);
    return integer(napi, status);
}

/* cancel(id): VIGIL_OK: it will not be delivered. */
static napi_value operations_cancel(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct environment *environment = environment_of(napi, info, &argc, argv);
    struct operation *operation = operations_get(environment, (int32_t)get_number(napi, argv[0]));
    if (!operation || !operation->pending) return integer(napi, VIGIL_EIDLE);
    if (operation->finished) return integer(napi, VIGIL_ETOOLATE);
    int status = operations_take_back(operation);
    if (status) return integer(napi, status);
    if (operation->referenced) environment_unref(environment);
    environment->pending--;
    operation->pending = false;
    operations_free(operation);
    return integer(napi, VIGIL_OK);
}

/* reference(id, keeps): whether the operation keeps the environment alive. */
static napi_value operations_reference(napi_env napi, napi_callback_info info) {
    size_t argc = 2;
    napi_value argv[2];
    struct environment *environment = environment_of(napi, info, &argc, argv);
    struct operation *operation = operations_get(environment, (int32_t)get_number(napi, argv[0]));
    bool keeps = false;
    napi_get_value_bool(napi, argv[1], &keeps);
    if (!operation || !operation->pending || operation->referenced == keeps) return NULL;
    operation->referenced = keeps;
    if (keeps) environment_ref(environment);
    else environment_unref(environment);
    return NULL;
}

/*
 * notify(): scratch.count becomes how many were notified, or an error. ECMA-262 has the caller's own promises resolved
 * before it returns.
 */
static napi_value operations_notify(napi_env napi, napi_callback_info info) {
    struct environment *environment = environment_of(napi, info, NULL, NULL);
    struct scratch *scratch = environment->scratch;
    double wanted = scratch->count;
    int64_t count = wanted < 9e18 ? (int64_t)wanted : VIGIL_ALL;
    int64_t notified = vigil_notify(operations_pointer(scratch->address), count);
    if (notified > 0 && environment->pending) environment_dispatch(environment, true);
    scratch->count = (double)notified;
    return NULL;
}

/* Blocking. */

static bool operations_watch(int block_fd, int fd, uint32_t events, uint32_t which) {
    struct epoll_event event = {.events = events, .data.u32 = which};
    return epoll_ctl(block_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

enum { FROM_AGENT, FROM_LOOP };

/* Edge-triggered: what the loop has to do already, and cannot do while it is blocked, must not keep waking it. */
static bool operations_can_block(struct environment *environment) {
    if (environment->block_fd >= 0) return true;
    int agent_fd = vigil_agent_fd(environment->agent), block_fd = agent_fd < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
    if (block_fd < 0) return false;
    if (!operations_watch(block_fd, agent_fd, EPOLLIN, FROM_AGENT) ||
        !operations_watch(block_fd, uv_backend_fd(environment->loop), EPOLLIN | EPOLLET, FROM_LOOP)) {
        close(block_fd);
        return false;
    }
    environment->block_fd = block_fd;
    return true;
}

static bool operations_loop_has_work(const struct environment *environment) {
    struct pollfd loop = {.fd = uv_backend_fd(environment->loop), .events = POLLIN};
    return poll(&loop, 1, 0) > 0;
}

/* The thread is being terminated: leave the line, and leave what was given meanwhile to the next waiter. */
static int operations_give_up(struct operation *operation) {
    while (!operation->finished && operations_take_back(operation) == VIGIL_ETOOLATE)
        vigil_agent_dispatch(operation->environment->agent);
    if (operation->finished && operations_was_given(operation)) operations_pass_on(operation);
    return TERMINATED;
}

/*
 * Node ends an environment by waking its loop. That does not wake it twice: if the loop has been woken before, for
 * another reason, nothing will tell. So while it has work to do, look every SLICE_MS.
 */
static int operations_sleep(struct operation *operation) {
    struct environment *environment = operation->environment;
    vigil_agent_run_until(environment->agent, vigil_now_ns() + PATIENCE_NS); /* it spins first, if that has paid */
    bool restless = !operation->finished && operations_loop_has_work(environment);
    while (!operation->finished) {
        struct epoll_event events[2];
        int count = epoll_wait(environment->block_fd, events, 2, restless ? SLICE_MS : -1);
        bool disturbed = restless && count <= 0;
        for (int i = 0; i < count; i++) disturbed |= events[i].data.u32 == FROM_LOOP;
        vigil_agent_dispatch(environment->agent);
        if (operation->finished || !disturbed) continue;
        if (environment_terminates(environment)) return operations_give_up(operation);
        restless = operations_loop_has_work(environment);
    }
    return operation->status;
}

/* block(kind): as start, but returns when it is over. TERMINATED: JavaScript cannot go on. */
static napi_value operations_block(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct environment *environment = environment_of(napi, info, &argc, argv);
    struct operation *operation = NULL;
    int status = operations_start(environment, operations_kind(napi, argv[0]), &operation);
    if (status != VIGIL_PENDING) return integer(napi, status);
    operation->blocking = true;
    if (operations_can_block(environment)) {
        status = operations_sleep(operation);
    } else {
        operations_give_up(operation);
        status = VIGIL_ESYSTEM;
    }
    operations_free(operation);
    if (environment->finished) vigil_agent_wake(environment->agent); /* the loop delivers them */
    return integer(napi, status);
}

void operations_define(struct environment *environment, napi_value exports) {
    environment_define(environment, exports, "notify", operations_notify);
    environment_define(environment, exports, "start", operations_start_method);
    environment_define(environment, exports, "block", operations_block);
    environment_define(environment, exports, "cancel", operations_cancel);
    environment_define(environment, exports, "reference", operations_reference);
}

void operations_end(struct environment *environment) {
    for (struct operation *operation = environment->finished; operation; operation = operation->next) {
        if (operations_was_given(operation)) operations_pass_on(operation); /* never delivered */
    }
    if (environment->agent) vigil_agent_destroy(environment->agent);
    environment->agent = NULL;
    for (uint32_t i = 0; i < environment->chunk_count; i++) free(environment->chunks[i]);
    free(environment->chunks);
}
