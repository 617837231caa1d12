/* SPDX-License-Identifier: MIT */
/* See trace.h. Events may be lost, and they come in the order in which they were recorded, which is not quite the
 * order in which they happened. So all times are adjusted: a span never ends before it begins. */
#include <stdlib.h>
#include <string.h>

#include "show.h"
#include "trace.h"

#define STORY_MOST  (UINT32_C(1) << 22) /* entries of each list: no viewer takes more */
#define JUST_NOW_NS INT64_C(1000000)

/* The array with room for one more, unless the story is full. */
static void *grown(struct story *story, void *array, uint32_t count, uint32_t *room, size_t size) {
    if (count < *room) return array;
    uint32_t more = *room ? 2 * *room : 64;
    void *moved = more <= STORY_MOST ? realloc(array, more * size) : NULL;
    if (!moved) {
        story->full = true;
        return array;
    }
    *room = more;
    return moved;
}
#define HAS_ROOM(story, list)                                                                                          \
    ((list).at = grown(story, (list).at, (list).count, &(list).room, sizeof *(list).at), (list).count < (list).room)

static int64_t trace_story_later(int64_t one, int64_t other) {
    return one > other ? one : other;
}

/* Words. */

static void name_word(const struct story *story, struct story_word *word) {
    char name[32];
    if (story->pid) {
        source_name(story->source, word->offset, word->kind, word->name);
        return;
    }
    show_line_name(&(vigil_look){.label = story->label}, &(vigil_seen_line){.offset = word->offset}, name);
    bool bare = strncmp(name, "byte ", 5) == 0;
    word->turnstile = strcmp(name, "turnstile") == 0;
    snprintf(word->name, sizeof word->name, "%s%s%s", bare ? vigil_seen_kind_name(word->kind) : "", bare ? " at " : "",
             name);
}

static uint32_t the_word(struct story *story, uint64_t offset, vigil_seen_kind kind) {
    for (uint32_t i = 0; i < story->words.count; i++) {
        if (story->words.at[i].offset == offset) return i;
    }
    if (!HAS_ROOM(story, story->words)) return STORY_NONE;
    struct story_word *word = &story->words.at[story->words.count];
    *word = (struct story_word){.offset = offset, .kind = kind, .released_ns = story->from_ns, .last_hold = STORY_NONE};
    name_word(story, word);
    return story->words.count++;
}

static bool trace_story_is_turnstile(struct story *story, uint64_t offset, vigil_seen_kind kind) {
    uint32_t word = the_word(story, offset, kind);
    return word != STORY_NONE && story->words.at[word].turnstile;
}

/* Processes. */

static void name_thread(const struct story *story, struct story_process *thread) {
    const char *name = thread->program;
    thread->pid = thread->number;
    thread->named = true;
    source_thread_name(story->source, thread->number, thread->program);
    snprintf(thread->command, sizeof thread->command, "%s", *name ? name : "a thread that ended too soon to be named");
    snprintf(thread->task, sizeof thread->task, "%s", name);
}

static uint32_t new_process(struct story *story, uint32_t number, uint32_t pid) {
    if (!HAS_ROOM(story, story->processes) || !HAS_ROOM(story, story->present)) return STORY_NONE;
    uint32_t index = story->processes.count++;
    story->processes.at[index] =
        (struct story_process){.number = number, .pid = pid, .handover = STORY_NONE, .last_hold = STORY_NONE};
    story->present.at[story->present.count++] = index;
    if (story->pid) name_thread(story, &story->processes.at[index]);
    return index;
}

static uint32_t present_process(const struct story *story, uint32_t number) {
    for (uint32_t i = story->present.count; i-- > 0;) {
        uint32_t index = story->present.at[i];
        if (story->processes.at[index].number == number) return index;
    }
    return STORY_NONE;
}

