/* SPDX-License-Identifier: MIT */
/*
 * The lanes of a read-write lock: src/sync/lanes.h, lanes.c, rwlock.c. R1 to R4 and V1 to V7 are the steps of lanes.h;
 * the other names in the comments are those of the C code.
 *
 * Readers take the lock by a place in a lane, or are counted; each leaves by its own place, by the count, or by any
 * place. Its own place may be another than it has locked by, as if another thread unlocked. A counted reader that
 * leaves may open the lanes. Writers close the lanes, and then take the lock, wait for it, or give up, as if they only
 * tried. Then:
 *
 * - a writer is never beside a reader or another writer;
 * - a reader that leaves finds a token. It may have to search again, but only if other players have gone on meanwhile:
 *   there are no cycles;
 * - a player that waits gets the lock: one that sleeps for ever makes an invalid end state;
 * - in the end the lock is free: the count is zero, and all places are empty; and it never is below zero;
 * - an unlock of what no reader holds ends, and changes nothing.
 *
 * All steps are read-modify-writes, or loads in the order S: they happen one after the other, each as one step of the
 * model. (A load and the CAS behind it are one step, too, if nothing follows from what was loaded unless the CAS
 * succeeds.) R1 is a relaxed load, but all that follows from it is checked again by R3. What players see of other
 * memory, and with it the loads that acquire after V4 and R4, is not modelled.
 *
 * All that is done under the lock of the bucket is one step. The line has no order: any waiter in it may be its head,
 * and any of the readers in it may stand directly behind a reader that is called. The lock is never reserved or saved
 * for a waiter, and no patience ends: what is shown here does not need them.
 *
 * The players: NEWCOMERS, HOLDERS, THREE_HOLDERS or STRAY, see init.
 *
 * Broken on purpose, each to be caught. As the planted bugs (src/prim/sim/bugs.h): NOT_CHECKED, NOT_COUNTED,
 * COUNTED_TWICE, CLEARED_EARLY, LEFT_SILENTLY, TAKEN_BACK_EARLY, ADDED_UNSEEN, NOT_SEARCHED. And SEARCHED_ONCE,
 * NOT_CLOSED, TAKEN_WHILE_CLOSING, JOINED_UNCLOSED.
 */
#define WRITER  1 /* the word */
#define WAITERS 2
#define READER  4
#define READERS 60
#define LANES   64
#define CLOSING 128

#define PLAYERS 4
#ifdef THREE_HOLDERS /* how many readers there may be, and places */
#define MOST 3
#else
#define MOST 2
#endif
#define is_writer(p) ((p) >= MOST)
#define bit(p)       (1 << (p))
#define ELSEWHERE    MOST /* the place of a thread that does not lock here */

byte word = LANES;
bool place[MOST + 1]; /* has the lock */
byte used = 1;        /* lot->lanes_used */
byte line;            /* the players in it */
byte reading, writing, playing;

#define lanes_are_open   ((word & ~READERS) == LANES)
#define lanes_may_open   ((word & ~READERS) == 0)
#define lanes_must_close ((word & (LANES | CLOSING)) == LANES)

#define got_to_read()  reading++; assert(writing == 0)
#define got_to_write() writing++; assert(writing == 1 && reading == 0)

/* A holder leaves, and looks at the line: rwlock_begin, rwlock_call. A thread that has been called sets WAITERS when it
 * comes, so the word need not say that meanwhile; for a loop it does. */
inline call_line(held) {
    now = (word & (WRITER | READERS)) - held;
    word = now | (word & (LANES | CLOSING));
    if
    :: line == 0 -> head = PLAYERS
    :: line & bit(0) -> head = 0
    :: line & bit(1) -> head = 1
    :: line & bit(2) -> head = 2
    :: line & bit(3) -> head = 3
    fi;
    if
    :: head == PLAYERS
    :: head < PLAYERS && now && (is_writer(head) || (now & WRITER)) -> word = word | WAITERS
    :: head < PLAYERS && !(now && (is_writer(head) || (now & WRITER))) ->
        line = line & ~bit(head);
        do
        :: !is_writer(head) && (line & bit(0)) -> line = line & ~bit(0)
        :: !is_writer(head) && (line & bit(1)) -> line = line & ~bit(1)
        :: !is_writer(head) && (line & bit(2)) && !is_writer(2) -> line = line & ~bit(2)
        :: break
        od;
        if
        :: true
        :: word = word | WAITERS
        fi
    fi;
    now = 0; head = 0
}

