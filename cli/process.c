/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* What is in /proc/PID/FILE, ended by a null byte: how much there is, 0 if it cannot be read. */
static size_t read_proc(uint32_t pid, const char *file, char *content, size_t bytes) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/%s", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, content, bytes - 1);
    close(fd);
    size_t used = length > 0 ? (size_t)length : 0;
    content[used] = 0;
    return used;
}

/* The pid may be one of another namespace, or belong to somebody else by now: then the name is hardly the same. */
static bool is_it(const vigil_seen_member *member) {
    char program[64];
    size_t length = read_proc(member->pid, "comm", program, sizeof program);
    if (length && program[length - 1] == '\n') program[length - 1] = 0;
    return member->alive && length && strncmp(program, member->program, 15) == 0;
}

void cli_command_line(const vigil_seen_member *member, char *text, size_t bytes) {
    char line[4096];
    size_t length = is_it(member) ? read_proc(member->pid, "cmdline", line, sizeof line) : 0;
    if (length == 0) {
        cli_visible(text, bytes, member->program);
        return;
    }
    while (length > 1 && line[length - 1] == 0) length--;
    for (size_t i = 0; i < length; i++)
        if (line[i] == 0) line[i] = ' ';
    cli_visible(text, bytes, line);
}
