/* SPDX-License-Identifier: MIT */
/* See robust.h. */
#include "robust.h"

#include "mutex.h"
#include "shm/table.h"

static struct slot *robust_slot(uint32_t note) {
    return &lot_private()->slots[note];
}

static uint32_t *robust_word(const struct slot *slot) {
    return (uint32_t *)(uintptr_t)slot->op;
}

uint32_t robust_new(void) {
    struct lot *lot = lot_private();
    uint32_t note = lot ? slot_acquire(lot) : 0;
    if (!note || prim_keep_self(true)) return note;
    slot_release(lot, note); /* the library would not learn of the thread's end */
    return 0;
}

void robust_end(uint32_t note) {
    slot_release(lot_private(), note);
}

static void robust_unlink(struct prim_thread *thread, const struct slot *slot) {
    if (slot->prev) robust_slot(slot->prev)->next = slot->next;
    else thread->robust = slot->next;
    if (slot->next) robust_slot(slot->next)->prev = slot->prev;
}

static uint32_t robust_find(const struct prim_thread *thread, const void *word) {
    uint32_t note = thread->robust;
    while (note && robust_word(robust_slot(note)) != word) note = robust_slot(note)->next;
    return note;
}

bool robust_has(const struct prim_thread *thread, const void *word) {
    return robust_find(thread, word) != 0;
}

uint32_t robust_remove(const uint32_t *word) {
    struct prim_thread *self = prim_self();
    uint32_t note = robust_find(self, word);
    if (note) robust_unlink(self, robust_slot(note));
    return note;
}

/* If not, the process has left the segment since, and recovery has released the mutex. */
static bool robust_is_true(const struct slot *slot) {
    return (uint64_t)(uintptr_t)segment_of(robust_word(slot)) == slot->away_lot;
}

/* The newest first. In the child of a fork, mutexes in private memory stay locked, and any thread may unlock them. */
static void robust_on_end(struct prim_thread *thread, bool in_child) {
    while (thread->robust) {
        uint32_t note = thread->robust;
        const struct slot *slot = robust_slot(note);
        uint32_t *word = robust_word(slot);
        robust_unlink(thread, slot);
        if (in_child && !slot->away_lot) mutex_disown(word);
        else if (!in_child && robust_is_true(slot)) mutex_abandon(word);
        if (!in_child) robust_end(note); /* else all slots are about to be cleared */
    }
}

void robust_add(uint32_t note, uint32_t *word) {
    struct prim_thread *self = prim_self();
    struct slot *slot = robust_slot(note);
    uint32_t stale = robust_remove(word); /* the memory has been reused for another mutex */
    if (stale) robust_end(stale);
    slot_begin(slot, SLOT_HOLDS); /* with no key: in no line */
    slot->op = (uint64_t)(uintptr_t)word;
    slot->away_lot = (uint64_t)(uintptr_t)segment_of(word);
    slot->prev = 0;
    slot->next = self->robust;
    if (slot->next) robust_slot(slot->next)->prev = note;
    self->robust = note;
    self->robust_on_end = robust_on_end;
}
