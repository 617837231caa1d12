/* SPDX-License-Identifier: MIT */
/* A constructor that waits before those of the library, which is in another object, have run. */
#include <stdlib.h>
#include <vigil/wait.h>

__attribute__((constructor)) static void wait_early(void) {
    uint32_t word = 0;
    if (vigil_wait32(&word, 0, 1) != VIGIL_TIMED_OUT) abort();
}
