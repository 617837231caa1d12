/* SPDX-License-Identifier: MIT */
/*
 * line.c - any sequence of calls, by three threads and their agents, compared with the model. Every result is
 * compared.
 *
 * The input is read as a list of actions. A callback takes its actions from the same list, and so do the threads that
 * get their turn when another one sleeps: see fuzz_prim.h. At the end everything is destroyed, and nothing may be
 * left.
 */
#include <string.h>

#include "agent/agent.h"
#include "model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RESCUER (FUZZ_THREADS - 1) /* wakes threads that would sleep forever; those below it take turns */
#define SLOTS   ((PRIM_CHUNK_LIMIT - 1) * SLOT_CHUNK)
#define POSTS   24 /* for one agent, so that the slots suffice until `flood` takes them all */

static const uint8_t *input, *input_end;
static vigil_op ops[OPS];
static int running[FUZZ_THREADS]; /* the agent of the innermost vigil_agent_run on that thread */
static bool quiet;                /* callbacks do nothing */
static _Alignas(64) unsigned char arena[128];

static void act(void);

/* Reading the input. */

static uint8_t byte(void) {
    return input < input_end ? *input++ : 0;
}

static void act_some(void) {
    for (unsigned actions = quiet ? 0 : byte() & 3; actions && input < input_end; actions--) act();
}

/* Words that are neighbours, share a bucket, or overlap; now and then an invalid one. */
static void *some_address(void) {
    static const unsigned char offsets[] = {0, 0, 4, 8, 12, 64, 68, 72};
    uint8_t choice = byte();
    unsigned char *address = &arena[offsets[choice % 8]];
    switch (choice / 8) {
    case 1: return NULL;
    case 2: return address + 1;
    case 3: return address + 2;
    default: return address;
    }
}

static int64_t some_timeout_ns(void) {
    static const int64_t timeouts_ns[] = {
        INT64_MIN,     -1,           0, 1, 2, 3, 63, 64, 65, 4095, 4097, 1 << 18, 1000000000, INT64_MAX - 1,
        VIGIL_FOREVER, VIGIL_FOREVER};
    return timeouts_ns[byte() % 16];
}

static uint64_t deadline_ns(int64_t timeout_ns) {
    return timeout_ns == VIGIL_FOREVER ? FOREVER_NS : fuzz_now_ns + (uint64_t)timeout_ns;
}

static uint64_t key(const void *address) {
    return (uint64_t)(uintptr_t)address;
}

static int address_error(const void *address, uint64_t size) {
    return !address ? VIGIL_ENULL : key(address) % size ? VIGIL_EMISALIGNED : VIGIL_OK;
}

static uint64_t value_at(const void *address, bool wide) {
    uint32_t narrow;
    uint64_t value;
    if (wide) return memcpy(&value, address, sizeof value), value;
    return memcpy(&narrow, address, sizeof narrow), narrow;
}

static void check_answer(int64_t answer, int64_t expected) {
    CHECK(answer == expected, "returned %lld (%s) instead of %lld (%s)", (long long)answer,
          vigil_status_name((int)answer), (long long)expected, vigil_status_name((int)expected));
}

/* Agents. */

static int agent_error(int agent) {
    const struct model_agent *is = &model.agents[agent];
    if (!is->real) return VIGIL_ENULL;
    return is->forked ? VIGIL_EFORKED : is->thread != fuzz_thread ? VIGIL_EWRONGTHREAD : VIGIL_OK;
}

static int dispatch_error(int agent) {
    int error = agent_error(agent);
    return error ? error : model.agents[agent].dispatching ? VIGIL_EREENTRANT : VIGIL_OK;
}

static bool has_mail(int agent) {
    return seat_has_mail(&model.agents[agent].real->seat);
}

