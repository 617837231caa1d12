/* SPDX-License-Identifier: MIT */
/*
 * model.c - a model of etcd that implements etcd.h: keys with revisions, leases, transactions, watches; and the network
 * before it. A call is carried out at most once. It may be lost, or its reply may, or it may be carried out long after
 * its client has been told that it failed.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define MODEL_KEYS     64u
#define MODEL_LEASES   64u
#define MODEL_MESSAGES 128u
#define MODEL_WATCHES  32u
#define MODEL_TIMERS   64u
#define MODEL_NEWS     64u
#define MODEL_TEXT     256u
#define MODEL_PAIRS    40u /* in one reply */

struct entry {
    char key[MODEL_TEXT], value[MODEL_TEXT];
    int64_t created, modified, lease;
};

struct lease {
    int64_t id, ttl_ns, ends_ns;
};

enum message_kind { MESSAGE_TXN, MESSAGE_GRANT, MESSAGE_REVOKE, MESSAGE_RENEW, MESSAGE_STATUS };
static const char *const message_names[] = {"txn", "grant", "revoke", "renew", "status"};

struct text {
    char bytes[MODEL_TEXT];
};

struct message {
    bool used;
    unsigned number;
    enum message_kind kind;
    struct process *process;
    struct etcd_call *call; /* null: the client does not wait for it any more */
    bool executed;
    int64_t sent_ns, deadline_ns, not_before_ns;
    struct etcd_txn txn;
    struct text texts[(ETCD_COMPARES + 2 * ETCD_OPERATIONS) * 3];
    unsigned text_count;
    int64_t lease, ttl_s;
    struct etcd_reply reply;
    struct etcd_pair pairs[MODEL_PAIRS];
    struct entry copies[MODEL_PAIRS];
    unsigned pair_count;
};

struct news {
    enum etcd_news news;
    struct entry entry;
    int64_t revision;
};

struct watch {
    bool used;
    unsigned number;
    struct process *process;
    struct etcd_watch *watch;
    char key[MODEL_TEXT], end[MODEL_TEXT];
    bool deletions, created;
    struct news queue[MODEL_NEWS];
    unsigned count;
};

struct timer {
    bool used;
    struct process *process;
    struct etcd_timer *timer;
    int64_t at_ns;
};

struct etcd {
    struct process *process;
};

static struct {
    struct entry keys[MODEL_KEYS];
    unsigned key_count;
    int64_t revision;
    struct lease leases[MODEL_LEASES];
    unsigned lease_count;
    struct watch watches[MODEL_WATCHES];
    struct timer timers[MODEL_TIMERS];
    unsigned next_number;
    uint64_t random;
} model;
static struct message messages[MODEL_MESSAGES]; /* large: only those that are used are cleared */

void model_reset(void) {
    memset(&model, 0, sizeof model);
    model.revision = 1;
    for (unsigned i = 0; i < MODEL_MESSAGES; i++) messages[i].used = false;
}

