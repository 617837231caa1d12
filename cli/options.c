/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <string.h>

#include "cli.h"

#define WORD_MAX 32

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Levenshtein distance, where a swap of two neighbouring letters counts as one edit. from[i][j] is the distance
 * between the first i letters of `typed` and the first j of `name`. */
unsigned cli_distance(const char *typed, const char *name) {
    unsigned from[WORD_MAX + 1][WORD_MAX + 1], rows = (unsigned)strlen(typed), columns = (unsigned)strlen(name);
    if (rows > WORD_MAX || columns > WORD_MAX) return CLI_FAR;
    for (unsigned i = 0; i <= rows; i++) {
        for (unsigned j = 0; j <= columns; j++) {
            from[i][j] = i + j;
            if (!i || !j) continue;
            bool swapped = i > 1 && j > 1 && typed[i - 1] == name[j - 2] && typed[i - 2] == name[j - 1];
            unsigned changed = from[i - 1][j - 1] + (typed[i - 1] != name[j - 1]);
            from[i][j] = least(least(from[i - 1][j], from[i][j - 1]) + 1, changed);
            if (swapped) from[i][j] = least(from[i][j], from[i - 2][j - 2] + 1);
        }
    }
    unsigned slips = columns > 4 ? 2 : 1; /* two edits turn a short name into any other */
    return from[rows][columns] <= slips ? from[rows][columns] : CLI_FAR;
}

static bool helped, json;
/* The options that every subcommand has. */
static const struct cli_option general[] = {{"json", 0, CLI_FLAG, &json}, {"help", 'h', CLI_FLAG, &helped}, {0}};

/* Finds an option by the first `length` bytes of `name`: in "--name=value" the name ends at "=". */
static const struct cli_option *named(const struct cli_option *option, const char *name, size_t length) {
    for (; option->name; option++)
        if (strlen(option->name) == length && strncmp(option->name, name, length) == 0) return option;
    return NULL;
}

static const struct cli_option *lettered(const struct cli_option *option, char letter) {
    while (option->name && option->letter != letter) option++;
    return option->name ? option : NULL;
}

static const char *nearest_to(const char *name, const struct cli_option *options, unsigned *distance) {
    const char *nearest = NULL;
    for (const struct cli_option *option = options; option->name; option++) {
        unsigned here = cli_distance(name, option->name);
        if (here < *distance) *distance = here, nearest = option->name;
    }
    return nearest;
}

/*
 * Options of flock(1), of sem of GNU parallel, and of setlock of daemontools, for users of those: what to
 * write instead. Only options that vigil lock or vigil sem does not have are looked up.
 */
static const struct foreign {
    const char *whose;
    char letter;      /* 0: none */
    const char *name; /* "": none */
    const char *value;
    const char *only; /* the subcommand for which this is said; "": both */
    const char *text;
} foreign[] = {
    {"flock's", 's', "shared", "", "sem", "is an option of vigil lock: a semaphore has --slots N"},
    {"flock's", 'e', "exclusive", "", "lock", "is not needed: a lock is exclusive without --shared"},
    {"flock's", 'x', "exclusive", "", "sem", "is --slots 1"},
    {"flock's", 'e', "exclusive", "", "sem", "is --slots 1"},
    {"flock's", 0, "nb", "", "", "is --try"},
    {"flock's", 'n', "nonblock", "", "", "is --try"},
    {"sem's", 0, "wait", "", "sem", "is wait of the shell, after commands that were started with &"},
    {"flock's", 'w', "wait", " T", "", "is --timeout T"},
    {"flock's", 'o', "close", "", "", "is not needed: what the command has started may run on without it"},
    {"flock's", 'u', "unlock", "", "", "is not needed: the lock or slot is free when the command ends"},
    {"flock's", 'c', "command", " COMMAND", "", "is -- sh -c COMMAND"},
    {"flock's", 'F', "no-fork", "", "", "is not available: vigil waits for the command to end"},
    {"flock's", 0, "verbose", "", "", "is --wait-status, or --json"},
    {"sem's", 'j', "jobs", " N", "sem", "is --slots N"},
    {"sem's", 'j', "jobs", " N", "lock", "is --slots N of vigil sem"},
    {"sem's", 0, "id", " NAME", "", "is not needed: NAME is the first operand"},
    {"sem's", 0, "semaphorename", " NAME", "", "is not needed: NAME is the first operand"},
    {"sem's", 0, "fg", "", "", "is not needed: vigil returns when the command ends"},
    {"sem's", 0, "bg", "", "", "is & of the shell, after the command"},
    {"sem's", 0, "st", " T", "", "is --timeout T, after which the command is not run"},
    {"sem's", 0, "semaphoretimeout", " T", "", "is --timeout T, after which the command is not run"},
    {"setlock's", 'N', "", "", "", "is not needed: vigil waits without --try"},
    {"setlock's", 'X', "", "", "", "is not needed: if that is not free, the status is 124"},
};

/* By its letter or, if that is 0, by its name. Prints what to write instead; false if it is none of these. */
static bool explain_foreign(char letter, const char *name) {
    for (const struct foreign *row = foreign; row < foreign + sizeof foreign / sizeof *foreign; row++) {
        bool here = *row->only ? strcmp(row->only, cli_now->name) == 0 : cli_now->runs_command && !cli_now->has_no_name;
        bool same = letter ? row->letter == letter : *name && strcmp(row->name, name) == 0;
        if (!here || !same) continue;
        const char short_name[] = {letter, 0};
        cli_usage("%s %s%s%s %s", row->whose, letter ? "-" : "--", letter ? short_name : name, row->value, row->text);
        return true;
    }
    return false;
}

