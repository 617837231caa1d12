/* SPDX-License-Identifier: MIT */
/* keeper.h - the library's own thread: see keeper.c. What the lot asks of it is in lot/shared.h. */
#ifndef VIGIL_KEEPER_H
#define VIGIL_KEEPER_H

#include <stdint.h>

/* If it sleeps longer than until then, wake it. What was stored before, with seq_cst, it will see. */
void keeper_wake_by(uint64_t time_ns);

/* Before a fork: it is not being started. */
void keeper_before_fork(void);

#endif
