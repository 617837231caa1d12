/* SPDX-License-Identifier: MIT */
/* See threads.h. */
#include "threads.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS INT64_C(250000000)
#define KNOWN       1024u /* names in the cache */

const char *threads_kind(enum wait_kind kind) {
    static const char *const names[WAIT_KINDS] = {"mutex",     "rwlock",    "rwlock",  "once",
                                                  "condition", "semaphore", "barrier", "end of thread"};
    return names[kind];
}

vigil_seen_kind threads_seen_kind(enum wait_kind kind) {
    static const vigil_seen_kind kinds[WAIT_KINDS] = {
        [WAIT_MUTEX] = VIGIL_SEEN_MUTEX,     [WAIT_READ] = VIGIL_SEEN_RWLOCK, [WAIT_WRITE] = VIGIL_SEEN_RWLOCK,
        [WAIT_ONCE] = VIGIL_SEEN_ONCE,       [WAIT_COND] = VIGIL_SEEN_COND,   [WAIT_SEM] = VIGIL_SEEN_SEM,
        [WAIT_BARRIER] = VIGIL_SEEN_BARRIER, [WAIT_JOIN] = VIGIL_SEEN_WORD};
    return kinds[kind];
}

/* Looking. */

static int by_lock(const void *one, const void *other) {
    const struct thread_wait *a = one, *b = other;
    if (a->lock != b->lock) return a->lock < b->lock ? -1 : 1;
    if (a->since_ns != b->since_ns) return a->since_ns < b->since_ns ? -1 : 1;
    return (a->thread_id > b->thread_id) - (a->thread_id < b->thread_id);
}

static bool copy_waits(struct threads_look *look, const struct served *served) {
    struct wait *waits = malloc(WAITS_MOST * sizeof *waits);
    if (!waits) return false;
    look->count = served_waits(served, waits);
    look->waits = calloc(look->count + 1, sizeof *look->waits);
    for (uint32_t i = 0; look->waits && i < look->count; i++) {
        look->waits[i] = (struct thread_wait){.thread_id = waits[i].thread_id,
                                              .kind = (enum wait_kind)waits[i].kind,
                                              .lock = (uint64_t)(uintptr_t)waits[i].lock,
                                              .site = (uint64_t)(uintptr_t)waits[i].site,
                                              .since_ns = waits[i].since_ns};
    }
    free(waits);
    return look->waits;
}

/* The holder in the answer is given for one waiter, and holds for all waiters of the same lock. */
static void take_holder(struct threads_look *look, const struct serve_holder *seen) {
    for (uint32_t i = 0; i < look->count; i++) {
        struct thread_wait *wait = &look->waits[i];
        bool joins = wait->kind == WAIT_JOIN && wait->thread_id != seen->thread_id;
        if (wait->lock != seen->lock || joins) continue;
        wait->holder = seen->holder;
        wait->holder_site = seen->holder_site;
        wait->readers = seen->readers;
    }
}

static void ask_for_holders(struct threads_look *look, struct served *served) {
    const struct served_question question = {.form = SERVE_HOLDERS, .patience_ns = PATIENCE_NS};
    char *text;
    size_t length;
    look->asked = served_ask(served, &question, &text, &length) == SERVED_ANSWERED;
    uint64_t last = 0;
    for (size_t at = 0; look->asked && length - at >= sizeof(struct serve_holder); at += sizeof(struct serve_holder)) {
        struct serve_holder seen;
        memcpy(&seen, text + at, sizeof seen);
        if (at == 0 || seen.lock != last) take_holder(look, &seen);
        last = seen.lock;
    }
    free(text);
}

bool threads_look(struct threads_look *look, struct served *served, bool ask) {
    *look = (struct threads_look){.pid = served->pid};
    served_thread_name(look->pid, look->pid, look->program);
    if (!copy_waits(look, served)) return false;
    if (look->count) qsort(look->waits, look->count, sizeof *look->waits, by_lock);
    for (uint32_t i = 0; i < look->count; i += threads_in_line(look, i)) look->lock_count++;
    if (ask && look->count) ask_for_holders(look, served);
    look->at_ns = vigil_now_ns();
    return true;
}

void threads_forget(struct threads_look *look) {
    free(look->waits);
    *look = (struct threads_look){0};
}

uint32_t threads_in_line(const struct threads_look *look, uint32_t first) {
    uint32_t end = first;
    while (end < look->count && look->waits[end].lock == look->waits[first].lock) end++;
    return end - first;
}

/* Names. */

static struct known {
    uint32_t pid;
    uint64_t address;
    char name[SYMBOL_BYTES];
} known[KNOWN];

const char *threads_symbol(uint32_t pid, uint64_t address, bool bare, char name[SYMBOL_BYTES]) {
    struct known *place = &known[(address ^ address >> 12 ^ pid * UINT64_C(31)) % KNOWN];
    char symbol[SYMBOL_BYTES];
    if (place->pid != pid || place->address != address) {
        cli_visible(place->name, sizeof place->name, symbol_in(pid, address, symbol));
        place->pid = pid;
        place->address = address;
    }
    size_t length = bare ? strcspn(place->name, " ") : strlen(place->name);
    memcpy(name, place->name, length);
    name[length] = 0;
    return name;
}

