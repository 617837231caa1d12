/* SPDX-License-Identifier: MIT */
/* The lines: see lot.h for the access rules, and why no wake-up is lost. */
#include "gift.h"
#include "line.h"
#include "vigil/status.h"

bool lot_occupied(const struct lot *lot, const volatile void *address) {
    return prim_load_relaxed(&bucket_of(lot, key_of(lot, address))->word) != 0;
}

/* Joining and leaving. */

/* For people: the waiting thread, and since when it waits. */
static void lot_sign(struct slot *slot, uint64_t since_ms) {
    if (!slot->seat) slot->signature = since_ms << 32 | prim_thread_id();
}

/* A place at the end of the line. */
static uint64_t lot_next_place(const struct lot *lot, uint32_t line, uint64_t now_ns) {
    uint64_t last_ns = line ? lot->slots[lot->slots[line].tail].began_ns : 0;
    return now_ns > last_ns ? now_ns : last_ns + 1;
}

/* In a segment no two waiters of a line may ever have the same place: see gift.h. */
static void line_join(struct lot *lot, uint32_t *line, uint32_t index, uint64_t key, uint64_t now_ms) {
    uint64_t now_ns = is_shared(lot) ? prim_now_ns() : now_ms * 1000000;
    lot->slots[index].began_ns = lot_next_place(lot, *line, now_ns);
    line_append(lot, line, index, key);
}

bool lot_join(struct lot *lot, uint32_t index, const struct word *word) {
    uint64_t key = key_of(lot, word->address), now_ms = prim_now_coarse_ms();
    lot_sign(&lot->slots[index], now_ms);
    struct bucket *bucket = bucket_find_and_lock(lot, key); /* W1 */
    if (key % 64 == 0) { /* perhaps a sweep over an array of words: prefetch the next buckets meanwhile */
        const struct bucket *next = &lot->buckets[bucket_number(lot, key + 64) & ~15u];
        __builtin_prefetch(next, 1);
        __builtin_prefetch(next + 8, 1);
    }
    bool equal = BUG(compare_before_lock) || !word_differs(word); /* W2 */
    if (equal) line_join(lot, line_of(lot, bucket, key), index, key, now_ms);
    if (equal && is_recorded(lot)) lot_record_event(lot, VIGIL_EVENT_WAITS, index, key, 0);
    bucket_unlock(lot, bucket);
    return equal;
}

bool lot_join_in_order(struct lot *lot, uint32_t index, const struct word *word, bool stored, bool again) {
    uint64_t key = key_of(lot, word->address);
    if (!again) lot_sign(&lot->slots[index], lot->slots[index].began_ns / 1000000);
    struct bucket *bucket = bucket_find_and_lock(lot, key); /* W1 */
    uint32_t *line = line_of(lot, bucket, key);
    if (stored) line_announce(lot, *line); /* WF */
    bool equal = !word_differs(word);      /* W2 */
    if (equal) line_insert(lot, line, index, key, again);
    if (equal && is_recorded(lot)) lot_record_event(lot, VIGIL_EVENT_WAITS, index, key, 0);
    bucket_unlock(lot, bucket);
    return equal;
}

bool lot_change_place(struct lot *lot, uint32_t index, const volatile void *address, uint64_t began_ns,
                      uint64_t wants) {
    uint64_t key = key_of(lot, address);
    struct slot *slot = &lot->slots[index];
    struct bucket *bucket = bucket_find_and_lock(lot, key);
    bool still = in_line(slot, key);
    if (still) {
        line_remove(lot, line_of(lot, bucket, key), index);
        slot->began_ns = began_ns;
        prim_store_relaxed(&slot->wants, wants);
        line_insert(lot, line_of(lot, bucket, key), index, key, true);
    }
    bucket_unlock(lot, bucket);
    return still;
}

void lot_leave_soon(struct lot *lot, uint32_t index) {
    struct slot *slot = &lot->slots[index];
    __builtin_prefetch(slot, 1);
    __builtin_prefetch(slot - 1, 1); /* waiters that join in a row mostly have neighbouring slots: see slot.c */
    __builtin_prefetch(slot + 1, 1);
}

