/* SPDX-License-Identifier: MIT */
/* The read-write lock in a segment: processes that share it, and what happens to locks of dead holders. */
#include "support.h"

#include "child.h"
#include "actors.h"

#include "lot/shared.h"
#include "vigil/rwlock.h"

/* In the segment: locks, and what they protect. */
#define LOCK        0u
#define SECOND_LOCK 64u
#define THIRD_LOCK  128u
#define PAIR        192u
#define OVER        256u

#define WRITER   1u
#define WAITERS  2u
#define RESERVED 4u
#define SAVED    8u
#define READER   16u

static uint32_t word(uint32_t where) {
    return LOAD(((vigil_rwlock *)at(where))->word);
}

/* Acts. The number is a timeout. */

static int64_t read_lock(const struct order *order) {
    return vigil_rwlock_read_lock(at(order->where));
}

static int64_t read_lock_for(const struct order *order) {
    return vigil_rwlock_read_lock_for(at(order->where), order->number);
}

static int64_t read_try(const struct order *order) {
    return vigil_rwlock_read_trylock(at(order->where));
}

static int64_t read_unlock(const struct order *order) {
    return vigil_rwlock_read_unlock(at(order->where));
}

static int64_t write_lock(const struct order *order) {
    return vigil_rwlock_write_lock(at(order->where));
}

static int64_t write_lock_for(const struct order *order) {
    return vigil_rwlock_write_lock_for(at(order->where), order->number);
}

static int64_t write_try(const struct order *order) {
    return vigil_rwlock_write_trylock(at(order->where));
}

static int64_t write_unlock(const struct order *order) {
    return vigil_rwlock_write_unlock(at(order->where));
}

static int64_t downgrade(const struct order *order) {
    return vigil_rwlock_downgrade(at(order->where));
}

static int64_t make_consistent(const struct order *order) {
    return vigil_rwlock_consistent(at(order->where));
}

/* Zero is a timeout as well; negative: forever. */
static int64_t read_async(const struct order *order) {
    return vigil_rwlock_read_lock_async(actors_agent, &actors_ops[order->tag].request, at(order->where),
                                        order->number < 0 ? VIGIL_FOREVER : order->number, report_outcome);
}

static int64_t write_async(const struct order *order) {
    return vigil_rwlock_write_lock_async(actors_agent, &actors_ops[order->tag].request, at(order->where),
                                         order->number < 0 ? VIGIL_FOREVER : order->number, report_outcome);
}

static int64_t go_deaf(const struct order *order) {
    (void)order;
    deaf = true;
    return VIGIL_OK;
}

/* Directing the actors. */

static void does(struct actor *actor, act *what) {
    assert_int_equal(actor_does(actor, what, LOCK), VIGIL_OK);
}

static void is_refused(struct actor *actor, act *what, int status) {
    assert_int_equal(actor_does(actor, what, LOCK), status);
}

/* Returns once it is in line. */
static void waits(struct actor *actor, act *what) {
    int64_t before = vigil_waiters(at(LOCK));
    actor_order(actor, &(struct order){.act = what, .where = LOCK, .number = -1});
    AWAIT(vigil_waiters(at(LOCK)) > before);
}

static void waits_async(struct actor *actor, act *what) {
    waits(actor, what);
    assert_hears(actor, VIGIL_PENDING);
}

/* Slots taken by waiters and holds. Those of the dead are free again a moment after the locks that they held. */
static uint32_t slots_taken(void) {
    struct lot *lot = lot_for(at(LOCK));
    uint32_t taken = 0;
    for (uint32_t index = 1; index < lot->share->slots; index++) taken += LOAD(lot->share->claims[index]) != 0;
    return taken;
}

static void segment_of_waiters(uint32_t waiters) {
    segment_end(0);
    segment_new(0, &(vigil_segment_options){.waiters = waiters});
}

/* The living. */