/* Closing: lanes_close. */

/* V2 to V4 */
inline count_place() {
    if
    :: !place[i] /* V2 */
    :: place[i] ->
#ifndef NOT_COUNTED
        word = word + READER; /* V3 */
#endif
        if
        :: atomic { place[i] -> place[i] = false } /* V4 */
        :: atomic { !place[i] -> in_error++ }
        fi
    fi
}

inline take_back() {
    atomic { assert((word & READERS) / READER >= in_error); word = word - in_error * READER; in_error = 0 }
}

/* If another player is faster, nothing happens. Else the closer has a unit of the count. */
inline close() {
#ifdef ADDED_UNSEEN
    count = used;
#endif
    if
    :: atomic { !lanes_must_close -> count = 0 }
    :: atomic { lanes_must_close -> word = (word | CLOSING) + READER } /* V1 */
#ifdef CLEARED_EARLY
       word = word & ~(LANES | CLOSING);
#endif
#ifndef ADDED_UNSEEN
       count = used;
#endif
       do
       :: i < count ->
            count_place();
            i++;
#ifdef TAKEN_BACK_EARLY
            take_back()
#endif
       :: else -> break
       od;
#ifndef COUNTED_TWICE
       take_back(); /* V5 */
#endif
       atomic { word = word & ~(LANES | CLOSING); i = 0; count = 0; in_error = 0 } /* V6 */
#ifdef LEFT_SILENTLY
       word = word - (word & READERS -> READER : 0)
#else
       tokens++ /* V7 */
#endif
    fi
}

/* A reader leaves, or a closer: rwlock_unlock. It gives `tokens` back. */

/* A token is neither counted nor in a place. */
#ifdef STRAY
#define not_held() tokens--
#else
#define not_held() assert(false)
#endif

inline leave_by_count() {
    if
    :: !(word & READERS) && !(word & LANES) -> not_held()
    :: !(word & READERS) && (word & LANES) -> searches = true
    :: (word & READERS) == READER && (word & WAITERS) -> calls = true
    :: (word & READERS) && !((word & READERS) == READER && (word & WAITERS)) -> word = word - READER; tokens--
    fi
}

/* rwlock_leave_and_call */
inline leave_as_last() {
    calls = false;
    if
    :: word & READERS -> call_line(READER); tokens--
#ifdef NOT_SEARCHED
    :: else -> not_held()
#else
    :: else /* again */
#endif
    fi
}

/* lanes_leave_by_any. If that finds none, the reader has missed one that has moved. */
inline leave_by_any() {
    searches = false;
    count = used;
    do
    :: atomic { i < count && !place[i] -> i++ }
    :: atomic { i < count && place[i] -> place[i] = false; tokens--; i = 0; count = 0; break }
    :: i == count ->
        i = 0; count = 0;
#ifdef SEARCHED_ONCE
        not_held();
#elif !defined(NOT_CLOSED)
        close();
#endif
        break
    od
}

inline leave(own) {
    do
    :: tokens == 0 -> break
    :: calls -> atomic { leave_as_last() }
    :: searches -> leave_by_any()
    :: atomic { tokens > 0 && !calls && !searches && !(word & LANES) -> leave_by_count() }
    :: tokens > 0 && !calls && !searches && (word & LANES) ->
        if
        :: atomic { place[own] -> place[own] = false; tokens-- } /* lanes_leave */
        :: !place[own] -> atomic { leave_by_count() }
        fi
    od
}

/* Waiting. */

#define others (came -> WAITERS : 0)

/* Only if the word is as it was: goes to `waiting`, or to `take`. */
inline join() {
    atomic {
        if
        :: word == seen -> line = line | bit(me); seen = 0; goto waiting
        :: else -> seen = 0; goto take
        fi
    }
}

#define my_variables                 \
    byte own, seen, now, head;       \
    byte i, count, in_error, tokens; \
    bool calls, searches, came

