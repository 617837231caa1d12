/* SPDX-License-Identifier: MIT */
/* Vigil and the peers that were found when this was configured. */
#include "bench.h"

extern const struct contestant contestant_vigil, contestant_fence, contestant_cas, contestant_futex,
    contestant_three_state, contestant_glibc, contestant_glibc_cond, contestant_glibc_sem, contestant_glibc_robust,
    contestant_boost, contestant_epoll, contestant_fifo, contestant_socket, contestant_nsync, contestant_absl,
    contestant_cxx, contestant_libuv, contestant_v8, contestant_flock;

const struct contestant *const contestants[] = {
    &contestant_vigil, &contestant_fence,      &contestant_cas,       &contestant_futex,        &contestant_three_state,
    &contestant_glibc, &contestant_glibc_cond, &contestant_glibc_sem, &contestant_glibc_robust,
#ifdef BENCH_HAVE_NSYNC
    &contestant_nsync,
#endif
#ifdef BENCH_HAVE_ABSL
    &contestant_absl,
#endif
#ifdef BENCH_HAVE_CXX20
    &contestant_cxx,
#endif
#ifdef BENCH_HAVE_BOOST
    &contestant_boost,
#endif
    &contestant_epoll, &contestant_fifo,       &contestant_socket,
#ifdef BENCH_HAVE_LIBUV
    &contestant_libuv,
#endif
    &contestant_v8,    &contestant_flock,
};
const size_t contestant_count = sizeof contestants / sizeof *contestants;
const char *const contestants_missing = BENCH_MISSING;
