/* SPDX-License-Identifier: MIT */
/* member.c - a member of the storm of tokens: what its threads and its event loop do. */
#include "ledger.h"

/* Random choices. */

static int64_t some_time_ns(uint64_t *seed) {
    return (int64_t)random_below(seed, one_in(seed, 4) ? 2000 : 100) * MICROSECOND;
}

/* One thread of each member never sleeps: if it is killed while it runs, it is usually inside the library. */
static bool is_hasty(const struct actor *me) {
    return me == &self->actors[THREADS - 1];
}

static int64_t patience_ns(const struct actor *me, uint64_t *seed) {
    if (is_hasty(me)) return 1;
    /* An actor with tokens may be the only one: it does not sleep forever with them. */
    return tokens_of(me->hand) || !one_in(seed, 6) ? 1 + some_time_ns(seed) : VIGIL_FOREVER;
}

static void offer_some(struct actor *me, uint64_t *seed) {
    uint32_t tokens = tokens_of(me->hand);
    if (one_in(seed, 4)) shout(me);
    else if (tokens) offer_tokens(me, (unsigned)random_below(seed, SHOUTS), 1 + (uint32_t)random_below(seed, tokens));
}

static uint32_t some_expected(unsigned line, uint64_t *seed) {
    uint32_t *word = (uint32_t *)&arena->lines[line].word; /* the low half: our processors are little-endian */
    if (one_in(seed, 50)) __atomic_store_n(word, (uint32_t)random_below(seed, 2), __ATOMIC_SEQ_CST);
    return one_in(seed, 20) ? 2 : __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void wait_ended(struct actor *page, struct actor *taker, int status) {
    bool shouted = page->activity >> 8 == SHOUTS;
    if (status == VIGIL_OK && shouted) count(taker, HEARD, 1);
    else if (status == VIGIL_OK) take_token(taker);
    else if (status == VIGIL_TIMED_OUT) count(taker, TIMED_OUT, 1);
    else if (status == VIGIL_NOT_EQUAL) count(taker, NOT_EQUAL, 1);
    else DEMAND(status == VIGIL_CANCELLED && leaving(), "a wait returned %s", vigil_status_name(status));
    done(page);
}

/* A thread. */

static void wait_blocking(struct actor *me, uint64_t *seed) {
    unsigned line = (unsigned)random_below(seed, LINES);
    void *word = &arena->lines[line].word;
    uint32_t expected = some_expected(line, seed);
    int64_t timeout_ns = patience_ns(me, seed);
    now_does(me, WAITING, line);
    int status = one_in(seed, 2) ? vigil_wait32(word, expected, timeout_ns) : vigil_wait64(word, expected, timeout_ns);
    wait_ended(me, me, status);
}

/* Returns whether it was granted: then the actor is inside. */
static bool granted(struct actor *me, unsigned mutex, int status, uint64_t *seed) {
    if (status == VIGIL_OK || status == VIGIL_OWNER_DIED) {
        go_inside(me, mutex, status, seed);
        return true;
    }
    if (status == VIGIL_TIMED_OUT) count(me, TIMED_OUT, 1);
    else DEMAND(status == VIGIL_CANCELLED && leaving(), "a lock returned %s", vigil_status_name(status));
    done(me);
    return false;
}

static bool lock_blocking(struct actor *me, unsigned mutex, uint64_t *seed) {
    vigil_mutex *lock = &arena->locks[mutex].mutex;
    uint64_t dice = is_hasty(me) ? 0 : random_below(seed, 4);
    now_does(me, LOCKING, mutex);
    int status = dice == 0   ? vigil_mutex_trylock(lock)
                 : dice == 1 ? vigil_mutex_lock(lock)
                             : vigil_mutex_lock_for(lock, patience_ns(me, seed));
    return granted(me, mutex, status, seed);
}

static void produce(struct actor *me, uint64_t *seed) {
    if (!lock_blocking(me, WITH_COND, seed)) return;
    bool inside = one_in(seed, 2);
    ledger->payload[WITH_COND].items++;
    if (inside) give_signal(me, WITH_COND, 0);
    release(me, WITH_COND);
    if (!inside) give_signal(me, NO_MUTEX, 0);
}

/* Every wait for a condition ends with the mutex held. */
static int mutex_outcome(int status) {
    return status == VIGIL_TIMED_OUT ? VIGIL_OK : status;
}

/* If the mutex's owner died and there was a deadline too, it is not known whether a signal ended the wait. */
static void cond_wait_ended(struct actor *me, int status, int64_t timeout_ns) {
    bool woken = status == VIGIL_OK || (status == VIGIL_OWNER_DIED && timeout_ns == VIGIL_FOREVER);
    if (woken) count(me, WOKEN, 1);
    count(me, COND_WAITS, 1);
}

/* A consumer that has waited in vain goes away: if all were consumers, none would produce. */
static void consume(struct actor *me, uint64_t *seed) {
    struct payload *payload = &ledger->payload[WITH_COND];
    bool in_vain = false;
    if (!lock_blocking(me, WITH_COND, seed)) return;
    while (!payload->items && raging() && !in_vain) {
        int64_t timeout_ns = patience_ns(me, seed);
        go_outside(me, WITH_COND);
        now_does(me, IN_COND, WITH_COND);
        int status = vigil_cond_wait_for(&arena->conds[0].cond, &arena->locks[WITH_COND].mutex, timeout_ns);
        cond_wait_ended(me, status, timeout_ns);
        PUT(me->progress, me->progress + 1);
        go_inside(me, WITH_COND, mutex_outcome(status), seed);
        in_vain = status == VIGIL_TIMED_OUT;
    }
    if (payload->items) payload->items--;
    release(me, WITH_COND);
}

static void *thread_main(void *argument) {
    struct actor *me = argument;
    uint64_t seed = seed_for((unsigned)(me - self->actors));
    while (!leaving()) {
        uint32_t moment = NOW(ledger->moment);
        if (phase_of(moment) == REST) {
            now_rests(me, moment);
            usleep(200);
            continue;
        }
        uint64_t dice = random_below(&seed, 10);
        if (dice < 4) offer_some(me, &seed);
        else if (dice < 6) wait_blocking(me, &seed);
        else if (dice == 6) produce(me, &seed);
        else if (dice == 7) consume(me, &seed);
        else {
            unsigned mutex = (unsigned)random_below(&seed, WITH_COND);
            if (lock_blocking(me, mutex, &seed)) release(me, mutex);
        }
    }
    now_does(me, LEAVING, 0);
    return NULL;
}

/* The event loop. */

struct waiting_op {
    vigil_op op; /* first, so that one is the other */
    struct actor *page;
    bool pending;
};

enum asks { LOCKS, EXECUTES, WAITS_FOR_COND };

struct requester {
    vigil_request request; /* first */
    struct actor *page;
    enum asks asks;
    unsigned mutex;
    bool pending, holding;
    bool executed; /* the callback has been called */
    int64_t timeout_ns;
};

static struct {
    struct actor *me;
    uint64_t seed;
    vigil_agent *agent;
    struct waiting_op waits[WAITS];
    struct requester requesters[REQUESTS];
} loop;

static void on_wait_ended(vigil_op *op, int status) {
    struct waiting_op *wait = (struct waiting_op *)op;
    DEMAND(wait->pending, "called back twice");
    wait->pending = false;
    wait_ended(wait->page, loop.me, status);
}

static void start_wait(struct waiting_op *wait) {
    unsigned line = (unsigned)random_below(&loop.seed, LINES);
    void *word = &arena->lines[line].word;
    uint32_t expected = some_expected(line, &loop.seed);
    int64_t timeout_ns = one_in(&loop.seed, 2) ? some_time_ns(&loop.seed) : VIGIL_FOREVER;
    now_does(wait->page, WAITING, line);
    int status = one_in(&loop.seed, 2)
                     ? vigil_wait32_async(loop.agent, &wait->op, word, expected, timeout_ns, on_wait_ended)
                     : vigil_wait64_async(loop.agent, &wait->op, word, expected, timeout_ns, on_wait_ended);
    wait->pending = status == VIGIL_PENDING;
    DEMAND(status != VIGIL_OK, "started with ok");
    if (!wait->pending) wait_ended(wait->page, loop.me, status);
}

/* Returns true if it will not be called back. */
static bool cancelled(vigil_op *op, struct actor *page, bool pending) {
    now_does(loop.me, CANCELLING, 0);
    int status = vigil_cancel(op);
    if (status == VIGIL_OK) count(loop.me, CANCELS, 1);
    else if (status == VIGIL_ETOOLATE) count(loop.me, TOO_LATE, 1);
    DEMAND(pending ? status == VIGIL_OK || status == VIGIL_ETOOLATE : status == VIGIL_EIDLE, "cancel returned %s",
           vigil_status_name(status));
    if (status == VIGIL_OK) done(page);
    done(loop.me);
    return status == VIGIL_OK;
}

/* In the callback of a request that now holds the mutex. */
static void on_granted(vigil_op *op, int status) {
    struct requester *requester = (struct requester *)op;
    requester->pending = false;
    if (requester->asks == WAITS_FOR_COND && status != VIGIL_CANCELLED) {
        cond_wait_ended(loop.me, status, requester->timeout_ns);
        status = mutex_outcome(status);
    }
    if (!granted(requester->page, requester->mutex, status, &loop.seed)) return;
    if (requester->asks == EXECUTES) {
        go_outside(requester->page, requester->mutex); /* the library unlocks when we return */
        requester->executed = true;
        PUT(requester->page->progress, requester->page->progress + 1);
    } else if (one_in(&loop.seed, 2)) {
        release(requester->page, requester->mutex);
    } else {
        requester->holding = true; /* until the loop comes by */
    }
}

static int start_locks(struct requester *requester) {
    int64_t timeout_ns = one_in(&loop.seed, 2) ? some_time_ns(&loop.seed) : VIGIL_FOREVER;
    vigil_mutex *mutex = &arena->locks[requester->mutex].mutex;
    now_does(requester->page, LOCKING, requester->mutex);
    return requester->asks == EXECUTES
               ? vigil_mutex_execute(loop.agent, &requester->request, mutex, timeout_ns, on_granted)
               : vigil_mutex_lock_async(loop.agent, &requester->request, mutex, timeout_ns, on_granted);
}

static void start_cond(struct requester *requester) {
    vigil_mutex *mutex = &arena->locks[requester->mutex].mutex;
    now_does(requester->page, LOCKING, requester->mutex);
    if (!granted(requester->page, requester->mutex, vigil_mutex_trylock(mutex), &loop.seed)) return;
    go_outside(requester->page, requester->mutex);
    now_does(requester->page, IN_COND, requester->mutex);
    requester->timeout_ns = one_in(&loop.seed, 2) ? 1 + some_time_ns(&loop.seed) : VIGIL_FOREVER;
    int status = vigil_cond_wait_async(loop.agent, &requester->request, &arena->conds[0].cond, mutex,
                                       requester->timeout_ns, on_granted);
    requester->pending = true;
    DEMAND(status == VIGIL_PENDING, "a condition returned %s", vigil_status_name(status));
}

static void start_asker(struct requester *requester) {
    requester->asks = (enum asks)random_below(&loop.seed, 3);
    requester->mutex = requester->asks == WAITS_FOR_COND ? WITH_COND : (unsigned)random_below(&loop.seed, MUTEXES);
    if (requester->asks == WAITS_FOR_COND) {
        start_cond(requester);
        return;
    }
    requester->executed = false;
    int status = start_locks(requester);
    requester->pending = status == VIGIL_PENDING;
    if (requester->pending) return;
    if (requester->executed) { /* here and now */
        DEMAND(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "executed: %s", vigil_status_name(status));
        done(requester->page);
    } else if (granted(requester->page, requester->mutex, status, &loop.seed)) {
        requester->holding = true;
    }
}

static void release_held(void) {
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct requester *requester = &loop.requesters[i];
        if (requester->holding) release(requester->page, requester->mutex);
        requester->holding = false;
    }
}

