// SPDX-License-Identifier: MIT
#include "cxx.h"

#include <atomic>
#include <shared_mutex>

namespace {
struct alignas(128) word {
    std::atomic<uint32_t> value;
};
word words[2];
uint32_t pinged, ponged;
alignas(128) std::shared_mutex shared_mutex;

void throw_ball(std::atomic<uint32_t> &word, uint32_t ball) {
    word.store(ball);
    word.notify_one();
}

void catch_ball(std::atomic<uint32_t> &word, uint32_t ball) {
    uint32_t seen;
    while ((seen = word.load()) != ball)
        word.wait(seen);
}
} // namespace

void cxx_notify_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        words[0].value.notify_one();
}

void cxx_store_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        words[0].value.store(static_cast<uint32_t>(i)); // seq_cst: a waiter must not miss both
        words[0].value.notify_one();
    }
}

void cxx_wait_loop(uint64_t n) {
    uint32_t other = words[0].value + 1;
    for (uint64_t i = 0; i < n; i++)
        words[0].value.wait(other);
}

void cxx_own_words_loop(uint64_t n, unsigned who) {
    uint32_t other = words[who].value + 1;
    for (uint64_t i = 0; i < n; i++) {
        words[who].value.notify_one();
        words[who].value.wait(other);
    }
}

void cxx_read_lock(void) {
    shared_mutex.lock_shared();
}

void cxx_read_unlock(void) {
    shared_mutex.unlock_shared();
}

void cxx_write_lock(void) {
    shared_mutex.lock();
}

void cxx_write_unlock(void) {
    shared_mutex.unlock();
}

void cxx_ping(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        throw_ball(words[0].value, ++pinged);
        catch_ball(words[1].value, pinged);
    }
}

void cxx_pong(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        catch_ball(words[0].value, ++ponged);
        throw_ball(words[1].value, ponged);
    }
}
