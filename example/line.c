/* SPDX-License-Identifier: MIT */
/*
 * One word, one line. Threads, which block, and an event loop, which must not, come one after the other to wait for the
 * same word. One of the loop's waits is cancelled and one thread's deadline passes: both leave the line, and the others
 * move up. Then the clerk serves the line, and all waiters get their turns in the order in which they came.
 *
 * The program checks what it shows, and exits with 1 if a waiter was served out of turn.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <vigil/vigil.h>

enum kind { THREAD, LOOP };

struct person {
    const char *name;
    enum kind kind;
    int64_t timeout_ns;
    vigil_worker *worker; /* a thread */
    vigil_op op;          /* the loop's wait */
    int status;           /* how the wait ended, once it has */
};

#define PEOPLE 10
static struct person people[PEOPLE] = {
    /* in the order in which they come */
    {"A", THREAD, VIGIL_FOREVER, NULL, {0}, VIGIL_PENDING}, {"1", LOOP, VIGIL_FOREVER, NULL, {0}, VIGIL_PENDING},
    {"B", THREAD, VIGIL_FOREVER, NULL, {0}, VIGIL_PENDING}, {"2", LOOP, VIGIL_FOREVER, NULL, {0}, VIGIL_PENDING},
    {"3", LOOP, VIGIL_FOREVER, NULL, {0}, VIGIL_PENDING},   {"C", THREAD, VIGIL_FOREVER, NULL, {0}, VIGIL_PENDING},
    {"D", THREAD, VIGIL_FOREVER, NULL, {0}, VIGIL_PENDING}, {"4", LOOP, VIGIL_FOREVER, NULL, {0}, VIGIL_PENDING},
    {"5", LOOP, VIGIL_FOREVER, NULL, {0}, VIGIL_PENDING},   {"E", THREAD, 500 * 1000 * 1000, NULL, {0}, VIGIL_PENDING},
};
static struct person *const changes_its_mind = &people[4], *const impatient = &people[9];

static uint32_t word;    /* what all of them wait for */
static uint32_t reports; /* how many have said how their wait ended; the clerk waits for this one */
static vigil_agent *loop;
static bool on_terminal, wrong, closed;

static int status_of(const struct person *person) {
    return __atomic_load_n(&person->status, __ATOMIC_SEQ_CST);
}

/* Each waiter, on its own thread, when its wait has ended. */
static void report(struct person *person, int status) {
    __atomic_store_n(&person->status, status, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&reports, 1, __ATOMIC_SEQ_CST);
    vigil_notify(&reports, VIGIL_ALL);
}

/* A thread: blocks. */
static void wait_asleep(vigil_agent *agent, void *argument) {
    struct person *person = argument;
    (void)agent;
    report(person, vigil_wait32(&word, 0, person->timeout_ns));
}

/* The loop: goes on, and is called back. */
static void on_end(vigil_op *op, int status) {
    report(op->data, status);
}

static void wait_awake(vigil_agent *agent, void *argument) {
    struct person *person = argument;
    person->op.data = person;
    vigil_wait32_async(agent, &person->op, &word, 0, person->timeout_ns, on_end);
}

static void change_mind(vigil_agent *agent, void *argument) {
    struct person *person = argument;
    (void)agent;
    if (vigil_cancel(&person->op) == VIGIL_OK) report(person, VIGIL_CANCELLED);
}

static void close_loop(vigil_agent *agent, void *argument) {
    (void)agent;
    (void)argument;
    closed = true;
}

/* The clerk's show. */

static void print_person(const struct person *person) {
    const char *colour = person->kind == THREAD ? "\033[33m" : "\033[36m";
    printf(person->kind == THREAD ? "%s[%s]%s " : "%s(%s)%s ", on_terminal ? colour : "", person->name,
           on_terminal ? "\033[0m" : "");
}

static void pause_on_terminal(void) {
    struct timespec a_moment = {.tv_nsec = 500 * 1000 * 1000};
    fflush(stdout);
    if (on_terminal) nanosleep(&a_moment, NULL);
}

