/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <string.h>

#include "cli.h"

#define WORD_MAX 32

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Levenshtein's: of the table of the distances between beginnings, a row at a time is enough. */
unsigned cli_distance(const char *one, const char *other) {
    unsigned row[WORD_MAX + 1], length = (unsigned)strlen(other);
    if (length > WORD_MAX) return length;
    for (unsigned j = 0; j <= length; j++) row[j] = j;
    for (unsigned i = 0; one[i]; i++) {
        unsigned diagonal = row[0];
        row[0] = i + 1;
        for (unsigned j = 0; j < length; j++) {
            unsigned above = row[j + 1];
            row[j + 1] = least(least(row[j], above) + 1, diagonal + (one[i] != other[j]));
            diagonal = above;
        }
    }
    return row[length];
}

static bool helped;
/* What every subcommand has. */
static const struct cli_option general[] = {
    {"json", 0, CLI_FLAG, &cli_wants_json}, {"help", 'h', CLI_FLAG, &helped}, {0}};

/* Of the length given, as "--name=value" has only the first part for a name. */
static const struct cli_option *named(const struct cli_option *option, const char *name, size_t length) {
    for (; option->name; option++)
        if (strlen(option->name) == length && strncmp(option->name, name, length) == 0) return option;
    return NULL;
}

static const struct cli_option *lettered(const struct cli_option *option, char letter) {
    while (option->name && option->letter != letter) option++;
    return option->name ? option : NULL;
}

static bool unknown(const struct cli_option *options, const char *argument) {
    const char *nearest = NULL;
    unsigned distance = 3;
    for (const struct cli_option *option = options; option->name && strncmp(argument, "--", 2) == 0; option++) {
        unsigned here = cli_distance(argument + 2, option->name);
        if (here < distance) distance = here, nearest = option->name;
    }
    if (nearest) cli_usage("there is no option %s (did you mean --%s?)", argument, nearest);
    else cli_usage("there is no option %s", argument);
    return false;
}

static bool set(const struct cli_option *option, const char *value) {
    switch (option->type) {
    case CLI_FLAG: *(bool *)option->value = true; return true;
    case CLI_TEXT: *(const char **)option->value = value; return true;
    case CLI_DURATION:
        if (cli_parse_duration(value, option->value)) return true;
        cli_usage("--%s %s is no duration, such as 250ms, 30s, 5m or 1.5h", option->name, value);
        return false;
    case CLI_COUNT:
        if (cli_parse_count(value, option->value)) return true;
        cli_usage("--%s %s is no count, such as 12, 4k or 1M", option->name, value);
        return false;
    }
    return false;
}

/* With the value it needs: in the same argument, or the next, to which *at is moved. */
static bool set_with(const struct cli_option *option, const char *value, int count, char **arguments, int *at) {
    if (option->type == CLI_FLAG) {
        if (!value) return set(option, NULL);
        cli_usage("--%s takes no value", option->name);
        return false;
    }
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
    if (!option) return unknown(options, argument);
    return set_with(option, name[length] ? name + length + 1 : NULL, count, arguments, at);
}

/* -o FILE and -oFILE; flags in a row. */
static bool read_short(const struct cli_option *options, int count, char **arguments, int *at) {
    for (const char *argument = arguments[*at], *letter = argument + 1; *letter; letter++) {
        const struct cli_option *option = lettered(options, *letter);
        if (!option) option = lettered(general, *letter);
        if (!option) return unknown(options, argument);
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
    if (cli_now && cli_now->runs_command) return;
    for (int i = 1; i < count; i++)
        if (strcmp(arguments[i], "--json") == 0) cli_wants_json = true;
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
        } else if (!cli_now->runs_command || (parsed->operand_count == 0 && !options_ended)) {
            parsed->operands[parsed->operand_count++] = arguments[i];
            continue;
        }
        if (!cli_now->runs_command) continue;
        parsed->command = arguments + i + ends_options;
        break;
    }
    return true;
}

int cli_usage_status(void) {
    if (helped) return CLI_OK;
    return cli_now && cli_now->runs_command ? CLI_RUN_CANNOT : CLI_USAGE;
}
