/* SPDX-License-Identifier: MIT */
/* What is particular to prim/wasm: the heap, mappings, threads that may not sleep, bells that are words. */
#include "../unit/support.h"

#include "bell_word.h"
#include "prim_wasm.h"
#include "vigil/mutex.h"

#define LINE 64u

/* The heap. */

static void blocks_begin_at_a_line_and_do_not_overlap(void **state) {
    (void)state;
    unsigned char *blocks[100];
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        blocks[i] = malloc(i * 7);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % LINE, 0);
        memset(blocks[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        for (size_t at = 0; at < i * 7; at++) assert_int_equal(blocks[i][at], i);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) free(blocks[i * 37 % COUNT_OF(blocks)]);
}

static void neighbours_that_are_free_become_one(void **state) {
    (void)state;
    const size_t part = 1 << 18; /* more than any other block that is free */
    char *below = malloc(part), *large = malloc(4 * part), *parts[4];
    free(large);
    for (int i = 0; i < 4; i++) parts[i] = malloc(part - LINE);
    assert_ptr_equal(parts[0], large);
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};
    for (size_t order = 0; order < COUNT_OF(orders); order++) {
        for (int i = 0; i < 4; i++) free(parts[orders[order][i]]);
        assert_ptr_equal(malloc(4 * part), large);
        free(large);
        for (int i = 0; i < 4; i++) parts[i] = malloc(part - LINE);
    }
    for (int i = 0; i < 4; i++) free(parts[i]);
    free(below);
}

static void calloc_clears_what_was_used(void **state) {
    (void)state;
    unsigned char *block = malloc(1000);
    memset(block, 1, 1000);
    free(block);
    unsigned char *cleared = calloc(10, 100);
    assert_ptr_equal(cleared, block);
    for (int i = 0; i < 1000; i++) assert_int_equal(cleared[i], 0);
    free(cleared);
}

static void realloc_keeps_the_contents(void **state) {
    (void)state;
    char *block = realloc(NULL, 10);
    memcpy(block, "contents", 9);
    block = realloc(block, 100000);
    assert_string_equal(block, "contents");
    block = realloc(block, 9);
    assert_string_equal(block, "contents");
    free(block);
}

static void too_much_is_refused(void **state) {
    (void)state;
    assert_null(malloc(SIZE_MAX));
    assert_null(malloc(SIZE_MAX / 2 + 1));
    assert_null(calloc(SIZE_MAX / 2, 3));
    assert_null(prim_map(SIZE_MAX));
    assert_null(prim_map(SIZE_MAX - 4096));
}

static void mappings_begin_at_a_page_and_are_used_again(void **state) {
    (void)state;
    unsigned char *mapping = prim_map(100000);
    assert_int_equal((uintptr_t)mapping % 4096, 0);
    memset(mapping, 1, 100000);
    prim_unmap(mapping, 100000);
    unsigned char *again = prim_map(100000);
    assert_ptr_equal(again, mapping);
    for (int i = 0; i < 100000; i++) assert_int_equal(again[i], 0);
    prim_unmap(again, 100000);
}

static void *allocate_a_lot(void *seed) {
    uint64_t random = (uintptr_t)seed;
    unsigned char *blocks[32] = {0};
    uintptr_t wrong = 0;
    for (int i = 0; i < 20000; i++) {
        unsigned at = (unsigned)random_next(&random) % 32;
        if (blocks[at]) wrong += blocks[at][0] != at || blocks[at][47] != (unsigned char)(uintptr_t)seed;
        free(blocks[at]);
        blocks[at] = malloc(48 + random_next(&random) % 500);
        blocks[at][0] = (unsigned char)at;
        blocks[at][47] = (unsigned char)(uintptr_t)seed;
    }
    for (int i = 0; i < 32; i++) free(blocks[i]);
    return (void *)wrong;
}

static void threads_share_the_heap(void **state) {
    (void)state;
    pthread_t threads[4];
    void *wrong;
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_a_lot, (void *)(i + 1)), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

/* A thread that may not sleep, like that of a page. */

static vigil_mutex mutex = VIGIL_MUTEX_INIT;
static uint32_t granted;

static void note_and_unlock(vigil_op *op, int status) {
    (void)op;
    granted += status == VIGIL_OK && vigil_mutex_unlock(&mutex) == VIGIL_OK;
}

static void *be_a_page(void *unused) {
    uint32_t word = 0;
    vigil_request request = {0};
    vigil_agent *agent = new_agent(0);
    prim_wasm_begin_thread(false, prim_thread_id());
    prim_park(&word, 0, PRIM_NEVER); /* returns */
    assert_int_equal(vigil_wait32(&word, 0, VIGIL_FOREVER), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_mutex_lock_async(agent, &request, &mutex, VIGIL_FOREVER, note_and_unlock), VIGIL_PENDING);
    AWAIT(vigil_agent_dispatch(agent) == 1);
    end_agent(agent);
    return unused;
}

static void a_page_gets_a_lock_without_sleeping(void **state) {
    (void)state;
    pthread_t page;
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OK);
    assert_int_equal(pthread_create(&page, NULL, be_a_page, NULL), 0);
    AWAIT(vigil_waiters(&mutex) == 1);
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_OK);
    assert_int_equal(pthread_join(page, NULL), 0);
    assert_int_equal(granted, 1);
}

/* Bells. */

static void a_descriptor_is_the_address_of_a_word(void **state) {
    (void)state;
    uint32_t place = 0;
    struct noted noted = {0};
    vigil_agent *agent = new_agent(0);
    uint32_t *bell = (uint32_t *)vigil_agent_fd(agent);
    assert_int_equal(*bell & BELL_RUNG, 0);
    noted_pending(agent, &noted, &place);
    assert_int_equal(vigil_notify(&place, 1), 1);
    assert_int_equal(*bell & BELL_RUNG, BELL_RUNG);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(*bell & BELL_RUNG, 0);
    end_agent(agent);
}

static void the_alarm_is_the_first_deadline(void **state) {
    (void)state;
    uint32_t place = 0;
    struct noted noted = {0};
    vigil_agent *agent = new_agent(0);
    const struct prim_bell *bell = (const struct prim_bell *)vigil_agent_fd(agent);
    assert_true(bell->alarm_ns == PRIM_NEVER);
    int64_t start_ns = vigil_now_ns();
    assert_int_equal(noted_start(agent, &noted, &place, SECOND), VIGIL_PENDING);
    assert_in_range(bell->alarm_ns, start_ns + SECOND, vigil_now_ns() + SECOND);
    end_agent(agent);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_begin_at_a_line_and_do_not_overlap),
        cmocka_unit_test(neighbours_that_are_free_become_one),
        cmocka_unit_test(calloc_clears_what_was_used),
        cmocka_unit_test(realloc_keeps_the_contents),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(mappings_begin_at_a_page_and_are_used_again),
        cmocka_unit_test(threads_share_the_heap),
        cmocka_unit_test(a_page_gets_a_lock_without_sleeping),
        cmocka_unit_test(a_descriptor_is_the_address_of_a_word),
        cmocka_unit_test(the_alarm_is_the_first_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
