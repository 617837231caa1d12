/* SPDX-License-Identifier: MIT */
/* Servers that are missing, silent, slow, broken, or no etcd at all. Each ends with the right status, and never in a
 * crash. */
#include "support.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "proxy.h"

static struct cluster cluster;

/* Of the test that runs: see leave_nothing. */
static int counts[4];
static struct outcome outcome;
static struct etcd_watch watch;
static bool no_ipv6;    /* see socket */
static bool asks_lease; /* try_call asks for a lease */

/* One call through such a proxy, or without a server. */
static void try_call(const char *at, const vigil_remote_options *options, int64_t timeout_ns) {
    open_client(at, options);
    struct etcd_txn txn = put("f", "x", 0);
    if (asks_lease) etcd_grant(etcd, begin(&outcome), 5, 10, in_ns(timeout_ns));
    else etcd_txn(etcd, begin(&outcome), &txn, in_ns(timeout_ns));
    end(&outcome);
    close_client();
}

static void try_proxy(struct proxy *proxy, int64_t timeout_ns) {
    proxy_start(proxy);
    try_call(proxy_at(proxy), NULL, timeout_ns);
    proxy_stop(proxy);
}

static void assert_fails(int status, const char *why) {
    if (outcome.status != status || !strstr(outcome.why, why))
        printf("# status %d, why: %s\n", outcome.status, outcome.why);
    assert_int_equal(outcome.status, status);
    assert_non_null(strstr(outcome.why, why));
    assert_false(outcome.reply.maybe_done);
}

static void bad_lists(void **state) {
    (void)state;
    static const char *const lists[] = {"",        "etcd://", "etcd://:2379", "etcd://h:",      "etcd://h:0",
                                        "h:65536", "h:2379x", "ftp://h:2379", "etcd://[::1",    "etcd://[::g]:1",
                                        "h1,,h2",  "h1:1,",   "a b:1",        "etcd://u@h:2379"};
    assert_int_equal(vigil_agent_create(&agent, 0), VIGIL_OK);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        assert_int_equal(etcd_open(&etcd, agent, lists[i], NULL), VIGIL_EINVAL);
    assert_int_equal(etcd_open(NULL, agent, "h", NULL), VIGIL_ENULL);
    assert_int_equal(etcd_open(&etcd, NULL, "h", NULL), VIGIL_ENULL);
    assert_int_equal(etcd_open(&etcd, agent, NULL, NULL), VIGIL_ENULL);
    static const char *const good[] = {"h",
                                       "h1:1,h2:2",
                                       "etcd://h1,h2:3/NAME",
                                       "http://h1:1,http://h2:2",
                                       "[::1]",
                                       "https://h1/,https://h2/",
                                       "etcd://[fe80::1]:2379/a,b"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(etcd_open(&etcd, agent, good[i], NULL), VIGIL_OK);
        etcd_close(etcd);
        etcd = NULL;
    }
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
    agent = NULL;
}

static void nothing_listens(void **state) {
    (void)state;
    char at[64], name[64];
    int port = cluster_free_port();
    snprintf(at, sizeof at, "etcd://127.0.0.1:%d/name", port);
    snprintf(name, sizeof name, "127.0.0.1:%d: Connection refused", port);
    try_call(at, NULL, PATIENT);
    assert_fails(VIGIL_EUNREACHABLE, name);
    snprintf(at, sizeof at, "localhost:%d,[::1]:%d", port, port);
    try_call(at, NULL, PATIENT);
    assert_fails(VIGIL_EUNREACHABLE, "onnection refused");
}

static void unknown_name(void **state) {
    (void)state;
    try_call("etcd://no-such-host.invalid:2379", NULL, PATIENT);
    assert_fails(VIGIL_EUNREACHABLE, "no-such-host.invalid:2379: its address is not known");
}

