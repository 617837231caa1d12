/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "endpoints.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <vigil/status.h>

#define RESOLVER_TIMEOUT_MS 1000
#define RESOLVER_TRIES      2

/* Lists. */

static bool endpoint_scheme(const char **at, bool tls_else, bool *tls) {
    static const char *const schemes[] = {"etcd://", "http://", "https://"};
    for (unsigned i = 0; i < 3; i++) {
        if (strncasecmp(*at, schemes[i], strlen(schemes[i])) != 0) continue;
        *at += strlen(schemes[i]);
        *tls = i == 0 ? tls_else : i == 2;
        return true;
    }
    return !strstr(*at, "://") || strcspn(*at, ",/") < (size_t)(strstr(*at, "://") - *at);
}

static bool endpoint_host(const char **at, struct endpoint *endpoint) {
    bool bracket = **at == '[';
    if (bracket) ++*at;
    size_t length = strcspn(*at, bracket ? "]" : ":,/");
    if (!length || length >= sizeof endpoint->host) return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)(*at)[i] <= ' ' || (*at)[i] == '@') return false;
    memcpy(endpoint->host, *at, length);
    endpoint->host[length] = 0;
    *at += length;
    if (!bracket) return true;
    struct in6_addr address;
    return *(*at)++ == ']' && inet_pton(AF_INET6, endpoint->host, &address) == 1;
}

static bool endpoint_port(const char **at, struct endpoint *endpoint) {
    endpoint->port = ENDPOINT_PORT;
    if (**at != ':') return true;
    unsigned port = 0;
    const char *digits = ++*at;
    for (; **at >= '0' && **at <= '9' && port <= 65535; ++*at) port = port * 10 + (unsigned)(**at - '0');
    endpoint->port = (uint16_t)port;
    return *at > digits && port > 0 && port <= 65535;
}

static bool endpoint_parse(const char **at, struct endpoint *endpoint) {
    if (!endpoint_host(at, endpoint) || !endpoint_port(at, endpoint)) return false;
    bool bracket = strchr(endpoint->host, ':');
    snprintf(endpoint->name, sizeof endpoint->name, "%s%s%s:%u", bracket ? "[" : "", endpoint->host, bracket ? "]" : "",
             endpoint->port);
    if (**at == '/' && (*at)[1] == ',') ++*at;
    return !**at || **at == ',' || **at == '/';
}

int endpoints_parse(struct endpoint **list, size_t *count, const char *at, bool tls) {
    bool tls_now = tls;
    *list = NULL;
    *count = 0;
    for (;; at++) {
        struct endpoint *more = realloc(*list, (*count + 1) * sizeof **list);
        if (more) *list = more;
        bool good = more && endpoint_scheme(&at, tls, &tls_now);
        if (good) {
            more[*count] = (struct endpoint){.tls = tls_now};
            good = endpoint_parse(&at, &more[*count]);
        }
        if (!good) {
            free(*list);
            *list = NULL;
            return more ? VIGIL_EINVAL : VIGIL_ENOMEM;
        }
        ++*count;
        if (*at != ',') return VIGIL_OK;
    }
}

/* Addresses. */

static void resolver_add(struct resolver *resolver, int family, const void *address, uint16_t port) {
    if (resolver->count == RESOLVER_ADDRESSES) return;
    struct sockaddr_storage *storage = &resolver->addresses[resolver->count];
    memset(storage, 0, sizeof *storage);
    if (family == AF_INET) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&in.sin_addr, address, sizeof in.sin_addr);
        memcpy(storage, &in, sizeof in);
        resolver->lengths[resolver->count++] = sizeof in;
    } else if (family == AF_INET6) {
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        memcpy(&in6.sin6_addr, address, sizeof in6.sin6_addr);
        memcpy(storage, &in6, sizeof in6);
        resolver->lengths[resolver->count++] = sizeof in6;
    }
}

static bool resolver_knows(struct resolver *resolver, const struct endpoint *endpoint) {
    struct in_addr in;
    struct in6_addr in6;
    if (inet_pton(AF_INET, endpoint->host, &in) == 1) {
        resolver_add(resolver, AF_INET, &in, endpoint->port);
    } else if (inet_pton(AF_INET6, endpoint->host, &in6) == 1) {
        resolver_add(resolver, AF_INET6, &in6, endpoint->port);
    } else if (strcasecmp(endpoint->host, "localhost") == 0) {
        in.s_addr = htonl(INADDR_LOOPBACK);
        in6 = in6addr_loopback;
        resolver_add(resolver, AF_INET, &in, endpoint->port);
        resolver_add(resolver, AF_INET6, &in6, endpoint->port);
    }
    return resolver->count;
}

static void resolver_fail(struct resolver *resolver, int error) {
    resolver->no_memory = error == ARES_ENOMEM;
    snprintf(resolver->why, sizeof resolver->why, "its address is not known: %s", ares_strerror(error));
}

