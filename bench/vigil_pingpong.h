/* SPDX-License-Identifier: MIT */
/*
 * vigil_pingpong.h - Vigil's side of the round trips, blocking and not. To be included after `words`, the two words
 * that the balls are in, private or shared.
 */
#ifndef BENCH_VIGIL_PINGPONG_H
#define BENCH_VIGIL_PINGPONG_H

#include "bench.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <vigil/agent.h>
#include <vigil/wait.h>

/* An agent in a hand-written epoll loop */

struct loop {
    vigil_agent *agent;
    int epoll;
};

static struct loop loop_open(void) {
    struct loop loop = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct epoll_event interest = {.events = EPOLLIN};
    must(vigil_agent_create(&loop.agent, 0) == VIGIL_OK);
    must(epoll_ctl(loop.epoll, EPOLL_CTL_ADD, vigil_agent_fd(loop.agent), &interest) == 0);
    return loop;
}

static void loop_close(struct loop *loop) {
    must(vigil_agent_destroy(loop->agent) == VIGIL_OK);
    close(loop->epoll);
}

static void loop_step(struct loop *loop) {
    struct epoll_event event;
    if (epoll_wait(loop->epoll, &event, 1, -1) == 1) vigil_agent_dispatch(loop->agent);
}

/* The players */

static void throw_ball(unsigned side, uint32_t ball) {
    __atomic_store_n(&words[side].value, ball, __ATOMIC_SEQ_CST);
    vigil_notify(&words[side].value, 1);
}

/* A notification may be late: for a ball that was seen and caught before the notification came. */
static void catch_ball(unsigned side, uint32_t ball) {
    uint32_t *word = &words[side].value, seen;
    while ((seen = __atomic_load_n(word, __ATOMIC_SEQ_CST)) != ball) vigil_wait32(word, seen, VIGIL_FOREVER);
}

#include "players.h"

struct async_pong {
    vigil_op op;
    struct loop loop;
    uint64_t left;
};

static void on_ball(vigil_op *op, int status);

/* Throws back the ball that has come and waits for the next. */
static void async_pong_play(struct async_pong *player) {
    do {
        if (__atomic_load_n(&words[0].value, __ATOMIC_SEQ_CST) != ponged) {
            player->left--;
            throw_ball(1, ++ponged);
        }
    } while (player->left > 0 && vigil_wait32_async(player->loop.agent, &player->op, &words[0].value, ponged,
                                                    VIGIL_FOREVER, on_ball) == VIGIL_NOT_EQUAL);
}

static void on_ball(vigil_op *op, int status) {
    must(status == VIGIL_OK);
    async_pong_play(op->data);
}

static void pong_epoll(uint64_t n) {
    struct async_pong player = {.op.data = &player, .loop = loop_open(), .left = n};
    async_pong_play(&player);
    while (player.left > 0) loop_step(&player.loop);
    loop_close(&player.loop);
}

static void pong_run(uint64_t n) {
    struct async_pong player = {.op.data = &player, .left = n};
    must(vigil_agent_create(&player.loop.agent, 0) == VIGIL_OK);
    async_pong_play(&player);
    must(vigil_agent_run(player.loop.agent) == VIGIL_OK);
    must(vigil_agent_destroy(player.loop.agent) == VIGIL_OK);
}

#endif
