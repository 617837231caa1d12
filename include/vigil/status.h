/* SPDX-License-Identifier: MIT */
/*
 * vigil/status.h - what every call answers.
 *
 * A call answers an int (or an int64_t where it also counts). Zero and the small positive numbers are
 * outcomes: something that a correct program expects. Negative numbers are errors: the call changed
 * nothing, and the text of vigil_strerror() says what to do. (One exception: a dispatch, run or destroy that answers
 * VIGIL_EFORKED, in the child of a fork that one of its callbacks made.)
 *
 * The first three outcomes have the numbers that WebAssembly's memory.atomic.wait gives them.
 */
#ifndef VIGIL_STATUS_H
#define VIGIL_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define VIGIL_API __attribute__((visibility("default")))
#else
#define VIGIL_API
#endif

/* X(name, number, "name-as-text", "what it means and what to do about it") */
#define VIGIL_STATUS_MAP(X)                                                                                       \
    X(OK, 0, "ok", "done; for a wait: notified")                                                                  \
    X(NOT_EQUAL, 1, "not-equal", "the word held another value than the expected one")                             \
    X(TIMED_OUT, 2, "timed-out", "the deadline passed first")                                                     \
    X(PENDING, 3, "pending", "started; the callback will be called exactly once")                                 \
    X(CANCELLED, 4, "cancelled", "ended by vigil_forget or by the end of its agent")                              \
    X(LAST, 5, "last", "done, and it was this call that completed the barrier's round")                           \
    X(OWNER_DIED, 6, "owner-died",                                                                                \
      "ours, but its last holder died with it; make good what it guards, then say that it is consistent")         \
    X(INTERRUPTED, 7, "interrupted", "ended by vigil_interrupt; nothing was taken, and nothing is lost")          \
    X(ENULL, -1, "null-pointer", "an address or pointer that is needed was null")                                 \
    X(EMISALIGNED, -2, "misaligned", "the address is not a multiple of the word's size; align the word")          \
    X(ECOUNT, -3, "negative-count", "a count was negative; pass VIGIL_ALL to notify everybody")                   \
    X(EMAYNOTBLOCK, -4, "may-not-block",                                                                          \
      "this thread runs an agent that may not block, or a signal handler; use the asynchronous form")             \
    X(EINUSE, -5, "in-use", "the operation is pending already; wait for its callback or cancel it first")         \
    X(EIDLE, -6, "idle", "the operation is not pending")                                                          \
    X(ETOOLATE, -7, "too-late", "the operation's outcome is decided; its callback will be called")                \
    X(EWRONGTHREAD, -8, "wrong-thread", "only the agent's own thread may do this; use vigil_agent_post")          \
    X(EREENTRANT, -9, "reentrant", "not from inside one of this agent's own callbacks")                           \
    X(EFORKED, -10, "forked", "it belongs to the parent process; destroy it and create or open one here")         \
    X(ECLOSING, -11, "closing", "the agent is being destroyed and starts nothing new")                            \
    X(ENOMEM, -12, "out-of-memory", "no memory for this")                                                         \
    X(ELIMIT, -13, "limit-reached", "every place for waiters, agents or members is taken; end some of them first") \
    X(ERANGE, -14, "out-of-range", "an index, offset or length reaches outside the memory it is for")             \
    X(ETYPE, -15, "wrong-type", "the view's element type does not allow this operation")                          \
    X(EINVAL, -16, "invalid", "an argument has a value that means nothing here")                                  \
    X(ESYSTEM, -17, "system", "the operating system refused; errno says why")                                     \
    X(ENOTHELD, -18, "not-held", "nobody holds this lock; unlock what was locked, and only once")                 \
    X(EDEADLOCK, -19, "deadlock", "this thread holds that lock already and would wait for itself; see check.h")   \
    X(EEXISTS, -20, "exists", "a segment has that name; open or unlink it, or choose another name")               \
    X(ENOTFOUND, -21, "not-found", "no segment has that name, create it first; or no thread, it has ended")       \
    X(ENAME, -22, "bad-name",                                                                                     \
      "a segment's name is 1 to 200 of A-Z a-z 0-9 . _ - and begins without a dot; choose such a one")            \
    X(EFOREIGN, -23, "foreign", "this is no segment of Vigil's; look what it is, and choose another name")        \
    X(ETRUNCATED, -24, "truncated", "a part of the segment's file is missing; unlink it and create it anew")      \
    X(ECORRUPT, -25, "corrupt", "the segment's file contradicts itself; unlink it and create it anew")            \
    X(EVERSION, -26, "other-version",                                                                             \
      "made by a Vigil with another format; use one version in all programs, or unlink it and create it anew")    \
    X(EMACHINE, -27, "other-machine",                                                                             \
      "made with another word size or byte order; build all programs for the same machine")                       \
    X(EOWNER, -28, "other-owner",                                                                                 \
      "another user owns it; have them give it a mode for others and pass a descriptor, or choose another name")  \
    X(EBUSY, -29, "busy",                                                                                         \
      "something of this process still waits in the segment; end or cancel that before destroying the buffer")

enum vigil_status {
#define VIGIL_STATUS_ENUMERATOR(name, number, text, meaning) VIGIL_##name = number,
    VIGIL_STATUS_MAP(VIGIL_STATUS_ENUMERATOR)
#undef VIGIL_STATUS_ENUMERATOR
};

/*
 * For the inline functions: what the word of a mutex is when this process has it and no other waits. That is 1, and,
 * once the process has opened a segment, 16 times its number plus 1.
 */
VIGIL_API extern uint32_t vigil_holder;

/* The status's name as a short text, "timed-out" say; "unknown" for a number that is no status. */
VIGIL_API const char *vigil_status_name(int status);

/* A sentence that says what the status means and, for an error, what to do. Never null. */
VIGIL_API const char *vigil_strerror(int status);

#ifdef __cplusplus
}
#endif
#endif
