/* SPDX-License-Identifier: MIT */
#include "shm/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/word_lock.h"
#include "shm/events.h"
#include "lot/shared.h"
#include "prim_file.h"
#include "vigil/mutex.h"
#include "vigil/observe.h"
#include "vigil/segment.h"

#define DEFAULT_LENGTH  4096u
#define DEFAULT_WAITERS 1024u
#define DEFAULT_MEMBERS 64u
#define DEFAULT_MODE    0600u
#define NAME_MOST       200u
#define DOOR_NS         UINT64_C(1000000)

/* Held while anything is opened or closed, and by who forks: so that no child inherits what is in no table. */
static uint32_t gate PRIM_PROCESS;

/* The segments of this process: see segment.h. */

uint64_t segments_now PRIM_PROCESS;
uint32_t vigil_holder PRIM_PROCESS = 1;
int (*segment_leaving)(struct segment *) PRIM_PROCESS;

struct place {
    uintptr_t start, end; /* of the mapping */
    struct segment *segment;
};
static struct place tables[2][SEGMENTS_MOST] PRIM_PROCESS; /* by start */

static struct place *table_of(uint64_t now) {
    return tables[now / SEGMENTS_STEP % 2];
}

/* How many begin at or before the address. */
static uint32_t count_up_to(struct place *table, uint32_t count, uintptr_t address) {
    uint32_t low = 0;
    while (low < count) {
        uint32_t middle = low + (count - low) / 2;
        if (prim_load_acquire(&table[middle].start) <= address) low = middle + 1;
        else count = middle;
    }
    return low;
}

/*
 * The acquire of each field pairs with the release in put(): who sees something of a later change also sees, in its
 * second look at segments_now, the switch that preceded that change.
 */
struct segment *segment_find(uintptr_t address) {
    uint64_t now = prim_load_acquire(&segments_now), before;
    struct segment *found;
    do {
        before = now;
        struct place *table = table_of(before);
        uint32_t below = count_up_to(table, before & SEGMENTS_COUNT, address);
        bool inside = below > 0 && address < prim_load_acquire(&table[below - 1].end);
        found = inside ? prim_load_acquire(&table[below - 1].segment) : NULL;
        now = prim_load_acquire(&segments_now);
    } while (now != before);
    return found;
}

static void put(struct place *place, struct place value) {
    prim_store_release(&place->start, value.start);
    prim_store_release(&place->end, value.end);
    prim_store_release(&place->segment, value.segment);
}

static void switch_to(uint32_t count) {
    uint64_t changes = segments_now / SEGMENTS_STEP + 1;
    prim_store_release(&segments_now, changes * SEGMENTS_STEP + count);
}

static void table_add(struct segment *segment) {
    struct place *from = table_of(segments_now), *to = table_of(segments_now + SEGMENTS_STEP);
    uint32_t count = segments_now & SEGMENTS_COUNT;
    uintptr_t start = (uintptr_t)segment->base;
    uint32_t at = count_up_to(from, count, start);
    for (uint32_t i = 0; i < at; i++) put(&to[i], from[i]);
    put(&to[at], (struct place){start, start + segment->layout.end, segment});
    for (uint32_t i = at; i < count; i++) put(&to[i + 1], from[i]);
    switch_to(count + 1);
}

static void table_remove(struct segment *segment) {
    struct place *from = table_of(segments_now), *to = table_of(segments_now + SEGMENTS_STEP);
    uint32_t left = 0;
    for (uint32_t i = 0; i < (segments_now & SEGMENTS_COUNT); i++) {
        if (from[i].segment != segment) put(&to[left++], from[i]);
    }
    switch_to(left);
}

static struct segment *find_file(uint64_t device, uint64_t inode) {
    struct place *table = table_of(segments_now);
    for (uint32_t i = 0; i < (segments_now & SEGMENTS_COUNT); i++) {
        struct segment *segment = table[i].segment;
        if (segment->device == device && segment->inode == inode) return segment;
    }
    return NULL;
}

/* Fork. */

static void before_fork(void) {
    word_lock(&gate);
}

static void in_parent(void) {
    word_unlock(&gate, false);
}

/* The child is no member. What it does with its copy is refused, or, by an address it has kept, a fault. */
static void in_child(void) {
    struct place *table = table_of(segments_now);
    for (uint32_t i = 0; i < (segments_now & SEGMENTS_COUNT); i++) {
        struct segment *segment = table[i].segment;
        prim_file_close(segment->fd);
        prim_file_bar(segment->base, segment->layout.end);
        segment->fd = -1;
        segment->buffer.data = NULL;
        segment->buffer.length = &segment->buffer.own_length; /* zero */
    }
    switch_to(0);
    vigil_holder = 1;
    word_unlock(&gate, false);
}

