/* SPDX-License-Identifier: MIT */
/* The three-state lock, for processes. */
#include "bench.h"
#include "three_state.h"

static struct word *mutex;

static void open_arena(void) {
    mutex = shared_memory(sizeof *mutex);
}

static void close_arena(void) {
    shared_memory_free(mutex, sizeof *mutex);
}

static const struct arena arena = {.open = open_arena, .close = close_arena};

static void lock(void) {
    three_state_lock(&mutex->value, 0);
}

static void unlock(void) {
    three_state_unlock(&mutex->value, 0);
}

#include "shared_mutex_skills.h"

const struct skill three_state_shared[] = {
    {"shared_mutex_uncontended", shared_mutex_uncontended, false},
    {"shared_mutex_contest", shared_mutex_contest, false},
    {0},
};
