/* SPDX-License-Identifier: MIT */
/* Calls: how they are made into messages, sent, answered and ended. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

#define CALL_RETRIES     3u
#define CALL_UNAVAILABLE 2u /* so many replies of that kind, one after the other, and another member is tried */

/* Lists. */

static void call_append(struct call_list *list, struct call *call) {
    call->next = NULL;
    call->link = list->last;
    *list->last = call;
    list->last = &call->next;
}

static void call_unlink(struct etcd *etcd, struct call *call) {
    struct call_list *const lists[] = {&etcd->waiting, &etcd->sent, &etcd->ending};
    for (unsigned i = 0; i < 3; i++)
        if (lists[i]->last == &call->next) lists[i]->last = call->link;
    *call->link = call->next;
    if (call->next) call->next->link = call->link;
}

static void call_move(struct call_list *list, struct call *call) {
    call_unlink(call->etcd, call);
    call_append(list, call);
}

void calls_init(struct etcd *etcd) {
    etcd->waiting.last = &etcd->waiting.first;
    etcd->sent.last = &etcd->sent.first;
    etcd->ending.last = &etcd->ending.first;
}

/* The end of a call. */

static void call_free(struct call *call) {
    struct etcd *etcd = call->etcd;
    call_unlink(etcd, call);
    http2_drop(&call->stream);
    loop_set(&etcd->loop, &call->deadline, LOOP_NEVER);
    call->user->pending = NULL;
    bytes_free(&call->stream.in);
    bytes_free(&call->stream.out);
    bytes_free(&call->request);
    free(call);
    client_count_call(etcd, -1);
    link_tell_busy(etcd);
}

/* The user's part may be freed by its callback, and the call is freed before that: what the reply points to is not in
 * it. */
static void call_end(struct call *call, struct etcd_reply *reply) {
    struct etcd_call *user = call->user;
    call_free(call);
    user->done(user, reply);
}

static bool call_was_sent(const struct call *call) {
    return call->stream.http2 && http2_was_sent(&call->stream);
}

static void call_end_badly(struct call *call, int status, bool maybe_done) {
    struct etcd_reply reply = {.status = status, .maybe_done = maybe_done};
    call_end(call, &reply);
}

static void calls_end_ending(struct etcd *etcd) {
    for (struct call *call; (call = etcd->ending.first);) call_end_badly(call, call->status, call->maybe_done);
}

static void call_on_deadline(struct loop_timer *timer) {
    struct call *call = (struct call *)(void *)((char *)timer - offsetof(struct call, deadline));
    call_end_badly(call, VIGIL_TIMED_OUT, call_was_sent(call));
}

/* Replies. */

static struct etcd_bytes call_bytes(ProtobufCBinaryData data) {
    return (struct etcd_bytes){data.data, data.len};
}

/* Each of these returns VIGIL_OK, VIGIL_EPROTOCOL: it is malformed, or VIGIL_ENOMEM. */

static int reply_range(struct etcd_result *result, const Etcdpb__RangeReply *range) {
    struct etcd_pair *pairs = range->n_kvs ? calloc(range->n_kvs, sizeof *pairs) : NULL;
    if (range->n_kvs && !pairs) return VIGIL_ENOMEM;
    for (size_t i = 0; i < range->n_kvs; i++) {
        const Etcdpb__KeyValue *kv = range->kvs[i];
        pairs[i] = (struct etcd_pair){.key = call_bytes(kv->key),
                                      .value = call_bytes(kv->value),
                                      .create_revision = kv->create_revision,
                                      .mod_revision = kv->mod_revision,
                                      .lease = kv->lease};
    }
    *result = (struct etcd_result){.pairs = pairs, .pair_count = range->n_kvs, .count = range->count};
    return VIGIL_OK;
}

