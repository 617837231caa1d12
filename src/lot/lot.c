/* SPDX-License-Identifier: MIT */
/* The lines: see lot.h for who may touch what, and why no wake-up is lost. */
#include "lot.h"

#include "seat.h"
#include "vigil/status.h"
#include "word_lock.h"

#define BUCKETS (1u << PRIM_BUCKET_BITS)

/*
 * The sixteen 32-bit words of a cache line of the caller's have sixteen neighbouring buckets, two cache lines of ours;
 * those are scattered by Fibonacci hashing. So a sweep over an array of words is a sweep over buckets too, and buckets
 * that share a cache line belong to words that share one anyway.
 */
static uint32_t bucket_number(uint64_t key) {
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    uint32_t scattered = (uint32_t)((key >> 6) * golden >> (64 - PRIM_BUCKET_BITS));
    uint32_t neighbour = (uint32_t)(key >> 2) & 15;
    return (scattered ^ neighbour) & (BUCKETS - 1);
}

bool lot_occupied(const struct lot *lot, uint64_t key) {
    return prim_load_relaxed(&lot->buckets[bucket_number(key)].word) != 0;
}

static struct bucket *bucket_lock(struct lot *lot, uint64_t key) {
    struct bucket *bucket = &lot->buckets[bucket_number(key)];
    word_lock(&bucket->word);
    return bucket;
}

static void bucket_unlock(struct bucket *bucket, int64_t joined) {
    word_unlock(&bucket->word, (int32_t)joined);
}

/* Lines, under the bucket's lock. */

/* Where the key's line hangs: the place that holds its head, or where a new line's head is to go. */
static uint32_t *line_of(struct lot *lot, struct bucket *bucket, uint64_t key) {
    uint32_t *line = &bucket->line;
    while (*line && lot->slots[*line].key != key && !BUG(wrong_line)) line = &lot->slots[*line].next_line;
    return line;
}

static void line_append(struct lot *lot, uint32_t *line, uint32_t index, uint64_t key) {
    struct slot *slots = lot->slots, *slot = &slots[index];
    prim_store_relaxed(&slot->key, key);
    slot->next = 0;
    if (*line) {
        struct slot *head = &slots[*line];
        slot->prev = head->tail;
        slots[head->tail].next = index;
        head->tail = index;
    } else {
        slot->prev = 0;
        slot->tail = index;
        slot->next_line = 0;
        *line = index;
    }
}

static void line_insert_before(struct lot *lot, uint32_t *line, uint32_t index, uint32_t after) {
    struct slot *slots = lot->slots, *slot = &slots[index], *follower = &slots[after];
    prim_store_relaxed(&slot->key, follower->key);
    slot->next = after;
    slot->prev = follower->prev;
    follower->prev = index;
    if (*line == after) { /* it becomes the line's header */
        slot->tail = follower->tail;
        slot->next_line = follower->next_line;
        *line = index;
    } else {
        slots[slot->prev].next = index;
    }
}

static uint32_t first_not_before(const struct lot *lot, uint32_t head, uint64_t began_ns) {
    while (head && lot->slots[head].began_ns < began_ns) head = lot->slots[head].next;
    return head;
}

static uint32_t last_not_after(const struct lot *lot, uint32_t tail, uint64_t began_ns) {
    while (tail && lot->slots[tail].began_ns > began_ns) tail = lot->slots[tail].prev;
    return tail;
}

static void line_insert(struct lot *lot, uint32_t *line, uint32_t index, uint64_t key, bool again) {
    uint64_t began_ns = lot->slots[index].began_ns;
    uint32_t follower = 0;
    if (*line && again) {
        follower = first_not_before(lot, *line, began_ns);
    } else if (*line) {
        uint32_t before = last_not_after(lot, lot->slots[*line].tail, began_ns);
        follower = before ? lot->slots[before].next : *line;
    }
    if (follower) line_insert_before(lot, line, index, follower);
    else line_append(lot, line, index, key);
}

static void line_remove(struct lot *lot, uint32_t *line, uint32_t index) {
    struct slot *slots = lot->slots, *slot = &slots[index];
    if (*line != index) {
        slots[slot->prev].next = slot->next;
        if (slot->next) slots[slot->next].prev = slot->prev;
        else slots[*line].tail = slot->prev;
    } else if (slot->next) { /* the next one becomes the line's header */
        struct slot *head = &slots[slot->next];
        head->prev = 0;
        head->tail = slot->tail;
        head->next_line = slot->next_line;
        *line = slot->next;
    } else {
        *line = slot->next_line;
    }
    prim_store_relaxed(&slot->key, 0);
}

/* For people who want to know who waits, and since when. */
static void sign(struct lot *lot, uint32_t index, uint64_t since_ms) {
    struct slot *slot = &lot->slots[index];
    slot->since_ms = (uint32_t)since_ms;
    if (!slot->seat) slot->owner = prim_thread_id();
}

