/* SPDX-License-Identifier: MIT */
/* Memory of the heap: what is unmapped can still be read and written. */
#ifndef VIGIL_WASM_MMAN_H
#define VIGIL_WASM_MMAN_H

#include <stddef.h>

#define PROT_NONE     0
#define PROT_READ     1
#define PROT_WRITE    2
#define MAP_SHARED    1
#define MAP_PRIVATE   2
#define MAP_ANONYMOUS 4
#define MAP_NORESERVE 8
#define MAP_FAILED    ((void *)-1)

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, long offset);
int munmap(void *address, size_t bytes);

#endif