/* The layout. */

static uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/* For limits that have been checked: nothing overflows. */
static struct segment_layout layout_of(uint32_t members, uint32_t waiters, uint64_t max_length) {
    struct segment_layout at = {.members_at = round_up(sizeof(struct segment_header), 64), .buckets = 2};
    while (at.buckets < waiters / 4) at.buckets *= 2;
    at.slots = (uint64_t)waiters + 1;

    at.buckets_at = at.members_at + sizeof(struct segment_member) * members;
    at.claims_at = round_up(at.buckets_at + SEGMENT_BUCKET_BYTES * at.buckets, 64);
    at.slots_at = round_up(at.claims_at + SEGMENT_CLAIM_BYTES * at.slots, 64);
    at.events_at = at.slots_at + SEGMENT_SLOT_BYTES * at.slots;
    at.user_at = round_up(at.events_at + sizeof(struct segment_event) * PRIM_EVENTS, SEGMENT_PAGE);
    at.end = at.user_at + max_length;
    return at;
}

_Static_assert(sizeof(struct segment_member) == 64, "records are of one cache line each");

/* FNV-1a. Against accidents, not against people. */
static uint64_t checksum_of(const struct segment_header *header) {
    const unsigned char *bytes = (const unsigned char *)header;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < offsetof(struct segment_header, checksum); i++) {
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return sum;
}

static void header_fill(struct segment_header *header, const vigil_segment_options *options) {
    memcpy(header->magic, SEGMENT_MAGIC, sizeof header->magic);
    header->byte_order = SEGMENT_BYTE_ORDER;
    header->word_bytes = sizeof(void *);
    header->version = SEGMENT_VERSION;
    header->members = options->members;
    header->waiters = options->waiters;
    header->first_length = header->length = options->length;
    header->max_length = options->max_length;
    strncpy(header->label, options->label, sizeof header->label - 1);
    header->layout = layout_of(options->members, options->waiters, options->max_length);
    header->checksum = checksum_of(header);
}

static bool label_good(const char *label) {
    size_t length = 0;
    while (length < SEGMENT_LABEL_BYTES && label[length] >= ' ' && label[length] <= '~') length++;
    return length < SEGMENT_LABEL_BYTES && !label[length];
}

static bool limits_good(uint32_t members, uint32_t waiters, uint64_t first_length, uint64_t max_length) {
    return members >= 1 && members <= SEGMENT_MEMBERS_MOST && waiters >= 1 && waiters <= SEGMENT_WAITERS_MOST &&
           first_length <= max_length && max_length <= SEGMENT_LENGTH_MOST;
}

/* `had`: so many bytes of it there were to read; the rest is zero. */
static int header_check(const struct segment_header *header, uint64_t had) {
    if (memcmp(header->magic, SEGMENT_MAGIC, sizeof header->magic) != 0) return VIGIL_EFOREIGN;
    if (had < offsetof(struct segment_header, members)) return VIGIL_ETRUNCATED;
    if (header->byte_order != SEGMENT_BYTE_ORDER || header->word_bytes != sizeof(void *)) return VIGIL_EMACHINE;
    if (header->version != SEGMENT_VERSION) return VIGIL_EVERSION;
    if (had < sizeof *header) return VIGIL_ETRUNCATED;
    if (header->checksum != checksum_of(header)) return VIGIL_ECORRUPT;
    bool good = limits_good(header->members, header->waiters, header->first_length, header->max_length) &&
                label_good(header->label);
    if (!good) return VIGIL_ECORRUPT;
    struct segment_layout right = layout_of(header->members, header->waiters, header->max_length);
    return memcmp(&header->layout, &right, sizeof right) == 0 ? VIGIL_OK : VIGIL_ECORRUPT;
}

/* Members. */

bool segment_member_alive(const struct segment *segment, uint32_t record) {
    if (record == segment->self) return true; /* the kernel tells us of others' locks only */
    if (!(prim_load_acquire(&segment_member(segment, record)->life) & SEGMENT_JOINED)) return false;
    return prim_file_test(segment->fd, SEGMENT_LOCKS_AT + record, 1) != PRIM_LOCK_FREE;
}

