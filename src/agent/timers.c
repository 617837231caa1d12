/* SPDX-License-Identifier: MIT */
#include "timers.h"

#include <assert.h>
#include <stddef.h>

#include "prim.h"

#define TIMERS_BYTES (TIMER_LEVELS * TIMER_BINS * sizeof(struct timer_bin))

bool timers_open(struct timers *timers) {
    timers->bin = prim_map(TIMERS_BYTES);
    if (!timers->bin) return false;
    if (prim_map_open(timers->bin, TIMERS_BYTES, false)) return true;
    timers_close(timers);
    return false;
}

void timers_close(struct timers *timers) {
    prim_unmap(timers->bin, TIMERS_BYTES);
}

static unsigned timers_lowest_bit(uint64_t bits) {
    return (unsigned)__builtin_ctzll(bits);
}

static unsigned timers_lowest_bin(const struct timers *timers, unsigned level) {
    unsigned word = timers_lowest_bit(timers->taken[level].words);
    return word * 64 + timers_lowest_bit(timers->taken[level].bin[word]);
}

static void timers_mark_taken(struct timers *timers, unsigned level, unsigned at) {
    timers->taken[level].bin[at / 64] |= UINT64_C(1) << at % 64;
    timers->taken[level].words |= 1u << at / 64;
    timers->levels |= 1u << level;
}

static void timers_mark_empty(struct timers *timers, unsigned level, unsigned at) {
    timers->taken[level].bin[at / 64] &= ~(UINT64_C(1) << at % 64);
    if (timers->taken[level].bin[at / 64]) return;
    timers->taken[level].words &= ~(1u << at / 64);
    if (!timers->taken[level].words) timers->levels &= ~(1u << level);
}

static unsigned timers_digit(uint64_t time_ns, unsigned level) {
    return (time_ns >> (level * TIMER_DIGIT_BITS)) & (TIMER_BINS - 1);
}

static unsigned timers_level_of(const struct timers *timers, uint64_t deadline_ns) {
    uint64_t difference = deadline_ns ^ timers->last_ns;
    return difference ? (63 - (unsigned)__builtin_clzll(difference)) / TIMER_DIGIT_BITS : 0;
}

static void timers_deal(struct timers *timers, vigil_op *op) {
    assert(op->deadline_ns >= timers->last_ns);
    unsigned level = timers_level_of(timers, op->deadline_ns), at = timers_digit(op->deadline_ns, level);
    struct timer_bin *bin = &timers->bin[level][at];
    if (!bin->first || op->deadline_ns < bin->least_ns) bin->least_ns = op->deadline_ns;
    op->timer_next = bin->first;
    op->timer_link = &bin->first;
    if (bin->first) bin->first->timer_link = &op->timer_next;
    bin->first = op;
    timers_mark_taken(timers, level, at);
}

void timers_add(struct timers *timers, vigil_op *op, uint64_t now_ns) {
    if (!timers->levels) timers->last_ns = now_ns < op->deadline_ns ? now_ns : op->deadline_ns;
    timers_deal(timers, op);
}

void timers_remove(struct timers *timers, vigil_op *op) {
    *op->timer_link = op->timer_next;
    if (op->timer_next) op->timer_next->timer_link = op->timer_link;
    /* Its bin still follows from its deadline: last_ns has changed only in lower digits, or in this digit to one that
     * still differs. */
    unsigned level = timers_level_of(timers, op->deadline_ns), at = timers_digit(op->deadline_ns, level);
    if (!timers->bin[level][at].first) timers_mark_empty(timers, level, at);
    op->timer_link = NULL;
}

void timers_move(vigil_op *from, vigil_op *to) {
    *to->timer_link = to;
    if (to->timer_next) to->timer_next->timer_link = &to->timer_next;
    from->timer_link = NULL;
}

static const struct timer_bin *timers_first_bin(const struct timers *timers) {
    unsigned level = timers_lowest_bit(timers->levels);
    return &timers->bin[level][timers_lowest_bin(timers, level)];
}

uint64_t timers_next(const struct timers *timers) {
    return timers->levels ? timers_first_bin(timers)->least_ns : PRIM_NEVER;
}

vigil_op *timers_first(const struct timers *timers) {
    return timers->levels ? timers_first_bin(timers)->first : NULL;
}

static uint64_t timers_bin_begins(const struct timers *timers, unsigned level, unsigned at) {
    unsigned shift = level * TIMER_DIGIT_BITS;
    uint64_t digits_above =
        level + 1 < TIMER_LEVELS ? timers->last_ns >> (shift + TIMER_DIGIT_BITS) << (shift + TIMER_DIGIT_BITS) : 0;
    return digits_above | (uint64_t)at << shift;
}

vigil_op *timers_due(struct timers *timers, uint64_t now_ns) {
    while (timers_next(timers) <= now_ns) {
        unsigned level = timers_lowest_bit(timers->levels), at = timers_lowest_bin(timers, level);
        vigil_op *op = timers->bin[level][at].first;
        if (level == 0) {
            timers_remove(timers, op);
            return op;
        }
        timers->last_ns = timers_bin_begins(timers, level, at);
        timers->bin[level][at].first = NULL;
        timers_mark_empty(timers, level, at);
        for (vigil_op *next; op; op = next) {
            next = op->timer_next;
            timers_deal(timers, op);
        }
    }
    return NULL;
}
