/* SPDX-License-Identifier: MIT */
/*
 * A page with a button, in the terminal. The main thread closes a lock in shared memory and gives the memory to a
 * worker. The worker waits for the lock, and really blocks. Enter is the button that opens it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <vigil/vigil.h>

static int unlocked; /* what the worker has to say in the end; read when it has been joined */

static void must(int status) {
    if (status == VIGIL_OK) return;
    fprintf(stderr, "shared_lock: %s\n", vigil_strerror(status));
    exit(1);
}

/* Each side makes a lock of its own out of the memory: new Lock(new Int32Array(buffer), 0). */
static vigil_mutex *lock_in(vigil_buffer *buffer) {
    vigil_view words;
    vigil_mutex *lock;
    must(vigil_view_init(&words, buffer, VIGIL_I32, 0, VIGIL_TO_END));
    must(vigil_mutex_in(words, 0, &lock));
    return lock;
}

static void on_message(vigil_agent *worker, void *buffer) {
    vigil_mutex *lock = lock_in(buffer);
    (void)worker;
    printf("Waiting for lock... (press Enter to unlock it)\n");
    must(vigil_mutex_lock(lock)); /* blocks! */
    printf("Unlocked\n");
    unlocked = 1;
    must(vigil_mutex_unlock(lock));
}

int main(void) {
    vigil_buffer *buffer;
    vigil_worker *worker;
    must(vigil_buffer_create(&buffer, sizeof(int32_t), sizeof(int32_t)));
    vigil_mutex *lock = lock_in(buffer);
    must(vigil_mutex_lock(lock));

    must(vigil_worker_start(&worker, NULL, NULL));
    must(vigil_agent_post(vigil_worker_agent(worker), on_message, buffer));

    for (int c = getchar(); c != '\n' && c != EOF;) c = getchar();
    must(vigil_mutex_unlock(lock)); /* the button */

    must(vigil_worker_stop(worker));
    must(vigil_worker_join(worker));
    vigil_buffer_destroy(buffer);
    return unlocked ? 0 : 1;
}