/* c-ares must not be ended in a callback of its own: the result is told by the timer. */
static void resolver_on_result(void *data, int status, int timeouts, struct ares_addrinfo *result) {
    (void)timeouts;
    if (status == ARES_EDESTRUCTION) return;
    struct resolver *resolver = data;
    for (struct ares_addrinfo_node *node = result ? result->nodes : NULL; node; node = node->ai_next) {
        const void *address = node->ai_family == AF_INET
                                  ? (const void *)&((struct sockaddr_in *)(void *)node->ai_addr)->sin_addr
                                  : (const void *)&((struct sockaddr_in6 *)(void *)node->ai_addr)->sin6_addr;
        uint16_t port = node->ai_family == AF_INET ? ((struct sockaddr_in *)(void *)node->ai_addr)->sin_port
                                                   : ((struct sockaddr_in6 *)(void *)node->ai_addr)->sin6_port;
        resolver_add(resolver, node->ai_family, address, ntohs(port));
    }
    if (result) ares_freeaddrinfo(result);
    if (!resolver->count) resolver_fail(resolver, status);
    resolver->found = true;
}

static void resolver_go_on(struct resolver *resolver) {
    struct timeval most = {.tv_sec = RESOLVER_TIMEOUT_MS / 1000}, room;
    const struct timeval *wait = ares_timeout(resolver->channel, &most, &room); /* one of the two */
    int64_t wait_ns = resolver->found ? 0 : wait->tv_sec * NS_PER_S + wait->tv_usec * INT64_C(1000);
    loop_set(resolver->loop, &resolver->timer, loop_now_ns() + wait_ns);
}

static void resolver_on_time(struct loop_timer *timer) {
    struct resolver *resolver = (struct resolver *)(void *)((char *)timer - offsetof(struct resolver, timer));
    if (!resolver->found) ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    if (!resolver->found) {
        resolver_go_on(resolver);
        return;
    }
    resolver_end(resolver);
    resolver->done(resolver);
}

static void resolver_on_ready(vigil_watch *watch, unsigned events) {
    struct resolver_socket *self = watch->data;
    struct resolver *resolver = self->resolver;
    if (!events) return; /* the agent ends, and the loop tells that */
    loop_enter(resolver->loop);
    ares_process_fd(resolver->channel, events & VIGIL_READABLE ? watch->fd : ARES_SOCKET_BAD,
                    events & VIGIL_WRITABLE ? watch->fd : ARES_SOCKET_BAD);
    resolver_go_on(resolver);
    loop_leave(resolver->loop);
}

/* c-ares opens and closes its sockets itself. */
static void resolver_on_socket(void *data, ares_socket_t fd, int readable, int writable) {
    struct resolver *resolver = data;
    struct resolver_socket *self = NULL;
    for (unsigned i = 0; i < RESOLVER_SOCKETS; i++) {
        struct resolver_socket *each = &resolver->sockets[i];
        if (each->watch.agent && each->watch.fd == fd) self = each;
        if (!each->watch.agent && !self) self = each;
        if (each->watch.agent && each->watch.fd == fd) break;
    }
    if (!self) return; /* one too many: its query ends by its timeout */
    unsigned events = (readable ? VIGIL_READABLE : 0) | (writable ? VIGIL_WRITABLE : 0);
    if (!events) {
        if (self->watch.agent) vigil_agent_unwatch(&self->watch);
        return;
    }
    self->resolver = resolver;
    self->watch.data = self;
    vigil_agent_watch(resolver->loop->agent, &self->watch, fd, events, resolver_on_ready);
}

static bool resolver_search(struct resolver *resolver, const struct endpoint *endpoint) {
    struct ares_options options = {.timeout = RESOLVER_TIMEOUT_MS,
                                   .tries = RESOLVER_TRIES,
                                   .sock_state_cb = resolver_on_socket,
                                   .sock_state_cb_data = resolver};
    int error = ares_library_init(ARES_LIB_INIT_ALL);
    if (!error)
        error = ares_init_options(&resolver->channel, &options,
                                  ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
    if (error) {
        resolver->channel = NULL;
        resolver_fail(resolver, error);
        return true;
    }
    char port[8];
    snprintf(port, sizeof port, "%u", endpoint->port);
    struct ares_addrinfo_hints hints = {
        .ai_flags = ARES_AI_NUMERICSERV, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    ares_getaddrinfo(resolver->channel, endpoint->host, port, &hints, resolver_on_result, resolver);
    resolver_go_on(resolver);
    return false;
}

bool resolver_begin(struct resolver *resolver, const struct endpoint *endpoint) {
    resolver_end(resolver);
    resolver->count = 0;
    resolver->found = resolver->no_memory = false;
    resolver->why[0] = 0;
    resolver->timer.due = resolver_on_time;
    return resolver_knows(resolver, endpoint) || resolver_search(resolver, endpoint);
}

void resolver_end(struct resolver *resolver) {
    loop_set(resolver->loop, &resolver->timer, LOOP_NEVER);
    if (resolver->channel) ares_destroy(resolver->channel);
    resolver->channel = NULL;
}
