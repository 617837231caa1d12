/* SPDX-License-Identifier: MIT */
/* Readers that are not counted in the word of their lock: src/sync/lanes.h. */
#include "support.h"

#include "vigil/rwlock.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include "child.h"
#include "requesters.h"
#include "takers.h"

#define READER 16u
#define LANES  (1u << 28)
#define PASS   (1u << 30)

static vigil_rwlock locks[128]; /* each test has some of its own */
static unsigned locks_used;
static vigil_rwlock *lock;

/* Readers that meet open the lanes, unless they rest. */
static void open_lanes(vigil_rwlock *which) {
    while (!(LOAD(which->word) & LANES)) {
        assert_int_equal(vigil_rwlock_read_lock(which), VIGIL_OK);
        assert_int_equal(vigil_rwlock_read_lock(which), VIGIL_OK);
        assert_int_equal(vigil__rwlock_read_unlock_slowly(which),
                         VIGIL_OK); /* what an unlock that meets others calls */
        assert_int_equal(vigil_rwlock_read_unlock(which), VIGIL_OK);
    }
}

static vigil_rwlock *another_lock(void) {
    assert_true(locks_used < COUNT_OF(locks));
    return &locks[locks_used++];
}

static const void *new_lock(void) {
    lock = another_lock();
    open_lanes(lock);
    return lock;
}

enum share { READ, WRITE };

static int take(uint32_t share, int64_t timeout_ns) {
    return share == WRITE ? vigil_rwlock_write_lock_for(lock, timeout_ns)
                          : vigil_rwlock_read_lock_for(lock, timeout_ns);
}

static int ask(struct requester *requester, uint32_t share, int64_t timeout_ns) {
    return (share == WRITE ? vigil_rwlock_write_lock_async : vigil_rwlock_read_lock_async)(agent, &requester->request,
                                                                                           lock, timeout_ns, answer);
}

static void assert_free(void) {
    assert_int_equal(LOAD(lock->word) & ~(LANES | PASS), 0);
    assert_int_equal(vigil_rwlock_write_trylock(lock), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_unlock(lock), VIGIL_OK);
    assert_int_equal(LOAD(lock->word) & ~PASS, 0);
}

static void a_reader_does_not_change_the_word(void **state) {
    (void)state;
    uint32_t before = LOAD(lock->word);
    assert_int_equal(before, LANES);
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    assert_int_equal(LOAD(lock->word), before);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    assert_int_equal(LOAD(lock->word), before);
    assert_free();
}

static void a_writer_counts_the_readers(void **state) {
    (void)state;
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_trylock(lock), VIGIL_TIMED_OUT);
    assert_int_equal(LOAD(lock->word), READER);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    assert_free();
}

/* Only the first is in the place that the thread has for this lock. */
static void a_thread_reads_again(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    assert_int_equal(LOAD(lock->word), LANES | 2 * READER);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vigil_rwlock_write_trylock(lock), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    }
    assert_free();
}

static void what_is_not_held_cannot_be_unlocked(void **state) {
    (void)state;
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_write_unlock(lock), VIGIL_ENOTHELD);
    open_lanes(lock);
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_unlock(lock), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_downgrade(lock), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_ENOTHELD);
    assert_free();
}

static void *unlocks_it(void *status) {
    *(int *)status = vigil_rwlock_read_unlock(lock);
    return NULL;
}

static void another_thread_unlocks(void **state) {
    (void)state;
    pthread_t thread;
    int status = UNDECIDED;
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    assert_int_equal(pthread_create(&thread, NULL, unlocks_it, &status), 0);
    pthread_join(thread, NULL);
    assert_int_equal(status, VIGIL_OK);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_ENOTHELD);
    assert_free();
}

/* More than there are places. */
static void many_locks_at_once(void **state) {
    (void)state;
    vigil_rwlock *all[40];
    for (size_t i = 0; i < COUNT_OF(all); i++) open_lanes(all[i] = another_lock());
    for (size_t i = 0; i < COUNT_OF(all); i++) assert_int_equal(vigil_rwlock_read_lock(all[i]), VIGIL_OK);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        lock = all[i];
        assert_int_equal(vigil_rwlock_write_trylock(lock), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
        assert_free();
    }
}

static void a_writer_in_line_is_called(void **state) {
    (void)state;
    struct taker writer;
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    taker_start(&writer, WRITE);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    assert_int_equal(taker_join(&writer), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_unlock(lock), VIGIL_OK);
    assert_free();
}

static void a_loop_writes(void **state) {
    (void)state;
    struct requester writer;
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    ask_pending(&writer, WRITE, VIGIL_FOREVER);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    until_answered(&writer, VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_unlock(lock), VIGIL_OK);
    assert_free();
}

