/* SPDX-License-Identifier: MIT */
/* vigil show NAME: a segment's members, holders and waiters. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "colours.h"
#include "served.h"
#include "show.h"

#define COMMAND_MAX 4096 /* bytes of a command line, if no terminal limits it */

void show_kind(const vigil_look *look, char kind[32]) {
    if (look->slots) snprintf(kind, 32, "%.20s %u", look->label, look->slots);
    else cli_visible(kind, 32, *look->label ? look->label : "words");
}

/* Offsets as vigil/observe.h says. */
void show_line_name(const vigil_look *look, const vigil_seen_line *line, char name[32]) {
    bool lock = strcmp(look->label, "vigil lock") == 0, sem = strcmp(look->label, "vigil sem") == 0;
    if ((lock || sem) && line->offset == 0) strcpy(name, "turnstile");
    else if (lock && line->offset == 4) strcpy(name, "lock");
    else if (sem && line->offset == 8) strcpy(name, "slots");
    else snprintf(name, 32, "byte %llu", (unsigned long long)line->offset);
}

void show_owner_died(const vigil_named_holder *dead, char *text, size_t bytes) {
    char ago[16], task[64], holder[160] = "";
    if (dead) {
        int64_t seconds = (int64_t)time(NULL) - dead->taken_at;
        cli_print_duration(ago, (seconds < 0 ? 0 : seconds) * INT64_C(1000000000));
        cli_visible(task, sizeof task, dead->text);
        snprintf(holder, sizeof holder, ", pid %u%s (%s), which %s %s%s,", dead->pid,
                 dead->other_space ? " of another pid namespace" : "", task, seconds > 0 ? "took it" : "had just taken",
                 seconds > 0 ? ago : "it", seconds > 0 ? " ago" : "");
    }
    snprintf(text, bytes, "its last holder%s was killed while holding it", holder);
}

const vigil_seen_member *show_member(const vigil_look *look, uint32_t number) {
    for (uint32_t i = 0; i < look->member_count; i++) {
        if (look->members[i].number == number) return &look->members[i];
    }
    return NULL;
}

/* The command line; or "(dead)" and the program. */
static void show_command(const vigil_seen_member *member, char *text, size_t bytes) {
    if (!member) snprintf(text, bytes, "(dead)");
    else if (member->alive) cli_command_line(member, text, bytes);
    else cli_visible(text + snprintf(text, bytes, "(dead) "), bytes - 7, member->program);
}

void show_task(const vigil_look *look, uint32_t number, char *text, size_t bytes) {
    static char task[COMMAND_MAX];
    const vigil_seen_member *member = show_member(look, number);
    if (member && member->alive) cli_task(member, task, sizeof task);
    else show_command(member, task, sizeof task);
    cli_visible(text, bytes, cli_without_folder(task));
}

/* Text. */

struct page {
    FILE *out;
    const vigil_look *look;
    size_t columns;
    bool colour;
};

static const char *show_paint(const struct page *page, const char *colour) {
    return page->colour ? colour : "";
}

static bool is_dead(const vigil_look *look, uint32_t number) {
    const vigil_seen_member *member = show_member(look, number);
    return !member || !member->alive;
}

/* How many bytes of text, the final 0 included, fit to the right of `used` columns. */
static size_t room(const struct page *page, size_t used) {
    size_t left = page->columns > used + 16 ? page->columns - used : 16;
    return left < COMMAND_MAX ? left + 1 : COMMAND_MAX;
}

static void print_heading(const struct page *page, const char *name) {
    const vigil_look *look = page->look;
    char kind[32];
    show_kind(look, kind);
    fprintf(page->out, "%s%s%s: %s, %llu bytes", show_paint(page, BOLD), name, show_paint(page, PLAIN), kind,
            (unsigned long long)look->length);
    if (look->max_length > look->length) fprintf(page->out, " of %llu", (unsigned long long)look->max_length);
    fprintf(page->out, "\n%u of %u members, %u of %u slots for waiters and holders used\n", look->member_count,
            look->members_most, look->slots_used, look->waiters_most);
}

static void print_members(const struct page *page) {
    static char text[COMMAND_MAX];
    fprintf(page->out, "\n%s%8s  COMMAND%s\n", show_paint(page, FAINT), "PID", show_paint(page, PLAIN));
    for (uint32_t i = 0; i < page->look->member_count; i++) {
        const vigil_seen_member *member = &page->look->members[i];
        show_command(member, text, room(page, 10));
        fprintf(page->out, "%8u  %s%s%s%s\n", member->pid, show_paint(page, member->alive ? "" : RED), text,
                show_paint(page, PLAIN), member->other_space ? "  (pid of another namespace)" : "");
    }
    if (page->look->member_count == 0) fprintf(page->out, "%8s  no process has it open\n", "");
}

/* How a process holds a read-write lock, or wants it. A vigil lock neither reads nor writes. */
static const char *share_name(const struct page *page, bool shared, bool has) {
    if (strcmp(page->look->label, "vigil lock") == 0) return shared ? "shared" : "alone";
    return shared ? has ? "reads" : "to read" : has ? "writes" : "to write";
}

