/* SPDX-License-Identifier: MIT */
/*
 * leash.h - ties a command, and all that it starts, to the lock under which it runs.
 *
 * A lock in a segment is its process's, vigil's: if that is killed the next one has the lock, although what the command
 * has started may still run. So whoever has been granted the lock takes its leash as well, a lock of the kernel's which
 * is the property of an open file, and lets the command inherit that. It is free when the last of them is gone; or, for
 * all of them, when vigil gives it back. So nobody ever finds it taken unless an earlier holder was killed.
 */
#ifndef VIGIL_CLI_LEASH_H
#define VIGIL_CLI_LEASH_H

#include "cli.h"

struct leash {
    bool shared;    /* others who share may have the same one */
    uint64_t count; /* there are so many, and one is as good as another */
    int fd;
};

/* VIGIL_OK, or as vigil_segment_fd. Better before one waits for the lock: others wait for who has it. */
int leash_open(struct leash *leash, vigil_buffer *buffer);
/* VIGIL_OK: one is ours. VIGIL_TIMED_OUT: there is none left. VIGIL_ESYSTEM. */
int leash_try(const struct leash *leash);
/* Whether it is taken by what we have inherited ourselves: then nobody ever gives it back. */
bool leash_inherited(const struct leash *leash);
/* In the child, just before it executes the command. */
void leash_hand_down(const struct leash *leash);
/* Also on behalf of those who have inherited it. */
void leash_give_back(const struct leash *leash);
void leash_close(const struct leash *leash);

#endif