/* Reads once. `holds`: it is inside already, by a place of its own. Else the second reader shares the place of the
 * first, or has another, which lanes_new has added. */
proctype reader(byte me; bool holds) {
    my_variables;
    atomic {
        if
        :: holds -> own = me; goto reads
        :: !holds
        :: !holds && me > 0 -> own = 1; used = 2
        fi
    }
    if
    :: true
    :: atomic { /* vigil_rwlock_read_lock_for: it is counted first, and perhaps in error */
        word = word + READER;
        if
        :: word & WRITER -> tokens++
        :: else -> got_to_read(); goto reads
        fi
       }
       leave(own)
    fi;
    if
    :: lanes_are_open /* R1 */
    :: !lanes_are_open -> goto take
    fi;
    if
    :: atomic { !place[own] -> place[own] = true } /* R2 */
    :: place[own] -> goto take
    fi;
    if
#ifdef NOT_CHECKED
    :: atomic { true -> got_to_read(); goto reads }
#else
    :: atomic { lanes_are_open -> got_to_read(); goto reads } /* R3 */
    :: !lanes_are_open
#endif
    fi;
    if
    :: atomic { place[own] -> place[own] = false } /* R4 */
    :: atomic { !place[own] -> got_to_read(); goto reads }
    fi;
take: /* rwlock_take: it is counted */
    atomic {
        if
        :: !(word & WRITER) -> word = (word + READER) | others; got_to_read(); goto reads
        :: else -> word = word | WAITERS; seen = word
        fi
    }
    join();
waiting:
    !(line & bit(me)) -> came = true; goto take;
reads:
    atomic {
        came = false; reading--; tokens++;
        if /* the thread that unlocks */
        :: own = 0
        :: own = 1
        :: own = ELSEWHERE
        fi;
        if
        :: true
        :: lanes_may_open -> word = word | LANES /* lanes_meet, but whether others read or not */
        fi
    }
    leave(own);
    atomic { own = 0; playing-- }
}

#ifdef TAKEN_WHILE_CLOSING
#define taken (word & (WRITER | READERS))
#else
#define taken (word & (WRITER | READERS | LANES))
#endif

#ifdef JOINED_UNCLOSED
#define must_close (lanes_must_close && !closed)
#else
#define must_close lanes_must_close
#endif

proctype writer(byte me) {
    my_variables;
    bool closed;
take: /* rwlock_look, rwlock_take */
    if
    :: must_close -> close(); leave(own); closed = true; goto take
    :: atomic { !must_close && !taken -> word = (word + WRITER) | others; got_to_write(); goto writes }
    :: !must_close && taken && !came -> goto over /* vigil_rwlock_write_trylock */
    :: atomic { !must_close && taken -> word = word | WAITERS; seen = word }
    fi;
    join();
waiting:
    !(line & bit(me)) -> came = true; goto take;
writes:
    atomic {
        came = false; writing--;
        if
        :: !(word & WAITERS) -> word = word - WRITER; goto over
        :: else
        fi
    }
    atomic { call_line(WRITER) }
over:
    playing--
}

#ifdef STRAY
/* Unlocks what no reader holds. */
proctype stray() {
    my_variables;
    tokens = 1;
    leave(own);
    playing--
}
#endif

#define play(p) playing++; run p

init {
    atomic {
#if defined(THREE_HOLDERS)
        used = 3; reading = 3; place[0] = true; place[1] = true; place[2] = true;
        play(reader(0, true)); play(reader(1, true)); play(reader(2, true));
        play(writer(3))
#elif defined(HOLDERS)
        used = 2; reading = 2; place[0] = true; place[1] = true;
        play(reader(0, true)); play(reader(1, true)); play(writer(2)); play(writer(3))
#elif defined(STRAY)
        play(stray()); play(writer(2)); play(writer(3))
#else
        play(reader(0, false)); play(reader(1, false)); play(writer(2)); play(writer(3))
#endif
    }
    playing == 0;
    assert(reading == 0 && writing == 0 && line == 0);
    assert(word == 0 || word == LANES);
    assert(!place[0] && !place[1] && !place[2] && !place[ELSEWHERE])
}