/* Also a process that has gone: what it held is released after its death. */
static uint32_t known_process(const struct story *story, uint32_t number) {
    uint32_t index = present_process(story, number);
    for (uint32_t i = story->processes.count; index == STORY_NONE && i-- > 0;) {
        if (story->processes.at[i].number == number) index = i;
    }
    return index;
}

static uint32_t the_process(struct story *story, uint32_t number) {
    uint32_t index = known_process(story, number);
    return index == STORY_NONE ? new_process(story, number, 0) : index;
}

/* Spans. */

static uint32_t open_span(struct story *story, const struct story_span *span) {
    uint32_t word = the_word(story, span->offset, span->kind);
    if (word == STORY_NONE || !HAS_ROOM(story, story->spans) || !HAS_ROOM(story, story->open)) return STORY_NONE;
    uint32_t index = story->spans.count++;
    struct story_span *opened = &story->spans.at[index];
    *opened = *span;
    opened->word = word;
    if (story->pid) opened->thread_id = story->processes.at[span->process].number;
    opened->from_ns = opened->seen_ns = trace_story_later(span->from_ns, story->from_ns);
    story->open.at[story->open.count++] = index;
    return index;
}

/* Closes the span at this index of the list of open spans. */
static void close_open(struct story *story, uint32_t at, enum span_end ending, int64_t at_ns) {
    uint32_t index = story->open.at[at];
    struct story_span *span = &story->spans.at[index];
    story->open.at[at] = story->open.at[--story->open.count];
    span->ending = ending;
    span->to_ns = trace_story_later(span->from_ns, ending == SPAN_UNSEEN ? span->seen_ns : at_ns);
    if (span->type != SPAN_HOLD) return;
    story->processes.at[span->process].last_hold = index;
    struct story_word *word = &story->words.at[span->word];
    word->released_ns = trace_story_later(word->released_ns, span->to_ns);
    word->last_hold = index;
}

static struct story_span *open_at(const struct story *story, uint32_t at) {
    return &story->spans.at[story->open.at[at]];
}

/* Closes all spans of a process that has gone. */
static void close_all(struct story *story, uint32_t process, enum span_end ending, int64_t at_ns) {
    for (uint32_t i = story->open.count; i-- > 0;) {
        if (open_at(story, i)->process == process) close_open(story, i, ending, at_ns);
    }
}

static void process_gone(struct story *story, uint32_t process, enum span_end ending, int64_t at_ns) {
    close_all(story, process, ending, at_ns);
    story->processes.at[process].gone = true;
    for (uint32_t i = 0; i < story->present.count; i++) {
        if (story->present.at[i] == process) story->present.at[i--] = story->present.at[--story->present.count];
    }
}

/* Waits. */

/* The open wait of an event, as an index of the list of open spans. It is found by its waiter; if it is known from a
 * look only, by process, offset and thread. */
static uint32_t open_wait(const struct story *story, uint32_t process, const vigil_event *event) {
    uint32_t looked = STORY_NONE;
    for (uint32_t i = 0; i < story->open.count; i++) {
        const struct story_span *span = open_at(story, i);
        if (span->type != SPAN_WAIT || span->process != process) continue;
        if (span->waiter == event->waiter) return i;
        bool same = span->offset == event->offset && span->thread_id == event->thread_id;
        if (span->waiter == STORY_NONE && same) looked = i;
    }
    return looked;
}

/* A wait for a lock shows that the lock is still held. */
static void seen_held(struct story *story, uint64_t offset, int64_t at_ns) {
    for (uint32_t i = 0; i < story->open.count; i++) {
        struct story_span *span = open_at(story, i);
        if (span->type == SPAN_HOLD && span->offset == offset) span->seen_ns = trace_story_later(span->seen_ns, at_ns);
    }
}