uint64_t model_random(void) {
    model.random += 0x9E3779B97F4A7C15u;
    uint64_t x = model.random;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

int64_t model_revision(void) {
    return model.revision;
}

/* ---- Keys ---- */

static bool key_is_in(const char *key, const char *from, const char *end) {
    return *end ? strcmp(key, from) >= 0 && strcmp(key, end) < 0 : strcmp(key, from) == 0;
}

static struct entry *key_find(const char *key) {
    for (unsigned i = 0; i < model.key_count; i++)
        if (strcmp(model.keys[i].key, key) == 0) return &model.keys[i];
    return NULL;
}

static void watch_tell_all(const struct entry *entry, bool deleted) {
    for (unsigned i = 0; i < MODEL_WATCHES; i++) {
        struct watch *watch = &model.watches[i];
        if (!watch->used || !watch->created || watch->deletions != deleted) continue;
        if (!key_is_in(entry->key, watch->key, watch->end)) continue;
        assert(watch->count < MODEL_NEWS);
        watch->queue[watch->count] =
            (struct news){deleted ? ETCD_WATCH_DELETED : ETCD_WATCH_PUT, *entry, model.revision};
        if (deleted) watch->queue[watch->count].entry.modified = model.revision;
        watch->count++;
    }
}

static const char *key_oldest_in_line(const char *held) {
    static char oldest[MODEL_TEXT];
    size_t prefix = strcspn(held, "!");
    int64_t created = INT64_MAX;
    oldest[0] = 0;
    for (unsigned i = 0; i < model.key_count; i++) {
        const struct entry *entry = &model.keys[i];
        if (strncmp(entry->key, held, prefix) || strncmp(entry->key + prefix, "!line/", 6) || entry->created >= created)
            continue;
        created = entry->created;
        memcpy(oldest, entry->key, sizeof oldest);
    }
    return oldest;
}

static void key_put(const char *key, const char *value, int64_t lease) {
    struct entry *entry = key_find(key);
    bool is_new = !entry;
    char oldest[MODEL_TEXT] = "";
    if (is_new) {
        memcpy(oldest, key_oldest_in_line(key), sizeof oldest);
        assert(model.key_count < MODEL_KEYS);
        entry = &model.keys[model.key_count++];
        *entry = (struct entry){.created = model.revision};
        snprintf(entry->key, MODEL_TEXT, "%s", key);
    }
    snprintf(entry->value, MODEL_TEXT, "%s", value);
    entry->modified = model.revision;
    entry->lease = lease;
    watch_tell_all(entry, false);
    if (is_new) search_key_created(key, model.revision, oldest);
}

static void key_remove(struct entry *entry, enum model_end how) {
    struct entry gone = *entry;
    *entry = model.keys[--model.key_count];
    watch_tell_all(&gone, true);
    world_trace("    %s is gone at %lld", gone.key, (long long)model.revision);
    search_key_gone(gone.key, how);
}

unsigned model_keys(void) {
    return model.key_count;
}

const char *model_key(unsigned index, int64_t *created, int64_t *lease, const char **value) {
    const struct entry *entry = &model.keys[index];
    if (created) *created = entry->created;
    if (lease) *lease = entry->lease;
    if (value) *value = entry->value;
    return entry->key;
}

void model_delete_by_hand(unsigned index) {
    model.revision++;
    key_remove(&model.keys[index], MODEL_BY_HAND);
}

/* ---- Leases ---- */

static struct lease *lease_find(int64_t id) {
    for (unsigned i = 0; i < model.lease_count; i++)
        if (model.leases[i].id == id) return &model.leases[i];
    return NULL;
}

static void lease_remove(struct lease *lease, enum model_end how) {
    int64_t id = lease->id;
    *lease = model.leases[--model.lease_count];
    model.revision++;
    for (unsigned i = model.key_count; i-- > 0;)
        if (i < model.key_count && model.keys[i].lease == id) key_remove(&model.keys[i], how);
}

static void lease_expire(void *what, unsigned way) {
    struct lease *lease = what;
    if (way) lease->ends_ns = world_now_ns + WORLD_TTL_NS; /* a new leader: all begin again */
    else lease_remove(lease, MODEL_EXPIRED);
}

unsigned model_leases(void) {
    return model.lease_count;
}

void model_revoke_by_hand(unsigned index) {
    lease_remove(&model.leases[index], MODEL_BY_HAND);
}

void model_change_leader(void) {
    for (unsigned i = 0; i < model.lease_count; i++) model.leases[i].ends_ns = world_now_ns + model.leases[i].ttl_ns;
}

/* ---- Transactions ---- */

static bool compare_numbers(int64_t is, enum etcd_relation relation, int64_t wanted) {
    switch (relation) {
    case ETCD_EQUAL: return is == wanted;
    case ETCD_GREATER: return is > wanted;
    case ETCD_LESS: return is < wanted;
    case ETCD_NOT_EQUAL: return is != wanted;
    }
    return false;
}

static bool compare_entry(const struct etcd_compare *compare, const struct entry *entry) {
    if (compare->target == ETCD_VALUE)
        return entry && compare_numbers(strcmp(entry->value, compare->value.data), compare->relation, 0);
    int64_t is = !entry ? 0 : compare->target == ETCD_CREATE_REVISION ? entry->created : entry->modified;
    return compare_numbers(is, compare->relation, compare->revision);
}

static bool compare_holds(const struct etcd_compare *compare) {
    bool any = false, all = true;
    for (unsigned i = 0; i < model.key_count; i++) {
        if (!key_is_in(model.keys[i].key, compare->key.data, compare->range_end.data)) continue;
        any = true;
        all = all && compare_entry(compare, &model.keys[i]);
    }
    return any ? all : compare_entry(compare, NULL);
}

static bool entry_is_before(const struct entry *one, const struct entry *other, enum etcd_order order) {
    if (order == ETCD_BY_KEY) return strcmp(one->key, other->key) < 0;
    return order == ETCD_OLDEST_FIRST ? one->created < other->created : one->created > other->created;
}

static void message_range(struct message *message, const struct etcd_operation *operation, struct etcd_result *result) {
    struct entry *copies = &message->copies[message->pair_count];
    unsigned found = 0;
    for (unsigned i = 0; i < model.key_count; i++) {
        const struct entry *entry = &model.keys[i];
        if (!key_is_in(entry->key, operation->key.data, operation->range_end.data)) continue;
        result->count++; /* like etcd, not counting by created_before */
        if (operation->created_before && entry->created >= operation->created_before) continue;
        assert(message->pair_count + found < MODEL_PAIRS);
        unsigned at = found++;
        for (; at && entry_is_before(entry, &copies[at - 1], operation->order); at--) copies[at] = copies[at - 1];
        copies[at] = *entry;
    }
    if (operation->limit && found > operation->limit) found = (unsigned)operation->limit;
    result->pairs = &message->pairs[message->pair_count];
    result->pair_count = found;
    for (unsigned i = 0; i < found; i++) {
        message->pairs[message->pair_count++] = (struct etcd_pair){
            .key = {copies[i].key, strlen(copies[i].key)},
            .value = {copies[i].value, strlen(copies[i].value)},
            .create_revision = copies[i].created,
            .mod_revision = copies[i].modified,
            .lease = copies[i].lease,
        };
    }
}

static void message_delete(const struct etcd_operation *operation, struct etcd_result *result) {
    for (unsigned i = model.key_count; i-- > 0;) {
        if (i >= model.key_count) continue;
        if (!key_is_in(model.keys[i].key, operation->key.data, operation->range_end.data)) continue;
        result->count++;
        key_remove(&model.keys[i], MODEL_RELEASED);
    }
}

static bool operations_change(const struct etcd_operation *operations, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (operations[i].action == ETCD_PUT ||
            (operations[i].action == ETCD_DELETE && key_find(operations[i].key.data)))
            return true;
    return false;
}

static bool operations_have_their_leases(const struct etcd_operation *operations, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (operations[i].action != ETCD_PUT) continue;
        for (unsigned j = 0; j < i; j++)
            assert(operations[j].action != ETCD_PUT || strcmp(operations[j].key.data, operations[i].key.data) != 0);
        if (operations[i].lease && !lease_find(operations[i].lease)) return false;
    }
    return true;
}

