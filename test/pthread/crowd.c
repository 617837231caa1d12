/* SPDX-License-Identifier: MIT */
/*
 * More threads wait than libvigil-pthread.so has entries for: those without one work as all others, and can be
 * cancelled.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CROWD 4096 /* as many entries as there are */
#define LATE  4    /* threads that have none */

static sem_t crowd, late;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int signals;
static pthread_t threads[CROWD + LATE];
static pid_t ids[CROWD + LATE];

static void expect(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

static void unlock(void *argument) {
    (void)argument;
    pthread_mutex_unlock(&mutex);
}

static void wait_for_signal(void) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, NULL);
    while (!signals) pthread_cond_wait(&cond, &mutex);
    signals--;
    pthread_cleanup_pop(1);
}

static void *run(void *argument) {
    int index = (int)((pid_t *)argument - ids);
    __atomic_store_n(&ids[index], (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    if (index < CROWD) return sem_wait(&crowd) == 0 ? NULL : &crowd;
    if (index % 2) return sem_wait(&late) == 0 ? NULL : &late;
    wait_for_signal();
    return NULL;
}

/* False: the system does not allow so many. */
static bool start(int index) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    return pthread_create(&threads[index], &attributes, run, &ids[index]) == 0;
}

static char state_of(int index) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)__atomic_load_n(&ids[index], __ATOMIC_ACQUIRE));
    FILE *stat = fopen(path, "re");
    if (!stat) return 0;
    if (!fgets(line, sizeof line, stat)) line[0] = 0;
    fclose(stat);
    return line[0] ? strrchr(line, ')')[2] : 0;
}

static void until_asleep(int index) {
    while (!__atomic_load_n(&ids[index], __ATOMIC_ACQUIRE) || state_of(index) != 'S') sched_yield();
}

static void *result_of(int index) {
    void *result;
    expect(pthread_join(threads[index], &result) == 0, "a thread can be joined");
    return result;
}

int main(void) {
    alarm(500); /* rather than for ever */
    sem_init(&crowd, 0, 0);
    sem_init(&late, 0, 0);
    for (int i = 0; i < CROWD + LATE; i++) {
        if (i == CROWD) {
            for (int j = 0; j < CROWD; j++) until_asleep(j);
        }
        if (start(i)) continue;
        puts("the system does not allow so many threads");
        return 0;
    }
    for (int i = CROWD; i < CROWD + LATE; i++) until_asleep(i);
    for (int i = CROWD; i < CROWD + 2; i++) expect(pthread_cancel(threads[i]) == 0, "a thread can be cancelled");
    for (int i = CROWD; i < CROWD + 2; i++) expect(result_of(i) == PTHREAD_CANCELED, "it ends by that");
    pthread_mutex_lock(&mutex);
    signals++;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    sem_post(&late);
    for (int i = CROWD + 2; i < CROWD + LATE; i++) expect(!result_of(i), "the others get what they wait for");
    for (int i = 0; i < CROWD; i++) sem_post(&crowd);
    for (int i = 0; i < CROWD; i++) expect(!result_of(i), "so does the crowd");
    puts("all have come back");
    return 0;
}
