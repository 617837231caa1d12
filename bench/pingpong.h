/* SPDX-License-Identifier: MIT */
/* pingpong.h - the round trip of two threads. To be included as players.h is. */
#ifndef BENCH_PINGPONG_H
#define BENCH_PINGPONG_H

#include "players.h"

static void pingpong_block(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_round_trip_ns(ping, pong, job->n);
}

#endif
