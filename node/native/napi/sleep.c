/* SPDX-License-Identifier: MIT */
/* Blocking: see addon.h. */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "addon.h"

/* How long a thread that is about to block first looks for the end of its wait: less than a sleep costs. */
#define PATIENCE_NS 20000

/* How often a blocked thread checks whether it is being terminated, while its loop has other work to do. */
#define SLICE_MS 10

static bool sleep_watch(int block_fd, int fd, uint32_t events, uint32_t which) {
    struct epoll_event event = {.events = events, .data.u32 = which};
    return epoll_ctl(block_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

enum { FROM_AGENT, FROM_LOOP };

/* Edge-triggered: what the loop has to do already, and cannot do while it is blocked, must not keep waking it. */
static bool sleep_can_block(struct addon *addon) {
    if (addon->block_fd >= 0) return true;
    int agent_fd = vigil_agent_fd(addon->environment.agent);
    int block_fd = agent_fd < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
    if (block_fd < 0) return false;
    if (!sleep_watch(block_fd, agent_fd, EPOLLIN, FROM_AGENT) ||
        !sleep_watch(block_fd, uv_backend_fd(addon->loop), EPOLLIN | EPOLLET, FROM_LOOP)) {
        close(block_fd);
        return false;
    }
    addon->block_fd = block_fd;
    return true;
}

static bool sleep_loop_has_work(const struct addon *addon) {
    struct pollfd loop = {.fd = uv_backend_fd(addon->loop), .events = POLLIN};
    return poll(&loop, 1, 0) > 0;
}

/*
 * Node ends an environment by waking its loop. That does not wake it twice: if the loop has been woken before, for
 * another reason, nothing will tell. So while it has work to do, look every SLICE_MS.
 */
static bool sleep_until_finished(struct addon *addon, const struct operation *operation) {
    vigil_agent *agent = addon->environment.agent;
    vigil_agent_run_until(agent, vigil_now_ns() + PATIENCE_NS); /* it spins first, if that has paid */
    bool restless = !operation->finished && sleep_loop_has_work(addon);
    while (!operation->finished) {
        struct epoll_event events[2];
        int count = epoll_wait(addon->block_fd, events, 2, restless ? SLICE_MS : -1);
        bool disturbed = restless && count <= 0;
        for (int i = 0; i < count; i++) disturbed |= events[i].data.u32 == FROM_LOOP;
        vigil_agent_dispatch(agent);
        if (operation->finished || !disturbed) continue;
        if (addon_terminates(addon)) return false;
        restless = sleep_loop_has_work(addon);
    }
    return true;
}

int environment_sleep(struct operation *operation) {
    struct addon *addon = (struct addon *)operation->environment;
    bool can = sleep_can_block(addon);
    if (can && sleep_until_finished(addon, operation)) return operation->status;
    operations_give_up(operation);
    return can ? TERMINATED : VIGIL_ESYSTEM;
}

void sleep_end(struct addon *addon) {
    if (addon->block_fd >= 0) close(addon->block_fd);
}
