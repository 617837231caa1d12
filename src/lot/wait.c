/* SPDX-License-Identifier: MIT */
/* The blocking half of wait.h, and notify and forget. */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* vigil_until is defined here */
#endif
#include "vigil/wait.h"

#include "base/deadline.h"
#include "arguments.h"
#include "interrupt.h"
#include "line.h"
#include "tsan.h"

#define WORD_BYTES sizeof(uint32_t)

/* The thread itself changes `state` from WAITING to ASLEEP; the taker changes either to the outcome. */
static bool wait_decided(struct slot *slot) {
    return !undecided(prim_load_acquire(&slot->state));
}

static bool wait_is_over(void *slot) {
    return wait_decided(slot);
}

static void wait_park(const struct lot *lot, struct slot *slot, uint32_t *interruption, uint64_t deadline_ns) {
    bool own = !is_shared(lot);
    struct prim_word words[] = {{&slot->state, SLOT_ASLEEP, own}, {interruption, 0, true}};
    if (interruption) prim_park_any(words, 2, deadline_ns);
    else if (own) prim_park(&slot->state, SLOT_ASLEEP, deadline_ns);
    else prim_park_shared(&slot->state, SLOT_ASLEEP, deadline_ns);
}

/* Until the outcome is decided; or until the deadline or, if `may_end`, an interruption: false. */
static bool wait_sleep_until_decided(struct lot *lot, struct slot *slot, bool may_end, uint64_t deadline_ns) {
    uint32_t waiting = SLOT_WAITING;
    if (BUG(early_deadline) && deadline_ns != PRIM_NEVER) deadline_ns--;
    prim_cas_acquire(&slot->state, &waiting, SLOT_ASLEEP); /* fails if decided, or ASLEEP already */
    while (!wait_decided(slot)) {
        if (deadline_ns != PRIM_NEVER && prim_now_ns() >= deadline_ns) return false;
        if (may_end && interrupt_raised()) return false;
        wait_park(lot, slot, may_end ? interrupt_word() : NULL, deadline_ns);
        if (BUG(spurious_return) && !wait_decided(slot)) prim_store_relaxed(&slot->state, VIGIL_OK);
    }
    return true;
}

static bool wait_sleep_after(unsigned spins, struct lot *lot, uint32_t index, uint64_t deadline_ns) {
    struct slot *slot = &lot->slots[index];
    return spin_until(wait_is_over, slot, spins) || wait_sleep_until_decided(lot, slot, true, deadline_ns);
}

bool lot_sleep(struct lot *lot, uint32_t index, uint64_t deadline_ns) {
    return wait_sleep_after(PRIM_SPIN_MOST, lot, index, deadline_ns);
}

bool lot_sleep_at_once(struct lot *lot, uint32_t index, uint64_t deadline_ns) {
    return wait_sleep_until_decided(lot, &lot->slots[index], true, deadline_ns);
}

bool lot_sleep_soon(struct lot *lot, uint32_t index, uint64_t deadline_ns) {
    return wait_sleep_after(PRIM_SPIN_LOCK, lot, index, deadline_ns);
}

int lot_give_up(struct lot *lot, uint32_t index, const volatile void *address) {
    if (BUG(interrupt_decides) && interrupt_raised()) return interrupt_or_timeout();
    if (lot_leave(lot, index, address)) return interrupt_or_timeout();
    /* Too late: another thread has taken the slot out, and is about to store the outcome. */
    wait_sleep_until_decided(lot, &lot->slots[index], false, PRIM_NEVER);
    return BUG(timeout_counted) ? VIGIL_TIMED_OUT : (int)lot->slots[index].state;
}

static int wait_in_line(struct lot *lot, uint32_t index, const struct word *word, uint64_t deadline_ns,
                        enum slot_kind kind, lot_joined *joined) {
    struct slot *slot = &lot->slots[index];
    slot_begin(slot, kind);
    prim_store_relaxed(&slot->gift, 0);
    if (!lot_join(lot, index, word)) return VIGIL_NOT_EQUAL;
    if (joined) joined(word);
    return lot_sleep(lot, index, deadline_ns) ? (int)slot->state : lot_give_up(lot, index, word->address);
}

