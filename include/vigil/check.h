/* SPDX-License-Identifier: MIT */
/*
 * vigil/check.h - find mistakes in the use of mutexes, conditions and read-write locks.
 *
 * Compile your code with -DVIGIL_CHECK, all of it if you can, and run it with the same library. The calls of mutex.h,
 * cond.h and rwlock.h then also pass their file and line to the library, which reports, on stderr or to a function of
 * yours:
 *
 *     self-deadlock         A thread waits for a lock that it holds itself, by a blocking call or in a callback of
 *                           vigil_mutex_execute. The call returns VIGIL_EDEADLOCK instead of waiting.
 *     unlock by a stranger  A thread unlocks what another has locked by a blocking call. What was granted to an event
 *                           loop by vigil_mutex_lock_async or vigil_mutex_execute_later may be unlocked anywhere, and
 *                           what the abandon functions give up belongs to a holder that has ended.
 *     read again            A thread that reads waits to read the same lock once more. If a writer has come in between
 *                           they wait for each other: then it is a self-deadlock, and reported as such. Not for a lock
 *                           that lets readers pass: VIGIL_RWLOCK_READERS_PASS.
 *     thread ended          A thread ends while it holds locks, which nothing will unlock. Not for what was granted to
 *                           an event loop, nor for robust mutexes, which the library unlocks (mutex.h).
 *     lock order            A thread waited for lock B while it held A, and a thread waited for A while it held B; or
 *                           for C while it held B, and for A while it held C, and so on. No deadlock need have
 *                           happened: it will when these waits coincide. Each step of such a cycle is reported with
 *                           both sites in your code. The try forms do not count, because they never wait.
 *
 *     vigil: lock order: these wait for each other, if they come at the same time
 *         thread 4711 held 0x5581e32c4040, locked at bank.c:17, and went for 0x5581e32c4044 at bank.c:18
 *         thread 4712 held 0x5581e32c4044, locked at bank.c:25, and went for 0x5581e32c4040 at bank.c:26
 *
 *     vigil: read again: thread 4711 reads lock 0x5581e32c4048; with a writer in between it waits for itself
 *         locked at table.c:31
 *         and again at table.c:56
 *
 *     vigil: thread ended: thread 4712 holds these, and nothing will unlock them
 *         lock 0x5581e32c4040, locked at bank.c:25
 *
 * Each mistake is reported once for the same sites. Without VIGIL_CHECK none of this costs anything. With it each of
 * these calls takes a lock of the library. Calls through function pointers, and the asynchronous calls of rwlock.h,
 * are not checked.
 *
 * A lock is identified by its address. When its memory is freed or becomes another lock, call vigil_check_forget;
 * otherwise the new lock inherits the order of the old one. (If it seems to have a holder, that is corrected when it
 * is next taken.)
 */
#ifndef VIGIL_CHECK_PUBLIC_H
#define VIGIL_CHECK_PUBLIC_H

#include <stdint.h>

#include "status.h"
#include "wait.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Forget all locks in that memory. Also for a lock that another thread is going to unlock. */
VIGIL_API void vigil_check_forget(const void *address, uint64_t length);

/*
 * Sets the function that gets the reports, as some lines of text. It is called on the thread that found the mistake,
 * before its call goes on. Null, as at first: reports are written to stderr.
 */
enum vigil_check_problem {
    VIGIL_CHECK_SELF_DEADLOCK = 1,
    VIGIL_CHECK_STRANGER,
    VIGIL_CHECK_ORDER,
    VIGIL_CHECK_READ_AGAIN,
    VIGIL_CHECK_THREAD_ENDED
};
typedef void vigil_check_handler(enum vigil_check_problem problem, const char *text);
VIGIL_API void vigil_check_on_problem(vigil_check_handler *handler);

/* With VIGIL_CHECK, the calls of mutex.h, cond.h and rwlock.h become calls of these. */
#define VIGIL__HERE __FILE__, __LINE__

struct vigil_agent;
struct vigil_cond;
struct vigil_mutex;
struct vigil_request;
struct vigil_rwlock;
VIGIL_API int vigil__check_mutex_lock(struct vigil_mutex *mutex, int64_t timeout_ns, const char *file, int line);
VIGIL_API int vigil__check_mutex_unlock(struct vigil_mutex *mutex, const char *file, int line);
VIGIL_API int vigil__check_mutex_abandon(struct vigil_mutex *mutex);
VIGIL_API int vigil__check_mutex_lock_async(struct vigil_agent *agent, struct vigil_request *request,
                                            struct vigil_mutex *mutex, int64_t timeout_ns, vigil_callback *callback,
                                            const char *file, int line);
VIGIL_API int vigil__check_mutex_execute(struct vigil_agent *agent, struct vigil_request *request,
                                         struct vigil_mutex *mutex, int64_t timeout_ns, vigil_callback *callback,
                                         const char *file, int line);
VIGIL_API int vigil__check_mutex_execute_later(struct vigil_agent *agent, struct vigil_request *request,
                                               struct vigil_mutex *mutex, int64_t timeout_ns, vigil_callback *callback,
                                               const char *file, int line);
VIGIL_API int vigil__check_cond_wait(struct vigil_cond *cond, struct vigil_mutex *mutex, int64_t timeout_ns,
                                     const char *file, int line);
VIGIL_API int vigil__check_cond_wait_async(struct vigil_agent *agent, struct vigil_request *request,
                                           struct vigil_cond *cond, struct vigil_mutex *mutex, int64_t timeout_ns,
                                           vigil_callback *callback, const char *file, int line);
VIGIL_API int vigil__check_rwlock_read_lock(struct vigil_rwlock *lock, int64_t timeout_ns, const char *file, int line);
VIGIL_API int vigil__check_rwlock_read_unlock(struct vigil_rwlock *lock, const char *file, int line);
VIGIL_API int vigil__check_rwlock_write_lock(struct vigil_rwlock *lock, int64_t timeout_ns, const char *file, int line);
VIGIL_API int vigil__check_rwlock_write_unlock(struct vigil_rwlock *lock, const char *file, int line);
VIGIL_API int vigil__check_rwlock_write_abandon(struct vigil_rwlock *lock);
VIGIL_API int vigil__check_rwlock_downgrade(struct vigil_rwlock *lock, const char *file, int line);

#ifdef __cplusplus
}
#endif
#endif
