/* SPDX-License-Identifier: MIT */
/* Blocking waits, notify and forget. */
#include "support.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t storage[64];
static uint32_t *const word = (uint32_t *)storage;

static int set_up(void **state) {
    (void)state;
    memset(storage, 0, sizeof storage);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return vigil_forget(storage, sizeof storage) != 0; /* a test left a waiter in line */
}

/* Before the first wait. */

static void what_need_not_wait_makes_nothing(void **state) {
    (void)state;
    assert_int_equal(vigil_wait32(word, 1, VIGIL_FOREVER), VIGIL_NOT_EQUAL);
    assert_int_equal(vigil_wait32(word, 0, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_wait64(word, 0, -1), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 0);
    assert_int_equal(vigil_forget(word, sizeof storage), 0);
    assert_null(lot_private_if_used());
}

static int without_memory(void) {
    struct rlimit none = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    if (setrlimit(RLIMIT_AS, &none) != 0) return 2;
    void *too_much = mmap(NULL, 4 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (too_much != MAP_FAILED) return 0; /* the limit is not enforced here */
    vigil_agent *agent = NULL;
    if (vigil_wait32(word, 0, VIGIL_FOREVER) != VIGIL_ENOMEM) return 3;
    if (vigil_wait64(word, 0, 1) != VIGIL_ENOMEM) return 4;
    if (vigil_wait32(word, 1, VIGIL_FOREVER) != VIGIL_NOT_EQUAL) return 5;
    if (vigil_agent_create(&agent, 0) != VIGIL_ENOMEM || agent) return 6;
    if (vigil_notify(word, 1) != 0) return 7;
    return 0;
}

static void without_memory_an_error(void **state) {
    (void)state;
    if (UNDER_ASAN || UNDER_TSAN) return; /* sanitizers need memory themselves */
    assert_null(lot_private_if_used());
    pid_t child = fork();
    if (child == 0) _exit(without_memory());
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 0);
}

/* Errors. */

static void a_null_address_is_refused(void **state) {
    (void)state;
    assert_int_equal(vigil_wait32(NULL, 0, 0), VIGIL_ENULL);
    assert_int_equal(vigil_wait64(NULL, 0, 0), VIGIL_ENULL);
    assert_int_equal(vigil_notify(NULL, 1), VIGIL_ENULL);
    assert_int_equal(vigil_notify(NULL, -1), VIGIL_ENULL);
    assert_int_equal(vigil_forget(NULL, 8), VIGIL_ENULL);
}

static void a_misaligned_address_is_refused(void **state) {
    (void)state;
    const char *bytes = (const char *)storage;
    for (int offset = 1; offset < 16; offset++) {
        int expected32 = offset % 4 ? VIGIL_EMISALIGNED : VIGIL_TIMED_OUT;
        int expected64 = offset % 8 ? VIGIL_EMISALIGNED : VIGIL_TIMED_OUT;
        assert_int_equal(vigil_wait32(bytes + offset, 0, 0), expected32);
        assert_int_equal(vigil_wait64(bytes + offset, 0, 0), expected64);
        assert_int_equal(vigil_notify(bytes + offset, 1), offset % 4 ? VIGIL_EMISALIGNED : 0);
        if (offset % 4) assert_int_equal(vigil_notify(bytes + offset, -1), VIGIL_EMISALIGNED);
    }
}

static void a_negative_count_is_refused(void **state) {
    (void)state;
    struct sleeper sleeper;
    sleeper_start(&sleeper, word, false);
    assert_int_equal(vigil_notify(word, -1), VIGIL_ECOUNT);
    assert_int_equal(vigil_notify(word, INT64_MIN), VIGIL_ECOUNT);
    assert_int_equal(waiters_in_line(word), 1);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(sleeper_join(&sleeper), VIGIL_OK);
}

static void where_blocking_is_refused(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    assert_int_equal(vigil_wait32(NULL, 0, 0), VIGIL_ENULL);             /* the arguments are checked first */
    assert_int_equal(vigil_wait32((char *)word + 2, 0, 0), VIGIL_EMISALIGNED);
    assert_int_equal(vigil_wait32(word, 1, 0), VIGIL_EMAYNOTBLOCK);      /* before the comparison */
    assert_int_equal(vigil_wait64(word, 1, 0), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_wait32(word, 0, VIGIL_FOREVER), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_notify(word, 1), 0);
    end_agent(agent);
    assert_int_equal(vigil_wait32(word, 1, 0), VIGIL_NOT_EQUAL);
}

static void refused_as_long_as_any_agent_says_so(void **state) {
    (void)state;
    vigil_agent *first = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK), *second = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    vigil_agent *may = new_agent(0);
    end_agent(first);
    assert_int_equal(vigil_wait32(word, 0, 1), VIGIL_EMAYNOTBLOCK);
    end_agent(second);
    assert_int_equal(vigil_wait32(word, 0, 1), VIGIL_TIMED_OUT);
    end_agent(may);
}

