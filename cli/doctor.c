/* SPDX-License-Identifier: MIT */
/* vigil doctor NAME...: finds damage in segments, dead members, and processes that wait for each other in a circle. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "doctor.h"
#include "show.h"

#define LOOKS    5 /* at a circle, before it is reported */
#define APART_NS INT64_C(40000000)

/* Patients. */

static void add_patient(const char *name, void *data) {
    struct doctor *doctor = data;
    if (doctor->patient_count == doctor->patient_room) {
        uint32_t room = doctor->patient_room ? 2 * doctor->patient_room : 16;
        struct patient *moved = realloc(doctor->patients, room * sizeof *moved);
        doctor->no_memory |= !moved;
        if (!moved) return;
        doctor->patients = moved;
        doctor->patient_room = room;
    }
    char *copy = strdup(name);
    doctor->no_memory |= !copy;
    if (copy) doctor->patients[doctor->patient_count++] = (struct patient){.name = copy};
}

static int doctor_by_name(const void *one, const void *other) {
    return strcmp(((const struct patient *)one)->name, ((const struct patient *)other)->name);
}

/* A circle may lead through segments that the user did not name. */
static void add_companion(const char *name, void *data) {
    struct doctor *doctor = data;
    for (uint32_t i = 0; i < doctor->patient_count; i++) {
        if (strcmp(doctor->patients[i].name, name) == 0) return;
    }
    uint32_t before = doctor->patient_count;
    add_patient(name, doctor);
    if (doctor->patient_count > before) doctor->patients[before].companion = true;
}

/* With --all, drops segments that are gone by now; and companions that cannot be examined. */
static void drop_missing(struct doctor *doctor, bool all) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < doctor->patient_count; i++) {
        struct patient *patient = &doctor->patients[i];
        bool dropped = patient->companion ? !patient->examined : all && patient->status == VIGIL_ENOTFOUND;
        if (dropped) free((char *)patient->name);
        else doctor->patients[count++] = *patient;
    }
    doctor->patient_count = count;
}

/* Examining. */

static void add_finding(struct patient *patient, enum finding_kind kind, const char *sentence) {
    struct finding *moved = realloc(patient->findings, (patient->finding_count + 1) * sizeof *moved);
    if (!moved) {
        patient->status = VIGIL_ENOMEM;
        return;
    }
    patient->findings = moved;
    struct finding *finding = &moved[patient->finding_count++];
    finding->kind = kind;
    cli_visible(finding->sentence, sizeof finding->sentence, sentence);
}

static void found(vigil_finding finding, const char *sentence, void *data) {
    static const enum finding_kind kinds[] = {[VIGIL_FINDING_DEAD] = FINDING_DEAD,
                                              [VIGIL_FINDING_STUCK] = FINDING_STUCK,
                                              [VIGIL_FINDING_BROKEN] = FINDING_BROKEN};
    add_finding(data, kinds[finding], sentence);
}

static void doctor_look_at(struct patient *patient, const vigil_look *look) {
    char text[96];
    snprintf(patient->label, sizeof patient->label, "%s", look->label);
    patient->members = look->member_count;
    patient->waiting = 0;
    for (uint32_t i = 0; i < look->line_count; i++) patient->waiting += look->lines[i].waiter_count;
    if (look->member_count >= look->members_most) {
        snprintf(text, sizeof text, "all %u rows for members are taken", look->members_most);
        add_finding(patient, FINDING_FULL, text);
    }
    if (look->slots_used >= look->waiters_most) {
        snprintf(text, sizeof text, "all %u slots for waiters and holders are taken", look->waiters_most);
        add_finding(patient, FINDING_FULL, text);
    }
    if (look->dead_owner) {
        char died[224];
        show_owner_died(look->dead_owner, died, sizeof died);
        add_finding(patient, FINDING_OWNER, died);
    }
}

static int64_t observe(struct patient *patient, vigil_observer *observer) {
    vigil_look look;
    int64_t status = patient->companion ? 0 : vigil_observer_check(observer, found, patient);
    if (status >= 0) status = vigil_observer_look(observer, &look);
    if (status >= 0) doctor_look_at(patient, &look);
    return status;
}

/* The segment does not stay open: there may be more segments than a process can have descriptors. */
static void examine(struct patient *patient) {
    vigil_observer *observer;
    free(patient->findings);
    patient->findings = NULL;
    patient->finding_count = 0;
    patient->status = vigil_observer_open(&observer, patient->name);
    patient->error = errno;
    if (patient->status == VIGIL_OK) {
        int64_t status = observe(patient, observer);
        if (status < 0) patient->status = (int)status;
        vigil_observer_close(observer);
    }
    patient->examined = patient->status == VIGIL_OK;
}

/* A lock whose owner died is declared consistent, if it is free. */
static int64_t mend_named(const char *name) {
    const vigil_named_options existing = {.existing = true};
    vigil_named *named;
    int64_t mended = vigil_named_mend(name); /* first: its lines may be unusable */
    int64_t status = mended < 0 ? mended : vigil_named_open(&named, name, &existing);
    if (status < 0) return status;
    bool died = !vigil_named_slots(named) && vigil_named_trylock(named, 0) == VIGIL_OWNER_DIED;
    if (died && vigil_named_consistent(named) == VIGIL_OK && mended >= 0) mended++;
    vigil_named_close(named);
    return mended;
}