/* One of several endpoints is enough, whichever it is. */
static void others_fail(void **state) {
    (void)state;
    char at[128];
    int dead = cluster_free_port(), port = cluster.nodes[0].client_port;
    snprintf(at, sizeof at, "127.0.0.1:%d,127.0.0.1:%d,http://localhost:%d/", dead, dead, port);
    try_call(at, NULL, PATIENT);
    assert_int_equal(outcome.status, VIGIL_OK);
    struct proxy mute = {.mode = PROXY_MUTE};
    proxy_start(&mute);
    snprintf(at, sizeof at, "127.0.0.1:%d,127.0.0.1:%d", mute.port, port);
    try_call(at, NULL, PATIENT);
    assert_int_equal(outcome.status, VIGIL_OK);
    proxy_stop(&mute);
}

/* A system without IPv6, which says so when it is asked for a socket: this is called instead of libc's. */
int socket(int family, int type, int protocol) {
    errno = EAFNOSUPPORT;
    return no_ipv6 && family == AF_INET6 ? -1 : (int)syscall(SYS_socket, family, type, protocol);
}

/* Another address is tried, or an error says which could not be. */
static void without_ipv6(void **state) {
    (void)state;
    char at[128];
    int port = cluster.nodes[0].client_port;
    no_ipv6 = true;
    snprintf(at, sizeof at, "[::1]:%d,127.0.0.1:%d", port, port);
    try_call(at, NULL, PATIENT);
    assert_int_equal(outcome.status, VIGIL_OK);
    snprintf(at, sizeof at, "[::1]:%d", port);
    try_call(at, NULL, PATIENT);
    assert_fails(VIGIL_EUNREACHABLE, at);
    no_ipv6 = false;
}

/* The only server that there is does not reply in the first second, as on a machine that is busy: it is not given up,
 * although the other endpoint has failed too. */
static void slow_to_greet(void **state) {
    (void)state;
    struct proxy late = {.mode = PROXY_LATE, .server_port = cluster.nodes[0].client_port};
    char at[128];
    proxy_start(&late);
    snprintf(at, sizeof at, "127.0.0.1:%d,127.0.0.1:%d", cluster_free_port(), late.port);
    try_call(at, NULL, PATIENT);
    assert_int_equal(outcome.status, VIGIL_OK);
    assert_true(__atomic_load_n(&late.connections, __ATOMIC_RELAXED) > 1);
    proxy_stop(&late);
}

/* The connection is cut after each number of bytes. What changes nothing is asked of the next endpoint then. */
static void reads_fail_over(void **state) {
    (void)state;
    int connections = 0;
    for (long cut_at = 0; cut_at < 300; cut_at += 3) {
        struct proxy proxy = {.mode = PROXY_CUT, .server_port = cluster.nodes[0].client_port, .at = cut_at};
        char at[128];
        proxy_start(&proxy);
        snprintf(at, sizeof at, "127.0.0.1:%d,127.0.0.1:%d", proxy.port, cluster.nodes[0].client_port);
        open_client(at, NULL);
        etcd_status(etcd, begin(&outcome), in_ns(PATIENT));
        assert_int_equal(end(&outcome), VIGIL_OK);
        close_client();
        open_client(at, NULL);
        assert_int_equal(do_txn(&outcome, get("f")), VIGIL_OK);
        close_client();
        connections += __atomic_load_n(&proxy.connections, __ATOMIC_RELAXED);
        proxy_stop(&proxy);
    }
    assert_true(connections >= 100);
}