static void processes_share_it_to_read_and_not_to_write(void **state) {
    (void)state;
    actors_start(3);
    does(&actors[0], read_lock);
    does(&actors[0], read_try);
    does(&actors[1], read_lock);
    is_refused(&actors[2], write_try, VIGIL_TIMED_OUT);
    is_refused(&actors[2], write_lock_for, VIGIL_TIMED_OUT);
    is_refused(&actors[2], write_async, VIGIL_TIMED_OUT);
    does(&actors[2], read_async);
    for (int i = 0; i < 3; i++) does(&actors[i], read_unlock);
    does(&actors[0], read_unlock);
    assert_int_equal(word(LOCK), 0);
    assert_int_equal(slots_taken(), 0);

    does(&actors[2], write_lock);
    is_refused(&actors[0], read_try, VIGIL_TIMED_OUT);
    is_refused(&actors[0], read_lock_for, VIGIL_TIMED_OUT);
    is_refused(&actors[1], write_try, VIGIL_TIMED_OUT);
    does(&actors[2], downgrade);
    does(&actors[0], read_try);
    is_refused(&actors[1], write_try, VIGIL_TIMED_OUT);
    does(&actors[0], read_unlock);
    does(&actors[2], read_unlock);
    assert_int_equal(word(LOCK), 0);
    assert_int_equal(slots_taken(), 0);
}

static void processes_wait_in_one_line(void **state) {
    (void)state;
    actors_start(4);
    does(&actors[0], write_lock);
    waits(&actors[1], read_lock);
    waits_async(&actors[2], read_async);
    waits(&actors[3], write_lock);
    does(&actors[0], write_unlock);
    for (int served = 0; served < 3; served++) {
        struct actor *actor = first_to_say(VIGIL_OK);
        does(actor, actor == &actors[3] ? write_unlock : read_unlock);
    }
    assert_int_equal(word(LOCK), 0);
}

static void only_who_holds_it_can_unlock_it(void **state) {
    (void)state;
    actors_start(2);
    does(&actors[0], read_lock);
    does(&actors[0], read_lock);
    is_refused(&actors[1], read_unlock, VIGIL_ENOTHELD);
    does(&actors[1], read_lock);
    does(&actors[1], read_unlock);
    is_refused(&actors[1], read_unlock, VIGIL_ENOTHELD);
    assert_int_equal(word(LOCK), 2 * READER);
    does(&actors[0], read_unlock);
    does(&actors[0], read_unlock);
    is_refused(&actors[0], read_unlock, VIGIL_ENOTHELD);

    does(&actors[0], write_lock);
    is_refused(&actors[1], write_unlock, VIGIL_ENOTHELD);
    is_refused(&actors[1], downgrade, VIGIL_ENOTHELD);
    is_refused(&actors[1], read_unlock, VIGIL_ENOTHELD);
    assert_int_equal(word(LOCK), WRITER);
    waits(&actors[1], write_lock); /* this time it is refused under the lock of the line */
    assert_int_equal(vigil_rwlock_write_unlock(at(LOCK)), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_downgrade(at(LOCK)), VIGIL_ENOTHELD);
    assert_int_equal(word(LOCK), WRITER | WAITERS);
    does(&actors[0], write_unlock);
    assert_hears(&actors[1], VIGIL_OK);
    does(&actors[1], write_unlock);
    assert_int_equal(slots_taken(), 0);
}

static void the_stopped_keep_it(void **state) {
    (void)state;
    actors_start(2);
    does(&actors[0], write_lock);
    actor_stop(&actors[0]);
    is_refused(&actors[1], write_try, VIGIL_TIMED_OUT);
    is_refused(&actors[1], read_try, VIGIL_TIMED_OUT);
    actor_continue(&actors[0]);
    does(&actors[0], write_unlock);
    does(&actors[1], write_try);
    does(&actors[1], write_unlock);
}

