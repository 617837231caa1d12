/* SPDX-License-Identifier: MIT */
/* cycles.h - finds processes that wait for each other in a circle. */
#ifndef VIGIL_CLI_CYCLES_H
#define VIGIL_CLI_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An edge: a process waits for another. A waiter for a lock needs all its holders to go on: each edge is a wait of its
 * own. A waiter for a permit needs any one of the holders: these edges belong to the same wait. Waits are numbered from
 * 0.
 */
struct edge {
    uint32_t waiter, holder, wait;
};

/* The edges of a circle, as indices into the array: the holder of each is the waiter of the next. */
typedef void cycle_found(const uint32_t *edges, uint32_t count, void *data);

/*
 * Calls `found` for circles of processes none of which can go on before another of them does. If any process can
 * never go on, there is such a circle; each circle is found once. Returns how many; -1: no memory.
 */
int64_t cycles_find(const struct edge *edges, uint32_t edge_count, uint32_t processes, cycle_found *found, void *data);

#endif
