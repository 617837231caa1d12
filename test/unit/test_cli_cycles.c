/* SPDX-License-Identifier: MIT */
/* Circles of processes that wait for each other, as vigil doctor finds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../cli/cycles.c"

/* The circles that were found: "0>1>0;" */
struct notes {
    char text[256];
    const struct edge *edges;
};

static void note(const uint32_t *edges, uint32_t count, void *data) {
    struct notes *notes = data;
    size_t used = strlen(notes->text);
    used += (size_t)snprintf(notes->text + used, sizeof notes->text - used, "%u", notes->edges[edges[0]].waiter);
    for (uint32_t i = 0; i < count; i++) {
        if (i) assert_int_equal(notes->edges[edges[i]].waiter, notes->edges[edges[i - 1]].holder);
        used += (size_t)snprintf(notes->text + used, sizeof notes->text - used, ">%u", notes->edges[edges[i]].holder);
    }
    snprintf(notes->text + used, sizeof notes->text - used, ";");
}

#define ASSERT_CIRCLES(expected, processes, ...)                                                                       \
    do {                                                                                                               \
        const struct edge edges_[] = {__VA_ARGS__};                                                                    \
        struct notes notes_ = {.edges = edges_};                                                                       \
        int64_t count_ = cycles_find(edges_, sizeof edges_ / sizeof *edges_, processes, note, &notes_);                \
        assert_string_equal(notes_.text, expected);                                                                    \
        int64_t expected_count_ = 0;                                                                                   \
        for (const char *c_ = expected; *c_; c_++) expected_count_ += *c_ == ';';                                      \
        assert_int_equal(count_, expected_count_);                                                                     \
    } while (0)

static void two_and_three_in_a_circle(void **state) {
    (void)state;
    ASSERT_CIRCLES("0>1>0;", 2, {0, 1, 0}, {1, 0, 1});
    ASSERT_CIRCLES("0>1>2>0;", 3, {0, 1, 0}, {1, 2, 1}, {2, 0, 2});
}

static void a_chain_is_no_circle(void **state) {
    (void)state;
    ASSERT_CIRCLES("", 4, {0, 1, 0}, {1, 2, 1}, {2, 3, 2});
    ASSERT_CIRCLES("", 4, {0, 1, 0}, {0, 2, 1}, {1, 3, 2}, {2, 3, 3}); /* a diamond */
    struct notes notes = {.text = ""};
    assert_int_equal(cycles_find(NULL, 0, 0, note, &notes), 0);
}

static void who_waits_behind_a_circle_is_not_in_it(void **state) {
    (void)state;
    ASSERT_CIRCLES("1>2>1;", 4, {0, 1, 0}, {1, 2, 1}, {2, 1, 2}, {3, 0, 3});
}

static void each_circle_once(void **state) {
    (void)state;
    ASSERT_CIRCLES("0>1>0;2>3>2;", 4, {0, 1, 0}, {1, 0, 1}, {2, 3, 2}, {3, 2, 3});
    ASSERT_CIRCLES("0>1>0;", 3, {0, 1, 0}, {1, 0, 1}, {0, 2, 2}, {2, 0, 3}); /* two, with one process in common */
}

static void all_holders_of_a_lock_are_needed(void **state) {
    (void)state;
    ASSERT_CIRCLES("0>2>0;", 3, {0, 1, 0}, {0, 2, 1}, {2, 0, 2}); /* 1 does not wait, 2 does */
}

static void one_permit_is_enough(void **state) {
    (void)state;
    ASSERT_CIRCLES("", 3, {0, 1, 0}, {0, 2, 0}, {2, 0, 1}); /* 1 may release its permit */
    ASSERT_CIRCLES("0>1>0;", 3, {0, 1, 0}, {0, 2, 0}, {2, 0, 1}, {1, 0, 2});
    ASSERT_CIRCLES("", 5, {0, 1, 0}, {0, 2, 0}, {2, 0, 1}, {1, 3, 2}, {1, 4, 2}); /* and so may those it waits for */
}

static void measure(const uint32_t *edges, uint32_t count, void *data) {
    (void)edges;
    *(uint32_t *)data = count;
}

static void a_long_circle(void **state) {
    (void)state;
    enum { LONG = 5000 };
    static struct edge edges[LONG];
    for (uint32_t i = 0; i < LONG; i++) edges[i] = (struct edge){i, (i + 1) % LONG, i};
    uint32_t length = 0;
    assert_int_equal(cycles_find(edges, LONG, LONG, measure, &length), 1);
    assert_int_equal(length, LONG);
    edges[17].holder = LONG; /* a holder that does not wait */
    assert_int_equal(cycles_find(edges, LONG, LONG + 1, measure, &length), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_and_three_in_a_circle),
        cmocka_unit_test(a_chain_is_no_circle),
        cmocka_unit_test(who_waits_behind_a_circle_is_not_in_it),
        cmocka_unit_test(each_circle_once),
        cmocka_unit_test(all_holders_of_a_lock_are_needed),
        cmocka_unit_test(one_permit_is_enough),
        cmocka_unit_test(a_long_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
