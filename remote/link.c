/* SPDX-License-Identifier: MIT */
/*
 * The link: a connection to one of the endpoints, with a user logged in if there is one. When it fails, the next one is
 * tried at once, if it is of the same cluster, and after all of them comes a pause, which grows.
 */
#define _GNU_SOURCE
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

#define LINK_PAUSE_NS     (50 * NS_PER_MS)
#define LINK_PAUSES       5u /* times two, so often */
#define LINK_LOGIN_NS     (5 * NS_PER_S)
#define LINK_SETUP_NS     (3 * NS_PER_S)
#define LINK_HASTY_NS     NS_PER_S
#define LINK_NEXT_AT_ONCE 1

static const char link_no_memory[] = "there is no memory for a connection";

static struct endpoint *link_endpoint(const struct etcd *etcd) {
    return &etcd->endpoints[etcd->endpoint];
}

const char *link_name(const struct etcd *etcd) {
    return link_endpoint(etcd)->name;
}

void link_note_error(struct etcd *etcd, int status, const char *why) {
    const char *name = link_name(etcd);
    bool named = strncmp(why, name, strlen(name)) == 0;
    etcd->status = status;
    snprintf(etcd->why, sizeof etcd->why, "%s%s%s", named ? "" : name, named ? "" : ": ", why);
}

void link_tell_busy(struct etcd *etcd) {
    if (etcd->http2) http2_busy(etcd->http2, etcd->call_count || etcd->watch_count);
}

/* Failing. */

static int64_t link_pause_ns(struct etcd *etcd) {
    unsigned rounds = (unsigned)(etcd->failures_in_turn / etcd->endpoint_count);
    if (etcd->failures_in_turn % etcd->endpoint_count) return 0;
    int64_t most_ns = LINK_PAUSE_NS << (rounds - 1 < LINK_PAUSES ? rounds - 1 : LINK_PAUSES);
    return most_ns / 2 + (int64_t)(etcd_random(etcd) % (uint64_t)(most_ns / 2));
}

static void link_end_login(struct etcd *etcd) {
    http2_drop(&etcd->login);
    bytes_free(&etcd->login.in);
    bytes_free(&etcd->login.out);
    etcd->login_pending = false;
}

static void link_disconnect(struct etcd *etcd) {
    link_end_login(etcd);
    resolver_end(&etcd->resolver);
    if (etcd->http2) http2_close(etcd->http2);
    etcd->http2 = NULL;
    etcd->state = LINK_DOWN;
}

void link_give_up(struct etcd *etcd, int status, const char *why, bool failed) {
    if (etcd->closed) return;
    link_note_error(etcd, status, why);
    if (failed) link_endpoint(etcd)->failed_at = ++etcd->failures;
    calls_lose_link(etcd, status);
    etcd->state = LINK_DOWN; /* what the owners of watches begin now waits for the next connection */
    watches_lose_link(etcd);
    link_disconnect(etcd);
    etcd->endpoint = (etcd->endpoint + 1) % etcd->endpoint_count;
    etcd->failures_in_turn++;
    int64_t pause_ns = link_pause_ns(etcd);
    loop_set(&etcd->loop, &etcd->retry, pause_ns ? loop_now_ns() + pause_ns : LINK_NEXT_AT_ONCE);
    calls_end_failed(etcd, status);
}

/* Coming up. */

static void link_is_up(struct etcd *etcd) {
    loop_set(&etcd->loop, &etcd->retry, LOOP_NEVER);
    etcd->state = LINK_UP;
    calls_send_waiting(etcd);
    watches_send_waiting(etcd);
    link_tell_busy(etcd);
}

static struct etcd *link_of_login(struct http2_stream *stream) {
    return (struct etcd *)(void *)((char *)stream - offsetof(struct etcd, login));
}

static void link_ask(struct etcd *etcd, enum link_state state, const ProtobufCMessage *message, const char *path,
                     void (*changed)(struct http2_stream *)) {
    etcd->state = state;
    etcd->login = (struct http2_stream){.changed = changed, .out_ends = true};
    struct grpc_call call = {.path = path, .timeout_ns = LINK_LOGIN_NS};
    if (state == LINK_CHECKING) call.token = etcd->token;
    etcd->login_pending = grpc_put(&etcd->login.out, message) && grpc_start(etcd->http2, &etcd->login, &call);
    loop_set(&etcd->loop, &etcd->retry, loop_now_ns() + LINK_LOGIN_NS);
    if (!etcd->login_pending) link_give_up(etcd, VIGIL_ENOMEM, link_no_memory, true);
}

static void link_on_check(struct http2_stream *stream) {
    struct etcd *etcd = link_of_login(stream);
    if (!stream->ended) return;
    struct grpc_end end;
    grpc_judge(stream, &end);
    if (end.status == VIGIL_OK) end.status = calls_judge_member(etcd, &stream->in, end.why, sizeof end.why);
    link_end_login(etcd);
    if (end.status == VIGIL_OK) link_is_up(etcd);
    else link_give_up(etcd, end.status, end.why, true);
}

