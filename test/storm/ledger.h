/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - the books of both storms: shared memory that Vigil does not know of, and that outlives the killed.
 *
 * An actor is a thread of a member, its event loop, or an asynchronous operation of that loop. An actor's page has one
 * writer, the actor (its loop, for an operation). So whenever an actor is killed, its page says what it was about to
 * do, was doing, or had done:
 *
 *     activity    stored before each call of the library, and again after it
 *     hand        how many tokens it has
 *     grants ...  the results of its calls
 *
 * TOKENS. Each notification hands over a token. A notified actor has one more; an actor with tokens offers them by
 * vigil_notify, and gives up as many as were taken, according to the result. So tokens are neither made nor lost while
 * no member is killed. The page of a killed actor tells how many tokens died with it, and how many it was just
 * offering; of the latter it is not known whether they were taken. A token on its way to an actor that was killed is no
 * excuse: the library passes it on to the next in line, and there always is one, because the judge waits there too.
 *
 * SHOUTS. One line has no tokens, and all its waiters are notified at once. Then there may be no next one: at most one
 * notification may be missing there for each actor that was killed waiting.
 *
 * GRANTS. An actor that is granted a mutex enters its name as the one inside, and removes it before it unlocks. The
 * mutex protects two numbers that are equal except for a moment. After VIGIL_OK there must be no name, and the numbers
 * must be equal. After VIGIL_OWNER_DIED a name must be that of an actor that has been killed.
 *
 * SIGNALS. Each signal to a condition ends one wait. An actor enters a signal after the call has returned, and the end
 * of a wait after that has returned. So, for each condition, there are no more waits ended than signals, except for
 * those actors that were killed while they signalled: each may have given one signal that is not in the books.
 */
#ifndef VIGIL_STORM_LEDGER_H
#define VIGIL_STORM_LEDGER_H

#include "stress.h"

#define LINES        4
#define SHOUTS       3u /* the line without tokens */
#define MUTEXES      3  /* a plain one, a fair one, and that of the condition */
#define FAIR_ONE     1u
#define WITH_COND    2u
#define NO_MUTEX     3u
#define CONDS        2 /* the queue's; the storm of tokens uses the first of them */
#define THREADS      3 /* of each member */
#define WAITS        6 /* of its event loop */
#define REQUESTS     3
#define THE_LOOP     THREADS /* as an actor; the operations follow it */
#define FIRST_WAIT   (THE_LOOP + 1)
#define FIRST_ASKER  (FIRST_WAIT + WAITS)
#define THE_MAIN     (FIRST_ASKER + REQUESTS) /* the main thread */
#define ACTORS       (THE_MAIN + 1)
#define MEMBERS_MOST 16 /* the last page is the judge's */

/* In the segment. */
struct arena {
    struct {
        _Alignas(64) uint64_t word;
    } lines[LINES];
    struct {
        _Alignas(64) vigil_mutex mutex;
    } locks[MUTEXES];
    struct {
        _Alignas(64) vigil_cond cond;
    } conds[CONDS];
    /* The queue (queue.c), protected by the mutex WITH_COND. */
    struct {
        _Alignas(64) uint64_t item; /* the number of the item that is in it, if it is full */
        uint64_t full;              /* 0 or 1: this decides, and a repair sets the following two according to it */
        uint64_t last_put, last_got;
    } queue;
};

#define ACTIVITIES(X)                                                                                                  \
    X(STARTING, "starting")                                                                                            \
    X(BETWEEN, "between calls")                                                                                        \
    X(RESTING, "at rest")                                                                                              \
    X(WAITING, "waiting")                                                                                              \
    X(CANCELLING, "cancelling")                                                                                        \
    X(NOTIFYING, "notifying")                                                                                          \
    X(LOCKING, "locking")                                                                                              \
    X(HOLDING, "holding a lock")                                                                                       \
    X(UNLOCKING, "unlocking")                                                                                          \
    X(IN_COND, "in a condition")                                                                                       \
    X(SIGNALLING, "signalling")                                                                                        \
    X(BROADCASTING, "broadcasting")                                                                                    \
    X(CHANGING, "changing the queue")                                                                                  \
    X(LEAVING, "leaving")

enum activity {
#define ACTIVITY_ENUMERATOR(name, text) name,
    ACTIVITIES(ACTIVITY_ENUMERATOR)
#undef ACTIVITY_ENUMERATOR
        ACTIVITY_COUNT
};

#define TALLIES(X)                                                                                                     \
    X(NOTIFIED, "notified", "notified, as notify returned")                                                            \
    X(ENDED_OK, "ended_ok", "waits that returned ok")                                                                  \
    X(SHOUTED, "shouted", "notified in the line without tokens, likewise")                                             \
    X(HEARD, "heard", "waits there that returned ok")                                                                  \
    X(TIMED_OUT, "timed_out", "waits and locks that timed out")                                                        \
    X(NOT_EQUAL, "not_equal", "waits that found another value")                                                        \
    X(CANCELS, "cancelled", "operations cancelled")                                                                    \
    X(TOO_LATE, "cancel_too_late", "cancelled too late")                                                               \
    X(BURNT, "burnt", "tokens thrown away")                                                                            \
    X(GRANTS, "grants", "grants of a mutex")                                                                           \
    X(DIED_GRANTS, "owner_died", "of them with owner-died")                                                            \
    X(NOBODY_INSIDE, "owner_died_outside", "of these, the dead had not come in yet or had gone out")                   \
    X(LEFT_BROKEN, "left_inconsistent", "of these, not repaired but left to the next")                                 \
    X(COND_WAITS, "condition_waits", "waits for a condition that ended")                                               \
    X(SIGNALLED, "signalled", "signals that ended a wait, as signal returned (first condition: not empty)")            \
    X(SIGNALLED_SECOND, "signalled_second", "the same (second condition: not full)")                                   \
    X(WOKEN, "woken", "waits that a signal ended, as the wait returned (first condition)")                             \
    X(WOKEN_SECOND, "woken_second", "the same (second condition)")                                                     \
    X(ON_BEHALF, "signalled_for_the_dead", "signals given after owner-died, whether or not they ended a wait")         \
    X(PRODUCED, "produced", "items put into the queue")                                                                \
    X(CONSUMED, "consumed", "items taken out of the queue")