static void other_threads_may_still_block(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    struct sleeper sleeper;
    sleeper_start(&sleeper, word, false);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(sleeper_join(&sleeper), VIGIL_OK);
    end_agent(agent);
}

/* Every slot is taken: set by hand, since 64 million waiters would take too long. */
static void when_all_slots_are_taken(void **state) {
    (void)state;
    struct lot *lot = lot_private();
    uint32_t limit = lot->chunk_limit;
    vigil_agent *agent = new_agent(0);
    lot->chunk_limit = lot->chunks_used + 2;
    struct noted *noted = calloc(100000, sizeof *noted);
    unsigned started = 0;
    while (noted_start(agent, &noted[started], word, VIGIL_FOREVER) == VIGIL_PENDING) started++;
    assert_true(started >= 2 * SLOT_CHUNK);
    assert_int_equal(noted_start(agent, &noted[started], word, VIGIL_FOREVER), VIGIL_ELIMIT);
    assert_int_equal(vigil_wait32(word, 0, VIGIL_FOREVER), VIGIL_ELIMIT);
    assert_int_equal(vigil_wait64(word, 0, VIGIL_FOREVER), VIGIL_ELIMIT);
    assert_int_equal(vigil_wait32(word, 1, VIGIL_FOREVER), VIGIL_NOT_EQUAL);
    assert_int_equal(vigil_agent_stop(agent), VIGIL_ELIMIT);
    assert_int_equal(vigil_cancel(&noted[0].op), VIGIL_OK);
    assert_int_equal(noted_start(agent, &noted[0], word, VIGIL_FOREVER), VIGIL_PENDING);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), started);
    assert_int_equal(vigil_agent_dispatch(agent), started);
    lot->chunk_limit = limit;
    end_agent(agent);
    free(noted);
}

/* Comparing. */

static void another_value_is_answered_at_once(void **state) {
    (void)state;
    word[0] = 7;
    const int64_t timeouts_ns[] = {VIGIL_FOREVER, SECOND, 1, 0, -1, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(timeouts_ns); i++) {
        assert_int_equal(vigil_wait32(word, 8, timeouts_ns[i]), VIGIL_NOT_EQUAL); /* it beats a zero timeout too */
        assert_int_equal(vigil_wait64(word, 8, timeouts_ns[i]), VIGIL_NOT_EQUAL);
    }
    assert_int_equal(waiters_in_line(word), 0);
}

static void all_bits_of_the_width_count_and_no_others(void **state) {
    (void)state;
    storage[0] = UINT64_C(0x8000000000000001);
    assert_int_equal(vigil_wait64(storage, UINT64_C(0x8000000000000001), 0), VIGIL_TIMED_OUT);
    for (int bit = 0; bit < 64; bit++) {
        assert_int_equal(vigil_wait64(storage, storage[0] ^ UINT64_C(1) << bit, 0), VIGIL_NOT_EQUAL);
    }
    word[0] = 5;
    word[1] = 0xFFFFFFFF;
    assert_int_equal(vigil_wait32(word, 5, 0), VIGIL_TIMED_OUT);
    for (int bit = 0; bit < 32; bit++) assert_int_equal(vigil_wait32(word, 5 ^ UINT32_C(1) << bit, 0), VIGIL_NOT_EQUAL);
}

/* Deadlines. */

