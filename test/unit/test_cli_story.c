/* SPDX-License-Identifier: MIT */
/* The story that vigil trace makes of events and looks; events may be late, lost or missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../cli/trace_story.c"

/* What the story calls in the rest of the command. */
void show_line_name(const vigil_look *look, const vigil_seen_line *line, char name[32]) {
    (void)look;
    snprintf(name, 32, "byte %llu", (unsigned long long)line->offset);
}
void cli_command_line(const vigil_seen_member *member, char *text, size_t bytes) {
    snprintf(text, bytes, "%s", member->program);
}
void cli_task(const vigil_seen_member *member, char *text, size_t bytes) {
    cli_command_line(member, text, bytes);
}
static uint32_t traced_pid; /* zero: it is about a segment */
uint32_t source_pid(const struct source *source) {
    (void)source;
    return traced_pid;
}
void source_name(const struct source *source, uint64_t offset, vigil_seen_kind kind, char name[SOURCE_NAME]) {
    (void)source;
    (void)kind;
    snprintf(name, SOURCE_NAME, "lock %llu", (unsigned long long)offset);
}
void source_thread_name(const struct source *source, uint32_t thread_id, char name[20]) {
    (void)source;
    snprintf(name, 20, "thread-%u", thread_id);
}

static struct story story;

