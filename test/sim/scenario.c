/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include <string.h>

#include "lot/lot.h"

_Alignas(64) uint32_t words[16];
struct books books;
struct request requests[8];
struct turn turns[3];

static uint32_t message; /* every notifier writes it first, everyone who is notified must see it */
static struct lot *lot;
static int64_t most_in_line;

void begin_before_first_use(void) {
    if (!lot) {
        lot = lot_private(); /* this is where the library keeps it */
    }
    memset(lot, 0, sizeof *lot);
    sim_new_process();
    memset(words, 0, sizeof words);
    memset(&books, 0, sizeof books);
    memset(requests, 0, sizeof requests);
    memset(turns, 0, sizeof turns);
    message = 0;
    most_in_line = 0;
    static const char *const names[] = {"words[0]", "words[1]", "words[2]", "words[3]"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        sim_name(&words[i], sizeof words[i], names[i]);
    }
    sim_name(&message, sizeof message, "message");
    sim_name(lot, sizeof *lot, "lot");
}

void begin(void) {
    begin_before_first_use();
    lot_private();
    sim_name(&lot->buckets[0], sizeof lot->buckets[0], "bucket 0");
    sim_name(&lot->buckets[1], sizeof lot->buckets[1], "bucket 1");
    sim_name(lot->slots, lot->chunk_limit * SLOT_CHUNK * sizeof *lot->slots, "slot");
}

int64_t in_line(void) {
    return lot->buckets ? lot->buckets[0].word / 4 + lot->buckets[1].word / 4 : 0;
}

void balance(void) {
    int64_t ok = books.ended[VIGIL_OK], timed_out = books.ended[VIGIL_TIMED_OUT];
    int64_t cancelled = books.ended[VIGIL_CANCELLED] + books.taken_back;
    sim_check(ok == books.notified, "notify counted %d, but %d waits were notified", (int)books.notified, (int)ok);
    sim_check(books.forgotten <= books.ended[VIGIL_CANCELLED], "forget counted %d, but %d waits were cancelled",
              (int)books.forgotten, (int)books.ended[VIGIL_CANCELLED]);
    sim_check(ok + timed_out + cancelled == books.begun, "%d waits began, %d ended", (int)books.begun,
              (int)(ok + timed_out + cancelled));
    sim_check(books.ran == books.posted, "%d functions posted, %d ran", (int)books.posted, (int)books.ran);
    sim_check(in_line() == 0, "%d are still in line", (int)in_line());
    for (unsigned i = 0; i < sizeof requests / sizeof *requests; i++) {
        sim_check(!requests[i].pending, "request %u is still pending", i);
    }
    for (unsigned i = 0; i < sizeof turns / sizeof *turns; i++) {
        sim_check(!turns[i].waiting, "turn %u never came", i);
    }
}

/* A wait that had begun ends with this status. */
static void end_wait(int status, int64_t due_ns, int64_t place) {
    sim_check(status == VIGIL_OK || status == VIGIL_TIMED_OUT || status == VIGIL_CANCELLED, "a wait ended with %s",
              vigil_status_name(status));
    if (status == VIGIL_TIMED_OUT) {
        sim_check(vigil_now_ns() >= due_ns, "timed out at %lld, %lld ns early", (long long)vigil_now_ns(),
                  (long long)(due_ns - vigil_now_ns()));
    }
    if (status == VIGIL_OK) {
        sim_check(prim_load_relaxed(&message) == 1, "notified, but what the notifier wrote before is not seen");
        sim_check(place <= books.asked, "number %d in line was notified when only %d were to be", (int)place,
                  (int)books.asked);
    }
    books.ended[status]++;
}

static int64_t due(int64_t timeout_ns) {
    return timeout_ns == VIGIL_FOREVER ? VIGIL_FOREVER : vigil_now_ns() + timeout_ns;
}

/* ---- Fibers ---- */

void go(const char *name, void (*fiber)(void *)) {
    sim_go(name, fiber, NULL);
}

void go_with(const char *name, void (*fiber)(void *), intptr_t argument) {
    sim_go(name, fiber, (void *)argument);
}

void waiter(void *unused) {
    (void)unused;
    wait_while_zero(&words[0], VIGIL_FOREVER);
}

void notifier_all(void *unused) {
    (void)unused;
    change_and_notify(&words[0], VIGIL_ALL);
}

void notifier_one(void *unused) {
    (void)unused;
    change_and_notify(&words[0], 1);
}

void notifier_two(void *unused) {
    (void)unused;
    change_and_notify(&words[0], 2);
}

void bare_notifier(void *unused) {
    (void)unused;
    notify(&words[0], 1);
}

/* ---- Blocking ---- */

int wait_at(uint32_t *word, int64_t timeout_ns, int64_t place) {
    int64_t due_ns = due(timeout_ns);
    int status = vigil_wait32(word, 0, timeout_ns);
    if (status != VIGIL_NOT_EQUAL) {
        books.begun++;
        end_wait(status, due_ns, place);
    }
    return status;
}

