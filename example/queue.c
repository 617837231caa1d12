/* SPDX-License-Identifier: MIT */
/*
 * Two bounded queues between an event loop and a pool of threads: jobs go one way, results come back the other. A
 * thread that finds a queue empty or full blocks on a condition. The loop must not, so it waits for the same conditions
 * asynchronously. They are the well-known two conditions of a bounded queue, and nothing is special about either side.
 *
 * The program checks that each job was done exactly once, and exits with 1 if not.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/vigil.h>

#define CAPACITY    4
#define JOBS        1000
#define THREADS     3
#define A_LITTLE_NS (10 * INT64_C(1000000))

struct queue {
    vigil_mutex mutex;
    vigil_cond not_empty, not_full;
    int items[CAPACITY];
    unsigned first, count;
    bool closed; /* nothing more will come */
};

static struct queue jobs, results;
static bool wrong;

/* Call these with the mutex held, and only when there is room, or an item. */

static void push(struct queue *queue, int item) {
    queue->items[(queue->first + queue->count++) % CAPACITY] = item;
    vigil_cond_signal(&queue->not_empty);
}

static int pop(struct queue *queue) {
    int item = queue->items[queue->first];
    queue->first = (queue->first + 1) % CAPACITY;
    queue->count--;
    vigil_cond_signal(&queue->not_full);
    return item;
}

/* The threads block. */

static bool take(struct queue *queue, int *item) {
    vigil_mutex_lock(&queue->mutex);
    while (queue->count == 0 && !queue->closed) vigil_cond_wait(&queue->not_empty, &queue->mutex);
    bool any = queue->count > 0;
    if (any) *item = pop(queue);
    vigil_mutex_unlock(&queue->mutex);
    return any;
}

static void put(struct queue *queue, int item) {
    vigil_mutex_lock(&queue->mutex);
    while (queue->count == CAPACITY) vigil_cond_wait(&queue->not_full, &queue->mutex);
    push(queue, item);
    vigil_mutex_unlock(&queue->mutex);
}

static void work(vigil_agent *agent, void *argument) {
    (void)agent, (void)argument;
    for (int job; take(&jobs, &job);) put(&results, -job);
}

/* The loop is called back, with the mutex held. What it cannot do now it does the next time: it goes round by way of
 * the condition, which releases the mutex meanwhile. */

static vigil_agent *loop;
static int submitted, received, done[JOBS], submit_waits, collect_waits;

static void wait_for(vigil_op *op, vigil_cond *cond, struct queue *queue, vigil_callback *again) {
    int status = vigil_cond_wait_async(loop, (vigil_request *)op, cond, &queue->mutex, VIGIL_FOREVER, again);
    if (status != VIGIL_PENDING) abort();
}

static void submit(vigil_op *op, int status) {
    wrong |= status != VIGIL_OK;
    while (submitted < JOBS && jobs.count < CAPACITY) push(&jobs, submitted++);
    if (submitted < JOBS) {
        submit_waits++;
        wait_for(op, &jobs.not_full, &jobs, submit);
    } else {
        jobs.closed = true;
        vigil_cond_broadcast(&jobs.not_empty);
        vigil_mutex_unlock(&jobs.mutex);
    }
}

static void collect(vigil_op *op, int status) {
    wrong |= status != VIGIL_OK;
    for (; results.count > 0; received++) done[-pop(&results)]++;
    if (received < JOBS) {
        collect_waits++;
        wait_for(op, &results.not_empty, &results, collect);
    } else {
        vigil_mutex_unlock(&results.mutex);
    }
}

/* Before any thread works: a wait that times out. It, too, ends with the mutex held. */
static void on_nothing(vigil_op *op, int status) {
    (void)op;
    printf("no thread works yet: %s\n", vigil_status_name(status));
    wrong |= status != VIGIL_TIMED_OUT || !vigil_mutex_is_locked(&results.mutex);
    vigil_mutex_unlock(&results.mutex);
}

int main(void) {
    vigil_worker *threads[THREADS];
    vigil_request submitting = {0}, collecting = {0};
    if (vigil_agent_create(&loop, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK) abort();

    vigil_mutex_lock(&results.mutex); /* it is free: that does not block */
    vigil_cond_wait_async(loop, &collecting, &results.not_empty, &results.mutex, A_LITTLE_NS, on_nothing);
    vigil_agent_run(loop);

    vigil_mutex_execute_later(loop, &collecting, &results.mutex, VIGIL_FOREVER, collect);
    vigil_mutex_execute_later(loop, &submitting, &jobs.mutex, VIGIL_FOREVER, submit);
    for (int i = 0; i < THREADS; i++) {
        if (vigil_worker_start(&threads[i], work, NULL) != VIGIL_OK) abort();
    }
    vigil_agent_run(loop); /* until nothing is pending */
    vigil_agent_destroy(loop);
    for (int i = 0; i < THREADS; i++) {
        vigil_worker_stop(threads[i]);
        wrong |= vigil_worker_join(threads[i]) != VIGIL_OK;
    }

    for (int i = 0; i < JOBS; i++) wrong |= done[i] != 1;
    printf("%d jobs through %d places: the loop waited %d times for room and %d times for results, and never blocked\n",
           received, CAPACITY, submit_waits, collect_waits);
    if (wrong) printf("WRONG\n");
    return wrong;
}
