/* SPDX-License-Identifier: MIT */
/* mutex.h - what conditions need to know of the mutex. */
#ifndef VIGIL_MUTEX_INSIDE_H
#define VIGIL_MUTEX_INSIDE_H

#include "lock.h"
#include "recovery/recovery.h"

/* Taking it, releasing it and what is between: see mutex.c. What happens when it is granted is up to the user. */
int mutex_take(uint32_t *word, uint32_t argument, enum standing standing, uint32_t *seen);
uint64_t mutex_patience_ns(uint32_t seen);
bool mutex_reserved(uint32_t seen);
bool mutex_is_fair(uint32_t seen);
void mutex_decline(uint32_t *word);
void mutex_joined(uint32_t *word, uint32_t seen);

/* Robust mutexes: see robust.h. */
#define MUTEX_BY_THREAD (1u << 30) /* a thread holds it, and has a record of that */
#define MUTEX_ROBUST    (1u << 31) /* constant */
/* It is locked, and may be unlocked by this thread. */
bool mutex_may_be_unlocked(const uint32_t *word);
/* This thread has just taken it: note that in the record, and in the word. */
void mutex_held_by_thread(uint32_t *word, uint32_t record);
/* This thread holds it, and has removed the record: any thread may unlock it. */
void mutex_disown(uint32_t *word);
/* This thread ends, and has had a record of it: unlock it, and the next holder is told VIGIL_OWNER_DIED. */
void mutex_abandon(uint32_t *word);

#define MUTEX_KIND                                                                                                     \
    .slot = SLOT_MUTEX, .take = mutex_take, .patience_ns = mutex_patience_ns, .reserved = mutex_reserved,              \
    .decline = mutex_decline, .joined = mutex_joined, .strict = mutex_is_fair

struct mutex_release {
    uint32_t *word;
    struct lot *lot;
    uint32_t flags;
    uint32_t for_whom; /* whose process's number the first one who is called has, in a segment */
    uint32_t seen;     /* while it is to be settled */
    uint32_t expired;  /* a reservation, for whom nobody is to wait any longer; zero: none */
    unsigned called, threads;
    bool held, reserve, to_be_settled, loop_first, loop_called, enough_called;
    bool free_already; /* or reserved: nobody is SLOT_CALLED unless it was reserved just now */
};

/*
 * Some have just been put into its line, or somebody has died, or does not come: call those in line, unless somebody
 * holds it, and so will. The context is a struct mutex_release, zero but for `expired`.
 */
extern const struct lot_release mutex_recovery;

/* As recovery_call's may_pass. */
enum recovery_pass mutex_may_pass(uint32_t *word, void *release);

#endif
