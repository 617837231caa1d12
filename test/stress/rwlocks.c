/* SPDX-License-Identifier: MIT */
/*
 * rwlocks - threads and event loops want to read and write under a handful of read-write locks, time out, cancel and
 * end at random.
 *
 *     rwlocks [--seconds N | --rounds N] [--seed S]
 *
 * A lock protects plain memory: a writer beside a reader or another writer is detected by its traces there, and by the
 * thread sanitizer. Some read once more, or downgrade, and some leave the lock locked, so that another thread unlocks
 * it. At the end every request is accounted for, as many actors have written as were granted a lock to write, all locks
 * are free, and their lines are empty. Readers that meet open the lanes (src/sync/lanes.h): in some round they must
 * have been open. A round that hangs is ended by an alarm, which names it.
 */
#include "stress.h"

#include "lockers.h"

#include "prim/prim.h"
#include "vigil/rwlock.h"

#define LOCKS 4
#define LANES (1u << 28)
#define PASS  (1u << 30)

static struct room {
    vigil_rwlock lock;
    uint32_t left_to_read, left_to_write; /* by so many holders that have gone: any thread may unlock it */
    uint64_t before, visits;              /* protected by the lock. They differ while a writer is inside */
} rooms[LOCKS];

static bool lanes_were_open; /* in this round */
static uint64_t rounds_with_lanes;

static void prepare_rooms(void) {
    memset(rooms, 0, sizeof rooms);
    rooms[0].lock = (vigil_rwlock)VIGIL_RWLOCK_READERS_PASS;
    lanes_were_open = false;
}

static struct plan plan_any_room(uint64_t *seed) {
    return (struct plan){.which = &rooms[random_below(seed, LOCKS)], .reads = !one_in(seed, 8)};
}

/* Unlocking. */

/* `slowly`: as the inline function does when it meets others. */
static void unlock_to_read(struct room *which, bool slowly) {
    int status = slowly ? vigil__rwlock_read_unlock_slowly(&which->lock) : vigil_rwlock_read_unlock(&which->lock);
    FAIL_UNLESS(status == VIGIL_OK, "read_unlock returns %s", vigil_status_name(status));
}

static void unlock_to_write(struct room *which) {
    int status = vigil_rwlock_write_unlock(&which->lock);
    FAIL_UNLESS(status == VIGIL_OK, "write_unlock returns %s", vigil_status_name(status));
}

static void unlock_or_leave_locked(const struct plan *plan, uint64_t *seed, bool leave_locked) {
    struct room *which = plan->which;
    uint32_t *left = plan->reads ? &which->left_to_read : &which->left_to_write;
    if (leave_locked) __atomic_fetch_add(left, 1, __ATOMIC_RELEASE);
    else if (plan->reads) unlock_to_read(which, one_in(seed, 2));
    else unlock_to_write(which);
}

static void unlock_what_was_left_locked(void) {
    for (int i = 0; i < LOCKS; i++) {
        uint32_t left = __atomic_exchange_n(&rooms[i].left_to_read, 0, __ATOMIC_ACQ_REL);
        for (; left; left--) unlock_to_read(&rooms[i], false);
        if (__atomic_exchange_n(&rooms[i].left_to_write, 0, __ATOMIC_ACQ_REL)) unlock_to_write(&rooms[i]);
    }
}

/* Inside. */

static void look_for_lanes(const struct room *which) {
    bool open = __atomic_load_n(&which->lock.word, __ATOMIC_RELAXED) & LANES;
    if (open) __atomic_store_n(&lanes_were_open, true, __ATOMIC_RELAXED);
}

static void read_inside(struct room *which, uint64_t *seed) {
    uint64_t visits = which->visits;
    FAIL_UNLESS(which->before == visits, "a writer is beside a reader");
    spend_time(seed);
    look_for_lanes(which);
    FAIL_UNLESS(which->visits == visits && which->before == visits, "a writer has been beside a reader");
}

/* The same actor once more, if it need not wait. */
static void read_again(struct room *which, uint64_t *seed) {
    if (vigil_rwlock_read_trylock(&which->lock) != VIGIL_OK) return;
    read_inside(which, seed);
    unlock_to_read(which, true);
}

