/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vigil/vigil.h>

#include "bench.h"
#include "client.h"
#include "lock.pb-c.h"

#define SEAT_CALL_NS INT64_C(60000000000)

double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void seat_open(struct seat *seat, const struct round *round) {
    *seat = (struct seat){0};
    must(vigil_agent_create(&seat->agent, 0) == VIGIL_OK);
    must(vigil_remote_open(&seat->remote, seat->agent, round->at, NULL) == VIGIL_OK);
    seat_put(seat, "bench-put"); /* connects */
}

void seat_close(struct seat *seat) {
    must(vigil_remote_close(seat->remote) == VIGIL_OK);
    must(vigil_agent_destroy(seat->agent) == VIGIL_OK);
}

static bool seat_poll(struct seat *seat, int timeout_ms) {
    struct pollfd from = {.fd = vigil_agent_fd(seat->agent), .events = POLLIN};
    bool ready = poll(&from, 1, timeout_ms) > 0;
    if (ready) vigil_agent_dispatch(seat->agent);
    return ready;
}

void seat_run(struct seat *seat, const bool *done) {
    while (!*done) seat_poll(seat, -1);
}

void seat_run_for_ms(struct seat *seat, int ms) {
    double end_ms = now_ms() + ms;
    for (double left_ms; (left_ms = end_ms - now_ms()) > 0;) seat_poll(seat, (int)left_ms + 1);
}

/* Calls that the library does not need itself, on its connection. */

struct seat_call {
    struct http2_stream stream; /* first */
    bool done;
};

static void seat_on_change(struct http2_stream *stream) {
    ((struct seat_call *)(void *)stream)->done = stream->ended;
}

static void *seat_call(struct seat *seat, const char *path, const ProtobufCMessage *message,
                       const ProtobufCMessageDescriptor *reply) {
    struct seat_call call = {.stream = {.changed = seat_on_change, .out_ends = true}};
    struct grpc_call grpc = {.path = path, .timeout_ns = SEAT_CALL_NS, .leader = true};
    struct etcd *etcd = seat->remote->etcd;
    struct grpc_end end;
    const uint8_t *data;
    size_t length;
    must(grpc_put(&call.stream.out, message) && grpc_start(etcd->http2, &call.stream, &grpc));
    http2_flush(etcd->http2);
    seat_run(seat, &call.done);
    grpc_judge(&call.stream, &end);
    must(end.status == VIGIL_OK && grpc_next(&call.stream.in, &data, &length) == 1);
    void *answer = protobuf_c_message_unpack(reply, NULL, length, data);
    must(answer);
    bytes_free(&call.stream.in);
    bytes_free(&call.stream.out);
    return answer;
}

static void seat_called(struct etcd_call *call, const struct etcd_reply *reply) {
    must(reply->status == VIGIL_OK);
    *(bool *)call->data = true;
}

/* The library connects when it is called. */
static void seat_connect(struct seat *seat) {
    bool done = false;
    struct etcd_call call = {.done = seat_called, .data = &done};
    etcd_status(seat->remote->etcd, &call, etcd_now_ns(seat->remote->etcd) + SEAT_CALL_NS);
    seat_run(seat, &done);
}

void seat_put(struct seat *seat, const char *key) {
    Etcdpb__Put put = ETCDPB__PUT__INIT;
    put.key = put.value = (ProtobufCBinaryData){strlen(key), (uint8_t *)(uintptr_t)key};
    if (seat->remote->etcd->state != LINK_UP) seat_connect(seat);
    protobuf_c_message_free_unpacked(seat_call(seat, "/etcdserverpb.KV/Put", &put.base, &etcdpb__put_reply__descriptor),
                                     NULL);
}

void seat_txn(struct seat *seat, const char *key) {
    bool done = false;
    struct etcd *etcd = seat->remote->etcd;
    struct etcd_bytes text = {key, strlen(key)};
    struct etcd_txn txn = {.then = {{.action = ETCD_PUT, .key = text, .value = text}}, .then_count = 1};
    struct etcd_call call = {.done = seat_called, .data = &done};
    etcd_txn(etcd, &call, &txn, etcd_now_ns(etcd) + SEAT_CALL_NS);
    seat_run(seat, &done);
}

