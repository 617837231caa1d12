/* SPDX-License-Identifier: MIT */
/* The agent's deadlines, compared with a plain list. */
#include "support.h"

#include "agent/timers.h"

#define MOST 300

static struct timers timers;
static vigil_op *list[MOST]; /* unordered: the earliest is found by looking at all */
static unsigned list_length;
static vigil_op ops[MOST];
static uint64_t seed;

static uint64_t earliest(void) {
    uint64_t least = PRIM_NEVER;
    for (unsigned i = 0; i < list_length; i++) {
        if (list[i]->deadline_ns < least) least = list[i]->deadline_ns;
    }
    return least;
}

static void list_remove(vigil_op *op) {
    unsigned i = 0;
    while (i < list_length && list[i] != op) i++;
    assert_true(i < list_length);
    list[i] = list[--list_length];
}

static vigil_op *idle_op(void) {
    for (unsigned i = 0; i < MOST; i++) {
        if (!ops[i].timer_link) return &ops[i];
    }
    return NULL;
}

/*
 * Of every magnitude, from the next nanosecond to some days from now: 10000 of the longest do not overflow the clock.
 */
static uint64_t random_duration(void) {
    unsigned shift = 15 + (unsigned)(random_next(&seed) % 48);
    return 1 + (random_next(&seed) >> shift);
}

static void add(uint64_t now_ns, uint64_t deadline_ns) {
    vigil_op *op = idle_op();
    if (!op) return;
    op->deadline_ns = deadline_ns;
    timers_add(&timers, op, now_ns);
    assert_non_null(op->timer_link);
    list[list_length++] = op;
}

static void remove_any(void) {
    if (!list_length) return;
    vigil_op *op = list[random_next(&seed) % list_length];
    timers_remove(&timers, op);
    assert_null(op->timer_link);
    list_remove(op);
}

static void expire_all(uint64_t now_ns) {
    uint64_t expected;
    while ((expected = earliest()) <= now_ns) {
        vigil_op *op = timers_due(&timers, now_ns);
        assert_non_null(op);
        assert_int_equal(op->deadline_ns, expected);
        assert_null(op->timer_link);
        list_remove(op);
    }
    assert_null(timers_due(&timers, now_ns));
}

static void check_next(void) {
    uint64_t expected = earliest();
    if (expected == PRIM_NEVER) assert_true(timers_next(&timers) == PRIM_NEVER);
    else assert_true(timers_next(&timers) <= expected);
}

static void start_empty(uint64_t new_seed) {
    if (timers.bin) timers_close(&timers);
    memset(&timers, 0, sizeof timers);
    assert_true(timers_open(&timers));
    memset(ops, 0, sizeof ops);
    list_length = 0;
    seed = new_seed;
}

/* `advances` percent of the steps advance the clock; half of those to a deadline exactly. */
static void random_walk(uint64_t walk_seed, int steps, unsigned advances) {
    start_empty(walk_seed);
    uint64_t now_ns = random_next(&seed) >> 20;
    for (int step = 0; step < steps; step++) {
        unsigned dice = (unsigned)(random_next(&seed) % 100);
        if (dice < advances) {
            uint64_t next_ns = earliest();
            bool exactly = dice % 2 && next_ns != PRIM_NEVER;
            now_ns = exactly ? next_ns : now_ns + random_duration() / 1024;
            expire_all(now_ns);
        } else if (dice < advances + 20) {
            remove_any();
        } else {
            add(now_ns, now_ns + random_duration());
        }
        check_next();
    }
    expire_all(PRIM_NEVER - 1);
    assert_int_equal(list_length, 0);
}

static void same_as_a_list_in_100000_steps(void **state) {
    (void)state;
    for (uint64_t walk = 1; walk <= 10; walk++) random_walk(walk * 7919, 10000, (unsigned)walk * 5);
}

static void none_is_due_before_its_time(void **state) {
    (void)state;
    start_empty(1);
    const uint64_t deadlines_ns[] = {1001, 1064, 5096, 1 << 20, UINT64_C(1) << 40, UINT64_C(1) << 63, PRIM_NEVER - 1};
    for (size_t i = 0; i < COUNT_OF(deadlines_ns); i++) {
        add(1000, deadlines_ns[i]);
        assert_null(timers_due(&timers, deadlines_ns[i] - 1));
        assert_int_equal(timers_next(&timers), deadlines_ns[i]);
        expire_all(deadlines_ns[i]);
        assert_int_equal(list_length, 0);
    }
}

static void many_of_one_deadline(void **state) {
    (void)state;
    start_empty(1);
    for (int i = 0; i < MOST; i++) add(5, 1000000);
    assert_null(timers_due(&timers, 999999));
    expire_all(1000000);
    assert_int_equal(list_length, 0);
    assert_true(timers_next(&timers) == PRIM_NEVER);
}

static void a_removed_one_is_gone_at_once(void **state) {
    (void)state;
    start_empty(1);
    add(1, 100);
    timers_remove(&timers, list[0]);
    list_length = 0;
    assert_true(timers_next(&timers) == PRIM_NEVER);
    assert_null(timers_due(&timers, PRIM_NEVER - 1));
}

/* A callback starts its operation again while others with the same deadline are still due. */
static void added_while_others_are_due(void **state) {
    (void)state;
    start_empty(1);
    for (uint64_t i = 0; i < 100; i++) add(1000, 2000 + i);
    for (unsigned i = 0; i < 100; i++) {
        vigil_op *op = timers_due(&timers, 5000);
        assert_non_null(op);
        list_remove(op);
        op->deadline_ns = 5001 + i;
        timers_add(&timers, op, 5000);
        list[list_length++] = op;
    }
    assert_null(timers_due(&timers, 5000));
    expire_all(6000);
    assert_int_equal(list_length, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_a_list_in_100000_steps), cmocka_unit_test(none_is_due_before_its_time),
        cmocka_unit_test(many_of_one_deadline),           cmocka_unit_test(a_removed_one_is_gone_at_once),
        cmocka_unit_test(added_while_others_are_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
