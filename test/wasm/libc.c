/* SPDX-License-Identifier: MIT */
/*
 * libc.c - what the unit tests use of the C library and of POSIX, for WebAssembly, besides what src/prim/wasm/libc.c
 * has: threads, text, poll on an agent's bell. What cannot be had there ends the program with a message; the tests
 * that would call it are left out (left_out.js).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bell_word.h"
#include "prim.h"
#include "prim_wasm.h"

/* Imports, and the export that starts the program. */

WASM_IMPORT(wasm_exit) _Noreturn void wasm_exit(int status);
WASM_IMPORT(wasm_is_left_out) int wasm_is_left_out(const char *test, size_t length);

bool wasm_leaves_out(const char *test);
bool wasm_leaves_out(const char *test) {
    return wasm_is_left_out(test, strlen(test));
}

int main(void);
WASM_EXPORT(wasm_main) void wasm_main(void);
void wasm_main(void) {
    wasm_exit(main());
}

_Noreturn void exit(int status) {
    wasm_exit(status);
}

_Noreturn void _Exit(int status) {
    wasm_exit(status);
}

_Noreturn void _exit(int status) {
    wasm_exit(status);
}

/* Text. */

struct _IO_FILE {
    int fd;
};
static struct _IO_FILE to_stdout = {1}, to_stderr = {2};
FILE *const stdout = &to_stdout;
FILE *const stderr = &to_stderr;

size_t fwrite(const void *restrict text, size_t each, size_t count, FILE *restrict file) {
    return prim_write(file->fd, text, each * count) ? count : 0;
}

int fputs(const char *restrict text, FILE *restrict file) {
    return prim_write(file->fd, text, strlen(text)) ? 0 : EOF;
}

int fputc(int byte, FILE *file) {
    char character = (char)byte;
    return prim_write(file->fd, &character, 1) ? byte : EOF;
}

int vfprintf(FILE *restrict file, const char *restrict format, va_list arguments) {
    char text[2048];
    int length = vsnprintf(text, sizeof text, format, arguments);
    size_t bytes = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    return prim_write(file->fd, text, bytes) ? length : -1;
}

int fprintf(FILE *restrict file, const char *restrict format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vfprintf(file, format, arguments);
    va_end(arguments);
    return length;
}

int fflush(FILE *file) {
    (void)file;
    return 0;
}

int strncmp(const char *a, const char *b, size_t most) {
    for (; most; most--, a++, b++) {
        if (*a != *b || !*a) return (unsigned char)*a - (unsigned char)*b;
    }
    return 0;
}

char *strstr(const char *text, const char *part) {
    size_t length = strlen(part);
    for (; *text; text++) {
        if (strncmp(text, part, length) == 0) return (char *)(uintptr_t)text;
    }
    return length ? NULL : (char *)(uintptr_t)text;
}

char *strrchr(const char *text, int character) {
    const char *last = NULL;
    for (; *text; text++) {
        if (*text == character) last = text;
    }
    return (char *)(uintptr_t)last;
}

/* Time. A thread that yields sleeps for a moment: those for which it waits may need the processor. */

int sched_yield(void) {
    uint32_t nothing = 0;
    prim_park(&nothing, 0, prim_now_ns() + 20000);
    return 0;
}

/* Threads. */

struct wasm_thread {
    void *(*main)(void *);
    void *argument, *result;
    struct prim_handle *handle;
    uint32_t ended;
};

static _Thread_local struct wasm_thread *wasm_self; /* null: the first thread, or one of the library's */

static void wasm_thread_main(void *started) {
    struct wasm_thread *self = wasm_self = started;
    self->result = self->main(self->argument);
    prim_store_release(&self->ended, 1);
}

int pthread_create(pthread_t *thread, const void *attributes, void *(*main)(void *), void *argument) {
    (void)attributes;
    struct wasm_thread *new = calloc(1, sizeof *new);
    if (!new) return ENOMEM;
    *new = (struct wasm_thread){.main = main, .argument = argument};
    *thread = new;
    if (prim_thread_start(&new->handle, wasm_thread_main, new, false)) return 0;
    free(new);
    return EAGAIN;
}

int pthread_join(pthread_t thread, void **result) {
    prim_thread_join(thread->handle);
    if (result) *result = thread->result;
    free(thread);
    return 0;
}

int pthread_tryjoin_np(pthread_t thread, void **result) {
    return prim_load_acquire(&thread->ended) ? pthread_join(thread, result) : EBUSY;
}

pthread_t pthread_self(void) {
    static _Thread_local struct wasm_thread other;
    return wasm_self ? wasm_self : &other;
}

int pthread_equal(pthread_t a, pthread_t b) {
    return a == b;
}

int pthread_barrier_init(pthread_barrier_t *barrier, const void *attributes, unsigned count) {
    (void)attributes;
    *barrier = (pthread_barrier_t){.parties = count};
    return 0;
}

int pthread_barrier_wait(pthread_barrier_t *barrier) {
    uint32_t round = prim_load_acquire(&barrier->round);
    if (prim_fetch_add_acq_rel(&barrier->arrived, 1) + 1 == barrier->parties) {
        prim_store_relaxed(&barrier->arrived, 0);
        prim_store_release(&barrier->round, round + 1);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (prim_load_acquire(&barrier->round) == round) sched_yield();
    return 0;
}

int pthread_barrier_destroy(pthread_barrier_t *barrier) {
    (void)barrier;
    return 0;
}

/* Poll, on one agent's descriptor: the address of a bell. */

static bool wasm_readable(const struct prim_bell *bell) {
    return (prim_load_acquire(&bell->word) & BELL_RUNG) || prim_now_ns() >= bell->alarm_ns;
}

int poll(struct pollfd *polled, nfds_t count, int timeout_ms) {
    struct prim_bell *bell = (struct prim_bell *)polled->fd;
    uint64_t until_ns = timeout_ms < 0 ? PRIM_NEVER : prim_now_ns() + (uint64_t)timeout_ms * 1000000;
    bool readable;
    if (count != 1) return -1;
    while (!(readable = wasm_readable(bell)) && prim_now_ns() < until_ns) {
        prim_bell_wait(bell, bell->alarm_ns < until_ns ? bell->alarm_ns : until_ns);
    }
    polled->revents = readable ? POLLIN : 0;
    return readable;
}

/* The system. */

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, long offset) {
    (void)address, (void)protection, (void)flags, (void)fd, (void)offset;
    void *memory = calloc(1, bytes);
    return memory ? memory : MAP_FAILED;
}

int munmap(void *address, size_t bytes) {
    (void)bytes;
    free(address);
    return 0;
}

/* Of all calls, SYS_gettid. */
long syscall(long number, ...) {
    (void)number;
    return (long)prim_thread_id();
}

pid_t getpid(void) {
    return (pid_t)prim_process_id();
}
