/* SPDX-License-Identifier: MIT */
/* arguments.h - checks of arguments. */
#ifndef VIGIL_ARGUMENTS_H
#define VIGIL_ARGUMENTS_H

#include "lot.h"
#include "vigil/status.h"

static inline int check_address(const volatile void *address, uint64_t size) {
    if (!address) return VIGIL_ENULL;
    return (uintptr_t)address % size ? VIGIL_EMISALIGNED : VIGIL_OK;
}

static inline int check_word(const struct word *word) {
    return check_address(word->address, word->wide ? sizeof(uint64_t) : sizeof(uint32_t));
}

#endif
