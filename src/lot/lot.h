/* SPDX-License-Identifier: MIT */
/*
 * lot.h - the lines.
 *
 * A lot is a table of lines: buckets, found by a hash of the key, and slots, one for each waiter. There is one lot
 * for the memory of this process alone, where a key is an address, and one in each segment, for the words in it,
 * where a key is the offset in the segment's file. The links are slot numbers (0 is none), not pointers: processes
 * map a segment at different addresses. What differs in a segment, because processes may be killed, is in shared.h.
 *
 *     bucket          one line of waiters per key                    each waiter a slot
 *     +------+  line  +------+ next  +------+ next  +------+
 *     | word |------->| head |------>|      |------>| tail |         key A, first come ... last come
 *     +------+        +------+<------+------+<------+------+
 *                         | next_line        prev
 *                         v
 *                     +------+
 *                     | head |                                       key B, which hashes to the same bucket
 *                     +------+
 *
 * ACCESS RULES
 *
 * The bucket's word is its lock, and says whether a slot is in line there (word_lock.h). It is zero exactly when no
 * slot is in line and no thread has the bucket locked: that is all a notifier needs to look at.
 *
 * The lock protects the bucket's `line` and these fields of every slot in its lines: key, next, prev, tail, next_line,
 * began_ns, kind and gift. A slot is in line from lot_join until, under the lock, exactly one of lot_leave (its own
 * waiter: deadline, cancel) or lot_take, lot_call, lot_move (any thread: notification, forget, a lock's release, a
 * condition's signal) takes it out and so decides its outcome; or lot_move puts it into another line, under the locks
 * of both buckets, which are always taken in the order of their addresses. A slot is in line for `key` while that is
 * not zero and `state` is undecided: that is how the other side learns, under the lock, that it came too late.
 *
 * A slot in no line belongs to the thread that took it out: its own waiter, or, from lot_take on, the taker, until it
 * passes the slot on: a thread's slot by the store to `state`, an agent's by the push into its seat's mail. After that
 * the taker must not touch the slot. (In a segment both happen under the lock.)
 *
 * NO WAKE-UP IS LOST
 *
 *     waiter                                      notifier
 *     W0  store lot->buckets, once (seq_cst)      N1  store the new value   (the caller's, any order)
 *     W1  CAS bucket word: lock   (seq_cst)       N2  fence                 (seq_cst)
 *     W2  load the user's word    (seq_cst)       N3  load bucket word      (relaxed; none yet: as if zero)
 *     W3  still the expected one: join
 *
 * If N3 reads a word older than W1 wrote, or finds no buckets, from before W0, then N2 precedes W1 in the single
 * order S of all seq_cst operations; W1 precedes W2 in S; so W2 sees what N1 stored before the fence, and the waiter
 * returns VIGIL_NOT_EQUAL instead of joining. Otherwise N3 sees LOCKED or OCCUPIED, and the notifier takes the lock
 * and finds the waiter in line, or finds that it left.
 *
 * The holder of a mutex in private memory releases it much more often than a thread waits for it. So there the waiter
 * has the fence for both sides:
 *
 *     waiter                                      holder, while the bucket's word is zero
 *     W1  CAS bucket word: lock                   U1  store the new value   (release)
 *     WF  fence everywhere, see below             U2  load bucket word      (relaxed; after U1 for the compiler)
 *     W2  load the user's word
 *     W3  still the expected one: join
 *
 * WF is a fence in the holder's thread too, somewhere in its program (prim_fence_everywhere). If that is before U2, U2
 * reads what W1 wrote, or something later. If it is after U2, and so after U1, W2 sees what U1 stored.
 *
 * WF is needed if the line is empty, and the holder may release by a store (`stored`; sync/mutex.c knows). If the line
 * is not empty (but of plain waiters), the bucket's word has not been zero since its first waiter joined. The holder at
 * that time either could not release by a store, or each thread has had a fence since. By induction each later holder,
 * too, sees a word that is not zero, or has had the fence. It has taken the mutex after a release under the lock of the
 * bucket, and so sees the bucket's word as that waiter left it, or a later one; or after a release by
 * compare-and-exchange, whose holder had seen such a word, and then coherence forbids an older one; or after a release
 * by a store, which is no longer possible once each thread sees such a word, and before that came the fence.
 *
 * This also defines "first come": the order in which the waiters took the bucket's lock. Waiters for a lock are
 * ordered by their began_ns instead, since they may leave the line and come back: see sync/lock.h. Other waiters get
 * a began_ns above that of the tail: so began_ns gives the order of every line.
 */
