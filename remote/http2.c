/* SPDX-License-Identifier: MIT */
/*
 * A connection goes through: connecting, TLS, and waiting for the SETTINGS of the server, with which each HTTP/2 server
 * begins; then it is usable. Whatever the server sends first tells what it is if it is not HTTP/2.
 *
 * nghttp2 makes and understands the frames. Its callbacks only take notes; streams are told afterwards, in a list, so
 * that what they call may do anything.
 *
 * A server that falls silent is found by a probe: an empty SETTINGS frame, which every server must acknowledge. It is
 * not a PING, because etcd's library counts these: it closes the connection after three that come sooner than 5 s.
 */
#define _GNU_SOURCE
#include "http2.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define HTTP2_MOST_OUT      65536u
#define HTTP2_READ          65536u
#define HTTP2_ROUNDS        16 /* reads in one callback */
#define HTTP2_STREAM_WINDOW (1 << 20)
#define HTTP2_WINDOW        (8 << 20)
#define HTTP2_BUSY_NS       NS_PER_S /* of silence, until the probe */
#define HTTP2_IDLE_NS       (5 * NS_PER_S)
#define HTTP2_PROBE_NS      NS_PER_S /* from the probe until the connection is given up */

enum http2_state { HTTP2_CONNECTING, HTTP2_TLS, HTTP2_GREETING, HTTP2_USABLE, HTTP2_FAILED };

struct http2 {
    struct loop *loop;
    struct http2_owner owner;
    enum http2_state state;
    bool told_usable, busy, telling, closed;
    bool making; /* nghttp2 makes frames */
    int fd;
    vigil_watch watch;
    char name[300], host[260];
    SSL *ssl; /* null: plaintext. It reads from and writes to memory: sent and received are ours */
    BIO *ssl_in, *ssl_out;
    nghttp2_session *session;
    struct bytes out;                /* plaintext: frames; TLS: records */
    uint64_t made_bytes, sent_bytes; /* of frames; sent: at most so many have left */
    uint8_t first[16];               /* that came */
    unsigned first_count;
    struct http2_stream *streams, *changed;
    struct loop_timer silence, kick;
    int64_t setup_ns;
    int64_t heard_ns, busy_ns, probed_ns; /* when it was heard last, became busy, was probed (0: it is not) */
    int status;                           /* of the failure */
    char why[512];
};

static void http2_fail(struct http2 *http2, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void http2_fail(struct http2 *http2, int status, const char *format, ...) {
    if (http2->state == HTTP2_FAILED) return;
    http2->state = HTTP2_FAILED;
    http2->status = status;
    int length = snprintf(http2->why, sizeof http2->why, "%s: ", http2->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(http2->why + length, sizeof http2->why - (size_t)length, format, arguments);
    va_end(arguments);
    loop_set(http2->loop, &http2->silence, LOOP_NEVER);
    vigil_agent_unwatch(&http2->watch);
}

/* The result of a call of nghttp2 that fails only without memory, or because it has nothing to do. */
static void http2_check(struct http2 *http2, int result) {
    if (result == NGHTTP2_ERR_NOMEM) http2_fail(http2, VIGIL_ENOMEM, "there is no memory");
}

/* An error of nghttp2 that ends the connection. */
static void http2_fail_session(struct http2 *http2, int error) {
    http2_check(http2, error);
    http2_fail(http2, VIGIL_EPROTOCOL, "HTTP/2: %s", nghttp2_strerror(error)); /* nothing if it has failed already */
}

/* Streams. */

static void http2_note_change(struct http2_stream *stream) {
    if (stream->changed_link) return;
    struct http2_stream **last = &stream->http2->changed;
    while (*last) last = &(*last)->next_changed;
    stream->next_changed = NULL;
    stream->changed_link = last;
    *last = stream;
}

static void http2_unnote_change(struct http2_stream *stream) {
    if (!stream->changed_link) return;
    *stream->changed_link = stream->next_changed;
    if (stream->next_changed) stream->next_changed->changed_link = stream->changed_link;
    stream->changed_link = NULL;
}

static void http2_unlink(struct http2_stream *stream) {
    if (!stream->link) return;
    *stream->link = stream->next;
    if (stream->next) stream->next->link = stream->link;
    stream->link = NULL;
}

static ssize_t http2_on_out(nghttp2_session *session, int32_t id, uint8_t *room, size_t length, uint32_t *flags,
                            nghttp2_data_source *source, void *user) {
    (void)session, (void)id, (void)user;
    struct http2_stream *stream = source->ptr;
    size_t left = bytes_length(&stream->out);
    if (!left && !stream->out_ends) return NGHTTP2_ERR_DEFERRED;
    if (length > left) length = left;
    if (length) memcpy(room, bytes_first(&stream->out), length);
    bytes_consume(&stream->out, length);
    if (stream->out_ends && length == left) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)length;
}

/* An id of less than 0 is an error. After 2^30 streams the connection has no more ids, and must end: this stream has
 * not been sent then, and its owner learns that with the others. */
static bool http2_add_stream(struct http2 *http2, struct http2_stream *stream, int32_t id) {
    if (id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE)
        http2_fail(http2, VIGIL_EUNREACHABLE, "the connection has no more numbers for requests");
    else if (id < 0) return false;
    stream->http2 = http2;
    stream->id = id < 0 ? 0 : id;
    stream->grpc_status = -1;
    stream->next = http2->streams;
    stream->link = &http2->streams;
    if (stream->next) stream->next->link = &stream->next;
    http2->streams = stream;
    return true;
}

bool http2_start(struct http2 *http2, struct http2_stream *stream, const struct http2_header *headers, size_t count) {
    const struct http2_header own[] = {
        {":method", "POST"}, {":scheme", http2->ssl ? "https" : "http"}, {":authority", http2->name}};
    nghttp2_nv all[16];
    size_t total = 0;
    for (size_t i = 0; i < 3 + count; i++) {
        const struct http2_header *header = i < 3 ? &own[i] : &headers[i - 3];
        all[total++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)header->name,
                                    .value = (uint8_t *)(uintptr_t)header->value,
                                    .namelen = strlen(header->name),
                                    .valuelen = strlen(header->value)};
    }
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = http2_on_out};
    return http2_add_stream(http2, stream, nghttp2_submit_request(http2->session, NULL, all, total, &provider, stream));
}

