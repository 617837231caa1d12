/* SPDX-License-Identifier: MIT */
/*
 * vigil/check.h - finding mistakes in the use of mutexes, conditions and read-write locks.
 *
 * Compile your code with -DVIGIL_CHECK, all of it if you can, and run it with the same library. The calls of mutex.h,
 * cond.h and rwlock.h then also tell the library where they stand, and it reports, on stderr or to a function of yours:
 *
 *     self-deadlock         A thread waits for a lock that it holds itself, by a blocking call or because it is called
 *                           by vigil_mutex_execute. The call answers VIGIL_EDEADLOCK instead of waiting forever.
 *     unlock by a stranger  A thread unlocks what another has locked by a blocking call. What was granted to an event
 *                           loop by vigil_mutex_lock_async or vigil_mutex_execute_later may be unlocked anywhere.
 *     read again            A thread that reads waits to read the same lock once more. If a writer has come in between
 *                           they wait for each other: then it is a self-deadlock, and reported as such. Not for a lock
 *                           that lets readers pass: VIGIL_RWLOCK_READERS_PASS.
 *     thread ended          A thread ends while it holds locks, which nothing will unlock. Not for what was granted to an
 *                           event loop, nor for robust mutexes, which the library unlocks (mutex.h).
 *     lock order            Somebody went for lock B while he held A, and somebody else for A while he held B; or for
 *                           C while he held B, and for A while he held C, and so on. Nothing need have gone wrong yet:
 *                           one day these will wait for each other. Each step of such a circle is reported with both
 *                           places in your code. To try a lock does not count, because that never waits.
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
 * Each is reported once for the same places. Without VIGIL_CHECK none of this costs anything. With it each of these
 * calls takes a lock of the library's; calls through function pointers are not checked.
 *
 * A lock is known by its address. When its memory is freed or becomes another lock, say so by vigil_check_forget, or
 * the new one is taken for the old one, with its order. (Who holds it is put right by the next who takes it.)
 */
#ifndef VIGIL_CHECK_PUBLIC_H
#define VIGIL_CHECK_PUBLIC_H

#include <stdint.h>

#include "status.h"
#include "wait.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Nothing is known any more of the locks in that memory. Also for a lock that another thread is to unlock. */
VIGIL_API void vigil_check_forget(const void *address, uint64_t length);

/* Who is told, some lines of text, on the thread that found it, before its call goes on. Null, as at first: stderr. */
enum vigil_check_problem {
    VIGIL_CHECK_SELF_DEADLOCK = 1,
    VIGIL_CHECK_STRANGER,
    VIGIL_CHECK_ORDER,
    VIGIL_CHECK_READ_AGAIN,
    VIGIL_CHECK_THREAD_ENDED
};
typedef void vigil_check_handler(enum vigil_check_problem problem, const char *text);
VIGIL_API void vigil_check_on_problem(vigil_check_handler *handler);

/* What the calls of mutex.h, cond.h and rwlock.h become. */
#define VIGIL_HERE __FILE__, __LINE__

struct vigil_agent;
struct vigil_cond;
struct vigil_mutex;
struct vigil_request;
struct vigil_rwlock;
VIGIL_API int vigil_check_mutex_lock(struct vigil_mutex *mutex, int64_t timeout_ns, const char *file, int line);
VIGIL_API int vigil_check_mutex_unlock(struct vigil_mutex *mutex, const char *file, int line);
VIGIL_API int vigil_check_mutex_lock_async(struct vigil_agent *agent, struct vigil_request *request,
                                           struct vigil_mutex *mutex, int64_t timeout_ns, vigil_callback *callback,
                                           const char *file, int line);
VIGIL_API int vigil_check_mutex_execute(struct vigil_agent *agent, struct vigil_request *request,
                                        struct vigil_mutex *mutex, int64_t timeout_ns, vigil_callback *callback,
                                        const char *file, int line);
VIGIL_API int vigil_check_mutex_execute_later(struct vigil_agent *agent, struct vigil_request *request,
                                              struct vigil_mutex *mutex, int64_t timeout_ns, vigil_callback *callback,
                                              const char *file, int line);
VIGIL_API int vigil_check_cond_wait(struct vigil_cond *cond, struct vigil_mutex *mutex, int64_t timeout_ns,
                                    const char *file, int line);
VIGIL_API int vigil_check_cond_wait_async(struct vigil_agent *agent, struct vigil_request *request,
                                          struct vigil_cond *cond, struct vigil_mutex *mutex, int64_t timeout_ns,
                                          vigil_callback *callback, const char *file, int line);
VIGIL_API int vigil_check_rwlock_read_lock(struct vigil_rwlock *lock, int64_t timeout_ns, const char *file, int line);
VIGIL_API int vigil_check_rwlock_read_unlock(struct vigil_rwlock *lock, const char *file, int line);
VIGIL_API int vigil_check_rwlock_write_lock(struct vigil_rwlock *lock, int64_t timeout_ns, const char *file, int line);
VIGIL_API int vigil_check_rwlock_write_unlock(struct vigil_rwlock *lock, const char *file, int line);
VIGIL_API int vigil_check_rwlock_downgrade(struct vigil_rwlock *lock, const char *file, int line);

#ifdef __cplusplus
}
#endif
#endif
