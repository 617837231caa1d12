/* SPDX-License-Identifier: MIT */
#include "member.h"

#include "backing.h"
#include "events.h"
#include "base/tuning.h"
#include "prim_file.h"
#include "table.h"
#include "vigil/status.h"

int (*segment_leaving)(struct segment *) PRIM_PROCESS;
static uint32_t joins PRIM_PROCESS;

/* The truth about whether a member lives; true also if the kernel cannot tell. */
static bool member_lock_is_held(const struct segment *segment, uint32_t row) {
    return row == segment->self || prim_file_test(segment->fd, SEGMENT_LOCKS_AT + row, 1) != PRIM_LOCK_FREE;
}

bool segment_member_alive(const struct segment *segment, uint32_t row) {
    if (row == segment->self) return true; /* the kernel reports only locks of other descriptions */
    if (!(prim_load_acquire(&segment_member(segment, row)->life) & SEGMENT_JOINED)) return false;
    return segment_pulse_beats(segment_pulse(segment_member(segment, row))) || member_lock_is_held(segment, row);
}

uint32_t segment_rows(const struct segment *segment) {
    uint32_t used = prim_load_acquire(&segment_header(segment)->rows), backed = backing_members(segment);
    return used < backed ? used : backed;
}

static bool member_goes_by(const struct segment_member *row, uint32_t number) {
    bool joined = prim_load_acquire(&row->life) & SEGMENT_JOINED;
    return joined && prim_load_acquire(&row->number) == number;
}

/*
 * The hash table `found` caches the rows in which members were found, by their numbers: an entry is right if its
 * row's member has the number. The table has at least twice as many entries as there are rows, so nearly all
 * members find a free one in MEMBER_PROBES entries.
 */
#define MEMBER_PROBES 8u

static uint32_t *member_entry(const struct segment *segment, uint32_t number, uint32_t probe) {
    return (uint32_t *)&segment->found[(number + probe) & segment->found_mask];
}

static struct segment_member *member_known(const struct segment *segment, uint32_t number, uint32_t used) {
    for (uint32_t probe = 0; probe < MEMBER_PROBES; probe++) {
        uint32_t at = prim_load_relaxed(member_entry(segment, number, probe));
        if (at < used && member_goes_by(segment_member(segment, at), number)) return segment_member(segment, at);
    }
    return NULL;
}

/* Put the row into the first of the number's entries that is not right for another member. */
static void member_note(const struct segment *segment, uint32_t number, uint32_t row, uint32_t used) {
    for (uint32_t probe = 0; probe < MEMBER_PROBES; probe++) {
        uint32_t *entry = member_entry(segment, number, probe), at = prim_load_relaxed(entry);
        if (at == row) return;
        uint32_t other = at < used ? prim_load_relaxed(&segment_member(segment, at)->number) : 0;
        uint32_t distance = (uint32_t)(entry - segment->found) - other;
        bool right = other && (distance & segment->found_mask) < MEMBER_PROBES;
        if (right && member_goes_by(segment_member(segment, at), other)) continue;
        prim_store_relaxed(entry, row);
        return;
    }
}

/* Look at all rows, and note the row of each member on the way. */
static struct segment_member *member_search(const struct segment *segment, uint32_t number, uint32_t used) {
    struct segment_member *found = NULL;
    for (uint32_t i = 0; i < used; i++) {
        struct segment_member *row = segment_member(segment, i);
        uint32_t other = prim_load_relaxed(&row->number);
        if (!other || !member_goes_by(row, other)) continue;
        member_note(segment, other, i, used);
        if (other == number) found = row;
    }
    return found;
}

struct segment_member *segment_find_member(const struct segment *segment, uint32_t number) {
    prim_fence_seq_cst(); /* pairs with the fence in member_sign_in; segment_rows must come after it, too */
    uint32_t used = segment_rows(segment);
    struct segment_member *known = member_known(segment, number, used);
    return known ? known : member_search(segment, number, used);
}

bool segment_has_claimant(const struct segment *segment, uint32_t claim) {
    const struct segment_member *row = segment_find_member(segment, claim_number(claim));
    return row && claim_of(claim_number(claim), segment_incarnation(row)) == claim;
}

static void member_record_event(const struct segment *segment, vigil_event_type type, uint32_t number) {
    uint32_t ours = prim_load_relaxed(&vigil__holder) / SEGMENT_HOLDER;
    if (events_wanted(segment)) {
        event_write(segment, (struct segment_event){
                                 .type = (uint16_t)type,
                                 .number = number,
                                 .by = type == VIGIL_EVENT_DIED ? ours : 0,
                                 .pid = type == VIGIL_EVENT_JOINED ? prim_process_id() : 0,
                             });
    }
}

static void member_count(uint32_t *counter) {
    prim_fetch_add_acq_rel(counter, 1);
}

/* In the row, which is the truth, and in the header, where one load tells keepers that there is work. */
static void member_count_death(struct segment *segment, struct segment_member *row) {
    member_count(&row->deaths);
    if (!BUG(death_not_counted)) member_count(&segment_header(segment)->deaths);
}

