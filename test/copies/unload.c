/* SPDX-License-Identifier: MIT */
/*
 * unload OBJECT... - load a shared object that contains the library by dlopen, wait and notify on two threads, unload
 * it while a thread that has used it still runs, let that thread end, and load it again. Prints what it has done.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vigil/vigil.h>

struct calls {
    __typeof__(vigil_wait32) *wait32;
    __typeof__(vigil_notify) *notify;
    __typeof__(vigil_waiters) *waiters;
};

static struct calls calls;
static uint32_t word, unloaded;

static void find(void *object, const char *name, void *function) {
    *(void **)function = dlsym(object, name);
    if (*(void **)function) return;
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

static void *load(const char *path) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    find(object, "vigil_wait32", &calls.wait32);
    find(object, "vigil_notify", &calls.notify);
    find(object, "vigil_waiters", &calls.waiters);
    return object;
}

static void notify_one(void) {
    while (calls.waiters(&word) != 1) sched_yield();
    int64_t notified = calls.notify(&word, 1);
    assert(notified == 1);
}

/* It has waited, so the library wants to know of its end. */
static void *wait_and_outlive(void *unused) {
    int status = calls.wait32(&word, 0, VIGIL_FOREVER);
    assert(status == VIGIL_OK);
    while (!__atomic_load_n(&unloaded, __ATOMIC_ACQUIRE)) sched_yield();
    return unused;
}

static void *wait_only(void *unused) {
    int status = calls.wait32(&word, 0, VIGIL_FOREVER);
    assert(status == VIGIL_OK);
    return unused;
}

static void join(pthread_t thread) {
    int failed = pthread_join(thread, NULL);
    assert(!failed);
}

static pthread_t start(void *(*main)(void *)) {
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, main, NULL);
    assert(!failed);
    return thread;
}

/* The handlers of the unloaded object are called in the child, and by the threads that end there. */
static void fork_once(void) {
    fflush(stdout);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) _exit(0);
    int status;
    pid_t waited = waitpid(child, &status, 0);
    assert(waited == child && status == 0);
}

static void test(const char *path) {
    void *object = load(path);
    __atomic_store_n(&unloaded, 0, __ATOMIC_RELEASE);
    pthread_t thread = start(wait_and_outlive);
    notify_one();
    dlclose(object);
    __atomic_store_n(&unloaded, 1, __ATOMIC_RELEASE);
    join(thread);
    fork_once();
    object = load(path);
    thread = start(wait_only);
    notify_one();
    join(thread);
    dlclose(object);
    printf("loaded, unloaded and loaded again: %s\n", path);
}

int main(int count, char **paths) {
    for (int i = 1; i < count; i++) test(paths[i]);
    return count > 1 ? 0 : 2;
}
