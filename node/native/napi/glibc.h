/* SPDX-License-Identifier: MIT */
/*
 * glibc.h - included before everything else when the C library is glibc, so that the binary also runs with that of
 * Node 18's oldest systems, 2.28.
 *
 * Functions of libpthread and libdl have moved into libc since, with a new version of the symbol; the old one is still
 * there. stat became a function of its own in 2.33: here it is the system call, whose struct is the same.
 */
#ifndef VIGIL_NODE_GLIBC_H
#define VIGIL_NODE_GLIBC_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define GLIBC_FIRST "GLIBC_2.2.5"
#else
#define GLIBC_FIRST "GLIBC_2.17"
#endif
#define GLIBC_OLD(name) __asm__(".symver " #name ", " #name "@" GLIBC_FIRST)

GLIBC_OLD(pthread_create);
GLIBC_OLD(pthread_detach);
GLIBC_OLD(pthread_join);
GLIBC_OLD(pthread_key_create);
GLIBC_OLD(pthread_key_delete);
GLIBC_OLD(pthread_getspecific);
GLIBC_OLD(pthread_setspecific);
GLIBC_OLD(pthread_once);
GLIBC_OLD(pthread_sigmask);
GLIBC_OLD(dladdr);
GLIBC_OLD(dlclose);
GLIBC_OLD(dlerror);
GLIBC_OLD(dlopen);
GLIBC_OLD(dlsym);

static inline int glibc_stat(const char *path, struct stat *result) {
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, result, 0);
}
#define stat(path, result) glibc_stat(path, result)

#endif