/* D1 and D2, for a row that was JOINED in that life; its lock is free, or held by the caller (J1). */
static void member_strike_off_dead(struct segment *segment, struct segment_member *row, uint32_t life) {
    uint32_t number = prim_load_relaxed(&row->number);
    member_count_death(segment, row); /* D1 */
    if (BUG(struck_off_anyway)) prim_store_seq_cst(&row->life, life & ~SEGMENT_JOINED);
    else if (!prim_cas_seq_cst(&row->life, &life, life & ~SEGMENT_JOINED)) return; /* D2 */
    member_count_death(segment, row);
    member_record_event(segment, VIGIL_EVENT_DIED, number);
}

bool segment_ask_kernel(struct segment *segment, uint32_t i) {
    struct segment_member *row = segment_member(segment, i);
    uint32_t life = prim_load_acquire(&row->life);
    if (BUG(stopped_is_dead) && i != segment->self) prim_store_seq_cst(&row->life, life & ~SEGMENT_JOINED);
    if (!(life & SEGMENT_JOINED)) return true;
    if (member_lock_is_held(segment, i)) return false;
    if (!segment_is_file(segment, segment->fd)) return false; /* the user closed the fd: we tested another file */
    member_strike_off_dead(segment, row, life);
    return true;
}

bool segment_strike_off(struct segment *segment, uint32_t i) {
    bool beats = segment_pulse_beats(segment_pulse(segment_member(segment, i)));
    return beats && !BUG(stopped_is_dead) ? false : segment_ask_kernel(segment, i);
}

bool segment_member_lives(struct segment *segment, uint32_t number) {
    struct segment_member *row = segment_find_member(segment, number);
    if (!row) return false;
    segment_strike_off(segment, (uint32_t)(row - segment_member(segment, 0)));
    return segment_find_member(segment, number);
}

void segment_ask_kernel_about(struct segment *segment, uint32_t number) {
    struct segment_member *row = segment_find_member(segment, number);
    if (row) segment_ask_kernel(segment, (uint32_t)(row - segment_member(segment, 0)));
}

void segment_strike_off_all(struct segment *segment) {
    for (uint32_t i = 0, used = segment_rows(segment); i < used; i++) segment_strike_off(segment, i);
}

uint32_t segment_deaths(const struct segment *segment) {
    uint32_t deaths = 0;
    for (uint32_t i = 0, used = segment_rows(segment); i < used; i++) {
        /* Acquire: what the dead member did is visible to the process that counted its death, and so to us. */
        deaths += prim_load_acquire(&segment_member(segment, i)->deaths);
    }
    return deaths;
}

void segment_poke(struct segment_member *row) {
    uint64_t *relay = &row->relay, seen = prim_load_seq_cst(relay);
    while (seen & SEGMENT_RESTING) {
        if (!prim_cas_acq_rel(relay, &seen, seen & ~(uint64_t)SEGMENT_RESTING)) continue;
        prim_wake_shared_all((uint32_t *)(void *)relay);
        return;
    }
}

/* Joining. */

bool member_lock_door(struct segment *segment) {
    uint32_t nothing = 0;
    enum prim_lock door;
    while ((door = prim_file_lock(segment->fd, SEGMENT_DOOR_AT)) == PRIM_LOCK_HELD) {
        prim_park(&nothing, 0, prim_now_ns() + MEMBER_DOOR_NS); /* by then the joiner should be done */
    }
    return door == PRIM_LOCK_FREE;
}

/* Our own locks do not count: the kernel reports only those of other descriptions. */
static bool member_alone(const struct segment *segment) {
    return prim_file_test(segment->fd, SEGMENT_LOCKS_AT, segment->members) == PRIM_LOCK_FREE;
}

/* Our number, or, if we are a member of no segment, a new one. False: another member has our number. */
static bool member_choose_number(struct segment *segment) {
    uint32_t mine = prim_load_relaxed(&vigil__holder) / SEGMENT_HOLDER;
    if (table_count()) return !segment_find_member(segment, mine);
    do mine = prim_random() >> (32 - SEGMENT_NUMBER_BITS);
    while (!mine || segment_find_member(segment, mine));
    prim_store_relaxed(&vigil__holder, mine * SEGMENT_HOLDER + 1);
    return true;
}

/* Skips rows with `ignored` in their life: each try costs a system call, so those that look taken come last. */
static int member_take_row(struct segment *segment, uint32_t ignored) {
    for (uint32_t i = 0; i < segment->members; i++) {
        if (!backing_need_member(segment, i)) return VIGIL_ENOMEM;
        if (prim_load_relaxed(&segment_member(segment, i)->life) & ignored) continue;
        enum prim_lock lock = prim_file_lock(segment->fd, SEGMENT_LOCKS_AT + i); /* J1 */
        if (lock == PRIM_LOCK_FAILED) return VIGIL_ESYSTEM;
        if (lock == PRIM_LOCK_HELD) continue;
        segment->self = i;
        return VIGIL_OK;
    }
    return VIGIL_ELIMIT;
}

