/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli.h"

#define MESSAGE_MAX 1024
#define FOLDER      "/dev/shm" /* where segments are */
#define NO_FOLDER                                                                                                      \
    "segments need " FOLDER ", which is missing: mkdir -p " FOLDER " && mount -t tmpfs -o mode=1777 tmpfs " FOLDER

/* UTF-8 as in RFC 3629: no overlong forms, no surrogates. Characters that move the cursor or reverse the direction of
 * the text are rejected. */
size_t cli_utf8(const char *text) {
    const unsigned char *byte = (const unsigned char *)text;
    if (byte[0] < 0x80) return byte[0] >= 0x20 && byte[0] != 0x7f;
    size_t length = byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
    if (byte[0] < 0xc2 || byte[0] > 0xf4) return 0;
    uint32_t character = byte[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80) return 0;
        character = character << 6 | (byte[i] & 0x3fu);
    }
    static const uint32_t least[] = {[2] = 0xa0, [3] = 0x800, [4] = 0x10000};
    bool surrogate = character >= 0xd800 && character <= 0xdfff;
    bool turns = (character >= 0x2028 && character <= 0x202e) || (character >= 0x2066 && character <= 0x2069);
    return character < least[length] || character > 0x10ffff || surrogate || turns ? 0 : length;
}

char *cli_visible(char *copy, size_t bytes, const char *text) {
    size_t used = 0;
    while (*text) {
        size_t length = cli_utf8(text), room = length ? length : 4;
        if (used + room >= bytes) break;
        if (length) memcpy(copy + used, text, length);
        else snprintf(copy + used, bytes - used, "\\x%02x", (unsigned char)*text);
        used += room;
        text += length ? length : 1;
    }
    copy[used] = 0;
    if (*text && used >= 3) { /* cut */
        size_t end = used - 3;
        while (end && (copy[end] & 0xc0) == 0x80) end--; /* not in the middle of a character */
        strcpy(copy + end, "...");
    }
    return copy;
}

/* One write per line: several processes may share the terminal. */
static void write_line(const char *text) {
    char visible[MESSAGE_MAX], line[MESSAGE_MAX + 64];
    cli_visible(visible, sizeof visible, text);
    const char *name = cli_now ? cli_now->name : "";
    int length = snprintf(line, sizeof line, "vigil%s%s: %s\n", *name ? " " : "", name, visible);
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written; /* a failure cannot be reported */
}

static bool has_lines_of_json(void) {
    return cli_wants_json && cli_now && cli_now->runs_command;
}

void cli_warn(const char *format, ...) {
    char text[MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!has_lines_of_json()) {
        write_line(text);
        return;
    }
    struct cli_json json;
    json_begin(&json, stderr);
    json_object(&json, NULL);
    json_text(&json, "event", "warning");
    json_text(&json, "warning", text);
    json_end(&json, '}');
}

static void say_failure(const char *status, const char *text) {
    if (!cli_wants_json) {
        write_line(text);
        return;
    }
    struct cli_json json;
    json_begin(&json, has_lines_of_json() ? stderr : stdout);
    json_object(&json, NULL);
    if (has_lines_of_json()) json_text(&json, "event", "failed");
    json_text(&json, "status", status);
    json_text(&json, "error", text);
    json_end(&json, '}');
}

static int say_cannot(int status, const char *text) {
    say_failure(status == VIGIL_OK ? "cannot" : vigil_status_name(status), text);
    return cli_now && cli_now->runs_command ? CLI_RUN_CANNOT : CLI_CANNOT;
}

const char *cli_why(int status, int error) {
    return status == VIGIL_ESYSTEM ? strerror(error) : vigil_strerror(status);
}

