/* SPDX-License-Identifier: MIT */
/*
 * Watches: all of them on one stream. We choose their numbers (etcd 3.4), so that replies find their watch by number
 * alone, and a reply for a watch that has ended finds none.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "client.h"

static struct watch **watch_head(struct etcd *etcd, int64_t id) {
    return &etcd->watches[(uint64_t)id % WATCH_HEADS];
}

static struct watch *watch_find(struct etcd *etcd, int64_t id) {
    struct watch *watch = *watch_head(etcd, id);
    while (watch && watch->id != id) watch = watch->next;
    return watch;
}

static void watch_link(struct watch **head, struct watch *watch) {
    watch->next = *head;
    watch->link = head;
    if (watch->next) watch->next->link = &watch->next;
    *head = watch;
}

static void watch_unlink(struct watch *watch) {
    *watch->link = watch->next;
    if (watch->next) watch->next->link = watch->link;
}

static void watch_free(struct watch *watch) {
    struct etcd *etcd = watch->etcd;
    watch_unlink(watch);
    watch->user->pending = NULL;
    bytes_free(&watch->key);
    bytes_free(&watch->range_end);
    free(watch);
    etcd->watch_count--;
    link_tell_busy(etcd);
}

static void watch_lose(struct watch *watch) {
    struct etcd_watch *user = watch->user;
    watch_free(watch);
    user->told(user, ETCD_WATCH_LOST, NULL, 0);
}

/* The stream. */

static void watches_drop_stream(struct etcd *etcd) {
    if (!etcd->watching_pending) return;
    http2_drop(&etcd->watching);
    bytes_free(&etcd->watching.in);
    bytes_free(&etcd->watching.out);
    etcd->watching_pending = false;
}

/* Those that the server has been asked for. A callback may begin others, which are not sent yet, or end some. */
void watches_lose_link(struct etcd *etcd) {
    watches_drop_stream(etcd);
    for (unsigned i = 0; i < WATCH_HEADS; i++) {
        for (struct watch *watch; (watch = etcd->watches[i]);) {
            watch_unlink(watch);
            watch_link(&etcd->lost, watch);
        }
    }
    while (etcd->lost) watch_lose(etcd->lost);
}

static void watches_on_change(struct http2_stream *stream);

static bool watches_open_stream(struct etcd *etcd) {
    if (etcd->watching_pending) return true;
    etcd->watching = (struct http2_stream){.changed = watches_on_change};
    struct grpc_call call = {
        .path = "/etcdserverpb.Watch/Watch", .timeout_ns = LOOP_NEVER, .leader = true, .token = etcd->token};
    return etcd->watching_pending = grpc_start(etcd->http2, &etcd->watching, &call);
}

static void watch_send(struct watch *watch) {
    struct etcd *etcd = watch->etcd;
    watch->id = ++etcd->last_watch;
    watch_unlink(watch);
    watch_link(watch_head(etcd, watch->id), watch);
    Etcdpb__Watch message = ETCDPB__WATCH__INIT;
    Etcdpb__WatchCreate create = ETCDPB__WATCH_CREATE__INIT;
    int32_t filter = watch->deletions ? 0 : 1;
    create.key = (ProtobufCBinaryData){bytes_length(&watch->key), watch->key.data};
    create.range_end = (ProtobufCBinaryData){bytes_length(&watch->range_end), watch->range_end.data};
    create.filters = &filter;
    create.n_filters = 1;
    create.watch_id = watch->id;
    message.request_case = ETCDPB__WATCH__REQUEST_CREATE;
    message.create = &create;
    if (watches_open_stream(etcd) && grpc_put(&etcd->watching.out, &message.base)) {
        http2_more(&etcd->watching);
    } else {
        struct etcd_watch *user = watch->user;
        watch_free(watch);
        client_fail_watch(etcd, user);
    }
}

void watches_send_waiting(struct etcd *etcd) {
    while (etcd->unsent) watch_send(etcd->unsent);
}

/* Replies. */

static bool watches_tell_event(struct etcd *etcd, int64_t id, const Etcdpb__Event *event, int64_t revision) {
    struct watch *watch = watch_find(etcd, id);
    if (!watch || !event->kv) return false;
    const Etcdpb__KeyValue *kv = event->kv;
    struct etcd_pair pair = {.key = {kv->key.data, kv->key.len},
                             .value = {kv->value.data, kv->value.len},
                             .create_revision = kv->create_revision,
                             .mod_revision = kv->mod_revision,
                             .lease = kv->lease};
    struct etcd_watch *user = watch->user;
    user->told(user, event->type == 1 ? ETCD_WATCH_DELETED : ETCD_WATCH_PUT, &pair,
               kv->mod_revision ? kv->mod_revision : revision);
    return true;
}

/* The one that the server creates next: it does so in the order in which it was asked. */
static struct watch *watches_next_created(struct etcd *etcd) {
    struct watch *next = NULL;
    for (unsigned i = 0; i < WATCH_HEADS; i++)
        for (struct watch *watch = etcd->watches[i]; watch; watch = watch->next)
            if (!watch->created && (!next || watch->id < next->id)) next = watch;
    return next;
}