/* A lock that lets readers pass does so in every process, even after some have died. */
static void readers_pass_between_processes(void **state) {
    (void)state;
    act *const ways[] = {write_lock, write_async};
    const vigil_rwlock passing = VIGIL_RWLOCK_READERS_PASS;
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        actors_start(4);
        STORE(((vigil_rwlock *)at(LOCK))->word, passing.word);
        does(&actors[0], read_lock);
        waits(&actors[2], ways[i]);
        if (ways[i] == write_async) assert_hears(&actors[2], VIGIL_PENDING);
        does(&actors[0], read_lock);
        does(&actors[1], read_lock);
        does(&actors[1], read_try);
        does(&actors[3], read_async);
        does(&actors[3], read_unlock);
        actor_kill(&actors[0]);
        AWAIT((word(LOCK) & ~WAITERS) == (passing.word | 2 * READER));
        assert_true(actor_silent(&actors[2]));
        does(&actors[1], read_unlock);
        does(&actors[1], read_unlock);
        assert_hears(&actors[2], VIGIL_OK);
        is_refused(&actors[1], read_try, VIGIL_TIMED_OUT);
        waits(&actors[1], read_lock);
        actor_kill(&actors[2]);
        assert_hears(&actors[1], VIGIL_OWNER_DIED);
        is_refused(&actors[1], read_lock, VIGIL_OWNER_DIED);
        does(&actors[1], read_unlock);
        does(&actors[1], read_unlock);
        is_refused(&actors[3], write_lock, VIGIL_OWNER_DIED);
        does(&actors[3], make_consistent);
        does(&actors[3], write_unlock);
        assert_int_equal(word(LOCK), passing.word);
        STORE(((vigil_rwlock *)at(LOCK))->word, 0);
        actors_dismiss();
    }
}

/* In private memory nothing changes, although the process has a segment. */
static void elsewhere_it_is_nobodys(void **state) {
    (void)state;
    static vigil_rwlock own;
    uint32_t before = slots_taken();
    assert_int_equal(vigil_rwlock_read_lock(&own), VIGIL_OK);
    assert_int_equal(vigil_rwlock_read_trylock(&own), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_trylock(&own), VIGIL_TIMED_OUT);
    assert_int_equal(own.word, 2 * READER);
    assert_int_equal(vigil_rwlock_read_unlock(&own), VIGIL_OK);
    assert_int_equal(vigil_rwlock_read_unlock(&own), VIGIL_OK);
    assert_int_equal(vigil_rwlock_read_unlock(&own), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_write_lock(&own), VIGIL_OK);
    assert_int_equal(vigil_rwlock_consistent(&own), VIGIL_EINVAL);
    assert_int_equal(vigil_rwlock_write_unlock(&own), VIGIL_OK);
    assert_int_equal(vigil_rwlock_consistent(&own), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_consistent(NULL), VIGIL_ENULL);
    assert_int_equal(own.word, 0);
    assert_int_equal(slots_taken(), before);
}

/* Dead readers. */

static void a_dead_readers_share_comes_back(void **state) {
    (void)state;
    act *const ways[] = {write_lock, write_async};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        actors_start(3);
        does(&actors[0], read_lock);
        does(&actors[0], read_lock);
        does(&actors[1], read_lock);
        waits(&actors[2], ways[i]);
        if (ways[i] == write_async) assert_hears(&actors[2], VIGIL_PENDING);
        actor_kill(&actors[0]);
        AWAIT((word(LOCK) & ~(WAITERS | SAVED)) == READER); /* another process sweeps */
        assert_true(actor_silent(&actors[2]));
        does(&actors[1], read_unlock);
        assert_hears(&actors[2], VIGIL_OK);
        does(&actors[2], write_unlock);
        assert_int_equal(word(LOCK), 0);
        AWAIT(slots_taken() == 0);
        actors_dismiss();
    }
}

static void a_dead_last_reader_lets_the_writer_in(void **state) {
    (void)state;
    actors_start(2);
    does(&actors[0], read_lock);
    waits(&actors[1], write_lock);
    actor_kill(&actors[0]);
    assert_hears(&actors[1], VIGIL_OK);
    does(&actors[1], write_unlock);
    assert_int_equal(word(LOCK), 0);
}