/* Text, in the form of the process's own report. */

static void print_thread(FILE *out, const struct threads_look *look, uint32_t thread_id) {
    char name[SERVED_NAME];
    served_thread_name(look->pid, thread_id, name);
    fprintf(out, "thread %u (%s)", thread_id, name);
}

static void print_lock(FILE *out, const struct threads_look *look, const struct thread_wait *wait) {
    char name[SYMBOL_BYTES], address[24];
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)wait->lock);
    fprintf(out, "\n%s", threads_kind(wait->kind));
    if (wait->kind != WAIT_JOIN) {
        fprintf(out, " %s", address);
        threads_symbol(look->pid, wait->lock, false, name);
        if (strcmp(name, address) != 0) fprintf(out, " %s", name);
    }
    if (wait->holder) {
        fprintf(out, wait->kind == WAIT_SEM ? ": last taken by " : wait->kind == WAIT_JOIN ? ": " : ": held by ");
        print_thread(out, look, wait->holder);
    }
    if (wait->holder && wait->holder_site)
        fprintf(out, ", at %s", threads_symbol(look->pid, wait->holder_site, false, name));
    if (wait->readers) fprintf(out, ": held by %u reader%s", wait->readers, wait->readers == 1 ? "" : "s");
    fprintf(out, "\n");
}

static void threads_print_waiter(FILE *out, const struct threads_look *look, const struct thread_wait *wait) {
    char name[SYMBOL_BYTES], duration[16];
    cli_print_duration(duration, look->at_ns - wait->since_ns);
    fprintf(out, "    ");
    print_thread(out, look, wait->thread_id);
    fprintf(out, ", for %s, %sat %s\n", duration,
            wait->kind == WAIT_READ    ? "to read, "
            : wait->kind == WAIT_WRITE ? "to write, "
                                       : "",
            threads_symbol(look->pid, wait->site, false, name));
}

void threads_text(FILE *out, const struct threads_look *look) {
    fprintf(out, "process %u (%s): ", look->pid, look->program);
    if (!look->count) fprintf(out, "no thread waits\n");
    else
        fprintf(out, "%u thread%s in %u line%s\n", look->count, look->count == 1 ? "" : "s", look->lock_count,
                look->lock_count == 1 ? "" : "s");
    if (look->count && !look->asked) fprintf(out, "The holders are not known: no thread could be asked for them.\n");
    for (uint32_t i = 0; i < look->count; i++) {
        if (i == 0 || look->waits[i].lock != look->waits[i - 1].lock) print_lock(out, look, &look->waits[i]);
        threads_print_waiter(out, look, &look->waits[i]);
    }
}

/* JSON, with the keys of the process's own report. */

static void json_symbol(struct cli_json *json, const char *key, uint32_t pid, uint64_t address) {
    char name[SYMBOL_BYTES];
    json_text(json, key, threads_symbol(pid, address, false, name));
}

static void json_thread(struct cli_json *json, const char *key, const char *name_key, uint32_t pid,
                        uint32_t thread_id) {
    char name[SERVED_NAME];
    served_thread_name(pid, thread_id, name);
    json_unsigned(json, key, thread_id);
    json_text(json, name_key, name);
}

static void json_lock(struct cli_json *json, const struct threads_look *look, const struct thread_wait *wait) {
    char address[24];
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)wait->lock);
    json_text(json, "kind", threads_kind(wait->kind));
    json_text(json, "address", address);
    json_symbol(json, "name", look->pid, wait->lock);
    if (wait->holder) json_thread(json, "holder", "holder_name", look->pid, wait->holder);
    else json_null(json, "holder");
    if (wait->holder && wait->holder_site) json_symbol(json, "locked_at", look->pid, wait->holder_site);
    json_unsigned(json, "readers", wait->readers);
}

static void threads_json_waiter(struct cli_json *json, const struct threads_look *look,
                                const struct thread_wait *wait) {
    json_object(json, NULL);
    json_thread(json, "thread", "thread_name", look->pid, wait->thread_id);
    json_integer(json, "for_ns", look->at_ns - wait->since_ns);
    json_text(json, "mode", wait->kind == WAIT_READ ? "read" : wait->kind == WAIT_WRITE ? "write" : "");
    json_symbol(json, "at", look->pid, wait->site);
    json_end(json, '}');
}

void threads_json(struct cli_json *json, const struct threads_look *look) {
    json_object(json, NULL);
    json_text(json, "status", vigil_status_name(VIGIL_OK));
    json_unsigned(json, "pid", look->pid);
    json_text(json, "program", look->program);
    json_integer(json, "at_ns", look->at_ns);
    json_unsigned(json, "waiting", look->count);
    json_bool(json, "holders_known", look->asked || !look->count);
    json_array(json, "locks");
    for (uint32_t i = 0, next; i < look->count; i = next) {
        next = i + threads_in_line(look, i);
        json_object(json, NULL);
        json_lock(json, look, &look->waits[i]);
        json_array(json, "waiters");
        for (uint32_t j = i; j < next; j++) threads_json_waiter(json, look, &look->waits[j]);
        json_end(json, ']');
        json_end(json, '}');
    }
    json_end(json, ']');
    json_end(json, '}');
}
