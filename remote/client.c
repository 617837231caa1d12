/* SPDX-License-Identifier: MIT */
/* etcd.h over gRPC: the beginning and the end, timers, and what is left over. */
#define _GNU_SOURCE
#include "client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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
    calls_end_all(etcd, VIGIL_CANCELLED);
    watches_end_all(etcd);
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
    calls_end_all(etcd, VIGIL_CANCELLED);
    watches_end_all(etcd);
    loop_leave(&etcd->loop);
}

/* Timers. */

struct client_timer {
    struct loop_timer timer; /* first */
    struct etcd_timer *user;
};

static void client_on_timer(struct loop_timer *timer) {
    struct client_timer *self = (struct client_timer *)(void *)timer;
    struct etcd_timer *user = self->user;
    user->pending = NULL;
    free(self);
    user->due(user);
}

void etcd_timer(struct etcd *etcd, struct etcd_timer *user, int64_t at_ns) {
    struct client_timer *self = user->pending;
    if (at_ns == ETCD_NEVER) {
        if (!self) return;
        loop_set(&etcd->loop, &self->timer, LOOP_NEVER);
        user->pending = NULL;
        free(self);
        return;
    }
    if (!self) self = calloc(1, sizeof *self);
    if (!self) abort(); /* a lease would be lost unnoticed */
    self->user = user;
    self->timer.due = client_on_timer;
    user->pending = self;
    loop_set(&etcd->loop, &self->timer, at_ns);
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
