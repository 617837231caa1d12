/* SPDX-License-Identifier: MIT */
/*
 * A program that the thread sanitizer must not complain about, with a library that it does not see into. Each part
 * passes plain memory from one thread to another through the library's slow path, in which a thread waits.
 */
#include "program.h"

enum { PARTIES = 3, ROUNDS = 200 };

static vigil_mutex mutex, fair = VIGIL_MUTEX_FAIR;
static vigil_rwlock rwlock;
static vigil_sem sem = VIGIL_SEM_INIT(1);
static vigil_cond cond;
static vigil_barrier barrier = VIGIL_BARRIER_INIT(PARTIES);
static vigil_once once;
static uint32_t word;

static unsigned under_mutex, under_fair, under_rwlock, under_sem, begun;
static int rounds[PARTIES];

static int begin(void *unused) {
    (void)unused;
    await_waiters(&once, 1);
    begun = 1;
    return VIGIL_OK;
}

static void contend(int party) {
    must(vigil_once_call(&once, begin, NULL) == VIGIL_OK && begun == 1);
    for (int i = 0; i < ROUNDS; i++) {
        vigil_mutex_lock(&mutex);
        under_mutex++;
        let_others_come(&mutex, i);
        vigil_mutex_unlock(&mutex);

        vigil_mutex_lock(&fair);
        under_fair++;
        let_others_come(&fair, i);
        vigil_mutex_unlock(&fair);

        vigil_rwlock_write_lock(&rwlock);
        under_rwlock++;
        let_others_come(&rwlock, i);
        vigil_rwlock_downgrade(&rwlock);
        must(under_rwlock > 0);
        vigil_rwlock_read_unlock(&rwlock);

        vigil_sem_acquire(&sem, 1);
        under_sem++;
        let_others_come(&sem, i);
        vigil_sem_release(&sem, 1);

        rounds[party] = i;
        vigil_barrier_wait(&barrier);
        for (int other = 0; other < PARTIES; other++) must(rounds[other] == i);
        vigil_barrier_wait(&barrier);
    }
}

static void *contender(void *party) {
    contend(*(int *)party);
    return NULL;
}

static void many_threads(void) {
    pthread_t threads[PARTIES];
    int parties[PARTIES];
    for (int i = 0; i < PARTIES; i++) {
        parties[i] = i;
        pthread_create(&threads[i], NULL, contender, &parties[i]);
    }
    for (int i = 0; i < PARTIES; i++) pthread_join(threads[i], NULL);
    must(under_mutex == PARTIES * ROUNDS && under_fair == PARTIES * ROUNDS);
}

/* Words: what was written before a notification is visible to the thread that it wakes. */

static unsigned message, answer;

static void *answer_message(void *unused) {
    (void)unused;
    if (vigil_wait32(&word, 0, VIGIL_FOREVER) == VIGIL_OK) answer = message + 1;
    return NULL;
}

static void notify(void) {
    pthread_t other;
    pthread_create(&other, NULL, answer_message, NULL);
    await_waiters(&word, 1);
    message = 41;
    must(vigil_notify(&word, 1) == 1);
    pthread_join(other, NULL);
    must(answer == 42);
}

/* Conditions. */

static unsigned queued, consumed;

static void *consume(void *unused) {
    (void)unused;
    vigil_mutex_lock(&mutex);
    while (consumed < ROUNDS) {
        while (!queued) vigil_cond_wait(&cond, &mutex);
        queued--;
        consumed++;
    }
    vigil_mutex_unlock(&mutex);
    return NULL;
}

static void condition(void) {
    pthread_t other;
    pthread_create(&other, NULL, consume, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        vigil_mutex_lock(&mutex);
        queued++;
        vigil_cond_signal(&cond);
        vigil_mutex_unlock(&mutex);
    }
    pthread_join(other, NULL);
    must(consumed == ROUNDS);
}

/* Event loops: callbacks with the lock held, notified, posted. */

static unsigned posted, heard;
static vigil_op op;
static vigil_request requests[2];

static void count_up(vigil_op *request, int status) {
    (void)request;
    must(status == VIGIL_OK);
    under_mutex++;
}

static void count_up_and_unlock(vigil_op *request, int status) {
    count_up(request, status);
    vigil_mutex_unlock(&mutex);
}

static void on_notified(vigil_op *notified, int status) {
    (void)notified;
    if (status == VIGIL_OK) heard = message;
}

static void on_post(vigil_agent *agent, void *argument) {
    (void)argument;
    posted++;
    must(vigil_wait32_async(agent, &op, &word, 0, VIGIL_FOREVER, on_notified) == VIGIL_PENDING);
    must(vigil_mutex_execute(agent, &requests[0], &mutex, VIGIL_FOREVER, count_up) == VIGIL_PENDING);
    must(vigil_mutex_lock_async(agent, &requests[1], &mutex, VIGIL_FOREVER, count_up_and_unlock) == VIGIL_PENDING);
}

static void event_loop(void) {
    vigil_worker *worker;
    must(vigil_worker_start(&worker, NULL, NULL) == VIGIL_OK);
    vigil_mutex_lock(&mutex);
    under_mutex = 0;
    posted = 1;
    must(vigil_agent_post(vigil_worker_agent(worker), on_post, NULL) == VIGIL_OK);
    await_waiters(&word, 1);
    await_waiters(&mutex, 1);
    message = 43;
    must(vigil_notify(&word, 1) == 1);
    vigil_mutex_unlock(&mutex);
    for (unsigned counted = 0; counted < 2;) {
        vigil_mutex_lock(&mutex);
        counted = under_mutex;
        vigil_mutex_unlock(&mutex);
    }
    vigil_worker_stop(worker);
    vigil_worker_join(worker);
    must(posted == 2 && heard == 43);
}

int main(void) {
    many_threads();
    notify();
    condition();
    event_loop();
    return 0;
}
