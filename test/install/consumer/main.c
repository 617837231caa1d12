/* SPDX-License-Identifier: MIT */
/* A user's program, both C11 and C++17: an event loop waits for a word that it then notifies itself. */
#include <stdio.h>
#include <vigil/vigil.h>

static uint32_t word;
static int answer = -1;

static void on_notified(vigil_op *op, int status) {
    (void)op;
    answer = status;
}

int main(void) {
    static vigil_op op;
    vigil_agent *agent;
    if (vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK) return 1;
    if (vigil_wait32_async(agent, &op, &word, 0, VIGIL_FOREVER, on_notified) != VIGIL_PENDING) return 2;
    if (vigil_notify(&word, 1) != 1) return 3;
    if (vigil_agent_run(agent) != VIGIL_OK || answer != VIGIL_OK) return 4;
    if (vigil_agent_destroy(agent) != VIGIL_OK) return 5;
    printf("vigil %d.%d.%d\n", VIGIL_VERSION_MAJOR, VIGIL_VERSION_MINOR, VIGIL_VERSION_PATCH);
    return 0;
}
