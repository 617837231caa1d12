/* SPDX-License-Identifier: MIT */
/*
 * bugs.h - the planted bugs: mistakes that the library's code makes on purpose when the simulator is told to.
 *
 * Where one belongs the library says BUG(name). In the simulator that is a comparison with sim_bug, everywhere else
 * it is 0. A test that finds nothing wrong proves something only if it finds each of these.
 */
#ifndef VIGIL_SIM_BUGS_H
#define VIGIL_SIM_BUGS_H

/* X(the part of the simulator's scenarios that is to find it, name, "what goes wrong") */
#define SIM_BUGS(X)                                                                                                    \
    X(blocking, compare_before_lock, "wait compares the word only before it takes the lock")                           \
    X(blocking, missing_fence, "notify reads the count of waiters without a fence before it")                          \
    X(blocking, lifo, "the youngest waiter is served first")                                                           \
    X(blocking, counted_twice, "a notified waiter stays in line and is counted again")                                 \
    X(blocking, timeout_counted, "a waiter that timed out is counted as notified")                                     \
    X(asynchronous, cancel_loses, "cancel succeeds on a waiter that was notified already")                             \
    X(blocking, spurious_return, "a wake-up without a reason ends the wait")                                           \
    X(blocking, early_deadline, "a deadline fires a nanosecond early")                                                 \
    X(blocking, deadline_drifts, "a deadline is converted to a timeout and back")                                      \
    X(blocking, wrong_line, "any line of a bucket is taken for the right one")                                         \
    X(asynchronous, lost_mail, "two that drop mail at once lose one of the letters")                                   \
    X(asynchronous, sleep_without_check, "an agent falls asleep without looking into its mailbox again")               \
    X(asynchronous, double_ring, "a bell is rung that has not been answered yet")                                      \
    X(blocking, release_forgotten, "a woken thread does not see what its notifier wrote")                              \
    X(asynchronous, forget_misses, "forget leaves out a word")                                                         \
    X(asynchronous, bell_lost, "an agent says that it took the ring before it does")                                   \
    X(asynchronous, mail_not_turned, "an agent reads its mail newest first")                                           \
    X(blocking, wake_before_state, "a thread is woken before its slot says why")                                       \
    X(interrupt, interrupt_not_slept_on, "a thread that sleeps is not woken by an interruption")                         \
    X(interrupt, interrupt_decides, "an interrupted thread returns without leaving the line")                            \
    X(interrupt, late_waiter_interrupted, "a wait on a condition that is late returns without the mutex")               \
    X(interrupt, interrupt_kept, "one interruption ends more than one call")                                             \
    X(blocking, first_wait_missed, "a notifier may not yet see that anybody has ever waited")                          \
    X(signals, critical_late, "a thread says that it is in a critical section after it has taken the lock")            \
    X(signals, deferred_missed, "a thread looks for what handlers deferred before it has left its critical section")   \
    X(signals, wake_collected, "an agent that has been woken, and has mail, sees the mail alone")                       \
    X(signals, deferred_too_long, "what a handler deferred waits until a stopped process goes on")                     \
    X(signals, deferred_forgotten, "what a handler deferred is never done")                                            \
    X(signals, deferred_overwritten, "a handler that interrupts another one defers the same, and that is lost")        \
    X(sem, sem_released_outside, "permits are released without a look at the line, though somebody may wait")          \
    X(sem, sem_not_further, "who takes reserved permits leaves those in line who waited because of that")              \
    X(sem, sem_left_silently, "who wanted many permits leaves the line without calling those behind him")              \
    X(sem, sem_saved_in_vain, "newcomers take permits that are saved for the head of the line")                        \
    X(rwlock, rwlock_left_silently, "a writer leaves the line without calling the readers behind it")                  \
    X(rwlock, rwlock_comes_silently, "a thread that was called does not say that others may wait")                     \
    X(rwlock, rwlock_not_further, "a reader that was called does not look whether others have to be")                  \
    X(rwlock, rwlock_never_saved, "new readers pass a writer for as long as others read")                              \
    X(rwlock, rwlock_readers_pass, "new readers do not mind that a writer waits")                                      \
    X(rwlock, rwlock_downgrade_in_two, "downgrade unlocks and locks again")                                            \
    X(rwlock, rwlock_counted_in_error, "a reader that has to wait stays counted")                                      \
    X(sem, sem_saved_for_another, "who joins before him for whom permits are saved waits as long as that one")         \
    X(rwlock, rwlock_saved_for_another, "a reader who joins before him for whom the lock is saved is not let in")      \
    X(rwlock, rwlock_pass_ignored, "readers wait behind a writer although the lock lets readers pass")                 \
    X(rwlock, rwlock_writer_forgotten, "where readers pass, the last of them does not call the writer that waits")     \
    X(rwlock, rwlock_readers_left, "where readers pass, readers behind a writer wait though the lock is read")         \
    X(mutex, turn_missed, "a loop's next request for a fair mutex is in no line while it serves the one before")       \
    X(mutex, passed_for_ever, "newcomers may pass one who has been called by as often as they like")                   \
    X(mutex, unlock_unordered, "the next one does not see what the holder of a contended mutex wrote")                 \
    X(mutex, taken_as_alone, "who has waited for a mutex takes it as if nobody were behind him")                       \
    X(mutex, taken_without_asking, "a reserved mutex is taken by a store, not by compare and exchange")                \
    X(mutex, not_contended, "who was called and found the mutex locked waits again without saying so in the word")     \
    X(mutex, loop_relied_upon, "nobody guards an event loop that has been called, as if it were sure to come")         \
    X(mutex, overflow_dropped, "calls to loops for which the table of guards has no room are not guarded")             \
    X(mutex, freed_outside, "unlock changes the word before it takes the lock of the line")                            \
    X(mutex, nobody_looks, "who guards a reservation sleeps on when nobody comes for it")                              \
    X(mutex, robust_left_silently, "a waiter is not called when the thread that holds a robust mutex ends")            \
    X(mutex, robust_not_told, "the next holder of a robust mutex is not told that a thread has ended with it")         \
    X(mutex, orphan_dropped, "a call for a request that is gone by then is not passed on")                             \
    X(cond, released_before_joining, "waiting on a condition releases the mutex before it is in line")                 \
    X(cond, moved_and_left, "a signal moves a waiter to the line of a mutex that is free, and leaves it there")        \
    X(cond, signal_dropped, "a signal for a request that is cancelled while it waits for the mutex is lost")           \
    X(cond, late_waiter_keeps, "a wait on a condition whose deadline has passed keeps the mutex")                      \
    X(cond, late_waiter_barges, "such a wait takes the mutex again before those that wait for it")                     \
    X(cond, called_beside_moved, "a release calls the waiter behind those that a condition has moved, too")            \
    X(cond, late_loop_keeps, "such a wait of an event loop keeps the mutex")                                           \
    X(barrier_once, round_ends_outside, "a barrier's round ends before the lock of the line is taken")                 \
    X(barrier_once, arrival_in_two_steps, "a party is counted at a barrier before it is in line")                      \
    X(barrier_once, arrival_stays, "a deadline leaves its arrival behind")                                             \
    X(barrier_once, taken_back_late, "an arrival is taken back though its round is over")                              \
    X(barrier_once, told_looks_again, "a party looks at the barrier after it has been told that the round is over")    \
    X(barrier_once, awaited_missed, "a once is said to be done after looking whether anybody waits, not in one step")  \
    X(barrier_once, once_unordered, "what a once's function did is not seen by those who find it done")                \
    X(barrier_once, once_relied_on_one, "a once that failed wakes one, as if he were sure to come")                    \
    X(barrier_once, failure_taken_as_done, "an event loop that waits for a once takes a failure for its being done")   \
    X(barrier_once, deadline_forgotten, "an event loop that has to wait again for a once has no deadline any more")    \
    X(shared, mail_forgotten, "what an agent of another process is told is not put into its mail")                     \
    X(shared, mail_not_missed, "nobody looks for what one who died has told an agent and not put into its mail")       \
    X(shared, home_unordered, "a keeper takes what a slot was told in an earlier wait for what it is told now")        \
    X(shared, wake_not_missed, "nobody wakes those whom one who died has told and not woken")                          \
    X(shared, no_revival, "after a death nobody looks at the lines of the locks")                                      \
    X(shared, repair_drops, "the repair of a bucket leaves somebody out")                                              \
    X(shared, repair_in_any_order, "the repair of a bucket forgets who came first")                                    \
    X(shared, taken_over_as_it_is, "a dead process's bucket is taken over without repair")                             \
    X(gifts, signal_noted_late, "a signalled thread is moved before its slot says that it has a signal")               \
    X(gifts, half_told_stays, "the repair leaves a waiter in line that has been given a notification")                 \
    X(gifts, heir_chosen_again, "when one is killed who passes a gift on, the next one chooses another heir")          \
    X(gifts, passed_on_unchecked, "two who clear up pass the same gift on")                                            \
    X(gifts, carrier_dropped, "a loop forgets its signal while it waits for the mutex")                                \
    X(gifts, gift_lost_in_between, "a signalled thread that goes back to the mutex's line forgets its signal")         \
    X(gifts, heir_starts_anew, "who inherits a signal forgets that when it asks for the mutex")                        \
    X(gifts, pass_on_forgotten, "a notification that a dead process had and did not use is lost")                     \
    X(shared, dead_stays_linked, "a dead process's slot is given back while it is in line")                            \
    X(shared, number_not_checked, "slots are taken for a dead process's without looking whose they are")               \
    X(shared, stopped_is_dead, "a member is struck off although its lock is held")                                     \
    X(processes, struck_off_anyway, "a member is struck off without looking whether another has the record by now")    \
    X(processes, records_lowered, "two that see to it that a record is looked at forget the higher one")               \
    X(processes, nameless_joined, "who has found a name joins though it has been taken away meanwhile")                \
    X(shared, stopped_waited_for, "who looks after others waits for one that is stopped in the middle of a bucket")    \
    X(shared, stopped_signal, "the same for who passes a dead one's signal on")                                        \
    X(shared, left_out_for_good, "what had to be left out of a sweep is never swept")                                  \
    X(shared, hold_not_redone, "what a dead process was about to do with a lock's word is left half done")             \
    X(shared, hold_kept, "what a dead process held of a lock is not given back")                                       \
    X(shared, handed_on_as_used, "a notification counts as used before its event loop has heard of it")                \
    X(shared, barrier_half_told, "who died while he told that a round is over has told some, and nobody the others")  \
    X(shared, once_runner_kept, "nobody looks whether who runs a once's function is dead")                             \
    X(shared, nobody_sweeps, "who has seen that somebody is gone does not clear away what he left")                    \
    X(shared, record_overlooked, "others do not look at a new member's record")                                        \
    X(shared, event_early, "what has happened is said to be written down before it is")                                \
    X(shared, look_passes_none, "the keeper that looks does not pass calls to a stopped process on")                   \
    X(shared, turn_kept, "a keeper that has once had the turn to look keeps it, though it is stopped")                 \
    X(gifts, pulse_not_watched, "a keeper does not sleep on the pulse of the member behind it")                       \
    X(gifts, death_not_counted, "keepers are not told of a death that another process has found")                      \
    X(gifts, pulse_kept, "a keeper that a pulse has woken does not wake the other sleepers on it")                     \
    X(shared, dead_holder_kept, "nobody looks whether the holder of a mutex is dead")

extern unsigned sim_bug; /* the one that is switched on */

enum sim_bug_number {
    BUG_none,
#define X(part, name, text) BUG_##name,
    SIM_BUGS(X)
#undef X
        SIM_BUG_COUNT
};

#endif
