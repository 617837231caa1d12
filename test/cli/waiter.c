/* SPDX-License-Identifier: MIT */
/*
 * waiter NAME ACTION OFFSET: a process to observe. Opens the segment, takes or waits for what is at that offset, and
 * keeps it until it is killed. With -async, without blocking.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vigil/vigil.h>

static vigil_agent *agent;
static vigil_request request;

static void had(vigil_op *op, int status) {
    (void)op, (void)status;
}

static int lock(void *place) {
    return vigil_mutex_lock(place);
}

static int lock_async(void *place) {
    return vigil_mutex_lock_async(agent, &request, place, VIGIL_FOREVER, had);
}

static int read_lock(void *place) {
    return vigil_rwlock_read_lock(place);
}

static int write_lock(void *place) {
    return vigil_rwlock_write_lock(place);
}

static int read_lock_async(void *place) {
    return vigil_rwlock_read_lock_async(agent, &request, place, VIGIL_FOREVER, had);
}

static int wait_word(void *place) {
    return vigil_wait32(place, 0, VIGIL_FOREVER);
}

static int wait_word_async(void *place) {
    return vigil_wait32_async(agent, &request.op, place, 0, VIGIL_FOREVER, had);
}

/* Its mutex is behind it. */
static int wait_cond(void *place) {
    vigil_cond *cond = place;
    vigil_mutex *mutex = (vigil_mutex *)(cond + 1);
    vigil_mutex_lock(mutex);
    return vigil_cond_wait(cond, mutex);
}

static int wait_cond_async(void *place) {
    vigil_cond *cond = place;
    vigil_mutex *mutex = (vigil_mutex *)(cond + 1);
    vigil_mutex_lock(mutex);
    return vigil_cond_wait_async(agent, &request, cond, mutex, VIGIL_FOREVER, had);
}

static const struct {
    const char *name;
    int (*run)(void *place);
} actions[] = {
    {"lock", lock},
    {"lock-async", lock_async},
    {"read", read_lock},
    {"read-async", read_lock_async},
    {"write", write_lock},
    {"wait", wait_word},
    {"wait-async", wait_word_async},
    {"cond", wait_cond},
    {"cond-async", wait_cond_async},
};

int main(int count, char **arguments) {
    vigil_buffer *buffer;
    if (count != 4 || vigil_agent_create(&agent, 0) != VIGIL_OK) return 2;
    int status = vigil_segment_open_or_create(&buffer, arguments[1], NULL);
    for (size_t i = 0; status == VIGIL_OK && i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(actions[i].name, arguments[2]) != 0) continue;
        status = actions[i].run((char *)vigil_buffer_data(buffer) + strtoul(arguments[3], NULL, 0));
        if (status == VIGIL_PENDING) status = vigil_agent_run(agent);
        while (status == VIGIL_OK || status == VIGIL_OWNER_DIED) pause();
    }
    fprintf(stderr, "waiter %s %s: %s\n", arguments[1], arguments[2], vigil_strerror(status));
    return 1;
}