bool lot_join(struct lot *lot, uint32_t index, const struct word *word) {
    uint64_t key = key_of(word->address);
    sign(lot, index, prim_now_coarse_ms());
    struct bucket *bucket = bucket_lock(lot, key); /* W1 */
    if (key % 64 == 0) { /* perhaps a sweep over an array: the next buckets can be on their way meanwhile */
        const struct bucket *next = &lot->buckets[bucket_number(key + 64) & ~15u];
        __builtin_prefetch(next, 1);
        __builtin_prefetch(next + 8, 1);
    }
    bool equal = BUG(compare_before_lock) || !word_differs(word); /* W2 */
    if (equal) line_append(lot, line_of(lot, bucket, key), index, key);
    bucket_unlock(bucket, equal ? 1 : 0);
    return equal;
}

bool lot_join_in_order(struct lot *lot, uint32_t index, const struct word *word, bool again) {
    uint64_t key = key_of(word->address);
    if (!again) sign(lot, index, lot->slots[index].began_ns / 1000000);
    struct bucket *bucket = bucket_lock(lot, key);
    bool equal = !word_differs(word);
    if (equal) line_insert(lot, line_of(lot, bucket, key), index, key, again);
    bucket_unlock(bucket, equal ? 1 : 0);
    return equal;
}

bool lot_change_place(struct lot *lot, uint32_t index, uint64_t key, uint64_t began_ns, uint64_t argument) {
    struct slot *slot = &lot->slots[index];
    struct bucket *bucket = bucket_lock(lot, key);
    bool in_line = prim_load_relaxed(&slot->key) == key;
    if (in_line) {
        line_remove(lot, line_of(lot, bucket, key), index);
        slot->began_ns = began_ns;
        slot->argument = argument;
        line_insert(lot, line_of(lot, bucket, key), index, key, true);
    }
    bucket_unlock(bucket, 0);
    return in_line;
}

void lot_leave_soon(struct lot *lot, uint32_t index) {
    struct slot *slot = &lot->slots[index];
    __builtin_prefetch(slot, 1);
    __builtin_prefetch(slot - 1, 1); /* who came one after the other mostly lie side by side: see slot.c */
    __builtin_prefetch(slot + 1, 1);
}

bool lot_leave(struct lot *lot, uint32_t index, uint64_t key) {
    struct slot *slot = &lot->slots[index];
    struct bucket *bucket = bucket_lock(lot, key);
    bool in_line = prim_load_relaxed(&slot->key) == key; /* another one: it has been moved to another line */
    if (in_line) line_remove(lot, line_of(lot, bucket, key), index);
    bucket_unlock(bucket, in_line ? -1 : 0);
    return in_line;
}

/*
 * Whom to wake once the bucket is unlocked, in line order: threads, linked by their slots' `next`, which is the taker's
 * until it stores their `state`; and seats to ring, linked by next_rung, which is the taker's until it has rung, each
 * to be rung when so many threads have been woken as came before it.
 */
struct wakes {
    uint32_t threads, last_thread, thread_count;
    struct seat *seats, *last_seat;
    uint32_t mail_seat, newest, oldest, threads_before; /* mail for one seat, not yet pushed */
};

static void push_mail(struct lot *lot, struct wakes *wakes) {
    if (!wakes->mail_seat) return;
    struct seat *seat = lot->seats[wakes->mail_seat];
    if (seat_push(lot, seat, wakes->oldest, wakes->newest)) {
        seat->next_rung = NULL;
        seat->threads_before = wakes->threads_before;
        if (wakes->seats) wakes->last_seat->next_rung = seat;
        else wakes->seats = seat;
        wakes->last_seat = seat;
    }
    wakes->mail_seat = 0;
}

static void add_thread(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t outcome) {
    lot->slots[index].next = 0;
    lot->slots[index].outcome = outcome;
    if (wakes->threads) lot->slots[wakes->last_thread].next = index;
    else wakes->threads = index;
    wakes->last_thread = index;
    wakes->thread_count++;
}

static void add_mail(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t outcome) {
    struct slot *slot = &lot->slots[index];
    if (wakes->mail_seat != slot->seat) {
        push_mail(lot, wakes);
        wakes->mail_seat = slot->seat;
        wakes->threads_before = wakes->thread_count;
        wakes->oldest = index;
    } else {
        lot->slots[wakes->newest].next = index;
    }
    wakes->newest = index;
    slot->state = outcome;
}

static void add(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t outcome) {
    if (lot->slots[index].seat) add_mail(lot, wakes, index, outcome);
    else add_thread(lot, wakes, index, outcome);
}

