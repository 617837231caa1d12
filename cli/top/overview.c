/* SPDX-License-Identifier: MIT */
/*
 * All segments, and a row for each waiter in one. The rows of processes are in processes.c.
 *
 * Every look opens all segments again: so it makes no difference which were removed or created since the last look,
 * even under the same name. None stays open, since there may be more segments than a process can have descriptors.
 * Each look is kept until the next one, because rows and details refer to it.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "top.h"

/* A look points into the observer's memory: a copy is needed when that is closed. */

static void *copy(const void *from, size_t bytes) {
    void *made = malloc(bytes + 1);
    return made ? memcpy(made, from, bytes) : NULL;
}

static bool keep_line(vigil_seen_line *line) {
    line->waiters = copy(line->waiters, line->waiter_count * sizeof *line->waiters);
    line->holders = copy(line->holders, line->holder_count * sizeof *line->holders);
    return line->waiters && line->holders;
}

/* False: no memory. The caller must call overview_forget_look in either case. */
static bool keep(vigil_look *look) {
    vigil_seen_line *lines = copy(look->lines, look->line_count * sizeof *lines);
    look->label = copy(look->label, strlen(look->label) + 1);
    look->members = copy(look->members, look->member_count * sizeof *look->members);
    look->lines = lines;
    if (!lines) look->line_count = 0;
    bool kept = look->label && look->members && lines;
    for (uint32_t i = 0; i < look->line_count; i++) kept &= keep_line(&lines[i]);
    return kept;
}

static void overview_forget_look(const vigil_look *look) {
    for (uint32_t i = 0; i < look->line_count; i++) {
        free((void *)look->lines[i].waiters);
        free((void *)look->lines[i].holders);
    }
    free((void *)look->lines);
    free((void *)look->members);
    free((void *)look->label);
}

static void forget(struct overview *overview) {
    for (size_t i = 0; i < overview->segment_count; i++) overview_forget_look(&overview->segments[i].look);
    processes_forget(overview);
    free(overview->segments);
    free(overview->rows);
    free(overview->shown);
    *overview = (struct overview){
        .patterns = overview->patterns, .pattern_count = overview->pattern_count, .all_users = overview->all_users};
}

/* Segments. */

struct names {
    const struct overview *overview;
    struct segment *list;
    size_t count;
    bool no_memory;
};

bool overview_asks_for(const struct overview *overview, const char *name, const char *other_name) {
    for (int i = 0; i < overview->pattern_count; i++) {
        if (fnmatch(overview->patterns[i], name, 0) == 0) return true;
        if (other_name && fnmatch(overview->patterns[i], other_name, 0) == 0) return true;
    }
    return overview->pattern_count == 0;
}

static void add_segment(const char *name, void *data) {
    struct names *names = data;
    if (names->no_memory || !overview_asks_for(names->overview, name, NULL)) return;
    struct segment *list = realloc(names->list, (names->count + 1) * sizeof *list);
    names->no_memory = !list;
    if (!list) return;
    names->list = list;
    list[names->count] = (struct segment){0};
    snprintf(list[names->count++].name, SHOW_NAME_MAX, "%s", name);
}

static int overview_by_name(const void *one, const void *other) {
    return strcmp(((const struct segment *)one)->name, ((const struct segment *)other)->name);
}

/* Processes under vigil run need no segments. */
static bool wants_segments(const struct overview *overview) {
    for (int i = 0; i < overview->pattern_count; i++) {
        if (!served_is_process(overview->patterns[i])) return true;
    }
    return overview->pattern_count == 0;
}

static int list_segments(struct overview *overview) {
    struct names names = {.overview = overview};
    int64_t status = cli_list_names(overview->all_users, add_segment, &names);
    if (status < 0 && wants_segments(overview)) return (int)status;
    overview->segments = names.list;
    overview->segment_count = names.count;
    if (names.count) qsort(names.list, names.count, sizeof *names.list, overview_by_name);
    return names.no_memory ? VIGIL_ENOMEM : VIGIL_OK;
}

static void overview_look_at(struct segment *segment) {
    vigil_observer *observer;
    segment->status = cli_observe(&observer, segment->name);
    segment->error = errno;
    if (segment->status != VIGIL_OK) return;
    segment->status = vigil_observer_look(observer, &segment->look);
    if (segment->status == VIGIL_OK && !keep(&segment->look)) segment->status = VIGIL_ENOMEM;
    vigil_observer_close(observer);
}

