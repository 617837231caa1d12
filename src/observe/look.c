/* SPDX-License-Identifier: MIT */
/* Looking: see observer.h, and vigil/observe.h. */
#include <stdlib.h>
#include <string.h>

#include "base/tuning.h"
#include "recovery/hold.h"
#include "observer.h"
#include "prim_file.h"

#define READ_AGAIN 8

_Static_assert((int)VIGIL_SEEN_WORD == SLOT_PLAIN && (int)VIGIL_SEEN_COND == SLOT_COND &&
                   (int)VIGIL_SEEN_MUTEX == SLOT_MUTEX && (int)VIGIL_SEEN_SEM == SLOT_SEM &&
                   (int)VIGIL_SEEN_RWLOCK == SLOT_RWLOCK && (int)VIGIL_SEEN_BARRIER == SLOT_BARRIER &&
                   (int)VIGIL_SEEN_ONCE == SLOT_ONCE && (int)VIGIL_SEEN_KINDS == SLOT_HOLDS,
               "the kinds are the slots'");

const char *vigil_seen_kind_name(vigil_seen_kind kind) {
    static const char *const names[] = {"word",    "condition", "mutex", "semaphore", "read-write lock",
                                        "barrier", "once"};
    return (unsigned)kind < VIGIL_SEEN_KINDS ? names[kind] : "unknown";
}

static int observer_observe(vigil_observer **observer, struct segment *segment) {
    vigil_observer *made = calloc(1, sizeof *made);
    if (!made) {
        segment_forget(segment);
        return VIGIL_ENOMEM;
    }
    const struct segment_layout *at = &segment->layout;
    made->segment = segment;
    made->claims = (uint32_t *)(void *)(segment->base + at->claims_at);
    made->slots = (struct slot *)(void *)(segment->base + at->slots_at);
    made->buckets = (struct bucket *)(void *)(segment->base + at->buckets_at);
    made->next_sequence = prim_load_acquire(&segment_header(segment)->events);
    *observer = made;
    return VIGIL_OK;
}

/* The entry in the window; null: its name has been removed. */
static const struct entry *observer_entry(const struct segment *book, const struct book_window *window) {
    if (window->at == BOOK_NOWHERE) return NULL;
    const unsigned char *data = book->buffer.data;
    return (const struct entry *)(const void *)(data + window->at);
}

/* Look where the name is now: it may have been removed, and its entry may be another name's. One that is removed while
 * processes have it open keeps its name. */
static void observer_find_window(const struct segment *book, uint64_t usable, struct book_window *window) {
    const struct entry *entry = observer_entry(book, window);
    bool same = entry && strncmp(entry->name, window->name, BOOK_NAME_BYTES) == 0;
    if (!same) entry = book_peek(book->buffer.data, usable, window->name);
    window->at = BOOK_NOWHERE;
    if (!entry) return;
    window->at = (uint64_t)((const unsigned char *)entry - (unsigned char *)book->buffer.data);
    window->slots = prim_load_relaxed(&entry->slots);
    strcpy(window->label, window->slots ? "vigil sem" : "vigil lock");
}

/* A named lock: the entry in the book, which the observer keeps. */
static int observer_open_entry(vigil_observer **observer, struct segment *book, const char *name) {
    struct book_window window = {.at = BOOK_NOWHERE};
    strncpy(window.name, book_name(name), sizeof window.name - 1);
    observer_find_window(book, segment_usable(book), &window);
    if (window.at == BOOK_NOWHERE) {
        segment_forget(book);
        return VIGIL_ENOTFOUND;
    }
    int status = observer_observe(observer, book);
    if (status != VIGIL_OK) return status;
    (*observer)->window = window;
    (*observer)->has_window = true;
    return VIGIL_OK;
}

static int observer_open_named(vigil_observer **observer, const char *name) {
    struct segment *book;
    int status = segment_glimpse_book(&book, book_is_path(name) ? name : NULL);
    return status == VIGIL_OK ? observer_open_entry(observer, book, name) : status;
}

