/* SPDX-License-Identifier: MIT */
/*
 * atomics.c - any sequence of calls on one buffer and some views of it, compared with an array of bytes and 64-bit
 * arithmetic. Every result is compared, and after each call every byte.
 */
#include <string.h>

#include "fuzz_prim.h"
#include "vigil/vigil.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_BYTES 64
#define VIEWS      4
#define OPS        8
#define UNTOUCHED  0x7E577E577E57

static const uint8_t *input, *input_end;

static struct {
    uint64_t length, max_length;
    uint8_t bytes[MOST_BYTES];
    struct {
        int type; /* 0: not set */
        uint64_t offset, length;
    } views[VIEWS];
    uint64_t waiting_at[OPS]; /* byte offset + 1; 0: idle */
} model;

static vigil_buffer *buffer;
static vigil_view views[VIEWS];
static vigil_agent *agent;
static vigil_op ops[OPS];

/* No thread sleeps here. */
void fuzz_others_act(void) {
}

void fuzz_rescue(void) {
    CHECK(false, "asleep");
}

static uint8_t byte(void) {
    return input < input_end ? *input++ : 0;
}

static int64_t some_value(void) {
    static const int64_t values[] = {0,         1,          -1,        127,       128,
                                     255,       256,        -129,      INT16_MIN, UINT16_MAX,
                                     INT32_MAX, UINT32_MAX, INT64_MIN, INT64_MAX, 0x0123456789ABCDEF,
                                     0x55AA};
    uint8_t choice = byte();
    return choice < 128 ? values[choice % 16] : (int64_t)choice * 0x0101010101;
}

static uint64_t some_length(void) {
    uint8_t choice = byte();
    return choice == 255 ? UINT64_MAX : choice == 254 ? UINT64_MAX / 4 : choice % (MOST_BYTES + 8);
}

/* Types by number: the odd ones are signed, and each pair is twice as wide as the pair before. */
static uint64_t size_of(int type) {
    return type >= 1 && type <= 8 ? UINT64_C(1) << (type - 1) / 2 : 0;
}

static uint64_t low_bits(int64_t value, int type) {
    uint64_t bits = 8 * size_of(type);
    return bits == 64 ? (uint64_t)value : (uint64_t)value & ((UINT64_C(1) << bits) - 1);
}

static int64_t extended(uint64_t value, int type) {
    uint64_t sign = UINT64_C(1) << (8 * size_of(type) - 1);
    return (int64_t)(type % 2 ? (value ^ sign) - sign : value);
}

static uint64_t elements(int v) {
    if (model.views[v].length != VIGIL_TO_END) return model.views[v].length;
    return (model.length - model.views[v].offset) / size_of(model.views[v].type);
}

/* In the byte order of the processors that we support. */
static uint64_t get(uint64_t at, int type) {
    uint64_t value = 0;
    for (uint64_t i = size_of(type); i-- > 0;) value = value << 8 | model.bytes[at + i];
    return value;
}

static void put(uint64_t at, int type, int64_t value) {
    for (uint64_t i = 0; i < size_of(type); i++) model.bytes[at + i] = (uint8_t)((uint64_t)value >> 8 * i);
}

static void check_answer(int64_t answer, int64_t expected) {
    CHECK(answer == expected, "returned %lld instead of %lld", (long long)answer, (long long)expected);
}

static void make_view(int v) {
    int type = byte() % 10;
    uint64_t offset = some_length(), length = byte() % 4 == 0 ? VIGIL_TO_END : some_length(), size = size_of(type);
    int expected = !size ? VIGIL_ETYPE : offset % size ? VIGIL_EMISALIGNED : VIGIL_OK;
    if (!expected && offset > model.length) expected = VIGIL_ERANGE;
    if (!expected && length != VIGIL_TO_END && length > (model.length - offset) / size) expected = VIGIL_ERANGE;
    check_answer(vigil_view_init(&views[v], buffer, (enum vigil_type)type, offset, length), expected);
    check_answer((int64_t)vigil_type_size((enum vigil_type)type), (int64_t)size);
    if (expected) return;
    model.views[v].type = type;
    model.views[v].offset = offset;
    model.views[v].length = length;
}