/* A holder or waiter; `what` it holds or wants: "reads", "2 permits". */
static void show_print_row(const struct page *page, const char *place, int64_t since_ns, uint32_t number,
                           const char *way, const char *what, const char *colour) {
    static char task[COMMAND_MAX];
    char duration[16] = "?", pid[12] = "?", beside[40] = "";
    const vigil_seen_member *member = show_member(page->look, number);
    if (since_ns) cli_print_duration(duration, page->look->at_ns - since_ns);
    uint32_t task_pid = member ? cli_task_pid(member) : 0;
    if (member) snprintf(pid, sizeof pid, "%u%s", task_pid, member->other_space ? "*" : "");
    if (member && task_pid != member->pid) snprintf(beside, sizeof beside, "  (vigil: %u)", member->pid);
    if (member && member->other_space) strcpy(beside, "  (* in another pid namespace)");
    show_task(page->look, number, task, room(page, 52 + strlen(beside)));
    if (is_dead(page->look, number)) colour = RED;
    fprintf(page->out, "%8s %s%-6s %8s  %-14s %-9s %s%s%s\n", pid, show_paint(page, colour), place, duration, way, what,
            task, show_paint(page, PLAIN), beside);
}

static void print_permits(char text[24], uint32_t count) {
    snprintf(text, 24, "%u permit%s", count, count == 1 ? "" : "s");
}

static void print_holder(const struct page *page, const vigil_seen_line *line, const vigil_seen_holder *holder) {
    char what[24] = "";
    if (line->kind == VIGIL_SEEN_RWLOCK) strcpy(what, share_name(page, holder->shared, true));
    if (line->kind == VIGIL_SEEN_SEM) print_permits(what, holder->count);
    show_print_row(page, "holds", holder->since_ns, holder->number, "", what, GREEN);
}

static void show_print_waiter(const struct page *page, const vigil_seen_line *line, uint32_t place) {
    const vigil_seen_waiter *waiter = &line->waiters[place];
    char text[12], way[24] = "event loop", what[24] = "";
    snprintf(text, sizeof text, "%u", place + 1);
    if (waiter->thread_id) snprintf(way, sizeof way, "thread %u", waiter->thread_id);
    if (line->kind == VIGIL_SEEN_RWLOCK) strcpy(what, share_name(page, waiter->shared, false));
    if (waiter->permits) print_permits(what, waiter->permits);
    show_print_row(page, waiter->called ? "called" : text, waiter->since_ns, waiter->number, way, what,
                   waiter->thread_id ? YELLOW : CYAN);
}

static void print_owner_died(const struct page *page) {
    char text[224] = "its owner died";
    if (page->look->dead_owner) show_owner_died(page->look->dead_owner, text, sizeof text);
    fprintf(page->out, ", %s%s%s", show_paint(page, RED), text, show_paint(page, PLAIN));
}

static void show_print_line(const struct page *page, const vigil_seen_line *line) {
    char name[32], at[40] = "";
    show_line_name(page->look, line, name);
    if (strncmp(name, "byte ", 5) != 0) snprintf(at, sizeof at, " at byte %llu", (unsigned long long)line->offset);
    fprintf(page->out, "\n%s%s%s: %s%s", show_paint(page, BOLD), name, show_paint(page, PLAIN),
            vigil_seen_kind_name(line->kind), at);
    /* The word may have 64 bits; only its waiters know. */
    if (line->kind == VIGIL_SEEN_WORD) fprintf(page->out, ", as i32 %d", (int32_t)line->value);
    if (line->owner_died) print_owner_died(page);
    fprintf(page->out, "\n%s%8s %-6s %8s  %-14s %-9s %s%s\n", show_paint(page, FAINT), "PID", "PLACE", "FOR",
            "WAITS AS", "", "COMMAND", show_paint(page, PLAIN));
    for (uint32_t i = 0; i < line->holder_count; i++) print_holder(page, line, &line->holders[i]);
    for (uint32_t i = 0; i < line->waiter_count; i++) show_print_waiter(page, line, i);
}

void show_text(FILE *out, const char *name, const vigil_look *look, size_t columns, bool colour) {
    struct page page = {out, look, columns, colour};
    print_heading(&page, name);
    print_members(&page);
    for (uint32_t i = 0; i < look->line_count; i++) show_print_line(&page, &look->lines[i]);
    if (look->line_count == 0) fprintf(out, "\nThere are no waiters, and no holders are seen.\n");
}

/* JSON. */

static void json_members(struct cli_json *json, const vigil_look *look) {
    static char text[COMMAND_MAX];
    json_array(json, "members");
    for (uint32_t i = 0; i < look->member_count; i++) {
        const vigil_seen_member *member = &look->members[i];
        cli_command_line(member, text, sizeof text);
        json_object(json, NULL);
        json_unsigned(json, "number", member->number);
        json_unsigned(json, "pid", member->pid);
        json_bool(json, "other_pid_namespace", member->other_space);
        json_bool(json, "alive", member->alive);
        json_text(json, "program", member->program);
        json_text(json, "command", text);
        json_end(json, '}');
    }
    json_end(json, ']');
}

