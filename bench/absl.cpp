// SPDX-License-Identifier: MIT
#include "absl.h"

#include <absl/synchronization/mutex.h>

namespace {
struct {
    alignas(128) absl::Mutex mutex;
    alignas(128) absl::CondVar cond;
} locks;
} // namespace

struct slot {
    absl::Mutex mutex;
    uint32_t count = 0;
};
static slot *slots;
static uint64_t slot_count;

void absl_be_fast(void) {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

void absl_slots_open(uint64_t n) {
    slots = new slot[n];
    slot_count = n;
}

void absl_slots_close(void) {
    delete[] slots;
}

void absl_slot_take(uint64_t random) {
    slot &slot = slots[(random >> 32) * slot_count >> 32];
    slot.mutex.Lock();
    slot.count++;
    slot.mutex.Unlock();
}

uint64_t absl_slots_counted(void) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < slot_count; i++)
        sum += slots[i].count;
    return sum;
}

void absl_read_lock(void) {
    locks.mutex.ReaderLock();
}

void absl_read_unlock(void) {
    locks.mutex.ReaderUnlock();
}

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