static void message_txn(struct message *message) {
    const struct etcd_txn *txn = &message->txn;
    struct etcd_reply *reply = &message->reply;
    reply->succeeded = true;
    for (unsigned i = 0; i < txn->compare_count; i++)
        if (!compare_holds(&txn->compares[i])) reply->succeeded = false;
    const struct etcd_operation *operations = reply->succeeded ? txn->then : txn->otherwise;
    reply->result_count = reply->succeeded ? txn->then_count : txn->otherwise_count;
    if (!operations_have_their_leases(operations, reply->result_count)) {
        reply->status = VIGIL_ENOTFOUND;
        reply->result_count = 0;
        return;
    }
    if (operations_change(operations, reply->result_count)) model.revision++;
    for (unsigned i = 0; i < reply->result_count; i++) {
        const struct etcd_operation *operation = &operations[i];
        world_trace("    %s %s%s%s",
                    operation->action == ETCD_PUT      ? "put"
                    : operation->action == ETCD_DELETE ? "delete"
                                                       : "range",
                    (const char *)operation->key.data, operation->action == ETCD_PUT ? " = " : "",
                    operation->action == ETCD_PUT ? (const char *)operation->value.data : "");
        if (operation->action == ETCD_RANGE) message_range(message, operation, &reply->results[i]);
        if (operation->action == ETCD_PUT) key_put(operation->key.data, operation->value.data, operation->lease);
        if (operation->action == ETCD_DELETE) message_delete(operation, &reply->results[i]);
    }
}

