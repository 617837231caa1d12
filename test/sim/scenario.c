/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include <string.h>

#include "lot/lot.h"
#include "shm/member.h"
#include "shm/segment.h"
#include "vigil/segment.h"

_Alignas(64) uint32_t words[16];
struct books books;
struct request requests[8];
struct turn turns[3];

uint32_t *shared;
vigil_buffer *observed;

static bool in_browser_next, in_browser; /* see begin_in_browser */
static vigil_agent *offered;
static uint32_t message; /* written first by every notifier; every notified waiter must see it */
static struct lot *lot;
static int64_t most_in_line;
static int descriptors[SIM_PROCESSES]; /* of the segment: one for each process to open it with */
static vigil_buffer *joined_before[SIM_PROCESSES];
static bool victim_done;

void begin_in_browser(void) {
    sim_word_bells();
    in_browser_next = true;
}

void begin_before_first_use(void) {
    if (!lot) {
        lot = lot_private(); /* the library keeps it here */
        sim_new_process();
    }
    memset(words, 0, sizeof words);
    memset(&books, 0, sizeof books);
    memset(requests, 0, sizeof requests);
    memset(turns, 0, sizeof turns);
    in_browser = in_browser_next;
    in_browser_next = false;
    offered = NULL;
    message = 0;
    most_in_line = 0;
    observed = NULL;
    static const char *const names[] = {"words[0]", "words[1]", "words[2]", "words[3]"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) sim_name(&words[i], sizeof words[i], names[i]);
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

const struct sim_scenario *scenario_named(const struct sim_scenario *scenarios, const char *name) {
    while (scenarios->name && strcmp(scenarios->name, name) != 0) scenarios++;
    sim_check(scenarios->name, "there is no scenario %s", name);
    return scenarios;
}

/* In the lots of this process and of the segment. `look` reads a slot's key. */
static int64_t count_in_line(uint64_t (*look)(const uint64_t *key)) {
    int64_t count = 0;
    uint32_t bound = lot->buckets ? lot->chunks_used * SLOT_CHUNK : 0;
    for (uint32_t i = 1; i < bound; i++) count += look(&lot->slots[i].key) != 0;
    if (observed) {
        const struct segment *segment = observed->segment;
        const struct slot *slots = (const struct slot *)(void *)(segment->base + segment->layout.slots_at);
        for (uint32_t i = 1; i < segment->layout.slots; i++) {
            count += look(&slots[i].key) != 0 && undecided(slots[i].state);
        }
    }
    return count;
}

static uint64_t look_plainly(const uint64_t *key) {
    return *key;
}

static uint64_t look_and_hear(const uint64_t *key) {
    return prim_load_acquire(key);
}

int64_t in_line(void) {
    return count_in_line(look_plainly);
}

/*
 * A killed process no longer reports its results: each of its waits may have been counted by a notifier, and each
 * waiter that it was about to notify may have been notified.
 */
static void balance_waits(void) {
    int64_t ok = books.ended[VIGIL_OK], timed_out = books.ended[VIGIL_TIMED_OUT];
    int64_t cancelled = books.ended[VIGIL_CANCELLED] + books.taken_back + books.ended[VIGIL_INTERRUPTED];
    int64_t begun = books.begun, untold = 0, unasked = 0;
    for (unsigned i = 0; i < sizeof requests / sizeof *requests; i++) {
        bool lost = requests[i].pending && sim_dead(requests[i].process);
        sim_check(!requests[i].pending || lost, "request %u is still pending", i);
        begun -= lost;
        untold += lost;
    }
    for (unsigned process = 0; process < SIM_PROCESSES; process++) {
        untold += sim_dead(process) ? books.waiting[process] : 0;
        unasked += sim_dead(process) ? books.notifying[process] : 0;
    }
    sim_check(ok >= books.notified - untold && ok <= books.notified + unasked,
              "notify counted %d, but %d waits were notified", (int)books.notified, (int)ok);
    sim_check(books.forgotten <= books.ended[VIGIL_CANCELLED] + untold,
              "forget counted %d, but %d waits were cancelled", (int)books.forgotten,
              (int)books.ended[VIGIL_CANCELLED]);
    sim_check(ok + timed_out + cancelled == begun, "%d waits began, %d ended", (int)begun,
              (int)(ok + timed_out + cancelled));
}

void balance(void) {
    balance_waits();
    sim_check(books.ran == books.posted || sim_dead(VICTIM), "%d functions posted, %d ran", (int)books.posted,
              (int)books.ran);
    sim_check(in_line() == 0, "%d waiters are still in line", (int)in_line());
    for (unsigned i = 0; i < sizeof turns / sizeof *turns; i++) {
        sim_check(!turns[i].waiting || sim_dead(turns[i].process), "turn %u never came", i);
    }
    if (observed) {
        sim_check(members_alive() == 1, "%u members are left", members_alive());
        expect((int)vigil_buffer_destroy(observed), VIGIL_OK, "destroy");
    }
}

/* A wait that had begun ends with this status. */
static void end_wait(int status, int64_t due_ns, int64_t place) {
    sim_check(status == VIGIL_OK || status == VIGIL_TIMED_OUT || status == VIGIL_CANCELLED ||
                  status == VIGIL_INTERRUPTED,
              "a wait ended with %s", vigil_status_name(status));
    if (status == VIGIL_TIMED_OUT) {
        sim_check(vigil_now_ns() >= due_ns, "timed out at %lld, %lld ns early", (long long)vigil_now_ns(),
                  (long long)(due_ns - vigil_now_ns()));
    }
    if (status == VIGIL_OK) {
        sim_check(prim_load_relaxed(&message) == 1, "notified, but what the notifier wrote before is not visible");
        sim_check(place <= books.asked, "number %d in line was notified, but only %d notifications were sent",
                  (int)place, (int)books.asked);
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
    books.waiting[sim_process]++;
    int status = vigil_wait32(word, 0, timeout_ns);
    if (status != VIGIL_NOT_EQUAL) {
        end_wait(status, due_ns, place);
        books.begun++;
    }
    books.waiting[sim_process]--;
    return status;
}

int wait_while_zero(uint32_t *word, int64_t timeout_ns) {
    return wait_at(word, timeout_ns, 0);
}

int64_t notify(uint32_t *word, int64_t count) {
    prim_store_relaxed(&message, 1u);
    int64_t asked = count == VIGIL_ALL ? 100 : count;
    books.asked += asked;
    books.notifying[sim_process] += asked;
    int64_t notified = vigil_notify(word, count);
    books.notifying[sim_process] -= asked;
    sim_check(notified >= 0 && notified <= count, "notify of %lld returns %lld", (long long)count, (long long)notified);
    books.notified += notified;
    return notified;
}

void change_and_notify(uint32_t *word, int64_t count) {
    prim_store_relaxed(word, 1u);
    notify(word, count);
}

void forget(const void *memory, uint64_t length) {
    int64_t forgotten = vigil_forget(memory, length);
    sim_check(forgotten >= 0, "forget returns %lld", (long long)forgotten);
    books.forgotten += forgotten;
}

void let_pass(int64_t duration_ns) {
    wait_while_zero(&words[1], duration_ns);
}

/* Evaluated after every step of every fiber, so it sees every number. */
/* A waiter that has timed out was in line, perhaps between two of these calls. */
static bool so_many_in_line(void *count) {
    int64_t came = in_line() + books.ended[VIGIL_TIMED_OUT];
    most_in_line = came > most_in_line ? came : most_in_line;
    return most_in_line >= (int64_t)(uintptr_t)count;
}

void await_in_line(uintptr_t count) {
    sim_until(so_many_in_line, (void *)count);
}

void hear_of_in_line(uintptr_t count) {
    await_in_line(count);
    while (count_in_line(look_and_hear) < (int64_t)count) prim_pause();
}

/* ---- Asynchronous ---- */

static void on_end(vigil_op *op, int status) {
    struct request *request = op->data;
    sim_check(request->pending, "a callback that was not expected");
    end_wait(status, request->due_ns, request->place);
    request->pending = false; /* from here on nothing is lost if the process is killed */
    request->status = status;
    if (request->then) request->then(request);
}

int start(vigil_agent *agent, struct request *request, uint32_t *word, int64_t timeout_ns) {
    request->op.data = request;
    request->process = sim_process;
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
        sim_check(status == (request->pending ? VIGIL_ETOOLATE : VIGIL_EIDLE), "cancel returns %s",
                  vigil_status_name(status));
    }
}

vigil_agent *new_agent(void) {
    vigil_agent *agent;
    if (in_browser) sim_may_not_park();
    int status = vigil_agent_create(&agent, in_browser ? VIGIL_AGENT_MAY_NOT_BLOCK : 0);
    sim_check(status == VIGIL_OK, "create: %s", vigil_status_name(status));
    return agent;
}

static void run_in_browser(vigil_agent *agent) {
    int fd = vigil_agent_fd(agent);
    while (vigil_agent_alive(agent)) {
        sim_check(sim_poll(fd, PRIM_NEVER), "poll without a deadline ended");
        sim_check(vigil_agent_dispatch(agent) >= 0, "dispatch failed");
    }
}

void run(vigil_agent *agent) {
    if (in_browser) {
        run_in_browser(agent);
        return;
    }
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

void offer(vigil_agent *agent) {
    prim_store_release(&offered, agent);
}

static bool agent_is_there(void *unused) {
    (void)unused;
    return offered != NULL;
}

vigil_agent *await_agent(void) {
    vigil_agent *agent;
    sim_until(agent_is_there, NULL);
    while (!(agent = prim_load_acquire(&offered))) prim_pause();
    return agent;
}

/* ---- Locks ---- */

void expect(int status, int expected, const char *call) {
    sim_check(status == expected, "%s returns %s", call, vigil_status_name(status));
}

vigil_request *turn_begins(struct turn *turn) {
    turn->request.op.data = turn;
    turn->process = sim_process;
    turn->waiting = true;
    return &turn->request;
}

void turn_answered(struct turn *turn, int status, int64_t timeout_ns, vigil_callback *callback) {
    bool timed_out = status == VIGIL_TIMED_OUT && timeout_ns != VIGIL_FOREVER;
    sim_check(status == VIGIL_PENDING || status == VIGIL_OK || timed_out, "the request returns %s",
              vigil_status_name(status));
    if (status != VIGIL_PENDING) callback(&turn->request.op, status);
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

/* ---- Processes ---- */

void begin_shared(uint32_t members) {
    begin_shared_of(members, 256);
}

void begin_shared_of(uint32_t members, uint32_t length) {
    const vigil_segment_options options = {
        .length = length, .max_length = length + 256, .waiters = 8, .members = members};
    begin();
    expect(vigil_segment_create_anonymous(&observed, &options), VIGIL_OK, "create");
    for (unsigned process = 1; process < SIM_PROCESSES; process++) {
        descriptors[process] = vigil_segment_fd(observed);
        sim_pass_fd(descriptors[process], process);
    }
    shared = vigil_buffer_data(observed);
    victim_done = false;
    memset(joined_before, 0, sizeof joined_before);
    sim_name(shared, options.max_length, "shared");
    sim_name(segment_member(observed->segment, 0), members * sizeof(struct segment_member), "member");
    sim_name(observed->segment->base, observed->segment->layout.user_at, "segment");
}

void go_in(unsigned process, const char *name, void (*fiber)(void *)) {
    sim_go_in(process, name, fiber, NULL);
}

vigil_buffer *join_segment(void) {
    vigil_buffer *buffer = joined_before[sim_process];
    if (buffer) {
        joined_before[sim_process] = NULL;
        return buffer;
    }
    expect(vigil_segment_open_fd(&buffer, descriptors[sim_process]), VIGIL_OK, "open");
    sim_check(vigil_buffer_data(buffer) == shared, "opened another segment");
    return buffer;
}

static void join_now(void) {
    joined_before[sim_process] = join_segment();
}

void join_before(unsigned process) {
    sim_within(process, join_now);
}

void leave_segment(vigil_buffer *buffer) {
    expect((int)vigil_buffer_destroy(buffer), VIGIL_OK, "destroy");
}

uint32_t members_alive(void) {
    const struct segment *segment = observed->segment;
    uint32_t alive = 0;
    for (uint32_t number = 0; number < segment->members; number++) alive += segment_member_alive(segment, number);
    return alive;
}

void victim_is_done(void) {
    victim_done = true;
}

static bool victim_is_over(void *unused) {
    (void)unused;
    return victim_done || sim_dead(VICTIM);
}

void await_victim(void) {
    sim_until(victim_is_over, NULL);
}