int vigil_observer_open_user(vigil_observer **observer, uint32_t user, const char *name) {
    struct segment *segment;
    if (!observer || !name) return VIGIL_ENULL;
    int status = segment_glimpse_user(&segment, user, name);
    if (status == VIGIL_OK) return observer_observe(observer, segment);
    if (status != VIGIL_ENOTFOUND) return status;
    status = segment_glimpse_user(&segment, user, NULL);
    return status == VIGIL_OK ? observer_open_entry(observer, segment, name) : status;
}

struct observer_users {
    vigil_user_name *found;
    void *data;
    uint32_t user; /* whose book is being read */
    int64_t count;
};

static void observer_list_entry(const char *name, void *data) {
    struct observer_users *users = data;
    users->count++;
    users->found(users->user, name, users->data);
}

/* Files that are not theirs, or cannot be read, are left out. */
static void observer_list_file(uint32_t user, const char *name, void *data) {
    struct observer_users *users = data;
    struct segment *book;
    if (name && segment_name_good(name)) {
        users->count++;
        users->found(user, name, users->data);
    } else if (!name && segment_glimpse_user(&book, user, NULL) == VIGIL_OK) {
        users->user = user;
        book_each(book->buffer.data, segment_usable(book), observer_list_entry, users);
        segment_forget(book);
    }
}

int64_t vigil_list_users(vigil_user_name *found, void *data) {
    if (!found) return VIGIL_ENULL;
    struct observer_users users = {found, data, 0, 0};
    return prim_file_list_all(observer_list_file, &users) ? users.count : VIGIL_ESYSTEM;
}

int vigil_observer_open(vigil_observer **observer, const char *name) {
    struct segment *segment = NULL;
    if (!observer || !name) return VIGIL_ENULL;
    int status = book_is_path(name) ? VIGIL_ENOTFOUND : segment_glimpse(&segment, name);
    if (status == VIGIL_ENOTFOUND) return observer_open_named(observer, name);
    return status == VIGIL_OK ? observer_observe(observer, segment) : status;
}

int vigil_observer_open_fd(vigil_observer **observer, int fd) {
    struct segment *segment = NULL;
    int status = observer ? segment_glimpse_behind(&segment, fd, SEGMENT_BY_FD) : VIGIL_ENULL;
    return status == VIGIL_OK ? observer_observe(observer, segment) : status;
}

int vigil_observer_close(vigil_observer *observer) {
    if (!observer) return VIGIL_ENULL;
    observer_end_request(observer);
    segment_forget(observer->segment);
    free(observer->users);
    free(observer->seen);
    free(observer->members);
    free(observer->lines);
    free(observer->waiters);
    free(observer->holders);
    free(observer);
    return VIGIL_OK;
}

/* Slots. */

static struct slot observer_copy_of(struct slot *slot) {
    return (struct slot){
        .key = prim_load_acquire(&slot->key),
        .signature = prim_load_relaxed(&slot->signature),
        .gift = prim_load_relaxed(&slot->gift),
        .began_ns = prim_load_relaxed(&slot->began_ns),
        .state = prim_load_relaxed(&slot->state),
        .seat = prim_load_relaxed(&slot->seat),
        .next = prim_load_relaxed(&slot->next),
        .prev = prim_load_relaxed(&slot->prev),
        .tail = prim_load_relaxed(&slot->tail),
        .next_line = prim_load_relaxed(&slot->next_line),
        .kind = prim_load_relaxed(&slot->kind),
        .of = prim_load_relaxed(&slot->of),
    };
}

bool observer_read(const vigil_observer *observer, uint32_t index, struct seen_slot *seen) {
    struct slot *slot = &observer->slots[index];
    uint32_t *claim = &observer->claims[index];
    for (int again = 0; again < READ_AGAIN; again++) {
        uint32_t claimed = prim_load_acquire(claim);
        *seen = (struct seen_slot){.index = index, .number = claim_number(claimed)};
        if (!claimed) return false;
        seen->slot = observer_copy_of(slot);
        prim_fence_seq_cst();
        bool still = prim_load_relaxed(claim) == claimed && prim_load_relaxed(&slot->key) == seen->slot.key &&
                     undecided(prim_load_relaxed(&slot->state)) == undecided(seen->slot.state);
        if (still) return true;
    }
    return false;
}

