/* SPDX-License-Identifier: MIT */
/*
 * The mutex: src/sync/lock.h, lock.c, mutex.c, request.c; src/recovery/guard.h. Names in the comments are those of the
 * C code.
 *
 * Threads lock and unlock it; one has a deadline. Event loops have requests, which may be cancelled; a loop may stop
 * for good while it waits, in line or called, or its thread may block on the same mutex meanwhile. The keeper guards
 * calls to loops: if others are in line, it calls the next waiter after a while. A watcher waits for a change of the
 * word, as by vigil_wait32, and never takes the mutex. Then:
 *
 * - at most one player holds the mutex;
 * - a player that wants the mutex gets it, or gives up by itself: one that sleeps for ever makes an invalid end state.
 *   Only loops that have stopped may be left over;
 * - in the end it is unlocked, with no thread coming, or reserved for a loop that has stopped;
 * - if it is fair, and as long as no player's patience has ended, the first of the waiters gets it.
 *
 * No state comes back (check.sh looks for cycles) unless some player's patience ends again and again, which takes
 * time. So every run gets to such an end, in whatever order the players are scheduled.
 *
 * What happens under the bucket's lock is one step: line.pml covers that. Elsewhere each load and each CAS of the
 * word is a step of its own. There is no clock: patience and deadlines may end at any time, and each unlock may find
 * that the head has waited for long enough to be entitled, or that it has not.
 *
 * Unless it is fair, a holder may release it by a store (U1 and U2 in src/lot/lot.h): it loads the word, loads the
 * bucket's word, stores, and loads the bucket's word again. Other players see the store when it leaves the holder's
 * store buffer. The steps of a waiter that needs the fence everywhere are separate, too: W1, WF, and W2 with W3. A
 * holder may also release the mutex by CAS where a store would do, as without membarrier.
 *
 * The players: STOPPING, CROWD, OWN_REQUEST, PATIENT or WATCHED, see init. In the last two no patience with a
 * reservation ends and no loop stops: they catch what would otherwise only cost time. FAIR: the same for a fair mutex,
 * but without a watcher.
 *
 * Broken on purpose, each to be caught: UNGUARDED, PASS_UNGUARDED, FREE_OUTSIDE, JOIN_BLINDLY, TAKE_AS_LOCKED,
 * WAIT_AT_LOCKED, GIVE_UP_BLINDLY, GUARD_FOREVER, GUARD_AWAKE, TAKE_BY_STORE, MARK_BY_STORE, DROP_CALL, LOOP_IS_COMING,
 * COMING_STAYS, COUNT_ALWAYS; of the release by a store, FENCE_FORGOTTEN, FENCE_BEFORE_LOCK, STORED_UNSAID,
 * UNLOCKED_UNSEEN, NEW_HOLDER_UNTOLD, STORE_OVER_MARK; and if it is fair, CALL_MORE.
 */
#define FREE      0 /* the word: one of these ... */
#define LOCKED    1
#define CONTENDED 2
#define RESERVED  3
#define COMING    4 /* ... with or without this: a thread that has been called has yet to come */
#define UNCOUNTED 8 /* with COMING: it was called beside a watcher, and passes of it are not counted */
#define CAME      (COMING | UNCOUNTED)
#define STORED    16 /* with CONTENDED: the holder has found no waiters, and may store */
#define state(w)  ((w) & 3)

/* mutex_contended: the word after another player than the holder has said that it is contended */
#ifdef STORED_UNSAID
#define contended(w, keeps) (((w) & (keeps)) | CONTENDED)
#else
#define contended(w, keeps) (((w) & (keeps)) | CONTENDED | ((w) == LOCKED -> STORED : (w) & STORED))
#endif

#define NEWCOMER 0 /* standing */
#define BESIDE   1
#define CALLED   2

