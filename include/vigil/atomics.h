/* SPDX-License-Identifier: MIT */
/*
 * vigil/atomics.h - checked atomic operations on the elements of a view: JavaScript's Atomics.
 *
 *     int64_t old;
 *     vigil_atomics_add(view, 0, 1, &old);                     what was there comes back in `old`
 *     vigil_atomics_notify(view, 0, VIGIL_ALL);
 *
 * What holds for all of them:
 *
 * - The type is checked first, then the index: VIGIL_ETYPE for a view of no type, or of one that the operation is not
 *   for; VIGIL_ERANGE for an index that is not below the view's length now. An error touches nothing, neither
 *   the memory nor where the result would go.
 * - Values are int64_t for every type. On the way in they are taken modulo 2^bits of the element; on the way out
 *   they are the element's value, so 255 stored in VIGIL_I8 reads -1 and in VIGIL_U8 255. VIGIL_U64 comes and goes
 *   as its bit pattern: cast it to uint64_t.
 * - They are sequentially consistent.
 */
#ifndef VIGIL_ATOMICS_H
#define VIGIL_ATOMICS_H

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "status.h"
#include "wait.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Also VIGIL_ENULL, before all else, when there is nowhere to put the value. */
VIGIL_API int vigil_atomics_load(vigil_view view, uint64_t index, int64_t *value);

/* Wakes nobody: see vigil_atomics_notify. */
VIGIL_API int vigil_atomics_store(vigil_view view, uint64_t index, int64_t value);

/* Replace the element by: its sum, difference, ... with `operand`; or `operand` itself. `old` may be null. */
VIGIL_API int vigil_atomics_add(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_sub(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_and(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_or(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_xor(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_exchange(vigil_view view, uint64_t index, int64_t operand, int64_t *old);

/*
 * Put `replacement` there if the element equals `expected` (modulo 2^bits too): VIGIL_OK. Otherwise VIGIL_NOT_EQUAL,
 * and it stays. Either way `old`, which may be null, is what was found.
 */
VIGIL_API int vigil_atomics_compare_exchange(vigil_view view, uint64_t index, int64_t expected, int64_t replacement,
                                             int64_t *old);

/* Whether elements of `size` bytes are operated on without a lock: true for 4, false for what is no element's size. */
VIGIL_API bool vigil_atomics_is_lock_free(uint64_t size);

/* One turn of a loop that spins until another thread writes: tells the processor, and does nothing else. */
VIGIL_API void vigil_atomics_pause(void);

/*
 * Waiting and notifying, for VIGIL_I32 and VIGIL_I64 only. After the view's own checks they are the calls of
 * vigil/wait.h on the element's address, answers, errors and all: who waits here and who waits there stand in one line.
 * The agent, the operation and the callback are as in vigil_wait32_async.
 */
VIGIL_API int vigil_atomics_wait(vigil_view view, uint64_t index, int64_t expected, int64_t timeout_ns);
VIGIL_API int vigil_atomics_wait_async(struct vigil_agent *agent, vigil_op *op, vigil_view view, uint64_t index,
                                       int64_t expected, int64_t timeout_ns, vigil_callback *callback);
VIGIL_API int64_t vigil_atomics_notify(vigil_view view, uint64_t index, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