static void print_line(void) {
    printf("   the line    ");
    for (int i = 0; i < PEOPLE; i++) {
        if (status_of(&people[i]) == VIGIL_PENDING) print_person(&people[i]);
    }
    printf("%s\n", vigil_waiters(&word) ? "" : "is empty");
    pause_on_terminal();
}

/* Until its wait has ended. It loads `reports` before it looks, and waits for a change of that: nothing is missed. */
static void await_end(const struct person *person) {
    for (;;) {
        uint32_t seen = __atomic_load_n(&reports, __ATOMIC_SEQ_CST);
        if (status_of(person) != VIGIL_PENDING) return;
        vigil_wait32(&reports, seen, VIGIL_FOREVER);
    }
}

/* One after the other: each comes when the one before it is in line. */
static void gather(void) {
    for (int i = 0; i < PEOPLE; i++) {
        struct person *person = &people[i];
        if (person->kind == LOOP) vigil_agent_post(loop, wait_awake, person);
        else vigil_worker_start(&person->worker, wait_asleep, person);
        while (vigil_waiters(&word) <= i && status_of(person) == VIGIL_PENDING) sched_yield();
    }
}

static void expect(const struct person *person, int status, const char *what) {
    await_end(person);
    wrong |= status_of(person) != status;
    printf("               ");
    print_person(person);
    printf("%s: %s\n", what, vigil_status_name(status_of(person)));
}

static void serve(int64_t count) {
    struct person *turn[PEOPLE];
    int64_t length = 0;
    for (int i = 0; i < PEOPLE; i++) {
        if (status_of(&people[i]) == VIGIL_PENDING) turn[length++] = &people[i];
    }
    int64_t served = vigil_notify(&word, count);
    wrong |= served != (count < length ? count : length);
    for (int64_t i = 0; i < served && !wrong; i++) await_end(turn[i]); /* the first ones */
    printf(count == VIGIL_ALL ? "   notify all  " : "   notify %-4d ", (int)count);
    for (int64_t i = 0; i < length; i++) {
        bool was_served = status_of(turn[i]) == VIGIL_OK;
        wrong |= was_served != (i < served); /* and no other */
        if (was_served) print_person(turn[i]);
    }
    printf("\n");
    pause_on_terminal();
}

static void clerk(vigil_agent *agent, void *argument) {
    (void)agent;
    (void)argument;
    gather();
    print_line();
    vigil_agent_post(loop, change_mind, changes_its_mind);
    expect(changes_its_mind, VIGIL_CANCELLED, "changes its mind");
    expect(impatient, VIGIL_TIMED_OUT, "has waited long enough");
    print_line();
    const int64_t counts[] = {1, 2, 3, VIGIL_ALL};
    for (int i = 0; i < 4; i++) {
        serve(counts[i]);
        print_line();
    }
    vigil_agent_post(loop, close_loop, NULL);
}

int main(void) {
    vigil_worker *clerks_thread;
    int turns = 0;
    on_terminal = isatty(STDOUT_FILENO);
    printf("Five threads, which block: [A] to [E]. One event loop, which must not: (1) to (5).\n"
           "All wait for the same word of memory, in one line, first come, first served.\n\n");
    if (vigil_agent_create(&loop, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK) return 1;
    if (vigil_worker_start(&clerks_thread, clerk, NULL) != VIGIL_OK) return 1;

    struct pollfd seat = {.fd = vigil_agent_fd(loop), .events = POLLIN};
    for (; !closed; turns++) { /* any event loop would do */
        poll(&seat, 1, -1);
        vigil_agent_dispatch(loop);
    }
    vigil_agent_destroy(loop);

    vigil_worker_stop(clerks_thread);
    vigil_worker_join(clerks_thread);
    for (int i = 0; i < PEOPLE; i++) {
        if (!people[i].worker) continue;
        vigil_worker_stop(people[i].worker);
        vigil_worker_join(people[i].worker);
    }
    printf("\nThe event loop went round %d times and never blocked.\n", turns);
    printf(wrong ? "A WAITER WAS SERVED OUT OF TURN.\n" : "All waiters were served in turn.\n");
    return wrong;
}
