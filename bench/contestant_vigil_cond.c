/* SPDX-License-Identifier: MIT */
/* Our condition, on our mutex. */
#include "bench.h"

#include <vigil/cond.h>

static struct {
    _Alignas(128) vigil_mutex mutex;
    _Alignas(128) vigil_cond cond;
} shared;

static void lock(void) {
    must(vigil_mutex_lock(&shared.mutex) == VIGIL_OK);
}

static void unlock(void) {
    must(vigil_mutex_unlock(&shared.mutex) == VIGIL_OK);
}

static void wait(void) {
    must(vigil_cond_wait(&shared.cond, &shared.mutex) == VIGIL_OK);
}

static void broadcast(void) {
    must(vigil_cond_broadcast(&shared.cond) >= 0);
}

static void cond_broadcast(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_broadcast_us((struct monitor){{lock, unlock}, wait, broadcast}, (unsigned)job->n);
}

const struct skill our_cond[] = {
    {"cond_broadcast", cond_broadcast, false},
    {0},
};
