/* SPDX-License-Identifier: MIT */
/* The part of pthread.h that our unit tests use, on the library's own threads: see ../libc.c. */
#ifndef VIGIL_WASM_PTHREAD_H
#define VIGIL_WASM_PTHREAD_H

#include <stdint.h>

typedef struct wasm_thread *pthread_t;
typedef struct wasm_barrier {
    uint32_t parties, arrived, round;
} pthread_barrier_t;

#define PTHREAD_BARRIER_SERIAL_THREAD (-1)

int pthread_create(pthread_t *thread, const void *attributes, void *(*main)(void *), void *argument);
int pthread_join(pthread_t thread, void **result);
int pthread_tryjoin_np(pthread_t thread, void **result);
pthread_t pthread_self(void);
int pthread_equal(pthread_t a, pthread_t b);
int pthread_barrier_init(pthread_barrier_t *barrier, const void *attributes, unsigned count);
int pthread_barrier_wait(pthread_barrier_t *barrier);
int pthread_barrier_destroy(pthread_barrier_t *barrier);

/* Not available. */
int pthread_kill(pthread_t thread, int signal);
int pthread_cancel(pthread_t thread);
void pthread_testcancel(void);
_Noreturn void pthread_exit(void *result);

#endif
