/* SPDX-License-Identifier: MIT */
/*
 * A party that has returned may free the object it has waited on, while the others are still returning from the
 * library. Each round has memory of its own, which is unmapped at once: a later access faults.
 */
#include "support.h"

#include <sys/mman.h>

#include "vigil/barrier.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"
#include "vigil/rwlock.h"
#include "vigil/sem.h"

enum { PARTIES = 3, ROUNDS = 30000, ROUNDS_AT_LEAST = 200, PAGE = 4096 };
#define ROUNDS_NS (SECOND / 2)

static void ensure(bool good) {
    if (!good) abort();
}

static void *new_page(void) {
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ensure(page != MAP_FAILED);
    return page;
}

static void free_page(void *page) {
    ensure(munmap(page, PAGE) == 0);
}

/* A round: the first party publishes a page, all use it, and one of them frees it. */

static struct {
    void *page;      /* of this round */
    uint32_t round;  /* in which the page was published */
    uint32_t taken;  /* by how many parties */
    int64_t until_ns;
    void (*prepare)(void *page);
    bool (*use)(void *page, int party); /* true: the caller must free it */
} stage;

static bool is_over(uint32_t round) {
    return round >= ROUNDS || (round >= ROUNDS_AT_LEAST && vigil_now_ns() >= stage.until_ns);
}

static void *play(void *number) {
    int party = (int)(intptr_t)number;
    for (uint32_t round = 1;; round++) {
        if (party == 0) {
            AWAIT(LOAD(stage.taken) == 0);
            void *page = is_over(round) ? NULL : new_page();
            if (page) stage.prepare(page);
            STORE(stage.page, page);
            STORE(stage.taken, PARTIES);
            STORE(stage.round, round);
        }
        AWAIT(LOAD(stage.round) == round);
        void *page = LOAD(stage.page);
        __atomic_sub_fetch(&stage.taken, 1, __ATOMIC_ACQ_REL);
        if (!page) return NULL;
        if (stage.use(page, party)) free_page(page);
    }
}