/* At rest, an agent with mail has been rung, and its descriptor's alarm is early enough. */
static void check_rest(int agent) {
    const struct model_agent *is = &model.agents[agent];
    if (!is->real || is->forked || is->dispatching) return;
    const struct prim_bell *bell = &is->real->seat.bell;
    CHECK(fuzz_bell_rung(bell) == (is->letters > 0), "agent %d: %zu letters, bell %d", agent, is->letters,
          fuzz_bell_rung(bell));
    if (!is->has_fd) return;
    CHECK(!model_overdue(agent, fuzz_bell_alarm_ns(bell) - 1, model.came), "agent %d: the alarm is late", agent);
}

static void on_op(vigil_op *op, int status) {
    struct waiter *waiter = &model.ops[op - ops];
    fuzz_trace("{ op %d: %s", (int)(op - ops), vigil_status_name(status));
    CHECK(op->data == waiter, "the caller's data is touched");
    model_begins(waiter, status);
    act_some();
    fuzz_trace("}");
}

static void on_post(vigil_agent *agent, void *number) {
    int i = 0;
    while (i < AGENTS && model.agents[i].real != agent) i++;
    CHECK(i < AGENTS, "a post to an unknown agent");
    model_post_begins(i, (uintptr_t)number);
    if (quiet) return;
    fuzz_trace("{ post %d on agent %d", (int)(uintptr_t)number, i);
    act_some();
    fuzz_trace("}");
}

static void create(int agent, unsigned flags) {
    struct model_agent *is = &model.agents[agent];
    if (is->real) return;
    int expected = flags > 1                              ? VIGIL_EINVAL
                   : fuzz_no_descriptors                  ? VIGIL_ESYSTEM
                   : model_seats() == PRIM_SEAT_LIMIT - 1 ? VIGIL_ELIMIT
                                                          : VIGIL_OK;
    fuzz_trace("create agent %d, flags %u", agent, flags);
    vigil_agent *real = NULL;
    check_answer(vigil_agent_create(&real, flags), expected);
    memset(is, 0, sizeof *is);
    is->real = real;
    is->thread = fuzz_thread;
    is->flags = flags;
}

static void destroy(int agent) {
    struct model_agent *is = &model.agents[agent];
    if (is->forked && is->dispatching && is->thread != fuzz_thread) return; /* its thread is using it */
    bool was_forked = is->forked;
    int expected = !was_forked ? dispatch_error(agent) : is->dispatching ? VIGIL_EREENTRANT : VIGIL_OK;
    fuzz_trace("destroy agent %d", agent);
    if (expected == VIGIL_OK) is->closing = is->dispatching = true;
    int status = vigil_agent_destroy(is->real);
    if (expected == VIGIL_OK && is->forked && !was_forked) { /* by one of its last callbacks */
        expected = VIGIL_EFORKED;
        is->dispatching = false;
    }
    check_answer(status, expected);
    if (expected != VIGIL_OK) return;
    if (!is->forked && model_stop_is_next(agent, UINT64_MAX)) model_read_stop(agent);
    CHECK(is->letters == 0, "mail has been lost with its agent");
    CHECK(!model_pending(agent), "operations have survived their agent");
    for (int i = 0; i < OPS; i++) {
        if (model.ops[i].place != LOST || model.ops[i].agent != agent) continue;
        model.ops[i].place = IDLE;
        ops[i] = (vigil_op){.data = &model.ops[i]};
    }
    memset(is, 0, sizeof *is);
}

/* What was due when it began has been served; afterwards the agent is at rest. */
struct beginning {
    uint64_t now_ns, came, sent;
};

static struct beginning begin(int agent) {
    model.agents[agent].dispatching = true;
    model.agents[agent].served = 0;
    return (struct beginning){fuzz_now_ns, model.came, model.sent};
}

static void end(int agent, struct beginning began, bool stop_read) {
    struct model_agent *is = &model.agents[agent];
    if (model_stop_is_next(agent, stop_read ? UINT64_MAX : began.sent)) model_read_stop(agent);
    CHECK(has_mail(agent) == (is->letters > 0), "agent %d: %zu letters should be left", agent, is->letters);
    CHECK(!model_overdue(agent, began.now_ns, began.came), "agent %d: a deadline has not been served", agent);
    CHECK(!is->letters || is->mail[0].sent > began.sent, "agent %d: mail has not been served", agent);
    is->dispatching = false;
    CHECK(model_pending(agent) || fuzz_bell_alarm_ns(&is->real->seat.bell) > fuzz_now_ns,
          "agent %d: its descriptor stays readable for nothing", agent);
}