#define PLAYERS 4
#if defined(CROWD) || defined(WATCHED)
#define LOOPS 1 /* the first players; the others are threads, or the watcher */
#else
#define LOOPS 2
#endif
#define is_loop(p) ((p) < LOOPS)
#ifdef WATCHED
#define is_watcher(p) ((p) == 3)
#else
#define is_watcher(p) false
#endif
#define is_thread(p) (!is_loop(p) && !is_watcher(p))

byte word;
byte storing; /* not 0: this player, less 1, has stored FREE, and others do not see that yet */
byte locked;  /* not 0: this player, less 1, has the bucket locked */
byte arrived[PLAYERS], arrivals; /* had to wait and are not done, in order: slot->began_ns. Of these players ... */
bool in_line[PLAYERS];           /* ... these are in line. The others are awake, or their calls are on their way */
byte standing[PLAYERS];
bool ended[PLAYERS];
bool guarded; /* guard_note: a loop has been called, and others are in line */
byte holders, playing, stopped;
bool out_of_order; /* a fair mutex has been declined in place of a player that did not come */

#if defined(PATIENT) || defined(WATCHED)
#define loop_stops false
#define reservation_expires false /* mutex_may_pass, for the keeper */
#else
#define loop_stops true
#define reservation_expires true
#endif

/* patience_ns, of a player in line that has joined at a reservation */
#if defined(PATIENT) || defined(WATCHED) || defined(GUARD_FOREVER)
#define patience_ends false
#else
#define patience_ends (seen == RESERVED)
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

#define my_store_waits (storing == me + 1)

/* The store becomes visible, if `waits`. Its player has seen LOCKED: others can only have marked the word since. */
inline store_lands(waits) {
    if
    :: waits ->
        assert((word & ~STORED) == LOCKED || (word & ~STORED) == CONTENDED);
        word = FREE;
        storing = 0
    :: else
    fi
}

proctype memory() {
end:
    do
    :: d_step { storing != 0 -> store_lands(true) }
    od
}

/* Taking. */

#define waited (standing[me] != NEWCOMER)

#ifdef COMING_STAYS
#define kept (seen & CAME)
#else
#define kept (waited -> 0 : seen & CAME)
#endif

#ifdef COMING_STAYS
#define marked contended(seen, CAME)
#else
#define marked contended(seen, (waited -> 0 : CAME))
#endif

#ifdef WAIT_AT_LOCKED
#define to_mark (state(seen) != RESERVED && seen != marked && !waited)
#else
#define to_mark (state(seen) != RESERVED && seen != marked)
#endif
#define to_take (state(seen) == FREE || (seen == RESERVED && standing[me] == CALLED))

#if defined(TAKE_BY_STORE)
#define cas_succeeds (word == seen || seen == RESERVED)
#elif defined(MARK_BY_STORE)
#define cas_succeeds (word == seen || state(seen) == LOCKED)
#else
#define cas_succeeds (word == seen)
#endif

#ifdef TAKE_AS_LOCKED
#define becomes (kept | (state(seen) == FREE -> LOCKED : CONTENDED))
#else
#define becomes (kept | (state(seen) == FREE && !waited -> LOCKED : CONTENDED))
#endif

#ifdef FAIR
#define my_turn (out_of_order || arrivals == 0 || arrived[0] == me)
#else
#define my_turn true
#endif

/* Either we have `got` it, or `seen` is the value that the word must still have when we join the line. */
inline take() {
    do
    :: atomic {
        seen = (my_store_waits -> FREE : word);
#ifndef FAIR
        if
        :: state(seen) != FREE -> arrive() /* the line is in this order, not in that of joining */
        :: else
        fi;
#endif
        if
        :: to_take || to_mark
        :: else -> break
        fi
       }
       atomic { /* a CAS */
        store_lands(my_store_waits);
        if
        :: !cas_succeeds /* again */
        :: to_take && cas_succeeds ->
            word = becomes;
            got = true;
            holders++;
            assert(holders == 1);
            assert(my_turn);
            depart();
            break
        :: !to_take && to_mark && cas_succeeds -> seen = marked; word = seen; break
#ifdef COUNT_ALWAYS
        :: state(seen) == FREE && (seen & COMING) && !waited && cas_succeeds ->
#else
        :: seen == (FREE | COMING) && !waited && cas_succeeds -> /* it has been passed often enough */
#endif
            seen = RESERVED;
            word = seen;
            arrive();
            break
        fi
       }
    od
}

