/* SPDX-License-Identifier: MIT */
/* keeper.h - the library's own thread: see keeper.c. What the lot asks of it is in lot/shared.h. */
#ifndef VIGIL_KEEPER_H
#define VIGIL_KEEPER_H

/* In the child of a fork: it has none. */
void keeper_in_child(void);

#endif