void http2_more(struct http2_stream *stream) {
    if (stream->id && stream->http2->state != HTTP2_FAILED)
        http2_check(stream->http2, nghttp2_session_resume_data(stream->http2->session, stream->id));
}

void http2_drop(struct http2_stream *stream) {
    if (!stream->http2) return;
    http2_unnote_change(stream);
    http2_unlink(stream);
    if (stream->id) {
        nghttp2_session *session = stream->http2->session;
        nghttp2_session_set_stream_user_data(session, stream->id, NULL);
        /* A stream that goes on would read from the memory of this one. */
        http2_check(stream->http2,
                    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL));
    }
    stream->id = 0;
    stream->http2 = NULL;
}

bool http2_was_sent(const struct http2_stream *stream) {
    return stream->end_offset && stream->http2->sent_bytes >= stream->end_offset;
}

/* What nghttp2 tells. */

static struct http2_stream *http2_stream_of(nghttp2_session *session, int32_t id) {
    return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static bool http2_is(const char *name, const uint8_t *text, size_t length) {
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static int http2_digit(uint8_t c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* gRPC's messages are percent-encoded. What is not printable becomes a question mark. */
static void http2_decode(char *text, size_t size, const uint8_t *value, size_t length) {
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < size; i++) {
        uint8_t c = value[i];
        if (c == '%' && i + 2 < length && http2_digit(value[i + 1]) >= 0 && http2_digit(value[i + 2]) >= 0) {
            c = (uint8_t)(http2_digit(value[i + 1]) << 4 | http2_digit(value[i + 2]));
            i += 2;
        }
        text[used++] = c < 32 || c == 127 ? '?' : (char)c;
    }
    text[used] = 0;
}

/* A number of at most three digits; -1: it is not. */
static int http2_number(const uint8_t *value, size_t length) {
    int number = 0;
    if (!length || length > 3) return -1;
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9') return -1;
        number = number * 10 + value[i] - '0';
    }
    return number;
}

static int http2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                           size_t name_length, const uint8_t *value, size_t length, uint8_t flags, void *user) {
    (void)flags, (void)user;
    struct http2_stream *stream = http2_stream_of(session, frame->hd.stream_id);
    if (!stream) return 0;
    if (http2_is(":status", name, name_length)) stream->http_status = http2_number(value, length);
    else if (http2_is("grpc-status", name, name_length)) stream->grpc_status = http2_number(value, length);
    else if (http2_is("grpc-message", name, name_length))
        http2_decode(stream->grpc_message, sizeof stream->grpc_message, value, length);
    else if (http2_is("content-type", name, name_length))
        stream->is_grpc = length >= 16 && memcmp(value, "application/grpc", 16) == 0;
    return 0;
}

