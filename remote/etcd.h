/* SPDX-License-Identifier: MIT */
/*
 * etcd.h - what the recipes need of etcd, and of time: calls, watches, leases, timers.
 *
 * client.c implements this over gRPC, on an agent; test/remote/model.c by a model of etcd, in simulated time. All is on
 * one thread. No function here calls a callback before it returns, except etcd_close.
 *
 * A call ends exactly once, by its callback, unless it is cancelled. It ends with
 *
 *     VIGIL_OK            the reply is there
 *     VIGIL_TIMED_OUT     no reply by its deadline
 *     VIGIL_EUNREACHABLE  no endpoint could be reached, or the connection was lost, or the cluster has no leader
 *     VIGIL_EREFUSED      the cluster has refused this user, password or certificate, or we its certificate
 *     VIGIL_EPROTOCOL     what replied is not etcd, or a version that lacks what we need
 *     VIGIL_ENOTFOUND     lease: there is none with that number (any more); also for a put with such a lease
 *     VIGIL_EEXISTS       grant: there is a lease with that number
 *     VIGIL_ENOMEM        there is no memory for it, or for its reply
 *     VIGIL_CANCELLED     etcd_close
 *
 * `maybe_done` of the reply says whether the cluster may have carried out a call that did not end with VIGIL_OK, now or
 * later: false only if it was never sent, or the cluster has said that it did not. The text of etcd_why explains the
 * last error. A call that is made while there is no connection waits for one until its deadline; but if every endpoint
 * has refused or failed since then, it ends with the error of the last. So does a call that changes nothing and whose
 * connection is lost: it is made again.
 *
 * Without memory, a call ends with VIGIL_ENOMEM, and a watch is lost; both are told soon, from the loop. Timers need
 * none.
 */
#ifndef VIGIL_REMOTE_ETCD_H
#define VIGIL_REMOTE_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vigil/remote.h>

#include "loop.h"

#define ETCD_NEVER INT64_MAX

struct etcd;

/* Text with its length: keys and values are bytes. */
struct etcd_bytes {
    const void *data;
    size_t length;
};

struct etcd_pair {
    struct etcd_bytes key, value;
    int64_t create_revision, mod_revision, lease;
};

/* Transactions. `range_end` empty: the one key; else the keys from `key` up to it. */
enum etcd_target { ETCD_CREATE_REVISION, ETCD_MOD_REVISION, ETCD_VALUE };
enum etcd_relation { ETCD_EQUAL, ETCD_GREATER, ETCD_LESS, ETCD_NOT_EQUAL };
struct etcd_compare {
    struct etcd_bytes key, range_end;
    enum etcd_target target;
    enum etcd_relation relation;
    int64_t revision;
    struct etcd_bytes value; /* ETCD_VALUE */
};

enum etcd_action { ETCD_RANGE, ETCD_PUT, ETCD_DELETE };
enum etcd_order { ETCD_BY_KEY, ETCD_OLDEST_FIRST, ETCD_NEWEST_FIRST }; /* by create_revision */
struct etcd_operation {
    enum etcd_action action;
    struct etcd_bytes key, range_end;
    struct etcd_bytes value; /* PUT */
    int64_t lease;           /* PUT; 0: none */
    enum etcd_order order;   /* RANGE */
    int64_t limit;           /* RANGE; 0: all */
    int64_t created_before;  /* RANGE: only keys whose create_revision is less; 0: all */
    bool serializable;       /* RANGE: by any member, perhaps stale. Only in a transaction of ranges alone */
};

#define ETCD_COMPARES   4
#define ETCD_OPERATIONS 16
struct etcd_txn {
    struct etcd_compare compares[ETCD_COMPARES];
    struct etcd_operation then[ETCD_OPERATIONS], otherwise[ETCD_OPERATIONS];
    unsigned compare_count, then_count, otherwise_count;
};

/* The result of one operation: RANGE: the pairs, and how many there are in all; DELETE: how many were deleted. */
struct etcd_result {
    const struct etcd_pair *pairs;
    size_t pair_count;
    int64_t count;
};

