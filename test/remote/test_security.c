/* SPDX-License-Identifier: MIT */
/* TLS, certificates, users and passwords, with a real etcd. */
#include "support.h"

static struct cluster cluster;
static char files[8][160];

static const char *file(int slot, const char *name) {
    snprintf(files[slot], sizeof files[slot], "%s/%s", cluster.folder, name);
    return files[slot];
}

static int start(const struct cluster_options *options) {
    return cluster_start(&cluster, 1, options) ? 0 : -1;
}

static int stop(void **state) {
    (void)state;
    cluster_stop(&cluster);
    return 0;
}

static void try_call_once(struct outcome *outcome, const char *at, const vigil_remote_options *options) {
    open_client(at, options);
    struct etcd_txn txn = put("s", "x", 0);
    etcd_txn(etcd, begin(outcome), &txn, in_ns(PATIENT));
    end(outcome);
    close_client();
}

/* A busy machine may take longer than the client waits for a connection: that says nothing. */
static int try_call(struct outcome *outcome, const char *at, const vigil_remote_options *options) {
    do try_call_once(outcome, at, options);
    while (outcome->status == VIGIL_EUNREACHABLE && strstr(outcome->why, "did not reply within"));
    return outcome->status;
}

/* While there is no leader yet, what it can and cannot do is not known. */
static void await_ready(const vigil_remote_options *options) {
    struct outcome outcome;
    while (try_call(&outcome, cluster_at(&cluster), options) != VIGIL_OK) {
        if (outcome.status != VIGIL_EUNREACHABLE && outcome.status != VIGIL_TIMED_OUT)
            print_message("# %d: %s\n", outcome.status, outcome.why);
        assert_true(outcome.status == VIGIL_EUNREACHABLE || outcome.status == VIGIL_TIMED_OUT);
    }
}

static void assert_refused(const struct outcome *outcome, int status, const char *why) {
    if (outcome->status != status || !strstr(outcome->why, why))
        print_message("# status %d, why: %s\n", outcome->status, outcome->why);
    assert_int_equal(outcome->status, status);
    assert_non_null(strstr(outcome->why, why));
    assert_false(outcome->reply.maybe_done);
}

static int start_tls(void **state) {
    (void)state;
    return start(&(struct cluster_options){.tls = true});
}

static void tls(void **state) {
    (void)state;
    struct outcome outcome;
    vigil_remote_options options = {.cacert = file(0, "ca.pem")};
    await_ready(&options);
    char at[64];
    snprintf(at, sizeof at, "https://localhost:%d", cluster.nodes[0].client_port);
    assert_int_equal(try_call(&outcome, at, &options), VIGIL_OK);
    options.cacert = file(1, "wrong_ca.pem");
    try_call(&outcome, at, &options);
    assert_refused(&outcome, VIGIL_EREFUSED, "certificate");
    try_call(&outcome, at, NULL); /* the system's */
    assert_refused(&outcome, VIGIL_EREFUSED, "certificate");
    try_call(&outcome, cluster_at(&cluster), NULL); /* plaintext */
    assert_refused(&outcome, VIGIL_EPROTOCOL, "TLS");
    options.cacert = file(1, "server.key");
    try_call(&outcome, at, &options);
    assert_refused(&outcome, VIGIL_EREFUSED, "server.key");
}

/* A certificate of the right authority, but for another name. */
static int start_other(void **state) {
    (void)state;
    if (start_tls(NULL)) return -1;
    await_ready(&(vigil_remote_options){.cacert = file(0, "ca.pem")}); /* killed before, it might never start again */
    cluster_kill(&cluster, 0);
    rename(file(0, "other.pem"), file(1, "server.pem"));
    rename(file(0, "other.key"), file(1, "server.key"));
    return cluster_restart(&cluster, 0) ? 0 : -1;
}

static void wrong_name(void **state) {
    (void)state;
    struct outcome outcome;
    vigil_remote_options options = {.cacert = file(0, "ca.pem")};
    char at[64];
    while (try_call(&outcome, cluster_at(&cluster), &options) == VIGIL_EUNREACHABLE) continue; /* it starts */
    assert_refused(&outcome, VIGIL_EREFUSED, "IP address mismatch");
    snprintf(at, sizeof at, "https://localhost:%d", cluster.nodes[0].client_port);
    try_call(&outcome, at, &options);
    assert_refused(&outcome, VIGIL_EREFUSED, "ostname mismatch");
}

static int start_client_auth(void **state) {
    (void)state;
    return start(&(struct cluster_options){.tls = true, .client_auth = true});
}

static void client_certificate(void **state) {
    (void)state;
    struct outcome outcome;
    vigil_remote_options options = {
        .cacert = file(0, "ca.pem"), .cert = file(1, "client.pem"), .key = file(2, "client.key")};
    await_ready(&options);
    options.cert = options.key = NULL;
    try_call(&outcome, cluster_at(&cluster), &options);
    assert_refused(&outcome, VIGIL_EREFUSED, "certificate");
    options.cert = file(1, "wrong_ca.pem");
    options.key = file(2, "wrong_ca.key");
    try_call(&outcome, cluster_at(&cluster), &options);
    assert_refused(&outcome, VIGIL_EREFUSED, "certificate");
}

