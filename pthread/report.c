/* SPDX-License-Identifier: MIT */
/*
 * Which thread waits for what, which one holds it, and which threads wait for each other in a circle. Made of the table
 * of waits and of what the locks say of their holders; nothing is locked and nothing allocated, so that it
 * can be made in a signal handler while everything else hangs.
 *
 * A thread waits for one thing at a time and a mutex has one holder. So each wait leads to one other at most, and a
 * walk along that from each of them finds every circle.
 */
#include "preload.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST 1024u

struct seen {
    struct wait wait;
    uint32_t holder; /* identity; zero: none, or none that is known */
    const void *holder_site;
    uint32_t readers;
    int32_t next; /* the wait of the holder; -1: it does not wait */
    uint32_t walk;
};

static struct seen seen[MOST];
static uint32_t count, not_shown;

/* Looking. */

/* The lock may be gone by now, its memory too. */
static bool copy_lock(const void *lock, void *copy, size_t bytes) {
    struct iovec here = {copy, bytes}, there = {(void *)(uintptr_t)lock, bytes};
    return syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0) == (long)bytes;
}

static void find_holder(struct seen *of) {
    pthread_mutex_t mutex;
    pthread_rwlock_t lock;
    struct semaphore sem;
    of->holder = of->readers = 0;
    of->holder_site = NULL;
    if (of->wait.kind == WAIT_MUTEX && copy_lock(of->wait.lock, &mutex, sizeof mutex)) {
        of->holder = (uint32_t)mutex.__data.__owner;
        of->holder_site = mutex.__data.__list.__prev;
    } else if ((of->wait.kind == WAIT_READ || of->wait.kind == WAIT_WRITE) &&
               copy_lock(of->wait.lock, &lock, sizeof lock)) {
        of->holder = (uint32_t)lock.__data.__cur_writer;
        of->holder_site = (const void *)(uintptr_t)lock.__data.__pad2;
        of->readers = of->holder ? 0 : (lock.__data.__readers & 0x3fffffff) / 16;
    } else if (of->wait.kind == WAIT_SEM && copy_lock(of->wait.lock, &sem, sizeof sem)) {
        of->holder = sem.taker;
        of->holder_site = sem.site;
    }
}

static bool goes_before(const struct seen *one, const struct seen *other) {
    if (one->wait.lock != other->wait.lock) return one->wait.lock < other->wait.lock;
    return one->wait.since_ns < other->wait.since_ns;
}

static void insert(const struct wait *wait) {
    struct seen new = {.wait = *wait};
    uint32_t at = count++;
    for (; at && goes_before(&new, &seen[at - 1]); at--) seen[at] = seen[at - 1];
    seen[at] = new;
}

/* Where the thread waits that could end this wait. */
static int32_t next_of(const struct seen *of) {
    for (uint32_t i = 0; i < count; i++) {
        if (of->wait.kind == WAIT_SEM && &seen[i] == of) continue; /* it has taken one before, and waits for the next */
        bool joined = of->wait.kind == WAIT_JOIN && seen[i].wait.handle == (uintptr_t)of->wait.lock;
        if (joined || (of->holder && seen[i].wait.thread == of->holder)) return (int32_t)i;
    }
    return -1;
}

static void look(void) {
    struct wait wait;
    bool more = true;
    count = not_shown = 0;
    for (uint32_t index = 0; more; index++) {
        if (!wait_copy(index, &wait, &more)) continue;
        if (count < MOST) insert(&wait);
        else not_shown++;
    }
    for (uint32_t i = 0; i < count; i++) find_holder(&seen[i]);
    for (uint32_t i = 0; i < count; i++) {
        seen[i].next = next_of(&seen[i]);
        if (seen[i].wait.kind == WAIT_JOIN && seen[i].next >= 0) seen[i].holder = seen[seen[i].next].wait.thread;
    }
}

/* A circle that no earlier walk has been through: where it begins, or -1. */
static int32_t find_circle(uint32_t from) {
    int32_t at = (int32_t)from;
    while (at >= 0 && !seen[at].walk) {
        seen[at].walk = from + 1;
        at = seen[at].next;
    }
    return at >= 0 && seen[at].walk == from + 1 ? at : -1;
}

/* Names. */

static void read_file(const char *path, char *text, size_t bytes) {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long length = fd < 0 ? 0 : syscall(SYS_read, fd, text, bytes - 1);
    if (fd >= 0) syscall(SYS_close, fd);
    if (length > 0 && text[length - 1] == '\n') length--;
    text[length > 0 ? length : 0] = 0;
}