uint32_t segment_records(const struct segment *segment) {
    uint32_t used = prim_load_acquire(&segment_header(segment)->records);
    return used < segment->members ? used : segment->members;
}

struct segment_member *segment_find_member(const struct segment *segment, uint32_t number) {
    prim_fence_seq_cst(); /* pairs with that in sign_in */
    for (uint32_t i = 0, used = segment_records(segment); i < used; i++) {
        struct segment_member *record = segment_member(segment, i);
        bool joined = prim_load_acquire(&record->life) & SEGMENT_JOINED;
        if (joined && prim_load_acquire(&record->number) == number) return record;
    }
    return NULL;
}

static void tell(const struct segment *segment, vigil_event_type type, uint32_t number) {
    uint32_t ours = prim_load_relaxed(&vigil_holder) / SEGMENT_HOLDER;
    if (events_wanted(segment)) {
        event_write(segment, (struct segment_event){
                                 .type = (uint16_t)type,
                                 .number = number,
                                 .by = type == VIGIL_EVENT_DIED ? ours : 0,
                                 .pid = type == VIGIL_EVENT_JOINED ? prim_process_id() : 0,
                             });
    }
}

static void count_death(struct segment_member *record) {
    uint32_t seen = prim_load_relaxed(&record->deaths);
    while (!prim_cas_release(&record->deaths, &seen, seen + 1)) {
    }
}

static bool is_its_file(const struct segment *segment, int fd) {
    struct prim_file_look file;
    return prim_file_look(fd, &file) && file.device == segment->device && file.inode == segment->inode;
}

/* If it is dead: D1 and D2. */
static void strike_off(struct segment *segment, uint32_t i) {
    struct segment_member *record = segment_member(segment, i);
    uint32_t life = prim_load_acquire(&record->life), number = prim_load_relaxed(&record->number);
    if (BUG(stopped_is_dead) && i != segment->self) prim_store_seq_cst(&record->life, life & ~SEGMENT_JOINED);
    if (!(life & SEGMENT_JOINED) || segment_member_alive(segment, i)) return;
    if (!is_its_file(segment, segment->fd)) return; /* the user has closed it: it was another one's lock */
    count_death(record);                            /* D1 */
    if (BUG(struck_off_anyway)) prim_store_seq_cst(&record->life, life & ~SEGMENT_JOINED);
    else if (!prim_cas_seq_cst(&record->life, &life, life & ~SEGMENT_JOINED)) return; /* D2 */
    count_death(record);
    tell(segment, VIGIL_EVENT_DIED, number);
}

bool segment_lives(struct segment *segment, uint32_t number) {
    struct segment_member *record = segment_find_member(segment, number);
    if (!record) return false;
    strike_off(segment, (uint32_t)(record - segment_member(segment, 0)));
    return segment_find_member(segment, number);
}

/* How many have had the record and have it no longer. */
static uint32_t gone_before(uint32_t life) {
    return life / 2 - (life & SEGMENT_JOINED);
}

struct segment_census segment_census(struct segment *segment) {
    struct segment_census census = {0};
    for (uint32_t i = 0, used = segment_records(segment); i < used; i++) {
        struct segment_member *record = segment_member(segment, i);
        strike_off(segment, i);
        uint32_t life = prim_load_acquire(&record->life); /* and so the deaths before it */
        census.departures += gone_before(life);
        census.deaths += prim_load_relaxed(&record->deaths);
        census.members += life & SEGMENT_JOINED;
        census.watchers += (life & SEGMENT_JOINED) && prim_load_relaxed(&record->watching);
    }
    return census;
}

/* Joining. */

static bool lock_door(struct segment *segment) {
    uint32_t nothing = 0;
    enum prim_lock door;
    while ((door = prim_file_lock(segment->fd, SEGMENT_DOOR_AT)) == PRIM_LOCK_HELD) {
        prim_park(&nothing, 0, prim_now_ns() + DOOR_NS); /* until then, whoever is joining should have done so */
    }
    return door == PRIM_LOCK_FREE;
}

/* The kernel tells us of others' locks only. */
static bool alone(const struct segment *segment) {
    return prim_file_test(segment->fd, SEGMENT_LOCKS_AT, segment->members) == PRIM_LOCK_FREE;
}

