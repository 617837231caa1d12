/* SPDX-License-Identifier: MIT */
/* The same compilers, and so the same atomics, as on Linux. */
#include "linux/prim_atomic.h"
