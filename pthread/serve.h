/* SPDX-License-Identifier: MIT */
/*
 * serve.h - how `vigil show PID` asks a process for its report.
 *
 * The process has an open, unnamed file, "memfd:vigil-run", which others find as /proc/PID/fd/N; it is gone with the
 * process, however that ends. The asking process adds one to `asked` and sends the signal; the handler writes the
 * report behind this and stores `asked` in `answered`. The file can be opened by the process's user only.
 */
#ifndef VIGIL_SERVE_H
#define VIGIL_SERVE_H

#include <stdint.h>

#define SERVE_NAME  "vigil-run"
#define SERVE_MAGIC UINT64_C(0x31306e7572676976) /* with the version of this format */
#define SERVE_BYTES (1u << 20)

struct serve {
    uint64_t magic;
    uint32_t pid;
    int32_t signal; /* zero: none, because the program uses it itself, or was told so */
    uint32_t asked, answered;
    uint32_t json; /* whether it is to be JSON */
    uint32_t length;
    char text[];
};

#endif
