/* SPDX-License-Identifier: MIT */
/*
 * prim_wasm.h - between WebAssembly and JavaScript: what prim/wasm imports from its embedder, and exports to it.
 *
 * Each thread is a worker (or the page) with an instance of the module, and all instances import the same memory. They
 * share its contents, but each has its own globals, and all begin with the same stack pointer. So before a thread
 * calls anything else, it needs a stack and thread-local data of its own, from prim_wasm_take_area. That call itself
 * runs on the stack which all instances begin with: one thread at a time.
 *
 *     to begin   E1  number = Atomics.add(prim_wasm_threads, 1) + 1; the names are exported addresses. Lock
 *                    prim_wasm_door, by Atomics: it changes from 0 to 2 * number
 *                E2  area = prim_wasm_take_area(stack bytes)
 *                E3  unlock it: exchange it for 0; if that was odd, notify one
 *                E4  __stack_pointer.value = area + stack bytes; __wasm_init_tls(area + stack bytes)
 *                E5  prim_wasm_begin_thread(whether this thread may sleep in Atomics.wait, number)
 *     to end     E6  prim_wasm_end_thread()
 *                E7  __stack_pointer.value = its first value; then as E1 to E3, with prim_wasm_give_area(area)
 *
 * The first instance initialises the memory. Another that is made at the same time sleeps until that is done, which a
 * page may not: it makes the first one.
 *
 * A worker that is terminated does neither of the last two: what it holds stays held, and its area taken, unless
 * another instance ends it: prim_wasm_resume_thread. The door is also the gate of the heap: if it has the number of
 * that worker, unlock it (E3) before anything else. What is behind it is in order.
 *
 * An event loop has no descriptor to poll: vigil_agent_fd returns the address of the bell's word (bell_word.h), to be
 * waited for by Atomics.waitAsync while bit 0 is clear. The embedder calls vigil_agent_dispatch when the bit is set,
 * and at the time of the alarm. As an address is an int there, the memory may have 2 GiB at most.
 */
#ifndef VIGIL_PRIM_WASM_H
#define VIGIL_PRIM_WASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __EMSCRIPTEN__ /* emscripten.c has what is imported otherwise, and needs no more than prim_wasm_begin_thread */
#define WASM_IMPORT(name)
#define WASM_EXPORT(name)
#else
#define WASM_IMPORT(name) __attribute__((import_module("env"), import_name(#name)))
#define WASM_EXPORT(name) __attribute__((export_name(#name)))
#endif

/* Imports. */

/* Milliseconds, by a clock that all threads share: performance.timeOrigin + performance.now(). */
WASM_IMPORT(vigil_now) double vigil_now(void);
/* navigator.hardwareConcurrency */
WASM_IMPORT(vigil_processors) uint32_t vigil_processors(void);
/* The event loop of the bell with its word there must dispatch when vigil_now is that time or later; Infinity: it need
 * not. The alarm stays until it is set anew: a loop that dispatches earlier must do so again. Called by the loop's own
 * thread. */
WASM_IMPORT(vigil_alarm) void vigil_alarm(const uint32_t *word, double at_ms);
/* Start a thread that may sleep: it begins (E1 to E5), calls main(argument), an index in __indirect_function_table, and
 * ends (E6, E7). Zero: it cannot. The caller may sleep before the thread has begun. */
WASM_IMPORT(vigil_thread_start) int vigil_thread_start(void (*main)(void *), void *argument);
/* Called again and again by a thread that spins, as it may not sleep, for a lock of the library, which is held for
 * microseconds: if that takes seconds, its holder was terminated. Called once a second by a thread that sleeps. The
 * embedder may throw, and must not call the thread's instance any more then. */
WASM_IMPORT(vigil_spin) void vigil_spin(void);
/* Write text for users; `fd` is 1 or 2. Zero: it cannot. */
WASM_IMPORT(vigil_write) int vigil_write(int fd, const char *text, size_t bytes);

/* Exports. */

/* A stack of that size (a multiple of 64), with room for thread-local data above it. Null: there is no memory. */
WASM_EXPORT(prim_wasm_take_area) void *prim_wasm_take_area(size_t stack_bytes);
WASM_EXPORT(prim_wasm_give_area) void prim_wasm_give_area(void *area);
/* If it may not sleep, as the thread of a page may not, blocking calls return VIGIL_EMAYNOTBLOCK there. Number 0: it
 * gets one when it needs it. */
WASM_EXPORT(prim_wasm_begin_thread) void prim_wasm_begin_thread(bool may_park, uint32_t number);
WASM_EXPORT(prim_wasm_end_thread) void prim_wasm_end_thread(void);
/* To end a thread that has stopped: another instance may take its place, if that was not in a call of the library. It
 * sets __stack_pointer and __tls_base to those of the thread, and says whether it may sleep itself. */
WASM_EXPORT(prim_wasm_resume_thread) void prim_wasm_resume_thread(bool may_park);
/* In memory of another program: the heap is zeroed memory between these addresses, and does not grow. To be called
 * before all others, if at all; to be exported by the linker where it is. */
void prim_wasm_set_heap(uintptr_t from, uintptr_t to);
/* To be exported by the linker: --export=prim_wasm_door,prim_wasm_threads,__stack_pointer,__wasm_init_tls */
extern uint32_t prim_wasm_door, prim_wasm_threads;

#endif