static void dispatch(int agent) {
    struct model_agent *is = &model.agents[agent];
    int error = dispatch_error(agent);
    fuzz_trace("dispatch agent %d", agent);
    if (error) {
        check_answer(vigil_agent_dispatch(is->real), error);
        return;
    }
    struct beginning began = begin(agent);
    int64_t answer = vigil_agent_dispatch(is->real);
    if (is->forked) {
        is->dispatching = false;
        check_answer(answer, VIGIL_EFORKED);
    } else {
        end(agent, began, answer > is->served);
        check_answer(answer, is->served);
    }
}

static int expected_of_run(int agent, int64_t until_ns) {
    const struct model_agent *is = &model.agents[agent];
    if (is->stopping || (!is->letters && !model_referenced(agent))) return VIGIL_OK;
    uint64_t until = until_ns < 0 ? 0 : (uint64_t)until_ns;
    CHECK(until <= fuzz_now_ns, "agent %d: run ends too early", agent);
    CHECK(until == fuzz_now_ns || fuzz_now_ns <= model.moved_ns, "agent %d: run ends too late", agent);
    CHECK(!model_overdue(agent, until, model.came), "agent %d: run has not served what was due", agent);
    return VIGIL_TIMED_OUT;
}

static void run(int agent, int64_t until_ns) {
    struct model_agent *is = &model.agents[agent];
    int error = dispatch_error(agent), outer = running[fuzz_thread];
    fuzz_trace("run agent %d until %lld", agent, (long long)until_ns);
    if (error) {
        check_answer(vigil_agent_run_until(is->real, until_ns), error);
        return;
    }
    struct beginning began = begin(agent);
    running[fuzz_thread] = agent;
    int status = until_ns == INT64_MAX ? vigil_agent_run(is->real) : vigil_agent_run_until(is->real, until_ns);
    running[fuzz_thread] = outer;
    if (is->forked) {
        is->dispatching = false;
        check_answer(status, VIGIL_EFORKED);
    } else {
        /* With mail left, only a stop explains VIGIL_OK; after a stop, run does not look again. */
        end(agent, began, !has_mail(agent) || (status == VIGIL_OK && !is->stopping));
        check_answer(status, expected_of_run(agent, until_ns));
        is->stopping = false;
    }
}

/* No thread may post to an agent that another thread destroys. */
static int post_error(int agent) {
    const struct model_agent *is = &model.agents[agent];
    return !is->real ? VIGIL_ENULL : is->forked ? VIGIL_EFORKED : is->closing ? VIGIL_ECLOSING : VIGIL_OK;
}

static bool may_post(int agent) {
    const struct model_agent *is = &model.agents[agent];
    return is->letters < POSTS && (!is->closing || is->thread == fuzz_thread);
}

static void post(int agent) {
    if (!may_post(agent)) return;
    int expected = post_error(agent);
    uint64_t number = ++model.posted;
    fuzz_trace("post %d to agent %d", (int)number, agent);
    check_answer(vigil_agent_post(model.agents[agent].real, on_post, (void *)(uintptr_t)number), expected);
    if (expected == VIGIL_OK) model_post(agent, number);
}

static void stop(int agent) {
    if (!may_post(agent) || model_has_stop(agent)) return;
    int expected = post_error(agent);
    fuzz_trace("stop agent %d", agent);
    check_answer(vigil_agent_stop(model.agents[agent].real), expected);
    if (expected == VIGIL_OK) model_post(agent, STOP);
}

static void refer_agent(int agent, bool ref) {
    struct model_agent *is = &model.agents[agent];
    int expected = agent_error(agent);
    if (!expected && !ref && !is->references) expected = VIGIL_EINVAL;
    fuzz_trace("%s agent %d", ref ? "ref" : "unref", agent);
    check_answer((ref ? vigil_agent_ref : vigil_agent_unref)(is->real), expected);
    if (expected == VIGIL_OK) is->references += ref ? 1 : UINT64_MAX;
}

