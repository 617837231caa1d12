/* SPDX-License-Identifier: MIT */
/*
 * An allocation fails, each one in turn: the request ends with VIGIL_ENOMEM, or is done all the same; once more it
 * succeeds; and nothing is left in the cluster. The program has an allocator of its own, which fails where it is told
 * to, for all libraries. With a sanitizer, which has its own, that is so for Vigil alone.
 */
#include "support.h"

#include <errno.h>
#include <vigil/remote.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define HOOK(name) __wrap_##name
#define REAL(name) __real_##name
#else
#define HOOK(name) name
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t bytes);
void *REAL(calloc)(size_t count, size_t bytes);
void *REAL(realloc)(void *memory, size_t bytes);
void *HOOK(malloc)(size_t bytes);
void *HOOK(calloc)(size_t count, size_t bytes);
void *HOOK(realloc)(void *memory, size_t bytes);
char *HOOK(strdup)(const char *text);

static _Thread_local bool counts; /* of the thread of the test alone */
static _Thread_local unsigned long allocations, fails_from, fails_until;

static bool memory_fails(void) {
    if (!counts) return false;
    unsigned long number = ++allocations;
    if (number < fails_from || number >= fails_until) return false;
    errno = ENOMEM;
    return true;
}

void *HOOK(malloc)(size_t bytes) {
    return memory_fails() ? NULL : REAL(malloc)(bytes);
}

void *HOOK(calloc)(size_t count, size_t bytes) {
    return memory_fails() ? NULL : REAL(calloc)(count, bytes);
}

void *HOOK(realloc)(void *memory, size_t bytes) {
    return memory_fails() ? NULL : REAL(realloc)(memory, bytes);
}

