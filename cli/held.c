/* SPDX-License-Identifier: MIT */
#include "held.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

#define HELD       "VIGIL_LOCKS_HELD"
#define OWNER_DIED "VIGIL_OWNER_DIED"

/* A command left in the background has the variable too, but no process waits for it. */
static bool held_by_ancestor(pid_t pid) {
    pid_t at = getppid();
    while (at > 1 && at != pid) at = cli_parent_of(at);
    return at == pid && pid > 0;
}

void held_token_of(const char *name, char token[HELD_TOKEN]) {
    struct stat file;
    if (!strchr(name, '/')) snprintf(token, HELD_TOKEN, "%s", name);
    else if (stat(name, &file) == 0)
        snprintf(token, HELD_TOKEN, "@%llx.%llx", (unsigned long long)file.st_dev, (unsigned long long)file.st_ino);
    else token[0] = 0;
}

enum held_how held_for_us(const char *token) {
    const char *held = getenv(HELD);
    size_t length = strlen(token);
    for (; length && held && *held; held += strcspn(held, " ")) {
        held += strspn(held, " ");
        if (strncmp(held, token, length) != 0 || held[length] != ':') continue;
        char *end;
        long pid = strtol(held + length + 1, &end, 10);
        if (held_by_ancestor((pid_t)pid)) return *end == 's' ? HELD_SHARED : HELD_ALONE;
    }
    return NOT_HELD;
}

bool held_add(const char *token, bool shared) {
    const char *before = getenv(HELD);
    char *held;
    const char *how = shared ? "s" : "";
    if (asprintf(&held, "%s%s%s:%d%s", before ? before : "", before ? " " : "", token, (int)getpid(), how) < 0)
        return false;
    bool done = setenv(HELD, held, 1) == 0;
    free(held);
    return done;
}

bool held_say_owner_died(bool owner_died) {
    return (owner_died ? setenv(OWNER_DIED, "1", 1) : unsetenv(OWNER_DIED)) == 0;
}