static int http2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t length,
                         void *user) {
    (void)flags;
    struct http2_stream *stream = http2_stream_of(session, id);
    if (!stream || stream->too_long || stream->no_memory) return 0;
    stream->too_long = length > stream->in_most - bytes_length(&stream->in);
    stream->no_memory = !stream->too_long && !bytes_add(&stream->in, data, length);
    if (stream->too_long || stream->no_memory)
        http2_check(user, nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL));
    http2_note_change(stream);
    return 0;
}

/* A stream is refused by the server; or by nghttp2 itself, when it has no memory to send it, or ends the session. */
static int http2_on_end(nghttp2_session *session, int32_t id, uint32_t code, void *user) {
    struct http2 *http2 = user;
    struct http2_stream *stream = http2_stream_of(session, id);
    if (!stream) return 0;
    stream->ended = true;
    stream->reset_code = code;
    if (code == NGHTTP2_REFUSED_STREAM) stream->refused = true;
    if (stream->refused && http2->making && nghttp2_session_check_request_allowed(session)) {
        stream->no_memory = true;
        http2_check(http2, NGHTTP2_ERR_NOMEM);
    }
    stream->id = 0;
    http2_note_change(stream);
    return 0;
}

static int http2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    struct http2 *http2 = user;
    if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK)) {
        if (http2->state == HTTP2_GREETING) http2->state = HTTP2_USABLE;
    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
        const nghttp2_goaway *goaway = &frame->goaway;
        http2_fail(http2, VIGIL_EUNREACHABLE, "the server closes the connection (%s%s%.*s)",
                   nghttp2_http2_strerror(goaway->error_code), goaway->opaque_data_len ? ": " : "",
                   (int)goaway->opaque_data_len, (const char *)goaway->opaque_data);
    } else if (frame->hd.type == NGHTTP2_HEADERS) {
        struct http2_stream *stream = http2_stream_of(session, frame->hd.stream_id);
        if (stream && !stream->headers_came) {
            stream->headers_came = true;
            http2_note_change(stream);
        }
    }
    return 0;
}

static int http2_on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    struct http2 *http2 = user;
    if (frame->hd.type == NGHTTP2_DATA && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        struct http2_stream *stream = http2_stream_of(session, frame->hd.stream_id);
        if (stream) stream->end_offset = http2->made_bytes;
    }
    return 0;
}

static nghttp2_session *http2_session(struct http2 *http2) {
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_session *session = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) return NULL;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, http2_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, http2_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, http2_on_end);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, http2_on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, http2_on_sent);
    if (nghttp2_option_new(&option) == 0) {
        nghttp2_option_set_peer_max_concurrent_streams(option, 1000);
        if (nghttp2_session_client_new2(&session, callbacks, http2, option) != 0) session = NULL;
        nghttp2_option_del(option);
    }
    nghttp2_session_callbacks_del(callbacks);
    return session;
}

static bool http2_greet(struct http2 *http2) {
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                               {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW}};
    return nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, settings, 2) == 0 &&
           nghttp2_session_set_local_window_size(http2->session, NGHTTP2_FLAG_NONE, 0, HTTP2_WINDOW) == 0;
}

/* Sending. */

static void http2_fail_tls(struct http2 *http2);
static void http2_on_ready(vigil_watch *watch, unsigned events);

static void http2_watch(struct http2 *http2) {
    if (http2->state == HTTP2_FAILED) return;
    bool writes = http2->state == HTTP2_CONNECTING || bytes_length(&http2->out);
    unsigned events = writes ? VIGIL_READABLE | VIGIL_WRITABLE : VIGIL_READABLE;
    if (http2->watch.agent && http2->watch.events == events) return;
    int status = vigil_agent_watch(http2->loop->agent, &http2->watch, http2->fd, events, http2_on_ready);
    if (status != VIGIL_OK)
        http2_fail(http2, status == VIGIL_ENOMEM ? status : VIGIL_ESYSTEM, "cannot watch the socket: %s",
                   status == VIGIL_ENOMEM ? "there is no memory" : strerror(errno));
}

