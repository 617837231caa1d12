/* SPDX-License-Identifier: MIT */
/*
 * vigil/named.h - locks with a name, for all processes of a user, or at a path, for several users.
 *
 *     vigil_named *deploy;
 *     vigil_named_open(&deploy, "deploy", NULL);
 *     int status = vigil_named_lock(deploy, 0);             in line with `vigil lock deploy -- command` in a shell
 *     if (status == VIGIL_OWNER_DIED) vigil_named_consistent(deploy);    after the repair
 *     ...
 *     vigil_named_unlock(deploy);
 *     vigil_named_close(deploy);
 *
 * Threads that block, event loops that must not block, and the commands vigil lock and vigil sem wait in one line for
 * a name. A name is a lock, or a semaphore of a number of slots; the first process to open it decides which of the two,
 * and how many slots. vigil_named_slots tells.
 *
 * NAMES AND PATHS. A name is 1 to 200 characters of A-Z a-z 0-9 . _ - and begins with a letter, a digit or _. Names
 * belong to a user (by the effective user id of the process). All names of a user are in one file in /dev/shm, so that
 * a process may have thousands open with one descriptor. The file takes 16 kB for the first seven names; each of the
 * others takes 384 bytes, and each process that has a name open 68 more.
 *
 * What contains a slash is a path: the lock is in that file. If there is no such file, it is created, with mode 0666
 * less the umask, or `mode`; if it is empty, it is made a lock. The owner, the group and the mode of the file decide
 * which users may take the lock: a user needs permission to read and to write. The file takes 16 kB while few processes
 * use it, and each path that is open takes a descriptor. VIGIL_EFILESYSTEM: the file system is read-only, or of a kind
 * on which machines or programs do not share memory (NFS, FUSE and others). The users of a path must trust each other:
 * see TRUST in segment.h. If one of them truncates the file, the others get SIGBUS when they touch it.
 *
 * HANDLES. A vigil_named can hold the lock once at a time, and is used by one thread at a time; it may be unlocked on
 * another thread. To hold a lock twice, or on two threads at once, open it twice: that is cheap.
 *
 * DEATH. If a process is killed while it holds the lock, the next one to take it is told by VIGIL_OWNER_DIED, as in
 * rwlock.h: vigil_named_death tells which process that was. The slots of a semaphore come back. Processes that a
 * killed holder has tied to the lock (see vigil_named_tie) keep it until they have ended.
 *
 * STEALING. A process may take a lock away from holders that live: see vigil_named_steal. Whether a holder has been
 * robbed is told to it by its unlock, or earlier if it asks; nothing stops it meanwhile. So both may be at work for a
 * while, and stealing is for holders that hang, or whose work may be lost.
 *
 * Names survive until they are removed, or the machine is restarted; paths until the file is removed.
 */
#ifndef VIGIL_NAMED_H
#define VIGIL_NAMED_H

#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_named vigil_named;

/* How to open a name. A null pointer, and zero in a field, select the defaults. */
typedef struct vigil_named_options {
    uint32_t slots; /* if it is new: make it a semaphore of so many slots, at most VIGIL_NAMED_SLOTS; 0: a lock */
    unsigned mode;  /* of a new file at a path, whatever the umask; includes 0600, at most 0666 */
    bool existing;  /* VIGIL_ENOTFOUND if there is no such name yet */
} vigil_named_options;
#define VIGIL_NAMED_SLOTS 0xffffffu

/*
 * vigil_named_open - VIGIL_OK, whether it was there or is new. VIGIL_ENAME, VIGIL_EINVAL (an invalid mode),
 * VIGIL_ERANGE (too many slots), VIGIL_EFILESYSTEM; other errors as in vigil_segment_open.
 *
 * vigil_named_close - VIGIL_OK; what it holds is unlocked. VIGIL_EBUSY while a request of it is pending. In the child
 * of a fork it only frees the handle.
 *
 * vigil_named_slots - how many slots the semaphore has; 0: it is a lock.
 *
 * vigil_named_set_slots - change the number of slots, at once, even while some are held: VIGIL_OK. If more are held
 * than there are now, those that are too many disappear as they come back. VIGIL_EINVAL for a lock, VIGIL_ERANGE for 0
 * or too many.
 */