static void who_tries_finds_the_dead(void **state) {
    (void)state;
    act *const ways[] = {write_try, write_lock_for, write_async};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        actors_start(2);
        does(&actors[0], read_lock);
        actor_kill(&actors[0]);
        does(&actors[1], ways[i]);
        does(&actors[1], write_unlock);
        assert_int_equal(word(LOCK), 0);
        actors_dismiss();
    }
}

/* Dead writers. */

static void unlocks(struct actor *actor, bool writing) {
    does(actor, writing ? write_unlock : read_unlock);
}

static void after_a_dead_writer_everybody_is_told(void **state) {
    (void)state;
    const struct {
        act *wait, *try;
        bool writes, async;
    } ways[] = {{read_lock, read_try, false, false},
                {write_lock, write_try, true, false},
                {read_async, read_lock_for, false, true},
                {write_async, write_lock_for, true, true}};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        actors_start(3);
        does(&actors[0], write_lock);
        waits(&actors[1], ways[i].wait);
        if (ways[i].async) assert_hears(&actors[1], VIGIL_PENDING);
        actor_kill(&actors[0]);
        assert_hears(&actors[1], VIGIL_OWNER_DIED);
        unlocks(&actors[1], ways[i].writes);

        is_refused(&actors[2], ways[i].try, VIGIL_OWNER_DIED); /* not marked consistent yet */
        unlocks(&actors[2], ways[i].writes);
        is_refused(&actors[1], ways[i].wait, VIGIL_OWNER_DIED);
        unlocks(&actors[1], ways[i].writes);

        is_refused(&actors[2], write_lock, VIGIL_OWNER_DIED);
        does(&actors[2], make_consistent);
        is_refused(&actors[2], make_consistent, VIGIL_EINVAL);
        does(&actors[2], write_unlock);
        does(&actors[1], ways[i].try);
        unlocks(&actors[1], ways[i].writes);
        assert_int_equal(word(LOCK), 0);
        AWAIT(slots_taken() == 0);
        actors_dismiss();
    }
}

static void who_tries_finds_a_dead_writer(void **state) {
    (void)state;
    act *const ways[] = {read_try, write_try, read_async, write_async};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        bool writes = ways[i] == write_try || ways[i] == write_async;
        actors_start(2);
        does(&actors[0], write_lock);
        actor_kill(&actors[0]);
        is_refused(&actors[1], ways[i], VIGIL_OWNER_DIED);
        unlocks(&actors[1], writes);
        is_refused(&actors[1], write_lock, VIGIL_OWNER_DIED);
        does(&actors[1], make_consistent);
        does(&actors[1], write_unlock);
        actors_dismiss();
    }
}

static void only_who_writes_says_that_it_is_consistent(void **state) {
    (void)state;
    actors_start(3);
    does(&actors[0], write_lock);
    actor_kill(&actors[0]);
    is_refused(&actors[1], read_try, VIGIL_OWNER_DIED);
    is_refused(&actors[1], make_consistent, VIGIL_ENOTHELD);
    does(&actors[1], read_unlock);
    is_refused(&actors[1], write_lock, VIGIL_OWNER_DIED);
    is_refused(&actors[2], make_consistent, VIGIL_ENOTHELD);
    does(&actors[1], make_consistent);
    does(&actors[1], downgrade);
    does(&actors[2], read_lock);
    is_refused(&actors[2], make_consistent, VIGIL_ENOTHELD);
    does(&actors[1], read_unlock);
    does(&actors[2], read_unlock);
}

/* A writer that has downgraded has nothing half done. */
static void a_downgraded_writer_dies_as_a_reader(void **state) {
    (void)state;
    actors_start(2);
    does(&actors[0], write_lock);
    does(&actors[0], downgrade);
    actor_kill(&actors[0]);
    does(&actors[1], write_try);
    does(&actors[1], write_unlock);
    assert_int_equal(word(LOCK), 0);
}

/* A process that leaves, with the same effect as a death. */
static void who_leaves_gives_it_back(void **state) {
    (void)state;
    actors_start(3);
    does(&actors[0], read_lock);
    assert_int_equal(actor_does(&actors[0], leave_segment, LOCK), 0);
    does(&actors[1], write_try);
    assert_int_equal(actor_does(&actors[1], leave_segment, LOCK), 0);
    is_refused(&actors[2], write_lock, VIGIL_OWNER_DIED);
    does(&actors[2], make_consistent);
    does(&actors[2], write_unlock);
    assert_int_equal(word(LOCK), 0);
}

