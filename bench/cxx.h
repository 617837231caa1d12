/* SPDX-License-Identifier: MIT */
/* C++20's wait and notify on an atomic word, in loops that C can time; std::shared_mutex. */
#ifndef BENCH_CXX_H
#define BENCH_CXX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void cxx_notify_loop(uint64_t n);
void cxx_store_loop(uint64_t n);
void cxx_wait_loop(uint64_t n);
void cxx_own_words_loop(uint64_t n, unsigned who);
void cxx_read_lock(void);
void cxx_read_unlock(void);
void cxx_write_lock(void);
void cxx_write_unlock(void);
void cxx_ping(uint64_t n);
void cxx_pong(uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
