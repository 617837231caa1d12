/* SPDX-License-Identifier: MIT */
/* Allocation of slots: none is lost, and the lowest are used first. White-box: src/lot/slot.c. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lot/lot.h"

#define MANY 1000

static uint32_t slots[MANY];

static bool in_use[1 << 20]; /* by number */

static void acquire_many(struct lot *lot) {
    for (int i = 0; i < MANY; i++) {
        slots[i] = slot_acquire(lot);
        assert_true(slots[i] != 0 && slots[i] < sizeof in_use);
        assert_false(in_use[slots[i]]);
        in_use[slots[i]] = true;
    }
}

/* In a different order each time. */
static void release_many(struct lot *lot, int step) {
    for (int i = 0; i < MANY; i++) {
        uint32_t slot = slots[i * step % MANY];
        in_use[slot] = false;
        slot_release(lot, slot);
    }
}

static void released_slots_are_used_again(void **state) {
    (void)state;
    struct lot *lot = lot_private();
    acquire_many(lot);
    release_many(lot, 1);
    uint32_t bound = slot_bound(lot);
    for (int round = 0; round < 50; round++) {
        acquire_many(lot);
        release_many(lot, round % 2 ? 7 : 333); /* coprime to MANY */
        assert_int_equal(slot_bound(lot), bound);
    }
}

static void after_a_great_coming_and_going_neighbours_are_neighbours(void **state) {
    (void)state;
    struct lot *lot = lot_private();
    acquire_many(lot);
    release_many(lot, 333);
    acquire_many(lot);
    int ascending = 0;
    for (int i = 1; i < MANY; i++) ascending += slots[i] > slots[i - 1];
    assert_true(ascending >= MANY - 4); /* except the spare ones, and what was left of a chunk */
    release_many(lot, 1);
}

#define FEW 40

static void *use_a_few(void *how_many) {
    struct lot *lot = lot_private();
    uint32_t mine[FEW], count = *(uint32_t *)how_many;
    for (uint32_t i = 0; i < count; i++) mine[i] = slot_acquire(lot);
    for (uint32_t i = 0; i < count; i++) slot_release(lot, mine[i]);
    return NULL;
}

static void use_a_few_elsewhere(uint32_t count) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, use_a_few, &count), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Each thread takes more than it uses. */
static void a_thread_that_ends_gives_everything_back(void **state) {
    (void)state;
    struct lot *lot = lot_private();
    use_a_few_elsewhere(FEW);
    uint32_t bound = slot_bound(lot);
    for (uint32_t i = 0; i < 1500; i++) { /* more than the slots that are free by now */
        use_a_few_elsewhere(i % FEW + 1);
        assert_int_equal(slot_bound(lot), bound);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(released_slots_are_used_again),
        cmocka_unit_test(after_a_great_coming_and_going_neighbours_are_neighbours),
        cmocka_unit_test(a_thread_that_ends_gives_everything_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