static void waits(struct story *story, uint32_t process, const vigil_event *event) {
    uint32_t known = open_wait(story, process, event);
    story->processes.at[process].passing.pending = false; /* it must wait for the lock as well */
    seen_held(story, event->offset, event->at_ns);
    if (known != STORY_NONE) {
        struct story_span *span = open_at(story, known);
        if (span->waiter == STORY_NONE && event->at_ns <= story->synced_ns) { /* the look has shown it already */
            span->waiter = event->waiter;
            return;
        }
        if (span->waiter == event->waiter) close_open(story, known, SPAN_CALLED, event->at_ns); /* moved on */
    }
    open_span(story, &(struct story_span){.from_ns = event->at_ns,
                                          .offset = event->offset,
                                          .process = process,
                                          .thread_id = event->thread_id,
                                          .waiter = event->waiter,
                                          .type = SPAN_WAIT,
                                          .kind = event->kind});
}

/* The hold of `from` on the word, open or just released. */
static uint32_t held_by(const struct story *story, uint32_t from, uint64_t offset, int64_t at_ns) {
    for (uint32_t i = 0; i < story->open.count; i++) {
        const struct story_span *span = open_at(story, i);
        if (span->type == SPAN_HOLD && span->process == from && span->offset == offset) return story->open.at[i];
    }
    uint32_t last = story->processes.at[from].last_hold;
    const struct story_span *span = last == STORY_NONE ? NULL : &story->spans.at[last];
    return span && span->offset == offset && at_ns - span->to_ns < JUST_NOW_NS ? last : STORY_NONE;
}

/* Returns its index, or STORY_NONE. */
static uint32_t add_handover(struct story *story, const struct story_handover *handover) {
    if (handover->from == STORY_NONE || !HAS_ROOM(story, story->handovers)) return STORY_NONE;
    uint32_t index = story->handovers.count++;
    story->handovers.at[index] = *handover;
    story->handovers.at[index].at_ns = trace_story_later(handover->at_ns, story->from_ns);
    story->handovers.at[index].hold = STORY_NONE;
    return index;
}

/* The process that calls a waiter need not be the giver: it may have found that the holder died, or that a waiter that
 * was called before does not come. The giver is the last holder then, if it is known for certain: the grants of a
 * segment's read-write lock are all recorded, those of a mutex are not. */
static uint32_t given_by_another(const struct story *story, const vigil_event *event, uint32_t word) {
    uint32_t last = word == STORY_NONE ? STORY_NONE : story->words.at[word].last_hold;
    if (last == STORY_NONE) return STORY_NONE;
    bool certain = event->kind == VIGIL_SEEN_RWLOCK && !story->pid;
    return certain || story->spans.at[last].ending == SPAN_DIED ? last : STORY_NONE;
}

/* A caller that has no part in the story otherwise is added only if it is the giver: a death may be found by a process
 * that uses another lock. */
static void add_call(struct story *story, uint32_t to, uint32_t wait, const vigil_event *event) {
    uint32_t by = event->by ? known_process(story, event->by) : STORY_NONE;
    uint32_t held = by == STORY_NONE ? STORY_NONE : held_by(story, by, event->offset, event->at_ns);
    if (held == STORY_NONE) {
        held = given_by_another(story, event, the_word(story, event->offset, event->kind));
        if (held != STORY_NONE) by = story->spans.at[held].process;
        else if (event->by) by = the_process(story, event->by);
    }
    uint32_t index = add_handover(
        story, &(struct story_handover){.at_ns = event->at_ns, .from = by, .to = to, .held = held, .wait = wait});
    if (index != STORY_NONE) story->processes.at[to].handover = index;
}

static void called(struct story *story, uint32_t process, const vigil_event *event) {
    uint32_t known = open_wait(story, process, event), wait = STORY_NONE;
    if (known != STORY_NONE) {
        wait = story->open.at[known];
        close_open(story, known, SPAN_CALLED, event->at_ns);
    }
    if (trace_story_is_turnstile(story, event->offset, event->kind))
        story->processes.at[process].passing = (struct story_passing){event->at_ns, wait, true};
    else add_call(story, process, wait, event);
}

