/* SPDX-License-Identifier: MIT */
/*
 * sim_test - the library under the simulator.
 *
 * Without arguments it explores every scenario. With --bugs it switches the planted bugs on, one after the other (only
 * those of one part, or only one, if --part or --bug is given). Every bug must be caught.
 *
 * sim_inline is the same with the inline functions of the public headers: see inline.h.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scenario.h"

#ifdef SIM_INLINE
#define PROGRAM "sim_inline"
#else
#define PROGRAM "sim_test"
#endif

static const struct part {
    const char *name;
    const struct sim_scenario *scenarios;
} parts[] = {
    {"blocking", blocking_scenarios}, {"asynchronous", asynchronous_scenarios},
    {"agents", agent_scenarios},      {"mutex", mutex_scenarios},
    {"cond", cond_scenarios},         {"barrier_once", barrier_once_scenarios},
    {"sem", sem_scenarios},           {"rwlock", rwlock_scenarios},
    {"processes", process_scenarios}, {"shared", shared_scenarios},
    {"names", name_scenarios},
    {"gifts", gift_scenarios},        {"interrupt", interrupt_scenarios},
    {"signals", signal_scenarios},    {"bell", bell_scenarios},
    {"page", page_scenarios},
#ifdef SIM_INLINE
    {"inline", mutex_scenarios},      {"inline_wait", blocking_scenarios},
#endif
};
#define PARTS (sizeof parts / sizeof *parts)

struct bug {
    const char *part, *name, *text;
};

#define X(part, name, text) {#part, #name, text},
static const struct bug bugs[SIM_BUG_COUNT] = {{"", "none", ""}, SIM_BUGS(X)};
#undef X

static struct {
    const char *part, *scenario;
    const char *replay;
    uint64_t random_seed;
    bool list, all_bugs;
    struct sim_search search;
} options = {
    .search = {.limit = {9, 9, 2, 1, 2, 3}, .deviations = 6, .executions = 15000, .random_runs = 1500, .seed = 1},
};

/* Null stands before the first scenario and after the last. */
static const struct sim_scenario *next_scenario(const struct sim_scenario *last) {
    static size_t part;
    if (!last) {
        part = 0;
        last = parts[0].scenarios;
    } else {
        last++;
    }
    bool wanted = !options.part || strcmp(options.part, parts[part].name) == 0;
    while ((!wanted || !last->name) && ++part < PARTS) {
        last = parts[part].scenarios;
        wanted = !options.part || strcmp(options.part, parts[part].name) == 0;
    }
    return part < PARTS ? last : NULL;
}

static void progress(const char *what, const char *name) {
    if (isatty(STDOUT_FILENO)) {
        printf("\r\033[K%s%s%s", what, *name ? " " : "", name);
        fflush(stdout);
    }
}

/* ---- Exploring ---- */

static void show_failure(const struct sim_scenario *scenario, const struct sim_report *report) {
    struct sim_report again;
    printf("FAILED %s (%s)\n", scenario->name, scenario->about);
    if (report->replay[0] || !report->seed) sim_replay(scenario, report->replay, stdout, &again);
    else sim_replay_random(scenario, report->seed, stdout, &again);
    printf("       %s\n", report->reason);
    printf("       to see it again: " PROGRAM " --scenario %s", scenario->name);
    if (sim_bug) printf(" --bug %s", bugs[sim_bug].name);
    if (report->seed) printf(" --random %llu --runs 1\n", (unsigned long long)report->seed);
    else printf(" --replay '%s'\n", report->replay);
    if (!again.failed || strcmp(again.reason, report->reason) != 0) {
        printf("       but it did not fail in this way a second time: something is not deterministic\n");
    }
}

static bool explore(const struct sim_scenario *scenario) {
    struct sim_report report;
    progress(scenario->name, "");
    sim_explore(scenario, &options.search, &report);
    progress("", "");
    if (report.failed) {
        show_failure(scenario, &report);
        return false;
    }
    printf("ok     %-28s all %8llu executions up to %d deviations, %llu random ones\n", scenario->name,
           (unsigned long long)report.executions, report.deviations, (unsigned long long)report.random_runs);
    fflush(stdout);
    return true;
}

/* ---- Planted bugs ---- */

