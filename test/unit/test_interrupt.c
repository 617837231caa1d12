/* SPDX-License-Identifier: MIT */
/* Blocking calls that are ended by an interruption. */
#include "support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prim.h"
#include "vigil/barrier.h"
#include "vigil/cond.h"
#include "vigil/thread.h"
#include "vigil/memory.h"
#include "vigil/mutex.h"
#include "vigil/once.h"
#include "vigil/rwlock.h"
#include "vigil/segment.h"
#include "vigil/sem.h"

/* In private memory, or in a segment. All are taken, so that each call blocks. */
struct objects {
    uint32_t word;
    uint64_t wide_word;
    vigil_mutex mutex, held;
    vigil_cond cond;
    vigil_sem sem;
    vigil_rwlock rwlock;
    vigil_barrier barrier;
    vigil_once once;
};
static struct objects private_objects, *objects;
#if PRIM_SEGMENTS
static vigil_buffer *segment;
#endif

static void objects_begin(void) {
    *objects = (struct objects){.barrier = VIGIL_BARRIER_INIT(2)};
    vigil_mutex_lock(&objects->mutex);
    vigil_rwlock_write_lock(&objects->rwlock);
}

static int in_private_memory(void **state) {
    (void)state;
    objects = &private_objects;
    objects_begin();
    return 0;
}

#if PRIM_SEGMENTS
static int in_a_segment(void **state) {
    (void)state;
    vigil_segment_options options = {.length = sizeof *objects, .max_length = sizeof *objects};
    if (vigil_segment_create_anonymous(&segment, &options) != VIGIL_OK) return 1;
    objects = vigil_buffer_data(segment);
    objects_begin();
    return 0;
}

static int no_segment(void **state) {
    (void)state;
    vigil_mutex_unlock(&objects->mutex);
    vigil_rwlock_write_unlock(&objects->rwlock);
    return vigil_buffer_destroy(segment) != VIGIL_OK;
}
#endif

/* The calls. */

static int wait_narrow(int64_t timeout_ns) {
    return vigil_wait32(&objects->word, 0, timeout_ns);
}

static int wait_wide(int64_t timeout_ns) {
    return vigil_wait64(&objects->wide_word, 0, timeout_ns);
}

static int lock_mutex(int64_t timeout_ns) {
    return vigil_mutex_lock_for(&objects->mutex, timeout_ns);
}

static int wait_for_condition(int64_t timeout_ns) {
    vigil_mutex_lock(&objects->held);
    int status = vigil_cond_wait_for(&objects->cond, &objects->held, timeout_ns);
    bool held = vigil_mutex_unlock(&objects->held) == VIGIL_OK;
    return held ? status : VIGIL_ENOTHELD;
}

static int acquire_permit(int64_t timeout_ns) {
    return vigil_sem_acquire_for(&objects->sem, 1, timeout_ns);
}

static int lock_to_read(int64_t timeout_ns) {
    return vigil_rwlock_read_lock_for(&objects->rwlock, timeout_ns);
}

static int lock_to_write(int64_t timeout_ns) {
    return vigil_rwlock_write_lock_for(&objects->rwlock, timeout_ns);
}

static int arrive(int64_t timeout_ns) {
    return vigil_barrier_wait_for(&objects->barrier, timeout_ns);
}

typedef int call(int64_t timeout_ns);
static call *const calls[] = {wait_narrow,  wait_wide,     lock_mutex, wait_for_condition, acquire_permit,
                              lock_to_read, lock_to_write, arrive};

/* The thread that calls. */

struct caller {
    pthread_t thread;
    call *call;
    int64_t timeout_ns;
    vigil_thread name;
    int first, second;
};

/* The first call is ended by the interruption, the second by its deadline. */
static void *caller_main(void *argument) {
    struct caller *caller = argument;
    STORE(caller->name, vigil_thread_self());
    int first = caller->call(caller->timeout_ns);
    caller->second = caller->call(MILLISECOND);
    STORE(caller->first, first);
    return NULL;
}

static void caller_start(struct caller *caller, call *what, int64_t timeout_ns) {
    *caller = (struct caller){.call = what, .timeout_ns = timeout_ns, .first = UNDECIDED};
    assert_int_equal(pthread_create(&caller->thread, NULL, caller_main, caller), 0);
    AWAIT(LOAD(caller->name));
}