#define nobody_in_line (!in_line[0] && !in_line[1] && !in_line[2] && !in_line[3])
#define no_lock_waits  (!in_line[0] && !in_line[1] && !in_line[2] && (!in_line[3] || is_watcher(3)))

#if defined(FENCE_FORGOTTEN) || defined(FAIR)
#define announces false
#else
#define announces (no_lock_waits && (seen == LOCKED || (seen & STORED))) /* lot_join_in_order, mutex_stored */
#endif

/* W2 and W3 */
inline compare_and_join() {
    d_step {
#if defined(JOIN_BLINDLY)
        in_line[me] = true;
#elif defined(GUARD_AWAKE)
        in_line[me] = (word == seen && word != RESERVED);
#else
        in_line[me] = (word == seen);
#endif
        seen = (in_line[me] && seen == RESERVED -> RESERVED : 0) /* other values do not matter any more */
    }
#ifdef FAIR
    if
    :: in_line[me] -> arrive()
    :: else
    fi
#endif
}

/* lot_join_in_order: goes to `waiting`, or to `again` if the word has changed. (If the head is a watcher, and others
 * are behind it, the library has a fence that is left out here.) */
inline join() {
#ifdef FENCE_BEFORE_LOCK
    d_step { !locked -> store_lands(storing != 0) }
#endif
    atomic {
        !locked ->
        if
        :: announces -> locked = me + 1 /* W1 */
        :: else ->
            compare_and_join();
            if
            :: in_line[me] -> goto waiting
            :: else -> goto again
            fi
        fi
    }
#ifndef FENCE_BEFORE_LOCK
    d_step { store_lands(storing != 0) } /* WF */
#endif
    atomic {
        compare_and_join();
        locked = 0;
        if
        :: in_line[me] -> goto waiting
        :: else -> goto again
        fi
    }
}

/* Releasing. */

/* Whether the next in line stays there: mutex_call. Of the threads that a condition has moved there, `most` are
 * called; which these are is not modelled, and so `most` may be any number. */
#if defined(FAIR) && defined(CALL_MORE)
#define enough_called (threads > 0)
#elif defined(FAIR)
#define enough_called (threads > 0 || loop_called)
#else
#define enough_called (threads == most || loop_called || (threads > 0 && !is_thread(arrived[i])))
#endif
#define stays (enough_called && !(loop_called && is_watcher(arrived[i])))

inline choose_most() {
    if
    :: most = 1
    :: most = 2
    :: most = 3 /* BROADCAST_AT_ONCE */
    fi
}

/* Call the head of the line, and only that, unless it is one of several threads that a condition has moved there; a
 * watcher does not count. `first`: the standing of the first that is called. */
inline call_some(first, is_release) {
    d_step {
        watched = false;
        beside = (first == BESIDE);
        do
        :: i < arrivals && !in_line[arrived[i]] -> i++
        :: i < arrivals && in_line[arrived[i]] && stays -> break
        :: i < arrivals && in_line[arrived[i]] && !stays ->
            in_line[arrived[i]] = false;
            watched = watched || (is_watcher(arrived[i]) && threads == 0 && !loop_called);
            standing[arrived[i]] = (is_watcher(arrived[i]) -> NEWCOMER : (beside -> BESIDE : CALLED));
            threads = threads + is_thread(arrived[i]);
            loop_called = loop_called || is_loop(arrived[i]);
            beside = true;
            i++
        :: i == arrivals -> break
        od;
#if defined(PASS_UNGUARDED)
        guarded = guarded || (loop_called && !nobody_in_line && is_release);
#elif !defined(UNGUARDED)
        guarded = guarded || (loop_called && !nobody_in_line); /* in line_call */
#endif
        i = 0; most = 0; beside = false
    }
}

