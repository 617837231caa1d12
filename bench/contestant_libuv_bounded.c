/* SPDX-License-Identifier: MIT */
/* A bounded queue between threads and a libuv loop: uv_async_send wakes the loop. libuv's mutexes and conditions are
 * the C library's. */
#include "bench.h"

#include <uv.h>

static uv_loop_t loop;
static uv_async_t bell;
static void (*loop_step)(void);

static void wake_loop(void) {
    uv_async_send(&bell);
}

#include "bounded_peer.h"

static void on_bell(uv_async_t *handle) {
    loop_step();
    if (loop_done == loop_all) uv_stop(handle->loop);
}

static void open_loop(void) {
    must(uv_loop_init(&loop) == 0 && uv_async_init(&loop, &bell, on_bell) == 0);
}

static void close_loop(void) {
    uv_close((uv_handle_t *)&bell, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    must(uv_loop_close(&loop) == 0);
}

static void loop_run(void (*step)(void), uint64_t n) {
    loop_done = 0;
    loop_all = n;
    loop_step = step;
    step();
    if (loop_done < loop_all) uv_run(&loop, UV_RUN_DEFAULT);
}

static void loop_put(uint64_t n) {
    loop_run(loop_put_step, n);
}

static void loop_take(uint64_t n) {
    loop_run(loop_take_step, n);
}

static void bounded(const struct job *job, double figures[FIGURES_MAX]) {
    static const struct bounded by_libuv = {open_loop, close_loop, queue_put, queue_take, loop_put, loop_take};
    bounded_both_ways(job, &by_libuv, figures);
}

const struct skill libuv_bounded[] = {
    {"bounded", bounded, false},
    {0},
};
