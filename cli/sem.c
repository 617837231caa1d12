/* SPDX-License-Identifier: MIT */
/* vigil sem: run at most a given number of commands at once. The permits of a process that is killed come back. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

/* 4; 50%, +1, -1: of the number of processors, or relative to it. Zero: invalid. */
static uint64_t read_slots(const char *text) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t number;
    size_t length = strlen(text);
    if (processors < 1) processors = 1;
    bool relative = text[0] == '+' || text[0] == '-', percent = length > 1 && text[length - 1] == '%';
    char digits[24];
    snprintf(digits, sizeof digits, "%.*s", (int)(length - relative - percent), text + relative);
    if (length >= sizeof digits || (relative && percent) || !cli_parse_count(digits, &number)) return 0;
    if (number > VIGIL_NAMED_SLOTS) return relative || percent ? 0 : number;
    int64_t slots = (int64_t)number;
    if (percent) slots = (int64_t)(number * (uint64_t)processors / 100);
    else if (relative) slots = processors + (text[0] == '+' ? slots : -slots);
    bool least = (percent && number) || relative;
    return slots < 1 ? least : (uint64_t)slots;
}

static int check_slots(const struct waiting *waiting, uint64_t wanted) {
    uint32_t slots = vigil_named_slots(waiting->named);
    if (!wanted || wanted == slots) return CLI_OK;
    return cli_fail(VIGIL_OK,
                    "%s has %u slots, not %llu: leave out --slots, or change it with vigil sem %s --set-slots %llu",
                    waiting->name, slots, (unsigned long long)wanted, waiting->name, (unsigned long long)wanted);
}

static int sem_open_and_run(uint64_t slots, unsigned mode, struct waiting *waiting, char **words) {
    static const struct run_steps steps = {0};
    const vigil_named_options options = {.slots = (uint32_t)slots, .existing = !slots, .mode = mode};
    waiting->named = run_open(waiting->name, &options);
    if (!waiting->named) return CLI_RUN_CANNOT;
    int status = check_slots(waiting, slots);
    if (status == CLI_OK) status = run_under(waiting, words, &steps, NULL);
    vigil_named_close(waiting->named);
    return status;
}

static int set_slots(const char *name, uint64_t slots) {
    const vigil_named_options options = {.existing = true};
    vigil_named *named = run_open(name, &options);
    if (!named) return CLI_RUN_CANNOT;
    int status = vigil_named_set_slots(named, (uint32_t)slots);
    if (status != VIGIL_OK) status = cli_fail(status, "%s", name);
    vigil_named_close(named);
    return status;
}

int cli_sem(int count, char **arguments) {
    struct waiting waiting = {.timeout_ns = VIGIL_FOREVER, .conflict = CLI_RUN_TIMED_OUT};
    bool try = false, fair = false;
    const char *slots_text = NULL, *set_text = NULL, *mode_text = NULL;
    char *name, **words;
    unsigned mode;
    const struct cli_option options[] = {
        {"slots", 'j', CLI_TEXT, &slots_text},
        {"set-slots", 0, CLI_TEXT, &set_text},
        {"timeout", 'w', CLI_DURATION, &waiting.timeout_ns},
        {"try", 'n', CLI_FLAG, &try},
        {"fair", 0, CLI_FLAG, &fair},
        {"mode", 0, CLI_TEXT, &mode_text},
        {"conflict-exit-code", 'E', CLI_COUNT, &waiting.conflict},
        {"wait-status", 0, CLI_FLAG, &waiting.wait_status},
        {0},
    };
    bool no_command = run_mentions(count, arguments, "--set-slots");
    if (!run_arguments(count, arguments, options, no_command, &name, &words)) return cli_usage_status();
    if (!run_mode(mode_text, &mode)) return cli_usage_status();
    const char *text = set_text ? set_text : slots_text;
    uint64_t slots = text ? read_slots(text) : 0;
    if (text && (slots < 1 || slots > VIGIL_NAMED_SLOTS))
        return cli_usage("%s must be a number from 1 to %u, or 50%% or +1 of the processors",
                         set_text ? "--set-slots" : "--slots", VIGIL_NAMED_SLOTS);
    if (set_text && words) return cli_usage("--set-slots changes the semaphore, and runs no command");
    if (waiting.conflict > 255) return cli_usage("-E: an exit status is from 0 to 255");
    if (set_text) return set_slots(name, slots);
    if (try) waiting.timeout_ns = 0;
    waiting.name = name;
    waiting.how = fair ? VIGIL_NAMED_FAIR : 0;
    run_signals_begin();
    return run_end(sem_open_and_run(slots, mode, &waiting, words));
}
