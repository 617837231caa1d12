/* SPDX-License-Identifier: MIT */
/* Statuses: their numbers are part of the interface, their texts are help. */
#include "support.h"

static const struct {
    int status, number;
    const char *name;
} statuses[] = {
    {VIGIL_OK, 0, "ok"},
    {VIGIL_NOT_EQUAL, 1, "not-equal"},
    {VIGIL_TIMED_OUT, 2, "timed-out"},
    {VIGIL_PENDING, 3, "pending"},
    {VIGIL_CANCELLED, 4, "cancelled"},
    {VIGIL_LAST, 5, "last"},
    {VIGIL_OWNER_DIED, 6, "owner-died"},
    {VIGIL_INTERRUPTED, 7, "interrupted"},
    {VIGIL_ENULL, -1, "null-pointer"},
    {VIGIL_EMISALIGNED, -2, "misaligned"},
    {VIGIL_ECOUNT, -3, "negative-count"},
    {VIGIL_EMAYNOTBLOCK, -4, "may-not-block"},
    {VIGIL_EINUSE, -5, "in-use"},
    {VIGIL_EIDLE, -6, "idle"},
    {VIGIL_ETOOLATE, -7, "too-late"},
    {VIGIL_EWRONGTHREAD, -8, "wrong-thread"},
    {VIGIL_EREENTRANT, -9, "reentrant"},
    {VIGIL_EFORKED, -10, "forked"},
    {VIGIL_ECLOSING, -11, "closing"},
    {VIGIL_ENOMEM, -12, "out-of-memory"},
    {VIGIL_ELIMIT, -13, "limit-reached"},
    {VIGIL_ERANGE, -14, "out-of-range"},
    {VIGIL_ETYPE, -15, "wrong-type"},
    {VIGIL_EINVAL, -16, "invalid"},
    {VIGIL_ESYSTEM, -17, "system"},
    {VIGIL_ENOTHELD, -18, "not-held"},
    {VIGIL_EDEADLOCK, -19, "deadlock"},
    {VIGIL_EEXISTS, -20, "exists"},
    {VIGIL_ENOTFOUND, -21, "not-found"},
    {VIGIL_ENAME, -22, "bad-name"},
    {VIGIL_EFOREIGN, -23, "foreign"},
    {VIGIL_ETRUNCATED, -24, "truncated"},
    {VIGIL_ECORRUPT, -25, "corrupt"},
    {VIGIL_EVERSION, -26, "other-version"},
    {VIGIL_EMACHINE, -27, "other-machine"},
    {VIGIL_EOWNER, -28, "other-owner"},
    {VIGIL_EBUSY, -29, "busy"},
    {VIGIL_EFILESYSTEM, -30, "file-system"},
    {VIGIL_ECOPIES, -31, "other-copy"},
    {VIGIL_ESTOLEN, -32, "stolen"},
    {VIGIL_EUNREACHABLE, -33, "unreachable"},
    {VIGIL_EREFUSED, -34, "refused"},
    {VIGIL_EPROTOCOL, -35, "other-protocol"},
    {VIGIL_ELOST, -36, "lost"},
};

static void numbers_never_change(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(statuses); i++) assert_int_equal(statuses[i].status, statuses[i].number);
}

static void results_have_webassemblys_numbers(void **state) {
    (void)state;
    uint32_t word = 0;
    struct sleeper sleeper;
    sleeper_start(&sleeper, &word, false);
    assert_int_equal(vigil_notify(&word, 1), 1);
    assert_int_equal(sleeper_join(&sleeper), 0);
    assert_int_equal(vigil_wait32(&word, 1, 0), 1);
    assert_int_equal(vigil_wait32(&word, 0, 1), 2);
}

static void each_has_its_name(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        assert_string_equal(vigil_status_name(statuses[i].status), statuses[i].name);
    }
}

static void each_has_a_meaning_of_its_own(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        const char *meaning = vigil_strerror(statuses[i].status);
        assert_true(strlen(meaning) > strlen("done"));
        for (size_t j = 0; j < i; j++) assert_string_not_equal(meaning, vigil_strerror(statuses[j].status));
    }
}

static bool is_status(int number) {
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        if (statuses[i].number == number) return true;
    }
    return false;
}

static void every_other_number_is_unknown(void **state) {
    (void)state;
    const int far[] = {INT32_MIN, INT32_MAX};
    for (int number = -300; number <= 300; number++) {
        assert_int_equal(strcmp(vigil_status_name(number), "unknown") == 0, !is_status(number));
        assert_non_null(vigil_strerror(number));
    }
    for (size_t i = 0; i < COUNT_OF(far); i++) {
        assert_string_equal(vigil_status_name(far[i]), "unknown");
        assert_non_null(vigil_strerror(far[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_never_change),
        cmocka_unit_test(results_have_webassemblys_numbers),
        cmocka_unit_test(each_has_its_name),
        cmocka_unit_test(each_has_a_meaning_of_its_own),
        cmocka_unit_test(every_other_number_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
