/* SPDX-License-Identifier: MIT */
/* The same when the keys of pthread_key_create exist before the library is loaded. */
#define KEYS_COME_FIRST
#include "test_allocation.c"
