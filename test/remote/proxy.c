/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "proxy.h"

#include <arpa/inet.h>
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in proxy_address(int port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Waits until one of them is readable; 0: the proxy is to stop. */
static int proxy_await(const struct proxy *proxy, int a, int b) {
    struct pollfd fds[] = {
        {.fd = proxy->stop[0], .events = POLLIN}, {.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    while (poll(fds, 3, -1) < 0) continue;
    if (fds[0].revents) return 0;
    return fds[1].revents ? 1 : 2;
}

static bool proxy_write(int fd, const char *data, size_t length, bool drip) {
    for (size_t i = 0; i < length;) {
        ssize_t written = send(fd, data + i, drip ? 1 : length - i, MSG_NOSIGNAL);
        if (written <= 0) return false;
        i += (size_t)written;
    }
    return true;
}

/* What the server has said, spoiled. False: the connection ends. */
static bool proxy_spoil(const struct proxy *proxy, int client, char *data, size_t length, long said) {
    long left = __atomic_load_n(&proxy->at, __ATOMIC_RELAXED) - said;
    if (proxy->mode == PROXY_FLIP && left >= 0 && left < (long)length) data[left] = (char)~data[left];
    if (proxy->mode == PROXY_SILENCE || proxy->mode == PROXY_CUT) {
        size_t most = left > 0 ? (size_t)left : 0;
        bool over = length >= most;
        if (length > most) length = most;
        if (!proxy_write(client, data, length, false)) return false;
        return !(over && proxy->mode == PROXY_CUT);
    }
    return proxy_write(client, data, length, proxy->mode == PROXY_DRIP);
}

static void proxy_pass(struct proxy *proxy, int client) {
    struct sockaddr_in address = proxy_address(proxy->server_port);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    bool good = connect(server, (struct sockaddr *)&address, sizeof address) == 0;
    long said = 0;
    char data[65536];
    while (good) {
        int which = proxy_await(proxy, client, server);
        ssize_t length = which ? recv(which == 1 ? client : server, data, sizeof data, 0) : 0;
        if (length <= 0) break;
        if (which == 1) {
            good = proxy_write(server, data, (size_t)length, proxy->mode == PROXY_DRIP);
        } else {
            good = proxy_spoil(proxy, client, data, (size_t)length, said);
            said += length;
            __atomic_store_n(&proxy->said, said, __ATOMIC_RELAXED);
        }
    }
    close(server);
}

static bool proxy_read(const struct proxy *proxy, int client, void *data, size_t length) {
    for (size_t i = 0; i < length;) {
        ssize_t read = proxy_await(proxy, client, -1) ? recv(client, (char *)data + i, length - i, 0) : 0;
        if (read <= 0) return false;
        i += (size_t)read;
    }
    return true;
}

/* What ends a stream of the client's is ended with text2. */
static void proxy_refuse(const struct proxy *proxy, int client) {
    unsigned char preface[24], header[9], payload[65536], reply[512];
    bool good = proxy_read(proxy, client, preface, sizeof preface) &&
                proxy_write(client, proxy->text, proxy->text_length, false);
    while (good && proxy_read(proxy, client, header, sizeof header)) {
        size_t length = (size_t)header[0] << 16 | (size_t)header[1] << 8 | header[2];
        if (length > sizeof payload || !proxy_read(proxy, client, payload, length)) break;
        bool ends = header[3] <= 1 && header[4] & 1; /* DATA, HEADERS; END_STREAM */
        if (!ends) continue;
        memcpy(reply, proxy->text2, proxy->text2_length);
        memcpy(reply + 5, header + 5, 4);
        good = proxy_write(client, (char *)reply, proxy->text2_length, false);
    }
}

static void proxy_serve(struct proxy *proxy, int client) {
    char data[4096];
    bool first = __atomic_load_n(&proxy->connections, __ATOMIC_RELAXED) == 1;
    bool mute = proxy->mode == PROXY_MUTE || (proxy->mode == PROXY_LATE && first);
    if (proxy->mode < PROXY_MUTE && !mute) {
        proxy_pass(proxy, client);
    } else if (mute) {
        while (proxy_await(proxy, client, -1) && recv(client, data, sizeof data, 0) > 0) continue;
    } else if (proxy->mode == PROXY_REFUSE) {
        proxy_refuse(proxy, client);
    } else if (proxy_await(proxy, client, -1) && recv(client, data, sizeof data, 0) > 0 && proxy->mode == PROXY_SAY) {
        proxy_write(client, proxy->text, proxy->text_length, false);
        if (proxy->text2 && proxy_await(proxy, client, -1) && recv(client, data, sizeof data, 0) > 0)
            proxy_write(client, proxy->text2, proxy->text2_length, false);
        shutdown(client, SHUT_WR);
        while (proxy_await(proxy, client, -1) && recv(client, data, sizeof data, 0) > 0) continue;
    }
}

static void *proxy_main(void *argument) {
    struct proxy *proxy = argument;
    while (proxy_await(proxy, proxy->listener, -1)) {
        int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) continue;
        __atomic_fetch_add(&proxy->connections, 1, __ATOMIC_RELAXED);
        proxy_serve(proxy, client);
        close(client);
    }
    return NULL;
}

void proxy_start(struct proxy *proxy) {
    struct sockaddr_in address = proxy_address(0);
    socklen_t length = sizeof address;
    proxy->connections = 0;
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int good = bind(proxy->listener, (struct sockaddr *)&address, sizeof address) == 0 &&
               listen(proxy->listener, 16) == 0 &&
               getsockname(proxy->listener, (struct sockaddr *)&address, &length) == 0 && pipe(proxy->stop) == 0;
    assert(good);
    (void)good;
    proxy->port = ntohs(address.sin_port);
    int started = pthread_create(&proxy->thread, NULL, proxy_main, proxy);
    assert(!started);
    (void)started;
}

void proxy_stop(struct proxy *proxy) {
    close(proxy->stop[1]);
    pthread_join(proxy->thread, NULL);
    close(proxy->stop[0]);
    close(proxy->listener);
}

const char *proxy_at(const struct proxy *proxy) {
    static char text[64];
    snprintf(text, sizeof text, "etcd://127.0.0.1:%d", proxy->port);
    return text;
}