static void show_json_process(struct cli_json *json, const vigil_look *look, uint32_t number) {
    const vigil_seen_member *member = show_member(look, number);
    json_unsigned(json, "number", number);
    if (member) json_unsigned(json, "pid", member->pid);
    else json_null(json, "pid");
    if (member) json_unsigned(json, "command_pid", cli_task_pid(member));
    else json_null(json, "command_pid");
}

static void json_holder(struct cli_json *json, const vigil_look *look, const vigil_seen_holder *holder) {
    json_object(json, NULL);
    show_json_process(json, look, holder->number);
    json_bool(json, "shared", holder->shared);
    json_unsigned(json, "count", holder->count);
    if (holder->since_ns) json_integer(json, "for_ns", look->at_ns - holder->since_ns);
    else json_null(json, "for_ns");
    json_end(json, '}');
}

static void show_json_waiter(struct cli_json *json, const vigil_look *look, const vigil_seen_waiter *waiter) {
    json_object(json, NULL);
    show_json_process(json, look, waiter->number);
    if (waiter->thread_id) json_unsigned(json, "thread_id", waiter->thread_id);
    else json_null(json, "thread_id");
    json_text(json, "kind", vigil_seen_kind_name(waiter->kind));
    json_bool(json, "asynchronous", waiter->thread_id == 0);
    json_bool(json, "called", waiter->called);
    json_bool(json, "shared", waiter->shared);
    json_unsigned(json, "permits", waiter->permits);
    json_integer(json, "for_ns", look->at_ns - waiter->since_ns);
    json_end(json, '}');
}

static void json_line(struct cli_json *json, const vigil_look *look, const vigil_seen_line *line) {
    char name[32];
    show_line_name(look, line, name);
    json_object(json, NULL);
    json_text(json, "line", name);
    json_unsigned(json, "offset", line->offset);
    json_text(json, "kind", vigil_seen_kind_name(line->kind));
    json_integer(json, "i32", (int32_t)line->value);
    json_bool(json, "owner_died", line->owner_died);
    json_array(json, "holders");
    for (uint32_t i = 0; i < line->holder_count; i++) json_holder(json, look, &line->holders[i]);
    json_end(json, ']');
    json_array(json, "waiters");
    for (uint32_t i = 0; i < line->waiter_count; i++) show_json_waiter(json, look, &line->waiters[i]);
    json_end(json, ']');
    json_end(json, '}');
}

static void json_dead_owner(struct cli_json *json, const vigil_named_holder *dead) {
    if (!dead) {
        json_null(json, "dead_owner");
        return;
    }
    json_object(json, "dead_owner");
    json_unsigned(json, "pid", dead->pid);
    json_bool(json, "other_pid_namespace", dead->other_space);
    json_integer(json, "taken_at", dead->taken_at);
    json_text(json, "command", dead->text);
    json_end(json, '}');
}

void show_json(struct cli_json *json, const char *name, const vigil_look *look) {
    json_object(json, NULL);
    json_text(json, "status", vigil_status_name(VIGIL_OK));
    json_text(json, "name", name);
    json_text(json, "label", look->label);
    json_integer(json, "at_ns", look->at_ns);
    json_unsigned(json, "length", look->length);
    json_unsigned(json, "max_length", look->max_length);
    json_unsigned(json, "members_most", look->members_most);
    json_unsigned(json, "slots_most", look->waiters_most);
    json_unsigned(json, "slots_used", look->slots_used);
    json_dead_owner(json, look->dead_owner);
    json_members(json, look);
    json_array(json, "lines");
    for (uint32_t i = 0; i < look->line_count; i++) json_line(json, look, &look->lines[i]);
    json_end(json, ']');
    json_end(json, '}');
}

static size_t columns_of_stdout(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : SIZE_MAX;
}

int cli_show(int count, char **arguments) {
    static const struct cli_option options[] = {{0}};
    struct cli_arguments parsed;
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    if (parsed.operand_count != 1) return cli_usage("one NAME or PID is needed; vigil ls lists the names");
    const char *name = parsed.operands[0];

    vigil_observer *observer;
    vigil_look look;
    int status = cli_observe(&observer, name);
    if (status == VIGIL_ENOTFOUND && served_is_process(name)) return show_process(name);
    if (status != VIGIL_OK) return cli_fail_segment(status, name);
    status = vigil_observer_look(observer, &look);
    struct cli_json json;
    json_begin(&json, stdout);
    if (status != VIGIL_OK) status = cli_fail_segment(status, name);
    else if (cli_wants_json) show_json(&json, name, &look);
    else show_text(stdout, name, &look, columns_of_stdout(), cli_colour(stdout));
    vigil_observer_close(observer);
    return status;
}
