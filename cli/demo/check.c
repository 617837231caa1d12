/* SPDX-License-Identifier: MIT */
/* Checks the contestants' records against the promises of the library. Nothing here depends on speed. */
#include <stdlib.h>

#include "demo.h"

#define TURN_IS_LOST_NS SECOND /* how long a fair mutex waits for the next waiter to take its turn */

static void sum_up(struct act *act, struct record *record) {
    for (uint32_t i = 0; i < record->count; i++) {
        const struct visit *visit = &record->visits[i];
        int64_t waited_ns = visit->ended_ns - visit->called_ns;
        act->not_once += visit->endings != 1;
        act->granted += visit->ending == GRANTED;
        record->endings[visit->ending]++;
        if (visit->ending == GRANTED && waited_ns > record->longest_wait_ns) record->longest_wait_ns = waited_ns;
    }
    act->not_once += record->visits[record->count].called_ns != 0; /* begun, and not ended */
}

static void sum_up_ticks(struct act *act) {
    const struct record *record = &act->records[TICKING];
    for (uint32_t i = 0; i < record->tick_count; i++) {
        const struct tick *tick = &record->ticks[i];
        act->ticks++;
        act->waiting_ticks += tick->while_waiting;
        if (tick->late_ns > act->latest_tick_ns) act->latest_tick_ns = tick->late_ns;
    }
    for (uint32_t i = 0; i < record->count; i++)
        act->ticking_waited_ns += record->visits[i].ended_ns - record->visits[i].called_ns;
}

/* Grants, in the order in which they happened. */

struct grant {
    const struct visit *visit;
    int contestant;
};

static int check_by_time(const void *left, const void *right) {
    int64_t a = ((const struct grant *)left)->visit->ended_ns, b = ((const struct grant *)right)->visit->ended_ns;
    return (a > b) - (a < b);
}

static struct grant *all_grants(const struct act *act) {
    struct grant *grants = calloc(act->granted + 1, sizeof *grants), *next = grants;
    must("cannot check the order", grants ? VIGIL_OK : VIGIL_ENOMEM);
    for (int i = 0; i < CONTESTANTS; i++) {
        for (uint32_t j = 0; j < act->records[i].count; j++) {
            const struct visit *visit = &act->records[i].visits[j];
            if (visit->ending == GRANTED) *next++ = (struct grant){visit, i};
        }
    }
    qsort(grants, act->granted, sizeof *grants, check_by_time);
    return grants;
}

/* The last visit that began before that time: the only one that can have been in progress then. */
static const struct visit *visit_before(const struct record *record, int64_t time_ns) {
    uint32_t low = 0, high = record->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (record->visits[middle].called_ns < time_ns) low = middle + 1;
        else high = middle;
    }
    return low ? &record->visits[low - 1] : NULL;
}

/*
 * The library takes the time of arrival at some point between the call and the moment when the visit is in line. So
 * one visit certainly came first if it had been seen in line before the other contestant called.
 */
static bool was_there_first(const struct visit *one, const struct visit *other) {
    return one->in_line_ns && one->in_line_ns < other->called_ns && one->leaves_ns > other->called_ns;
}

/* For each other contestant: did it come first, and does it still wait? */
static void check_turn(struct act *act, const struct grant *grant, int64_t free_since_ns) {
    const struct visit *visit = grant->visit;
    bool others_were_first = false, overtook = false;
    for (int i = 0; i < CONTESTANTS; i++) {
        const struct visit *other = visit_before(&act->records[i], visit->called_ns);
        if (i == grant->contestant || !other || !was_there_first(other, visit)) continue;
        others_were_first = true;
        overtook |= other->leaves_ns > visit->ended_ns;
    }
    act->turns += others_were_first;
    if (!overtook) return;
    if (visit->ended_ns - free_since_ns >= TURN_IS_LOST_NS) act->turns_lost++;
    else act->out_of_turn++;
}

/* Whether the contestant held the lock when its process was killed. */
static bool died_with_it(const struct act *act, const struct grant *grant) {
    return is_in_second(act, grant->contestant) && grant->visit->released_ns == act->killed_ns;
}

/* The next holder after one that died with the lock is told so, and no other holder. */
static void check_succession(struct act *act, const struct grant *grant, const struct grant *before) {
    act->overlaps += before && grant->visit->ended_ns < before->visit->released_ns;
    act->misinformed += grant->visit->owner_died != (before && died_with_it(act, before));
    act->after_death += act->killed_ns && grant->visit->ended_ns > act->killed_ns;
}

static void check_grants(struct act *act) {
    struct grant *grants = all_grants(act);
    for (uint32_t i = 0; i < act->granted; i++) {
        check_turn(act, &grants[i], i ? grants[i - 1].visit->released_ns : act->began_ns);
        check_succession(act, &grants[i], i ? &grants[i - 1] : NULL);
    }
    free(grants);
}

/* The second process was killed with the lock held, and the others were granted it after that. */
static bool death_is_right(const struct act *act) {
    bool is_told = act->killed_ns && act->heir_ns > act->killed_ns && act->after_death && !act->lost;
    return !act->misinformed && is_told == act->two_processes;
}

/* A loop that blocked for the lock would not tick while it waits. Twenty ticks of waiting leave room for noise. */
static bool ticked_while_waiting(const struct act *act) {
    return act->waiting_ticks > 0 || act->ticking_waited_ns < 20 * 10 * MILLISECOND;
}

bool check(struct act *act) {
    for (int i = 0; i < CONTESTANTS; i++) sum_up(act, &act->records[i]);
    sum_up_ticks(act);
    check_grants(act);
    act->no_tick = !ticked_while_waiting(act);
    act->wrong_death = !death_is_right(act);
    return !act->intrusions && !act->overlaps && !act->failures && !act->not_once && act->counted == act->granted &&
           act->granted && (!act->fair || !act->out_of_turn) && !act->no_tick && !act->wrong_death;
}
