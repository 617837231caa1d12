/* SPDX-License-Identifier: MIT */
/*
 * A program with a race that the thread sanitizer must report, although everything else in it is correct and both
 * threads use locks all the time: the counter is changed under two different ones.
 */
#include "program.h"

static vigil_mutex one, other;
static unsigned racy, under_one, under_other;

static void count(vigil_mutex *mutex, unsigned *counter) {
    for (int i = 0; i < 200; i++) {
        vigil_mutex_lock(mutex);
        ++*counter;
        racy++;
        let_others_come(mutex, i);
        vigil_mutex_unlock(mutex);
    }
}

static void *count_under_one(void *unused) {
    (void)unused;
    count(&one, &under_one);
    return NULL;
}

static void *count_under_other(void *unused) {
    (void)unused;
    count(&other, &under_other);
    return NULL;
}

int main(void) {
    void *(*const mains[])(void *) = {count_under_one, count_under_one, count_under_other, count_under_other};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, mains[i], NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return under_one == 400 && under_other == 400 ? 0 : 1;
}