/* The next frames, from nghttp2 to the buffer, through TLS. False: there are none. */
static bool http2_make(struct http2 *http2) {
    const uint8_t *frames;
    http2->making = true;
    ssize_t length = nghttp2_session_mem_send(http2->session, &frames);
    http2->making = false;
    if (length < 0) http2_fail_session(http2, (int)length);
    if (length <= 0) return false;
    http2->made_bytes += (uint64_t)length;
    if (!http2->ssl) {
        if (!bytes_add(&http2->out, frames, (size_t)length)) http2_check(http2, NGHTTP2_ERR_NOMEM);
    } else if (SSL_write(http2->ssl, frames, (int)length) != length) {
        http2_fail_tls(http2);
    }
    return http2->state != HTTP2_FAILED;
}

/* The records that TLS has made, to the buffer. */
static void http2_take_records(struct http2 *http2) {
    size_t pending = http2->ssl ? BIO_ctrl_pending(http2->ssl_out) : 0;
    if (!pending) return;
    uint8_t *room = bytes_room(&http2->out, pending);
    int length = room ? BIO_read(http2->ssl_out, room, (int)pending) : 0;
    if (length > 0) bytes_added(&http2->out, (size_t)length);
    else http2_check(http2, NGHTTP2_ERR_NOMEM);
}

/* The server has ended the connection. Before it has said what it is, that says something, too. */
static void http2_hear_end(struct http2 *http2) {
    if (http2->state == HTTP2_GREETING && http2->first_count >= 2 && http2->first[0] == 0x15 && http2->first[1] == 3)
        http2_fail(http2, VIGIL_EPROTOCOL, "it wants TLS, and was spoken to in plaintext");
    else if (http2->state == HTTP2_GREETING && http2->first_count)
        http2_fail(http2, VIGIL_EPROTOCOL, "this is not etcd: it closed the connection after %u bytes",
                   http2->first_count);
    else if (http2->state == HTTP2_TLS)
        http2_fail(http2, VIGIL_EPROTOCOL, "it does not speak TLS: it closed the connection");
    else if (http2->state == HTTP2_GREETING)
        http2_fail(http2, VIGIL_EPROTOCOL, "it closes the connection without a word%s",
                   http2->ssl ? "" : ": perhaps it wants TLS");
    else http2_fail(http2, VIGIL_EUNREACHABLE, "the server closed the connection");
}

/* Going by errno. */
static void http2_fail_socket(struct http2 *http2) {
    if (errno == ECONNRESET || errno == EPIPE) http2_hear_end(http2);
    else http2_fail(http2, VIGIL_EUNREACHABLE, "%s", strerror(errno));
}

/* False: the socket takes no more, or has failed. */
static bool http2_send_out(struct http2 *http2) {
    while (bytes_length(&http2->out)) {
        ssize_t length = send(http2->fd, bytes_first(&http2->out), bytes_length(&http2->out), MSG_NOSIGNAL);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0 && errno != EAGAIN) http2_fail_socket(http2);
        if (length < 0) return false;
        bytes_consume(&http2->out, (size_t)length);
        http2->sent_bytes = http2->made_bytes - (http2->ssl ? 0 : bytes_length(&http2->out));
    }
    return true;
}

static bool http2_has_room(const struct http2 *http2) {
    return bytes_length(&http2->out) + (http2->ssl ? BIO_ctrl_pending(http2->ssl_out) : 0) < HTTP2_MOST_OUT;
}

static bool http2_talks(const struct http2 *http2) {
    return http2->state == HTTP2_GREETING || http2->state == HTTP2_USABLE;
}

static void http2_send(struct http2 *http2) {
    bool more = http2->state != HTTP2_CONNECTING && http2->state != HTTP2_FAILED;
    while (more) {
        while (http2_talks(http2) && http2_has_room(http2) && http2_make(http2)) continue;
        if (http2->state != HTTP2_FAILED) http2_take_records(http2);
        if (http2->state == HTTP2_FAILED || !bytes_length(&http2->out)) break;
        more = http2_send_out(http2);
    }
    http2_watch(http2);
}

/* Receiving. */

