/* SPDX-License-Identifier: MIT */
/* vigil_debug_dump: its output for known lines. */
#include "support.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "prim.h"
#include "vigil/cond.h"
#include "vigil/debug.h"
#include "vigil/mutex.h"

/* The dump, read line by line. */

static FILE *dump(void) {
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(vigil_debug_dump(fileno(file)), VIGIL_OK);
    rewind(file);
    return file;
}

static const char *next_line(FILE *file) {
    static char line[256];
    if (!fgets(line, sizeof line, file)) return "";
    return line;
}

static void expect_totals(FILE *file, unsigned waiters, unsigned lines) {
    char expected[128];
    snprintf(expected, sizeof expected, "vigil: process %d: %u wait%s in %u line%s\n", (int)getpid(), waiters,
             waiters == 1 ? "s" : "", lines, lines == 1 ? "" : "s");
    assert_string_equal(next_line(file), expected);
}

static void expect_line(FILE *file, const void *address, const char *what, unsigned count) {
    char expected[128];
    snprintf(expected, sizeof expected, "%p: a %s, %u in line\n", address, what, count);
    assert_string_equal(next_line(file), expected);
}

/* Returns the milliseconds that it has waited. */
static uint64_t expect_waiter(FILE *file, long thread_id, const vigil_agent *agent) {
    char kind[32], after[64] = "";
    uint64_t s, ms;
    long id;
    int fields =
        sscanf(next_line(file), " %31s thread %ld, for %" SCNu64 ".%3" SCNu64 " s%63[^\n]", kind, &id, &s, &ms, after);
    char expected[64] = "";
    if (agent) snprintf(expected, sizeof expected, ", agent %p", (const void *)agent);
    assert_int_equal(fields, agent ? 5 : 4);
    assert_string_equal(kind, agent ? "asynchronous" : "blocking");
    assert_int_equal(id, thread_id);
    assert_string_equal(after, expected);
    return s * 1000 + ms;
}

static void expect_end(FILE *file) {
    assert_string_equal(next_line(file), "");
    fclose(file);
}

static long my_id(void) {
    return PRIM_SEGMENTS ? syscall(SYS_gettid) : (long)prim_thread_id(); /* POSIX has no such ids */
}

/* A thread that waits, and publishes its thread id. */
struct waiter {
    pthread_t thread;
    long id;
    uint32_t *word;
    vigil_mutex *mutex;
    vigil_cond *cond;
    int status;
};

static void *waiter_main(void *argument) {
    struct waiter *me = argument;
    STORE(me->id, my_id());
    if (me->word) me->status = vigil_wait32(me->word, 0, VIGIL_FOREVER);
    if (!me->mutex) return NULL;
    me->status = vigil_mutex_lock(me->mutex);
    if (me->cond) me->status = vigil_cond_wait(me->cond, me->mutex);
    vigil_mutex_unlock(me->mutex);
    return NULL;
}

static const void *line_of(const struct waiter *waiter) {
    return waiter->word ? (const void *)waiter->word : waiter->cond ? (const void *)waiter->cond : waiter->mutex;
}

static void waiter_start(struct waiter *waiter) {
    int64_t before = vigil_waiters(line_of(waiter));
    assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_main, waiter), 0);
    AWAIT(vigil_waiters(line_of(waiter)) > before);
}

static void waiter_join(struct waiter *waiter) {
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    assert_int_equal(waiter->status, VIGIL_OK);
}

static void nobody_waits(void **state) {
    (void)state;
    char expected[64];
    snprintf(expected, sizeof expected, "vigil: process %d: no waiters\n", (int)getpid());
    FILE *file = dump();
    assert_string_equal(next_line(file), expected);
    expect_end(file);
}

static void a_word_has_threads_and_loops_in_order(void **state) {
    (void)state;
    uint32_t word = 0;
    vigil_agent *agent = new_agent(0);
    struct waiter first = {.word = &word}, last = {.word = &word};
    struct noted noted = {0};
    waiter_start(&first);
    noted_pending(agent, &noted, &word);
    waiter_start(&last);
    FILE *file = dump();
    expect_totals(file, 3, 1);
    expect_line(file, &word, "word", 3);
    expect_waiter(file, first.id, NULL);
    expect_waiter(file, my_id(), agent);
    expect_waiter(file, last.id, NULL);
    expect_end(file);
    assert_int_equal(vigil_notify(&word, VIGIL_ALL), 3);
    waiter_join(&first);
    waiter_join(&last);
    end_agent(agent);
    assert_int_equal(noted.status, VIGIL_OK);
}

