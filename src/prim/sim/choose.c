/* SPDX-License-Identifier: MIT */
/*
 * choose.c - which executions are run: all within bounds, random ones, or a given one.
 *
 * Every choice has a number, counted from the execution's start, and option 0 unless something else is decided. So an
 * execution is described by its other decisions alone: "12:1,40:2" is what a failing one is replayed from.
 *
 * All executions are visited by running again and again: each time the last decision that has another option left
 * takes it, and everything after it starts over.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DECISIONS 32768u
#define SCRIPT    256u

struct decision {
    unsigned number; /* of the choice */
    unsigned option;
    unsigned allowed; /* a bit for each option worth taking */
};

static enum { EXHAUSTIVE, RANDOM, SCRIPTED } mode;

/* The present execution. */
static unsigned next_number;
static unsigned spent[SIM_DEVIATIONS];
static unsigned deviations;
static struct decision script[SCRIPT]; /* decisions other than the default: made, or to be made */
static unsigned script_length;
static unsigned script_at;

/* EXHAUSTIVE */
static struct decision path[DECISIONS];
static unsigned path_length, path_at;
static const struct sim_search *bounds;
static unsigned deviation_bound;

/* RANDOM */
static uint64_t random_state;
static unsigned odds[SIM_DEVIATIONS]; /* one in this many choices deviates */

bool sim_exhaustive(void) {
    return mode == EXHAUSTIVE;
}

static bool choose_affordable(enum sim_deviation kind) {
    return spent[kind] < bounds->limit[kind] && deviations < deviation_bound;
}

static unsigned choose_lowest(unsigned mask) {
    return (unsigned)__builtin_ctz(mask);
}

static unsigned choose_decide_exhaustively(unsigned number, unsigned allowed, enum sim_deviation kind) {
    unsigned first = choose_lowest(allowed);
    if (path_at < path_length) {
        if (path[path_at].number == number) {
            return path[path_at++].option;
        }
        return first;
    }
    if (choose_affordable(kind) && allowed != 1u << first) {
        if (path_length == DECISIONS) {
            sim_fail("too many choices for one execution");
        }
        path[path_length++] = (struct decision){number, first, allowed};
        path_at = path_length;
    }
    return first;
}

/* Moves on to the next path that was not visited yet. False: there is none. */
static bool choose_next_path(void) {
    while (path_length > 0) {
        struct decision *last = &path[path_length - 1];
        unsigned left = last->allowed & ~((2u << last->option) - 1);
        if (left) {
            last->option = choose_lowest(left);
            return true;
        }
        path_length--;
    }
    return false;
}

