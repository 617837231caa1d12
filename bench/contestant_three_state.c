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

typedef uint32_t slot_mutex;
#define SLOT_MUTEX_INIT 0

static void slot_lock(slot_mutex *word) {
    three_state_lock(word, FUTEX_PRIVATE_FLAG);
}

static void slot_unlock(slot_mutex *word) {
    three_state_unlock(word, FUTEX_PRIVATE_FLAG);
}

#include "mutex_slots.h"

static const struct skill skills[] = {
    {"mutex_uncontended", mutex_uncontended, false},
    {"mutex_contest", mutex_contest, false},
    {"mutex_waits", mutex_waits, false},
    {"mutex_random", mutex_random, false},
    {0},
};
extern const struct skill three_state_shared[];
const struct contestant contestant_three_state = {.name = "3-state", .skills = {skills, three_state_shared}};
