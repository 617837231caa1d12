/* SPDX-License-Identifier: MIT */
/*
 * planted.h - the planted bugs of remote/: mistakes that place.c, lock.c and word.c make on purpose when the search is
 * told to. See src/prim/sim/bugs.h. In the library that is shipped BUG is 0.
 */
#ifndef VIGIL_TEST_REMOTE_PLANTED_H
#define VIGIL_TEST_REMOTE_PLANTED_H

/* X(the scenario that must find it, name, "what goes wrong") */
#define REMOTE_BUGS(X)                                                                                                 \
    X(killed_and_lost, no_doubt, "the record does not say that a call is on its way")                                  \
    X(cancelled, doubt_left, "a place is left without revoking a lease of which a key may yet appear")                 \
    X(stopped, stale_grant, "it is granted though the lease may have ended")                                           \
    X(stopped_inside, clock_read_twice, "a grant is decided with one reading of the clock, and made with another")     \
    X(cut, deadline_from_reply, "the end of a lease is counted from the reply, not from the sending")                  \
    X(unrepaired, release_compares_nothing, "a release does not compare the create_revision of its key")               \
    X(unrepaired, mark_deleted_unrepaired, "a release deletes the mark though what a death left is not repaired")      \
    X(unrepaired, deletion_not_saved, "the record does not say that the key is being deleted")                         \
    X(two_machines, watched_from_now, "a waiter does not look again when its watch has begun")                         \
    X(by_hand, watch_lost_unnoticed, "a waiter does not look again when its watch is lost")                            \
    X(two_machines, news_undone, "a look that is older than news makes the waiter forget the news")                    \
    X(unrepaired, mark_not_compared, "the head of the line does not compare the mark when it is granted")              \
    X(two_machines, line_jumped, "a waiter is granted though it is not the head of the line")                          \
    X(stopped, loss_unmarked, "a holder that lost it removes the mark")                                                \
    X(kept, watches_kept, "what a holder watched is taken for what a waiter watches")                                  \
    X(two_processes_killed, death_forgotten, "a killed holder's death is not in the record")                           \
    X(cancelled_and_killed, death_cancelled, "a request that was cancelled forgets the death that it is told of")      \
    X(two_processes, any_mark_removed, "a mark of another grant is removed")                                           \
    X(killed_and_lost, torn_record_used, "a record that was half saved is used")                                       \
    X(kept, place_kept, "a place that no process uses is not given up when another machine waits")                     \
    X(kept_beside_killed, kept_while_used, "a process keeps a place for ever that another of its machine uses")        \
    X(kept_beside_torn, kept_while_asking, "a process that asks again keeps the place meanwhile")                      \
    X(closed_and_killed, lease_left, "a process that revokes a lease leaves it to the next before that")               \
    X(tried_and_cut, try_waits, "a try waits until the cluster can be reached")                                        \
    X(tried_and_cut, queue_without_deadline, "a request that comes while another one leaves has no deadline")          \
    X(turns, handover_unbounded, "a machine hands over to itself without end while another waits")                     \
    X(turns_of_two, failures_kept, "a failure from before a grant holds up the calls that follow it")                  \
    X(late_look, late_look_used, "a look from before a hand-over begins the count of hand-overs anew")                 \
    X(turns_of_commands, closes_unbounded, "a handle that is closed while it holds does not count as a hand-over")     \
    X(reserve, reserve_kept, "a machine that has given the place up goes on with the tokens that were left")           \
    X(reserve, reserve_unsaved, "a token is given, and the record does not say so")                                    \
    X(reserve_late, reserve_outlives_lease, "a token that was left is given though the lease may have ended")          \
    X(turns, reserve_uncounted, "hand-overs without a call are not bounded")                                           \
    X(reserve_by_hand, loss_unsaid, "a process that keeps the place does not tell others that it is lost")             \
    X(no_memory, holder_fails, "a holder fails as a request does, because there is no memory just then")               \
    X(abandoned, abandoned_unlocked, "what is abandoned counts as released on its own machine")                        \
    X(tried, refused_at_once, "a request ends before the call that makes it returns")                                  \
    X(word_lost, left_as_woken, "a waiter that has left without a reply says that it was woken")                       \
    X(word_lost, joined_twice, "a waiter whose first joining had no reply, and was woken, joins again")                \
    X(word_cut, joined_unseen, "a waiter does not see that its first joining was carried out")

#define X(scenario, name, text) REMOTE_BUG_##name,
enum { REMOTE_BUG_none, REMOTE_BUGS(X) REMOTE_BUG_COUNT };
#undef X

extern unsigned remote_bug;
#define BUG(name) (remote_bug == REMOTE_BUG_##name)

#endif