/* Unless the test says otherwise, events are those of a mutex at byte 64. */
static void happens(vigil_event event) {
    if (event.offset == 0) event.offset = 64, event.kind = VIGIL_SEEN_MUTEX;
    story_event(&story, &event);
}
#define EVENT(name, at, who, ...)                                                                                      \
    happens((vigil_event){.type = VIGIL_EVENT_##name, .at_ns = at, .number = who, __VA_ARGS__})

static void assert_span(uint32_t index, enum span_type type, uint32_t number, int64_t from_ns, int64_t to_ns,
                        enum span_end ending) {
    assert_true(index < story.spans.count);
    const struct story_span *span = &story.spans.at[index];
    assert_int_equal(span->type, type);
    assert_int_equal(story.processes.at[span->process].number, number);
    assert_int_equal(span->from_ns, from_ns);
    assert_int_equal(span->to_ns, to_ns);
    assert_int_equal(span->ending, ending);
}

static int begin(void **state) {
    (void)state;
    story_begin(&story, NULL, 1000);
    return 0;
}

static int begin_process(void **state) {
    traced_pid = 7;
    int failed = begin(state);
    traced_pid = 0;
    return failed;
}

static int end(void **state) {
    (void)state;
    story_free(&story);
    return 0;
}

static void a_hand_over(void **state) {
    (void)state;
    EVENT(JOINED, 1010, 1, .pid = 11);
    EVENT(JOINED, 1020, 2, .pid = 12);
    EVENT(GRANTED, 1100, 1, .count = 1);
    EVENT(WAITS, 1200, 2, .waiter = 7, .thread_id = 99);
    EVENT(RELEASED, 1300, 1, .count = 1);
    EVENT(CALLED, 1310, 2, .waiter = 7, .by = 1, .thread_id = 99);
    EVENT(GRANTED, 1320, 2, .count = 1);
    EVENT(RELEASED, 1400, 2, .count = 1);
    EVENT(LEFT, 1500, 2, .status = VIGIL_OK);
    story_end(&story, 2000);
    assert_int_equal(story.spans.count, 3);
    assert_span(0, SPAN_HOLD, 1, 1100, 1300, SPAN_RELEASED);
    assert_span(1, SPAN_WAIT, 2, 1200, 1310, SPAN_CALLED);
    assert_span(2, SPAN_HOLD, 2, 1320, 1400, SPAN_RELEASED);
    assert_int_equal(story.spans.at[2].thread_id, 99);
    assert_int_equal(story.handovers.count, 1);
    const struct story_handover *handover = &story.handovers.at[0];
    assert_int_equal(handover->held, 0);
    assert_int_equal(handover->wait, 1);
    assert_int_equal(handover->hold, 2);
    assert_string_equal(story.words.at[0].name, "mutex at byte 64");
}

static void giving_up_and_dying(void **state) {
    (void)state;
    EVENT(WAITS, 1100, 1, .waiter = 1);
    EVENT(WAITS, 1110, 2, .waiter = 2);
    EVENT(GRANTED, 1120, 3, .count = 1);
    EVENT(GAVE_UP, 1200, 1, .waiter = 1);
    EVENT(DIED, 1300, 3, .by = 2);
    EVENT(DIED, 1310, 2, .by = 1);
    EVENT(RELEASED, 1320, 3, .count = 1); /* by the process that swept after it: there is nothing left to end */
    story_end(&story, 2000);
    assert_int_equal(story.spans.count, 3);
    assert_span(0, SPAN_WAIT, 1, 1100, 1200, SPAN_GAVE_UP);
    assert_span(1, SPAN_WAIT, 2, 1110, 1310, SPAN_DIED);
    assert_span(2, SPAN_HOLD, 3, 1120, 1300, SPAN_DIED);
    assert_int_equal(story.deaths.count, 2);
    assert_int_equal(story.processes.at[story.deaths.at[0].process].number, 3);
    assert_int_equal(story.processes.at[story.deaths.at[0].by].number, 2);
}

static void a_number_is_used_again(void **state) {
    (void)state;
    EVENT(JOINED, 1010, 1, .pid = 11);
    EVENT(WAITS, 1100, 1, .waiter = 1);
    EVENT(LEFT, 1200, 1, .status = VIGIL_OK);
    EVENT(JOINED, 1300, 1, .pid = 12);
    EVENT(WAITS, 1400, 1, .waiter = 1);
    story_end(&story, 2000);
    assert_int_equal(story.processes.count, 2);
    assert_span(0, SPAN_WAIT, 1, 1100, 1200, SPAN_LEFT);
    assert_span(1, SPAN_WAIT, 1, 1400, 2000, SPAN_OPEN);
    assert_int_equal(story.processes.at[story.spans.at[1].process].pid, 12);
}

/* No event is recorded when a mutex without waiters is taken and released. */
static void holds_of_which_a_part_was_not_seen(void **state) {
    (void)state;
    EVENT(WAITS, 1100, 2, .waiter = 1);
    EVENT(RELEASED, 1200, 1, .count = 1); /* it was held at least while 2 waited */
    EVENT(CALLED, 1210, 2, .waiter = 1, .by = 1);
    EVENT(GRANTED, 1220, 2, .count = 1);
    EVENT(WAITS, 1300, 3, .waiter = 2);
    EVENT(GRANTED, 1900, 4, .count = 1); /* so 2 has released it: when is not known, but 3 found it held */
    story_end(&story, 2000);
    assert_int_equal(story.spans.count, 5);
    assert_span(0, SPAN_WAIT, 2, 1100, 1210, SPAN_CALLED);
    assert_span(1, SPAN_HOLD, 1, 1100, 1200, SPAN_RELEASED);
    assert_span(2, SPAN_HOLD, 2, 1220, 1300, SPAN_UNSEEN);
    assert_span(3, SPAN_WAIT, 3, 1300, 2000, SPAN_OPEN);
    assert_span(4, SPAN_HOLD, 4, 1900, 2000, SPAN_OPEN);
}

static void clocks_that_cross(void **state) {
    (void)state;
    EVENT(GRANTED, 1100, 1, .count = 1);
    EVENT(RELEASED, 1300, 1, .count = 1);
    EVENT(GRANTED, 1290, 2, .count = 1);
    EVENT(RELEASED, 1280, 2, .count = 1);
    story_end(&story, 2000);
    assert_span(0, SPAN_HOLD, 1, 1100, 1300, SPAN_RELEASED);
    assert_span(1, SPAN_HOLD, 2, 1300, 1300, SPAN_RELEASED);
}

static void readers_and_permits(void **state) {
    (void)state;
    EVENT(GRANTED, 1100, 1, .kind = VIGIL_SEEN_RWLOCK, .offset = 16, .shared = true, .count = 1);
    EVENT(GRANTED, 1110, 2, .kind = VIGIL_SEEN_RWLOCK, .offset = 16, .shared = true, .count = 1);
    EVENT(RELEASED, 1200, 1, .kind = VIGIL_SEEN_RWLOCK, .offset = 16, .count = 1);
    EVENT(GRANTED, 1300, 1, .kind = VIGIL_SEEN_SEM, .offset = 8, .count = 3);
    EVENT(RELEASED, 1400, 1, .kind = VIGIL_SEEN_SEM, .offset = 8, .count = 1);
    EVENT(RELEASED, 1500, 1, .kind = VIGIL_SEEN_SEM, .offset = 8, .count = 2);
    story_end(&story, 2000);
    assert_int_equal(story.spans.count, 3);
    assert_span(0, SPAN_HOLD, 1, 1100, 1200, SPAN_RELEASED);
    assert_span(1, SPAN_HOLD, 2, 1110, 2000, SPAN_OPEN);
    assert_span(2, SPAN_HOLD, 1, 1300, 1500, SPAN_RELEASED);
}

/* What a look shows. */

static const vigil_seen_member members[] = {{.number = 1, .pid = 11, .program = "one", .alive = true},
                                            {.number = 2, .pid = 12, .program = "two", .alive = true}};
static const vigil_seen_waiter waiter = {.number = 2, .thread_id = 99, .kind = VIGIL_SEEN_MUTEX, .since_ns = 400};
static const vigil_seen_holder holder = {.number = 1, .count = 1};

static vigil_look look_at(int64_t at_ns, vigil_seen_line *line, uint32_t waiters, uint32_t holders) {
    *line = (vigil_seen_line){.offset = 64,
                              .kind = VIGIL_SEEN_MUTEX,
                              .waiter_count = waiters,
                              .holder_count = holders,
                              .waiters = &waiter,
                              .holders = &holder};
    return (vigil_look){.at_ns = at_ns,
                        .label = "",
                        .member_count = 2,
                        .line_count = waiters || holders,
                        .members = members,
                        .lines = line};
}

static void what_began_before(void **state) {
    (void)state;
    vigil_seen_line line;
    vigil_look look = look_at(1050, &line, 1, 1);
    story_sync(&story, &look);
    EVENT(WAITS, 1040, 2, .waiter = 5, .thread_id = 99); /* recorded before the look, which includes it */
    EVENT(RELEASED, 1300, 1, .count = 1);
    EVENT(CALLED, 1310, 2, .waiter = 5, .thread_id = 99, .by = 1);
    story_end(&story, 2000);
    assert_int_equal(story.spans.count, 2);
    assert_span(0, SPAN_WAIT, 2, 1000, 1310, SPAN_CALLED);
    assert_span(1, SPAN_HOLD, 1, 1000, 1300, SPAN_RELEASED);
    assert_string_equal(story.processes.at[0].command, "one");
}

static void what_was_lost(void **state) {
    (void)state;
    vigil_seen_line line;
    vigil_look look = look_at(1010, &line, 0, 0);
    story_sync(&story, &look);
    EVENT(GRANTED, 1100, 2, .count = 1);
    EVENT(WAITS, 1200, 1, .waiter = 3);
    look = look_at(1500, &line, 1, 1); /* now 1 holds it, and 2 waits */
    story_lost(&story, 6, 1500);
    story_sync(&story, &look);
    EVENT(RELEASED, 1600, 1, .count = 1);
    story_end(&story, 2000);
    assert_int_equal(story.lost, 6);
    assert_int_equal(story.spans.count, 4);
    assert_span(0, SPAN_HOLD, 2, 1100, 1200, SPAN_UNSEEN);
    assert_span(1, SPAN_WAIT, 1, 1200, 1200, SPAN_UNSEEN);
    assert_span(2, SPAN_WAIT, 2, 1000, 2000, SPAN_OPEN);
    assert_span(3, SPAN_HOLD, 1, 1500, 1600, SPAN_RELEASED);
}

static void threads_of_a_process(void **state) {
    (void)state;
    EVENT(WAITS, 1100, 2, .waiter = 2, .thread_id = 2);
    EVENT(RELEASED, 1300, 1, .count = 1); /* it had not waited for it */
    EVENT(CALLED, 1310, 2, .waiter = 2, .by = 1, .thread_id = 2);
    EVENT(GRANTED, 1310, 2, .count = 1, .thread_id = 2);
    EVENT(WAITS, 1400, 1, .waiter = 1, .thread_id = 1);
    story_leave(&story, 1500);
    story_end(&story, 2000);
    assert_int_equal(story.spans.count, 4);
    assert_span(0, SPAN_WAIT, 2, 1100, 1310, SPAN_CALLED);
    assert_span(1, SPAN_HOLD, 1, 1100, 1300, SPAN_RELEASED);
    assert_span(2, SPAN_HOLD, 2, 1310, 1500, SPAN_LEFT);
    assert_span(3, SPAN_WAIT, 1, 1400, 1500, SPAN_LEFT);
    assert_int_equal(story.spans.at[1].thread_id, 1);
    assert_int_equal(story.handovers.at[0].held, 1);
    assert_int_equal(story.handovers.at[0].hold, 2);
    assert_string_equal(story.words.at[0].name, "lock 64");
    assert_string_equal(story.processes.at[story.spans.at[1].process].program, "thread-1");
    assert_string_equal(story_ending(&story, &story.spans.at[2]), "its process ended");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hand_over, begin, end),
        cmocka_unit_test_setup_teardown(giving_up_and_dying, begin, end),
        cmocka_unit_test_setup_teardown(a_number_is_used_again, begin, end),
        cmocka_unit_test_setup_teardown(holds_of_which_a_part_was_not_seen, begin, end),
        cmocka_unit_test_setup_teardown(clocks_that_cross, begin, end),
        cmocka_unit_test_setup_teardown(readers_and_permits, begin, end),
        cmocka_unit_test_setup_teardown(what_began_before, begin, end),
        cmocka_unit_test_setup_teardown(what_was_lost, begin, end),
        cmocka_unit_test_setup_teardown(threads_of_a_process, begin_process, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
