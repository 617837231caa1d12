/* SPDX-License-Identifier: MIT */
/*
 * See source.h.
 *
 * A process's events say which thread released a lock that another thread got. For a condition, a semaphore and a
 * once this is the last thread that called since the wait began; for a barrier, the last one to arrive. A semaphore
 * has no holder; a thread that has waited for it and then posts it is taken to have held it in between.
 *
 * A thread that did not have to wait for a lock leaves no event when it releases it. If another thread then gets the
 * lock, the hold is taken to end at that time.
 */
#include "source.h"

#include <stdlib.h>
#include <string.h>

#include "served.h"
#include "threads.h"

#define REMEMBERED 4096u /* entries of each hash table; a collision overwrites the older entry */
#define RAW_BATCH  (SOURCE_BATCH / 3)

/* The last release, wait or acquisition of a lock by a thread. */
struct deed {
    uint64_t lock;
    uint32_t thread_id;
    int64_t at_ns;
};

struct source {
    vigil_observer *observer; /* null: a process */
    struct served served;
    bool asked;
    uint64_t lost;
    struct deed releases[REMEMBERED]; /* by lock: the last release */
    struct deed waits[REMEMBERED];    /* by thread: waits that have not ended */
    struct deed taken[REMEMBERED];    /* of semaphores, by lock and thread */

    /* The last look. */
    vigil_seen_member *members;
    vigil_seen_line *lines;
    vigil_seen_waiter *waiters;
    vigil_seen_holder *holders;
    char label[32];
};

int source_open(struct source **source, const char *name) {
    struct source *opened = *source = calloc(1, sizeof *opened);
    if (!opened) return cli_fail(VIGIL_ENOMEM, "cannot observe %s", name);
    int status = vigil_observer_open(&opened->observer, name), exit_status = CLI_OK;
    if (status == VIGIL_ENOTFOUND && served_is_process(name)) {
        enum served_status served = served_open(&opened->served, name);
        if (served != SERVED_OK) exit_status = served_fail(served, name);
    } else if (status < 0) {
        exit_status = cli_fail_segment(status, name);
    }
    if (exit_status != CLI_OK) free(opened);
    return exit_status;
}

static void source_forget_look(struct source *source) {
    free(source->members);
    free(source->lines);
    free(source->waiters);
    free(source->holders);
}

void source_close(struct source *source) {
    if (source->observer) vigil_observer_close(source->observer);
    else served_close(&source->served);
    source_forget_look(source);
    free(source);
}

uint32_t source_pid(const struct source *source) {
    return source->observer ? 0 : source->served.pid;
}

bool source_is_there(const struct source *source) {
    return source->observer || served_is_there(&source->served);
}

static struct deed *deed_at(struct deed *deeds, uint64_t lock, uint32_t thread_id) {
    return &deeds[((lock >> 3) * UINT64_C(0x9e3779b97f4a7c15) + thread_id) % REMEMBERED];
}

/* Looks. */

static void add_member(struct source *source, vigil_look *look, uint32_t thread_id) {
    for (uint32_t i = 0; i < look->member_count; i++) {
        if (source->members[i].number == thread_id) return;
    }
    vigil_seen_member *member = &source->members[look->member_count++];
    *member = (vigil_seen_member){.number = thread_id, .pid = thread_id, .alive = true};
    source_thread_name(source, thread_id, member->program);
}

static void source_add_line(struct source *source, vigil_look *look, const struct thread_wait *waits, uint32_t count,
                            uint32_t first) {
    bool held = waits->holder && (waits->kind == WAIT_MUTEX || waits->kind == WAIT_READ || waits->kind == WAIT_WRITE);
    vigil_seen_holder *holder = &source->holders[look->line_count];
    *holder = (vigil_seen_holder){.number = waits->holder, .count = 1};
    source->lines[look->line_count++] = (vigil_seen_line){.offset = waits->lock,
                                                          .kind = threads_seen_kind(waits->kind),
                                                          .waiter_count = count,
                                                          .waiters = source->waiters + first,
                                                          .holder_count = held,
                                                          .holders = holder};
    for (uint32_t i = 0; i < count; i++) {
        source->waiters[first + i] = (vigil_seen_waiter){.number = waits[i].thread_id,
                                                         .thread_id = waits[i].thread_id,
                                                         .kind = threads_seen_kind(waits[i].kind),
                                                         .shared = waits[i].kind == WAIT_READ,
                                                         .since_ns = waits[i].since_ns};
        *deed_at(source->waits, 0, waits[i].thread_id) =
            (struct deed){waits[i].lock, waits[i].thread_id, waits[i].since_ns};
        add_member(source, look, waits[i].thread_id);
    }
    if (held) add_member(source, look, waits->holder);
}