static void a_loop_reads(void **state) {
    (void)state;
    struct requester reader = {0};
    assert_int_equal(ask(&reader, READ, VIGIL_FOREVER), VIGIL_OK);
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_trylock(lock), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_trylock(lock), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    assert_free();
}

static void readers_may_pass(void **state) {
    (void)state;
    lock = another_lock();
    *lock = (vigil_rwlock)VIGIL_RWLOCK_READERS_PASS;
    lock_address = lock;
    open_lanes(lock);
    struct taker writer;
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    taker_start(&writer, WRITE);
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    assert_int_equal(taker_join(&writer), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_unlock(lock), VIGIL_OK);
    assert_free();
}

/* What the forking thread reads, it reads in the child as well. */
static void after_a_fork(void **state) {
    (void)state;
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    pid_t child = fork_here();
    if (child == 0) {
        CHECK(vigil_rwlock_write_trylock(lock) == VIGIL_TIMED_OUT);
        CHECK(vigil_rwlock_read_unlock(lock) == VIGIL_OK);
        CHECK(vigil_rwlock_write_trylock(lock) == VIGIL_OK);
        _exit(0);
    }
    assert_int_equal(exit_status_of(child), 0);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    assert_free();
}

/* What another thread reads stays held in the child, until the lock is reset: nothing but its word says so. */
struct other_reader {
    pthread_t thread;
    bool reads, may_leave;
};

static void *read_until_told(void *context) {
    struct other_reader *other = context;
    CHECK(vigil_rwlock_read_lock(lock) == VIGIL_OK);
    STORE(other->reads, true);
    AWAIT(LOAD(other->may_leave));
    CHECK(vigil_rwlock_read_unlock(lock) == VIGIL_OK);
    return NULL;
}

static void unlock_in_child(void) {
    CHECK(vigil_rwlock_write_trylock(lock) == VIGIL_TIMED_OUT);
    CHECK(vigil_rwlock_read_unlock(lock) == VIGIL_OK);
    CHECK(vigil_rwlock_write_trylock(lock) == VIGIL_OK);
}

static void reset_in_child(void) {
    *lock = (vigil_rwlock)VIGIL_RWLOCK_INIT;
    open_lanes(lock);
    CHECK(vigil_rwlock_write_trylock(lock) == VIGIL_OK);
}

static void in_child(void (*body)(void)) {
    pid_t child = fork_here();
    if (child == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(exit_status_of(child), 0);
}

static void others_read_at_a_fork(void **state) {
    (void)state;
    struct other_reader other = {0};
    assert_int_equal(pthread_create(&other.thread, NULL, read_until_told, &other), 0);
    AWAIT(LOAD(other.reads));
    assert_int_equal(LOAD(lock->word), LANES);
    in_child(unlock_in_child);
    in_child(reset_in_child);
    STORE(other.may_leave, true);
    pthread_join(other.thread, NULL);
    assert_free();
}

/* The child has not inherited a lock that is read. */
static void not_inherited(void **state) {
    (void)state;
    vigil_rwlock *here = lock;
    lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(lock, MAP_FAILED);
    assert_int_equal(madvise(lock, 4096, MADV_DONTFORK), 0);
    open_lanes(lock);
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    pid_t child = fork_here();
    if (child == 0) _exit(vigil_rwlock_write_trylock(here) == VIGIL_OK ? 0 : 1);
    assert_int_equal(exit_status_of(child), 0);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
    munmap(lock, 4096);
    lock = here;
}

/* The parent reads a lock that the child shares with it: the parent's readers are none of the child's affair. */
static vigil_rwlock *begin_to_share(void) {
    vigil_rwlock *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    vigil_rwlock *here = lock;
    lock = shared;
    open_lanes(lock);
    lock = here;
    return shared;
}

static void end_sharing(vigil_rwlock *shared) {
    CHECK(LOAD(shared->word) == LANES);
    CHECK(vigil_rwlock_read_unlock(shared) == VIGIL_OK);
    CHECK(vigil_rwlock_write_trylock(shared) == VIGIL_OK);
    munmap(shared, 4096);
}

static void shared_with_the_child(void **state) {
    (void)state;
    if (!PRIM_SEGMENTS) return; /* POSIX does not tell */
    vigil_rwlock *shared = begin_to_share();
    assert_int_equal(vigil_rwlock_read_lock(shared), VIGIL_OK);
    pid_t child = fork_here();
    if (child == 0) _exit(vigil_rwlock_write_trylock(lock) == VIGIL_OK ? 0 : 1);
    assert_int_equal(exit_status_of(child), 0);
    end_sharing(shared);
}

/* The same in a process that may not read its pagemap, since it has changed its user. A lock of its own, beside, is
 * counted in the child. */
enum { MAY_READ_IT = 77 }; /* an emulator reads it for us, say */

static bool change_user(void) {
    bool changed = geteuid() != 0 || setuid(65534) == 0;
    return changed && prctl(PR_SET_DUMPABLE, 0) == 0 && access("/proc/self/pagemap", R_OK) != 0;
}

static void share_as_another_user(void) {
    if (!change_user()) _exit(MAY_READ_IT);
    vigil_rwlock *shared = begin_to_share();
    CHECK(vigil_rwlock_read_lock(shared) == VIGIL_OK);
    CHECK(vigil_rwlock_read_lock(lock) == VIGIL_OK);
    pid_t child = fork_here();
    if (child == 0) {
        CHECK(vigil_rwlock_write_trylock(lock) == VIGIL_TIMED_OUT);
        CHECK(vigil_rwlock_read_unlock(lock) == VIGIL_OK);
        _exit(vigil_rwlock_write_trylock(lock) == VIGIL_OK ? 0 : 1);
    }
    CHECK(exit_status_of(child) == 0);
    CHECK(vigil_rwlock_read_unlock(lock) == VIGIL_OK);
    end_sharing(shared);
}

static void shared_by_another_user(void **state) {
    (void)state;
    if (!PRIM_SEGMENTS) return;
    pid_t child = fork_here();
    if (child == 0) {
        share_as_another_user();
        _exit(0);
    }
    int status = exit_status_of(child);
    assert_true(status == 0 || status == MAY_READ_IT);
}

/* Threads that come one after the other use the same lane. */
static void *read_and_end(void *unused) {
    (void)unused;
    return vigil_rwlock_read_lock(lock) == VIGIL_OK && LOAD(lock->word) == LANES &&
                   vigil_rwlock_read_unlock(lock) == VIGIL_OK
               ? NULL
               : "the thread did not read in a lane";
}

static void many_read_and_end(void) {
    open_lanes(lock);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        void *failed = NULL;
        assert_int_equal(pthread_create(&thread, NULL, read_and_end, NULL), 0);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
    }
}