/* The callers rely on it that each operation has a result. */
static int reply_txn(struct etcd_reply *reply, const Etcdpb__TxnReply *txn, const struct call *call) {
    size_t wanted = txn->succeeded ? call->then_count : call->otherwise_count;
    int status = txn->n_responses != wanted ? VIGIL_EPROTOCOL : VIGIL_OK;
    reply->succeeded = txn->succeeded;
    for (size_t i = 0; status == VIGIL_OK && i < txn->n_responses; i++) {
        const Etcdpb__OperationReply *operation = txn->responses[i];
        struct etcd_result *result = &reply->results[reply->result_count++];
        if (operation->response_case == ETCDPB__OPERATION_REPLY__RESPONSE_RANGE)
            status = operation->range ? reply_range(result, operation->range) : VIGIL_EPROTOCOL;
        else if (operation->response_case == ETCDPB__OPERATION_REPLY__RESPONSE_DELETE && operation->delete_)
            result->count = operation->delete_->deleted;
    }
    return status;
}

static int reply_header(struct etcd_reply *reply, const Etcdpb__Header *header) {
    if (!header || !header->cluster_id) return VIGIL_EPROTOCOL; /* 0 would say that no reply has come yet */
    reply->cluster = header->cluster_id;
    reply->member = header->member_id;
    reply->revision = header->revision;
    return VIGIL_OK;
}

static int reply_lease(struct etcd_reply *reply, const Etcdpb__LeaseReply *lease, enum call_kind kind) {
    reply->ttl_s = lease->ttl;
    if (kind == CALL_RENEW && lease->ttl <= 0) reply->status = VIGIL_ENOTFOUND;
    if (kind == CALL_TIME_TO_LIVE && lease->ttl < 0) reply->status = VIGIL_ENOTFOUND;
    if (reply->ttl_s < 0) reply->ttl_s = 0;
    return reply_header(reply, lease->header);
}

static void reply_status(struct etcd_reply *reply, const Etcdpb__StatusReply *status) {
    reply->version = status->version;
    reply->leader = status->leader;
    reply->database_bytes = status->database_size;
    reply->alarms = (unsigned)status->n_errors;
}

static const ProtobufCMessageDescriptor *call_reply_type(enum call_kind kind) {
    switch (kind) {
    case CALL_TXN: return &etcdpb__txn_reply__descriptor;
    case CALL_GRANT: return &etcdpb__grant_reply__descriptor;
    case CALL_STATUS: return &etcdpb__status_reply__descriptor;
    default: return &etcdpb__lease_reply__descriptor;
    }
}

static int reply_read(struct etcd_reply *reply, const ProtobufCMessage *message, const struct call *call) {
    switch (call->kind) {
    case CALL_TXN: {
        const Etcdpb__TxnReply *txn = (const void *)message;
        int status = reply_header(reply, txn->header);
        return status == VIGIL_OK ? reply_txn(reply, txn, call) : status;
    }
    case CALL_GRANT: {
        const Etcdpb__GrantReply *grant = (const void *)message;
        reply->ttl_s = grant->ttl;
        return grant->ttl < 1 ? VIGIL_EPROTOCOL : reply_header(reply, grant->header);
    }
    case CALL_STATUS: {
        const Etcdpb__StatusReply *status = (const void *)message;
        reply_status(reply, status);
        return reply_header(reply, status->header);
    }
    default: return reply_lease(reply, (const void *)message, call->kind);
    }
}

/* Before 3.3, a comparison of a range compares one key, and before 3.4, the server numbers the watches. */
static bool reply_has_old_version(const struct etcd_reply *reply) {
    unsigned major = 0, minor = 0;
    if (!reply->version || sscanf(reply->version, "%u.%u", &major, &minor) != 2) return true;
    return major < 3 || (major == 3 && minor < 4);
}

static void reply_say_old_version(const struct etcd_reply *reply, char *why, size_t size) {
    snprintf(why, size, "this is etcd %.32s: version 3.4 or later is needed", reply->version ? reply->version : "?");
}

