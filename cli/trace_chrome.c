/* SPDX-License-Identifier: MIT */
/*
 * The story in the trace event format of Chrome, which Perfetto opens too.
 *
 * A process is a track, with a lane for each of its threads. In a lane, slices may contain each other, but must not
 * overlap otherwise: a hold is in the lane of the thread that waited for it if it fits there, and in another lane if
 * not. In the story of a process's threads there is one track for all.
 */
#include <stdlib.h>

#include "trace.h"

#define NOT_A_PID  UINT32_C(5000000) /* no process has a number from here on: Linux has pids of up to 2^22 */
#define LANE_DEPTH 16                /* slices in slices */

struct lane {
    uint32_t thread_id, tid;
    uint32_t nth; /* of the lanes for the same thread */
    bool waits;
    uint32_t depth;
    int64_t ends_ns[LANE_DEPTH];
};

struct chrome {
    struct cli_json json;
    const char *name;
    const struct story *story;
    uint32_t *tids; /* of each span */
    bool *calls;    /* by process: its lane for calls has been named */
    uint32_t next_tid;
    struct lane *lanes; /* of the process that is written now */
    uint32_t lane_count, lane_room;
};

struct slice {
    uint32_t process, span;
    int64_t from_ns, to_ns;
};

static uint32_t pid_of(const struct chrome *chrome, uint32_t process) {
    uint32_t pid = chrome->story->pid ? chrome->story->pid : chrome->story->processes.at[process].pid;
    return pid ? pid : NOT_A_PID + 1 + process;
}

/* Begins an event, with the fields that all events have. */
static struct cli_json *begin_event(struct chrome *chrome, const char *phase, const char *name, uint32_t pid,
                                    uint32_t tid) {
    struct cli_json *json = &chrome->json;
    fputs(json->more ? ",\n" : "\n", json->out); /* a line for each */
    json->more = false;
    json_object(json, NULL);
    json_text(json, "ph", phase);
    json_text(json, "name", name);
    json_unsigned(json, "pid", pid);
    json_unsigned(json, "tid", tid);
    return json;
}

static void end_event(struct chrome *chrome) {
    json_end(&chrome->json, '}');
}

/* In microseconds, as the format requires, with three decimals for the nanoseconds. */
static void put_ns(struct cli_json *json, const char *key, int64_t ns) {
    fprintf(json->out, "%s\"%s\":%lld.%03lld", json->more ? "," : "", key, (long long)(ns / 1000),
            (long long)(ns % 1000));
    json->more = true;
}

static void put_time(struct chrome *chrome, int64_t at_ns) {
    int64_t from_ns = chrome->story->from_ns;
    put_ns(&chrome->json, "ts", at_ns > from_ns ? at_ns - from_ns : 0);
}

/* Names and order of tracks and lanes. */
static void trace_chrome_put_name(struct chrome *chrome, const char *what, uint32_t pid, uint32_t tid,
                                  const char *name) {
    struct cli_json *json = begin_event(chrome, "M", what, pid, tid);
    json_object(json, "args");
    json_text(json, "name", name);
    json_end(json, '}');
    end_event(chrome);
}

static void put_order(struct chrome *chrome, uint32_t pid, uint32_t rank) {
    struct cli_json *json = begin_event(chrome, "M", "process_sort_index", pid, 0);
    json_object(json, "args");
    json_unsigned(json, "sort_index", rank);
    json_end(json, '}');
    end_event(chrome);
}

static void put_processes(struct chrome *chrome) {
    char text[256];
    snprintf(text, sizeof text, "%s %s", chrome->story->pid ? "locks of" : "segment", chrome->name);
    trace_chrome_put_name(chrome, "process_name", NOT_A_PID, 0, text);
    put_order(chrome, NOT_A_PID, 0);
    if (chrome->story->pid) {
        trace_chrome_put_name(chrome, "process_name", chrome->story->pid, 0, chrome->name);
        put_order(chrome, chrome->story->pid, 1);
        return;
    }
    for (uint32_t i = 0; i < chrome->story->processes.count; i++) {
        const struct story_process *process = &chrome->story->processes.at[i];
        const char *command = *process->command ? process->command : "a process that left too soon to be named";
        if (process->pid) snprintf(text, sizeof text, "pid %u: %s", process->pid, command);
        else snprintf(text, sizeof text, "%s", command);
        trace_chrome_put_name(chrome, "process_name", pid_of(chrome, i), 0, text);
        put_order(chrome, pid_of(chrome, i), i + 1);
    }
}

