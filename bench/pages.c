/* SPDX-License-Identifier: MIT */
/*
 * A page cache: a table of which page is in which frame, under one read-write lock. Readers look a page up and read
 * from its frame; one time in 100, a thread replaces a page. The table and the frames fit the second-level cache.
 */
#include "bench.h"

enum { FRAMES = 2048, PAGES = 2 * FRAMES, ONE_IN = 100 };

/* A cache line. The words at both ends have the page's number, and so does the table. */
struct frame {
    _Alignas(64) uint32_t first, between[14], last;
};

static struct rwlock lock;
static uint32_t table[FRAMES]; /* the page in each frame */
static struct frame frames[FRAMES];

static void pages_look_up(uint32_t page) {
    const struct frame *frame = &frames[page % FRAMES];
    lock.read_lock();
    if (table[page % FRAMES] == page) must(frame->first == page && frame->last == page);
    lock.read_unlock();
}

static void pages_replace(uint32_t page) {
    struct frame *frame = &frames[page % FRAMES];
    lock.write_lock();
    table[page % FRAMES] = frame->first = frame->last = page;
    lock.write_unlock();
}

static void pages_take(uint64_t random) {
    uint32_t page = (uint32_t)(random >> 32) % PAGES;
    if ((uint32_t)random % ONE_IN == 0) pages_replace(page);
    else pages_look_up(page);
}

void contest_of_pages(const struct job *job, struct rwlock rwlock, double figures[FIGURES_MAX]) {
    lock = rwlock;
    for (uint32_t i = 0; i < FRAMES; i++) table[i] = frames[i].first = frames[i].last = i;
    figures[0] = contest_of_turns((unsigned)job->n, (struct turns){pages_take, NULL});
}
