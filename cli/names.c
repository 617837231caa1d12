/* SPDX-License-Identifier: MIT */
/* Names of segments and locks, also those of other users: USER:NAME. */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Users, from /etc/passwd alone: the command is linked statically, where the C library cannot load other sources. A
 * user that is not there has a number. */

static const struct passwd *find_user(const char *name, uint32_t number) {
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *entry = NULL;
    while (file && (entry = fgetpwent(file))) {
        if (name ? strcmp(entry->pw_name, name) == 0 : entry->pw_uid == number) break;
    }
    if (file) fclose(file);
    return entry;
}

void cli_user(uint32_t number, char *text, size_t bytes) {
    const struct passwd *entry = find_user(NULL, number);
    char digits[16];
    snprintf(digits, sizeof digits, "%u", number);
    cli_visible(text, bytes, entry ? entry->pw_name : digits);
}

/* The user before the colon; false: there is none, or it is no user. */
static bool user_of(const char *name, uint32_t *user, const char **rest) {
    char text[64];
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : 0;
    if (!length || length >= sizeof text || memchr(name, '/', length)) return false;
    memcpy(text, name, length);
    text[length] = 0;
    *rest = colon + 1;
    const struct passwd *entry = find_user(text, 0);
    char *end;
    *user = entry ? (uint32_t)entry->pw_uid : (uint32_t)strtoul(text, &end, 10);
    return entry || !*end;
}

int cli_observe(vigil_observer **observer, const char *name) {
    uint32_t user;
    const char *rest;
    return user_of(name, &user, &rest) ? vigil_observer_open_user(observer, user, rest)
                                       : vigil_observer_open(observer, name);
}

bool cli_is_lock(const char *name) {
    vigil_observer *observer;
    vigil_look look;
    if (vigil_observer_open(&observer, name) != VIGIL_OK) return false;
    bool lock = vigil_observer_look(observer, &look) == VIGIL_OK && strncmp(look.label, "vigil ", 6) == 0;
    vigil_observer_close(observer);
    return lock;
}

struct listing {
    vigil_listed *listed;
    void *data;
};

static void list_with_user(uint32_t user, const char *name, void *data) {
    const struct listing *listing = data;
    char text[512], owner[80];
    cli_user(user, owner, sizeof owner);
    snprintf(text, sizeof text, "%s:%s", owner, name);
    listing->listed(text, listing->data);
}

int64_t cli_list_names(bool all_users, vigil_listed *listed, void *data) {
    struct listing listing = {listed, data};
    if (all_users) return vigil_list_users(list_with_user, &listing);
    int64_t segments = vigil_segment_list(listed, data);
    int64_t locks = segments < 0 ? segments : vigil_named_list(listed, data);
    return locks < 0 ? locks : segments + locks;
}