/* Lanes. */

static bool fits(struct lane *lane, const struct slice *slice) {
    while (lane->depth && lane->ends_ns[lane->depth - 1] <= slice->from_ns) lane->depth--;
    return lane->depth == 0 || (lane->depth < LANE_DEPTH && lane->ends_ns[lane->depth - 1] >= slice->to_ns);
}

static struct lane *new_lane(struct chrome *chrome, uint32_t thread_id, uint32_t nth) {
    if (chrome->lane_count == chrome->lane_room) {
        uint32_t room = chrome->lane_room ? 2 * chrome->lane_room : 16;
        struct lane *moved = realloc(chrome->lanes, room * sizeof *moved);
        if (!moved) return NULL;
        chrome->lanes = moved;
        chrome->lane_room = room;
    }
    struct lane *lane = &chrome->lanes[chrome->lane_count++];
    *lane = (struct lane){.thread_id = thread_id, .nth = nth};
    lane->tid = thread_id && nth == 0 ? thread_id : chrome->next_tid++;
    return lane;
}

static struct lane *lane_for(struct chrome *chrome, const struct slice *slice) {
    uint32_t thread_id = chrome->story->spans.at[slice->span].thread_id, nth = 0;
    for (uint32_t i = 0; i < chrome->lane_count; i++) {
        if (chrome->lanes[i].thread_id != thread_id) continue;
        if (fits(&chrome->lanes[i], slice)) return &chrome->lanes[i];
        nth++;
    }
    return new_lane(chrome, thread_id, nth);
}

static void name_lanes(struct chrome *chrome, uint32_t process) {
    char text[64];
    for (uint32_t i = 0; i < chrome->lane_count; i++) {
        const struct lane *lane = &chrome->lanes[i];
        const char *thread = chrome->story->processes.at[process].program;
        if (chrome->story->pid && lane->nth == 0) snprintf(text, sizeof text, "%s %u", thread, lane->thread_id);
        else if (lane->thread_id && lane->nth == 0) snprintf(text, sizeof text, "thread %u", lane->thread_id);
        else if (lane->thread_id) snprintf(text, sizeof text, "thread %u (%u)", lane->thread_id, lane->nth + 1);
        else snprintf(text, sizeof text, "%s %u", lane->waits ? "event loop" : "holds", lane->nth + 1);
        trace_chrome_put_name(chrome, "thread_name", pid_of(chrome, process), lane->tid, text);
    }
    chrome->lane_count = 0;
}

/* By process, then by time; an outer slice comes before the slices in it. */
static int trace_chrome_in_order(const void *one, const void *other) {
    const struct slice *a = one, *b = other;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->from_ns != b->from_ns) return a->from_ns < b->from_ns ? -1 : 1;
    if (a->to_ns != b->to_ns) return a->to_ns > b->to_ns ? -1 : 1;
    return a->span < b->span ? -1 : a->span > b->span;
}

/* Slices. */

static void put_where(struct chrome *chrome, uint64_t offset) {
    char address[24];
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)offset);
    if (chrome->story->pid) json_text(&chrome->json, "address", address);
    else json_unsigned(&chrome->json, "offset", offset);
}

static void put_span(struct chrome *chrome, const struct slice *slice, uint32_t tid) {
    const struct story_span *span = &chrome->story->spans.at[slice->span];
    const char *verb = span->type == SPAN_WAIT ? "waits at" : span->shared ? "reads" : "holds";
    char text[SOURCE_NAME + 16];
    snprintf(text, sizeof text, "%s %s", verb, chrome->story->words.at[span->word].name);
    struct cli_json *json = begin_event(chrome, "X", text, pid_of(chrome, span->process), tid);
    json_text(json, "cat", span->type == SPAN_WAIT ? "wait" : "hold");
    put_time(chrome, span->from_ns);
    put_ns(json, "dur", span->to_ns - span->from_ns);
    json_object(json, "args");
    put_where(chrome, span->offset);
    json_text(json, "kind", vigil_seen_kind_name(span->kind));
    json_text(json, "end", story_ending(chrome->story, span));
    if (span->type == SPAN_HOLD && span->kind == VIGIL_SEEN_RWLOCK) json_bool(json, "shared", span->shared);
    json_end(json, '}');
    end_event(chrome);
}

