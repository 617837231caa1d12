/* SPDX-License-Identifier: MIT */
/* grpc.h - gRPC on HTTP/2: how a call begins, how messages are framed, and what its end means with etcd. */
#ifndef VIGIL_REMOTE_GRPC_H
#define VIGIL_REMOTE_GRPC_H

#include <protobuf-c/protobuf-c.h>

#include "http2.h"

#define GRPC_PREFIX 5u                 /* of a message: a flag, and its length */
#define GRPC_MOST   ((size_t)64 << 20) /* of a message */

struct grpc_call {
    const char *path;
    int64_t timeout_ns; /* LOOP_NEVER: none */
    bool leader;        /* the member must have a leader; a stream ends when it has none any more */
    const char *token;  /* of the authentication; null: none */
};
bool grpc_start(struct http2 *http2, struct http2_stream *stream, const struct grpc_call *call);

/* Appends the message with its prefix; false: no memory. */
bool grpc_put(struct bytes *bytes, const ProtobufCMessage *message);

/* VIGIL_OK: the message, to be freed by protobuf_c_message_free_unpacked. VIGIL_EPROTOCOL: it is malformed.
 * VIGIL_ENOMEM. And a sentence for the latter two. */
int grpc_read(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t length, ProtobufCMessage **message);
const char *grpc_misread(int status);

/* The next message that is there as a whole: 1; none yet: 0; what is there is malformed: -1. */
int grpc_next(const struct bytes *bytes, const uint8_t **message, size_t *length);

/* What the end of a call means. */
struct grpc_end {
    int status;       /* as in etcd.h */
    bool not_done;    /* the cluster has said that it has not carried it out */
    bool unavailable; /* this member cannot carry it out now */
    bool elsewhere;   /* another may: this one has no leader, or is a learner */
    bool token_stale; /* authenticate again */
    bool no_auth;     /* authentication is not enabled */
    char why[HTTP2_TEXT + 80];
};
void grpc_judge(const struct http2_stream *stream, struct grpc_end *end);

#endif