/* The status if the call need not wait; VIGIL_PENDING: it must. Separate and inline, because it must be cheap. */
static inline int wait_status_at_once(const struct word *word) {
    int error = check_word(word);
    if (error) return error;
    if (prim_self()->may_not_block) return VIGIL_EMAYNOTBLOCK;
    return word_differs(word) ? VIGIL_NOT_EQUAL : VIGIL_PENDING;
}

__attribute__((noinline)) static int wait_now(const struct word *word, uint64_t deadline_ns, enum slot_kind kind,
                                              lot_joined *joined) {
    if (deadline_ns == DEADLINE_PASSED) return VIGIL_TIMED_OUT;
    struct lot *lot = lot_for(word->address);
    if (!lot) return lot_missing(word->address);
    uint32_t slot = slot_acquire(lot);
    if (!slot) return VIGIL_ELIMIT;
    int status = wait_in_line(lot, slot, word, deadline_ns, kind, joined);
    if (status == VIGIL_OK) tsan_acquire(word->address);
    slot_release(lot, slot);
    return status;
}

static inline int wait_if_equal(const struct word *word, int64_t timeout_ns) {
    int status = wait_status_at_once(word);
    return status == VIGIL_PENDING ? wait_now(word, deadline_of(timeout_ns), SLOT_PLAIN, NULL) : status;
}

int lot_wait(const struct word *word, uint64_t deadline_ns, enum slot_kind kind, lot_joined *joined) {
    int status = wait_status_at_once(word);
    return status == VIGIL_PENDING ? wait_now(word, deadline_ns, kind, joined) : status;
}

int vigil_wait32(const volatile void *address, uint32_t expected, int64_t timeout_ns) {
    return wait_if_equal(&(struct word){address, expected, false}, timeout_ns);
}

int vigil_wait64(const volatile void *address, uint64_t expected, int64_t timeout_ns) {
    return wait_if_equal(&(struct word){address, expected, true}, timeout_ns);
}

int64_t vigil_until(int64_t deadline_ns) {
    if (deadline_ns > INT64_MAX / 2) return VIGIL_FOREVER;
    return INT64_MIN + (deadline_ns > 0 ? deadline_ns : 0);
}

int vigil_wait32_until(const volatile void *address, uint32_t expected, int64_t deadline_ns) {
    if (BUG(deadline_drifts)) return vigil_wait32(address, expected, deadline_ns - (int64_t)prim_now_ns());
    return vigil_wait32(address, expected, vigil_until(deadline_ns));
}

int vigil_wait64_until(const volatile void *address, uint64_t expected, int64_t deadline_ns) {
    return vigil_wait64(address, expected, vigil_until(deadline_ns));
}

static void wait_notify_later(const volatile void *address, int64_t count) {
    struct lot *lot = lot_for_if_used(address);
    if (lot && lot_occupied(lot, address)) lot_take(lot, address, count, VIGIL_OK);
}

static bool wait_for_bucket_refused(const struct lot *lot, const volatile void *address) {
    bool locked = prim_load_relaxed(&bucket_of(lot, key_of(lot, address))->word) & WORD_LOCKED;
    return locked && prim_self()->may_not_block;
}

static int wait_check_notify(const volatile void *address, size_t size, int64_t count) {
    int error = check_address(address, size);
    if (error) return error;
    return count < 0 ? VIGIL_ECOUNT : VIGIL_OK;
}

