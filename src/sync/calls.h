/* SPDX-License-Identifier: MIT */
/* calls.h - what the locks provide for src/recovery: see recovery_call in recovery/recovery.h. */
#ifndef VIGIL_CALLS_H
#define VIGIL_CALLS_H

#include "recovery/hold.h"
#include "recovery/recovery.h"

extern const struct lot_release rwlock_recovery;
extern const struct lot_release sem_recovery;
extern const struct lot_release barrier_recovery;
extern const struct lot_release once_recovery;

uint32_t rwlock_give_back(uint32_t seen, uint32_t held);
uint32_t sem_give_back(uint32_t seen, uint32_t held);

#endif
