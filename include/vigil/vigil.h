/* SPDX-License-Identifier: MIT */
/*
 * vigil/vigil.h - all of Vigil. Each header below also stands on its own.
 */
#ifndef VIGIL_VIGIL_H
#define VIGIL_VIGIL_H

#include "version.h"
#include "status.h"
#include "wait.h"
#include "thread.h"
#include "agent.h"
#include "memory.h"
#include "atomics.h"
#include "segment.h"
#include "observe.h"
#include "request.h"
#include "mutex.h"
#include "named.h"
#include "cond.h"
#include "barrier.h"
#include "once.h"
#include "sem.h"
#include "rwlock.h"
#include "debug.h"
#include "check.h"

#endif
