/* SPDX-License-Identifier: MIT */
/* keeper.h - the library's own thread: see keeper.c. What the lot asks of it is in lot/shared.h. */
#ifndef VIGIL_KEEPER_H
#define VIGIL_KEEPER_H

#include <stdint.h>

/* Wake the keeper if it would sleep beyond that time. It will see what was stored before, with seq_cst. */
void keeper_wake_by(uint64_t time_ns);

/* Before a fork: wait until no keeper is being started. */
void keeper_before_fork(void);

#endif
