/* SPDX-License-Identifier: MIT */
/*
 * scenario.h - what the scenarios share: the words they wait on, and the books that must balance in the end.
 *
 * Scenarios call the library through the functions here. These check each result as far as it can be checked on the
 * spot, and enter it into `books`. A scenario's `finish` is, or ends in, balance(): as many waits ended as began, and
 * as many of them by notification as the notifiers were told.
 */
#ifndef VIGIL_TEST_SCENARIO_H
#define VIGIL_TEST_SCENARIO_H

#include "base/tuning.h"
#include "prim.h"
#include "sim.h"
#include "vigil/agent.h"
#include "vigil/request.h"
#include "vigil/wait.h"

/* In the simulator's lot, words[0] and words[2] are in one bucket, words[1] is in the other. */
extern uint32_t words[16];

extern struct books {
    int64_t begun;                      /* waits that joined a line */
    int64_t ended[VIGIL_INTERRUPTED + 1]; /* by outcome; NOT_EQUAL did not begin */
    int64_t taken_back;                 /* cancelled by their own agent */
    int64_t notified, forgotten;        /* what those calls returned, in total */
    int64_t asked;                      /* what notifiers asked for, counted before the call */
    int64_t posted, ran;
    /* What each process is in the middle of, or was when it was killed. */
    int64_t waiting[SIM_PROCESSES], notifying[SIM_PROCESSES];
} books;

/* Every setup calls one of these first: with the lot made already, or to be made by the first fiber that needs it. */
void begin(void);
void begin_before_first_use(void);
void balance(void); /* every finish calls this last */

/* To be called before those, for a browser: bells are words, agents are of threads that may not park, and run() is the
 * browser's event loop. */
void begin_in_browser(void);

/* A scenario of another file. */
const struct sim_scenario *scenario_named(const struct sim_scenario *scenarios, const char *name);

/* begin_NAME and end_NAME: that scenario of another file, after `prepare` has changed what it runs on. */
#define BORROW_SCENARIO(prepare, list, name)                                                                           \
    static void begin_##name(void) {                                                                                   \
        prepare();                                                                                                     \
        scenario_named(list, #name)->setup();                                                                          \
    }                                                                                                                  \
    static void end_##name(void) {                                                                                     \
        scenario_named(list, #name)->finish();                                                                         \
    }

/* ---- Fibers ---- */

#define FIBER(name) static void name(void *argument)

void go(const char *name, void (*fiber)(void *));
void go_with(const char *name, void (*fiber)(void *), intptr_t argument);

/* These ignore their argument: they wait on words[0], or change and notify it. */
void waiter(void *unused);
void notifier_all(void *unused);
void notifier_one(void *unused);
void notifier_two(void *unused);
void bare_notifier(void *unused); /* does not change it: a waiter that is not notified must end otherwise */

/* ---- Blocking ---- */

/* Waits while the word is 0. `place` is the place in line, counted from 1, if the scenario controls it; else 0. */
int wait_at(uint32_t *word, int64_t timeout_ns, int64_t place);
int wait_while_zero(uint32_t *word, int64_t timeout_ns);
int64_t notify(uint32_t *word, int64_t count);
void change_and_notify(uint32_t *word, int64_t count);
void forget(const void *memory, uint64_t length);

/* Lets time pass: waits on words[1], which must not be notified. */
void let_pass(int64_t duration_ns);

/* How many waiters there are in all lines together, now. For conditions that are evaluated between steps. */
int64_t in_line(void);
/* Sleeps until there have been that many in all lines together at some moment. */
void await_in_line(uintptr_t count);
/* The same, and acquires from them: what they did before is visible. */
void hear_of_in_line(uintptr_t count);

/* ---- Asynchronous ---- */

struct request {
    vigil_op op;
    unsigned process;
    uint32_t *word;
    int64_t due_ns;
    int64_t place;
    bool pending;
    int status; /* of its end */
    void (*then)(struct request *request);
};

extern struct request requests[8];

/* Returns what vigil_wait32_async does. `then`, if any, is called when the request ends. */
int start(vigil_agent *agent, struct request *request, uint32_t *word, int64_t timeout_ns);
void cancel(struct request *request);

vigil_agent *new_agent(void);
void run(vigil_agent *agent);
void destroy(vigil_agent *agent);
void post(vigil_agent *agent, vigil_function *function, void *argument);

/* Gives the agent to other fibers, which wait for it. */
void offer(vigil_agent *agent);
vigil_agent *await_agent(void);

/* ---- Locks ---- */

/* Signed, to be calculated with. */
#define PATIENCE      ((int64_t)PATIENCE_NS)
#define FAIR_PATIENCE ((int64_t)FAIR_PATIENCE_NS)

void expect(int status, int expected, const char *call);

/* An asynchronous request for a lock, and its outcome. */
struct turn {
    vigil_request request;
    unsigned process;
    uint32_t wants;                  /* what it asks for, where a scenario has several kinds */
    void (*then)(struct turn *turn); /* called with the lock held, in scenarios that use it */
    bool waiting;
    int status; /* of its end */
};

extern struct turn turns[3];

/* Call these right before and right after making the request. A request that is not pending ends at once. */
vigil_request *turn_begins(struct turn *turn);
void turn_answered(struct turn *turn, int status, int64_t timeout_ns, vigil_callback *callback);
/* Every callback calls this first. */
struct turn *turn_ends(vigil_op *op, int status);
/* Never too late: until its callback the request has nothing that could be lost. */
void cancel_turn(struct turn *turn);

/* ---- Processes ---- */

/*
 * The observer is the process of setup and finish. It creates a segment in begin_shared, is its first member, and
 * leaves it in balance. If a process is killed, it is the victim. A scenario in which that may happen at any time
 * calls sim_victim(VICTIM) in its setup.
 */
enum { OBSERVER, VICTIM, SURVIVOR, OTHER };

/* Replaces begin. The segment has room for `members` members, 8 waiters and 64 words, and can grow by 64 words. */
void begin_shared(uint32_t members);
void begin_shared_of(uint32_t members, uint32_t length); /* with so many bytes */
extern uint32_t *shared;              /* the segment's words, at the same address in every process */
extern struct vigil_buffer *observed; /* the observer's buffer */

void go_in(unsigned process, const char *name, void (*fiber)(void *));

/* Opens the segment of begin_shared in this process. Every fiber that opens it leaves it in the end. */
struct vigil_buffer *join_segment(void);
/* For setup: the first join_segment of that process finds the segment open already, which saves some steps. */
void join_before(unsigned process);
void leave_segment(struct vigil_buffer *buffer);
/* How many members live, as the observer sees it, itself included. For finish. */
uint32_t members_alive(void);
/* The victim calls the first when it has nothing left to do. The second sleeps until then, or until it is dead. */
void victim_is_done(void);
void await_victim(void);

/* ---- The lists of scenarios, one per file, each ended by one without a name ---- */

extern const struct sim_scenario blocking_scenarios[], asynchronous_scenarios[], agent_scenarios[], mutex_scenarios[],
    cond_scenarios[], barrier_once_scenarios[], sem_scenarios[], rwlock_scenarios[], process_scenarios[],
    shared_scenarios[], name_scenarios[], gift_scenarios[], interrupt_scenarios[], signal_scenarios[],
    bell_scenarios[], page_scenarios[];

#endif