static void write_inside(struct room *which, uint64_t *seed) {
    uint64_t visits = which->visits;
    FAIL_UNLESS(which->before == visits, "two write");
    which->before = visits + 1;
    spend_time(seed);
    FAIL_UNLESS(which->visits == visits && which->before == visits + 1, "another has written");
    which->visits = visits + 1;
}

static void downgrade(struct plan *plan) {
    int status = vigil_rwlock_downgrade(&plan->which->lock);
    FAIL_UNLESS(status == VIGIL_OK, "downgrade returns %s", vigil_status_name(status));
    plan->reads = true;
}

/* `plan` says what is to be unlocked then. */
static void visit(struct plan *plan, uint64_t *seed) {
    if (!plan->reads) write_inside(plan->which, seed);
    if (!plan->reads && one_in(seed, 4)) downgrade(plan);
    if (plan->reads) read_inside(plan->which, seed);
    if (plan->reads && one_in(seed, 4)) read_again(plan->which, seed);
}

/* Threads and event loops. */

static int lock_room(const struct plan *plan) {
    vigil_rwlock *lock = &plan->which->lock;
    if (plan->timeout_ns == VIGIL_FOREVER)
        return plan->reads ? vigil_rwlock_read_lock(lock) : vigil_rwlock_write_lock(lock);
    return plan->reads ? vigil_rwlock_read_lock_for(lock, plan->timeout_ns)
                       : vigil_rwlock_write_lock_for(lock, plan->timeout_ns);
}

static void visit_and_leave(const struct plan *plan, uint64_t *seed) {
    struct plan held = *plan;
    visit(&held, seed);
    unlock_or_leave_locked(&held, seed, one_in(seed, 20));
}

static void ended_locking(vigil_op *op, int status) {
    struct request *mine = (struct request *)op;
    struct loop *loop = mine->loop;
    struct plan held = mine->plan;
    ended(mine, status);
    if (status == VIGIL_OK) visit(&held, &loop->seed);
    go_on(loop); /* after which `mine` may be pending again */
    if (status == VIGIL_OK) unlock_or_leave_locked(&held, &loop->seed, one_in(&loop->seed, 4));
}

static int start_request(struct loop *loop, struct request *mine) {
    vigil_rwlock *lock = &mine->plan.which->lock;
    int64_t timeout_ns = mine->plan.timeout_ns;
    int status = mine->plan.reads
                     ? vigil_rwlock_read_lock_async(loop->agent, &mine->request, lock, timeout_ns, ended_locking)
                     : vigil_rwlock_write_lock_async(loop->agent, &mine->request, lock, timeout_ns, ended_locking);
    if (status == VIGIL_OK) ended_locking(&mine->request.op, VIGIL_OK);
    return status;
}

/* Rounds. */

static void check_free(int index) {
    vigil_rwlock *lock = &rooms[index].lock;
    FAIL_UNLESS(!(lock->word & ~(LANES | PASS)), "lock %d is left as %#x", index, lock->word);
    FAIL_UNLESS(vigil_waiters(lock) == 0, "a waiter is left in line %d", index);
    FAIL_UNLESS(vigil_rwlock_write_trylock(lock) == VIGIL_OK, "lock %d is not free: %#x", index, lock->word);
}

static void check_rooms(const struct tally *sum) {
    uint64_t visits = 0;
    for (int i = 0; i < LOCKS; i++) {
        visits += rooms[i].visits;
        check_free(i);
    }
    tally_check(sum, visits);
    rounds_with_lanes += lanes_were_open;
}

int main(int argc, char **argv) {
    struct run run = {.seconds = 4, .seed = 1};
    if (!read_options(argc, argv, &run)) return 2;
    bool passed = play_locks(&run, "rwlocks");
    printf("%" PRIu64 " rounds with lanes\n", rounds_with_lanes);
    print_end(&run);
    bool lanes_played = rounds_with_lanes || run.rounds || !PRIM_LANES;
    return passed && lanes_played ? 0 : 1;
}
