/* SPDX-License-Identifier: MIT */
/*
 * remote_search - the recipes of remote/ against a model of etcd.
 *
 * Without arguments it explores every scenario: all executions with few deviations, and then random ones. With --bugs
 * it switches the planted bugs on, one after the other (or only the one of --bug). Every bug must be caught.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planted.h"
#include "search.h"

struct bug {
    const char *scenario, *name, *text;
};
#define X(scenario, name, text) {#scenario, #name, text},
static const struct bug bugs[REMOTE_BUG_COUNT] = {{"", "none", ""}, REMOTE_BUGS(X)};
#undef X

static struct {
    const char *scenario, *replay;
    bool list, all_bugs, trace;
    struct sim_search search;
} options = {
    .search = {.limit = {9, 9, 9, 9, 9, 9}, .deviations = 4, .executions = 2000, .random_runs = 1000, .seed = 1},
};

static void show_failure(const struct scenario *scenario, const struct sim_report *report) {
    struct sim_report again;
    printf("FAILED %s (%s)\n", scenario->sim.name, scenario->sim.about);
    if (report->seed) sim_replay_random(&scenario->sim, report->seed, stdout, &again);
    else sim_replay(&scenario->sim, report->replay, stdout, &again);
    printf("       %s\n       to see it again: remote_search --scenario %s", report->reason, scenario->sim.name);
    if (remote_bug) printf(" --bug %s", bugs[remote_bug].name);
    if (report->seed) printf(" --random %llu --runs 1\n", (unsigned long long)report->seed);
    else printf(" --replay '%s'\n", report->replay);
    if (!again.failed || strcmp(again.reason, report->reason) != 0)
        printf("       but it did not fail in this way a second time: something is not deterministic\n");
}

static bool explore(const struct scenario *scenario) {
    struct sim_report report;
    sim_explore(&scenario->sim, &options.search, &report);
    if (report.failed) {
        show_failure(scenario, &report);
        return false;
    }
    printf("ok     %-22s all %7llu executions up to %d deviations, %llu random ones\n", scenario->sim.name,
           (unsigned long long)report.executions, report.deviations, (unsigned long long)report.random_runs);
    fflush(stdout);
    return true;
}

static bool replay(const struct scenario *scenario) {
    struct sim_report report;
    if (!sim_replay(&scenario->sim, options.replay, stdout, &report)) {
        fprintf(stderr, "remote_search: --replay takes choices like 12:1,40:2\n");
        exit(2);
    }
    printf("%s %s %s\n", report.failed ? "FAILED" : "ok    ", scenario->sim.name, report.reason);
    return !report.failed;
}

static const struct sim_search effort = {
    .limit = {9, 9, 9, 9, 9, 9}, .deviations = 4, .executions = 50000, .random_runs = 50000, .seed = 1};

static bool catch_bug(unsigned bug) {
    struct sim_report report = {.failed = false};
    const struct scenario *scenario = remote_scenarios;
    while (scenario->sim.name && strcmp(scenario->sim.name, bugs[bug].scenario) != 0) scenario++;
    remote_bug = bug;
    if (scenario->sim.name) sim_explore(&scenario->sim, &effort, &report);
    if (report.failed)
        printf("caught %-26s by %-20s after %llu executions: %.90s\n", bugs[bug].name, scenario->sim.name,
               (unsigned long long)(report.executions + report.random_runs), report.reason);
    else printf("FAILED %-26s survives: %s\n", bugs[bug].name, bugs[bug].text);
    fflush(stdout);
    return report.failed;
}

static unsigned find_bug(const char *name) {
    for (unsigned i = 1; i < REMOTE_BUG_COUNT; i++)
        if (strcmp(bugs[i].name, name) == 0) return i;
    fprintf(stderr, "remote_search: there is no bug %s\n", name);
    exit(2);
}

static void list_everything(void) {
    for (const struct scenario *scenario = remote_scenarios; scenario->sim.name; scenario++)
        printf("%-28s %s\n", scenario->sim.name, scenario->sim.about);
    printf("\nplanted bugs:\n");
    for (unsigned i = 1; i < REMOTE_BUG_COUNT; i++) printf("%-28s %s\n", bugs[i].name, bugs[i].text);
}

static void usage(void) {
    fprintf(stderr, "usage: remote_search [--list] [--bugs] [--scenario NAME] [--bug NAME] [--replay CHOICES]\n"
                    "                     [--random SEED] [--runs N] [--executions N] [--seconds N]\n"
                    "--executions is how many the exhaustive part of a scenario may take, about\n"
                    "--seconds is for each scenario; what the exhaustive part leaves of it goes to random runs\n");
    exit(2);
}

static void read_option(const char *argument, const char *value) {
    struct sim_search *search = &options.search;
    if (strcmp(argument, "--scenario") == 0) options.scenario = value;
    else if (strcmp(argument, "--bug") == 0) remote_bug = find_bug(value);
    else if (strcmp(argument, "--replay") == 0) options.replay = value;
    else if (strcmp(argument, "--runs") == 0) search->random_runs = strtoull(value, NULL, 10);
    else if (strcmp(argument, "--executions") == 0) search->executions = strtoull(value, NULL, 10);
    else if (strcmp(argument, "--random") == 0) {
        search->seed = strtoull(value, NULL, 10);
        search->executions = 0;
    } else if (strcmp(argument, "--seconds") == 0) {
        search->seconds = strtod(value, NULL);
        search->random_runs = UINT64_MAX;
    } else usage();
}

static void read_options(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--list") == 0) options.list = true;
        else if (strcmp(arguments[i], "--bugs") == 0) options.all_bugs = true;
        else if (i + 1 == count) usage();
        else {
            read_option(arguments[i], arguments[i + 1]);
            i++;
        }
    }
}

int main(int count, char **arguments) {
    unsigned passed = 0, failed = 0;
    read_options(count, arguments);
    if (options.list) {
        list_everything();
        return 0;
    }
    unsigned only = remote_bug;
    for (unsigned i = 1; options.all_bugs && i < REMOTE_BUG_COUNT; i++)
        if (!only || only == i) *(catch_bug(i) ? &passed : &failed) += 1;
    for (const struct scenario *scenario = remote_scenarios; !options.all_bugs && scenario->sim.name; scenario++) {
        if (options.scenario && strcmp(options.scenario, scenario->sim.name) != 0) continue;
        *((options.replay ? replay(scenario) : explore(scenario)) ? &passed : &failed) += 1;
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed || !passed ? 1 : 0;
}
