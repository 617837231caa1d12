/* SPDX-License-Identifier: MIT */
/* The client with a real etcd of one node: each call, watches, timers. */
#include "support.h"

#include <sys/wait.h>

static struct cluster cluster;

static int set_up(void **state) {
    (void)state;
    open_client(cluster_at(&cluster), NULL);
    await_leader();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close_client();
    return 0;
}

/* Calls. */

static void transactions(void **state) {
    (void)state;
    struct outcome outcome;
    assert_int_equal(do_txn(&outcome, put("a", "one", 0)), VIGIL_OK);
    assert_true(outcome.reply.succeeded);
    assert_true(outcome.reply.cluster != 0);
    int64_t revision = outcome.reply.revision;
    assert_int_equal(do_txn(&outcome, get("a")), VIGIL_OK);
    assert_int_equal(outcome.reply.revision, revision);
    assert_int_equal(outcome.reply.results[0].pair_count, 1);
    assert_string_equal(outcome.value, "one");
    assert_string_equal(etcd_why(etcd), "");

    struct etcd_txn txn = put("a", "two", 0);
    txn.compares[0] = (struct etcd_compare){
        .key = text("a"), .target = ETCD_MOD_REVISION, .relation = ETCD_EQUAL, .revision = revision - 1};
    txn.compare_count = 1;
    txn.otherwise[0] = (struct etcd_operation){.action = ETCD_RANGE, .key = text("a")};
    txn.otherwise_count = 1;
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_false(outcome.reply.succeeded);
    assert_string_equal(outcome.value, "one");
    txn.compares[0].revision = revision;
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_true(outcome.reply.succeeded);
    txn.compares[0] =
        (struct etcd_compare){.key = text("a"), .target = ETCD_VALUE, .relation = ETCD_NOT_EQUAL, .value = text("two")};
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_false(outcome.reply.succeeded);
    assert_int_equal(do_txn(&outcome, del("a")), VIGIL_OK);
    assert_int_equal(outcome.reply.results[0].count, 1);
    assert_int_equal(do_txn(&outcome, get("a")), VIGIL_OK);
    assert_int_equal(outcome.reply.results[0].pair_count, 0);
    txn = put("a", "three", 0);
    txn.compares[0] = (struct etcd_compare){.key = text("a"), .target = ETCD_CREATE_REVISION, .relation = ETCD_GREATER};
    txn.compare_count = 1;
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_false(outcome.reply.succeeded);
}

static void ranges(void **state) {
    (void)state;
    struct outcome outcome;
    assert_int_equal(do_txn(&outcome, put("r/2", "first", 0)), VIGIL_OK);
    assert_int_equal(do_txn(&outcome, put("r/1", "second", 0)), VIGIL_OK);
    int64_t third;
    assert_int_equal(do_txn(&outcome, put("r/3", "third", 0)), VIGIL_OK);
    third = outcome.reply.revision;
    struct etcd_txn txn = get("r/");
    txn.then[0].range_end = text("r0");
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_int_equal(outcome.reply.results[0].pair_count, 3);
    assert_string_equal(outcome.value, "second");
    txn.then[0].order = ETCD_OLDEST_FIRST;
    txn.then[0].limit = 2;
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_string_equal(outcome.value, "first");
    assert_int_equal(outcome.reply.results[0].pair_count, 2);
    assert_int_equal(outcome.reply.results[0].count, 3);
    txn.then[0].order = ETCD_NEWEST_FIRST;
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_string_equal(outcome.value, "third");
    txn.then[0].created_before = third;
    txn.then[0].serializable = true;
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_string_equal(outcome.value, "second");
    txn = del("r/");
    txn.then[0].range_end = text("r0");
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_int_equal(outcome.reply.results[0].count, 3);
}