/* After N2. */
static int64_t wait_notify_fenced(const volatile void *address, int64_t count) {
    if (count == 0 || lot_surely_empty(address)) return 0;
    struct lot *lot = lot_for_if_used(address);
    if (!lot) return lot_refused(address);
    if (!lot_occupied(lot, address)) return 0; /* N3 */
    if (BUG(page_gives_up) && wait_for_bucket_refused(lot, address)) return 0;
    tsan_release(address);
    const struct lot_copy *interrupted = copies_interrupted();
    if (interrupted) return interrupted->defer(wait_notify_later, address, count);
    int64_t taken = lot_take(lot, address, count, VIGIL_OK);
    return BUG(counted_twice) && lot_occupied(lot, address) ? taken + 1 : taken; /* the rest is counted again */
}

int64_t vigil__notify_slowly(const volatile void *address, int64_t count) {
    int error = wait_check_notify(address, WORD_BYTES, count);
    if (error) return error;
    if (!BUG(missing_fence)) prim_fence_seq_cst(); /* N2 */
    return wait_notify_fenced(address, count);
}

int64_t vigil__store_and_notify32_slowly(volatile void *address, uint32_t value, int64_t count) {
    int error = wait_check_notify(address, sizeof value, count);
    if (error) return error;
    volatile uint32_t *word = address;
    if (BUG(stored_unfenced)) prim_store_seq_cst(word, value);
    else (void)prim_exchange_and_fence(word, value); /* N1, N2 */
    return wait_notify_fenced(address, count);
}

int64_t vigil__store_and_notify64_slowly(volatile void *address, uint64_t value, int64_t count) {
    int error = wait_check_notify(address, sizeof value, count);
    if (error) return error;
    volatile uint64_t *word = address;
    (void)prim_exchange_and_fence(word, value); /* N1, N2 */
    return wait_notify_fenced(address, count);
}

/* The inline functions, for callers that cannot inline them. */

int64_t vigil_notify(const volatile void *address, int64_t count) {
    return vigil__notify_slowly(address, count);
}

int64_t vigil_store_and_notify32(volatile void *address, uint32_t value, int64_t count) {
    return vigil__store_and_notify32_slowly(address, value, count);
}

int64_t vigil_store_and_notify64(volatile void *address, uint64_t value, int64_t count) {
    return vigil__store_and_notify64_slowly(address, value, count);
}

int64_t vigil_waiters(const volatile void *address) {
    int error = check_address(address, WORD_BYTES);
    if (error) return error;
    struct lot *lot = lot_for_if_used(address);
    return lot ? lot_count(lot, address, INT64_MAX) : lot_refused(address);
}

static int64_t wait_forget_words(struct lot *lot, const volatile char *first, uint64_t words) {
    int64_t forgotten = 0;
    for (uint64_t i = BUG(forget_misses) ? 1 : 0; i < words; i++) {
        const volatile char *word = first + i * WORD_BYTES;
        if (lot_occupied(lot, word)) forgotten += lot_take(lot, word, VIGIL_ALL, VIGIL_CANCELLED);
    }
    return forgotten;
}

int64_t vigil_forget(const volatile void *address, uint64_t length) {
    if (!address) return VIGIL_ENULL;
    if (length == 0) return 0;
    uint64_t begin = (uint64_t)(uintptr_t)address, last_byte = begin + (length - 1);
    if (last_byte < begin) return VIGIL_ERANGE;
    prim_fence_seq_cst(); /* as N2 */
    struct lot *lot = lot_for_if_used(address);
    uint64_t last = last_byte - last_byte % WORD_BYTES, past = begin % WORD_BYTES;
    if (!lot) return lot_refused(address);
    if (past && last < begin) return 0; /* no word begins in the range */
    uint64_t first = past ? begin - past + WORD_BYTES : begin;
    uint64_t words = (last - first) / WORD_BYTES + 1;
    return words <= 1u << lot->bucket_bits /* else walking the buckets is faster */
               ? wait_forget_words(lot, (const volatile char *)(uintptr_t)first, words)
               : lot_take_range(lot, first - lot->base, last - lot->base, VIGIL_CANCELLED);
}
