/* SPDX-License-Identifier: MIT */
/* mutex.h - what conditions and recovery need to know of the mutex. */
#ifndef VIGIL_MUTEX_INSIDE_H
#define VIGIL_MUTEX_INSIDE_H

#include "lock.h"
#include "recovery/recovery.h"

/* The parts of a lock_kind for a mutex: see mutex.c. `granted` is up to its user. */
int mutex_take(uint32_t *word, uint32_t argument, enum lock_privilege privilege, uint32_t *seen);
uint64_t mutex_patience_ns(uint32_t seen);
bool mutex_reserved(uint32_t seen);
bool mutex_is_fair(uint32_t seen);
bool mutex_stored(uint32_t seen);
void mutex_decline(uint32_t *word);
void mutex_joined(uint32_t *word, uint32_t seen);

/* Robust mutexes: see robust.h. */
#define MUTEX_ROBUST    (1u << 29) /* constant; below bit 30, so that JavaScript has the word as a small integer */
#define MUTEX_BY_THREAD (1u << 30) /* a thread holds it, and has a note of that */
/* Whether it is locked, and this thread may unlock it. */
bool mutex_may_be_unlocked(const uint32_t *word);
/* This thread has just taken it: say so in the note, and in the word. */
void mutex_held_by_thread(uint32_t *word, uint32_t note);
/* This thread holds it, and has removed the note: any thread may unlock it. */
void mutex_disown(uint32_t *word);
/* This thread ends, and has had a note of it: unlock it, so that the next holder gets VIGIL_OWNER_DIED. */
void mutex_abandon(uint32_t *word);

#define MUTEX_KIND                                                                                                     \
    .slot = SLOT_MUTEX, .take = mutex_take, .patience_ns = mutex_patience_ns, .reserved = mutex_reserved,              \
    .decline = mutex_decline, .joined = mutex_joined, .stored = mutex_stored, .strict = mutex_is_fair

struct mutex_release {
    uint32_t *word;
    struct lot *lot;
    uint32_t flags;
    uint32_t died;         /* DIED, if it is released for a holder that has ended */
    uint32_t reserved_for; /* in a segment: number of the process of the first waiter that is called */
    uint32_t seen;         /* the word, while to_be_settled */
    uint32_t expired;      /* a reservation that must not be waited for any longer; zero: none */
    unsigned called, threads;
    bool held, reserve, to_be_settled, loop_first, loop_called, enough_called;
    bool free_already; /* or reserved: no waiter is SLOT_CALLED unless it was reserved just now */
};

/*
 * Waiters have been moved into its line, or a process has died, or a called waiter does not come: call waiters in line,
 * unless the mutex is held, and its release will. The context is a struct mutex_release, zero but for `expired`.
 */
extern const struct lot_release mutex_recovery;

/* As recovery_call's may_pass. */
enum recovery_pass mutex_may_pass(uint32_t *word, void *release);

#endif
