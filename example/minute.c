/* SPDX-License-Identifier: MIT */
/* The README's example: a worker blocks and an event loop does not, on the same word. */
#include <stdio.h>
#include <vigil/vigil.h>

static uint32_t ready; /* 0: not yet */

static void work(vigil_agent *agent, void *argument) {
    (void)agent, (void)argument;
    int status = vigil_wait32(&ready, 0, VIGIL_FOREVER); /* blocks */
    printf("the worker: %s\n", vigil_status_name(status));
}

static void on_ready(vigil_op *op, int status) {
    printf("the loop, %s: %s\n", (const char *)op->data, vigil_status_name(status));
}

int main(void) {
    vigil_agent *loop;
    vigil_worker *worker;
    vigil_agent_create(&loop, 0);
    vigil_worker_start(&worker, work, NULL);

    vigil_op patient = {.data = "patient"}, hurried = {.data = "hurried"};
    vigil_wait32_async(loop, &patient, &ready, 0, VIGIL_FOREVER, on_ready); /* does not block */
    vigil_wait32_async(loop, &hurried, &ready, 0, 10 * 1000 * 1000, on_ready);
    vigil_agent_run_until(loop, vigil_now_ns() + 20 * 1000 * 1000); /* 10 ms are over in between */

    while (vigil_waiters(&ready) < 2) continue; /* the patient one and the worker */
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    printf("notified %d\n", (int)vigil_notify(&ready, VIGIL_ALL));
    vigil_agent_run(loop); /* until nothing is pending */

    vigil_worker_stop(worker);
    vigil_worker_join(worker);
    return vigil_agent_destroy(loop);
}
