/* SPDX-License-Identifier: MIT */
/*
 * queue.c - a queue with room for one item, between processes that are killed; and a signal for each change of it.
 *
 * One mutex, WITH_COND; two conditions; producers and consumers, each of which is a thread of a member, a request of a
 * member's event loop, or a resident: a request of the judge's own, which is never killed.
 *
 *     a producer    waits for NOT_FULL while the queue is full; puts an item in; signals NOT_EMPTY
 *     a consumer    waits for NOT_EMPTY while the queue is empty; takes the item out; signals NOT_FULL
 *
 * All of them wait without a deadline, none broadcasts, and a waiter looks at the queue only when it has been
 * signalled. So a lost signal may stop the queue for good, and the judge (queue_judge.c) sees that it does not move.
 *
 * WHY ONE SIGNAL FOR EACH CHANGE IS ENOUGH. To be shown: whenever the mutex is not held and the queue is full, no
 * consumer is in the line of NOT_EMPTY, or some consumer has been signalled, or is about to lock the mutex, and will
 * look. (The same goes for producers, an empty queue and NOT_FULL.) The queue becomes full by a producer that holds the
 * mutex and signals NOT_EMPTY before it unlocks: then a consumer is signalled, or none is in line. A consumer that
 * joins the line holds the mutex, and has seen that the queue is empty. A consumer that has been signalled and has got
 * the mutex finds an item and takes it, or finds that another consumer has, and then the queue is empty and nothing
 * remains to be shown.
 *
 * WHEN PROCESSES ARE KILLED. Signals are given with the mutex held, so a process that has changed the queue and has not
 * signalled dies with the mutex. There are these cases of a kill:
 *
 *     without the mutex, not signalled          The process does not count: it was in line, and is not any more.
 *     signalled, without the mutex yet          The library gives the signal to the next in line: that is under test.
 *     with the mutex, the queue as it was       The process may have taken a signal with it that it has not used.
 *     with the mutex, the queue changed         The signal for the change may or may not have been given.
 *     after the mutex was unlocked              All has been done.
 *
 * In both cases with the mutex the next holder is told VIGIL_OWNER_DIED. It repairs the queue (act.c), and signals both
 * conditions once on behalf of the dead process, because it cannot know what has not been done. If it is killed
 * meanwhile, it dies with the mutex as well, and the next holder does it again. A signal too many does no harm: the
 * waiter that it wakes looks and waits again. If all others wait for conditions there is no next holder: then the judge
 * takes the mutex, as the supervisor of a robust program's processes would.
 *
 * RESIDENTS wait in both lines all the time: a resident that has been signalled acts and waits again without unlocking
 * in between. With them there usually is a next in line, and a signal that would have ended the wait of a killed
 * process ends another. For the line of a condition to be empty all its waiters must have been signalled, and none of
 * them have got the mutex yet. Then the signal has no heir, and the library reports it.
 */
#include "queue.h"

static vigil_mutex *the_mutex(void) {
    return &arena->locks[WITH_COND].mutex;
}

static bool may_act(enum role role) {
    return arena->queue.full == (role == CONSUMER);
}

/* With the mutex held, right after it is acquired. After VIGIL_OWNER_DIED the queue has been repaired. */
static void enter(struct actor *me, int status, uint64_t *seed) {
    go_inside(me, WITH_COND, status, seed);
    DEMAND(arena->queue.last_put == arena->queue.last_got + arena->queue.full,
           "the queue is %s: last put %" PRIu64 ", last got %" PRIu64, arena->queue.full ? "full" : "empty",
           arena->queue.last_put, arena->queue.last_got);
    if (status != VIGIL_OWNER_DIED) return;
    for (unsigned cond = 0; cond < CONDS; cond++) {
        give_signal(me, WITH_COND, cond);
        count(me, ON_BEHALF, 1);
    }
}

bool visit(struct actor *me, uint64_t *seed) {
    now_does(me, LOCKING, WITH_COND);
    int status = vigil_mutex_lock(the_mutex());
    enter(me, status, seed);
    release(me, WITH_COND);
    return status == VIGIL_OWNER_DIED;
}

static void linger(uint64_t *seed) {
    if (one_in(seed, 16)) dawdle(seed);
}

static void put_item(struct actor *me, uint64_t *seed) {
    arena->queue.item = arena->queue.last_put + 1;
    linger(seed);
    PUT(arena->queue.full, 1);
    linger(seed);
    PUT(arena->queue.last_put, arena->queue.item);
    count(me, PRODUCED, 1);
}

static void get_item(struct actor *me, uint64_t *seed) {
    uint64_t item = arena->queue.item;
    DEMAND(item == arena->queue.last_got + 1, "item %" PRIu64 " comes after %" PRIu64, item, arena->queue.last_got);
    PUT(arena->queue.full, 0);
    linger(seed);
    PUT(arena->queue.last_got, item);
    count(me, CONSUMED, 1);
}

/*
 * A change is entered in the books before the activity ends: a change that is not entered was made by a killed actor.
 */
static void act(struct actor *me, enum role role, uint64_t *seed) {
    now_does(me, CHANGING, at(WITH_COND, role));
    if (role == PRODUCER) put_item(me, seed);
    else get_item(me, seed);
    linger(seed);
    give_signal(me, WITH_COND, role == PRODUCER ? NOT_EMPTY : NOT_FULL);
    linger(seed);
}

/* Of each member's three threads, and of its three requests, one produces, one consumes, and one does either. */
static enum role role_of(unsigned number, uint64_t *seed) {
    return number == 0 ? PRODUCER : number == 1 ? CONSUMER : (enum role)random_below(seed, 2);
}

