/* SPDX-License-Identifier: MIT */
/* Buffers and views: their properties, what they refuse, and growing while others read. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vigil/atomics.h"
#include "vigil/memory.h"

#define TYPE_COUNT 8

static const struct {
    enum vigil_type type;
    uint64_t size;
    const char *name;
} types[TYPE_COUNT] = {
    {VIGIL_I8, 1, "int8"},   {VIGIL_U8, 1, "uint8"},   {VIGIL_I16, 2, "int16"}, {VIGIL_U16, 2, "uint16"},
    {VIGIL_I32, 4, "int32"}, {VIGIL_U32, 4, "uint32"}, {VIGIL_I64, 8, "int64"}, {VIGIL_U64, 8, "uint64"},
};

static vigil_buffer *new_buffer(uint64_t length, uint64_t max_length) {
    vigil_buffer *buffer = NULL;
    assert_int_equal(vigil_buffer_create(&buffer, length, max_length), VIGIL_OK);
    assert_non_null(buffer);
    return buffer;
}

static vigil_view new_view(vigil_buffer *buffer, enum vigil_type type, uint64_t byte_offset, uint64_t length) {
    vigil_view view;
    assert_int_equal(vigil_view_init(&view, buffer, type, byte_offset, length), VIGIL_OK);
    return view;
}

static void type_sizes_and_names(void **state) {
    (void)state;
    for (int i = 0; i < TYPE_COUNT; i++) {
        assert_int_equal(vigil_type_size(types[i].type), types[i].size);
        assert_string_equal(vigil_type_name(types[i].type), types[i].name);
    }
    const int none[] = {0, VIGIL_U64 + 1, -1};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vigil_type_size((enum vigil_type)none[i]), 0);
        assert_string_equal(vigil_type_name((enum vigil_type)none[i]), "unknown");
    }
}

static void a_fixed_buffer(void **state) {
    (void)state;
    vigil_buffer *buffer = new_buffer(10000, 10000);
    assert_int_equal(vigil_buffer_length(buffer), 10000);
    assert_int_equal(vigil_buffer_max_length(buffer), 10000);
    assert_false(vigil_buffer_growable(buffer));
    unsigned char *data = vigil_buffer_data(buffer);
    assert_int_equal((uintptr_t)data % 4096, 0);
    for (int i = 0; i < 10000; i++) assert_int_equal(data[i], 0);
    memset(data, 0xff, 10000);

    assert_int_equal(vigil_buffer_grow(buffer, 10000), VIGIL_OK);
    assert_int_equal(vigil_buffer_grow(buffer, 10001), VIGIL_ERANGE);
    assert_int_equal(vigil_buffer_grow(buffer, UINT64_MAX), VIGIL_ERANGE);
    assert_int_equal(vigil_buffer_grow(buffer, 9999), VIGIL_EINVAL);
    assert_int_equal(vigil_buffer_length(buffer), 10000);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static void a_growable_buffer(void **state) {
    (void)state;
    const uint64_t max_length = (uint64_t)1 << 33; /* address space, not memory */
    vigil_buffer *buffer = new_buffer(100, max_length);
    assert_true(vigil_buffer_growable(buffer));
    assert_int_equal(vigil_buffer_max_length(buffer), max_length);
    unsigned char *data = vigil_buffer_data(buffer);
    data[99] = 7;

    assert_int_equal(vigil_buffer_grow(buffer, 5000), VIGIL_OK);
    assert_int_equal(vigil_buffer_length(buffer), 5000);
    assert_ptr_equal(vigil_buffer_data(buffer), data);
    assert_int_equal(data[99], 7);
    for (int i = 100; i < 5000; i++) assert_int_equal(data[i], 0);

    assert_int_equal(vigil_buffer_grow(buffer, max_length + 1), VIGIL_ERANGE);
    assert_int_equal(vigil_buffer_grow(buffer, 4999), VIGIL_EINVAL);
    assert_int_equal(vigil_buffer_grow(buffer, 0), VIGIL_EINVAL);
    assert_int_equal(vigil_buffer_length(buffer), 5000);

    assert_int_equal(vigil_buffer_grow(buffer, max_length), VIGIL_OK);
    assert_int_equal(data[max_length - 1], 0);
    data[max_length - 1] = 1;
    assert_true(vigil_buffer_growable(buffer));
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static void an_empty_buffer(void **state) {
    (void)state;
    vigil_buffer *buffer = new_buffer(0, 0);
    assert_int_equal(vigil_buffer_length(buffer), 0);
    assert_int_equal(vigil_buffer_max_length(buffer), 0);
    assert_false(vigil_buffer_growable(buffer));
    assert_non_null(vigil_buffer_data(buffer));
    for (int i = 0; i < TYPE_COUNT; i++) {
        assert_int_equal(vigil_view_length(new_view(buffer, types[i].type, 0, 0)), 0);
        assert_int_equal(vigil_view_length(new_view(buffer, types[i].type, 0, VIGIL_TO_END)), 0);
    }
    assert_int_equal(vigil_buffer_grow(buffer, 1), VIGIL_ERANGE);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);

    buffer = new_buffer(0, 1);
    assert_true(vigil_buffer_growable(buffer));
    assert_int_equal(vigil_buffer_grow(buffer, 1), VIGIL_OK);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static void buffers_refuse(void **state) {
    (void)state;
    vigil_buffer *buffer = NULL;
    assert_int_equal(vigil_buffer_create(NULL, 1, 1), VIGIL_ENULL);
    assert_int_equal(vigil_buffer_create(&buffer, 2, 1), VIGIL_ERANGE);
    assert_int_equal(vigil_buffer_create(&buffer, UINT64_MAX, 0), VIGIL_ERANGE);
    assert_int_equal(vigil_buffer_create(&buffer, 0, UINT64_MAX), VIGIL_ENOMEM);
    assert_int_equal(vigil_buffer_create(&buffer, UINT64_MAX, UINT64_MAX), VIGIL_ENOMEM);
    assert_int_equal(vigil_buffer_create(&buffer, 0, PTRDIFF_MAX), VIGIL_ENOMEM); /* valid, but too much anywhere */
    assert_null(buffer);

    assert_int_equal(vigil_buffer_grow(NULL, 1), VIGIL_ENULL);
    assert_int_equal(vigil_buffer_destroy(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_buffer_length(NULL), 0);
    assert_int_equal(vigil_buffer_max_length(NULL), 0);
    assert_false(vigil_buffer_growable(NULL));
    assert_null(vigil_buffer_data(NULL));
}

static void a_view_of_each_type(void **state) {
    (void)state;
    vigil_buffer *buffer = new_buffer(67, 67);
    for (int i = 0; i < TYPE_COUNT; i++) {
        enum vigil_type type = types[i].type;
        uint64_t size = types[i].size, all = 67 / size;
        assert_int_equal(vigil_view_length(new_view(buffer, type, 0, VIGIL_TO_END)), all);
        assert_int_equal(vigil_view_length(new_view(buffer, type, 0, all)), all);
        assert_int_equal(vigil_view_length(new_view(buffer, type, 0, 0)), 0);
        assert_int_equal(vigil_view_length(new_view(buffer, type, size, VIGIL_TO_END)), all - 1);
        assert_int_equal(vigil_view_length(new_view(buffer, type, size, all - 1)), all - 1);
        assert_int_equal(vigil_view_length(new_view(buffer, type, all * size, VIGIL_TO_END)), 0);
        assert_int_equal(vigil_view_length(new_view(buffer, type, all * size, 0)), 0);
    }
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static void views_refuse(void **state) {
    (void)state;
    vigil_buffer *buffer = new_buffer(64, 4096);
    vigil_view view = new_view(buffer, VIGIL_U16, 2, 3); /* and so it stays */

    assert_int_equal(vigil_view_init(NULL, buffer, VIGIL_I8, 0, 1), VIGIL_ENULL);
    assert_int_equal(vigil_view_init(&view, NULL, VIGIL_I8, 0, 1), VIGIL_ENULL);
    assert_int_equal(vigil_view_init(&view, buffer, (enum vigil_type)0, 0, 1), VIGIL_ETYPE);
    assert_int_equal(vigil_view_init(&view, buffer, (enum vigil_type)(VIGIL_U64 + 1), 0, 1), VIGIL_ETYPE);

    for (int i = 0; i < TYPE_COUNT; i++) {
        enum vigil_type type = types[i].type;
        uint64_t size = types[i].size, all = 64 / size;
        for (uint64_t odd = 1; odd < size; odd++) {
            assert_int_equal(vigil_view_init(&view, buffer, type, odd, 1), VIGIL_EMISALIGNED);
            assert_int_equal(vigil_view_init(&view, buffer, type, UINT64_MAX - size + 1 + odd, 1), VIGIL_EMISALIGNED);
        }
        assert_int_equal(vigil_view_init(&view, buffer, type, 0, all + 1), VIGIL_ERANGE);
        assert_int_equal(vigil_view_init(&view, buffer, type, size, all), VIGIL_ERANGE);
        assert_int_equal(vigil_view_init(&view, buffer, type, 64, 1), VIGIL_ERANGE);
        assert_int_equal(vigil_view_init(&view, buffer, type, 64 + size, 0), VIGIL_ERANGE);
        assert_int_equal(vigil_view_init(&view, buffer, type, 64 + size, VIGIL_TO_END), VIGIL_ERANGE);
        assert_int_equal(vigil_view_init(&view, buffer, type, UINT64_MAX - size + 1, 0), VIGIL_ERANGE);
        assert_int_equal(vigil_view_init(&view, buffer, type, UINT64_MAX - size + 1, 1), VIGIL_ERANGE);
        /* Lengths that would wrap around to something small, in bytes or at their end. */
        assert_int_equal(vigil_view_init(&view, buffer, type, 0, UINT64_MAX - 1), VIGIL_ERANGE);
        if (size == 1) continue;
        assert_int_equal(vigil_view_init(&view, buffer, type, 0, UINT64_MAX / size + 1), VIGIL_ERANGE);
        assert_int_equal(vigil_view_init(&view, buffer, type, size, UINT64_MAX / size), VIGIL_ERANGE);
    }
    /* The checks are made in the order that the header gives. */
    assert_int_equal(vigil_view_init(NULL, NULL, (enum vigil_type)0, 1, 100), VIGIL_ENULL);
    assert_int_equal(vigil_view_init(&view, buffer, (enum vigil_type)0, 1, 100), VIGIL_ETYPE);
    assert_int_equal(vigil_view_init(&view, buffer, VIGIL_I16, 1, 100), VIGIL_EMISALIGNED);
    assert_ptr_equal(view.buffer, buffer);
    assert_int_equal(view.type, VIGIL_U16);
    assert_int_equal(view.byte_offset, 2);
    assert_int_equal(view.length, 3);

    assert_int_equal(vigil_view_length((vigil_view){0}), 0);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static void a_view_to_the_end_grows(void **state) {
    (void)state;
    vigil_buffer *buffer = new_buffer(6, 64);
    vigil_view tracking = new_view(buffer, VIGIL_I32, 4, VIGIL_TO_END);
    vigil_view fixed = new_view(buffer, VIGIL_I32, 0, 1);
    assert_int_equal(vigil_view_length(tracking), 0); /* two bytes are less than an element */
    assert_int_equal(vigil_atomics_store(tracking, 0, 1), VIGIL_ERANGE);

    const uint64_t lengths[][2] = {{7, 0}, {8, 1}, {11, 1}, {12, 2}, {64, 15}};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(vigil_buffer_grow(buffer, lengths[i][0]), VIGIL_OK);
        assert_int_equal(vigil_view_length(tracking), lengths[i][1]);
        assert_int_equal(vigil_view_length(fixed), 1);
        assert_int_equal(vigil_atomics_store(tracking, lengths[i][1], 1), VIGIL_ERANGE);
        if (lengths[i][1] > 0) assert_int_equal(vigil_atomics_store(tracking, lengths[i][1] - 1, 1), VIGIL_OK);
        assert_int_equal(vigil_atomics_store(fixed, 1, 1), VIGIL_ERANGE);
    }
    vigil_view last = new_view(buffer, VIGIL_I32, 60, 1); /* beyond the first length, inside this one */
    assert_int_equal(vigil_view_length(last), 1);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static void views_share_bytes(void **state) {
    (void)state;
    vigil_buffer *buffer = new_buffer(16, 16);
    vigil_view wide = new_view(buffer, VIGIL_U64, 8, 1);
    vigil_view bytes = new_view(buffer, VIGIL_U8, 0, VIGIL_TO_END);
    vigil_view copy = wide;
    assert_int_equal(vigil_atomics_store(wide, 0, 0x1122334455667788), VIGIL_OK);

    const uint64_t expected = 0x1122334455667788;
    unsigned char in_memory[16] = {0};
    memcpy(in_memory + 8, &expected, 8); /* whatever the byte order */
    for (uint64_t i = 0; i < 16; i++) {
        int64_t byte = -1;
        assert_int_equal(vigil_atomics_load(bytes, i, &byte), VIGIL_OK);
        assert_int_equal(byte, in_memory[i]);
    }
    for (uint64_t i = 8; i < 16; i++) assert_int_equal(vigil_atomics_store(bytes, i, 0xff), VIGIL_OK);
    int64_t value = 0;
    assert_int_equal(vigil_atomics_load(copy, 0, &value), VIGIL_OK);
    assert_int_equal(value, -1);
    assert_memory_equal((unsigned char *)vigil_buffer_data(buffer) + 8, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

/* Two threads grow one buffer by different strides while two others use its last element. */
#define GROWN_LENGTH ((uint64_t)1 << 22)

struct growing {
    vigil_buffer *buffer;
    pthread_barrier_t *together;
    uint64_t stride;
    uint64_t faults;
};

static void *grow_by_strides(void *argument) {
    struct growing *growing = argument;
    pthread_barrier_wait(growing->together);
    uint64_t length;
    /* Start from the current length, so that the two always race. */
    while ((length = vigil_buffer_length(growing->buffer) + growing->stride) <= GROWN_LENGTH) {
        int status = vigil_buffer_grow(growing->buffer, length);
        bool overtaken = status == VIGIL_EINVAL && vigil_buffer_length(growing->buffer) > length;
        if (status != VIGIL_OK && !overtaken) growing->faults++;
        if (vigil_buffer_length(growing->buffer) < length) growing->faults++;
    }
    if (vigil_buffer_grow(growing->buffer, GROWN_LENGTH) != VIGIL_OK) growing->faults++;
    return NULL;
}

static void *use_the_last_element(void *argument) {
    struct growing *growing = argument;
    vigil_view view;
    if (vigil_view_init(&view, growing->buffer, VIGIL_U8, 0, VIGIL_TO_END) != VIGIL_OK) growing->faults++;
    pthread_barrier_wait(growing->together);
    uint64_t before = 0, length = 0;
    while (length < GROWN_LENGTH) {
        length = vigil_view_length(view);
        if (length < before) growing->faults++;
        if (length > 0 && vigil_atomics_add(view, length - 1, 1, NULL) != VIGIL_OK) growing->faults++;
        before = length;
    }
    return NULL;
}

static void growing_while_others_read(void **state) {
    (void)state;
    vigil_buffer *buffer = new_buffer(0, GROWN_LENGTH);
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, 4);
    struct growing growing[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        growing[i] = (struct growing){.buffer = buffer, .together = &together, .stride = i == 0 ? 1 : 2};
        void *(*body)(void *) = i < 2 ? grow_by_strides : use_the_last_element;
        assert_int_equal(pthread_create(&threads[i], NULL, body, &growing[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(growing[i].faults, 0);
    }
    pthread_barrier_destroy(&together);
    assert_int_equal(vigil_buffer_length(buffer), GROWN_LENGTH);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_sizes_and_names),
        cmocka_unit_test(a_fixed_buffer),
        cmocka_unit_test(a_growable_buffer),
        cmocka_unit_test(an_empty_buffer),
        cmocka_unit_test(buffers_refuse),
        cmocka_unit_test(a_view_of_each_type),
        cmocka_unit_test(views_refuse),
        cmocka_unit_test(a_view_to_the_end_grows),
        cmocka_unit_test(views_share_bytes),
        cmocka_unit_test(growing_while_others_read),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
