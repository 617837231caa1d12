/* SPDX-License-Identifier: MIT */
/* Three nodes: one is lost, the quorum is lost, compaction. */
#include "support.h"

#include "client.h"

/* A node that has just begun may take longer than etcdctl's own five seconds. */
#define PATIENCE "--dial-timeout=120s --command-timeout=120s"

static struct cluster cluster;

/* Of the test that runs: see leave_nothing. */
static int counts[4];
static struct outcome outcome;
static struct etcd_watch watch;

static int set_up(void **state) {
    (void)state;
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < cluster.count; i++)
        if (!cluster.nodes[i].pid && !cluster_restart(&cluster, i)) return -1;
    open_client(cluster_at(&cluster), NULL);
    await_leader();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    leave_nothing(&cluster);
    return 0;
}

/* The node with which the client speaks: it leaves one that has no leader yet. */
static int linked_node(void) {
    char name[32];
    for (int i = 0; i < cluster.count; i++) {
        snprintf(name, sizeof name, "127.0.0.1:%d", cluster.nodes[i].client_port);
        if (strcmp(link_name(etcd), name) == 0) return i;
    }
    fail();
    return -1;
}

static void told(struct etcd_watch *which, enum etcd_news news, const struct etcd_pair *pair, int64_t revision) {
    (void)which, (void)pair, (void)revision;
    counts[news]++;
}

/* The node with which the client speaks is killed: calls go on with another. What was under way may be done. */
static void one_node_is_lost(void **state) {
    (void)state;
    watch = (struct etcd_watch){.told = told};
    etcd_watch(etcd, &watch, text("o"), text(""), false);
    UNTIL(counts[ETCD_WATCH_CREATED]);
    cluster_kill(&cluster, linked_node());
    UNTIL(counts[ETCD_WATCH_LOST]);
    etcd_watch(etcd, &watch, text("o"), text(""), false);
    UNTIL(counts[ETCD_WATCH_CREATED] == 2);
    await_leader();
    assert_int_equal(do_txn(&outcome, put("o", "x", 0)), VIGIL_OK);
    UNTIL(counts[ETCD_WATCH_PUT]);
}

/* A stopped node keeps its connections: the silence is noticed, and another node is found. */
static void one_node_is_frozen(void **state) {
    (void)state;
    int node = linked_node();
    assert_true(cluster_freeze(&cluster, node));
    int64_t begun_ns = etcd_now_ns(etcd);
    while (do_txn(&outcome, put("z", "x", 0)) != VIGIL_OK) assert_int_equal(outcome.status, VIGIL_EUNREACHABLE);
    assert_true(etcd_now_ns(etcd) - begun_ns < PATIENT);
    cluster_thaw(&cluster, node);
}

/* Two of three are killed. The third has no leader: it ends the watch, refuses what needs the cluster, and still reads
 * what it has. */
static void the_quorum_is_lost(void **state) {
    (void)state;
    assert_int_equal(do_txn(&outcome, put("q", "old", 0)), VIGIL_OK);
    close_client();
    open_client(cluster_at_node(&cluster, 2), NULL);
    watch = (struct etcd_watch){.told = told};
    etcd_watch(etcd, &watch, text("q"), text(""), false);
    UNTIL(counts[ETCD_WATCH_CREATED]);
    cluster_kill(&cluster, 0);
    cluster_kill(&cluster, 1);
    UNTIL(counts[ETCD_WATCH_LOST]);
    do {
        int status = do_txn(&outcome, put("q", "new", 0));
        assert_int_equal(status, VIGIL_EUNREACHABLE);
    } while (!strstr(outcome.why, "no leader"));
    assert_false(outcome.reply.maybe_done);
    struct etcd_txn stale = get("q");
    stale.then[0].serializable = true;
    assert_int_equal(do_txn(&outcome, stale), VIGIL_OK);
    assert_string_equal(outcome.value, "old");
    etcd_status(etcd, begin(&outcome), in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_OK);
    assert_int_equal(outcome.reply.leader, 0);
    assert_true(cluster_restart(&cluster, 0));
    assert_true(cluster_restart(&cluster, 1));
    await_leader();
    assert_int_equal(do_txn(&outcome, get("q")), VIGIL_OK);
}

/* The history is compacted while a watch is there: it goes on, because it has missed nothing. */
static void compaction(void **state) {
    (void)state;
    char command[256];
    watch = (struct etcd_watch){.told = told};
    etcd_watch(etcd, &watch, text("c"), text(""), false);
    UNTIL(counts[ETCD_WATCH_CREATED]);
    for (int i = 0; i < 10; i++) assert_int_equal(do_txn(&outcome, put("c", "x", 0)), VIGIL_OK);
    snprintf(command, sizeof command,
             "ETCDCTL_API=3 etcdctl " PATIENCE " --endpoints=127.0.0.1:%d compact --physical %lld >/dev/null",
             cluster.nodes[1].client_port, (long long)outcome.reply.revision);
    assert_int_equal(system(command), 0);
    UNTIL(counts[ETCD_WATCH_PUT] == 10);
    assert_int_equal(do_txn(&outcome, put("c", "x", 0)), VIGIL_OK);
    UNTIL(counts[ETCD_WATCH_PUT] == 11);
    assert_int_equal(counts[ETCD_WATCH_LOST], 0);
    etcd_unwatch(etcd, &watch);
}

/* A watch whose client does not read falls behind; what it has not been told is compacted then. It is told that it is
 * lost, on the same connection, and the next one begins. */
static void compaction_overtakes(void **state) {
    (void)state;
    char command[256], value[4096] = "";
    memset(value, 'x', sizeof value - 1);
    watch = (struct etcd_watch){.told = told};
    etcd_watch(etcd, &watch, text("slow"), text(""), false);
    UNTIL(counts[ETCD_WATCH_CREATED]);
    vigil_agent *slow_agent = agent;
    struct etcd *slow = etcd;
    uint64_t failures = slow->failures;
    open_client(cluster_at(&cluster), NULL);
    for (int i = 0; i < 1500; i++) assert_int_equal(do_txn(&outcome, put("slow", value, 0)), VIGIL_OK);
    snprintf(command, sizeof command,
             "ETCDCTL_API=3 etcdctl " PATIENCE " --endpoints=127.0.0.1:%d compact --physical %lld >/dev/null",
             cluster.nodes[0].client_port, (long long)outcome.reply.revision);
    assert_int_equal(system(command), 0);
    close_client();
    agent = slow_agent;
    etcd = slow;
    UNTIL(counts[ETCD_WATCH_LOST]);
    assert_true(counts[ETCD_WATCH_PUT] < 1500);
    assert_int_equal(slow->failures, failures);
    etcd_watch(etcd, &watch, text("slow"), text(""), false);
    UNTIL(counts[ETCD_WATCH_CREATED] == 2);
    int before = counts[ETCD_WATCH_PUT];
    assert_int_equal(do_txn(&outcome, put("slow", "x", 0)), VIGIL_OK);
    UNTIL(counts[ETCD_WATCH_PUT] == before + 1);
    etcd_unwatch(etcd, &watch);
}

int main(void) {
    if (!cluster_etcd() || system("command -v etcdctl >/dev/null") != 0) {
        puts("skipped: no etcd or etcdctl");
        return 77;
    }
    if (!cluster_start(&cluster, 3, NULL)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_node_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_node_is_frozen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_quorum_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(compaction, set_up, tear_down),
        cmocka_unit_test_setup_teardown(compaction_overtakes, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cluster_stop(&cluster);
    return failed;
}