/* Slots that are claimed meanwhile may be left to the next look. */
bool observer_read_all(vigil_observer *observer) {
    uint32_t slots = backing_slots(observer->segment), count = 0;
    observer->passes++;
    observer->usable = segment_usable(observer->segment);
    for (uint32_t index = 1; index < slots; index++) count += prim_load_relaxed(&observer->claims[index]) != 0;
    if (count > observer->seen_room) {
        struct seen_slot *more = realloc(observer->seen, count * sizeof *more);
        if (!more) return false;
        observer->seen = more;
        observer->seen_room = count;
    }
    observer->seen_count = 0;
    for (uint32_t index = 1; index < slots && observer->seen_count < observer->seen_room; index++) {
        if (observer_read(observer, index, &observer->seen[observer->seen_count])) observer->seen_count++;
    }
    return true;
}

bool observer_has_word(const vigil_observer *observer, uint64_t key) {
    return segment_has(observer->segment, key, observer->usable);
}

/* Members. */

static bool observer_is_user(const vigil_observer *observer, uint32_t number);

static uint32_t observer_look_at_members(vigil_observer *observer) {
    struct segment *segment = observer->segment;
    uint32_t count = 0, space = prim_process_space();
    for (uint32_t i = 0, used = segment_rows(segment); i < used; i++) {
        struct segment_member *row = segment_member(segment, i);
        uint32_t life = prim_load_acquire(&row->life);
        if (!(life & SEGMENT_JOINED)) continue;
        vigil_seen_member *member = &observer->members[count];
        *member = (vigil_seen_member){.number = prim_load_relaxed(&row->number), .pid = row->pid};
        if (!observer_is_user(observer, member->number)) continue;
        member->other_space = prim_load_relaxed(&row->incarnation) >> 4 != space;
        memcpy(member->program, row->name, sizeof row->name);
        member->alive = segment_member_alive(segment, i);
        prim_fence_seq_cst();
        if (prim_load_relaxed(&row->life) == life) count++; /* else the member has just left */
    }
    return count;
}

/* Lines. */

static uint64_t observer_lock_key(const struct seen_slot *seen) {
    return seen_holds(seen) ? seen->slot.key - 1 : seen->slot.key;
}

