/* SPDX-License-Identifier: MIT */
/* Prints the findings: what was found, what it means, and what to do about it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"

#define FINDINGS_SHOWN 10 /* of each kind; --json has all */

static const struct {
    const char *name, *meaning, *advice;
} kinds[] = {
    [FINDING_DEAD] = {"dead",
                      "It was killed, or ended without closing the segment. What it held or waited for goes to the "
                      "next in line as soon as another process waits here.",
                      "Nothing needs to be done; --fix cleans it up now."},
    [FINDING_STUCK] = {"stuck",
                       "It is alive, but was stopped by a signal or a debugger while it was changing a line. Other "
                       "processes that need that line wait for it.",
                       "Let it continue (kill -CONT PID), or end it (kill -KILL PID): the others go on without it."},
    [FINDING_BROKEN] = {"broken",
                        "The library's own structures are damaged: a program has written outside its own data.",
                        "--fix rebuilds the lines. If the damage comes back, look for the program that writes out of "
                        "bounds; if it stays, end the members and remove the segment (vigil rm --force NAME)."},
    [FINDING_FULL] = {"full", "New members or waiters are refused until others leave.",
                      "End some of them (vigil show NAME lists them), or create the segment with more room (vigil "
                      "create --members, --waiters)."},
    [FINDING_OWNER] = {"owner-died",
                       "The next holder is told; with --on-owner-died fail, vigil lock refuses to run until this "
                       "is settled.",
                       "Repair what it left unfinished; then --fix settles it, and so does vigil lock with "
                       "--on-owner-died continue."},
};

#define DEADLOCK_MEANING                                                                                               \
    "None of them can go on: this is a deadlock, unless another thread of one of them releases what it holds, one "    \
    "has a time limit and gives up, or one has left what it runs in the background and does not wait for it."

const struct known_process *circle_youngest(const struct doctor *doctor, const struct circle *circle) {
    uint32_t youngest = circle->edges[0];
    for (uint32_t i = 1; i < circle->count; i++) {
        const struct reason *reason = &doctor->edges.reasons[circle->edges[i]];
        const struct reason *best = &doctor->edges.reasons[youngest];
        if (!reason->runs && (best->runs || reason->since_ns > best->since_ns)) youngest = circle->edges[i];
    }
    return &doctor->processes.all[doctor->edges.edges[youngest].waiter];
}

/* For people. */

struct page {
    const char *bold, *red, *green, *plain;
};

static struct page page_of(FILE *out) {
    if (!cli_colour(out)) return (struct page){"", "", "", ""};
    return (struct page){"\033[1m", "\033[31m", "\033[32m", "\033[0m"};
}

static const char *doctor_print_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

static void print_findings_of(const struct patient *patient, enum finding_kind kind, const struct page *page) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < patient->finding_count; i++) {
        const struct finding *finding = &patient->findings[i];
        if (finding->kind == kind && count++ < FINDINGS_SHOWN)
            printf("  %s%s%s: %s\n", page->red, kinds[kind].name, page->plain, finding->sentence);
    }
    if (count > FINDINGS_SHOWN) printf("  and %u more\n", count - FINDINGS_SHOWN);
    if (count) printf("      %s\n      %s\n", kinds[kind].meaning, kinds[kind].advice);
}

static void print_repair(const struct patient *patient) {
    if (!patient->repaired) return;
    if (patient->status < 0) printf("  It could not be repaired: %s\n", cli_why(patient->status, patient->error));
    else
        printf("  %u finding%s before, %u now\n", patient->found_first, doctor_print_plural(patient->found_first),
               patient->finding_count);
}

static void print_patient(const struct patient *patient, const struct page *page) {
    if (!patient->examined) {
        errno = patient->error;
        cli_fail_segment(patient->status, patient->name);
        return;
    }
    printf("%s%s%s: ", page->bold, patient->name, page->plain);
    if (patient->finding_count)
        printf("%s%u finding%s%s", page->red, patient->finding_count, doctor_print_plural(patient->finding_count),
               page->plain);
    else printf("%ssound%s", page->green, page->plain);
    printf("; %u member%s, %u waiting\n", patient->members, doctor_print_plural(patient->members), patient->waiting);
    print_repair(patient);
    for (unsigned kind = 0; kind < FINDING_KINDS; kind++) print_findings_of(patient, (enum finding_kind)kind, page);
}

static void doctor_print_process(const struct doctor *doctor, uint32_t number) {
    const struct known_process *process = &doctor->processes.all[number];
    char text[48];
    printf("pid %u%s (%s)", process->pid, process->other_space ? " of another pid namespace" : "",
           cli_visible(text, sizeof text, cli_without_folder(process->command)));
}