int cli_fail(int status, const char *format, ...) {
    int error = errno;
    char text[MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    size_t length = (size_t)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (status != VIGIL_OK && length < sizeof text)
        snprintf(text + length, sizeof text - length, ": %s", cli_why(status, error));
    return say_cannot(status, text);
}

/* A valid name similar to the invalid one. */
static const char *propose(const char *name, char proposal[201]) {
    size_t length = 0;
    for (; *name && length < 200; name++) {
        bool fits = isalnum((unsigned char)*name) || *name == '_' || (*name == '.' && length > 0);
        if (fits) proposal[length++] = *name;
        else if (length > 0 && proposal[length - 1] != '-') proposal[length++] = '-';
    }
    while (length > 0 && proposal[length - 1] == '-') length--;
    proposal[length] = 0;
    return length ? proposal : "work";
}

static bool has_folder(void) {
    return access(FOLDER, F_OK) == 0;
}

int cli_fail_list(int status) {
    if (status == VIGIL_ESYSTEM && !has_folder()) return say_cannot(status, "cannot list the segments: " NO_FOLDER);
    if (status == VIGIL_EOWNER || status == VIGIL_ECORRUPT || status == VIGIL_ETRUNCATED || status == VIGIL_EVERSION ||
        status == VIGIL_EFOREIGN)
        return cli_fail_segment(status, "names");
    return cli_fail(status, "cannot list the segments");
}

int cli_fail_missing(const char *format, ...) {
    char text[MESSAGE_MAX];
    if (!has_folder()) return say_cannot(VIGIL_ESYSTEM, NO_FOLDER);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return say_cannot(VIGIL_ENOTFOUND, text);
}

/* The file of a segment that another user owns. Any user may create files in the folder, under any name. */
/* The file with all locks and semaphores of this user. */
static void book_path(char *path, size_t bytes) {
    snprintf(path, bytes, FOLDER "/vigil-%u", (unsigned)geteuid());
}

/* The file of a segment, a lock at a path, or all locks. */
static void say_damaged(char text[MESSAGE_MAX], int status, const char *name) {
    char path[300];
    struct stat file;
    snprintf(path, sizeof path, FOLDER "/vigil-%u-%s", (unsigned)geteuid(), name);
    bool in_book = !strchr(name, '/') && lstat(path, &file) != 0;
    if (in_book) {
        book_path(path, sizeof path);
        snprintf(text, MESSAGE_MAX, "%s: the file with all your locks and semaphores, %s, is unusable (%s): rm %s",
                 name, path, vigil_status_name(status), path);
    } else if (status == VIGIL_EFOREIGN) {
        snprintf(text, MESSAGE_MAX, "%s: %s", name, cli_why(status, 0));
    } else {
        snprintf(text, MESSAGE_MAX, "%s: %s (vigil rm --force %s)", name, cli_why(status, 0), name);
    }
}

/* Permission denied at a path: its owner and mode decide. */
static void say_denied(char text[MESSAGE_MAX], const char *path) {
    struct stat file;
    if (stat(path, &file) != 0) {
        snprintf(text, MESSAGE_MAX, "%s: permission denied", path);
        return;
    }
    char owner[80];
    cli_user((uint32_t)file.st_uid, owner, sizeof owner);
    snprintf(text, MESSAGE_MAX,
             "%s: permission denied: it is of user %s, with mode %04o, and to use the lock one must be allowed to read "
             "and write it",
             path, owner, (unsigned)file.st_mode & 07777);
}

static void say_owner(char text[MESSAGE_MAX], const char *name, const char *then) {
    char path[300], owner[80];
    struct stat file;
    snprintf(path, sizeof path, FOLDER "/vigil-%u-%s", (unsigned)geteuid(), name);
    bool in_book = lstat(path, &file) != 0; /* a lock or semaphore */
    if (in_book) book_path(path, sizeof path);
    if (lstat(path, &file) != 0) { /* it has just been removed */
        snprintf(text, MESSAGE_MAX, "%s: %s", name, vigil_strerror(VIGIL_EOWNER));
        return;
    }
    cli_user((uint32_t)file.st_uid, owner, sizeof owner);
    snprintf(text, MESSAGE_MAX,
             "%s%s another user owns it: the file %s is of user %s. Let that user or root remove it, or %s", name, then,
             path, owner, in_book ? "use a lock at a path" : "choose another name");
}

/* 512 KiB, 64.0 MiB. */
static void print_bytes(char text[16], uint64_t bytes) {
    double value = (double)bytes / 1024;
    unsigned unit = 0;
    while (value >= 1024 && unit < 3) value /= 1024, unit++;
    snprintf(text, 16, unit ? "%.1f %ciB" : "%.0f %ciB", value, "KMGT"[unit]);
}

/* The memory of segments is that of their folder, which has a limit. */
static void say_full(char text[MESSAGE_MAX], const char *name) {
    struct statvfs space;
    char free_bytes[16], all_bytes[16];
    if (statvfs(FOLDER, &space) != 0 || space.f_blocks == 0) {
        snprintf(text, MESSAGE_MAX, "%s: %s", name, vigil_strerror(VIGIL_ENOMEM));
        return;
    }
    uint64_t all = (uint64_t)space.f_blocks * space.f_frsize, twice_mib = all / (512 * 1024) + 1;
    print_bytes(free_bytes, (uint64_t)space.f_bavail * space.f_frsize);
    print_bytes(all_bytes, all);
    if (space.f_files && space.f_ffree == 0)
        snprintf(text, MESSAGE_MAX,
                 "%s: " FOLDER " has no room for another file: remove unused segments (vigil rm --unused), or let it "
                 "have more files (mount -o remount,nr_inodes=%llu " FOLDER ")",
                 name, 2 * (unsigned long long)space.f_files);
    else
        snprintf(text, MESSAGE_MAX,
                 "%s: not enough memory: %s of %s are free in " FOLDER ". Remove unused segments (vigil rm --unused), "
                 "or make it larger (mount -o remount,size=%lluM " FOLDER ")",
                 name, free_bytes, all_bytes, (unsigned long long)(twice_mib < 64 ? 64 : twice_mib));
}

/* vigil rm refuses unusable segments without --force. A segment of another user cannot be removed at all. */
static void say_what_is_there(char text[MESSAGE_MAX], const char *name) {
    vigil_observer *observer;
    int status = vigil_observer_open(&observer, name);
    if (status == VIGIL_OK) {
        vigil_observer_close(observer);
        snprintf(text, MESSAGE_MAX, "%s already exists: vigil rm %s removes it, unless it is in use", name, name);
    } else if (status == VIGIL_EOWNER) {
        say_owner(text, name, " already exists, and");
    } else {
        snprintf(text, MESSAGE_MAX, "%s already exists, but is unusable: vigil rm --force %s removes it", name, name);
    }
}

/* A folder that segments need and that is missing or not accessible, with errno set; null: none. */
static const char *unusable_folder(void) {
    if (faccessat(AT_FDCWD, FOLDER, W_OK | X_OK, AT_EACCESS) != 0) return FOLDER;
    return faccessat(AT_FDCWD, "/proc/self/fd", X_OK, AT_EACCESS) != 0 ? "/proc" : NULL;
}

/* If a folder is missing or not accessible, the library's error does not name it. */
static void say_system_failure(char text[MESSAGE_MAX], int status, int error, const char *name) {
    const char *folder = unusable_folder();
    if (!has_folder()) snprintf(text, MESSAGE_MAX, "%s: " NO_FOLDER, name);
    else if (folder) snprintf(text, MESSAGE_MAX, "%s: segments need %s: %s", name, folder, strerror(errno));
    else if (status == VIGIL_EOWNER) say_owner(text, name, ":");
    else snprintf(text, MESSAGE_MAX, "%s: %s", name, cli_why(status, error));
}

int cli_fail_segment(int status, const char *name) {
    int error = errno;
    char text[MESSAGE_MAX], shown[64], proposal[201];
    switch (status) {
    case VIGIL_ENAME:
        snprintf(text, sizeof text,
                 "invalid name '%s': use 1 to 200 of A-Z a-z 0-9 . _ - and no dot or dash first; try %s",
                 cli_visible(shown, sizeof shown, name), propose(name, proposal));
        break;
    case VIGIL_ENOTFOUND: return cli_fail_missing("there is no lock or segment %s: vigil ls lists them", name);
    case VIGIL_EEXISTS: say_what_is_there(text, name); break;
    case VIGIL_ENOMEM: say_full(text, name); break;
    case VIGIL_ESYSTEM:
        if (strchr(name, '/') && (error == EACCES || error == EPERM)) {
            say_denied(text, name);
            break;
        }
        say_system_failure(text, status, error, name);
        break;
    case VIGIL_EOWNER: say_system_failure(text, status, error, name); break;
    case VIGIL_EFOREIGN:
    case VIGIL_ETRUNCATED:
    case VIGIL_ECORRUPT:
    case VIGIL_EVERSION: say_damaged(text, status, name); break;
    default: snprintf(text, sizeof text, "%s: %s", name, cli_why(status, error));
    }
    return say_cannot(status, text);
}

int cli_usage(const char *format, ...) {
    char text[MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    size_t length = (size_t)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < sizeof text) {
        const char *see = length && text[length - 1] == '?' ? " See" : "; see";
        snprintf(text + length, sizeof text - length, "%s vigil %s%s--help", see, cli_now ? cli_now->name : "",
                 cli_now ? " " : "");
    }
    say_failure("usage", text);
    return cli_usage_status();
}

bool cli_colour(FILE *stream) {
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    return isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0 && !(no && *no);
}
