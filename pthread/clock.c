/* SPDX-License-Identifier: MIT */
/* Absolute times of pthreads' two clocks as deadlines of the monotonic one. */
#include "preload.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

bool deadline_is_valid(clockid_t clock, const struct timespec *at) {
    return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && at->tv_nsec >= 0 && at->tv_nsec < NS_PER_S;
}

/* What is beyond the range is never, or has passed. */
static int64_t ns_of(const struct timespec *at) {
    if (at->tv_sec < 0) return INT64_MIN / 2;
    if (at->tv_sec > INT64_MAX / 4 / NS_PER_S) return DEADLINE_NEVER;
    return (int64_t)at->tv_sec * NS_PER_S + at->tv_nsec;
}

int64_t deadline_of(clockid_t clock, const struct timespec *at) {
    int64_t at_ns = ns_of(at);
    if (at_ns == DEADLINE_NEVER) return DEADLINE_NEVER;
    if (clock == CLOCK_REALTIME) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        at_ns += vigil_now_ns() - ns_of(&now);
    }
    return at_ns > 1 ? at_ns : 1; /* zero is DEADLINE_TRY */
}

int64_t deadline_timeout_ns(int64_t deadline_ns) {
    if (deadline_ns == DEADLINE_NEVER) return VIGIL_FOREVER;
    return deadline_ns == DEADLINE_TRY ? 0 : vigil_until(deadline_ns);
}

bool deadline_pause(void) {
    int errno_before = errno;
    struct timespec pause = {.tv_nsec = 1000000};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL); /* not libc's, which is a cancellation point */
    errno = errno_before;
    return true;
}