static bool put_spans(struct chrome *chrome) {
    const struct story *story = chrome->story;
    struct slice *slices = malloc((story->spans.count + 1) * sizeof *slices);
    if (!slices) return false;
    for (uint32_t i = 0; i < story->spans.count; i++) {
        const struct story_span *span = &story->spans.at[i];
        slices[i] = (struct slice){span->process, i, span->from_ns, span->to_ns};
    }
    qsort(slices, story->spans.count, sizeof *slices, trace_chrome_in_order);
    bool written = true;
    for (uint32_t i = 0; i < story->spans.count && written; i++) {
        if (i && slices[i].process != slices[i - 1].process) name_lanes(chrome, slices[i - 1].process);
        struct lane *lane = lane_for(chrome, &slices[i]);
        written = lane != NULL;
        if (!lane) break;
        lane->ends_ns[lane->depth++] = slices[i].to_ns;
        lane->waits |= story->spans.at[slices[i].span].type == SPAN_WAIT;
        chrome->tids[slices[i].span] = lane->tid;
        put_span(chrome, &slices[i], lane->tid);
    }
    if (chrome->lane_count) name_lanes(chrome, slices[story->spans.count - 1].process);
    free(slices);
    return written;
}

/* Hand-overs: an arrow from the giver's hold to the receiver's hold, or to the end of its wait. */

static void put_arrow(struct chrome *chrome, const char *phase, uint32_t number, uint32_t process, uint32_t tid,
                      int64_t at_ns) {
    struct cli_json *json = begin_event(chrome, phase, "hand-over", pid_of(chrome, process), tid);
    json_text(json, "cat", "hand-over");
    json_unsigned(json, "id", number + 1);
    if (*phase == 'f') json_text(json, "bp", "e"); /* bind to the enclosing slice, not the next one */
    put_time(chrome, at_ns);
    end_event(chrome);
}

/* A caller that does not hold what it gives, such as a notifier, gets a slice for the arrow to start from. */
static uint32_t put_call(struct chrome *chrome, const struct story_handover *handover, int64_t at_ns) {
    uint32_t tid = 2 * NOT_A_PID + handover->from, pid = pid_of(chrome, handover->from);
    char text[64] = "calls";
    const struct story_process *from = &chrome->story->processes.at[handover->from];
    if (chrome->story->pid) snprintf(text, sizeof text, "%s %u calls", from->program, from->number);
    if (!chrome->calls[handover->from]) trace_chrome_put_name(chrome, "thread_name", pid, tid, text);
    chrome->calls[handover->from] = true;
    begin_event(chrome, "X", "calls", pid, tid);
    put_time(chrome, at_ns);
    put_ns(&chrome->json, "dur", 1);
    end_event(chrome);
    return tid;
}

static int64_t within(const struct story_span *span, int64_t at_ns) {
    if (at_ns >= span->to_ns) at_ns = span->to_ns - 1; /* the end is not part of the slice */
    return at_ns > span->from_ns ? at_ns : span->from_ns;
}

static void put_handover(struct chrome *chrome, uint32_t number) {
    const struct story_handover *handover = &chrome->story->handovers.at[number];
    const struct story_span *spans = chrome->story->spans.at;
    uint32_t got = handover->hold != STORY_NONE ? handover->hold : handover->wait;
    if (got == STORY_NONE) return;
    int64_t to_ns = within(&spans[got], handover->hold != STORY_NONE ? spans[got].from_ns : handover->at_ns);
    int64_t from_ns = handover->at_ns < to_ns ? handover->at_ns : to_ns;
    uint32_t held = handover->held, tid;
    if (held != STORY_NONE && spans[held].from_ns <= from_ns) {
        from_ns = within(&spans[held], from_ns);
        tid = chrome->tids[held];
    } else {
        tid = put_call(chrome, handover, from_ns);
    }
    put_arrow(chrome, "s", number, handover->from, tid, from_ns);
    put_arrow(chrome, "f", number, handover->to, chrome->tids[got], to_ns);
}

/* Deaths, and lost events. */

static void put_death(struct chrome *chrome, const struct story_death *death) {
    struct cli_json *json = begin_event(chrome, "i", "died", pid_of(chrome, death->process), 0);
    json_text(json, "s", "p");
    json_text(json, "cat", "death");
    put_time(chrome, death->at_ns);
    if (death->by != STORY_NONE) {
        json_object(json, "args");
        json_unsigned(json, "found by pid", chrome->story->processes.at[death->by].pid);
        json_end(json, '}');
    }
    end_event(chrome);
}

