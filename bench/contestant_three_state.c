/* SPDX-License-Identifier: MIT */
/* The well-known lock of three states on the kernel's futex: 0 free, 1 held, 2 held and somebody may wait. */
#include "bench.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct word mutex;

static bool change(uint32_t *seen, uint32_t to) {
    return __atomic_compare_exchange_n(&mutex.value, seen, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* The rare ones stay out of the way, so that the compiler can put the others into the loops. */
static __attribute__((noinline)) void lock_slowly(uint32_t seen) {
    do {
        if (seen == 2 || change(&seen, 2) || seen != 0)
            syscall(SYS_futex, &mutex.value, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
        seen = 0;
    } while (!change(&seen, 2));
}

static void lock(void) {
    uint32_t seen = 0;
    if (!change(&seen, 1)) lock_slowly(seen);
}

static __attribute__((noinline)) void unlock_slowly(void) {
    __atomic_store_n(&mutex.value, 0, __ATOMIC_RELEASE);
    syscall(SYS_futex, &mutex.value, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void unlock(void) {
    if (__atomic_fetch_sub(&mutex.value, 1, __ATOMIC_RELEASE) != 1) unlock_slowly();
}

#include "mutex_skills.h"

static const struct skill skills[] = {
    {"mutex_uncontended", mutex_uncontended, false},
    {"mutex_contest", mutex_contest, false},
    {"mutex_waits", mutex_waits, false},
    {0},
};
const struct contestant contestant_three_state = {.name = "3-state", .skills = {skills}};
