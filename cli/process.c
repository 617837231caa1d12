/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* Reads /proc/PID/FILE, and ends it with a null byte. Returns its length; 0: it cannot be read. */
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

/* The pid may be from another namespace, or belong to another process by now: then the name is hardly the same. It is
 * the name by which the program was started; ps may show another one, as threads can be renamed. */
static bool is_it(const vigil_seen_member *member, const char *line) {
    const char *name = strrchr(line, '/');
    return member->alive && strncmp(name ? name + 1 : line, member->program, 15) == 0;
}

/* The words end with a null byte each. Returns null after the last. */
static char *next_word(char *word, const char *end) {
    word += strlen(word) + 1;
    return word < end ? word : NULL;
}

static bool needs_value(const char *option) {
    return strcmp(option, "--timeout") == 0 || strcmp(option, "--on-owner-died") == 0 ||
           strcmp(option, "--slots") == 0 || strcmp(option, "--mode") == 0 || strcmp(option, "-w") == 0 ||
           strcmp(option, "-E") == 0;
}

/* Where the command of `vigil lock` or `vigil sem` begins, as cli_options reads it: behind the "--" that ends the
 * options, or with the second operand. For other processes, and if there is no command: the first word. */
static char *first_of_command(char *words, const char *end) {
    char *word = next_word(words, end);
    if (!word || (strcmp(word, "lock") != 0 && strcmp(word, "sem") != 0)) return words;
    bool named = false;
    while ((word = next_word(word, end))) {
        bool ends_options = strcmp(word, "--") == 0, option = word[0] == '-' && !ends_options;
        if (ends_options || (option && needs_value(word))) word = next_word(word, end);
        if (!word) break;
        if (ends_options || (named && !option)) return word;
        named |= !option;
    }
    return words;
}

static void say_words(const vigil_seen_member *member, bool task, char *text, size_t bytes) {
    char words[4096];
    size_t length = read_proc(member->pid, "cmdline", words, sizeof words);
    if (member->other_space || length == 0 || !is_it(member, words)) {
        cli_visible(text, bytes, member->program);
        return;
    }
    bool runs_command = task && strcmp(member->program, "vigil") == 0;
    char *first = runs_command ? first_of_command(words, words + length) : words;
    while (length > 1 && words[length - 1] == 0) length--;
    for (char *c = first; c < words + length; c++)
        if (*c == 0) *c = ' ';
    cli_visible(text, bytes, first);
}

/* The first child of `vigil lock` or `vigil sem` is the command. The kernel may not list children. */
uint32_t cli_task_pid(const vigil_seen_member *member) {
    char file[64], children[64], words[64];
    bool vigil = strcmp(member->program, "vigil") == 0 && !member->other_space;
    if (!vigil || !read_proc(member->pid, "cmdline", words, sizeof words) || !is_it(member, words)) return member->pid;
    snprintf(file, sizeof file, "task/%u/children", member->pid);
    uint32_t child =
        read_proc(member->pid, file, children, sizeof children) ? (uint32_t)strtoul(children, NULL, 10) : 0;
    return child ? child : member->pid;
}

void cli_process_line(uint32_t pid, char *text, size_t bytes) {
    char words[256];
    size_t length = read_proc(pid, "cmdline", words, sizeof words);
    for (size_t i = 0; i + 1 < length; i++)
        if (!words[i]) words[i] = ' ';
    cli_visible(text, bytes, length ? words : "");
}

void cli_command_line(const vigil_seen_member *member, char *text, size_t bytes) {
    say_words(member, false, text, bytes);
}

void cli_task(const vigil_seen_member *member, char *text, size_t bytes) {
    say_words(member, true, text, bytes);
}

const char *cli_without_folder(const char *command) {
    const char *name = command, *end = command + strcspn(command, " ");
    for (const char *c = command; c + 1 < end; c++) {
        if (*c == '/') name = c + 1;
    }
    return name;
}
