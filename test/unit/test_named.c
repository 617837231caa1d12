/* SPDX-License-Identifier: MIT */
/* Named locks: taking, waiting, sharing, slots, death, ties, and the book of names. */
#include "support.h"

#include "child.h"
#include "named_support.h"

/* Basic properties. */

static void a_name_is_a_lock(void **state) {
    (void)state;
    const char *name = numbered("lock", 0);
    vigil_named *one = open_it(name), *other = open_it(name);
    assert_int_equal(vigil_named_slots(one), 0);
    assert_int_equal(vigil_named_unlock(one), VIGIL_ENOTHELD);
    assert_int_equal(vigil_named_trylock(one, 0), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(one, 0), VIGIL_EINUSE);
    assert_int_equal(vigil_named_trylock(other, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_lock_for(other, VIGIL_NAMED_FAIR, MILLISECOND), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_lock_until(other, 0, vigil_now_ns() + MILLISECOND), VIGIL_TIMED_OUT);
    int64_t deadline_ns = vigil_now_ns() + MILLISECOND; /* as every other timeout, it may be a deadline */
    assert_int_equal(vigil_named_lock_for(other, 0, vigil_until(deadline_ns)), VIGIL_TIMED_OUT);
    assert_true(vigil_now_ns() >= deadline_ns);
    assert_int_equal(vigil_named_consistent(one), VIGIL_EINVAL);
    assert_int_equal(vigil_named_consistent(other), VIGIL_ENOTHELD);
    assert_int_equal(vigil_named_cancel(one), VIGIL_EIDLE);
    assert_int_equal(vigil_named_unlock(one), VIGIL_OK);
    assert_int_equal(vigil_named_lock(other, VIGIL_NAMED_FAIR), VIGIL_OK);
    close_it(other); /* unlocks it */
    assert_int_equal(vigil_named_lock_for(one, 0, SECOND), VIGIL_OK);
    assert_int_equal(vigil_named_mend(name), 0);
    close_it(one);
    assert_int_equal(vigil_named_remove(name, false), VIGIL_OK);
    assert_int_equal(vigil_named_remove(name, false), VIGIL_ENOTFOUND);
}

static void arguments_are_checked(void **state) {
    (void)state;
    const char *name = numbered("checked", 0), *many = numbered("checked", 1);
    vigil_named *lock, *slots, *none;
    assert_int_equal(vigil_named_open(NULL, name, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_named_open(&none, NULL, NULL), VIGIL_ENULL);
    assert_int_equal(try_open(name, &(vigil_named_options){.existing = true}), VIGIL_ENOTFOUND);
    assert_int_equal(try_open(name, &(vigil_named_options){.slots = VIGIL_NAMED_SLOTS + 1}), VIGIL_ERANGE);
    assert_int_equal(try_open(name, &(vigil_named_options){.mode = 0400}), VIGIL_EINVAL);
    assert_int_equal(try_open(name, &(vigil_named_options){.mode = 0700}), VIGIL_EINVAL);
    lock = open_it(name);
    slots = open_with(many, &(vigil_named_options){.slots = 1});
    assert_int_equal(vigil_named_lock(lock, 8), VIGIL_EINVAL);
    assert_int_equal(vigil_named_lock(lock, VIGIL_NAMED_AGAIN), VIGIL_EINVAL);
    assert_int_equal(vigil_named_lock(slots, VIGIL_NAMED_SHARED), VIGIL_EINVAL);
    assert_int_equal(vigil_named_set_slots(lock, 1), VIGIL_EINVAL);
    assert_int_equal(vigil_named_set_slots(slots, 0), VIGIL_ERANGE);
    assert_int_equal(vigil_named_set_slots(slots, VIGIL_NAMED_SLOTS + 1), VIGIL_ERANGE);
    assert_int_equal(vigil_named_lock(NULL, 0), VIGIL_ENULL);
    assert_int_equal(vigil_named_unlock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_named_close(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_named_death(lock, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_named_list(NULL, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_named_lock_async(NULL, lock, 0, 0, NULL, NULL), VIGIL_ENULL);
    close_it(lock);
    close_it(slots);
    assert_int_equal(vigil_named_remove(NULL, false), VIGIL_ENULL);
}

static void names_are_checked(void **state) {
    (void)state;
    static const char *const bad[] = {"", ".hidden", "-dash", "with space", "t\303\244st", "tab\t", "a*"};
    char longest[256];
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(try_open(bad[i], NULL), VIGIL_ENAME);
        assert_int_equal(vigil_named_remove(bad[i], true), VIGIL_ENAME);
    }
    memset(longest, 'x', sizeof longest);
    memcpy(longest, prefix, strlen(prefix));
    longest[201] = 0;
    assert_int_equal(try_open(longest, NULL), VIGIL_ENAME);
    longest[200] = 0;
    assert_int_equal(try_open(longest, NULL), VIGIL_OK);
    assert_int_equal(try_open(longest, &(vigil_named_options){.existing = true}), VIGIL_OK);
    longest[199] = 0; /* the beginning of a name is another name */
    assert_int_equal(try_open(longest, &(vigil_named_options){.existing = true}), VIGIL_ENOTFOUND);
    longest[199] = 'x';
    assert_int_equal(vigil_named_remove(longest, false), VIGIL_OK);
}

/* All names are in one file: the mode is of paths. */
static void a_name_has_no_mode(void **state) {
    (void)state;
    char path[64];
    struct stat file;
    assert_int_equal(try_open(numbered("mode", 0), &(vigil_named_options){.mode = 0666}), VIGIL_OK);
    snprintf(path, sizeof path, "/dev/shm/vigil-%u", (unsigned)geteuid());
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode, S_IFREG | 0600);
}

/* Sharing. */

struct locker {
    pthread_t thread;
    vigil_named *named;
    unsigned how;
    int status;
};

static void *locker_main(void *argument) {
    struct locker *locker = argument;
    STORE(locker->status, vigil_named_lock(locker->named, locker->how));
    return NULL;
}

static void locker_start(struct locker *locker, const char *name, unsigned how) {
    *locker = (struct locker){.named = open_it(name), .how = how, .status = UNDECIDED};
    assert_int_equal(pthread_create(&locker->thread, NULL, locker_main, locker), 0);
}

static int locker_join(struct locker *locker) {
    assert_int_equal(pthread_join(locker->thread, NULL), 0);
    return locker->status;
}

static void it_is_shared(void **state) {
    (void)state;
    const char *name = numbered("shared", 0);
    vigil_named *one = open_it(name), *two = open_it(name), *alone = open_it(name);
    assert_int_equal(vigil_named_lock(one, VIGIL_NAMED_SHARED), VIGIL_OK);
    assert_int_equal(vigil_named_lock(two, VIGIL_NAMED_SHARED | VIGIL_NAMED_FAIR), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(alone, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_consistent(one), VIGIL_ENOTHELD);
    assert_int_equal(vigil_named_unlock(one), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(alone, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_unlock(two), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(alone, 0), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(one, VIGIL_NAMED_SHARED | VIGIL_NAMED_AGAIN), VIGIL_TIMED_OUT);
    close_it(alone);
    close_it(one);
    close_it(two);
}

static void again_passes_a_waiter(void **state) {
    (void)state;
    const char *name = numbered("again", 0);
    vigil_named *one = open_it(name), *two = open_it(name);
    struct entry *entry = entry_of(name);
    struct locker writer;
    assert_int_equal(vigil_named_lock(one, VIGIL_NAMED_SHARED), VIGIL_OK);
    locker_start(&writer, name, 0);
    AWAIT(waiters_in_line(&entry->lock) == 1);
    AWAIT(LOAD(entry->lock.word) & 8u); /* SAVED: new readers are kept out */
    assert_int_equal(vigil_named_trylock(two, VIGIL_NAMED_SHARED), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_trylock(two, VIGIL_NAMED_SHARED | VIGIL_NAMED_AGAIN), VIGIL_OK);
    assert_int_equal(vigil_named_unlock(one), VIGIL_OK);
    assert_int_equal(LOAD(writer.status), UNDECIDED);
    assert_int_equal(vigil_named_unlock(two), VIGIL_OK);
    assert_int_equal(locker_join(&writer), VIGIL_OK);
    assert_int_equal(vigil_named_unlock(writer.named), VIGIL_OK); /* on another thread */
    close_it(writer.named);
    close_it(one);
    close_it(two);
}

/* Semaphores. */

#define MOST 8
static void open_several(vigil_named *several[MOST], const char *name, uint32_t slots) {
    for (unsigned i = 0; i < MOST; i++) several[i] = open_with(name, &(vigil_named_options){.slots = slots});
}

/* How many of the handles can have a slot at once. */
static unsigned can_have(vigil_named *several[MOST]) {
    unsigned had = 0;
    while (had < MOST && vigil_named_trylock(several[had], had % 2 ? VIGIL_NAMED_FAIR : 0) == VIGIL_OK) had++;
    for (unsigned i = 0; i < had; i++) assert_int_equal(vigil_named_unlock(several[i]), VIGIL_OK);
    return had;
}

static void close_several(vigil_named *several[MOST]) {
    for (unsigned i = 0; i < MOST; i++) close_it(several[i]);
}

static void a_semaphore_has_slots(void **state) {
    (void)state;
    const char *name = numbered("slots", 0);
    vigil_named *several[MOST];
    open_several(several, name, 2);
    assert_int_equal(vigil_named_slots(several[0]), 2);
    assert_int_equal(can_have(several), 2);
    assert_int_equal(vigil_named_unlock(several[0]), VIGIL_ENOTHELD);

    assert_int_equal(vigil_named_lock(several[0], 0), VIGIL_OK);
    assert_int_equal(vigil_named_lock(several[1], 0), VIGIL_OK);
    assert_int_equal(vigil_named_set_slots(several[0], 3), VIGIL_OK); /* more, while two are held */
    assert_int_equal(vigil_named_trylock(several[2], 0), VIGIL_OK);
    assert_int_equal(vigil_named_set_slots(several[0], 1), VIGIL_OK); /* fewer, while three are held */
    assert_int_equal(vigil_named_slots(several[1]), 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(vigil_named_trylock(several[3], 0), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_named_unlock(several[i]), VIGIL_OK);
    }
    assert_int_equal(can_have(several), 1);

    assert_int_equal(vigil_named_lock(several[0], 0), VIGIL_OK);
    assert_int_equal(vigil_named_set_slots(several[0], 5), VIGIL_OK);
    assert_int_equal(vigil_named_set_slots(several[0], 4), VIGIL_OK); /* of which one is held */
    assert_int_equal(vigil_named_unlock(several[0]), VIGIL_OK);
    assert_int_equal(can_have(several), 4);
    close_several(several);
}

static void new_slots_are_for_waiters(void **state) {
    (void)state;
    const char *name = numbered("waiters", 0);
    vigil_named *one = open_with(name, &(vigil_named_options){.slots = 1});
    struct entry *entry = entry_of(name);
    struct locker locker;
    assert_int_equal(vigil_named_lock(one, 0), VIGIL_OK);
    locker_start(&locker, name, 0);
    AWAIT(waiters_in_line(&entry->permits) == 1);
    assert_int_equal(vigil_named_set_slots(one, 2), VIGIL_OK);
    assert_int_equal(locker_join(&locker), VIGIL_OK);
    close_it(locker.named);
    close_it(one);
}

static void hold_three(const struct actor *self, const char *name) {
    for (int i = 0; i < 3; i++) CHECK(vigil_named_lock(child_open(name), 0) == VIGIL_OK);
    actor_say(self, VIGIL_OK);
}

/* The permits of the dead come back, but not those that are too many by then. */
static void slots_of_the_killed_are_not_too_many(void **state) {
    (void)state;
    const char *name = numbered("killed", 0);
    vigil_named *several[MOST];
    open_several(several, name, 3);
    struct actor actor = actor_start(hold_three, name);
    assert_int_equal(actor_hear(&actor), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(several[0], 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_set_slots(several[0], 1), VIGIL_OK);
    actor_end(&actor);
    assert_int_equal(can_have(several), 1);
    assert_int_equal(vigil_named_set_slots(several[0], 4), VIGIL_OK);
    assert_int_equal(can_have(several), 4);
    close_several(several);
}

static const char *busy_name;
static bool busy_enough;

static void *busy_main(void *unused) {
    vigil_named *named = open_it(busy_name);
    while (!LOAD(busy_enough)) {
        if (vigil_named_lock_for(named, 0, MILLISECOND) == VIGIL_OK) vigil_named_unlock(named);
    }
    close_it(named);
    return unused;
}

static void slots_may_change_while_they_are_used(void **state) {
    (void)state;
    const char *name = busy_name = numbered("busy", 0);
    vigil_named *several[MOST];
    pthread_t threads[3];
    open_several(several, name, 4);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, busy_main, NULL), 0);
    }
    for (unsigned i = 0; i < 5000; i++) assert_int_equal(vigil_named_set_slots(several[0], i % 2 ? 4 : 1), VIGIL_OK);
    STORE(busy_enough, true);
    for (size_t i = 0; i < COUNT_OF(threads); i++) pthread_join(threads[i], NULL);
    assert_int_equal(vigil_named_slots(several[0]), 4);
    assert_int_equal(can_have(several), 4);
    close_several(several);
}

/* Event loops. */

struct outcome {
    int status;
    unsigned calls;
    bool closes;
};

static void on_outcome(vigil_named *named, int status, void *data) {
    struct outcome *outcome = data;
    outcome->status = status;
    outcome->calls++;
    if (outcome->closes) assert_int_equal(vigil_named_close(named), VIGIL_OK);
}

static void run_until_called(vigil_agent *agent, struct outcome *outcome) {
    while (!outcome->calls) vigil_agent_run_until(agent, vigil_now_ns() + MILLISECOND);
    assert_int_equal(outcome->calls, 1);
}

static int start(vigil_agent *agent, vigil_named *named, unsigned how, struct outcome *outcome) {
    *outcome = (struct outcome){.status = UNDECIDED, .closes = outcome->closes};
    return vigil_named_lock_async(agent, named, how, VIGIL_FOREVER, on_outcome, outcome);
}

static void an_event_loop_waits(void **state) {
    (void)state;
    for (unsigned how = 0; how < 4; how++) {
        const char *name = numbered("async", how);
        vigil_agent *agent = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
        vigil_named *one = open_it(name), *two = open_it(name);
        struct outcome outcome = {0};
        assert_int_equal(start(agent, one, how, &outcome), VIGIL_OK); /* at once */
        assert_int_equal(outcome.calls, 0);
        assert_int_equal(vigil_named_unlock(one), VIGIL_OK);

        assert_int_equal(vigil_named_trylock(one, 0), VIGIL_OK);
        assert_int_equal(start(agent, two, how, &outcome), VIGIL_PENDING);
        assert_int_equal(start(agent, two, how, &outcome), VIGIL_EINUSE);
        assert_int_equal(vigil_named_trylock(two, how), VIGIL_EINUSE);
        assert_int_equal(vigil_named_unlock(two), VIGIL_ENOTHELD);
        assert_int_equal(vigil_named_close(two), VIGIL_EBUSY);
        assert_int_equal(vigil_named_unlock(one), VIGIL_OK);
        run_until_called(agent, &outcome);
        assert_int_equal(outcome.status, VIGIL_OK);

        assert_int_equal(start(agent, one, 0, &outcome), VIGIL_PENDING);
        assert_int_equal(vigil_named_cancel(one), VIGIL_OK);
        assert_int_equal(vigil_named_cancel(one), VIGIL_EIDLE);
        assert_int_equal(vigil_named_unlock(two), VIGIL_OK);
        vigil_agent_run_until(agent, vigil_now_ns() + MILLISECOND);
        assert_int_equal(outcome.calls, 0);

        assert_int_equal(vigil_named_trylock(one, 0), VIGIL_OK);
        outcome = (struct outcome){.status = UNDECIDED};
        assert_int_equal(vigil_named_lock_async(agent, two, how, MILLISECOND, on_outcome, &outcome), VIGIL_PENDING);
        run_until_called(agent, &outcome);
        assert_int_equal(outcome.status, VIGIL_TIMED_OUT);
        assert_int_equal(vigil_named_lock_async(agent, two, how, 0, on_outcome, &outcome), VIGIL_TIMED_OUT);

        outcome.closes = true; /* from inside the callback */
        assert_int_equal(start(agent, two, how, &outcome), VIGIL_PENDING);
        assert_int_equal(vigil_named_unlock(one), VIGIL_OK);
        run_until_called(agent, &outcome);
        assert_int_equal(outcome.status, VIGIL_OK);
        assert_int_equal(vigil_named_trylock(one, 0), VIGIL_OK);
        close_it(one);
        end_agent(agent);
        assert_int_equal(vigil_named_remove(name, false), VIGIL_OK);
    }
}

/* The last handle, and with it the book, is closed in the callback. */
static void the_last_one_is_closed_in_a_callback(void **state) {
    (void)state;
    const char *name = numbered("last", 0);
    vigil_agent *agent = new_agent(0);
    struct outcome outcome = {.closes = true};
    vigil_named *one = open_it(name), *two = open_it(name);
    assert_int_equal(vigil_named_lock(one, 0), VIGIL_OK);
    assert_int_equal(start(agent, two, VIGIL_NAMED_FAIR, &outcome), VIGIL_PENDING);
    close_it(one);
    run_until_called(agent, &outcome);
    assert_int_equal(outcome.status, VIGIL_OK);
    end_agent(agent);
    assert_int_equal(vigil_named_remove(name, false), VIGIL_OK);
}

/* The agent is destroyed while the request is in each of its stages. TIE: see below. */
static void an_agent_ends(void **state) {
    (void)state;
    for (unsigned stage = 0; stage < 2; stage++) {
        const char *name = numbered("ends", stage);
        vigil_named *one = open_it(name), *two = open_it(name);
        struct entry *entry = entry_of(name);
        vigil_agent *agent = new_agent(0);
        struct outcome outcome = {0};
        assert_int_equal(vigil_named_lock(one, stage ? 0 : VIGIL_NAMED_FAIR), VIGIL_OK);
        assert_int_equal(start(agent, two, VIGIL_NAMED_FAIR, &outcome), VIGIL_PENDING);
        AWAIT(waiters_in_line(stage ? (void *)&entry->lock : (void *)&entry->turnstile) == 1);
        end_agent(agent);
        assert_int_equal(outcome.calls, 1);
        assert_int_equal(outcome.status, VIGIL_CANCELLED);
        assert_int_equal(vigil_named_unlock(one), VIGIL_OK);
        assert_int_equal(vigil_named_trylock(two, VIGIL_NAMED_FAIR), VIGIL_OK);
        assert_int_equal(vigil_named_unlock(two), VIGIL_OK);
        assert_int_equal(vigil_named_trylock(one, VIGIL_NAMED_FAIR), VIGIL_OK);
        close_it(one);
        close_it(two);
    }
}

/* Stealing. */

static void holds_and_is_told(const struct actor *self, const char *name) {
    vigil_named *robbed = child_open(name), *comrade = child_open(name);
    CHECK(vigil_named_lock(robbed, VIGIL_NAMED_FAIR) == VIGIL_OK);
    uint32_t *word = (uint32_t *)(uintptr_t)vigil_named_steals(robbed), seen = LOAD(*word);
    CHECK(!vigil_named_is_stolen(robbed));
    actor_say(self, VIGIL_OK);
    while (vigil_wait32(word, seen, VIGIL_FOREVER) == VIGIL_OK && LOAD(*word) == seen) {
    }
    CHECK(vigil_named_is_stolen(robbed));
    actor_say(self, VIGIL_OK);
    CHECK(actor_hear(self) == VIGIL_OK); /* the thief has unlocked */
    CHECK(vigil_named_lock(comrade, 0) == VIGIL_OK);
    CHECK(vigil_named_consistent(robbed) == VIGIL_ESTOLEN);
    CHECK(vigil_named_unlock(robbed) == VIGIL_ESTOLEN);
    CHECK(vigil_named_unlock(robbed) == VIGIL_ENOTHELD);
    CHECK(!vigil_named_is_stolen(comrade));
    CHECK(vigil_named_unlock(comrade) == VIGIL_OK);
    actor_say(self, VIGIL_OK);
}

static void a_lock_is_stolen(void **state) {
    (void)state;
    const char *name = numbered("stolen", 0);
    struct actor robbed = actor_start(holds_and_is_told, name);
    vigil_named *thief = open_it(name), *waiter = open_it(name);
    struct entry *entry = entry_of(name);
    vigil_agent *agent = new_agent(0);
    struct outcome outcome = {0};
    assert_int_equal(actor_hear(&robbed), VIGIL_OK);
    assert_int_equal(start(agent, waiter, VIGIL_NAMED_FAIR, &outcome), VIGIL_PENDING);
    assert_int_equal(vigil_named_trylock(thief, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_steal(thief), VIGIL_OK);
    assert_int_equal(vigil_named_steal(thief), VIGIL_EINUSE);
    assert_int_equal(actor_hear(&robbed), VIGIL_OK); /* it has been told */
    assert_false(vigil_named_is_stolen(thief));
    vigil_agent_dispatch(agent);
    assert_int_equal(outcome.calls, 0); /* it stays in line: at the lock, now that the turnstile is open */
    assert_int_equal(waiters_in_line(&entry->lock), 1);
    assert_int_equal(vigil_named_unlock(thief), VIGIL_OK);
    run_until_called(agent, &outcome);
    assert_int_equal(outcome.status, VIGIL_OK);
    assert_int_equal(vigil_named_unlock(waiter), VIGIL_OK);
    actor_say(&robbed, VIGIL_OK);
    assert_int_equal(actor_hear(&robbed), VIGIL_OK); /* another handle of its process was not unlocked by it */
    end_agent(agent);
    assert_int_equal(vigil_named_trylock(thief, VIGIL_NAMED_FAIR), VIGIL_OK);
    close_it(thief);
    close_it(waiter);
    actor_end(&robbed);
    assert_int_equal(vigil_named_mend(name), 0);
    assert_int_equal(vigil_named_remove(name, false), VIGIL_OK);
}

/* From readers, from a holder of this process, from no holder; from another thief. */
static void whatever_is_held_is_stolen(void **state) {
    (void)state;
    const char *name = numbered("stolen", 1);
    vigil_named *one = open_it(name), *two = open_it(name), *thief = open_it(name), *other = open_it(name);
    vigil_named *slots = open_with(numbered("stolen", 2), &(vigil_named_options){.slots = 1});
    assert_int_equal(vigil_named_steal(slots), VIGIL_EINVAL);
    assert_null(vigil_named_steals(slots));
    assert_int_equal(vigil_named_steal(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_named_lock(one, VIGIL_NAMED_SHARED), VIGIL_OK);
    assert_int_equal(vigil_named_lock(two, VIGIL_NAMED_SHARED | VIGIL_NAMED_FAIR), VIGIL_OK);
    assert_int_equal(vigil_named_steal(thief), VIGIL_OK);
    assert_true(vigil_named_is_stolen(one) && vigil_named_is_stolen(two));
    assert_int_equal(vigil_named_unlock(one), VIGIL_ESTOLEN);
    assert_int_equal(vigil_named_trylock(one, VIGIL_NAMED_SHARED), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_steal(other), VIGIL_OK);
    assert_int_equal(vigil_named_abandon(thief), VIGIL_ESTOLEN);
    assert_int_equal(vigil_named_unlock(other), VIGIL_OK);
    assert_int_equal(vigil_named_lock(one, VIGIL_NAMED_SHARED), VIGIL_OK);
    assert_int_equal(vigil_named_unlock(two), VIGIL_ESTOLEN); /* not what `one` has */
    assert_false(vigil_named_is_stolen(one));
    assert_int_equal(vigil_named_trylock(other, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_unlock(one), VIGIL_OK);
    assert_int_equal(vigil_named_steal(one), VIGIL_OK); /* it was free */
    close_it(one);
    assert_int_equal(vigil_named_trylock(two, 0), VIGIL_OK);
    close_it(two);
    close_it(thief);
    close_it(other);
    close_it(slots);
}

static void steals_and_dies(const struct actor *self, const char *name) {
    vigil_named *named = child_open(name);
    actor_say(self, vigil_named_steal(named));
}

/* The death of the thief is told, as is that of a holder that was dead before. */
static void thieves_are_killed(void **state) {
    (void)state;
    const char *name = numbered("stolen", 3);
    vigil_named *one = open_it(name), *two = open_it(name);
    assert_int_equal(vigil_named_lock(one, 0), VIGIL_OK);
    struct actor thief = actor_start(steals_and_dies, name);
    assert_int_equal(actor_hear(&thief), VIGIL_OK);
    actor_end(&thief);
    assert_int_equal(vigil_named_steal(two), VIGIL_OWNER_DIED);
    assert_int_equal(vigil_named_unlock(one), VIGIL_ESTOLEN);
    assert_int_equal(vigil_named_consistent(two), VIGIL_OK);
    assert_int_equal(vigil_named_unlock(two), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(one, 0), VIGIL_OK);
    close_it(one);
    close_it(two);
}

static void ties_and_waits(const struct actor *self, const char *name) {
    vigil_named *named = child_open(name);
    CHECK(vigil_named_tie(named) >= 0);
    CHECK(vigil_named_lock(named, 0) == VIGIL_OK);
    actor_say(self, VIGIL_OK);
}

/* What the holder has tied to the lock keeps neither the thief from it nor those that follow. */
static void ties_are_stolen(void **state) {
    (void)state;
    const char *name = numbered("stolen", 4);
    struct actor holder = actor_start(ties_and_waits, name);
    vigil_named *thief = open_it(name), *next = open_it(name);
    assert_int_equal(actor_hear(&holder), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(thief, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_named_steal(thief), VIGIL_OK);
    assert_int_equal(vigil_named_unlock(thief), VIGIL_OK);
    assert_int_equal(vigil_named_lock(next, 0), VIGIL_OK);
    assert_false(vigil_named_orphans(next));
    close_it(thief);
    close_it(next);
    actor_end(&holder);
}

/* A thread, an event loop and another process in one line. */

static unsigned *order; /* shared by processes: how many have had it */

static void take_a_number(const struct actor *self, const char *name) {
    vigil_named *named = child_open(name);
    actor_say(self, VIGIL_OK);
    CHECK(actor_hear(self) == VIGIL_OK);
    int status = vigil_named_lock(named, VIGIL_NAMED_FAIR);
    unsigned rank = status == VIGIL_OK ? ++*order : 0;
    CHECK(vigil_named_unlock(named) == VIGIL_OK);
    actor_say(self, (int)rank);
}

struct numbered_locker {
    vigil_named *named;
    unsigned rank;
};

static void *take_a_number_here(void *argument) {
    struct numbered_locker *locker = argument;
    if (vigil_named_lock(locker->named, VIGIL_NAMED_FAIR) == VIGIL_OK) locker->rank = ++*order;
    vigil_named_unlock(locker->named);
    return NULL;
}

static void on_number(vigil_named *named, int status, void *data) {
    if (status == VIGIL_OK) *(unsigned *)data = ++*order;
    vigil_named_unlock(named);
}

static void all_kinds_are_in_one_line(void **state) {
    (void)state;
    for (unsigned round = 0; round < 3; round++) { /* the other process is the first, the second, the third */
        const char *name = numbered("line", round);
        order = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct actor actor = actor_start(take_a_number, name);
        vigil_agent *agent = new_agent(0);
        vigil_named *holder = open_it(name), *looping = open_it(name);
        struct numbered_locker locker = {.named = open_it(name)};
        struct entry *entry = entry_of(name);
        unsigned looped = 0, expected[3];
        pthread_t thread;
        assert_int_equal(actor_hear(&actor), VIGIL_OK);
        assert_int_equal(vigil_named_lock(holder, VIGIL_NAMED_FAIR), VIGIL_OK);
        for (unsigned i = 0; i < 3; i++) {
            unsigned which = (i + round) % 3;
            expected[which] = i + 1;
            if (which == 0) actor_say(&actor, VIGIL_OK);
            if (which == 1) assert_int_equal(pthread_create(&thread, NULL, take_a_number_here, &locker), 0);
            if (which == 2)
                assert_int_equal(
                    vigil_named_lock_async(agent, looping, VIGIL_NAMED_FAIR, VIGIL_FOREVER, on_number, &looped),
                    VIGIL_PENDING);
            AWAIT(waiters_in_line(&entry->turnstile) == i + 1);
        }
        assert_int_equal(vigil_named_unlock(holder), VIGIL_OK);
        while (!looped) vigil_agent_run_until(agent, vigil_now_ns() + MILLISECOND);
        assert_int_equal(actor_hear(&actor), expected[0]);
        pthread_join(thread, NULL);
        assert_int_equal(locker.rank, expected[1]);
        assert_int_equal(looped, expected[2]);
        actor_end(&actor);
        close_it(locker.named);
        close_it(looping);
        close_it(holder);
        end_agent(agent);
        munmap(order, sizeof *order);
    }
}

/* Fork. */

static void a_child_cannot_use_it(void **state) {
    (void)state;
    vigil_named *named = open_it(numbered("fork", 0));
    vigil_agent *agent = new_agent(0);
    assert_int_equal(vigil_named_lock(named, 0), VIGIL_OK);
    pid_t child = fork_here();
    if (child == 0) {
        vigil_named_holder dead;
        CHECK(vigil_named_lock(named, 0) == VIGIL_EFORKED);
        CHECK(vigil_named_trylock(named, 0) == VIGIL_EFORKED);
        CHECK(vigil_named_unlock(named) == VIGIL_EFORKED);
        CHECK(vigil_named_cancel(named) == VIGIL_EFORKED);
        CHECK(vigil_named_consistent(named) == VIGIL_EFORKED);
        CHECK(vigil_named_set_slots(named, 2) == VIGIL_EFORKED);
        CHECK(vigil_named_tie(named) == VIGIL_EFORKED);
        CHECK(vigil_named_death(named, &dead) == VIGIL_EFORKED);
        CHECK(vigil_named_describe(named, "child", 1) == VIGIL_OK);
        CHECK(vigil_named_slots(named) == 0 && !vigil_named_orphans(named));
        CHECK(vigil_named_close(named) == VIGIL_OK);
        vigil_named *own = child_open(numbered("fork", 0));
        CHECK(vigil_named_trylock(own, 0) == VIGIL_TIMED_OUT);
        CHECK(vigil_named_close(own) == VIGIL_OK);
        _exit(0);
    }
    assert_int_equal(exit_status_of(child), 0);
    assert_int_equal(vigil_named_unlock(named), VIGIL_OK);
    end_agent(agent);
    close_it(named);
}

/* Death. */

static void hold_it(const struct actor *self, const char *name) {
    vigil_named *named = child_open(name);
    CHECK(vigil_named_describe(named, "make install", 4711) == VIGIL_OK);
    actor_say(self, vigil_named_lock(named, 0));
}

static void a_death_is_told(void **state) {
    (void)state;
    const char *name = numbered("death", 0);
    vigil_named *named = open_it(name);
    vigil_named_holder dead;
    time_t before = time(NULL);
    struct actor actor = actor_start(hold_it, name);
    assert_int_equal(actor_hear(&actor), VIGIL_OK);
    assert_int_equal(vigil_named_death(named, &dead), VIGIL_EINVAL);
    assert_int_equal(vigil_named_trylock(named, 0), VIGIL_TIMED_OUT);
    actor_end(&actor);
    for (int i = 0; i < 2; i++) { /* until it is consistent */
        assert_int_equal(vigil_named_lock_for(named, i ? VIGIL_NAMED_FAIR : 0, 100 * SECOND), VIGIL_OWNER_DIED);
        assert_int_equal(vigil_named_death(named, &dead), VIGIL_OK);
        assert_int_equal(dead.pid, 4711);
        assert_string_equal(dead.text, "make install");
        assert_false(dead.other_space);
        assert_true(dead.taken_at >= before && dead.taken_at <= time(NULL));
        assert_int_equal(vigil_named_unlock(named), VIGIL_OK);
    }
    close_it(named);
    if (own_book) assert_true(vigil_named_remove_unused() >= 0); /* not this one */
    named = open_with(name, &(vigil_named_options){.existing = true});
    assert_int_equal(vigil_named_trylock(named, VIGIL_NAMED_SHARED), VIGIL_OWNER_DIED);
    assert_int_equal(vigil_named_consistent(named), VIGIL_ENOTHELD);
    assert_int_equal(vigil_named_unlock(named), VIGIL_OK);
    assert_int_equal(vigil_named_lock(named, 0), VIGIL_OWNER_DIED);
    assert_int_equal(vigil_named_consistent(named), VIGIL_OK);
    assert_int_equal(vigil_named_death(named, &dead), VIGIL_EINVAL);
    assert_int_equal(vigil_named_unlock(named), VIGIL_OK);
    assert_int_equal(vigil_named_lock(named, 0), VIGIL_OK);
    close_it(named);
}

/* A holder ends while its process goes on: the next one is told if it held the lock alone. */
static void abandoned(void **state) {
    (void)state;
    const char *name = numbered("abandoned", 0);
    vigil_named *holder = open_it(name), *next = open_it(name);
    assert_int_equal(vigil_named_abandon(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_named_abandon(holder), VIGIL_ENOTHELD);
    assert_int_equal(vigil_named_lock(holder, VIGIL_NAMED_SHARED), VIGIL_OK);
    assert_int_equal(vigil_named_abandon(holder), VIGIL_OK);
    for (int fair = 0; fair < 2; fair++) {
        assert_int_equal(vigil_named_lock(holder, fair ? VIGIL_NAMED_FAIR : 0), VIGIL_OK);
        assert_int_equal(vigil_named_trylock(next, 0), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_named_abandon(holder), VIGIL_OK);
        assert_int_equal(vigil_named_abandon(holder), VIGIL_ENOTHELD);
        vigil_named_holder dead;
        assert_int_equal(vigil_named_lock(next, 0), VIGIL_OWNER_DIED);
        assert_int_equal(vigil_named_death(next, &dead), VIGIL_OK);
        assert_int_equal(dead.pid, getpid());
        assert_int_equal(vigil_named_consistent(next), VIGIL_OK);
        assert_int_equal(vigil_named_unlock(next), VIGIL_OK);
    }
    close_it(holder);
    close_it(next);
}

static void share_it(const struct actor *self, const char *name) {
    actor_say(self, vigil_named_lock(child_open(name), VIGIL_NAMED_SHARED));
}

static void a_killed_reader_leaves_nothing(void **state) {
    (void)state;
    const char *name = numbered("reader", 0);
    vigil_named *named = open_it(name);
    struct actor actor = actor_start(share_it, name);
    assert_int_equal(actor_hear(&actor), VIGIL_OK);
    actor_end(&actor);
    assert_int_equal(vigil_named_lock_for(named, 0, 100 * SECOND), VIGIL_OK);
    close_it(named);
}

/* Ties. */

static unsigned tie_how;

/* Takes the lock, and has a child that inherits the tie. The child tries to take the lock when it is told to. */
static void hold_with_a_child(const struct actor *self, const char *name) {
    vigil_named *named = child_open(name);
    CHECK(vigil_named_tie(named) >= 0);
    CHECK(vigil_named_lock(named, tie_how) == VIGIL_OK);
    pid_t child = fork_here();
    if (child == 0) {
        actor_say(self, getpid());
        while (actor_hear(self) == VIGIL_OK) {
            vigil_named *own = child_open(name);
            actor_say(self, vigil_named_lock_for(own, 0, 100 * SECOND));
            CHECK(vigil_named_close(own) == VIGIL_OK);
        }
        pause();
    }
    close(self->from); /* what is said is for the child */
}

/* Returns the process that a killed holder has left. */
static struct actor orphan_start(const char *name, unsigned how, pid_t *orphan) {
    tie_how = how;
    struct actor holder = actor_start(hold_with_a_child, name);
    *orphan = actor_hear(&holder);
    assert_true(*orphan > 0);
    let_pass(MILLISECOND);
    assert_int_equal(kill(holder.pid, SIGKILL), 0);
    assert_int_equal(waitpid(holder.pid, NULL, 0), holder.pid);
    return holder;
}

static void orphan_end(struct actor *holder, pid_t orphan) {
    assert_int_equal(kill(orphan, SIGKILL), 0);
    close(holder->from);
    close(holder->to);
}

static void orphans_keep_the_lock(void **state) {
    (void)state;
    for (unsigned how = 0; how < 4; how++) {
        const char *name = numbered("tie", how);
        bool alone = !(how & VIGIL_NAMED_SHARED);
        vigil_named *named = open_it(name);
        pid_t orphan;
        struct actor holder = orphan_start(name, how, &orphan);
        assert_int_equal(vigil_named_trylock(named, 0), VIGIL_TIMED_OUT);
        int64_t began_ns = vigil_now_ns();
        assert_int_equal(vigil_named_lock_for(named, VIGIL_NAMED_FAIR, 30 * MILLISECOND), VIGIL_TIMED_OUT);
        assert_true(vigil_now_ns() - began_ns >= 30 * MILLISECOND);
        assert_true(vigil_named_orphans(named));
        if (!alone) {
            assert_int_equal(vigil_named_trylock(named, VIGIL_NAMED_SHARED), VIGIL_OK);
            assert_false(vigil_named_orphans(named));
            assert_int_equal(vigil_named_unlock(named), VIGIL_OK);
        }
        close_it(named);
        assert_int_equal(vigil_named_remove(name, false), VIGIL_EBUSY);
        if (own_book) assert_true(vigil_named_remove_unused() >= 0);
        assert_int_equal(try_open(name, &(vigil_named_options){.existing = true}), VIGIL_OK);

        vigil_agent *agent = new_agent(0);
        struct outcome outcome = {0};
        named = open_it(name);
        assert_int_equal(start(agent, named, 0, &outcome), VIGIL_PENDING); /* the stage TIE */
        assert_true(vigil_named_orphans(named));
        assert_int_equal(vigil_named_cancel(named), VIGIL_OK);
        assert_int_equal(start(agent, named, VIGIL_NAMED_FAIR, &outcome), VIGIL_PENDING);
        end_agent(agent);
        assert_int_equal(outcome.status, VIGIL_CANCELLED);
        agent = new_agent(0);
        assert_int_equal(start(agent, named, 0, &outcome), VIGIL_PENDING);
        vigil_agent_run_until(agent, vigil_now_ns() + 30 * MILLISECOND);
        assert_int_equal(outcome.calls, 0);
        orphan_end(&holder, orphan);
        run_until_called(agent, &outcome);
        assert_int_equal(outcome.status, alone ? VIGIL_OWNER_DIED : VIGIL_OK);
        end_agent(agent);
        close_it(named);
    }
}

static void an_orphan_does_not_wait_for_itself(void **state) {
    (void)state;
    const char *name = numbered("itself", 0);
    pid_t orphan;
    struct actor holder = orphan_start(name, 0, &orphan);
    for (int i = 0; i < 2; i++) {
        actor_say(&holder, VIGIL_OK);
        assert_int_equal(actor_hear(&holder), VIGIL_EDEADLOCK);
    }
    orphan_end(&holder, orphan);
    vigil_named *named = open_it(name);
    assert_int_equal(vigil_named_lock_for(named, 0, 100 * SECOND), VIGIL_OWNER_DIED);
    close_it(named);
}

/* A name that is removed by force can be used at once, and its entry is not used for another one. */
static void orphans_of_a_removed_name(void **state) {
    (void)state;
    const char *name = numbered("forced", 0), *second = numbered("forced", 1);
    pid_t orphan;
    struct actor holder = orphan_start(name, 0, &orphan);
    assert_int_equal(vigil_named_remove(name, false), VIGIL_EBUSY);
    assert_int_equal(vigil_named_remove(name, true), VIGIL_OK);
    vigil_named *named = open_it(second), *again = open_it(name);
    assert_true(vigil_named_tie(named) >= 0 && vigil_named_tie(again) >= 0);
    assert_int_equal(vigil_named_trylock(named, 0), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(again, 0), VIGIL_OK);
    orphan_end(&holder, orphan);
    close_it(named);
    close_it(again);
}

static void an_unlock_is_for_all_that_are_tied(void **state) {
    (void)state;
    const char *name = numbered("untied", 0);
    vigil_named *one = open_it(name), *two = open_it(name);
    int tie = vigil_named_tie(one);
    assert_true(tie >= 0 && vigil_named_tie(one) == tie);
    int inherited = dup(tie);
    assert_int_equal(vigil_named_lock(one, 0), VIGIL_OK);
    assert_int_equal(vigil_named_unlock(one), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(two, 0), VIGIL_OK);
    close(inherited);
    close_it(one);
    close_it(two);
}

static void semaphores_are_tied_slot_by_slot(void **state) {
    (void)state;
    const char *name = numbered("tiedsem", 0);
    vigil_named *several[MOST];
    pid_t orphan;
    open_several(several, name, 2);
    struct actor holder = orphan_start(name, 0, &orphan);
    assert_int_equal(can_have(several), 1);
    orphan_end(&holder, orphan);
    while (can_have(several) < 2) sched_yield();
    assert_int_equal(can_have(several), 2);
    close_several(several);
}

/* The book. */

static unsigned listed_count;
static void count_listed(const char *name, void *wanted) {
    listed_count += strncmp(name, wanted, strlen(wanted)) == 0;
}

/* How many names of this test begin so. */
static unsigned listed(const char *what) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s%s", prefix, what);
    listed_count = 0;
    assert_true(vigil_named_list(count_listed, wanted) >= 0);
    return listed_count;
}

static void names_are_removed(void **state) {
    (void)state;
    vigil_named *open_one = open_it(numbered("rm", 0)), *held = open_it(numbered("rm", 1));
    assert_int_equal(try_open(numbered("rm", 2), NULL), VIGIL_OK);
    assert_int_equal(try_open(numbered("rm", 3), &(vigil_named_options){.slots = 7}), VIGIL_OK);
    assert_int_equal(listed("rm"), 4);
    assert_int_equal(vigil_named_lock(held, 0), VIGIL_OK);
    assert_int_equal(vigil_named_remove(numbered("rm", 0), false), VIGIL_EBUSY);
    assert_int_equal(vigil_named_remove(numbered("rm", 1), true), VIGIL_OK);
    vigil_named *other = open_it(numbered("rm", 1)); /* a new one */
    assert_int_equal(vigil_named_trylock(other, 0), VIGIL_OK);
    assert_int_equal(vigil_named_remove(numbered("rm", 2), false), VIGIL_OK);
    assert_int_equal(listed("rm"), 3);
    if (own_book) assert_true(vigil_named_remove_unused() >= 1);
    else assert_int_equal(vigil_named_remove(numbered("rm", 3), false), VIGIL_OK);
    assert_int_equal(listed("rm"), 2);
    assert_int_equal(vigil_named_unlock(held), VIGIL_OK);
    vigil_named *third = open_it(numbered("rm", 3)); /* nothing is left of what it was */
    assert_int_equal(vigil_named_slots(third), 0);
    close_it(third);
    close_it(held);
    close_it(other);
    close_it(open_one);
    for (unsigned i = 0; i < 4; i++) vigil_named_remove(numbered("rm", i), false);
    assert_int_equal(listed("rm"), 0);
}

/* An observer follows the name, not the entry. */
static void an_observer_follows_the_name(void **state) {
    (void)state;
    const char *name = numbered("seen", 0), *second = numbered("seen", 1);
    vigil_observer *observer = NULL;
    vigil_look look;
    vigil_named *named = open_it(name);
    struct entry *entry = entry_of(name);
    assert_int_equal(vigil_observer_open(&observer, name), VIGIL_OK);
    assert_int_equal(vigil_named_lock(named, 0), VIGIL_OK);
    assert_int_equal(vigil_observer_look(observer, &look), VIGIL_OK);
    assert_int_equal(look.member_count, 1);
    assert_int_equal(look.line_count, 1);
    assert_int_equal(look.lines[0].holder_count, 1);
    close_it(named);
    assert_int_equal(vigil_named_remove(name, false), VIGIL_OK);
    vigil_named *other = open_it(second);
    if (own_book) assert_ptr_equal(entry_of(second), entry);
    assert_int_equal(vigil_named_lock(other, 0), VIGIL_OK);
    assert_int_equal(vigil_observer_look(observer, &look), VIGIL_OK);
    assert_int_equal(look.member_count + look.line_count, 0);
    named = open_with(name, &(vigil_named_options){.slots = 5}); /* elsewhere */
    assert_int_equal(vigil_observer_look(observer, &look), VIGIL_OK);
    assert_int_equal(look.slots, 5);
    assert_int_equal(look.member_count, 1);
    assert_int_equal(vigil_named_set_slots(named, 6), VIGIL_OK);
    assert_int_equal(vigil_observer_look(observer, &look), VIGIL_OK);
    assert_int_equal(look.slots, 6);
    assert_int_equal(vigil_observer_close(observer), VIGIL_OK);
    close_it(named);
    close_it(other);
}

static void a_removed_lock_still_has_a_line(void **state) {
    (void)state;
    const char *name = numbered("rmline", 0);
    vigil_named *held = open_it(name);
    struct entry *entry = entry_of(name);
    struct locker locker;
    assert_int_equal(vigil_named_lock(held, 0), VIGIL_OK);
    locker_start(&locker, name, 0);
    AWAIT(waiters_in_line(&entry->lock) == 1);
    assert_int_equal(vigil_named_remove(name, true), VIGIL_OK);
    for (unsigned i = 0; i < 40; i++) assert_int_equal(try_open(numbered("rmother", i), NULL), VIGIL_OK);
    assert_int_equal(prim_load_relaxed(&entry->state), ENTRY_REMOVED);
    close_it(held);
    assert_int_equal(locker_join(&locker), VIGIL_OK);
    close_it(locker.named);
    for (unsigned i = 0; i < 40; i++) assert_int_equal(vigil_named_remove(numbered("rmother", i), false), VIGIL_OK);
}

#define THOUSANDS 3000u
static void thousands_are_open_at_once(void **state) {
    (void)state;
    static vigil_named *many[THOUSANDS];
    unsigned before = descriptors();
    for (unsigned i = 0; i < THOUSANDS; i++) many[i] = open_it(numbered("many", i));
    assert_true(descriptors() <= before + 4);
    assert_int_equal(listed("many"), THOUSANDS);
    for (unsigned i = 0; i < THOUSANDS; i++) assert_int_equal(vigil_named_lock(many[i], 0), VIGIL_OK);
    vigil_named *again = open_it(numbered("many", THOUSANDS / 2));
    assert_int_equal(vigil_named_trylock(again, 0), VIGIL_TIMED_OUT);
    close_it(again);
    for (unsigned i = 0; i < THOUSANDS; i++) close_it(many[i]);
    assert_true(descriptors() <= before + 4);
    for (unsigned i = 0; i < THOUSANDS; i++) {
        assert_int_equal(vigil_named_remove(numbered("many", i), false), VIGIL_OK);
    }
    assert_int_equal(listed("many"), 0);
}

/* A process dies with the book's mutex: whatever the chains were. */
static void a_book_is_rebuilt(void **state) {
    (void)state;
    if (!own_book) {
        leave_out("damage to the book of names, which is the user's");
        return;
    }
    vigil_buffer *buffer = NULL;
    for (unsigned i = 0; i < 20; i++) assert_int_equal(try_open(numbered("rebuilt", i), NULL), VIGIL_OK);
    for (unsigned i = 0; i < 20; i += 3) assert_int_equal(vigil_named_remove(numbered("rebuilt", i), false), VIGIL_OK);
    assert_int_equal(book_open(&buffer, "any", NULL, false), VIGIL_OK);
    struct book *book = vigil_buffer_data(buffer);
    for (unsigned damage = 0; damage < 4; damage++) {
        for (unsigned i = 0; i < BOOK_HEADS; i++) {
            if (damage & 1) prim_store_relaxed(&book->heads[i], 0);
        }
        if (damage & 2) book->free = 1;
        uint32_t number = 12345;
        while (segment_find_member(buffer->segment, number)) number++;
        prim_store_relaxed(&book->mutex.word, number * SEGMENT_HOLDER + 1);
        assert_int_equal(try_open(numbered("rebuilt-new", damage), NULL), VIGIL_OK);
        for (unsigned i = 0; i < 20; i++) {
            int expected = i % 3 ? VIGIL_OK : VIGIL_ENOTFOUND;
            assert_int_equal(try_open(numbered("rebuilt", i), &(vigil_named_options){.existing = true}), expected);
        }
        assert_int_equal(listed("rebuilt"), 13 + damage + 1);
    }
    book->free = 1; /* damaged: that entry is used */
    for (unsigned i = 0; i < 30; i++) assert_int_equal(try_open(numbered("rebuilt-more", i), NULL), VIGIL_OK);
    assert_int_equal(listed("rebuilt"), 13 + 4 + 30);
    vigil_buffer_destroy(buffer);
}

/* Processes are killed while they create and remove names. */

#define PLAYERS 3
#define PLAYED 12u

static void play(const struct actor *self, const char *name) {
    uint64_t random = (uint64_t)getpid() * 2654435761u + 1;
    (void)name;
    actor_say(self, VIGIL_OK);
    for (;;) {
        const char *chosen = numbered("played", (unsigned)(random_next(&random) % PLAYED));
        if (random_next(&random) % 2) {
            vigil_named *named = child_open(chosen);
            int status = vigil_named_lock_for(named, 0, MILLISECOND);
            CHECK(status == VIGIL_OK || status == VIGIL_OWNER_DIED || status == VIGIL_TIMED_OUT);
            if (status == VIGIL_OWNER_DIED) CHECK(vigil_named_consistent(named) == VIGIL_OK);
            CHECK(vigil_named_close(named) == VIGIL_OK);
        } else {
            int status = vigil_named_remove(chosen, random_next(&random) % 4 == 0);
            CHECK(status == VIGIL_OK || status == VIGIL_EBUSY || status == VIGIL_ENOTFOUND);
        }
    }
}

static void killed_players_lose_no_names(void **state) {
    (void)state;
    uint64_t random = 88172645463325252u;
    for (unsigned i = 0; i < 10; i++) assert_int_equal(try_open(numbered("kept", i), NULL), VIGIL_OK);
    for (unsigned round = 0; round < 60; round++) {
        struct actor players[PLAYERS];
        for (unsigned i = 0; i < PLAYERS; i++) players[i] = actor_start(play, NULL);
        for (unsigned i = 0; i < PLAYERS; i++) assert_int_equal(actor_hear(&players[i]), VIGIL_OK);
        for (unsigned i = 0; i < PLAYERS; i++) {
            let_pass((int64_t)(random_next(&random) % 4000) * MICROSECOND);
            actor_end(&players[i]);
        }
        assert_int_equal(listed("kept"), 10);
        unsigned there = 0;
        for (unsigned i = 0; i < PLAYED; i++) {
            char exact[64];
            snprintf(exact, sizeof exact, "played%u", i);
            unsigned times = 0;
            vigil_named_options existing = {.existing = true};
            vigil_named *named = NULL;
            int status = vigil_named_open(&named, numbered("played", i), &existing);
            assert_true(status == VIGIL_OK || status == VIGIL_ENOTFOUND);
            if (status != VIGIL_OK) continue;
            times = listed(exact) - (i == 1 ? listed("played10") + listed("played11") : 0);
            assert_int_equal(times, 1);
            there++;
            status = vigil_named_lock_for(named, 0, 100 * SECOND);
            assert_true(status == VIGIL_OK || status == VIGIL_OWNER_DIED);
            if (status == VIGIL_OWNER_DIED) assert_int_equal(vigil_named_consistent(named), VIGIL_OK);
            close_it(named);
        }
        assert_int_equal(listed("played"), there);
        for (unsigned i = 0; i < 10; i++) {
            vigil_named *named = open_with(numbered("kept", i), &(vigil_named_options){.existing = true});
            assert_int_equal(vigil_named_trylock(named, 0), VIGIL_OK);
            close_it(named);
        }
    }
    for (unsigned i = 0; i < 10; i++) assert_int_equal(vigil_named_remove(numbered("kept", i), false), VIGIL_OK);
    for (unsigned i = 0; i < PLAYED; i++) {
        int status = vigil_named_remove(numbered("played", i), false);
        assert_true(status == VIGIL_OK || status == VIGIL_ENOTFOUND);
    }
    assert_int_equal(listed("played"), 0);
}

/* Many processes create the same names at once. */

#define MAKERS 6
#define MADE 50u
static unsigned *made; /* shared: incremented with the lock held */

static void make_names(const struct actor *self, const char *name) {
    (void)name;
    actor_say(self, VIGIL_OK);
    CHECK(actor_hear(self) == VIGIL_OK);
    for (unsigned i = 0; i < MADE; i++) {
        vigil_named *named = child_open(numbered("made", i));
        CHECK(vigil_named_lock(named, i % 2 ? VIGIL_NAMED_FAIR : 0) == VIGIL_OK);
        unsigned before = LOAD(made[i]);
        sched_yield();
        STORE(made[i], before + 1);
        CHECK(vigil_named_close(named) == VIGIL_OK);
    }
    actor_say(self, VIGIL_OK);
}

static void names_are_created_once(void **state) {
    (void)state;
    struct actor makers[MAKERS];
    made = mmap(NULL, MADE * sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < MAKERS; i++) makers[i] = actor_start(make_names, NULL);
    for (unsigned i = 0; i < MAKERS; i++) assert_int_equal(actor_hear(&makers[i]), VIGIL_OK);
    for (unsigned i = 0; i < MAKERS; i++) actor_say(&makers[i], VIGIL_OK);
    for (unsigned i = 0; i < MAKERS; i++) assert_int_equal(actor_hear(&makers[i]), VIGIL_OK);
    for (unsigned i = 0; i < MAKERS; i++) actor_end(&makers[i]);
    assert_int_equal(listed("made"), MADE);
    for (unsigned i = 0; i < MADE; i++) {
        assert_int_equal(made[i], MAKERS);
        assert_int_equal(vigil_named_remove(numbered("made", i), false), VIGIL_OK);
    }
    munmap(made, MADE * sizeof *made);
}

/* Data. */

static void hold_and_write(const struct actor *self, const char *name) {
    vigil_named *named = child_open(name);
    CHECK(vigil_named_lock(named, 0) == VIGIL_OK);
    ((uint64_t *)vigil_named_data(named))[VIGIL_NAMED_DATA / 8 - 1] = 42;
    actor_say(self, VIGIL_OK);
}

static void data_comes_with_the_lock(void **state) {
    (void)state;
    const char *name = numbered("data", 0);
    vigil_named *one = open_it(name), *other = open_it(numbered("data", 1));
    uint64_t *data = vigil_named_data(one);
    for (unsigned i = 0; i < VIGIL_NAMED_DATA / 8; i++) assert_int_equal(data[i], 0);
    assert_null(vigil_named_data(NULL));
    struct actor actor = actor_start(hold_and_write, name);
    assert_int_equal(actor_hear(&actor), VIGIL_OK);
    actor_end(&actor);
    assert_int_equal(vigil_named_lock(one, 0), VIGIL_OWNER_DIED);
    assert_int_equal(data[VIGIL_NAMED_DATA / 8 - 1], 42);
    assert_int_equal(((uint64_t *)vigil_named_data(other))[0], 0);
    close_it(one);
    close_it(other);
    assert_int_equal(vigil_named_remove(name, false), VIGIL_OK);
    assert_int_equal(vigil_named_remove(numbered("data", 1), false), VIGIL_OK);
    one = open_it(name); /* the entry may be used again */
    assert_int_equal(((uint64_t *)vigil_named_data(one))[VIGIL_NAMED_DATA / 8 - 1], 0);
    close_it(one);
    assert_int_equal(vigil_named_remove(name, false), VIGIL_OK);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(abandoned),
        cmocka_unit_test(a_name_has_no_mode),
        cmocka_unit_test(a_name_is_a_lock),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(it_is_shared),
        cmocka_unit_test(again_passes_a_waiter),
        cmocka_unit_test(a_semaphore_has_slots),
        cmocka_unit_test(new_slots_are_for_waiters),
        cmocka_unit_test(slots_of_the_killed_are_not_too_many),
        cmocka_unit_test(slots_may_change_while_they_are_used),
        cmocka_unit_test(an_event_loop_waits),
        cmocka_unit_test(the_last_one_is_closed_in_a_callback),
        cmocka_unit_test(an_agent_ends),
        cmocka_unit_test(a_lock_is_stolen),
        cmocka_unit_test(whatever_is_held_is_stolen),
        cmocka_unit_test(thieves_are_killed),
        cmocka_unit_test(ties_are_stolen),
        cmocka_unit_test(all_kinds_are_in_one_line),
        cmocka_unit_test(a_child_cannot_use_it),
        cmocka_unit_test(a_death_is_told),
        cmocka_unit_test(a_killed_reader_leaves_nothing),
        cmocka_unit_test(orphans_keep_the_lock),
        cmocka_unit_test(an_orphan_does_not_wait_for_itself),
        cmocka_unit_test(orphans_of_a_removed_name),
        cmocka_unit_test(an_unlock_is_for_all_that_are_tied),
        cmocka_unit_test(semaphores_are_tied_slot_by_slot),
        cmocka_unit_test(names_are_removed),
        cmocka_unit_test(an_observer_follows_the_name),
        cmocka_unit_test(a_removed_lock_still_has_a_line),
        cmocka_unit_test(thousands_are_open_at_once),
        cmocka_unit_test(a_book_is_rebuilt),
        cmocka_unit_test(killed_players_lose_no_names),
        cmocka_unit_test(names_are_created_once),
        cmocka_unit_test(data_comes_with_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_named_tests(run);
}