VIGIL_API int vigil_named_open(vigil_named **named, const char *name, const vigil_named_options *options);
VIGIL_API int vigil_named_close(vigil_named *named);
VIGIL_API uint32_t vigil_named_slots(const vigil_named *named);
VIGIL_API int vigil_named_set_slots(vigil_named *named, uint32_t slots);

/*
 * How to take it:
 *
 *     VIGIL_NAMED_SHARED   together with others that share it (not of a semaphore)
 *     VIGIL_NAMED_FAIR     strictly first come, first served among those that say so. Otherwise it may be taken by a
 *                          newcomer before a waiter has woken up; no waiter starves in either case
 *     VIGIL_NAMED_AGAIN    with SHARED, for a process that runs on behalf of one that shares it already: it does not
 *                          wait behind waiters that want it alone, which would be a deadlock
 *
 * vigil_named_lock - block until it is taken: VIGIL_OK or VIGIL_OWNER_DIED. The timed forms give up after
 * `timeout_ns`, or when vigil_now_ns() reaches `deadline_ns`: VIGIL_TIMED_OUT. vigil_named_trylock does not wait.
 * VIGIL_EINUSE if the handle holds it or has a request pending; VIGIL_EINVAL for flags that do not fit;
 * VIGIL_EDEADLOCK if a killed holder has started this process, which would wait for its own end; VIGIL_EMAYNOTBLOCK,
 * VIGIL_INTERRUPTED, VIGIL_ELIMIT, VIGIL_ENOMEM, VIGIL_EFORKED as elsewhere.
 *
 * vigil_named_lock_async - the same without blocking, on the thread of the agent, as in request.h: VIGIL_PENDING, and
 * then `callback(named, status, data)` from the agent's dispatch; or an outcome at once, and then it is not called.
 *
 * vigil_named_cancel - end the pending request: VIGIL_OK, the callback will not be called. VIGIL_EIDLE.
 *
 * vigil_named_unlock - VIGIL_OK, or VIGIL_ENOTHELD. VIGIL_ESTOLEN if the lock has been stolen: the handle does not
 * hold it any more, and the lock of its present holder is not touched.
 *
 * vigil_named_abandon - the same for a holder that has ended while this process goes on, such as a worker of a language
 * runtime: if it held the lock alone, the next one to take it gets VIGIL_OWNER_DIED.
 *
 * vigil_named_consistent - after VIGIL_OWNER_DIED, with the lock held alone: what it protects is in order again.
 * VIGIL_OK, VIGIL_ENOTHELD, VIGIL_EINVAL (no holder died), VIGIL_ESTOLEN.
 */
enum { VIGIL_NAMED_SHARED = 1, VIGIL_NAMED_FAIR = 2, VIGIL_NAMED_AGAIN = 4 };
typedef void vigil_named_callback(vigil_named *named, int status, void *data);
VIGIL_API int vigil_named_lock(vigil_named *named, unsigned how);
VIGIL_API int vigil_named_lock_for(vigil_named *named, unsigned how, int64_t timeout_ns);
VIGIL_API int vigil_named_lock_until(vigil_named *named, unsigned how, int64_t deadline_ns);
VIGIL_API int vigil_named_trylock(vigil_named *named, unsigned how);
VIGIL_API int vigil_named_lock_async(vigil_agent *agent, vigil_named *named, unsigned how, int64_t timeout_ns,
                                     vigil_named_callback *callback, void *data);
VIGIL_API int vigil_named_cancel(vigil_named *named);
VIGIL_API int vigil_named_unlock(vigil_named *named);
VIGIL_API int vigil_named_abandon(vigil_named *named);
VIGIL_API int vigil_named_consistent(vigil_named *named);

