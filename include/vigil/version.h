/* SPDX-License-Identifier: MIT */
/*
 * vigil/version.h - the version of the library.
 *
 * While the major number is 0, a new minor number may change the interface.
 */
#ifndef VIGIL_VERSION_H
#define VIGIL_VERSION_H

/* The build reads these. */
#define VIGIL_VERSION_MAJOR 0
#define VIGIL_VERSION_MINOR 1
#define VIGIL_VERSION_PATCH 0

#endif
