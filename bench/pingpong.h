/* SPDX-License-Identifier: MIT */
/*
 * pingpong.h - two threads that block throw a ball to and fro. To be included after the contestant's own
 * throw_ball(side, ball) and catch_ball(side, ball): in the same file, the compiler can put them into the loops.
 */
#ifndef BENCH_PINGPONG_H
#define BENCH_PINGPONG_H

#include "bench.h"

static uint32_t pinged, ponged;

static void ping(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        throw_ball(0, ++pinged);
        catch_ball(1, pinged);
    }
}

static void pong(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        catch_ball(0, ++ponged);
        throw_ball(1, ponged);
    }
}

static void pingpong_block(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_round_trip_ns(ping, pong, job->n);
}

#endif
