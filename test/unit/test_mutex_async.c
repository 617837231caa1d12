/* SPDX-License-Identifier: MIT */
/* Event loops and the mutex: lock_async, execute, execute_later. */
#include "support.h"

#include "child.h"
#include "lockers.h"

#include <poll.h>

static bool free_and_nobody_in_line(vigil_mutex *which) {
    return STATE_OF(which) == UNLOCKED && vigil_waiters(which) == 0;
}

/* Every test ends with this: a newcomer can lock and unlock the mutex. */
static void assert_usable(vigil_mutex *which) {
    assert_true(free_and_nobody_in_line(which));
    assert_int_equal(vigil_mutex_trylock(which), VIGIL_OK);
    unlock(which);
}

/* On a free mutex. */

static void see_it_held(vigil_op *op, int status) {
    answer(op, status);
    assert_true(vigil_mutex_is_locked(((struct requester *)op)->mutex));
}

static void a_free_one_is_ours_at_once(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester requester = {.mutex = both[i]};
        assert_int_equal(vigil_mutex_lock_async(agent, &requester.request, both[i], 0, see_it_held), VIGIL_OK);
        assert_int_equal(requester.calls, 0);
        assert_true(vigil_mutex_is_locked(both[i]));
        unlock(both[i]);
        assert_int_equal(vigil_mutex_execute(agent, &requester.request, both[i], 0, see_it_held), VIGIL_OK);
        assert_int_equal(requester.calls, 1);
        assert_usable(both[i]);
        assert_int_equal(vigil_mutex_execute_later(agent, &requester.request, both[i], 0, see_it_held), VIGIL_OK);
        assert_int_equal(requester.calls, 2);
        assert_true(vigil_mutex_is_locked(both[i]));
        unlock(both[i]);
        assert_int_equal(vigil_agent_dispatch(agent), 0);
    }
}

static void on_a_free_one_the_agent_is_not_looked_at(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester requester = {.mutex = both[i]};
        assert_int_equal(vigil_mutex_execute(NULL, &requester.request, both[i], VIGIL_FOREVER, see_it_held), VIGIL_OK);
        assert_int_equal(requester.calls, 1);
    }
}

static void on_a_held_one_with_no_time(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester requester = {.mutex = both[i]};
        lock(both[i]);
        for (int64_t none_ns = 0; none_ns > -2; none_ns--) {
            assert_int_equal(vigil_mutex_lock_async(agent, &requester.request, both[i], none_ns, answer),
                             VIGIL_TIMED_OUT);
            assert_int_equal(vigil_mutex_execute(agent, &requester.request, both[i], none_ns, answer), VIGIL_TIMED_OUT);
            assert_int_equal(vigil_mutex_execute_later(agent, &requester.request, both[i], none_ns, answer),
                             VIGIL_TIMED_OUT);
        }
        assert_int_equal(cancel(&requester), VIGIL_EIDLE);
        unlock(both[i]);
        assert_int_equal(vigil_agent_dispatch(agent), 0);
        assert_int_equal(requester.calls, 0);
        assert_usable(both[i]);
    }
}

/* If the later one took the free mutex, the earlier one would have been called for nothing. */
static void wait_behind_one_that_is_called(int64_t timeout_ns) {
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester earlier = {.mutex = both[i]}, later = {.mutex = both[i]};
        lock(both[i]);
        assert_int_equal(vigil_mutex_lock_async(agent, &earlier.request, both[i], VIGIL_FOREVER, answer),
                         VIGIL_PENDING);
        unlock(both[i]);
        assert_int_equal(vigil_mutex_lock_async(agent, &later.request, both[i], timeout_ns, answer), VIGIL_PENDING);
        assert_int_equal(vigil_agent_dispatch(agent), 1);
        assert_int_equal(earlier.calls, 1);
        assert_int_equal(later.calls, 0);
        unlock(both[i]);
        assert_int_equal(vigil_agent_dispatch(agent), 1);
        assert_int_equal(later.calls, 1);
        unlock(both[i]);
        assert_usable(both[i]);
    }
}

static void a_request_waits_behind_one_that_is_called(void **state) {
    (void)state;
    wait_behind_one_that_is_called(VIGIL_FOREVER);
    wait_behind_one_that_is_called(100 * SECOND);
    wait_behind_one_that_is_called(vigil_until(vigil_now_ns() + 100 * SECOND));
}

/* One that is forgotten is not called: it will not have the mutex. */
static void a_request_does_not_wait_behind_one_that_is_forgotten(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester earlier = {.mutex = both[i]}, later = {.mutex = both[i]};
        lock(both[i]);
        assert_int_equal(vigil_mutex_lock_async(agent, &earlier.request, both[i], VIGIL_FOREVER, answer),
                         VIGIL_PENDING);
        assert_int_equal(vigil_forget(both[i], sizeof *both[i]), 1);
        unlock(both[i]);
        assert_int_equal(vigil_mutex_lock_async(agent, &later.request, both[i], VIGIL_FOREVER, answer), VIGIL_OK);
        assert_int_equal(vigil_agent_dispatch(agent), 1);
        assert_int_equal(earlier.status, VIGIL_CANCELLED);
        unlock(both[i]);
        assert_usable(both[i]);
    }
}

/* Mistakes of callers. */

typedef int starter(vigil_agent *, vigil_request *, vigil_mutex *, int64_t, vigil_callback *);