static const char *thread_name(uint32_t identity, char name[32]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", preload_thread_id(identity));
    read_file(path, name, 32);
    return name;
}

static const char *lock_name(const void *lock, char name[SYMBOL_BYTES]) {
    char address[24], symbol[SYMBOL_BYTES];
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)(uintptr_t)lock);
    if (strcmp(symbol_of(lock, symbol), address) == 0) return strcpy(name, address);
    snprintf(name, SYMBOL_BYTES, "%s %.200s", address, symbol);
    return name;
}

/* As text. */

static void print_thread(struct text *text, uint32_t identity) {
    char name[32];
    text_add(text, "thread %u (%s)", preload_thread_id(identity), thread_name(identity, name));
}

static void print_what(struct text *text, const struct seen *of) {
    char name[SYMBOL_BYTES];
    text_add(text, "%s", wait_kind_name(of->wait.kind));
    if (of->wait.kind != WAIT_JOIN) text_add(text, " %s", lock_name(of->wait.lock, name));
    else if (of->holder) text_add(text, " %u", preload_thread_id(of->holder));
}

static void report_print_lock(struct text *text, const struct seen *of) {
    char name[SYMBOL_BYTES];
    print_what(text, of);
    if (of->holder && of->wait.kind != WAIT_JOIN) {
        bool sem = of->wait.kind == WAIT_SEM;
        text_add(text, sem ? ": last taken by " : ": held by ");
        print_thread(text, of->holder);
        if (of->holder_site) text_add(text, ", %sat %s", sem ? "" : "locked ", symbol_of(of->holder_site, name));
    } else if (of->readers) {
        text_add(text, ": held by %u reader%s", of->readers, of->readers == 1 ? "" : "s");
    }
    text_add(text, "\n");
}

static void print_waiter(struct text *text, const struct seen *of, int64_t now_ns) {
    char name[SYMBOL_BYTES];
    long long ms = (now_ns - of->wait.since_ns) / 1000000;
    text_add(text, "    ");
    print_thread(text, of->wait.thread);
    text_add(text, ", for %lld.%03lld s, %sat %s\n", ms / 1000, ms % 1000,
             of->wait.kind == WAIT_READ    ? "to read, "
             : of->wait.kind == WAIT_WRITE ? "to write, "
                                           : "",
             symbol_of(of->wait.site, name));
}

/* Any thread may post a semaphore: only where it is used as a lock it is for the thread that has taken it. */
static bool is_certain(int32_t begin) {
    int32_t at = begin;
    do {
        if (seen[at].wait.kind == WAIT_SEM) return false;
        at = seen[at].next;
    } while (at != begin);
    return true;
}

static void print_circle(struct text *text, int32_t begin) {
    int32_t at = begin;
    if (is_certain(begin)) text_add(text, "deadlock: these wait for each other, and will wait for ever:\n");
    else
        text_add(text, "possible deadlock, if each semaphore is posted by the thread that took it last: these wait for "
                       "each other:\n");
    do {
        const struct seen *of = &seen[at];
        text_add(text, "    ");
        print_thread(text, of->wait.thread);
        text_add(text, " waits for ");
        print_what(text, of);
        if (of->wait.kind != WAIT_JOIN) {
            text_add(text, of->wait.kind == WAIT_SEM ? ", last taken by " : ", held by ");
            print_thread(text, of->holder);
        }
        text_add(text, "\n");
        at = of->next;
    } while (at != begin);
}

static void report_print_text(struct text *text, int64_t now_ns) {
    char program[32];
    uint32_t locks = 0;
    read_file("/proc/self/comm", program, sizeof program);
    for (uint32_t i = 0; i < count; i++) locks += i == 0 || seen[i].wait.lock != seen[i - 1].wait.lock;
    text_add(text, "vigil: process %d (%s): ", (int)getpid(), program);
    if (!count) text_add(text, "no thread waits\n");
    else text_add(text, "%u thread%s in %u line%s\n", count, count == 1 ? "" : "s", locks, locks == 1 ? "" : "s");
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || seen[i].wait.lock != seen[i - 1].wait.lock) report_print_lock(text, &seen[i]);
        print_waiter(text, &seen[i], now_ns);
    }
    if (not_shown) text_add(text, "and %u more\n", not_shown);
    for (uint32_t i = 0; i < count; i++) {
        int32_t begin = find_circle(i);
        if (begin >= 0) print_circle(text, begin);
    }
    if (preload.profile) profile_report(text, false);
}

/* As JSON. */

