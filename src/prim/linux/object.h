/* SPDX-License-Identifier: MIT */
#ifndef VIGIL_PRIM_OBJECT_H
#define VIGIL_PRIM_OBJECT_H

#include "prim.h"

/*
 * Keep the shared object that contains this copy of the library loaded until the process ends: threads that end, and
 * children of forks, call it.
 */
void object_pin(void);

#endif
