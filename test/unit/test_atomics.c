/* SPDX-License-Identifier: MIT */
/* The checked atomics: values of every type, every refusal, and waiting through a view. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "vigil/agent.h"
#include "vigil/atomics.h"
#include "vigil/memory.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static const struct element {
    enum vigil_type type;
    unsigned bits;
    bool is_signed;
} elements[] = {
    {VIGIL_I8, 8, true},   {VIGIL_U8, 8, false},   {VIGIL_I16, 16, true}, {VIGIL_U16, 16, false},
    {VIGIL_I32, 32, true}, {VIGIL_U32, 32, false}, {VIGIL_I64, 64, true}, {VIGIL_U64, 64, false},
};

/* Around each power of two that matters to some type, and patterns without symmetry. */
static const int64_t values[] = {
    0, 1, 2, 0x7e, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff,
    0x100000000, INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, -1, -2, -0x7f, -0x80, -0x81, -0x8000, -0x8001,
    -0x80000000LL, -0x80000001LL, 0x123456789abcdef0, -0x0fedcba987654321,
};

typedef int read_modify_write(vigil_view view, uint64_t index, int64_t operand, int64_t *old);

static const struct operation {
    read_modify_write *run;
    char sign;
} operations[] = {
    {vigil_atomics_add, '+'}, {vigil_atomics_sub, '-'}, {vigil_atomics_and, '&'},
    {vigil_atomics_or, '|'},  {vigil_atomics_xor, '^'}, {vigil_atomics_exchange, '='},
};

static vigil_buffer *buffer;

static int set_up(void **state) {
    (void)state;
    return vigil_buffer_create(&buffer, 64, 64);
}

static int tear_down(void **state) {
    (void)state;
    return vigil_buffer_destroy(buffer) == 0 ? 0 : -1;
}

static vigil_view view_of(enum vigil_type type) {
    vigil_view view;
    assert_int_equal(vigil_view_init(&view, buffer, type, 0, VIGIL_TO_END), VIGIL_OK);
    return view;
}

static int64_t load(vigil_view view, uint64_t index) {
    int64_t value;
    assert_int_equal(vigil_atomics_load(view, index, &value), VIGIL_OK);
    return value;
}

static void store(vigil_view view, uint64_t index, int64_t value) {
    assert_int_equal(vigil_atomics_store(view, index, value), VIGIL_OK);
}

/* The reference: 64-bit arithmetic, truncated to the element's width and extended again. */
static int64_t as_element(struct element element, uint64_t bits) {
    uint64_t mask = UINT64_MAX >> (64 - element.bits);
    bits &= mask;
    if (element.is_signed && bits >> (element.bits - 1) != 0) bits |= ~mask;
    return (int64_t)bits;
}

static uint64_t calculate(char sign, uint64_t left, uint64_t right) {
    switch (sign) {
        case '+': return left + right;
        case '-': return left - right;
        case '&': return left & right;
        case '|': return left | right;
        case '^': return left ^ right;
        default: return right;
    }
}

/* Every test on element 1 must leave its neighbours, set to all ones here, unchanged. */
static void set_neighbours(vigil_view view) {
    store(view, 0, -1);
    store(view, 2, -1);
}

static void assert_neighbours(vigil_view view, struct element element) {
    assert_int_equal(load(view, 0), as_element(element, UINT64_MAX));
    assert_int_equal(load(view, 2), as_element(element, UINT64_MAX));
}

static void values_wrap_at_every_type(void **state) {
    (void)state;
    for (size_t e = 0; e < COUNT_OF(elements); e++) {
        vigil_view view = view_of(elements[e].type);
        set_neighbours(view);
        for (size_t v = 0; v < COUNT_OF(values); v++) {
            store(view, 1, values[v]);
            assert_int_equal(load(view, 1), as_element(elements[e], (uint64_t)values[v]));
        }
        assert_neighbours(view, elements[e]);
    }
}