static void start_some(void) {
    for (unsigned i = 0; i < WAITS; i++) {
        struct waiting_op *wait = &loop.waits[i];
        if (one_in(&loop.seed, 2)) continue;
        if (!wait->pending) start_wait(wait);
        else if (one_in(&loop.seed, 8)) wait->pending = !cancelled(&wait->op, wait->page, true);
    }
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct requester *requester = &loop.requesters[i];
        if (requester->holding || one_in(&loop.seed, 2)) continue;
        if (!requester->pending) start_asker(requester);
        else if (one_in(&loop.seed, 8)) requester->pending = !cancelled(&requester->request.op, requester->page, true);
    }
}

static unsigned pending_now(void) {
    unsigned pending = 0;
    for (unsigned i = 0; i < WAITS; i++) pending += loop.waits[i].pending;
    for (unsigned i = 0; i < REQUESTS; i++) pending += loop.requesters[i].pending;
    return pending;
}

static void dispatch(void) {
    if (!readable(loop.agent, &loop.seed)) return;
    int64_t served = vigil_agent_dispatch(loop.agent);
    DEMAND(served >= 0, "dispatch returned %s", vigil_status_name((int)served));
}

static void loop_begins(struct actor *me) {
    loop.me = me;
    loop.seed = seed_for(THE_LOOP);
    for (unsigned i = 0; i < WAITS; i++) loop.waits[i].page = &self->actors[FIRST_WAIT + i];
    for (unsigned i = 0; i < REQUESTS; i++) loop.requesters[i].page = &self->actors[FIRST_ASKER + i];
    int status = vigil_agent_create(&loop.agent, VIGIL_AGENT_MAY_NOT_BLOCK);
    DEMAND(status == VIGIL_OK, "an agent: %s", vigil_status_name(status));
}

static void *loop_main(void *argument) {
    loop_begins(argument);
    while (!leaving()) {
        uint32_t moment = NOW(ledger->moment);
        dispatch();
        release_held();
        if (phase_of(moment) == STORM) {
            start_some();
            offer_some(loop.me, &loop.seed);
        } else if (!pending_now()) {
            now_rests(loop.me, moment);
        }
    }
    release_held();
    now_does(loop.me, LEAVING, 0);
    int status = vigil_agent_destroy(loop.agent); /* with what is still pending */
    DEMAND(status == VIGIL_OK, "destroy returned %s", vigil_status_name(status));
    release_held();
    return NULL;
}

/* No actor may sleep in the condition when all must rest: they are woken all at once, or one by one. */
static void end_cond_waits(struct actor *main_thread, uint64_t *seed) {
    if (raging()) return;
    if (one_in(seed, 2)) give_to_all(main_thread, NO_MUTEX, 0);
    else
        for (unsigned i = 0; i < THREADS; i++) give_signal(main_thread, NO_MUTEX, 0);
}

const struct crew token_crew = {thread_main, loop_main, end_cond_waits};