enum tally {
#define TALLY_ENUMERATOR(name, key, text) name,
    TALLIES(TALLY_ENUMERATOR)
#undef TALLY_ENUMERATOR
        TALLY_COUNT
};

struct actor {
    _Alignas(64) uint32_t activity; /* and, above its 8 bits, the line, mutex or mutex with condition: at */
    uint32_t progress;              /* calls that have ended */
    uint64_t hand;                  /* tokens that it has * 2^32 + tokens that it is offering */
    uint64_t fresh_deaths[MUTEXES]; /* owner-died grants that do not just repeat what the previous holder left */
    uint64_t grants[MUTEXES];
    uint64_t tallies[TALLY_COUNT];
};

struct member {
    uint64_t life; /* its number in the order of starting * 2, + 1 from right before it is killed */
    uint32_t leave;
    struct actor actors[ACTORS];
};

/* What a mutex protects. */
struct payload {
    _Alignas(64) uint64_t inside; /* the name of the actor inside */
    uint64_t first, second;       /* equal: how often an actor was inside */
    uint32_t broken;              /* left inconsistent: the next holder must be told */
    uint32_t items;               /* WITH_COND: what the condition is about */
};

enum phase { STORM, REST, END };

struct ledger {
    uint32_t moment; /* the number of rests so far * 4 + phase */
    uint32_t failures;
    uint32_t is_queue; /* which of the two storms */
    struct payload payload[MUTEXES];
    struct member members[MEMBERS_MOST + 1];
};

extern struct ledger *ledger;
extern struct arena *arena;

#define NOW(place)        __atomic_load_n(&(place), __ATOMIC_SEQ_CST)
#define PUT(place, value) __atomic_store_n(&(place), (value), __ATOMIC_SEQ_CST)

static inline enum phase phase_of(uint32_t moment) {
    return (enum phase)(moment % 4);
}

/* For failures of any process. */
#define DEMAND(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition) && __atomic_fetch_add(&ledger->failures, 1, __ATOMIC_SEQ_CST) < 10) {                         \
            char text_[240];                                                                                           \
            snprintf(text_, sizeof text_, __VA_ARGS__);                                                                \
            fprintf(stderr, "\n%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, text_);                               \
        }                                                                                                              \
    } while (0)

/* A mutex, or NO_MUTEX, together with a condition. */
static inline unsigned at(unsigned mutex, unsigned cond) {
    return mutex | cond << 2;
}

#define PLACES_AT (4 * CONDS)

static inline void now_does(struct actor *actor, enum activity activity, unsigned which) {
    PUT(actor->activity, (uint32_t)activity | which << 8);
}

/* At rest since that moment: an actor that rested at an earlier moment may have begun something since. */
static inline void now_rests(struct actor *actor, uint32_t moment) {
    now_does(actor, RESTING, moment & 0xffffff);
}

static inline bool at_rest(const struct actor *actor, uint32_t moment) {
    return NOW(actor->activity) == (RESTING | moment << 8);
}

static inline enum activity activity_of(uint32_t activity) {
    return (enum activity)(activity & 0xff);
}

static inline void done(struct actor *actor) {
    now_does(actor, BETWEEN, 0);
    PUT(actor->progress, actor->progress + 1);
}

static inline void count(struct actor *actor, enum tally tally, uint64_t more) {
    PUT(actor->tallies[tally], actor->tallies[tally] + more);
}

/* Tokens in hand. */

static inline uint32_t tokens_of(uint64_t hand) {
    return (uint32_t)(hand >> 32);
}

static inline uint32_t offered_of(uint64_t hand) {
    return (uint32_t)hand;
}

static inline void set_hand(struct actor *actor, uint32_t tokens, uint32_t offered) {
    PUT(actor->hand, (uint64_t)tokens << 32 | offered);
}

/* What all actors do, the judge too: act.c. */
void take_token(struct actor *actor);
void offer_tokens(struct actor *actor, unsigned line, uint32_t tokens);
void shout(struct actor *actor);
void go_inside(struct actor *actor, unsigned mutex, int status, uint64_t *seed);
void go_outside(struct actor *actor, unsigned mutex);
void release(struct actor *actor, unsigned mutex);
void dawdle(uint64_t *seed);
int64_t give_signal(struct actor *actor, unsigned mutex, unsigned cond);
void give_to_all(struct actor *actor, unsigned mutex, unsigned cond);

/* What all members do: crew.c. */

struct crew {
    void *(*thread_main)(void *actor);
    void *(*loop_main)(void *actor);
    void (*look_after_them)(struct actor *main_thread, uint64_t *seed); /* every millisecond, until all have left */
};

extern struct member *self;

bool leaving(void);
bool raging(void);
uint64_t seed_for(unsigned actor);
bool readable(vigil_agent *agent, uint64_t *seed);
int crew_main(const struct crew *crew, unsigned number, int segment_fd, uint64_t seed);

/* The two storms' crews: member.c, queue.c. */
extern const struct crew token_crew, queue_crew;

#endif
