/* SPDX-License-Identifier: MIT */
/* The program of early.c: it is started, and that is all. */
#include <vigil/wait.h>

int main(void) {
    uint32_t word = 0;
    return vigil_notify(&word, 1) == 0 ? 0 : 1;
}
