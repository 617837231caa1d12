/* SPDX-License-Identifier: MIT */
/* The three-state lock, for the threads of one process. */
#include "bench.h"
#include "three_state.h"

static struct word mutex;

static void lock(void) {
    three_state_lock(&mutex.value, FUTEX_PRIVATE_FLAG);
}

static void unlock(void) {
    three_state_unlock(&mutex.value, FUTEX_PRIVATE_FLAG);
}

#include "mutex_skills.h"

static const struct skill skills[] = {
    {"mutex_uncontended", mutex_uncontended, false},
    {"mutex_contest", mutex_contest, false},
    {"mutex_waits", mutex_waits, false},
    {0},
};
extern const struct skill three_state_shared[];
const struct contestant contestant_three_state = {.name = "3-state", .skills = {skills, three_state_shared}};