int calls_judge_member(const struct etcd *etcd, const struct bytes *in, char *why, size_t size) {
    struct etcd_reply reply = {0};
    const uint8_t *data;
    size_t length;
    ProtobufCMessage *message = NULL;
    int status = VIGIL_EPROTOCOL;
    if (grpc_next(in, &data, &length) == 1)
        status = grpc_read(&etcdpb__status_reply__descriptor, data, length, &message);
    snprintf(why, size, "%s", grpc_misread(status));
    if (status == VIGIL_OK) {
        const Etcdpb__StatusReply *said = (const void *)message;
        reply_status(&reply, said);
        status = reply_header(&reply, said->header);
    }
    if (status == VIGIL_OK && reply.cluster != etcd->cluster) {
        status = VIGIL_EPROTOCOL;
        snprintf(why, size, "it is of cluster %llx, and the endpoint before of %llx: name members of one cluster",
                 (unsigned long long)reply.cluster, (unsigned long long)etcd->cluster);
    } else if (status == VIGIL_OK && reply_has_old_version(&reply)) {
        status = VIGIL_EPROTOCOL;
        reply_say_old_version(&reply, why, size);
    }
    if (message) protobuf_c_message_free_unpacked(message, NULL);
    return status;
}

static void call_refuse_version(struct call *call, const struct etcd_reply *reply) {
    char why[128];
    reply_say_old_version(reply, why, sizeof why);
    link_note_error(call->etcd, VIGIL_EPROTOCOL, why);
    call_end_badly(call, VIGIL_EPROTOCOL, false);
}

static void call_end_well(struct call *call, struct etcd_reply *reply) {
    struct etcd *etcd = call->etcd;
    etcd->why[0] = 0;
    etcd->status = VIGIL_OK;
    etcd->proven = true;
    if (!etcd->cluster) etcd->cluster_endpoint = etcd->endpoint;
    if (etcd->endpoint == etcd->cluster_endpoint) etcd->cluster = reply->cluster;
    etcd->failures_in_turn = etcd->unavailable_in_turn = 0;
    call_end(call, reply);
}

static void call_answer(struct call *call) {
    struct etcd_reply reply = {.status = VIGIL_OK};
    const uint8_t *data;
    size_t length;
    ProtobufCMessage *message = NULL;
    int status = VIGIL_EPROTOCOL;
    if (grpc_next(&call->stream.in, &data, &length) == 1)
        status = grpc_read(call_reply_type(call->kind), data, length, &message);
    if (status == VIGIL_OK) status = reply_read(&reply, message, call);
    if (status == VIGIL_OK && call->kind == CALL_STATUS && reply_has_old_version(&reply)) {
        call_refuse_version(call, &reply);
    } else if (status == VIGIL_OK) {
        call_end_well(call, &reply);
    } else {
        link_note_error(call->etcd, status, grpc_misread(status));
        call_end_badly(call, status, true);
    }
    for (unsigned i = 0; i < reply.result_count; i++) free((void *)(uintptr_t)reply.results[i].pairs);
    if (message) protobuf_c_message_free_unpacked(message, NULL);
}

/* Sending. */

static const char *const call_paths[] = {
    [CALL_TXN] = "/etcdserverpb.KV/Txn",
    [CALL_GRANT] = "/etcdserverpb.Lease/LeaseGrant",
    [CALL_REVOKE] = "/etcdserverpb.Lease/LeaseRevoke",
    [CALL_RENEW] = "/etcdserverpb.Lease/LeaseKeepAlive", /* a stream of one */
    [CALL_TIME_TO_LIVE] = "/etcdserverpb.Lease/LeaseTimeToLive",
    [CALL_STATUS] = "/etcdserverpb.Maintenance/Status",
};

static void call_wait_again(struct call *call) {
    http2_drop(&call->stream);
    call_move(&call->etcd->waiting, call);
}

/* This member replies, but is of no use, while another may be. One reply says little: the cluster may be choosing a new
 * leader, and to leave a member costs its watches. */
static bool call_has_had_enough(struct etcd *etcd, const struct grpc_end *end) {
    if (end->unavailable) etcd->unavailable_in_turn++;
    return end->unavailable && etcd->unavailable_in_turn >= CALL_UNAVAILABLE && etcd->endpoint_count > 1;
}

