/* SPDX-License-Identifier: MIT */
/*
 * bounded_peer.h - the queue as it is written by hand: a mutex and two conditions for the threads, and a flag that the
 * loop sets before it goes to sleep. To be included after the contestant's own wake_loop().
 */
#ifndef BENCH_BOUNDED_PEER_H
#define BENCH_BOUNDED_PEER_H

#include "bounded.h"

#include <pthread.h>

static struct {
    _Alignas(128) pthread_mutex_t mutex;
    pthread_cond_t not_empty, not_full;
    bool loop_wants_item, loop_wants_room;
    struct ring ring;
} queue = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .not_empty = PTHREAD_COND_INITIALIZER, .not_full = PTHREAD_COND_INITIALIZER};

/* Whether to wake the loop. */
static bool queue_push(uint64_t item) {
    bool wanted = queue.loop_wants_item;
    queue.loop_wants_item = false;
    ring_push(&queue.ring, item);
    return wanted;
}

static void queue_put(uint64_t item) {
    pthread_mutex_lock(&queue.mutex);
    while (ring_is_full(&queue.ring)) pthread_cond_wait(&queue.not_full, &queue.mutex);
    bool wanted = queue_push(item);
    pthread_mutex_unlock(&queue.mutex);
    if (wanted) wake_loop();
    else pthread_cond_signal(&queue.not_empty);
}

static uint64_t queue_take(void) {
    pthread_mutex_lock(&queue.mutex);
    while (queue.ring.count == 0) pthread_cond_wait(&queue.not_empty, &queue.mutex);
    uint64_t item = ring_pop(&queue.ring);
    bool wanted = queue.loop_wants_room;
    queue.loop_wants_room = false;
    pthread_mutex_unlock(&queue.mutex);
    if (wanted) wake_loop();
    else pthread_cond_signal(&queue.not_full);
    return item;
}

/* The loop's steps: each goes on until it has done its part, or must wait to be woken. */

static uint64_t loop_done, loop_all;

static void loop_take_step(void) {
    uint64_t items[RING_ROOM];
    while (loop_done < loop_all) {
        pthread_mutex_lock(&queue.mutex);
        unsigned count = ring_pop_all(&queue.ring, items);
        queue.loop_wants_item = count == 0;
        pthread_mutex_unlock(&queue.mutex);
        if (count == 0) return;
        pthread_cond_broadcast(&queue.not_full);
        for (unsigned i = 0; i < count; i++) bounded_use(items[i]);
        loop_done += count;
    }
}

static void loop_put_step(void) {
    static uint64_t made;
    while (loop_done < loop_all) {
        if (made != loop_done + 1) made = bounded_make(loop_done + 1);
        pthread_mutex_lock(&queue.mutex);
        bool full = queue.loop_wants_room = ring_is_full(&queue.ring);
        if (!full) queue_push(made);
        pthread_mutex_unlock(&queue.mutex);
        if (full) return;
        pthread_cond_signal(&queue.not_empty);
        loop_done++;
    }
    made = 0;
}

#endif
