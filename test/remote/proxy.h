/* SPDX-License-Identifier: MIT */
/*
 * proxy.h - something between the client and a server, on a port and a thread of its own: it passes bytes on and spoils
 * them, or replies itself. It serves one connection at a time.
 */
#ifndef VIGIL_TEST_PROXY_H
#define VIGIL_TEST_PROXY_H

#include <pthread.h>
#include <stdbool.h>

enum proxy_mode {
    PROXY_PASS,    /* everything */
    PROXY_DRIP,    /* byte by byte */
    PROXY_CUT,     /* close after `at` bytes of the server's */
    PROXY_FLIP,    /* byte number `at` of the server's is inverted */
    PROXY_SILENCE, /* after `at` bytes of the server's nothing comes any more */
    PROXY_LATE,    /* nothing of the first connection, everything of those after it */
    PROXY_MUTE,    /* no server: accept, and say nothing */
    PROXY_SLAM,    /* no server: read something, close */
    PROXY_REFUSE,  /* no server: say `text`; end each HTTP/2 stream with `text2`, a frame without a stream number */
    PROXY_SAY,     /* no server: read something, say `text`; read more, say `text2` if there is one; close */
};

struct proxy {
    int port, server_port; /* its own, and of the server behind it */
    enum proxy_mode mode;
    long at;
    const void *text, *text2;
    size_t text_length, text2_length;
    /* proxy.c's */
    int listener, stop[2];
    pthread_t thread;
    int connections; /* so far */
    long said;       /* bytes of the server's, on this connection */
};

void proxy_start(struct proxy *proxy);
void proxy_stop(struct proxy *proxy);
const char *proxy_at(const struct proxy *proxy); /* "etcd://127.0.0.1:PORT" */

#endif
