/* SPDX-License-Identifier: MIT */
/* The functions that other languages call return what the inline ones do. */
#define VIGIL_NO_INLINE
#include "test_rwlock.c"
