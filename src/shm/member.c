/* SPDX-License-Identifier: MIT */
#include "member.h"

#include "events.h"
#include "prim_file.h"
#include "table.h"
#include "vigil/status.h"

#define MEMBER_DOOR_NS UINT64_C(1000000)

int (*segment_leaving)(struct segment *) PRIM_PROCESS;

bool segment_member_alive(const struct segment *segment, uint32_t record) {
    if (record == segment->self) return true; /* the kernel tells us of others' locks only */
    if (!(prim_load_acquire(&segment_member(segment, record)->life) & SEGMENT_JOINED)) return false;
    return prim_file_test(segment->fd, SEGMENT_LOCKS_AT + record, 1) != PRIM_LOCK_FREE;
}

uint32_t segment_records(const struct segment *segment) {
    uint32_t used = prim_load_acquire(&segment_header(segment)->records);
    return used < segment->members ? used : segment->members;
}

struct segment_member *segment_find_member(const struct segment *segment, uint32_t number) {
    prim_fence_seq_cst(); /* pairs with that in member_sign_in */
    for (uint32_t i = 0, used = segment_records(segment); i < used; i++) {
        struct segment_member *record = segment_member(segment, i);
        bool joined = prim_load_acquire(&record->life) & SEGMENT_JOINED;
        if (joined && prim_load_acquire(&record->number) == number) return record;
    }
    return NULL;
}

static void member_tell(const struct segment *segment, vigil_event_type type, uint32_t number) {
    uint32_t ours = prim_load_relaxed(&vigil_holder) / SEGMENT_HOLDER;
    if (events_wanted(segment)) {
        event_write(segment, (struct segment_event){
                                 .type = (uint16_t)type,
                                 .number = number,
                                 .by = type == VIGIL_EVENT_DIED ? ours : 0,
                                 .pid = type == VIGIL_EVENT_JOINED ? prim_process_id() : 0,
                             });
    }
}

static void member_count_death(struct segment_member *record) {
    uint32_t seen = prim_load_relaxed(&record->deaths);
    while (!prim_cas_release(&record->deaths, &seen, seen + 1)) {
    }
}

/* If it is dead: D1 and D2. */
static void member_strike_off(struct segment *segment, uint32_t i) {
    struct segment_member *record = segment_member(segment, i);
    uint32_t life = prim_load_acquire(&record->life), number = prim_load_relaxed(&record->number);
    if (BUG(stopped_is_dead) && i != segment->self) prim_store_seq_cst(&record->life, life & ~SEGMENT_JOINED);
    if (!(life & SEGMENT_JOINED) || segment_member_alive(segment, i)) return;
    if (!segment_is_file(segment, segment->fd)) return; /* the user has closed it: it was another one's lock */
    member_count_death(record);                         /* D1 */
    if (BUG(struck_off_anyway)) prim_store_seq_cst(&record->life, life & ~SEGMENT_JOINED);
    else if (!prim_cas_seq_cst(&record->life, &life, life & ~SEGMENT_JOINED)) return; /* D2 */
    member_count_death(record);
    member_tell(segment, VIGIL_EVENT_DIED, number);
}

bool segment_lives(struct segment *segment, uint32_t number) {
    struct segment_member *record = segment_find_member(segment, number);
    if (!record) return false;
    member_strike_off(segment, (uint32_t)(record - segment_member(segment, 0)));
    return segment_find_member(segment, number);
}

/* How many have had the record and have it no longer. */
static uint32_t member_gone_before(uint32_t life) {
    return life / 2 - (life & SEGMENT_JOINED);
}

struct segment_census segment_census(struct segment *segment) {
    struct segment_census census = {0};
    for (uint32_t i = 0, used = segment_records(segment); i < used; i++) {
        struct segment_member *record = segment_member(segment, i);
        member_strike_off(segment, i);
        uint32_t life = prim_load_acquire(&record->life); /* and so the deaths before it */
        census.departures += member_gone_before(life);
        census.deaths += prim_load_relaxed(&record->deaths);
        census.members += life & SEGMENT_JOINED;
        census.watchers += (life & SEGMENT_JOINED) && prim_load_relaxed(&record->watching);
    }
    return census;
}

/* Joining. */

bool member_lock_door(struct segment *segment) {
    uint32_t nothing = 0;
    enum prim_lock door;
    while ((door = prim_file_lock(segment->fd, SEGMENT_DOOR_AT)) == PRIM_LOCK_HELD) {
        prim_park(&nothing, 0, prim_now_ns() + MEMBER_DOOR_NS); /* until then, whoever is joining should have done so */
    }
    return door == PRIM_LOCK_FREE;
}

/* The kernel tells us of others' locks only. */
static bool member_alone(const struct segment *segment) {
    return prim_file_test(segment->fd, SEGMENT_LOCKS_AT, segment->members) == PRIM_LOCK_FREE;
}