/* By the lock's key; then holders, called waiters, and waiters in line, by began_ns. */
static int observer_in_order(const void *a, const void *b) {
    const struct seen_slot *x = a, *y = b;
    int by_key = (observer_lock_key(x) > observer_lock_key(y)) - (observer_lock_key(x) < observer_lock_key(y));
    if (by_key) return by_key;
    if (seen_holds(x) != seen_holds(y)) return seen_holds(x) ? -1 : 1;
    bool x_waits = undecided(x->slot.state), y_waits = undecided(y->slot.state);
    if (!seen_holds(x) && x_waits != y_waits) return x_waits ? 1 : -1;
    if (x->slot.began_ns != y->slot.began_ns) return x->slot.began_ns < y->slot.began_ns ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

int64_t observer_past(uint64_t at_ns, uint64_t now_ns) {
    return (int64_t)(at_ns < now_ns ? at_ns : now_ns);
}

/* The time of which `ms` is the low 32 bits, in milliseconds. Returns nanoseconds; 0: it would be before time 0. */
static int64_t observer_since(uint32_t ms, uint64_t now_ns) {
    uint64_t now_ms = now_ns / 1000000;
    uint32_t ago_ms = (uint32_t)now_ms - ms;
    if (ago_ms > UINT32_MAX - OBSERVER_AHEAD_MS) ago_ms = 0; /* it began after we read the clock */
    return ago_ms < now_ms ? (int64_t)(now_ms - ago_ms) * 1000000 : 0;
}

static vigil_seen_waiter observer_waiter_of(const struct seen_slot *seen, uint64_t now_ns) {
    const struct slot *slot = &seen->slot;
    return (vigil_seen_waiter){
        .number = seen->number,
        .thread_id = slot->seat ? 0 : (uint32_t)slot->signature,
        .kind = (vigil_seen_kind)slot->kind,
        .called = !undecided(slot->state),
        .shared = slot->kind == SLOT_RWLOCK && slot->wants == HOLD_READER,
        .permits = slot->kind == SLOT_SEM ? (uint32_t)slot->wants : 0,
        .since_ns = slot->seat ? observer_past(slot->began_ns, now_ns)
                               : observer_since((uint32_t)(slot->signature >> 32), now_ns),
    };
}

#define HELD UINT64_C(0x7fffffff)

static vigil_seen_holder observer_holder_of(const struct seen_slot *seen, uint64_t now_ns) {
    uint32_t held = (uint32_t)(seen->slot.held & HELD);
    bool shared = seen->slot.of == SLOT_RWLOCK && held >= HOLD_READER;
    return (vigil_seen_holder){
        .number = seen->number,
        .shared = shared,
        .count = shared ? held / HOLD_READER : held,
        .since_ns = observer_since((uint32_t)(seen->slot.signature >> 32), now_ns),
    };
}

/* The holder's number, if the word has it; zero: none. */
static uint32_t observer_named_holder(const vigil_seen_line *line) {
    uint32_t state = line->value & 3;
    bool names = line->kind == VIGIL_SEEN_MUTEX || line->kind == VIGIL_SEEN_ONCE;
    return names && (state == 1 || state == 2) ? segment_holder_number(line->value) : 0;
}

static bool observer_owner_died(vigil_seen_kind kind, uint32_t value) {
    if (kind == VIGIL_SEEN_MUTEX) return value & 8u;
    return kind == VIGIL_SEEN_RWLOCK && value >> 31;
}

static bool observer_make_room(vigil_observer *observer, uint32_t count) {
    uint32_t members = observer->segment->members;
    if (!observer->members) observer->members = calloc(members, sizeof *observer->members);
    if (!observer->members) return false;
    if (count < observer->room) return true;
    free(observer->lines);
    free(observer->waiters);
    free(observer->holders);
    observer->lines = calloc(count + 1, sizeof *observer->lines);
    observer->waiters = calloc(count + 1, sizeof *observer->waiters);
    observer->holders = calloc(count + 1, sizeof *observer->holders);
    bool made = observer->lines && observer->waiters && observer->holders;
    observer->room = made ? count + 1 : 0;
    return made;
}

/* Add the line of all slots from `first` on that have the same key. Returns how many they are. */
static uint32_t observer_add_line(const vigil_observer *observer, uint32_t first, vigil_seen_line *line,
                                  uint32_t *waiters, uint32_t *holders, uint64_t now_ns) {
    uint64_t key = observer_lock_key(&observer->seen[first]);
    uint32_t at = first;
    *line = (vigil_seen_line){
        .offset = key - observer->segment->layout.user_at - observer->window.at,
        .value = prim_load_relaxed((uint32_t *)(void *)(observer->segment->base + key)),
        .waiters = &observer->waiters[*waiters],
        .holders = &observer->holders[*holders],
    };
    uint32_t first_waiter = *waiters, first_holder = *holders;
    for (; at < observer->seen_count && observer_lock_key(&observer->seen[at]) == key; at++) {
        const struct seen_slot *seen = &observer->seen[at];
        bool plain = line->kind == VIGIL_SEEN_WORD; /* a slot that waits for a lock says more precisely what it is */
        if (plain) line->kind = (vigil_seen_kind)(seen_holds(seen) ? seen->slot.of : seen->slot.kind);
        if (!seen_holds(seen)) observer->waiters[(*waiters)++] = observer_waiter_of(seen, now_ns);
        else if (seen->slot.held & HELD) observer->holders[(*holders)++] = observer_holder_of(seen, now_ns);
    }
    uint32_t named = observer_named_holder(line);
    if (named) observer->holders[(*holders)++] = (vigil_seen_holder){.number = named, .count = 1};
    line->owner_died = observer_owner_died(line->kind, line->value);
    line->waiter_count = *waiters - first_waiter;
    line->holder_count = *holders - first_holder;
    return at - first;
}

static int observer_by_number(const void *one, const void *other) {
    uint32_t x = *(const uint32_t *)one, y = *(const uint32_t *)other;
    return (x > y) - (x < y);
}

static bool observer_is_user(const vigil_observer *observer, uint32_t number) {
    return !observer->has_window || (observer->user_count && bsearch(&number, observer->users, observer->user_count,
                                                                     sizeof number, observer_by_number));
}

/* The holder of a named lock that was killed; null: none was. */
static const vigil_named_holder *observer_dead_owner(vigil_observer *observer) {
    const struct entry *entry = observer->has_window ? observer_entry(observer->segment, &observer->window) : NULL;
    if (!entry || !(prim_load_relaxed(&entry->lock.word) >> 31)) return NULL;
    observer->dead_owner = (vigil_named_holder){
        .pid = entry->pid, .other_space = entry->space != prim_process_space(), .taken_at = entry->taken_at};
    memcpy(observer->dead_owner.text, entry->text, sizeof observer->dead_owner.text - 1);
    return &observer->dead_owner;
}

/* Such a lock is shown even if it has neither holders nor waiters. */
static uint32_t observer_add_dead_line(vigil_observer *observer, uint32_t lines) {
    const uint64_t offset = sizeof(vigil_mutex);
    bool shown = lines && observer->lines[lines - 1].offset == offset;
    if (shown || !observer_dead_owner(observer)) return lines;
    observer->lines[lines] = (vigil_seen_line){.offset = offset, .kind = VIGIL_SEEN_RWLOCK, .owner_died = true};
    return lines + 1;
}

/* Drop the slots that are in no line, or are damaged. Sort the rest. */
static void observer_sift(vigil_observer *observer) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < observer->seen_count; i++) {
        const struct seen_slot *seen = &observer->seen[i];
        bool plausible = seen_holds(seen) || seen_waits(seen);
        if (!seen->slot.key || !plausible || !observer_has_word(observer, observer_lock_key(seen))) continue;
        uint64_t offset = observer->has_window ? observer_in_window(observer, observer_lock_key(seen)) : 0;
        if (offset == BOOK_WINDOW_BYTES) observer->users[observer->user_count++] = seen->number;
        else if (offset != UINT64_MAX) observer->seen[kept++] = *seen;
    }
    if (observer->user_count) qsort(observer->users, observer->user_count, sizeof *observer->users, observer_by_number);
    observer->seen_count = kept;
    if (kept) qsort(observer->seen, kept, sizeof *observer->seen, observer_in_order);
}

