/* SPDX-License-Identifier: MIT */
/* engine.h - what the simulator's own files share. */
#ifndef VIGIL_SIM_ENGINE_H
#define VIGIL_SIM_ENGINE_H

#include "prim.h"
#include "sim.h"

#define SIM_FIBERS     16u
#define SIM_WORDS      8u /* that one fiber can sleep on */
#define SIM_LOCATIONS  256u
#define SIM_STEP_LIMIT 4000u /* more than any scenario needs: beyond it a fiber runs in circles */
#define SIM_STEPS_MORE 4u    /* times, with several processes: their keepers patrol again and again */

/* ---- memory.c: which values a load may read ---- */

struct sim_view {
    int16_t seen[SIM_LOCATIONS]; /* for each location the time stamp of the oldest message that may still be read */
    int16_t heard[SIM_FIBERS];   /* for each fiber how much of its past is known to have happened before: see race.c */
};

/* What one fiber knows of memory. */
struct sim_knowledge {
    struct sim_view now;      /* its loads read nothing older than this */
    struct sim_view upcoming; /* what an acquiring fence would add: the views of messages it read relaxed */
    struct sim_view fenced;   /* what its last releasing fence covered: a relaxed store publishes this much */
};

void sim_memory_reset(void);
void sim_view_join(struct sim_view *view, const struct sim_view *other);
/* The current fiber has passed its view on: what it does from now on is not part of that. */
void sim_view_passed_on(void);
/* The newest value, read by the kernel on behalf of the current fiber. */
uint32_t sim_memory_peek32(const uint32_t *word);
/* The kernel writes on behalf of a process that had this view. */
void sim_memory_write32(uint32_t *word, uint32_t value, const struct sim_view *known);

/* ---- process.c: the variables that each process has of its own ---- */

void sim_process_enter(unsigned process);
void sim_process_died(unsigned process);
void sim_process_reset(void);

/* The address that identifies this one, in the current process, wherever variables are compared. */
const volatile void *sim_address_elsewhere(const volatile void *variable);
static inline const volatile void *sim_address_of(const volatile void *variable) {
    return sim_process ? sim_address_elsewhere(variable) : variable;
}

/* ---- fiber.c: which fiber runs ---- */

/* What an operation touches, to know whether two of them can be exchanged without a difference. */
struct sim_footprint {
    const volatile void *variable;
    bool writes;
    bool fence;
    bool everywhere; /* a fence for all fibers: cannot be exchanged with anything */
    bool seq_cst;
};

enum sim_state {
    SIM_READY,
    SIM_PARKED,
    SIM_PARKED_SHARED,
    SIM_AT_BELL,
    SIM_POLLING,
    SIM_JOINING,
    SIM_UNTIL,
    SIM_ENDED
};

struct sim_fiber {
    const char *name;
    void (*main)(void *);
    void *argument;
    unsigned process;
    bool stopped;
    char *stack;
    void *stack_pointer;

    enum sim_state state;
    uint64_t deadline_ns;          /* of the sleep */
    const volatile void *sleep_on; /* word, bell or fiber */
    const volatile void *sleep_on_more[SIM_WORDS]; /* further words, ended by null */
    unsigned own_words; /* SIM_PARKED_SHARED: a bit for each word, sleep_on first, that prim_wake wakes */
    bool (*ready)(void *);         /* SIM_UNTIL */
    void *ready_argument;
    const struct sim_site *site; /* of its last access to memory */

    bool asleep; /* exhaustive: another execution covers what it would do now, until a conflicting operation */
    struct sim_footprint pending;

    void (*handler)(void);
    unsigned signals;  /* still to be delivered */
    bool interrupted;  /* a signal has ended its sleep */

    struct sim_knowledge knows;
    struct prim_thread self;
    bool keeps_self;
    const volatile void *woken_on; /* the word on which sim_wake_parked woke it */
    bool endless; /* the execution does not wait for its end */

    bool may_not_park;   /* see sim_may_not_park */
    uint32_t *spin_word; /* on which it wanted to park last, while it was spin_expected; and how often in a row */
    uint32_t spin_expected;
    unsigned spins;
};

extern struct sim_fiber *sim_current; /* null outside of an execution: then operations are plain */
extern uint64_t sim_now_ns;

enum sim_outcome { SIM_PASSED, SIM_FAILED, SIM_PRUNED };

/* Runs one execution with the choices of choose.c. */
enum sim_outcome sim_execute(const struct sim_scenario *scenario);
extern char sim_reason[400];

/* The point before an operation of the current fiber. False: not in a simulation, the caller just does the
 * operation. */
bool sim_point(struct sim_footprint footprint, const struct sim_site *site);
/* The current fiber sleeps until it is made ready, or until what its state waits for is there. */
void sim_sleep(enum sim_state state, const volatile void *on, uint64_t deadline_ns);
unsigned sim_fiber_count(void);
unsigned sim_fiber_index(const struct sim_fiber *fiber);
struct sim_fiber *sim_fiber_at(unsigned index);
const char *sim_fiber_name(unsigned index);
bool sim_on_own_stack(const volatile void *variable);
struct sim_fiber *sim_fiber_new(unsigned process, const char *name, void (*main)(void *), void *argument);
/* Wakes one fiber that sleeps in this state: SIM_PARKED, in this process, or SIM_PARKED_SHARED, in any. */
bool sim_wake_parked(enum sim_state how, const volatile void *word);
/* The victim may die here: before the current fiber's next step; or after a step in which another fiber noticed it. */
void sim_may_die(void);
void sim_was_seen(unsigned process);
extern bool sim_executing;
extern FILE *sim_trace_file; /* null: no trace */
void sim_trace(const struct sim_site *site, const volatile void *variable, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Forget which variables fibers share: another scenario begins. */
void sim_sharing_forget(void);
/* Whether the last executions have shown that more is shared than was known before. */
bool sim_sharing_grew(void);

/* ---- prim.c ---- */
bool sim_bell_rung(const volatile void *bell);
bool sim_bell_readable(const volatile void *bell);
uint64_t sim_bell_alarm(const volatile void *bell);
void sim_thread_exit(struct sim_fiber *fiber);
void sim_prim_reset(void);
void sim_prim_process_died(unsigned process, const struct sim_view *known);
/* What the execution has not closed; null if nothing. */
const char *sim_prim_leak(void);

/* ---- race.c ---- */
void sim_race_reset(void);
void sim_race_atomic(const volatile void *variable, size_t size, bool writes, const void *code);

/* ---- heap.c ---- */
void sim_heap_reset(void);
/* Why this process may not touch the variable; null if it may. */
const char *sim_heap_trouble(const volatile void *variable);
size_t sim_heap_in_use(void); /* blocks, of processes that live */

/* ---- file.c ---- */
void sim_file_reset(void);
bool sim_file_memory(const volatile void *variable);
/* The process has died: its file locks end. `known`: the joined views of its fibers, which a process that takes such a
 * lock next gets. */
void sim_file_process_died(unsigned process, const struct sim_view *known);
const char *sim_file_leak(void);

/* ---- choose.c ---- */
/* Chooses one of `options`, of which only those in the mask `allowed` are of interest; all but the first of these
 * deviate. */
unsigned sim_choose(unsigned options, unsigned allowed, enum sim_deviation kind);
/* Whether equivalent executions are left out. */
bool sim_exhaustive(void);

#endif
