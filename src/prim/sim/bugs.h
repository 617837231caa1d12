/* SPDX-License-Identifier: MIT */
/*
 * bugs.h - the planted bugs: mistakes that the library's code makes on purpose when the simulator is told to.
 *
 * Where one belongs the library says BUG(name). In the simulator that is a comparison with sim_bug, everywhere else
 * it is 0. A test that finds nothing wrong proves something only if it finds each of these.
 */
#ifndef VIGIL_SIM_BUGS_H
#define VIGIL_SIM_BUGS_H

/* X(name, "what goes wrong") */
#define SIM_BUGS(X)                                                                                                    \
    X(compare_before_lock, "wait compares the word only before it takes the lock")                                     \
    X(missing_fence, "notify reads the count of waiters without a fence before it")                                    \
    X(lifo, "the youngest waiter is served first")                                                                     \
    X(counted_twice, "a notified waiter stays in line and is counted again")                                           \
    X(timeout_counted, "a waiter that timed out is counted as notified")                                               \
    X(cancel_loses, "cancel succeeds on a waiter that was notified already")                                           \
    X(spurious_return, "a wake-up without a reason ends the wait")                                                     \
    X(early_deadline, "a deadline fires a nanosecond early")                                                           \
    X(wrong_line, "any line of a bucket is taken for the right one")                                                   \
    X(lost_mail, "two that drop mail at once lose one of the letters")                                                 \
    X(sleep_without_check, "an agent falls asleep without looking into its mailbox again")                             \
    X(double_ring, "a bell is rung that has not been answered yet")                                                    \
    X(release_forgotten, "a woken thread does not see what its notifier wrote")                                        \
    X(forget_misses, "forget leaves out a word")                                                                       \
    X(bell_lost, "an agent says that it took the ring before it does")                                                 \
    X(mail_not_turned, "an agent reads its mail newest first")                                                         \
    X(wake_before_state, "a thread is woken before its slot says why")                                                 \
    X(first_wait_missed, "a notifier may not yet see that anybody has ever waited")                                    \
    X(taken_as_alone, "who has waited for a mutex takes it as if nobody were behind him")                              \
    X(taken_without_asking, "a reserved mutex is taken by a store, not by compare and exchange")                       \
    X(not_contended, "who was called and found the mutex locked waits again without saying so in the word")            \
    X(loop_relied_upon, "unlock calls an event loop alone, as if it were sure to come")                                \
    X(freed_outside, "unlock changes the word before it takes the lock of the line")                                   \
    X(guard_leaves, "who guards a reservation gives up at his deadline without using it")                              \
    X(orphan_dropped, "a call for a request that is gone by then is not passed on")

extern unsigned sim_bug; /* the one that is switched on */

enum sim_bug_number {
    BUG_none,
#define X(name, text) BUG_##name,
    SIM_BUGS(X)
#undef X
        SIM_BUG_COUNT
};

#endif
