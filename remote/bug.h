/* SPDX-License-Identifier: MIT */
/* bug.h - where a planted bug is made: see test/remote/planted.h. In the library BUG is 0. */
#ifndef VIGIL_REMOTE_BUG_H
#define VIGIL_REMOTE_BUG_H

#ifdef VIGIL_REMOTE_BUGS
#include VIGIL_REMOTE_BUGS
#else
#define BUG(name) 0
#endif

#endif
