/* SPDX-License-Identifier: MIT */
/*
 * line.h - buckets, the lines in them, and the waiters to wake when a bucket is unlocked. Internal to the lot: see
 * lot.h for the access rules. All functions on lines are called under the bucket's lock.
 */
#ifndef VIGIL_LINE_H
#define VIGIL_LINE_H

#include "base/word_lock.h"
#include "copies.h"
#include "critical.h"
#include "gift.h"
#include "seat.h"
#include "shared.h"
#include "shm/events.h"
#include "vigil/status.h"

/* Whether events are recorded (shm/events.h). */
static inline bool is_recorded(const struct lot *lot) {
    return is_shared(lot) && events_wanted(lot->share->segment);
}

/* Buckets. */

/*
 * The sixteen 32-bit words of one of the caller's cache lines hash to sixteen neighbouring buckets, which fill two
 * cache lines. These groups are scattered by Fibonacci hashing. So a sweep over an array of words is a sweep over
 * buckets too, and buckets that share a cache line belong to words that share one anyway.
 */
static inline uint32_t bucket_number_of(uint64_t key, uint32_t bits) {
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    uint32_t scattered = (uint32_t)((key >> 6) * golden >> (64 - bits));
    uint32_t neighbour = (uint32_t)(key >> 2) & 15;
    return (scattered ^ neighbour) & ((1u << bits) - 1);
}

static inline uint32_t bucket_number(const struct lot *lot, uint64_t key) {
    return bucket_number_of(key, lot->bucket_bits);
}

static inline struct bucket *bucket_of(const struct lot *lot, uint64_t key) {
    return &lot->buckets[bucket_number(lot, key)];
}

static inline void bucket_lock(struct lot *lot, struct bucket *bucket) {
    if (!BUG(critical_late)) critical_enter();
    if (!word_trylock(&bucket->word, lot->number)) {
        if (is_shared(lot)) shared_lock_until(lot, bucket, PRIM_NEVER);
        else word_lock_contended(&bucket->word);
    }
    if (BUG(critical_late)) critical_enter();
}

static inline struct bucket *bucket_find_and_lock(struct lot *lot, uint64_t key) {
    struct bucket *bucket = bucket_of(lot, key);
    bucket_lock(lot, bucket);
    return bucket;
}

static inline void wake_word(const struct lot *lot, uint32_t *word) {
    if (is_shared(lot)) prim_wake_shared(word);
    else prim_wake(word);
}

static inline void bucket_unlock(struct lot *lot, struct bucket *bucket) {
    if (word_unlock_only(&bucket->word, bucket->line != 0)) wake_word(lot, &bucket->word);
    critical_leave();
}

/* Lines. */

static inline bool in_line(const struct slot *slot, uint64_t key) {
    return prim_load_relaxed(&slot->key) == key && undecided(prim_load_relaxed(&slot->state));
}

/* The link that holds the head of the key's line, or the link where the head of a new line must be stored. */
static inline uint32_t *line_of(struct lot *lot, struct bucket *bucket, uint64_t key) {
    uint32_t *line = &bucket->line;
    while (*line && lot->slots[*line].key != key && !BUG(wrong_line)) line = &lot->slots[*line].next_line;
    return line;
}

/* The link to the line behind the key's. If the key's line has ended, `line` itself leads there. */
static inline uint32_t *line_after(struct lot *lot, uint32_t *line, uint64_t key) {
    return *line && lot->slots[*line].key == key ? &lot->slots[*line].next_line : line;
}

/*
 * WF in lot.h, for a waiter that is about to join the line of a mutex, whose head this is: the holders in this process
 * may release the mutex by a store.
 */
static inline void line_announce(const struct lot *lot, uint32_t head) {
    bool announced = head && lot->slots[head].kind != SLOT_PLAIN;
    if (!is_shared(lot) && !announced) copies_fence_everywhere();
}

static inline void line_append(struct lot *lot, uint32_t *line, uint32_t index, uint64_t key) {
    struct slot *slots = lot->slots, *slot = &slots[index];
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
    prim_store_release(&slot->key, key);
}