/* What the first bytes say. An HTTP/2 server begins with a SETTINGS frame. */
static bool http2_recognise(struct http2 *http2) {
    const uint8_t *first = http2->first;
    if (memcmp(first, "HTTP/", 5) == 0) http2_fail(http2, VIGIL_EPROTOCOL, "this is not etcd: it speaks HTTP/1");
    else if (first[0] == 0x15 && first[1] == 3)
        http2_fail(http2, VIGIL_EPROTOCOL, "it wants TLS, and was spoken to in plaintext");
    else if (first[3] != NGHTTP2_SETTINGS || first[5] || first[6] || first[7] || first[8])
        http2_fail(http2, VIGIL_EPROTOCOL, "this is not etcd: it does not speak HTTP/2");
    return http2->state != HTTP2_FAILED;
}

static void http2_understand(struct http2 *http2, const uint8_t *data, size_t length) {
    ssize_t done = nghttp2_session_mem_recv(http2->session, data, length);
    if (done < 0) http2_fail_session(http2, (int)done);
    else if (http2->state != HTTP2_FAILED && !nghttp2_session_want_read(http2->session))
        http2_fail(http2, VIGIL_EPROTOCOL, "what it sends is not HTTP/2");
}

#define HTTP2_FIRST 9u /* the header of a frame */
static void http2_hear(struct http2 *http2, const uint8_t *data, size_t length) {
    if (http2->first_count < HTTP2_FIRST) {
        size_t count = HTTP2_FIRST - http2->first_count;
        if (count > length) count = length;
        memcpy(http2->first + http2->first_count, data, count);
        http2->first_count += (unsigned)count;
        if (http2->first_count < HTTP2_FIRST || !http2_recognise(http2)) return;
        http2_understand(http2, http2->first, HTTP2_FIRST);
        data += count;
        length -= count;
    }
    if (length && http2->state != HTTP2_FAILED) http2_understand(http2, data, length);
}

static void http2_fail_tls(struct http2 *http2) {
    unsigned long error = ERR_get_error();
    int reason = ERR_GET_REASON(error);
    long verified = SSL_get_verify_result(http2->ssl);
    const char *text = ERR_reason_error_string(error);
    if (!text) text = "it fails";
    if (reason == ERR_R_MALLOC_FAILURE) http2_check(http2, NGHTTP2_ERR_NOMEM);
    else if (verified != X509_V_OK)
        http2_fail(http2, VIGIL_EREFUSED, "its certificate is not valid for us: %s",
                   X509_verify_cert_error_string(verified));
    else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
        http2_fail(http2, VIGIL_EPROTOCOL, "it does not speak TLS");
    else if (reason >= SSL_AD_REASON_OFFSET) /* an alert of the server's */
        http2_fail(http2, VIGIL_EREFUSED, "it refuses our certificate or TLS: %s", text);
    else http2_fail(http2, VIGIL_EPROTOCOL, "TLS: %s", text);
    ERR_clear_error();
}

static void http2_shake_hands(struct http2 *http2) {
    ERR_clear_error();
    int done = SSL_do_handshake(http2->ssl);
    if (done != 1) {
        if (SSL_get_error(http2->ssl, done) != SSL_ERROR_WANT_READ) {
            http2_take_records(http2); /* the alert that tells the server why */
            http2_send_out(http2);
            http2_fail_tls(http2);
        }
        return;
    }
    const unsigned char *protocol;
    unsigned length;
    SSL_get0_alpn_selected(http2->ssl, &protocol, &length);
    if (length != 2 || memcmp(protocol, "h2", 2) != 0) {
        http2_fail(http2, VIGIL_EPROTOCOL, "this is not etcd: its TLS does not offer HTTP/2");
        return;
    }
    http2->state = HTTP2_GREETING;
}

static void http2_hear_records(struct http2 *http2, const uint8_t *data, size_t length) {
    if (BIO_write(http2->ssl_in, data, (int)length) != (int)length) {
        http2_check(http2, NGHTTP2_ERR_NOMEM);
        return;
    }
    if (http2->state == HTTP2_TLS) http2_shake_hands(http2);
    while (http2_talks(http2)) {
        uint8_t plain[16384];
        ERR_clear_error();
        int got = SSL_read(http2->ssl, plain, sizeof plain);
        if (got > 0) {
            http2_hear(http2, plain, (size_t)got);
            continue;
        }
        int error = SSL_get_error(http2->ssl, got);
        if (error == SSL_ERROR_ZERO_RETURN) http2_fail(http2, VIGIL_EUNREACHABLE, "the server closed the connection");
        else if (error != SSL_ERROR_WANT_READ) http2_fail_tls(http2);
        return;
    }
}