/* Ours, or, if we are a member nowhere, a new one. False: somebody else has ours. */
static bool choose_number(struct segment *segment) {
    uint32_t mine = prim_load_relaxed(&vigil_holder) / SEGMENT_HOLDER;
    if (segments_now & SEGMENTS_COUNT) return !segment_find_member(segment, mine);
    do mine = prim_random() >> (32 - SEGMENT_NUMBER_BITS);
    while (!mine || segment_find_member(segment, mine));
    prim_store_relaxed(&vigil_holder, mine * SEGMENT_HOLDER + 1);
    return true;
}

/* Those that look taken are looked at only if there is no other, since that takes a call of the system for each. */
static int take_record(struct segment *segment, uint32_t ignored) {
    for (uint32_t i = 0; i < segment->members; i++) {
        if (prim_load_relaxed(&segment_member(segment, i)->life) & ignored) continue;
        enum prim_lock lock = prim_file_lock(segment->fd, SEGMENT_LOCKS_AT + i); /* J1 */
        if (lock == PRIM_LOCK_FAILED) return VIGIL_ESYSTEM;
        if (lock == PRIM_LOCK_HELD) continue;
        segment->self = i;
        return VIGIL_OK;
    }
    return VIGIL_ELIMIT;
}

static int take_any_record(struct segment *segment) {
    int status = take_record(segment, SEGMENT_JOINED);
    return status == VIGIL_ELIMIT ? take_record(segment, 0) : status;
}

void segment_use_record(struct segment *segment, uint32_t record) {
    uint32_t *records = &segment_header(segment)->records, seen = prim_load_relaxed(records);
    if (seen <= record && BUG(records_lowered)) prim_store_release(records, record + 1);
    while (seen <= record && !prim_cas_release(records, &seen, record + 1)) {
    }
}

static void sign_in(struct segment *segment) {
    struct segment_member *record = segment_member(segment, segment->self);
    /* Before J3: whoever looks for us, having seen our number, looks at our record too. */
    if (!BUG(record_overlooked)) segment_use_record(segment, segment->self);
    uint32_t number = vigil_holder / SEGMENT_HOLDER, life = prim_load_relaxed(&record->life);
    if (life & SEGMENT_JOINED) count_death(record); /* J2; who had it has not been struck off */
    record->pid = prim_process_id();
    prim_store_relaxed(&record->watching, 0);
    prim_process_name(record->name, sizeof record->name);
    prim_store_release(&record->number, number); /* who sees it has heard of whoever had the record before */
    prim_store_relaxed(&record->mail, (uint64_t)number << 32);
    prim_store_release(&record->life, (life | SEGMENT_JOINED) + 2); /* J3 */
    prim_fence_seq_cst(); /* whoever sees our number anywhere, and then looks, sees that we are a member */
    tell(segment, VIGIL_EVENT_JOINED, number);
}

/* Nobody else has it open: nothing is believed but the user's bytes. */
static void begin_anew(struct segment *segment) {
    struct segment_header *header = segment_header(segment);
    for (uint32_t i = 0, used = segment_records(segment); i < used; i++) { /* strike off who has died */
        uint32_t *life = &segment_member(segment, i)->life, seen = prim_load_relaxed(life);
        if (i != segment->self && (seen & SEGMENT_JOINED)) prim_store_seq_cst(life, seen & ~SEGMENT_JOINED);
    }
    prim_store_relaxed(&header->records, 0);
    prim_store_relaxed(&header->departures, UINT32_MAX); /* whatever they are, somebody will look */
    prim_store_relaxed(&header->deaths, UINT32_MAX);
    prim_store_relaxed(&header->look_due_ns, 0);
    prim_store_relaxed(&header->watchers, 0);
    if (prim_load_relaxed(&header->record_until_ns) > prim_now_ns() + EVENTS_RECORDED_NS) {
        prim_store_relaxed(&header->record_until_ns, 0);
    }
    lot_empty(segment);
}

static int join(struct segment *segment) {
    if (!lock_door(segment)) return VIGIL_ESYSTEM; /* J0 */
    int status = take_any_record(segment);
    if (status == VIGIL_OK && !choose_number(segment)) {
        prim_file_unlock(segment->fd, SEGMENT_LOCKS_AT + segment->self);
        status = VIGIL_ELIMIT;
    }
    if (status == VIGIL_OK) {
        if (alone(segment)) begin_anew(segment);
        sign_in(segment);
    }
    prim_file_unlock(segment->fd, SEGMENT_DOOR_AT); /* J4 */
    return status;
}

