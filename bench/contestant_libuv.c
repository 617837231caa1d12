/* SPDX-License-Identifier: MIT */
/* libuv: a loop woken by uv_async_send, against a thread that blocks on a uv_sem_t. */
#include "alone.h"

#include <stdlib.h>

#include <uv.h>

static uv_loop_t loop;
static uv_async_t to_pong;
static uv_sem_t to_ping;
static uint64_t left;

static void on_ball(uv_async_t *handle) {
    if (--left == 0) uv_stop(handle->loop);
    uv_sem_post(&to_ping);
}

static bool libuv_open(void) {
    return uv_loop_init(&loop) == 0 && uv_async_init(&loop, &to_pong, on_ball) == 0 && uv_sem_init(&to_ping, 0) == 0;
}

static void libuv_close(void) {
    uv_close((uv_handle_t *)&to_pong, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    uv_sem_destroy(&to_ping);
}

static void ping(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        uv_async_send(&to_pong);
        uv_sem_wait(&to_ping);
    }
}

static void pong(uint64_t n) {
    left = n;
    uv_run(&loop, UV_RUN_DEFAULT);
}

static void pingpong_async(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_round_trip_ns(ping, pong, job->n);
}

static void on_wake(uv_async_t *handle) {
    (void)handle;
}

static void on_timer(uv_timer_t *handle) {
    (void)handle;
}

static void idle_loop_open(uint64_t index) {
    struct idle_loop {
        uv_loop_t loop;
        uv_async_t async;
        uv_timer_t timer;
    } *idle = malloc(sizeof *idle);
    (void)index;
    must(idle != NULL && uv_loop_init(&idle->loop) == 0 && uv_async_init(&idle->loop, &idle->async, on_wake) == 0);
    must(uv_timer_init(&idle->loop, &idle->timer) == 0);
    must(uv_timer_start(&idle->timer, on_timer, HOUR_NS / 1000000, 0) == 0);
    uv_run(&idle->loop, UV_RUN_NOWAIT);
}

static void idle_agents(const struct job *job, double figures[FIGURES_MAX]) {
    idle_loops(job, "libuv", idle_loop_open, figures);
}

static const struct skill skills[] = {
    {"pingpong_async", pingpong_async, false},
    {"idle_agents", idle_agents, false},
    {"pingpong_async_run", pingpong_async, false},
    {0},
};
extern const struct skill libuv_bounded[];
const struct contestant contestant_libuv = {
    .name = "libuv", .skills = {skills, libuv_bounded}, .open = libuv_open, .close = libuv_close};
