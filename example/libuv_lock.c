/* SPDX-License-Identifier: MIT */
/*
 * A libuv program takes a mutex that a thread holds. Its loop goes on meanwhile: a timer ticks, and the thread keeps
 * the mutex until it has ticked three times. If waiting for the mutex blocked the loop, this program would never end.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include "vigil_uv.h"
#include <vigil/vigil.h>

static vigil_mutex mutex;
static uint32_t locked, ticks; /* what the thread and the loop wait for */
static uint32_t ticks_when_granted;

/* The thread, which may block. */
static void hold(void *unused) {
    (void)unused;
    vigil_mutex_lock(&mutex);
    __atomic_store_n(&locked, 1, __ATOMIC_SEQ_CST);
    vigil_notify(&locked, 1);
    for (uint32_t seen = 0; seen < 3; seen = __atomic_load_n(&ticks, __ATOMIC_SEQ_CST))
        vigil_wait32(&ticks, seen, VIGIL_FOREVER);
    vigil_mutex_unlock(&mutex);
}

static void on_tick(uv_timer_t *timer) {
    (void)timer;
    printf("tick\n");
    __atomic_fetch_add(&ticks, 1, __ATOMIC_SEQ_CST);
    vigil_notify(&ticks, 1);
}

static uv_timer_t timer;
static vigil_uv seat;

static void with_the_lock_held(vigil_op *op, int status) {
    (void)op;
    printf("the loop has the lock: %s\n", vigil_status_name(status));
    ticks_when_granted = ticks;
    uv_close((uv_handle_t *)&timer, NULL);
}

int main(void) {
    uv_thread_t thread;
    uv_thread_create(&thread, hold, NULL);
    vigil_wait32(&locked, 0, VIGIL_FOREVER); /* from here on the mutex is locked */
    uv_timer_init(uv_default_loop(), &timer);
    uv_timer_start(&timer, on_tick, 10, 10);

    vigil_agent *agent;
    vigil_request request = {0};
    vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK);
    vigil_uv_attach(uv_default_loop(), &seat, agent);
    vigil_mutex_execute(agent, &request, &mutex, VIGIL_FOREVER, with_the_lock_held);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT); /* until neither the timer nor the request is left */

    vigil_uv_close(&seat, NULL);
    vigil_agent_destroy(agent);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT); /* closes the seat */
    uv_thread_join(&thread);
    uv_loop_close(uv_default_loop());
    return ticks_when_granted >= 3 ? 0 : 1;
}