int vigil_observer_look(vigil_observer *observer, vigil_look *look) {
    if (!observer || !look) return VIGIL_ENULL;
    if (!observer_read_all(observer)) return VIGIL_ENOMEM;
    if (observer->has_window) observer_find_window(observer->segment, observer->usable, &observer->window);
    uint32_t used = observer->seen_count, lines = 0, waiters = 0, holders = 0;
    free(observer->users);
    observer->user_count = 0;
    observer->users = calloc(used + 1u, sizeof *observer->users);
    if (!observer->users) return VIGIL_ENOMEM;
    observer_sift(observer);
    if (!observer_make_room(observer, observer->seen_count)) return VIGIL_ENOMEM;
    uint64_t now_ns = prim_now_ns();
    for (uint32_t at = 0; at < observer->seen_count; lines++)
        at += observer_add_line(observer, at, &observer->lines[lines], &waiters, &holders, now_ns);
    lines = observer_add_dead_line(observer, lines);
    const struct segment *segment = observer->segment;
    uint64_t length = buffer_length(&segment->buffer);
    *look = (vigil_look){
        .at_ns = (int64_t)now_ns,
        .label = observer->has_window ? observer->window.label : segment->label,
        .slots = observer->window.slots,
        .dead_owner = observer_dead_owner(observer),
        .length = observer->has_window        ? sizeof(struct entry)
                  : length < observer->usable ? length
                                              : observer->usable,
        .max_length = observer->has_window ? sizeof(struct entry) : segment->buffer.max_length,
        .members_most = segment->members,
        .waiters_most = (uint32_t)segment->layout.slots - 1,
        .slots_used = used,
        .member_count = observer_look_at_members(observer),
        .line_count = lines,
        .members = observer->members,
        .lines = observer->lines,
    };
    return VIGIL_OK;
}