static void ask_fd(int agent) {
    struct model_agent *is = &model.agents[agent];
    int expected = agent_error(agent);
    if (!expected && fuzz_no_descriptors && !is->has_fd) expected = VIGIL_ESYSTEM;
    fuzz_trace("descriptor of agent %d", agent);
    int fd = vigil_agent_fd(is->real);
    check_answer(fd < 0 ? fd : VIGIL_OK, expected);
    if (expected == VIGIL_OK) is->has_fd = true;
}

/* Waiting. */

static int wait_error(const void *address, bool wide, uint64_t expected, int64_t timeout_ns) {
    if (value_at(address, wide) != expected) return VIGIL_NOT_EQUAL;
    return timeout_ns <= 0 ? VIGIL_TIMED_OUT : VIGIL_PENDING;
}

static uint64_t some_expected(const void *address, bool wide) {
    bool other = byte() % 8 == 0;
    uint64_t value = address_error(address, wide ? 8 : 4) ? 0 : value_at(address, wide);
    return other ? value ^ UINT64_C(1) << (wide ? 40 : 20) : value;
}

static void wait_async(int agent, int op) {
    const struct model_agent *is = &model.agents[agent];
    void *address = some_address();
    bool wide = byte() % 2;
    uint64_t expected_value = some_expected(address, wide);
    int64_t timeout_ns = some_timeout_ns();

    int expected = is->real ? address_error(address, wide ? 8 : 4) : VIGIL_ENULL;
    if (!expected) expected = agent_error(agent);
    if (!expected && is->closing) expected = VIGIL_ECLOSING;
    if (!expected && model.ops[op].place != IDLE) expected = VIGIL_EINUSE;
    if (!expected) expected = wait_error(address, wide, expected_value, timeout_ns);

    fuzz_trace("wait%d_async agent %d, op %d, word %d, timeout %lld: %s", wide ? 64 : 32, agent, op,
               (int)((unsigned char *)address - arena), (long long)timeout_ns, vigil_status_name(expected));
    int status = wide ? vigil_wait64_async(is->real, &ops[op], address, expected_value, timeout_ns, on_op)
                      : vigil_wait32_async(is->real, &ops[op], address, (uint32_t)expected_value, timeout_ns, on_op);
    check_answer(status, expected);
    if (expected == VIGIL_PENDING) model_join(&model.ops[op], agent, key(address), deadline_ns(timeout_ns));
}

static void check_wait_ended(struct waiter *self, int status) {
    if (self->place == DECIDED) {
        check_answer(status, self->outcome);
    } else {
        check_answer(status, VIGIL_TIMED_OUT);
        CHECK(self->deadline_ns <= fuzz_now_ns, "a wait ends early");
        CHECK(self->deadline_ns == fuzz_now_ns || fuzz_now_ns <= model.moved_ns, "a wait ends late");
        model_leave(self);
    }
    self->place = IDLE;
}

static void wait_blocking(void) {
    void *address = some_address();
    bool wide = byte() % 2;
    uint64_t expected_value = some_expected(address, wide);
    int64_t timeout_ns = some_timeout_ns();

    int expected = address_error(address, wide ? 8 : 4);
    if (!expected && model_may_not_block(fuzz_thread)) expected = VIGIL_EMAYNOTBLOCK;
    if (!expected) expected = wait_error(address, wide, expected_value, timeout_ns);

    fuzz_trace("[ wait%d word %d, timeout %lld: %s", wide ? 64 : 32, (int)((unsigned char *)address - arena),
               (long long)timeout_ns, vigil_status_name(expected));
    struct waiter *self = &model.threads[fuzz_thread];
    if (expected == VIGIL_PENDING) model_join(self, NO_AGENT, key(address), deadline_ns(timeout_ns));
    int status = wide ? vigil_wait64(address, expected_value, timeout_ns)
                      : vigil_wait32(address, (uint32_t)expected_value, timeout_ns);
    if (expected == VIGIL_PENDING) check_wait_ended(self, status);
    else check_answer(status, expected);
    fuzz_trace("] %s", vigil_status_name(status));
}

