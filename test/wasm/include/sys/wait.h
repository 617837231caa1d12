/* SPDX-License-Identifier: MIT */
/* Declarations only: there are no processes, and tests that use them are left out (../../left_out.js). */
#ifndef VIGIL_WASM_WAIT_H
#define VIGIL_WASM_WAIT_H

#include <unistd.h>

#define WIFEXITED(status)   ((status) == 0)
#define WEXITSTATUS(status) (status)
#define WTERMSIG(status)    (status)
pid_t waitpid(pid_t child, int *status, int options);

#endif
