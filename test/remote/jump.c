/* SPDX-License-Identifier: MIT */
/*
 * jump - preloaded into a process, it makes its clocks jump while it runs. The file that JUMP_FILE names has two
 * numbers of 64 bits: the seconds by which the wall clock is off, and those by which the clock is off that goes on
 * while a machine sleeps. A test changes them. CLOCK_MONOTONIC never jumps.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { JUMP_WALL, JUMP_BOOT };

static time_t jump_by(int which) {
    static volatile int64_t *offsets;
    const char *path = getenv("JUMP_FILE");
    if (!offsets && path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        void *map = fd < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0);
        if (fd >= 0) close(fd);
        if (map != MAP_FAILED) offsets = map;
    }
    return offsets ? (time_t)offsets[which] : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += jump_by(JUMP_WALL);
    if (clock == CLOCK_BOOTTIME) now->tv_sec += jump_by(JUMP_BOOT);
    return failed;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000};
    return 0;
}

/* The only timers that libvigil-etcd sets are those of CLOCK_BOOTTIME. */
int timerfd_settime(int fd, int flags, const struct itimerspec *alarm, struct itimerspec *before) {
    struct itimerspec real = *alarm;
    if (flags & TFD_TIMER_ABSTIME && real.it_value.tv_sec > 1) real.it_value.tv_sec -= jump_by(JUMP_BOOT);
    if (real.it_value.tv_sec < 0) real.it_value = (struct timespec){.tv_nsec = 1};
    return (int)syscall(SYS_timerfd_settime, fd, flags, &real, before);
}