/* ---- Messages ---- */

static void message_grant(struct message *message) {
    if (lease_find(message->lease)) {
        message->reply.status = VIGIL_EEXISTS;
        return;
    }
    assert(model.lease_count < MODEL_LEASES);
    int64_t ttl_ns = message->ttl_s * WORLD_SECOND_NS;
    model.leases[model.lease_count++] = (struct lease){message->lease, ttl_ns, world_now_ns + ttl_ns};
    message->reply.ttl_s = message->ttl_s;
}

static void message_execute(struct message *message) {
    struct etcd_reply *reply = &message->reply;
    struct lease *lease = lease_find(message->lease);
    *reply = (struct etcd_reply){.status = VIGIL_OK, .cluster = 1};
    message->executed = true;
    switch (message->kind) {
    case MESSAGE_TXN: message_txn(message); break;
    case MESSAGE_GRANT: message_grant(message); break;
    case MESSAGE_REVOKE:
        if (lease) lease_remove(lease, MODEL_REVOKED);
        else reply->status = VIGIL_ENOTFOUND;
        break;
    case MESSAGE_RENEW:
        if (lease) lease->ends_ns = world_now_ns + lease->ttl_ns;
        reply->ttl_s = lease ? lease->ttl_ns / WORLD_SECOND_NS : 0;
        break;
    case MESSAGE_STATUS: break;
    }
    reply->revision = model.revision;
}

/* The client is told. It does not wait any more. */
static void message_end(struct message *message, const struct etcd_reply *reply) {
    struct etcd_call *call = message->call;
    message->call = NULL;
    call->pending = NULL;
    call->done(call, reply);
}

static void message_fail(struct message *message, int status, bool maybe_done) {
    struct etcd_reply reply = {.status = status, .maybe_done = maybe_done};
    message_end(message, &reply);
}

enum { SEND_WELL, SEND_LOST, SEND_NOT, SEND_LATE, SEND_LATER, SEND_MUCH_LATER, SEND_WAYS, SEND_REFUSED = SEND_WAYS };

static void message_send(void *what, unsigned way) {
    struct message *message = what;
    static const int64_t late_ns[] = {0, WORLD_SECOND_NS / 2, 3 * WORLD_TTL_NS};
    if (way == SEND_WELL) {
        message_execute(message);
        return;
    }
    if (way == SEND_REFUSED) {
        message->used = false;
        message_fail(message, world_refusal, false);
        return;
    }
    message->not_before_ns = way >= SEND_LATE ? world_now_ns + late_ns[way - SEND_LATE] : 0;
    message->used = way >= SEND_LATE;
    message_fail(message, VIGIL_EUNREACHABLE, way != SEND_NOT);
}

static void message_late(void *what, unsigned way) {
    struct message *message = what;
    (void)way;
    message_execute(message);
    message->used = false;
}

enum { DELIVER_WELL, DELIVER_NOT, DELIVER_WAYS, DELIVER_REFUSED = DELIVER_WAYS }; /* no memory for the reply */

static void message_deliver(void *what, unsigned way) {
    struct message *message = what;
    struct message copy = *message; /* the client may send others meanwhile */
    message->used = false;
    if (way) {
        message_fail(&copy, way == DELIVER_REFUSED ? world_refusal : VIGIL_EUNREACHABLE, true);
        return;
    }
    for (unsigned i = 0; i < copy.reply.result_count; i++) {
        struct etcd_result *result = &copy.reply.results[i];
        if (result->pair_count) result->pairs = copy.pairs + (result->pairs - message->pairs);
    }
    for (unsigned i = 0; i < copy.pair_count; i++) {
        copy.pairs[i].key.data = copy.copies[i].key;
        copy.pairs[i].value.data = copy.copies[i].value;
    }
    message_end(&copy, &copy.reply);
}

static void message_time_out(void *what, unsigned way) {
    struct message *message = what;
    message->used = way == 1 && !message->executed;
    message->not_before_ns = world_now_ns;
    message_fail(message, VIGIL_TIMED_OUT, true);
}

