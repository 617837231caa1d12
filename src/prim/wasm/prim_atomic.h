/* SPDX-License-Identifier: MIT */
/* The same atomics as on Linux, by the compiler's builtins: WebAssembly has them for 32 and 64 bits. */
#include "linux/prim_atomic.h"