static void leases(void **state) {
    (void)state;
    struct outcome outcome;
    int64_t lease = (int64_t)(etcd_random(etcd) >> 1);
    etcd_grant(etcd, begin(&outcome), lease, 60, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_OK);
    assert_int_equal(outcome.reply.ttl_s, 60);
    etcd_grant(etcd, begin(&outcome), lease, 60, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_EEXISTS);
    assert_false(outcome.reply.maybe_done);
    assert_int_equal(do_txn(&outcome, put("leased", "", lease)), VIGIL_OK);
    int64_t before_ns = etcd_now_ns(etcd);
    etcd_renew(etcd, begin(&outcome), lease, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_OK);
    assert_int_equal(outcome.reply.ttl_s, 60);
    assert_true(outcome.call.sent_ns >= before_ns && outcome.call.sent_ns <= etcd_now_ns(etcd));
    etcd_time_to_live(etcd, begin(&outcome), lease, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_OK);
    assert_true(outcome.reply.ttl_s > 0 && outcome.reply.ttl_s <= 60);
    etcd_revoke(etcd, begin(&outcome), lease, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_OK);
    assert_int_equal(do_txn(&outcome, get("leased")), VIGIL_OK);
    assert_int_equal(outcome.reply.results[0].pair_count, 0);

    etcd_revoke(etcd, begin(&outcome), lease, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_ENOTFOUND);
    etcd_renew(etcd, begin(&outcome), lease, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_ENOTFOUND);
    etcd_time_to_live(etcd, begin(&outcome), lease, in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_ENOTFOUND);
    assert_int_equal(do_txn(&outcome, put("leased", "", lease)), VIGIL_ENOTFOUND);
    assert_false(outcome.reply.maybe_done);
}

static void status(void **state) {
    (void)state;
    struct outcome outcome;
    etcd_status(etcd, begin(&outcome), in_ns(PATIENT));
    assert_int_equal(end(&outcome), VIGIL_OK);
    assert_true(strncmp(outcome.version, "3.", 2) == 0);
    assert_true(outcome.reply.leader != 0 && outcome.reply.leader == outcome.reply.member);
    assert_true(outcome.reply.database_bytes > 0);
    assert_int_equal(outcome.reply.alarms, 0);
}

static void cancelled(void **state) {
    (void)state;
    struct outcome outcome, other;
    struct etcd_txn txn = put("c", "x", 0);
    etcd_txn(etcd, begin(&outcome), &txn, in_ns(PATIENT));
    etcd_cancel(etcd, &outcome.call);
    assert_null(outcome.call.pending);
    etcd_cancel(etcd, &outcome.call);
    assert_int_equal(do_txn(&other, get("c")), VIGIL_OK);
    assert_int_equal(outcome.calls, 0);
}

/* Requests of one turn come back in any order; all of them come back. */
static void many_at_once(void **state) {
    (void)state;
    enum { MANY = 1000 };
    static struct outcome outcomes[MANY];
    for (int i = 0; i < MANY; i++) {
        struct etcd_txn txn = put("many", "x", 0);
        etcd_txn(etcd, begin(&outcomes[i]), &txn, in_ns(PATIENT));
    }
    for (int i = 0; i < MANY; i++) assert_int_equal(end(&outcomes[i]), VIGIL_OK);
}

/* More than the windows of a stream and of the connection. */
static void large_replies(void **state) {
    (void)state;
    enum { LARGE = 1000000 };
    static char value[LARGE];
    memset(value, 'x', sizeof value);
    struct outcome outcome;
    for (int i = 0; i < 20; i++) {
        char key[32];
        snprintf(key, sizeof key, "large/%02d", i);
        struct etcd_txn txn = put(key, "", 0);
        txn.then[0].value = (struct etcd_bytes){value, sizeof value};
        assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    }
    struct etcd_txn txn = get("large/");
    txn.then[0].range_end = text("large0");
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_int_equal(outcome.reply.results[0].pair_count, 20);
    txn = del("large/");
    txn.then[0].range_end = text("large0");
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
}

/* Watches. */

struct witness {
    struct etcd_watch watch;
    int created, puts, deleted, lost;
    int64_t created_at, last_at;
    char key[32], value[32];
    bool ends; /* at the first news after the creation */
};

static void witness_copy(char *to, size_t size, struct etcd_bytes from) {
    snprintf(to, size, "%.*s", (int)from.length, (const char *)from.data);
}

