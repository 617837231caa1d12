/* SPDX-License-Identifier: MIT */
/* See critical.h. */
#include "critical.h"

#include "vigil/status.h"

struct deferral {
    uint32_t taken; /* atomic, for all threads; the rest is for the thread that has taken it, and its handlers */
    uint32_t next;  /* in that thread's list: counted from 1, 0 is none */
    critical_work *work;
    const volatile void *address;
    int64_t count;
};

static struct deferral pool[PRIM_DEFERRALS] PRIM_PROCESS;

static struct deferral *critical_deferral_at(uint32_t number) {
    return &pool[number - 1];
}

/* Each thread starts its search at a different index. */
static uint32_t critical_take_from_pool(void) {
    uint32_t first = prim_thread_id();
    for (uint32_t tried = 0; tried < PRIM_DEFERRALS; tried++) {
        uint32_t number = 1 + (first + tried) % PRIM_DEFERRALS, free = 0;
        if (prim_load_relaxed(&critical_deferral_at(number)->taken)) continue;
        if (prim_cas_acquire(&critical_deferral_at(number)->taken, &free, 1)) return number;
    }
    return 0;
}

static void critical_add(int64_t *count, int64_t more) {
    int64_t seen = prim_own_load(count);
    if (BUG(deferred_overwritten)) {
        prim_own_store(count, seen + more);
        return;
    }
    while (!prim_own_cas(count, &seen, more > INT64_MAX - seen ? INT64_MAX : seen + more)) continue;
}

int critical_defer(critical_work *work, const volatile void *address, int64_t count) {
    struct prim_thread *self = prim_self();
    uint32_t head = prim_own_load(&self->deferred);
    for (uint32_t at = head; at; at = critical_deferral_at(at)->next) {
        struct deferral *same = critical_deferral_at(at);
        if (same->work != work || same->address != address) continue;
        critical_add(&same->count, count);
        return VIGIL_OK;
    }
    uint32_t number = critical_take_from_pool();
    if (!number) return VIGIL_ELIMIT;
    struct deferral *deferral = critical_deferral_at(number);
    deferral->work = work;
    deferral->address = address;
    deferral->count = count;
    do {
        deferral->next = head;
    } while (!prim_own_cas(&self->deferred, &head, number)); /* H2 */
    return VIGIL_OK;
}

/* The whole list, at depth zero. A handler that interrupts this may carry out all of it itself: hence the CAS. */
static uint32_t critical_take_list(struct prim_thread *self) {
    uint32_t head = prim_own_load(&self->deferred);
    while (head && !prim_own_cas(&self->deferred, &head, 0)) continue;
    return head;
}

static void critical_carry_out(uint32_t number) {
    while (number) {
        struct deferral *deferral = critical_deferral_at(number), done = *deferral;
        prim_store_release(&deferral->taken, 0);
        if (!BUG(deferred_forgotten)) done.work(done.address, done.count);
        number = done.next;
    }
}

/* In a critical section meanwhile, so that work deferred in between is done by this loop and not by nested calls. */
void critical_settle(struct prim_thread *self) {
    do {
        uint32_t list = critical_take_list(self), outside = prim_own_load(&self->may_not_block);
        prim_own_store(&self->may_not_block, outside + 1);
        critical_carry_out(list);
        prim_own_store(&self->may_not_block, outside);
    } while (prim_own_load(&self->deferred));
}

void critical_settle_meanwhile(void) {
    struct prim_thread *self = prim_self();
    if ((prim_own_load(&self->may_not_block) & CRITICAL_DEPTH) != 1 || !prim_own_load(&self->deferred)) return;
    critical_leave();
    critical_enter();
}

void critical_in_child(struct prim_thread *self) {
    if (self->deferred) return; /* a handler of this thread has forked: the thread will carry them out itself */
    for (uint32_t i = 0; i < PRIM_DEFERRALS; i++) pool[i].taken = 0;
}