static void gave_up(struct story *story, uint32_t process, const vigil_event *event) {
    uint32_t known = open_wait(story, process, event);
    if (known != STORY_NONE) close_open(story, known, SPAN_GAVE_UP, event->at_ns);
}

/* Holds. */

static bool trace_story_is_lock(vigil_seen_kind kind) {
    return kind == VIGIL_SEEN_MUTEX || kind == VIGIL_SEEN_RWLOCK;
}

/* When a lock is granted, its former holders have released it; the release of a mutex is not always recorded. */
static void close_others(struct story *story, const vigil_event *event) {
    for (uint32_t i = story->open.count; i-- > 0;) {
        const struct story_span *span = open_at(story, i);
        if (span->type != SPAN_HOLD || span->offset != event->offset || (span->shared && event->shared)) continue;
        close_open(story, i, SPAN_UNSEEN, event->at_ns);
    }
}

/* Whether a look has shown the hold before its event arrived. */
static bool looked_at(struct story *story, uint32_t process, const vigil_event *event) {
    if (event->at_ns > story->synced_ns) return false;
    for (uint32_t i = 0; i < story->open.count; i++) {
        struct story_span *span = open_at(story, i);
        bool same = span->type == SPAN_HOLD && span->process == process && span->offset == event->offset;
        if (!same || !span->looked) continue;
        span->looked = false;
        return true;
    }
    return false;
}

static bool is_held(const struct story *story, uint64_t offset) {
    for (uint32_t i = 0; i < story->open.count; i++) {
        const struct story_span *span = open_at(story, i);
        if (span->type == SPAN_HOLD && span->offset == offset) return true;
    }
    return false;
}

/* What a process gets that has passed the turnstile: the hold of the lock that ended while it stood there. STORY_NONE:
 * the lock was free before, or is shared now. */
static uint32_t held_before(const struct story *story, const struct story_passing *passing, uint32_t word) {
    uint32_t last = story->words.at[word].last_hold;
    if (last == STORY_NONE || is_held(story, story->words.at[word].offset)) return STORY_NONE;
    bool waited = passing->wait == STORY_NONE || story->spans.at[passing->wait].from_ns <= story->spans.at[last].to_ns;
    return waited ? last : STORY_NONE;
}

/* The hand-over that ends in this grant: by a call for the word itself or, with --fair, at its turnstile. */
static uint32_t handover_to(struct story *story, uint32_t process, uint32_t word) {
    struct story_process *to = &story->processes.at[process];
    uint32_t handover = to->handover, wait = handover == STORY_NONE ? STORY_NONE : story->handovers.at[handover].wait;
    if (wait != STORY_NONE && story->spans.at[wait].word == word) {
        to->handover = STORY_NONE;
        return handover;
    }
    if (!to->passing.pending) return STORY_NONE;
    to->passing.pending = false;
    uint32_t held = held_before(story, &to->passing, word);
    if (held == STORY_NONE) return STORY_NONE;
    return add_handover(story, &(struct story_handover){.at_ns = to->passing.at_ns,
                                                        .from = story->spans.at[held].process,
                                                        .to = process,
                                                        .held = held,
                                                        .wait = to->passing.wait});
}