/* A refusal to create one does not have its number. */
static void watches_tell(struct etcd *etcd, const Etcdpb__WatchReply *reply) {
    struct watch *watch = watch_find(etcd, reply->watch_id);
    int64_t id = reply->watch_id, revision = reply->header ? reply->header->revision : 0;
    if (!watch && id <= 0 && reply->created && reply->canceled) watch = watches_next_created(etcd);
    if (reply->canceled) {
        if (watch && reply->cancel_reason && reply->cancel_reason[0])
            link_note_error(etcd, VIGIL_EREFUSED, reply->cancel_reason);
        if (watch) watch_lose(watch);
        return;
    }
    if (reply->created && watch && !watch->created) {
        watch->created = true;
        etcd->proven = true;
        etcd->failures_in_turn = 0;
        watch->user->told(watch->user, ETCD_WATCH_CREATED, NULL, revision);
    }
    for (size_t i = 0; i < reply->n_events; i++)
        if (!watches_tell_event(etcd, id, reply->events[i], revision)) return;
}

/* VIGIL_OK, VIGIL_EPROTOCOL, VIGIL_ENOMEM. */
static int watches_read(struct etcd *etcd) {
    const uint8_t *data;
    size_t length;
    int there;
    while (etcd->watching_pending && (there = grpc_next(&etcd->watching.in, &data, &length)) != 0) {
        ProtobufCMessage *reply;
        int status =
            there == 1 ? grpc_read(&etcdpb__watch_reply__descriptor, data, length, &reply) : VIGIL_EPROTOCOL;
        if (status != VIGIL_OK) return status;
        bytes_consume(&etcd->watching.in, GRPC_PREFIX + length);
        watches_tell(etcd, (const void *)reply);
        protobuf_c_message_free_unpacked(reply, NULL);
    }
    return VIGIL_OK;
}

static void watches_on_change(struct http2_stream *stream) {
    struct etcd *etcd = (struct etcd *)(void *)((char *)stream - offsetof(struct etcd, watching));
    int status = watches_read(etcd);
    if (status != VIGIL_OK) {
        link_give_up(etcd, status, grpc_misread(status), true);
        return;
    }
    if (!etcd->watching_pending || !stream->ended) return;
    struct grpc_end end;
    grpc_judge(stream, &end);
    if (end.status == VIGIL_OK) end.status = VIGIL_EUNREACHABLE;
    if (end.token_stale) link_login_again(etcd);
    else if (end.elsewhere || end.status == VIGIL_EPROTOCOL) link_give_up(etcd, end.status, end.why, true);
    else {
        link_note_error(etcd, end.status, end.why);
        watches_lose_link(etcd);
    }
}

/* Beginning and end. */

static struct watch *watch_new(struct etcd_bytes key, struct etcd_bytes range_end) {
    struct watch *watch = calloc(1, sizeof *watch);
    if (watch && bytes_add(&watch->key, key.data, key.length) &&
        bytes_add(&watch->range_end, range_end.data, range_end.length))
        return watch;
    if (watch) bytes_free(&watch->key);
    free(watch);
    return NULL;
}

void etcd_watch(struct etcd *etcd, struct etcd_watch *user, struct etcd_bytes key, struct etcd_bytes range_end,
                bool deletions) {
    struct watch *watch = watch_new(key, range_end);
    if (!watch) {
        client_fail_watch(etcd, user);
        return;
    }
    watch->etcd = etcd;
    watch->user = user;
    watch->deletions = deletions;
    user->pending = watch;
    watch_link(&etcd->unsent, watch);
    etcd->watch_count++;
    if (etcd->state == LINK_UP) watch_send(watch);
    link_tell_busy(etcd);
    if (etcd->http2 && !etcd->loop.inside) http2_flush(etcd->http2);
}

void etcd_unwatch(struct etcd *etcd, struct etcd_watch *user) {
    struct watch *watch = user->pending;
    if (!watch) return;
    if (user->pending == etcd) {
        client_drop_watch(etcd, user);
        return;
    }
    if (watch->id && etcd->watching_pending) {
        Etcdpb__Watch message = ETCDPB__WATCH__INIT;
        Etcdpb__WatchCancel cancel = ETCDPB__WATCH_CANCEL__INIT;
        cancel.watch_id = watch->id;
        message.request_case = ETCDPB__WATCH__REQUEST_CANCEL;
        message.cancel = &cancel;
        if (grpc_put(&etcd->watching.out, &message.base)) http2_more(&etcd->watching);
    }
    watch_free(watch);
    if (etcd->http2 && !etcd->loop.inside) http2_flush(etcd->http2);
}

void watches_end_all(struct etcd *etcd) {
    watches_drop_stream(etcd);
    while (etcd->lost) watch_free(etcd->lost);
    while (etcd->unsent) watch_free(etcd->unsent);
    for (unsigned i = 0; i < WATCH_HEADS; i++)
        while (etcd->watches[i]) watch_free(etcd->watches[i]);
}
