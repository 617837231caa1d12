/* SPDX-License-Identifier: MIT */
/* no_watches.h - for implementations of prim.h whose bells cannot watch descriptors of others. Included by prim.c. */
#ifndef VIGIL_PRIM_NO_WATCHES_H
#define VIGIL_PRIM_NO_WATCHES_H

#include <errno.h>

#include "prim.h"

bool prim_bell_watch(struct prim_bell *bell, int fd, unsigned events, void *data, bool known) {
    (void)bell, (void)fd, (void)events, (void)data, (void)known;
    errno = ENOSYS;
    return false;
}

void prim_bell_unwatch(struct prim_bell *bell, int fd) {
    (void)bell, (void)fd;
}

unsigned prim_bell_ready(struct prim_bell *bell, struct prim_ready *ready, unsigned most) {
    (void)bell, (void)ready, (void)most;
    return 0;
}

#endif