static void leave(struct segment *segment, bool leaves_something) {
    struct segment_member *record = segment_member(segment, segment->self);
    tell(segment, VIGIL_EVENT_LEFT, prim_load_relaxed(&record->number));
    if (leaves_something) count_death(record);
    prim_store_seq_cst(&record->life, prim_load_relaxed(&record->life) & ~SEGMENT_JOINED); /* L1 */
    if (leaves_something) count_death(record);                                             /* as after D2 */
    prim_file_unlock(segment->fd, SEGMENT_LOCKS_AT + segment->self);                       /* L2 */
}

/* Opening. All of this under the gate. */

static int trouble(void) {
    switch (errno) {
    case EBADF: return VIGIL_EINVAL;
    case EEXIST: return VIGIL_EEXISTS;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return VIGIL_ENOMEM;
    default: return VIGIL_ESYSTEM;
    }
}

static int trouble_with_name(void) {
    switch (errno) {
    case ENOENT: return VIGIL_ENOTFOUND;
    case EACCES:
    case EPERM: return VIGIL_EOWNER;
    case EISDIR: return VIGIL_EFOREIGN;
    default: return trouble();
    }
}

/* Who cannot open what is their own has taken the permission away: errno tells. */
static int trouble_opening(const struct prim_file_look *file) {
    bool denied = errno == EACCES || errno == EPERM;
    return denied && !file->owned ? VIGIL_EOWNER : trouble();
}

/* The segment keeps the descriptor, but does not close it. */
static int map(struct segment **made, int fd, const struct prim_file_look *file, const struct segment_header *header) {
    struct segment *segment = malloc(sizeof *segment);
    unsigned char *base = segment ? prim_file_map(fd, header->layout.end) : NULL;
    if (!base) {
        int status = trouble();
        free(segment);
        return status;
    }
    *segment = (struct segment){
        .base = base,
        .layout = header->layout,
        .device = file->device,
        .inode = file->inode,
        .fd = fd,
        .members = header->members,
        .opens = 1,
    };
    memcpy(segment->label, header->label, sizeof segment->label);
    segment->buffer = (vigil_buffer){
        .data = base + header->layout.user_at,
        .length = &segment_header(segment)->length,
        .max_length = header->max_length,
        .growable = header->first_length < header->max_length,
        .segment = segment,
    };
    *made = segment;
    return VIGIL_OK;
}

static void unmap(struct segment *segment) {
    prim_file_unmap(segment->base, segment->layout.end);
    free(segment);
}

/* Make a segment of a new and empty file. */
static int make(struct segment **made, int fd, const vigil_segment_options *options) {
    struct segment_header header;
    memset(&header, 0, sizeof header);
    header_fill(&header, options);

    struct prim_file_look file;
    bool good = prim_file_permit(fd, options->mode) && prim_file_extend(fd, header.layout.user_at + options->length) &&
                prim_file_look(fd, &file);
    int status = good ? map(made, fd, &file, &header) : trouble();
    if (status != VIGIL_OK) return status;
    memcpy((*made)->base, &header, sizeof header);
    status = join(*made);
    if (status != VIGIL_OK) unmap(*made);
    return status;
}

/*
 * Of all that is mapped, only the header is known to exist: now the rest. The length comes first, so that a file that
 * grows meanwhile is never found shorter than it says.
 */
static int length_check(const struct segment *segment, uint64_t first_length) {
    uint64_t length = prim_load_seq_cst(segment->buffer.length);
    if (length < first_length || length > segment->buffer.max_length) return VIGIL_ECORRUPT;
    struct prim_file_look file;
    if (!prim_file_look(segment->fd, &file)) return trouble();
    return file.bytes < segment->layout.user_at + length ? VIGIL_ETRUNCATED : VIGIL_OK;
}

/* Find a segment in a file that may contain anything. */
static int adopt(struct segment **made, int fd, const struct prim_file_look *file) {
    struct segment_header header;
    memset(&header, 0, sizeof header);
    int64_t had = prim_file_read(fd, &header, sizeof header);
    int status = had < 0 ? trouble() : header_check(&header, (uint64_t)had);
    if (status == VIGIL_OK) status = map(made, fd, file, &header);
    if (status != VIGIL_OK) return status;
    status = length_check(*made, header.first_length);
    if (status != VIGIL_OK) unmap(*made);
    return status;
}

static int adopt_and_join(struct segment **made, int fd, const struct prim_file_look *file) {
    int status = adopt(made, fd, file);
    if (status != VIGIL_OK) return status;
    status = join(*made);
    if (status != VIGIL_OK) unmap(*made);
    return status;
}

