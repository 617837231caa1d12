/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <string.h>

struct model model;

void model_reset(void) {
    memset(&model, 0, sizeof model);
}

/* The line. */

void model_join(struct waiter *waiter, int agent, uint64_t address, uint64_t deadline_ns) {
    *waiter = (struct waiter){.place = IN_LINE,
                              .agent = agent,
                              .address = address,
                              .deadline_ns = deadline_ns,
                              .came = model.came++,
                              .referenced = agent != NO_AGENT};
    model.line[model.waiting++] = waiter;
}

void model_leave(struct waiter *waiter) {
    size_t at = 0;
    while (model.line[at] != waiter) at++;
    model.waiting--;
    memmove(&model.line[at], &model.line[at + 1], (model.waiting - at) * sizeof model.line[0]);
    waiter->place = IDLE;
}

static void send(int agent, struct letter letter) {
    struct model_agent *to = &model.agents[agent];
    to->mail[to->letters++] = letter;
}

static void decide(struct waiter *waiter, int outcome) {
    model_leave(waiter);
    waiter->outcome = outcome;
    waiter->place = DECIDED;
    if (waiter->agent == NO_AGENT) return;
    send(waiter->agent, (struct letter){.waiter = waiter, .sent = model.sent, .address = waiter->address});
}

static int64_t take(uint64_t from, uint64_t to, int64_t most, int outcome) {
    int64_t taken = 0;
    model.sent++;
    for (size_t i = 0; i < model.waiting && taken < most;) {
        struct waiter *waiter = model.line[i];
        if (waiter->address < from || waiter->address > to) {
            i++;
        } else {
            decide(waiter, outcome);
            taken++;
        }
    }
    return taken;
}

int64_t model_notify(uint64_t address, int64_t count) {
    return take(address, address, count, VIGIL_OK);
}

int64_t model_forget(uint64_t from, uint64_t length) {
    return length == 0 ? 0 : take(from, from + (length - 1), INT64_MAX, VIGIL_CANCELLED);
}

int64_t model_waiters(uint64_t address) {
    int64_t waiters = 0;
    for (size_t i = 0; i < model.waiting; i++) waiters += model.line[i]->address == address;
    return waiters;
}

/* The agents. */

void model_post(int agent, uint64_t number) {
    send(agent, (struct letter){.post = number, .sent = ++model.sent});
}

static void remove_letter(struct model_agent *agent, size_t at) {
    agent->letters--;
    agent->served++;
    memmove(&agent->mail[at], &agent->mail[at + 1], (agent->letters - at) * sizeof agent->mail[0]);
}

static bool is_stop(const struct letter *letter) {
    return !letter->waiter && letter->post == STOP;
}

bool model_has_stop(int agent) {
    const struct model_agent *is = &model.agents[agent];
    size_t at = 0;
    while (at < is->letters && !is_stop(&is->mail[at])) at++;
    return at < is->letters;
}

bool model_stop_is_next(int agent, uint64_t sent_until) {
    const struct model_agent *is = &model.agents[agent];
    return is->letters && is_stop(&is->mail[0]) && is->mail[0].sent <= sent_until;
}

void model_read_stop(int agent) {
    remove_letter(&model.agents[agent], 0);
    model.agents[agent].stopping = true;
}

/*
 * All letters before this one must have been read, except that letters of the same vigil_forget for other lines may
 * follow.
 */
static void read_letter(int number, const struct waiter *waiter, uint64_t post) {
    struct model_agent *agent = &model.agents[number];
    if (model_stop_is_next(number, UINT64_MAX)) model_read_stop(number);
    size_t at = 0;
    while (at < agent->letters && (agent->mail[at].waiter != waiter || agent->mail[at].post != post)) at++;
    CHECK(at < agent->letters, "a callback is called that is not due");
    const struct letter *letter = &agent->mail[at];
    for (size_t i = 0; i < at; i++) {
        const struct letter *before = &agent->mail[i];
        CHECK(before->sent == letter->sent && before->address != letter->address, "a callback overtakes another");
    }
    remove_letter(agent, at);
}

static void check_place(int number) {
    const struct model_agent *agent = &model.agents[number];
    CHECK(agent->real && !agent->forked && agent->dispatching, "a callback outside of its agent's dispatch");
    CHECK(agent->thread == fuzz_thread, "a callback on a foreign thread");
}

static void check_deadline(const struct waiter *waiter) {
    CHECK(waiter->deadline_ns <= fuzz_now_ns, "a deadline fires early");
    CHECK(fuzz_now_ns == waiter->deadline_ns || fuzz_now_ns <= model.moved_ns, "a deadline fires late");
    for (size_t i = 0; i < model.waiting; i++) {
        const struct waiter *other = model.line[i];
        bool overtaken = other->agent == waiter->agent && other->deadline_ns < waiter->deadline_ns;
        CHECK(!overtaken, "a later deadline fires first");
    }
}

void model_begins(struct waiter *waiter, int status) {
    check_place(waiter->agent);
    struct model_agent *agent = &model.agents[waiter->agent];
    if (waiter->place == DECIDED) {
        CHECK(status == waiter->outcome, "a callback with %d instead of %d", status, waiter->outcome);
        read_letter(waiter->agent, waiter, 0);
        waiter->place = IDLE;
    } else {
        CHECK(waiter->place == IN_LINE, "a callback for nothing");
        CHECK(status == (agent->closing ? VIGIL_CANCELLED : VIGIL_TIMED_OUT), "a callback with %d in line", status);
        if (!agent->closing) check_deadline(waiter);
        model_leave(waiter);
        agent->served++;
    }
}

void model_post_begins(int agent, uint64_t number) {
    check_place(agent);
    read_letter(agent, NULL, number);
}

static bool pending(const struct waiter *op, int agent) {
    return op->agent == agent && (op->place == IN_LINE || op->place == DECIDED);
}

bool model_pending(int agent) {
    for (int i = 0; i < OPS; i++) {
        if (pending(&model.ops[i], agent)) return true;
    }
    return false;
}

bool model_referenced(int agent) {
    for (int i = 0; i < OPS; i++) {
        if (pending(&model.ops[i], agent) && model.ops[i].referenced) return true;
    }
    return model.agents[agent].references > 0;
}

bool model_overdue(int agent, uint64_t until_ns, uint64_t came_before) {
    for (size_t i = 0; i < model.waiting; i++) {
        const struct waiter *waiter = model.line[i];
        if (waiter->agent == agent && waiter->deadline_ns <= until_ns && waiter->came < came_before) return true;
    }
    return false;
}

bool model_may_not_block(unsigned thread) {
    for (int i = 0; i < AGENTS; i++) {
        const struct model_agent *agent = &model.agents[i];
        if (agent->real && !agent->forked && agent->thread == thread && agent->flags) return true;
    }
    return false;
}

uint64_t model_seats(void) {
    uint64_t seats = 0;
    for (int i = 0; i < AGENTS; i++) seats += model.agents[i].real && !model.agents[i].forked;
    return seats;
}

/* In the child there are no waiters, and the agents are dead. */
void model_fork(void) {
    model.waiting = 0;
    for (int i = 0; i < OPS; i++) {
        if (model.ops[i].place != IDLE) model.ops[i].place = LOST;
    }
    for (int i = 0; i < AGENTS; i++) {
        model.agents[i].forked = model.agents[i].real != NULL;
        model.agents[i].letters = 0;
    }
}
