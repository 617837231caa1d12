/* SPDX-License-Identifier: MIT */
/* Names of the commands that `vigil lock` and `vigil sem` run, taken from their command lines. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../cli/process.c"

char *cli_visible(char *copy, size_t bytes, const char *text) {
    snprintf(copy, bytes, "%s", text);
    return copy;
}

/* The words are separated by null bytes, as in /proc. */
#define ASSERT_COMMAND(expected, words)                                                                                \
    do {                                                                                                               \
        char line_[] = words;                                                                                          \
        assert_string_equal(first_of_command(line_, line_ + sizeof line_), expected);                                  \
    } while (0)

static void behind_what_ends_the_options(void **state) {
    (void)state;
    ASSERT_COMMAND("make", "vigil\0lock\0x\0--\0make\0all");
    ASSERT_COMMAND("make", "/usr/bin/vigil\0sem\0--slots\0two\0x\0--\0make");
    ASSERT_COMMAND("--", "vigil\0lock\0x\0--\0--\0make");
    ASSERT_COMMAND("a -- b", "vigil\0lock\0x\0--\0a -- b");
}

static void or_the_second_operand(void **state) {
    (void)state;
    ASSERT_COMMAND("sh", "vigil\0lock\0x\0sh\0-c\0sleep 300\0--\0decoy.sh");
    ASSERT_COMMAND("make", "vigil\0lock\0--timeout\0soon\0x\0--fair\0make\0--\0decoy");
    ASSERT_COMMAND("make", "vigil\0lock\0--timeout=5s\0x\0--on-owner-died\0fail\0make");
    ASSERT_COMMAND("make", "vigil\0sem\0x\0--slots\0two\0make");
}

static void others_run_nothing(void **state) {
    (void)state;
    ASSERT_COMMAND("vigil", "vigil");
    ASSERT_COMMAND("vigil", "vigil\0wait\0x\0zero");
    ASSERT_COMMAND("vigil", "vigil\0lock\0x\0--");
    ASSERT_COMMAND("vigil", "vigil\0lock\0x\0--timeout");
}

static void a_name_without_its_folder(void **state) {
    (void)state;
    assert_string_equal(cli_without_folder("/usr/bin/make -C /src"), "make -C /src");
    assert_string_equal(cli_without_folder("make"), "make");
    assert_string_equal(cli_without_folder("/"), "/");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behind_what_ends_the_options),
        cmocka_unit_test(or_the_second_operand),
        cmocka_unit_test(others_run_nothing),
        cmocka_unit_test(a_name_without_its_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
