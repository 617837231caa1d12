/* SPDX-License-Identifier: MIT */
/* A connection that has no more numbers for streams, after 2^30 requests: calls and watches go on with a new one. */
#include "support.h"

#include <nghttp2/nghttp2.h>

static struct cluster cluster;
static bool next_is_last; /* the next stream gets the last number */

int32_t __real_nghttp2_submit_request(nghttp2_session *session, const nghttp2_priority_spec *priority,
                                      const nghttp2_nv *headers, size_t count, const nghttp2_data_provider *provider,
                                      void *data);
int32_t __wrap_nghttp2_submit_request(nghttp2_session *session, const nghttp2_priority_spec *priority,
                                      const nghttp2_nv *headers, size_t count, const nghttp2_data_provider *provider,
                                      void *data);

int32_t __wrap_nghttp2_submit_request(nghttp2_session *session, const nghttp2_priority_spec *priority,
                                      const nghttp2_nv *headers, size_t count, const nghttp2_data_provider *provider,
                                      void *data) {
    if (next_is_last) assert_int_equal(nghttp2_session_set_next_stream_id(session, INT32_MAX), 0);
    next_is_last = false;
    return __real_nghttp2_submit_request(session, priority, headers, count, provider, data);
}

struct witness {
    struct etcd_watch watch;
    int created, puts, lost;
};

static void witness_told(struct etcd_watch *watch, enum etcd_news news, const struct etcd_pair *pair,
                         int64_t revision) {
    struct witness *witness = watch->data;
    (void)pair, (void)revision;
    witness->created += news == ETCD_WATCH_CREATED;
    witness->puts += news == ETCD_WATCH_PUT;
    witness->lost += news == ETCD_WATCH_LOST;
    if (news == ETCD_WATCH_LOST) etcd_watch(etcd, watch, text("s"), text(""), false);
}

static void go_on(void **state) {
    (void)state;
    struct outcome one, two, outcome;
    struct etcd_txn txn = put("s", "x", 0);
    next_is_last = true;
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    assert_false(next_is_last);
    etcd_txn(etcd, begin(&one), &txn, in_ns(PATIENT));
    etcd_txn(etcd, begin(&two), &txn, in_ns(PATIENT));
    assert_int_equal(end(&one), VIGIL_OK);
    assert_int_equal(end(&two), VIGIL_OK);
}

/* The stream of all watches is one more. */
static void watch_on(void **state) {
    (void)state;
    struct outcome outcome;
    struct witness witness = {.watch = {.told = witness_told, .data = &witness}};
    next_is_last = true;
    assert_int_equal(do_txn(&outcome, put("s", "x", 0)), VIGIL_OK);
    etcd_watch(etcd, &witness.watch, text("s"), text(""), false);
    UNTIL(witness.created);
    assert_int_equal(do_txn(&outcome, put("s", "y", 0)), VIGIL_OK);
    UNTIL(witness.puts);
    assert_int_equal(witness.lost, 1);
    etcd_unwatch(etcd, &witness.watch);
}

int main(void) {
    if (!cluster_etcd()) {
        puts("skipped: no etcd");
        return 77;
    }
    if (!cluster_start(&cluster, 1, NULL)) return 1;
    open_client(cluster_at(&cluster), NULL);
    await_leader();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(go_on),
        cmocka_unit_test(watch_on),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_client();
    cluster_stop(&cluster);
    return failed;
}
