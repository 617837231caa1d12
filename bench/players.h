/* SPDX-License-Identifier: MIT */
/*
 * players.h - two players that block throw a ball to and fro. To be included after the contestant's own
 * throw_ball(side, ball) and catch_ball(side, ball): in the same file, the compiler can inline them into the loops.
 */
#ifndef BENCH_PLAYERS_H
#define BENCH_PLAYERS_H

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

#endif
