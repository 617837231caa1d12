/* SPDX-License-Identifier: MIT */
/* mutex.h - what conditions need to know of the mutex. */
#ifndef VIGIL_MUTEX_INSIDE_H
#define VIGIL_MUTEX_INSIDE_H

#include "lock.h"

/* Taking it, releasing it and what is between: see mutex.c. What happens when it is granted is up to the user. */
bool mutex_take(uint32_t *word, uint32_t argument, enum standing standing, uint32_t *seen);
uint64_t mutex_patience_ns(uint32_t seen);
bool mutex_reserved(uint32_t seen);
bool mutex_is_fair(uint32_t seen);
void mutex_decline(uint32_t *word);

#define MUTEX_KIND                                                                                                     \
    .take = mutex_take, .patience_ns = mutex_patience_ns, .reserved = mutex_reserved, .decline = mutex_decline,        \
    .strict = mutex_is_fair

struct mutex_release {
    uint32_t *word;
    uint32_t flags;
    unsigned called, threads;
    bool begun, held, reserve, loop_first, enough_called;
    bool free_already; /* and reserved, by somebody else: nobody is SLOT_CALLED */
};

/* A lot_caller: release it, if that has not begun yet, and call those in line. */
uint32_t mutex_call(const struct slot *slot, void *release);

/*
 * Under the bucket's lock: some have just been put into its line. True if nobody may be about to call them: then it is
 * to be done now, by mutex_call with that release.
 */
bool mutex_must_call(uint32_t *word, struct mutex_release *release);

#endif
