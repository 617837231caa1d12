/* SPDX-License-Identifier: MIT */
/* Boost.Interprocess: the calls are in boost.cpp. */
#include "bench.h"
#include "boost.h"

static void *memory;

static void open_arena(void) {
    memory = shared_memory(boost_size());
    boost_open(memory);
}

static void close_arena(void) {
    shared_memory_free(memory, boost_size());
}

static const struct arena arena = {.open = open_arena, .close = close_arena};

static void shared_mutex_uncontended(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = shared_per_call_ns(&arena, boost_lock_loop, job->n);
}

static void shared_mutex_contest(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_processes(job, &arena, (struct lock){boost_lock, boost_unlock}, figures);
}

static void shared_pingpong_block(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = shared_per_round_trip_ns(&arena, boost_ping, boost_pong, job->n);
}

static const struct skill skills[] = {
    {"shared_mutex_uncontended", shared_mutex_uncontended, false},
    {"shared_mutex_contest", shared_mutex_contest, false},
    {"shared_pingpong_block", shared_pingpong_block, false},
    {0},
};
const struct contestant contestant_boost = {.name = "Boost", .skills = {skills}};
