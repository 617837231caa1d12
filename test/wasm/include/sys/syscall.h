/* SPDX-License-Identifier: MIT */
#define SYS_gettid 1