static int member_take_any_row(struct segment *segment) {
    int status = member_take_row(segment, SEGMENT_JOINED);
    return status == VIGIL_ELIMIT ? member_take_row(segment, 0) : status;
}

void segment_use_row(struct segment *segment, uint32_t row) {
    uint32_t *rows = &segment_header(segment)->rows, seen = prim_load_relaxed(rows);
    if (seen <= row && BUG(rows_lowered)) prim_store_release(rows, row + 1);
    while (seen <= row && !prim_cas_release(rows, &seen, row + 1)) {
    }
}

static void member_sign_in(struct segment *segment) {
    struct segment_member *row = segment_member(segment, segment->self);
    /* Before J3: a process that has seen our number, and searches for us, looks at our row too. */
    if (!BUG(row_overlooked)) segment_use_row(segment, segment->self);
    uint32_t number = vigil__holder / SEGMENT_HOLDER;
    uint32_t life = prim_load_acquire(&row->life);
    if (life & SEGMENT_JOINED) member_strike_off_dead(segment, row, life); /* dead, since we have its lock */
    life = prim_load_relaxed(&row->life);
    row->pid = prim_process_id(); /* J2 */
    prim_store_relaxed(&row->incarnation, prim_process_space() << 4 | joins++ % 16);
    prim_store_relaxed(&row->keeping, 0);
    prim_store_relaxed(&row->pulse.word, 0);
    prim_process_name(row->name, sizeof row->name);
    prim_store_release(&row->number, number); /* release: its reader sees the previous member's death count too */
    prim_store_relaxed(&row->relay, (uint64_t)number << 32);
    prim_store_release(&row->life, (life | SEGMENT_JOINED) + 2); /* J3 */
    prim_fence_seq_cst(); /* a process that sees our number anywhere, and then looks, finds us a member */
    member_record_event(segment, VIGIL_EVENT_JOINED, number);
}

/* No other process has it open: nothing but the user's bytes is believed. */
static void member_begin_anew(struct segment *segment, void (*empty)(struct segment *)) {
    struct segment_header *header = segment_header(segment);
    for (uint32_t i = 0, used = segment_rows(segment); i < used; i++) { /* strike off the dead */
        uint32_t *life = &segment_member(segment, i)->life, seen = prim_load_relaxed(life);
        if (i != segment->self && (seen & SEGMENT_JOINED)) prim_store_seq_cst(life, seen & ~SEGMENT_JOINED);
        prim_store_relaxed(&segment_member(segment, i)->deaths, 0);
    }
    prim_store_relaxed(&header->rows, 0);
    prim_store_relaxed(&header->recovered, 0); /* counts the deaths in the rows, all zero now */
    prim_store_relaxed(&header->patrolled_ns, 0);
    if (prim_load_relaxed(&header->record_until_ns) > prim_now_ns() + EVENTS_RECORDED_NS) {
        prim_store_relaxed(&header->record_until_ns, 0);
    }
    empty(segment);
    backing_end_crowd(segment);
}

/* Poke the nearest keeper before us: we are the first member that it must watch now. */
static void member_poke_watcher(const struct segment *segment) {
    uint32_t used = segment_rows(segment);
    for (uint32_t back = 1; back < used; back++) {
        struct segment_member *row = segment_member(segment, (segment->self + used - back) % used);
        if (!(prim_load_acquire(&row->life) & SEGMENT_JOINED) || !prim_load_seq_cst(&row->keeping)) continue;
        segment_poke(row);
        return;
    }
}

int member_join(struct segment *segment, void (*empty)(struct segment *)) {
    if (!member_lock_door(segment)) return VIGIL_ESYSTEM; /* J0 */
    int status = member_take_any_row(segment);
    if (status == VIGIL_OK && !member_choose_number(segment)) {
        prim_file_unlock(segment->fd, SEGMENT_LOCKS_AT + segment->self);
        status = VIGIL_ELIMIT;
    }
    if (status == VIGIL_OK) {
        if (member_alone(segment)) member_begin_anew(segment, empty);
        member_sign_in(segment);
    }
    prim_file_unlock(segment->fd, SEGMENT_DOOR_AT); /* J4 */
    if (status == VIGIL_OK) member_poke_watcher(segment);
    return status;
}

void member_leave(struct segment *segment, bool leaves_something) {
    struct segment_member *row = segment_member(segment, segment->self);
    member_record_event(segment, VIGIL_EVENT_LEFT, prim_load_relaxed(&row->number));
    if (leaves_something) member_count_death(segment, row);
    prim_store_seq_cst(&row->life, prim_load_relaxed(&row->life) & ~SEGMENT_JOINED); /* L1 */
    if (leaves_something) member_count_death(segment, row);                          /* as after D2 */
    bool watched = prim_load_relaxed(&row->keeping);
    prim_store_relaxed(&row->keeping, 0);
    if (watched)
        prim_wake_shared_all(&row->pulse.word); /* the keeper that watches us sleeps on the pulse: it must look */
    prim_file_unlock(segment->fd, SEGMENT_LOCKS_AT + segment->self); /* L2 */
}
