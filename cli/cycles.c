/* SPDX-License-Identifier: MIT */
/* See cycles.h. */
#include <stdlib.h>
#include <string.h>

#include "cycles.h"

#define NONE UINT32_MAX

struct graph {
    const struct edge *edges;
    uint32_t edge_count, processes, waits;
    bool *stuck;     /* per process: it cannot go on, as far as is known */
    bool *hopeless;  /* per wait: all processes that could end it are stuck */
    uint32_t *next;  /* per process: a edge of one of its hopeless waits */
    uint32_t *walk;  /* per process: the walk that visited it; 0: none */
    uint32_t *cycle; /* edges */
};

/* A wait is hopeless if all processes that could end it are stuck, and a process is stuck if one of its waits is
 * hopeless. At first all processes count as stuck; each that turns out not to be may free others. */
static bool free_some(struct graph *graph) {
    memset(graph->hopeless, true, graph->waits * sizeof *graph->hopeless);
    memset(graph->next, 0xff, graph->processes * sizeof *graph->next);
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        if (!graph->stuck[graph->edges[i].holder]) graph->hopeless[graph->edges[i].wait] = false;
    }
    for (uint32_t i = graph->edge_count; i-- > 0;) {
        if (graph->hopeless[graph->edges[i].wait]) graph->next[graph->edges[i].waiter] = i;
    }
    bool freed = false;
    for (uint32_t i = 0; i < graph->processes; i++) {
        if (!graph->stuck[i] || graph->next[i] != NONE) continue;
        graph->stuck[i] = false;
        freed = true;
    }
    return freed;
}

/* A stuck process always has a next, which is stuck too. So the walk comes back to a process that it has visited. */
static bool walk(struct graph *graph, uint32_t from, uint32_t number, uint32_t *count) {
    uint32_t at = from;
    while (graph->walk[at] == 0) {
        graph->walk[at] = number;
        at = graph->edges[graph->next[at]].holder;
    }
    if (graph->walk[at] != number) return false; /* an earlier walk has found this circle */
    uint32_t begin = at;
    *count = 0;
    do {
        graph->cycle[(*count)++] = graph->next[at];
        at = graph->edges[graph->next[at]].holder;
    } while (at != begin);
    return true;
}

static int64_t cycles_find_in(struct graph *graph, cycle_found *found, void *data) {
    int64_t cycles = 0;
    memset(graph->stuck, true, graph->processes * sizeof *graph->stuck);
    while (free_some(graph)) {
    }
    for (uint32_t i = 0; i < graph->processes; i++) {
        uint32_t count;
        if (!graph->stuck[i] || graph->walk[i] || !walk(graph, i, i + 1, &count)) continue;
        found(graph->cycle, count, data);
        cycles++;
    }
    return cycles;
}

int64_t cycles_find(const struct edge *edges, uint32_t edge_count, uint32_t processes, cycle_found *found, void *data) {
    struct graph graph = {.edges = edges, .edge_count = edge_count, .processes = processes};
    for (uint32_t i = 0; i < edge_count; i++) {
        if (edges[i].wait >= graph.waits) graph.waits = edges[i].wait + 1;
    }
    if (processes == 0 || edge_count == 0) return 0;
    graph.stuck = calloc(processes, sizeof *graph.stuck);
    graph.hopeless = calloc(graph.waits, sizeof *graph.hopeless);
    graph.next = calloc(processes, sizeof *graph.next);
    graph.walk = calloc(processes, sizeof *graph.walk);
    graph.cycle = calloc(processes, sizeof *graph.cycle);
    bool room = graph.stuck && graph.hopeless && graph.next && graph.walk && graph.cycle;
    int64_t cycles = room ? cycles_find_in(&graph, found, data) : -1;
    free(graph.stuck);
    free(graph.hopeless);
    free(graph.next);
    free(graph.walk);
    free(graph.cycle);
    return cycles;
}
