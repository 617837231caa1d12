/* SPDX-License-Identifier: MIT */
/* What can be seen of a lock of a cluster, and of the cluster. Nothing here changes a key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote.h"

struct look {
    vigil_remote *remote;
    struct etcd_call call;
    vigil_remote_looked *looked;
    void *data;
};

enum { LOOK_HELD, LOOK_LINE, LOOK_MARK, LOOK_SLOTS, LOOK_RESULTS };

static void look_add(vigil_remote_one *one, const struct etcd_pair *pair, bool holds, size_t name_length) {
    const char *key = pair->key.data;
    size_t kind_at = name_length + strlen("!held/");
    *one = (vigil_remote_one){.holds = holds,
                              .shares = holds && pair->key.length > kind_at && key[kind_at] == 's',
                              .revision = pair->create_revision,
                              .lease = pair->lease};
    remote_read_holder(pair->value.data, pair->value.length, &one->process);
}

static bool look_is_held_alone(const vigil_remote_one *all, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (all[i].holds && !all[i].shares) return true;
    return false;
}

/* The text of a mark begins with the key that it belongs to, and a space. */
static void look_read_mark(const struct etcd_bytes *value, vigil_remote_holder *dead) {
    if (!value->length) return;
    const char *space = memchr(value->data, ' ', value->length), *text = space ? space + 1 : value->data;
    remote_read_holder(text, value->length - (size_t)(text - (const char *)value->data), dead);
}

static void look_tell(struct look *look, const struct etcd_reply *reply, size_t name_length) {
    const struct etcd_result *held = &reply->results[LOOK_HELD], *line = &reply->results[LOOK_LINE];
    const struct etcd_result *mark = &reply->results[LOOK_MARK], *slots = &reply->results[LOOK_SLOTS];
    vigil_remote_one *all = calloc(held->pair_count + line->pair_count + 1, sizeof *all);
    vigil_remote_seen seen = {.all = all, .holders = (uint32_t)held->count, .waiters = (uint32_t)line->count};
    if (!all) {
        look->looked(VIGIL_ENOMEM, NULL, look->data);
        return;
    }
    for (size_t i = 0; i < held->pair_count; i++) look_add(&all[seen.count++], &held->pairs[i], true, name_length);
    for (size_t i = 0; i < line->pair_count; i++) look_add(&all[seen.count++], &line->pairs[i], false, name_length);
    if (slots->pair_count) seen.slots = (uint32_t)remote_number(&slots->pairs->value);
    if (mark->pair_count) {
        seen.died = !look_is_held_alone(all, seen.count);
        look_read_mark(&mark->pairs->value, &seen.dead);
    }
    look->looked(VIGIL_OK, &seen, look->data);
    free(all);
}

static void look_done(struct etcd_call *call, const struct etcd_reply *reply) {
    struct look *look = call->data;
    const char *name = (const char *)(look + 1);
    remote_end(look->remote, true);
    if (reply->status != VIGIL_OK) look->looked(reply->status, NULL, look->data);
    else if (reply->result_count < LOOK_RESULTS) look->looked(VIGIL_EPROTOCOL, NULL, look->data);
    else look_tell(look, reply, strlen(name));
    free(look);
}

int vigil_remote_look(vigil_remote *remote, const char *name, vigil_remote_looked *looked, void *data) {
    if (!remote || !name || !looked) return VIGIL_ENULL;
    if (!remote_name_is_good(name)) return VIGIL_ENAME;
    if (etcd_is_over(remote->etcd)) return VIGIL_ECLOSING;
    char keys[4][PLACE_KEY], ends[2][PLACE_KEY];
    static const char *const kinds[] = {"held/", "line/", "mark", "slots"};
    struct look *look = calloc(1, sizeof *look + strlen(name) + 1);
    if (!look) return VIGIL_ENOMEM;
    strcpy((char *)(look + 1), name);
    look->remote = remote;
    look->looked = looked;
    look->data = data;
    look->call = (struct etcd_call){.done = look_done, .data = look};
    struct etcd_txn txn = {.then_count = LOOK_RESULTS};
    for (int i = 0; i < LOOK_RESULTS; i++) {
        int length = snprintf(keys[i], PLACE_KEY, "%s!%s", name, kinds[i]);
        txn.then[i] = (struct etcd_operation){.action = ETCD_RANGE, .key = {keys[i], (size_t)length}};
        if (i > LOOK_LINE) continue;
        memcpy(ends[i], keys[i], PLACE_KEY);
        ends[i][length - 1]++;
        txn.then[i].range_end = (struct etcd_bytes){ends[i], (size_t)length};
        txn.then[i].order = ETCD_OLDEST_FIRST;
        txn.then[i].limit = VIGIL_REMOTE_SEEN / 2;
    }
    remote_begin(remote, true);
    etcd_txn(remote->etcd, &look->call, &txn, etcd_now_ns(remote->etcd) + REMOTE_CALL_NS);
    return VIGIL_PENDING;
}

/* Health: first what the member says, then how long a read takes that all agree on. */

struct health {
    vigil_remote *remote;
    struct etcd_call call;
    vigil_remote_told *told;
    void *data;
    vigil_remote_health health;
};

static void health_end(struct health *health, int status) {
    remote_end(health->remote, true);
    health->told(status, &health->health, health->data);
    free(health);
}

static void health_has_read(struct etcd_call *call, const struct etcd_reply *reply) {
    struct health *health = call->data;
    health->health.round_trip_ns = etcd_now_ns(health->remote->etcd) - call->sent_ns;
    health_end(health, reply->status);
}

static void health_has_status(struct etcd_call *call, const struct etcd_reply *reply) {
    struct health *health = call->data;
    if (reply->status != VIGIL_OK) {
        health_end(health, reply->status);
        return;
    }
    health->health.has_leader = reply->leader != 0;
    health->health.database_bytes = reply->database_bytes;
    health->health.alarms = reply->alarms;
    snprintf(health->health.version, sizeof health->health.version, "%s", reply->version ? reply->version : "");
    const struct etcd_txn txn = {.then = {{.action = ETCD_RANGE, .key = {"vigil", 5}}}, .then_count = 1};
    health->call = (struct etcd_call){.done = health_has_read, .data = health};
    etcd_txn(health->remote->etcd, &health->call, &txn, etcd_now_ns(health->remote->etcd) + REMOTE_CALL_NS);
}

int vigil_remote_ask_health(vigil_remote *remote, vigil_remote_told *told, void *data) {
    if (!remote || !told) return VIGIL_ENULL;
    if (etcd_is_over(remote->etcd)) return VIGIL_ECLOSING;
    struct health *health = calloc(1, sizeof *health);
    if (!health) return VIGIL_ENOMEM;
    *health = (struct health){.remote = remote, .told = told, .data = data};
    health->call = (struct etcd_call){.done = health_has_status, .data = health};
    remote_begin(remote, true);
    etcd_status(remote->etcd, &health->call, etcd_now_ns(remote->etcd) + REMOTE_CALL_NS);
    return VIGIL_PENDING;
}
