/* SPDX-License-Identifier: MIT */
/*
 * http2.h - one HTTP/2 connection of a client, plaintext or TLS, on a loop. It knows nothing of gRPC.
 *
 * Nothing here calls back while the caller is inside one of these functions. A stream is told that something has
 * changed (`changed`): there is more in `in`, or headers have arrived, or it has ended. The connection is told that it
 * has become usable, or that it has failed: then its owner looks at its streams, which are told nothing any more, and
 * closes it.
 */
#ifndef VIGIL_REMOTE_HTTP2_H
#define VIGIL_REMOTE_HTTP2_H

#include <openssl/ssl.h>
#include <stdint.h>
#include <sys/socket.h>

#include "bytes.h"
#include "loop.h"

struct http2;

#define HTTP2_TEXT 200
struct http2_stream {
    void (*changed)(struct http2_stream *stream);
    struct bytes in, out;
    size_t in_most; /* more than that at once: the stream is reset, with `too_long` */
    bool out_ends;  /* after `out` nothing follows */
    bool ended, too_long, no_memory, headers_came;
    uint32_t reset_code; /* of the server's RST_STREAM or GOAWAY */
    bool refused;        /* the server has said that it has not looked at it */
    int http_status;     /* 0: none yet */
    int grpc_status;     /* -1: none yet */
    bool is_grpc;        /* by its content-type */
    char grpc_message[HTTP2_TEXT];
    /* http2.c's */
    struct http2 *http2;
    int32_t id; /* 0: it has never been there, or has ended */
    struct http2_stream *next, **link;
    struct http2_stream *next_changed, **changed_link;
    uint64_t end_offset; /* how many bytes had been made when all of its request was; 0: not yet */
};

/* `name`: "host:port", as of the endpoint; `host` without brackets and port. */
struct http2_target {
    const struct sockaddr *address;
    socklen_t address_length;
    const char *name, *host;
    SSL_CTX *tls;     /* null: plaintext */
    int64_t setup_ns; /* until it is usable; longer: it has failed */
};

struct http2_owner {
    void *data;
    void (*usable)(void *data);
    void (*failed)(void *data, int status, const char *why);
};

struct http2 *http2_open(struct loop *loop, const struct http2_target *target, const struct http2_owner *owner);
void http2_close(struct http2 *http2);
/* Sends what is to be sent: to be called when the loop is left, and after what has been called outside of it. */
void http2_flush(struct http2 *http2);
/* Whether something is pending, so that silence is noticed sooner. */
void http2_busy(struct http2 *http2, bool busy);

struct http2_header {
    const char *name, *value;
};
/* Starts a stream with these headers besides :method, :scheme and :authority; false: no memory. */
bool http2_start(struct http2 *http2, struct http2_stream *stream, const struct http2_header *headers, size_t count);
/* There is more in `out`. */
void http2_more(struct http2_stream *stream);
/* Ends it from our side; it is not told anything any more. Nothing if it has ended. */
void http2_drop(struct http2_stream *stream);
/* Whether the server may have received all of the request. */
bool http2_was_sent(const struct http2_stream *stream);

#endif
