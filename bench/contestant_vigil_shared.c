/* SPDX-License-Identifier: MIT */
/* Vigil in a segment. A partner opens it by itself: a segment that a fork inherits cannot be used. */
#include "bench.h"

#include <unistd.h>

#include <vigil/mutex.h>
#include <vigil/segment.h>

struct shared {
    struct word words[2];
    _Alignas(128) vigil_mutex mutex;
};

static vigil_buffer *segment;
static int segment_fd; /* for the partners */
static struct word *words;
static vigil_mutex *mutex;

static void look_into_segment(void) {
    struct shared *shared = vigil_buffer_data(segment);
    words = shared->words;
    mutex = &shared->mutex;
}

static void open_arena(void) {
    const vigil_segment_options options = {.length = sizeof(struct shared)};
    must(vigil_segment_create_anonymous(&segment, &options) == VIGIL_OK);
    segment_fd = vigil_segment_fd(segment);
    must(segment_fd >= 0);
    look_into_segment();
}

static void join_arena(void) {
    must(vigil_buffer_destroy(segment) >= 0);
    must(vigil_segment_open_fd(&segment, segment_fd) == VIGIL_OK);
    look_into_segment();
}

static void close_arena(void) {
    must(vigil_buffer_destroy(segment) >= 0);
    close(segment_fd);
}

static const struct arena arena = {.open = open_arena, .join = join_arena, .close = close_arena};

/* Waiting */

static void notify_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) vigil_notify(&words[0].value, 1);
}

static void shared_notify_nobody(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = shared_per_call_ns(&arena, notify_loop, job->n);
}

#include "vigil_pingpong.h"

#include "shared_pingpong.h"

static void shared_pingpong_async(const struct job *job, double figures[FIGURES_MAX]) {
    pinged = ponged = 0;
    figures[0] = shared_per_round_trip_ns(&arena, ping, pong_epoll, job->n);
}

static void shared_pingpong_async_run(const struct job *job, double figures[FIGURES_MAX]) {
    pinged = ponged = 0;
    figures[0] = shared_per_round_trip_ns(&arena, ping, pong_run, job->n);
}

/* The mutex */

static void lock(void) {
    must(vigil_mutex_lock(mutex) == VIGIL_OK);
}

static void unlock(void) {
    must(vigil_mutex_unlock(mutex) == VIGIL_OK);
}

#include "shared_mutex_skills.h"

static void inherit(void) {
    must(vigil_mutex_lock(mutex) == VIGIL_OWNER_DIED);
}

static void repair(void) {
    must(vigil_mutex_consistent(mutex) == VIGIL_OK);
    unlock();
}

static void measure_owner_death(const struct job *job, double figures[FIGURES_MAX]) {
    owner_death(job, &arena, (struct robust_lock){lock, inherit, repair}, figures);
}

const struct skill our_shared[] = {
    {"shared_notify_nobody", shared_notify_nobody, false},
    {"shared_pingpong_block", shared_pingpong_block, false},
    {"shared_pingpong_async", shared_pingpong_async, false},
    {"shared_pingpong_async_run", shared_pingpong_async_run, false},
    {"shared_mutex_uncontended", shared_mutex_uncontended, false},
    {"shared_mutex_contest", shared_mutex_contest, false},
    {"owner_death", measure_owner_death, false},
    {0},
};
