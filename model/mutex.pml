/* SPDX-License-Identifier: MIT */
/*
 * The mutex: src/sync/lock.h, lock.c, mutex.c, request.c. Names in the comments are those of the C code.
 *
 * Threads lock and unlock it; one has a deadline. Event loops have requests, which may be cancelled; a loop may stop
 * for good while it waits, in line or called, or its thread may block on the same mutex meanwhile. Then:
 *
 * - nobody holds the mutex beside another;
 * - whoever wants it gets it, or gives up himself: who sleeps on makes an invalid end state. Only loops that have
 *   stopped may be left over;
 * - in the end it is unlocked, or reserved for a loop that has stopped.
 *
 * No state ever comes back (check.sh looks for cycles), so every run gets to such an end, whoever is scheduled.
 *
 * What happens under the bucket's lock is one step: line.pml is about that. Elsewhere each load and each CAS of the
 * word is a step of its own. There is no clock: patience and deadlines may end at any time, and each unlock may find
 * that the head has waited for long enough to be entitled, or that it has not. That includes what a fair mutex does.
 *
 * Who plays: STOPPING, CROWD, OWN_REQUEST or PATIENT, see init. In the last one nobody's patience ends and no loop
 * stops: what would otherwise only cost time is caught there.
 *
 * Broken on purpose, each to be caught: CALL_ONE, FREE_OUTSIDE, JOIN_BLINDLY, TAKE_AS_LOCKED, WAIT_AT_LOCKED,
 * GIVE_UP_BLINDLY, GUARD_FOREVER, GUARD_AWAKE, TAKE_BY_STORE, MARK_BY_STORE, LOSE_ORPHAN.
 */
#define FREE      0 /* the word */
#define LOCKED    1
#define CONTENDED 2
#define RESERVED  3

#define NEWCOMER  0 /* standing */
#define BESIDE    1
#define CALLED    2
#define IMPATIENT 3

#define PLAYERS 4
#ifdef CROWD
#define LOOPS 1 /* the first so many players; the others are threads */
#else
#define LOOPS 2
#endif
#define is_loop(p) ((p) < LOOPS)

byte word;
byte arrived[PLAYERS], arrivals; /* who has had to wait and is not done, in order: slot->began_ns. Of them ... */
bool in_line[PLAYERS];           /* ... these are in line. The others are awake, or their calls are on their way */
byte standing[PLAYERS];
bool ended[PLAYERS];
byte holders, playing, stopped;

#ifdef PATIENT
#define loop_stops false
#else
#define loop_stops true
#endif

#if defined(PATIENT) || defined(GUARD_FOREVER)
#define patience_ends false
#else
#define patience_ends (seen == RESERVED) /* patience_ns */
#endif

inline find(p) {
    i = 0;
    do
    :: i < arrivals && arrived[i] != p -> i++
    :: else -> break
    od
}

inline arrive() {
    d_step {
        find(me);
        if
        :: i == arrivals -> arrived[i] = me; arrivals++
        :: else
        fi;
        i = 0
    }
}

inline depart() {
    d_step {
        standing[me] = NEWCOMER; seen = 0;
        find(me);
        if
        :: i < arrivals ->
            arrivals--;
            do
            :: i < arrivals -> arrived[i] = arrived[i + 1]; i++
            :: else -> break
            od;
            arrived[i] = 0
        :: else
        fi;
        i = 0
    }
}

#define waited            (standing[me] != NEWCOMER)
#define may_take_reserved (standing[me] >= CALLED)

#ifdef WAIT_AT_LOCKED
#define to_mark (seen == LOCKED && !waited)
#else
#define to_mark (seen == LOCKED)
#endif
#define to_take (seen == FREE || (seen == RESERVED && may_take_reserved))

#if defined(TAKE_BY_STORE)
#define cas_succeeds (word == seen || seen == RESERVED)
#elif defined(MARK_BY_STORE)
#define cas_succeeds (word == seen || seen == LOCKED)
#else
#define cas_succeeds (word == seen)
#endif

#ifdef TAKE_AS_LOCKED
#define becomes (seen == FREE -> LOCKED : CONTENDED)
#else
#define becomes (seen == FREE && !waited -> LOCKED : CONTENDED)
#endif

/* Either we have `got` it, or `seen` is what the word must still be when we join the line. */
inline take() {
    do
    :: atomic {
        seen = word;
        if
        :: seen != FREE -> arrive()
        :: else
        fi;
        if
        :: to_take || to_mark
        :: else -> break
        fi
       }
       atomic { /* a CAS */
        if
        :: !cas_succeeds /* again */
        :: to_take && cas_succeeds ->
            word = becomes;
            got = true;
            holders++;
            assert(holders == 1);
            depart();
            break
        :: to_mark && cas_succeeds -> word = CONTENDED; seen = CONTENDED; break
        fi
       }
    od
}

inline join() {
#if defined(JOIN_BLINDLY)
    in_line[me] = true
#elif defined(GUARD_AWAKE)
    in_line[me] = (word == seen && word != RESERVED)
#else
    in_line[me] = (word == seen)
#endif
}