#ifndef VIGIL_LOT_H
#define VIGIL_LOT_H

#include "prim.h"

struct bucket {
    uint32_t word;
    uint32_t line; /* head of the first line */
};

struct slot {
    uint64_t key; /* under the lock; zero: in no line. In a segment it stays until what it was told is used */
    union {
        uint64_t signature; /* for people: a thread's id and, in bits 32-63, since when it waits (ms); SLOT_HOLDS: see
                             * recovery/hold.h */
        uint64_t op; /* an agent's slot in its own lot: the vigil_op, or SLOT_OP_GONE; sync/robust.h: the word */
        uint64_t function; /* SLOT_POSTED: what to call */
        uint64_t row;      /* an agent's slot in a segment: the index of its member's row */
    };
    union {              /* atomic where processes share it */
        uint64_t gift;   /* other kinds of waiters than those below: what it has been given, see gift.h */
        uint64_t wants;  /* SLOT_SEM, SLOT_RWLOCK: how much of the lock */
        uint64_t round;  /* SLOT_BARRIER: the round that it waits for */
        uint64_t held;   /* SLOT_HOLDS: see recovery/hold.h */
        uint64_t away;   /* SLOT_AWAY: the slot in the segment */
        uint64_t posted; /* SLOT_POSTED: the function's argument */
    };
    union {
        uint64_t began_ns; /* its place in line */
        uint64_t away_lot; /* SLOT_AWAY: the segment's lot; sync/robust.h: the segment */
    };
    uint32_t state; /* enum slot_state or the outcome; a sleeping thread's futex */
    uint32_t seat;  /* the seat to which it is mailed; 0: a thread sleeps on `state` */
    uint32_t next, prev;
    uint32_t tail, next_line; /* in a line's head only */
    uint32_t kind;            /* enum slot_kind */
    union {
        uint32_t outcome; /* not in segments: of a thread that has been taken out and is about to be woken */
        uint32_t home;    /* an agent's slot in a segment: its slot in its own lot, until that is told; see shared.h */
        uint32_t of;      /* SLOT_HOLDS: the kind of lock */
    };
};
_Static_assert(sizeof(struct slot) == 64, "a cache line");

/* What the slot's waiter waits for. */
enum slot_kind {
    SLOT_PLAIN, /* a notification */
    SLOT_COND,  /* the same, and then for a mutex */
    SLOT_MUTEX,
    SLOT_SEM,
    SLOT_RWLOCK,
    SLOT_BARRIER,
    SLOT_ONCE,
    SLOT_HOLDS, /* nothing: the hold of a process (recovery/hold.h), or the note of a thread (sync/robust.h) */
    SLOT_KINDS,
    SLOT_AWAY, /* not in line itself: an agent's slot that stands for one in line in a segment, see shared.h */
};

/* What a waiter for a lock is told, besides the statuses of a wait: */
enum slot_call {
    SLOT_CALLED = 0x80, /* it is your turn */
    SLOT_BESIDE,        /* a waiter before you has been called, but may not come: look after yourself */
};

/* As the op of an agent's slot: its outcome is not wanted any more. */
#define SLOT_OP_GONE 1u

/* Until its outcome is decided: */
enum slot_state {
    SLOT_WAITING = 0x100, /* an agent's slot; or the thread is awake and looks at `state` */
    SLOT_ASLEEP,          /* the thread sleeps on `state` and must be woken */
    SLOT_POSTED,          /* not a waiter: a function on its way to an agent */
};

/* Threads take slots by the chunk: see slot.c. Chunk 0 is not used, because slot 0 is none. */
#define SLOT_CHUNK PRIM_SLOT_CHUNK
#define LOT_LEVELS 4 /* of bitmaps: 64^4 chunks at most */
struct chunk {
    uint64_t free;
};

struct seat;

#define LOT_RESERVATIONS 64u
struct lot_reservation {
    uint64_t key, began_ns;
};

