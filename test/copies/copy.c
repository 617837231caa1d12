/* SPDX-License-Identifier: MIT */
#include "copy.h"

extern const struct copy copy_calls;
const struct copy copy_calls = COPY_CALLS;