static void run_rounds(void (*prepare)(void *page), bool (*use)(void *page, int party)) {
    pthread_t threads[PARTIES];
    memset(&stage, 0, sizeof stage);
    stage.prepare = prepare;
    stage.use = use;
    stage.until_ns = vigil_now_ns() + ROUNDS_NS;
    for (int i = 0; i < PARTIES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, (void *)(intptr_t)i), 0);
    for (int i = 0; i < PARTIES; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* A barrier: the last party to arrive frees it. */

static void put_up_barrier(void *page) {
    *(vigil_barrier *)page = (vigil_barrier)VIGIL_BARRIER_INIT(PARTIES);
}

static bool meet(void *page, int party) {
    (void)party;
    int status = vigil_barrier_wait(page);
    ensure(status == VIGIL_OK || status == VIGIL_LAST);
    return status == VIGIL_LAST;
}

static bool meet_in_time(void *page, int party) {
    int status = VIGIL_TIMED_OUT;
    while (status == VIGIL_TIMED_OUT) status = vigil_barrier_wait_for(page, MICROSECOND * (20 + party));
    ensure(status == VIGIL_OK || status == VIGIL_LAST);
    return status == VIGIL_LAST;
}

static void a_barrier_by_the_last(void **state) {
    (void)state;
    run_rounds(put_up_barrier, meet);
}

static void a_barrier_with_deadlines(void **state) {
    (void)state;
    run_rounds(put_up_barrier, meet_in_time);
}

/* The same with event loops. */

struct meeting {
    vigil_request request;
    int status;
};

static void met(vigil_op *op, int status) {
    ((struct meeting *)(void *)op)->status = status; /* the request's first member */
}

static bool meet_as_loop(void *page, int party) {
    if (party == 0) return meet(page, party);
    vigil_agent *agent;
    struct meeting meeting = {.status = UNDECIDED};
    ensure(vigil_agent_create(&agent, 0) == VIGIL_OK);
    int status = vigil_barrier_wait_async(agent, &meeting.request, page, VIGIL_FOREVER, met);
    if (status == VIGIL_PENDING) {
        ensure(vigil_agent_run(agent) == VIGIL_OK);
        status = meeting.status;
    }
    ensure(status == VIGIL_OK || status == VIGIL_LAST);
    if (status == VIGIL_LAST) free_page(page);
    ensure(vigil_agent_destroy(agent) == VIGIL_OK);
    return false;
}

static void a_barrier_of_loops(void **state) {
    (void)state;
    run_rounds(put_up_barrier, meet_as_loop);
}

/* A mutex with a count of its remaining users: the last holder frees it after it has unlocked it. */

struct counted {
    vigil_mutex mutex;
    vigil_cond cond;
    vigil_sem sem;
    vigil_rwlock rwlock;
    int users;
};

static void put_up_counted(void *page) {
    *(struct counted *)page = (struct counted){.users = PARTIES};
}

static bool use_mutex(void *page, int party) {
    struct counted *counted = page;
    (void)party;
    ensure(vigil_mutex_lock(&counted->mutex) == VIGIL_OK);
    bool last = --counted->users == 0;
    ensure(vigil_mutex_unlock(&counted->mutex) == VIGIL_OK);
    return last;
}

static void put_up_fair(void *page) {
    *(struct counted *)page = (struct counted){.mutex = VIGIL_MUTEX_FAIR, .users = PARTIES};
}

static void a_mutex_by_its_last_user(void **state) {
    (void)state;
    run_rounds(put_up_counted, use_mutex);
    run_rounds(put_up_fair, use_mutex);
}

static bool use_rwlock(void *page, int party) {
    struct counted *counted = page;
    (void)party;
    ensure(vigil_rwlock_read_lock(&counted->rwlock) == VIGIL_OK);
    ensure(vigil_rwlock_read_unlock(&counted->rwlock) == VIGIL_OK);
    ensure(vigil_rwlock_write_lock(&counted->rwlock) == VIGIL_OK);
    bool last = --counted->users == 0;
    ensure(vigil_rwlock_write_unlock(&counted->rwlock) == VIGIL_OK);
    return last;
}

static void a_rwlock_by_its_last_user(void **state) {
    (void)state;
    run_rounds(put_up_counted, use_rwlock);
}

/* A semaphore: the party that all others have released to frees it, while they are still inside release. */
static bool use_sem(void *page, int party) {
    struct counted *counted = page;
    if (party != 0) {
        ensure(vigil_sem_release(&counted->sem, 1) == VIGIL_OK);
        return false;
    }
    for (int i = 1; i < PARTIES; i++) ensure(vigil_sem_acquire(&counted->sem, 1) == VIGIL_OK);
    return true;
}

static void a_semaphore_by_the_one_let_in(void **state) {
    (void)state;
    run_rounds(put_up_counted, use_sem);
}

/* A condition and its mutex: the first party waits for the others' signals, and frees both after it has unlocked. */
static bool use_cond(void *page, int party) {
    struct counted *counted = page;
    ensure(vigil_mutex_lock(&counted->mutex) == VIGIL_OK);
    if (party == 0) {
        while (counted->users > 1) ensure(vigil_cond_wait(&counted->cond, &counted->mutex) == VIGIL_OK);
    } else {
        counted->users--;
        ensure(vigil_cond_signal(&counted->cond) >= 0);
    }
    ensure(vigil_mutex_unlock(&counted->mutex) == VIGIL_OK);
    return party == 0;
}

static void a_condition_by_its_waiter(void **state) {
    (void)state;
    run_rounds(put_up_counted, use_cond);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_barrier_by_the_last),
        cmocka_unit_test(a_barrier_with_deadlines),
        cmocka_unit_test(a_barrier_of_loops),
        cmocka_unit_test(a_mutex_by_its_last_user),
        cmocka_unit_test(a_rwlock_by_its_last_user),
        cmocka_unit_test(a_semaphore_by_the_one_let_in),
        cmocka_unit_test(a_condition_by_its_waiter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
