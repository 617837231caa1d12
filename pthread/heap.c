/* SPDX-License-Identifier: MIT */
/*
 * Memory for the library's own check (see CMakeLists.txt), which calls this under its gate, one thread at a time. The
 * program's allocator must not be used: it may be in the middle of an allocation, with its locks held, when those
 * locks are checked.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define CLASSES     8u /* of 32 to 4096 bytes */
#define CHUNK_BYTES ((size_t)1 << 20)

void *heap_allocate(size_t bytes);
void *heap_allocate_zeroed(size_t count, size_t bytes);
void heap_free(void *memory);

struct piece {
    uint64_t class; /* stays while it is in use */
    struct piece *next;
};
#define HEAD sizeof(uint64_t)

static struct piece *free_pieces[CLASSES];
static char *chunk;
static size_t chunk_left;

static char *cut(size_t bytes) {
    if (chunk_left < bytes) {
        char *fresh = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) return NULL;
        chunk = fresh;
        chunk_left = CHUNK_BYTES;
    }
    chunk_left -= bytes;
    return chunk + chunk_left;
}

void *heap_allocate(size_t bytes) {
    uint64_t class = 0;
    while (class < CLASSES && ((size_t)32 << class) - HEAD < bytes) class ++;
    if (class == CLASSES) return NULL;
    struct piece *piece = free_pieces[class];
    if (piece) free_pieces[class] = piece->next;
    else piece = (struct piece *)(void *)cut((size_t)32 << class);
    if (!piece) return NULL;
    piece->class = class;
    return (char *)piece + HEAD;
}

void *heap_allocate_zeroed(size_t count, size_t bytes) {
    void *memory = heap_allocate(count * bytes);
    return memory ? memset(memory, 0, count * bytes) : NULL;
}

void heap_free(void *memory) {
    if (!memory) return;
    struct piece *piece = (struct piece *)(void *)((char *)memory - HEAD);
    piece->next = free_pieces[piece->class];
    free_pieces[piece->class] = piece;
}