static void witness_told(struct etcd_watch *watch, enum etcd_news news, const struct etcd_pair *pair,
                         int64_t revision) {
    struct witness *witness = watch->data;
    if (news == ETCD_WATCH_CREATED) {
        witness->created++;
        witness->created_at = revision;
        return;
    }
    witness->puts += news == ETCD_WATCH_PUT;
    witness->deleted += news == ETCD_WATCH_DELETED;
    witness->lost += news == ETCD_WATCH_LOST;
    witness->last_at = revision;
    if (pair) {
        witness_copy(witness->key, sizeof witness->key, pair->key);
        witness_copy(witness->value, sizeof witness->value, pair->value);
        assert_int_equal(pair->mod_revision, revision);
    }
    if (witness->ends) etcd_unwatch(etcd, watch);
}

static void witness_begin(struct witness *witness, const char *key, const char *range_end, bool deletions) {
    *witness = (struct witness){.watch = {.told = witness_told, .data = witness}};
    etcd_watch(etcd, &witness->watch, text(key), text(range_end), deletions);
}

static void watch_puts_and_deletions(void **state) {
    (void)state;
    struct witness puts, deletions, prefix;
    struct outcome outcome;
    witness_begin(&puts, "w/1", "", false);
    witness_begin(&deletions, "w/1", "", true);
    witness_begin(&prefix, "w/", "w0", false);
    assert_int_equal(puts.created, 0);
    UNTIL(puts.created && deletions.created && prefix.created);
    assert_int_equal(do_txn(&outcome, put("w/1", "one", 0)), VIGIL_OK);
    assert_true(outcome.reply.revision > puts.created_at);
    UNTIL(puts.puts && prefix.puts);
    assert_int_equal(puts.last_at, outcome.reply.revision);
    assert_string_equal(puts.key, "w/1");
    assert_string_equal(puts.value, "one");
    assert_int_equal(do_txn(&outcome, del("w/1")), VIGIL_OK);
    UNTIL(deletions.deleted);
    assert_int_equal(deletions.last_at, outcome.reply.revision);
    assert_string_equal(deletions.key, "w/1");
    assert_int_equal(deletions.puts, 0);
    etcd_unwatch(etcd, &puts.watch);
    assert_null(puts.watch.pending);
    assert_int_equal(do_txn(&outcome, put("w/1", "two", 0)), VIGIL_OK);
    UNTIL(prefix.puts == 2);
    assert_int_equal(puts.puts, 1);
    assert_int_equal(prefix.deleted, 0);
    etcd_unwatch(etcd, &deletions.watch);
    etcd_unwatch(etcd, &prefix.watch);
}

/* Two changes of one transaction are one message: the watch ends at the first. */
static void unwatch_in_its_callback(void **state) {
    (void)state;
    struct witness witness;
    struct outcome outcome;
    witness_begin(&witness, "u/", "u0", false);
    witness.ends = true;
    UNTIL(witness.created);
    struct etcd_txn txn = put("u/1", "", 0);
    txn.then[1] = txn.then[0];
    txn.then[1].key = text("u/2");
    txn.then_count = 2;
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    UNTIL(witness.puts);
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_int_equal(witness.puts, 1);
    assert_null(witness.watch.pending);
}

static void many_watches(void **state) {
    (void)state;
    enum { MANY = 1000 };
    static struct witness witnesses[MANY];
    struct outcome outcome;
    for (int i = 0; i < MANY; i++) witness_begin(&witnesses[i], "mw", "", false);
    for (int i = 0; i < MANY; i++) UNTIL(witnesses[i].created);
    assert_int_equal(do_txn(&outcome, put("mw", "", 0)), VIGIL_OK);
    for (int i = 0; i < MANY; i++) UNTIL(witnesses[i].puts);
    for (int i = 0; i < MANY; i++) etcd_unwatch(etcd, &witnesses[i].watch);
}

/* Timers. */

static int due_count;

static void on_due(struct etcd_timer *timer) {
    assert_null(timer->pending);
    *(int *)timer->data = ++due_count;
}

static void timers(void **state) {
    (void)state;
    due_count = 0;
    int order[4] = {0};
    struct etcd_timer all[4];
    for (int i = 0; i < 4; i++) all[i] = (struct etcd_timer){.due = on_due, .data = &order[i]};
    int64_t now_ns = etcd_now_ns(etcd);
    etcd_timer(etcd, &all[0], now_ns + 30000000);
    etcd_timer(etcd, &all[1], now_ns + 20000000);
    etcd_timer(etcd, &all[2], now_ns + 10000000);
    etcd_timer(etcd, &all[3], now_ns + 5000000);
    etcd_timer(etcd, &all[2], now_ns + 40000000); /* later */
    etcd_timer(etcd, &all[3], ETCD_NEVER);
    assert_null(all[3].pending);
    UNTIL(due_count == 3);
    assert_true(etcd_now_ns(etcd) >= now_ns + 40000000);
    assert_int_equal(order[1], 1);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[2], 3);
    assert_int_equal(order[3], 0);
}

