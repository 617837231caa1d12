/* SPDX-License-Identifier: MIT */
/* As on other targets without cmocka, but tests may be left out: those listed in ../left_out.js. */
#include <stdbool.h>

bool wasm_leaves_out(const char *test);
#define portable_leaves_out(test) wasm_leaves_out(test)
#include "../../portable/cmocka.h"
