/* SPDX-License-Identifier: MIT */
/* support.h - what the tests of the client share: an agent, a client on it, calls that are waited for. */
#ifndef VIGIL_TEST_REMOTE_SUPPORT_H
#define VIGIL_TEST_REMOTE_SUPPORT_H

#define _GNU_SOURCE
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster.h"
#include "etcd.h"

#define SECOND  INT64_C(1000000000)
#define PATIENT (120 * SECOND) /* longer than anything takes that happens at all */

static vigil_agent *agent;
static struct etcd *etcd;

static inline int64_t in_ns(int64_t ns) {
    return etcd_now_ns(etcd) + ns;
}

/* One turn of an event loop. */
static inline void turn(void) {
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    poll(&seat, 1, 1000);
    assert_true(vigil_agent_dispatch(agent) >= 0);
}

/* A call whose deadline is PATIENT from now ends before this has failed. */
#define UNTIL(condition)                                                                                               \
    do {                                                                                                               \
        int64_t until_ns = loop_now_ns() + PATIENT + PATIENT / 8;                                                      \
        while (!(condition)) {                                                                                         \
            if (loop_now_ns() >= until_ns) fail_msg("never came true: %s", #condition);                                \
            turn();                                                                                                    \
        }                                                                                                              \
    } while (0)

static inline void open_client(const char *at, const vigil_remote_options *options) {
    assert_int_equal(vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK), VIGIL_OK);
    assert_int_equal(etcd_open(&etcd, agent, at, options), VIGIL_OK);
}

static inline void close_client(void) {
    etcd_close(etcd);
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
    etcd = NULL;
    agent = NULL;
}

/* After a test that has failed as well: nothing of it is left for the next one. What the client knows of must not be on
 * the stack of the test, which has ended. */
static inline void leave_nothing(struct cluster *cluster) {
    for (int i = 0; i < cluster->count; i++) cluster_thaw(cluster, i);
    if (etcd) etcd_close(etcd);
    if (agent) vigil_agent_destroy(agent);
    etcd = NULL;
    agent = NULL;
}

/* A call, and what it was told: copies. */
struct outcome {
    struct etcd_call call;
    int calls, status;
    struct etcd_reply reply;
    char value[64]; /* of the first pair */
    char version[32];
    char why[512];
};

static inline void note(struct etcd_call *call, const struct etcd_reply *reply) {
    struct outcome *outcome = call->data;
    outcome->calls++;
    outcome->status = reply->status;
    outcome->reply = *reply;
    if (reply->result_count && reply->results[0].pair_count) {
        struct etcd_bytes value = reply->results[0].pairs[0].value;
        size_t length = value.length < sizeof outcome->value - 1 ? value.length : sizeof outcome->value - 1;
        memcpy(outcome->value, value.data, length);
        outcome->value[length] = 0;
    }
    snprintf(outcome->version, sizeof outcome->version, "%s", reply->version ? reply->version : "");
    snprintf(outcome->why, sizeof outcome->why, "%s", etcd_why(etcd));
}

static inline struct etcd_call *begin(struct outcome *outcome) {
    *outcome = (struct outcome){.call = {.done = note, .data = outcome}, .status = -1000};
    return &outcome->call;
}

static inline int end(struct outcome *outcome) {
    UNTIL(outcome->calls);
    assert_int_equal(outcome->calls, 1);
    assert_null(outcome->call.pending);
    return outcome->status;
}

static inline struct etcd_bytes text(const char *text) {
    return (struct etcd_bytes){text, strlen(text)};
}

static inline struct etcd_txn put(const char *key, const char *value, int64_t lease) {
    return (struct etcd_txn){.then = {{.action = ETCD_PUT, .key = text(key), .value = text(value), .lease = lease}},
                             .then_count = 1};
}
static inline struct etcd_txn get(const char *key) {
    return (struct etcd_txn){.then = {{.action = ETCD_RANGE, .key = text(key)}}, .then_count = 1};
}
static inline struct etcd_txn del(const char *key) {
    return (struct etcd_txn){.then = {{.action = ETCD_DELETE, .key = text(key)}}, .then_count = 1};
}

static inline int do_txn(struct outcome *outcome, struct etcd_txn txn) {
    etcd_txn(etcd, begin(outcome), &txn, in_ns(PATIENT));
    return end(outcome);
}

/* The cluster has elected a leader when it carries out a write. */
static inline void await_leader(void) {
    struct outcome outcome;
    while (do_txn(&outcome, put("ready", "", 0)) != VIGIL_OK) continue;
}

#endif