/* The end. */

static void close_ends_calls(void **state) {
    (void)state;
    struct outcome outcome;
    struct witness witness;
    struct etcd_txn txn = put("x", "", 0);
    etcd_txn(etcd, begin(&outcome), &txn, in_ns(PATIENT));
    witness_begin(&witness, "x", "", false);
    etcd_close(etcd);
    assert_int_equal(outcome.status, VIGIL_CANCELLED);
    assert_null(witness.watch.pending);
    assert_int_equal(witness.lost, 0);
    assert_int_equal(etcd_open(&etcd, agent, cluster_at(&cluster), NULL), VIGIL_OK);
}

static void close_in_callback(struct etcd_call *call, const struct etcd_reply *reply) {
    note(call, reply);
    etcd_close(etcd);
}

static void close_in_a_callback(void **state) {
    (void)state;
    struct outcome first, second;
    struct etcd_txn txn = put("x", "", 0);
    etcd_txn(etcd, begin(&first), &txn, in_ns(PATIENT));
    first.call.done = close_in_callback;
    etcd_txn(etcd, begin(&second), &txn, in_ns(PATIENT));
    UNTIL(first.calls && second.calls);
    assert_int_equal(etcd_open(&etcd, agent, cluster_at(&cluster), NULL), VIGIL_OK);
}

static void agent_ends_first(void **state) {
    (void)state;
    struct outcome outcome;
    struct etcd_txn txn = put("x", "", 0);
    etcd_txn(etcd, begin(&outcome), &txn, in_ns(PATIENT));
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
    assert_int_equal(outcome.status, VIGIL_CANCELLED);
    etcd_close(etcd);
    open_client(cluster_at(&cluster), NULL);
}

/* The same with locks: one is held, one is being released, and others wait in line, for the machine's and for the
 * cluster's; with waiters at a word, of which one is cancelled. All can be closed, and the next process, which is this
 * one, gets the lock. */

enum { OVER_LOCKS = 5 };

static void over_told(vigil_remote_lock *lock, int status, void *data) {
    (void)lock;
    *(int *)data = status;
}

static void over_done(int status, int64_t value, void *data) {
    (void)value;
    *(int *)data = status;
}

static void over_take(vigil_remote_lock *lock, unsigned how, int *status) {
    *status = 1000;
    assert_int_equal(vigil_remote_lock_take(lock, how, VIGIL_FOREVER, over_told, status), VIGIL_PENDING);
}

static void over_begin(vigil_remote *remote, vigil_remote_lock **locks, int *told, vigil_remote_wait **wait) {
    static const char *const names[OVER_LOCKS] = {"over", "over", "over", "over-shared", "over-shared"};
    for (int i = 0; i < OVER_LOCKS; i++)
        assert_int_equal(vigil_remote_lock_open(&locks[i], remote, names[i], NULL), VIGIL_OK);
    over_take(locks[0], 0, &told[0]);
    UNTIL(told[0] != 1000);
    assert_int_equal(told[0], VIGIL_OK);
    over_take(locks[1], 0, &told[1]);                  /* in the line of the machine */
    over_take(locks[2], VIGIL_NAMED_SHARED, &told[2]); /* of the cluster */
    over_take(locks[3], VIGIL_NAMED_SHARED, &told[3]);
    UNTIL(told[3] == VIGIL_OK);
    over_take(locks[4], 0, &told[4]);
    assert_int_equal(vigil_remote_word_wait(remote, "over", 0, VIGIL_FOREVER, over_done, &told[5], wait),
                     VIGIL_PENDING);
    for (int i = 0; i < 20; i++) {
        struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
        poll(&seat, 1, 10);
        vigil_agent_dispatch(agent);
    }
    assert_int_equal(vigil_remote_lock_release(locks[3], over_told, &told[3]), VIGIL_PENDING);
}