/* A file in a name's place is ours or nobody's business; one that we were given may be meant for us. */
static int examine(int fd, bool by_name, struct prim_file_look *file) {
    if (!prim_file_look(fd, file)) return trouble();
    if (!file->regular) return VIGIL_EFOREIGN;
    return file->owned || (!by_name && file->for_others) ? VIGIL_OK : VIGIL_EOWNER;
}

static bool table_full(void) {
    return (segments_now & SEGMENTS_COUNT) == SEGMENTS_MOST;
}

static int attach(struct segment **found, int fd, bool by_name) {
    struct prim_file_look file;
    int status = examine(fd, by_name, &file);
    if (status != VIGIL_OK) return status;
    *found = find_file(file.device, file.inode);
    if (*found) {
        (*found)->opens++;
        return VIGIL_OK;
    }
    if (table_full()) return VIGIL_ELIMIT;
    status = adopt_and_join(found, fd, &file);
    if (status == VIGIL_OK) table_add(*found);
    return status;
}

/* Examined twice: what is not a segment is not to be opened at all, and another thread may put something else there. */
static int open_behind(struct segment **found, int given, bool by_name) {
    struct prim_file_look file;
    int status = examine(given, by_name, &file);
    if (status != VIGIL_OK) return status;
    int fd = prim_file_reopen(given);
    if (fd < 0) return trouble_opening(&file);
    status = attach(found, fd, by_name);
    if (status != VIGIL_OK || (*found)->fd != fd) prim_file_close(fd);
    return status;
}

static void close_last(struct segment *segment, bool leaves_something) {
    int fd = segment->fd;
    if (fd >= 0) {
        table_remove(segment);
        leave(segment, leaves_something);
        bool member_elsewhere = segments_now & SEGMENTS_COUNT;
        if (!member_elsewhere) prim_store_relaxed(&vigil_holder, 1);
    }
    unmap(segment);
    if (fd >= 0) prim_file_close(fd);
}

/* One of the opens ends. */
static void let_go(struct segment *segment, bool leaves_something) {
    if (segment->opens == 1) close_last(segment, leaves_something);
    else segment->opens--;
}

static bool leads_to(const char *path, const struct segment *segment) {
    int fd = prim_file_find(path);
    bool leads = fd >= 0 && is_its_file(segment, fd);
    if (fd >= 0) prim_file_close(fd);
    return leads;
}

/* Between finding the name and joining, another process may have done U1 to U3: then we look again. */
static int open_named(struct segment **found, const char *path) {
    for (;;) {
        int fd = prim_file_find(path);
        if (fd < 0) return trouble_with_name();
        int status = open_behind(found, fd, true);
        prim_file_close(fd);
        if (status != VIGIL_OK || leads_to(path, *found) || BUG(nameless_joined)) return status;
        let_go(*found, false);
    }
}

static int create_named(struct segment **made, const char *path, const vigil_segment_options *options) {
    struct prim_draft draft;
    if (table_full()) return VIGIL_ELIMIT;
    if (!prim_draft_open(&draft)) return trouble();
    int status = make(made, draft.fd, options);
    if (status == VIGIL_OK && !prim_draft_link(&draft, path)) {
        status = trouble();
        unmap(*made);
    }
    prim_draft_end(&draft);
    if (status == VIGIL_OK) table_add(*made);
    else prim_file_close(draft.fd);
    return status;
}

static int create_anonymous(struct segment **made, const vigil_segment_options *options) {
    if (table_full()) return VIGIL_ELIMIT;
    int fd = prim_file_anonymous();
    if (fd < 0) return trouble();
    int status = make(made, fd, options);
    if (status == VIGIL_OK) {
        prim_file_seal(fd);
        table_add(*made);
    } else {
        prim_file_close(fd);
    }
    return status;
}

/* Who is overtaken between the two opens what the other one made; and so on, if that is unlinked at once. */
static int open_or_create(struct segment **found, const char *path, const vigil_segment_options *options) {
    int status;
    do {
        status = open_named(found, path);
        if (status == VIGIL_ENOTFOUND) status = create_named(found, path, options);
    } while (status == VIGIL_EEXISTS);
    return status;
}

/* The interface. */

static bool name_good(const char *name) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strspn(name, letters);
    return length >= 1 && length <= NAME_MOST && !name[length] && name[0] != '.';
}

static int path_of(char path[PRIM_PATH_BYTES], const char *name) {
    if (!name) return VIGIL_ENULL;
    if (!name_good(name)) return VIGIL_ENAME;
    prim_file_path(path, name);
    return VIGIL_OK;
}