/* A thread's read-write locks that it reads: sync/lanes.h. */
struct lot_lane {
    _Alignas(64) uint64_t locks[PRIM_LANE_PLACES];
};
#define LOT_LANES_OPEN  (1u << 28) /* in the word of a lock: it may have readers there */
#define LOT_LANE_READER 16u        /* such a reader, once it is counted in the word */
#define LOT_LANES       (PRIM_LANES ? PRIM_LANES : 1)
#define LOT_RESTS       64u

struct lot {
    struct bucket *buckets; /* stored last, when the lot is ready: W0 */
    struct slot *slots;
    uint64_t base; /* a key is an address less this */
    uint32_t bucket_bits;
    uint32_t number;         /* a segment's lot: the number of our process; zero: the process's own lot */
    uint32_t claim;          /* a segment's lot: the claim on our slots there */
    struct lot_share *share; /* a segment's lot: see shared.h */
    struct lot *home;        /* the process's own lot, which has the seats */

    /* Only in the process's own lot: */
    struct chunk *chunks;
    struct seat **seats;
    uint32_t chunk_limit;

    /* Where slots and seats come from: under the gate, a word_lock that is never OCCUPIED. */
    _Alignas(64) uint32_t gate;
    uint32_t chunks_used;
    uint32_t chunks_open;            /* chunks with slots backed by memory */
    uint64_t *available[LOT_LEVELS]; /* the set of chunks with free slots: see slot.c */
    uint32_t seats_used;

    struct lot_reservation reservations[LOT_RESERVATIONS]; /* of locks that were reserved lately: lock_may_reserve */

    struct lot_lane lanes[LOT_LANES]; /* sync/lanes.h. In the child of a fork their readers are counted instead */
    uint32_t lanes_used;              /* up to here: only grows */
    uint32_t lane_threads[LOT_LANES]; /* atomic: how many threads have each */
    uint64_t lanes_rest_until_ns[LOT_RESTS]; /* of locks whose lanes were closed lately */

    struct lot_copy *copies; /* under the gate: the copies of the library that use it, see copies.h */
    uint32_t fences;         /* set by the first copy: holders may release a mutex by a store, see WF */
    uint32_t forks;          /* it has been emptied for these: prim_generation */
};

/* The process's own lot; null when there is no memory for it, or when this copy of the library cannot use it. */
struct lot *lot_private(void);
/* The same if it exists; null: no thread has waited yet. */
struct lot *lot_private_if_used(void);
/* The lot for that address: its segment's, or the process's own. */
struct lot *lot_for(const volatile void *address);
struct lot *lot_for_if_used(const volatile void *address);
/* Why there is none: lot_refused returns VIGIL_ECOPIES, or VIGIL_OK if it has not been used yet; lot_missing, after
 * lot_for or lot_private, VIGIL_ECOPIES or VIGIL_ENOMEM. */
int lot_refused(const volatile void *address);
int lot_missing(const volatile void *address);
/* Called in the child of a fork, unless null; a copy of the library has its own. For debug/check.c. */
extern void (*lot_in_child)(void);

/*
 * Record an event (shm/events.h) of a waiter in a segment: it waits, has been called or has given up. `type` is a
 * vigil_event_type. lot_record_lock_event: this process takes or releases a lock, `count` times.
 */
void lot_record_event(const struct lot *lot, int type, uint32_t slot, uint64_t key, uint32_t status);
void lot_record_lock_event(const struct lot *lot, int type, enum slot_kind kind, const uint32_t *word, uint32_t count,
                           bool shared);

/* The caller's word, and the value that it must have for the wait to begin. */
struct word {
    const volatile void *address;
    uint64_t expected;
    bool wide; /* 64 bits */
};

static inline bool word_differs(const struct word *word) {
    return word->wide ? prim_load_seq_cst((const volatile uint64_t *)word->address) != word->expected
                      : prim_load_seq_cst((const volatile uint32_t *)word->address) != (uint32_t)word->expected;
}

static inline uint64_t key_of(const struct lot *lot, const volatile void *address) {
    return (uint64_t)(uintptr_t)address - lot->base;
}

static inline uint32_t *word_of(const struct lot *lot, uint64_t key) {
    return (uint32_t *)(uintptr_t)(lot->base + key);
}

static inline bool is_shared(const struct lot *lot) {
    return PRIM_SEGMENTS && lot->number != 0;
}

/* Of a waiter's slot: its outcome has not been decided. */
static inline bool undecided(uint32_t state) {
    return state >= SLOT_WAITING;
}