/* What a call is told. Everything it points to is the library's, and valid during the callback only. */
struct etcd_reply {
    int status;
    bool maybe_done;
    uint64_t cluster;
    int64_t revision;
    bool succeeded; /* transaction: `then` was carried out */
    struct etcd_result results[ETCD_OPERATIONS];
    unsigned result_count;
    int64_t ttl_s; /* lease: granted, or left; 0: it has expired */
    /* status of the member that replied */
    const char *version;
    uint64_t leader, member;
    int64_t database_bytes;
    unsigned alarms;
};

/* A call, owned by the caller, zeroed before its first use, and not moved while it is pending. */
struct etcd_call {
    void (*done)(struct etcd_call *call, const struct etcd_reply *reply);
    void *data;
    void *pending;   /* the implementation's; null: not pending */
    int64_t sent_ns; /* etcd_now_ns when it was sent, or before that */
    struct etcd_call *next; /* the implementation's */
};

/* `deadline_ns` as of etcd_now_ns. */
void etcd_txn(struct etcd *etcd, struct etcd_call *call, const struct etcd_txn *txn, int64_t deadline_ns);
void etcd_grant(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t ttl_s, int64_t deadline_ns);
void etcd_revoke(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t deadline_ns);
void etcd_renew(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t deadline_ns);
void etcd_time_to_live(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t deadline_ns);
void etcd_status(struct etcd *etcd, struct etcd_call *call, int64_t deadline_ns);
/* No callback any more; the cluster may carry it out all the same. Nothing if it is not pending. */
void etcd_cancel(struct etcd *etcd, struct etcd_call *call);

/*
 * A watch reports every change from the moment at which it is created. It is not resumed: if it may have missed
 * something (the connection was lost, the cluster has no leader, or has compacted its history), it ends with
 * ETCD_WATCH_LOST, and its owner looks at the keys and watches anew. If the connection is lost, the new watch waits for
 * the next one.
 */
enum etcd_news { ETCD_WATCH_CREATED, ETCD_WATCH_PUT, ETCD_WATCH_DELETED, ETCD_WATCH_LOST };
struct etcd_watch {
    /* `pair`: PUT: as it is now; DELETED: its key, and in mod_revision the revision of the deletion. `revision`: of
     * the news; CREATED: what happens later is reported. */
    void (*told)(struct etcd_watch *watch, enum etcd_news news, const struct etcd_pair *pair, int64_t revision);
    void *data;
    void *pending; /* the implementation's; null: it does not watch */
    struct etcd_watch *next; /* the implementation's */
};
/* `deletions`: deletions only; else puts only. */
void etcd_watch(struct etcd *etcd, struct etcd_watch *watch, struct etcd_bytes key, struct etcd_bytes range_end,
                bool deletions);
/* Nothing if it does not watch. It is told nothing any more. */
void etcd_unwatch(struct etcd *etcd, struct etcd_watch *watch);

/* Time that goes on while the machine sleeps (CLOCK_BOOTTIME), and timers. */
int64_t etcd_now_ns(struct etcd *etcd);
struct etcd_timer {
    void (*due)(struct etcd_timer *timer);
    void *data;
    void *pending; /* the implementation's; null: it is not set */
    struct loop_timer timer; /* the implementation's */
};
/* Sets it, also if it is set already. ETCD_NEVER: it is not set any more. */
void etcd_timer(struct etcd *etcd, struct etcd_timer *timer, int64_t at_ns);

uint64_t etcd_random(struct etcd *etcd);

/* What the last error was: a sentence with the endpoint. "": none since the last reply. */
const char *etcd_why(const struct etcd *etcd);

/* The connection. `at`: "etcd://host:port,host:port/"; what follows the slash is not looked at. */
int etcd_open(struct etcd **etcd, vigil_agent *agent, const char *at, const vigil_remote_options *options);
/* Ends every call with VIGIL_CANCELLED and every watch without news. */
void etcd_close(struct etcd *etcd);
/* The agent has been destroyed, which ends calls and watches like etcd_close, also those that callbacks begin then. Of
 * what is begun later nothing is heard before etcd_close. */
bool etcd_is_over(const struct etcd *etcd);

#endif