static void zero_and_less_time_out_at_once(void **state) {
    (void)state;
    assert_int_equal(vigil_wait32(word, 0, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_wait32(word, 0, -1), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_wait64(word, 0, INT64_MIN), VIGIL_TIMED_OUT);
}

static void a_deadline_is_never_early(void **state) {
    (void)state;
    const int64_t timeouts_ns[] = {1, 10, 999, 50 * MICROSECOND, 999999, MILLISECOND, 3 * MILLISECOND + 1};
    for (int round = 0; round < 40; round++) {
        int64_t timeout_ns = timeouts_ns[(size_t)round % COUNT_OF(timeouts_ns)];
        int64_t start_ns = vigil_now_ns();
        int status = round % 2 ? vigil_wait64(word, 0, timeout_ns) : vigil_wait32(word, 0, timeout_ns);
        int64_t end_ns = vigil_now_ns();
        assert_int_equal(status, VIGIL_TIMED_OUT);
        assert_true(end_ns - start_ns >= timeout_ns);
    }
    assert_int_equal(waiters_in_line(word), 0);
}

static void long_timeouts_are_not_short_ones(void **state) {
    (void)state;
    const int64_t timeouts_ns[] = {VIGIL_FOREVER, VIGIL_FOREVER - 1, INT64_MAX / 2, 3600 * SECOND};
    struct sleeper sleepers[COUNT_OF(timeouts_ns)];
    for (size_t i = 0; i < COUNT_OF(timeouts_ns); i++) {
        sleepers[i] = (struct sleeper){.address = word, .timeout_ns = timeouts_ns[i]};
        sleeper_launch(&sleepers[i]);
    }
    AWAIT(asleep(word) == COUNT_OF(timeouts_ns));
    assert_int_equal(vigil_wait32(word + 2, 0, 5 * MILLISECOND), VIGIL_TIMED_OUT);
    assert_int_equal(asleep(word), COUNT_OF(timeouts_ns));
    assert_int_equal(vigil_notify(word, VIGIL_ALL), COUNT_OF(timeouts_ns));
    for (size_t i = 0; i < COUNT_OF(timeouts_ns); i++) assert_int_equal(sleeper_join(&sleepers[i]), VIGIL_OK);
}

/* Many deadlines race with as many notifications: every waiter that was counted returns ok, and no other. */

struct racer {
    int64_t ok, timed_out;
    bool done;
};

static void *race_deadlines(void *argument) {
    struct racer *racer = argument;
    for (int i = 0; i < 5000; i++) {
        int status = vigil_wait32(word, 0, 1 + i % 30 * MICROSECOND);
        if (status == VIGIL_OK) racer->ok++;
        if (status == VIGIL_TIMED_OUT) racer->timed_out++;
    }
    STORE(racer->done, true);
    return NULL;
}

static void notification_or_deadline_never_both(void **state) {
    (void)state;
    struct racer racers[2] = {{.ok = 0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, race_deadlines, &racers[i]), 0);
    int64_t notified = 0, ok = 0;
    uint64_t seed = 3;
    while (!LOAD(racers[0].done) || !LOAD(racers[1].done)) {
        notified += vigil_notify(word, 1);
        /* Not too often, or all are notified long before their deadline. */
        for (volatile uint64_t turns = random_next(&seed) % 40000; turns; turns--) continue;
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(racers[i].ok + racers[i].timed_out, 5000);
        ok += racers[i].ok;
    }
    assert_int_equal(notified, ok);
}

static void errno_stays_as_it_was(void **state) {
    (void)state;
    errno = EXDEV;
    assert_int_equal(vigil_wait32(word, 0, MILLISECOND), VIGIL_TIMED_OUT);
    assert_int_equal(errno, EXDEV);
}

static void the_clock_is_monotonic(void **state) {
    (void)state;
    int64_t before_ns = vigil_now_ns();
    assert_true(before_ns > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now_ns = vigil_now_ns();
        assert_true(now_ns >= before_ns);
        before_ns = now_ns;
    }
}

/* Notify. */

static void nobody_there(void **state) {
    (void)state;
    assert_int_equal(vigil_notify(word, 0), 0);
    assert_int_equal(vigil_notify(word, 1), 0);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 0);
}

