/* SPDX-License-Identifier: MIT */
/*
 * One lock for threads that block and an event loop that may not. First they all want it at once. Then the two corner
 * cases of every such lock, slowly enough to watch:
 *
 *     the lock is released after an attempt has failed and before the wait for it has begun;
 *     another thread takes it after the loop has been called and before the loop tries.
 *
 * In both, the main thread is the event loop: it waits nowhere but in vigil_agent_run. The program checks what it
 * shows, and exits with 1 if anything is wrong.
 */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/vigil.h>

#define WORKERS 3
#define TURNS   1000

static vigil_mutex mutex;
static vigil_agent *loop;
static bool wrong;

static void check(bool right, const char *what) {
    printf("   %s%s\n", what, right ? "" : "   <- WRONG");
    wrong |= !right;
}

/* The loop is busy with something else until the word has that value: meanwhile no callback runs. */
static void busy_until(const uint32_t *word, uint32_t value) {
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) sched_yield();
}

static void busy_until_in_line(int64_t waiters) {
    while (vigil_waiters(&mutex) != waiters) sched_yield();
}

static vigil_worker *workers[WORKERS + 3];
static int worker_count;

static void start(vigil_function *function, void *argument) {
    if (vigil_worker_start(&workers[worker_count++], function, argument) != VIGIL_OK) abort();
}

/* Joining blocks: the loop may not do so as long as it has its agent. */
static void join_all(void) {
    for (int i = 0; i < worker_count; i++) {
        vigil_worker_stop(workers[i]);
        wrong |= vigil_worker_join(workers[i]) != VIGIL_OK;
    }
}

/* All at once. */

static unsigned total, of_the_loop; /* plain: the lock protects them */
static uint32_t finished;

static void work(vigil_agent *agent, void *argument) {
    (void)agent, (void)argument;
    for (int turn = 0; turn < TURNS; turn++) {
        vigil_mutex_lock(&mutex);
        total++;
        vigil_mutex_unlock(&mutex);
    }
    __atomic_fetch_add(&finished, 1, __ATOMIC_SEQ_CST);
}

static void with_the_lock_held(vigil_op *op, int status) {
    wrong |= status != VIGIL_OK;
    total++;
    if (++of_the_loop == TURNS) return;
    /* Once more. We hold the lock, so this waits in line until we have let go of it. */
    int again = vigil_mutex_execute(loop, (vigil_request *)op, &mutex, VIGIL_FOREVER, with_the_lock_held);
    wrong |= again != VIGIL_PENDING;
}

static void all_at_once(void) {
    vigil_request request = {0};
    printf("%d threads and a loop, %d times each\n", WORKERS, TURNS);
    vigil_mutex_lock(&mutex); /* it is free: that does not block */
    check(vigil_mutex_lock(&mutex) == VIGIL_EMAYNOTBLOCK, "the loop may not block for the lock");
    for (int i = 0; i < WORKERS; i++) start(work, NULL);
    busy_until_in_line(WORKERS);
    int status = vigil_mutex_execute(loop, &request, &mutex, VIGIL_FOREVER, with_the_lock_held);
    check(status == VIGIL_PENDING && of_the_loop == 0, "the threads wait, asleep; the loop's request is pending");
    vigil_mutex_unlock(&mutex);
    vigil_agent_run(loop);
    busy_until(&finished, WORKERS);
    check(of_the_loop == TURNS && total == (WORKERS + 1) * TURNS, "all had their turns, and none was lost");
}

/* The holder and the third: they take the lock, say so, and let go of it when they are told to. */

struct holder {
    uint32_t holds, may_go;
};

static void hold(vigil_agent *agent, void *argument) {
    struct holder *holder = argument;
    (void)agent;
    vigil_mutex_lock(&mutex);
    __atomic_store_n(&holder->holds, 1, __ATOMIC_SEQ_CST);
    vigil_wait32(&holder->may_go, 0, VIGIL_FOREVER);
    vigil_mutex_unlock(&mutex);
    __atomic_store_n(&holder->holds, 0, __ATOMIC_SEQ_CST);
}

static void let_go(struct holder *holder) {
    __atomic_store_n(&holder->may_go, 1, __ATOMIC_SEQ_CST);
    vigil_notify(&holder->may_go, 1);
}

static void never_called(vigil_op *op, int status) {
    (void)op, (void)status;
    wrong = true;
}

/*
 * What vigil_mutex_execute does inside, by hand, since the moment between its steps is too short to hit. The mutex is
 * the well-known three-state lock: 0 free, 1 locked, 2 locked and there may be waiters.
 */
static void released_before_the_wait(void) {
    struct holder first = {0};
    vigil_op op = {0};
    uint32_t free_word = 0, locked = 1;
    printf("\nReleased between the failed attempt and the wait\n");
    start(hold, &first);
    busy_until(&first.holds, 1);

    bool taken = __atomic_compare_exchange_n(&mutex.word, &free_word, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    check(!taken, "the loop tries: the first thread has the lock");
    __atomic_compare_exchange_n(&mutex.word, &locked, 2, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    let_go(&first);
    busy_until(&first.holds, 0);
    check(vigil_waiters(&mutex) == 0, "the first thread lets go of it, and there is no waiter to call");
    int status = vigil_wait32_async(loop, &op, &mutex, 2, VIGIL_FOREVER, never_called);
    check(status == VIGIL_NOT_EQUAL, "the loop wants to wait: not-equal. A wait now could last for ever");
    check(vigil_mutex_trylock(&mutex) == VIGIL_OK, "it tries again, and has the lock");
    vigil_mutex_unlock(&mutex);
}

static void on_lock(vigil_op *op, int status) {
    int *calls = op->data;
    *calls += status == VIGIL_OK ? 1 : 1000;
}

static void taken_after_the_call(void) {
    struct holder first = {0}, third = {0};
    int calls = 0;
    vigil_request request = {.op.data = &calls};
    printf("\nTaken by a third between the call and the attempt\n");
    start(hold, &first);
    busy_until(&first.holds, 1);
    int status = vigil_mutex_execute(loop, &request, &mutex, VIGIL_FOREVER, on_lock);
    check(status == VIGIL_PENDING && vigil_waiters(&mutex) == 1, "the first thread has the lock, the loop is in line");
    start(hold, &third);
    busy_until_in_line(2);

    let_go(&first); /* calls the loop; and the thread behind it, since a loop might not come for a long time */
    busy_until(&third.holds, 1);
    check(vigil_waiters(&mutex) == 0,
          "the first lets go and calls the loop. That is busy, and the third takes the lock");
    vigil_agent_run_until(loop, vigil_now_ns());
    check(calls == 0 && vigil_waiters(&mutex) == 1,
          "the loop comes, finds it taken, and goes back to its place in line");
    let_go(&third);
    vigil_agent_run(loop);
    check(calls == 1, "the third lets go: the loop has the lock, once");
    check(!vigil_mutex_is_locked(&mutex), "and has let go of it");
    busy_until(&first.holds, 0); /* they are done with what is on our stack */
    busy_until(&third.holds, 0);
}

int main(void) {
    if (vigil_agent_create(&loop, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK) abort();
    all_at_once();
    released_before_the_wait();
    taken_after_the_call();
    vigil_agent_destroy(loop);
    join_all();
    printf(wrong ? "\nWRONG\n" : "\nAll as it should be.\n");
    return wrong;
}
