/* SPDX-License-Identifier: MIT */
/*
 * tsan.h - what the thread sanitizer must be told.
 *
 * Programs are built with it, the library usually is not. Then it does not see that what one thread did before it
 * unlocked, notified or posted happens before what another thread does after it has locked, been notified or called.
 * It would report races where there are none. So the library tells it, if the sanitizer is part of the program: by
 * weak symbols, which are null elsewhere. Both sides name an address that they share, and assert no more order than
 * there is, so other races are still found. Functions that are inline in the public headers are instrumented in the
 * program; the library itself must not use those (VIGIL_NO_INLINE).
 *
 * When the library is built with the sanitizer nothing needs to be told, and its own mistakes are not hidden.
 */
#ifndef VIGIL_TSAN_H
#define VIGIL_TSAN_H

#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define TSAN_SEES_US 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN_SEES_US 1
#endif
#endif

#ifndef TSAN_SEES_US
extern void __tsan_acquire(void *address) __attribute__((weak, visibility("default")));
extern void __tsan_release(void *address) __attribute__((weak, visibility("default")));
#endif

/* What was done before any earlier tsan_release of this address happens before what follows. */
static inline void tsan_acquire(const volatile void *address) {
#ifdef TSAN_SEES_US
    (void)address;
#else
    if (__tsan_acquire) __tsan_acquire((void *)(uintptr_t)address);
#endif
}

static inline void tsan_release(const volatile void *address) {
#ifdef TSAN_SEES_US
    (void)address;
#else
    if (__tsan_release) __tsan_release((void *)(uintptr_t)address);
#endif
}

#endif