/*
 * vigil_named_steal - hold the lock alone, now, without waiting: all that held it, alone or shared, in whatever process
 * or thread, do not any more. Those that wait keep their places, behind the caller. VIGIL_OK, or VIGIL_OWNER_DIED if a
 * holder had died before and the lock was not consistent since. VIGIL_EINVAL for a semaphore; VIGIL_EINUSE,
 * VIGIL_ELIMIT, VIGIL_EFORKED as in vigil_named_lock. If no handle holds the lock, it is simply taken, also before
 * those that wait.
 *
 * Processes that a holder has tied to the lock do not keep others from it once it has been stolen. If the thief is
 * killed, the next one to take the lock is told by VIGIL_OWNER_DIED.
 *
 * vigil_named_is_stolen - whether the lock that this handle holds has been stolen. False as well if it holds none.
 *
 * vigil_named_steals - a word that changes, and is notified, when the lock has been stolen; null for a semaphore. A
 * holder that wants to know at once loads it, asks vigil_named_is_stolen, and waits by vigil_wait32 or
 * vigil_wait32_async while the word is what it loaded; then it asks again. The handle must stay open meanwhile.
 */
VIGIL_API int vigil_named_steal(vigil_named *named);
VIGIL_API bool vigil_named_is_stolen(const vigil_named *named);
VIGIL_API const uint32_t *vigil_named_steals(const vigil_named *named);

/*
 * vigil_named_describe - what other processes see of this one when it holds the lock alone: up to 63 bytes of text,
 * such as its command, and the process that runs it. Default: the program's name, and this process.
 *
 * vigil_named_death - the process that held it alone when it was killed: VIGIL_OK. VIGIL_EINVAL if no holder died, or
 * the lock has been declared consistent since.
 */
typedef struct vigil_named_holder {
    uint32_t pid;     /* in its own pid namespace */
    bool other_space; /* that is another pid namespace than that of the caller */
    int64_t taken_at; /* when it took the lock: seconds since 1970 */
    char text[64];
} vigil_named_holder;
VIGIL_API int vigil_named_describe(vigil_named *named, const char *text, uint32_t pid);
VIGIL_API int vigil_named_death(const vigil_named *named, vigil_named_holder *dead);

/*
 * vigil_named_data - VIGIL_NAMED_DATA bytes of memory that come with the lock, aligned to 8, zero when it is new; null
 * for a null pointer and in the child of a fork. Only holders may read it, and only one that holds the lock alone may
 * change it. What a killed holder wrote is there for the next one, which is told by VIGIL_OWNER_DIED.
 */
#define VIGIL_NAMED_DATA 64
VIGIL_API void *vigil_named_data(vigil_named *named);

/*
 * vigil_named_tie - for a holder that starts processes: returns a descriptor for them to inherit, or VIGIL_ESYSTEM.
 * While any of them has it open, the lock is not given to others, even if this process is killed. An unlock releases
 * it for all of them. Call it before the lock is taken. The handle owns the descriptor, which is closed by exec unless
 * the caller changes that (a duplicate is as good).
 *
 * vigil_named_orphans - whether a lock or a request of this handle waits for such processes of a killed holder, or has
 * timed out because of them.
 */
VIGIL_API int vigil_named_tie(vigil_named *named);
VIGIL_API bool vigil_named_orphans(const vigil_named *named);

/*
 * vigil_named_list - call `listed` with each name of this user, in no particular order: returns how many, or
 * VIGIL_ENULL, or an error of vigil_segment_open. The names must not be opened or removed meanwhile.
 *
 * vigil_named_remove - remove the name, or the lock's file at a path: VIGIL_OK. VIGIL_EBUSY if a process has it open,
 * or if a killed holder has left processes; with `force`, those keep it, and the name can be used for a new one.
 * VIGIL_ENOTFOUND.
 *
 * vigil_named_remove_unused - remove each name of this user that no process has open and of which no holder died.
 * Returns how many.
 *
 * vigil_named_mend - repair damage of the file that has the name, as vigil_segment_mend does, before it is used.
 */
typedef void vigil_listed(const char *name, void *data);
VIGIL_API int64_t vigil_named_list(vigil_listed *listed, void *data);
VIGIL_API int vigil_named_remove(const char *name, bool force);
VIGIL_API int64_t vigil_named_remove_unused(void);
VIGIL_API int64_t vigil_named_mend(const char *name);

#ifdef __cplusplus
}
#endif
#endif