static void put_loss(struct chrome *chrome, const struct story_loss *loss) {
    char text[64];
    snprintf(text, sizeof text, "%llu events lost", (unsigned long long)loss->count);
    struct cli_json *json = begin_event(chrome, "i", text, NOT_A_PID, 0);
    json_text(json, "s", "g");
    put_time(chrome, loss->at_ns);
    end_event(chrome);
}

/* The lengths of the lines. */

struct step {
    int64_t at_ns;
    const struct story_word *word;
    int change;
};

static int by_word_and_time(const void *one, const void *other) {
    const struct step *a = one, *b = other;
    if (a->word != b->word) return a->word < b->word ? -1 : 1;
    if (a->at_ns != b->at_ns) return a->at_ns < b->at_ns ? -1 : 1;
    return b->change - a->change; /* at the same time, arrivals first: never below zero */
}

static void put_length(struct chrome *chrome, const struct step *step, int length) {
    char text[SOURCE_NAME + 16];
    snprintf(text, sizeof text, "line at %s", step->word->name);
    struct cli_json *json = begin_event(chrome, "C", text, NOT_A_PID, 0);
    put_time(chrome, step->at_ns);
    json_object(json, "args");
    json_integer(json, "waiting", length);
    json_end(json, '}');
    end_event(chrome);
}

static bool put_lengths(struct chrome *chrome) {
    const struct story *story = chrome->story;
    struct step *steps = malloc((2 * (size_t)story->spans.count + 1) * sizeof *steps);
    if (!steps) return false;
    size_t count = 0;
    for (uint32_t i = 0; i < story->spans.count; i++) {
        const struct story_span *span = &story->spans.at[i];
        const struct story_word *word = &story->words.at[span->word];
        if (span->type != SPAN_WAIT) continue;
        steps[count++] = (struct step){span->from_ns, word, 1};
        if (span->ending != SPAN_OPEN) steps[count++] = (struct step){span->to_ns, word, -1};
    }
    qsort(steps, count, sizeof *steps, by_word_and_time);
    int length = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && steps[i].word != steps[i - 1].word) length = 0;
        length += steps[i].change;
        bool same = i + 1 < count && steps[i + 1].word == steps[i].word && steps[i + 1].at_ns == steps[i].at_ns;
        if (!same) put_length(chrome, &steps[i], length);
    }
    free(steps);
    return true;
}

/* About the whole recording. */
static void put_other(struct chrome *chrome) {
    struct cli_json *json = &chrome->json;
    json_object(json, "otherData");
    json_text(json, chrome->story->pid ? "process" : "segment", chrome->name);
    json_text(json, chrome->story->pid ? "program" : "label", chrome->story->label);
    json_unsigned(json, "events", chrome->story->event_count);
    json_unsigned(json, "events lost", chrome->story->lost);
    json_end(json, '}');
}

static bool put_events(struct chrome *chrome) {
    const struct story *story = chrome->story;
    put_processes(chrome);
    if (!put_spans(chrome)) return false;
    for (uint32_t i = 0; i < story->handovers.count; i++) put_handover(chrome, i);
    for (uint32_t i = 0; i < story->deaths.count; i++) put_death(chrome, &story->deaths.at[i]);
    for (uint32_t i = 0; i < story->losses.count; i++) put_loss(chrome, &story->losses.at[i]);
    return put_lengths(chrome);
}

bool chrome_write(FILE *out, const char *name, const struct story *story) {
    struct chrome chrome = {.name = name, .story = story, .next_tid = NOT_A_PID + 1};
    chrome.tids = calloc(story->spans.count + 1, sizeof *chrome.tids);
    chrome.calls = calloc(story->processes.count + 1, sizeof *chrome.calls);
    bool written = chrome.tids && chrome.calls;
    if (written) {
        json_begin(&chrome.json, out);
        json_object(&chrome.json, NULL);
        json_text(&chrome.json, "displayTimeUnit", "ms");
        put_other(&chrome);
        json_array(&chrome.json, "traceEvents");
        written = put_events(&chrome);
        json_end(&chrome.json, ']');
        json_end(&chrome.json, '}');
    }
    free(chrome.tids);
    free(chrome.calls);
    free(chrome.lanes);
    return written && fflush(out) == 0 && !ferror(out);
}
