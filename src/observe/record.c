/* SPDX-License-Identifier: MIT */
/* Recording: see shm/events.h, and vigil/observe.h. */
#include "base/tuning.h"
#include "observer.h"

_Static_assert(PRIM_EVENTS <= VIGIL_EVENTS_KEPT, "there is room for no more");

/*
 * All observers of a segment have one request in its header, that of the last to call record. Each remembers the
 * request that its own has replaced, and puts that back when it ends. Then no other observer that still records loses
 * events: those that called record before us end no later than the request that we replaced, since a later request ends
 * later; and that of an observer that called after us is in the header in place of ours, and stays there. If we have
 * replaced our own last request, no other observer had called in between, and what we remember is still right.
 */
static void observer_request(vigil_observer *observer, uint64_t until_ns) {
    uint64_t *request = &segment_header(observer->segment)->record_until_ns;
    uint64_t replaced_ns = prim_exchange_acq_rel(request, until_ns);
    if (replaced_ns != observer->recorded_until_ns) observer->replaced_until_ns = replaced_ns;
    observer->recorded_until_ns = until_ns;
}

/* A replaced request that has expired, or that no observer can have made, is not put back. */
void observer_end_request(vigil_observer *observer) {
    uint64_t ours_ns = observer->recorded_until_ns, now_ns = prim_now_ns(), replaced_ns = observer->replaced_until_ns;
    bool live = replaced_ns > now_ns && replaced_ns - now_ns <= EVENTS_RECORDED_NS;
    if (!ours_ns) return;
    prim_cas_acq_rel(&segment_header(observer->segment)->record_until_ns, &ours_ns, live ? replaced_ns : 0);
}

int vigil_observer_record(vigil_observer *observer) {
    if (!observer) return VIGIL_ENULL;
    struct segment_header *header = segment_header(observer->segment);
    if (!backing_need_events(observer->segment)) return VIGIL_ENOMEM;
    uint64_t now_ns = prim_now_ns();
    if (!observer->records) observer->next_sequence = prim_load_acquire(&header->events);
    else observer->lapses += now_ns >= observer->recorded_until_ns;
    observer->records = true;
    observer_request(observer, now_ns + EVENTS_RECORDED_NS);
    return VIGIL_OK;
}

/* Whether the next event, which is missing, may still appear. Starts to wait for it if need be. */
static bool observer_may_come(vigil_observer *observer) {
    uint64_t now_ns = prim_now_ns();
    if (!observer->missing_since_ns) observer->missing_since_ns = now_ns;
    return now_ns - observer->missing_since_ns < EVENT_GIVE_UP_NS;
}

/* Whether the process has had to do with the name: by an event, or at the last look. A process is forgotten if another
 * with the same remainder comes after it; then its death is not in the recording. */
static bool observer_has_seen(const vigil_observer *observer, uint32_t number) {
    if (observer->seen_numbers[number % OBSERVER_NUMBERS] == number) return true;
    for (uint32_t i = 0; i < observer->user_count; i++) {
        if (observer->users[i] == number) return true;
    }
    return false;
}

/* Whether the event is of interest. Of a named lock, `use` says which processes open and close it. */
static bool observer_is_of_window(vigil_observer *observer, struct segment_event *entry) {
    if (!observer->has_window) return true;
    if (entry->type == VIGIL_EVENT_DIED) return observer_has_seen(observer, entry->number);
    uint64_t offset = entry->key ? observer_in_window(observer, entry->key) : UINT64_MAX;
    if (offset != UINT64_MAX) observer->seen_numbers[entry->number % OBSERVER_NUMBERS] = entry->number;
    if (offset != BOOK_WINDOW_BYTES) return offset != UINT64_MAX;
    if (entry->type != VIGIL_EVENT_GRANTED && entry->type != VIGIL_EVENT_RELEASED) return false;
    entry->type = entry->type == VIGIL_EVENT_GRANTED ? VIGIL_EVENT_JOINED : VIGIL_EVENT_LEFT;
    entry->key = 0;
    return true;
}

static vigil_event observer_event_of(const vigil_observer *observer, const struct segment_event *entry,
                                     uint64_t now_ns) {
    uint64_t user_at = observer->segment->layout.user_at + observer->window.at;
    return (vigil_event){
        .at_ns = observer_past(entry->at_ns, now_ns),
        .type = (vigil_event_type)entry->type,
        .kind = (vigil_seen_kind)entry->kind,
        .offset = entry->key >= user_at ? entry->key - user_at : 0,
        .number = entry->number,
        .pid = entry->type == VIGIL_EVENT_JOINED ? entry->pid : 0,
        .thread_id = entry->thread_id,
        .by = entry->by,
        .count = entry->count,
        .waiter = entry->slot,
        .shared = entry->shared,
        .status = entry->status == SLOT_CALLED || entry->status == SLOT_BESIDE ? VIGIL_OK : (int)entry->status,
    };
}

int64_t vigil_observer_events(vigil_observer *observer, vigil_event *events, size_t most, uint64_t *lost) {
    if (!observer || (!events && most)) return VIGIL_ENULL;
    struct segment_event entry;
    uint64_t end = prim_load_acquire(&segment_header(observer->segment)->events), missed = observer->lapses;
    uint64_t now_ns = prim_now_ns(); /* read after `end`: each event before `end` is older */
    size_t count = 0;
    observer->lapses = 0;
    bool overwritten = end - observer->next_sequence > UINT64_MAX / 2; /* the counter */
    if (overwritten) observer->next_sequence = end;
    while (observer->next_sequence != end && count < most) {
        if (end - observer->next_sequence > PRIM_EVENTS) { /* the ring has gone round */
            missed += end - PRIM_EVENTS - observer->next_sequence;
            observer->next_sequence = end - PRIM_EVENTS;
            observer->missing_since_ns = 0;
        }
        bool there = event_read(observer->segment, observer->next_sequence, &entry);
        if (!there && observer_may_come(observer)) break;
        bool valid = there && entry.type < VIGIL_EVENT_TYPES && entry.kind < VIGIL_SEEN_KINDS;
        if (!valid) missed++;
        else if (observer_is_of_window(observer, &entry)) events[count++] = observer_event_of(observer, &entry, now_ns);
        observer->next_sequence++;
        if (there) observer->missing_since_ns = 0; /* else the events behind it have been awaited as long */
    }
    if (lost) *lost += missed;
    return (int64_t)count;
}
