/* SPDX-License-Identifier: MIT */
/* The processes under vigil run, and a row for each of their waiting threads. */
#include <stdlib.h>
#include <string.h>

#include "top.h"

/* Listing. */

struct found {
    const struct overview *overview;
    struct process *list;
    size_t count;
    bool no_memory;
};

/* A pattern is for pids and for names of programs. */
static bool is_process_asked_for(const struct overview *overview, const char *pid) {
    char program[SERVED_NAME];
    uint32_t number = (uint32_t)strtoul(pid, NULL, 10);
    served_thread_name(number, number, program);
    return overview_asks_for(overview, pid, program);
}

static void add_process(const char *pid, void *data) {
    struct found *found = data;
    if (found->no_memory || !is_process_asked_for(found->overview, pid)) return;
    struct process *list = realloc(found->list, (found->count + 1) * sizeof *list);
    found->no_memory = !list;
    if (!list) return;
    found->list = list;
    list[found->count] = (struct process){0};
    snprintf(list[found->count++].name, sizeof list->name, "%.11s", pid);
}

static int by_number(const void *one, const void *other) {
    unsigned long a = strtoul(((const struct process *)one)->name, NULL, 10);
    unsigned long b = strtoul(((const struct process *)other)->name, NULL, 10);
    return (a > b) - (a < b);
}

static bool processes_look_at(struct process *process) {
    struct served served;
    process->status = served_open(&served, process->name);
    if (process->status != SERVED_OK) return true;
    bool looked = threads_look(&process->look, &served, true);
    served_close(&served);
    return looked;
}

bool processes_look(struct overview *overview) {
    struct found found = {.overview = overview};
    served_list(add_process, &found);
    overview->processes = found.list;
    overview->process_count = found.count;
    if (found.count) qsort(found.list, found.count, sizeof *found.list, by_number);
    bool looked = !found.no_memory;
    for (size_t i = 0; looked && i < found.count; i++) looked = processes_look_at(&found.list[i]);
    return looked;
}

void processes_forget(struct overview *overview) {
    for (size_t i = 0; i < overview->process_count; i++) threads_forget(&overview->processes[i].look);
    free(overview->processes);
}

/* Rows. */

static const char *short_kind(enum wait_kind kind) {
    static const char *const names[WAIT_KINDS] = {"mutex", "read", "write", "once", "cond", "sem", "barrier", "join"};
    return names[kind];
}

/* There is little room: the end of an address tells locks apart. */
static void name_place(struct row *row, const struct thread_wait *wait) {
    char symbol[SYMBOL_BYTES];
    threads_symbol(row->process->look.pid, wait->lock, true, symbol);
    if (wait->kind == WAIT_JOIN) strcpy(row->line_name, "end");
    else if (strncmp(symbol, "0x", 2) != 0) snprintf(row->line_name, sizeof row->line_name, "%.31s", symbol);
    else snprintf(row->line_name, sizeof row->line_name, "@%06llx", (unsigned long long)wait->lock & 0xffffff);
}

static void name_holder(struct row *row, const struct thread_wait *wait) {
    char thread[SERVED_NAME];
    if (wait->holder) served_thread_name(row->process->look.pid, wait->holder, thread);
    if (wait->holder)
        snprintf(row->held_by, sizeof row->held_by, "%s%u %s", wait->kind == WAIT_SEM ? "last " : "", wait->holder,
                 thread);
    else if (wait->readers)
        snprintf(row->held_by, sizeof row->held_by, "%u reader%s", wait->readers, wait->readers == 1 ? "" : "s");
}

static void add_wait(struct overview *overview, const struct process *process, uint32_t first, uint32_t place) {
    const struct thread_wait *wait = &process->look.waits[first + place];
    char thread[SERVED_NAME], site[SYMBOL_BYTES];
    struct row *row = &overview->rows[overview->row_count++];
    *row = (struct row){.type = ROW_WAITER,
                        .process = process,
                        .name = process->name,
                        .offset = wait->lock,
                        .place = place + 1,
                        .line_length = threads_in_line(&process->look, first),
                        .pid = wait->thread_id,
                        .as = short_kind(wait->kind),
                        .wait_ns = process->look.at_ns - wait->since_ns};
    name_place(row, wait);
    name_holder(row, wait);
    served_thread_name(process->look.pid, wait->thread_id, thread);
    threads_symbol(process->look.pid, wait->site, true, site);
    snprintf(row->task, sizeof row->task, "%.110s%s%s", site, *thread ? ", " : "", thread);
}

static void processes_add_unreadable(struct overview *overview, const struct process *process) {
    struct row *row = &overview->rows[overview->row_count++];
    *row = (struct row){.type = ROW_UNREADABLE, .process = process, .name = process->name, .as = ""};
    snprintf(row->task, sizeof row->task, "unreadable: %s", served_why(process->status));
}

size_t processes_count(struct overview *overview) {
    size_t rows = 0;
    for (size_t i = 0; i < overview->process_count; i++) {
        const struct threads_look *look = &overview->processes[i].look;
        overview->waiter_count += look->count;
        for (uint32_t first = 0; first < look->count; first += threads_in_line(look, first))
            overview->holder_count += look->waits[first].holder && look->waits[first].kind != WAIT_SEM;
        rows += look->count + 1;
    }
    return rows;
}

void processes_rows(struct overview *overview) {
    for (size_t i = 0; i < overview->process_count; i++) {
        const struct process *process = &overview->processes[i];
        if (process->status == SERVED_NOT) continue; /* it has just ended */
        if (process->status != SERVED_OK) processes_add_unreadable(overview, process);
        for (uint32_t first = 0, length; first < process->look.count; first += length) {
            length = threads_in_line(&process->look, first);
            for (uint32_t place = 0; place < length; place++) add_wait(overview, process, first, place);
        }
    }
}