/* First a small effort on all scenarios of the bug's part: most bugs show up quickly somewhere. */
static const struct sim_search efforts[] = {
    {.limit = {9, 2, 1, 1, 2, 2}, .deviations = 1, .executions = 3000, .random_runs = 200, .seed = 1},
    {.limit = {9, 3, 1, 1, 2, 2}, .deviations = 3, .executions = 30000, .random_runs = 5000, .seed = 1},
};

/* Scenarios that find the bugs that take a particular kill or moment, or much time: they are tried first, and with more
 * effort. */
static const struct {
    const char *bug, *scenario;
} found_by[] = {
    {"heir_chosen_again", "signal_sweeper_killed"},
    {"pulse_not_watched", "noticed_by_pulse"},
    {"pulse_kept", "pulse_wakes_another"},
    {"death_not_counted", "struck_off_by_another"},
    {"overflow_dropped", "mutex_guards_overflow"},
    {"home_unordered", "slot_used_again"},
    {"turn_kept", "patroller_stopped"},
    {"patrol_passes_none", "patroller_stopped"},
    {"gift_lost_in_between", "signaller_and_receiver"},
    {"half_told_stays", "signaller_and_receiver"},
    {"signal_noted_late", "signaller_and_receiver"},
    {"barrier_half_told", "arrival_killed"},
    {"wake_not_missed", "arrival_killed"},
    {"handed_on_as_used", "loop_killed"},
    {"left_out_for_good", "stopped_beside_the_dead"},
    {"no_call_after_death", "contender_killed"},
    {"hold_not_redone", "two_writers_killed"},
    {"hold_kept", "two_writers_killed"},
    {"once_runner_kept", "runner_killed"},
    {"dead_holder_kept", "holder_killed"},
    {"repair_drops", "order_kept"},
    {"relay_not_missed", "notifier_killed_loop"},
    {"rwlock_reserved_for_nobody", "rwlock_patience_in_vain"},
    {"hold_not_numbered", "writer_robbed"},
    {"relay_forgotten", "notify_across_async"},
    {"repair_in_any_order", "killed_inside"},
    {"taken_over_as_it_is", "waiter_killed"},
    {"dead_stays_linked", "waiter_killed"},
    {"event_early", "recorder_killed"},
    {"holder_not_told", "mutex_three_threads"},
    {"rows_lowered", "mended_beside_joiner"},
    {"passed_on_unchecked", "signal_swept_twice"},
};
static const struct sim_search most_effort = {
    .limit = {9, 9, 2, 1, 2, 3}, .deviations = 3, .executions = 50000, .random_runs = 20000, .seed = 1};

static bool is_found_by(unsigned bug, const struct sim_scenario *scenario) {
    bool found = false;
    for (unsigned i = 0; i < sizeof found_by / sizeof *found_by; i++) {
        found |= strcmp(found_by[i].bug, bugs[bug].name) == 0 && strcmp(found_by[i].scenario, scenario->name) == 0;
    }
    return found;
}

static bool catch_in(unsigned bug, const struct sim_scenario *scenario, const struct sim_search *effort) {
    struct sim_report report;
    progress(bugs[bug].name, scenario->name);
    sim_explore(scenario, effort, &report);
    if (!report.failed) return false;
    progress("", "");
    printf("caught %-20s by %-28s %4u choices: %.90s\n", bugs[bug].name, scenario->name, report.points, report.reason);
    fflush(stdout);
    return true;
}

static bool catch_bug(unsigned bug) {
    const struct sim_scenario *scenario;
    sim_bug = bug;
    options.part = bugs[bug].part;
    for (scenario = next_scenario(NULL); scenario; scenario = next_scenario(scenario)) {
        if (is_found_by(bug, scenario) && catch_in(bug, scenario, &most_effort)) return true;
    }
    for (unsigned effort = 0; effort < sizeof efforts / sizeof *efforts; effort++) {
        for (scenario = next_scenario(NULL); scenario; scenario = next_scenario(scenario)) {
            if (catch_in(bug, scenario, &efforts[effort])) return true;
        }
    }
    progress("", "");
    printf("FAILED %-20s survives: %s\n", bugs[bug].name, bugs[bug].text);
    return false;
}

/* ---- The command line ---- */

static void list_everything(void) {
    for (const struct sim_scenario *scenario = next_scenario(NULL); scenario; scenario = next_scenario(scenario)) {
        printf("%-28s %s\n", scenario->name, scenario->about);
    }
    printf("\nplanted bugs:\n");
    for (unsigned i = 1; i < SIM_BUG_COUNT; i++) printf("%-28s %s\n", bugs[i].name, bugs[i].text);
}