static void message_collect(struct message *message, struct events *events) {
    struct process *process = message->process;
    struct event event = {.what = message, .process = process, .ways = 1, .number = message->number};
    if (!message->call) { /* late, or of a process that is dead */
        if (message->executed) {
            message->used = false;
            return;
        }
        events_at(events, message->not_before_ns);
        event.name = "late call";
        event.run = message_late;
        event.process = NULL;
        if (message->not_before_ns <= world_now_ns) events_add(events, event);
        return;
    }
    bool stuck = process_is_cut(process);
    event.name = message_names[message->kind];
    if (!message->executed && !stuck) {
        event.run = message_send;
        event.ways = process_runs(process) ? SEND_WAYS + (world_refusal != 0) : 1;
        if (event.ways == 1) event.process = NULL;
        events_add(events, event);
    } else if (message->executed && !stuck && process_runs(process)) {
        event.run = message_deliver;
        event.ways = DELIVER_WAYS + (world_refusal == VIGIL_ENOMEM);
        events_add(events, event);
    }
    events_at(events, message->deadline_ns);
    if (message->deadline_ns <= world_now_ns && process_runs(process)) {
        event.name = "deadline of a call";
        event.run = message_time_out;
        event.ways = message->executed ? 1 : 2;
        events_add(events, event);
    }
}

static struct etcd_bytes message_text(struct message *message, struct etcd_bytes bytes) {
    assert(bytes.length < MODEL_TEXT);
    char *text = message->texts[message->text_count++].bytes;
    if (bytes.length) memcpy(text, bytes.data, bytes.length);
    text[bytes.length] = 0;
    assert(strlen(text) == bytes.length);
    return (struct etcd_bytes){text, bytes.length};
}

static void message_operations(struct message *message, struct etcd_operation *operations, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        operations[i].key = message_text(message, operations[i].key);
        operations[i].range_end = message_text(message, operations[i].range_end);
        operations[i].value = message_text(message, operations[i].value);
    }
}

static struct message *message_new(struct etcd *etcd, struct etcd_call *call, enum message_kind kind,
                                   int64_t deadline_ns) {
    world_point();
    assert(!call->pending && world_running == etcd->process);
    unsigned i = 0;
    while (i < MODEL_MESSAGES && messages[i].used) i++;
    assert(i < MODEL_MESSAGES);
    struct message *message = &messages[i];
    message->used = true;
    message->number = ++model.next_number;
    message->kind = kind;
    message->process = etcd->process;
    message->call = call;
    message->executed = false;
    message->sent_ns = world_now_ns;
    message->deadline_ns = deadline_ns;
    message->not_before_ns = 0;
    message->txn = (struct etcd_txn){0};
    message->text_count = message->pair_count = 0;
    message->lease = message->ttl_s = 0;
    call->pending = message;
    call->sent_ns = world_now_ns;
    return message;
}

void etcd_txn(struct etcd *etcd, struct etcd_call *call, const struct etcd_txn *txn, int64_t deadline_ns) {
    struct message *message = message_new(etcd, call, MESSAGE_TXN, deadline_ns);
    assert(txn->compare_count <= ETCD_COMPARES);
    assert(txn->then_count <= ETCD_OPERATIONS && txn->otherwise_count <= ETCD_OPERATIONS);
    message->txn = *txn;
    for (unsigned i = 0; i < txn->compare_count; i++) {
        struct etcd_compare *compare = &message->txn.compares[i];
        compare->key = message_text(message, compare->key);
        compare->range_end = message_text(message, compare->range_end);
        compare->value = message_text(message, compare->value);
    }
    message_operations(message, message->txn.then, txn->then_count);
    message_operations(message, message->txn.otherwise, txn->otherwise_count);
    world_point();
}

void etcd_grant(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t ttl_s, int64_t deadline_ns) {
    struct message *message = message_new(etcd, call, MESSAGE_GRANT, deadline_ns);
    message->lease = lease;
    message->ttl_s = ttl_s;
    world_point();
}

void etcd_revoke(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t deadline_ns) {
    message_new(etcd, call, MESSAGE_REVOKE, deadline_ns)->lease = lease;
    world_point();
}

void etcd_renew(struct etcd *etcd, struct etcd_call *call, int64_t lease, int64_t deadline_ns) {
    message_new(etcd, call, MESSAGE_RENEW, deadline_ns)->lease = lease;
    world_point();
}

