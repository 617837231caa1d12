/* SPDX-License-Identifier: MIT */
/*
 * endpoints.h - where the servers of a cluster are: a list of names, and their addresses.
 *
 * Addresses are found without a blocking call and without a thread. Numeric ones, and localhost, need no search. For
 * others c-ares asks the name servers, and reads /etc/hosts, on the loop.
 */
#ifndef VIGIL_REMOTE_ENDPOINTS_H
#define VIGIL_REMOTE_ENDPOINTS_H

#include <ares.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "loop.h"

#define ENDPOINT_PORT 2379

struct endpoint {
    char name[280]; /* "host:port", "[host]:port" */
    char host[256]; /* without brackets */
    uint16_t port;
    bool tls;
    uint64_t failed_at; /* client.c: the number of the last failure that was this endpoint's */
};

/*
 * Lists such as "etcd://h1:2379,[::1]:2379/what-follows", "http://h1:2379,http://h2:2379", "h1,h2". A scheme is valid
 * for the names that follow. `tls`: those of etcd:// and without a scheme; https:// is always TLS, http:// never.
 * Returns VIGIL_OK, VIGIL_EINVAL or VIGIL_ENOMEM.
 */
int endpoints_parse(struct endpoint **list, size_t *count, const char *at, bool tls);

#define RESOLVER_ADDRESSES 8
#define RESOLVER_SOCKETS   16
struct resolver {
    struct loop *loop;
    void (*done)(struct resolver *resolver); /* if resolver_begin has returned false */
    struct sockaddr_storage addresses[RESOLVER_ADDRESSES];
    socklen_t lengths[RESOLVER_ADDRESSES];
    size_t count; /* 0: see `why` */
    bool no_memory;
    char why[128];
    /* endpoints.c's */
    ares_channel channel; /* null: no search */
    bool found;
    struct loop_timer timer;
    struct resolver_socket {
        vigil_watch watch;
        struct resolver *resolver;
    } sockets[RESOLVER_SOCKETS];
};

/* True: the addresses are there. */
bool resolver_begin(struct resolver *resolver, const struct endpoint *endpoint);
void resolver_end(struct resolver *resolver);

#endif
