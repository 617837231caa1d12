/* SPDX-License-Identifier: MIT */
/*
 * Which process waits for which, as a look at each of the segments shows it. Members of different segments are the
 * same process if they have the same pid and the same program.
 *
 * A process that waits for a lock that it holds itself (another of its threads must hold it) waits for no other
 * process, and is left out.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "show.h"

#define NO_PROCESS     UINT32_MAX
#define ANCESTORS_MOST 64
#define SAME_NS        INT64_C(3000000) /* the start of a wait is known to about a millisecond */

static uint32_t doctor_edges_known(struct known_processes *processes, const vigil_seen_member *member) {
    for (uint32_t i = 0; i < processes->count; i++) {
        const struct known_process *known = &processes->all[i];
        if (known->pid == member->pid && strcmp(known->program, member->program) == 0) return i;
    }
    if (processes->count == processes->room) {
        uint32_t room = processes->room ? 2 * processes->room : 64;
        struct known_process *moved = realloc(processes->all, room * sizeof *moved);
        if (!moved) return NO_PROCESS;
        processes->all = moved;
        processes->room = room;
    }
    struct known_process *made = &processes->all[processes->count];
    *made = (struct known_process){.pid = member->pid, .other_space = member->other_space};
    snprintf(made->program, sizeof made->program, "%s", member->program);
    cli_command_line(member, made->command, sizeof made->command);
    return processes->count++;
}

/* A dead process holds nothing that it could still release, and waits no more. */
static uint32_t living_process(struct known_processes *processes, const vigil_look *look, uint32_t number) {
    const vigil_seen_member *member = show_member(look, number);
    return member && member->alive ? doctor_edges_known(processes, member) : NO_PROCESS;
}

static void add(struct edges *edges, struct edge edge, const struct reason *reason) {
    if (edges->count == edges->room) {
        uint32_t room = edges->room ? 2 * edges->room : 64;
        struct edge *moved = realloc(edges->edges, room * sizeof *moved);
        if (moved) edges->edges = moved;
        struct reason *reasons = moved ? realloc(edges->reasons, room * sizeof *reasons) : NULL;
        if (reasons) edges->reasons = reasons;
        edges->no_memory |= !reasons;
        if (!reasons) return;
        edges->room = room;
    }
    edges->edges[edges->count] = edge;
    edges->reasons[edges->count++] = *reason;
}

static bool is_of_command(const char *label) {
    return strcmp(label, "vigil lock") == 0 || strncmp(label, "vigil sem ", 10) == 0;
}

static void name_line(char text[LINE_NAME_MAX], const char *name, const vigil_look *look, const vigil_seen_line *line) {
    char at[32];
    show_line_name(look, line, at);
    if (!is_of_command(look->label))
        snprintf(text, LINE_NAME_MAX, "the %s at %s of %s", vigil_seen_kind_name(line->kind), at, name);
    else if (line->kind == VIGIL_SEEN_SEM) snprintf(text, LINE_NAME_MAX, "a slot of %s", name);
    else snprintf(text, LINE_NAME_MAX, "the %s %s%s", at, line->kind == VIGIL_SEEN_MUTEX ? "of " : "", name);
}

/* A semaphore's permit can still come from a dead holder, or from the waiting process itself. */
static bool has_hope(struct known_processes *processes, const vigil_look *look, const vigil_seen_line *line,
                     uint32_t process) {
    for (uint32_t i = 0; i < line->holder_count; i++) {
        uint32_t holder = living_process(processes, look, line->holders[i].number);
        if (holder == NO_PROCESS || holder == process) return true;
    }
    return false;
}

static void doctor_edges_add_waiter(struct edges *edges, struct known_processes *processes, const vigil_look *look,
                                    const vigil_seen_line *line, const vigil_seen_waiter *waiter,
                                    struct reason *reason) {
    uint32_t process = waiter->called ? NO_PROCESS : living_process(processes, look, waiter->number);
    bool any = line->kind == VIGIL_SEEN_SEM;
    if (process == NO_PROCESS || (any && has_hope(processes, look, line, process))) return;
    reason->thread_id = waiter->thread_id;
    reason->since_ns = waiter->since_ns;
    reason->waited_ns = look->at_ns - waiter->since_ns;
    for (uint32_t i = 0; i < line->holder_count; i++) {
        uint32_t holder = living_process(processes, look, line->holders[i].number);
        if (holder == NO_PROCESS || holder == process) continue;
        add(edges, (struct edge){process, holder, edges->waits}, reason);
        if (!any) edges->waits++;
    }
    if (any) edges->waits++;
}

static void add_lines(struct edges *edges, struct known_processes *processes, const struct patient *patient,
                      uint32_t number, const vigil_look *look) {
    for (uint32_t i = 0; i < look->line_count; i++) {
        const vigil_seen_line *line = &look->lines[i];
        struct reason reason = {.patient = number, .offset = line->offset, .kind = line->kind};
        reason.of_command = is_of_command(look->label);
        name_line(reason.line, patient->name, look, line);
        for (uint32_t j = 0; j < line->waiter_count; j++)
            doctor_edges_add_waiter(edges, processes, look, line, &line->waiters[j], &reason);
    }
}