inline leave_impatiently() {
    d_step {
        if
        :: in_line[me] -> in_line[me] = false; standing[me] = IMPATIENT
        :: else /* called already: that stands */
        fi
    }
}

#define nobody_in_line (!in_line[0] && !in_line[1] && !in_line[2] && !in_line[3])

/* Everybody up to the first thread: a loop may never come, a thread does. */
inline call_some() {
    d_step {
        first = CALLED;
        i = 0;
        do
        :: i < arrivals && !in_line[arrived[i]] -> i++
        :: i < arrivals && in_line[arrived[i]] ->
            in_line[arrived[i]] = false;
            standing[arrived[i]] = first;
            first = BESIDE;
#ifdef CALL_ONE
            break
#else
            if
            :: is_loop(arrived[i]) -> i++
            :: else -> break
            fi
#endif
        :: i == arrivals -> break
        od;
        i = 0; first = 0
    }
}

inline unlock() {
    if
    :: atomic { word == LOCKED -> word = FREE; holders--; got = false }
    :: atomic {
        word != LOCKED -> /* nobody but us can change that */
        assert(word == CONTENDED);
        holders--; got = false;
        if
#ifdef FREE_OUTSIDE
        :: nobody_in_line -> seen = CONTENDED
#else
        :: nobody_in_line -> word = FREE
#endif
        :: !nobody_in_line -> word = FREE; call_some()
        :: !nobody_in_line -> word = RESERVED; call_some() /* the head is entitled */
        fi
       }
#ifdef FREE_OUTSIDE
       d_step {
        if
        :: seen == CONTENDED -> word = FREE; seen = 0
        :: else
        fi
       }
#endif
    fi
}

/* vigil_mutex_lock_for, and vigil_mutex_unlock if that got it */
proctype thread(byte me, rounds; bool timed) {
    byte seen, i, first;
    bool got, late;
again:
    take();
    if
    :: got -> unlock(); goto over
    :: !got && late -> depart(); goto over
    :: !got && !late -> join()
    fi;
    if
    :: !in_line[me]
    :: patience_ends -> leave_impatiently()
    :: timed ->
#ifdef GIVE_UP_BLINDLY
        atomic { in_line[me] = false; depart() }
        goto over
#else
        d_step { late = true; in_line[me] = false; standing[me] = IMPATIENT }
#endif
    fi;
    goto again;

over:
    atomic {
        late = false;
        rounds--;
        if
        :: rounds > 0 -> goto again
        :: else -> ended[me] = true; playing--
        fi
    }
}

/* on_orphan, decline: a call whose request is gone. A process of its own, for the loop's next request does not wait. */
proctype orphan() {
    byte seen, i, first;
    bool got;
    if
    :: loop_stops -> stopped++
    :: word != RESERVED
#ifdef LOSE_ORPHAN
    :: word == RESERVED
#else
    :: atomic { word == RESERVED -> word = CONTENDED; holders++; assert(holders == 1) }
       unlock()
#endif
    fi;
    playing--
}

/* vigil_mutex_execute with a callback that does nothing. Who can cancel or stop is never left waiting: a steady loop
 * does neither, so that it must be called. `own`: the loop's thread, if that may block meanwhile. */
proctype loop(byte me, requests, own; bool steady) {
    byte seen, i, first;
    bool got;
again:
    take();
    if
    :: got -> unlock(); goto over
    :: else
    fi;
    atomic {
        join();
        if
        :: !in_line[me] -> goto again
        :: else
        fi
    }
pending:
    if
    :: !in_line[me] -> goto again
    :: patience_ends -> leave_impatiently(); goto again
    :: loop_stops && !steady -> stopped++; goto stop
    :: own -> atomic { playing++; run thread(own, 1, false) } ended[own]; own = 0; goto pending
    :: atomic { !steady && in_line[me] -> in_line[me] = false; depart() } /* cancelled */
    :: atomic { !steady && !in_line[me] -> depart(); playing++; run orphan() }
    fi;
over:
    requests--;
    if
    :: requests > 0 -> goto again
    :: else
    fi;
stop:
    playing--
}

#define play(p) playing++; run p

init {
    atomic {
#if defined(CROWD)
        play(loop(0, 1, 0, false)); play(thread(1, 1, true)); play(thread(2, 1, false)); play(thread(3, 1, false))
#elif defined(OWN_REQUEST)
        play(loop(0, 1, 3, true)); play(loop(1, 1, 0, false)); play(thread(2, 2, true))
#elif defined(PATIENT)
        play(loop(0, 2, 0, false)); play(loop(1, 1, 0, true)); play(thread(2, 1, true)); play(thread(3, 1, false))
#else
        play(loop(0, 1, 0, false)); play(loop(1, 1, 0, false)); play(thread(2, 1, true)); play(thread(3, 1, false))
#endif
    }
    playing == 0;
    assert(holders == 0);
    assert(word == FREE || (word == RESERVED && stopped > 0))
}
