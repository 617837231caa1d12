/* SPDX-License-Identifier: MIT */
#include "seat.h"

#include <assert.h>

bool seat_push(struct lot *lot, struct seat *seat, uint32_t oldest, uint32_t newest) {
    struct slot *chain = &lot->slots[oldest];
    chain->tail = newest;
    uint32_t seen = prim_load_relaxed(&seat->mail), pushed;
    bool ring;
    do {
        ring = !(seen & (MAIL_AWAKE | MAIL_RUNG)) || BUG(double_ring);
        chain->prev = seen / MAIL_SLOT;
        pushed = oldest * MAIL_SLOT | (seen & MAIL_FLAGS) | (ring ? MAIL_RUNG : 0);
        if (BUG(lost_mail)) {
            prim_store_release(&seat->mail, pushed);
            break;
        }
    } while (!prim_cas_acq_rel(&seat->mail, &seen, pushed)); /* release: seat_collect reads the slots */
    return ring;
}

bool seat_wake(struct seat *seat) {
    uint32_t seen = prim_load_relaxed(&seat->mail);
    bool ring;
    do {
        ring = !(seen & (MAIL_AWAKE | MAIL_RUNG));
    } while (!prim_cas_acq_rel(&seat->mail, &seen, seen | MAIL_WOKEN | (ring ? MAIL_RUNG : 0)));
    return ring;
}

static void seat_take_ring(struct seat *seat) {
    if (BUG(bell_lost)) {
        prim_fetch_and_acq_rel(&seat->mail, ~MAIL_RUNG);
        prim_bell_take(&seat->bell);
    } else if (prim_bell_take(&seat->bell)) {
        prim_fetch_and_acq_rel(&seat->mail, ~MAIL_RUNG);
    }
}

void seat_attend(struct seat *seat) {
    uint32_t seen = prim_fetch_or_acq_rel(&seat->mail, MAIL_AWAKE);
    if (seen & MAIL_RUNG) seat_take_ring(seat);
}

bool seat_has_mail(struct seat *seat) {
    return prim_load_relaxed(&seat->mail) / MAIL_WOKEN != 0;
}

static bool seat_spun_for(void *seat) {
    return seat_has_mail(seat);
}

bool seat_spin(struct seat *seat) {
    return spin_until(seat_spun_for, seat, PRIM_SPIN_MOST);
}

uint32_t seat_collect(struct lot *lot, struct seat *seat, bool *woken) {
    uint32_t seen = prim_load_relaxed(&seat->mail);
    assert(seen & MAIL_AWAKE);
    if (seen / MAIL_WOKEN == 0) return 0;
    /* While AWAKE is set no other thread sets RUNG, and only this thread clears it: both flags still are as loaded. */
    seen = prim_exchange_acq_rel(&seat->mail, seen & (MAIL_AWAKE | MAIL_RUNG));
    *woken |= (seen & MAIL_WOKEN) && !(BUG(wake_collected) && seen / MAIL_SLOT);
    uint32_t chain = seen / MAIL_SLOT, first = 0;
    for (uint32_t older; chain; chain = older) {
        older = lot->slots[chain].prev;
        lot->slots[lot->slots[chain].tail].next = BUG(mail_not_reversed) ? older : first;
        if (!first || !BUG(mail_not_reversed)) first = chain;
    }
    return first;
}

bool seat_rest(struct seat *seat) {
    uint32_t rung = prim_load_relaxed(&seat->mail) & MAIL_RUNG;
    uint32_t no_mail = MAIL_AWAKE | rung;
    if (BUG(sleep_without_check)) {
        prim_fetch_and_acq_rel(&seat->mail, ~MAIL_AWAKE);
        return true;
    }
    return prim_cas_acq_rel(&seat->mail, &no_mail, rung);
}

void seat_rest_rung(struct seat *seat) {
    bool rung = prim_load_relaxed(&seat->mail) & MAIL_RUNG;
    if (!rung) prim_fetch_or_acq_rel(&seat->mail, MAIL_RUNG);
    prim_fetch_and_acq_rel(&seat->mail, ~MAIL_AWAKE);
    if (!rung) prim_bell_ring(&seat->bell);
}

void seat_await_ring(struct seat *seat) {
    unsigned sleeps = 0;
    while (prim_load_acquire(&seat->mail) & MAIL_RUNG) {
        if (BUG(ring_awaited_twice) && sleeps++ == 2) return;
        prim_bell_wait(&seat->bell, PRIM_NEVER);
        seat_take_ring(seat);
    }
}