static void wake_thread(struct slot *slot) {
    uint32_t outcome = slot->outcome;
    if (BUG(wake_before_state)) prim_wake(&slot->state);
    /* Pairs with the waiter's acquire load: it sees all we did before. From here on the slot is the waiter's. */
    uint32_t before = BUG(release_forgotten) ? prim_exchange_relaxed(&slot->state, outcome)
                                             : prim_exchange_acq_rel(&slot->state, outcome);
    if (before == SLOT_ASLEEP && !BUG(wake_before_state)) prim_wake(&slot->state);
}

static struct seat *ring(struct seat *seat, uint32_t threads_woken) {
    while (seat && seat->threads_before <= threads_woken) {
        struct seat *next = seat->next_rung;
        prim_bell_ring(&seat->bell); /* from here on the seat is its agent's */
        seat = next;
    }
    return seat;
}

static void wake_all(struct lot *lot, struct wakes *wakes) {
    uint32_t woken = 0;
    struct seat *seats = ring(wakes->seats, woken);
    for (uint32_t index = wakes->threads, next; index; index = next) {
        next = lot->slots[index].next;
        wake_thread(&lot->slots[index]);
        seats = ring(seats, ++woken);
    }
}

static int64_t line_take(struct lot *lot, uint32_t *line, int64_t most, uint32_t outcome, struct wakes *wakes) {
    int64_t taken = 0;
    uint64_t key = lot->slots[*line].key;
    for (; taken < most && *line && lot->slots[*line].key == key; taken++) {
        uint32_t index = BUG(lifo) ? lot->slots[*line].tail : *line;
        line_remove(lot, line, index);
        add(lot, wakes, index, outcome);
    }
    return taken;
}

static int64_t unlock_and_wake(struct lot *lot, struct bucket *bucket, struct wakes *wakes, int64_t taken) {
    push_mail(lot, wakes); /* still under the lock: mail arrives in line order */
    bucket_unlock(bucket, -taken);
    wake_all(lot, wakes);
    return taken;
}

int64_t lot_take(struct lot *lot, uint64_t key, int64_t most, uint32_t outcome) {
    struct wakes wakes = {0};
    struct bucket *bucket = bucket_lock(lot, key);
    uint32_t *line = line_of(lot, bucket, key);
    int64_t taken = *line ? line_take(lot, line, most, outcome, &wakes) : 0;
    return unlock_and_wake(lot, bucket, &wakes, taken);
}

/* How many were called, and are out of the line. */
static int64_t line_call(struct lot *lot, uint32_t *line, lot_caller *caller, void *context, struct wakes *wakes) {
    int64_t called = 0;
    for (uint32_t index = *line, next;; index = next, called++) {
        uint32_t outcome = caller(index ? &lot->slots[index] : NULL, context);
        if (!index || outcome == LOT_STAY) return called;
        next = lot->slots[index].next;
        line_remove(lot, line, index);
        add(lot, wakes, index, outcome);
    }
}

void lot_call(struct lot *lot, uint64_t key, lot_caller *caller, void *context) {
    struct wakes wakes = {0};
    struct bucket *bucket = bucket_lock(lot, key);
    int64_t called = line_call(lot, line_of(lot, bucket, key), caller, context, &wakes);
    unlock_and_wake(lot, bucket, &wakes, called);
}

/* Two buckets are locked in the order of their addresses; they may be the same one. */
static void lock_two(struct bucket *a, struct bucket *b) {
    word_lock(a < b ? &a->word : &b->word);
    if (a != b) word_lock(a < b ? &b->word : &a->word);
}

/* Where it is to be moved; zero: it is to be told, being an agent's or of a thread that came to a plain wait. */
static uint64_t destination(const struct slot *slot) {
    return slot->seat ? 0 : slot->argument;
}

/* From the head on, everybody who is to be moved to that line or to be told. How many of each. */
static void line_move(struct lot *lot, struct bucket *from, uint64_t key, struct bucket *to, uint64_t to_key,
                      int64_t most, int64_t *moved, int64_t *told, struct wakes *wakes) {
    uint64_t now_ns = prim_now_ns();
    while (*moved + *told < most) {
        uint32_t *line = line_of(lot, from, key), index = *line;
        if (!index) return;
        struct slot *slot = &lot->slots[index];
        if (!destination(slot)) {
            line_remove(lot, line, index);
            add(lot, wakes, index, VIGIL_OK);
            ++*told;
        } else if (destination(slot) == to_key) {
            line_remove(lot, line, index);
            slot->began_ns = now_ns;
            line_append(lot, line_of(lot, to, to_key), index, to_key);
            ++*moved;
        } else {
            return;
        }
    }
}