static bool make_room(struct source *source, uint32_t count) {
    source_forget_look(source);
    source->members = calloc(2 * (size_t)count + 1, sizeof *source->members);
    source->lines = calloc(count + 1, sizeof *source->lines);
    source->waiters = calloc(count + 1, sizeof *source->waiters);
    source->holders = calloc(count + 1, sizeof *source->holders);
    return source->members && source->lines && source->waiters && source->holders;
}

static int look_at_process(struct source *source, vigil_look *look) {
    struct threads_look threads;
    bool room = threads_look(&threads, &source->served, !source->asked) && make_room(source, threads.count);
    source->asked = true;
    snprintf(source->label, sizeof source->label, "%.31s", threads.program);
    *look = (vigil_look){.at_ns = threads.at_ns, .label = source->label};
    for (uint32_t i = 0, count; room && i < threads.count; i += count) {
        count = threads_in_line(&threads, i);
        source_add_line(source, look, &threads.waits[i], count, i);
    }
    look->members = source->members;
    look->lines = source->lines;
    threads_forget(&threads);
    return room ? VIGIL_OK : VIGIL_ENOMEM;
}

int source_look(struct source *source, vigil_look *look) {
    return source->observer ? vigil_observer_look(source->observer, look) : look_at_process(source, look);
}

/* Events. */

int source_record(struct source *source) {
    if (source->observer) return vigil_observer_record(source->observer);
    served_record(&source->served, &source->lost);
    return VIGIL_OK;
}

static void remember(struct deed *deed, const struct serve_event *event) {
    *deed = (struct deed){event->lock, event->thread_id, event->at_ns};
}

/* The last release of the lock since the thread began to wait for it; null: none. */
static const struct deed *last_release(struct source *source, const struct serve_event *event) {
    const struct deed *release = deed_at(source->releases, event->lock, 0);
    const struct deed *wait = deed_at(source->waits, 0, event->thread_id);
    bool waited = wait->lock == event->lock && wait->thread_id == event->thread_id;
    if (!waited || release->lock != event->lock || release->thread_id == event->thread_id) return NULL;
    return release->at_ns >= wait->at_ns && release->at_ns <= event->at_ns ? release : NULL;
}

static bool source_is_lock(uint32_t kind) {
    return kind == WAIT_MUTEX || kind == WAIT_READ || kind == WAIT_WRITE;
}

/* One raw event makes at most three events. */
struct made {
    vigil_event *events;
    size_t count;
};

static void make(struct made *made, const struct serve_event *event, vigil_event_type type, uint32_t by,
                 int64_t at_ns) {
    made->events[made->count++] = (vigil_event){.at_ns = at_ns,
                                                .type = type,
                                                .kind = threads_seen_kind((enum wait_kind)event->kind),
                                                .offset = event->lock,
                                                .number = event->thread_id,
                                                .thread_id = event->thread_id,
                                                .by = by,
                                                .count = 1,
                                                .waiter = event->thread_id,
                                                .shared = event->kind == WAIT_READ};
}

/* When the thread released a lock that it does not hold any more: if it waits again, before that wait began. */
static int64_t released_ns(struct source *source, uint32_t thread_id, int64_t at_ns) {
    const struct deed *wait = deed_at(source->waits, 0, thread_id);
    return wait->thread_id == thread_id && wait->at_ns < at_ns ? wait->at_ns : at_ns;
}

