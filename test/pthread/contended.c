/* SPDX-License-Identifier: MIT */
/* A mutex for which threads wait, and one for which none does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER, spare = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;
static long count;

/* Long enough for the others to come, whatever the machine does meanwhile: all of them but the first have to wait. */
static void *work(void *argument) {
    pthread_barrier_wait(&all);
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&wanted);
        count++;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        pthread_mutex_unlock(&wanted);
    }
    return argument;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    if (argc > 1 && system(argv[1]) != 0) return 1;
    pthread_mutex_lock(&spare);
    pthread_mutex_unlock(&spare);
    pthread_barrier_init(&all, NULL, 4);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", count);
    return 7;
}