static void notify_does_not_look_at_the_word(void **state) {
    (void)state;
    struct sleeper sleeper;
    sleeper_start(&sleeper, word, false);
    assert_int_equal(vigil_notify(word, 1), 1); /* still zero, and yet woken */
    assert_int_equal(sleeper_join(&sleeper), VIGIL_OK);
}

static unsigned how_many_up(struct sleeper *sleepers, unsigned count) {
    unsigned up = 0;
    for (unsigned i = 0; i < count; i++) up += sleeper_up(&sleepers[i]);
    return up;
}

#define CROWD 9

static void the_first_so_many(void **state) {
    (void)state;
    struct sleeper sleepers[CROWD];
    for (int i = 0; i < CROWD; i++) sleeper_start(&sleepers[i], word, i % 2);
    const struct {
        int64_t count, answer;
    } steps[] = {{0, 0}, {1, 1}, {3, 3}, {0, 0}, {4, 4}, {2, 1}, {1, 0}, {VIGIL_ALL, 0}};
    unsigned up = 0;
    for (size_t step = 0; step < COUNT_OF(steps); step++) {
        assert_int_equal(vigil_notify(word, steps[step].count), steps[step].answer);
        up += (unsigned)steps[step].answer;
        assert_int_equal(waiters_in_line(word), CROWD - up);
        AWAIT(how_many_up(sleepers, CROWD) == up);
        for (unsigned i = 0; i < CROWD; i++) assert_int_equal(sleeper_up(&sleepers[i]), i < up);
    }
    for (int i = 0; i < CROWD; i++) assert_int_equal(sleeper_join(&sleepers[i]), VIGIL_OK);
}

static void all(void **state) {
    (void)state;
    struct sleeper sleepers[CROWD];
    for (int i = 0; i < CROWD; i++) sleeper_start(&sleepers[i], word, false);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), CROWD);
    for (int i = 0; i < CROWD; i++) assert_int_equal(sleeper_join(&sleepers[i]), VIGIL_OK);
}

static void first_come_first_served(void **state) {
    (void)state;
    struct sleeper sleepers[CROWD];
    for (int i = 0; i < CROWD; i++) sleeper_start(&sleepers[i], word, i % 3 == 0); /* widths mixed in one line */
    for (unsigned next = 0; next < CROWD; next++) {
        assert_int_equal(vigil_notify(word, 1), 1);
        AWAIT(how_many_up(sleepers, CROWD) == next + 1);
        assert_true(sleeper_up(&sleepers[next]));
        assert_int_equal(sleeper_join(&sleepers[next]), VIGIL_OK);
    }
}

static void who_times_out_leaves_the_others_in_order(void **state) {
    (void)state;
    enum { SOME = 5 };
    for (unsigned leaver = 0; leaver < SOME; leaver++) { /* the head, the middle, the tail */
        struct sleeper sleepers[SOME];
        for (unsigned i = 0; i < SOME; i++) {
            int64_t timeout_ns = i == leaver ? 20 * MILLISECOND : VIGIL_FOREVER;
            sleepers[i] = (struct sleeper){.address = word, .timeout_ns = timeout_ns};
            sleeper_launch(&sleepers[i]);
            AWAIT(waiters_in_line(word) + (leaver <= i && sleeper_up(&sleepers[leaver])) == i + 1);
        }
        assert_int_equal(sleeper_join(&sleepers[leaver]), VIGIL_TIMED_OUT);
        AWAIT(waiters_in_line(word) == SOME - 1);
        for (unsigned next = 0, up = 1; next < SOME; next++) {
            if (next == leaver) continue;
            assert_int_equal(vigil_notify(word, 1), 1);
            up++;
            AWAIT(how_many_up(sleepers, SOME) == up);
            assert_int_equal(sleeper_join(&sleepers[next]), VIGIL_OK);
        }
    }
}

static void neighbours_have_lines_of_their_own(void **state) {
    (void)state;
    struct sleeper low, high, wide;
    sleeper_start(&low, word, false);
    sleeper_start(&high, word + 1, false);
    sleeper_start(&wide, word, true); /* covers both words, and is in line at the first */
    assert_int_equal(vigil_notify(word + 1, VIGIL_ALL), 1);
    assert_int_equal(sleeper_join(&high), VIGIL_OK);
    assert_int_equal(waiters_in_line(word), 2);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 2);
    assert_int_equal(sleeper_join(&low), VIGIL_OK);
    assert_int_equal(sleeper_join(&wide), VIGIL_OK);
}

