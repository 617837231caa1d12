/* SPDX-License-Identifier: MIT */
/*
 * bench.h - how the benchmark is put together.
 *
 * A job is one thing to measure at one size; it yields up to FIGURES_MAX figures at once (register, notify, settle).
 * A row is a figure with a name and a unit, as it is reported. A contestant is Vigil or a peer, with the jobs it can
 * run. In each round all contestants of a job run back to back; the report has the median over the rounds. A job goes
 * on until the medians of its rows are known to 2 %, or its time is used up; the report says how well they are known.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { FIGURES_MAX = 3, ROUNDS_MAX = 64, JOBS_MAX = 96, SKILLS_MAX = 14, CONTESTANTS_MAX = 24 };

struct job {
    const char *name;
    uint64_t n;                    /* waiters, calls, round trips or threads */
    unsigned rounds;               /* at least; 1: exactly, as what it reports does not vary, or is the worst of many */
    const char *rows[FIGURES_MAX]; /* the row that each figure is reported as; null: the chart only, or none */
};

/* Fills in the job's figures; those it leaves alone count as not measured. */
typedef void measure_function(const struct job *job, double figures[FIGURES_MAX]);

struct skill {
    const char *job;
    measure_function *measure;
    bool once; /* too slow for more than one round */
};

struct contestant {
    const char *name;
    const struct skill *skills[SKILLS_MAX]; /* each list ends with a null name, the array with a null */
    bool (*open)(void);                     /* false: not installed. Null: always there */
    void (*close)(void);
};

/* contestants.c: Vigil comes first. contestants_missing names those that were not found at configure time. */
extern const struct contestant *const contestants[];
extern const size_t contestant_count;
extern const char *const contestants_missing;

/* plan.c: what is measured and reported, and the targets. Each part is a table of its own. */
enum part { WAITING, LOCKS, PROCESSES, COMMANDS, PARTS };

struct row {
    enum part part;
    const char *name;
    const char *unit;
    const char *what;
    bool higher_is_better;
};

/*
 * The row's figure must be at most (or at least) `factor` times that of the contestant and row named here; no
 * contestant: times 1. The best peer is the one that has the best figure in this run.
 */
#define BEST_PEER "the best peer"
struct target {
    const char *row;
    bool at_least;
    double factor;
    const char *whose;
    const char *whose_row; /* null: the same row */
    const char *text;
};

extern const struct job jobs[];
extern const size_t job_count;
extern const struct row rows[];
extern const size_t row_count;
extern const struct target targets[];
extern const size_t target_count;

const struct row *row_find(const char *name);

/* bench.c: null if the contestant does not know the job. */
const struct skill *skill_for(const struct contestant *contestant, const struct job *job);

/* Whether this run only checks that everything works, so that it should be short. */
bool is_quick(void);