static void grow(void) {
    uint64_t length = some_length();
    int expected = length > model.max_length ? VIGIL_ERANGE : length < model.length ? VIGIL_EINVAL : VIGIL_OK;
    check_answer(vigil_buffer_grow(buffer, length), expected);
    if (expected == VIGIL_OK) model.length = length;
}

static int element_error(int v, uint64_t index) {
    return !model.views[v].type ? VIGIL_ETYPE : index >= elements(v) ? VIGIL_ERANGE : VIGIL_OK;
}

/* The offset of the element, and its value; zero if it may not be touched. */
static uint64_t place(int v, uint64_t index, int error) {
    return error ? 0 : model.views[v].offset + index * size_of(model.views[v].type);
}

static uint64_t value(int v, uint64_t index, int error) {
    return error ? 0 : get(place(v, index, error), model.views[v].type);
}

static void load(int v, uint64_t index) {
    int error = element_error(v, index);
    int64_t loaded = UNTOUCHED;
    check_answer(vigil_atomics_load(views[v], index, &loaded), error);
    check_answer(loaded, error ? UNTOUCHED : extended(value(v, index, error), model.views[v].type));
    check_answer(vigil_atomics_load(views[v], index, NULL), VIGIL_ENULL);
}

static void store(int v, uint64_t index) {
    int error = element_error(v, index);
    int64_t stored = some_value();
    check_answer(vigil_atomics_store(views[v], index, stored), error);
    if (!error) put(place(v, index, error), model.views[v].type, stored);
}

static uint64_t modified(uint64_t before, int operation, uint64_t operand) {
    switch (operation) {
    case 0: return before + operand;
    case 1: return before - operand;
    case 2: return before & operand;
    case 3: return before | operand;
    case 4: return before ^ operand;
    default: return operand;
    }
}

static void modify(int v, uint64_t index, int operation) {
    static int (*const functions[])(vigil_view, uint64_t, int64_t,
                                    int64_t *) = {vigil_atomics_add, vigil_atomics_sub, vigil_atomics_and,
                                                  vigil_atomics_or,  vigil_atomics_xor, vigil_atomics_exchange};
    int type = model.views[v].type, error = element_error(v, index);
    uint64_t before = value(v, index, error);
    int64_t operand = some_value(), old = UNTOUCHED;
    check_answer(functions[operation](views[v], index, operand, byte() % 4 ? &old : NULL), error);
    if (error) CHECK(old == UNTOUCHED, "an error touches the result");
    else put(place(v, index, error), type, (int64_t)modified(before, operation, (uint64_t)operand));
    CHECK(old == UNTOUCHED || old == extended(before, type), "the old value is wrong");
}

static void compare_exchange(int v, uint64_t index) {
    int type = model.views[v].type, error = element_error(v, index);
    uint64_t before = value(v, index, error);
    int64_t replacement = some_value(), compared = byte() % 2 ? extended(before, VIGIL_I64) : some_value();
    int64_t old = UNTOUCHED;
    bool equal = !error && low_bits(compared, type) == before;
    int expected = error ? error : equal ? VIGIL_OK : VIGIL_NOT_EQUAL;
    check_answer(vigil_atomics_compare_exchange(views[v], index, compared, replacement, &old), expected);
    check_answer(old, error ? UNTOUCHED : extended(before, type));
    if (equal) put(place(v, index, error), type, replacement);
}

/* Waiting: what the views check, and that both sides find the same line. */

static int64_t waiting(uint64_t from, uint64_t bytes) {
    int64_t count = 0;
    for (int i = 0; i < OPS; i++) count += model.waiting_at[i] > from && model.waiting_at[i] <= from + bytes;
    return count;
}

static void on_op(vigil_op *op, int status) {
    CHECK(status == VIGIL_OK || status == VIGIL_CANCELLED, "status %d", status);
    CHECK(!model.waiting_at[op - ops], "a callback before its time");
}