static void ignore(vigil_op *op, int status) {
    (void)op;
    (void)status;
}

static void a_loop_has_one_place_in_a_locks_line(void **state) {
    (void)state;
    vigil_mutex mutex = VIGIL_MUTEX_INIT;
    vigil_request requests[2] = {0};
    vigil_agent *agent = new_agent(0);
    struct waiter waiter = {.mutex = &mutex};
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OK);
    for (int i = 0; i < 2; i++) {
        int status = vigil_mutex_execute(agent, &requests[i], &mutex, VIGIL_FOREVER, ignore);
        assert_int_equal(status, VIGIL_PENDING);
    }
    waiter_start(&waiter);
    FILE *file = dump();
    expect_totals(file, 2, 1);
    expect_line(file, &mutex, "lock", 2);
    expect_waiter(file, my_id(), agent);
    expect_waiter(file, waiter.id, NULL);
    expect_end(file);
    end_agent(agent);
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_OK);
    waiter_join(&waiter);
}

/* In line for at least this long; the clock that is used may be a tick behind. */
#define TICK_MS 20u

static void the_time_is_that_since_joining(void **state) {
    (void)state;
    uint32_t word = 0;
    vigil_mutex mutex = VIGIL_MUTEX_INIT;
    struct waiter waiters[2] = {{.word = &word}, {.mutex = &mutex}};
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OK);
    for (int i = 0; i < 2; i++) {
        int64_t before_ns = vigil_now_ns();
        waiter_start(&waiters[i]);
        let_pass(50 * MILLISECOND);
        FILE *file = dump();
        uint64_t most_ms = (uint64_t)((vigil_now_ns() - before_ns) / MILLISECOND) + TICK_MS;
        expect_totals(file, 1, 1);
        expect_line(file, line_of(&waiters[i]), i ? "lock" : "word", 1);
        uint64_t waited_ms = expect_waiter(file, waiters[i].id, NULL);
        assert_in_range(waited_ms, 50, most_ms);
        expect_end(file);
        vigil_notify(&word, 1);
        if (i) assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_OK);
        waiter_join(&waiters[i]);
    }
}

static void who_is_moved_to_another_line_keeps_its_time(void **state) {
    (void)state;
    vigil_mutex mutex = VIGIL_MUTEX_INIT;
    vigil_cond cond = VIGIL_COND_INIT;
    struct waiter waiter = {.mutex = &mutex, .cond = &cond};
    waiter_start(&waiter);
    let_pass(50 * MILLISECOND);
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OK);
    assert_int_equal(vigil_cond_signal(&cond), 1);
    FILE *file = dump();
    expect_totals(file, 1, 1);
    expect_line(file, &mutex, "lock", 1);
    assert_true(expect_waiter(file, waiter.id, NULL) >= 50);
    expect_end(file);
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_OK);
    waiter_join(&waiter);
}

static void of_a_long_line_the_first_are_shown(void **state) {
    (void)state;
    enum { LONG = 300, SHOWN = 256 };
    static struct noted noted[LONG];
    uint32_t word = 0;
    vigil_agent *agent = new_agent(0);
    for (int i = 0; i < LONG; i++) noted_pending(agent, &noted[i], &word);
    FILE *file = dump();
    expect_totals(file, LONG, 1);
    expect_line(file, &word, "word", LONG);
    for (int i = 0; i < SHOWN; i++) expect_waiter(file, my_id(), agent);
    assert_string_equal(next_line(file), "    and 44 behind them\n");
    expect_end(file);
    end_agent(agent);
}

static void of_a_very_long_line_not_all_are_counted(void **state) {
    (void)state;
    enum { VERY_LONG = 10100, SHOWN = 256 };
    struct noted *noted = calloc(VERY_LONG, sizeof *noted);
    uint32_t word = 0;
    char expected[128];
    vigil_agent *agent = new_agent(0);
    for (int i = 0; i < VERY_LONG; i++) noted_pending(agent, &noted[i], &word);
    FILE *file = dump();
    expect_totals(file, VERY_LONG, 1);
    snprintf(expected, sizeof expected, "%p: a word, 10000 or more in line\n", (void *)&word);
    assert_string_equal(next_line(file), expected);
    for (int i = 0; i < SHOWN; i++) expect_waiter(file, my_id(), agent);
    assert_string_equal(next_line(file), "    and 9744 or more behind them\n");
    expect_end(file);
    end_agent(agent);
    free(noted);
}