#ifdef LOOP_IS_COMING
#define somebody_comes (threads > 0 || loop_called)
#else
#define somebody_comes (threads > 0)
#endif
#define unreserved (FREE | (somebody_comes -> COMING | (watched -> UNCOUNTED : 0) : 0))

#define call_ends() threads = 0; loop_called = false; watched = false

/* mutex_release_held */
inline unlock_slowly() {
    if
    :: atomic { state(word) == LOCKED || (word & COMING) -> word = word & CAME; holders--; got = false }
    :: atomic {
        !locked && state(word) != LOCKED && !(word & COMING) -> /* and only we can change that */
        assert((word & ~STORED) == CONTENDED);
        holders--; got = false;
        if
#ifdef FREE_OUTSIDE
        :: nobody_in_line -> unfinished = true
#else
        :: nobody_in_line -> word = FREE
#endif
#ifndef FAIR
        :: !nobody_in_line ->
            choose_most();
            call_some(CALLED, true);
            word = unreserved
#endif
        :: !nobody_in_line -> /* the head is entitled, or the mutex is fair */
            most = 1;
            call_some(CALLED, true);
            word = (watched -> unreserved : RESERVED)
        fi;
        call_ends()
       }
#ifdef FREE_OUTSIDE
       d_step {
        if
        :: unfinished -> word = FREE; unfinished = false
        :: else
        fi
       }
#endif
    fi
}

#define bucket_is_zero (!locked && nobody_in_line)

/* vigil__mutex_unlocked: mutex_calling, that is mutex_must_call, if a waiter is in line. To lock the bucket is a fence
 * for the caller. */
inline call_line() {
    atomic {
        !locked ->
        store_lands(my_store_waits);
        if
        :: nobody_in_line
#ifdef NEW_HOLDER_UNTOLD
        :: !nobody_in_line && (state(word) == LOCKED || state(word) == CONTENDED)
#else
        :: !nobody_in_line && (state(word) == LOCKED || state(word) == CONTENDED) -> word = contended(word, CAME)
#endif
        :: !nobody_in_line && (state(word) == FREE || word == RESERVED) ->
            choose_most();
            call_some(BESIDE, true)
        fi;
        call_ends()
    }
}

#ifdef STORE_OVER_MARK
#define may_store (word == LOCKED || word == CONTENDED)
#else
#define may_store (word == LOCKED)
#endif

#ifdef FAIR
#define unlock() unlock_slowly()
#else
/* vigil_mutex_unlock. The holder may use CAS though it could store: that is how it is without membarrier. */
inline unlock() {
    if
    :: unlock_slowly()
    :: may_store ->
        if
        :: unlock_slowly()
        :: bucket_is_zero ->
            d_step { storing = me + 1; holders--; got = false } /* U1 */
#ifndef UNLOCKED_UNSEEN
            if /* U2 */
            :: bucket_is_zero
            :: !bucket_is_zero -> call_line()
            fi
#endif
        fi
    fi
}
#endif

/* In place of a player that does not come, or for oneself. */
inline decline() {
    if
    :: word != RESERVED
    :: atomic { word == RESERVED -> word = CONTENDED; holders++; assert(holders == 1) }
       unlock_slowly()
    fi
}

/* lock_recheck: without leaving the line. Meanwhile we may have been called. */
inline look() {
#ifdef FAIR
    out_of_order = true;
#endif
    decline();
    seen = (word == RESERVED -> RESERVED : 0)
}

