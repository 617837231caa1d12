/* SPDX-License-Identifier: MIT */
/*
 * bugs.h - the planted bugs: mistakes that the library's code makes on purpose when the simulator is told to.
 *
 * The library says BUG(name) where the mistake is made. In the simulator that is a comparison with sim_bug,
 * everywhere else it is 0. A test that finds nothing wrong proves something only if it finds each of these.
 */
#ifndef VIGIL_SIM_BUGS_H
#define VIGIL_SIM_BUGS_H

/* X(the part of the simulator's scenarios that must find it, name, "what goes wrong") */
#define SIM_BUGS(X)                                                                                                    \
    X(inline, inline_unordered, "an inline function releases without saying so")                                       \
    X(inline, inline_line_unseen, "an inline function takes the line for empty")                                       \
    X(inline_wait, inline_unfenced, "an inline notify has no fence")                                                   \
    X(blocking, compare_before_lock, "wait compares the word only before it takes the lock")                           \
    X(blocking, stored_unfenced, "a store that is followed by a notification is no fence")                             \
    X(mutex, fence_only_here, "a waiter has a fence for itself, but none for the holder")                              \
    X(mutex, fence_forgotten, "a waiter has no fence for the holder that releases by a store")                         \
    X(mutex, stored_unsaid, "a waiter does not say that the holder may release by a store")                            \
    X(mutex, unlocked_unseen, "a holder releases by a store, and does not look at the line after that")                \
    X(mutex, holder_not_told, "a holder that has released a mutex does not tell the next one of the line")             \
    X(mutex, unlocked_another, "a holder that has released a mutex takes another word at its address for the mutex")   \
    X(blocking, missing_fence, "notify reads the count of waiters without a fence before it")                          \
    X(asynchronous, spares_mixed, "a thread takes free slots of two chunks for slots of one")                          \
    X(asynchronous, spares_kept, "a thread gives its free slots back, and uses them all the same")                     \
    X(blocking, lifo, "the youngest waiter is served first")                                                           \
    X(blocking, counted_twice, "a notified waiter stays in line and is counted again")                                 \
    X(blocking, timeout_counted, "a waiter that timed out is counted as notified")                                     \
    X(asynchronous, cancel_loses, "cancel succeeds on a waiter that was notified already")                             \
    X(blocking, spurious_return, "a wake-up without a reason ends the wait")                                           \
    X(blocking, early_deadline, "a deadline fires a nanosecond early")                                                 \
    X(blocking, deadline_drifts, "a deadline is converted to a timeout and back")                                      \
    X(blocking, wrong_line, "any line of a bucket is taken for the right one")                                         \
    X(asynchronous, lost_mail, "two notifiers that push mail at once lose one of the letters")                         \
    X(asynchronous, sleep_without_check, "an agent falls asleep without looking into its mailbox again")               \
    X(asynchronous, double_ring, "a bell is rung again before the first ring has been taken")                          \
    X(blocking, release_forgotten, "a woken thread does not see what its notifier wrote")                              \
    X(asynchronous, forget_misses, "forget leaves out a word")                                                         \
    X(asynchronous, bell_lost, "an agent clears RUNG before it has taken the ring")                                    \
    X(asynchronous, mail_not_reversed, "an agent reads its mail newest first")                                         \
    X(blocking, wake_before_state, "a thread is woken before its slot says why")                                       \
    X(interrupt, interrupt_not_slept_on, "an interruption does not wake a thread that sleeps")                         \
    X(interrupt, interrupt_decides, "an interrupted thread returns without leaving the line")                          \
    X(interrupt, late_waiter_interrupted, "a wait on a condition that has timed out returns without the mutex")        \
    X(interrupt, interrupt_kept, "one interruption ends more than one call")                                           \
    X(blocking, first_wait_missed, "a notifier may miss that there has been a first waiter")                           \
    X(signals, critical_late, "a thread enters its critical section only after it has taken the lock")                 \
    X(signals, deferred_missed, "a thread looks for deferred work before it has left its critical section")            \
    X(signals, wake_collected, "an agent that has been woken, and has mail, sees only the mail")                       \
    X(signals, deferred_too_long, "work that a handler deferred waits until a stopped process goes on")                \
    X(signals, deferred_forgotten, "work that a handler deferred is never done")                                       \
    X(signals, deferred_overwritten, "a handler that interrupts another one defers the same work, and that is lost")   \
    X(sem, sem_released_outside, "permits are released without a look at the line, though a waiter may be in it")      \
    X(sem, sem_not_further, "a waiter that takes reserved permits does not call those that waited because of that")    \
    X(sem, sem_left_silently, "a waiter that wanted many permits leaves the line without calling those behind it")     \
    X(sem, sem_saved_in_vain, "newcomers take permits that are saved for the head of the line")                        \
    X(sem, sem_saved_for_a_moment, "permits are not saved any longer when more are released soon after")               \
    X(sem, sem_comes_silently, "a thread that was called does not say that it has come")                               \
    X(sem, sem_covered_by_one, "one thread that was called stands for any number of permits released meanwhile")       \
    X(rwlock, rwlock_left_silently, "a writer leaves the line without calling the readers behind it")                  \
    X(rwlock, rwlock_reserved_for_nobody, "the last waiter gives up, and the lock stays reserved")                     \
    X(rwlock, rwlock_comes_silently, "a thread that was called does not say that others may wait")                     \
    X(rwlock, rwlock_not_further, "a reader that was called does not look whether others must be called")              \
    X(rwlock, rwlock_never_saved, "new readers pass a writer for as long as others read")                              \
    X(rwlock, rwlock_readers_pass, "new readers pass although the lock is saved for a writer")                         \
    X(rwlock, rwlock_downgrade_in_two, "downgrade unlocks and locks again")                                            \
    X(rwlock, rwlock_counted_in_error, "a reader that has to wait stays counted")                                      \
    X(sem, sem_saved_for_another, "a waiter that joins before the one that permits are saved for waits as long as it") \
    X(rwlock, rwlock_saved_for_another, "a reader that joins before the writer the lock is saved for is not let in")   \
    X(rwlock, rwlock_pass_ignored, "readers wait behind a writer although the lock lets readers pass")                 \
    X(rwlock, rwlock_writer_forgotten, "where readers pass, the last of them does not call the writer that waits")     \
    X(shared, hold_not_numbered, "a holder that was robbed unlocks the lock of another one of its process")            \
    X(rwlock, rwlock_readers_left, "where readers pass, readers behind a writer wait though the lock is read")         \
    X(rwlock, rwlock_abandoned_silently, "a waiter is not called when a writer that has ended is given up")            \
    X(rwlock, rwlock_abandoned_in_two, "the word says that a writer has ended only after the lock has been released")  \
    X(rwlock, rwlock_abandoned_unread, "a reader is not told that a writer has ended")                                 \
    X(rwlock, lanes_not_checked, "a reader in a lane does not look whether the lanes are still open")                  \
    X(rwlock, lanes_not_counted, "a writer clears the places of readers without counting them")                        \
    X(rwlock, lanes_counted_twice, "a reader that leaves while it is being counted stays counted")                     \
    X(rwlock, lanes_cleared_early, "the lanes are said to be closed before their readers are counted")                 \
    X(rwlock, lanes_left_silently, "the writer that has closed the lanes leaves without calling waiters")              \
    X(rwlock, lanes_taken_back_early, "what was counted in error is taken back while a reader may need it")            \
    X(rwlock, lanes_left_unseen, "a writer does not see what a reader did that left while it was being counted")       \
    X(rwlock, lanes_added_unseen, "a writer counts only the lanes that there were before it closed them")              \
    X(rwlock, lanes_not_searched, "a reader that finds its unit of the count gone does not look for a place")          \
    X(rwlock, lanes_not_acquired, "a reader whose place was emptied does not see what earlier writers did")            \
    X(rwlock, lanes_not_passed, "where readers pass, one in a lane cannot read again past a reservation")              \
    X(rwlock, lanes_never_saved, "a writer that waits for readers in lanes does not keep new ones out")                \
    X(mutex, turn_missed, "a loop's next request for a fair mutex is in no line while it serves the one before")       \
    X(mutex, passed_for_ever, "newcomers may pass a waiter that has been called as often as they like")                \
    X(mutex, unlock_unordered, "the next holder does not see what the holder of a contended mutex wrote")              \
    X(mutex, taken_as_alone, "a waiter takes a mutex as if no other waiter were behind it")                            \
    X(mutex, taken_without_asking, "a reserved mutex is taken by a store instead of a compare-and-exchange")           \
    X(mutex, not_contended, "a called waiter that finds the mutex locked waits again without marking it contended")    \
    X(mutex, loop_relied_upon, "a call to an event loop is not guarded, as if the loop were sure to come")             \
    X(mutex, overflow_dropped, "calls to loops for which the table of guards has no room are not guarded")             \
    X(mutex, freed_outside, "unlock changes the word before it takes the lock of the line")                            \
    X(mutex, nobody_looks, "a waiter that guards a reservation sleeps on when the mutex is not taken")                 \
    X(mutex, robust_left_silently, "a waiter is not called when the thread that holds a robust mutex ends")            \
    X(mutex, robust_not_told, "the next holder of a robust mutex is not told that a thread has ended with it")         \
    X(mutex, abandoned_silently, "a waiter is not called when a mutex is released for a holder that has ended")        \
    X(mutex, abandoned_in_two, "the word says that the holder has ended only after the mutex has been released")       \
    X(mutex, late_call_dropped, "a call for a request that is gone by then is not passed on")                          \
    X(cond, moved_to_freed, "a signaller looks at the mutex of a waiter that has returned, and has freed it")          \
    X(cond, stored_missed, "waiters are moved to a mutex without a fence although it was just taken")                  \
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
    X(barrier_once, awaited_missed, "a once is marked done after looking for waiters, not in the same step")           \
    X(barrier_once, once_unordered, "what a once's function did is not visible to threads that find it done")          \
    X(barrier_once, once_relied_on_one, "a once that failed wakes one waiter, as if that one were sure to come")       \
    X(barrier_once, failure_taken_as_done, "an event loop that waits for a once takes its failure for success")        \
    X(barrier_once, deadline_forgotten, "an event loop that has to wait again for a once loses its deadline")          \
    X(shared, relay_forgotten, "what an agent of another process is told is not put into its process's relay")         \
    X(shared, relay_not_missed, "an agent that a dead process told, but not by relay, is not looked for")              \
    X(shared, home_unordered, "a keeper takes what a slot was told in an earlier wait for what it is told now")        \
    X(shared, wake_not_missed, "threads that a dead process told, but did not wake, are not woken")                    \
    X(shared, no_call_after_death, "after a death no waiter for a lock is called")                                     \
    X(shared, repair_drops, "the repair of a bucket leaves out a waiter")                                              \
    X(shared, repair_in_any_order, "the repair of a bucket loses the order of the waiters")                            \
    X(shared, taken_over_as_it_is, "a dead process's bucket is taken over without repair")                             \
    X(gifts, signal_noted_late, "a signalled thread is moved before its slot says that it has a signal")               \
    X(gifts, half_told_stays, "the repair leaves a waiter in line that has been given a notification")                 \
    X(gifts, heir_chosen_again, "when a process is killed that passes a gift on, the next one chooses another heir")   \
    X(gifts, passed_on_unchecked, "two processes that recover pass the same gift on")                                  \
    X(gifts, carrier_dropped, "a loop forgets its signal while it waits for the mutex")                                \
    X(gifts, gift_lost_in_between, "a signalled thread that goes back to the mutex's line forgets its signal")         \
    X(gifts, heir_starts_anew, "a thread that inherits a signal forgets it when it locks the mutex")                   \
    X(gifts, pass_on_forgotten, "a notification that a dead process had and did not use is lost")                      \
    X(shared, dead_stays_linked, "a dead process's slot is given back while it is in line")                            \
    X(shared, number_not_checked, "slots of living processes are taken for a dead process's")                          \
    X(shared, stopped_is_dead, "a member is struck off although its lock is held")                                     \
    X(processes, struck_off_anyway, "a member is struck off without a check whether its row has been taken again")     \
    X(processes, rows_lowered, "two processes that raise the number of used rows forget the higher one")               \
    X(processes, nameless_joined, "a process that has found a name joins though the name has been removed meanwhile")  \
    X(shared, stopped_waited_for, "recovery waits for a process that is stopped while it has a bucket locked")         \
    X(shared, stopped_signal, "the same when a dead process's signal is passed on")                                    \
    X(shared, left_out_for_good, "what had to be left out of a sweep is never swept")                                  \
    X(shared, hold_not_redone, "a change of a lock's word that a dead process had begun is not completed")             \
    X(shared, hold_kept, "what a dead process held of a lock is not given back")                                       \
    X(shared, handed_on_as_used, "a notification counts as used before its event loop has got it")                     \
    X(shared, barrier_half_told, "a process dies while it ends a round, and some parties are never told")              \
    X(shared, once_runner_kept, "the runner of a once's function is dead, and no process checks that")                 \
    X(shared, nobody_sweeps, "a process that has seen a death does not recover what the dead process left")            \
    X(shared, row_overlooked, "others do not look at a new member's row")                                              \
    X(shared, event_early, "an event is marked as written before it is")                                               \
    X(shared, patrol_passes_none, "the keeper that patrols does not pass calls to a stopped process on")               \
    X(shared, turn_kept, "a keeper that has once had the turn to patrol keeps it, though it is stopped")               \
    X(gifts, pulse_not_watched, "a keeper does not sleep on the pulse of the member behind it")                        \
    X(gifts, death_not_counted, "keepers are not told of a death that another process has found")                      \
    X(gifts, pulse_kept, "a keeper that a pulse has woken does not wake the other sleepers on it")                     \
    X(names, book_not_rebuilt, "the chains of names are believed though their changer died")                           \
    X(names, book_name_believed, "a name that was found without the mutex is not compared again")                      \
    X(names, book_freed_early, "a name is cleared before what a dead process held of it is given back")                \
    X(bell, bell_without_count, "a bell is a flag: a loop that sleeps on what it saw earlier misses a ring")           \
    X(bell, bell_in_two_words, "a bell is a count and a flag, which are set in two steps")                             \
    X(bell, bell_wakes_first, "a ring wakes the sleeper before the word has changed")                                  \
    X(bell, bell_wakes_one, "a ring wakes one of two sleepers of a thread, and not the one that blocks")               \
    X(bell, bell_taken_by_store, "a ring is taken by a store instead of a read-modify-write")                          \
    X(bell, bell_left_asleep, "a bell is closed while an asynchronous sleeper is on its word")                         \
    X(page, page_gives_up, "a thread that may not park does not notify if the bucket is locked")                       \
    X(page, park_taken_as_wake, "a thread takes a bucket that is locked when its sleep on it has returned")            \
    X(page, ring_awaited_twice, "an agent that ends waits for a ring only until two sleeps have returned")             \
    X(shared, dead_holder_kept, "the holder of a mutex is dead, and no process checks that")

extern unsigned sim_bug; /* the bug that is switched on */

enum sim_bug_number {
    BUG_none,
#define X(part, name, text) BUG_##name,
    SIM_BUGS(X)
#undef X
        SIM_BUG_COUNT
};

#endif
