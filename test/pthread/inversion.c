/* SPDX-License-Identifier: MIT */
/* Two locks that are taken in both orders, but not at the same time: nothing hangs, but it could. `own` is taken alone,
 * in no order that could be wrong. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t second = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

static void *one_way(void *argument) {
    pthread_mutex_lock(&first);
    pthread_rwlock_wrlock(&second);
    pthread_rwlock_unlock(&second);
    pthread_mutex_unlock(&first);
    return argument;
}

static void *other_way(void *argument) {
    pthread_rwlock_rdlock(&second);
    pthread_mutex_lock(&first);
    pthread_mutex_unlock(&first);
    pthread_rwlock_unlock(&second);
    return argument;
}

static void on_thread(void *(*run)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    (void)argv;
    on_thread(one_way);
    on_thread(other_way);
    if (argc > 1) { /* under the check, the second one fails */
        pthread_mutex_lock(&own);
        printf("%d\n", pthread_mutex_lock(&own));
    }
    return 0;
}
