/* SPDX-License-Identifier: MIT */
/* Two threads that each hold a mutex and wait for the other's, a third behind them, and one that waits for nothing. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, ledger = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t of_never = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *book(void *argument) {
    pthread_mutex_lock(&accounts);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&ledger);
    return argument;
}

static void *audit(void *argument) {
    pthread_mutex_lock(&ledger);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&accounts);
    return argument;
}

static void *look(void *argument) {
    pthread_mutex_lock(&of_never);
    for (;;) pthread_cond_wait(&never, &of_never);
    return argument;
}

/* With "join": a thread that waits for a mutex of the one that waits for its end. */
static void *wait_for_joiner(void *argument) {
    pthread_mutex_lock(&accounts);
    return argument;
}

static int join_in_vain(void) {
    pthread_t thread;
    pthread_mutex_lock(&accounts);
    pthread_create(&thread, NULL, wait_for_joiner, NULL);
    return pthread_join(thread, NULL);
}

/* With "read": a writer that waits for two readers. */
static int write_in_vain(void) {
    static pthread_rwlock_t prices = PTHREAD_RWLOCK_INITIALIZER;
    for (int i = 0; i < 2; i++) pthread_rwlock_rdlock(&prices);
    return pthread_rwlock_wrlock(&prices);
}

int main(int argc, char **argv) {
    pthread_t threads[3];
    if (argc > 1) return strcmp(argv[1], "read") == 0 ? write_in_vain() : join_in_vain();
    pthread_barrier_init(&both, NULL, 3);
    pthread_create(&threads[0], NULL, book, NULL);
    pthread_create(&threads[1], NULL, audit, NULL);
    pthread_create(&threads[2], NULL, look, NULL);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&accounts);
    return 0;
}
