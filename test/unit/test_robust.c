/* SPDX-License-Identifier: MIT */
/*
 * Difficult conditions: first uses, cancelled threads, forks inside callbacks, no keys and little address space left,
 * the top of memory.
 *
 * Each test runs alone, in a child that has never used the library before. A child that hangs is killed by its alarm.
 */
#include "support.h"

#include "child.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"

#define MEBIBYTE      ((size_t)1 << 20)
#define NOT_PERMITTED 77 /* a child's exit status */

/* The child of a process with threads may end its workers: the thread sanitizer would abort it. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "die_after_fork=0";
}

static uint64_t storage[8];
static uint32_t *const word = (uint32_t *)storage;

struct scenario {
    void (*checks)(void);
};

/* cmocka catches these, and would continue into the next test. */
static void let_crashes_kill(void) {
    const int crashes[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS};
    for (size_t i = 0; i < COUNT_OF(crashes); i++) signal(crashes[i], SIG_DFL);
}

static void alone(void **state) {
    const struct scenario *scenario = *state;
    pid_t child = fork_here();
    if (child == 0) {
        let_crashes_kill();
        scenario->checks();
        _exit(0);
    }
    int status = exit_status_of(child);
    if (status == NOT_PERMITTED) skip();
    assert_int_equal(status, 0);
}

static vigil_agent *create(unsigned flags) {
    vigil_agent *agent = NULL;
    CHECK(vigil_agent_create(&agent, flags) == VIGIL_OK);
    return agent;
}

static void count(vigil_agent *agent, void *counter) {
    (void)agent;
    ++*(unsigned *)counter;
}

/* First uses. */

static void before_anybody_has_waited_there_is_nobody(void) {
    CHECK(vigil_notify(word, 1) == 0);
    CHECK(vigil_notify(word, VIGIL_ALL) == 0);
    CHECK(vigil_waiters(word) == 0);
    CHECK(vigil_forget(storage, sizeof storage) == 0);
    CHECK(vigil_wait32(word, 0, 1) == VIGIL_TIMED_OUT);
}

static pthread_key_t keys[PTHREAD_KEYS_MAX];
static size_t key_count;
static size_t values_destroyed, strangers_destroyed;

static void destroy_value(void *value) {
    pthread_key_t *key = value;
    if (key >= keys && key < keys + key_count) values_destroyed++;
    else strangers_destroyed++;
}

static void *wait_with_every_key_in_use(void *unused) {
    for (size_t i = 0; i < key_count; i++) CHECK(pthread_setspecific(keys[i], &keys[i]) == 0);
    int status = vigil_wait32(word, 0, 1);
    for (size_t i = 0; i < key_count; i++) CHECK(pthread_getspecific(keys[i]) == &keys[i]);
    CHECK(status == VIGIL_TIMED_OUT); /* the library has made its own before, or works without one */
    return unused;
}