static starter *const starters[] = {vigil_mutex_lock_async, vigil_mutex_execute, vigil_mutex_execute_later,
                                    vigil__mutex_execute_slowly};

static void *start_elsewhere(void *requester) {
    struct requester *me = requester;
    intptr_t wrong = 0;
    for (size_t i = 0; i < COUNT_OF(starters); i++) {
        wrong += starters[i](agent, &me->request, me->mutex, VIGIL_FOREVER, answer) == VIGIL_EWRONGTHREAD;
    }
    wrong += vigil_cancel(&me->request.op) == VIGIL_EIDLE;
    return (void *)wrong;
}

static void errors(void **state) {
    (void)state;
    struct requester requester = {.mutex = &mutex};
    vigil_mutex *askew = (vigil_mutex *)(void *)((char *)both + 2);
    lock(&mutex);
    for (size_t i = 0; i < COUNT_OF(starters); i++) {
        starter *start = starters[i];
        assert_int_equal(start(NULL, &requester.request, &mutex, VIGIL_FOREVER, answer), VIGIL_ENULL);
        assert_int_equal(start(agent, NULL, &mutex, VIGIL_FOREVER, answer), VIGIL_ENULL);
        assert_int_equal(start(agent, &requester.request, NULL, VIGIL_FOREVER, answer), VIGIL_ENULL);
        assert_int_equal(start(agent, &requester.request, &mutex, VIGIL_FOREVER, NULL), VIGIL_ENULL);
        if (start == vigil_mutex_execute) continue; /* inline: it dereferences the address before it checks it */
        assert_int_equal(start(agent, &requester.request, askew, VIGIL_FOREVER, answer), VIGIL_EMISALIGNED);
    }
    pthread_t other;
    void *wrong;
    assert_int_equal(pthread_create(&other, NULL, start_elsewhere, &requester), 0);
    pthread_join(other, &wrong);
    assert_int_equal((intptr_t)wrong, COUNT_OF(starters) + 1);
    unlock(&mutex);
    assert_int_equal(requester.calls, 0);
    assert_usable(&mutex);
}

static void a_pending_request_is_in_use(void **state) {
    (void)state;
    struct requester requester;
    lock(&mutex);
    ask_pending(&requester, &mutex, VIGIL_FOREVER, answer_and_unlock);
    for (size_t i = 0; i < COUNT_OF(starters); i++) {
        assert_int_equal(starters[i](agent, &requester.request, &mutex, 0, answer), VIGIL_EINUSE);
        assert_int_equal(starters[i](agent, &requester.request, &fair, 0, answer), VIGIL_EINUSE);
    }
    unlock(&mutex);
    dispatch();
    assert_int_equal(requester.calls, 1);
    assert_usable(&mutex);
    assert_usable(&fair);
}

/* Pending, then granted. */

static void lock_async_leaves_it_held(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester requester;
        lock(both[i]);
        ask_pending(&requester, both[i], VIGIL_FOREVER, see_it_held);
        assert_int_equal(vigil_waiters(both[i]), 1);
        assert_int_equal(vigil_agent_dispatch(agent), 0);
        unlock(both[i]);
        assert_int_equal(requester.calls, 0); /* never inside unlock */
        dispatch();
        assert_int_equal(requester.calls, 1);
        assert_int_equal(requester.status, VIGIL_OK);
        assert_true(vigil_mutex_is_locked(both[i]));
        assert_int_equal(cancel(&requester), VIGIL_EIDLE);
        unlock(both[i]);
        assert_usable(both[i]);
    }
}

static void execute_unlocks_and_execute_later_does_not(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester now = {.mutex = both[i]}, later = {.mutex = both[i]};
        lock(both[i]);
        assert_int_equal(vigil_mutex_execute(agent, &now.request, both[i], VIGIL_FOREVER, see_it_held), VIGIL_PENDING);
        unlock(both[i]);
        dispatch();
        assert_int_equal(now.calls, 1);
        assert_usable(both[i]);
        lock(both[i]);
        assert_int_equal(vigil_mutex_execute_later(agent, &later.request, both[i], VIGIL_FOREVER, see_it_held),
                         VIGIL_PENDING);
        unlock(both[i]);
        dispatch();
        assert_int_equal(later.calls, 1);
        assert_true(vigil_mutex_is_locked(both[i]));
        unlock(both[i]);
        assert_usable(both[i]);
    }
}

static void *unlock_elsewhere(void *which) {
    return (void *)(intptr_t)vigil_mutex_unlock(which);
}

static void what_a_loop_was_granted_another_thread_releases(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester first, second;
        pthread_t other;
        void *status;
        lock(both[i]);
        ask_pending(&first, both[i], VIGIL_FOREVER, answer);
        ask_pending(&second, both[i], VIGIL_FOREVER, answer);
        unlock(both[i]);
        dispatch();
        assert_int_equal(first.calls, 1);
        assert_int_equal(second.calls, 0);
        assert_int_equal(pthread_create(&other, NULL, unlock_elsewhere, both[i]), 0);
        pthread_join(other, &status);
        assert_int_equal((intptr_t)status, VIGIL_OK);
        dispatch();
        assert_int_equal(second.calls, 1);
        unlock(both[i]);
        assert_usable(both[i]);
    }
}