static void print_json_name(struct text *text, const char *key, const void *address) {
    char name[SYMBOL_BYTES];
    text_add(text, ",\"%s\":", key);
    text_json(text, symbol_of(address, name));
}

static void report_print_json_lock(struct text *text, const struct seen *of) {
    text_add(text, "{\"kind\":\"%s\",\"address\":\"0x%llx\"", wait_kind_name(of->wait.kind),
             (unsigned long long)(uintptr_t)of->wait.lock);
    print_json_name(text, "name", of->wait.lock);
    if (of->holder) text_add(text, ",\"holder\":%u", preload_thread_id(of->holder));
    else text_add(text, ",\"holder\":null");
    if (of->holder && of->holder_site) print_json_name(text, "locked_at", of->holder_site);
    text_add(text, ",\"readers\":%u,\"waiters\":[", of->readers);
}

static void print_json_waiter(struct text *text, const struct seen *of, int64_t now_ns) {
    char name[32];
    text_add(text, "{\"thread\":%u,\"thread_name\":", preload_thread_id(of->wait.thread));
    text_json(text, thread_name(of->wait.thread, name));
    text_add(text, ",\"for_ns\":%lld,\"mode\":\"%s\"", (long long)(now_ns - of->wait.since_ns),
             of->wait.kind == WAIT_READ    ? "read"
             : of->wait.kind == WAIT_WRITE ? "write"
                                           : "");
    print_json_name(text, "at", of->wait.site);
    text_add(text, "}");
}

static void print_json_circle(struct text *text, int32_t begin, bool first) {
    int32_t at = begin;
    text_add(text, "%s{\"certain\":%s,\"circle\":[", first ? "" : ",", is_certain(begin) ? "true" : "false");
    do {
        const struct seen *of = &seen[at];
        text_add(text, "%s{\"thread\":%u,\"waits_for\":\"0x%llx\",\"held_by\":%u}", at == begin ? "" : ",",
                 preload_thread_id(of->wait.thread), (unsigned long long)(uintptr_t)of->wait.lock,
                 preload_thread_id(of->holder));
        at = of->next;
    } while (at != begin);
    text_add(text, "]}");
}

static void report_print_json(struct text *text, int64_t now_ns) {
    char program[32];
    read_file("/proc/self/comm", program, sizeof program);
    text_add(text, "{\"status\":\"ok\",\"pid\":%d,\"program\":", (int)getpid());
    text_json(text, program);
    text_add(text, ",\"waiting\":%u,\"not_shown\":%u,\"locks\":[", count + not_shown, not_shown);
    for (uint32_t i = 0; i < count; i++) {
        bool first = i == 0 || seen[i].wait.lock != seen[i - 1].wait.lock;
        bool last = i + 1 == count || seen[i].wait.lock != seen[i + 1].wait.lock;
        if (first && i) text_add(text, ",");
        if (first) report_print_json_lock(text, &seen[i]);
        else text_add(text, ",");
        print_json_waiter(text, &seen[i], now_ns);
        if (last) text_add(text, "]}");
    }
    text_add(text, "],\"deadlocks\":[");
    bool none_yet = true;
    for (uint32_t i = 0; i < count; i++) {
        int32_t begin = find_circle(i);
        if (begin < 0) continue;
        print_json_circle(text, begin, none_yet);
        none_yet = false;
    }
    text_add(text, "]");
    if (preload.profile) {
        text_add(text, ",\"profile\":");
        profile_report(text, true);
    }
    text_add(text, "}\n");
}

/* For programs. */

static void add_holder(struct text *text, const struct seen *of) {
    struct serve_holder holder = {.thread_id = preload_thread_id(of->wait.thread),
                                  .holder = of->holder ? preload_thread_id(of->holder) : 0,
                                  .lock = (uint64_t)(uintptr_t)of->wait.lock,
                                  .holder_site = (uint64_t)(uintptr_t)of->holder_site,
                                  .readers = of->readers};
    if (text->room - text->used < sizeof holder) return;
    memcpy(text->at + text->used, &holder, sizeof holder);
    text->used += sizeof holder;
}

static void print_holders(struct text *text) {
    for (uint32_t i = 0; i < count; i++) add_holder(text, &seen[i]);
}

bool report_write(struct text *text, enum serve_form form) {
    static uint32_t busy;
    if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) return false;
    look();
    if (form == SERVE_HOLDERS) print_holders(text);
    else (form == SERVE_JSON ? report_print_json : report_print_text)(text, vigil_now_ns());
    __atomic_store_n(&busy, 0, __ATOMIC_SEQ_CST);
    return true;
}
