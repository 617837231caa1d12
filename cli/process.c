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

/* Of vigil lock and vigil sem. Of letters, the last one: -nE 9. */
static bool needs_value(const char *option) {
    static const char *const valued[] = {"--timeout",    "--on-owner-died",      "--slots", "--mode",
                                         "--until-exit", "--conflict-exit-code", NULL};
    if (option[1] != '-') return strpbrk(option, "wEj") && !strpbrk(option, "wEj")[1];
    size_t i = 0;
    while (valued[i] && strcmp(option, valued[i]) != 0) i++;
    return valued[i];
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

/* The process for which `vigil lock --until-exit PID` holds the lock; 0: it runs a command. */
static uint32_t held_for(const vigil_seen_member *member, char *words, const char *end) {
    static const char option[] = "--until-exit";
    size_t length = sizeof option - 1;
    char *word = next_word(words, end);
    if (strcmp(member->program, "vigil") != 0 || !word || strcmp(word, "lock") != 0) return 0;
    while ((word = next_word(word, end)) && strcmp(word, "--") != 0) {
        if (strncmp(word, option, length) != 0) continue;
        const char *value = word[length] == '=' ? word + length + 1 : next_word(word, end);
        return value ? (uint32_t)strtoul(value, NULL, 10) : 0;
    }
    return 0;
}

static void say_words(const vigil_seen_member *member, bool task, char *text, size_t bytes) {
    char words[4096];
    size_t length = read_proc(member->pid, "cmdline", words, sizeof words);
    if (member->other_space || length == 0 || !is_it(member, words)) {
        cli_visible(text, bytes, member->program);
        return;
    }
    uint32_t other = task ? held_for(member, words, words + length) : 0;
    if (other) {
        cli_process_line(other, text, bytes);
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
    char file[64], children[64], words[1024];
    bool vigil = strcmp(member->program, "vigil") == 0 && !member->other_space;
    size_t length = vigil ? read_proc(member->pid, "cmdline", words, sizeof words) : 0;
    if (!length || !is_it(member, words)) return member->pid;
    uint32_t other = held_for(member, words, words + length);
    if (other) return other;
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

pid_t cli_parent_of(pid_t pid) {
    char path[32], line[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, sizeof line, file);
    if (file) fclose(file);
    const char *name_end = read ? strrchr(line, ')') : NULL; /* the name may contain anything */
    bool ended = !name_end || strlen(name_end) < 5 || name_end[2] == 'Z';
    return ended ? 0 : (pid_t)strtol(name_end + 4, NULL, 10);
}
