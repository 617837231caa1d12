/* SPDX-License-Identifier: MIT */
/* Declarations only: there are no limits, and tests that set them are left out (../../left_out.js). */
#ifndef VIGIL_WASM_RESOURCE_H
#define VIGIL_WASM_RESOURCE_H

#define RLIMIT_NOFILE 7
#define RLIMIT_AS     9

struct rlimit {
    unsigned long rlim_cur, rlim_max;
};
int getrlimit(int resource, struct rlimit *limit);
int setrlimit(int resource, const struct rlimit *limit);

#endif
