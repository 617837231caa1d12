/* SPDX-License-Identifier: MIT */
/*
 * segment_fixture.h - an unnamed segment, made anew for each test, and other processes that have it open beside the
 * test's own threads and loops. Include after support.h and child.h. The test defines struct common, the contents of
 * the segment.
 *
 * Not for the thread sanitizer: it reports a race where another process orders two threads.
 */
#ifndef VIGIL_TEST_SEGMENT_FIXTURE_H
#define VIGIL_TEST_SEGMENT_FIXTURE_H

#include <signal.h>

#include "vigil/request.h"
#include "vigil/segment.h"

static vigil_buffer *segment;
static struct common *common; /* all zero at first */
static int segment_fd;

static int set_up(void **state) {
    (void)state;
    if (vigil_segment_create_anonymous(&segment, NULL) != VIGIL_OK) return -1;
    common = vigil_buffer_data(segment);
    segment_fd = vigil_segment_fd(segment);
    return segment_fd < 0;
}

static int tear_down(void **state) {
    (void)state;
    close(segment_fd);
    return vigil_buffer_destroy(segment) != 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* Another process, which opens the segment itself, runs `part` and ends. */
static pid_t actor_start(void (*part)(uintptr_t argument), uintptr_t argument) {
    pid_t actor = fork_here();
    assert_true(actor >= 0);
    if (actor) return actor;
    CHECK(vigil_buffer_destroy(segment) == 0); /* the parent's mapping */
    CHECK(vigil_segment_open_fd(&segment, segment_fd) == VIGIL_OK);
    common = vigil_buffer_data(segment);
    part(argument);
    _exit(0);
}

static void actor_ends(pid_t actor) {
    assert_int_equal(exit_status_of(actor), 0);
}

/* Waits for an actor that kills itself. */
static void actor_dies(pid_t actor) {
    int ended;
    assert_int_equal(waitpid(actor, &ended, 0), actor);
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
}

static void actor_kill(pid_t actor) {
    assert_true(actor > 0); /* kill(-1) would kill all processes */
    assert_int_equal(kill(actor, SIGKILL), 0);
    actor_dies(actor);
}

/* A request that records how it ended. */
struct requester {
    vigil_request request; /* first, so that the op is the requester */
    unsigned calls;
    int status;
};

static void answer(vigil_op *op, int status) {
    struct requester *me = (struct requester *)op;
    me->status = status;
    me->calls++;
}

/* Runs the loop until the request has ended. */
static int answer_of(vigil_agent *agent, const struct requester *requester) {
    while (!requester->calls) {
        if (vigil_agent_run_until(agent, vigil_now_ns() + SECOND) < 0) return UNDECIDED;
    }
    return requester->calls == 1 ? requester->status : UNDECIDED;
}

#endif