static void every_operation_on_every_type(void **state) {
    (void)state;
    for (size_t e = 0; e < COUNT_OF(elements); e++) {
        vigil_view view = view_of(elements[e].type);
        set_neighbours(view);
        for (size_t o = 0; o < COUNT_OF(operations); o++) {
            for (size_t i = 0; i < COUNT_OF(values) * COUNT_OF(values); i++) {
                uint64_t left = (uint64_t)values[i / COUNT_OF(values)];
                int64_t right = values[i % COUNT_OF(values)], old = 42;
                store(view, 1, (int64_t)left);
                assert_int_equal(operations[o].run(view, 1, right, &old), VIGIL_OK);
                assert_int_equal(old, as_element(elements[e], left));
                int64_t result = as_element(elements[e], calculate(operations[o].sign, left, (uint64_t)right));
                assert_int_equal(load(view, 1), result);
            }
            store(view, 1, 1);
            assert_int_equal(operations[o].run(view, 1, 1, NULL), VIGIL_OK);
            assert_int_equal(load(view, 1), as_element(elements[e], calculate(operations[o].sign, 1, 1)));
        }
        assert_neighbours(view, elements[e]);
    }
}

static void compare_exchange_on_every_type(void **state) {
    (void)state;
    for (size_t e = 0; e < COUNT_OF(elements); e++) {
        vigil_view view = view_of(elements[e].type);
        set_neighbours(view);
        for (size_t i = 0; i < COUNT_OF(values) * COUNT_OF(values); i++) {
            int64_t start = values[i / COUNT_OF(values)], expected = values[i % COUNT_OF(values)], old = 42;
            int64_t replacement = start < 0 ? start + 1 : start - 1;
            int64_t before = as_element(elements[e], (uint64_t)start);
            bool equal = before == as_element(elements[e], (uint64_t)expected);
            store(view, 1, start);
            int status = vigil_atomics_compare_exchange(view, 1, expected, replacement, &old);
            assert_int_equal(status, equal ? VIGIL_OK : VIGIL_NOT_EQUAL);
            assert_int_equal(old, before);
            assert_int_equal(load(view, 1), equal ? as_element(elements[e], (uint64_t)replacement) : before);
        }
        store(view, 1, 1);
        assert_int_equal(vigil_atomics_compare_exchange(view, 1, 2, 3, NULL), VIGIL_NOT_EQUAL);
        assert_int_equal(vigil_atomics_compare_exchange(view, 1, 1, 3, NULL), VIGIL_OK);
        assert_int_equal(load(view, 1), 3);
        assert_neighbours(view, elements[e]);
    }
}

/* The same with literal numbers, in case the reference above shares a mistake with the code. */
static void wrapping_in_plain_numbers(void **state) {
    (void)state;
    static const struct {
        enum vigil_type type;
        int64_t start, add, result;
    } sums[] = {
        {VIGIL_U8, 255, 1, 0},
        {VIGIL_I8, 127, 1, -128},
        {VIGIL_I8, -128, -1, 127},
        {VIGIL_U8, 0, -1, 255},
        {VIGIL_U16, 65535, 1, 0},
        {VIGIL_I16, 32767, 1, -32768},
        {VIGIL_U32, 4294967295, 1, 0},
        {VIGIL_I32, 2147483647, 1, -2147483648LL},
        {VIGIL_U32, 0, -1, 4294967295},
        {VIGIL_I64, INT64_MAX, 1, INT64_MIN},
        {VIGIL_I64, INT64_MIN, -1, INT64_MAX},
        {VIGIL_U64, -1, 1, 0}, /* the bit pattern of 2^64 - 1 */
        {VIGIL_U64, INT64_MAX, 1, INT64_MIN},
        {VIGIL_U8, 1, 0x1ff, 0},
    };
    for (size_t i = 0; i < COUNT_OF(sums); i++) {
        vigil_view view = view_of(sums[i].type);
        int64_t old;
        store(view, 0, sums[i].start);
        assert_int_equal(vigil_atomics_add(view, 0, sums[i].add, &old), VIGIL_OK);
        assert_int_equal(old, sums[i].start);
        assert_int_equal(load(view, 0), sums[i].result);
        assert_int_equal(vigil_atomics_sub(view, 0, sums[i].add, &old), VIGIL_OK);
        assert_int_equal(old, sums[i].result);
        assert_int_equal(load(view, 0), sums[i].start);
    }
}