static void granted(struct story *story, uint32_t process, const vigil_event *event) {
    uint32_t word = the_word(story, event->offset, event->kind);
    if (word == STORY_NONE || story->words.at[word].turnstile || looked_at(story, process, event)) return;
    if (trace_story_is_lock(event->kind)) close_others(story, event);
    struct story_span span = {.from_ns = event->at_ns,
                              .offset = event->offset,
                              .process = process,
                              .thread_id = event->thread_id,
                              .waiter = STORY_NONE,
                              .count = event->count ? event->count : 1,
                              .type = SPAN_HOLD,
                              .kind = event->kind,
                              .shared = event->shared};
    if (trace_story_is_lock(event->kind) && !event->shared) /* times of events may overlap, two holders may not */
        span.from_ns = trace_story_later(span.from_ns, story->words.at[word].released_ns);
    uint32_t handover = handover_to(story, process, word);
    uint32_t wait = handover == STORY_NONE ? STORY_NONE : story->handovers.at[handover].wait;
    if (wait != STORY_NONE) span.thread_id = story->spans.at[wait].thread_id;
    story->words.at[word].last_hold = STORY_NONE;
    uint32_t hold = open_span(story, &span);
    if (handover != STORY_NONE) story->handovers.at[handover].hold = hold;
}

/* It is not known since when the process held the lock; but at least since the first of the present waiters began to
 * wait. */
static void add_unseen_hold(struct story *story, uint32_t process, const vigil_event *event) {
    uint32_t word = the_word(story, event->offset, event->kind);
    int64_t first_ns = event->at_ns;
    for (uint32_t i = 0; i < story->open.count; i++) {
        const struct story_span *span = open_at(story, i);
        bool waits_here = span->type == SPAN_WAIT && span->offset == event->offset;
        if (waits_here && span->from_ns < first_ns) first_ns = span->from_ns;
    }
    if (word == STORY_NONE || trace_story_later(first_ns, story->words.at[word].released_ns) >= event->at_ns) return;
    uint32_t hold =
        open_span(story, &(struct story_span){.from_ns = trace_story_later(first_ns, story->words.at[word].released_ns),
                                              .offset = event->offset,
                                              .process = process,
                                              .waiter = STORY_NONE,
                                              .count = 1,
                                              .type = SPAN_HOLD,
                                              .kind = event->kind});
    if (hold != STORY_NONE) close_open(story, story->open.count - 1, SPAN_RELEASED, event->at_ns);
}

/* Closes the oldest holds first, until as much is released as the event says. */
static void released(struct story *story, uint32_t process, const vigil_event *event) {
    uint32_t left = event->count ? event->count : 1;
    if (trace_story_is_turnstile(story, event->offset, event->kind)) return;
    while (left) {
        uint32_t oldest = STORY_NONE;
        for (uint32_t i = 0; i < story->open.count; i++) {
            const struct story_span *span = open_at(story, i);
            if (span->type != SPAN_HOLD || span->process != process || span->offset != event->offset) continue;
            if (oldest == STORY_NONE || story->open.at[i] < story->open.at[oldest]) oldest = i;
        }
        if (oldest == STORY_NONE) break;
        struct story_span *span = open_at(story, oldest);
        uint32_t back = span->count < left ? span->count : left;
        left -= back;
        if (back < span->count) span->count -= back;
        else close_open(story, oldest, SPAN_RELEASED, event->at_ns);
    }
    bool alone = event->kind == VIGIL_SEEN_MUTEX || (story->pid && event->kind == VIGIL_SEEN_RWLOCK && !event->shared);
    if (left && alone) add_unseen_hold(story, process, event);
}

/* Events. */

static void died(struct story *story, uint32_t process, const vigil_event *event) {
    if (HAS_ROOM(story, story->deaths))
        story->deaths.at[story->deaths.count++] =
            (struct story_death){.at_ns = trace_story_later(event->at_ns, story->from_ns),
                                 .process = process,
                                 .by = known_process(story, event->by)};
    process_gone(story, process, SPAN_DIED, event->at_ns);
}