/* Threads. */

static void wait_blocking(struct actor *me, enum role role, uint64_t *seed) {
    go_outside(me, WITH_COND);
    now_does(me, IN_COND, at(WITH_COND, role));
    int status = vigil_cond_wait(&arena->conds[role].cond, the_mutex());
    count(me, (enum tally)(WOKEN + role), 1);
    PUT(me->progress, me->progress + 1);
    enter(me, status, seed);
}

static void take_turn(struct actor *me, enum role role, uint64_t *seed) {
    now_does(me, LOCKING, WITH_COND);
    enter(me, vigil_mutex_lock(the_mutex()), seed);
    while (!may_act(role) && !leaving()) wait_blocking(me, role, seed);
    if (may_act(role)) act(me, role, seed);
    release(me, WITH_COND);
}

static void *thread_main(void *argument) {
    struct actor *me = argument;
    unsigned number = (unsigned)(me - self->actors);
    uint64_t seed = seed_for(number);
    while (!leaving()) {
        uint32_t moment = NOW(ledger->moment);
        if (phase_of(moment) == REST) {
            now_rests(me, moment);
            usleep(200);
            continue;
        }
        take_turn(me, role_of(number, &seed), &seed);
    }
    now_does(me, LEAVING, 0);
    return NULL;
}

/* Requests: of a member's loop, or residents. */

static void on_locked(vigil_op *op, int status);
static void on_signalled(vigil_op *op, int status);

static void wait_again(struct seeker *seeker) {
    go_outside(seeker->page, WITH_COND);
    now_does(seeker->page, IN_COND, at(WITH_COND, seeker->role));
    int status = vigil_cond_wait_async(seeker->agent, &seeker->request, &arena->conds[seeker->role].cond, the_mutex(),
                                       VIGIL_FOREVER, on_signalled);
    seeker->pending = status == VIGIL_PENDING;
    DEMAND(seeker->pending, "a wait for a condition returned %s", vigil_status_name(status));
}

/* With the mutex held. While the others must rest, a resident waits again even if it could act. */
static void seek(struct seeker *seeker, int status) {
    enter(seeker->page, status, seeker->seed);
    bool at_rest = phase_of(NOW(ledger->moment)) != STORM;
    if (seeker->retires) {
        release(seeker->page, WITH_COND);
    } else if (seeker->resident && at_rest) {
        wait_again(seeker);
    } else if (!may_act(seeker->role)) {
        wait_again(seeker);
    } else {
        act(seeker->page, seeker->role, seeker->seed);
        if (seeker->resident || (!one_in(seeker->seed, 16) && !at_rest)) wait_again(seeker);
        else release(seeker->page, WITH_COND);
    }
}

/* The callbacks are called with the mutex held, unless the agent ends. */

static void on_locked(vigil_op *op, int status) {
    struct seeker *seeker = (struct seeker *)op;
    DEMAND(seeker->pending, "called back twice");
    seeker->pending = false;
    if (status != VIGIL_CANCELLED) seek(seeker, status);
    else DEMAND(seeker->retires, "a lock returned %s", vigil_status_name(status));
}

static void on_signalled(vigil_op *op, int status) {
    struct seeker *seeker = (struct seeker *)op;
    if (status != VIGIL_CANCELLED) count(seeker->page, (enum tally)(WOKEN + seeker->role), 1);
    on_locked(op, status);
}

void seeker_begins(struct seeker *seeker) {
    now_does(seeker->page, LOCKING, WITH_COND);
    int status = vigil_mutex_lock_async(seeker->agent, &seeker->request, the_mutex(), VIGIL_FOREVER, on_locked);
    seeker->pending = status == VIGIL_PENDING;
    if (!seeker->pending) seek(seeker, status);
}

/* The event loop. */

static struct seeker seekers[REQUESTS];

static void begin_some(uint64_t *seed) {
    for (unsigned i = 0; i < REQUESTS; i++) {
        if (seekers[i].pending || one_in(seed, 2)) continue;
        seekers[i].role = role_of(i, seed);
        seeker_begins(&seekers[i]);
    }
}

static void serve(struct actor *me, vigil_agent *agent, uint64_t *seed) {
    uint32_t moment = NOW(ledger->moment);
    if (readable(agent, seed)) {
        int64_t served = vigil_agent_dispatch(agent);
        DEMAND(served >= 0, "dispatch returned %s", vigil_status_name((int)served));
    }
    if (phase_of(moment) == STORM) {
        begin_some(seed);
        done(me);
    } else {
        now_rests(me, moment);
    }
}

static void *loop_main(void *argument) {
    struct actor *me = argument;
    uint64_t seed = seed_for(THE_LOOP);
    vigil_agent *agent = NULL;
    int status = vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK);
    DEMAND(status == VIGIL_OK, "an agent: %s", vigil_status_name(status));
    for (unsigned i = 0; i < REQUESTS; i++)
        seekers[i] = (struct seeker){.agent = agent, .page = &self->actors[FIRST_ASKER + i], .seed = &seed};
    while (!leaving()) serve(me, agent, &seed);
    now_does(me, LEAVING, 0);
    for (unsigned i = 0; i < REQUESTS; i++) seekers[i].retires = true;
    status = vigil_agent_destroy(agent); /* with what is still pending */
    DEMAND(status == VIGIL_OK, "destroy returned %s", vigil_status_name(status));
    return NULL;
}

const struct crew queue_crew = {thread_main, loop_main, NULL};