void etcd_status(struct etcd *etcd, struct etcd_call *call, int64_t deadline_ns) {
    message_new(etcd, call, MESSAGE_STATUS, deadline_ns);
    world_point();
}

/* A call that was sent is carried out, or is not: that is chosen where it is late. */
void etcd_cancel(struct etcd *etcd, struct etcd_call *call) {
    struct message *message = call->pending;
    if (!message) return;
    assert(message->process == etcd->process && message->call == call);
    message->call = NULL;
    call->pending = NULL;
    static const int64_t late_ns[] = {0, 0, WORLD_SECOND_NS / 2, 3 * WORLD_TTL_NS};
    unsigned way = message->executed || !world_faults ? 0 : world_choose(4, CHOOSE_LOSS);
    message->used = way != 1;
    message->not_before_ns = world_now_ns + late_ns[way];
}

/* ---- Watches ---- */

static void watch_end(struct watch *watch, enum etcd_news news, const struct news *about) {
    struct etcd_watch *owner = watch->watch;
    struct etcd_pair pair = {
        .key = {about->entry.key, strlen(about->entry.key)},
        .value = {about->entry.value, strlen(about->entry.value)},
        .create_revision = about->entry.created,
        .mod_revision = about->entry.modified,
        .lease = about->entry.lease,
    };
    if (news == ETCD_WATCH_LOST) {
        watch->used = false;
        owner->pending = NULL;
    }
    owner->told(owner, news, news == ETCD_WATCH_PUT || news == ETCD_WATCH_DELETED ? &pair : NULL, about->revision);
}

static void watch_create(void *what, unsigned way) {
    struct watch *watch = what;
    static const struct news nothing;
    if (way) {
        watch_end(watch, ETCD_WATCH_LOST, &nothing);
        return;
    }
    watch->created = true;
    watch->queue[watch->count++] = (struct news){.news = ETCD_WATCH_CREATED, .revision = model.revision};
}

static void watch_deliver(void *what, unsigned way) {
    struct watch *watch = what;
    struct news first = watch->queue[0];
    memmove(watch->queue, watch->queue + 1, --watch->count * sizeof *watch->queue);
    watch_end(watch, way ? ETCD_WATCH_LOST : first.news, &first);
}

void model_lose_watch(unsigned index) {
    for (unsigned i = 0; i < MODEL_WATCHES; i++) {
        if (!model.watches[i].used || index--) continue;
        model.watches[i].queue[0] = (struct news){.news = ETCD_WATCH_LOST};
        model.watches[i].count = 1;
        model.watches[i].created = true;
        return;
    }
}

unsigned model_watches(void) {
    unsigned count = 0;
    for (unsigned i = 0; i < MODEL_WATCHES; i++) count += model.watches[i].used;
    return count;
}

static void watch_collect(struct watch *watch, struct events *events) {
    if (!process_runs(watch->process) || process_is_cut(watch->process)) return;
    struct event event = {.what = watch, .process = watch->process, .ways = 2, .number = watch->number};
    event.name = watch->created ? "news" : "watch";
    event.run = watch->created ? watch_deliver : watch_create;
    if (!watch->created || watch->count) events_add(events, event);
}

void etcd_watch(struct etcd *etcd, struct etcd_watch *watch, struct etcd_bytes key, struct etcd_bytes range_end,
                bool deletions) {
    world_point();
    assert(!watch->pending && world_running == etcd->process);
    unsigned i = 0;
    while (i < MODEL_WATCHES && model.watches[i].used) i++;
    assert(i < MODEL_WATCHES);
    struct watch *new = &model.watches[i];
    *new = (struct watch){
        .used = true, .number = ++model.next_number, .process = etcd->process, .watch = watch, .deletions = deletions};
    snprintf(new->key, MODEL_TEXT, "%.*s", (int)key.length, (const char *)key.data);
    snprintf(new->end, MODEL_TEXT, "%.*s", (int)range_end.length, (const char *)range_end.data);
    watch->pending = new;
}

void etcd_unwatch(struct etcd *etcd, struct etcd_watch *watch) {
    (void)etcd;
    struct watch *old = watch->pending;
    if (!old) return;
    assert(old->used && old->watch == watch);
    old->used = false;
    watch->pending = NULL;
}

/* ---- Time ---- */