static void when_all_thread_keys_are_taken_none_is_touched(void) {
    pthread_t thread;
    while (key_count < PTHREAD_KEYS_MAX && pthread_key_create(&keys[key_count], destroy_value) == 0) key_count++;
    CHECK(key_count > 0);
    CHECK(pthread_create(&thread, NULL, wait_with_every_key_in_use, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(values_destroyed == key_count);
    CHECK(strangers_destroyed == 0);
    CHECK(vigil_notify(word, VIGIL_ALL) == 0);
}

static void limit_address_space(size_t bytes) {
    struct rlimit both = {.rlim_cur = bytes, .rlim_max = bytes};
    CHECK(setrlimit(RLIMIT_AS, &both) == 0);
}

/* qemu-user does not enforce this limit, so nothing can go wrong there. */
static void little_address_space_is_enough(void) {
    if (UNDER_ASAN || UNDER_TSAN) _exit(NOT_PERMITTED); /* sanitizers need it themselves */
    for (size_t mebibytes = 64; mebibytes <= 8192; mebibytes *= 2) {
        pid_t child = fork_here();
        if (child == 0) {
            limit_address_space(mebibytes * MEBIBYTE);
            CHECK(vigil_wait32(word, 0, 1) == VIGIL_TIMED_OUT);
            _exit(0);
        }
        CHECK(exit_status_of(child) == 0);
    }
}

static size_t resident_bytes(void) {
    size_t resident_pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm);
    CHECK(fscanf(statm, "%*u %zu", &resident_pages) == 1);
    fclose(statm);
    return resident_pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Without the privilege a program may lock only a few mebibytes, or nothing. */
static bool may_lock_all_memory(void) {
    if (mlockall(MCL_FUTURE) != 0) return false;
    void *probe = mmap(NULL, 64 * MEBIBYTE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return probe != MAP_FAILED && munmap(probe, 64 * MEBIBYTE) == 0;
}

/* Neither before the first wait nor after it: the part of the lot that is accessible is small. */
static void locking_all_memory_does_not_fill_the_lot(void) {
    if (UNDER_ASAN || UNDER_TSAN) _exit(NOT_PERMITTED); /* sanitizers make mlockall a no-op */
    limit_address_space(512 * MEBIBYTE);                /* the lot reserves half of it, and must not fill that */
    if (!may_lock_all_memory()) _exit(NOT_PERMITTED);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) _exit(NOT_PERMITTED);
    size_t before = resident_bytes(); /* under qemu this includes its own memory, locked by now */
    CHECK(vigil_wait32(word, 0, 1) == VIGIL_TIMED_OUT);
    CHECK(resident_bytes() < before + 64 * MEBIBYTE);
    CHECK(mlockall(MCL_CURRENT) == 0);
    CHECK(resident_bytes() < before + 128 * MEBIBYTE);
}

/* Notifying. */

static int64_t rung;
static unsigned posts_run;

static void *notify_while_cancelled(void *agent) {
    pthread_cancel(pthread_self());
    rung = vigil_notify(word, 1);
    return agent;
}

static void *post_while_cancelled(void *agent) {
    pthread_cancel(pthread_self());
    rung = vigil_agent_post(agent, count, &posts_run);
    return agent;
}

static void ring_from_a_cancelled_thread(vigil_agent *agent, void *(*ringer)(void *)) {
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    pthread_t thread;
    void *result;
    rung = UNDECIDED;
    CHECK(pthread_create(&thread, NULL, ringer, agent) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == agent); /* not PTHREAD_CANCELED: it ran to its end */
    CHECK(poll(&seat, 1, 0) == 1);
    CHECK(vigil_agent_dispatch(agent) == 1);
}

static void a_cancelled_threads_ring_is_not_lost(void) {
    vigil_agent *agent = create(0);
    struct noted noted = {0};
    CHECK(noted_start(agent, &noted, word, VIGIL_FOREVER) == VIGIL_PENDING);
    ring_from_a_cancelled_thread(agent, notify_while_cancelled);
    CHECK(rung == 1 && noted.calls == 1 && noted.status == VIGIL_OK);
    ring_from_a_cancelled_thread(agent, post_while_cancelled);
    CHECK(rung == VIGIL_OK && posts_run == 1);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
}

static pid_t notifier_id;

static void *notify_everybody(void *answer) {
    STORE(notifier_id, (pid_t)syscall(SYS_gettid));
    *(int64_t *)answer = vigil_notify(word, VIGIL_ALL);
    return NULL;
}

static bool is_blocked(pid_t thread) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *stat = fopen(path, "r");
    CHECK(stat);
    CHECK(fgets(line, sizeof line, stat));
    fclose(stat);
    const char *name_end = strrchr(line, ')');
    return name_end && strncmp(name_end, ") S", 3) == 0;
}

static struct slot *slot_of_the_thread_in_line(void) {
    struct lot *lot = lot_private_if_used();
    for (uint32_t index = 1; index < slot_bound(lot); index++) {
        struct slot *slot = &lot->slots[index];
        if (prim_load_relaxed(&slot->key) == key_of(lot, word) && !prim_load_relaxed(&slot->seat)) return slot;
    }
    return NULL;
}

/* The agent's bell is made to block the notifier that rings it. */

static void fill_bell(vigil_agent *agent) {
    int bell = agent->seat.bell.event_fd;
    uint64_t full = UINT64_MAX - 1;
    CHECK(fcntl(bell, F_SETFL, fcntl(bell, F_GETFL) & ~O_NONBLOCK) == 0);
    CHECK(write(bell, &full, sizeof full) == sizeof full);
}

static void empty_bell(vigil_agent *agent) {
    uint64_t full;
    CHECK(read(agent->seat.bell.event_fd, &full, sizeof full) == sizeof full);
}

/* While the notifier is blocked there, it must not have woken the thread yet. */
static void an_agent_is_rung_before_the_thread_behind_it_is_woken(void) {
    vigil_agent *agent = create(0);
    fill_bell(agent);

    struct noted first = {0};
    struct sleeper second;
    CHECK(noted_start(agent, &first, word, VIGIL_FOREVER) == VIGIL_PENDING);
    sleeper_start(&second, word, false);
    struct slot *seconds_slot = slot_of_the_thread_in_line();
    CHECK(seconds_slot);

    pthread_t notifier;
    int64_t notified = 0;
    CHECK(pthread_create(&notifier, NULL, notify_everybody, &notified) == 0);
    AWAIT(LOAD(notifier_id) && waiters_in_line(word) == 0 && is_blocked(notifier_id));
    CHECK(prim_load_acquire(&seconds_slot->state) >= SLOT_WAITING); /* still undecided */

    empty_bell(agent);
    CHECK(pthread_join(notifier, NULL) == 0);
    CHECK(notified == 2);
    CHECK(sleeper_join(&second) == VIGIL_OK);
    CHECK(vigil_agent_dispatch(agent) == 1);
    CHECK(first.calls == 1 && first.status == VIGIL_OK);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
}

/* The other way round: when the notifier comes to the bell, the thread before the agent has been notified. */
static void a_thread_is_woken_before_the_agent_behind_it_is_rung(void) {
    vigil_agent *agent = create(0);
    fill_bell(agent);

    struct sleeper first;
    struct noted second = {0};
    sleeper_start(&first, word, false);
    CHECK(noted_start(agent, &second, word, VIGIL_FOREVER) == VIGIL_PENDING);

    pthread_t notifier;
    int64_t notified = 0;
    CHECK(pthread_create(&notifier, NULL, notify_everybody, &notified) == 0);
    CHECK(sleeper_join(&first) == VIGIL_OK); /* although no thread has made room for the ring */

    empty_bell(agent);
    CHECK(pthread_join(notifier, NULL) == 0);
    CHECK(notified == 2);
    CHECK(vigil_agent_dispatch(agent) == 1);
    CHECK(second.calls == 1 && second.status == VIGIL_OK);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
}

/* Running. */

static void unref_does_not_take_an_operations_reference(void) {
    vigil_agent *agent = create(0);
    struct noted noted = {0};
    CHECK(noted_start(agent, &noted, word, VIGIL_FOREVER) == VIGIL_PENDING);
    CHECK(vigil_agent_unref(agent) == VIGIL_EINVAL);
    CHECK(vigil_agent_ref(agent) == VIGIL_OK);
    CHECK(vigil_agent_unref(agent) == VIGIL_OK);
    CHECK(vigil_agent_unref(agent) == VIGIL_EINVAL);
    CHECK(vigil_agent_run_until(agent, 0) == VIGIL_TIMED_OUT); /* the operation still keeps it running */
    CHECK(vigil_notify(word, 1) == 1);
    CHECK(vigil_agent_run(agent) == VIGIL_OK);
    CHECK(noted.calls == 1 && noted.status == VIGIL_OK);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
}

static void post_again(vigil_agent *agent, void *last_answer) {
    *(int *)last_answer = vigil_agent_post(agent, post_again, last_answer);
}

static void run_until_ends_although_posts_keep_coming(void) {
    vigil_agent *agent = create(0);
    int last_answer = UNDECIDED;
    int64_t deadline_ns = vigil_now_ns() + MILLISECOND;
    CHECK(vigil_agent_post(agent, post_again, &last_answer) == VIGIL_OK);
    CHECK(vigil_agent_run_until(agent, deadline_ns) == VIGIL_TIMED_OUT);
    CHECK(vigil_now_ns() >= deadline_ns);
    CHECK(last_answer == VIGIL_OK);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
    CHECK(last_answer == VIGIL_ECLOSING);
}

static void run_and_destroy_inside(vigil_agent *agent, void *refused) {
    *(bool *)refused =
        vigil_agent_run(agent) == VIGIL_EREENTRANT && vigil_agent_run_until(agent, 0) == VIGIL_EREENTRANT &&
        vigil_agent_dispatch(agent) == VIGIL_EREENTRANT && vigil_agent_destroy(agent) == VIGIL_EREENTRANT;
}

static void a_workers_main_cannot_run_or_destroy_its_agent(void) {
    vigil_worker *worker;
    bool refused = false;
    CHECK(vigil_worker_start(&worker, run_and_destroy_inside, &refused) == VIGIL_OK);
    CHECK(vigil_worker_stop(worker) == VIGIL_OK);
    CHECK(vigil_worker_join(worker) == VIGIL_OK);
    CHECK(refused);
}

/* Forks. */

static pid_t forked; /* by a callback; 0 in the child */
static vigil_agent *childs_agent;
static struct noted childs_wait;

static void fork_the_first_time(vigil_op *op, int status) {
    note(op, status);
    if (forked == -1) forked = fork_here();
}

static void fork_and_begin_anew(vigil_op *op, int status) {
    bool first_time = forked == -1;
    fork_the_first_time(op, status);
    if (!first_time || forked != 0) return;
    childs_agent = create(0);
    CHECK(noted_start(childs_agent, &childs_wait, word, VIGIL_FOREVER) == VIGIL_PENDING);
}

static void child_goes_on(vigil_agent *parents) {
    CHECK(vigil_agent_destroy(parents) == VIGIL_OK);
    CHECK(vigil_wait32(word, 0, 1) == VIGIL_TIMED_OUT); /* the parent's agent may not block; the child may */
    if (childs_agent) {
        CHECK(childs_wait.calls == 0);
        CHECK(vigil_notify(word, VIGIL_ALL) == 1);
        CHECK(vigil_agent_dispatch(childs_agent) == 1);
        CHECK(childs_wait.calls == 1 && childs_wait.status == VIGIL_OK);
        CHECK(vigil_agent_destroy(childs_agent) == VIGIL_OK);
    }
    _exit(0);
}

static void fork_inside_destroy(vigil_callback *callback, unsigned operations) {
    static struct noted noted[2];
    vigil_agent *agent = create(VIGIL_AGENT_MAY_NOT_BLOCK);
    for (unsigned i = 0; i < operations; i++) {
        CHECK(vigil_wait32_async(agent, &noted[i].op, word, 0, VIGIL_FOREVER, callback) == VIGIL_PENDING);
    }
    forked = -1;
    int answer = vigil_agent_destroy(agent);
    if (forked == 0) {
        CHECK(answer == VIGIL_EFORKED);
        CHECK(noted[0].calls + noted[1].calls == 1); /* what was still pending belongs to the parent */
        child_goes_on(agent);
    }
    CHECK(exit_status_of(forked) == 0);
    CHECK(answer == VIGIL_OK);
    for (unsigned i = 0; i < operations; i++) CHECK(noted[i].calls == 1 && noted[i].status == VIGIL_CANCELLED);
    CHECK(vigil_wait32(word, 0, 1) == VIGIL_TIMED_OUT);
}

static void fork_inside_destroys_last_callback(void) {
    fork_inside_destroy(fork_the_first_time, 1);
}

static void fork_inside_destroy_while_another_is_pending(void) {
    fork_inside_destroy(fork_the_first_time, 2);
}

static void fork_inside_destroy_and_begin_anew(void) {
    fork_inside_destroy(fork_and_begin_anew, 2);
}

static void fork_and_destroy(vigil_agent *agent, void *answer) {
    forked = fork_here();
    if (forked == 0) *(int *)answer = vigil_agent_destroy(agent);
}

static void a_dead_agent_outlives_the_callback_that_forked(void) {
    vigil_agent *agent = create(0);
    int answer_inside = UNDECIDED;
    CHECK(vigil_agent_post(agent, fork_and_destroy, &answer_inside) == VIGIL_OK);
    int64_t served = vigil_agent_dispatch(agent);
    if (forked == 0) {
        CHECK(answer_inside == VIGIL_EREENTRANT);
        CHECK(served == VIGIL_EFORKED);
        CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
        _exit(0);
    }
    CHECK(exit_status_of(forked) == 0);
    CHECK(served == 1);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
}

/* musl's pthread_join waits for the thread that does not exist; glibc's does not. */
static void a_forks_child_joins_a_worker_without_its_thread(void) {
    vigil_worker *worker;
    unsigned counter = 0;
    CHECK(vigil_worker_start(&worker, count, &counter) == VIGIL_OK);
    pid_t child = fork_here();
    if (child == 0) {
        CHECK(vigil_worker_stop(worker) == VIGIL_EFORKED);
        CHECK(vigil_worker_join(worker) == VIGIL_OK);
        _exit(0);
    }
    CHECK(exit_status_of(child) == 0);
    CHECK(vigil_agent_post(vigil_worker_agent(worker), count, &counter) == VIGIL_OK);
    CHECK(vigil_worker_stop(worker) == VIGIL_OK);
    CHECK(vigil_worker_join(worker) == VIGIL_OK);
    CHECK(counter == 2);
}

/* Forget: the word under test is the first of storage[4]. */

static void *address_at(uintptr_t number) {
    return (void *)number;
}

static void forget_takes_the_waiter_or_not(uintptr_t first_byte, uint64_t length, int64_t expected) {
    vigil_agent *agent = create(0);
    struct noted noted = {0};
    CHECK(noted_start(agent, &noted, &storage[4], VIGIL_FOREVER) == VIGIL_PENDING);
    int64_t forgotten = vigil_forget(address_at(first_byte), length);
    if (forgotten != expected) fprintf(stderr, "forget(%#zx, %#zx)\n", (size_t)first_byte, (size_t)length);
    CHECK(forgotten == expected);
    CHECK(vigil_waiters(&storage[4]) == (expected == 1 ? 0 : 1));
    CHECK(vigil_agent_dispatch(agent) == (expected == 1 ? 1 : 0));
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
    CHECK(noted.calls == 1 && noted.status == VIGIL_CANCELLED);
}

static void forget_ranges_that_begin_and_end_inside_words(void) {
    uintptr_t at = (uintptr_t)&storage[4];
    forget_takes_the_waiter_or_not(at, 0, 0);
    forget_takes_the_waiter_or_not(at, 1, 1); /* its line is at its first byte */
    forget_takes_the_waiter_or_not(at + 1, 1, 0);
    forget_takes_the_waiter_or_not(at + 1, 2, 0);
    forget_takes_the_waiter_or_not(at + 1, 3, 0);
    forget_takes_the_waiter_or_not(at + 3, 9, 0);
    forget_takes_the_waiter_or_not(at - 1, 1, 0);
    forget_takes_the_waiter_or_not(at - 1, 2, 1);
    forget_takes_the_waiter_or_not(at - 3, 3, 0);
    forget_takes_the_waiter_or_not(at - 3, 4, 1);
    forget_takes_the_waiter_or_not(at - 4, 4, 0);
    forget_takes_the_waiter_or_not(at - 16, 17, 1);
    forget_takes_the_waiter_or_not(at - 16, 1024 * MEBIBYTE, 1); /* too many words to check each of them */
    forget_takes_the_waiter_or_not(at + 1, 1024 * MEBIBYTE, 0);
}

static void forget_up_to_the_top_of_the_address_space(void) {
    const uintptr_t top = UINTPTR_MAX; /* the last byte */
    forget_takes_the_waiter_or_not(1, top, 1);
    forget_takes_the_waiter_or_not(4, top - 3, 1);
    forget_takes_the_waiter_or_not(4, top - 7, 1);
    forget_takes_the_waiter_or_not(4, top - 2, VIGIL_ERANGE); /* one byte too many */
    forget_takes_the_waiter_or_not(top, 2, VIGIL_ERANGE);
    forget_takes_the_waiter_or_not((uintptr_t)&storage[4], UINT64_MAX, VIGIL_ERANGE);
    forget_takes_the_waiter_or_not(top - 63, 64, 0);
    for (unsigned bytes = 1; bytes <= 8; bytes++) forget_takes_the_waiter_or_not(top - (bytes - 1), bytes, 0);
}

#define TEST(checks)                                                                                                   \
    {                                                                                                                  \
#checks, alone, NULL, NULL, &(struct scenario) {                                                               \
            checks                                                                                                     \
        }                                                                                                              \
    }

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(before_anybody_has_waited_there_is_nobody),
        TEST(when_all_thread_keys_are_taken_none_is_touched),
        TEST(a_cancelled_threads_ring_is_not_lost),
        TEST(an_agent_is_rung_before_the_thread_behind_it_is_woken),
        TEST(a_thread_is_woken_before_the_agent_behind_it_is_rung),
        TEST(unref_does_not_take_an_operations_reference),
        TEST(run_until_ends_although_posts_keep_coming),
        TEST(a_workers_main_cannot_run_or_destroy_its_agent),
        TEST(fork_inside_destroys_last_callback),
        TEST(fork_inside_destroy_while_another_is_pending),
        TEST(fork_inside_destroy_and_begin_anew),
        TEST(a_dead_agent_outlives_the_callback_that_forked),
        TEST(a_forks_child_joins_a_worker_without_its_thread),
        TEST(forget_ranges_that_begin_and_end_inside_words),
        TEST(forget_up_to_the_top_of_the_address_space),
        /* These may be skipped, which ends the program if cmocka is replaced by the stand-in: so they come last. */
        TEST(little_address_space_is_enough),
        TEST(locking_all_memory_does_not_fill_the_lot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