/* Finds words in the same bucket: while one word has a waiter, it checks which other words seem occupied. */
static void lines_that_share_a_bucket_do_not_mix(void **state) {
    (void)state;
    enum { LINES = 4, EACH = 3 };
    size_t bytes = (size_t)64 << 20;
    uint32_t *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(words != MAP_FAILED);
    struct sleeper sleepers[LINES][EACH];
    uint32_t *line[LINES] = {words};
    sleeper_start(&sleepers[0][0], words, false);
    size_t at = 0;
    for (int i = 1; i < LINES; i++) {
        while (++at < bytes / sizeof *words && !lot_occupied(lot_private(), &words[at])) continue;
        assert_true(at < bytes / sizeof *words);
        line[i] = &words[at];
    }
    for (int turn = 0; turn < EACH; turn++) {
        for (int i = turn ? 0 : 1; i < LINES; i++) sleeper_start(&sleepers[i][turn], line[i], false);
    }
    for (int turn = 0; turn < EACH; turn++) {
        for (int i = LINES - 1; i >= 0; i--) {
            assert_int_equal(vigil_notify(line[i], 1), 1);
            assert_int_equal(sleeper_join(&sleepers[i][turn]), VIGIL_OK);
            assert_int_equal(waiters_in_line(line[i]), EACH - 1 - turn);
        }
    }
    for (int i = 0; i < LINES; i++) assert_int_equal(vigil_notify(line[i], VIGIL_ALL), 0);
    munmap(words, bytes);
}

/* The word never changes: only the notification orders the plain accesses to `message`. */

static uint64_t message;

static void *read_message(void *unused) {
    (void)unused;
    for (uint64_t expected = 1; expected <= 2000; expected++) {
        if (vigil_wait32(word, 0, VIGIL_FOREVER) != VIGIL_OK || message != expected) return "wrong";
        message = 0;
        while (vigil_notify(word + 1, 1) == 0) sched_yield();
    }
    return NULL;
}

static void what_was_written_before_notify_is_seen(void **state) {
    (void)state;
    pthread_t reader;
    void *wrong;
    message = 0;
    assert_int_equal(pthread_create(&reader, NULL, read_message, NULL), 0);
    for (uint64_t i = 1; i <= 2000; i++) {
        assert_int_equal(message, 0);
        message = i;
        while (vigil_notify(word, 1) == 0) sched_yield();
        assert_int_equal(vigil_wait32(word + 1, 0, VIGIL_FOREVER), VIGIL_OK);
    }
    assert_int_equal(pthread_join(reader, &wrong), 0);
    assert_null(wrong);
}

/* Forget. */

static void forget_ends_waits_as_cancelled(void **state) {
    (void)state;
    struct sleeper inside[3], before, after;
    sleeper_start(&before, word + 3, false);
    for (int i = 0; i < 3; i++) sleeper_start(&inside[i], word + 4, i == 1);
    sleeper_start(&after, word + 5, false);
    assert_int_equal(vigil_forget(word + 4, 4), 3);
    for (int i = 0; i < 3; i++) assert_int_equal(sleeper_join(&inside[i]), VIGIL_CANCELLED);
    assert_int_equal(vigil_forget(word + 4, 4), 0);
    assert_int_equal(vigil_notify(word + 4, VIGIL_ALL), 0);
    assert_int_equal(vigil_notify(word + 3, VIGIL_ALL), 1);
    assert_int_equal(vigil_notify(word + 5, VIGIL_ALL), 1);
    assert_int_equal(sleeper_join(&before), VIGIL_OK);
    assert_int_equal(sleeper_join(&after), VIGIL_OK);
}