static inline void line_insert_before(struct lot *lot, uint32_t *line, uint32_t index, uint32_t after) {
    struct slot *slots = lot->slots, *slot = &slots[index], *follower = &slots[after];
    slot->next = after;
    slot->prev = follower->prev;
    follower->prev = index;
    if (*line == after) { /* it becomes the line's head */
        slot->tail = follower->tail;
        slot->next_line = follower->next_line;
        *line = index;
    } else {
        slots[slot->prev].next = index;
    }
    prim_store_release(&slot->key, follower->key);
}

static inline uint32_t first_not_before(const struct lot *lot, uint32_t head, uint64_t began_ns) {
    while (head && lot->slots[head].began_ns < began_ns) head = lot->slots[head].next;
    return head;
}

static inline uint32_t last_not_after(const struct lot *lot, uint32_t tail, uint64_t began_ns) {
    while (tail && lot->slots[tail].began_ns > began_ns) tail = lot->slots[tail].prev;
    return tail;
}

/* Insert the slot in its place by began_ns. */
static inline void line_insert(struct lot *lot, uint32_t *line, uint32_t index, uint64_t key, bool again) {
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

/* The links are consistent afterwards; the slot's own key and state still say that it is in line. */
static inline void line_unlink(struct lot *lot, uint32_t *line, uint32_t index) {
    struct slot *slots = lot->slots, *slot = &slots[index];
    if (*line != index) {
        slots[slot->prev].next = slot->next;
        if (slot->next) slots[slot->next].prev = slot->prev;
        else slots[*line].tail = slot->prev;
    } else if (slot->next) { /* the next slot becomes the line's head */
        struct slot *head = &slots[slot->next];
        head->prev = 0;
        head->tail = slot->tail;
        head->next_line = slot->next_line;
        *line = slot->next;
    } else {
        *line = slot->next_line;
    }
}

/* Take the slot out, by or for its own waiter: it will not be told anything. */
static inline void line_remove(struct lot *lot, uint32_t *line, uint32_t index) {
    line_unlink(lot, line, index);
    prim_store_relaxed(&lot->slots[index].key, 0);
}

/*
 * The waiters to wake once the bucket is unlocked, in line order: threads, linked by their slots' `next`, which is
 * the taker's until it stores their `state`; and seats to ring, linked by next_rung, which is the taker's until it
 * has rung. A seat is rung when `threads_before` threads have been woken, as many as came before it. In a segment a
 * thread's `state` is stored under the lock, and from then on its slot is not the taker's any more: so only the words
 * to wake are remembered. When there are more than WAKES_WORDS, those remembered so far are woken at once, under the
 * lock.
 */
#define WAKES_WORDS 16u
struct wakes {
    uint32_t threads, last_thread, thread_count;
    uint32_t word_count;
    struct seat *seats, *last_seat;
    uint32_t mail_seat, newest, oldest, threads_before; /* mail for one seat, not pushed yet */
    uint32_t *words[WAKES_WORDS];
};

static inline void wakes_begin(struct wakes *wakes) {
    wakes->threads = wakes->thread_count = wakes->word_count = wakes->mail_seat = 0;
    wakes->seats = NULL;
}

static inline void push_mail(struct lot *lot, struct wakes *wakes) {
    if (!wakes->mail_seat) return;
    struct lot *home = lot->home;
    struct seat *seat = home->seats[wakes->mail_seat];
    if (seat_push(home, seat, wakes->oldest, wakes->newest)) {
        seat->next_rung = NULL;
        seat->threads_before = wakes->threads_before;
        if (wakes->seats) wakes->last_seat->next_rung = seat;
        else wakes->seats = seat;
        wakes->last_seat = seat;
    }
    wakes->mail_seat = 0;
}

static inline void add_thread(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t outcome) {
    lot->slots[index].next = 0;
    lot->slots[index].outcome = outcome;
    if (wakes->threads) lot->slots[wakes->last_thread].next = index;
    else wakes->threads = index;
    wakes->last_thread = index;
    wakes->thread_count++;
}

/* `index` is a slot of the process's own lot, of one of its agents. */
static inline void add_mail(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t outcome) {
    struct slot *slots = lot->home->slots, *slot = &slots[index];
    if (wakes->mail_seat != slot->seat) {
        push_mail(lot, wakes);
        wakes->mail_seat = slot->seat;
        wakes->threads_before = wakes->thread_count;
        wakes->oldest = index;
    } else {
        slots[wakes->newest].next = index;
    }
    wakes->newest = index;
    prim_store_relaxed(&slot->state, outcome);
}

static inline void add_word(struct wakes *wakes, uint32_t *word) {
    if (wakes->word_count == WAKES_WORDS) { /* no room: wake these now */
        while (wakes->word_count) prim_wake_shared_all(wakes->words[WAKES_WORDS - wakes->word_count--]);
    }
    wakes->words[wakes->word_count++] = word;
}

/* Decide the outcome of a slot that has been unlinked. */
static inline void slot_decide(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t outcome) {
    if (is_shared(lot)) {
        shared_decide(lot, wakes, index, outcome);
        return;
    }
    struct slot *slot = &lot->slots[index];
    if (slot->kind == SLOT_COND && outcome == VIGIL_OK) gift_give(slot, slot->key);
    prim_store_relaxed(&slot->key, 0);
    if (slot->seat) add_mail(lot, wakes, index, outcome);
    else add_thread(lot, wakes, index, outcome);
}

static inline void wake_thread(struct slot *slot) {
    uint32_t outcome = slot->outcome;
    if (BUG(wake_before_state)) prim_wake(&slot->state);
    /* Release: pairs with the waiter's acquire load, which sees all we did. From here on the slot is the waiter's. */
    uint32_t before = BUG(release_forgotten) ? prim_exchange_relaxed(&slot->state, outcome)
                                             : prim_exchange_acq_rel(&slot->state, outcome);
    if (before == SLOT_ASLEEP && !BUG(wake_before_state)) prim_wake(&slot->state);
}

static inline struct seat *ring(struct seat *seat, uint32_t threads_woken) {
    while (seat && seat->threads_before <= threads_woken) {
        struct seat *next = seat->next_rung;
        prim_bell_ring(&seat->bell); /* from here on the seat is its agent's */
        seat = next;
    }
    return seat;
}

static inline void wake_all(struct lot *lot, struct wakes *wakes) {
    uint32_t woken = 0;
    struct seat *seats = ring(wakes->seats, woken);
    for (uint32_t index = wakes->threads, next; index; index = next) {
        next = lot->slots[index].next;
        wake_thread(&lot->slots[index]);
        seats = ring(seats, ++woken);
    }
    for (uint32_t i = 0; i < wakes->word_count; i++) prim_wake_shared_all(wakes->words[i]);
}

static inline void unlock_and_wake(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    push_mail(lot, wakes); /* still under the lock: mail arrives in line order */
    bucket_unlock(lot, bucket);
    wake_all(lot, wakes);
}

/* A call to a loop of this process. A loop of another process is guarded by the keeper there. */
static inline bool is_call_to_loop(const struct lot *lot, uint32_t index, uint32_t outcome) {
    bool ours = !is_shared(lot) || prim_load_relaxed(&lot->share->claims[index]) == lot->claim;
    return (outcome == SLOT_CALLED || outcome == SLOT_BESIDE) && lot->slots[index].seat && ours;
}

/* See struct lot_release. `begin` may remove a line of holds (recovery/hold.h) from the bucket. The link to the key's
 * line may have been in the head of that line, so it is looked up again afterwards. Returns what `begin` returned. */
static inline bool line_call(struct lot *lot, struct bucket *bucket, uint64_t key, const struct lot_release *release,
                             void *context, struct wakes *wakes) {
    uint32_t head = *line_of(lot, bucket, key);
    if (!release->begin(word_of(lot, key), head ? &lot->slots[head] : NULL, context)) return false;
    uint32_t *line = line_of(lot, bucket, key);
    for (uint32_t index = *line, next; index; index = next) {
        uint32_t outcome = release->each(&lot->slots[index], context);
        if (outcome == LOT_STAY) break;
        next = lot->slots[index].next;
        if (outcome == LOT_SKIP) continue;
        if (next && is_call_to_loop(lot, index, outcome)) copies_guard(lot, lot->slots[index].key);
        line_unlink(lot, line, index);
        slot_decide(lot, wakes, index, outcome);
    }
    if (release->end) release->end(context);
    return true;
}

#endif