static void assert_interrupted(struct caller *caller) {
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    assert_int_equal(caller->first, VIGIL_INTERRUPTED);
    assert_int_equal(caller->second, VIGIL_TIMED_OUT);
}

static unsigned all_in_line(void) {
    return waiters_in_line(&objects->word) + waiters_in_line(&objects->wide_word) + waiters_in_line(&objects->mutex) +
           waiters_in_line(&objects->cond) + waiters_in_line(&objects->sem) + waiters_in_line(&objects->rwlock) +
           waiters_in_line(&objects->barrier);
}

/* Interrupted before it blocks, or while it does: the result is the same. */
static void each_call(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(calls) * 4; i++) {
        struct caller caller;
        caller_start(&caller, calls[i % COUNT_OF(calls)], i & 8 ? VIGIL_FOREVER : 3600 * SECOND);
        if (i & 16) AWAIT(all_in_line());
        assert_int_equal(vigil_interrupt(caller.name), VIGIL_OK);
        assert_interrupted(&caller);
        assert_int_equal(all_in_line(), 0);
    }
}

/* Of many threads in one line, only the one that was named. */
static void one_of_many(void **state) {
    (void)state;
    enum { MANY = 20 };
    struct caller callers[MANY];
    for (unsigned i = 0; i < MANY; i++) caller_start(&callers[i], acquire_permit, VIGIL_FOREVER);
    AWAIT(waiters_in_line(&objects->sem) == MANY);
    for (unsigned i = 0; i < MANY; i++) {
        unsigned at = i * 7 % MANY;
        assert_int_equal(vigil_interrupt(callers[at].name), VIGIL_OK);
        assert_interrupted(&callers[at]);
        assert_int_equal(waiters_in_line(&objects->sem), MANY - 1 - i);
    }
    vigil_sem_release(&objects->sem, 1);
    assert_int_equal(vigil_sem_tryacquire(&objects->sem, 1), VIGIL_OK);
}

static int run_for_long(void *argument) {
    uint32_t *state = argument;
    STORE(*state, 1);
    AWAIT(LOAD(*state) == 2);
    return VIGIL_OK;
}

static void *run_once(void *state) {
    assert_int_equal(vigil_once_call(&objects->once, run_for_long, state), VIGIL_OK);
    return NULL;
}

static int never(void *argument) {
    (void)argument;
    return VIGIL_EINVAL;
}

static int wait_for_once(int64_t timeout_ns) {
    return vigil_once_call_for(&objects->once, never, NULL, timeout_ns);
}

static void a_once(void **state) {
    (void)state;
    uint32_t running = 0;
    struct caller caller;
    pthread_t runner;
    assert_int_equal(pthread_create(&runner, NULL, run_once, &running), 0);
    AWAIT(LOAD(running) == 1);
    caller_start(&caller, wait_for_once, VIGIL_FOREVER);
    assert_int_equal(vigil_interrupt(caller.name), VIGIL_OK);
    assert_interrupted(&caller);
    STORE(running, 2);
    assert_int_equal(pthread_join(runner, NULL), 0);
    assert_int_equal(vigil_once_is_done(&objects->once), true);
}

/* Names. */

static void *say_name(void *name) {
    *(vigil_thread *)name = vigil_thread_self();
    return NULL;
}

static void names(void **state) {
    (void)state;
    vigil_thread own = vigil_thread_self(), other = 0, next = 0;
    pthread_t thread;
    assert_true(own != 0);
    assert_true(vigil_thread_self() == own);
    pthread_create(&thread, NULL, say_name, &other);
    pthread_join(thread, NULL);
    assert_true(other && other != own);
    assert_int_equal(vigil_interrupt(other), VIGIL_ENOTFOUND); /* the thread has ended */
    pthread_create(&thread, NULL, say_name, &next);
    pthread_join(thread, NULL);
    assert_true(next && next != other);
    for (vigil_thread nonsense = 0; nonsense < 100; nonsense++)
        assert_int_equal(vigil_interrupt(nonsense), VIGIL_ENOTFOUND);
    assert_int_equal(vigil_interrupt(UINT64_MAX), VIGIL_ENOTFOUND);
}

