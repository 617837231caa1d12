/* SPDX-License-Identifier: MIT */
/*
 * tsan.h - what the thread sanitizer is to know.
 *
 * Programs are built with it, the library mostly is not. Then it does not see that what one thread did before it
 * unlocked, notified or posted comes before what another does after it has locked, been notified or called; it would
 * report races where there are none. So the library tells it, if the sanitizer is part of the program: by a weak
 * symbol, which is null elsewhere. It says so of the address that both sides know, and no more than what holds, so
 * other races are still found. What is inline in the headers is seen in the program; the library must not use it.
 *
 * When the library is built with the sanitizer nothing needs to be told, and its own mistakes are not covered up.
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

/* What was done before any tsan_release of the address has happened before what comes now. */
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