static void forget_of_nothing(void **state) {
    (void)state;
    uint32_t *at = word + 8;
    struct sleeper sleeper;
    sleeper_start(&sleeper, at, false);
    assert_int_equal(vigil_forget(at, 0), 0);
    assert_int_equal(vigil_forget(at - 1, 4), 0);
    assert_int_equal(vigil_forget(at + 1, 64), 0);
    assert_int_equal(vigil_forget((char *)at + 1, 3), 0); /* the word begins before it */
    assert_int_equal(waiters_in_line(at), 1);
    assert_int_equal(vigil_forget(at, 1), 1); /* and here it begins in it */
    assert_int_equal(sleeper_join(&sleeper), VIGIL_CANCELLED);
}

/* Larger than any number of waiters: in this case the waiters are searched. */
static void forget_of_a_large_range(void **state) {
    (void)state;
    size_t bytes = (size_t)256 << 20;
    char *range = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(range != MAP_FAILED);
    const size_t offsets[] = {4096, bytes / 2, bytes / 2, bytes - 4096 - 4};
    struct sleeper inside[COUNT_OF(offsets)], first, last;
    sleeper_start(&first, range, false);
    for (size_t i = 0; i < COUNT_OF(offsets); i++) sleeper_start(&inside[i], range + offsets[i], false);
    sleeper_start(&last, range + bytes - 4096, false);
    assert_true(bytes / 4 > slots_ever_used());
    assert_int_equal(vigil_forget(range + 4096, bytes - 8192), COUNT_OF(offsets));
    for (size_t i = 0; i < COUNT_OF(offsets); i++) assert_int_equal(sleeper_join(&inside[i]), VIGIL_CANCELLED);
    assert_int_equal(vigil_notify(range, 1), 1);
    assert_int_equal(vigil_notify(range + bytes - 4096, 1), 1);
    assert_int_equal(sleeper_join(&first), VIGIL_OK);
    assert_int_equal(sleeper_join(&last), VIGIL_OK);
    munmap(range, bytes);
}

static void forget_of_more_than_there_is(void **state) {
    (void)state;
    struct sleeper sleeper;
    sleeper_start(&sleeper, word, false);
    assert_int_equal(vigil_forget(word, UINT64_MAX), VIGIL_ERANGE);
    assert_int_equal(vigil_forget(word, UINT64_MAX - (uint64_t)(uintptr_t)word + 2), VIGIL_ERANGE);
    assert_int_equal(waiters_in_line(word), 1);
    assert_int_equal(vigil_forget(word, UINT64_MAX - (uint64_t)(uintptr_t)word + 1), 1); /* up to the very last byte */
    assert_int_equal(sleeper_join(&sleeper), VIGIL_CANCELLED);
    assert_int_equal(vigil_forget((void *)(UINTPTR_MAX - 1), 2), 0);
}

/* Signals. */

static unsigned handled;