/* A list of endpoints may have members of two clusters, by mistake: each would have a holder of its own. So an endpoint
 * says what it is before it is used. The one that was the first to reply is not asked: it would cost each command a
 * round trip. */
static void link_check(struct etcd *etcd) {
    Etcdpb__Status message = ETCDPB__STATUS__INIT;
    bool known = !etcd->cluster || etcd->endpoint == etcd->cluster_endpoint;
    if (known) link_is_up(etcd);
    else link_ask(etcd, LINK_CHECKING, &message.base, "/etcdserverpb.Maintenance/Status", link_on_check);
}

/* VIGIL_OK, VIGIL_EPROTOCOL, VIGIL_ENOMEM. */
static int link_take_token(struct etcd *etcd) {
    const uint8_t *data;
    size_t length;
    ProtobufCMessage *message;
    if (grpc_next(&etcd->login.in, &data, &length) != 1) return VIGIL_EPROTOCOL;
    int status = grpc_read(&etcdpb__authenticate_reply__descriptor, data, length, &message);
    if (status != VIGIL_OK) return status;
    const char *token = ((Etcdpb__AuthenticateReply *)(void *)message)->token;
    free(etcd->token);
    etcd->token = token && token[0] ? strdup(token) : NULL;
    if (!etcd->token) status = token && token[0] ? VIGIL_ENOMEM : VIGIL_EPROTOCOL;
    protobuf_c_message_free_unpacked(message, NULL);
    return status;
}

static void link_on_login(struct http2_stream *stream) {
    struct etcd *etcd = link_of_login(stream);
    if (!stream->ended) return;
    struct grpc_end end;
    grpc_judge(stream, &end);
    if (end.status == VIGIL_OK) {
        end.status = link_take_token(etcd);
        snprintf(end.why, sizeof end.why, "login: %s", grpc_misread(end.status));
    }
    link_end_login(etcd);
    if (end.no_auth || end.status == VIGIL_OK) link_check(etcd);
    else link_give_up(etcd, end.status, end.why, true);
}

static void link_log_in(struct etcd *etcd) {
    Etcdpb__Authenticate message = ETCDPB__AUTHENTICATE__INIT;
    message.name = etcd->user;
    message.password = etcd->password;
    link_ask(etcd, LINK_AUTHENTICATING, &message.base, "/etcdserverpb.Auth/Authenticate", link_on_login);
}

void link_login_again(struct etcd *etcd) {
    if (etcd->state != LINK_UP) return;
    free(etcd->token);
    etcd->token = NULL;
    if (etcd->user) link_log_in(etcd);
    else calls_send_waiting(etcd);
    watches_lose_link(etcd); /* what their owners begin now waits for the login */
}

static void link_usable(void *data) {
    struct etcd *etcd = data;
    if (etcd->user) link_log_in(etcd);
    else link_check(etcd);
}

static void link_try_address(struct etcd *etcd);

/* With others to try, a server that does not reply is left early in the first round. It has not failed then: it is
 * given all the time in the next, because a machine that is slow looks the same. */
static int64_t link_setup_ns(const struct etcd *etcd) {
    bool others = etcd->endpoint_count > 1 || etcd->resolver.count > 1;
    return others && etcd->failures_in_turn < etcd->endpoint_count ? LINK_HASTY_NS : LINK_SETUP_NS;
}

/*
 * If one address of an endpoint cannot be reached, the next is tried; the endpoint fails with the last. One that does
 * not seem to be etcd is tried twice: a server that is just being killed may close a connection without a word.
 */
static void link_failed(void *data, int status, const char *why) {
    struct etcd *etcd = data;
    bool next = status == VIGIL_EUNREACHABLE && etcd->address + 1 < etcd->resolver.count;
    bool again = status == VIGIL_EPROTOCOL && !etcd->again;
    if (etcd->state == LINK_CONNECTING && (next || again)) {
        link_note_error(etcd, status, why);
        http2_close(etcd->http2);
        etcd->http2 = NULL;
        if (next) etcd->address++;
        etcd->again = again;
        link_try_address(etcd);
        return;
    }
    bool hasty = etcd->state == LINK_CONNECTING && link_setup_ns(etcd) < LINK_SETUP_NS &&
                 loop_now_ns() - etcd->tried_ns >= link_setup_ns(etcd);
    link_give_up(etcd, status, why, !etcd->proven && !hasty);
}

static void link_try_address(struct etcd *etcd) {
    struct endpoint *endpoint = link_endpoint(etcd);
    struct http2_target target = {.address = (struct sockaddr *)&etcd->resolver.addresses[etcd->address],
                                  .address_length = etcd->resolver.lengths[etcd->address],
                                  .name = endpoint->name,
                                  .host = endpoint->host,
                                  .tls = endpoint->tls ? etcd->tls : NULL,
                                  .setup_ns = link_setup_ns(etcd)};
    const struct http2_owner owner = {etcd, link_usable, link_failed};
    etcd->state = LINK_CONNECTING;
    etcd->proven = false;
    etcd->unavailable_in_turn = 0;
    etcd->tried_ns = loop_now_ns();
    etcd->http2 = http2_open(&etcd->loop, &target, &owner);
    if (!etcd->http2) link_give_up(etcd, VIGIL_ENOMEM, link_no_memory, true);
    link_tell_busy(etcd);
}

