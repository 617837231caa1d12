/* SPDX-License-Identifier: MIT */
/* Segments by their names: create, rm and ls. */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "show.h"

static bool read_mode(const char *text, unsigned *mode) {
    size_t digits = strspn(text, "01234567");
    *mode = (unsigned)strtoul(text, NULL, 8);
    if (*mode && digits <= 4 && !text[digits]) return true;
    cli_usage("--mode: invalid mode '%s'; write an octal mode such as 0600 or 0660", text);
    return false;
}

/* A number that does not fit into the options' fields is above the limits in any case. */
static uint32_t clip(uint64_t count) {
    return count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

int cli_create(int count, char **arguments) {
    uint64_t length = 4096, max_length = 0, waiters = 1024, members = 64;
    const char *mode_text = "0600";
    const struct cli_option options[] = {{"length", 0, CLI_COUNT, &length},   {"max-length", 0, CLI_COUNT, &max_length},
                                         {"waiters", 0, CLI_COUNT, &waiters}, {"members", 0, CLI_COUNT, &members},
                                         {"mode", 0, CLI_TEXT, &mode_text},   {0}};
    struct cli_arguments parsed;
    unsigned mode;
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    if (parsed.operand_count != 1) return cli_usage("exactly one NAME is needed");
    if (!read_mode(mode_text, &mode)) return cli_usage_status();
    if (!length || !waiters || !members) return cli_usage("--length, --waiters and --members must be at least 1");
    const char *name = parsed.operands[0];
    vigil_buffer *buffer;
    if (cli_is_lock(name))
        return cli_fail(VIGIL_OK, "%s is a lock or a semaphore: choose another name, or remove it with vigil rm %s",
                        name, name);
    int status = vigil_segment_create(&buffer, name,
                                      &(vigil_segment_options){.length = length,
                                                               .max_length = max_length,
                                                               .waiters = clip(waiters),
                                                               .members = clip(members),
                                                               .mode = mode});
    if (status == VIGIL_EINVAL) return cli_usage("--mode: invalid mode %s; write 0600 plus bits of 0066", mode_text);
    if (status == VIGIL_ERANGE)
        return cli_usage("at most --waiters 1M and --members 64k; --max-length must not be below --length");
    if (status != VIGIL_OK) return cli_fail_segment(status, name);
    vigil_buffer_destroy(buffer);
    if (!cli_wants_json) return CLI_OK;
    struct cli_json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "status", vigil_status_name(VIGIL_OK));
    json_text(&json, "name", name);
    json_end(&json, '}');
    return CLI_OK;
}

/* What can be seen of a segment. */
struct seen {
    char *name;
    int status; /* of looking at it, or of removing it */
    int error;  /* errno, if the status is VIGIL_ESYSTEM */
    char kind[32];
    uint64_t bytes;
    uint32_t living, waiting;
    bool owner_died;
};

static void segments_look_at(struct seen *seen) {
    vigil_observer *observer;
    vigil_look look;
    seen->status = cli_observe(&observer, seen->name);
    seen->error = errno;
    if (seen->status != VIGIL_OK) return;
    seen->status = vigil_observer_look(observer, &look);
    if (seen->status == VIGIL_OK) {
        show_kind(&look, seen->kind);
        seen->owner_died = look.dead_owner != NULL;
        seen->bytes = look.length;
        for (uint32_t i = 0; i < look.member_count; i++) seen->living += look.members[i].alive;
        for (uint32_t i = 0; i < look.line_count; i++) seen->waiting += look.lines[i].waiter_count;
    }
    vigil_observer_close(observer);
}

static const char *what_is_wrong(const struct seen *seen) {
    switch (seen->status) {
    case VIGIL_EBUSY:
        return "a process has it open (see vigil show), or processes that a killed holder started still run; "
               "--force removes it all the same";
    case VIGIL_ENOTFOUND: return "no lock or segment has that name";
    default: return cli_why(seen->status, seen->error);
    }
}

static void put_name_and_status(struct cli_json *json, const struct seen *seen) {
    json_text(json, "name", seen->name);
    json_text(json, "status", vigil_status_name(seen->status));
    if (seen->status != VIGIL_OK) json_text(json, "error", what_is_wrong(seen));
}

/* Without --force, a damaged segment is refused as well: a process may have it open. */
static void remove_one(struct seen *seen, bool force) {
    bool path = strchr(seen->name, '/');
    if (path) seen->status = VIGIL_ENOTFOUND;
    else seen->status = force ? vigil_segment_unlink(seen->name) : vigil_segment_unlink_unused(seen->name);
    if (seen->status == VIGIL_ENOTFOUND) seen->status = vigil_named_remove(seen->name, force);
    seen->error = errno;
    if (force && seen->status == VIGIL_ENOTFOUND) seen->status = VIGIL_OK;
}

static void say_not_removed(const struct seen *seen) {
    errno = seen->error;
    if (seen->status == VIGIL_EBUSY) cli_fail(VIGIL_OK, "%s: %s", seen->name, what_is_wrong(seen));
    else cli_fail_segment(seen->status, seen->name);
}

static int remove_unused(void) {
    int64_t removed = vigil_named_remove_unused();
    if (removed < 0) return cli_fail_list((int)removed);
    if (!cli_wants_json) {
        printf("removed %lld\n", (long long)removed);
        return CLI_OK;
    }
    struct cli_json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "status", "ok");
    json_integer(&json, "removed", removed);
    json_end(&json, '}');
    return CLI_OK;
}