static void lanes_are_used_again(void **state) {
    (void)state;
    const uint32_t *used = &lot_private()->lanes_used;
    assert_int_equal(vigil_rwlock_read_lock(lock), VIGIL_OK);
    many_read_and_end();
    uint32_t before = LOAD(*used);
    assert_true(before < PRIM_LANES); /* at most as many as threads at once, in this test and those before */
    many_read_and_end();
    assert_int_equal(LOAD(*used), before);
    assert_int_equal(vigil_rwlock_read_unlock(lock), VIGIL_OK);
}

/* More threads than lanes. What is written is seen, and no writer is beside a reader. */
enum { CROWD = 90, TURNS = 300 };
static uint32_t written[2];

static const char *turn_to_write(void) {
    if (vigil_rwlock_write_lock(lock) != VIGIL_OK) return "write_lock";
    __atomic_store_n(&written[0], written[0] + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&written[1], written[1] + 1, __ATOMIC_RELAXED);
    return vigil_rwlock_write_unlock(lock) == VIGIL_OK ? NULL : "write_unlock";
}

static const char *turn_to_read(void) {
    if (vigil_rwlock_read_lock(lock) != VIGIL_OK) return "read_lock";
    uint32_t first = __atomic_load_n(&written[0], __ATOMIC_RELAXED);
    bool same = first == __atomic_load_n(&written[1], __ATOMIC_RELAXED);
    if (vigil__rwlock_read_unlock_slowly(lock) != VIGIL_OK) return "read_unlock";
    return same ? NULL : "a writer was beside a reader";
}

static void *crowd_main(void *seed) {
    uint64_t random = (uintptr_t)seed;
    const char *failed = NULL;
    for (int i = 0; i < TURNS && !failed; i++) failed = random_next(&random) % 50 ? turn_to_read() : turn_to_write();
    return (void *)(uintptr_t)failed;
}

static void a_crowd(void **state) {
    (void)state;
    pthread_t threads[CROWD];
    launch_all(threads, CROWD, crowd_main);
    join_all(threads, CROWD);
    assert_int_equal(written[0], written[1]);
    assert_free();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_reader_does_not_change_the_word),
        TEST(a_writer_counts_the_readers),
        TEST(a_thread_reads_again),
        TEST(what_is_not_held_cannot_be_unlocked),
        TEST(another_thread_unlocks),
        TEST(many_locks_at_once),
        TEST(a_writer_in_line_is_called),
        TEST(a_loop_writes),
        TEST(a_loop_reads),
        TEST(readers_may_pass),
        TEST(after_a_fork),
        TEST(others_read_at_a_fork),
        TEST(not_inherited),
        TEST(shared_with_the_child),
        TEST(shared_by_another_user),
        TEST(lanes_are_used_again),
        TEST(a_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