/* One turn: until the line ends, or one comes who is to be moved elsewhere. How many; zero: try again, or nobody. */
static int64_t move_some(struct lot *lot, uint64_t key, uint64_t to_key, int64_t most, lot_must_call *must_call,
                         lot_caller *caller, void *context) {
    struct wakes wakes = {0};
    struct bucket *from = &lot->buckets[bucket_number(key)], *to = &lot->buckets[bucket_number(to_key)];
    int64_t moved = 0, told = 0, called = 0;
    lock_two(from, to);
    line_move(lot, from, key, to, to_key, most, &moved, &told, &wakes);
    if (moved && must_call(to_key, context)) called = line_call(lot, line_of(lot, to, to_key), caller, context, &wakes);
    push_mail(lot, &wakes);
    bucket_unlock(from, from == to ? -told - called : -told - moved);
    if (from != to) bucket_unlock(to, moved - called);
    wake_all(lot, &wakes);
    return moved + told;
}

int64_t lot_move(struct lot *lot, uint64_t key, int64_t most, lot_must_call *must_call, lot_caller *caller,
                 void *context) {
    int64_t done = 0;
    while (done < most) {
        struct bucket *bucket = bucket_lock(lot, key);
        uint32_t head = *line_of(lot, bucket, key);
        uint64_t to_key = head ? destination(&lot->slots[head]) : 0;
        bucket_unlock(bucket, 0);
        if (!head) break;
        done += move_some(lot, key, to_key ? to_key : key, most - done, must_call, caller, context);
    }
    return done;
}

static int64_t bucket_take(struct lot *lot, struct bucket *bucket, uint64_t first, uint64_t last, uint32_t outcome) {
    struct wakes wakes = {0};
    int64_t taken = 0;
    word_lock(&bucket->word);
    for (uint32_t *line = &bucket->line; *line;) {
        uint64_t key = lot->slots[*line].key;
        if (key >= first && key <= last) taken += line_take(lot, line, INT64_MAX, outcome, &wakes);
        else line = &lot->slots[*line].next_line;
    }
    return unlock_and_wake(lot, bucket, &wakes, taken);
}

int64_t lot_take_range(struct lot *lot, uint64_t first, uint64_t last, uint32_t outcome) {
    int64_t taken = 0;
    for (uint32_t number = 0; number < BUCKETS; number++) {
        struct bucket *bucket = &lot->buckets[number];
        if (prim_load_relaxed(&bucket->word)) taken += bucket_take(lot, bucket, first, last, outcome); /* N3 */
    }
    return taken;
}

int64_t lot_count(struct lot *lot, uint64_t key) {
    int64_t count = 0;
    struct bucket *bucket = bucket_lock(lot, key);
    for (uint32_t index = *line_of(lot, bucket, key); index; index = lot->slots[index].next) count++;
    bucket_unlock(bucket, 0);
    return count;
}

/* Looking. */

static struct lot_glance glance_at(const struct lot *lot, const struct slot *slot) {
    if (!slot->seat) return (struct lot_glance){.thread_id = (uint32_t)slot->owner, .since_ms = slot->since_ms};
    /* As long as one of its slots is in line the agent cannot end. */
    const struct seat *seat = lot->seats[slot->seat];
    return (struct lot_glance){(uint64_t)(uintptr_t)seat, seat->thread_id, slot->since_ms};
}

static uint32_t next_line_above(const struct lot *lot, const struct bucket *bucket, uint64_t after) {
    uint32_t found = 0;
    for (uint32_t head = bucket->line; head; head = lot->slots[head].next_line) {
        uint64_t key = lot->slots[head].key;
        if (key > after && (!found || key < lot->slots[found].key)) found = head;
    }
    return found;
}

void lot_look(struct lot *lot, uint32_t number, uint64_t after, struct lot_line *line) {
    struct bucket *bucket = &lot->buckets[number];
    line->key = line->count = 0;
    if (!prim_load_relaxed(&bucket->word)) return;
    word_lock(&bucket->word);
    uint32_t head = next_line_above(lot, bucket, after);
    if (head) {
        line->key = lot->slots[head].key;
        line->for_lock = lot->slots[head].began_ns != 0;
    }
    for (uint32_t index = head; index && line->count < LOT_COUNTED; index = lot->slots[index].next, line->count++) {
        if (line->count < LOT_GLANCES) line->waiters[line->count] = glance_at(lot, &lot->slots[index]);
    }
    bucket_unlock(bucket, 0);
}

void lot_survey(struct lot *lot, uint32_t number, uint64_t *lines, uint64_t *waiters) {
    struct bucket *bucket = &lot->buckets[number];
    if (!prim_load_relaxed(&bucket->word)) return;
    word_lock(&bucket->word);
    *waiters += prim_load_relaxed(&bucket->word) / WORD_ONE;
    for (uint32_t head = bucket->line; head; head = lot->slots[head].next_line) ++*lines;
    bucket_unlock(bucket, 0);
}
