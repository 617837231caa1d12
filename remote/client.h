/* SPDX-License-Identifier: MIT */
/*
 * client.h - inside struct etcd: the link to one of the endpoints (link.c), calls (calls.c), watches (watches.c).
 *
 * The link is up, or on its way. Calls and watches that are begun while it is not wait for it. A call that waits ends
 * when each of the endpoints has failed since it was begun: each failure has a number, and each call that of the last
 * failure before it.
 */
#ifndef VIGIL_REMOTE_CLIENT_H
#define VIGIL_REMOTE_CLIENT_H

#include "endpoints.h"
#include "etcd.h"
#include "etcd.pb-c.h"
#include "grpc.h"

enum call_kind { CALL_TXN, CALL_GRANT, CALL_REVOKE, CALL_RENEW, CALL_TIME_TO_LIVE, CALL_STATUS };

struct call {
    struct http2_stream stream; /* first */
    struct etcd *etcd;
    struct etcd_call *user;
    enum call_kind kind;
    bool reads;                           /* it changes nothing: if the connection is lost, it is sent again */
    bool stale;                           /* a serializable read: no leader is needed */
    unsigned then_count, otherwise_count; /* how many results a transaction must have */
    unsigned retries;
    struct bytes request; /* to be sent, perhaps again */
    int64_t deadline_ns;
    struct loop_timer deadline;
    uint64_t begun_after; /* the number of the last failure before */
    int status;           /* in the list of those that end */
    bool maybe_done;
    struct call *next, **link;
};

/* A list whose members know where they are linked. */
struct call_list {
    struct call *first, **last;
};

struct watch {
    struct etcd *etcd;
    struct etcd_watch *user;
    int64_t id; /* 0: it has not been sent yet */
    bool created, deletions;
    struct bytes key, range_end;
    struct watch *next, **link;
};

#define WATCH_HEADS 64u

enum link_state { LINK_DOWN, LINK_RESOLVING, LINK_CONNECTING, LINK_AUTHENTICATING, LINK_CHECKING, LINK_UP };

struct etcd {
    struct loop loop; /* first */
    bool closed;

    /* link.c */
    enum link_state state;
    struct endpoint *endpoints;
    size_t endpoint_count, endpoint, address;
    bool again;        /* this address is tried a second time */
    bool proven;       /* this connection has brought a reply */
    int64_t tried_ns;  /* when this address was tried */
    uint64_t failures; /* in all */
    unsigned failures_in_turn, unavailable_in_turn;
    struct resolver resolver;
    struct http2 *http2;
    struct loop_timer retry;
    SSL_CTX *tls;
    char tls_why[256]; /* the files for TLS cannot be used; "": they can */
    char *user, *password, *token;
    struct http2_stream login; /* and of the check, which comes after it */
    bool login_pending;
    uint64_t cluster; /* of the endpoint that was the first to reply; 0: none has yet */
    size_t cluster_endpoint;

    /* calls.c */
    struct call_list waiting, sent, ending;
    size_t call_count;

    /* watches.c */
    struct watch *watches[WATCH_HEADS], *unsent, *lost;
    size_t watch_count;
    int64_t last_watch;
    struct http2_stream watching; /* the stream of all watches */
    bool watching_pending;

    /* client.c: calls and watches for which there was no memory. Their `pending` points to the client. */
    struct etcd_call *failed_calls;
    struct etcd_watch *failed_watches;
    struct loop_timer failure;

    uint64_t random;
    int status; /* the last error */
    char why[700];
};

/* client.c */
void client_fail_call(struct etcd *etcd, struct etcd_call *call);
void client_fail_watch(struct etcd *etcd, struct etcd_watch *watch);
void client_drop_call(struct etcd *etcd, struct etcd_call *call);
void client_drop_watch(struct etcd *etcd, struct etcd_watch *watch);
/* A call is pending; or not any more. */
void client_count_call(struct etcd *etcd, int change);

/* link.c */
int link_open(struct etcd *etcd, const char *at, const vigil_remote_options *options);
void link_close(struct etcd *etcd);
/* The connection is of no use any more. Calls end or wait, watches are lost, and the next endpoint is tried. */
void link_give_up(struct etcd *etcd, int status, const char *why, bool failed);
/* The token is not valid any more. */
void link_login_again(struct etcd *etcd);
const char *link_name(const struct etcd *etcd);
void link_note_error(struct etcd *etcd, int status, const char *why);
void link_tell_busy(struct etcd *etcd);

/* calls.c */
void calls_init(struct etcd *etcd);
/* A member that replies so to CALL_STATUS can be used: VIGIL_OK. Else why not. */
int calls_judge_member(const struct etcd *etcd, const struct bytes *in, char *why, size_t size);
void calls_send_waiting(struct etcd *etcd);
/* All that were sent: those that the server may have received end, the others wait again. */
void calls_lose_link(struct etcd *etcd, int status);
/* Those that have seen each endpoint fail. */
void calls_end_failed(struct etcd *etcd, int status);
void calls_end_all(struct etcd *etcd, int status);

/* watches.c */
void watches_send_waiting(struct etcd *etcd);
void watches_lose_link(struct etcd *etcd);
void watches_end_all(struct etcd *etcd);

#endif