void story_event(struct story *story, const vigil_event *event) {
    story->event_count++;
    if (story->full) return;
    uint32_t process = present_process(story, event->number);
    if (event->type == VIGIL_EVENT_JOINED) {
        if (process != STORY_NONE && story->processes.at[process].pid == event->pid) return; /* a look came first */
        if (process != STORY_NONE) process_gone(story, process, SPAN_UNSEEN, event->at_ns);
        new_process(story, event->number, event->pid);
        return;
    }
    if (process == STORY_NONE) process = the_process(story, event->number);
    if (process == STORY_NONE) return;
    switch (event->type) {
    case VIGIL_EVENT_LEFT: process_gone(story, process, SPAN_LEFT, event->at_ns); break;
    case VIGIL_EVENT_DIED: died(story, process, event); break;
    case VIGIL_EVENT_WAITS: waits(story, process, event); break;
    case VIGIL_EVENT_CALLED: called(story, process, event); break;
    case VIGIL_EVENT_GAVE_UP: gave_up(story, process, event); break;
    case VIGIL_EVENT_GRANTED: granted(story, process, event); break;
    case VIGIL_EVENT_RELEASED: released(story, process, event); break;
    default: break;
    }
}

/* Looks. */

void story_members(struct story *story, const vigil_look *look) {
    for (uint32_t i = 0; i < look->member_count; i++) {
        const vigil_seen_member *member = &look->members[i];
        uint32_t index = present_process(story, member->number);
        if (index != STORY_NONE && story->processes.at[index].pid == 0) story->processes.at[index].pid = member->pid;
        if (index != STORY_NONE && story->processes.at[index].pid != member->pid) continue; /* its event will come */
        if (index == STORY_NONE) index = new_process(story, member->number, member->pid);
        if (index == STORY_NONE) return;
        struct story_process *process = &story->processes.at[index];
        if (process->named) continue;
        process->named = true;
        cli_command_line(member, process->command, sizeof process->command);
        cli_task(member, process->task, sizeof process->task);
    }
}

static bool confirm_wait(struct story *story, uint32_t process, uint64_t offset, const vigil_seen_waiter *waiter) {
    for (uint32_t i = 0; i < story->open.count; i++) {
        struct story_span *span = open_at(story, i);
        if (span->looked || span->type != SPAN_WAIT || span->process != process) continue;
        if (span->offset != offset || span->thread_id != waiter->thread_id) continue;
        return span->looked = true;
    }
    return false;
}

static bool confirm_hold(struct story *story, uint32_t process, uint64_t offset, const vigil_seen_holder *holder) {
    for (uint32_t i = 0; i < story->open.count; i++) {
        struct story_span *span = open_at(story, i);
        if (span->looked || span->type != SPAN_HOLD || span->process != process) continue;
        if (span->offset != offset || span->shared != holder->shared) continue;
        return span->looked = true;
    }
    return false;
}

static void sync_waiter(struct story *story, const vigil_seen_line *line, const vigil_seen_waiter *waiter) {
    uint32_t process = waiter->called ? STORY_NONE : the_process(story, waiter->number);
    if (process == STORY_NONE || confirm_wait(story, process, line->offset, waiter)) return;
    open_span(story, &(struct story_span){.from_ns = waiter->since_ns,
                                          .offset = line->offset,
                                          .process = process,
                                          .thread_id = waiter->thread_id,
                                          .waiter = STORY_NONE,
                                          .type = SPAN_WAIT,
                                          .kind = waiter->kind,
                                          .looked = true});
}

static void sync_holder(struct story *story, const vigil_seen_line *line, const vigil_seen_holder *holder,
                        int64_t unknown_ns) {
    uint32_t process = the_process(story, holder->number);
    if (trace_story_is_turnstile(story, line->offset, line->kind)) return;
    if (process == STORY_NONE || confirm_hold(story, process, line->offset, holder)) return;
    open_span(story, &(struct story_span){.from_ns = holder->since_ns ? holder->since_ns : unknown_ns,
                                          .offset = line->offset,
                                          .process = process,
                                          .waiter = STORY_NONE,
                                          .count = holder->count ? holder->count : 1,
                                          .type = SPAN_HOLD,
                                          .kind = line->kind,
                                          .shared = holder->shared,
                                          .looked = true});
}