static int64_t mend(const char *name) {
    vigil_buffer *buffer;
    int64_t status = strchr(name, '/') ? VIGIL_ENOTFOUND : vigil_segment_open(&buffer, name);
    if (status == VIGIL_ENOTFOUND) return mend_named(name);
    if (status < 0) return status;
    status = vigil_segment_mend(buffer);
    vigil_buffer_destroy(buffer);
    return status;
}

static void repair(struct patient *patient) {
    if (!patient->examined || patient->companion || patient->finding_count == 0) return;
    patient->repaired = true;
    patient->found_first = patient->finding_count;
    patient->put_right = mend(patient->name);
    patient->error = errno;
    patient->status = patient->put_right < 0 ? (int)patient->put_right : VIGIL_OK;
    if (patient->status == VIGIL_OK) examine(patient);
}

/* Circles. */

static bool is_asked_about(const struct doctor *doctor, const uint32_t *edges, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const struct reason *reason = &doctor->edges.reasons[edges[i]];
        if (!reason->runs && !doctor->patients[reason->patient].companion) return true;
    }
    return false;
}

static void add_circle(const uint32_t *edges, uint32_t count, void *data) {
    struct doctor *doctor = data;
    if (!is_asked_about(doctor, edges, count)) return;
    struct circle *moved = realloc(doctor->circles, (doctor->circle_count + 1) * sizeof *moved);
    uint32_t *copy = malloc(count * sizeof *copy);
    doctor->no_memory |= !moved || !copy;
    if (moved) doctor->circles = moved;
    if (!moved || !copy) {
        free(copy);
        return;
    }
    memcpy(copy, edges, count * sizeof *copy);
    doctor->circles[doctor->circle_count++] = (struct circle){.edges = copy, .count = count};
}

static void forget_circles(struct doctor *doctor) {
    for (uint32_t i = 0; i < doctor->circle_count; i++) free(doctor->circles[i].edges);
    free(doctor->circles);
    doctor->circles = NULL;
    doctor->circle_count = 0;
}

static bool look_for_circles(struct doctor *doctor) {
    forget_circles(doctor);
    int64_t count = cycles_find(doctor->edges.edges, doctor->edges.count, doctor->processes.count, add_circle, doctor);
    return count >= 0 && !doctor->no_memory;
}

/* A circle that existed only for a moment is gone at the next look. */
static bool find_circles(struct doctor *doctor) {
    bool good = edges_look(&doctor->edges, &doctor->processes, doctor->patients, doctor->patient_count) &&
                look_for_circles(doctor);
    for (int i = 1; i < LOOKS && good && doctor->circle_count; i++) {
        struct edges again = {0};
        nanosleep(&(struct timespec){.tv_nsec = APART_NS}, NULL);
        good = edges_look(&again, &doctor->processes, doctor->patients, doctor->patient_count) &&
               edges_keep_common(&doctor->edges, &again) && look_for_circles(doctor);
        edges_free(&again);
    }
    return good;
}

/* The command. */

int doctor_verdict(const struct doctor *doctor) {
    int status = doctor->circle_count ? CLI_NOT_EQUAL : CLI_OK;
    for (uint32_t i = 0; i < doctor->patient_count; i++) {
        if (!doctor->patients[i].examined) return CLI_CANNOT;
        if (doctor->patients[i].finding_count && !doctor->patients[i].companion) status = CLI_NOT_EQUAL;
    }
    return status;
}

static int treat(struct doctor *doctor, bool all, bool fix) {
    for (uint32_t i = 0; i < doctor->patient_count; i++) examine(&doctor->patients[i]);
    drop_missing(doctor, all);
    for (uint32_t i = 0; i < doctor->patient_count && fix; i++) repair(&doctor->patients[i]);
    if (!find_circles(doctor)) return cli_fail(VIGIL_ENOMEM, "cannot look for processes that wait for each other");
    (cli_wants_json ? doctor_print_json : doctor_print)(doctor);
    return doctor_verdict(doctor);
}

static void discharge(struct doctor *doctor) {
    for (uint32_t i = 0; i < doctor->patient_count; i++) {
        free(doctor->patients[i].findings);
        free((char *)doctor->patients[i].name);
    }
    free(doctor->patients);
    free(doctor->processes.all);
    edges_free(&doctor->edges);
    forget_circles(doctor);
}

int cli_doctor(int count, char **arguments) {
    bool all = false, fix = false;
    const struct cli_option options[] = {{"all", 'a', CLI_FLAG, &all}, {"fix", 0, CLI_FLAG, &fix}, {0}};
    struct cli_arguments parsed;
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    if (parsed.operand_count == 0 && !all) return cli_usage("a NAME is missing: name the segments, or use --all");
    if (parsed.operand_count && all) return cli_usage("use either --all or names, not both");
    struct doctor doctor = {0};
    for (int i = 0; i < parsed.operand_count; i++) add_patient(parsed.operands[i], &doctor);
    int64_t status = cli_list_names(false, all ? add_patient : add_companion, &doctor);
    if (all && doctor.patient_count)
        qsort(doctor.patients, doctor.patient_count, sizeof *doctor.patients, doctor_by_name);
    int exit_status = all && status < 0  ? cli_fail_list((int)status)
                      : doctor.no_memory ? cli_fail(VIGIL_ENOMEM, "too many segments")
                                         : treat(&doctor, all, fix);
    discharge(&doctor);
    return exit_status;
}
