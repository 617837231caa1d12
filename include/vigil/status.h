/* SPDX-License-Identifier: MIT */
/*
 * vigil/status.h - what every call returns.
 *
 * A call returns an int, or an int64_t where it also counts. Zero and the small positive numbers are outcomes: a
 * correct program expects them. Negative numbers are errors: the call changed nothing, and the text of
 * vigil_strerror() says what to do. There are two exceptions. A dispatch, run or destroy returns VIGIL_EFORKED in the
 * child of a fork that one of its callbacks made, after it has run callbacks. And vigil_once_call returns the number
 * of a function that has failed.
 *
 * The first three outcomes have the numbers that WebAssembly's memory.atomic.wait gives them.
 */
#ifndef VIGIL_STATUS_H
#define VIGIL_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(VIGIL_API) /* by a build that exports nothing of it */
#elif defined(__GNUC__)
#define VIGIL_API __attribute__((visibility("default")))
#else
#define VIGIL_API
#endif

/* X(name, number, "name-as-text", "what it means and what to do about it") */
#define VIGIL_STATUS_MAP(X)                                                                                            \
    X(OK, 0, "ok", "done; for a wait: notified")                                                                       \
    X(NOT_EQUAL, 1, "not-equal", "the word did not have the expected value")                                           \
    X(TIMED_OUT, 2, "timed-out", "the deadline passed first")                                                          \
    X(PENDING, 3, "pending", "started; the callback will be called exactly once")                                      \
    X(CANCELLED, 4, "cancelled", "ended by vigil_forget or by the end of its agent")                                   \
    X(LAST, 5, "last", "done, and this call completed the round of the barrier")                                       \
    X(OWNER_DIED, 6, "owner-died",                                                                                     \
      "acquired, but the previous owner died while holding it; repair the data, then call the _consistent function")   \
    X(INTERRUPTED, 7, "interrupted", "ended by vigil_interrupt; nothing was acquired and no notification was lost")    \
    X(ENULL, -1, "null-pointer", "a required address or pointer was null; pass a valid one")                           \
    X(EMISALIGNED, -2, "misaligned", "the address is not a multiple of the word's size; align the word")               \
    X(ECOUNT, -3, "negative-count", "the count was negative; pass VIGIL_ALL to notify all waiters")                    \
    X(EMAYNOTBLOCK, -4, "may-not-block",                                                                               \
      "this thread runs an agent that may not block, or a signal handler; use the asynchronous form")                  \
    X(EINUSE, -5, "in-use", "the operation is already pending; wait for its callback or cancel it first")              \
    X(EIDLE, -6, "idle", "the operation is not pending")                                                               \
    X(ETOOLATE, -7, "too-late", "the outcome of the operation is already decided; its callback will be called")        \
    X(EWRONGTHREAD, -8, "wrong-thread", "only the thread of the agent may do this; use vigil_agent_post")              \
    X(EREENTRANT, -9, "reentrant",                                                                                     \
      "not allowed inside a callback of the same agent; call it after the callback has returned")                      \
    X(EFORKED, -10, "forked", "it belongs to the parent process; destroy it, and create or open another one here")     \
    X(ECLOSING, -11, "closing", "the agent is being destroyed and starts no new operations")                           \
    X(ENOMEM, -12, "out-of-memory", "not enough memory")                                                               \
    X(ELIMIT, -13, "limit-reached", "too many waiters, agents, members or segments; end some of them first")           \
    X(ERANGE, -14, "out-of-range", "an index, offset, length or count is out of range")                                \
    X(ETYPE, -15, "wrong-type", "the element type of the view does not allow this operation")                          \
    X(EINVAL, -16, "invalid", "an argument has an invalid value")                                                      \
    X(ESYSTEM, -17, "system", "a system call failed; see errno")                                                       \
    X(ENOTHELD, -18, "not-held",                                                                                       \
      "not held, or not by this thread or process; release what was acquired, and only once")                          \
    X(EDEADLOCK, -19, "deadlock", "this thread already holds the lock and would wait for itself; see vigil/check.h")   \
    X(EEXISTS, -20, "exists", "a segment has that name already; open or unlink it, or choose another name")            \
    X(ENOTFOUND, -21, "not-found", "there is no such segment, create it first; or no such thread, it has ended")       \
    X(ENAME, -22, "bad-name", "invalid name; use 1 to 200 characters of A-Z a-z 0-9 . _ - and no dot or dash first")   \
    X(EFOREIGN, -23, "foreign", "this file is not a Vigil segment; choose another name")                               \
    X(ETRUNCATED, -24, "truncated", "part of the segment file is missing; unlink it and create a new one")             \
    X(ECORRUPT, -25, "corrupt", "the segment file is inconsistent; unlink it and create a new one")                    \
    X(EVERSION, -26, "other-version",                                                                                  \
      "created by a Vigil with another file format; use one version everywhere, or unlink it and create a new one")    \
    X(EMACHINE, -27, "other-machine",                                                                                  \
      "created with another word size or byte order; build all programs for the same architecture")                    \
    X(EOWNER, -28, "other-owner",                                                                                      \
      "another user owns it; let that user set a mode for others and pass a descriptor, or choose another name")       \
    X(EFILESYSTEM, -30, "file-system",                                                                                 \
      "the file system cannot carry it: it is read-only, or of a kind on which machines or programs do not share "     \
      "memory (NFS, FUSE and others); choose a path on a local file system, such as /run/lock")                        \
    X(ECOPIES, -31, "other-copy",                                                                                      \
      "another copy of the library in this process prevents that: it is of another version (link everything with "     \
      "one), or only it has this segment open (open it with the copy that uses it)")                                   \
    X(EUNREACHABLE, -33, "unreachable",                                                                                \
      "no server of the cluster can be reached, or it has no leader; see vigil_remote_why")                            \
    X(EREFUSED, -34, "refused",                                                                                        \
      "the cluster refuses this user, password or certificate, or its own certificate is not valid; see "              \
      "vigil_remote_why")                                                                                              \
    X(EPROTOCOL, -35, "other-protocol", "what replied is not etcd 3.4 or later; see vigil_remote_why")                 \
    X(ELOST, -36, "lost",                                                                                              \
      "the lease has ended, or the key was deleted: others may hold the lock; stop what it protects")                  \
    X(EBUSY, -29, "busy",                                                                                              \
      "in use; end the waits of this process before destroying the buffer, or let all members leave before unlinking") \
    X(ESTOLEN, -32, "stolen",                                                                                          \
      "the lock was stolen from this holder, and others may have had it since: what was done under it may be undone")

enum vigil_status {
#define VIGIL_STATUS_ENUMERATOR(name, number, text, meaning) VIGIL_##name = number,
    VIGIL_STATUS_MAP(VIGIL_STATUS_ENUMERATOR)
#undef VIGIL_STATUS_ENUMERATOR
};

/*
 * For the inline functions: the word of a mutex that this process holds and no waiter waits for. That is 1 and, once
 * the process has opened a segment, 16 times its number plus 1.
 */
VIGIL_API extern uint32_t vigil__holder;

/*
 * For the inline functions: the lines of waiters in the memory of this process alone. It leads to an array of pairs of
 * words, found by a hash of the address (wait.h); null, at the second step: no thread has waited yet. The first word of
 * a pair is zero exactly while no waiter is in the lines that hash to it, and no thread is changing them. Null, at the
 * first step: the inline functions must call the library.
 */
VIGIL_API extern const uint32_t *const *vigil__lines;

/* The short name of a status, such as "timed-out"; "unknown" for a number that is not a status. */
VIGIL_API const char *vigil_status_name(int status);

/* A sentence that says what the status means and, for an error, what to do. Never null. */
VIGIL_API const char *vigil_strerror(int status);

#ifdef __cplusplus
}
#endif
#endif
