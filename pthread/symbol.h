/* SPDX-License-Identifier: MIT */
/* symbol.h - names of addresses in a process. For the library, where it is called in signal handlers too, and for the
 * command. */
#ifndef VIGIL_SYMBOL_H
#define VIGIL_SYMBOL_H

#include <stdint.h>

#define SYMBOL_BYTES 256

/* "transfer+0x1f (bank)", by /proc and the symbols of the file; "0x55..." when there is none. pid 0: of this process.
 * Takes no lock and allocates nothing. Returns `name`. */
const char *symbol_in(uint32_t pid, uint64_t address, char name[SYMBOL_BYTES]);

static inline const char *symbol_of(const void *address, char name[SYMBOL_BYTES]) {
    return symbol_in(0, (uint64_t)(uintptr_t)address, name);
}

#endif
