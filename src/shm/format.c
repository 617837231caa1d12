/* SPDX-License-Identifier: MIT */
#include "format.h"

#include <string.h>

#include "events.h"
#include "prim_file.h"
#include "segment.h"

static uint64_t format_round_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/* The limits have been checked, so nothing overflows. */
static struct segment_layout format_layout(uint32_t members, uint32_t waiters, uint32_t buckets, uint64_t max_length) {
    struct segment_layout at = {.buckets_at = format_round_up(sizeof(struct segment_header), 64), .buckets = buckets};
    at.members = members;
    at.slots = (uint64_t)waiters + 1;

    at.members_at = format_round_up(at.buckets_at + SEGMENT_BUCKET_BYTES * at.buckets, 64);
    at.claims_at = format_round_up(at.members_at + sizeof(struct segment_member) * members, SEGMENT_BACKED);
    at.slots_at = format_round_up(at.claims_at + SEGMENT_CLAIM_BYTES * at.slots, SEGMENT_BACKED);
    at.events_at = at.slots_at + SEGMENT_SLOT_BYTES * at.slots;
    at.user_at = format_round_up(at.events_at + sizeof(struct segment_event) * PRIM_EVENTS, SEGMENT_PAGE);
    at.end = at.user_at + max_length;
    return at;
}

_Static_assert(sizeof(struct segment_member) == 64, "rows are of one cache line each");

/* FNV-1a: against accidents, not against attackers. */
static uint64_t format_checksum(const struct segment_header *header) {
    const unsigned char *bytes = (const unsigned char *)header;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < offsetof(struct segment_header, checksum); i++) {
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return sum;
}

uint32_t format_buckets(uint32_t waiters) {
    uint32_t buckets = 2;
    while (buckets < waiters / 4) buckets *= 2;
    return buckets;
}

void format_fill_header(struct segment_header *header, const vigil_segment_options *options, uint32_t buckets) {
    memcpy(header->magic, SEGMENT_MAGIC, sizeof header->magic);
    header->byte_order = SEGMENT_BYTE_ORDER;
    header->word_bytes = sizeof(void *);
    header->version = SEGMENT_VERSION;
    header->members = options->members;
    header->waiters = options->waiters;
    header->buckets = buckets;
    header->first_length = header->length = options->length;
    header->max_length = options->max_length;
    strncpy(header->label, options->label, sizeof header->label - 1);
    header->layout = format_layout(options->members, options->waiters, buckets, options->max_length);
    header->checksum = format_checksum(header);
}

bool format_label_good(const char *label) {
    size_t length = 0;
    while (length < SEGMENT_LABEL_BYTES && label[length] >= ' ' && label[length] <= '~') length++;
    return length < SEGMENT_LABEL_BYTES && !label[length];
}

bool format_limits_good(uint32_t members, uint32_t waiters, uint64_t first_length, uint64_t max_length) {
    return members >= 1 && members <= SEGMENT_MEMBERS_MOST && waiters >= 1 && waiters <= SEGMENT_WAITERS_MOST &&
           first_length <= max_length && max_length <= SEGMENT_LENGTH_MOST;
}

int format_check_header(const struct segment_header *header, uint64_t had) {
    if (memcmp(header->magic, SEGMENT_MAGIC, sizeof header->magic) != 0) return VIGIL_EFOREIGN;
    if (had < offsetof(struct segment_header, members)) return VIGIL_ETRUNCATED;
    if (header->byte_order != SEGMENT_BYTE_ORDER || header->word_bytes != sizeof(void *)) return VIGIL_EMACHINE;
    if (header->version != SEGMENT_VERSION) return VIGIL_EVERSION;
    if (had < sizeof *header) return VIGIL_ETRUNCATED;
    if (header->checksum != format_checksum(header)) return VIGIL_ECORRUPT;
    bool good = format_limits_good(header->members, header->waiters, header->first_length, header->max_length) &&
                format_label_good(header->label);
    uint32_t buckets = header->buckets;
    good &= !header->unused && buckets >= 2 && buckets <= SEGMENT_WAITERS_MOST && !(buckets & (buckets - 1));
    if (!good) return VIGIL_ECORRUPT;
    struct segment_layout right = format_layout(header->members, header->waiters, buckets, header->max_length);
    return memcmp(&header->layout, &right, sizeof right) == 0 ? VIGIL_OK : VIGIL_ECORRUPT;
}

bool segment_is_file(const struct segment *segment, int fd) {
    struct prim_file_stat file;
    return prim_file_stat(fd, &file) && file.device == segment->device && file.inode == segment->inode;
}

uint64_t segment_usable(const struct segment *segment) {
    struct prim_file_stat file;
    if (!prim_file_stat(segment->fd, &file) || file.bytes < segment->layout.user_at) return 0;
    uint64_t bytes = file.bytes - segment->layout.user_at;
    return bytes < segment->buffer.max_length ? bytes : segment->buffer.max_length;
}