/* A third thread takes the mutex after the call. Then the agent is called again. */
static void taken_by_a_third(void **state) {
    (void)state;
    struct requester requester;
    lock(&mutex);
    ask_pending(&requester, &mutex, VIGIL_FOREVER, answer_and_unlock);
    for (int round = 0; round < 20; round++) {
        unlock(&mutex);
        if (vigil_mutex_trylock(&mutex) != VIGIL_OK) break; /* it has waited long enough: reserved */
        dispatch();
        assert_int_equal(requester.calls, 0);
        assert_int_equal(vigil_waiters(&mutex), 1);
    }
    if (vigil_mutex_is_locked(&mutex)) unlock(&mutex);
    dispatch();
    assert_int_equal(requester.calls, 1);
    assert_usable(&mutex);
}

static bool readable(int fd, int timeout_ms) {
    struct pollfd seat = {.fd = fd, .events = POLLIN};
    int ready = poll(&seat, 1, timeout_ms);
    assert_true(ready >= 0);
    return ready;
}

static void the_descriptor_says_when_it_is_our_turn(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester granted, late;
        int fd = vigil_agent_fd(agent);
        lock(both[i]);
        execute_pending(&granted, both[i]);
        if (both[i] == &mutex) assert_false(readable(fd, 0)); /* for a fair mutex it has to look from time to time */
        unlock(both[i]);
        assert_true(readable(fd, -1));
        dispatch();
        assert_int_equal(granted.status, VIGIL_OK);
        assert_int_equal(granted.calls, 1);
        lock(both[i]);
        ask_pending(&late, both[i], MILLISECOND, answer);
        while (!late.calls) {
            assert_true(readable(fd, -1));
            dispatch();
        }
        assert_int_equal(late.status, VIGIL_TIMED_OUT);
        unlock(both[i]);
        assert_usable(both[i]);
    }
}

/* One agent's requests. */

#define QUEUE 10

static void one_agent_has_one_place_and_serves_in_order(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester queue[QUEUE];
        served = 0;
        lock(both[i]);
        for (int j = 0; j < QUEUE; j++) {
            if (j % 2) execute_pending(&queue[j], both[i]);
            else ask_pending(&queue[j], both[i], VIGIL_FOREVER, answer_and_unlock);
        }
        assert_int_equal(vigil_waiters(both[i]), 1);
        unlock(both[i]);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        for (unsigned j = 0; j < QUEUE; j++) {
            assert_int_equal(queue[j].calls, 1);
            assert_int_equal(queue[j].rank, j + 1);
        }
        assert_usable(both[i]);
    }
}

static void each_grant_waits_for_the_one_before(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester queue[QUEUE];
        lock(both[i]);
        for (int j = 0; j < QUEUE; j++) ask_pending(&queue[j], both[i], VIGIL_FOREVER, answer);
        for (int j = 0; j < QUEUE; j++) {
            unlock(both[i]);
            dispatch();
            for (int k = 0; k < QUEUE; k++) assert_int_equal(queue[k].calls, k <= j);
        }
        unlock(both[i]);
        assert_usable(both[i]);
    }
}

static void many_mutexes_at_once(void **state) {
    (void)state;
    enum { MUTEXES = 1000 };
    static vigil_mutex many[MUTEXES];
    static struct requester requesters[MUTEXES][2];
    memset(many, 0, sizeof many);
    for (int i = 0; i < MUTEXES; i++) {
        lock(&many[i]);
        execute_pending(&requesters[i][0], &many[i]);
        execute_pending(&requesters[i][1], &many[i]);
    }
    for (int i = MUTEXES; i-- > 0;) {
        if (i % 3 == 0) assert_int_equal(cancel(&requesters[i][i % 2]), VIGIL_OK);
        unlock(&many[i]);
        if (i % 3 == 1) assert_int_equal(cancel(&requesters[i][i % 2]), VIGIL_OK);
    }
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    for (int i = 0; i < MUTEXES; i++) {
        bool one_cancelled = i % 3 < 2;
        assert_int_equal(requesters[i][0].calls, !(one_cancelled && i % 2 == 0));
        assert_int_equal(requesters[i][1].calls, !(one_cancelled && i % 2 == 1));
        assert_usable(&many[i]);
    }
}

/* Threads and requests in one line. */

static void a_fair_line_of_threads_and_requests(void **state) {
    (void)state;
    struct locker threads[2];
    struct requester requests[2];
    lock(&fair);
    locker_start(&threads[0], &fair);
    ask_pending(&requests[0], &fair, VIGIL_FOREVER, answer_and_unlock);
    locker_start(&threads[1], &fair);
    ask_pending(&requests[1], &fair, VIGIL_FOREVER, answer_and_unlock); /* the place of the agent's second request */
    unlock(&fair);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(locker_join(&threads[i]), VIGIL_OK);
        assert_int_equal(threads[i].rank, 2 * i + 1);
        assert_int_equal(requests[i].rank, 2 * i + 2);
    }
    assert_usable(&fair);
}

/* The second request is older than the thread, although it has no place of its own before the first is served. */
static void a_fair_line_of_two_requests_and_a_thread(void **state) {
    (void)state;
    for (int how = 0; how < 2; how++) {
        struct requester requests[2];
        struct locker thread;
        served = 0;
        lock(&fair);
        for (int i = 0; i < 2; i++) {
            if (how) execute_pending(&requests[i], &fair);
            else ask_pending(&requests[i], &fair, VIGIL_FOREVER, answer_and_unlock);
        }
        locker_start(&thread, &fair);
        unlock(&fair);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(locker_join(&thread), VIGIL_OK);
        assert_int_equal(requests[0].rank, 1);
        assert_int_equal(requests[1].rank, 2);
        assert_int_equal(thread.rank, 3);
        assert_usable(&fair);
    }
}