static void call_on_change(struct http2_stream *stream) {
    struct call *call = (struct call *)(void *)stream;
    struct etcd *etcd = call->etcd;
    if (!stream->ended) return;
    struct grpc_end end;
    grpc_judge(stream, &end);
    if (end.status == VIGIL_OK) {
        call_answer(call);
        return;
    }
    link_note_error(etcd, end.status, end.why);
    bool again = end.not_done && (end.token_stale || end.elsewhere || stream->refused);
    if (again && call->retries++ < CALL_RETRIES) {
        call_wait_again(call);
        if (end.token_stale) link_login_again(etcd);
        else link_give_up(etcd, end.status, end.why, true);
        return;
    }
    bool leaves = end.elsewhere || call_has_had_enough(etcd, &end);
    call_end_badly(call, end.status, !end.not_done);
    if (leaves && !etcd->closed) link_give_up(etcd, end.status, end.why, true);
}

static bool call_send(struct call *call) {
    struct etcd *etcd = call->etcd;
    int64_t now_ns = loop_now_ns();
    struct grpc_call grpc = {.path = call_paths[call->kind],
                             .timeout_ns = call->deadline_ns == ETCD_NEVER ? LOOP_NEVER : call->deadline_ns - now_ns,
                             .leader = call->kind != CALL_STATUS && !call->stale,
                             .token = etcd->token};
    bytes_free(&call->stream.in);
    bytes_free(&call->stream.out);
    call->stream = (struct http2_stream){.changed = call_on_change, .out_ends = true};
    if (!bytes_add(&call->stream.out, bytes_first(&call->request), bytes_length(&call->request))) return false;
    if (!grpc_start(etcd->http2, &call->stream, &grpc)) return false;
    call->user->sent_ns = now_ns;
    return true;
}

static void call_begin_sending(struct call *call) {
    struct etcd *etcd = call->etcd;
    struct etcd_call *user = call->user;
    if (call_send(call)) {
        call_move(&etcd->sent, call);
    } else {
        call_free(call);
        client_fail_call(etcd, user);
    }
}

void calls_send_waiting(struct etcd *etcd) {
    for (struct call *call = etcd->waiting.first, *next; call; call = next) {
        next = call->next;
        call_begin_sending(call);
    }
}

void calls_lose_link(struct etcd *etcd, int status) {
    struct call_list later = etcd->waiting; /* those that were sent were begun before */
    etcd->waiting = (struct call_list){NULL, &etcd->waiting.first};
    for (struct call *call; (call = etcd->sent.first);) {
        call->maybe_done = call_was_sent(call) && !call->stream.refused && !call->reads;
        call->status = status;
        call->begun_after = etcd->failures;
        http2_drop(&call->stream);
        call_move(call->maybe_done ? &etcd->ending : &etcd->waiting, call);
    }
    if (later.first) {
        *etcd->waiting.last = later.first;
        later.first->link = etcd->waiting.last;
        etcd->waiting.last = later.last;
    }
}

static bool call_has_seen_all_fail(const struct etcd *etcd, const struct call *call) {
    for (size_t i = 0; i < etcd->endpoint_count; i++)
        if (etcd->endpoints[i].failed_at <= call->begun_after) return false;
    return true;
}

void calls_end_failed(struct etcd *etcd, int status) {
    for (struct call *call = etcd->waiting.first, *next; call; call = next) {
        next = call->next;
        if (!call_has_seen_all_fail(etcd, call)) continue;
        call->status = status;
        call->maybe_done = false;
        call_move(&etcd->ending, call);
    }
    calls_end_ending(etcd);
}

void calls_end_all(struct etcd *etcd, int status) {
    struct call_list *const lists[] = {&etcd->waiting, &etcd->sent};
    for (unsigned i = 0; i < 2; i++) {
        for (struct call *call; (call = lists[i]->first);) {
            call->status = status;
            call->maybe_done = call_was_sent(call);
            call_move(&etcd->ending, call);
        }
    }
    calls_end_ending(etcd);
}

/* Beginning. */

