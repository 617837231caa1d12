/* SPDX-License-Identifier: MIT */
/*
 * locks - threads and event loops want a handful of mutexes, time out, cancel and end at random.
 *
 *     locks [--seconds N | --rounds N] [--seed S]
 *
 * A mutex protects plain memory: two holders at once are detected by their traces there, and by the thread sanitizer.
 * At the end every request is accounted for, as many actors have been inside as were granted a mutex, all mutexes are
 * free, and their lines are empty. A round that hangs is ended by an alarm, which names it.
 */
#include "stress.h"

#include "lockers.h"

#include "vigil/mutex.h"

#define MUTEXES 4

static struct room {
    vigil_mutex mutex;
    uint32_t left_locked; /* its holder has gone: any thread may unlock it */
    bool inside;          /* this and the next are protected by the mutex */
    uint64_t visits;
} rooms[MUTEXES];

static void prepare_rooms(void) {
    memset(rooms, 0, sizeof rooms);
    for (int i = 0; i < MUTEXES; i++) {
        if (i % 2) rooms[i].mutex = (vigil_mutex)VIGIL_MUTEX_FAIR;
    }
}

static struct plan plan_any_room(uint64_t *seed) {
    return (struct plan){.which = &rooms[random_below(seed, MUTEXES)]};
}

static void visit(struct room *which, uint64_t *seed) {
    FAIL_UNLESS(vigil_mutex_is_locked(&which->mutex), "granted, but not locked");
    FAIL_UNLESS(!which->inside, "two hold it");
    which->inside = true;
    which->visits++;
    spend_time(seed);
    FAIL_UNLESS(which->inside, "another has been here");
    which->inside = false;
}

static void unlock(struct room *which) {
    int status = vigil_mutex_unlock(&which->mutex);
    FAIL_UNLESS(status == VIGIL_OK, "unlock returns %s", vigil_status_name(status));
}

static void unlock_or_leave_locked(struct room *which, bool leave_locked) {
    if (leave_locked) __atomic_store_n(&which->left_locked, 1, __ATOMIC_RELEASE);
    else unlock(which);
}

static void unlock_what_was_left_locked(void) {
    for (int i = 0; i < MUTEXES; i++) {
        if (__atomic_exchange_n(&rooms[i].left_locked, 0, __ATOMIC_ACQ_REL)) unlock(&rooms[i]);
    }
}

static int lock_room(const struct plan *plan) {
    vigil_mutex *mutex = &plan->which->mutex;
    return plan->timeout_ns == VIGIL_FOREVER ? vigil_mutex_lock(mutex) : vigil_mutex_lock_for(mutex, plan->timeout_ns);
}

static void visit_and_leave(const struct plan *plan, uint64_t *seed) {
    visit(plan->which, seed);
    unlock_or_leave_locked(plan->which, one_in(seed, 20));
}

/* This one must unlock what it holds. */
static void ended_executing(vigil_op *op, int status) {
    struct request *mine = (struct request *)op;
    struct loop *loop = mine->loop;
    ended(mine, status);
    if (status == VIGIL_OK) visit(mine->plan.which, &loop->seed);
    go_on(loop); /* after which `mine` may be pending again */
}

static void ended_locking(vigil_op *op, int status) {
    struct loop *loop = ((struct request *)op)->loop;
    struct room *which = ((struct request *)op)->plan.which;
    ended_executing(op, status);
    if (status == VIGIL_OK) unlock_or_leave_locked(which, one_in(&loop->seed, 4));
}

static int start_request(struct loop *loop, struct request *mine) {
    vigil_mutex *mutex = &mine->plan.which->mutex;
    int64_t timeout_ns = mine->plan.timeout_ns;
    switch (random_below(&loop->seed, 3)) {
    case 0: return vigil_mutex_execute(loop->agent, &mine->request, mutex, timeout_ns, ended_executing);
    case 1: return vigil_mutex_execute_later(loop->agent, &mine->request, mutex, timeout_ns, ended_locking);
    default: break;
    }
    int status = vigil_mutex_lock_async(loop->agent, &mine->request, mutex, timeout_ns, ended_locking);
    if (status == VIGIL_OK) ended_locking(&mine->request.op, VIGIL_OK);
    return status;
}

static void check_rooms(const struct tally *sum) {
    uint64_t visits = 0;
    for (int i = 0; i < MUTEXES; i++) {
        visits += rooms[i].visits;
        FAIL_UNLESS(rooms[i].mutex.word % 4 == 0, "mutex %d is left as %#x", i, rooms[i].mutex.word);
        FAIL_UNLESS(vigil_waiters(&rooms[i].mutex) == 0, "a waiter is left in line %d", i);
    }
    tally_check(sum, visits);
}

int main(int argc, char **argv) {
    struct run run = {.seconds = 4, .seed = 1};
    if (!read_options(argc, argv, &run)) return 2;
    bool passed = play_locks(&run, "locks");
    print_end(&run);
    return passed ? 0 : 1;
}