static void notify(void *address, int64_t count) {
    int expected = address_error(address, 4);
    if (!expected && count < 0) expected = VIGIL_ECOUNT;
    fuzz_trace("notify word %d, %lld", (int)((unsigned char *)address - arena), (long long)count);
    check_answer(vigil_notify(address, count), expected ? expected : model_notify(key(address), count));
}

static void notify_some(void) {
    static const int64_t counts[] = {INT64_MIN, -1, 0, 1, 1, 1, 2, 2, 3, 4, VIGIL_ALL, VIGIL_ALL};
    void *address = some_address();
    notify(address, counts[byte() % 12]);
}

static void forget(void) {
    void *address = some_address();
    static const uint64_t lengths[] = {0, 1, 4, 5, 8, 12, 64, 128, 4096, 1 << 20};
    uint64_t to_end = UINT64_MAX - key(address) + 1, length = lengths[byte() % 10];
    switch (byte() % 16) {
    case 0: length = to_end; break;
    case 1: length = to_end + 1; break;
    }
    int expected = !address ? VIGIL_ENULL : length > to_end ? VIGIL_ERANGE : VIGIL_OK;
    fuzz_trace("forget word %d, %llu", (int)((unsigned char *)address - arena), (unsigned long long)length);
    check_answer(vigil_forget(address, length), expected ? expected : model_forget(key(address), length));
}

static int pending_error(int op) {
    return model.ops[op].place == IDLE ? VIGIL_EIDLE : agent_error(model.ops[op].agent);
}

static void cancel(int op) {
    int expected = pending_error(op);
    if (!expected && model.ops[op].place == DECIDED) expected = VIGIL_ETOOLATE;
    fuzz_trace("cancel op %d: %s", op, vigil_status_name(expected));
    check_answer(vigil_cancel(&ops[op]), expected);
    if (expected == VIGIL_OK) model_leave(&model.ops[op]);
}

static void refer(int op, bool ref) {
    int expected = pending_error(op);
    fuzz_trace("%s op %d: %s", ref ? "ref" : "unref", op, vigil_status_name(expected));
    check_answer((ref ? vigil_ref : vigil_unref)(&ops[op]), expected);
    if (expected == VIGIL_OK) model.ops[op].referenced = ref;
}

static void store(void) {
    static const unsigned char offsets[] = {0, 4, 8, 12, 64, 68, 72, 76};
    uint8_t choice = byte();
    uint32_t *word = (void *)&arena[offsets[choice % 8]];
    __atomic_store_n(word, choice / 8u % 4, __ATOMIC_SEQ_CST);
}

/* What null arguments return; and workers are not available without threads. */
static void misuse(void) {
    int agent = byte() % AGENTS;
    vigil_agent *real = model.agents[agent].real;
    vigil_worker *worker;
    fuzz_trace("misuse");
    check_answer(vigil_wait32_async(real, NULL, arena, 0, 0, on_op), VIGIL_ENULL);
    check_answer(vigil_wait32_async(real, &ops[0], arena, 0, 0, NULL), VIGIL_ENULL);
    check_answer(vigil_agent_post(real, NULL, NULL), VIGIL_ENULL);
    check_answer(vigil_agent_create(NULL, 0), VIGIL_ENULL);
    check_answer(vigil_cancel(NULL), VIGIL_ENULL);
    check_answer(vigil_ref(NULL), VIGIL_ENULL);
    check_answer(vigil_unref(NULL), VIGIL_ENULL);
    check_answer(vigil_worker_start(NULL, NULL, NULL), VIGIL_ENULL);
    CHECK(vigil_worker_start(&worker, NULL, NULL) < 0, "a worker without a thread");
}

/* The whole process. */

