/* SPDX-License-Identifier: MIT */
/*
 * The line of one word: src/lot/lot.h, src/lot/lot.c, src/lot/wait.c. Names in the comments are those of the C code.
 *
 * Three waiters wait for the value to change from OLD: a thread without a deadline, a thread with a deadline, and an
 * event loop's operation that may be cancelled. Two notifiers store NEW and notify, the first one waiter, the second
 * all of them. Then:
 *
 * - no waiter is left in line: one that is would make an invalid end state;
 * - each wait ends once, and the notifiers' results add up to the waits that ended OK;
 * - the bucket's word is zero again.
 *
 * A notifier's store stays in a store buffer until `memory` writes it, which may be late. A CAS waits for that, and
 * so does the fence N2.
 *
 * Broken on purpose, each to be caught: NO_FENCE, COMPARE_BEFORE_LOCK, COUNTED_TOO_LATE, COUNT_AFTER_TIMEOUT,
 * LEAVE_WITHOUT_LOOKING, WAKE_BEFORE_STATE.
 */
#define WAITERS 3
#define FOREVER 0 /* the waiters */
#define TIMED   1
#define ASYNC   2
#define NOTIFIERS 2

#define OLD 0
#define NEW 1

#define LOCKED 1 /* WORD_LOCKED, WORD_ONE */
#define ONE    2

mtype = { WAITING, ASLEEP, OK, GAVE_UP }; /* a slot's state; OK and what follows are outcomes */
#define decided(w) (state[w] == OK)

bool value;              /* the user's word: OLD or NEW */
bool buffered[NOTIFIERS]; /* stores of NEW that have not reached memory */
bool made;               /* lot->buckets */
byte bucket;             /* its word: the lock and the count */
byte line[WAITERS], length;
bool in_line[WAITERS];   /* slot->key != 0 */
mtype state[WAITERS];
bool parked[WAITERS];    /* in the kernel, prim_park */
byte ended, ok, answers; /* what the callers see */

inline bucket_find_and_lock() { /* word_lock; here a spin lock is enough */
    atomic { !(bucket & LOCKED) -> bucket = bucket | LOCKED }
}

inline bucket_unlock(joined) { /* word_unlock: the lock and the count in one CAS */
    bucket = (bucket & ~LOCKED) + (joined) * ONE
}

inline line_remove(w) {
    d_step {
        i = 0;
        do
        :: line[i] != w -> i++
        :: else -> break
        od;
        length--;
        do
        :: i < length -> line[i] = line[i + 1]; i++
        :: else -> break
        od;
        line[length] = 0; i = 0;
        in_line[w] = false
    }
}

inline lot_join(w) {
    made = true; /* W0 */
#ifdef COMPARE_BEFORE_LOCK
    equal = (value == OLD);
    bucket_find_and_lock();
#else
    bucket_find_and_lock();          /* W1 */
    equal = (value == OLD); /* W2 */
#endif
    if
    :: equal -> /* W3 */
        d_step { line[length] = w; length++; in_line[w] = true };
#ifdef COUNTED_TOO_LATE
        bucket_unlock(0);
        bucket = bucket + ONE
#else
        bucket_unlock(1)
#endif
    :: else -> bucket_unlock(0)
    fi
}

inline lot_leave(w) {
    bucket_find_and_lock();
    left = in_line[w];
#ifdef LEAVE_WITHOUT_LOOKING
    left = true;
#endif
    if
    :: in_line[w] -> line_remove(w)
    :: else
    fi;
    bucket_unlock(-left)
}

inline end_wait(outcome) {
    d_step {
        ended++;
        if
        :: outcome == OK -> ok++
        :: else
        fi
    }
}

/* wait_in_line */
proctype thread(byte me) {
    bool equal, left;
    byte i;
    state[me] = WAITING;
    lot_join(me);
    if
    :: !equal -> goto not_equal
    :: else
    fi;

sleep: /* wait_sleep_until_decided; to spin first is to look at `state` a little later */
    atomic {
        if
        :: state[me] == WAITING -> state[me] = ASLEEP
        :: else
        fi
    }
    do
    :: decided(me) -> break
    :: else ->
        atomic { /* prim_park: the kernel compares once more */
            if
            :: state[me] == ASLEEP -> parked[me] = true
            :: else
            fi
        }
        if
        :: !parked[me]
        :: me == TIMED && !left -> parked[me] = false; goto deadline
        fi
    od;
    goto over;

deadline:
    lot_leave(me);
    if
    :: left -> end_wait(GAVE_UP); goto done
    :: else
    fi;
#ifdef COUNT_AFTER_TIMEOUT
    end_wait(GAVE_UP); goto done;
#endif
    left = true; /* too late: from here on without a deadline */
    goto sleep;

not_equal:
    end_wait(GAVE_UP); goto done;
over:
    assert(!in_line[me]);
    end_wait(OK);
done:
    skip
}

/* async_wait, and vigil_cancel at any time */
proctype operation(byte me) {
    bool equal, left, cancelled;
    byte i;
    state[me] = WAITING;
    lot_join(me);
    if
    :: !equal -> end_wait(GAVE_UP)
    :: else ->
        do
        :: decided(me) -> end_wait(OK); break /* its mail */
        :: !cancelled ->
            cancelled = true;
            lot_leave(me);
            if
            :: left -> end_wait(GAVE_UP); break /* agent_end */
            :: else                             /* VIGIL_ETOOLATE: the mail will come */
            fi
        od
    fi
}

inline wake_thread() {
    assert(state[w] == WAITING || state[w] == ASLEEP); /* not decided before */
#ifdef WAKE_BEFORE_STATE
    parked[w] = false;
    state[w] = OK
#else
    d_step { asleep = (state[w] == ASLEEP); state[w] = OK }; /* prim_exchange_acq_rel */
    if
    :: asleep -> parked[w] = false /* prim_wake */
    :: else
    fi
#endif
}

/* The caller's store, and vigil_notify */
proctype notifier(byte me; byte most) {
    byte i, taken, woken, w;
    bool asleep;
    byte wakes[WAITERS];
    buffered[me] = true; /* N1 */
#ifndef NO_FENCE
    !buffered[me];       /* N2 */
#endif
    if
    :: !made || bucket == 0 -> goto done /* N3: lot_private_if_used, lot_occupied */
    :: else
    fi;

    !buffered[me];
    bucket_find_and_lock(); /* lot_take */
    do
    :: taken < most && length > 0 ->
        w = line[0];
        line_remove(w);
        wakes[taken] = w;
        taken++;
        if
        :: w == ASYNC -> assert(state[w] == WAITING); state[w] = OK /* add_mail, push_mail */
        :: else                                                     /* add_thread */
        fi
    :: else -> break
    od;
    bucket_unlock(-taken);
    answers = answers + taken;
    do /* wake_all */
    :: woken < taken ->
        w = wakes[woken];
        woken++;
        if
        :: w == ASYNC
        :: else -> wake_thread()
        fi
    :: else -> break
    od;
done:
    skip
}

/* Writes what is buffered, at some time. */
active proctype memory() {
end:
    do
    :: d_step { buffered[0] -> value = NEW; buffered[0] = false }
    :: d_step { buffered[1] -> value = NEW; buffered[1] = false }
    od
}

init {
    atomic {
        run thread(FOREVER);
        run thread(TIMED);
        run operation(ASYNC);
        run notifier(0, 1);
        run notifier(1, WAITERS)
    }
    _nr_pr == 2; /* all processes but memory and init have ended */
    assert(ended == WAITERS);
    assert(answers == ok);
    assert(bucket == 0 && length == 0)
}