static struct requester third;

static void unlock_and_ask_third(vigil_op *op, int status) {
    answer_and_unlock(op, status);
    ask_pending(&third, &fair, VIGIL_FOREVER, answer_and_unlock); /* it is the second one's turn */
}

static void a_callbacks_own_request_is_the_last(void **state) {
    (void)state;
    struct requester first, second;
    lock(&fair);
    ask_pending(&first, &fair, VIGIL_FOREVER, unlock_and_ask_third);
    ask_pending(&second, &fair, VIGIL_FOREVER, answer_and_unlock);
    unlock(&fair);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(first.rank, 1);
    assert_int_equal(second.rank, 2);
    assert_int_equal(third.rank, 3);
    assert_usable(&fair);
}

/* An agent's place is that of its oldest request: without that request it loses the place. */
static void a_cancelled_request_leaves_no_place_to_the_next(void **state) {
    (void)state;
    struct requester oldest, youngest;
    struct locker between;
    lock(&fair);
    ask_pending(&oldest, &fair, VIGIL_FOREVER, answer_and_unlock);
    locker_start(&between, &fair);
    ask_pending(&youngest, &fair, VIGIL_FOREVER, answer_and_unlock);
    assert_int_equal(cancel(&oldest), VIGIL_OK);
    unlock(&fair);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(locker_join(&between), VIGIL_OK);
    assert_int_equal(between.rank, 1);
    assert_int_equal(youngest.rank, 2);
}

static void two_agents_of_one_thread(void **state) {
    (void)state;
    vigil_agent *other = new_agent(0);
    struct requester here, there = {.mutex = &fair};
    lock(&fair);
    ask_pending(&here, &fair, VIGIL_FOREVER, answer_and_unlock);
    assert_int_equal(vigil_mutex_lock_async(other, &there.request, &fair, VIGIL_FOREVER, answer_and_unlock),
                     VIGIL_PENDING);
    assert_int_equal(vigil_waiters(&fair), 2);
    unlock(&fair);
    assert_int_equal(vigil_agent_dispatch(other), 0); /* it is not its turn */
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_run(other), VIGIL_OK);
    assert_int_equal(here.rank, 1);
    assert_int_equal(there.rank, 2);
    end_agent(other);
}

/* Cancelling: never too late. */

static void cancel_in_the_queue(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (unsigned mask = 0; mask < 1u << 4; mask++) { /* which of four: the first, in the middle, the last, all */
            struct requester queue[4];
            unsigned rank = 0;
            served = 0;
            lock(both[i]);
            for (int j = 0; j < 4; j++) ask_pending(&queue[j], both[i], VIGIL_FOREVER, answer_and_unlock);
            for (unsigned j = 0; j < 4; j++) {
                if (mask >> j & 1) assert_int_equal(cancel(&queue[j]), VIGIL_OK);
                if (mask >> j & 1) assert_int_equal(cancel(&queue[j]), VIGIL_EIDLE);
            }
            assert_int_equal(vigil_waiters(both[i]), mask == 15 ? 0 : 1);
            unlock(both[i]);
            assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
            for (unsigned j = 0; j < 4; j++) {
                assert_int_equal(queue[j].calls, !(mask >> j & 1));
                if (queue[j].calls) assert_int_equal(queue[j].rank, ++rank);
            }
            assert_usable(both[i]);
        }
    }
}

/* The agent has been called, and has not noticed yet. */
static void cancel_what_has_been_called(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int reserved = 0; reserved < 2; reserved++) {
            struct requester alone, first, second;
            lock(both[i]);
            ask_pending(&alone, both[i], VIGIL_FOREVER, answer_and_unlock);
            if (reserved) let_pass(PATIENCE);
            unlock(both[i]);
            assert_int_equal(cancel(&alone), VIGIL_OK);
            memset(&alone, 0xEE, sizeof alone); /* its memory may be reused */
            dispatch();
            assert_usable(both[i]);

            lock(both[i]);
            ask_pending(&first, both[i], VIGIL_FOREVER, answer_and_unlock);
            ask_pending(&second, both[i], VIGIL_FOREVER, answer_and_unlock);
            if (reserved) let_pass(PATIENCE);
            unlock(both[i]);
            assert_int_equal(cancel(&first), VIGIL_OK);
            memset(&first, 0xEE, sizeof first);
            dispatch();
            assert_int_equal(second.calls, 1);
            assert_int_equal(second.status, VIGIL_OK);
            assert_usable(both[i]);
        }
    }
}

static void cancel_passes_on_what_was_reserved(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester called;
        struct locker behind;
        lock(both[i]);
        ask_pending(&called, both[i], VIGIL_FOREVER, answer);
        locker_start(&behind, both[i]);
        let_pass(PATIENCE);
        unlock(both[i]);
        assert_int_equal(cancel(&called), VIGIL_OK);
        dispatch();
        assert_int_equal(locker_join(&behind), VIGIL_OK);
        assert_int_equal(called.calls, 0);
        assert_usable(both[i]);
    }
}