int64_t etcd_now_ns(struct etcd *etcd) {
    (void)etcd;
    world_pause();
    return world_now_ns;
}

static void timer_due(void *what, unsigned way) {
    struct timer *timer = what;
    struct etcd_timer *owner = timer->timer;
    (void)way;
    timer->used = false;
    owner->pending = NULL;
    owner->due(owner);
}

void etcd_timer(struct etcd *etcd, struct etcd_timer *timer, int64_t at_ns) {
    struct timer *set = timer->pending;
    if (!set && at_ns == ETCD_NEVER) return;
    if (!set) {
        unsigned i = 0;
        while (i < MODEL_TIMERS && model.timers[i].used) i++;
        assert(i < MODEL_TIMERS);
        set = &model.timers[i];
    }
    assert(!timer->pending || set->timer == timer);
    *set = (struct timer){.used = at_ns != ETCD_NEVER, .process = etcd->process, .timer = timer, .at_ns = at_ns};
    timer->pending = set->used ? set : NULL;
}

static void timer_collect(struct timer *timer, struct events *events) {
    events_at(events, timer->at_ns);
    struct event event = {.name = "timer", .run = timer_due, .what = timer, .process = timer->process, .ways = 1};
    if (timer->at_ns <= world_now_ns && process_runs(timer->process)) events_add(events, event);
}

bool model_has_due_timer(const struct process *process) {
    for (unsigned i = 0; i < MODEL_TIMERS; i++)
        if (model.timers[i].used && model.timers[i].process == process && model.timers[i].at_ns <= world_now_ns)
            return true;
    return false;
}

uint64_t etcd_random(struct etcd *etcd) {
    (void)etcd;
    return model_random();
}

/* ---- The connection ---- */

bool etcd_is_over(const struct etcd *etcd) {
    (void)etcd;
    return false;
}

const char *etcd_why(const struct etcd *etcd) {
    (void)etcd;
    return "";
}

int etcd_open(struct etcd **etcd, vigil_agent *agent, const char *at, const vigil_remote_options *options) {
    (void)at;
    (void)options;
    *etcd = malloc(sizeof **etcd);
    (*etcd)->process = (struct process *)agent;
    return VIGIL_OK;
}

void etcd_close(struct etcd *etcd) {
    for (unsigned i = 0; i < MODEL_MESSAGES; i++)
        assert(!messages[i].used || messages[i].process != etcd->process || !messages[i].call);
    free(etcd);
}

/* What it has sent is carried out, or not. */
void model_killed(struct process *process) {
    for (unsigned i = 0; i < MODEL_MESSAGES; i++) {
        struct message *message = &messages[i];
        if (!message->used || message->process != process || !message->call) continue;
        message->call = NULL;
        static const int64_t late_ns[] = {0, 0, WORLD_SECOND_NS / 2, 3 * WORLD_TTL_NS};
        unsigned way = message->executed ? 0 : world_choose(4, CHOOSE_LOSS);
        message->used = way != 1;
        message->not_before_ns = world_now_ns + late_ns[way];
    }
    for (unsigned i = 0; i < MODEL_WATCHES; i++)
        if (model.watches[i].process == process) model.watches[i].used = false;
    for (unsigned i = 0; i < MODEL_TIMERS; i++)
        if (model.timers[i].process == process) model.timers[i].used = false;
}

bool model_is_quiet(void) {
    for (unsigned i = 0; i < MODEL_MESSAGES; i++)
        if (messages[i].used) return false;
    return true;
}

void model_collect(struct events *events) {
    for (unsigned i = 0; i < MODEL_TIMERS; i++)
        if (model.timers[i].used) timer_collect(&model.timers[i], events);
    for (unsigned i = 0; i < model.lease_count; i++) {
        struct event event = {.name = "lease ends", .run = lease_expire, .what = &model.leases[i], .ways = 2};
        events_at(events, model.leases[i].ends_ns);
        if (model.leases[i].ends_ns <= world_now_ns) events_add(events, event);
    }
    for (unsigned i = 0; i < MODEL_MESSAGES; i++)
        if (messages[i].used) message_collect(&messages[i], events);
    for (unsigned i = 0; i < MODEL_WATCHES; i++)
        if (model.watches[i].used) watch_collect(&model.watches[i], events);
}
