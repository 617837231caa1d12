/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - finds damage in segments, and deadlocks between processes.
 *
 * doctor.c         examines and repairs segments
 * doctor_edges.c   which process waits for which
 * cycles.c         circles of such waits
 * doctor_print.c   prints the findings, as text and as JSON
 */
#ifndef VIGIL_CLI_DOCTOR_H
#define VIGIL_CLI_DOCTOR_H

#include "cli.h"
#include "cycles.h"

#define LINE_NAME_MAX 272

enum finding_kind { FINDING_DEAD, FINDING_STUCK, FINDING_BROKEN, FINDING_FULL, FINDING_OWNER, FINDING_KINDS };

struct finding {
    enum finding_kind kind;
    char sentence[240];
};

/* A segment that is examined. */
struct patient {
    const char *name;
    bool companion;    /* the user did not name it: only its waits are looked at */
    bool examined;     /* false: it cannot be examined */
    int status, error; /* the reason, with errno; or why it could not be repaired */
    char label[32];
    uint32_t members, waiting;
    struct finding *findings;
    uint32_t finding_count;
    bool repaired;        /* a repair was tried; the findings are those that are left */
    uint32_t found_first; /* findings before the repair */
    int64_t put_right;
};

/* A process; it may be a member of several segments. */
struct known_process {
    uint32_t pid;
    bool other_space; /* the pid is of another pid namespace */
    char program[20];
    char command[160];
};

/* Why one process waits for another. */
struct reason {
    bool runs;       /* the other is its descendant: the command that it runs, or a process started by that */
    bool of_command; /* it waits in a segment of vigil lock or vigil sem */
    uint32_t patient, thread_id;
    uint64_t offset;
    vigil_seen_kind kind;
    int64_t since_ns, waited_ns;
    char line[LINE_NAME_MAX]; /* "the lock deploy", "the mutex at byte 64 of jobs" */
};

struct edges {
    struct edge *edges;
    struct reason *reasons; /* one for each edge */
    uint32_t count, room, waits;
    bool no_memory;
};

struct known_processes {
    struct known_process *all;
    uint32_t count, room;
};

struct circle {
    uint32_t *edges; /* indices into doctor.edges */
    uint32_t count;
};

struct doctor {
    struct patient *patients;
    uint32_t patient_count, patient_room;
    struct known_processes processes;
    struct edges edges;
    struct circle *circles;
    uint32_t circle_count;
    bool no_memory;
};

/* The exit status: CLI_OK, CLI_NOT_EQUAL if there are findings, CLI_CANNOT if a segment cannot be examined. */
int doctor_verdict(const struct doctor *doctor);

/* doctor_edges.c: adds the edges that a look at all patients shows. False: no memory. */
bool edges_look(struct edges *edges, struct known_processes *processes, const struct patient *patients,
                uint32_t patient_count);
/* Keeps only the edges that are in both: drops waits that lasted only for a moment. False: no memory. */
bool edges_keep_common(struct edges *edges, const struct edges *others);
void edges_free(struct edges *edges);

/* doctor_print.c */
void doctor_print(const struct doctor *doctor);
void doctor_print_json(const struct doctor *doctor);
/* The process to end, if any: the one that has waited least. */
const struct known_process *circle_youngest(const struct doctor *doctor, const struct circle *circle);

#endif