/* Take an arrival back: see sync/barrier.c. */
static void lot_take_back(struct lot *lot, const struct slot *slot, uint32_t *word) {
    bool counted = slot->kind == SLOT_BARRIER && !is_shared(lot);
    if (counted && !BUG(arrival_stays)) prim_store_relaxed(word, prim_load_relaxed(word) - 1);
}

bool lot_leave(struct lot *lot, uint32_t index, const volatile void *address) {
    uint64_t key = key_of(lot, address);
    struct bucket *bucket = bucket_find_and_lock(lot, key);
    bool still = in_line(&lot->slots[index], key); /* if not, it has been told, or moved to another line */
    if (still || BUG(taken_back_late)) lot_take_back(lot, &lot->slots[index], word_of(lot, key));
    if (still) line_remove(lot, line_of(lot, bucket, key), index);
    if (still && is_recorded(lot)) lot_record_event(lot, VIGIL_EVENT_GAVE_UP, index, key, 0);
    bucket_unlock(lot, bucket);
    return still;
}

/* Taking others out. */

static int64_t line_take(struct lot *lot, uint32_t *line, int64_t most, uint32_t outcome, struct wakes *wakes) {
    int64_t taken = 0;
    uint64_t key = lot->slots[*line].key;
    for (; taken < most && *line && lot->slots[*line].key == key; taken++) {
        uint32_t index = BUG(lifo) ? lot->slots[*line].tail : *line;
        line_unlink(lot, line, index);
        slot_decide(lot, wakes, index, outcome);
    }
    return taken;
}

int64_t lot_take_locked(struct lot *lot, struct bucket *bucket, uint64_t key, int64_t most, uint32_t outcome) {
    struct wakes wakes;
    wakes_begin(&wakes);
    uint32_t *line = line_of(lot, bucket, key);
    int64_t taken = *line ? line_take(lot, line, most, outcome, &wakes) : 0;
    unlock_and_wake(lot, bucket, &wakes);
    return taken;
}

int64_t lot_take(struct lot *lot, const volatile void *address, int64_t most, uint32_t outcome) {
    uint64_t key = key_of(lot, address);
    return lot_take_locked(lot, bucket_find_and_lock(lot, key), key, most, outcome);
}

void lot_call(struct lot *lot, const volatile void *address, const struct lot_release *release, void *context) {
    uint64_t key = key_of(lot, address);
    struct wakes wakes;
    wakes_begin(&wakes);
    struct bucket *bucket = bucket_find_and_lock(lot, key);
    line_call(lot, bucket, key, release, context, &wakes);
    unlock_and_wake(lot, bucket, &wakes);
}

bool lot_call_or_join(struct lot *lot, uint32_t index, const volatile void *address, const struct lot_release *release,
                      void *context) {
    uint64_t key = key_of(lot, address), now_ms = prim_now_coarse_ms();
    struct wakes wakes;
    wakes_begin(&wakes);
    if (index) lot_sign(&lot->slots[index], now_ms);
    struct bucket *bucket = bucket_find_and_lock(lot, key);
    bool joins = !line_call(lot, bucket, key, release, context, &wakes) && index;
    if (joins) line_join(lot, line_of(lot, bucket, key), index, key, now_ms);
    if (joins && is_recorded(lot)) lot_record_event(lot, VIGIL_EVENT_WAITS, index, key, 0);
    unlock_and_wake(lot, bucket, &wakes);
    return joins;
}

/* In the order of the buckets' addresses; they may be the same bucket. */
static void lot_lock_two(struct lot *lot, struct bucket *a, struct bucket *b) {
    bucket_lock(lot, a < b ? a : b);
    if (a != b) bucket_lock(lot, a < b ? b : a);
}

/* Threads that wait at a condition are moved; agents, and waiters in a plain wait, are told. */
static uint64_t lot_destination(const struct slot *slot) {
    return slot->kind == SLOT_COND && !slot->seat ? gift_destination(slot) : 0;
}

/* Where the head of the line is moved to; the line's own key: it is told; zero: there is no waiter. */
static uint64_t line_destination(struct lot *lot, struct bucket *bucket, uint64_t key) {
    uint32_t head = *line_of(lot, bucket, key);
    uint64_t to_key = head ? lot_destination(&lot->slots[head]) : 0;
    return head && !to_key ? key : to_key;
}

