/* SPDX-License-Identifier: MIT */
/*
 * What prim_wasm.h imports, and the threads of prim.h, for programs that Emscripten links with -pthread: stacks,
 * thread-local data, memory and libc are Emscripten's. pthreads.c starts the library's own threads.
 *
 * The program's first thread may be that of a page, which cannot sleep. Agents that are served by the event loop of a
 * page or a worker: see web/emscripten/vigil_emscripten.h.
 */
#include <emscripten.h>
#include <emscripten/threading.h>
#include <pthread.h>
#include <unistd.h>

#include "prim.h"
#include "prim_wasm.h"

typedef void emscripten_function(void *);

/* clang-format off */
EM_JS(double, emscripten_clock_ms, (void), {
    return performance.timeOrigin + performance.now();
})

/* At the time of the alarm wake the asynchronous sleeper on the bell's word, which then dispatches. Never at once: the
 * loop may be about to sleep. A timer may be early, and cannot be set for more than 24 days. */
EM_JS(void, emscripten_alarm, (const uint32_t *word, double at_ms), {
    var timers = Module['vigilTimers'] = Module['vigilTimers'] || {};
    function left() {
        return at_ms + 0.001 - performance.timeOrigin - performance.now();
    }
    function set() {
        timers[word] = setTimeout(look, Math.min(Math.max(Math.ceil(left()), 0), 0x7fffffff));
    }
    function look() {
        if (left() > 0) set();
        else Atomics.notify(HEAP32, word >> 2);
    }
    clearTimeout(timers[word]);
    delete timers[word];
    if (at_ms !== Infinity) set();
})

/* For web/emscripten/vigil_emscripten.h: call dispatch(agent) whenever the bell with its word there has rung, or its
 * alarm has gone off; null: not any more. bell_word.h has the argument. Without Atomics.waitAsync, look every
 * millisecond. */
EM_JS(void, vigil__emscripten_watch, (const uint32_t *word, emscripten_function *dispatch, void *agent), {
    var watched = Module['vigilWatched'] = Module['vigilWatched'] || {};
    var self = watched[word] = {};
    function ring() {
        if (watched[word] !== self) return;
        wasmTable.get(dispatch)(agent);
        look();
    }
    function look() {
        if (watched[word] !== self) return;
        var seen = Atomics.load(HEAP32, word >> 2);
        var wait = seen & 1 ? {} : Atomics.waitAsync ? Atomics.waitAsync(HEAP32, word >> 2, seen) : null;
        if (wait === null) setTimeout(ring, 1);
        else (wait.async ? wait.value : Promise.resolve()).then(ring);
    }
    if (dispatch) return look();
    delete watched[word];
    Atomics.notify(HEAP32, word >> 2);
})
/* clang-format on */

double vigil_now(void) {
    return emscripten_clock_ms();
}

uint32_t vigil_processors(void) {
    return (uint32_t)emscripten_num_logical_cores();
}

void vigil_alarm(const uint32_t *word, double at_ms) {
    emscripten_alarm(word, at_ms);
}

void vigil_spin(void) {
}

int vigil_write(int fd, const char *text, size_t bytes) {
    return write(fd, text, bytes) == (ssize_t)bytes;
}

/* Threads. */

static void (*thread_at_exit)(struct prim_thread *);
static pthread_key_t exit_key;
static bool key_made;

static void prim_on_thread_exit(void *thread) {
    struct prim_thread *ending = thread;
    ending->exit_hooked = false;
    thread_at_exit(ending);
}

/* On the program's first thread, before main. */
__attribute__((constructor)) static void prim_load(void) {
    prim_wasm_begin_thread(!emscripten_is_main_browser_thread(), 0);
    key_made = pthread_key_create(&exit_key, prim_on_thread_exit) == 0;
}

bool prim_start(void (*at_exit)(struct prim_thread *), void (*in_child)(void)) {
    (void)in_child;
    thread_at_exit = at_exit;
    return true;
}

bool prim_keep_self(bool may_allocate) {
    (void)may_allocate;
    struct prim_thread *self = prim_self();
    if (!self->exit_hooked && key_made) self->exit_hooked = pthread_setspecific(exit_key, self) == 0;
    return self->exit_hooked;
}
