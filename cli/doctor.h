/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - what is wrong with segments, and between them.
 *
 * doctor.c         examines them, and repairs
 * doctor_ties.c    who waits for whom
 * cycles.c         ... in a circle
 * doctor_tell.c    says it, to people and programs
 */
#ifndef VIGIL_CLI_DOCTOR_H
#define VIGIL_CLI_DOCTOR_H

#include "cli.h"
#include "cycles.h"

#define PLACE_MAX 272

enum finding_kind { FINDING_DEAD, FINDING_STUCK, FINDING_BROKEN, FINDING_FULL, FINDING_KINDS };

struct finding {
    enum finding_kind kind;
    char sentence[200];
};

/* A segment that is examined. */
struct patient {
    const char *name;
    bool companion;    /* not asked about: only looked at for who waits for whom */
    bool examined;     /* false: it cannot be */
    int status, error; /* that is why, with errno; or why it could not be repaired */
    char label[32];
    uint32_t members, waiting;
    struct finding *findings;
    uint32_t finding_count;
    bool repaired;        /* it was tried; the findings are those that are left */
    uint32_t found_first; /* how many there were before */
    int64_t put_right;
};

/* A process, be it a member of one segment or of several. */
struct signature {
    uint32_t pid;
    char program[20];
    char command[160];
};

/* Why one waits for another. */
struct reason {
    bool runs;       /* the other is a command that it runs, or is run by that */
    bool of_command; /* it waits in a segment of vigil lock or vigil sem */
    uint32_t patient, thread_id;
    uint64_t offset;
    vigil_seen_kind kind;
    int64_t since_ns, waited_ns;
    char place[PLACE_MAX]; /* "the lock deploy", "the mutex at byte 64 of jobs" */
};

struct ties {
    struct tie *ties;
    struct reason *reasons; /* one for each */
    uint32_t count, room, waits;
    bool no_memory;
};

struct people {
    struct signature *all;
    uint32_t count, room;
};

struct circle {
    uint32_t *ties; /* places in doctor.ties */
    uint32_t count;
};

struct doctor {
    struct patient *patients;
    uint32_t patient_count, patient_room;
    struct people people;
    struct ties ties;
    struct circle *circles;
    uint32_t circle_count;
    bool no_memory;
};

/* The exit status: CLI_OK, CLI_NOT_EQUAL for what was found, CLI_CANNOT if one of them cannot be examined. */
int doctor_verdict(const struct doctor *doctor);

/* doctor_ties.c: adds to `ties` what a look at all patients shows. False: no memory. */
bool ties_look(struct ties *ties, struct people *people, const struct patient *patients, uint32_t patient_count);
/* Leave only those that are in both, so that what was so for a moment only is not held against anybody.
 * False: no memory. */
bool ties_keep_common(struct ties *ties, const struct ties *others);
void ties_free(struct ties *ties);

/* doctor_tell.c */
void doctor_tell(const struct doctor *doctor);
void doctor_tell_json(const struct doctor *doctor);
/* Whom one might end: the process that has waited least. */
const struct signature *circle_youngest(const struct doctor *doctor, const struct circle *circle);

#endif