/* Move one thread, with the signal. It is in line C until the store of its key, then in the mutex's line. */
static void lot_move_slots(struct lot *lot, uint32_t index, uint64_t key, uint32_t *to, uint64_t to_key,
                           uint64_t now_ns) {
    struct slot *slot = &lot->slots[index];
    if (!BUG(signal_noted_late)) gift_give(slot, key); /* G1 */
    prim_store_release(&slot->kind, (uint32_t)SLOT_MUTEX);
    slot->began_ns = lot_next_place(lot, *to, now_ns);
    line_append(lot, to, index, to_key); /* G2 */
    if (BUG(signal_noted_late)) gift_give(slot, key);
    if (is_recorded(lot)) lot_record_event(lot, VIGIL_EVENT_WAITS, index, to_key, 0);
}

/* From the head on, move waiters to that line or tell them; stop at one that must be moved to another line. */
static void line_move(struct lot *lot, struct bucket *from, uint64_t key, struct bucket *to, uint64_t to_key,
                      int64_t most, int64_t *moved, int64_t *told, struct wakes *wakes) {
    uint64_t now_ns = prim_now_ns();
    while (*moved + *told < most) {
        uint32_t *line = line_of(lot, from, key), index = *line;
        if (!index) return;
        uint64_t moves_to = lot_destination(&lot->slots[index]);
        if (moves_to && moves_to != to_key) return;
        line_unlink(lot, line, index);
        if (moves_to) {
            lot_move_slots(lot, index, key, line_of(lot, to, to_key), to_key, now_ns);
            ++*moved;
        } else {
            slot_decide(lot, wakes, index, VIGIL_OK);
            ++*told;
        }
    }
}

/*
 * Whether the holder of that mutex may release it by a store. The word is read by a read-modify-write: a thread that
 * takes the mutex after that acquires what we did before, and sees that the bucket is locked (U2 in lot.h); one that
 * has taken it before is seen here.
 */
static bool lot_may_be_stored(struct lot *lot, uint64_t key, const struct lot_release *release) {
    if (is_shared(lot) || !release->stored) return false;
    uint32_t *word = word_of(lot, key);
    return release->stored(BUG(stored_missed) ? prim_load_relaxed(word) : prim_fetch_or_acq_rel(word, 0u));
}

/* Under the locks of both buckets. */
static void line_move_and_call(struct lot *lot, struct bucket *from, uint64_t key, struct bucket *to, uint64_t to_key,
                               const struct lot_release *release, void *context, int64_t most, int64_t *moved,
                               int64_t *told, struct wakes *wakes) {
    bool stored = to_key != key && lot_may_be_stored(lot, to_key, release);
    if (stored) line_announce(lot, *line_of(lot, to, to_key)); /* WF; W2 is in line_call */
    line_move(lot, from, key, to, to_key, most, moved, told, wakes);
    if (*moved && !BUG(moved_and_left)) line_call(lot, to, to_key, release, context, wakes);
}

/*
 * One step of lot_move: returns how many were moved or told; zero: the line is empty or has changed, look again. The
 * mutex is there as long as the head of the line waits for it; after that it may have been freed.
 */
static int64_t lot_move_some(struct lot *lot, uint64_t key, uint64_t to_key, int64_t most,
                             const struct lot_release *release, void *context) {
    struct wakes wakes;
    struct bucket *from = bucket_of(lot, key), *to = bucket_of(lot, to_key);
    int64_t moved = 0, told = 0;
    wakes_begin(&wakes);
    lot_lock_two(lot, from, to);
    if (line_destination(lot, from, key) == to_key || BUG(moved_to_freed))
        line_move_and_call(lot, from, key, to, to_key, release, context, most, &moved, &told, &wakes);
    push_mail(lot, &wakes);
    bucket_unlock(lot, from);
    if (from != to) bucket_unlock(lot, to);
    wake_all(lot, &wakes);
    return moved + told;
}

