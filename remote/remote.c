/* SPDX-License-Identifier: MIT */
/* A cluster: opening it, and what its locks and words have in common. */
#define _GNU_SOURCE
#include "remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)

int vigil_remote_open(vigil_remote **result, vigil_agent *agent, const char *at, const vigil_remote_options *options) {
    static const vigil_remote_options none = {0};
    if (!result || !agent || !at) return VIGIL_ENULL;
    if (!options) options = &none;
    if (options->ttl_ns < 0 || (options->ttl_ns && options->ttl_ns < SECOND_NS)) return VIGIL_EINVAL;
    if (options->ttl_ns > UINT16_MAX * SECOND_NS) return VIGIL_ERANGE;
    int64_t ttl_s = options->ttl_ns ? (options->ttl_ns + SECOND_NS - 1) / SECOND_NS : REMOTE_TTL_S;
    vigil_remote *remote = calloc(1, sizeof *remote);
    if (!remote) return VIGIL_ENOMEM;
    remote->agent = agent;
    remote->ttl_s = (uint16_t)ttl_s;
    int status = etcd_open(&remote->etcd, agent, at, options);
    if (status == VIGIL_OK) *result = remote;
    else free(remote);
    return status;
}

int vigil_remote_close(vigil_remote *remote) {
    if (!remote) return VIGIL_ENULL;
    if (remote->open) return VIGIL_EBUSY;
    etcd_close(remote->etcd);
    free(remote);
    return VIGIL_OK;
}

const char *vigil_remote_why(const vigil_remote *remote) {
    return remote ? etcd_why(remote->etcd) : "";
}

void remote_keep_going(struct vigil_remote *remote) {
    if (!etcd_is_over(remote->etcd)) vigil_agent_ref(remote->agent);
}

void remote_let_end(struct vigil_remote *remote) {
    if (!etcd_is_over(remote->etcd)) vigil_agent_unref(remote->agent);
}

void remote_begin(struct vigil_remote *remote, bool keeps_going) {
    remote->open++;
    if (keeps_going) remote_keep_going(remote);
}

void remote_end(struct vigil_remote *remote, bool keeps_going) {
    remote->open--;
    if (keeps_going) remote_let_end(remote);
}

struct etcd_bytes remote_bytes(const char *text) {
    return (struct etcd_bytes){text, strlen(text)};
}

bool remote_name_is_good(const char *name) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/";
    size_t length = strlen(name);
    return length && length <= VIGIL_REMOTE_NAME && strspn(name, allowed) == length && !strchr(".-/", name[0]);
}

void remote_describe(char text[PLACE_TEXT], uint32_t pid, int64_t time_s, const char *what) {
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    for (char *at = host; *at; at++)
        if (*at == ' ') *at = '_';
    snprintf(text, PLACE_TEXT, "%s %u %lld %s", host[0] ? host : "?", pid, (long long)time_s, what);
}

void remote_read_holder(const char *text, size_t length, vigil_remote_holder *holder) {
    char copy[PLACE_TEXT];
    unsigned pid = 0;
    long long taken_at = 0;
    int at = 0;
    snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), text);
    *holder = (vigil_remote_holder){0};
    if (sscanf(copy, "%63s %u %lld %n", holder->host, &pid, &taken_at, &at) < 3 || !at) return;
    holder->pid = pid;
    holder->taken_at = taken_at;
    snprintf(holder->text, sizeof holder->text, "%.*s", (int)sizeof holder->text - 1, copy + at);
}

bool remote_is_number(const struct etcd_bytes *text, int64_t *number) {
    char digits[24], *end;
    if (!text->length || text->length >= sizeof digits) return false;
    memcpy(digits, text->data, text->length);
    digits[text->length] = 0;
    *number = strtoll(digits, &end, 10);
    return !*end;
}

int64_t remote_number(const struct etcd_bytes *text) {
    int64_t number = 0;
    return remote_is_number(text, &number) ? number : 0;
}