/* Prepare the slot for a wait of that kind. What it was told before has been used. */
static inline void slot_begin(struct slot *slot, enum slot_kind kind) {
    prim_store_relaxed(&slot->key, 0);
    prim_store_relaxed(&slot->kind, (uint32_t)kind);
    prim_store_release(&slot->state, SLOT_WAITING); /* release: a reader of this state sees key = 0, in no line */
}

/* Compare and join the end of the line in one step: false if the word differs. The slot must be filled in. */
bool lot_join(struct lot *lot, uint32_t slot, const struct word *word);

/*
 * The same for a waiter for a lock: its place is by its began_ns. The place of a waiter that has been called and comes
 * back (`again`) is searched from the head of the line, that of others from its tail. `stored`: a holder may be about
 * to change the word by a store (WF).
 */
bool lot_join_in_order(struct lot *lot, uint32_t slot, const struct word *word, bool stored, bool again);

/* If the slot still is in line: set its began_ns and `wants`, and put it in its new place. Else false. */
bool lot_change_place(struct lot *lot, uint32_t slot, const volatile void *address, uint64_t began_ns, uint64_t wants);

/* In line: sleep until the slot's outcome is decided, and is in its `state`; or until the deadline or an interruption
 * (interrupt.h): false. */
bool lot_sleep(struct lot *lot, uint32_t slot, uint64_t deadline_ns);
/* The same, but spins less: for a thread that has spun before it joined. With more threads than processors, spinning
 * longer costs more than it saves. */
bool lot_sleep_soon(struct lot *lot, uint32_t slot, uint64_t deadline_ns);
/* The same without spinning. */
bool lot_sleep_at_once(struct lot *lot, uint32_t slot, uint64_t deadline_ns);

/*
 * What vigil_wait32 does, for a waiter of that kind. `joined`, unless null, is called when the waiter is in line,
 * before it sleeps. The deadline may be DEADLINE_PASSED.
 */
typedef void lot_joined(const struct word *word);
int lot_wait(const struct word *word, uint64_t deadline_ns, enum slot_kind kind, lot_joined *joined);

/*
 * Take the caller's own slot out of the line: false if another thread has done so before, and the outcome is on its
 * way. In the process's own lot, a barrier's word counts the waiters in its line: it is decremented in the same step.
 */
bool lot_leave(struct lot *lot, uint32_t slot, const volatile void *address);

/* The same for a thread; if the outcome is on its way, waits for it. Returns VIGIL_TIMED_OUT, VIGIL_INTERRUPTED, or
 * what another process or thread has decided. */
int lot_give_up(struct lot *lot, uint32_t slot, const volatile void *address);

/* lot_leave will be called soon: prefetch the memory that it needs. */
void lot_leave_soon(struct lot *lot, uint32_t slot);

/* Take the first `most` waiters out of the line, oldest first, and tell them `outcome`. Returns how many. */
int64_t lot_take(struct lot *lot, const volatile void *address, int64_t most, uint32_t outcome);
/* The same, for a caller that has locked the key's bucket. Unlocks it. */
int64_t lot_take_locked(struct lot *lot, struct bucket *bucket, uint64_t key, int64_t most, uint32_t outcome);

/*
 * How a lock is released, or the waiters in its line are called: three functions, called under the lock of the line's
 * bucket.
 *
 *     begin   with the lock's word and the head of the line (null: no waiter): change the word. False: call no waiter
 *     each    for each waiter, from the head on: returns what to tell it; or LOT_STAY: it and all behind it stay in
 *             line; or LOT_SKIP: it stays in line, go on with the next
 *     end     when they have been told: change the word. May be null
 */
#define LOT_STAY UINT32_MAX
#define LOT_SKIP (UINT32_MAX - 1)
struct lot_release {
    bool (*begin)(uint32_t *word, const struct slot *head, void *context);
    uint32_t (*each)(const struct slot *slot, void *context);
    void (*end)(void *context);
    bool (*stored)(uint32_t seen); /* for lot_move: whether a holder may be about to change the word by a store. May be
                                      null */
};
void lot_call(struct lot *lot, const volatile void *address, const struct lot_release *release, void *context);

/*
 * The same; or, if `begin` returns false, join the end of the line, in one step. Returns whether the slot has joined:
 * never if it is zero, which is none. The slot must be filled in, except for began_ns.
 */