/* Part of a job could not be measured: prints why. */
void say_left_out(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The stream for messages to the user: with --json, standard output is for a program. */
FILE *people(void);

/* results.c: the samples of a run. */
void result_add(size_t job, size_t contestant, const double figures[FIGURES_MAX]);
double result_of_row(const char *row, const char *contestant_name);              /* the median; NAN if not measured */
double result_at(const char *job, uint64_t n, size_t figure, size_t contestant); /* the same */

/*
 * A median, and the values between which the true one lies with 95 % confidence, whatever the distribution: two of the
 * samples. Fewer than six samples cannot give that: then these are the least and the greatest.
 */
struct known {
    double median, low, high; /* NAN if not measured */
    unsigned rounds;
};
#define KNOWN_WELL   0.02
#define KNOWN_ROUNDS 6
struct known result_known(const char *row, const char *contestant_name);
/* How far the true median may be away, as a part of the median: 0 if all samples are the same. NAN if not measured, or
 * only once. */
double known_error(struct known known);
/* Whether all contestants' medians of the job's rows are known to KNOWN_WELL. */
bool job_is_known(size_t job);

/* The value that a target allows; NAN if it cannot be judged in this run. */
double target_allows(const struct target *target);
bool target_met(const struct target *target, double allowed);
/* "met" or "missed", and whether that may be due to noise. */
const char *target_verdict(const struct target *target, double allowed);

/* report.c and chart.c. chart_svg returns false with errno set if the file cannot be written. */
void report_table(FILE *out);
void report_targets(FILE *out);
void report_json(FILE *out);
bool chart_svg(const char *path);
bool figures_markdown(const char *path);

/* load.c: what else the machine did, in processors: 1 is one of them, all the time. NAN where it is not known. */
struct load_mark {
    uint64_t at_ns;
    double busy_s, stolen_s, own_s;
};
struct load {
    double others; /* used by other programs */
    double stolen; /* kept back by the hypervisor */
};
struct load_mark load_mark(void);
/* Children that have not been waited for count as other programs. */
struct load load_since(const struct load_mark *mark);
/* More than this much distorts the figures. */
bool load_distorts(struct load load);
/* Of this run: just before it, and meanwhile. Where there is no time for it, that of before is not known. */
extern struct load load_before, load_meanwhile;
void load_describe(FILE *out);

/* measure.c: what the contestants share. */
uint64_t now_ns(void);
/* What reading the clock twice costs by itself: to be subtracted from short intervals. */
double clock_cost_ns(void);
double per_call_ns(void (*loop)(uint64_t n), uint64_t n);
/* Two threads play n round trips; `ping` serves. Each function is called with the number of round trips to make. */
double per_round_trip_ns(void (*ping)(uint64_t n), void (*pong)(uint64_t n), uint64_t n);
/* How much more two threads get done than one, each with its own words (the loop's second argument is 0 or 1). */
double speedup_of_two(void (*loop)(uint64_t n, unsigned who), uint64_t n);
/* What a call costs when two threads make n each at the same time. */
double per_call_of_two_ns(void (*loop)(uint64_t n, unsigned who), uint64_t n);
double median(double *values, size_t count);
/* Prints the message and exits: a benchmark that went wrong has no figures. */
_Noreturn void die(const char *what);
#define must(condition) ((condition) ? (void)0 : die(#condition))

/* shared.c: memory that processes share, as a contestant makes it. */
struct arena {
    void (*open)(void), (*close)(void); /* around each measurement */
    void (*join)(void);                 /* in another process, before use; null: inherited by fork */
};
/* All zero, and shared with the processes that we fork. */
void *shared_memory(size_t size);
void shared_memory_free(void *memory, size_t size);

/*
 * A partner is another process: a fork of ours that joins the arena, runs `main` and exits. When we end, for whatever
 * reason, so does the partner; and when the partner ends in another way than by returning from `main`, so do we.
 */
struct partner {
    int pid;
};
void partner_start(struct partner *partner, const struct arena *arena, void (*main)(void *), void *argument);
void partner_kill(struct partner *partner); /* still to be waited for */
void partner_wait(struct partner *partner);

/* As the functions of the same names above, in a new arena; pong runs in the partner. */
double shared_per_call_ns(const struct arena *arena, void (*loop)(uint64_t n), uint64_t n);
double shared_per_round_trip_ns(const struct arena *arena, void (*ping)(uint64_t n), void (*pong)(uint64_t n),
                                uint64_t n);

/* owner_death.c: a lock that outlives its holder. */
struct robust_lock {
    void (*lock)(void);    /* takes a lock that is free and consistent */
    void (*inherit)(void); /* blocks until it has the lock because its holder has died */
    void (*repair)(void);  /* makes an inherited lock consistent, and unlocks it */
};
/*
 * Milliseconds from SIGKILL of the holder until a waiter that sleeps in another process has the lock: median and worst
 * of n deaths.
 */
void owner_death(const struct job *job, const struct arena *arena, struct robust_lock lock,
                 double figures[FIGURES_MAX]);

/* contest.c: threads that contend for a mutex with a short critical section and some work outside of it. */
struct lock {
    void (*lock)(void), (*unlock)(void);
};
/* About 10 ns of work, under the lock; counts how often it was done. */
void work_inside(void);
/* About 50 ns of work. */
void work_outside(void);
/* Count up `served`. Other threads read the count meanwhile. */
void count_served(uint64_t *served);
/* Million locks per second, and the locks of the least served thread relative to those of the most served one. */
void contest_throughput(const struct job *job, struct lock lock, double figures[FIGURES_MAX]);
/* The same with processes in place of threads. */
void contest_of_processes(const struct job *job, const struct arena *arena, struct lock lock,
                          double figures[FIGURES_MAX]);
/* The longest single wait for the lock, in milliseconds. */
void contest_longest_wait(const struct job *job, struct lock lock, double figures[FIGURES_MAX]);
/* Four threads that take a lock back to back, one in n times to write, else to read: million locks per second, with
 * next to nothing to do under the lock, and with 100 ns of work. */
struct rwlock {
    void (*read_lock)(void), (*read_unlock)(void), (*write_lock)(void), (*write_unlock)(void);
};
void contest_of_readers(const struct job *job, struct rwlock rwlock, double figures[FIGURES_MAX]);
/*
 * Threads that do something with locks again and again, each time with a new random number. `count` returns how often
 * it was done, by what the locks protect; null: that is not counted. Million turns per second.
 */
struct turns {
    void (*take)(uint64_t random);
    uint64_t (*count)(void);
};
double contest_of_turns(unsigned threads, struct turns turns);

/* pages.c: n threads look up pages in a cache, and one time in 100 replace one. Million per second. */
void contest_of_pages(const struct job *job, struct rwlock rwlock, double figures[FIGURES_MAX]);

/*
 * Million locks per second with a guest: one more thread that does work_inside in its own way until `stopped`. And
 * the guest's part, relative to a fair share.
 */
typedef void guest_function(uint64_t *served, const bool *stopped);
void contest_with_guest(const struct job *job, struct lock lock, guest_function *guest, double figures[FIGURES_MAX]);

/* broadcast.c: threads that wait for a condition. Microseconds from a broadcast until all have had the mutex. */
struct monitor {
    struct lock mutex;
    void (*wait)(void), (*broadcast)(void);
};
double per_broadcast_us(struct monitor monitor, unsigned waiters);

/* Words in different cache lines: for a ball in each direction, or one for each of two threads. */
struct word {
    _Alignas(128) uint32_t value;
};

/* coprocess.c: a child that replies to each line with a line of figures. */
struct coprocess {
    FILE *to, *from;
    int pid;
};
bool coprocess_start(struct coprocess *child, const char *const argv[]);
bool coprocess_ask(struct coprocess *child, const char *question, char *answer, size_t size);
void coprocess_stop(struct coprocess *child);
/* Sends "job n" and reads the reply as the job's figures. */
void coprocess_measure(struct coprocess *child, const struct job *job, double figures[FIGURES_MAX]);

#endif
