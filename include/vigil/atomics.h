/* SPDX-License-Identifier: MIT */
/*
 * vigil/atomics.h - checked atomic operations on the elements of a view: JavaScript's Atomics.
 *
 *     int64_t old;
 *     vigil_atomics_add(view, 0, 1, &old);                     `old` becomes the previous value
 *     vigil_atomics_notify(view, 0, VIGIL_ALL);
 *
 * For all of them:
 *
 * - The type is checked first, then the index: VIGIL_ETYPE for a view without a type, or of a type that the operation
 *   is not for; VIGIL_EFORKED for a segment, in the child of a fork; VIGIL_ERANGE for an index that is not below the
 *   current length of the view. After an error neither the memory nor the result has been changed.
 * - Values are int64_t for every type. Arguments are taken modulo 2^bits of the element. Results are the value of the
 *   element: 255 stored in VIGIL_I8 reads -1, and in VIGIL_U8 255. Values of VIGIL_U64 are passed as their bit
 *   pattern: cast them to uint64_t.
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

/* VIGIL_ENULL if `value` is null; this is checked first. */
VIGIL_API int vigil_atomics_load(vigil_view view, uint64_t index, int64_t *value);

/* Does not wake waiters: see vigil_atomics_notify. */
VIGIL_API int vigil_atomics_store(vigil_view view, uint64_t index, int64_t value);

/* Replace the element by its sum, difference, ... with `operand`, or by `operand` itself. `old` may be null. */
VIGIL_API int vigil_atomics_add(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_sub(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_and(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_or(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_xor(vigil_view view, uint64_t index, int64_t operand, int64_t *old);
VIGIL_API int vigil_atomics_exchange(vigil_view view, uint64_t index, int64_t operand, int64_t *old);

/*
 * Stores `replacement` if the element equals `expected` (also modulo 2^bits): VIGIL_OK. Otherwise VIGIL_NOT_EQUAL,
 * and the element is unchanged. In both cases `old`, which may be null, becomes the value that was found.
 */
VIGIL_API int vigil_atomics_compare_exchange(vigil_view view, uint64_t index, int64_t expected, int64_t replacement,
                                             int64_t *old);

/* Whether operations on elements of `size` bytes are lock-free: true for 4, false for a size that no element has. */
VIGIL_API bool vigil_atomics_is_lock_free(uint64_t size);

/* For loops that spin until another thread writes: a hint to the processor, without other effects. */
VIGIL_API void vigil_atomics_pause(void);

/*
 * Wait and notify, for VIGIL_I32 and VIGIL_I64 only. After the checks of the view they are the calls of vigil/wait.h
 * on the address of the element, with the same results and errors: both kinds of waiters stand in one line. The
 * agent, the operation and the callback are as in vigil_wait32_async.
 */
VIGIL_API int vigil_atomics_wait(vigil_view view, uint64_t index, int64_t expected, int64_t timeout_ns);
VIGIL_API int vigil_atomics_wait_async(struct vigil_agent *agent, vigil_op *op, vigil_view view, uint64_t index,
                                       int64_t expected, int64_t timeout_ns, vigil_callback *callback);
VIGIL_API int64_t vigil_atomics_notify(vigil_view view, uint64_t index, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
