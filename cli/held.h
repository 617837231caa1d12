/* SPDX-License-Identifier: MIT */
/*
 * held.h - which locks are held for this process, by vigil processes that wait for it to end. They say so in the
 * environment: VIGIL_LOCKS_HELD="deploy:4711 backup:4712s" are tokens of locks, and those processes; s: shared.
 */
#ifndef VIGIL_CLI_HELD_H
#define VIGIL_CLI_HELD_H

#include <stdbool.h>

/* How a lock is called in the variable: a path may contain anything, and several lead to the same file. */
#define HELD_TOKEN 256
void held_token_of(const char *name, char token[HELD_TOKEN]);

enum held_how { NOT_HELD, HELD_ALONE, HELD_SHARED };
enum held_how held_for_us(const char *token);

/* For the command: false if there is no memory. */
bool held_add(const char *token, bool shared);
bool held_say_owner_died(bool owner_died);

#endif