/* Rows. */

static void name_holders(const vigil_look *look, const vigil_seen_line *line, char *text, size_t bytes) {
    const vigil_seen_member *member = line->holder_count ? show_member(look, line->holders[0].number) : NULL;
    char task[128], more[16] = "", pid[16] = "";
    snprintf(text, bytes, "%s", line->owner_died ? "owner died" : "");
    if (line->holder_count == 0) return;
    show_task(look, line->holders[0].number, task, sizeof task);
    if (line->holder_count > 1) snprintf(more, sizeof more, "+%u ", line->holder_count - 1);
    if (member) snprintf(pid, sizeof pid, "%u%s ", cli_task_pid(member), member->other_space ? "*" : "");
    snprintf(text, bytes, "%s%s%s%.100s", line->owner_died ? "owner died, " : "", more, pid, task);
}

/* The holder of a turnstile also holds the lock, or waits for it. */
static bool overview_is_turnstile(const vigil_look *look, const vigil_seen_line *line) {
    char name[32];
    show_line_name(look, line, name);
    return strcmp(name, "turnstile") == 0;
}

static struct row line_row(const struct segment *segment, const vigil_seen_line *line) {
    struct row row = {.type = ROW_HELD,
                      .segment = segment,
                      .name = segment->name,
                      .as = "thread",
                      .offset = line->offset,
                      .line_length = line->waiter_count};
    if (overview_is_turnstile(&segment->look, line)) strcpy(row.line_name, "fair"); /* there is little room */
    else show_line_name(&segment->look, line, row.line_name);
    name_holders(&segment->look, line, row.held_by, sizeof row.held_by);
    for (uint32_t i = 0; i < line->holder_count; i++) {
        const vigil_seen_member *member = show_member(&segment->look, line->holders[i].number);
        row.holder_dead |= !member || !member->alive;
    }
    row.holder_dead |= line->owner_died;
    if (line->holder_count && line->holders[0].since_ns) row.wait_ns = segment->look.at_ns - line->holders[0].since_ns;
    return row;
}

static void overview_add_waiter(struct overview *overview, const struct row *line_row, const vigil_seen_waiter *waiter,
                                uint32_t place) {
    const vigil_look *look = &line_row->segment->look;
    const vigil_seen_member *member = show_member(look, waiter->number);
    struct row *row = &overview->rows[overview->row_count++];
    *row = *line_row;
    row->type = ROW_WAITER;
    row->place = place;
    row->pid = member ? member->pid : 0;
    row->wait_ns = look->at_ns - waiter->since_ns;
    row->asynchronous = waiter->thread_id == 0;
    row->as = row->asynchronous ? "loop" : "thread";
    row->called = waiter->called;
    row->dead = !member || !member->alive;
    show_task(look, waiter->number, row->task, sizeof row->task);
}

/* If all waiters of a lock are at its turnstile, the turnstile's rows are enough. */
static bool is_held_for_a_line(const vigil_look *look, const vigil_seen_line *line) {
    if (line->waiter_count || line == look->lines) return false;
    return overview_is_turnstile(look, line - 1) && line[-1].waiter_count;
}

static void overview_add_line(struct overview *overview, const struct segment *segment, const vigil_seen_line *line) {
    if (is_held_for_a_line(&segment->look, line)) return;
    struct row row = line_row(segment, line);
    for (uint32_t i = 0; i < line->waiter_count; i++) overview_add_waiter(overview, &row, &line->waiters[i], i + 1);
    if (line->waiter_count == 0) overview->rows[overview->row_count++] = row;
}

static void overview_add_unreadable(struct overview *overview, const struct segment *segment) {
    struct row *row = &overview->rows[overview->row_count++];
    *row = (struct row){.type = ROW_UNREADABLE, .segment = segment, .name = segment->name, .as = ""};
    snprintf(row->task, sizeof row->task, "unreadable, %s: %s", vigil_status_name(segment->status),
             cli_why(segment->status, segment->error));
}

