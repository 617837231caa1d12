/* SPDX-License-Identifier: MIT */
/*
 * signals - a thread makes every kind of call and is interrupted in all of them: its handler notifies, releases permits
 * and wakes an agent.
 *
 *     signals [--seconds N | --rounds N] [--seed S] [--signals N]
 *
 * In some rounds the signals come after single instructions of the thread, where the processor supports that: one, or
 * some in a row, somewhere in each call. (Not endlessly: a thread never succeeds in changing a word that its handler
 * changes after each instruction.) In the others another thread sends them as fast as it can, of several kinds, so that
 * handlers interrupt each other. Threads and a loop wait for the permits, and others for the word that the handlers
 * change: at the end, and after each call that was stepped through, every permit has been taken, and each waiter has
 * seen the last value. A forgotten waiter waits forever, and an alarm reports it.
 *
 * With --signals it continues until there have been that many.
 */
#include "stress.h"

#include <errno.h>
#include <sched.h>
#include <ucontext.h>

#include "../sanitizers.h"
#include "prim.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"
#include "vigil/rwlock.h"
#include "vigil/segment.h"
#include "vigil/sem.h"

/* A signal after each instruction: the processor's trap flag, and SIGTRAP. In the handler the flag is clear. */
#if defined(__x86_64__) && !UNDER_TSAN
#define CAN_STEP  1
#define TRAP_FLAG 0x100
static void step(bool on) { /* below what a leaf function may have on the stack */
    if (on)
        __asm__ __volatile__(
            "lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::"i"(TRAP_FLAG)
            : "memory", "cc");
    else
        __asm__ __volatile__(
            "lea -128(%%rsp), %%rsp; pushfq; andq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::"i"(~TRAP_FLAG)
            : "memory", "cc");
}

static void stop_stepping(void *context) {
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}
#else
#define CAN_STEP 0
static void step(bool on) {
    (void)on;
}

static void stop_stepping(void *context) {
    (void)context;
}
#endif

/* What the threads wait for, in private memory or in a segment. */

static struct objects {
    vigil_sem sem;
    uint32_t word;   /* changed by handlers */
    uint32_t beside; /* waited on by the interrupted thread alone */
    vigil_mutex mutex;
    vigil_rwlock rwlock;
    vigil_cond cond;
} own, *objects;
static vigil_buffer *segment;

static bool over; /* start nothing new */
static uint64_t released, taken;
static uint64_t all_signals;

static uint64_t add(uint64_t *count, uint64_t more) {
    return __atomic_add_fetch(count, more, __ATOMIC_RELAXED);
}

