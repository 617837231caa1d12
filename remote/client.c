/* SPDX-License-Identifier: MIT */
/* etcd.h over gRPC: the beginning and the end, timers, and what is left over. */
#define _GNU_SOURCE
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define CLIENT_FAILS_AFTER_NS (10 * NS_PER_MS) /* so that a retry finds another state of the memory */

/* No memory. The lists are in the memory of their owners. */

void client_count_call(struct etcd *etcd, int change) {
    size_t before = etcd->call_count;
    etcd->call_count += (size_t)change;
    if (!etcd->loop.agent) return;
    if (!before) vigil_agent_ref(etcd->loop.agent);
    if (!etcd->call_count) vigil_agent_unref(etcd->loop.agent);
}

static void client_tell_failures_soon(struct etcd *etcd) {
    loop_set(&etcd->loop, &etcd->failure, loop_now_ns() + CLIENT_FAILS_AFTER_NS);
}

void client_fail_call(struct etcd *etcd, struct etcd_call *call) {
    struct etcd_call **last = &etcd->failed_calls;
    while (*last) last = &(*last)->next;
    *last = call;
    call->next = NULL;
    call->pending = etcd;
    client_count_call(etcd, 1);
    client_tell_failures_soon(etcd);
}

void client_drop_call(struct etcd *etcd, struct etcd_call *call) {
    struct etcd_call **at = &etcd->failed_calls;
    while (*at != call) at = &(*at)->next;
    *at = call->next;
    call->pending = NULL;
    client_count_call(etcd, -1);
}

void client_fail_watch(struct etcd *etcd, struct etcd_watch *watch) {
    watch->next = etcd->failed_watches;
    etcd->failed_watches = watch;
    watch->pending = etcd;
    client_tell_failures_soon(etcd);
}

void client_drop_watch(struct etcd *etcd, struct etcd_watch *watch) {
    struct etcd_watch **at = &etcd->failed_watches;
    while (*at != watch) at = &(*at)->next;
    *at = watch->next;
    watch->pending = NULL;
}

static void client_end_failed_call(struct etcd *etcd, int status) {
    struct etcd_call *call = etcd->failed_calls;
    const struct etcd_reply reply = {.status = status};
    client_drop_call(etcd, call);
    call->done(call, &reply);
}

/* Those that are there now: a callback may begin others. */
static void client_on_failure(struct loop_timer *timer) {
    struct etcd *etcd = (struct etcd *)(void *)((char *)timer - offsetof(struct etcd, failure));
    size_t calls = 0, watches = 0;
    for (struct etcd_call *call = etcd->failed_calls; call; call = call->next) calls++;
    for (struct etcd_watch *watch = etcd->failed_watches; watch; watch = watch->next) watches++;
    etcd->status = VIGIL_ENOMEM;
    snprintf(etcd->why, sizeof etcd->why, "there is no memory");
    for (; calls && etcd->failed_calls; calls--) client_end_failed_call(etcd, VIGIL_ENOMEM);
    for (struct etcd_watch *watch; watches && (watch = etcd->failed_watches); watches--) {
        client_drop_watch(etcd, watch);
        watch->told(watch, ETCD_WATCH_LOST, NULL, 0);
    }
    if (etcd->failed_calls || etcd->failed_watches) client_tell_failures_soon(etcd);
}

/* Beginning and end. */

static void client_end_all(struct etcd *etcd) {
    loop_set(&etcd->loop, &etcd->failure, LOOP_NEVER);
    while (etcd->call_count) { /* callbacks may begin others */
        calls_end_all(etcd, VIGIL_CANCELLED);
        while (etcd->failed_calls) client_end_failed_call(etcd, VIGIL_CANCELLED);
    }
    watches_end_all(etcd);
    while (etcd->failed_watches) client_drop_watch(etcd, etcd->failed_watches);
}

static void client_free(struct etcd *etcd) {
    loop_close(&etcd->loop);
    SSL_CTX_free(etcd->tls);
    free(etcd->endpoints);
    free(etcd->user);
    free(etcd->password);
    free(etcd->token);
    free(etcd);
}

static void client_left(struct loop *loop) {
    struct etcd *etcd = (struct etcd *)(void *)loop;
    if (etcd->closed) client_free(etcd);
    else if (etcd->http2) http2_flush(etcd->http2);
}

/* The agent has been destroyed while we were open: nothing can be called back any more after this. */
static void client_ended(struct loop *loop) {
    struct etcd *etcd = (struct etcd *)(void *)loop;
    link_close(etcd);
    client_end_all(etcd);
}

static uint64_t client_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = (uint64_t)loop_now_ns();
    return seed;
}

int etcd_open(struct etcd **result, vigil_agent *agent, const char *at, const vigil_remote_options *options) {
    static const vigil_remote_options defaults;
    if (!result || !agent || !at) return VIGIL_ENULL;
    struct etcd *etcd = calloc(1, sizeof *etcd);
    if (!etcd) return VIGIL_ENOMEM;
    etcd->random = client_seed();
    etcd->loop.left = client_left;
    etcd->loop.ended = client_ended;
    etcd->failure.due = client_on_failure;
    calls_init(etcd);
    int error = loop_open(&etcd->loop, agent);
    if (error) {
        free(etcd);
        return error;
    }
    error = link_open(etcd, at, options ? options : &defaults);
    if (error) client_free(etcd);
    else *result = etcd;
    return error;
}

void etcd_close(struct etcd *etcd) {
    loop_enter(&etcd->loop);
    etcd->closed = true;
    link_close(etcd);
    client_end_all(etcd);
    loop_leave(&etcd->loop);
}

bool etcd_is_over(const struct etcd *etcd) {
    return !etcd->loop.agent;
}

/* Timers. */

static void client_on_timer(struct loop_timer *timer) {
    struct etcd_timer *user = (struct etcd_timer *)(void *)((char *)timer - offsetof(struct etcd_timer, timer));
    user->pending = NULL;
    user->due(user);
}

void etcd_timer(struct etcd *etcd, struct etcd_timer *user, int64_t at_ns) {
    user->timer.due = client_on_timer;
    user->pending = at_ns == ETCD_NEVER ? NULL : etcd;
    loop_set(&etcd->loop, &user->timer, at_ns);
}

int64_t etcd_now_ns(struct etcd *etcd) {
    (void)etcd;
    return loop_now_ns();
}

/* xorshift64*: to spread retries, not to keep secrets. */
uint64_t etcd_random(struct etcd *etcd) {
    uint64_t state = etcd->random ? etcd->random : 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    etcd->random = state;
    return state * UINT64_C(2685821657736338717);
}

const char *etcd_why(const struct etcd *etcd) {
    return etcd->why;
}
