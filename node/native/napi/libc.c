/* SPDX-License-Identifier: MIT */
/*
 * The binary for glibc must not be loaded by musl, which would accept it and find out about missing functions when they
 * are called. A pointer to a function that musl lacks makes it refuse at once; lib/native.js loads the other binary
 * then. In the other direction libc.so, the name of musl, is not found.
 */
#include <features.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
const char *(*const libc_is_glibc)(void)__attribute__((used)) = gnu_get_libc_version;
#elif defined __aarch64__
/* libgcc asks glibc's internal function, when it is loaded, whether the processor has atomic instructions. */
#include <sys/auxv.h>
unsigned long __getauxval(unsigned long type);
unsigned long __getauxval(unsigned long type) {
    return getauxval(type);
}
#endif
