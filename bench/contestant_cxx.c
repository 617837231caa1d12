/* SPDX-License-Identifier: MIT */
/* C++20's wait and notify on an atomic word, and its std::shared_mutex: the calls are in cxx.cpp. */
#include "bench.h"
#include "cxx.h"

static void notify_nobody(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(cxx_notify_loop, job->n);
}

static void store_and_notify(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(cxx_store_loop, job->n);
}

static void wait_not_equal(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(cxx_wait_loop, job->n);
}

static void notify_parallel(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = speedup_of_two(cxx_own_words_loop, job->n);
}

static void pingpong_block(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_round_trip_ns(cxx_ping, cxx_pong, job->n);
}

static void page_cache(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_pages(job, (struct rwlock){cxx_read_lock, cxx_read_unlock, cxx_write_lock, cxx_write_unlock}, figures);
}

static const struct skill skills[] = {
    {"notify_nobody", notify_nobody, false},
    {"store_and_notify", store_and_notify, false},
    {"wait_not_equal", wait_not_equal, false},
    {"notify_parallel", notify_parallel, false},
    {"pingpong_block", pingpong_block, false},
    {"page_cache", page_cache, false},
    {0},
};
const struct contestant contestant_cxx = {.name = "C++20", .skills = {skills}};
