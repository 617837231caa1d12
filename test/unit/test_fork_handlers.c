/* SPDX-License-Identifier: MIT */
/*
 * Fork with handlers of the program's own: pthread_atfork(lock, unlock, unlock) around a mutex, registered before the
 * library is used for the first time. The library's handlers must run before those in the child, and after those
 * before the fork.
 */
#include "support.h"

#include "vigil/memory.h"
#include "vigil/mutex.h"
#include "vigil/segment.h"

#include "child.h"

enum { HAMMERS = 3, FORKS = 10000, FORKS_AT_LEAST = 100 };
#define FORKS_NS (6 * SECOND)

static vigil_mutex mutex = VIGIL_MUTEX_INIT;
static uint32_t stop;
static uint64_t counted; /* protected by the mutex */

static void before_fork(void) {
    if (vigil_mutex_lock(&mutex) != VIGIL_OK) abort();
}

static void in_parent(void) {
    if (vigil_mutex_unlock(&mutex) != VIGIL_OK) abort();
}

static void in_child(void) {
    alarm(60); /* a child that hangs has failed */
    if (vigil_mutex_unlock(&mutex) != VIGIL_OK) abort();
}

static void *hammer(void *unused) {
    (void)unused;
    while (!LOAD(stop)) {
        if (vigil_mutex_lock(&mutex) != VIGIL_OK) abort();
        counted++;
        if (vigil_mutex_unlock(&mutex) != VIGIL_OK) abort();
    }
    return NULL;
}

/* Holds the mutex while it opens a segment, which waits until a fork is over. */
static void *hold_and_open(void *unused) {
    (void)unused;
    while (!LOAD(stop)) {
        vigil_buffer *buffer;
        if (vigil_mutex_lock(&mutex) != VIGIL_OK) abort();
        if (vigil_segment_create_anonymous(&buffer, NULL) != VIGIL_OK) abort();
        if (vigil_mutex_unlock(&mutex) != VIGIL_OK) abort();
        if (vigil_buffer_destroy(buffer) != VIGIL_OK) abort();
    }
    return NULL;
}

static void check_in_child(void) {
    uint64_t before = counted;
    CHECK(vigil_mutex_trylock(&mutex) == VIGIL_OK);
    CHECK(counted == before);
    CHECK(vigil_mutex_lock_for(&mutex, MICROSECOND) == VIGIL_TIMED_OUT);
    CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK);
    _exit(0);
}

static void fork_beside(void *(*other)(void *), int forks) {
    pthread_t threads[HAMMERS];
    STORE(stop, 0);
    for (int i = 0; i < HAMMERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, i ? hammer : other, NULL), 0);
    int64_t until_ns = vigil_now_ns() + FORKS_NS;
    for (int i = 0; i < forks && (i < FORKS_AT_LEAST || vigil_now_ns() < until_ns); i++) {
        pid_t child = fork();
        if (child == 0) check_in_child();
        assert_int_equal(exit_status_of(child), 0);
    }
    STORE(stop, 1);
    for (int i = 0; i < HAMMERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void the_child_can_unlock(void **state) {
    (void)state;
    fork_beside(hammer, FORKS);
}

static void the_parent_can_lock(void **state) {
    (void)state;
    fork_beside(hold_and_open, FORKS / 20);
}

int main(void) {
    if (pthread_atfork(before_fork, in_parent, in_child) != 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_child_can_unlock),
        cmocka_unit_test(the_parent_can_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