static void never_called(vigil_op *op, int status) {
    (void)op;
    (void)status;
    fail();
}

/* Every call that takes a view and an index returns `expected`. Neither the results nor the operation are touched. */
static void assert_all_answer(int expected, vigil_view view, uint64_t index) {
    int64_t result = 42;
    vigil_op op = {0};
    assert_int_equal(vigil_atomics_load(view, index, &result), expected);
    assert_int_equal(vigil_atomics_store(view, index, 1), expected);
    for (size_t o = 0; o < COUNT_OF(operations); o++) {
        assert_int_equal(operations[o].run(view, index, 1, &result), expected);
        assert_int_equal(operations[o].run(view, index, 1, NULL), expected);
    }
    assert_int_equal(vigil_atomics_compare_exchange(view, index, 0, 1, &result), expected);
    assert_int_equal(result, 42);

    /* These checks also come before those for a null agent or a negative count. */
    bool waitable = view.type == VIGIL_I32 || view.type == VIGIL_I64;
    int expected_of_wait = waitable ? expected : VIGIL_ETYPE;
    assert_int_equal(vigil_atomics_wait(view, index, 0, 0), expected_of_wait);
    assert_int_equal(vigil_atomics_wait_async(NULL, &op, view, index, 0, 0, never_called), expected_of_wait);
    assert_int_equal(vigil_atomics_notify(view, index, -1), expected_of_wait);
}

static void an_index_out_of_range_touches_nothing(void **state) {
    (void)state;
    unsigned char before[64];
    memcpy(before, vigil_buffer_data(buffer), 64);
    for (size_t e = 0; e < COUNT_OF(elements); e++) {
        uint64_t size = elements[e].bits / 8;
        vigil_view views[4] = {view_of(elements[e].type)};
        uint64_t lengths[4] = {64 / size, 3, 1, 0};
        assert_int_equal(vigil_view_init(&views[1], buffer, elements[e].type, size, 3), VIGIL_OK);
        assert_int_equal(vigil_view_init(&views[2], buffer, elements[e].type, 64 - size, VIGIL_TO_END), VIGIL_OK);
        assert_int_equal(vigil_view_init(&views[3], buffer, elements[e].type, 8, 0), VIGIL_OK);
        for (int v = 0; v < 4; v++) {
            /* The second row wraps around to somewhere near the view when it is multiplied by the size. */
            const uint64_t indices[] = {
                lengths[v],     lengths[v] + 1,    UINT32_MAX,        (uint64_t)UINT32_MAX + 1,           INT64_MAX,
                0 - lengths[v], UINT64_MAX - 1,    UINT64_MAX / size, ((uint64_t)1 << 63) / size * 2,
                UINT64_MAX,     (uint64_t)1 << 63,
            };
            for (size_t i = 0; i < COUNT_OF(indices); i++) {
                if (indices[i] < lengths[v]) continue; /* has wrapped around to zero itself */
                assert_all_answer(VIGIL_ERANGE, views[v], indices[i]);
            }
        }
    }
    assert_memory_equal(vigil_buffer_data(buffer), before, 64);
}

static void a_zeroed_view_has_no_type(void **state) {
    (void)state;
    vigil_view nothing = {0};
    assert_all_answer(VIGIL_ETYPE, nothing, 0);
    assert_all_answer(VIGIL_ETYPE, nothing, UINT64_MAX); /* the type comes before the index */
}