/* A process that opens it then cannot know which process held the locks. */
static void when_all_are_dead_all_comes_back(void **state) {
    (void)state;
    actors_start(2);
    does(&actors[0], read_lock);
    does(&actors[1], read_lock);
    does(&actors[1], read_lock);
    assert_int_equal(actor_does(&actors[0], write_lock, SECOND_LOCK), VIGIL_OK);
    for (int i = 0; i < 2; i++) actor_kill(&actors[i]);
    assert_int_equal(vigil_buffer_destroy(buffers[0]), 0);
    assert_int_equal(vigil_segment_open_fd(&buffers[0], fds[0]), VIGIL_OK);
    assert_int_equal(word(LOCK), 0);
    actor_start(&actors[0]);
    does(&actors[0], write_try);
    does(&actors[0], write_unlock);
    assert_int_equal(actor_does(&actors[0], write_lock, SECOND_LOCK), VIGIL_OWNER_DIED);
    assert_int_equal(actor_does(&actors[0], make_consistent, SECOND_LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[0], write_unlock, SECOND_LOCK), VIGIL_OK);
}

/* Waiters are forgotten, holders are not. */
static void to_forget_a_range_forgets_no_holder(void **state) {
    (void)state;
    segment_of_waiters(4);
    actors_start(2);
    does(&actors[0], write_lock);
    waits(&actors[1], read_lock);
    assert_int_equal(vigil_forget(at(LOCK), vigil_buffer_length(buffers[0])), 1);
    assert_hears(&actors[1], VIGIL_CANCELLED);
    does(&actors[0], write_unlock);
    assert_int_equal(word(LOCK), 0);
    assert_int_equal(slots_taken(), 0);
}

/* Killed in line. */

static void a_writer_that_is_killed_lets_readers_in(void **state) {
    (void)state;
    actors_start(4);
    does(&actors[0], read_lock);
    waits(&actors[1], write_lock);
    AWAIT(word(LOCK) & SAVED);
    waits(&actors[2], read_lock);
    waits_async(&actors[3], read_async);
    actor_kill(&actors[1]);
    assert_hears(&actors[2], VIGIL_OK);
    assert_hears(&actors[3], VIGIL_OK);
    for (int i = 2; i < 4; i++) does(&actors[i], read_unlock);
    does(&actors[0], read_unlock);
    assert_int_equal(vigil_waiters(at(LOCK)), 0);
}

/* No other waiter is in line that would notice. */
static void nothing_is_saved_for_the_dead(void **state) {
    (void)state;
    actors_start(3);
    does(&actors[0], read_lock);
    waits(&actors[1], write_lock);
    AWAIT(word(LOCK) & SAVED);
    is_refused(&actors[2], read_try, VIGIL_TIMED_OUT);
    actor_kill(&actors[1]);
    does(&actors[2], read_try);
    does(&actors[2], read_unlock);
    does(&actors[0], read_unlock);
    assert_int_equal(word(LOCK) & ~WAITERS, 0);
}

static void nothing_is_reserved_for_the_dead(void **state) {
    (void)state;
    actors_start(3);
    does(&actors[0], write_lock);
    waits_async(&actors[1], write_async);
    assert_int_equal(actor_does(&actors[1], go_deaf, 0), VIGIL_OK);
    let_pass(MILLISECOND);
    does(&actors[0], write_unlock); /* it has been called, and the lock is reserved */
    assert_true(word(LOCK) & RESERVED);
    is_refused(&actors[2], read_try, VIGIL_TIMED_OUT);
    actor_kill(&actors[1]);
    does(&actors[2], write_try);
    does(&actors[2], write_unlock);
    assert_int_equal(word(LOCK), 0);
}

