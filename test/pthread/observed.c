/* SPDX-License-Identifier: MIT */
/*
 * A program to look at.
 *
 *     hold       a thread holds a mutex, another waits for it, and the first thread sleeps
 *     take       a thread, whose name would change a terminal, waits for a semaphore, and the first thread sleeps
 *     sleep      the only thread says that it is ready, and sleeps
 *     contend    threads wait for a line of input, and then for each other
 *
 * It prints a message if a signal has ended a sleep or a wait: vigil show must not do that.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 4
#define ROUNDS  20

static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;
static sem_t go, held;

static __attribute__((noinline)) void wait_at(sem_t *sem) {
    while (sem_wait(sem) != 0) printf("sem_wait was interrupted\n");
}

static void *hold(void *argument) {
    pthread_setname_np(pthread_self(), "holder");
    pthread_mutex_lock(&wanted);
    sem_post(&held);
    wait_at(&go);
    return argument;
}

static void *want(void *argument) {
    pthread_setname_np(pthread_self(), "waiter");
    pthread_mutex_lock(&wanted);
    return argument;
}

static void *take(void *argument) {
    pthread_setname_np(pthread_self(), "\033[7mtaker");
    wait_at(&go);
    return argument;
}

/* Long enough for the others to come. */
static void *work(void *argument) {
    char name[16];
    snprintf(name, sizeof name, "worker-%d", *(int *)argument);
    pthread_setname_np(pthread_self(), name);
    wait_at(&go);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&wanted);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        pthread_mutex_unlock(&wanted);
    }
    char byte;
    if (write(STDOUT_FILENO, ".", 1) != 1) return NULL;
    while (read(STDIN_FILENO, &byte, 1) > 0) { /* until the test has closed it: a thread that ends loses its name */
    }
    return argument;
}

static __attribute__((noreturn)) void sleep_on(void) {
    for (;;) {
        if (nanosleep(&(struct timespec){.tv_sec = 3600}, NULL) != 0 && errno == EINTR)
            printf("nanosleep was interrupted\n");
    }
}

static int contend(void) {
    pthread_t threads[WORKERS];
    int numbers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    int read = getchar();
    for (int i = 0; i < WORKERS; i++) sem_post(&go);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    return read == EOF;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    pthread_t thread;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    sem_init(&go, 0, 0);
    sem_init(&held, 0, 0);
    if (strcmp(mode, "contend") == 0) return contend();
    if (strcmp(mode, "sleep") == 0) {
        printf("ready\n");
        sleep_on();
    }
    if (strcmp(mode, "take") == 0) {
        pthread_create(&thread, NULL, take, NULL);
        sleep_on();
    }
    pthread_create(&thread, NULL, hold, NULL);
    wait_at(&held);
    pthread_create(&thread, NULL, want, NULL);
    sleep_on();
}