/* After a cancel the mutex may be freed as well, and the library must not touch what replaces it. */
static void after_cancel_the_mutex_is_left_alone(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester called;
        lock(both[i]);
        ask_pending(&called, both[i], VIGIL_FOREVER, answer);
        unlock(both[i]);
        assert_int_equal(cancel(&called), VIGIL_OK);
        uint32_t something_else = FAIR | RESERVED;
        both[i]->word = something_else;
        dispatch();
        assert_int_equal(both[i]->word, something_else);
    }
}

static void the_same_with_its_memory_freed(void **state) {
    (void)state;
    struct requester called;
    vigil_mutex *gone = calloc(1, sizeof *gone);
    lock(gone);
    ask_pending(&called, gone, VIGIL_FOREVER, answer);
    unlock(gone);
    assert_int_equal(cancel(&called), VIGIL_OK);
    free(gone);
    dispatch(); /* the address sanitizer checks */
    assert_int_equal(called.calls, 0);
}

/* Callbacks cancel the requests that are next. */

static struct requester victims[3];

static void cancel_the_others(vigil_op *op, int status) {
    answer(op, status);
    for (int i = 0; i < 3; i++) assert_int_equal(cancel(&victims[i]), VIGIL_OK);
}

static void cancel_from_a_callback(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester first = {.mutex = both[i]};
        lock(both[i]);
        assert_int_equal(vigil_mutex_execute(agent, &first.request, both[i], VIGIL_FOREVER, cancel_the_others),
                         VIGIL_PENDING);
        for (int j = 0; j < 3; j++) execute_pending(&victims[j], both[i]);
        unlock(both[i]);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(first.calls, 1);
        for (int j = 0; j < 3; j++) assert_int_equal(victims[j].calls, 0);
        assert_usable(both[i]);
    }
}

/* Deadlines. */

static void deadlines_are_never_early(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        enum { REQUESTS = 50 };
        struct requester requesters[REQUESTS];
        int64_t deadline_ns[REQUESTS];
        lock(both[i]);
        for (int j = 0; j < REQUESTS; j++) {
            int64_t timeout_ns = MICROSECOND + (j * 7919 % REQUESTS) * 100 * MICROSECOND;
            deadline_ns[j] = vigil_now_ns() + timeout_ns;
            ask_pending(&requesters[j], both[i], timeout_ns, answer);
        }
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        for (int j = 0; j < REQUESTS; j++) {
            assert_int_equal(requesters[j].calls, 1);
            assert_int_equal(requesters[j].status, VIGIL_TIMED_OUT);
            assert_true(requesters[j].ended_ns >= deadline_ns[j]);
        }
        assert_int_equal(vigil_waiters(both[i]), 0);
        unlock(both[i]);
        assert_usable(both[i]);
    }
}

/* First, in the middle, or last in the queue; the others are served. */
static void a_deadline_in_the_queue(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int late = 0; late < 3; late++) {
            struct requester queue[3];
            lock(both[i]);
            for (int j = 0; j < 3; j++) {
                ask_pending(&queue[j], both[i], j == late ? MICROSECOND : VIGIL_FOREVER, answer_and_unlock);
            }
            while (!queue[late].calls) vigil_agent_run_until(agent, vigil_now_ns() + MILLISECOND);
            unlock(both[i]);
            assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
            for (int j = 0; j < 3; j++) {
                assert_int_equal(queue[j].calls, 1);
                assert_int_equal(queue[j].status, j == late ? VIGIL_TIMED_OUT : VIGIL_OK);
            }
            assert_usable(both[i]);
        }
    }
}

/* Called before its deadline, dispatched after it: in either case nothing is lost and nothing happens twice. */
static void a_deadline_that_passes_after_the_call(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester requester;
        lock(both[i]);
        ask_pending(&requester, both[i], MILLISECOND, answer_and_unlock);
        unlock(both[i]);
        let_pass(2 * MILLISECOND);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(requester.calls, 1);
        assert_true(requester.status == VIGIL_OK || requester.status == VIGIL_TIMED_OUT);
        assert_usable(both[i]);
    }
}

/* The end of the agent. */

static int status_when_closing;

static void start_when_closing(vigil_op *op, int status) {
    answer(op, status);
    static struct requester another;
    memset(&another, 0, sizeof another);
    status_when_closing = vigil_mutex_lock_async(op->agent, &another.request, &mutex, VIGIL_FOREVER, answer);
}

static void the_agents_end_cancels_what_is_pending(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        vigil_agent *ending = new_agent(0);
        struct requester queue[5];
        struct locker behind;
        lock(both[i]);
        for (int j = 0; j < 5; j++) {
            queue[j] = (struct requester){.mutex = both[i]};
            assert_int_equal(
                vigil_mutex_lock_async(ending, &queue[j].request, both[i], VIGIL_FOREVER, start_when_closing),
                VIGIL_PENDING);
        }
        locker_start(&behind, both[i]);
        status_when_closing = VIGIL_OK;
        end_agent(ending);
        assert_int_equal(status_when_closing, VIGIL_ECLOSING);
        for (int j = 0; j < 5; j++) {
            assert_int_equal(queue[j].calls, 1);
            assert_int_equal(queue[j].status, VIGIL_CANCELLED);
        }
        assert_int_equal(vigil_waiters(both[i]), 1);
        unlock(both[i]);
        assert_int_equal(locker_join(&behind), VIGIL_OK);
        assert_usable(both[i]);
    }
}

