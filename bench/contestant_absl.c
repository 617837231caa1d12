/* SPDX-License-Identifier: MIT */
/* Abseil's locks: the calls are in absl.cpp. */
#include "absl.h"
#include "bench.h"

static void mutex_uncontended(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(absl_lock_loop, job->n);
}

static void mutex_contest(const struct job *job, double figures[FIGURES_MAX]) {
    contest_throughput(job, (struct lock){absl_lock, absl_unlock}, figures);
}

static void mutex_waits(const struct job *job, double figures[FIGURES_MAX]) {
    contest_longest_wait(job, (struct lock){absl_lock, absl_unlock}, figures);
}

static void cond_broadcast(const struct job *job, double figures[FIGURES_MAX]) {
    struct monitor monitor = {{absl_lock, absl_unlock}, absl_wait, absl_broadcast};
    figures[0] = per_broadcast_us(monitor, (unsigned)job->n);
}

static void rwlock_read(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_of_two_ns(absl_read_loop, job->n);
}

static const struct rwlock rwlock = {absl_read_lock, absl_read_unlock, absl_lock, absl_unlock};

static void rwlock_mixed(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_readers(job, rwlock, figures);
}

static void page_cache(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_pages(job, rwlock, figures);
}

static void mutex_random(const struct job *job, double figures[FIGURES_MAX]) {
    absl_slots_open(job->n);
    figures[0] = contest_of_turns(4, (struct turns){absl_slot_take, absl_slots_counted});
    absl_slots_close();
}

static const struct skill skills[] = {
    {"mutex_uncontended", mutex_uncontended, false},
    {"mutex_contest", mutex_contest, false},
    {"mutex_waits", mutex_waits, false},
    {"mutex_random", mutex_random, false},
    {"cond_broadcast", cond_broadcast, false},
    {"rwlock_read", rwlock_read, false},
    {"rwlock_mixed", rwlock_mixed, false},
    {"page_cache", page_cache, false},
    {0},
};

static bool absl_open(void) {
    absl_be_fast();
    return true;
}

const struct contestant contestant_absl = {.name = "absl", .skills = {skills}, .open = absl_open};
