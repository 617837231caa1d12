/* SPDX-License-Identifier: MIT */
#include "vigil/debug.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lot/lot.h"

#define BUCKETS (1u << PRIM_BUCKET_BITS)

/* Buffered output. No stdio stream: it would take a lock, and memory. */
struct page {
    int fd;
    bool failed;
    size_t used;
    char text[4096];
};

static void dump_flush(struct page *page) {
    if (!page->failed) page->failed = !prim_write(page->fd, page->text, page->used);
    page->used = 0;
}

#define LONGEST_LINE 160u

__attribute__((format(printf, 2, 3))) static void dump_print(struct page *page, const char *format, ...) {
    if (sizeof page->text - page->used < LONGEST_LINE) dump_flush(page);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(page->text + page->used, LONGEST_LINE, format, arguments);
    va_end(arguments);
    if (length > 0) page->used += (size_t)length;
}

static void dump_print_waiter(struct page *page, const struct lot_glance *waiter, uint32_t now_ms) {
    uint32_t waited_ms = now_ms - waiter->since_ms;
    dump_print(page, "    %s  thread %" PRIu32 ", for %" PRIu32 ".%03" PRIu32 " s",
               waiter->agent ? "asynchronous" : "blocking    ", waiter->thread_id, waited_ms / 1000, waited_ms % 1000);
    if (waiter->agent) dump_print(page, ", agent 0x%" PRIx64, waiter->agent);
    dump_print(page, "\n");
}

static void dump_print_line(struct page *page, const struct lot_line *line) {
    uint32_t now_ms = (uint32_t)(prim_now_ns() / 1000000);
    uint32_t shown = line->count < LOT_GLANCES ? line->count : LOT_GLANCES;
    const char *more = line->count == LOT_COUNTED ? " or more" : "";
    dump_print(page, "0x%" PRIx64 ": a %s, %" PRIu32 "%s in line\n", line->key, line->for_lock ? "lock" : "word",
               line->count, more);
    for (uint32_t i = 0; i < shown; i++) dump_print_waiter(page, &line->waiters[i], now_ms);
    if (line->count > shown) dump_print(page, "    and %" PRIu32 "%s behind them\n", line->count - shown, more);
}

static void dump_print_totals(struct page *page, struct lot *lot) {
    uint64_t lines = 0, waiters = 0;
    for (uint32_t bucket = 0; lot && bucket < BUCKETS; bucket++) lot_survey(lot, bucket, &lines, &waiters);
    dump_print(page, "vigil: process %" PRIu32 ": ", prim_process_id());
    if (!waiters) dump_print(page, "no waiters\n");
    else dump_print(page, "%" PRIu64 " wait%s in ", waiters, waiters == 1 ? "s" : "");
    if (waiters) dump_print(page, "%" PRIu64 " line%s\n", lines, lines == 1 ? "" : "s");
}

static void dump_print_lines(struct page *page, struct lot *lot) {
    struct lot_line line;
    for (uint32_t bucket = 0; bucket < BUCKETS && !page->failed; bucket++) {
        lot_read_line(lot, bucket, 0, &line);
        for (; line.key; lot_read_line(lot, bucket, line.key, &line)) dump_print_line(page, &line);
    }
}

int vigil_debug_dump(int fd) {
    struct page page = {.fd = fd};
    struct lot *lot = lot_private_if_used();
    int refused = lot ? VIGIL_OK : lot_refused(NULL);
    if (refused) return refused;
    dump_print_totals(&page, lot);
    if (lot) dump_print_lines(&page, lot);
    dump_flush(&page);
    return page.failed ? VIGIL_ESYSTEM : VIGIL_OK;
}