/* Ours, or, if we are a member nowhere, a new one. False: somebody else has ours. */
static bool member_choose_number(struct segment *segment) {
    uint32_t mine = prim_load_relaxed(&vigil_holder) / SEGMENT_HOLDER;
    if (table_count()) return !segment_find_member(segment, mine);
    do mine = prim_random() >> (32 - SEGMENT_NUMBER_BITS);
    while (!mine || segment_find_member(segment, mine));
    prim_store_relaxed(&vigil_holder, mine * SEGMENT_HOLDER + 1);
    return true;
}

/* Those that look taken are looked at only if there is no other, since that takes a call of the system for each. */
static int member_take_record(struct segment *segment, uint32_t ignored) {
    for (uint32_t i = 0; i < segment->members; i++) {
        if (prim_load_relaxed(&segment_member(segment, i)->life) & ignored) continue;
        enum prim_lock lock = prim_file_lock(segment->fd, SEGMENT_LOCKS_AT + i); /* J1 */
        if (lock == PRIM_LOCK_FAILED) return VIGIL_ESYSTEM;
        if (lock == PRIM_LOCK_HELD) continue;
        segment->self = i;
        return VIGIL_OK;
    }
    return VIGIL_ELIMIT;
}

static int member_take_any_record(struct segment *segment) {
    int status = member_take_record(segment, SEGMENT_JOINED);
    return status == VIGIL_ELIMIT ? member_take_record(segment, 0) : status;
}

void segment_use_record(struct segment *segment, uint32_t record) {
    uint32_t *records = &segment_header(segment)->records, seen = prim_load_relaxed(records);
    if (seen <= record && BUG(records_lowered)) prim_store_release(records, record + 1);
    while (seen <= record && !prim_cas_release(records, &seen, record + 1)) {
    }
}

static void member_sign_in(struct segment *segment) {
    struct segment_member *record = segment_member(segment, segment->self);
    /* Before J3: whoever looks for us, having seen our number, looks at our record too. */
    if (!BUG(record_overlooked)) segment_use_record(segment, segment->self);
    uint32_t number = vigil_holder / SEGMENT_HOLDER, life = prim_load_relaxed(&record->life);
    if (life & SEGMENT_JOINED) member_count_death(record); /* J2; who had it has not been struck off */
    record->pid = prim_process_id();
    prim_store_relaxed(&record->watching, 0);
    prim_process_name(record->name, sizeof record->name);
    prim_store_release(&record->number, number); /* who sees it has heard of whoever had the record before */
    prim_store_relaxed(&record->mail, (uint64_t)number << 32);
    prim_store_release(&record->life, (life | SEGMENT_JOINED) + 2); /* J3 */
    prim_fence_seq_cst(); /* whoever sees our number anywhere, and then looks, sees that we are a member */
    member_tell(segment, VIGIL_EVENT_JOINED, number);
}

/* Nobody else has it open: nothing is believed but the user's bytes. */
static void member_begin_anew(struct segment *segment, void (*empty)(struct segment *)) {
    struct segment_header *header = segment_header(segment);
    for (uint32_t i = 0, used = segment_records(segment); i < used; i++) { /* strike off who has died */
        uint32_t *life = &segment_member(segment, i)->life, seen = prim_load_relaxed(life);
        if (i != segment->self && (seen & SEGMENT_JOINED)) prim_store_seq_cst(life, seen & ~SEGMENT_JOINED);
    }
    prim_store_relaxed(&header->records, 0);
    prim_store_relaxed(&header->departures, UINT32_MAX); /* whatever they are, somebody will look */
    prim_store_relaxed(&header->deaths, UINT32_MAX);
    prim_store_relaxed(&header->look_due_ns, 0);
    prim_store_relaxed(&header->watchers, 0);
    if (prim_load_relaxed(&header->record_until_ns) > prim_now_ns() + EVENTS_RECORDED_NS) {
        prim_store_relaxed(&header->record_until_ns, 0);
    }
    empty(segment);
}

int member_join(struct segment *segment, void (*empty)(struct segment *)) {
    if (!member_lock_door(segment)) return VIGIL_ESYSTEM; /* J0 */
    int status = member_take_any_record(segment);
    if (status == VIGIL_OK && !member_choose_number(segment)) {
        prim_file_unlock(segment->fd, SEGMENT_LOCKS_AT + segment->self);
        status = VIGIL_ELIMIT;
    }
    if (status == VIGIL_OK) {
        if (member_alone(segment)) member_begin_anew(segment, empty);
        member_sign_in(segment);
    }
    prim_file_unlock(segment->fd, SEGMENT_DOOR_AT); /* J4 */
    return status;
}

void member_leave(struct segment *segment, bool leaves_something) {
    struct segment_member *record = segment_member(segment, segment->self);
    member_tell(segment, VIGIL_EVENT_LEFT, prim_load_relaxed(&record->number));
    if (leaves_something) member_count_death(record);
    prim_store_seq_cst(&record->life, prim_load_relaxed(&record->life) & ~SEGMENT_JOINED); /* L1 */
    if (leaves_something) member_count_death(record);                                      /* as after D2 */
    prim_file_unlock(segment->fd, SEGMENT_LOCKS_AT + segment->self);                       /* L2 */
}