static void agent_ends_before_locks(void **state) {
    (void)state;
    int told[OVER_LOCKS + 1] = {0};
    vigil_remote *remote;
    vigil_remote_lock *locks[OVER_LOCKS];
    vigil_remote_wait *wait;
    const vigil_remote_options options = {.ttl_ns = 2 * SECOND};
    close_client();
    for (int round = 0; round < 2; round++) { /* the second one finds what the first has left */
        assert_int_equal(vigil_agent_create(&agent, 0), VIGIL_OK);
        assert_int_equal(vigil_remote_open(&remote, agent, cluster_at(&cluster), &options), VIGIL_OK);
        over_begin(remote, locks, told, &wait);
        assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
        assert_int_equal(vigil_remote_lock_release(locks[0], NULL, NULL), VIGIL_ECLOSING);
        assert_int_equal(vigil_remote_lock_take(locks[3], 0, 0, over_told, told), VIGIL_ECLOSING);
        assert_int_equal(vigil_remote_word_load(remote, "over", over_done, told), VIGIL_ECLOSING);
        assert_int_equal(vigil_remote_word_cancel(wait), VIGIL_OK);
        assert_int_equal(vigil_remote_close(remote), VIGIL_EBUSY);
        for (int i = 0; i < OVER_LOCKS; i++) assert_int_equal(vigil_remote_lock_close(locks[i], NULL, NULL), VIGIL_OK);
        assert_int_equal(vigil_remote_close(remote), VIGIL_OK);
    }
    open_client(cluster_at(&cluster), NULL);
}

static void bounds_of_ttl(void **state) {
    (void)state;
    static const struct {
        int64_t ttl_ns;
        int status;
    } bounds[] = {{-1, VIGIL_EINVAL},         {SECOND - 1, VIGIL_EINVAL},         {SECOND, VIGIL_OK},
                  {65535 * SECOND, VIGIL_OK}, {65535 * SECOND + 1, VIGIL_ERANGE}, {INT64_MAX, VIGIL_ERANGE}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        vigil_remote_options options = {.ttl_ns = bounds[i].ttl_ns};
        vigil_remote *remote = NULL;
        assert_int_equal(vigil_remote_open(&remote, agent, cluster_at(&cluster), &options), bounds[i].status);
        if (remote) assert_int_equal(vigil_remote_close(remote), VIGIL_OK);
    }
}

/* Without a loop of the caller's: a pending call keeps vigil_agent_run going, and nothing else does. */
static void run(void **state) {
    (void)state;
    struct outcome outcome;
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    struct etcd_txn txn = put("run", "x", 0);
    etcd_txn(etcd, begin(&outcome), &txn, in_ns(PATIENT));
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(outcome.status, VIGIL_OK);
    struct witness witness;
    witness_begin(&witness, "run", "", false);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    etcd_unwatch(etcd, &witness.watch);
}

/* The child closes its copy; the parent's connection, timers and watches go on. */
static void fork_and_close(void **state) {
    (void)state;
    struct outcome outcome, pending;
    struct witness witness;
    witness_begin(&witness, "fork", "", false);
    UNTIL(witness.created);
    struct etcd_txn txn = put("pending", "x", 0);
    etcd_txn(etcd, begin(&pending), &txn, in_ns(PATIENT));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        etcd_close(etcd);
        _exit(pending.status == VIGIL_CANCELLED && vigil_agent_destroy(agent) == VIGIL_OK ? 0 : 1);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_int_equal(end(&pending), VIGIL_OK);
    assert_int_equal(do_txn(&outcome, put("fork", "x", 0)), VIGIL_OK);
    UNTIL(witness.puts);
    assert_int_equal(witness.lost, 0);
    etcd_unwatch(etcd, &witness.watch);
}

int main(void) {
    if (!cluster_etcd()) {
        puts("skipped: no etcd");
        return 77;
    }
    if (!cluster_start(&cluster, 1, NULL)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(transactions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cancelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_replies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(watch_puts_and_deletions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unwatch_in_its_callback, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_watches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(timers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(close_ends_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(close_in_a_callback, set_up, tear_down),
        cmocka_unit_test_setup_teardown(agent_ends_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(agent_ends_before_locks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_of_ttl, set_up, tear_down),
        cmocka_unit_test_setup_teardown(run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(fork_and_close, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cluster_stop(&cluster);
    return failed;
}