static void add_rows(struct overview *overview, const struct segment *segment) {
    if (segment->status != VIGIL_OK) {
        overview_add_unreadable(overview, segment);
        return;
    }
    for (uint32_t i = 0; i < segment->look.line_count; i++)
        overview_add_line(overview, segment, &segment->look.lines[i]);
}

/* Counts members, holders and waiters. Returns the maximum number of rows. */
static size_t overview_count(struct overview *overview, const struct segment *segment) {
    const vigil_look *look = &segment->look;
    size_t rows = 1;
    if (segment->status != VIGIL_OK) return rows;
    overview->member_count += look->member_count;
    for (uint32_t i = 0; i < look->member_count; i++) overview->dead_count += !look->members[i].alive;
    for (uint32_t i = 0; i < look->line_count; i++) {
        if (!overview_is_turnstile(look, &look->lines[i])) overview->holder_count += look->lines[i].holder_count;
        overview->waiter_count += look->lines[i].waiter_count;
        rows += 1 + look->lines[i].waiter_count;
    }
    return rows;
}

int overview_look(struct overview *overview) {
    forget(overview);
    time_t now = time(NULL);
    struct tm local;
    strftime(overview->clock, sizeof overview->clock, "%H:%M:%S", localtime_r(&now, &local));
    int status = list_segments(overview);
    if (status != VIGIL_OK) return status;
    if (!processes_look(overview)) return VIGIL_ENOMEM;
    size_t rows_most = 1 + processes_count(overview);
    for (size_t i = 0; i < overview->segment_count; i++) {
        overview_look_at(&overview->segments[i]);
        rows_most += overview_count(overview, &overview->segments[i]);
    }
    overview->rows = calloc(rows_most, sizeof *overview->rows);
    overview->shown = calloc(rows_most, sizeof *overview->shown);
    if (!overview->rows || !overview->shown) return VIGIL_ENOMEM;
    for (size_t i = 0; i < overview->segment_count; i++) {
        if (overview->segments[i].status != VIGIL_ENOTFOUND)
            add_rows(overview, &overview->segments[i]); /* else it has just been removed */
    }
    processes_rows(overview);
    return VIGIL_OK;
}

int overview_fail(int status) {
    if (status == VIGIL_ENOMEM) return cli_fail(status, "cannot read the segments and processes");
    return cli_fail_list(status);
}

void overview_end(struct overview *overview) {
    forget(overview);
}

/* Order. */

static enum column sorted_by;
static bool is_reversed;

static int compare(int64_t one, int64_t other) {
    return (one > other) - (one < other);
}

/* By line, and within a line by place. */
static int by_line(const struct row *one, const struct row *other) {
    int order = strcmp(one->name, other->name);
    if (!order) order = compare((int64_t)one->offset, (int64_t)other->offset);
    return order ? order : compare(one->place, other->place);
}

static int by_order(const struct row *one, const struct row *other) {
    switch (sorted_by) {
    case LINE: return by_line(one, other);
    case PLACE: return compare(one->place, other->place);
    case PID: return compare(one->pid, other->pid);
    default: return compare(other->wait_ns, one->wait_ns);
    }
}

static int by_everything(const void *first, const void *second) {
    const struct row *one = *(const struct row *const *)first, *other = *(const struct row *const *)second;
    int order = compare(one->type, other->type);
    if (!order) order = is_reversed ? by_order(other, one) : by_order(one, other);
    if (!order) order = compare(other->wait_ns, one->wait_ns);
    return order ? order : by_line(one, other);
}

static bool is_wanted(const struct row *row, const char *filter) {
    char text[FRAME_BYTES];
    snprintf(text, sizeof text, "%s %s %u %s %s %s", row->name, row->line_name, row->pid, row->as, row->task,
             row->held_by);
    return strcasestr(text, filter) != NULL;
}

void overview_arrange(struct overview *overview, enum column order, bool reverse, const char *filter) {
    overview->shown_count = 0;
    for (size_t i = 0; i < overview->row_count; i++) {
        if (is_wanted(&overview->rows[i], filter)) overview->shown[overview->shown_count++] = &overview->rows[i];
    }
    sorted_by = order;
    is_reversed = reverse;
    if (overview->shown_count) qsort(overview->shown, overview->shown_count, sizeof *overview->shown, by_everything);
}