void story_sync(struct story *story, const vigil_look *look) {
    bool first = story->synced_ns == 0;
    snprintf(story->label, sizeof story->label, "%s", look->label);
    story_members(story, look);
    for (uint32_t i = 0; i < story->open.count; i++) open_at(story, i)->looked = false;
    for (uint32_t i = 0; i < look->line_count; i++) {
        const vigil_seen_line *line = &look->lines[i];
        for (uint32_t j = 0; j < line->waiter_count; j++) sync_waiter(story, line, &line->waiters[j]);
        for (uint32_t j = 0; j < line->holder_count; j++)
            sync_holder(story, line, &line->holders[j], first ? story->from_ns : look->at_ns);
    }
    for (uint32_t i = story->open.count; i-- > 0;) {
        if (!open_at(story, i)->looked) close_open(story, i, SPAN_UNSEEN, 0);
    }
    story->synced_ns = look->at_ns;
}

/* The whole. */

void story_begin(struct story *story, const struct source *source, int64_t from_ns) {
    *story = (struct story){.source = source, .pid = source_pid(source), .from_ns = from_ns};
}

void story_leave(struct story *story, int64_t at_ns) {
    while (story->present.count) process_gone(story, story->present.at[0], SPAN_LEFT, at_ns);
}

void story_lost(struct story *story, uint64_t count, int64_t at_ns) {
    story->lost += count;
    if (HAS_ROOM(story, story->losses))
        story->losses.at[story->losses.count++] = (struct story_loss){.at_ns = at_ns, .count = count};
}

static bool is_waited_for(const struct story *story, uint64_t offset) {
    for (uint32_t i = 0; i < story->open.count; i++) {
        const struct story_span *span = open_at(story, i);
        if (span->type == SPAN_WAIT && span->offset == offset) return true;
    }
    return false;
}

/* Not every call for a lock becomes a hold: another waiter or newcomer may have been faster. */
static bool leads_somewhere(const struct story *story, const struct story_handover *handover) {
    if (handover->hold != STORY_NONE || handover->wait == STORY_NONE) return handover->hold != STORY_NONE;
    if (story->pid) return true; /* a thread's wait ends when it has the lock */
    vigil_seen_kind kind = story->spans.at[handover->wait].kind;
    return !trace_story_is_lock(kind) && kind != VIGIL_SEEN_SEM;
}

static void drop_futile_handovers(struct story *story) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < story->handovers.count; i++) {
        if (leads_somewhere(story, &story->handovers.at[i])) story->handovers.at[left++] = story->handovers.at[i];
    }
    story->handovers.count = left;
}

void story_end(struct story *story, int64_t to_ns) {
    story->to_ns = to_ns;
    for (uint32_t i = story->open.count; i-- > 0;) { /* a mutex's release is recorded only if it has waiters */
        const struct story_span *span = open_at(story, i);
        bool unseen = span->type == SPAN_HOLD && span->kind == VIGIL_SEEN_MUTEX && !is_waited_for(story, span->offset);
        if (unseen) close_open(story, i, SPAN_UNSEEN, to_ns);
    }
    while (story->open.count) close_open(story, story->open.count - 1, SPAN_OPEN, to_ns);
    drop_futile_handovers(story);
}

void story_free(struct story *story) {
    free(story->processes.at);
    free(story->spans.at);
    free(story->handovers.at);
    free(story->deaths.at);
    free(story->losses.at);
    free(story->words.at);
    free(story->open.at);
    free(story->present.at);
}

const char *story_ending(const struct story *story, const struct story_span *span) {
    static const char *const names[] = {"not yet",          "called",           "gave up", "released",
                                        "its process died", "its process left", "not seen"};
    return story->pid && span->ending == SPAN_LEFT ? "its process ended" : names[span->ending];
}

uint32_t story_spans(const struct story *story, enum span_type type) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < story->spans.count; i++) count += story->spans.at[i].type == type;
    return count;
}