static void who_was_called_is_killed_and_the_next_is_called(void **state) {
    (void)state;
    actors_start(3);
    does(&actors[0], write_lock);
    waits(&actors[1], write_lock);
    waits(&actors[2], write_lock);
    actor_stop(&actors[1]);
    does(&actors[0], write_unlock);
    actor_kill(&actors[1]);
    assert_hears(&actors[2], VIGIL_OK);
    does(&actors[2], write_unlock);
}

/* No room for holds. */

static void without_slots_it_is_refused(void **state) {
    (void)state;
    segment_of_waiters(2);
    actors_start(2);
    assert_int_equal(actor_does(&actors[0], read_lock, LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[0], write_lock, SECOND_LOCK), VIGIL_OK);
    act *const ways[] = {read_lock, read_try, write_lock, write_try, read_async, write_async};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        assert_int_equal(actor_does(&actors[0], ways[i], THIRD_LOCK), VIGIL_ELIMIT);
        assert_int_equal(actor_does(&actors[1], ways[i], THIRD_LOCK), VIGIL_ELIMIT);
    }
    assert_int_equal(actor_does(&actors[1], write_lock, LOCK), VIGIL_ELIMIT); /* it would have to wait */
    assert_int_equal(word(THIRD_LOCK), 0);
    assert_int_equal(actor_does(&actors[0], read_lock, LOCK), VIGIL_OK); /* for this there is a hold */
    assert_int_equal(actor_does(&actors[0], read_unlock, LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[0], read_unlock, LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[1], read_lock, THIRD_LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[1], read_unlock, THIRD_LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[0], write_unlock, SECOND_LOCK), VIGIL_OK);
    assert_int_equal(slots_taken(), 0);
}

static void the_slots_of_the_dead_are_used_again(void **state) {
    (void)state;
    segment_of_waiters(2);
    actors_start(2);
    assert_int_equal(actor_does(&actors[0], read_lock, LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[0], write_lock, SECOND_LOCK), VIGIL_OK);
    actor_kill(&actors[0]);
    assert_int_equal(actor_does(&actors[1], write_lock, THIRD_LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[1], write_lock, LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[1], write_unlock, LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[1], write_lock, SECOND_LOCK), VIGIL_OWNER_DIED);
    assert_int_equal(actor_does(&actors[1], write_unlock, SECOND_LOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[1], write_unlock, THIRD_LOCK), VIGIL_OK);
}

/* A waiter that is called, and cannot get a hold then, leaves the lock to others. */
static void who_is_called_may_be_refused(void **state) {
    (void)state;
    act *const ways[] = {read_lock, read_async};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        segment_of_waiters(2);
        actors_start(2);
        does(&actors[0], write_lock);
        waits(&actors[1], ways[i]);
        if (ways[i] == read_async) assert_hears(&actors[1], VIGIL_PENDING);
        does(&actors[0], downgrade);
        assert_hears(&actors[1], VIGIL_ELIMIT);
        assert_int_equal(word(LOCK) & ~WAITERS, READER);
        does(&actors[1], read_try); /* its place in line is free for a hold */
        does(&actors[1], read_unlock);
        does(&actors[0], read_unlock);
        actors_dismiss();
    }
}

/* All together, and one is killed again and again. A writer changes two words, which are the same for every reader. */

static bool pair_is_whole(void) {
    uint32_t *pair = at(PAIR);
    return pair[0] == pair[1];
}

static bool read_once(void) {
    int status = vigil_rwlock_read_lock(at(LOCK));
    bool good = status == VIGIL_OWNER_DIED || (status == VIGIL_OK && pair_is_whole());
    return good && vigil_rwlock_read_unlock(at(LOCK)) == VIGIL_OK;
}

static bool write_once(void) {
    uint32_t *pair = at(PAIR);
    int status = vigil_rwlock_write_lock(at(LOCK));
    if (status == VIGIL_OWNER_DIED) {
        pair[1] = pair[0];
        if (vigil_rwlock_consistent(at(LOCK)) != VIGIL_OK) return false;
    } else if (status != VIGIL_OK || !pair_is_whole()) {
        return false;
    }
    pair[0]++;
    pair[1]++;
    return vigil_rwlock_write_unlock(at(LOCK)) == VIGIL_OK;
}

