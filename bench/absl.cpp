// SPDX-License-Identifier: MIT
#include "absl.h"

#include <absl/synchronization/mutex.h>

namespace {
struct {
    alignas(128) absl::Mutex mutex;
    alignas(128) absl::CondVar cond;
} locks;
} // namespace

void absl_lock(void) {
    locks.mutex.Lock();
}

void absl_unlock(void) {
    locks.mutex.Unlock();
}

void absl_wait(void) {
    locks.cond.Wait(&locks.mutex);
}

void absl_broadcast(void) {
    locks.cond.SignalAll();
}

void absl_lock_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        locks.mutex.Lock();
        locks.mutex.Unlock();
    }
}

void absl_read_loop(uint64_t n, unsigned) {
    for (uint64_t i = 0; i < n; i++) {
        locks.mutex.ReaderLock();
        locks.mutex.ReaderUnlock();
    }
}
