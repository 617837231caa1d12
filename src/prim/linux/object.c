/* SPDX-License-Identifier: MIT */
/*
 * The objects of the process (the program and its shared objects), and the copies of the library in them.
 *
 * Each copy has a meeting point, and in its object an ELF note that leads there: its descriptor is the distance from
 * the descriptor to the meeting point, which the linker computes and no relocation changes. So a copy finds those of
 * all objects, including objects whose symbols are hidden from others (RTLD_LOCAL).
 *
 * All copies meet at the first one, in the order of dl_iterate_phdr: that is the order in which the objects were
 * loaded. It stays the first: objects that are loaded later come behind it, and it is pinned. (Until its constructor
 * has run it is not; but until then the thread that loads it keeps others from loading and unloading objects.)
 */
#define _GNU_SOURCE
#include "object.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "vigil/version.h"

struct object_meeting {
    char version[24]; /* constant */
    uint64_t bytes;   /* atomic: of what was offered first; zero: nothing yet */
    void *met;        /* atomic: what was offered first */
};
#define OBJECT_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define OBJECT_TEXT(major, minor, patch)  OBJECT_TEXT_(major, minor, patch)
#define OBJECT_VERSION                    OBJECT_TEXT(VIGIL_VERSION_MAJOR, VIGIL_VERSION_MINOR, VIGIL_VERSION_PATCH)
_Static_assert(sizeof(OBJECT_VERSION) <= 24, "room for the version");
_Static_assert(sizeof(struct object_meeting) == 40, "as it is defined below");

#define OBJECT_OWNER "Vigil"
#define OBJECT_NOTE  1u

/* In assembler: C has no notes, and has no name for the meeting point that a linker could merge or rename. */
#if PRIM_COPIES
__asm__(".pushsection .data\n"
        ".balign 8\n"
        ".Lvigil_meeting:\n"
        ".ascii \"" OBJECT_VERSION "\"\n"
        ".zero 24 - (. - .Lvigil_meeting)\n"
        ".quad 0, 0\n"
        ".popsection\n"
        ".pushsection .note.vigil, \"a\", %note\n"
        ".balign 4\n"
        ".long 6, 4, 1\n" /* the bytes of owner and descriptor, OBJECT_NOTE */
        ".asciz \"" OBJECT_OWNER "\"\n"
        ".balign 4\n"
        ".long .Lvigil_meeting - .\n"
        ".popsection\n");
#endif

/* Weak: a program that is linked statically does not get a dynamic linker because of us. And not dlopen itself: the
 * linker warns of every mention of it in such a program. */
extern __typeof__(dlsym) dlsym __attribute__((weak));
typedef void *object_opener(const char *path, int mode);

static size_t object_padded(size_t bytes, size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

/* The meeting point in the notes of that part; null: there is none. */
static struct object_meeting *object_read_notes(const char *note, size_t left, size_t alignment) {
    ElfW(Nhdr) header;
    while (left >= sizeof header) {
        memcpy(&header, note, sizeof header);
        size_t owner_at = sizeof header, content_at = object_padded(owner_at + header.n_namesz, alignment);
        size_t end = object_padded(content_at + header.n_descsz, alignment);
        bool ours = header.n_type == OBJECT_NOTE && header.n_namesz == sizeof OBJECT_OWNER && end <= left;
        int32_t distance;
        if (ours && header.n_descsz == sizeof distance && !memcmp(note + owner_at, OBJECT_OWNER, sizeof OBJECT_OWNER)) {
            memcpy(&distance, note + content_at, sizeof distance);
            return (struct object_meeting *)((uintptr_t)(note + content_at) + (uintptr_t)(intptr_t)distance);
        }
        if (end >= left) break;
        note += end;
        left -= end;
    }
    return NULL;
}

static int object_find_meeting(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_NOTE) continue;
        const char *notes = (const char *)(uintptr_t)(object->dlpi_addr + part->p_vaddr);
        struct object_meeting *meeting = object_read_notes(notes, part->p_memsz, part->p_align == 8 ? 8 : 4);
        if (!meeting) continue;
        *(struct object_meeting **)found = meeting;
        return 1;
    }
    return 0;
}

void *prim_meet(void *mine, size_t bytes) {
    struct object_meeting *at = NULL;
    uint64_t none = 0;
    void *nothing = NULL;
    dl_iterate_phdr(object_find_meeting, &at);
    if (!at) return mine; /* a tool has removed our note */
    if (strncmp(at->version, OBJECT_VERSION, sizeof at->version) != 0) return NULL;
    if (!prim_cas_acq_rel(&at->bytes, &none, bytes) && none != bytes) return NULL;
    return prim_cas_acq_rel(&at->met, &nothing, mine) ? mine : prim_load_acquire(&at->met);
}

static bool object_contains(const struct dl_phdr_info *object, uintptr_t address) {
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && address - start < part->p_memsz) return true;
    }
    return false;
}

static int object_find_ours(struct dl_phdr_info *object, size_t size, void *path) {
    (void)size;
    if (!object_contains(object, (uintptr_t)object_pin)) return 0;
    *(const char **)path = object->dlpi_name;
    return 1;
}

void object_pin(void) {
    const char *path = ""; /* of the program itself */
    int errno_before = errno;
    dl_iterate_phdr(object_find_ours, &path);
    void *function = dlsym && path && *path ? dlsym(RTLD_DEFAULT, "dlopen") : NULL;
    object_opener *open;
    memcpy(&open, &function, sizeof open);
    if (open) open(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    errno = errno_before;
}