static void the_end_of_an_agent_that_has_been_called(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int cancelled = 0; cancelled < 2; cancelled++) {
            vigil_agent *ending = new_agent(0);
            struct requester called = {.mutex = both[i]};
            struct locker behind;
            lock(both[i]);
            assert_int_equal(vigil_mutex_lock_async(ending, &called.request, both[i], VIGIL_FOREVER, answer_and_unlock),
                             VIGIL_PENDING);
            locker_start(&behind, both[i]);
            let_pass(PATIENCE);
            unlock(both[i]);
            if (cancelled) assert_int_equal(cancel(&called), VIGIL_OK);
            end_agent(ending);
            assert_int_equal(called.calls, !cancelled);
            assert_int_equal(locker_join(&behind), VIGIL_OK);
            assert_usable(both[i]);
        }
    }
}

/* Whether a request keeps vigil_agent_run going. */

static void ref_and_unref(void **state) {
    (void)state;
    struct requester keeps, does_not;
    lock(&mutex);
    ask_pending(&does_not, &mutex, VIGIL_FOREVER, answer_and_unlock);
    ask_pending(&keeps, &mutex, VIGIL_FOREVER, answer_and_unlock);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_unref(&does_not.request.op), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_unref(&keeps.request.op), VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(keeps.calls + does_not.calls, 0);
    assert_int_equal(vigil_ref(&keeps.request.op), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
    unlock(&mutex);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(keeps.calls + does_not.calls, 2);
    assert_int_equal(vigil_ref(&keeps.request.op), VIGIL_EIDLE);
    assert_int_equal(vigil_unref(&keeps.request.op), VIGIL_EIDLE);
    assert_usable(&mutex);
}

/* What callbacks do. */

static struct requester inner[2];

static void execute_inside(vigil_op *op, int status) {
    answer(op, status);
    vigil_mutex *same = ((struct requester *)op)->mutex, *other = same == &mutex ? &fair : &mutex;
    execute_pending(&inner[0], same); /* not recursive: runs after this one */
    inner[1] = (struct requester){.mutex = other};
    assert_int_equal(vigil_mutex_execute(agent, &inner[1].request, other, VIGIL_FOREVER, see_it_held), VIGIL_OK);
    assert_int_equal(inner[1].calls, 1);
    assert_true(vigil_mutex_is_locked(same));
}

static void execute_inside_execute(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int pending = 0; pending < 2; pending++) {
            struct requester outer = {.mutex = both[i]};
            if (pending) lock(both[i]);
            assert_int_equal(vigil_mutex_execute(agent, &outer.request, both[i], VIGIL_FOREVER, execute_inside),
                             pending ? VIGIL_PENDING : VIGIL_OK);
            if (pending) unlock(both[i]);
            assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
            assert_int_equal(outer.calls, 1);
            assert_int_equal(inner[0].calls, 1);
            assert_int_equal(inner[0].status, VIGIL_OK);
            assert_usable(both[i]);
        }
    }
}

static unsigned freed[5]; /* by status */

static void free_itself(vigil_op *op, int status) {
    freed[status]++;
    memset(op, 0xEE, sizeof(vigil_request));
    free(op);
}

static vigil_request *new_request(void) {
    vigil_request *request = calloc(1, sizeof *request);
    assert_non_null(request);
    return request;
}

static void a_callback_frees_its_request(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        memset(freed, 0, sizeof freed);
        assert_int_equal(vigil_mutex_execute(agent, new_request(), both[i], 0, free_itself), VIGIL_OK);
        lock(both[i]);
        assert_int_equal(vigil_mutex_execute(agent, new_request(), both[i], 1, free_itself), VIGIL_PENDING);
        assert_int_equal(vigil_mutex_execute(agent, new_request(), both[i], VIGIL_FOREVER, free_itself), VIGIL_PENDING);
        while (!freed[VIGIL_TIMED_OUT]) vigil_agent_run_until(agent, vigil_now_ns() + MILLISECOND);
        assert_int_equal(vigil_mutex_execute(agent, new_request(), both[i], VIGIL_FOREVER, free_itself), VIGIL_PENDING);
        unlock(both[i]);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        vigil_agent *ending = new_agent(0);
        lock(both[i]);
        for (int j = 0; j < 2; j++) {
            assert_int_equal(vigil_mutex_execute(ending, new_request(), both[i], VIGIL_FOREVER, free_itself),
                             VIGIL_PENDING);
        }
        end_agent(ending);
        unlock(both[i]);
        assert_int_equal(freed[VIGIL_OK], 3);
        assert_int_equal(freed[VIGIL_TIMED_OUT], 1);
        assert_int_equal(freed[VIGIL_CANCELLED], 2);
        assert_usable(both[i]);
    }
}

static unsigned rounds_left;

static void ask_again_and_unlock(vigil_op *op, int status) {
    struct requester *me = (struct requester *)op;
    answer(op, status);
    if (rounds_left-- > 1) {
        int again = vigil_mutex_lock_async(agent, &me->request, me->mutex, VIGIL_FOREVER, ask_again_and_unlock);
        assert_int_equal(again, VIGIL_PENDING); /* we hold it */
    }
    unlock(me->mutex);
}

static void a_callback_starts_itself_anew(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester requester;
        rounds_left = 1000;
        lock(both[i]);
        ask_pending(&requester, both[i], VIGIL_FOREVER, ask_again_and_unlock);
        unlock(both[i]);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(requester.calls, 1000);
        assert_usable(both[i]);
    }
}

