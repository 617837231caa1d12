/* SPDX-License-Identifier: MIT */
/*
 * leash.h - ties a command, and all processes that it starts, to the lock under which it runs.
 *
 * A lock in a segment belongs to the vigil process. If vigil is killed, the next waiter gets the lock, although
 * processes that the command started may still run. So a vigil that has been granted the lock also takes its leash, a
 * kernel lock that belongs to an open file, and lets the command inherit that file. The leash is free when the last
 * process that inherited it has ended, or when vigil gives it back for all of them. So a leash is found taken only if
 * an earlier holder was killed.
 */
#ifndef VIGIL_CLI_LEASH_H
#define VIGIL_CLI_LEASH_H

#include "cli.h"

struct leash {
    bool shared;    /* other shared holders may have the same leash */
    uint64_t count; /* how many leashes there are; any free one will do */
    int fd;
};

/* VIGIL_OK, or an error of vigil_segment_fd. Call it before waiting for the lock: the lock's holder keeps others
 * waiting. */
int leash_open(struct leash *leash, vigil_buffer *buffer);
/* VIGIL_OK: we have a leash. VIGIL_TIMED_OUT: none is free. VIGIL_ESYSTEM. */
int leash_try(const struct leash *leash);
/* Whether the leash is held by a descriptor that we have inherited ourselves: then it never becomes free. */
bool leash_inherited(const struct leash *leash);
/* In the child, just before it executes the command. */
void leash_hand_down(const struct leash *leash);
/* Also for all processes that have inherited it. */
void leash_give_back(const struct leash *leash);
void leash_close(const struct leash *leash);

#endif