/* An agent that is dispatching may have read its stops, which we cannot see. */
static uint64_t slots_used(bool with_stops) {
    uint64_t used = 0;
    for (int i = 0; i < OPS; i++) used += model.ops[i].place == IN_LINE || model.ops[i].place == DECIDED;
    for (int i = 0; i < FUZZ_THREADS; i++) used += model.threads[i].place != IDLE;
    for (int i = 0; i < AGENTS; i++) {
        for (size_t at = 0; at < model.agents[i].letters; at++) {
            const struct letter *letter = &model.agents[i].mail[at];
            used += !letter->waiter && (with_stops || letter->post != STOP);
        }
    }
    return used;
}

/* Posts until there are no more slots, except those that other threads keep. */
static void flood(int agent) {
    struct model_agent *is = &model.agents[agent];
    if (dispatch_error(agent)) return;
    fuzz_trace("flood agent %d", agent);
    while (vigil_agent_post(is->real, on_post, (void *)(uintptr_t)(model.posted + 1)) == VIGIL_OK) {
        model_post(agent, ++model.posted);
        CHECK(slots_used(false) <= SLOTS, "more waiters than slots");
    }
    CHECK(slots_used(true) + fuzz_slots_kept() >= SLOTS, "the limit is reached too early");
    check_answer(vigil_agent_stop(is->real), VIGIL_ELIMIT);
    uint32_t value = (uint32_t)value_at(arena, false);
    int in_use = model.ops[0].place == IDLE ? VIGIL_ELIMIT : VIGIL_EINUSE;
    check_answer(vigil_wait32_async(is->real, &ops[0], arena, value, 1, on_op), in_use);
    check_answer(vigil_wait32(arena, value, 1), model_may_not_block(fuzz_thread) ? VIGIL_EMAYNOTBLOCK : VIGIL_ELIMIT);
    bool was_quiet = quiet;
    quiet = true;
    dispatch(agent);
    quiet = was_quiet;
}

static void advance(void) {
    static const uint64_t steps_ns[] = {1, 1, 2, 60, 64, 4096, 1 << 18, 1000000000};
    uint64_t step_ns = steps_ns[byte() % 8];
    if (fuzz_now_ns + step_ns < FUZZ_TIME_ENDS_NS / 2) fuzz_now_ns += step_ns;
    fuzz_trace("time passes");
    check_answer(vigil_now_ns(), (int64_t)fuzz_now_ns);
}

/* Only the first thread forks: then no other thread is asleep below it on our stack. */
static void fork_process(void) {
    if (fuzz_thread != 0) return;
    fuzz_trace("fork");
    fuzz_fork();
    model_fork();
}

/* A thread that is not asleep and has no agents ends. */
static void end_thread(unsigned thread) {
    if (thread <= fuzz_thread) return;
    for (int i = 0; i < AGENTS; i++) {
        if (model.agents[i].real && model.agents[i].thread == thread) return;
    }
    fuzz_trace("thread %u ends", thread);
    fuzz_thread_ends(thread);
}

/* Usually an agent that exists. */
static int some_agent(uint8_t which) {
    int agent = which % AGENTS;
    if (which < 16) return agent;
    for (int i = 0; i < AGENTS && !model.agents[agent].real; i++) agent = (agent + 1) % AGENTS;
    return agent;
}

static void act_rarely(uint8_t which) {
    switch (which % 16) {
    case 0:
    case 1:
    case 2:
    case 3: misuse(); break;
    case 4:
    case 5:
    case 6:
    case 7: flood(which / 16 % AGENTS); break;
    case 8: fork_process(); break;
    default: end_thread(which / 16 % FUZZ_THREADS); break;
    }
}