static pid_t forked;

static void fork_in_callback(vigil_op *op, int status) {
    answer(op, status);
    forked = fork_here();
}

/*
 * The child's only thread holds the child's mutex, and execute unlocks it there as well. No other callback runs there.
 */
static void a_callback_that_forks(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester forks = {.mutex = both[i]}, next;
        lock(both[i]);
        assert_int_equal(vigil_mutex_execute(agent, &forks.request, both[i], VIGIL_FOREVER, fork_in_callback),
                         VIGIL_PENDING);
        execute_pending(&next, both[i]);
        unlock(both[i]);
        int64_t answered = vigil_agent_dispatch(agent);
        if (forked == 0) {
            CHECK(answered == VIGIL_EFORKED);
            CHECK(next.calls == 0);
            CHECK(vigil_mutex_trylock(both[i]) == VIGIL_OK);
            CHECK(vigil_cancel(&next.request.op) == VIGIL_EFORKED);
            CHECK(vigil_mutex_execute(agent, &forks.request, both[i], VIGIL_FOREVER, answer) == VIGIL_EFORKED);
            CHECK(vigil_mutex_unlock(both[i]) == VIGIL_OK);
            CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
            CHECK(next.calls == 0);
            _exit(0);
        }
        assert_int_equal(exit_status_of(forked), 0);
        assert_int_equal(next.calls, 1);
        assert_usable(both[i]);
    }
}

/* Forget. */

static void forgotten_with_all_its_requests(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester queue[3];
        lock(both[i]);
        for (int j = 0; j < 3; j++) ask_pending(&queue[j], both[i], VIGIL_FOREVER, answer);
        assert_true(vigil_forget(both[i], sizeof *both[i]) > 0);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        for (int j = 0; j < 3; j++) {
            assert_int_equal(queue[j].calls, 1);
            assert_int_equal(queue[j].status, VIGIL_CANCELLED);
        }
        unlock(both[i]);
        assert_usable(both[i]);
    }
}

/* Forgotten, and freed before the loop is told: the address sanitizer checks. */

static vigil_mutex *new_and_locked(bool is_fair) {
    vigil_mutex *new = calloc(1, sizeof *new);
    if (is_fair) *new = (vigil_mutex)VIGIL_MUTEX_FAIR;
    lock(new);
    return new;
}

static void forget_and_free(vigil_mutex *which) {
    assert_int_equal(vigil_forget(which, sizeof *which), 1);
    free(which);
}

static void cancel_what_was_for_freed_memory(void **state) {
    (void)state;
    for (int is_fair = 0; is_fair < 2; is_fair++) {
        struct requester requester, next;
        vigil_mutex *gone = new_and_locked(is_fair);
        ask_pending(&requester, gone, VIGIL_FOREVER, answer);
        forget_and_free(gone);
        assert_int_equal(cancel(&requester), VIGIL_OK);
        dispatch();
        gone = new_and_locked(is_fair);
        ask_pending(&requester, gone, VIGIL_FOREVER, answer);
        ask_pending(&next, gone, VIGIL_FOREVER, answer);
        forget_and_free(gone);
        assert_int_equal(cancel(&requester), VIGIL_OK); /* and its place goes to the next */
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(requester.calls, 0);
        assert_int_equal(next.calls, 1);
        assert_int_equal(next.status, VIGIL_CANCELLED);
    }
}

static void the_agents_end_with_a_request_for_freed_memory(void **state) {
    (void)state;
    for (int is_fair = 0; is_fair < 2; is_fair++) {
        struct requester queue[2];
        vigil_mutex *gone = new_and_locked(is_fair);
        for (int j = 0; j < 2; j++) ask_pending(&queue[j], gone, VIGIL_FOREVER, answer);
        forget_and_free(gone);
        end_agent(agent);
        agent = new_agent(0);
        for (int j = 0; j < 2; j++) {
            assert_int_equal(queue[j].calls, 1);
            assert_int_equal(queue[j].status, VIGIL_CANCELLED);
        }
    }
}

static void who_hears_of_it_cancels_the_next(void **state) {
    (void)state;
    for (int is_fair = 0; is_fair < 2; is_fair++) {
        struct requester first;
        vigil_mutex *gone = new_and_locked(is_fair);
        ask_pending(&first, gone, VIGIL_FOREVER, cancel_the_others);
        for (int j = 0; j < 3; j++) ask_pending(&victims[j], gone, VIGIL_FOREVER, answer);
        forget_and_free(gone);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(first.calls, 1);
        assert_int_equal(first.status, VIGIL_CANCELLED);
        for (int j = 0; j < 3; j++) assert_int_equal(victims[j].calls, 0);
    }
}

/* Many. */

#define MANY 10000

static struct requester crowd[MANY];
static unsigned plain_counter; /* not atomic: only touched by the holder of the mutex */

static void count(vigil_op *op, int status) {
    plain_counter++;
    answer(op, status);
}

static uint32_t stop;

static void *count_until_stopped(void *which) {
    uintptr_t counted = 0;
    for (; !LOAD(stop); counted++) {
        if (vigil_mutex_lock(which) != VIGIL_OK) abort();
        plain_counter++;
        if (vigil_mutex_unlock(which) != VIGIL_OK) abort();
    }
    return (void *)counted;
}