/*
 * vigil lock and vigil sem hold what they hold until their command has ended. Other processes are taken to hold
 * theirs until a vigil lock or vigil sem that they run has ended. This is only likely: what they run may be in the
 * background. So it is not assumed of other programs that they run: a worker may well wait for a lock that its parent
 * holds.
 */

static uint32_t doctor_edges_parent_of(uint32_t pid) {
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *after_name = strrchr(text, ')'); /* the name may contain anything */
    unsigned parent = 0;
    return after_name && sscanf(after_name, ") %*c %u", &parent) == 1 ? parent : 0;
}

static bool descends_from(uint32_t pid, uint32_t ancestor) {
    for (int i = 0; i < ANCESTORS_MOST && pid > 1; i++) {
        pid = doctor_edges_parent_of(pid);
        if (pid == ancestor) return true;
    }
    return false;
}

static void add_commands(struct edges *edges, uint32_t runner, bool any, uint32_t edge_count,
                         const struct known_processes *processes) {
    uint32_t last = NO_PROCESS;
    for (uint32_t i = 0; i < edge_count; i++) {
        uint32_t waiter = edges->edges[i].waiter;
        if (waiter == last || waiter == runner || !(any || edges->reasons[i].of_command)) continue;
        last = waiter;
        if (processes->all[waiter].other_space || processes->all[runner].other_space)
            continue; /* those pids are not ours */
        if (!descends_from(processes->all[waiter].pid, processes->all[runner].pid)) continue;
        add(edges, (struct edge){runner, waiter, edges->waits++}, &(struct reason){.runs = true});
    }
}

static void add_runners(struct edges *edges, struct known_processes *processes, const vigil_look *look,
                        uint32_t edge_count) {
    for (uint32_t i = 0; i < look->line_count; i++) {
        const vigil_seen_line *line = &look->lines[i];
        for (uint32_t j = 0; j < line->holder_count; j++) {
            uint32_t holder = living_process(processes, look, line->holders[j].number);
            if (holder != NO_PROCESS) add_commands(edges, holder, is_of_command(look->label), edge_count, processes);
        }
    }
}

/* False: the segment cannot be looked at, or not any more. If true, the caller must close the observer. */
static bool doctor_edges_look_at(struct edges *edges, const struct patient *patient, vigil_observer **observer,
                                 vigil_look *look) {
    if (!patient->examined) return false;
    int status = vigil_observer_open(observer, patient->name);
    if (status == VIGIL_OK && (status = vigil_observer_look(*observer, look)) != VIGIL_OK)
        vigil_observer_close(*observer);
    edges->no_memory |= status == VIGIL_ENOMEM;
    return status == VIGIL_OK;
}

bool edges_look(struct edges *edges, struct known_processes *processes, const struct patient *patients,
                uint32_t patient_count) {
    vigil_observer *observer;
    vigil_look look;
    for (uint32_t i = 0; i < patient_count; i++) {
        if (!doctor_edges_look_at(edges, &patients[i], &observer, &look)) continue;
        add_lines(edges, processes, &patients[i], i, &look);
        vigil_observer_close(observer);
    }
    uint32_t waits_of_locks = edges->count;
    for (uint32_t i = 0; i < patient_count && waits_of_locks; i++) {
        if (!doctor_edges_look_at(edges, &patients[i], &observer, &look)) continue;
        add_runners(edges, processes, &look, waits_of_locks);
        vigil_observer_close(observer);
    }
    return !edges->no_memory;
}

/* Comparing looks. */

static bool is_same(const struct edges *edges, uint32_t one, const struct edges *others, uint32_t other) {
    const struct edge *a = &edges->edges[one], *b = &others->edges[other];
    const struct reason *p = &edges->reasons[one], *q = &others->reasons[other];
    if (a->waiter != b->waiter || a->holder != b->holder || p->runs != q->runs) return false;
    int64_t later_ns = q->since_ns - p->since_ns;
    return p->patient == q->patient && p->offset == q->offset && p->thread_id == q->thread_id && later_ns < SAME_NS &&
           later_ns > -SAME_NS;
}

static bool is_among(const struct edges *edges, uint32_t one, const struct edges *others) {
    for (uint32_t i = 0; i < others->count; i++) {
        if (is_same(edges, one, others, i)) return true;
    }
    return false;
}

/* A wait for any one of several permits has ended as soon as one of its edges has changed. */
bool edges_keep_common(struct edges *edges, const struct edges *others) {
    bool *ended = calloc(edges->waits + 1, sizeof *ended);
    if (!ended) return false;
    for (uint32_t i = 0; i < edges->count; i++) {
        if (!is_among(edges, i, others)) ended[edges->edges[i].wait] = true;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < edges->count; i++) {
        if (ended[edges->edges[i].wait]) continue;
        edges->edges[count] = edges->edges[i];
        edges->reasons[count++] = edges->reasons[i];
    }
    edges->count = count;
    free(ended);
    return true;
}

void edges_free(struct edges *edges) {
    free(edges->edges);
    free(edges->reasons);
}
