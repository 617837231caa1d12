/* SPDX-License-Identifier: MIT */
/* The threads of prim.h, where each is an instance of the module that the embedder has made: prim_wasm.h. */
#include <errno.h>
#include <stdlib.h>

#include "prim.h"
#include "prim_wasm.h"

static void (*thread_at_exit)(struct prim_thread *);

void prim_wasm_end_thread(void) {
    struct prim_thread *self = prim_self();
    if (!self->exit_hooked) return;
    self->exit_hooked = false;
    thread_at_exit(self);
}

bool prim_start(void (*at_exit)(struct prim_thread *), void (*in_child)(void)) {
    (void)in_child;
    thread_at_exit = at_exit;
    return true;
}

bool prim_keep_self(bool may_allocate) {
    (void)may_allocate;
    return prim_self()->exit_hooked = true;
}

struct prim_handle {
    void (*main)(void *);
    void *argument;
    uint32_t ended; /* atomic; the joiner sleeps on it */
    bool detached;
};

/* The hooks run before the joiner learns that the thread has ended, and may free the handle. */
static void prim_thread_main(void *start) {
    struct prim_handle *handle = start;
    handle->main(handle->argument);
    prim_wasm_end_thread();
    if (handle->detached) {
        free(handle);
        return;
    }
    prim_store_release(&handle->ended, 1);
    prim_wake(&handle->ended);
}

bool prim_thread_start(struct prim_handle **handle, void (*main)(void *), void *argument, bool quiet) {
    (void)quiet;
    struct prim_handle *new = malloc(sizeof *new);
    if (!new) return false;
    *new = (struct prim_handle){.main = main, .argument = argument, .detached = !handle};
    if (!vigil_thread_start(prim_thread_main, new)) {
        free(new);
        errno = EAGAIN;
        return false;
    }
    if (handle) *handle = new;
    return true;
}

void prim_thread_join(struct prim_handle *handle) {
    while (!prim_load_acquire(&handle->ended)) prim_park(&handle->ended, 0, PRIM_NEVER);
    free(handle);
}