static int wait_error(int v, uint64_t index) {
    bool waitable = model.views[v].type == VIGIL_I32 || model.views[v].type == VIGIL_I64;
    return waitable ? element_error(v, index) : VIGIL_ETYPE;
}

static void wait_async(int v, uint64_t index, int op) {
    int type = model.views[v].type, error = wait_error(v, index);
    uint64_t now = value(v, index, error);
    int64_t compared = byte() % 2 ? (int64_t)now : some_value();
    if (!error && model.waiting_at[op]) error = VIGIL_EINUSE;
    int expected = error ? error : low_bits(compared, type) == now ? VIGIL_PENDING : VIGIL_NOT_EQUAL;
    check_answer(vigil_atomics_wait_async(agent, &ops[op], views[v], index, compared, VIGIL_FOREVER, on_op), expected);
    if (expected == VIGIL_PENDING) model.waiting_at[op] = place(v, index, error) + 1;
}

static void wait_not_at_all(int v, uint64_t index) {
    int expected = wait_error(v, index);
    if (!expected) expected = VIGIL_EMAYNOTBLOCK; /* as the agent's flag requires */
    check_answer(vigil_atomics_wait(views[v], index, 0, 1), expected);
}

static void notify(int v, uint64_t index) {
    int error = wait_error(v, index);
    uint64_t at = place(v, index, error);
    check_answer(vigil_atomics_notify(views[v], index, VIGIL_ALL), error ? error : waiting(at, 1));
    int64_t woken = 0;
    for (int i = 0; i < OPS && !error; i++) {
        if (model.waiting_at[i] != at + 1) continue;
        model.waiting_at[i] = 0;
        woken++;
    }
    check_answer(vigil_agent_dispatch(agent), woken);
}

static void check_everything(void) {
    check_answer((int64_t)vigil_buffer_length(buffer), (int64_t)model.length);
    check_answer((int64_t)vigil_buffer_max_length(buffer), (int64_t)model.max_length);
    CHECK(memcmp(vigil_buffer_data(buffer), model.bytes, model.max_length) == 0, "the memory differs");
    for (int v = 0; v < VIEWS; v++) {
        check_answer((int64_t)vigil_view_length(views[v]), model.views[v].type ? (int64_t)elements(v) : 0);
    }
}

static void act(void) {
    uint8_t action = byte(), which = byte();
    int v = which % VIEWS;
    uint64_t index = which == 255 ? UINT64_MAX : which == 254 ? UINT64_MAX / 2 + 1 : which / VIEWS % 24;
    switch (action % 16) {
    case 0:
    case 1: make_view(v); break;
    case 2: grow(); break;
    case 3: compare_exchange(v, index); break;
    case 4: wait_async(v, index, action / 16 % OPS); break;
    case 5: wait_not_at_all(v, index); break;
    case 6: notify(v, index); break;
    case 7: load(v, index); break;
    case 8:
    case 9: store(v, index); break;
    default: modify(v, index, action % 16 - 10); break;
    }
    check_everything();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input = data;
    input_end = data + size;
    memset(&model, 0, sizeof model);
    memset(views, 0, sizeof views);
    memset(ops, 0, sizeof ops);
    model.length = byte() % (MOST_BYTES + 1);
    model.max_length = model.length + byte() % (MOST_BYTES + 1 - model.length);
    check_answer(vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK), VIGIL_OK);
    check_answer(vigil_buffer_create(&buffer, model.length + 1, model.length), VIGIL_ERANGE);
    check_answer(vigil_buffer_create(&buffer, model.length, model.max_length), VIGIL_OK);

    while (input < input_end) act();

    int64_t left = waiting(0, MOST_BYTES);
    memset(model.waiting_at, 0, sizeof model.waiting_at);
    check_answer(vigil_buffer_destroy(buffer), left);
    check_answer(vigil_agent_dispatch(agent), left);
    check_answer(vigil_agent_destroy(agent), VIGIL_OK);
    return 0;
}
