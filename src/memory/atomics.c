/* SPDX-License-Identifier: MIT */
#include "vigil/atomics.h"

#include "element.h"

static int atomics_find_element(vigil_view view, uint64_t index, void **address) {
    uint64_t size = element_size(view.type);
    if (size == 0) return VIGIL_ETYPE;
    unsigned char *data = view.buffer->data;
    if (data == NULL) return VIGIL_EFORKED;
    if (index >= element_count(view)) return VIGIL_ERANGE;
    *address = data + view.byte_offset + index * size; /* inside the buffer, so it cannot overflow */
    return VIGIL_OK;
}

static int atomics_find_waitable(vigil_view view, uint64_t index, void **address) {
    if (view.type != VIGIL_I32 && view.type != VIGIL_I64) return VIGIL_ETYPE;
    return atomics_find_element(view, index, address);
}

/*
 * Execute the statement with `element` as the C type of the view's elements. Conversions do the arithmetic of values:
 * to that type modulo 2^bits, and back to int64_t by sign or zero extension.
 *
 * The elements are the caller's words and of any size, so the compiler's atomics are used, as in the caller's own
 * code; those of prim.h are for the library's words of 4 and 8 bytes.
 */
#define CASE(enumerator, T, name, statement)                                                                           \
    case enumerator: {                                                                                                 \
        typedef T element;                                                                                             \
        statement;                                                                                                     \
        break;                                                                                                         \
    }
#define FOR_ITS_TYPE(view, statement)                                                                                  \
    switch ((view).type) { ELEMENT_TYPES(CASE, statement) }

int vigil_atomics_load(vigil_view view, uint64_t index, int64_t *value) {
    if (value == NULL) return VIGIL_ENULL;
    void *address;
    int status = atomics_find_element(view, index, &address);
    if (status != VIGIL_OK) return status;
    FOR_ITS_TYPE(view, *value = (int64_t)__atomic_load_n((element *)address, __ATOMIC_SEQ_CST))
    return VIGIL_OK;
}

int vigil_atomics_store(vigil_view view, uint64_t index, int64_t value) {
    void *address;
    int status = atomics_find_element(view, index, &address);
    if (status != VIGIL_OK) return status;
    FOR_ITS_TYPE(view, __atomic_store_n((element *)address, (element)value, __ATOMIC_SEQ_CST))
    return VIGIL_OK;
}

#define READ_MODIFY_WRITE(operation, builtin)                                                                          \
    int vigil_atomics_##operation(vigil_view view, uint64_t index, int64_t operand, int64_t *old) {                    \
        void *address;                                                                                                 \
        int status = atomics_find_element(view, index, &address);                                                      \
        if (status != VIGIL_OK) return status;                                                                         \
        int64_t found = 0;                                                                                             \
        FOR_ITS_TYPE(view, found = (int64_t)builtin((element *)address, (element)operand, __ATOMIC_SEQ_CST))           \
        if (old != NULL) *old = found;                                                                                 \
        return VIGIL_OK;                                                                                               \
    }
READ_MODIFY_WRITE(add, __atomic_fetch_add)
READ_MODIFY_WRITE(sub, __atomic_fetch_sub)
READ_MODIFY_WRITE(and, __atomic_fetch_and)
READ_MODIFY_WRITE(or, __atomic_fetch_or)
READ_MODIFY_WRITE(xor, __atomic_fetch_xor)
READ_MODIFY_WRITE(exchange, __atomic_exchange_n)

/* True: replaced. A failure is a sequentially consistent load too, as ECMA-262 requires. */
#define COMPARE_EXCHANGE(address, expected, replacement)                                                               \
    __atomic_compare_exchange_n(address, expected, replacement, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

int vigil_atomics_compare_exchange(vigil_view view, uint64_t index, int64_t expected, int64_t replacement,
                                   int64_t *old) {
    void *address;
    int status = atomics_find_element(view, index, &address);
    if (status != VIGIL_OK) return status;
    bool replaced = false;
    int64_t found = 0;
    FOR_ITS_TYPE(view, element seen = (element)expected;
                 replaced = COMPARE_EXCHANGE((element *)address, &seen, (element)replacement); found = (int64_t)seen)
    if (old != NULL) *old = found;
    return replaced ? VIGIL_OK : VIGIL_NOT_EQUAL;
}

bool vigil_atomics_is_lock_free(uint64_t size) {
    switch (size) {
    case 1: return __atomic_always_lock_free(1, NULL);
    case 2: return __atomic_always_lock_free(2, NULL);
    case 4: return __atomic_always_lock_free(4, NULL);
    case 8: return __atomic_always_lock_free(8, NULL);
    default: return false;
    }
}

void vigil_atomics_pause(void) {
    prim_pause();
}

int vigil_atomics_wait(vigil_view view, uint64_t index, int64_t expected, int64_t timeout_ns) {
    void *address;
    int status = atomics_find_waitable(view, index, &address);
    if (status != VIGIL_OK) return status;
    if (view.type == VIGIL_I32) return vigil_wait32(address, (uint32_t)expected, timeout_ns);
    return vigil_wait64(address, (uint64_t)expected, timeout_ns);
}

int vigil_atomics_wait_async(struct vigil_agent *agent, vigil_op *op, vigil_view view, uint64_t index, int64_t expected,
                             int64_t timeout_ns, vigil_callback *callback) {
    void *address;
    int status = atomics_find_waitable(view, index, &address);
    if (status != VIGIL_OK) return status;
    if (view.type == VIGIL_I32) {
        return vigil_wait32_async(agent, op, address, (uint32_t)expected, timeout_ns, callback);
    }
    return vigil_wait64_async(agent, op, address, (uint64_t)expected, timeout_ns, callback);
}

int64_t vigil_atomics_notify(vigil_view view, uint64_t index, int64_t count) {
    void *address;
    int status = atomics_find_waitable(view, index, &address);
    if (status != VIGIL_OK) return status;
    return vigil_notify(address, count);
}
