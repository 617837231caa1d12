/* SPDX-License-Identifier: MIT */
/*
 * One lock for pthreads that block and the first thread, which is an event loop: of a page, or of Node. Emscripten
 * links it, with Vigil in the program's own memory:
 *
 *     emcmake cmake -B build/emscripten && cmake --build build/emscripten
 *     emcc -pthread -sPTHREAD_POOL_SIZE=6 -sINITIAL_MEMORY=64MB -O2 -Iinclude -Iweb/emscripten \
 *          web/example/emscripten.c build/emscripten/libvigil.a -o contest.html
 *
 * The pool has a worker for each thread, and for the library's own. The program checks what it counts.
 */
#include <emscripten.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <vigil/vigil.h>
#include <vigil_emscripten.h>

#define THREADS 4
#define TURNS   2000

static vigil_mutex mutex;
static unsigned total, of_the_loop; /* plain: the lock protects them */
static vigil_agent *loop;
static vigil_request request;
static uint32_t finished; /* threads; the loop waits for it to be THREADS */
static vigil_op op_of_the_loop;

static void *work(void *unused) {
    for (int turn = 0; turn < TURNS; turn++) {
        vigil_mutex_lock(&mutex); /* blocks */
        total++;
        vigil_mutex_unlock(&mutex);
    }
    __atomic_fetch_add(&finished, 1, __ATOMIC_SEQ_CST);
    vigil_notify(&finished, VIGIL_ALL);
    return unused;
}

static void end(void) {
    bool right = total == (THREADS + 1) * TURNS;
    printf("%u times locked, %u of them by the loop: %s\n", total, of_the_loop, right ? "none was lost" : "WRONG");
    vigil_emscripten_detach(loop);
    emscripten_force_exit(right ? 0 : 1);
}

/* Each change of `finished` is notified: wait for the next one, until it was the last. */
static void on_finished(vigil_op *op, int status) {
    uint32_t seen = __atomic_load_n(&finished, __ATOMIC_SEQ_CST);
    (void)status;
    if (seen == THREADS) end();
    else if (vigil_wait32_async(loop, op, &finished, seen, VIGIL_FOREVER, on_finished) != VIGIL_PENDING)
        on_finished(op, VIGIL_OK);
}

static void with_the_lock_held(vigil_op *op, int status) {
    (void)status;
    total++;
    if (++of_the_loop == TURNS) on_finished(&op_of_the_loop, VIGIL_OK);
    else vigil_mutex_execute(loop, (vigil_request *)op, &mutex, VIGIL_FOREVER, with_the_lock_held);
}

static int start_threads(void) {
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0) return 1;
        pthread_detach(thread);
    }
    return 0;
}

static void begin(vigil_op *op, int status) {
    (void)op;
    if (status != VIGIL_TIMED_OUT) emscripten_force_exit(1);
    vigil_mutex_lock(&mutex); /* it is free: that does not block */
    if (start_threads() != 0) emscripten_force_exit(1);
    vigil_mutex_execute(loop, &request, &mutex, VIGIL_FOREVER, with_the_lock_held); /* waits in line */
    vigil_mutex_unlock(&mutex);
}

int main(void) {
    static uint32_t nothing; /* no thread notifies it: a deadline ends the wait */
    if (vigil_agent_create(&loop, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK) return 1;
    if (vigil_emscripten_attach(loop) != VIGIL_OK) return 1;
    if (vigil_wait32_async(loop, &op_of_the_loop, &nothing, 0, 5 * 1000000, begin) != VIGIL_PENDING) return 1;
    emscripten_exit_with_live_runtime(); /* go on in the event loop */
    return 1;
}
