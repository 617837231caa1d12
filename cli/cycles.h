/* SPDX-License-Identifier: MIT */
/* cycles.h - who waits for whom in a circle. */
#ifndef VIGIL_CLI_CYCLES_H
#define VIGIL_CLI_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A process waits for another. Whoever waits for a lock needs all who hold it to go on: each is a wait of its own.
 * Whoever waits for a permit needs any one of those who have them: these are the same wait. Waits are numbered from 0.
 */
struct tie {
    uint32_t waiter, holder, wait;
};

/* The ties of a circle, by their places in the array: the holder of each is the waiter of the next. */
typedef void cycle_found(const uint32_t *ties, uint32_t count, void *data);

/*
 * Calls `found` for circles of processes none of which can go on before another of them does: wherever somebody can
 * never go on there is such a circle, and each that is found is found once. How many; or -1: no memory.
 */
int64_t cycles_find(const struct tie *ties, uint32_t tie_count, uint32_t processes, cycle_found *found, void *data);

#endif
