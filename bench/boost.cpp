// SPDX-License-Identifier: MIT
#include "boost.h"

#include <new>

#include <boost/interprocess/sync/interprocess_mutex.hpp>
#include <boost/interprocess/sync/interprocess_semaphore.hpp>

namespace {
struct locks {
    alignas(128) boost::interprocess::interprocess_mutex mutex;
    alignas(128) boost::interprocess::interprocess_semaphore to_pong{0};
    alignas(128) boost::interprocess::interprocess_semaphore to_ping{0};
} * shared;
} // namespace

size_t boost_size(void) {
    return sizeof(locks);
}

void boost_open(void *memory) {
    shared = new (memory) locks;
}

void boost_lock(void) {
    shared->mutex.lock();
}

void boost_unlock(void) {
    shared->mutex.unlock();
}

void boost_lock_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        shared->mutex.lock();
        shared->mutex.unlock();
    }
}

void boost_ping(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        shared->to_pong.post();
        shared->to_ping.wait();
    }
}

void boost_pong(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        shared->to_pong.wait();
        shared->to_ping.post();
    }
}