static int complete(vigil_segment_options *all, const vigil_segment_options *given) {
    *all = given ? *given : (vigil_segment_options){0};
    if (!all->length) all->length = DEFAULT_LENGTH;
    if (!all->max_length) all->max_length = all->length;
    if (!all->waiters) all->waiters = DEFAULT_WAITERS;
    if (!all->members) all->members = DEFAULT_MEMBERS;
    if (!all->mode) all->mode = DEFAULT_MODE;
    if (!all->label) all->label = "";
    if ((all->mode & ~0666u) || (all->mode & 0600) != 0600) return VIGIL_EINVAL;
    if (!label_good(all->label)) return VIGIL_EINVAL;
    if (all->length <= all->max_length && all->max_length > SEGMENT_LENGTH_MOST) return VIGIL_ENOMEM;
    return limits_good(all->members, all->waiters, all->length, all->max_length) ? VIGIL_OK : VIGIL_ERANGE;
}

static bool enter(void) {
    static const struct prim_fork calls = {before_fork, in_parent, in_child};
    if (!prim_around_fork(&calls)) return false;
    word_lock(&gate);
    return true;
}

static int finish(vigil_buffer **buffer, struct segment *segment, int status) {
    if (status == VIGIL_OK && !lot_in(segment)) {
        let_go(segment, false);
        status = VIGIL_ENOMEM;
    }
    word_unlock(&gate, false);
    if (status == VIGIL_OK) *buffer = &segment->buffer;
    return status;
}

typedef int opener(struct segment **found, const char *path, const vigil_segment_options *options);

static int open_by_name(vigil_buffer **buffer, const char *name, const vigil_segment_options *options, opener *open) {
    char path[PRIM_PATH_BYTES];
    vigil_segment_options all;
    struct segment *segment = NULL;
    int status = buffer ? path_of(path, name) : VIGIL_ENULL;
    if (status == VIGIL_OK) status = complete(&all, options);
    if (status != VIGIL_OK) return status;
    if (!enter()) return VIGIL_ENOMEM;
    status = open(&segment, path, &all);
    return finish(buffer, segment, status);
}

int vigil_segment_create(vigil_buffer **buffer, const char *name, const vigil_segment_options *options) {
    return open_by_name(buffer, name, options, create_named);
}

static int open_existing(struct segment **found, const char *path, const vigil_segment_options *options) {
    (void)options;
    return open_named(found, path);
}

int vigil_segment_open(vigil_buffer **buffer, const char *name) {
    return open_by_name(buffer, name, NULL, open_existing);
}

int vigil_segment_open_or_create(vigil_buffer **buffer, const char *name, const vigil_segment_options *options) {
    return open_by_name(buffer, name, options, open_or_create);
}

int vigil_segment_unlink(const char *name) {
    char path[PRIM_PATH_BYTES];
    int status = path_of(path, name);
    if (status != VIGIL_OK) return status;
    return prim_file_unlink(path) ? VIGIL_OK : trouble_with_name();
}

/* U1 to U3, of a file that was found by that name; VIGIL_NOT_EQUAL: which leads elsewhere by now. */
static int unlink_unused(struct segment *segment, const char *path) {
    int status = VIGIL_EBUSY;
    if (!lock_door(segment)) return VIGIL_ESYSTEM; /* U1 */
    if (!leads_to(path, segment)) status = VIGIL_NOT_EQUAL;
    else if (!prim_file_locked(segment->fd)) status = prim_file_unlink(path) ? VIGIL_OK : trouble_with_name(); /* U2 */
    prim_file_unlock(segment->fd, SEGMENT_DOOR_AT);                                                            /* U3 */
    return status;
}

/* Under the gate, as whoever has a lock on the file: see in_child. */
int vigil_segment_unlink_unused(const char *name) {
    char path[PRIM_PATH_BYTES];
    struct segment *segment;
    int status = path_of(path, name);
    if (status != VIGIL_OK) return status;
    if (!enter()) return VIGIL_ENOMEM;
    do {
        status = segment_glimpse(&segment, name);
        if (status != VIGIL_OK) break;
        status = unlink_unused(segment, path);
        segment_forget(segment);
    } while (status == VIGIL_NOT_EQUAL);
    word_unlock(&gate, false);
    return status;
}

