/* SPDX-License-Identifier: MIT */
/* The picture of vigil trace: every colour has a key, and things held at the same time can be told apart. */
#define _GNU_SOURCE /* open_memstream */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../cli/timeline.c"

/* What the picture calls in the rest of the command. */
void cli_print_duration(char text[16], int64_t ns) {
    snprintf(text, 16, "%lld ns", (long long)ns);
}
const char *cli_without_folder(const char *command) {
    return command;
}
uint32_t story_spans(const struct story *story, enum span_type type) {
    (void)type;
    return story->spans.count;
}

/* One process holds many things, each within the one before; another process waits, and gives up. */
#define WORDS 7

static char *draw_scene(void) {
    static struct story_process processes[] = {{.number = 1, .pid = 11, .task = "one"},
                                               {.number = 2, .pid = 12, .task = "other"}};
    static struct story_word words[WORDS];
    static struct story_span spans[WORDS + 1];
    static struct story_death deaths[] = {{.at_ns = 900, .process = 1}};
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = (struct story_word){.offset = 64 * i, .kind = VIGIL_SEEN_RWLOCK};
        snprintf(words[i].name, sizeof words[i].name, "read-write lock at byte %u", 64 * i);
        spans[i] = (struct story_span){
            .type = SPAN_HOLD, .word = i, .from_ns = 100 + 50 * i, .to_ns = 900 - 50 * i, .shared = i == 1};
    }
    spans[WORDS] = (struct story_span){.process = 1, .from_ns = 200, .to_ns = 400, .ending = SPAN_GAVE_UP};
    struct story story = {.to_ns = 1000,
                          .processes = {processes, 2, 2},
                          .words = {words, WORDS, WORDS},
                          .spans = {spans, WORDS + 1, WORDS + 1},
                          .deaths = {deaths, 1, 1}};
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_true(timeline_draw(out, "scene", &story));
    fclose(out);
    return text;
}

static void every_colour_has_a_key(void **state) {
    (void)state;
    char *picture = draw_scene(), part[64];
    for (unsigned i = 0; i + 1 < COLOURS; i++) {
        snprintf(part, sizeof part, ">holds read-write lock at byte %u<", 64 * i);
        assert_non_null(strstr(picture, part));
    }
    const char *const rest[] = {">waits<", ">holds another<", ">shared<", ">gave up<", ">died<"};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) assert_non_null(strstr(picture, rest[i]));
    free(picture);
}

/* The texts above the rows are inside the picture, and no two overlap. */
static void keys_have_room(void **state) {
    (void)state;
    char *picture = draw_scene();
    double last_right = 0, last_y = 0;
    unsigned count = 0;
    for (const char *at = picture; (at = strstr(at, "</text>\n")); at++) {
        const char *text = at;
        double x, y;
        while (strncmp(text, "<text ", 6) != 0) text--;
        if (sscanf(text, "<text x=\"%lf\" y=\"%lf\">", &x, &y) != 2 || y < KEYS_TOP) continue;
        double right = x + 7 * (double)(at - (strchr(text, '>') + 1));
        assert_true(right <= WIDTH);
        assert_true(x > last_right || y >= last_y + 13);
        last_right = right, last_y = y;
        if (++count == KEYS_MOST) break;
    }
    assert_int_equal(count, KEYS_MOST);
    const char *axis = strstr(picture, "class=\"grid\" d=\"M");
    double top;
    assert_non_null(axis);
    assert_int_equal(sscanf(axis, "class=\"grid\" d=\"M%*f %lf", &top), 1);
    assert_true(top > last_y);
    free(picture);
}

static void what_is_on_top_is_narrower(void **state) {
    (void)state;
    char *picture = draw_scene(), rule[8], bar[16];
    double last = ROW_HEIGHT;
    const char *drawn = picture;
    for (unsigned i = 0; i < COLOURS; i++) {
        double width = 0;
        snprintf(rule, sizeof rule, ".w%u{", i);
        assert_int_equal(sscanf(strstr(picture, rule), ".w%*u{stroke:#%*x;stroke-width:%lf}", &width), 1);
        assert_true(width > 0 && width < last);
        last = width;
        snprintf(bar, sizeof bar, "\"bar w%u", i);
        drawn = strstr(i ? drawn : strstr(picture, "class=\"grid\""), bar); /* in this order, behind the keys */
        assert_non_null(drawn);
    }
    free(picture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_colour_has_a_key),
        cmocka_unit_test(keys_have_room),
        cmocka_unit_test(what_is_on_top_is_narrower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