static uint64_t choose_random_number(void) {
    random_state += 0x9E3779B97F4A7C15u;
    uint64_t x = random_state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static unsigned choose_decide_randomly(unsigned options, enum sim_deviation kind) {
    if (kind == SIM_TURN) {
        return (unsigned)(choose_random_number() % options);
    }
    if (!bounds->limit[kind] || choose_random_number() % odds[kind] != 0) {
        return 0;
    }
    return 1 + (unsigned)(choose_random_number() % (options - 1));
}

static unsigned choose_decide_by_script(unsigned number, unsigned options) {
    if (script_at == script_length || script[script_at].number != number) {
        return 0;
    }
    unsigned option = script[script_at++].option;
    return option < options ? option : 0;
}

unsigned sim_choose(unsigned options, unsigned allowed, enum sim_deviation kind) {
    unsigned number = next_number++;
    if (mode == SCRIPTED) {
        return choose_decide_by_script(number, options);
    }
    unsigned option =
        mode == RANDOM ? choose_decide_randomly(options, kind) : choose_decide_exhaustively(number, allowed, kind);
    if (option != choose_lowest(allowed)) {
        spent[kind]++;
        deviations++;
    }
    if (option != 0 && script_length < SCRIPT) {
        script[script_length++] = (struct decision){.number = number, .option = option};
    }
    return option;
}

/* ---- Running ---- */

static enum sim_outcome choose_execute(const struct sim_scenario *scenario, struct sim_report *report) {
    next_number = deviations = script_at = path_at = 0;
    memset(spent, 0, sizeof spent);
    enum sim_outcome outcome = sim_execute(scenario);
    report->points = next_number;
    return outcome;
}

static void choose_note_failure(struct sim_report *report) {
    report->failed = true;
    snprintf(report->reason, sizeof report->reason, "%s", sim_reason);
    size_t length = 0;
    report->replay[0] = 0;
    for (unsigned i = 0; i < script_length && length < sizeof report->replay; i++) {
        length += (size_t)snprintf(report->replay + length, sizeof report->replay - length, "%s%u:%u", i ? "," : "",
                                   script[i].number, script[i].option);
    }
    if (length >= sizeof report->replay || script_length == SCRIPT) {
        report->replay[0] = 0; /* too long to write down; the seed must do */
    }
}

static double choose_seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool choose_time_is_up(double end, uint64_t executions) {
    return end > 0 && executions % 64 == 0 && choose_seconds_now() > end;
}

/* Runs every execution with up to `deviation_bound` deviations. False: not finished. */
static bool choose_explore_bound(const struct sim_scenario *scenario, double end, struct sim_report *report) {
    mode = EXHAUSTIVE;
    path_length = 0;
    uint64_t limit = report->executions + 4 * bounds->executions;
    do {
        script_length = 0;
        report->executions++;
        if (choose_execute(scenario, report) == SIM_FAILED) {
            choose_note_failure(report);
            return false;
        }
        if (report->executions >= limit || choose_time_is_up(end, report->executions)) {
            return false;
        }
    } while (choose_next_path());
    return true;
}

static void choose_explore_bounds(const struct sim_scenario *scenario, double end, struct sim_report *report) {
    uint64_t before = 1, last = 1;
    sim_sharing_forget();
    for (deviation_bound = 0; deviation_bound <= bounds->deviations && bounds->executions; deviation_bound++) {
        /* With n points to deviate at, about n^k / k! executions have k deviations. */
        double k = deviation_bound, expected = k > 1 ? (double)last * (double)last / (double)before * (k - 1) / k : 0;
        if (expected > (double)bounds->executions) {
            return;
        }
        uint64_t start = report->executions;
        do {
            if (!choose_explore_bound(scenario, end, report)) {
                return;
            }
        } while (sim_sharing_grew()); /* then it was not everything */
        report->deviations = (int)deviation_bound;
        before = last;
        last = report->executions - start;
    }
}

/* The seed determines everything: how often this run deviates, and then where. */
static void choose_begin_random(uint64_t seed) {
    mode = RANDOM;
    script_length = 0;
    random_state = seed;
    odds[SIM_PREEMPTION] = 2u << (choose_random_number() % 7);
    odds[SIM_STALE] = 2u << (choose_random_number() % 6);
    odds[SIM_SPURIOUS] = 2u << (choose_random_number() % 4);
    odds[SIM_KILL] = 2u << (choose_random_number() % 8);
    odds[SIM_SIGNAL] = 2u << (choose_random_number() % 6);
}

static void choose_explore_randomly(const struct sim_scenario *scenario, double end, struct sim_report *report) {
    while (report->random_runs < bounds->random_runs && !choose_time_is_up(end, report->random_runs)) {
        uint64_t seed = bounds->seed + report->random_runs++;
        choose_begin_random(seed);
        if (choose_execute(scenario, report) == SIM_FAILED) {
            choose_note_failure(report);
            report->seed = seed;
            return;
        }
    }
}

void sim_explore(const struct sim_scenario *scenario, const struct sim_search *search, struct sim_report *report) {
    *report = (struct sim_report){.deviations = -1};
    bounds = search;
    double end = search->seconds > 0 ? choose_seconds_now() + search->seconds : 0;
    choose_explore_bounds(scenario, end, report);
    if (!report->failed) {
        choose_explore_randomly(scenario, end, report);
    }
}

/* ---- Replaying ---- */

static bool choose_parse_script(const char *replay) {
    script_length = 0;
    while (*replay) {
        char *end;
        struct decision decision = {.number = (unsigned)strtoul(replay, &end, 10)};
        if (end == replay || *end != ':' || script_length == SCRIPT) {
            return false;
        }
        replay = end + 1;
        decision.option = (unsigned)strtoul(replay, &end, 10);
        if (end == replay || (*end && *end != ',')) {
            return false;
        }
        script[script_length++] = decision;
        replay = *end ? end + 1 : end;
    }
    return true;
}

static void choose_execute_aloud(const struct sim_scenario *scenario, FILE *trace, struct sim_report *report) {
    sim_trace_file = trace;
    if (choose_execute(scenario, report) == SIM_FAILED) {
        choose_note_failure(report);
    }
    sim_trace_file = NULL;
}

bool sim_replay(const struct sim_scenario *scenario, const char *replay, FILE *trace, struct sim_report *report) {
    *report = (struct sim_report){.executions = 1};
    mode = SCRIPTED;
    if (!choose_parse_script(replay)) {
        return false;
    }
    choose_execute_aloud(scenario, trace, report);
    return true;
}

void sim_replay_random(const struct sim_scenario *scenario, uint64_t seed, FILE *trace, struct sim_report *report) {
    static const struct sim_search all = {.limit = {1, 1, 1, 1, 1, 1}};
    *report = (struct sim_report){.executions = 1, .seed = seed};
    bounds = &all;
    choose_begin_random(seed);
    choose_execute_aloud(scenario, trace, report);
}