bool lot_call_or_join(struct lot *lot, uint32_t slot, const volatile void *address, const struct lot_release *release,
                      void *context);

/*
 * A condition is signalled: take the first `most` waiters out of the line. Agents are told VIGIL_OK. A thread is
 * moved, asleep, to the end of its mutex's line (gift.h); if any has been moved, that line is called (lot_call) while
 * both buckets are locked. Returns how many were taken.
 */
int64_t lot_move(struct lot *lot, const volatile void *address, int64_t most, const struct lot_release *release,
                 void *context);

/* Take all waiters out of the lines with keys from `first` to `last`. Returns how many. Looks at every bucket. */
int64_t lot_take_range(struct lot *lot, uint64_t first, uint64_t last, uint32_t outcome);

/* How many waiters are in line, up to `most`. */
int64_t lot_count(struct lot *lot, const volatile void *address, int64_t most);

/*
 * For debug/dump.c. A bucket's lines are read in the order of their keys: lot_read_line reads the first line with a key
 * above `after`. Under the lock it copies the first waiters and counts the others, up to a limit.
 */
struct lot_glance {
    uint64_t agent;     /* its address; zero: a thread */
    uint32_t thread_id; /* the thread, or that of the agent */
    uint32_t since_ms;
};
#define LOT_GLANCES 256u   /* copied */
#define LOT_COUNTED 10000u /* a count of this means: so many, or more */
struct lot_line {
    uint64_t key; /* zero: there is no such line */
    bool for_lock;
    uint32_t count;
    struct lot_glance waiters[LOT_GLANCES];
};
void lot_read_line(struct lot *lot, uint32_t bucket, uint64_t after, struct lot_line *line);
/* Add how many lines a bucket has, and how many waiters are in them. */
void lot_survey(struct lot *lot, uint32_t bucket, uint64_t *lines, uint64_t *waiters);

/* A quick test for a process that has no segments open: true only if no waiter is in line. N3 above. */
bool lot_surely_empty(const volatile void *address);

/* Whether a waiter may be in line for the key: N3 above. */
bool lot_occupied(const struct lot *lot, const volatile void *address);

/* A slot for a waiter or a post; zero when every slot is taken, or kept by a thread. Any thread may release it. */
uint32_t slot_acquire(struct lot *lot);
void slot_release(struct lot *lot, uint32_t slot);
void slot_release_all(struct lot *lot, struct prim_thread *thread); /* the thread ends */
/* Every slot that has ever been used is below this. */
uint32_t slot_bound(struct lot *lot);

/* A seat gets a number by which slots name it. Zero when all are taken. */
uint32_t seat_register(struct lot *lot, struct seat *seat);
void seat_unregister(struct lot *lot, uint32_t number);

/*
 * What src/recovery does for every lot: an event loop in that line has been called, and other waiters may be behind
 * it. If the loop does not come, the keeper calls the next waiter (recovery/guard.h). Under the lock of the line's
 * bucket; or without it, by the keeper that hands on a call from another process (lot_hand_on).
 */
void guard_note(struct lot *lot, uint64_t key);
/* One more agent may be called for a lock: make sure that a keeper runs. False: it could not be started. */
bool keeper_ready(void);
/* That agent will not be called any more. */
void keeper_unready(void);
/* In the child of a fork: it has no keeper. */
void keeper_in_child(void);

/* How many times to spin before a sleep: as many as have paid for this thread lately, and not more than `most`. */
unsigned spin_budget(unsigned most);
unsigned spin_processors(void);
/* Pause after a look at a word that its holder writes to: each look takes the cache line from the holder, so they must
 * be far apart. Returns the number of pauses. */
unsigned spin_apart(void);
void spin_learn(bool paid);

/* Spin until `is_done`, at most as often as spin_budget allows. Returns whether it is. Inlined, and so is `is_done`. */
typedef bool spin_test(void *what);
__attribute__((always_inline)) static inline bool spin_until(spin_test *is_done, void *what, unsigned most) {
    bool done = is_done(what);
    for (unsigned spins = spin_budget(most); spins && !done; spins--) {
        prim_pause();
        done = is_done(what);
    }
    spin_learn(done);
    return done;
}

/* A lock was found taken. If too many threads contend for locks at once, sleep for some 20 us. */
void spin_stand_aside(void);

#endif
