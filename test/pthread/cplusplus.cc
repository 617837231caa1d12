// SPDX-License-Identifier: MIT
// The locks of C++, which are those of pthreads; exceptions out of call_once, and static variables that threads make.
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::once_flag once;
static int calls;

static void call() {
    if (++calls < 3) throw calls;
}

static int thrown() {
    try {
        std::call_once(once, call);
        return 0;
    } catch (int number) {
        return number;
    }
}

static void on_threads(int count, void (*run)()) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++) threads.emplace_back(run);
    for (auto &thread : threads) thread.join();
}

static std::shared_mutex shared;
static std::recursive_timed_mutex recursive;
static long written, counted;

static void read_and_write() {
    for (int i = 0; i < 2000; i++) {
        if (i % 8) {
            std::shared_lock<std::shared_mutex> lock(shared);
            assert(written >= 0);
        } else {
            std::unique_lock<std::shared_mutex> lock(shared);
            written++;
        }
        std::lock_guard<std::recursive_timed_mutex> outer(recursive), inner(recursive);
        counted++;
    }
}

int main() {
    assert(thrown() == 1 && thrown() == 2 && thrown() == 0 && thrown() == 0 && calls == 3);
    on_threads(4, read_and_write);
    assert(written == 4 * 250 && counted == 4 * 2000);

    std::mutex mutex;
    std::condition_variable changed;
    bool ready = false;
    auto result = std::async(std::launch::async, [&] {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return ready; });
        return 42;
    });
    {
        std::lock_guard<std::mutex> lock(mutex);
        ready = true;
    }
    changed.notify_all();
    assert(result.get() == 42);
    std::unique_lock<std::mutex> lock(mutex);
    assert(changed.wait_for(lock, std::chrono::milliseconds(5)) == std::cv_status::timeout);
    assert(changed.wait_until(lock, std::chrono::system_clock::now()) == std::cv_status::timeout);
    std::puts("well");
}