static uint64_t now(const uint64_t *count) {
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

/* The handlers. */

#define RELEASES 1u
#define NOTIFIES 2u
#define WAKES    4u

static unsigned acts; /* which of them happen */
static vigil_agent *agent;
static unsigned wrong; /* for the report: a bit for each thing that went wrong */

/* Of the interrupted thread: instructions before the first signal, and signals. */
static unsigned steps_before, burst;

static bool is_wanted(void *context) {
    if (steps_before) return steps_before--, false;
    if (burst) return burst--, true;
    stop_stepping(context);
    return false;
}

static void on_signal(int number, siginfo_t *info, void *context) {
    int before = errno;
    (void)info;
    if (number == SIGTRAP && !is_wanted(context)) return;
    errno = 4711;
    add(&all_signals, 1);
    unsigned now_wrong = 0;
    if (acts & RELEASES) {
        if (vigil_sem_release(&objects->sem, 1) == VIGIL_OK) add(&released, 1);
        else now_wrong |= RELEASES;
    }
    if (acts & NOTIFIES) {
        __atomic_fetch_add(&objects->word, 1, __ATOMIC_SEQ_CST);
        if (vigil_notify(&objects->word, VIGIL_ALL) < 0) now_wrong |= NOTIFIES;
    }
    if ((acts & WAKES) && vigil_agent_wake(agent) != VIGIL_OK) now_wrong |= WAKES;
    if (errno != 4711) now_wrong |= 8;
    if (now_wrong) __atomic_fetch_or(&wrong, now_wrong, __ATOMIC_RELAXED);
    errno = before;
}

/* Waiters. */

#define ACQUIRERS 2
#define WAITERS   2

static void *acquirer(void *unused) {
    (void)unused;
    while (!load_flag(&over)) {
        int status = vigil_sem_acquire(&objects->sem, 1);
        FAIL_UNLESS(status == VIGIL_OK, "acquire: %s", vigil_status_name(status));
        if (status != VIGIL_OK) break;
        add(&taken, 1);
    }
    return NULL;
}

struct asker {
    vigil_request request; /* first, so that one is the other */
    vigil_agent *agent;
};

static void ask(struct asker *asker);

static void asked(vigil_op *op, int status) {
    struct asker *asker = (struct asker *)(void *)op;
    FAIL_UNLESS(status == VIGIL_OK, "request: %s", vigil_status_name(status));
    add(&taken, 1);
    if (!load_flag(&over)) ask(asker);
}

static void ask(struct asker *asker) {
    int status = VIGIL_OK;
    for (;;) {
        status = vigil_sem_acquire_async(asker->agent, &asker->request, &objects->sem, 1, VIGIL_FOREVER, asked);
        if (status != VIGIL_OK) break;
        add(&taken, 1);
        if (load_flag(&over)) return;
    }
    FAIL_UNLESS(status == VIGIL_PENDING, "asking: %s", vigil_status_name(status));
}

static void *loop(void *unused) {
    struct asker asker = {0};
    (void)unused;
    FAIL_UNLESS(vigil_agent_create(&asker.agent, 0) == VIGIL_OK, "no agent");
    ask(&asker);
    vigil_agent_run(asker.agent);
    vigil_agent_destroy(asker.agent);
    return NULL;
}

struct waiter {
    pthread_t thread;
    uint32_t seen;
};

static void *waiter(void *argument) {
    struct waiter *me = argument;
    while (!load_flag(&over)) {
        uint32_t seen = __atomic_load_n(&objects->word, __ATOMIC_SEQ_CST);
        __atomic_store_n(&me->seen, seen, __ATOMIC_RELEASE);
        int status = vigil_wait32(&objects->word, seen, VIGIL_FOREVER);
        FAIL_UNLESS(status == VIGIL_OK || status == VIGIL_NOT_EQUAL, "wait: %s", vigil_status_name(status));
    }
    return NULL;
}

static void *locker(void *unused) {
    (void)unused;
    while (!load_flag(&over)) {
        vigil_mutex_lock(&objects->mutex);
        vigil_rwlock_write_lock(&objects->rwlock);
        vigil_rwlock_write_unlock(&objects->rwlock);
        vigil_mutex_unlock(&objects->mutex);
        sched_yield();
    }
    return NULL;
}

/* The interrupted thread, and its calls. */

static void told(vigil_op *op, int status) {
    (void)status;
    *(bool *)op->data = true;
}

static void nothing(vigil_agent *of, void *argument) {
    (void)of;
    (void)argument;
}

static void wait_async(bool ends) {
    bool done = false;
    vigil_op op = {.data = &done};
    if (vigil_wait32_async(agent, &op, &objects->beside, 0, VIGIL_FOREVER, told) != VIGIL_PENDING) return;
    if (ends) vigil_notify(&objects->beside, 1);
    else if (vigil_cancel(&op) == VIGIL_OK) return;
    while (!done) vigil_agent_dispatch(agent);
}

static void acquire_for(int64_t timeout_ns) {
    if (vigil_sem_acquire_for(&objects->sem, 1, timeout_ns) == VIGIL_OK) add(&taken, 1);
}

#define CALLS 16

static void call(unsigned which) {
    uint32_t seen = __atomic_load_n(&objects->word, __ATOMIC_SEQ_CST);
    switch (which) {
    case 0: vigil_wait32(&objects->beside, 0, MICROSECOND); break;
    case 1: vigil_wait32(&objects->word, seen, MICROSECOND); break;
    case 2: vigil_notify(&objects->word, 1); break;
    case 3: acquire_for(MICROSECOND); break;
    case 4: acquire_for(0); break;
    case 5:
        if (vigil_sem_release(&objects->sem, 1) == VIGIL_OK) add(&released, 1);
        break;
    case 6:
        vigil_mutex_lock(&objects->mutex);
        vigil_mutex_unlock(&objects->mutex);
        break;
    case 7:
        vigil_rwlock_read_lock(&objects->rwlock);
        vigil_rwlock_read_unlock(&objects->rwlock);
        break;
    case 8: wait_async(false); break;
    case 9: wait_async(true); break;
    case 10:
        vigil_agent_post(agent, nothing, NULL);
        vigil_agent_dispatch(agent);
        break;
    case 11: vigil_agent_run_until(agent, vigil_now_ns() + MICROSECOND); break;
    case 12: vigil_forget(&objects->beside, sizeof objects->beside); break;
    case 13: vigil_waiters(&objects->word); break;
    case 14:
        vigil_mutex_lock(&objects->mutex);
        vigil_cond_wait_for(&objects->cond, &objects->mutex, MICROSECOND);
        vigil_mutex_unlock(&objects->mutex);
        break;
    default: vigil_cond_broadcast(&objects->cond); break;
    }
}

struct interrupted {
    pthread_t thread;
    uint64_t seed;
    bool steps, begun, ended;
};

#define STEPPED_CALLS 200
#define STORMED_CALLS 3000

static struct waiter waiters[WAITERS];

static void await_outcome(void) {
    while (now(&taken) != now(&released)) sched_yield();
    uint32_t last = __atomic_load_n(&objects->word, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < WAITERS; i++) {
        while (__atomic_load_n(&waiters[i].seen, __ATOMIC_ACQUIRE) != last) sched_yield();
    }
}

static void call_by_steps(unsigned which, uint64_t *seed) {
    burst = 1 + (unsigned)random_below(seed, UINT64_C(1) << random_below(seed, 7));
    steps_before = (unsigned)random_below(seed, UINT64_C(1) << random_below(seed, 13));
    step(true);
    call(which);
    step(false);
    await_outcome();
}

static void *interrupted(void *argument) {
    struct interrupted *me = argument;
    sigset_t all;
    sigfillset(&all);
    FAIL_UNLESS(vigil_agent_create(&agent, 0) == VIGIL_OK, "no agent");
    raise_flag(&me->begun);
    for (unsigned i = 0; i < (me->steps ? STEPPED_CALLS : STORMED_CALLS); i++) {
        unsigned which = (unsigned)random_below(&me->seed, CALLS);
        if (me->steps) call_by_steps(which, &me->seed);
        else call(which);
    }
    raise_flag(&me->ended);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* one may still be under way */
    vigil_agent_destroy(agent);
    return NULL;
}

static const int kinds_of_signals[] = {SIGUSR1, SIGUSR2, SIGURG, SIGWINCH};
#define KINDS (sizeof kinds_of_signals / sizeof *kinds_of_signals)

static void storm(struct interrupted *target) {
    while (!load_flag(&target->begun)) sched_yield();
    for (unsigned i = 0; !load_flag(&target->ended); i++) pthread_kill(target->thread, kinds_of_signals[i % KINDS]);
}

/* A round. */

/* A permit for each waiter, and no more. */
static void end_waiting(uint64_t helpers) {
    raise_flag(&over);
    for (uint64_t i = 0; i < helpers; i++) vigil_sem_release(&objects->sem, 1);
    __atomic_fetch_add(&objects->word, 1, __ATOMIC_SEQ_CST);
    vigil_notify(&objects->word, VIGIL_ALL);
}

static void prepare(uint64_t *seed) {
    bool shared = segment && one_in(seed, 2), leased = shared && one_in(seed, 2);
    objects = shared ? vigil_buffer_data(segment) : &own;
    memset(objects, 0, sizeof *objects);
    if (leased) {
        objects->sem = (vigil_sem)VIGIL_SEM_LEASED(1u << 24);
        vigil_sem_acquire(&objects->sem, 1u << 24);
    }
    acts = 1 + (unsigned)random_below(seed, 7);
    over = false;
    released = taken = 0;
    memset(waiters, 0, sizeof waiters);
}

static void play_round(uint64_t seed) {
    pthread_t acquirers[ACQUIRERS], asking, locking;
    prepare(&seed);
    struct interrupted me = {.seed = seed, .steps = CAN_STEP && one_in(&seed, 2)};
    for (int i = 0; i < ACQUIRERS; i++) acquirers[i] = start_thread(acquirer, NULL);
    for (int i = 0; i < WAITERS; i++) waiters[i].thread = start_thread(waiter, &waiters[i]);
    asking = start_thread(loop, NULL);
    locking = start_thread(locker, NULL);
    me.thread = start_thread(interrupted, &me);
    if (!me.steps) storm(&me);
    pthread_join(me.thread, NULL);
    await_outcome();
    end_waiting(ACQUIRERS + 1);
    for (int i = 0; i < ACQUIRERS; i++) pthread_join(acquirers[i], NULL);
    for (int i = 0; i < WAITERS; i++) pthread_join(waiters[i].thread, NULL);
    pthread_join(asking, NULL);
    pthread_join(locking, NULL);
    FAIL_UNLESS(!wrong, "handlers went wrong: %#x", wrong);
    FAIL_UNLESS(vigil_waiters(&objects->word) == 0 && vigil_waiters(&objects->sem) == 0, "a waiter is left in line");
}

static const struct kind only_kind = {"signals", play_round};

int main(int argc, char **argv) {
    struct run run = {.seconds = 4, .seed = 1};
    uint64_t wanted = 0;
    if (argc > 2 && read_option(argv + argc - 2, "--signals", &wanted)) argc -= 2;
    if (!read_options(argc, argv, &run)) return 2;
    /* Each kind interrupts the others, but not itself. */
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (unsigned i = 0; i < KINDS; i++) sigaction(kinds_of_signals[i], &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
#if PRIM_SEGMENTS && !UNDER_TSAN
    FAIL_UNLESS(vigil_segment_create_anonymous(&segment, NULL) == VIGIL_OK, "no segment");
#endif
    do {
        play_rounds(&run, &only_kind, 1);
        run.seed += run.passed + run.failed;
    } while (all_signals < wanted && !run.failed);
    if (segment) vigil_buffer_destroy(segment);
    printf("%" PRIu64 " signals\n", all_signals);
    print_end(&run);
    return run.failed || failures || !all_signals ? 1 : 0;
}
