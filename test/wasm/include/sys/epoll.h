/* SPDX-License-Identifier: MIT */
/* Declarations only: tests that use epoll are left out (../../left_out.js). */
#ifndef VIGIL_WASM_EPOLL_H
#define VIGIL_WASM_EPOLL_H

#include <stdint.h>

#define EPOLL_CLOEXEC 1
#define EPOLL_CTL_ADD 1
#define EPOLLIN       1u
#define EPOLLET       2u

struct epoll_event {
    uint32_t events;
    uint64_t data;
};
int epoll_create1(int flags);
int epoll_ctl(int loop, int operation, int fd, struct epoll_event *event);
int epoll_wait(int loop, struct epoll_event *events, int most, int timeout_ms);

#endif