static void a_load_needs_somewhere_to_put_the_value(void **state) {
    (void)state;
    assert_int_equal(vigil_atomics_load(view_of(VIGIL_I32), 0, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_atomics_load((vigil_view){0}, UINT64_MAX, NULL), VIGIL_ENULL);
}

static void lock_freedom_and_pause(void **state) {
    (void)state;
    for (uint64_t size = 0; size < 100; size++) {
        bool element_size = size == 1 || size == 2 || size == 4 || size == 8;
        assert_int_equal(vigil_atomics_is_lock_free(size), element_size);
    }
    assert_false(vigil_atomics_is_lock_free(UINT64_MAX));
    assert_false(vigil_atomics_is_lock_free(((uint64_t)1 << 32) + 4));
    vigil_atomics_pause();
}

/* Threads count in neighbouring elements of one word, with every operation that can count: none may disturb another. */
#define TURNS 20000

struct counting {
    vigil_view view;
    uint64_t index;
    bool by_compare_exchange;
    uint64_t faults;
};

static void *count(void *argument) {
    struct counting *counting = argument;
    for (int i = 0; i < TURNS; i++) {
        int status = VIGIL_OK;
        if (counting->by_compare_exchange) {
            int64_t seen = 0;
            do {
                status = vigil_atomics_compare_exchange(counting->view, counting->index, seen, seen + 1, &seen);
            } while (status == VIGIL_NOT_EQUAL);
        } else {
            status = vigil_atomics_add(counting->view, counting->index, 1, NULL);
        }
        if (status != VIGIL_OK) counting->faults++;
    }
    return NULL;
}

static void neighbours_count_undisturbed(void **state) {
    (void)state;
    vigil_view shorts = view_of(VIGIL_U16);
    for (uint64_t i = 0; i < 2; i++) store(shorts, i, 0);
    struct counting counting[4];
    pthread_t threads[4];
    for (uint64_t i = 0; i < 4; i++) {
        counting[i] = (struct counting){.view = shorts, .index = i % 2, .by_compare_exchange = i >= 2};
        assert_int_equal(pthread_create(&threads[i], NULL, count, &counting[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(counting[i].faults, 0);
    }
    assert_int_equal(load(shorts, 0), 2 * TURNS);
    assert_int_equal(load(shorts, 1), 2 * TURNS);
}

/* Waiting. */

static void waiting_is_for_signed_words_only(void **state) {
    (void)state;
    for (size_t e = 0; e < COUNT_OF(elements); e++) {
        if (elements[e].type == VIGIL_I32 || elements[e].type == VIGIL_I64) continue;
        vigil_op op = {0};
        vigil_view view = view_of(elements[e].type);
        const uint64_t indices[] = {0, UINT64_MAX}; /* the type comes before the index */
        for (int i = 0; i < 2; i++) {
            assert_int_equal(vigil_atomics_wait(view, indices[i], load(view, 0), 0), VIGIL_ETYPE);
            assert_int_equal(vigil_atomics_wait_async(NULL, &op, view, indices[i], 0, 0, never_called), VIGIL_ETYPE);
            assert_int_equal(vigil_atomics_notify(view, indices[i], 1), VIGIL_ETYPE);
        }
    }
}

static void wait_compares_modulo_the_size(void **state) {
    (void)state;
    vigil_view words = view_of(VIGIL_I32), wides = view_of(VIGIL_I64);
    store(words, 0, -5);
    store(words, 1, -5);
    assert_int_equal(vigil_atomics_wait(words, 0, -5, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_atomics_wait(words, 0, 0xfffffffb, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_atomics_wait(words, 0, 0x1fffffffb, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_atomics_wait(words, 0, 5, VIGIL_FOREVER), VIGIL_NOT_EQUAL);
    assert_int_equal(vigil_atomics_wait(words, 0, 5, 0), VIGIL_NOT_EQUAL);

    assert_int_equal(vigil_atomics_wait(wides, 0, -5, VIGIL_FOREVER), VIGIL_NOT_EQUAL); /* all 64 bits count */
    assert_int_equal(vigil_atomics_wait(wides, 0, (int64_t)0xfffffffbfffffffb, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_atomics_wait(wides, 0, 0xfffffffb, VIGIL_FOREVER), VIGIL_NOT_EQUAL);
    store(wides, 0, INT64_MIN);
    assert_int_equal(vigil_atomics_wait(wides, 0, INT64_MIN, 0), VIGIL_TIMED_OUT);
}

static void notify_with_nobody_there(void **state) {
    (void)state;
    assert_int_equal(vigil_atomics_notify(view_of(VIGIL_I32), 3, VIGIL_ALL), 0);
    assert_int_equal(vigil_atomics_notify(view_of(VIGIL_I64), 7, 0), 0);
    assert_int_equal(vigil_atomics_notify(view_of(VIGIL_I32), 3, -1), VIGIL_ECOUNT);
}

struct waiter {
    vigil_view view;
    uint64_t index;
    int64_t expected;
    void *address; /* if not null, wait there with vigil_wait32 instead */
    int thread_id;
    int status;
};

static void *block(void *argument) {
    struct waiter *waiter = argument;
    __atomic_store_n(&waiter->thread_id, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    waiter->status = waiter->address != NULL
                         ? vigil_wait32(waiter->address, (uint32_t)waiter->expected, VIGIL_FOREVER)
                         : vigil_atomics_wait(waiter->view, waiter->index, waiter->expected, VIGIL_FOREVER);
    return NULL;
}

static pthread_t start(struct waiter *waiter) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, block, waiter), 0);
    return thread;
}

static void wait_here_notify_there(void **state) {
    (void)state;
    vigil_view words = view_of(VIGIL_I32), wides = view_of(VIGIL_I64);
    unsigned char *data = vigil_buffer_data(buffer);
    store(words, 3, 17);
    store(wides, 2, -17);

    struct waiter narrow = {.view = words, .index = 3, .expected = 17};
    pthread_t thread = start(&narrow);
    while (vigil_notify(data + 12, 1) == 0) sched_yield();
    pthread_join(thread, NULL);
    assert_int_equal(narrow.status, VIGIL_OK);

    struct waiter wide = {.view = wides, .index = 2, .expected = -17};
    thread = start(&wide);
    while (vigil_atomics_notify(words, 4, VIGIL_ALL) == 0) sched_yield(); /* the line ignores the width */
    pthread_join(thread, NULL);
    assert_int_equal(wide.status, VIGIL_OK);

    struct waiter raw = {.address = data + 12, .expected = 17};
    thread = start(&raw);
    while (vigil_atomics_notify(words, 3, 1) == 0) sched_yield();
    pthread_join(thread, NULL);
    assert_int_equal(raw.status, VIGIL_OK);
}

/* Asynchronous waiters record their outcomes in the order in which they arrive. */
static int outcomes[8];
static size_t outcome_count;

static void note(vigil_op *op, int status) {
    (void)op;
    outcomes[outcome_count++] = status;
}

static void mark(vigil_op *op, int status) {
    assert_int_equal(status, VIGIL_OK);
    outcomes[outcome_count++] = *(int *)op->data;
}

static vigil_agent *new_agent(unsigned flags) {
    vigil_agent *agent = NULL;
    assert_int_equal(vigil_agent_create(&agent, flags), VIGIL_OK);
    outcome_count = 0;
    return agent;
}

static void asynchronous_answers(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    vigil_view words = view_of(VIGIL_I32), wides = view_of(VIGIL_I64);
    store(wides, 0, -1);
    vigil_op op = {0};
    const int64_t forever = VIGIL_FOREVER;
    assert_int_equal(vigil_atomics_wait_async(agent, &op, words, 0, 0, forever, never_called), VIGIL_NOT_EQUAL);
    assert_int_equal(vigil_atomics_wait_async(agent, &op, words, 0, UINT32_MAX, 0, never_called), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_atomics_wait_async(agent, &op, wides, 0, UINT32_MAX, 0, never_called), VIGIL_NOT_EQUAL);
    assert_int_equal(vigil_atomics_wait_async(agent, &op, wides, 0, -1, 0, never_called), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_atomics_wait_async(NULL, &op, words, 0, -1, forever, never_called), VIGIL_ENULL);
    assert_int_equal(vigil_atomics_wait_async(agent, NULL, words, 0, -1, forever, never_called), VIGIL_ENULL);
    assert_int_equal(vigil_atomics_wait_async(agent, &op, words, 0, -1, forever, NULL), VIGIL_ENULL);

    assert_int_equal(vigil_atomics_wait_async(agent, &op, wides, 0, -1, forever, note), VIGIL_PENDING);
    assert_int_equal(vigil_atomics_wait_async(agent, &op, words, 0, -1, forever, never_called), VIGIL_EINUSE);
    assert_int_equal(vigil_atomics_notify(wides, 0, VIGIL_ALL), 1);
    assert_int_equal(outcome_count, 0); /* never inside notify */
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(outcome_count, 1);
    assert_int_equal(outcomes[0], VIGIL_OK);

    /* May not block: after the view's checks, before the comparison. */
    assert_int_equal(vigil_atomics_wait(view_of(VIGIL_U32), 0, 0, 0), VIGIL_ETYPE);
    assert_int_equal(vigil_atomics_wait(words, 16, 0, 0), VIGIL_ERANGE);
    assert_int_equal(vigil_atomics_wait(words, 0, 0, 0), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
}

static void one_line_for_views_and_addresses(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(0);
    vigil_view words = view_of(VIGIL_I32), wides = view_of(VIGIL_I64);
    unsigned char *first = vigil_buffer_data(buffer);
    store(wides, 0, -1);
    int places[4] = {0, 1, 2, 3};
    vigil_op ops[4] = {{.data = &places[0]}, {.data = &places[1]}, {.data = &places[2]}, {.data = &places[3]}};
    assert_int_equal(vigil_atomics_wait_async(agent, &ops[0], words, 0, -1, VIGIL_FOREVER, mark), VIGIL_PENDING);
    assert_int_equal(vigil_wait32_async(agent, &ops[1], first, UINT32_MAX, VIGIL_FOREVER, mark), VIGIL_PENDING);
    assert_int_equal(vigil_atomics_wait_async(agent, &ops[2], wides, 0, -1, VIGIL_FOREVER, mark), VIGIL_PENDING);
    assert_int_equal(vigil_wait64_async(agent, &ops[3], first, UINT64_MAX, VIGIL_FOREVER, mark), VIGIL_PENDING);

    assert_int_equal(vigil_atomics_notify(words, 1, VIGIL_ALL), 0); /* another element, another line */
    assert_int_equal(vigil_atomics_notify(wides, 0, 0), 0);
    assert_int_equal(vigil_atomics_notify(wides, 0, 1), 1);
    assert_int_equal(vigil_notify(first, 2), 2);
    assert_int_equal(vigil_atomics_notify(words, 0, VIGIL_ALL), 1);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(outcome_count, 4);
    assert_memory_equal(outcomes, places, sizeof places);
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
}

/*
 * The interface cannot tell whether a thread is in line without taking it out, but the system tells when it sleeps.
 * Once it has announced its wait it sleeps nowhere else. So this waits for a fact, and not for a fixed time.
 */
static void await_sleep(const struct waiter *waiter) {
    int thread_id;
    while ((thread_id = __atomic_load_n(&waiter->thread_id, __ATOMIC_ACQUIRE)) == 0) sched_yield();
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread_id);
    char run_state = 0;
    while (run_state != 'S') {
        sched_yield();
        int file = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(file >= 0);
        ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        assert_true(length > 0);
        text[length] = 0;
        const char *name_end = strrchr(text, ')'); /* "17 (name) S ..." */
        assert_non_null(name_end);
        run_state = name_end[2];
    }
}

/* A buffer to be destroyed, with a view that reaches into the part that was added by growing. */
static vigil_buffer *new_doomed(vigil_view *words, vigil_view *wides) {
    vigil_buffer *doomed = NULL;
    assert_int_equal(vigil_buffer_create(&doomed, 4096, 1 << 20), VIGIL_OK);
    assert_int_equal(vigil_view_init(words, doomed, VIGIL_I32, 0, VIGIL_TO_END), VIGIL_OK);
    assert_int_equal(vigil_view_init(wides, doomed, VIGIL_I64, 0, VIGIL_TO_END), VIGIL_OK);
    assert_int_equal(vigil_buffer_grow(doomed, 1 << 20), VIGIL_OK);
    return doomed;
}

static void destroying_a_buffer_wakes_its_threads(void **state) {
    (void)state;
    vigil_view words, wides;
    vigil_buffer *doomed = new_doomed(&words, &wides);
    struct waiter waiters[3] = {
        {.view = words, .index = 0},
        {.view = words, .index = 0},
        {.view = wides, .index = vigil_view_length(wides) - 1},
    };
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        threads[i] = start(&waiters[i]);
        await_sleep(&waiters[i]);
    }
    assert_int_equal(vigil_buffer_destroy(doomed), 3);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(waiters[i].status, VIGIL_CANCELLED);
    }
}

static void destroying_a_buffer_cancels_its_operations(void **state) {
    (void)state;
    vigil_view words, wides, others = view_of(VIGIL_I32);
    vigil_buffer *doomed = new_doomed(&words, &wides);
    uint64_t last = vigil_view_length(wides) - 1;
    vigil_agent *agent = new_agent(0);
    vigil_op ops[3] = {{0}, {0}, {0}};
    store(others, 0, 0);
    assert_int_equal(vigil_atomics_wait_async(agent, &ops[0], words, 0, 0, VIGIL_FOREVER, note), VIGIL_PENDING);
    assert_int_equal(vigil_atomics_wait_async(agent, &ops[1], wides, last, 0, VIGIL_FOREVER, note), VIGIL_PENDING);
    assert_int_equal(vigil_atomics_wait_async(agent, &ops[2], others, 0, 0, VIGIL_FOREVER, note), VIGIL_PENDING);

    assert_int_equal(vigil_buffer_destroy(doomed), 2);
    assert_int_equal(vigil_agent_dispatch(agent), 2);
    assert_int_equal(outcome_count, 2);
    assert_int_equal(outcomes[0], VIGIL_CANCELLED);
    assert_int_equal(outcomes[1], VIGIL_CANCELLED);
    assert_int_equal(vigil_cancel(&ops[2]), VIGIL_OK); /* the other buffer's waiter is still in line */
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_wrap_at_every_type),
        cmocka_unit_test(every_operation_on_every_type),
        cmocka_unit_test(compare_exchange_on_every_type),
        cmocka_unit_test(wrapping_in_plain_numbers),
        cmocka_unit_test(an_index_out_of_range_touches_nothing),
        cmocka_unit_test(a_zeroed_view_has_no_type),
        cmocka_unit_test(a_load_needs_somewhere_to_put_the_value),
        cmocka_unit_test(lock_freedom_and_pause),
        cmocka_unit_test(neighbours_count_undisturbed),
        cmocka_unit_test(waiting_is_for_signed_words_only),
        cmocka_unit_test(wait_compares_modulo_the_size),
        cmocka_unit_test(notify_with_nobody_there),
        cmocka_unit_test(wait_here_notify_there),
        cmocka_unit_test(asynchronous_answers),
        cmocka_unit_test(one_line_for_views_and_addresses),
        cmocka_unit_test(destroying_a_buffer_wakes_its_threads),
        cmocka_unit_test(destroying_a_buffer_cancels_its_operations),
    };
    return cmocka_run_group_tests_name("atomics", tests, set_up, tear_down);
}