/* guard_pass, and recovery_pass_line: mutex_may_pass, then mutex_must_call and mutex_settle. */
proctype keeper() {
    byte i, most, threads;
    bool loop_called, watched, beside;
end:
    do
    :: atomic { guarded && (word != RESERVED || reservation_expires) -> guarded = false }
progress:
        atomic {
            !locked ->
            if
            :: no_lock_waits
            :: !no_lock_waits && word == RESERVED && !reservation_expires -> guarded = true
            :: !no_lock_waits && (state(word) == LOCKED || state(word) == CONTENDED) -> word = contended(word, CAME)
            :: !no_lock_waits && (state(word) == FREE || (word == RESERVED && reservation_expires)) ->
#ifdef FAIR
                out_of_order = out_of_order || word == RESERVED;
                word = RESERVED;
                call_some(CALLED, false)
#else
                word = (word == RESERVED -> FREE : word);
                choose_most();
                call_some(BESIDE, false)
#endif
            fi;
            call_ends()
        }
    od
}

/* vigil_mutex_lock_for, and vigil_mutex_unlock if that got it */
proctype thread(byte me, rounds; bool timed) {
    byte seen, i, most, threads;
    bool got, loop_called, watched, beside, unfinished;
again:
    take();
    if
    :: got -> unlock(); goto over
    :: else
    fi;
    join();
waiting:
    if
    :: !in_line[me] -> goto again
    :: patience_ends ->
progress:
        look(); goto waiting
#ifdef GIVE_UP_BLINDLY
    :: atomic { timed -> in_line[me] = false; depart() }
#else
    :: atomic { timed && in_line[me] && !locked -> in_line[me] = false; depart() }
#endif
    fi;
over:
    atomic {
        rounds--;
        if
        :: rounds > 0 -> goto again
        :: else -> ended[me] = true; playing--
        fi
    }
}

/* vigil_mutex_execute with a callback that does nothing. A loop that can cancel or stop can always end its wait: a
 * steady loop does neither, so it must be called. `own`: the loop's thread, if that may block meanwhile. */
proctype loop(byte me, requests, own; bool steady) {
    byte seen, i, most, threads;
    bool got, loop_called, watched, beside, unfinished;
again:
    take();
    if
    :: got -> unlock(); goto over
    :: else
    fi;
    join();
waiting:
    if
    :: !in_line[me] -> goto again
    :: patience_ends ->
progress:
        look(); goto waiting
    :: loop_stops && !steady -> stopped++; goto stop
    :: own -> atomic { playing++; run thread(own, 1, false) } ended[own]; own = 0; goto waiting
    :: atomic { !steady && in_line[me] && !locked -> in_line[me] = false; depart() } /* cancelled: give_up_place */
    :: atomic { !steady && !in_line[me] -> depart() } /* its request is gone: the call is dropped */
#ifndef DROP_CALL
       decline()
#endif
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

/* vigil_wait32 on the word, with a deadline, if it is contended */
proctype watcher(byte me) {
    byte seen, i;
    atomic {
        !locked ->
        if
        :: state(word) == CONTENDED -> in_line[me] = true; arrive()
        :: goto over
        fi
    }
    if
    :: !in_line[me]
    :: atomic { in_line[me] && !locked -> in_line[me] = false } /* its deadline */
    fi;
over:
    atomic { depart(); playing-- }
}

#define play(p) playing++; run p

init {
    atomic {
        run keeper();
        run memory();
#if defined(CROWD)
        play(loop(0, 1, 0, false)); play(thread(1, 1, true)); play(thread(2, 1, false)); play(thread(3, 1, false))
#elif defined(OWN_REQUEST)
        play(loop(0, 1, 3, true)); play(loop(1, 1, 0, false)); play(thread(2, 2, true))
#elif defined(WATCHED)
        play(loop(0, 1, 0, false)); play(thread(1, 1, true)); play(thread(2, 1, false)); play(watcher(3))
#elif defined(PATIENT)
        play(loop(0, 2, 0, false)); play(loop(1, 1, 0, true)); play(thread(2, 1, true)); play(thread(3, 1, false))
#else
        play(loop(0, 1, 0, false)); play(loop(1, 1, 0, false)); play(thread(2, 1, true)); play(thread(3, 1, false))
#endif
    }
    playing == 0 && storing == 0;
    assert(holders == 0);
    assert(word == FREE || (word == RESERVED && stopped > 0))
}
