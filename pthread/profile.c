/* SPDX-License-Identifier: MIT */
/*
 * Where threads have waited, how often and for how long. An entry is for one lock and one address that called; a lock's
 * entries are put together when it is written: at the end, or for a report. Entries are taken for good, by their
 * lock; there is no lock here, and it costs nothing where no thread waits.
 */
#include "preload.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES (1u << 14)
#define SHOWN   50u /* locks, as text */

struct entry {
    const void *lock; /* zero: free */
    const void *site;
    uint32_t kind, ready; /* not zero: site and kind are there */
    uint64_t count, total_ns, longest_ns;
};

static struct entry entries[ENTRIES];
static uint64_t left_out;

static bool matches(struct entry *entry, const struct wait_scope *scope) {
    while (!__atomic_load_n(&entry->ready, __ATOMIC_ACQUIRE)) sched_yield();
    return entry->site == scope->site && entry->kind == (uint32_t)scope->kind;
}

static struct entry *profile_find(const struct wait_scope *scope) {
    uint64_t mixed = ((uintptr_t)scope->lock ^ (uintptr_t)scope->site << 20) * UINT64_C(0x9E3779B97F4A7C15);
    for (uint32_t i = 0; i < 64; i++) {
        struct entry *entry = &entries[(mixed + i) % ENTRIES];
        const void *seen = __atomic_load_n(&entry->lock, __ATOMIC_RELAXED);
        if (!seen &&
            __atomic_compare_exchange_n(&entry->lock, &seen, scope->lock, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            entry->site = scope->site;
            entry->kind = scope->kind;
            __atomic_store_n(&entry->ready, 1, __ATOMIC_RELEASE);
            return entry;
        }
        if (seen == scope->lock && matches(entry, scope)) return entry;
    }
    return NULL;
}

void profile_add(const struct wait_scope *scope, int64_t waited_ns) {
    uint64_t waited = waited_ns > 0 ? (uint64_t)waited_ns : 0;
    struct entry *entry = profile_find(scope);
    if (!entry) {
        __atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&entry->count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&entry->total_ns, waited, __ATOMIC_RELAXED);
    uint64_t longest = __atomic_load_n(&entry->longest_ns, __ATOMIC_RELAXED);
    while (longest < waited && !__atomic_compare_exchange_n(&entry->longest_ns, &longest, waited, true,
                                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

void profile_in_child(void) {
    if (preload.profile) memset(entries, 0, sizeof entries);
    left_out = 0;
}

/* Writing it. */

struct total {
    const void *lock;
    uint64_t count, total_ns, longest_ns;
    bool waits; /* of a kind at which threads wait although nothing is wrong */
};

static bool is_for_events(uint32_t kind) {
    return kind >= WAIT_COND;
}

static int by_lock(const void *a, const void *b) {
    const struct entry *one = a, *other = b;
    if (one->lock != other->lock) return one->lock < other->lock ? -1 : 1;
    return one->total_ns != other->total_ns ? one->total_ns > other->total_ns ? -1 : 1 : 0;
}

static int by_total(const void *a, const void *b) {
    const struct total *one = a, *other = b;
    if (one->waits != other->waits) return one->waits ? 1 : -1;
    return one->total_ns != other->total_ns ? one->total_ns > other->total_ns ? -1 : 1 : 0;
}

/* Shell's: qsort may allocate, and a signal handler may need this. */
static void sort(void *base, uint32_t count, size_t size, int (*compare)(const void *, const void *)) {
    char *items = base, item[64];
    for (uint32_t gap = count / 2; gap; gap /= 2) {
        for (uint32_t i = gap; i < count; i++) {
            uint32_t at = i;
            memcpy(item, items + i * size, size);
            for (; at >= gap && compare(item, items + (at - gap) * size) < 0; at -= gap)
                memcpy(items + at * size, items + (at - gap) * size, size);
            memcpy(items + at * size, item, size);
        }
    }
}
_Static_assert(sizeof(struct entry) <= 64 && sizeof(struct total) <= 64, "an item fits");

static struct entry sorted[ENTRIES];
static struct total totals[ENTRIES];

/* Sorted by lock, the longest first of each; and the locks' sums, of which it returns how many. */
static uint32_t add_up(uint32_t *used) {
    uint32_t count = 0;
    *used = 0;
    for (uint32_t i = 0; i < ENTRIES; i++)
        if (__atomic_load_n(&entries[i].ready, __ATOMIC_ACQUIRE)) sorted[(*used)++] = entries[i];
    sort(sorted, *used, sizeof *sorted, by_lock);
    for (uint32_t i = 0; i < *used; i++) {
        const struct entry *entry = &sorted[i];
        if (!count || totals[count - 1].lock != entry->lock)
            totals[count++] = (struct total){.lock = entry->lock, .waits = is_for_events(entry->kind)};
        struct total *total = &totals[count - 1];
        total->count += entry->count;
        total->total_ns += entry->total_ns;
        if (entry->longest_ns > total->longest_ns) total->longest_ns = entry->longest_ns;
    }
    sort(totals, count, sizeof *totals, by_total);
    return count;
}

static const struct entry *first_of(const void *lock, uint32_t used) {
    const struct entry *entry = sorted;
    while (entry < sorted + used && entry->lock != lock) entry++;
    return entry;
}

static void print_duration(char duration[16], uint64_t ns) {
    double s = (double)ns / 1e9;
    if (ns >= 1000000000u) snprintf(duration, 16, "%.3f s", s);
    else if (ns >= 1000000u) snprintf(duration, 16, "%.3f ms", s * 1e3);
    else snprintf(duration, 16, "%.3f us", s * 1e6);
}

static void print_figures(struct text *text, uint64_t count, uint64_t total_ns, uint64_t longest_ns) {
    char total[16], longest[16];
    print_duration(total, total_ns);
    print_duration(longest, longest_ns);
    text_add(text, "%10llu %12s %12s  ", (unsigned long long)count, total, longest);
}

static const char *action(uint32_t kind) {
    return kind == WAIT_READ ? "read at " : kind == WAIT_WRITE ? "written at " : "at ";
}

static void profile_print_lock(struct text *text, const struct total *total, uint32_t used) {
    char name[SYMBOL_BYTES], address[24];
    const struct entry *entry = first_of(total->lock, used);
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)(uintptr_t)total->lock);
    symbol_of(total->lock, name);
    print_figures(text, total->count, total->total_ns, total->longest_ns);
    text_add(text, "%s %s%s%s\n", wait_kind_name(entry->kind), address, strcmp(name, address) ? " " : "",
             strcmp(name, address) ? name : "");
    for (uint32_t shown = 0; entry < sorted + used && entry->lock == total->lock && shown < 8; entry++, shown++) {
        print_figures(text, entry->count, entry->total_ns, entry->longest_ns);
        text_add(text, "    %s%s\n", action(entry->kind), symbol_of(entry->site, name));
    }
}

static void print_group(struct text *text, uint32_t count, bool waits, uint32_t used, uint32_t most) {
    uint32_t of_group = 0;
    for (uint32_t i = 0; i < count; i++) of_group += totals[i].waits == waits;
    if (waits && !of_group) return;
    text_add(text,
             waits ? "vigil: where threads waited for each other's signals: %u\n" : "vigil: contended locks: %u\n",
             of_group);
    if (of_group) text_add(text, "%10s %12s %12s  %s\n", "waits", "total", "longest", "lock, and where it was wanted");
    for (uint32_t i = 0, shown = 0; i < count; i++) {
        if (totals[i].waits != waits || shown++ >= most) continue;
        profile_print_lock(text, &totals[i], used);
    }
    if (of_group > most) text_add(text, "%10s and %u more\n", "", of_group - most);
}

static void profile_print_text(struct text *text, uint32_t count, uint32_t used, uint32_t most) {
    char command[256] = "?";
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY | O_CLOEXEC);
    long length = fd < 0 ? 0 : syscall(SYS_read, fd, command, sizeof command - 1);
    if (fd >= 0) syscall(SYS_close, fd);
    command[length > 0 ? length - 1 : 1] = 0;
    text_add(text, "vigil: profile of process %d (%s)\n", (int)getpid(), command);
    print_group(text, count, false, used, most);
    print_group(text, count, true, used, most);
    if (left_out) text_add(text, "vigil: %llu waits had no room here\n", (unsigned long long)left_out);
}

static void print_json_figures(struct text *text, uint64_t count, uint64_t total_ns, uint64_t longest_ns) {
    text_add(text, "\"waits\":%llu,\"total_ns\":%llu,\"longest_ns\":%llu", (unsigned long long)count,
             (unsigned long long)total_ns, (unsigned long long)longest_ns);
}

static void profile_print_json_lock(struct text *text, const struct total *total, uint32_t used) {
    char name[SYMBOL_BYTES];
    const struct entry *entry = first_of(total->lock, used);
    text_add(text, "{\"kind\":\"%s\",\"address\":\"0x%llx\",\"name\":", wait_kind_name(entry->kind),
             (unsigned long long)(uintptr_t)total->lock);
    text_json(text, symbol_of(total->lock, name));
    text_add(text, ",");
    print_json_figures(text, total->count, total->total_ns, total->longest_ns);
    text_add(text, ",\"sites\":[");
    for (const struct entry *first = entry; entry < sorted + used && entry->lock == total->lock; entry++) {
        text_add(text, "%s{\"name\":", entry == first ? "" : ",");
        text_json(text, symbol_of(entry->site, name));
        text_add(text, ",\"address\":\"0x%llx\",\"mode\":\"%s\",", (unsigned long long)(uintptr_t)entry->site,
                 entry->kind == WAIT_READ    ? "read"
                 : entry->kind == WAIT_WRITE ? "write"
                                             : "");
        print_json_figures(text, entry->count, entry->total_ns, entry->longest_ns);
        text_add(text, "}");
    }
    text_add(text, "]}");
}

static void profile_print_json(struct text *text, uint32_t count, uint32_t used, uint32_t most) {
    text_add(text, "{\"pid\":%d,\"left_out\":%llu,\"locks\":[", (int)getpid(), (unsigned long long)left_out);
    for (uint32_t i = 0; i < count && i < most; i++) {
        if (i) text_add(text, ",");
        profile_print_json_lock(text, &totals[i], used);
    }
    text_add(text, "]}");
}

/* The process that vigil run became has the file; others that it has started add their number to the name. */
static int open_output(void) {
    char path[sizeof preload.profile_path + 16];
    bool first = !preload.first_pid || preload.first_pid == (uint32_t)getpid();
    if (!preload.profile_path[0]) return 2;
    snprintf(path, sizeof path, first ? "%s" : "%s.%d", preload.profile_path, (int)getpid());
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

#define IN_REPORT 10u

void profile_report(struct text *text, bool json) {
    uint32_t used, count = add_up(&used);
    (json ? profile_print_json : profile_print_text)(text, count, used, IN_REPORT);
}

void profile_write(void) {
    static char page[16384];
    preload.profile = false; /* what follows is not counted any more */
    bool first = !preload.first_pid || preload.first_pid == (uint32_t)getpid();
    uint32_t used, count = add_up(&used);
    if (!count && !first) return;
    struct text text = {.fd = open_output(), .room = sizeof page, .at = page};
    if (text.fd < 0) {
        text.fd = 2;
        text_add(&text, "vigil: the profile cannot be written to %s\n", preload.profile_path);
    }
    (preload.json ? profile_print_json : profile_print_text)(&text, count, used, preload.json ? ENTRIES : SHOWN);
    if (preload.json) text_add(&text, "\n");
    text_flush(&text);
}
