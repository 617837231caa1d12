/* SPDX-License-Identifier: MIT */
/*
 * The part of cmocka that our unit tests use, for targets it is not packaged for (a cross compiler, musl). The
 * difference: the first assertion that fails ends the program. An assertion the tests use and this header lacks
 * does not compile; add it here.
 */
#ifndef VIGIL_PORTABLE_CMOCKA_H
#define VIGIL_PORTABLE_CMOCKA_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
    int (*setup)(void **state);
    int (*teardown)(void **state);
    void *initial_state;
};

#define cmocka_unit_test(test) {#test, test, NULL, NULL, NULL}
#define cmocka_unit_test_setup_teardown(test, setup, teardown) {#test, test, setup, teardown, NULL}
#define cmocka_unit_test_setup(test, setup) {#test, test, setup, NULL, NULL}
#define cmocka_unit_test_teardown(test, teardown) {#test, test, NULL, teardown, NULL}
#define cmocka_run_group_tests(tests, setup, teardown)                                                                 \
    cmocka_run_group_tests_name(#tests, tests, setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                                      \
    portable_run(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

#define fail_msg(...) (fprintf(stderr, __VA_ARGS__), portable_fail("fail_msg", __FILE__, __LINE__))
#define fail() portable_fail("fail", __FILE__, __LINE__)
#define skip() portable_skip()

#define portable_check(good, what) ((good) ? (void)0 : portable_fail(what, __FILE__, __LINE__))
/* cmocka casts both sides the same way, so -1 and a 64-bit all-ones are equal here as they are there. */
#define portable_u64(value) ((uint64_t)(value))

#ifndef portable_leaves_out /* a target may leave out tests of that name */
#define portable_leaves_out(test) false
#endif

#define assert_true(condition) portable_check((condition), #condition)
#define assert_false(condition) portable_check(!(condition), "not " #condition)
#define assert_null(pointer) portable_check((pointer) == NULL, #pointer " is null")
#define assert_non_null(pointer) portable_check((pointer) != NULL, #pointer " is not null")
#define assert_ptr_equal(a, b) portable_check((const void *)(a) == (const void *)(b), #a " == " #b)
#define assert_ptr_not_equal(a, b) portable_check((const void *)(a) != (const void *)(b), #a " != " #b)
#define assert_int_equal(a, b) portable_equal(portable_u64(a), portable_u64(b), #a " == " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) portable_check(portable_u64(a) != portable_u64(b), #a " != " #b)
#define assert_string_equal(a, b) portable_check(strcmp((a), (b)) == 0, #a " equals " #b)
#define assert_string_not_equal(a, b) portable_check(strcmp((a), (b)) != 0, #a " differs from " #b)
#define assert_memory_equal(a, b, size) portable_check(memcmp((a), (b), (size)) == 0, #a " equals " #b)
#define assert_memory_not_equal(a, b, size) portable_check(memcmp((a), (b), (size)) != 0, #a " differs from " #b)
#define assert_in_range(value, least, most)                                                                            \
    portable_range(portable_u64(value), portable_u64(least), portable_u64(most), #value, __FILE__, __LINE__)

static inline void portable_fail(const char *what, const char *file, int line) {
    fprintf(stderr, "%s:%d: %s\n[  FAILED  ]\n", file, line, what);
    _Exit(1);
}

static inline void portable_skip(void) {
    fprintf(stderr, "[  SKIPPED ]\n");
    _Exit(77);
}

static inline void portable_equal(uint64_t a, uint64_t b, const char *what, const char *file, int line) {
    if (a == b) return;
    fprintf(stderr, "%#" PRIx64 " and %#" PRIx64 ": ", a, b);
    portable_fail(what, file, line);
}

static inline void portable_range(uint64_t value, uint64_t least, uint64_t most, const char *what, const char *file,
                                  int line) {
    if (least <= value && value <= most) return;
    fprintf(stderr, "%" PRIu64 " is not in %" PRIu64 " .. %" PRIu64 ": ", value, least, most);
    portable_fail(what, file, line);
}

static inline void portable_step(int (*step)(void **), void **state, const char *what) {
    if (step != NULL && step(state) != 0) portable_fail(what, "a step of the group", 0);
}

static inline int portable_run(const char *name, const struct CMUnitTest *tests, size_t count, int (*setup)(void **),
                               int (*teardown)(void **)) {
    void *group_state = NULL;
    portable_step(setup, &group_state, "setup of the group");
    for (size_t i = 0; i < count; i++) {
        if (portable_leaves_out(tests[i].name)) continue;
        void *state = tests[i].initial_state != NULL ? tests[i].initial_state : group_state;
        fprintf(stderr, "[ RUN      ] %s\n", tests[i].name);
        portable_step(tests[i].setup, &state, "setup");
        tests[i].test(&state);
        portable_step(tests[i].teardown, &state, "teardown");
        fprintf(stderr, "[       OK ] %s\n", tests[i].name);
    }
    portable_step(teardown, &group_state, "teardown of the group");
    fprintf(stderr, "[  PASSED  ] %s: %zu test(s).\n", name, count);
    return 0;
}

#endif