/* Users. etcdctl sets them up. */

static int start_users(void **state) {
    (void)state;
    if (start(NULL)) return -1;
    await_ready(NULL);
    char command[1024];
    snprintf(command, sizeof command,
             "exec >%s/etcdctl.log 2>&1; set -e; export ETCDCTL_API=3; c=\"etcdctl --endpoints=127.0.0.1:%d\"\n"
             "$c user add root:secret; $c user grant-role root root\n"
             "$c role add some; $c role grant-permission some readwrite mine; $c user add some:word\n"
             "$c user grant-role some some; $c auth enable",
             cluster.folder, cluster.nodes[0].client_port);
    return system(command);
}

static void users(void **state) {
    (void)state;
    struct outcome outcome;
    vigil_remote_options options = {.user = "root:secret"};
    await_ready(&options);
    options = (vigil_remote_options){.user = "root", .password = "secret"};
    assert_int_equal(try_call(&outcome, cluster_at(&cluster), &options), VIGIL_OK);
    options.password = "wrong";
    try_call(&outcome, cluster_at(&cluster), &options);
    assert_refused(&outcome, VIGIL_EREFUSED, "password");
    try_call(&outcome, cluster_at(&cluster), NULL);
    assert_refused(&outcome, VIGIL_EREFUSED, "user name is empty");
    options = (vigil_remote_options){.user = "some:word"};
    try_call(&outcome, cluster_at(&cluster), &options);
    assert_refused(&outcome, VIGIL_EREFUSED, "permission denied");
    open_client(cluster_at(&cluster), &options);
    assert_int_equal(do_txn(&outcome, put("mine", "x", 0)), VIGIL_OK);
    close_client();
}

static void told(struct etcd_watch *watch, enum etcd_news news, const struct etcd_pair *pair, int64_t revision) {
    (void)pair, (void)revision;
    int *counts = watch->data;
    counts[news]++;
}

static void watches_need_permission(void **state) {
    (void)state;
    vigil_remote_options options = {.user = "some:word"};
    int counts[4] = {0}, mine[4] = {0};
    open_client(cluster_at(&cluster), &options);
    struct etcd_watch other = {.told = told, .data = counts}, own = {.told = told, .data = mine};
    etcd_watch(etcd, &other, text("other"), text(""), false);
    etcd_watch(etcd, &own, text("mine"), text(""), false);
    UNTIL(counts[ETCD_WATCH_LOST] && mine[ETCD_WATCH_CREATED]);
    assert_non_null(strstr(etcd_why(etcd), "permission denied"));
    assert_int_equal(counts[ETCD_WATCH_CREATED], 0);
    close_client();
}

/* The server has forgotten the token (it is in memory): the client logs in again. */
static void token_forgotten(void **state) {
    (void)state;
    struct outcome outcome;
    vigil_remote_options options = {.user = "root:secret"};
    open_client(cluster_at(&cluster), &options);
    assert_int_equal(do_txn(&outcome, put("t", "1", 0)), VIGIL_OK);
    assert_true(cluster_restart(&cluster, 0));
    while (do_txn(&outcome, put("t", "2", 0)) != VIGIL_OK)
        assert_true(outcome.status == VIGIL_EUNREACHABLE || outcome.status == VIGIL_TIMED_OUT);
    /* in the same connection: a new password ends all tokens of the user */
    char command[256];
    snprintf(command, sizeof command,
             "ETCDCTL_API=3 etcdctl --user root:secret --endpoints=127.0.0.1:%d role grant-permission some read x "
             ">/dev/null",
             cluster.nodes[0].client_port);
    assert_int_equal(system(command), 0);
    assert_int_equal(do_txn(&outcome, put("t", "3", 0)), VIGIL_OK);
    close_client();
}

/* A user is given, but there are none: as etcdctl does, go on. */
static int start_plain(void **state) {
    (void)state;
    return start(NULL);
}

static void no_users(void **state) {
    (void)state;
    vigil_remote_options options = {.user = "root:secret"};
    await_ready(&options);
}

int main(void) {
    if (!cluster_etcd() || system("command -v openssl etcdctl >/dev/null") != 0) {
        puts("skipped: no etcd, etcdctl or openssl");
        return 77;
    }
    const struct CMUnitTest tls_tests[] = {cmocka_unit_test(tls)};
    const struct CMUnitTest name_tests[] = {cmocka_unit_test(wrong_name)};
    const struct CMUnitTest client_tests[] = {cmocka_unit_test(client_certificate)};
    const struct CMUnitTest user_tests[] = {cmocka_unit_test(users), cmocka_unit_test(watches_need_permission),
                                            cmocka_unit_test(token_forgotten)};
    const struct CMUnitTest plain_tests[] = {cmocka_unit_test(no_users)};
    int failed = cmocka_run_group_tests(tls_tests, start_tls, stop);
    failed += cmocka_run_group_tests(name_tests, start_other, stop);
    failed += cmocka_run_group_tests(client_tests, start_client_auth, stop);
    failed += cmocka_run_group_tests(user_tests, start_users, stop);
    failed += cmocka_run_group_tests(plain_tests, start_plain, stop);
    return failed;
}
