/* SPDX-License-Identifier: MIT */
/* What is measured, what is reported of it, and what we aim at. */
#include "bench.h"

#include <string.h>

/*
 * "line": n asynchronous waiters in one line; the cost of registering the last tenth of them, of notifying all, of
 * running all callbacks. "lines": the same with a line for each. "cancel": a tenth of n in random order.
 * "mutex_contest": n threads; "mutex_waits": the same with a clock around each lock; "mutex_mixed": n and a loop.
 */
const struct job jobs[] = {
    {"notify_nobody", 2000000, 15, {"notify_nobody"}},
    {"wait_not_equal", 2000000, 15, {"wait_not_equal"}},
    {"notify_parallel", 4000000, 15, {"notify_parallel"}},
    {"line", 1, 5, {NULL}},
    {"line", 10, 5, {NULL}},
    {"line", 100, 5, {NULL}},
    {"line", 1000, 5, {"async_register_1k"}},
    {"line", 10000, 5, {NULL}},
    {"line", 100000, 5, {NULL}},
    {"line", 1000000, 5, {"async_register_1m", "async_notify_each", "async_settle_each"}},
    {"lines", 1000, 5, {"async_register_1k_distinct"}},
    {"lines", 1000000, 5, {"async_register_1m_distinct"}},
    {"cancel", 1, 5, {NULL}},
    {"cancel", 10, 5, {NULL}},
    {"cancel", 100, 5, {NULL}},
    {"cancel", 1000, 5, {"cancel_each_1k"}},
    {"cancel", 10000, 5, {NULL}},
    {"cancel", 100000, 5, {NULL}},
    {"cancel", 1000000, 5, {"cancel_each"}},
    {"bytes", 1000000, 1, {"async_bytes"}},
    {"bytes_distinct", 1000000, 1, {"async_bytes_distinct"}},
    {"timeouts", 200000, 5, {"async_timeouts_200k", "async_timeouts_early"}},
    {"timeouts", 200, 5, {NULL, "async_timeouts_early_200"}},
    {"pingpong_block", 5000, 15, {"pingpong_block"}},
    {"pingpong_async", 5000, 15, {"pingpong_async"}},
    {"pingpong_async_run", 5000, 15, {"pingpong_async_run"}},
    {"mutex_uncontended", 2000000, 15, {"mutex_uncontended"}},
    {"mutex_async_uncontended", 2000000, 15, {"mutex_async_uncontended"}},
    {"mutex_contest", 2, 15, {"mutex_contended_2"}},
    {"mutex_contest", 4, 9, {"mutex_contended_4"}},
    {"mutex_contest", 16, 5, {"mutex_contended_16", "mutex_share_16"}},
    {"mutex_waits", 16, 5, {"mutex_longest_wait_16"}},
    {"mutex_mixed", 8, 9, {"mutex_mixed", "mutex_mixed_share"}},
    {"cond_broadcast", 64, 15, {"cond_broadcast_64"}},
    {"rwlock_read", 2000000, 15, {"rwlock_read_2"}},
    {"sem_uncontended", 2000000, 15, {"sem_uncontended"}},
    {"barrier", 5000, 15, {"barrier_2"}},
};
const size_t job_count = sizeof jobs / sizeof *jobs;

const struct row rows[] = {
    {WAITING, "notify_nobody", "ns", "notify with no waiter", false},
    {WAITING, "wait_not_equal", "ns", "wait on a word that holds another value", false},
    {WAITING, "async_register_1k", "ns", "one more asynchronous waiter with 1,000 in the line", false},
    {WAITING, "async_register_1m", "ns", "one more with 1,000,000 in the line", false},
    {WAITING, "async_register_1k_distinct", "ns", "one more with 1,000 lines of one each", false},
    {WAITING, "async_register_1m_distinct", "ns", "one more with 1,000,000 lines of one each", false},
    {WAITING, "async_bytes", "bytes", "memory per pending waiter with a timeout, beyond the caller's struct", false},
    {WAITING, "async_bytes_distinct", "bytes", "the same with a line for each", false},
    {WAITING, "async_notify_each", "ns", "notify all of 1,000,000, per waiter", false},
    {WAITING, "async_settle_each", "ns", "then run their callbacks, per waiter", false},
    {WAITING, "async_timeouts_200k", "ms", "200,000 waiters with deadlines of 1 to 50 ms, until all have fired", false},
    {WAITING, "async_timeouts_early", "count", "of these, fired before their deadline", false},
    {WAITING, "async_timeouts_early_200", "count", "the same of 200, when nothing is late", false},
    {WAITING, "cancel_each_1k", "ns", "cancel one of 1,000, random order", false},
    {WAITING, "cancel_each", "ns", "cancel one of 1,000,000, random order", false},
    {WAITING, "pingpong_block", "ns", "round trip of two threads that block", false},
    {WAITING, "pingpong_async", "ns", "round trip of a thread that blocks and an epoll loop", false},
    {WAITING, "pingpong_async_run", "ns", "the same with vigil_agent_run for a loop", false},
    {WAITING, "notify_parallel", "x", "notify and wait not-equal: two threads over one", true},
    {LOCKS, "mutex_uncontended", "ns", "lock and unlock a mutex that nobody else wants", false},
    {LOCKS, "mutex_async_uncontended", "ns", "execute on a free mutex, from a loop", false},
    {LOCKS, "mutex_contended_2", "M/s", "2 threads: 10 ns under the lock and 50 ns without it", true},
    {LOCKS, "mutex_contended_4", "M/s", "the same with 4 threads", true},
    {LOCKS, "mutex_contended_16", "M/s", "the same with 16 threads", true},
    {LOCKS, "mutex_share_16", "x", "of these in a second, the least served thread's over the most served one's", true},
    {LOCKS, "mutex_longest_wait_16", "ms", "the longest single wait of these 16 in a second", false},
    {LOCKS, "mutex_mixed", "M/s", "8 threads that block and a loop with 1,000 requests outstanding", true},
    {LOCKS, "mutex_mixed_share", "x", "of these, the loop's over a ninth of all", true},
    {LOCKS, "cond_broadcast_64", "us", "broadcast to 64 waiters, until all have had the mutex", false},
    {LOCKS, "rwlock_read_2", "ns", "lock and unlock for reading, two threads at once", false},
    {LOCKS, "sem_uncontended", "ns", "acquire and release", false},
    {LOCKS, "barrier_2", "ns", "two threads meet", false},
};
const size_t row_count = sizeof rows / sizeof *rows;

