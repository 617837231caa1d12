/* SPDX-License-Identifier: MIT */
/*
 * Names of addresses: /proc/PID/maps says in which file an address is, and the file has the symbols. dladdr would take
 * the loader's lock, which a thread that hangs may hold, and knows nothing of functions that are not exported.
 */
#include "symbol.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_BYTES     512
#define LONGEST_SYMBOL 120

/* A line of /proc/PID/maps. */
struct mapping {
    uint64_t begin, end, offset;
    char path[PATH_BYTES];
};

struct reader {
    int fd;
    size_t used, at;
    char text[1024];
};

static bool read_line(struct reader *reader, char *line, size_t bytes) {
    size_t length = 0;
    for (;;) {
        if (reader->at == reader->used) {
            long got = syscall(SYS_read, reader->fd, reader->text, sizeof reader->text);
            if (got <= 0) return false;
            reader->used = (size_t)got;
            reader->at = 0;
        }
        char c = reader->text[reader->at++];
        if (c == '\n') break;
        if (length + 1 < bytes) line[length++] = c;
    }
    line[length] = 0;
    return true;
}

static uint64_t read_hex(const char **at) {
    uint64_t value = 0;
    for (;; ++*at) {
        char c = **at;
        if (c >= '0' && c <= '9') value = value * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f') value = value * 16 + (uint64_t)(c - 'a' + 10);
        else return value;
    }
}

static void parse(const char *line, struct mapping *mapping) {
    mapping->begin = read_hex(&line);
    line++;
    mapping->end = read_hex(&line);
    line += strlen(" r-xp ");
    mapping->offset = read_hex(&line);
    for (int fields = 0; fields < 2; fields++) line += strcspn(line + 1, " ") + 1; /* device, inode */
    line += strspn(line, " ");
    strncpy(mapping->path, line, sizeof mapping->path - 1);
    mapping->path[sizeof mapping->path - 1] = 0;
}

/* The file that has the address, by the mapping of its beginning. What is zero at first has no file, and follows it. */
static bool find_file(uint32_t pid, uint64_t address, struct mapping *file) {
    struct reader reader;
    char line[PATH_BYTES + 128];
    struct mapping mapping;
    bool found = false;
    uint64_t file_end = 0;
    if (pid) snprintf(line, sizeof line, "/proc/%u/maps", pid);
    else strcpy(line, "/proc/self/maps");
    reader = (struct reader){.fd = (int)syscall(SYS_openat, AT_FDCWD, line, O_RDONLY | O_CLOEXEC)};
    if (reader.fd < 0) return false;
    while (!found && read_line(&reader, line, sizeof line)) {
        parse(line, &mapping);
        bool of_file = mapping.path[0] == '/';
        if (of_file && (mapping.offset == 0 || strcmp(mapping.path, file->path) != 0)) *file = mapping;
        bool follows = of_file || mapping.begin == file_end;
        if (follows) file_end = mapping.end;
        found = address >= mapping.begin && address < mapping.end;
        if (found && (!follows || mapping.path[0] == '[')) break;
        if (mapping.begin > address) break;
    }
    syscall(SYS_close, reader.fd);
    return found && file_end > address;
}

struct image {
    const char *data;
    uint64_t bytes;
};

static const void *part(const struct image *image, uint64_t offset, uint64_t bytes) {
    return offset <= image->bytes && bytes <= image->bytes - offset ? image->data + offset : NULL;
}

/* From an address in memory to one of the file: what was added to it. */
static bool find_bias(const struct image *image, const struct mapping *file, uint64_t address, uint64_t *bias) {
    const Elf64_Ehdr *head = part(image, 0, sizeof *head);
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return false;
    const Elf64_Phdr *loads = part(image, head->e_phoff, head->e_phnum * sizeof *loads);
    bool known = false;
    for (unsigned i = 0; loads && i < head->e_phnum; i++) {
        if (loads[i].p_type != PT_LOAD) continue;
        if (!known) *bias = file->begin - (loads[i].p_vaddr & ~UINT64_C(4095)) + (loads[i].p_offset & ~UINT64_C(4095));
        known = true;
        if (address - *bias - loads[i].p_vaddr < loads[i].p_memsz) return true;
    }
    return false;
}

