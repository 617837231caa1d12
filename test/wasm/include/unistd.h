/* SPDX-License-Identifier: MIT */
/* What wasi-libc does not declare. Not available, but for getpid, and syscall of SYS_gettid. */
#ifndef VIGIL_WASM_UNISTD_H
#define VIGIL_WASM_UNISTD_H

#pragma GCC system_header /* else include_next is a language extension */
#include_next <unistd.h>

typedef int pid_t;
pid_t getpid(void);
pid_t fork(void);
unsigned alarm(unsigned seconds);
int dup(int fd);
int dup2(int fd, int as);
int pipe(int fds[2]);
long syscall(long number, ...);

#endif