char *HOOK(strdup)(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = HOOK(malloc)(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

/* What happens: two handles of a lock, one shares it and one wants it alone, and a word that is waited for. */

static struct cluster cluster;
static vigil_remote *remote;
static vigil_remote_lock *shares, *alone;
static unsigned refusals;

/* Whatever is asked for without a callback. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int try_status;                                                                                                \
        while ((try_status = (call)) == VIGIL_ENOMEM) refusals++;                                                      \
        assert_int_equal(try_status, VIGIL_OK);                                                                        \
    } while (0)

enum { NONE = -1000 };

static void told(vigil_remote_lock *lock, int status, void *data) {
    int *told_status = data;
    (void)lock;
    assert_int_equal(*told_status, NONE);
    *told_status = status;
}

static void told_value(int status, int64_t value, void *data) {
    (void)value;
    told(NULL, status, data);
}

static void told_closed(int status, void *data) {
    told(NULL, status, data);
}

static void take(vigil_remote_lock *lock, unsigned how, int *status) {
    *status = NONE;
    assert_int_equal(vigil_remote_lock_take(lock, how, VIGIL_FOREVER, told, status), VIGIL_PENDING);
}

/* VIGIL_ENOMEM: once more. */
static void until_held(vigil_remote_lock *lock, unsigned how, int *status) {
    for (;;) {
        UNTIL(*status != NONE);
        if (*status == VIGIL_OK) break;
        if (*status != VIGIL_ENOMEM)
            fail_msg("allocation %lu failed: status %d, %s", fails_from, *status, vigil_remote_why(remote));
        refusals++;
        take(lock, how, status);
    }
    assert_true(vigil_remote_lock_token(lock) > 0);
}

static void release(vigil_remote_lock *lock) {
    int status = NONE;
    int result = vigil_remote_lock_release(lock, told, &status);
    if (result == VIGIL_PENDING) {
        UNTIL(status != NONE);
        result = status;
    }
    assert_int_equal(result, VIGIL_OK);
}

static void close_lock(vigil_remote_lock *lock) {
    int status = NONE;
    int result = vigil_remote_lock_close(lock, told_closed, &status);
    if (result == VIGIL_PENDING) UNTIL(status != NONE);
    else assert_int_equal(result, VIGIL_OK);
}

static void hold_for_ms(int ms) {
    int64_t until_ns = loop_now_ns() + ms * NS_PER_MS;
    while (loop_now_ns() < until_ns) {
        struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
        poll(&seat, 1, 1);
        assert_true(vigil_agent_dispatch(agent) >= 0);
    }
}

static void use_locks(void) {
    int shared_status, alone_status;
    take(shares, VIGIL_NAMED_SHARED, &shared_status);
    until_held(shares, VIGIL_NAMED_SHARED, &shared_status);
    take(alone, 0, &alone_status);
    hold_for_ms(3); /* it is in line, and watches */
    release(shares);
    until_held(alone, 0, &alone_status);
    hold_for_ms(13); /* it looks at its keys, and watches them */
    release(alone);
    take(alone, 0, &alone_status); /* the machine has kept it */
    until_held(alone, 0, &alone_status);
    release(alone);
}

/* Asks again while there is no memory: the word is 1 then, and a waiter for 0 does not wait. */
static void use_word(void) {
    int status;
    do {
        status = NONE;
        int result = vigil_remote_word_store(remote, "word", 1, told_value, &status);
        if (result == VIGIL_PENDING) UNTIL(status != NONE);
        else status = result;
    } while (status == VIGIL_ENOMEM && ++refusals);
    assert_int_equal(status, VIGIL_OK);
    do {
        status = NONE;
        int result = vigil_remote_word_wait(remote, "word", 1, 5 * NS_PER_MS, told_value, &status, NULL);
        if (result == VIGIL_PENDING) UNTIL(status != NONE);
        else status = result;
    } while (status == VIGIL_ENOMEM && ++refusals);
    /* Without a reply it may have been woken. */
    if (status != VIGIL_OK && status != VIGIL_ELOST) assert_int_equal(status, VIGIL_TIMED_OUT);
}

static void run(unsigned long from, unsigned long count) {
    const vigil_remote_options options = {.ttl_ns = 20 * SECOND, .user = "nobody:secret"};
    allocations = 0;
    fails_from = from;
    fails_until = from + count;
    counts = true;
    TRY(vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK));
    TRY(vigil_remote_open(&remote, agent, cluster_at(&cluster), &options));
    TRY(vigil_remote_lock_open(&shares, remote, "lock", NULL));
    TRY(vigil_remote_lock_open(&alone, remote, "lock", NULL));
    use_locks();
    use_word();
    close_lock(shares);
    close_lock(alone);
    counts = false;
    while (vigil_remote_close(remote) == VIGIL_EBUSY) turn(); /* the lease of the waiter is being revoked */
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
    agent = NULL;
}

/* All keys but the word. */
static int64_t keys_left(void) {
    struct outcome outcome;
    struct etcd_txn txn = {.then = {{.action = ETCD_RANGE, .key = text("lock"), .range_end = text("lockz")},
                                    {.action = ETCD_RANGE, .key = text("word!"), .range_end = text("wordz")}},
                           .then_count = 2};
    assert_int_equal(do_txn(&outcome, txn), VIGIL_OK);
    return outcome.reply.results[0].count + outcome.reply.results[1].count;
}

/* What is left of the run itself ends with its lease at the latest: none of it may stay. */
static void check_nothing_left(void) {
    open_client(cluster_at(&cluster), NULL);
    while (keys_left()) hold_for_ms(50);
    close_client();
}

static void each_allocation_fails(void **state) {
    (void)state;
    run(0, 0);
    unsigned long all = allocations;
    assert_true(all > 50);
    for (unsigned long from = 1; from <= allocations && from < 4 * all; from++) run(from, 1);
    check_nothing_left();
    assert_true(refusals > 20);
}

/* Also of what is done because the first one failed. */
static void several_in_a_row_fail(void **state) {
    (void)state;
    run(0, 0);
    unsigned long all = allocations;
    for (unsigned long from = 1; from <= all; from += 9) run(from, 5);
    check_nothing_left();
}

static int start(void **state) {
    (void)state;
    if (!cluster_start(&cluster, 1, NULL)) return -1;
    open_client(cluster_at(&cluster), NULL);
    await_leader();
    close_client();
    return 0;
}

static int stop(void **state) {
    (void)state;
    cluster_stop(&cluster);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_fails),
        cmocka_unit_test(several_in_a_row_fail),
    };
    if (!cluster_etcd()) {
        puts("skipped: no etcd");
        return 77;
    }
    return cmocka_run_group_tests_name("memory", tests, start, stop);
}
