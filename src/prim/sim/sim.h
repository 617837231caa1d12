/* SPDX-License-Identifier: MIT */
/*
 * sim.h - the deterministic simulator, as the tests see it.
 *
 * The library's real code runs on fibers of one thread. Every atomic access, park, wake and ring is a point at which
 * the simulator chooses: which fiber goes on, whether time passes first, which of the values still visible a load
 * reads, whether a sleep ends for no reason. An execution is the list of these choices, so any of them can be run
 * again.
 *
 * A deviation is a choice other than the simplest one: after a fiber that cannot go on, to continue with another
 * fiber than the next in turn; to preempt a fiber that could go on (or to let the clock move meanwhile); to read an
 * old value; to end a sleep spuriously; to kill a victim, if there is one; to send a signal to a fiber that handles
 * them. Exhaustive exploration runs the execution without deviations, then all with one deviation, with two ... so
 * the first failure found is a simplest one.
 *
 * Memory is not sequentially consistent: see memory.c.
 */
#ifndef VIGIL_SIM_H
#define VIGIL_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bugs.h"

/* A little program to run again and again. `setup` starts its fibers; `finish` checks what they left behind. */
struct sim_scenario {
    const char *name;
    const char *about;
    void (*setup)(void);
    void (*finish)(void);
};

/* ---- For scenarios ---- */

/* A new fiber, from setup or from another fiber. */
void sim_go(const char *name, void (*main)(void *), void *argument);

/* Ends this execution as a failure. */
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define sim_check(condition, ...) ((condition) ? (void)0 : sim_fail(__VA_ARGS__))

/* The name of these bytes in a trace. To be called in setup. */
void sim_name(const volatile void *variable, size_t size, const char *name);

/* Blocks this fiber until `ready(argument)`. For the order of a scenario's own events. */
void sim_until(bool (*ready)(void *), void *argument);

/* poll() on a descriptor of prim_bell_fd: true when it is readable, false when the deadline came first. */
bool sim_poll(int fd, uint64_t deadline_ns);

/*
 * From now on a bell is one word (bell_word.h), as in a browser, and sim_poll is the browser's event loop: it sleeps on
 * the bell's word by Atomics.waitAsync, unless the word says that there is a ring, or such a sleeper is there from
 * before. To be called in setup.
 */
void sim_word_bells(void);
/* The bell's word now; acquire. */
uint32_t sim_bell_look(int fd);
/* Atomics.waitAsync: an asynchronous sleeper on the bell's word. False: the word is not as `seen`. sim_poll returns
 * when the sleeper has been woken. */
bool sim_bell_listen(int fd, uint32_t seen);

/*
 * From now on this fiber is the main thread of a page: when it parks, that returns at once. It runs in circles then; so
 * that this comes to an end, a fiber that parks again and again on the same value waits until the word has changed.
 */
void sim_may_not_park(void);

/* A moment at which the clock may stop, though no fiber has a deadline then. To be called in setup. */
void sim_moment(uint64_t time_ns);

/* As if this process had just begun: all PRIM_PROCESS variables have their initial values. To be called in setup. */
void sim_new_process(void);

/*
 * Processes are numbered from 0. A fiber belongs to the process of the fiber that starts it, or to the one named
 * here; those that setup starts belong to process 0. All memory is shared, except that PRIM_PROCESS variables exist
 * once per process, and that a process must not touch memory that another has allocated.
 */
#define SIM_PROCESSES 4u
extern unsigned sim_process; /* of the running fiber; 0 in setup and finish */
void sim_go_in(unsigned process, const char *name, void (*main)(void *), void *argument);
/* Makes this call in that process, in one step. In setup, for what happens before the scenario begins. */
void sim_within(unsigned process, void (*call)(void));

/* Moves a descriptor of this process to that process, under the same number; it need not be closed. */
void sim_pass_fd(int fd, unsigned process);

/*
 * Kills the process: its fibers stop for good, its locks on files are dropped, and everything else stays as it is. A
 * process that kills itself exits without any cleanup.
 */
void sim_kill(unsigned process);
bool sim_dead(unsigned process);
/* This process, not 0, may be killed at any time: every time is tried. There may be several. To be called in setup. */
void sim_victim(unsigned process);
/* `call` is called when a process is being killed, before others can notice. To be called in setup. */
void sim_on_kill(void (*call)(unsigned process));

/*
 * From now on this fiber gets that many signals, each at any of its steps: every step is tried. The handler is called
 * on the fiber's own stack, and may be interrupted by the next signal. Signals that have not come when no fiber can
 * go on come then, if this fiber sleeps in the kernel. Null: no more signals come.
 */
void sim_handle(void (*handler)(void), unsigned signals);

/* SIGSTOP and SIGCONT. */
void sim_stop(unsigned process);
void sim_continue(unsigned process);

/* ---- For test programs ---- */

enum sim_deviation { SIM_TURN, SIM_PREEMPTION, SIM_STALE, SIM_SPURIOUS, SIM_KILL, SIM_SIGNAL, SIM_DEVIATIONS };

struct sim_search {
    unsigned limit[SIM_DEVIATIONS]; /* of each kind of deviation in one execution */
    unsigned deviations;            /* of all kinds together */
    uint64_t executions;            /* go on to one more deviation only if about this many executions suffice */
    uint64_t random_runs;           /* after that */
    uint64_t seed;
    double seconds; /* stop anyway after this time; 0: never */
};

struct sim_report {
    bool failed;
    char reason[400];
    char replay[400]; /* the failing execution's choices */
    uint64_t seed;    /* of the failing random run, 0 if it was not one */
    int deviations;   /* explored completely up to this number; -1: not even without any */
    unsigned points;  /* choices in the last execution */
    uint64_t executions;
    uint64_t random_runs;
};

/* Runs the scenario's executions until one fails or the search is over, and fills in `report`. */
void sim_explore(const struct sim_scenario *scenario, const struct sim_search *search, struct sim_report *report);

/* Runs one execution and writes every step to `trace`, unless that is null. False when `replay` cannot be parsed. */
bool sim_replay(const struct sim_scenario *scenario, const char *replay, FILE *trace, struct sim_report *report);

/* The same for a random run. */
void sim_replay_random(const struct sim_scenario *scenario, uint64_t seed, FILE *trace, struct sim_report *report);

#endif
