/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "grpc.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The codes of gRPC. */
enum {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16,
};

/* At most eight digits are allowed. */
static void grpc_timeout(char *text, size_t size, int64_t timeout_ns) {
    int64_t ms = timeout_ns / NS_PER_MS + 1;
    if (ms <= 99999999) snprintf(text, size, "%lldm", (long long)(ms > 1 ? ms : 1));
    else snprintf(text, size, "%lldS", (long long)(ms / 1000 <= 99999999 ? ms / 1000 : 99999999));
}

bool grpc_start(struct http2 *http2, struct http2_stream *stream, const struct grpc_call *call) {
    char timeout[24];
    struct http2_header headers[8];
    size_t count = 0;
    headers[count++] = (struct http2_header){":path", call->path};
    headers[count++] = (struct http2_header){"te", "trailers"};
    headers[count++] = (struct http2_header){"content-type", "application/grpc"};
    headers[count++] = (struct http2_header){"user-agent", "vigil"};
    if (call->timeout_ns != LOOP_NEVER) {
        grpc_timeout(timeout, sizeof timeout, call->timeout_ns);
        headers[count++] = (struct http2_header){"grpc-timeout", timeout};
    }
    if (call->leader) headers[count++] = (struct http2_header){"hasleader", "true"};
    if (call->token) headers[count++] = (struct http2_header){"token", call->token};
    stream->in_most = GRPC_MOST + GRPC_PREFIX;
    return http2_start(http2, stream, headers, count);
}

bool grpc_put(struct bytes *bytes, const ProtobufCMessage *message) {
    size_t length = protobuf_c_message_get_packed_size(message);
    uint8_t *room = bytes_room(bytes, GRPC_PREFIX + length);
    if (!room) return false;
    const uint8_t prefix[GRPC_PREFIX] = {0, (uint8_t)(length >> 24), (uint8_t)(length >> 16), (uint8_t)(length >> 8),
                                         (uint8_t)length};
    memcpy(room, prefix, GRPC_PREFIX);
    protobuf_c_message_pack(message, room + GRPC_PREFIX);
    bytes_added(bytes, GRPC_PREFIX + length);
    return true;
}

/* protobuf-c does not tell why it has failed. */
static void *grpc_allocate(void *failed, size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) *(bool *)failed = true;
    return memory;
}

static void grpc_release(void *failed, void *memory) {
    (void)failed;
    free(memory);
}

int grpc_read(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t length, ProtobufCMessage **message) {
    bool failed = false;
    ProtobufCAllocator allocator = {.alloc = grpc_allocate, .free = grpc_release, .allocator_data = &failed};
    *message = protobuf_c_message_unpack(type, &allocator, length, data);
    return *message ? VIGIL_OK : failed ? VIGIL_ENOMEM : VIGIL_EPROTOCOL;
}

const char *grpc_misread(int status) {
    return status == VIGIL_ENOMEM ? "there is no memory for the reply" : "the reply is malformed";
}

int grpc_next(const struct bytes *bytes, const uint8_t **message, size_t *length) {
    size_t there = bytes_length(bytes);
    if (there < GRPC_PREFIX) return 0;
    const uint8_t *first = bytes_first(bytes);
    size_t wanted = (size_t)first[1] << 24 | (size_t)first[2] << 16 | (size_t)first[3] << 8 | first[4];
    if (first[0] != 0 || wanted > GRPC_MOST) return -1; /* compressed: we have not offered that */
    if (there - GRPC_PREFIX < wanted) return 0;
    *message = first + GRPC_PREFIX;
    *length = wanted;
    return 1;
}

static bool grpc_says(const struct http2_stream *stream, const char *text) {
    return strstr(stream->grpc_message, text);
}

/* `not_done`: what etcd says before it proposes a request, or when all members have refused to carry it out. That there
 * is no space is also said of a request that was carried out with the last of it. */
static void grpc_judge_status(const struct http2_stream *stream, struct grpc_end *end) {
    switch (stream->grpc_status) {
    case GRPC_OK: end->status = VIGIL_OK; break;
    case GRPC_DEADLINE_EXCEEDED: end->status = VIGIL_TIMED_OUT; break;
    case GRPC_NOT_FOUND:
        end->status = VIGIL_ENOTFOUND;
        end->not_done = true;
        break;
    case GRPC_INVALID_ARGUMENT:
    case GRPC_PERMISSION_DENIED:
    case GRPC_UNAUTHENTICATED:
        end->status = VIGIL_EREFUSED;
        end->not_done = true;
        end->token_stale = grpc_says(stream, "invalid auth token") || grpc_says(stream, "auth store is old");
        break;
    case GRPC_FAILED_PRECONDITION:
        end->status = grpc_says(stream, "lease already exists") ? VIGIL_EEXISTS : VIGIL_EREFUSED;
        end->no_auth = grpc_says(stream, "authentication is not enabled");
        end->not_done = true;
        break;
    case GRPC_RESOURCE_EXHAUSTED:
        end->not_done = !grpc_says(stream, "space exceeded");
        end->status = end->not_done ? VIGIL_EUNREACHABLE : VIGIL_EREFUSED;
        break;
    case GRPC_UNIMPLEMENTED:
        end->status = VIGIL_EPROTOCOL;
        end->not_done = true;
        break;
    case GRPC_UNAVAILABLE:
        end->status = VIGIL_EUNREACHABLE;
        end->unavailable = true;
        end->elsewhere = grpc_says(stream, "etcdserver: no leader") || grpc_says(stream, "not supported for learner");
        end->not_done = end->elsewhere;
        break;
    default: end->status = VIGIL_EUNREACHABLE; break;
    }
    if (stream->grpc_message[0]) snprintf(end->why, sizeof end->why, "%s", stream->grpc_message);
    else snprintf(end->why, sizeof end->why, "gRPC status %d", stream->grpc_status);
}

void grpc_judge(const struct http2_stream *stream, struct grpc_end *end) {
    *end = (struct grpc_end){.status = VIGIL_EPROTOCOL};
    if (stream->no_memory) {
        end->status = VIGIL_ENOMEM;
        end->not_done = stream->refused;
        snprintf(end->why, sizeof end->why, "%s", grpc_misread(VIGIL_ENOMEM));
    } else if (stream->too_long) {
        snprintf(end->why, sizeof end->why, "the reply has more than %zu bytes", GRPC_MOST);
    } else if (stream->refused) {
        end->status = VIGIL_EUNREACHABLE;
        end->not_done = true;
        snprintf(end->why, sizeof end->why, "the server takes no more requests");
    } else if (stream->grpc_status >= 0) {
        grpc_judge_status(stream, end);
    } else if (stream->http_status && (stream->http_status != 200 || !stream->is_grpc)) {
        end->not_done = stream->http_status == 404;
        snprintf(end->why, sizeof end->why, "this is not etcd: it replies with HTTP status %d", stream->http_status);
    } else if (stream->reset_code) {
        end->status = VIGIL_EUNREACHABLE;
        snprintf(end->why, sizeof end->why, "the server has ended the request: %s",
                 nghttp2_http2_strerror(stream->reset_code));
    } else {
        snprintf(end->why, sizeof end->why, "the reply has no end as gRPC has it");
    }
}