static void many_requests_against_a_thread(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        pthread_t thread;
        void *counted;
        unsigned ended = 0, started = 0;
        plain_counter = served = 0;
        STORE(stop, 0);
        memset(crowd, 0, sizeof crowd);
        lock(both[i]);
        assert_int_equal(pthread_create(&thread, NULL, count_until_stopped, both[i]), 0);
        AWAIT(vigil_waiters(both[i]) == 1);
        for (int j = 0; j < MANY; j++) {
            int status = vigil_mutex_execute(agent, &crowd[j].request, both[i], VIGIL_FOREVER, count);
            assert_int_equal(status, VIGIL_PENDING);
            started++;
        }
        assert_int_equal(vigil_waiters(both[i]), 2);
        unlock(both[i]);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        STORE(stop, 1);
        pthread_join(thread, &counted);
        for (unsigned j = 0; j < MANY; j++) {
            ended += crowd[j].calls;
            assert_int_equal(crowd[j].rank, j + 1);
        }
        assert_int_equal(ended, started);
        assert_int_equal(plain_counter, ended + (uintptr_t)counted);
        assert_usable(both[i]);
    }
}

static unsigned served_when_posted;

static void look(vigil_agent *on, void *unused) {
    (void)on;
    (void)unused;
    served_when_posted = served;
}

static void many_requests_do_not_starve_a_posted_function(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        served = 0;
        served_when_posted = MANY;
        lock(both[i]);
        for (int j = 0; j < MANY; j++) execute_pending(&crowd[j], both[i]);
        unlock(both[i]);
        assert_int_equal(vigil_agent_post(agent, look, NULL), VIGIL_OK);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(served, MANY);
        assert_true(served_when_posted <= MANY / 100);
        assert_usable(both[i]);
    }
}

/* A dispatch ends as well, and the descriptor shows that there is more. */
static void many_requests_do_not_keep_a_dispatch(void **state) {
    (void)state;
    int fd = vigil_agent_fd(agent);
    lock(&mutex);
    for (int j = 0; j < MANY; j++) execute_pending(&crowd[j], &mutex);
    unlock(&mutex);
    dispatch();
    assert_true(served > 0 && served < MANY);
    while (served < MANY) {
        assert_true(readable(fd, 0));
        dispatch();
    }
    assert_usable(&mutex);
}

static void requests_leave_nothing_behind(void **state) {
    (void)state;
    uint32_t slots = 0;
    for (int round = 0; round < 1000; round++) {
        struct requester called, pending, granted;
        vigil_mutex *which = both[round % 2];
        lock(which);
        ask_pending(&called, which, VIGIL_FOREVER, answer);
        unlock(which);
        assert_int_equal(cancel(&called), VIGIL_OK); /* with the call under way */
        dispatch();
        lock(which);
        ask_pending(&pending, which, VIGIL_FOREVER, answer);
        execute_pending(&granted, which);
        assert_int_equal(cancel(&pending), VIGIL_OK);
        unlock(which);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        if (round == 10) slots = slots_ever_used();
    }
    assert_int_equal(slots_ever_used(), slots);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_free_one_is_ours_at_once),
        TEST(on_a_free_one_the_agent_is_not_looked_at),
        TEST(on_a_held_one_with_no_time),
        TEST(a_request_waits_behind_one_that_is_called),
        TEST(a_request_does_not_wait_behind_one_that_is_forgotten),
        TEST(errors),
        TEST(a_pending_request_is_in_use),
        TEST(lock_async_leaves_it_held),
        TEST(execute_unlocks_and_execute_later_does_not),
        TEST(what_a_loop_was_granted_another_thread_releases),
        TEST(taken_by_a_third),
        TEST(the_descriptor_says_when_it_is_our_turn),
        TEST(one_agent_has_one_place_and_serves_in_order),
        TEST(each_grant_waits_for_the_one_before),
        TEST(many_mutexes_at_once),
        TEST(a_fair_line_of_threads_and_requests),
        TEST(a_fair_line_of_two_requests_and_a_thread),
        TEST(a_callbacks_own_request_is_the_last),
        TEST(a_cancelled_request_leaves_no_place_to_the_next),
        TEST(two_agents_of_one_thread),
        TEST(cancel_in_the_queue),
        TEST(cancel_what_has_been_called),
        TEST(cancel_passes_on_what_was_reserved),
        TEST(after_cancel_the_mutex_is_left_alone),
        TEST(the_same_with_its_memory_freed),
        TEST(cancel_from_a_callback),
        TEST(deadlines_are_never_early),
        TEST(a_deadline_in_the_queue),
        TEST(a_deadline_that_passes_after_the_call),
        TEST(the_agents_end_cancels_what_is_pending),
        TEST(the_end_of_an_agent_that_has_been_called),
        TEST(ref_and_unref),
        TEST(execute_inside_execute),
        TEST(a_callback_frees_its_request),
        TEST(a_callback_starts_itself_anew),
        TEST(a_callback_that_forks),
        TEST(forgotten_with_all_its_requests),
        TEST(cancel_what_was_for_freed_memory),
        TEST(the_agents_end_with_a_request_for_freed_memory),
        TEST(who_hears_of_it_cancels_the_next),
        TEST(many_requests_against_a_thread),
        TEST(many_requests_do_not_starve_a_posted_function),
        TEST(many_requests_do_not_keep_a_dispatch),
        TEST(requests_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