/* Enough lines that several share a bucket. */
static void each_line_is_shown_once(void **state) {
    (void)state;
    enum { LINES = 1 << 15 };
    uint32_t *words = calloc(LINES, sizeof *words);
    struct noted *noted = calloc(LINES, sizeof *noted);
    bool *shown = calloc(LINES, sizeof *shown);
    vigil_agent *agent = new_agent(0);
    for (int i = 0; i < LINES; i++) noted_pending(agent, &noted[i], &words[i]);
    FILE *file = dump();
    expect_totals(file, LINES, LINES);
    for (int i = 0; i < LINES; i++) {
        void *address;
        assert_int_equal(sscanf(next_line(file), "%p: a word, 1 in line", &address), 1);
        ptrdiff_t number = (uint32_t *)address - words;
        assert_in_range(number, 0, LINES - 1);
        assert_false(shown[number]);
        shown[number] = true;
        expect_waiter(file, my_id(), agent);
    }
    expect_end(file);
    end_agent(agent);
    free(shown);
    free(noted);
    free(words);
}

static void a_bad_descriptor_is_an_error(void **state) {
    (void)state;
    errno = 0;
    assert_int_equal(vigil_debug_dump(-1), VIGIL_ESYSTEM);
    assert_int_equal(errno, EBADF);
}

/* While everything runs: every line of the dump must be well-formed. */

static vigil_mutex busy;
static bool enough;

static void *lock_and_unlock(void *unused) {
    (void)unused;
    while (!LOAD(enough)) {
        assert_int_equal(vigil_mutex_lock(&busy), VIGIL_OK);
        assert_int_equal(vigil_mutex_unlock(&busy), VIGIL_OK);
    }
    return NULL;
}

static void *come_and_go(void *unused) {
    (void)unused;
    uint32_t words[4] = {0};
    while (!LOAD(enough)) {
        vigil_agent *agent = new_agent(0);
        struct noted noted[4] = {0};
        vigil_request request = {0};
        for (int i = 0; i < 4; i++) noted_pending(agent, &noted[i], &words[i]);
        vigil_mutex_execute(agent, &request, &busy, VIGIL_FOREVER, ignore);
        vigil_notify(&words[1], 1);
        assert_true(vigil_agent_dispatch(agent) >= 0);
        end_agent(agent);
    }
    return NULL;
}

static void any_time_will_do(void **state) {
    (void)state;
    void *(*const mains[])(void *) = {lock_and_unlock, lock_and_unlock, come_and_go, come_and_go};
    pthread_t threads[COUNT_OF(mains)];
    enough = false;
    for (size_t i = 0; i < COUNT_OF(mains); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, mains[i], NULL), 0);
    }
    for (int i = 0; i < (UNDER_TSAN ? 10 : 50); i++) {
        FILE *file = dump();
        assert_int_equal(strncmp(next_line(file), "vigil: process ", strlen("vigil: process ")), 0);
        for (const char *line; *(line = next_line(file));) assert_true(strncmp(line, "0x", 2) == 0 || *line == ' ');
        fclose(file);
    }
    STORE(enough, true);
    for (size_t i = 0; i < COUNT_OF(mains); i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits),
        cmocka_unit_test(a_word_has_threads_and_loops_in_order),
        cmocka_unit_test(a_loop_has_one_place_in_a_locks_line),
        cmocka_unit_test(the_time_is_that_since_joining),
        cmocka_unit_test(who_is_moved_to_another_line_keeps_its_time),
        cmocka_unit_test(of_a_long_line_the_first_are_shown),
        cmocka_unit_test(of_a_very_long_line_not_all_are_counted),
        cmocka_unit_test(each_line_is_shown_once),
        cmocka_unit_test(a_bad_descriptor_is_an_error),
        cmocka_unit_test(any_time_will_do),
        cmocka_unit_test(nobody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
