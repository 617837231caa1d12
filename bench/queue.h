/* SPDX-License-Identifier: MIT */
/* queue.h - processes that queue for a lock, each with a command to run under it. */
#ifndef BENCH_QUEUE_H
#define BENCH_QUEUE_H

#include "bench.h"

enum { RUNNER_WORDS_MAX = 12 };

/* A program that runs commands under the lock that has this name. */
struct runner {
    const char *words[RUNNER_WORDS_MAX]; /* which precede those of the command */
    const char *name;
    /* How many processes hold the lock, and wait for it, right now. */
    unsigned (*holding)(const char *name), (*waiting)(const char *name);
};

int runner_start(const struct runner *runner, const char *const *command);
void await_success(int pid);

/* The lock is held by one more process until the queue is drained. */
struct queue {
    const struct runner *runner;
    unsigned count, started; /* processes in the full queue, and started so far */
    int *pids;
    int holder;          /* its pid; 0: it has not been started */
    int input[2];        /* a pipe: the holder releases the lock at its end, so also when the benchmark is killed */
    int complaints;      /* a file in memory: the standard error of all processes, so that none writes to a terminal */
    char written_to[32]; /* a file: each command appends its number, from 0 */
};

/*
 * queue_form - start `count` processes and return when all of them are in line. Those of an ordered queue are started
 * one by one, each when the one before it has been seen in line; the others as fast as possible.
 *
 * False if this system, or the runner, has no room for that many: then the reason has been printed, and nothing is
 * left.
 */
bool queue_form(struct queue *queue, const struct runner *runner, unsigned count, bool ordered);
/* Make the holder release the lock. Returns the nanoseconds until all commands have run and their processes have
 * ended. */
uint64_t queue_drain_ns(struct queue *queue);
/* How many of the drained commands did not run in the order in which they were started. */
unsigned queue_out_of_turn(const struct queue *queue);
/* Kills the processes that have not ended, and forgets the queue. */
void queue_disband(struct queue *queue);

/*
 * idle.c: the cost of processes that only wait. Figures: the processor time of n of them together, in percent of a
 * core, and how often the process that wakes up most does so, in 10 seconds.
 */
void idle_waiters(const struct job *job, const struct runner *runner, double figures[FIGURES_MAX]);

#endif