static int64_t read_and_write_until_over(const struct order *order) {
    uint64_t seed = (uint64_t)order->number;
    bool good = true;
    while (good && !LOAD(*(uint32_t *)at(OVER))) good = random_next(&seed) % 4 ? read_once() : write_once();
    return good ? VIGIL_OK : VIGIL_ECORRUPT;
}

static void many_are_killed_and_the_others_go_on(void **state) {
    (void)state;
    actors_kill_at_random(read_and_write_until_over);
    uint32_t written = *(uint32_t *)at(PAIR);
    AWAIT(LOAD(*(uint32_t *)at(PAIR)) != written); /* the others continue */
    STORE(*(uint32_t *)at(OVER), 1);
    assert_hears(&actors[0], VIGIL_OK);
    assert_hears(&actors[1], VIGIL_OK);
    int64_t status = actor_does(&actors[2], write_try, LOCK);
    assert_true(status == VIGIL_OK || status == VIGIL_OWNER_DIED);
    if (status == VIGIL_OWNER_DIED) does(&actors[2], make_consistent);
    does(&actors[2], write_unlock);
    assert_int_equal(word(LOCK), 0);
    AWAIT(slots_taken() == 0);
}

/* A segment has no lanes. A damaged word may say so: the line must not call a waiter that cannot take the lock then. */
static void damage_that_says_lanes_is_repaired(void **state) {
    (void)state;
    const uint32_t lanes = 1u << 28, closing = 1u << 29, pass = 1u << 30;
    const uint32_t damaged[] = {lanes, lanes | closing, lanes | WAITERS, lanes | WAITERS | RESERVED,
                                lanes | closing | WAITERS | RESERVED | SAVED};
    vigil_rwlock *lock = at(LOCK);
    for (size_t i = 0; i < 2 * COUNT_OF(damaged); i++) {
        __atomic_store_n(&lock->word, damaged[i / 2] | (i % 2 ? pass : 0), __ATOMIC_SEQ_CST);
        assert_int_equal(vigil_rwlock_write_lock_for(lock, 100 * SECOND), VIGIL_OK);
        assert_int_equal(vigil_rwlock_write_unlock(lock), VIGIL_OK);
        assert_int_equal(word(LOCK) & (lanes | closing), 0);
    }
    __atomic_store_n(&lock->word, 0, __ATOMIC_SEQ_CST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(damage_that_says_lanes_is_repaired),
        TEST(processes_share_it_to_read_and_not_to_write),
        TEST(processes_wait_in_one_line),
        TEST(only_who_holds_it_can_unlock_it),
        TEST(the_stopped_keep_it),
        TEST(readers_pass_between_processes),
        TEST(elsewhere_it_is_nobodys),
        TEST(a_dead_readers_share_comes_back),
        TEST(a_dead_last_reader_lets_the_writer_in),
        TEST(who_tries_finds_the_dead),
        TEST(after_a_dead_writer_everybody_is_told),
        TEST(who_tries_finds_a_dead_writer),
        TEST(only_who_writes_says_that_it_is_consistent),
        TEST(a_downgraded_writer_dies_as_a_reader),
        TEST(who_leaves_gives_it_back),
        TEST(when_all_are_dead_all_comes_back),
        TEST(to_forget_a_range_forgets_no_holder),
        TEST(a_writer_that_is_killed_lets_readers_in),
        TEST(nothing_is_saved_for_the_dead),
        TEST(nothing_is_reserved_for_the_dead),
        TEST(who_was_called_is_killed_and_the_next_is_called),
        TEST(without_slots_it_is_refused),
        TEST(the_slots_of_the_dead_are_used_again),
        TEST(who_is_called_may_be_refused),
        TEST(many_are_killed_and_the_others_go_on),
    };
    return children_can_start_threads() ? cmocka_run_group_tests_name("shared_rwlock", tests, NULL, NULL)
                                        : NO_THREADS_IN_CHILDREN;
}
