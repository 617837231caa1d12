/* SPDX-License-Identifier: MIT */
/* remote.h - what the parts of libvigil-etcd share. */
#ifndef VIGIL_REMOTE_INSIDE_H
#define VIGIL_REMOTE_INSIDE_H

#include "etcd.h"
#include "place.h"

#define REMOTE_TTL_S    10
#define REMOTE_CALL_NS  INT64_C(5000000000)  /* how long a single call may take */
#define REMOTE_REACH_NS INT64_C(20000000000) /* the first one, which waits for names that are not known to be refused */

struct vigil_remote {
    struct etcd *etcd;
    vigil_agent *agent;
    uint16_t ttl_s;
    uint64_t cluster; /* its number, which every reply has; 0: none has come yet */
    unsigned open;    /* locks, and calls that are pending */
};

/* Something of the cluster is open, or pending: keep the agent going. */
void remote_begin(struct vigil_remote *remote, bool keeps_going);
void remote_end(struct vigil_remote *remote, bool keeps_going);
/* The agent alone; nothing if it has been destroyed. */
void remote_keep_going(struct vigil_remote *remote);
void remote_let_end(struct vigil_remote *remote);

bool remote_name_is_good(const char *name);
struct etcd_bytes remote_bytes(const char *text);
bool remote_is_number(const struct etcd_bytes *text, int64_t *number);
int64_t remote_number(const struct etcd_bytes *text); /* 0: it is none */

/* What others see: "host pid time text", and back. */
void remote_describe(char text[PLACE_TEXT], uint32_t pid, int64_t time_s, const char *what);
void remote_read_holder(const char *text, size_t length, vigil_remote_holder *holder);

#ifdef VIGIL_REMOTE_BUGS
void remote_forget(vigil_remote_lock *lock); /* free its memory, and no more: for the search of test/remote */
#endif

#endif