static void http2_receive(struct http2 *http2) {
    uint8_t data[HTTP2_READ];
    for (int round = 0; round < HTTP2_ROUNDS && http2->state != HTTP2_FAILED; round++) {
        ssize_t length = recv(http2->fd, data, sizeof data, 0);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0 && errno != EAGAIN) http2_fail_socket(http2);
        if (length < 0) return;
        if (!length) {
            http2_hear_end(http2);
            return;
        }
        http2->heard_ns = loop_now_ns();
        http2->probed_ns = 0;
        if (http2->ssl) http2_hear_records(http2, data, (size_t)length);
        else http2_hear(http2, data, (size_t)length);
        if ((size_t)length < sizeof data) return; /* that was all; if not, the agent calls again */
    }
}

static void http2_watch_silence(struct http2 *http2);

/* Telling. */

static void http2_free(struct http2 *http2) {
    if (http2->session) nghttp2_session_del(http2->session);
    SSL_free(http2->ssl);
    bytes_free(&http2->out);
    free(http2);
}

/* Tells the streams and the owner what has happened. The connection may not exist any more afterwards. */
static void http2_tell(struct http2 *http2) {
    if (http2->telling) return;
    http2->telling = true;
    for (struct http2_stream *stream; !http2->closed && (stream = http2->changed);) {
        http2_unnote_change(stream);
        if (stream->ended) http2_unlink(stream);
        stream->changed(stream);
    }
    if (!http2->closed && http2->state == HTTP2_USABLE && !http2->told_usable) {
        http2->told_usable = true;
        http2_watch_silence(http2);
        http2->owner.usable(http2->owner.data);
    }
    if (!http2->closed && http2->state == HTTP2_FAILED)
        http2->owner.failed(http2->owner.data, http2->status, http2->why);
    http2->telling = false;
    if (http2->closed) http2_free(http2);
}

static void http2_connected(struct http2 *http2) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(http2->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error) {
        http2_fail(http2, VIGIL_EUNREACHABLE, "%s", strerror(error));
        return;
    }
    http2->state = http2->ssl ? HTTP2_TLS : HTTP2_GREETING;
    if (http2->ssl) http2_shake_hands(http2);
}

static void http2_on_ready(vigil_watch *watch, unsigned events) {
    struct http2 *http2 = watch->data;
    struct loop *loop = http2->loop;
    loop_enter(loop);
    if (!events) {
        http2_fail(http2, VIGIL_CANCELLED, "the agent has ended"); /* the loop tells that */
    } else {
        if (http2->state == HTTP2_CONNECTING && events & VIGIL_WRITABLE) http2_connected(http2);
        if (http2->state != HTTP2_CONNECTING && events & VIGIL_READABLE) http2_receive(http2);
        if (events & VIGIL_WRITABLE) http2_send(http2);
        http2_tell(http2);
    }
    loop_leave(loop);
}

static void http2_on_kick(struct loop_timer *timer) {
    struct http2 *http2 = (struct http2 *)(void *)((char *)timer - offsetof(struct http2, kick));
    http2_tell(http2);
}

void http2_flush(struct http2 *http2) {
    http2_send(http2);
    if (http2->state == HTTP2_FAILED || http2->changed) loop_set(http2->loop, &http2->kick, 1);
}

/* Silence. */

static void http2_watch_silence(struct http2 *http2) {
    if (http2->state != HTTP2_USABLE) return;
    int64_t from_ns = http2->busy && http2->busy_ns > http2->heard_ns ? http2->busy_ns : http2->heard_ns;
    int64_t at_ns =
        http2->probed_ns ? http2->probed_ns + HTTP2_PROBE_NS : from_ns + (http2->busy ? HTTP2_BUSY_NS : HTTP2_IDLE_NS);
    loop_set(http2->loop, &http2->silence, at_ns);
}

static void http2_on_silence(struct loop_timer *timer) {
    struct http2 *http2 = (struct http2 *)(void *)((char *)timer - offsetof(struct http2, silence));
    int64_t now_ns = loop_now_ns();
    if (http2->state == HTTP2_CONNECTING)
        http2_fail(http2, VIGIL_EUNREACHABLE, "no connection within %d s", (int)(http2->setup_ns / NS_PER_S));
    else if (http2->state == HTTP2_TLS || http2->state == HTTP2_GREETING)
        http2_fail(http2, VIGIL_EUNREACHABLE, "it accepted the connection and did not reply within %d s",
                   (int)(http2->setup_ns / NS_PER_S));
    else if (http2->probed_ns && now_ns - http2->probed_ns >= HTTP2_PROBE_NS)
        http2_fail(http2, VIGIL_EUNREACHABLE, "the server has fallen silent");
    if (http2->state == HTTP2_FAILED) {
        http2_tell(http2);
        return;
    }
    int64_t limit_ns = http2->busy ? HTTP2_BUSY_NS : HTTP2_IDLE_NS;
    if (!http2->probed_ns && now_ns - http2->heard_ns >= limit_ns &&
        nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, NULL, 0) == 0)
        http2->probed_ns = now_ns; /* sent when the loop is left */
    http2_watch_silence(http2);
}