int64_t lot_move(struct lot *lot, const volatile void *address, int64_t most, const struct lot_release *release,
                 void *context) {
    uint64_t key = key_of(lot, address);
    int64_t done = 0;
    while (done < most) {
        struct bucket *bucket = bucket_find_and_lock(lot, key);
        uint64_t to_key = line_destination(lot, bucket, key);
        bucket_unlock(lot, bucket);
        if (!to_key) break;
        done += lot_move_some(lot, key, to_key, most - done, release, context);
    }
    return done;
}

static int64_t lot_bucket_take(struct lot *lot, struct bucket *bucket, uint64_t first, uint64_t last,
                               uint32_t outcome) {
    struct wakes wakes;
    int64_t taken = 0;
    wakes_begin(&wakes);
    bucket_lock(lot, bucket);
    for (uint32_t *line = &bucket->line; *line;) {
        uint64_t key = lot->slots[*line].key;
        bool of_waiters = key % sizeof(uint32_t) == 0; /* if not, it is a line of holders: recovery/hold.h */
        if (of_waiters && key >= first && key <= last) taken += line_take(lot, line, INT64_MAX, outcome, &wakes);
        else line = &lot->slots[*line].next_line;
    }
    unlock_and_wake(lot, bucket, &wakes);
    return taken;
}

int64_t lot_take_range(struct lot *lot, uint64_t first, uint64_t last, uint32_t outcome) {
    int64_t taken = 0;
    for (uint32_t number = 0; number < 1u << lot->bucket_bits; number++) {
        struct bucket *bucket = &lot->buckets[number];
        if (prim_load_relaxed(&bucket->word)) taken += lot_bucket_take(lot, bucket, first, last, outcome); /* N3 */
    }
    return taken;
}

int64_t lot_count(struct lot *lot, const volatile void *address, int64_t most) {
    uint64_t key = key_of(lot, address);
    int64_t count = 0;
    struct bucket *bucket = bucket_find_and_lock(lot, key);
    uint32_t index = *line_of(lot, bucket, key);
    for (; index && count < most; index = lot->slots[index].next) count++;
    bucket_unlock(lot, bucket);
    return count;
}

/* Looking. */

static struct lot_glance lot_glance_at(const struct lot *lot, const struct slot *slot) {
    if (!slot->seat) {
        return (struct lot_glance){.thread_id = (uint32_t)slot->signature,
                                   .since_ms = (uint32_t)(slot->signature >> 32)};
    }
    /* The agent cannot end as long as one of its slots is in line. */
    const struct seat *seat = lot->seats[slot->seat];
    return (struct lot_glance){(uint64_t)(uintptr_t)seat, seat->thread_id, (uint32_t)(slot->began_ns / 1000000)};
}

static uint32_t lot_next_line_above(const struct lot *lot, const struct bucket *bucket, uint64_t after) {
    uint32_t found = 0;
    for (uint32_t head = bucket->line; head; head = lot->slots[head].next_line) {
        uint64_t key = lot->slots[head].key;
        if (key > after && (!found || key < lot->slots[found].key)) found = head;
    }
    return found;
}

void lot_read_line(struct lot *lot, uint32_t number, uint64_t after, struct lot_line *line) {
    struct bucket *bucket = &lot->buckets[number];
    line->key = line->count = 0;
    if (!prim_load_relaxed(&bucket->word)) return;
    bucket_lock(lot, bucket);
    uint32_t head = lot_next_line_above(lot, bucket, after);
    if (head) {
        line->key = lot->slots[head].key;
        line->for_lock = lot->slots[head].kind != SLOT_PLAIN;
    }
    for (uint32_t index = head; index && line->count < LOT_COUNTED; index = lot->slots[index].next, line->count++) {
        if (line->count < LOT_GLANCES) line->waiters[line->count] = lot_glance_at(lot, &lot->slots[index]);
    }
    bucket_unlock(lot, bucket);
}

void lot_survey(struct lot *lot, uint32_t number, uint64_t *lines, uint64_t *waiters) {
    struct bucket *bucket = &lot->buckets[number];
    if (!prim_load_relaxed(&bucket->word)) return;
    bucket_lock(lot, bucket);
    for (uint32_t head = bucket->line; head; head = lot->slots[head].next_line) {
        ++*lines;
        for (uint32_t index = head; index; index = lot->slots[index].next) ++*waiters;
    }
    bucket_unlock(lot, bucket);
}