static bool txn_reads(const struct etcd_txn *txn) {
    unsigned ranges = 0;
    for (unsigned i = 0; i < txn->then_count; i++) ranges += txn->then[i].action == ETCD_RANGE;
    for (unsigned i = 0; i < txn->otherwise_count; i++) ranges += txn->otherwise[i].action == ETCD_RANGE;
    return ranges == txn->then_count + txn->otherwise_count;
}

static bool txn_is_stale(const struct etcd_txn *txn) {
    unsigned stale = 0;
    for (unsigned i = 0; i < txn->then_count; i++) stale += txn->then[i].serializable;
    for (unsigned i = 0; i < txn->otherwise_count; i++) stale += txn->otherwise[i].serializable;
    return stale && stale == txn->then_count + txn->otherwise_count;
}

static struct call *call_new(const ProtobufCMessage *message) {
    struct call *call = calloc(1, sizeof *call);
    if (call && grpc_put(&call->request, message)) return call;
    free(call);
    return NULL;
}

static void call_begin(struct etcd *etcd, struct etcd_call *user, enum call_kind kind, const ProtobufCMessage *message,
                       int64_t deadline_ns, const struct etcd_txn *txn) {
    struct call *call = call_new(message);
    user->sent_ns = loop_now_ns();
    if (!call) {
        client_fail_call(etcd, user);
        return;
    }
    *call = (struct call){.request = call->request,
                          .etcd = etcd,
                          .user = user,
                          .kind = kind,
                          .reads = txn ? txn_reads(txn) : kind == CALL_STATUS,
                          .stale = txn && txn_is_stale(txn),
                          .then_count = txn ? txn->then_count : 0,
                          .otherwise_count = txn ? txn->otherwise_count : 0,
                          .deadline_ns = deadline_ns,
                          .begun_after = etcd->failures,
                          .deadline.due = call_on_deadline};
    user->pending = call;
    client_count_call(etcd, 1);
    call_append(&etcd->waiting, call);
    loop_set(&etcd->loop, &call->deadline, deadline_ns);
    if (etcd->state == LINK_UP) call_begin_sending(call);
    link_tell_busy(etcd);
    if (etcd->http2 && !etcd->loop.inside) http2_flush(etcd->http2);
}

void etcd_cancel(struct etcd *etcd, struct etcd_call *user) {
    if (!user->pending) return;
    if (user->pending == etcd) client_drop_call(etcd, user);
    else call_free(user->pending);
    if (etcd->http2 && !etcd->loop.inside) http2_flush(etcd->http2);
}

static void lease_begin(struct etcd *etcd, struct etcd_call *call, enum call_kind kind, int64_t lease, int64_t at_ns) {
    Etcdpb__Lease message = ETCDPB__LEASE__INIT;
    message.id = lease;
    call_begin(etcd, call, kind, &message.base, at_ns, NULL);
}

void etcd_grant(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t ttl_s, int64_t deadline_ns) {
    Etcdpb__Grant message = ETCDPB__GRANT__INIT;
    message.id = lease;
    message.ttl = ttl_s;
    call_begin(etcd, call, CALL_GRANT, &message.base, deadline_ns, NULL);
}

void etcd_revoke(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t deadline_ns) {
    lease_begin(etcd, call, CALL_REVOKE, lease, deadline_ns);
}

void etcd_renew(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t deadline_ns) {
    lease_begin(etcd, call, CALL_RENEW, lease, deadline_ns);
}

void etcd_time_to_live(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t deadline_ns) {
    lease_begin(etcd, call, CALL_TIME_TO_LIVE, lease, deadline_ns);
}

void etcd_status(struct etcd *etcd, struct etcd_call *call, int64_t deadline_ns) {
    Etcdpb__Status message = ETCDPB__STATUS__INIT;
    call_begin(etcd, call, CALL_STATUS, &message.base, deadline_ns, NULL);
}

/* Transactions: the messages are made on the stack. */

static ProtobufCBinaryData txn_bytes(struct etcd_bytes bytes) {
    return (ProtobufCBinaryData){bytes.length, (uint8_t *)(uintptr_t)bytes.data};
}