const struct target targets[] = {
    {"notify_nobody", false, 1.0 / 3, "V8", NULL, "at most a third of V8"},
    {"notify_nobody", false, 3, "fence+load", NULL, "at most 3x a bare fence + load"},
    {"wait_not_equal", false, 1.0 / 5, "V8", NULL, "at most a fifth of V8"},
    {"async_register_1k", false, 1.0 / 10, "V8", NULL, "at most a tenth of V8"},
    {"async_register_1m", false, 1.0 / 10, "V8", NULL, "at most a tenth of V8"},
    {"async_register_1m", false, 2, "vigil", "async_register_1k", "at most 2x that at 1,000"},
    {"async_register_1m_distinct", false, 1.0 / 10, "V8", NULL, "at most a tenth of V8"},
    {"async_register_1m_distinct", false, 2, "vigil", "async_register_1k_distinct", "at most 2x that at 1,000"},
    {"async_bytes", false, 96, NULL, NULL, "at most 96 bytes"},
    {"async_notify_each", false, 1, "V8", NULL, "at most V8's"},
    {"async_settle_each", false, 1, "V8", "async_notify_each", "at most V8's notify"},
    {"async_settle_each", false, 1.0 / 10, "V8", NULL, "at most a tenth of V8"},
    {"async_timeouts_200k", false, 75, NULL, NULL, "at most 75 ms"},
    {"async_timeouts_early", false, 0, NULL, NULL, "none"},
    {"async_timeouts_early_200", false, 0, NULL, NULL, "none"},
    {"cancel_each", false, 100, NULL, NULL, "at most 100 ns"},
    {"pingpong_block", false, 1.0 / 2, "futex", NULL, "at most half of raw futex"},
    {"pingpong_async", false, 1.1, "eventfd+epoll", NULL, "at most 1.1x eventfd+epoll"},
    {"pingpong_async", false, 1.0 / 2, "V8", NULL, "at most half of V8"},
    {"notify_parallel", true, 1.9, NULL, NULL, "at least 1.9x one thread"},
    {"mutex_uncontended", false, 1.05, "CAS pair", NULL, "at most 1.05x a bare CAS pair"},
    {"mutex_uncontended", false, 1 / 1.4, "glibc", NULL, "glibc at least 1.4x slower"},
    {"mutex_async_uncontended", false, 1.5, "vigil", "mutex_uncontended", "at most 1.5x lock + unlock"},
    {"mutex_contended_2", true, 0.95, BEST_PEER, NULL, "at least 0.95x the best peer"},
    {"mutex_contended_4", true, 0.95, BEST_PEER, NULL, "at least 0.95x the best peer"},
    {"mutex_contended_16", true, 0.95, BEST_PEER, NULL, "at least 0.95x the best peer"},
    {"mutex_share_16", true, 0.8, NULL, NULL, "at least 0.8"},
    {"mutex_share_16", true, 1, BEST_PEER, NULL, "above every peer"},
    {"mutex_longest_wait_16", false, 1, BEST_PEER, NULL, "below every peer"},
    {"mutex_mixed_share", true, 0.5, NULL, NULL, "at least half of a fair share"},
    {"cond_broadcast_64", false, 1.0 / 2, "glibc", NULL, "at most half of glibc"},
    {"rwlock_read_2", false, 1.0 / 2, "glibc", NULL, "at most half of glibc"},
    {"sem_uncontended", false, 1, "glibc", NULL, "ahead of glibc"},
    {"barrier_2", false, 1, "glibc", NULL, "ahead of glibc"},
};
const size_t target_count = sizeof targets / sizeof *targets;

const struct row *row_find(const char *name) {
    for (size_t i = 0; i < row_count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}