static void not_etcd(void **state) {
    (void)state;
    static const char http1[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    static const unsigned char alert[] = {0x15, 3, 3, 0, 2, 2, 70};
    struct proxy proxy = {.mode = PROXY_SAY, .text = http1, .text_length = sizeof http1 - 1};
    try_proxy(&proxy, PATIENT);
    assert_fails(VIGIL_EPROTOCOL, "HTTP/1");
    proxy = (struct proxy){.mode = PROXY_SAY, .text = alert, .text_length = sizeof alert};
    try_proxy(&proxy, PATIENT);
    assert_fails(VIGIL_EPROTOCOL, "wants TLS");
    proxy = (struct proxy){.mode = PROXY_SAY, .text = "220 mail.example ESMTP\r\n", .text_length = 24};
    try_proxy(&proxy, PATIENT);
    assert_fails(VIGIL_EPROTOCOL, "not etcd");
    proxy = (struct proxy){.mode = PROXY_SLAM};
    try_proxy(&proxy, PATIENT);
    assert_fails(VIGIL_EPROTOCOL, "without a word");
}

/* HTTP/2, but the frames after the first are nonsense. */
static void not_http2(void **state) {
    (void)state;
    static const unsigned char frames[] = {0, 0, 0, 4, 0,   0,   0,   0,   0,   0,   0,   9,   1,  4,
                                           0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    struct proxy proxy = {.mode = PROXY_SAY, .text = frames, .text_length = sizeof frames};
    try_proxy(&proxy, PATIENT);
    assert_true(outcome.status == VIGIL_EPROTOCOL || outcome.status == VIGIL_EUNREACHABLE);
}

/* Replies that etcd never sends, of an HTTP/2 server made by hand. */

struct frames {
    unsigned char data[512];
    size_t length;
};

static void frame(struct frames *frames, int type, int flags, int stream, const void *payload, size_t length) {
    const unsigned char header[] = {
        0, (unsigned char)(length >> 8), (unsigned char)length, (unsigned char)type, (unsigned char)flags, 0, 0,
        0, (unsigned char)stream};
    memcpy(frames->data + frames->length, header, 9);
    if (length) memcpy(frames->data + frames->length + 9, payload, length);
    frames->length += 9 + length;
}

/* A part of the header block: HPACK's literal without indexing. */
static void literal(unsigned char *block, size_t *length, const char *name, const char *value) {
    size_t name_length = strlen(name), value_length = strlen(value);
    block[(*length)++] = 0;
    block[(*length)++] = (unsigned char)name_length;
    memcpy(block + *length, name, name_length);
    *length += name_length;
    block[(*length)++] = (unsigned char)value_length;
    memcpy(block + *length, value, value_length);
    *length += value_length;
}

enum { STATUS_200 = 0x88, STATUS_404 = 0x8d }; /* in HPACK's table */
enum { DATA, HEADERS, RST_STREAM = 3, SETTINGS, GOAWAY = 7 };
enum { END_STREAM = 1, END_HEADERS = 4 };

static void headers(struct frames *frames, int status, const char *type, const char *grpc_status, const char *message,
                    bool last) {
    unsigned char block[256];
    size_t length = 0;
    if (status) block[length++] = (unsigned char)status;
    if (type) literal(block, &length, "content-type", type);
    if (grpc_status) literal(block, &length, "grpc-status", grpc_status);
    if (message) literal(block, &length, "grpc-message", message);
    frame(frames, HEADERS, END_HEADERS | (last ? END_STREAM : 0), 1, block, length);
}

static void reply_with(const struct frames *frames, int64_t timeout_ns) {
    struct frames first = {.length = 0};
    frame(&first, SETTINGS, 0, 0, NULL, 0);
    struct proxy proxy = {.mode = PROXY_SAY,
                          .text = first.data,
                          .text_length = first.length,
                          .text2 = frames->data,
                          .text2_length = frames->length};
    try_proxy(&proxy, timeout_ns);
}

static void reply_without_body(int http, const char *type, const char *status, const char *message) {
    struct frames frames = {.length = 0};
    headers(&frames, http, type, status, message, true);
    reply_with(&frames, PATIENT);
}

#define GRPC "application/grpc"

static void odd_ends(void **state) {
    (void)state;
    reply_without_body(STATUS_404, "text/html", NULL, NULL);
    assert_fails(VIGIL_EPROTOCOL, "HTTP status 404");
    reply_without_body(STATUS_200, "text/html", NULL, NULL);
    assert_int_equal(outcome.status, VIGIL_EPROTOCOL);
    assert_non_null(strstr(outcome.why, "not etcd"));
    reply_without_body(STATUS_200, GRPC, "12", "unknown%20service%21");
    assert_fails(VIGIL_EPROTOCOL, "unknown service!");
    reply_without_body(STATUS_200, GRPC, "8", "etcdserver: too many requests");
    assert_fails(VIGIL_EUNREACHABLE, "too many requests");
    reply_without_body(STATUS_200, GRPC, "8", "etcdserver: mvcc: database space exceeded");
    assert_int_equal(outcome.status, VIGIL_EREFUSED);
    assert_true(outcome.reply.maybe_done);
    reply_without_body(STATUS_200, GRPC, "14", "etcdserver: request timed out");
    assert_int_equal(outcome.status, VIGIL_EUNREACHABLE);
    assert_true(outcome.reply.maybe_done);
    reply_without_body(STATUS_200, GRPC, "14", "etcdserver: no leader");
    assert_fails(VIGIL_EUNREACHABLE, "no leader");
    reply_without_body(STATUS_200, GRPC, "4", "");
    assert_int_equal(outcome.status, VIGIL_TIMED_OUT);
    assert_true(outcome.reply.maybe_done);
    reply_without_body(STATUS_200, GRPC, "999999", "%");
    assert_true(outcome.status < 0);
    reply_without_body(STATUS_200, GRPC, "0", NULL); /* well, but without a reply */
    assert_int_equal(outcome.status, VIGIL_EPROTOCOL);
}

/* A member that is there and of no use, the first of two. That it has refused is certain of a learner: the call goes to
 * the other one. Of another member it is left after some replies, of which each call is told. */
static void useless_member(const char *message, unsigned most_failures) {
    struct frames first = {.length = 0}, refusal = {.length = 0};
    char at[128];
    unsigned failures = 0;
    frame(&first, SETTINGS, 0, 0, NULL, 0);
    headers(&refusal, STATUS_200, GRPC, "14", message, true);
    struct proxy proxy = {.mode = PROXY_REFUSE,
                          .text = first.data,
                          .text_length = first.length,
                          .text2 = refusal.data,
                          .text2_length = refusal.length};
    proxy_start(&proxy);
    snprintf(at, sizeof at, "127.0.0.1:%d,127.0.0.1:%d", proxy.port, cluster.nodes[0].client_port);
    open_client(at, NULL);
    while (do_txn(&outcome, put("u", "x", 0)) != VIGIL_OK) {
        assert_int_equal(outcome.status, VIGIL_EUNREACHABLE);
        assert_true(outcome.reply.maybe_done && ++failures <= most_failures);
    }
    assert_int_equal(failures, most_failures);
    close_client();
    proxy_stop(&proxy);
}

static void useless_members(void **state) {
    (void)state;
    useless_member("etcdserver: rpc not supported for learner", 0);
    useless_member("etcdserver: request timed out", 2);
}

#define HEAD "\12\4\10\1\30\1" /* the header of a reply: cluster 1, revision 1 */

struct body {
    const char *body;
    size_t length;
    bool trailers;
    int status;
};

static void reply_with_body(const struct body *body) {
    struct frames frames = {.length = 0};
    headers(&frames, STATUS_200, GRPC, NULL, NULL, false);
    frame(&frames, DATA, body->trailers ? 0 : END_STREAM, 1, body->body, body->length);
    if (body->trailers) headers(&frames, 0, NULL, "0", NULL, true);
    reply_with(&frames, PATIENT);
    assert_int_equal(outcome.status, body->status);
    assert_int_equal(outcome.reply.maybe_done, body->status != VIGIL_OK);
}

static void odd_bodies(void **state) {
    (void)state;
    static const struct body bodies[] = {
        {"\0\0\0\0\3\377\377\377", 8, true, VIGIL_EPROTOCOL}, /* not protobuf */
        {"\0\0\0\0\0", 5, true, VIGIL_EPROTOCOL},             /* without a header */
        {"\1\0\0\0\0", 5, true, VIGIL_EPROTOCOL},             /* compressed */
        {"\0\377\377\377\377x", 6, true, VIGIL_EPROTOCOL},    /* of 4 GB */
        {"\0\0\0\0\12\12", 6, true, VIGIL_EPROTOCOL},         /* cut */
        {"\0\0\0\0\14" HEAD "\20\1\32\2\22\0", 17, true, VIGIL_OK},
        {"\0\0\0\0\14" HEAD "\20\1\32\2\22\0", 17, false, VIGIL_EPROTOCOL},          /* what ends it is missing */
        {"\0\0\0\0\10" HEAD "\20\1", 13, true, VIGIL_EPROTOCOL},                     /* without its result */
        {"\0\0\0\0\20" HEAD "\20\1\32\2\22\0\32\2\22\0", 21, true, VIGIL_EPROTOCOL}, /* with one more */
        {"\0\0\0\0\12" HEAD "\32\2\22\0", 15, true, VIGIL_EPROTOCOL},                /* of the other branch */
        {"\0\0\0\0\12\12\2\30\1\20\1\32\2\22\0", 15, true, VIGIL_EPROTOCOL},         /* cluster 0 */
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) reply_with_body(&bodies[i]);
}

static void odd_leases(void **state) {
    (void)state;
    static const struct body bodies[] = {
        {"\0\0\0\0\12" HEAD "\20\5\30\12", 15, true, VIGIL_OK},  /* lease 5 for 10 s */
        {"\0\0\0\0\10" HEAD "\20\5", 13, true, VIGIL_EPROTOCOL}, /* for 0 s */
        {"\0\0\0\0\23" HEAD "\20\5\30\377\377\377\377\377\377\377\377\377\1", 24, true, VIGIL_EPROTOCOL}, /* -1 s */
    };
    asks_lease = true;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) reply_with_body(&bodies[i]);
}

/* The server says that it has not looked at the request. */
static void turned_away(void **state) {
    (void)state;
    struct frames reset = {.length = 0}, goaway = {.length = 0};
    frame(&reset, RST_STREAM, 0, 1, "\0\0\0\7", 4);
    reply_with(&reset, PATIENT);
    assert_fails(VIGIL_EUNREACHABLE, "no more requests");
    frame(&goaway, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
    reply_with(&goaway, PATIENT);
    assert_fails(VIGIL_EUNREACHABLE, "no more requests");
}

/* Plaintext to TLS is tested where there is TLS: test_security.c. */
static void tls_to_plaintext(void **state) {
    (void)state;
    vigil_remote_options options = {.tls = true};
    try_call(cluster_at(&cluster), &options, PATIENT);
    assert_int_equal(outcome.status, VIGIL_EPROTOCOL);
    assert_non_null(strstr(outcome.why, "does not speak TLS"));
    options = (vigil_remote_options){.cacert = "/no/such/file"};
    try_call(cluster_at(&cluster), &options, PATIENT);
    assert_fails(VIGIL_EREFUSED, "/no/such/file");
}

static void mute(void **state) {
    (void)state;
    struct proxy proxy = {.mode = PROXY_MUTE};
    try_proxy(&proxy, SECOND / 5);
    assert_int_equal(outcome.status, VIGIL_TIMED_OUT);
    assert_false(outcome.reply.maybe_done);
    try_proxy(&proxy, PATIENT);
    assert_fails(VIGIL_EUNREACHABLE, "did not reply");
}

static void drip(void **state) {
    (void)state;
    struct proxy proxy = {.mode = PROXY_DRIP, .server_port = cluster.nodes[0].client_port};
    try_proxy(&proxy, PATIENT);
    assert_int_equal(outcome.status, VIGIL_OK);
}

/* The reply is cut after each number of bytes. With more than it takes, it succeeds. If it does not, the request was
 * carried out or not: maybe_done must never deny one that was. */
static void cut(void **state) {
    (void)state;
    int status = VIGIL_EUNREACHABLE;
    for (long at = 0; status != VIGIL_OK; at++) {
        assert_true(at < 2000);
        struct proxy proxy = {.mode = PROXY_CUT, .server_port = cluster.nodes[0].client_port, .at = at};
        struct outcome look;
        char key[32];
        snprintf(key, sizeof key, "cut/%ld", at);
        proxy_start(&proxy);
        open_client(proxy_at(&proxy), NULL);
        struct etcd_txn txn = put(key, "x", 0);
        etcd_txn(etcd, begin(&outcome), &txn, in_ns(PATIENT));
        status = end(&outcome);
        bool maybe_done = outcome.reply.maybe_done;
        close_client();
        proxy_stop(&proxy);
        assert_true(status == VIGIL_OK || status == VIGIL_EUNREACHABLE || status == VIGIL_EPROTOCOL);
        open_client(cluster_at(&cluster), NULL);
        assert_int_equal(do_txn(&look, get(key)), VIGIL_OK);
        if (look.reply.results[0].pair_count && status != VIGIL_OK) assert_true(maybe_done);
        if (status == VIGIL_OK) assert_int_equal(look.reply.results[0].pair_count, 1);
        close_client();
    }
}

/* A byte is wrong. The call ends, by a deadline if need be. */
static void flip(void **state) {
    (void)state;
    for (long at = 0; at < 200; at++) {
        struct proxy proxy = {.mode = PROXY_FLIP, .server_port = cluster.nodes[0].client_port, .at = at};
        try_proxy(&proxy, SECOND / 2);
        assert_int_equal(outcome.calls, 1);
    }
}

static void told_nothing(struct etcd_watch *which, enum etcd_news news, const struct etcd_pair *pair,
                         int64_t revision) {
    (void)which, (void)pair, (void)revision;
    counts[news]++;
}

/* The connection stays, and nothing comes any more: a watch that was told of its creation is told that it is lost. */
static void silence(void **state) {
    (void)state;
    struct proxy proxy = {.mode = PROXY_SILENCE, .server_port = cluster.nodes[0].client_port, .at = 1000000};
    proxy_start(&proxy);
    open_client(proxy_at(&proxy), NULL);
    watch = (struct etcd_watch){.told = told_nothing};
    etcd_watch(etcd, &watch, text("s"), text(""), false);
    UNTIL(counts[ETCD_WATCH_CREATED]);
    int64_t before_ns = etcd_now_ns(etcd);
    __atomic_store_n(&proxy.at, 0, __ATOMIC_RELAXED);
    UNTIL(counts[ETCD_WATCH_LOST]);
    assert_true(etcd_now_ns(etcd) - before_ns >= SECOND);
    assert_non_null(strstr(etcd_why(etcd), "silent"));
    assert_null(watch.pending);
    close_client();
    proxy_stop(&proxy);
}

/* The server is stopped: a call that it has received may be done. */
static void frozen(void **state) {
    (void)state;
    open_client(cluster_at(&cluster), NULL);
    await_leader();
    assert_true(cluster_freeze(&cluster, 0));
    struct etcd_txn txn = put("frozen", "x", 0);
    etcd_txn(etcd, begin(&outcome), &txn, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_EUNREACHABLE);
    assert_true(outcome.reply.maybe_done);
    cluster_thaw(&cluster, 0);
    await_leader();
    close_client();
}

/* Killed and started again: watches are lost, and the client comes back by itself. */
static void restarted(void **state) {
    (void)state;
    open_client(cluster_at(&cluster), NULL);
    watch = (struct etcd_watch){.told = told_nothing};
    etcd_watch(etcd, &watch, text("k"), text(""), false);
    UNTIL(counts[ETCD_WATCH_CREATED]);
    cluster_kill(&cluster, 0);
    UNTIL(counts[ETCD_WATCH_LOST]);
    etcd_watch(etcd, &watch, text("k"), text(""), false); /* waits for the next connection */
    struct etcd_txn txn = put("k", "x", 0);
    etcd_txn(etcd, begin(&outcome), &txn, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_EUNREACHABLE);
    assert_false(outcome.reply.maybe_done);
    assert_true(cluster_restart(&cluster, 0));
    UNTIL(counts[ETCD_WATCH_CREATED] == 2);
    await_leader();
    assert_int_equal(do_txn(&outcome, put("k", "x", 0)), VIGIL_OK);
    UNTIL(counts[ETCD_WATCH_PUT]);
    close_client();
}

/* The list has an endpoint of another cluster: it is not used when the first one fails. */
static void two_clusters(void **state) {
    (void)state;
    static struct cluster other;
    char at[128];
    assert_true(cluster_start(&other, 1, NULL));
    open_client(cluster_at(&other), NULL);
    await_leader();
    close_client();
    snprintf(at, sizeof at, "127.0.0.1:%d,127.0.0.1:%d", cluster.nodes[0].client_port, other.nodes[0].client_port);
    open_client(at, NULL);
    assert_int_equal(do_txn(&outcome, put("two", "x", 0)), VIGIL_OK);
    cluster_kill(&cluster, 0);
    UNTIL(strstr(etcd_why(etcd), "name members of one cluster"));
    assert_int_not_equal(do_txn(&outcome, put("two", "y", 0)), VIGIL_OK);
    assert_false(outcome.reply.maybe_done);
    assert_true(cluster_restart(&cluster, 0));
    await_leader();
    assert_int_equal(do_txn(&outcome, get("two")), VIGIL_OK);
    assert_string_equal(outcome.value, "x");
    close_client();
    cluster_stop(&other);
}

static int tear_down(void **state) {
    (void)state;
    memset(counts, 0, sizeof counts);
    no_ipv6 = asks_lease = false;
    leave_nothing(&cluster);
    return 0;
}

int main(void) {
    if (!cluster_etcd()) {
        puts("skipped: no etcd");
        return 77;
    }
    if (!cluster_start(&cluster, 1, NULL)) return 1;
    open_client(cluster_at(&cluster), NULL);
    await_leader();
    close_client();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(bad_lists, tear_down),
        cmocka_unit_test_teardown(nothing_listens, tear_down),
        cmocka_unit_test_teardown(unknown_name, tear_down),
        cmocka_unit_test_teardown(others_fail, tear_down),
        cmocka_unit_test_teardown(without_ipv6, tear_down),
        cmocka_unit_test_teardown(slow_to_greet, tear_down),
        cmocka_unit_test_teardown(reads_fail_over, tear_down),
        cmocka_unit_test_teardown(not_etcd, tear_down),
        cmocka_unit_test_teardown(not_http2, tear_down),
        cmocka_unit_test_teardown(odd_ends, tear_down),
        cmocka_unit_test_teardown(useless_members, tear_down),
        cmocka_unit_test_teardown(odd_bodies, tear_down),
        cmocka_unit_test_teardown(odd_leases, tear_down),
        cmocka_unit_test_teardown(turned_away, tear_down),
        cmocka_unit_test_teardown(tls_to_plaintext, tear_down),
        cmocka_unit_test_teardown(mute, tear_down),
        cmocka_unit_test_teardown(drip, tear_down),
        cmocka_unit_test_teardown(cut, tear_down),
        cmocka_unit_test_teardown(flip, tear_down),
        cmocka_unit_test_teardown(silence, tear_down),
        cmocka_unit_test_teardown(frozen, tear_down),
        cmocka_unit_test_teardown(restarted, tear_down),
        cmocka_unit_test_teardown(two_clusters, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cluster_stop(&cluster);
    return failed;
}
