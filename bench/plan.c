/* SPDX-License-Identifier: MIT */
/* What is measured, what is reported of it, and what we aim at. */
#include "bench.h"

#include <string.h>

/*
 * "line": n asynchronous waiters in one line; the cost of registering the last tenth of them, of notifying all, of
 * running all callbacks. "lines": the same with a line for each. "cancel": a tenth of n in random order.
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
};
const size_t job_count = sizeof jobs / sizeof *jobs;

const struct row rows[] = {
    {"notify_nobody", "ns", "notify with no waiter", false},
    {"wait_not_equal", "ns", "wait on a word that holds another value", false},
    {"async_register_1k", "ns", "one more asynchronous waiter with 1,000 in the line", false},
    {"async_register_1m", "ns", "one more with 1,000,000 in the line", false},
    {"async_register_1k_distinct", "ns", "one more with 1,000 lines of one each", false},
    {"async_register_1m_distinct", "ns", "one more with 1,000,000 lines of one each", false},
    {"async_bytes", "bytes", "memory per pending waiter with a timeout, beyond the caller's struct", false},
    {"async_bytes_distinct", "bytes", "the same with a line for each", false},
    {"async_notify_each", "ns", "notify all of 1,000,000, per waiter", false},
    {"async_settle_each", "ns", "then run their callbacks, per waiter", false},
    {"async_timeouts_200k", "ms", "200,000 waiters with deadlines of 1 to 50 ms, until all have fired", false},
    {"async_timeouts_early", "count", "of these, fired before their deadline", false},
    {"async_timeouts_early_200", "count", "the same of 200, when nothing is late", false},
    {"cancel_each_1k", "ns", "cancel one of 1,000, random order", false},
    {"cancel_each", "ns", "cancel one of 1,000,000, random order", false},
    {"pingpong_block", "ns", "round trip of two threads that block", false},
    {"pingpong_async", "ns", "round trip of a thread that blocks and an epoll loop", false},
    {"pingpong_async_run", "ns", "the same with vigil_agent_run for a loop", false},
    {"notify_parallel", "x", "notify and wait not-equal: two threads over one", true},
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
};
const size_t target_count = sizeof targets / sizeof *targets;

const struct row *row_find(const char *name) {
    for (size_t i = 0; i < row_count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}