static void act(void) {
    uint8_t action = byte(), which = byte();
    int agent = some_agent(which), op = which / AGENTS % OPS;
    bool flag = which >= 128;
    model.moved_ns = fuzz_now_ns;
    switch (action % 32) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5: wait_async(agent, op); break;
    case 6:
    case 7:
    case 8:
    case 9: notify_some(); break;
    case 10:
    case 11: wait_blocking(); break;
    case 12:
    case 13: cancel(op); break;
    case 14:
    case 15: dispatch(agent); break;
    case 16: run(agent, INT64_MAX); break;
    case 17: run(agent, which % 16 == 15 ? -1 : (int64_t)(fuzz_now_ns + which)); break;
    case 18:
    case 19: post(agent); break;
    case 20: stop(agent); break;
    case 21: forget(); break;
    case 22: refer(op, flag); break;
    case 23: refer_agent(agent, flag); break;
    case 24:
    case 25: create(which % AGENTS, which / AGENTS % 8 == 0 ? 2 : which / AGENTS % 2); break;
    case 26:
        if (flag) destroy(agent);
        break;
    case 27: ask_fd(agent); break;
    case 28: store(); break;
    case 29: advance(); break;
    case 30:
        fuzz_early_returns = which % 4;
        fuzz_no_descriptors = which / 4 % 8 == 0;
        break;
    case 31: act_rarely(which); break;
    }
    model.moved_ns = fuzz_now_ns;
    for (int i = 0; i < AGENTS; i++) check_rest(i);
    for (unsigned char *word = arena; word < arena + sizeof arena; word += 4) {
        check_answer(vigil_waiters(word), model_waiters(key(word)));
    }
}

/* The thread is asleep in a blocking wait or in its innermost vigil_agent_run. */
void fuzz_others_act(void) {
    unsigned sleeper = fuzz_thread;
    if (sleeper + 1 < RESCUER) {
        fuzz_thread = sleeper + 1;
        act_some();
        fuzz_thread = sleeper;
    }
    if (model.threads[sleeper].place != IDLE) return;
    const struct model_agent *is = &model.agents[running[sleeper]];
    CHECK(!is->letters || fuzz_bell_rung(&is->real->seat.bell), "an agent sleeps although it has mail");
}

void fuzz_rescue(void) {
    unsigned sleeper = fuzz_thread;
    const struct waiter *waiter = &model.threads[sleeper];
    int agent = running[sleeper];
    fuzz_thread = RESCUER;
    if (waiter->place != IDLE) {
        CHECK(waiter->deadline_ns >= FUZZ_TIME_ENDS_NS, "a thread has forgotten its deadline");
        notify((void *)(uintptr_t)waiter->address, VIGIL_ALL);
    } else {
        CHECK(model_referenced(agent), "an agent sleeps although nothing keeps it going");
        CHECK(!model_overdue(agent, FUZZ_TIME_ENDS_NS - 1, model.came), "an agent has forgotten a deadline");
        stop(agent);
    }
    fuzz_thread = sleeper;
}

/* Beginning and end. */

static void begin_input(void) {
    static const uint64_t starts_ns[] = {1, 1000, (1 << 30) - 7, UINT64_C(1) << 60};
    model_reset();
    memset(arena, 0, sizeof arena);
    for (int i = 0; i < OPS; i++) ops[i] = (vigil_op){.data = &model.ops[i]};
    fuzz_no_descriptors = false;
    fuzz_early_returns = 0;
    fuzz_now_ns = model.moved_ns = starts_ns[byte() % 4];
}

static void check_nothing_left(void) {
    const struct lot *lot = lot_private();
    for (int i = 0; i < 1 << PRIM_BUCKET_BITS; i++) CHECK(!lot->buckets[i].word, "a waiter is left over");
    for (uint32_t i = 1; i < lot->chunks_used; i++) CHECK(lot->chunks[i].free == UINT64_MAX, "a slot is left over");
    for (uint32_t i = 1; i < lot->seats_used; i++) CHECK(!lot->seats[i], "a seat is left over");
}

static void end_input(void) {
    fuzz_trace("the end");
    for (int i = 0; i < AGENTS; i++) {
        fuzz_thread = model.agents[i].thread;
        if (model.agents[i].real) destroy(i);
    }
    fuzz_thread = 0;
    for (unsigned i = 0; i < FUZZ_THREADS; i++) fuzz_thread_ends(i);
    check_nothing_left();
    fuzz_fork();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input = data;
    input_end = data + size;
    begin_input();
    create(0, 0);
    create(1, byte() % 2);
    while (input < input_end) act();
    end_input();
    return 0;
}