static void usage(void) {
    fprintf(stderr, "usage: " PROGRAM " [--list] [--bugs] [--part NAME] [--scenario NAME] [--bug NAME]\n"
                    "                [--replay CHOICES] [--random SEED --runs N] [--preemptions N] [--stale N]\n"
                    "                [--executions N] [--seconds N]\n"
                    "--executions is how many the exhaustive part of a scenario may take, about\n"
                    "--seconds is for each scenario; what the exhaustive part leaves of it goes to random runs\n");
    exit(2);
}

static unsigned find_bug(const char *name) {
    for (unsigned i = 1; i < SIM_BUG_COUNT; i++) {
        if (strcmp(bugs[i].name, name) == 0) return i;
    }
    fprintf(stderr, PROGRAM ": there is no bug %s\n", name);
    exit(2);
}

static bool flag(const char *argument) {
    if (strcmp(argument, "--list") == 0) options.list = true;
    else if (strcmp(argument, "--bugs") == 0) options.all_bugs = true;
    else return false;
    return true;
}

static void option(const char *argument, const char *value) {
    struct sim_search *search = &options.search;
    if (strcmp(argument, "--part") == 0) {
        options.part = value;
    } else if (strcmp(argument, "--scenario") == 0) {
        options.scenario = value;
    } else if (strcmp(argument, "--bug") == 0) {
        sim_bug = find_bug(value);
    } else if (strcmp(argument, "--replay") == 0) {
        options.replay = value;
    } else if (strcmp(argument, "--random") == 0) {
        search->seed = options.random_seed = strtoull(value, NULL, 10);
        search->executions = 0; /* random runs only */
    } else if (strcmp(argument, "--runs") == 0) {
        search->random_runs = strtoull(value, NULL, 10);
    } else if (strcmp(argument, "--preemptions") == 0) {
        /* Unlimited, however long it takes. */
        search->limit[SIM_TURN] = search->limit[SIM_PREEMPTION] = (unsigned)strtoul(value, NULL, 10);
        search->deviations = 2 * search->limit[SIM_PREEMPTION];
        search->executions = UINT64_MAX / 8;
    } else if (strcmp(argument, "--executions") == 0) {
        search->executions = strtoull(value, NULL, 10);
    } else if (strcmp(argument, "--stale") == 0) {
        search->limit[SIM_STALE] = (unsigned)strtoul(value, NULL, 10);
    } else if (strcmp(argument, "--seconds") == 0) {
        search->seconds = strtod(value, NULL);
        search->random_runs = UINT64_MAX;
    } else {
        usage();
    }
}

static void read_options(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        if (flag(arguments[i])) continue;
        if (i + 1 == count) usage();
        option(arguments[i], arguments[i + 1]);
        i++;
    }
}

/* One execution, with its trace: true if it passes. */
static bool replay(const struct sim_scenario *scenario) {
    struct sim_report report;
    if (!sim_replay(scenario, options.replay, stdout, &report)) {
        fprintf(stderr, PROGRAM ": --replay takes choices like 12:1,40:2\n");
        exit(2);
    }
    printf("%s %s %s\n", report.failed ? "FAILED" : "ok    ", scenario->name, report.reason);
    return !report.failed;
}

int main(int count, char **arguments) {
    unsigned passed = 0, failed = 0;
    read_options(count, arguments);
    if (options.list) {
        list_everything();
        return 0;
    }
    if (options.replay && !options.scenario) usage();
    const char *part = options.part;
    unsigned only = sim_bug;
    for (unsigned i = 1; options.all_bugs && i < SIM_BUG_COUNT; i++) {
        bool wanted = only ? i == only : !part || strcmp(bugs[i].part, part) == 0;
        if (wanted) *(catch_bug(i) ? &passed : &failed) += 1;
    }
    for (const struct sim_scenario *scenario = next_scenario(NULL); scenario; scenario = next_scenario(scenario)) {
        if (!options.all_bugs && (!options.scenario || strcmp(options.scenario, scenario->name) == 0)) {
            *((options.replay ? replay(scenario) : explore(scenario)) ? &passed : &failed) += 1;
        }
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed || !passed ? 1 : 0;
}