static const Elf64_Shdr *find_symbols(const struct image *image, const Elf64_Shdr **sections) {
    const Elf64_Ehdr *head = part(image, 0, sizeof *head);
    *sections = part(image, head->e_shoff, head->e_shnum * sizeof **sections);
    const Elf64_Shdr *found = NULL;
    for (unsigned i = 0; *sections && i < head->e_shnum; i++) {
        const Elf64_Shdr *section = &(*sections)[i];
        if (section->sh_type == SHT_SYMTAB || (section->sh_type == SHT_DYNSYM && !found)) found = section;
    }
    return found && found->sh_link < head->e_shnum ? found : NULL;
}

/* The last one that begins before the address, and, if it has a size, has not ended there. */
static const char *find_symbol(const struct image *image, uint64_t address, uint64_t *offset, int *length) {
    const Elf64_Shdr *sections, *table = find_symbols(image, &sections);
    if (!table) return NULL;
    const Elf64_Shdr *strings = &sections[table->sh_link];
    const Elf64_Sym *symbols = part(image, table->sh_offset, table->sh_size), *best = NULL;
    const char *names = part(image, strings->sh_offset, strings->sh_size);
    if (!symbols || !names) return NULL;
    for (uint64_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *symbol = &symbols[i];
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        if ((type != STT_FUNC && type != STT_OBJECT) || !symbol->st_value || symbol->st_name >= strings->sh_size)
            continue;
        if (address - symbol->st_value >= (symbol->st_size ? symbol->st_size : 1)) continue;
        if (!best || symbol->st_value >= best->st_value) best = symbol;
    }
    if (!best) return NULL;
    *offset = address - best->st_value;
    *length = (int)strnlen(names + best->st_name, strings->sh_size - best->st_name);
    if (*length > LONGEST_SYMBOL) *length = LONGEST_SYMBOL;
    return names + best->st_name;
}

/* As the process sees the path, which may have another root. A device or a pipe is no file with symbols. */
static bool symbol_map_file(uint32_t pid, const char *path, struct image *image) {
    struct stat status;
    char full[PATH_BYTES + 32];
    if (pid) snprintf(full, sizeof full, "/proc/%u/root%s", pid, path);
    else snprintf(full, sizeof full, "%s", path);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool good = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    image->bytes = good ? (uint64_t)status.st_size : 0;
    image->data = good ? mmap(NULL, image->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    syscall(SYS_close, fd);
    return image->data != MAP_FAILED;
}

const char *symbol_in(uint32_t pid, uint64_t address, char name[SYMBOL_BYTES]) {
    uint64_t bias, offset = 0;
    struct mapping file = {.path = ""};
    struct image image;
    int length = 0;
    snprintf(name, SYMBOL_BYTES, "0x%llx", (unsigned long long)address);
    if (!find_file(pid, address, &file) || !symbol_map_file(pid, file.path, &image)) return name;
    if (find_bias(&image, &file, address, &bias)) {
        const char *symbol = find_symbol(&image, address - bias, &offset, &length);
        const char *base = strrchr(file.path, '/') + 1;
        if (symbol && offset)
            snprintf(name, SYMBOL_BYTES, "%.*s+0x%llx (%.100s)", length, symbol, (unsigned long long)offset, base);
        else if (symbol) snprintf(name, SYMBOL_BYTES, "%.*s (%.100s)", length, symbol, base);
        else snprintf(name, SYMBOL_BYTES, "%.100s+0x%llx", base, (unsigned long long)(address - bias));
    }
    munmap((void *)(uintptr_t)image.data, image.bytes);
    return name;
}