int wait_while_zero(uint32_t *word, int64_t timeout_ns) {
    return wait_at(word, timeout_ns, 0);
}

int64_t notify(uint32_t *word, int64_t count) {
    prim_store_relaxed(&message, 1u);
    books.asked += count == VIGIL_ALL ? 100 : count;
    int64_t notified = vigil_notify(word, count);
    sim_check(notified >= 0 && notified <= count, "notify of %lld answers %lld", (long long)count, (long long)notified);
    books.notified += notified;
    return notified;
}

void change_and_notify(uint32_t *word, int64_t count) {
    prim_store_relaxed(word, 1u);
    notify(word, count);
}

void forget(const void *memory, uint64_t length) {
    int64_t forgotten = vigil_forget(memory, length);
    sim_check(forgotten >= 0, "forget answers %lld", (long long)forgotten);
    books.forgotten += forgotten;
}

void let_pass(int64_t duration_ns) {
    wait_while_zero(&words[1], duration_ns);
}

/* Looked at after every step of anybody, so it sees every number. */
static bool so_many_in_line(void *count) {
    most_in_line = in_line() > most_in_line ? in_line() : most_in_line;
    return most_in_line >= (int64_t)(uintptr_t)count;
}

void await_in_line(uintptr_t count) {
    sim_until(so_many_in_line, (void *)count);
}

void hear_of_in_line(uintptr_t count) {
    await_in_line(count);
    while (prim_load_acquire(&lot->buckets[0].word) / 4 + prim_load_acquire(&lot->buckets[1].word) / 4 < count) {
        prim_pause();
    }
}

/* ---- Asynchronous ---- */

static void on_end(vigil_op *op, int status) {
    struct request *request = op->data;
    sim_check(request->pending, "a callback that was not expected");
    request->pending = false;
    request->status = status;
    end_wait(status, request->due_ns, request->place);
    if (request->then) {
        request->then(request);
    }
}

int start(vigil_agent *agent, struct request *request, uint32_t *word, int64_t timeout_ns) {
    request->op.data = request;
    request->word = word;
    request->due_ns = due(timeout_ns);
    int status = vigil_wait32_async(agent, &request->op, word, 0, timeout_ns, on_end);
    if (status == VIGIL_PENDING) {
        request->pending = true;
        books.begun++;
    }
    return status;
}

void cancel(struct request *request) {
    int status = vigil_cancel(&request->op);
    if (status == VIGIL_OK) {
        sim_check(request->pending, "cancelled what was not pending");
        request->pending = false;
        books.taken_back++;
    } else {
        sim_check(status == (request->pending ? VIGIL_ETOOLATE : VIGIL_EIDLE), "cancel answers %s",
                  vigil_status_name(status));
    }
}

vigil_agent *new_agent(void) {
    vigil_agent *agent;
    int status = vigil_agent_create(&agent, 0);
    sim_check(status == VIGIL_OK, "create: %s", vigil_status_name(status));
    return agent;
}

void run(vigil_agent *agent) {
    int status = vigil_agent_run(agent);
    sim_check(status == VIGIL_OK, "run: %s", vigil_status_name(status));
}

void destroy(vigil_agent *agent) {
    int status = vigil_agent_destroy(agent);
    sim_check(status == VIGIL_OK, "destroy: %s", vigil_status_name(status));
}

void post(vigil_agent *agent, vigil_function *function, void *argument) {
    books.posted++;
    int status = vigil_agent_post(agent, function, argument);
    sim_check(status == VIGIL_OK, "post: %s", vigil_status_name(status));
}

/* ---- Locks ---- */

void expect(int status, int expected, const char *call) {
    sim_check(status == expected, "%s answers %s", call, vigil_status_name(status));
}

vigil_request *turn_begins(struct turn *turn) {
    turn->request.op.data = turn;
    turn->waiting = true;
    return &turn->request;
}

void turn_answered(struct turn *turn, int status, int64_t timeout_ns, vigil_callback *callback) {
    bool timed_out = status == VIGIL_TIMED_OUT && timeout_ns != VIGIL_FOREVER;
    sim_check(status == VIGIL_PENDING || status == VIGIL_OK || timed_out, "the request is answered %s",
              vigil_status_name(status));
    if (status != VIGIL_PENDING) {
        callback(&turn->request.op, status);
    }
}

struct turn *turn_ends(vigil_op *op, int status) {
    struct turn *turn = op->data;
    sim_check(turn->waiting, "a callback that was not expected");
    turn->waiting = false;
    turn->status = status;
    return turn;
}

void cancel_turn(struct turn *turn) {
    expect(vigil_cancel(&turn->request.op), turn->waiting ? VIGIL_OK : VIGIL_EIDLE, "cancel");
    turn->waiting = false;
}