/* Several interruptions count as one, and do not end a call that need not block. */
static void they_wait_for_a_call_that_blocks(void **state) {
    (void)state;
    vigil_thread own = vigil_thread_self();
    for (int i = 0; i < 3; i++) assert_int_equal(vigil_interrupt(own), VIGIL_OK);
    assert_int_equal(vigil_wait32(&objects->word, 1, VIGIL_FOREVER), VIGIL_NOT_EQUAL);
    assert_int_equal(vigil_wait32(&objects->word, 0, 0), VIGIL_TIMED_OUT);
    vigil_sem_release(&objects->sem, 1);
    assert_int_equal(vigil_sem_acquire(&objects->sem, 1), VIGIL_OK);
    assert_int_equal(vigil_sem_acquire(&objects->sem, 1), VIGIL_INTERRUPTED);
    assert_int_equal(vigil_sem_acquire_for(&objects->sem, 1, MILLISECOND), VIGIL_TIMED_OUT);
    assert_string_equal(vigil_status_name(VIGIL_INTERRUPTED), "interrupted");
}

/* Signal handlers. */

static vigil_thread to_interrupt;

static void interrupt_it(int number) {
    (void)number;
    vigil_interrupt(LOAD(to_interrupt));
}

static void from_a_signal_handler(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = interrupt_it}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct caller caller;
        caller_start(&caller, calls[i], VIGIL_FOREVER);
        STORE(to_interrupt, caller.name);
        AWAIT(all_in_line());
        assert_int_equal(pthread_kill(i % 2 ? caller.thread : pthread_self(), SIGUSR1), 0);
        assert_interrupted(&caller);
    }
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

/* Forks. */

static int in_child(vigil_thread parents_other, vigil_thread own) {
    uint32_t word = 0;
    if (vigil_interrupt(parents_other) != VIGIL_ENOTFOUND) return 1;
    if (vigil_thread_self() != own || vigil_interrupt(own) != VIGIL_OK) return 2;
    return vigil_wait32(&word, 0, VIGIL_FOREVER) == VIGIL_INTERRUPTED ? 0 : 3;
}

static void in_the_child_of_a_fork(void **state) {
    (void)state;
    struct caller caller;
    int status;
    vigil_thread own = vigil_thread_self();
    caller_start(&caller, wait_narrow, VIGIL_FOREVER);
    pid_t child = fork();
    if (child == 0) _exit(in_child(caller.name, own));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(vigil_interrupt(caller.name), VIGIL_OK);
    assert_interrupted(&caller);
}

/* Everything is counted: what is given arrives, and each interruption ends one call. */
enum { ROUNDS = 20000 };
static uint32_t taken, ended, stop;

static void *take_permits(void *name) {
    STORE(*(vigil_thread *)name, vigil_thread_self());
    while (!LOAD(stop)) {
        int status = vigil_sem_acquire(&objects->sem, 1);
        if (status == VIGIL_OK) __atomic_fetch_add(&taken, 1, __ATOMIC_RELEASE);
        else if (status == VIGIL_INTERRUPTED) __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void counted(void **state) {
    (void)state;
    vigil_thread name = 0;
    pthread_t thread;
    taken = ended = stop = 0;
    assert_int_equal(pthread_create(&thread, NULL, take_permits, &name), 0);
    AWAIT(LOAD(name));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        vigil_sem_release(&objects->sem, 1);
        vigil_interrupt(name);
        AWAIT(LOAD(taken) == i + 1 && LOAD(ended) == i + 1);
    }
    STORE(stop, 1);
    vigil_interrupt(name);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(taken, ROUNDS);
    assert_int_equal(ended, ROUNDS + 1);
}

int main(void) {
#define PRIVATE(test) cmocka_unit_test_setup(test, in_private_memory)
#define SHARED(test) {#test "_in_a_segment", test, in_a_segment, no_segment, NULL}
    const struct CMUnitTest tests[] = {
        PRIVATE(each_call),
        PRIVATE(one_of_many),
        PRIVATE(a_once),
        PRIVATE(names),
        PRIVATE(they_wait_for_a_call_that_blocks),
        PRIVATE(from_a_signal_handler),
        PRIVATE(in_the_child_of_a_fork),
        PRIVATE(counted),
#if PRIM_SEGMENTS
        SHARED(each_call),
        SHARED(one_of_many),
        SHARED(a_once),
        SHARED(from_a_signal_handler),
        SHARED(counted),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