static void txn_compare(Etcdpb__Compare *message, const struct etcd_compare *compare) {
    etcdpb__compare__init(message);
    message->result = (int32_t)compare->relation;
    message->key = txn_bytes(compare->key);
    message->range_end = txn_bytes(compare->range_end);
    message->target = (int32_t)compare->target + 1;
    if (compare->target == ETCD_CREATE_REVISION) {
        message->target_union_case = ETCDPB__COMPARE__TARGET_UNION_CREATE_REVISION;
        message->create_revision = compare->revision;
    } else if (compare->target == ETCD_MOD_REVISION) {
        message->target_union_case = ETCDPB__COMPARE__TARGET_UNION_MOD_REVISION;
        message->mod_revision = compare->revision;
    } else {
        message->target_union_case = ETCDPB__COMPARE__TARGET_UNION_VALUE;
        message->value = txn_bytes(compare->value);
    }
}

struct txn_operation {
    Etcdpb__Operation message;
    union {
        Etcdpb__Range range;
        Etcdpb__Put put;
        Etcdpb__Delete delete_;
    };
};

static void txn_range(Etcdpb__Range *range, const struct etcd_operation *operation) {
    etcdpb__range__init(range);
    range->key = txn_bytes(operation->key);
    range->range_end = txn_bytes(operation->range_end);
    range->limit = operation->limit;
    range->serializable = operation->serializable;
    range->max_create_revision = operation->created_before ? operation->created_before - 1 : 0;
    if (operation->order != ETCD_BY_KEY) {
        range->sort_order = operation->order == ETCD_OLDEST_FIRST ? 1 : 2;
        range->sort_target = 2;
    }
}

static void txn_operation(struct txn_operation *made, const struct etcd_operation *operation) {
    etcdpb__operation__init(&made->message);
    if (operation->action == ETCD_RANGE) {
        txn_range(&made->range, operation);
        made->message.request_case = ETCDPB__OPERATION__REQUEST_RANGE;
        made->message.range = &made->range;
    } else if (operation->action == ETCD_PUT) {
        etcdpb__put__init(&made->put);
        made->put.key = txn_bytes(operation->key);
        made->put.value = txn_bytes(operation->value);
        made->put.lease = operation->lease;
        made->message.request_case = ETCDPB__OPERATION__REQUEST_PUT;
        made->message.put = &made->put;
    } else {
        etcdpb__delete__init(&made->delete_);
        made->delete_.key = txn_bytes(operation->key);
        made->delete_.range_end = txn_bytes(operation->range_end);
        made->message.request_case = ETCDPB__OPERATION__REQUEST_DELETE;
        made->message.delete_ = &made->delete_;
    }
}

struct txn_operations {
    struct txn_operation made[ETCD_OPERATIONS];
    Etcdpb__Operation *list[ETCD_OPERATIONS];
};

static void txn_operations(struct txn_operations *made, const struct etcd_operation *operations, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        txn_operation(&made->made[i], &operations[i]);
        made->list[i] = &made->made[i].message;
    }
}

void etcd_txn(struct etcd *etcd, struct etcd_call *call, const struct etcd_txn *txn, int64_t deadline_ns) {
    Etcdpb__Txn message = ETCDPB__TXN__INIT;
    Etcdpb__Compare compares[ETCD_COMPARES], *compare_list[ETCD_COMPARES];
    struct txn_operations then, otherwise;
    for (unsigned i = 0; i < txn->compare_count; i++) {
        txn_compare(&compares[i], &txn->compares[i]);
        compare_list[i] = &compares[i];
    }
    txn_operations(&then, txn->then, txn->then_count);
    txn_operations(&otherwise, txn->otherwise, txn->otherwise_count);
    message.n_compare = txn->compare_count;
    message.compare = compare_list;
    message.n_success = txn->then_count;
    message.success = then.list;
    message.n_failure = txn->otherwise_count;
    message.failure = otherwise.list;
    call_begin(etcd, call, CALL_TXN, &message.base, deadline_ns, txn);
}
