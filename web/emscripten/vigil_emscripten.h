/* SPDX-License-Identifier: MIT */
/*
 * vigil_emscripten.h - an agent in the event loop of a page or a worker, for programs that Emscripten links.
 *
 *     vigil_agent *agent;
 *     vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK);
 *     vigil_emscripten_attach(agent);
 *
 *     vigil_mutex_execute(agent, &request, &mutex, VIGIL_FOREVER, with_the_lock_held);
 *     return 0;                                            of main: the event loop calls with_the_lock_held
 *
 *     vigil_emscripten_detach(agent);
 *     vigil_agent_destroy(agent);
 *
 * The agent's own thread must return to its event loop: main must return, or the function of a thread call
 * emscripten_exit_with_live_runtime. Threads that block need no adapter, nor does vigil_agent_run in a thread that may
 * block. Detach first, then destroy. Pending waits stay in line while the agent is detached.
 *
 * On the first thread of a page, blocking calls return VIGIL_EMAYNOTBLOCK in any case.
 */
#ifndef VIGIL_ADAPTER_EMSCRIPTEN_H
#define VIGIL_ADAPTER_EMSCRIPTEN_H

#include <stddef.h>
#include <stdint.h>
#include <vigil/agent.h>

/* Of the library: src/prim/wasm/emscripten.c. */
void vigil__emscripten_watch(const uint32_t *word, void (*dispatch)(void *), void *agent);

static inline void vigil_emscripten_on_bell(void *agent) {
    vigil_agent_dispatch((vigil_agent *)agent);
}

/*
 * vigil_emscripten_attach - have the event loop of this thread serve the agent, whose callbacks run inside it from now
 * on. VIGIL_OK, or what vigil_agent_fd returns: VIGIL_ENULL, VIGIL_EWRONGTHREAD.
 */
static inline int vigil_emscripten_attach(vigil_agent *agent) {
    int word = vigil_agent_fd(agent);
    if (word < 0) return word;
    vigil__emscripten_watch((const uint32_t *)(uintptr_t)word, vigil_emscripten_on_bell, agent);
    return VIGIL_OK;
}

/* vigil_emscripten_detach - the event loop does not serve the agent any more. Also inside one of its callbacks. */
static inline int vigil_emscripten_detach(vigil_agent *agent) {
    int word = vigil_agent_fd(agent);
    if (word < 0) return word;
    vigil__emscripten_watch((const uint32_t *)(uintptr_t)word, NULL, agent);
    return VIGIL_OK;
}

#endif