static void link_on_addresses(struct resolver *resolver) {
    struct etcd *etcd = (struct etcd *)(void *)((char *)resolver - offsetof(struct etcd, resolver));
    if (resolver->count) link_try_address(etcd);
    else link_give_up(etcd, resolver->no_memory ? VIGIL_ENOMEM : VIGIL_EUNREACHABLE, resolver->why, true);
}

static void link_try(struct etcd *etcd) {
    struct endpoint *endpoint = link_endpoint(etcd);
    if (endpoint->tls && etcd->tls_why[0]) {
        link_give_up(etcd, VIGIL_EREFUSED, etcd->tls_why, true);
        return;
    }
    etcd->state = LINK_RESOLVING;
    etcd->address = 0;
    etcd->again = false;
    if (resolver_begin(&etcd->resolver, endpoint)) link_on_addresses(&etcd->resolver);
}

static void link_on_retry(struct loop_timer *timer) {
    struct etcd *etcd = (struct etcd *)(void *)((char *)timer - offsetof(struct etcd, retry));
    if (etcd->state == LINK_AUTHENTICATING) link_give_up(etcd, VIGIL_EUNREACHABLE, "the login was not answered", true);
    else if (etcd->state == LINK_CHECKING) link_give_up(etcd, VIGIL_EUNREACHABLE, "it did not say what it is", true);
    else link_try(etcd);
}

/* Beginning and end. */

static void link_tls_fails(struct etcd *etcd, const char *what, const char *file) {
    unsigned long error = ERR_peek_last_error();
    const char *text = ERR_reason_error_string(error);
    snprintf(etcd->tls_why, sizeof etcd->tls_why, "%s %s: %s", what, file ? file : "", text ? text : "cannot be used");
    ERR_clear_error();
}

static void link_open_tls(struct etcd *etcd, const vigil_remote_options *options) {
    static const unsigned char alpn[] = {2, 'h', '2'};
    etcd->tls = SSL_CTX_new(TLS_client_method());
    if (!etcd->tls) {
        link_tls_fails(etcd, "TLS", NULL);
        return;
    }
    SSL_CTX_set_min_proto_version(etcd->tls, TLS1_2_VERSION);
    SSL_CTX_set_alpn_protos(etcd->tls, alpn, sizeof alpn);
    const char *cert = options->cert, *key = options->key ? options->key : cert;
    if (!cert) cert = options->key;
    if (options->cacert ? SSL_CTX_load_verify_locations(etcd->tls, options->cacert, NULL) != 1
                        : SSL_CTX_set_default_verify_paths(etcd->tls) != 1)
        link_tls_fails(etcd, "the certificates in", options->cacert);
    else if (cert && SSL_CTX_use_certificate_chain_file(etcd->tls, cert) != 1)
        link_tls_fails(etcd, "the certificate in", cert);
    else if (cert && SSL_CTX_use_PrivateKey_file(etcd->tls, key, SSL_FILETYPE_PEM) != 1)
        link_tls_fails(etcd, "the key in", key);
}

static bool link_take_user(struct etcd *etcd, const vigil_remote_options *options) {
    if (!options->user || !options->user[0]) return true;
    const char *colon = strchr(options->user, ':');
    const char *password = options->password ? options->password : colon ? colon + 1 : "";
    bool split = colon && !options->password;
    etcd->user = split ? strndup(options->user, (size_t)(colon - options->user)) : strdup(options->user);
    etcd->password = strdup(password);
    return etcd->user && etcd->password;
}

int link_open(struct etcd *etcd, const char *at, const vigil_remote_options *options) {
    bool tls = options->tls || options->cacert || options->cert || options->key;
    int error = endpoints_parse(&etcd->endpoints, &etcd->endpoint_count, at, tls);
    if (error) return error;
    if (!link_take_user(etcd, options)) return VIGIL_ENOMEM;
    for (size_t i = 0; i < etcd->endpoint_count; i++)
        if (etcd->endpoints[i].tls && !etcd->tls && !etcd->tls_why[0]) link_open_tls(etcd, options);
    etcd->resolver.loop = &etcd->loop;
    etcd->resolver.done = link_on_addresses;
    etcd->retry.due = link_on_retry;
    loop_set(&etcd->loop, &etcd->retry, LINK_NEXT_AT_ONCE);
    return VIGIL_OK;
}

void link_close(struct etcd *etcd) {
    link_disconnect(etcd);
    loop_set(&etcd->loop, &etcd->retry, LOOP_NEVER);
}