/* The letter is the unknown one of an argument with one dash. */
static bool options_unknown(const struct cli_option *options, const char *argument, char letter) {
    char name[WORD_MAX + 2] = ""; /* room for one letter too many, so that cli_distance sees that it is too long */
    if (!letter) snprintf(name, sizeof name, "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    if (explain_foreign(letter, name)) return false;
    unsigned distance = CLI_FAR;
    const char *own = nearest_to(name, options, &distance), *nearest = nearest_to(name, general, &distance);
    if (!nearest) nearest = own;
    if (nearest) cli_usage("unknown option %s (did you mean --%s?)", argument, nearest);
    else cli_usage("unknown option %s", argument);
    return false;
}

static bool set(const struct cli_option *option, const char *value) {
    switch (option->type) {
    case CLI_FLAG: *(bool *)option->value = true; return true;
    case CLI_TEXT: *(const char **)option->value = value; return true;
    case CLI_MAYBE: *(const char **)option->value = value ? value : ""; return true;
    case CLI_DURATION:
        if (!cli_parse_duration(value, option->value))
            cli_usage("--%s: invalid duration '%s'; write 250ms, 30s, 5m or 1.5h", option->name, value);
        else if (*(int64_t *)option->value == VIGIL_FOREVER)
            cli_usage("--%s %s is too long: the maximum is %dd", option->name, value, CLI_DURATION_DAYS);
        else return true;
        return false;
    case CLI_COUNT:
        if (cli_parse_count(value, option->value)) return true;
        cli_usage("--%s: invalid number '%s'; write 12, 4k or 1M", option->name, value);
        return false;
    }
    return false;
}

/* Sets the option with its value: from the same argument, or from the next one, to which *at is moved. */
static bool set_with(const struct cli_option *option, const char *value, int count, char **arguments, int *at) {
    if (option->type == CLI_FLAG) {
        if (!value) return set(option, NULL);
        cli_usage("--%s takes no value", option->name);
        return false;
    }
    if (option->type == CLI_MAYBE) return set(option, value); /* only in the same argument */
    if (!value && *at + 1 < count && strcmp(arguments[*at + 1], "--") != 0) value = arguments[++*at];
    if (value) return set(option, value);
    cli_usage("--%s needs a value", option->name);
    return false;
}

static bool read_long(const struct cli_option *options, int count, char **arguments, int *at) {
    const char *argument = arguments[*at], *name = argument + 2;
    size_t length = strcspn(name, "=");
    const struct cli_option *option = named(options, name, length);
    if (!option) option = named(general, name, length);
    if (!option) return options_unknown(options, argument, 0);
    return set_with(option, name[length] ? name + length + 1 : NULL, count, arguments, at);
}

/* -o FILE, -oFILE, and several flags in one argument. */
static bool read_short(const struct cli_option *options, int count, char **arguments, int *at) {
    for (const char *argument = arguments[*at], *letter = argument + 1; *letter; letter++) {
        const struct cli_option *option = lettered(options, *letter);
        if (!option) option = lettered(general, *letter);
        if (!option) return options_unknown(options, argument, *letter);
        bool has_value = option->type != CLI_FLAG;
        if (!set_with(option, has_value && letter[1] ? letter + 1 : NULL, count, arguments, at)) return false;
        if (has_value) break;
    }
    return true;
}

static bool read_option(const struct cli_option *options, int count, char **arguments, int *at) {
    bool is_long = arguments[*at][1] == '-';
    bool good = (is_long ? read_long : read_short)(options, count, arguments, at);
    if (good && helped) fputs(cli_now->help, stdout);
    return good && !helped;
}

static bool is_option(const char *argument) {
    return argument[0] == '-' && argument[1] && !isdigit((unsigned char)argument[1]); /* -1 is a number */
}

void cli_look_for_json(int count, char **arguments) {
    for (int i = 1; i < count && strcmp(arguments[i], "--") != 0; i++)
        if (strcmp(arguments[i], "--json") == 0) cli_wants_json = true;
}

/* Subcommands that create segments refuse a name that looks like an option. */
static bool check_name(const struct cli_arguments *parsed) {
    bool makes_it = cli_now->runs_command || strcmp(cli_now->name, "create") == 0;
    const char *name = parsed->operand_count ? parsed->operands[0] : "";
    if (!makes_it || name[0] != '-') return true;
    cli_usage("the name '%s' begins with a dash, like an option: choose another name", name);
    return false;
}

/* The operands are moved to the front of the arguments. */
bool cli_options(int count, char **arguments, const struct cli_option *options, struct cli_arguments *parsed) {
    *parsed = (struct cli_arguments){.operands = arguments + 1};
    bool options_ended = false;
    cli_look_for_json(count, arguments);
    for (int i = 1; i < count; i++) {
        bool ends_options = !options_ended && strcmp(arguments[i], "--") == 0;
        if (ends_options) {
            options_ended = true;
        } else if (!options_ended && is_option(arguments[i])) {
            if (!read_option(options, count, arguments, &i)) return false;
            continue;
        } else if (!cli_now->runs_command || (parsed->operand_count == 0 && !options_ended && !cli_now->has_no_name)) {
            parsed->operands[parsed->operand_count++] = arguments[i];
            continue;
        }
        if (!cli_now->runs_command) continue;
        parsed->command = arguments + i + ends_options;
        break;
    }
    if (cli_now->runs_command) cli_wants_json = json; /* cli_look_for_json may have found the command's --json */
    return check_name(parsed);
}

int cli_usage_status(void) {
    if (helped) return CLI_OK;
    return cli_now && cli_now->runs_command ? CLI_RUN_CANNOT : CLI_USAGE;
}