void http2_busy(struct http2 *http2, bool busy) {
    if (busy == http2->busy) return;
    http2->busy = busy;
    http2->busy_ns = loop_now_ns();
    if (http2->silence.set || busy) http2_watch_silence(http2);
}

/* Beginning and end. */

static bool http2_begin_tls(struct http2 *http2, SSL_CTX *tls) {
    http2->ssl = SSL_new(tls);
    if (!http2->ssl) return false;
    http2->ssl_in = BIO_new(BIO_s_mem());
    http2->ssl_out = BIO_new(BIO_s_mem());
    if (!http2->ssl_in || !http2->ssl_out) {
        BIO_free(http2->ssl_in);
        BIO_free(http2->ssl_out);
        return false;
    }
    BIO_set_mem_eof_return(http2->ssl_in, -1);
    SSL_set_bio(http2->ssl, http2->ssl_in, http2->ssl_out);
    SSL_set_connect_state(http2->ssl);
    SSL_set_verify(http2->ssl, SSL_VERIFY_PEER, NULL);
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(http2->ssl), http2->host) == 1) return true;
    ERR_clear_error();
    return SSL_set_tlsext_host_name(http2->ssl, http2->host) == 1 && SSL_set1_host(http2->ssl, http2->host) == 1;
}

static void http2_connect(struct http2 *http2, const struct http2_target *target) {
    http2->fd = socket(target->address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    if (http2->fd < 0) { /* without IPv6, its addresses are not reached, and another address may be */
        int status = errno == EAFNOSUPPORT ? VIGIL_EUNREACHABLE : VIGIL_ESYSTEM;
        http2_fail(http2, status, "no socket: %s", strerror(errno));
    } else if (connect(http2->fd, target->address, target->address_length) != 0 && errno != EINPROGRESS) {
        http2_fail(http2, VIGIL_EUNREACHABLE, "%s", strerror(errno));
    } else {
        setsockopt(http2->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        http2_watch(http2);
    }
}

struct http2 *http2_open(struct loop *loop, const struct http2_target *target, const struct http2_owner *owner) {
    struct http2 *http2 = calloc(1, sizeof *http2);
    if (!http2) return NULL;
    *http2 = (struct http2){
        .loop = loop, .owner = *owner, .fd = -1, .setup_ns = target->setup_ns, .heard_ns = loop_now_ns()};
    snprintf(http2->name, sizeof http2->name, "%s", target->name);
    snprintf(http2->host, sizeof http2->host, "%s", target->host);
    http2->watch.data = http2;
    http2->silence.due = http2_on_silence;
    http2->kick.due = http2_on_kick;
    http2->session = http2_session(http2);
    if (!http2->session || !http2_greet(http2) || (target->tls && !http2_begin_tls(http2, target->tls))) {
        http2_free(http2);
        return NULL;
    }
    loop_set(loop, &http2->silence, http2->heard_ns + http2->setup_ns);
    http2_connect(http2, target);
    if (http2->state == HTTP2_FAILED) loop_set(loop, &http2->kick, 1);
    return http2;
}

/* Nothing is said to the server: the process may be the child of a fork, whose parent goes on with the connection. */
void http2_close(struct http2 *http2) {
    if (http2->closed) return;
    http2->closed = true;
    for (struct http2_stream *stream; (stream = http2->streams);) {
        http2_unnote_change(stream);
        http2_unlink(stream);
        stream->http2 = NULL;
        stream->id = 0;
    }
    loop_set(http2->loop, &http2->silence, LOOP_NEVER);
    loop_set(http2->loop, &http2->kick, LOOP_NEVER);
    vigil_agent_unwatch(&http2->watch);
    if (http2->fd >= 0) close(http2->fd);
    if (!http2->telling) http2_free(http2);
}