int vigil_segment_create_anonymous(vigil_buffer **buffer, const vigil_segment_options *options) {
    vigil_segment_options all;
    struct segment *segment = NULL;
    int status = buffer ? complete(&all, options) : VIGIL_ENULL;
    if (status != VIGIL_OK) return status;
    if (!enter()) return VIGIL_ENOMEM;
    status = create_anonymous(&segment, &all);
    return finish(buffer, segment, status);
}

int vigil_segment_fd(vigil_buffer *buffer) {
    if (!buffer) return VIGIL_ENULL;
    if (!buffer->segment) return VIGIL_EINVAL;
    if (!buffer->data) return VIGIL_EFORKED;
    int fd = prim_file_reopen(buffer->segment->fd);
    return fd < 0 ? VIGIL_ESYSTEM : fd;
}

int vigil_segment_open_fd(vigil_buffer **buffer, int fd) {
    struct segment *segment = NULL;
    if (!buffer) return VIGIL_ENULL;
    if (!enter()) return VIGIL_ENOMEM;
    int status = open_behind(&segment, fd, false);
    return finish(buffer, segment, status);
}

const char *vigil_segment_label(vigil_buffer *buffer) {
    return buffer && buffer->segment && buffer->data ? buffer->segment->label : "";
}

/* Anybody may have put a file there: what is no name is not passed on. */
struct listing {
    vigil_named *named;
    void *data;
    int64_t count;
};

static void list_if_good(const char *name, void *data) {
    struct listing *listing = data;
    if (!name_good(name)) return;
    listing->count++;
    listing->named(name, listing->data);
}

int64_t vigil_segment_list(vigil_named *named, void *data) {
    if (!named) return VIGIL_ENULL;
    struct listing listing = {named, data, 0};
    return prim_file_list(list_if_good, &listing) ? listing.count : VIGIL_ESYSTEM;
}

/* Observers. */

/* As open_behind, without becoming a member; so there is no need for the gate, unless a lock is taken there. */
int segment_glimpse_behind(struct segment **seen, int given, bool by_name) {
    struct prim_file_look file;
    int status = examine(given, by_name, &file);
    if (status != VIGIL_OK) return status;
    int fd = prim_file_reopen(given);
    if (fd < 0) return trouble_opening(&file);
    status = examine(fd, by_name, &file);
    if (status == VIGIL_OK) status = adopt(seen, fd, &file);
    if (status != VIGIL_OK) prim_file_close(fd);
    else (*seen)->self = UINT32_MAX; /* none of the records */
    return status;
}

int segment_glimpse(struct segment **seen, const char *name) {
    char path[PRIM_PATH_BYTES];
    int status = path_of(path, name);
    if (status != VIGIL_OK) return status;
    int fd = prim_file_find(path);
    if (fd < 0) return trouble_with_name();
    status = segment_glimpse_behind(seen, fd, true);
    prim_file_close(fd);
    return status;
}

void segment_forget(struct segment *segment) {
    prim_file_close(segment->fd);
    unmap(segment);
}

uint64_t segment_usable(const struct segment *segment) {
    struct prim_file_look file;
    if (!prim_file_look(segment->fd, &file) || file.bytes < segment->layout.user_at) return 0;
    uint64_t bytes = file.bytes - segment->layout.user_at;
    return bytes < segment->buffer.max_length ? bytes : segment->buffer.max_length;
}

bool segment_is_sound(const struct segment *segment) {
    struct segment_header header = *segment_header(segment);
    return header_check(&header, sizeof header) == VIGIL_OK && length_check(segment, header.first_length) == VIGIL_OK &&
           memcmp(&header.layout, &segment->layout, sizeof header.layout) == 0;
}

int64_t vigil_segment_mend(vigil_buffer *buffer) {
    if (!buffer) return VIGIL_ENULL;
    if (!buffer->segment) return VIGIL_EINVAL;
    return buffer->data ? lot_mend(lot_in(buffer->segment)) : VIGIL_EFORKED;
}

int segment_extend(struct segment *segment, uint64_t new_length) {
    return prim_file_extend(segment->fd, segment->layout.user_at + new_length) ? VIGIL_OK : trouble(); /* G1 */
}

int64_t segment_close(struct segment *segment) {
    word_lock(&gate);
    bool last = segment->opens == 1;
    int status = last && segment_leaving ? segment_leaving(segment) : VIGIL_OK;
    if (status >= 0) let_go(segment, status == VIGIL_OWNER_DIED);
    word_unlock(&gate, false);
    return status < 0 ? status : VIGIL_OK;
}
