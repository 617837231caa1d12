/* SPDX-License-Identifier: MIT */
/* shared_pingpong.h - the round trip of two processes. To be included as players.h is, and after `arena`. */
#ifndef BENCH_SHARED_PINGPONG_H
#define BENCH_SHARED_PINGPONG_H

#include "players.h"

static void shared_pingpong_block(const struct job *job, double figures[FIGURES_MAX]) {
    pinged = ponged = 0; /* like the words in a new arena */
    figures[0] = shared_per_round_trip_ns(&arena, ping, pong, job->n);
}

#endif
