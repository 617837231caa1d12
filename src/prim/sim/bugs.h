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
    X(sem_released_outside, "permits are released without a look at the line, though somebody may wait")               \
    X(sem_not_further, "who takes reserved permits leaves those in line who waited because of that")                   \
    X(sem_left_silently, "who wanted many permits leaves the line without calling those behind him")                   \
    X(sem_counts_on_loops, "permits are counted out to event loops, as if they were sure to come")                     \
    X(sem_saved_in_vain, "newcomers take permits that are saved for the head of the line")                             \
    X(rwlock_left_silently, "a writer leaves the line without calling the readers behind it")                          \
    X(rwlock_counts_on_loops, "nobody is called behind an event loop, as if it were sure to come")                     \
    X(rwlock_not_further, "a reader that was called does not look whether others have to be")                          \
    X(rwlock_readers_pass, "new readers do not mind that a writer waits")                                              \
    X(rwlock_downgrade_in_two, "downgrade unlocks and locks again")                                                    \
    X(rwlock_counted_in_error, "a reader that has to wait stays counted")                                              \
    X(sem_saved_for_another, "who joins before him for whom permits are saved waits as long as that one")              \
    X(rwlock_saved_for_another, "a reader who joins before the writer for whom the lock is saved is not let in")       \
    X(turn_missed, "a loop's next request for a fair mutex is in no line while it serves the one before")              \
    X(passed_for_ever, "newcomers may pass one who has been called by as often as they like")                          \
    X(unlock_unordered, "the next one does not see what the holder of a contended mutex wrote")                        \
    X(taken_as_alone, "who has waited for a mutex takes it as if nobody were behind him")                              \
    X(taken_without_asking, "a reserved mutex is taken by a store, not by compare and exchange")                       \
    X(not_contended, "who was called and found the mutex locked waits again without saying so in the word")            \
    X(loop_relied_upon, "unlock calls an event loop alone, as if it were sure to come")                                \
    X(freed_outside, "unlock changes the word before it takes the lock of the line")                                   \
    X(guard_leaves, "who guards a reservation gives up at his deadline without using it")                              \
    X(nobody_looks, "who guards a reservation sleeps on when nobody comes for it")                                     \
    X(orphan_dropped, "a call for a request that is gone by then is not passed on")                                      \
    X(released_before_joining, "waiting on a condition releases the mutex before it is in line")                       \
    X(moved_and_left, "a signal moves a waiter to the line of a mutex that is free, and leaves it there")              \
    X(signal_dropped, "a signal for a request that is cancelled while it waits for the mutex is lost")                 \
    X(round_ends_outside, "a barrier's round ends before the lock of the line is taken")                               \
    X(arrival_unordered, "what was done before arriving at a barrier is not seen by the others")                       \
    X(arrival_stays, "a deadline leaves its arrival behind")                                                           \
    X(taken_back_late, "an arrival is taken back though its round is over")                                            \
    X(cancelled_when_over, "an arrival at a barrier is cancelled though its round is over")                            \
    X(forgotten_taken_back, "an arrival is taken back from a barrier that has been forgotten")                         \
    X(awaited_missed, "a once is said to be done after looking whether anybody waits, not in one step") \
    X(once_unordered, "what a once's function did is not seen by those who find it done")                              \
    X(once_relied_on_one, "a once that failed wakes one, as if he were sure to come")                                  \
    X(failure_taken_as_done, "an event loop that waits for a once takes a failure for its being done")                 \
    X(deadline_forgotten, "an event loop that has to wait again for a once has no deadline any more")                  \
    X(mail_forgotten, "what an agent of another process is told is not put into its mail")                             \
    X(mail_not_missed, "nobody looks for what one who died has told an agent and not put into its mail")               \
    X(wake_not_missed, "nobody wakes those whom one who died has told and not woken")                                  \
    X(no_revival, "after a death nobody looks at the lines of the locks")                                              \
    X(repair_drops, "the repair of a bucket leaves somebody out")                                                      \
    X(repair_in_any_order, "the repair of a bucket forgets who came first")                                            \
    X(taken_over_as_it_is, "a dead process's bucket is taken over without repair")                                     \
    X(pass_on_forgotten, "a notification that a dead process had and did not use is lost")                             \
    X(dead_stays_linked, "a dead process's slot is given back while it is in line")                                    \
    X(number_not_checked, "slots are taken for a dead process's without looking whose they are")                       \
    X(stopped_is_dead, "a member is struck off although its lock is held")                                             \
    X(hold_not_redone, "what a dead process was about to do with a lock's word is left half done")                     \
    X(hold_kept, "what a dead process held of a lock is not given back")                                               \
    X(handed_on_as_used, "a notification counts as used before its event loop has heard of it")                        \
    X(barrier_half_told, "nobody tells those whom one who died in the middle of it has not told that the round is over")\
    X(once_runner_kept, "nobody looks whether who runs a once's function is dead")                                     \
    X(nobody_sweeps, "who has seen that somebody is gone does not clear away what he left")                            \
    X(record_overlooked, "others do not look at a new member's record")                                                 \
    X(event_early, "what has happened is said to be written down before it is")                                        \
    X(watcher_stopped_late, "a watcher goes to sleep though it is to end")                                             \
    X(dead_holder_kept, "nobody looks whether the holder of a mutex is dead")

extern unsigned sim_bug; /* the one that is switched on */

enum sim_bug_number {
    BUG_none,
#define X(name, text) BUG_##name,
    SIM_BUGS(X)
#undef X
        SIM_BUG_COUNT
};

#endif
