/* SPDX-License-Identifier: MIT */
/* Turns at a mutex that is held across an await: counts them, and checks that they do not overlap. */
#include "await.h"

enum { ROUNDS_OF_ALL = 100 };

static struct {
    uint64_t n, all, granted, start_ns;
    bool held;
} turns;

void await_open(uint64_t n) {
    turns.n = n;
    turns.all = n * (is_quick() ? 2 : ROUNDS_OF_ALL);
    turns.granted = 0;
}

/* The time begins when all of them are in line. */
void await_begin(void) {
    must(!turns.held);
    turns.held = true;
    if (++turns.granted == turns.n) turns.start_ns = now_ns();
}

bool await_end(void) {
    must(turns.held);
    turns.held = false;
    return turns.granted + turns.n <= turns.all;
}

double await_close(void) {
    must(turns.granted == turns.all);
    return (double)(now_ns() - turns.start_ns) / (double)(turns.all - turns.n);
}
