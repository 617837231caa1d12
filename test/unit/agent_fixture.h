/* SPDX-License-Identifier: MIT */
/* agent_fixture.h - words to wait on, and an agent of this thread, made anew for each test. Include after support.h. */
#ifndef VIGIL_TEST_AGENT_FIXTURE_H
#define VIGIL_TEST_AGENT_FIXTURE_H

static uint64_t storage[64];
static uint32_t *const word = (uint32_t *)storage;
static vigil_agent *agent;

static int set_up(void **state) {
    (void)state;
    memset(storage, 0, sizeof storage);
    return vigil_agent_create(&agent, 0) != VIGIL_OK;
}

static int tear_down(void **state) {
    (void)state;
    return vigil_agent_destroy(agent) != VIGIL_OK || vigil_forget(storage, sizeof storage) != 0;
}

#endif