static void got(struct source *source, const struct serve_event *event, struct made *made) {
    const struct deed *release = last_release(source, event);
    uint32_t by = event->by == event->thread_id ? 0 : event->by;
    bool known = event->kind == WAIT_WRITE || (release && release->thread_id == by); /* readers may have had it */
    if (by && !known) {
        struct serve_event unseen = *event;
        unseen.thread_id = by;
        if (unseen.kind == WAIT_READ) unseen.kind = WAIT_WRITE; /* readers would not have kept it waiting */
        make(made, &unseen, VIGIL_EVENT_RELEASED, 0, released_ns(source, by, event->at_ns));
    }
    if (!by && !source_is_lock(event->kind) && release) by = release->thread_id;
    make(made, event, VIGIL_EVENT_CALLED, by, event->at_ns);
    if (source_is_lock(event->kind)) make(made, event, VIGIL_EVENT_GRANTED, 0, event->at_ns);
}

static void post(struct source *source, const struct serve_event *event, struct made *made) {
    struct deed *taken = deed_at(source->taken, event->lock, event->thread_id);
    bool held = event->kind == WAIT_SEM && taken->lock == event->lock && taken->thread_id == event->thread_id;
    remember(deed_at(source->releases, event->lock, 0), event);
    if (!held) return;
    make(made, event, VIGIL_EVENT_GRANTED, 0, taken->at_ns);
    make(made, event, VIGIL_EVENT_RELEASED, 0, event->at_ns);
    taken->lock = 0;
}

static void translate(struct source *source, const struct serve_event *event, struct made *made) {
    switch ((enum serve_event_type)event->type) {
    case SERVE_WAITS:
        remember(deed_at(source->waits, 0, event->thread_id), event);
        if (event->kind == WAIT_BARRIER) remember(deed_at(source->releases, event->lock, 0), event);
        make(made, event, VIGIL_EVENT_WAITS, 0, event->at_ns);
        break;
    case SERVE_GOT:
        if (event->kind == WAIT_SEM) remember(deed_at(source->taken, event->lock, event->thread_id), event);
        got(source, event, made);
        *deed_at(source->waits, 0, event->thread_id) = (struct deed){0};
        break;
    case SERVE_GAVE_UP:
        make(made, event, VIGIL_EVENT_GAVE_UP, 0, event->at_ns);
        *deed_at(source->waits, 0, event->thread_id) = (struct deed){0};
        break;
    case SERVE_RETAKEN: make(made, event, VIGIL_EVENT_GRANTED, 0, event->at_ns); break;
    case SERVE_RELEASED:
        remember(deed_at(source->releases, event->lock, 0), event);
        make(made, event, VIGIL_EVENT_RELEASED, 0, event->at_ns);
        break;
    case SERVE_CALLS: post(source, event, made); break;
    default: break;
    }
}

int64_t source_events(struct source *source, vigil_event *events, uint64_t *lost, bool *more) {
    struct serve_event raw[RAW_BATCH];
    struct made made = {events, 0};
    if (source->observer) {
        int64_t count = vigil_observer_events(source->observer, events, SOURCE_BATCH, lost);
        *more = count == SOURCE_BATCH;
        return count;
    }
    size_t count = served_events(&source->served, raw, RAW_BATCH, lost);
    *lost += source->lost;
    source->lost = 0;
    *more = count == RAW_BATCH;
    for (size_t i = 0; i < count; i++) translate(source, &raw[i], &made);
    return (int64_t)made.count;
}

/* Names. */

void source_name(const struct source *source, uint64_t offset, vigil_seen_kind kind, char name[SOURCE_NAME]) {
    char symbol[SYMBOL_BYTES];
    if (kind == VIGIL_SEEN_WORD) snprintf(name, SOURCE_NAME, "end of thread 0x%llx", (unsigned long long)offset);
    else
        snprintf(name, SOURCE_NAME, "%s %.70s", vigil_seen_kind_name(kind),
                 threads_symbol(source->served.pid, offset, false, symbol));
}

void source_thread_name(const struct source *source, uint32_t thread_id, char name[20]) {
    char whole[SERVED_NAME];
    served_thread_name(source->served.pid, thread_id, whole);
    snprintf(name, 20, "%.19s", whole);
}