int cli_rm(int count, char **arguments) {
    bool force = false, unused = false;
    const struct cli_option options[] = {{"force", 'f', CLI_FLAG, &force}, {"unused", 0, CLI_FLAG, &unused}, {0}};
    struct cli_arguments parsed;
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    if (unused && (force || parsed.operand_count)) return cli_usage("--unused is for all names: leave out the others");
    if (unused) return remove_unused();
    if (parsed.operand_count == 0) return cli_usage("a NAME is missing");
    struct cli_json json;
    bool all = true;
    json_begin(&json, stdout);
    if (cli_wants_json) json_object(&json, NULL), json_array(&json, "segments");
    for (int i = 0; i < parsed.operand_count; i++) {
        struct seen seen = {.name = parsed.operands[i]};
        remove_one(&seen, force);
        all &= seen.status == VIGIL_OK;
        if (cli_wants_json) {
            json_object(&json, NULL);
            put_name_and_status(&json, &seen);
            json_end(&json, '}');
        } else if (seen.status != VIGIL_OK) {
            say_not_removed(&seen);
        }
    }
    if (cli_wants_json) {
        json_end(&json, ']');
        json_text(&json, "status", all ? "ok" : "cannot");
        json_end(&json, '}');
    }
    return all ? CLI_OK : CLI_CANNOT;
}

/* The list of ls. */
struct list {
    const char *pattern;
    struct seen *seen;
    size_t count, room;
};

static void add_to_list(const char *name, void *data) {
    struct list *list = data;
    if (list->pattern && fnmatch(list->pattern, name, 0) != 0) return;
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->seen = realloc(list->seen, list->room * sizeof *list->seen);
        if (!list->seen) exit(cli_fail(VIGIL_ENOMEM, "too many segments"));
    }
    list->seen[list->count++] = (struct seen){.name = strdup(name)};
}

static int segments_by_name(const void *one, const void *other) {
    return strcmp(((const struct seen *)one)->name, ((const struct seen *)other)->name);
}

static void print_names(const struct list *list) {
    for (size_t i = 0; i < list->count; i++) puts(list->seen[i].name);
}

static void segments_print_json(const struct list *list) {
    struct cli_json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "status", vigil_status_name(VIGIL_OK));
    json_array(&json, "segments");
    for (const struct seen *seen = list->seen; seen < list->seen + list->count; seen++) {
        json_object(&json, NULL);
        put_name_and_status(&json, seen);
        if (seen->status == VIGIL_OK) {
            json_text(&json, "kind", seen->kind);
            json_unsigned(&json, "bytes", seen->bytes);
            json_unsigned(&json, "members", seen->living);
            json_unsigned(&json, "waiting", seen->waiting);
            json_bool(&json, "owner_died", seen->owner_died);
        }
        json_end(&json, '}');
    }
    json_end(&json, ']');
    json_end(&json, '}');
}

static void print_table(const struct list *list) {
    int name_columns = 4, kind_columns = 4;
    for (const struct seen *seen = list->seen; seen < list->seen + list->count; seen++) {
        if ((int)strlen(seen->name) > name_columns) name_columns = (int)strlen(seen->name);
        if ((int)strlen(seen->kind) > kind_columns) kind_columns = (int)strlen(seen->kind);
    }
    bool colour = cli_colour(stdout);
    printf("%-*s  %-*s  %10s  %7s  %7s\n", name_columns, "NAME", kind_columns, "KIND", "BYTES", "MEMBERS", "WAITING");
    for (const struct seen *seen = list->seen; seen < list->seen + list->count; seen++) {
        printf("%-*s  ", name_columns, seen->name);
        if (seen->status == VIGIL_OK)
            printf("%-*s  %10" PRIu64 "  %7u  %7u%s\n", kind_columns, seen->kind, seen->bytes, seen->living,
                   seen->waiting, seen->owner_died ? "  owner died" : "");
        else printf("%s%s%s\n", colour ? "\033[31m" : "", what_is_wrong(seen), colour ? "\033[0m" : "");
    }
}

/* Drops segments that were removed since they were listed. */
static void look_at_all(struct list *list) {
    size_t left = 0;
    for (size_t i = 0; i < list->count; i++) {
        segments_look_at(&list->seen[i]);
        if (list->seen[i].status == VIGIL_ENOTFOUND) free(list->seen[i].name);
        else list->seen[left++] = list->seen[i];
    }
    list->count = left;
}

int cli_ls(int count, char **arguments) {
    bool names = false, all_users = false;
    const struct cli_option options[] = {{"names", 0, CLI_FLAG, &names}, {"all-users", 0, CLI_FLAG, &all_users}, {0}};
    struct cli_arguments parsed;
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    if (parsed.operand_count > 1) return cli_usage("give one PATTERN, in quotes, so that the shell does not expand it");
    struct list list = {.pattern = parsed.operand_count ? parsed.operands[0] : NULL};
    int64_t status = cli_list_names(all_users, add_to_list, &list);
    if (status < 0) return cli_fail_list((int)status);
    if (list.count) qsort(list.seen, list.count, sizeof *list.seen, segments_by_name);
    if (cli_wants_json || !names) look_at_all(&list);
    if (cli_wants_json) segments_print_json(&list);
    else if (names) print_names(&list);
    else if (list.count) print_table(&list);
    for (size_t i = 0; i < list.count; i++) free(list.seen[i].name);
    free(list.seen);
    return CLI_OK;
}