static void seat_want_lease(struct seat *seat) {
    bool done = false;
    struct etcd *etcd = seat->remote->etcd;
    struct etcd_call call = {.done = seat_called, .data = &done};
    if (seat->lease) return;
    seat->lease = (int64_t)(etcd_random(etcd) >> 1 | 1);
    etcd_grant(etcd, &call, seat->lease, 600, etcd_now_ns(etcd) + SEAT_CALL_NS);
    seat_run(seat, &done);
}

void seat_etcd_lock(struct seat *seat, const char *name, struct seat_key *key) {
    Lockpb__Lock message = LOCKPB__LOCK__INIT;
    seat_want_lease(seat);
    message.name = (ProtobufCBinaryData){strlen(name), (uint8_t *)(uintptr_t)name};
    message.lease = seat->lease;
    Lockpb__LockReply *reply = seat_call(seat, "/v3lockpb.Lock/Lock", &message.base, &lockpb__lock_reply__descriptor);
    must(reply->key.len && reply->key.len <= sizeof key->data);
    memcpy(key->data, reply->key.data, reply->key.len);
    key->length = reply->key.len;
    lockpb__lock_reply__free_unpacked(reply, NULL);
}

void seat_etcd_unlock(struct seat *seat, const struct seat_key *key) {
    Lockpb__Unlock message = LOCKPB__UNLOCK__INIT;
    message.key = (ProtobufCBinaryData){key->length, (uint8_t *)(uintptr_t)key->data};
    protobuf_c_message_free_unpacked(
        seat_call(seat, "/v3lockpb.Lock/Unlock", &message.base, &lockpb__unlock_reply__descriptor), NULL);
}

/* Our locks. */

static void seat_lock_ended(vigil_remote_lock *handle, int status, void *data) {
    struct seat_lock *lock = data;
    (void)handle;
    lock->status = status;
    lock->done = true;
}

static void seat_lock_closed(int status, void *data) {
    seat_lock_ended(NULL, status, data);
}

void seat_lock_open(struct seat_lock *lock, struct seat *seat, const char *name, bool gives_back) {
    vigil_remote_lock_options options = {.gives_back = gives_back};
    *lock = (struct seat_lock){.seat = seat};
    must(vigil_remote_lock_open(&lock->lock, seat->remote, name, &options) == VIGIL_OK);
}

static void seat_lock_await(struct seat_lock *lock, int status) {
    if (status == VIGIL_PENDING) seat_run(lock->seat, &lock->done);
    else lock->status = status;
    must(lock->status == VIGIL_OK);
}

void seat_lock_close(struct seat_lock *lock) {
    lock->done = false;
    seat_lock_await(lock, vigil_remote_lock_close(lock->lock, seat_lock_closed, lock));
}

void seat_take(struct seat_lock *lock) {
    lock->done = false;
    seat_lock_await(lock, vigil_remote_lock_take(lock->lock, 0, VIGIL_FOREVER, seat_lock_ended, lock));
}

void seat_release(struct seat_lock *lock) {
    lock->done = false;
    seat_lock_await(lock, vigil_remote_lock_release(lock->lock, seat_lock_ended, lock));
}

struct seat_look {
    bool done;
    unsigned waiters;
};

static void seat_looked(int status, const vigil_remote_seen *seen, void *data) {
    struct seat_look *look = data;
    look->waiters = status == VIGIL_OK ? seen->waiters : 0;
    look->done = true;
}

void seat_await_line(struct seat *seat, const char *name, unsigned count) {
    struct seat_look look = {0};
    while (look.waiters < count) {
        look.done = false;
        must(vigil_remote_look(seat->remote, name, seat_looked, &look) == VIGIL_PENDING);
        seat_run(seat, &look.done);
        if (look.waiters < count) seat_run_for_ms(seat, 1);
    }
}
