/* SPDX-License-Identifier: MIT */
/* See events.h. */
#include "events.h"

static void event_copy(struct segment_event *to, const struct segment_event *from) {
    to->at_ns = from->at_ns;
    to->key = from->key;
    to->number = from->number, to->by = from->by;
    to->thread_id = from->thread_id, to->pid = from->pid;
    to->count = from->count, to->slot = from->slot;
    to->status = from->status;
    to->type = from->type, to->kind = from->kind;
    to->shared = from->shared;
}

void event_write(const struct segment *segment, struct segment_event event) {
    struct segment_header *header = segment_header(segment);
    uint64_t until_ns = prim_load_relaxed(&header->record_until_ns);
    event.at_ns = prim_now_ns();
    if (event.at_ns > until_ns) {
        prim_cas_acq_rel(&header->record_until_ns, &until_ns, 0); /* expired: no writer need read the clock now */
        return;
    }
    uint64_t sequence = prim_fetch_add_acq_rel(&header->events, 1); /* E1 */
    struct segment_event *entry = segment_event(segment, sequence);
    prim_store_relaxed(&entry->sequence, 0); /* E2 */
    prim_fence_seq_cst();
    if (BUG(event_early)) prim_store_release(&entry->sequence, sequence + 1);
    event_copy(entry, &event);                  /* E3 */
    prim_store_release(&entry->sequence, sequence + 1); /* E4 */
}

bool event_read(const struct segment *segment, uint64_t sequence, struct segment_event *event) {
    struct segment_event *entry = segment_event(segment, sequence);
    if (prim_load_acquire(&entry->sequence) != sequence + 1) return false;
    event_copy(event, entry);
    prim_fence_seq_cst();
    return prim_load_relaxed(&entry->sequence) == sequence + 1;
}