static void count_signal(int signal_number) {
    (void)signal_number;
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void on_signal(void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static void hit_by_signals(int flags, int64_t timeout_ns) {
    on_signal(count_signal, flags);
    struct sleeper sleeper = {.address = word, .timeout_ns = timeout_ns};
    sleeper_launch(&sleeper);
    AWAIT(asleep(word) == 1);
    for (unsigned i = 0; i < 500; i++) {
        unsigned before = LOAD(handled);
        assert_int_equal(pthread_kill(sleeper.thread, SIGUSR1), 0);
        if (!UNDER_TSAN) AWAIT(LOAD(handled) > before); /* which delays handlers while a thread sleeps */
        assert_false(sleeper_up(&sleeper));
    }
    assert_int_equal(waiters_in_line(word), 1);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(sleeper_join(&sleeper), VIGIL_OK);
}

static void signals_do_not_end_a_wait(void **state) {
    (void)state;
    const int flags[] = {0, SA_RESTART};
    const int64_t timeouts_ns[] = {VIGIL_FOREVER, 3600 * SECOND};
    for (int i = 0; i < 4; i++) hit_by_signals(flags[i % 2], timeouts_ns[i / 2]);
}

static void signals_do_not_move_a_deadline(void **state) {
    (void)state;
    on_signal(count_signal, 0);
    int64_t start_ns = vigil_now_ns();
    struct sleeper sleeper = {.address = word, .timeout_ns = 20 * MILLISECOND};
    sleeper_launch(&sleeper);
    while (!sleeper_up(&sleeper)) {
        pthread_kill(sleeper.thread, SIGUSR1);
        sched_yield();
    }
    assert_int_equal(sleeper_join(&sleeper), VIGIL_TIMED_OUT);
    assert_true(vigil_now_ns() - start_ns >= 20 * MILLISECOND);
}

/* Threads and slots. */

static void *wait_once(void *unused) {
    (void)unused;
    return vigil_wait32(word, 0, 1) == VIGIL_TIMED_OUT ? NULL : "wrong";
}

static void threads_give_their_slots_back(void **state) {
    (void)state;
    uint32_t before = slots_ever_used();
    for (int i = 0; i < 10000; i++) {
        pthread_t thread;
        void *wrong;
        assert_int_equal(pthread_create(&thread, NULL, wait_once, NULL), 0);
        assert_int_equal(pthread_join(thread, &wrong), 0);
        assert_null(wrong);
    }
    assert_true(slots_ever_used() - before <= SLOT_CHUNK); /* one thread at a time needs one chunk */
}

static void a_million_waits_need_one_slot(void **state) {
    (void)state;
    uint32_t before = slots_ever_used();
    for (int i = 0; i < 20000; i++) assert_int_equal(vigil_wait32(word, 0, 1), VIGIL_TIMED_OUT);
    vigil_agent *agent = new_agent(0);
    struct noted noted = {0};
    for (int i = 0; i < 1000000; i++) {
        if (noted_start(agent, &noted, word, SECOND) != VIGIL_PENDING) fail();
        if (vigil_cancel(&noted.op) != VIGIL_OK) fail();
    }
    end_agent(agent);
    assert_true(slots_ever_used() - before <= SLOT_CHUNK);
}

/* One thread starts what another ends: the slots must be returned. */
static void *start_and_end(void *mine) {
    uint32_t *at = mine;
    for (int i = 0; i < 300; i++) {
        if (vigil_wait32(at, 0, 1 + i % 2 * 50 * MICROSECOND) < 0) return "wrong";
    }
    return NULL;
}

static void slots_stay_bounded_by_those_in_use(void **state) {
    (void)state;
    enum { THREADS = 8 };
    uint32_t before = slots_ever_used();
    for (int round = 0; round < 20; round++) {
        pthread_t threads[THREADS];
        void *wrong;
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, start_and_end, word + i), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], &wrong), 0);
            assert_null(wrong);
        }
    }
    assert_true(slots_ever_used() - before <= (THREADS + 1) * SLOT_CHUNK); /* a chunk per thread, and those in use */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_need_not_wait_makes_nothing), /* these two must come first */
        cmocka_unit_test(without_memory_an_error),
        TEST(a_null_address_is_refused),
        TEST(a_misaligned_address_is_refused),
        TEST(a_negative_count_is_refused),
        TEST(where_blocking_is_refused),
        TEST(refused_as_long_as_any_agent_says_so),
        TEST(other_threads_may_still_block),
        TEST(when_all_slots_are_taken),
        TEST(another_value_is_answered_at_once),
        TEST(all_bits_of_the_width_count_and_no_others),
        TEST(zero_and_less_time_out_at_once),
        TEST(a_deadline_is_never_early),
        TEST(long_timeouts_are_not_short_ones),
        TEST(notification_or_deadline_never_both),
        TEST(errno_stays_as_it_was),
        TEST(the_clock_is_monotonic),
        TEST(nobody_there),
        TEST(notify_does_not_look_at_the_word),
        TEST(the_first_so_many),
        TEST(all),
        TEST(first_come_first_served),
        TEST(who_times_out_leaves_the_others_in_order),
        TEST(neighbours_have_lines_of_their_own),
        TEST(lines_that_share_a_bucket_do_not_mix),
        TEST(what_was_written_before_notify_is_seen),
        TEST(forget_ends_waits_as_cancelled),
        TEST(forget_of_nothing),
        TEST(forget_of_a_large_range),
        TEST(forget_of_more_than_there_is),
        TEST(signals_do_not_end_a_wait),
        TEST(signals_do_not_move_a_deadline),
        TEST(threads_give_their_slots_back),
        TEST(a_million_waits_need_one_slot),
        TEST(slots_stay_bounded_by_those_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