static void print_circle(const struct doctor *doctor, const struct circle *circle, const struct page *page) {
    printf("%sdeadlock%s: ", page->red, page->plain);
    doctor_print_process(doctor, doctor->edges.edges[circle->edges[0]].waiter);
    for (uint32_t i = 0; i < circle->count; i++) {
        const struct reason *reason = &doctor->edges.reasons[circle->edges[i]];
        const char *which = i ? ",\n      which " : " ";
        char waited[16];
        cli_print_duration(waited, reason->waited_ns);
        if (reason->runs) printf("%swaits for the command it runs, ", which);
        else printf("%swaits for %s (for %s), held by ", which, reason->line, waited);
        doctor_print_process(doctor, doctor->edges.edges[circle->edges[i]].holder);
    }
    const struct known_process *youngest = circle_youngest(doctor, circle);
    printf(
        "\n      %s\n      This cannot be repaired from outside. Ending one of them lets the others go on; pid %u has "
        "waited least",
        DEADLOCK_MEANING, youngest->pid);
    if (youngest->other_space) printf(", in another pid namespace\n");
    else printf(": kill %u\n", youngest->pid);
}

void doctor_print(const struct doctor *doctor) {
    struct page page = page_of(stdout);
    for (uint32_t i = 0; i < doctor->patient_count; i++) {
        if (!doctor->patients[i].companion) print_patient(&doctor->patients[i], &page);
    }
    for (uint32_t i = 0; i < doctor->circle_count; i++) print_circle(doctor, &doctor->circles[i], &page);
    if (doctor->patient_count == 0) printf("there are no segments\n");
}

/* For programs. */

static void put_patient(struct cli_json *json, const struct patient *patient) {
    json_object(json, NULL);
    json_text(json, "name", patient->name);
    json_text(json, "status", vigil_status_name(patient->status));
    if (patient->status < 0) json_text(json, "error", cli_why(patient->status, patient->error));
    if (patient->examined) {
        json_text(json, "label", patient->label);
        json_unsigned(json, "members", patient->members);
        json_unsigned(json, "waiting", patient->waiting);
        if (patient->repaired) json_unsigned(json, "found_before_repair", patient->found_first);
        if (patient->repaired) json_integer(json, "put_right", patient->put_right > 0 ? patient->put_right : 0);
        json_array(json, "findings");
        for (uint32_t i = 0; i < patient->finding_count; i++) {
            const struct finding *finding = &patient->findings[i];
            json_object(json, NULL);
            json_text(json, "kind", kinds[finding->kind].name);
            json_text(json, "finding", finding->sentence);
            json_text(json, "meaning", kinds[finding->kind].meaning);
            json_text(json, "advice", kinds[finding->kind].advice);
            json_end(json, '}');
        }
        json_end(json, ']');
    }
    json_end(json, '}');
}

static void put_edge(struct cli_json *json, const struct doctor *doctor, uint32_t number) {
    const struct edge *edge = &doctor->edges.edges[number];
    const struct reason *reason = &doctor->edges.reasons[number];
    const struct known_process *waiter = &doctor->processes.all[edge->waiter],
                               *holder = &doctor->processes.all[edge->holder];
    json_object(json, NULL);
    json_unsigned(json, "pid", waiter->pid);
    json_text(json, "command", waiter->command);
    json_unsigned(json, "for_pid", holder->pid);
    json_text(json, "for", reason->runs ? "the command it runs" : reason->line);
    if (!reason->runs) {
        json_text(json, "segment", doctor->patients[reason->patient].name);
        json_unsigned(json, "offset", reason->offset);
        json_text(json, "kind", vigil_seen_kind_name(reason->kind));
        if (reason->thread_id) json_unsigned(json, "thread", reason->thread_id);
        else json_null(json, "thread"); /* an event loop */
        json_integer(json, "waited_ns", reason->waited_ns);
    }
    json_end(json, '}');
}

static void put_circle(struct cli_json *json, const struct doctor *doctor, const struct circle *circle) {
    json_object(json, NULL);
    json_array(json, "chain");
    for (uint32_t i = 0; i < circle->count; i++) put_edge(json, doctor, circle->edges[i]);
    json_end(json, ']');
    json_text(json, "meaning", DEADLOCK_MEANING);
    json_unsigned(json, "waited_least_pid", circle_youngest(doctor, circle)->pid);
    json_end(json, '}');
}

void doctor_print_json(const struct doctor *doctor) {
    struct cli_json json;
    int verdict = doctor_verdict(doctor);
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "status", verdict == CLI_CANNOT ? "cannot" : vigil_status_name(VIGIL_OK));
    if (verdict == CLI_CANNOT) json_text(&json, "error", "not all segments can be examined");
    json_bool(&json, "healthy", verdict == CLI_OK);
    json_array(&json, "segments");
    for (uint32_t i = 0; i < doctor->patient_count; i++) {
        if (!doctor->patients[i].companion) put_patient(&json, &doctor->patients[i]);
    }
    json_end(&json, ']');
    json_array(&json, "deadlocks");
    for (uint32_t i = 0; i < doctor->circle_count; i++) put_circle(&json, doctor, &doctor->circles[i]);
    json_end(&json, ']');
    json_end(&json, '}');
}
