/* SPDX-License-Identifier: MIT */
/*
 * vigil/remote.h - the same locks beyond one machine, on etcd. In libvigil-etcd, which needs libvigil, libnghttp2,
 * OpenSSL, protobuf-c and c-ares.
 *
 *     vigil_remote *cluster;
 *     vigil_remote_open(&cluster, agent, "etcd://h1:2379,h2:2379,h3:2379", NULL);
 *     vigil_remote_lock *deploy;
 *     vigil_remote_lock_open(&deploy, cluster, "deploy", NULL);
 *     vigil_remote_lock_take(deploy, 0, VIGIL_FOREVER, granted, NULL);
 *     ...
 *     static void granted(vigil_remote_lock *deploy, int status, void *data) {
 *         if (status == VIGIL_OK) write_with_token(vigil_remote_lock_token(deploy));
 *         ...
 *     }
 *
 * All of it happens on the thread of the agent, through the agent's one descriptor: no call blocks, and there is no
 * thread. doc/remote.md has the protocol, its argument, and what is promised.
 *
 * WHAT A HOLDER CAN RELY ON. A holder has a lease, which the library renews. A holder that cannot renew it, because
 * the network is cut or its process was stopped, loses the lock when the lease ends; `on_lost` is called before
 * that, if the process runs. No clock and no lock can stop a process that was suspended and goes on later. What it
 * writes can be refused: each grant has a token, a number that is greater than those of all grants before. Give the
 * token along with each write, and let what is written to refuse a token that is less than one it has seen.
 *
 * A MACHINE STANDS IN LINE ONCE. Requests of all threads, event loops and processes of a user of one machine that want
 * the lock alone queue in a named lock of the machine (vigil/named.h), and the machine stands in the cluster's line. A
 * release gives the lock to the next on the same machine, with a new token: while other machines wait, at most
 * VIGIL_REMOTE_HANDOVERS times and for half the time to live. If a holder is killed, the next on its machine gets the
 * lock at once, with VIGIL_OWNER_DIED. If a whole machine fails, the next machine gets it when the lease has ended.
 * While no other machine waits, a machine keeps a lock that was released, until the handle is closed or another machine
 * wants it. CLOSE THE HANDLE before the process ends, and wait for it: if it ends without that, other machines wait for
 * the end of the lease, and the next gets VIGIL_OWNER_DIED although the lock was released; for the cluster, the machine
 * had it. With `gives_back` a lock that is released is not kept. Requests that share a lock, and slots of a semaphore,
 * stand in the cluster's line one by one.
 *
 * MEMORY. A request for which there is no memory ends with VIGIL_ENOMEM, and nothing of it stays. What is held is not
 * lost by that: renewals and releases are tried again.
 *
 * ENDING. Close the locks, then the cluster, and then destroy the agent. If the agent is destroyed before, nothing is
 * called back after that: a request for a lock ends without its callback, other calls with VIGIL_CANCELLED before. Then
 * locks can be closed or abandoned, waits can be cancelled, which is done at once and not told to the cluster, whose
 * keys go with their leases; and the cluster can be closed. All other calls return VIGIL_ECLOSING.
 *
 * Every call returns VIGIL_ENULL for a null pointer that it needs. Handles are for the thread of their agent, and
 * not for the child of a fork. What is pending keeps vigil_agent_run going.
 */
#ifndef VIGIL_REMOTE_H
#define VIGIL_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "named.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VIGIL_REMOTE_HANDOVERS 16
#define VIGIL_REMOTE_NAME      150 /* bytes of a name, at most */

typedef struct vigil_remote vigil_remote;
typedef struct vigil_remote_lock vigil_remote_lock;

/*
 * How to reach the cluster. A null pointer, and zero in a field, select the defaults. With any of cacert, cert, key and
 * tls, and for endpoints that begin with https://, the connection is encrypted, and the server's certificate must be
 * valid for the host of the endpoint.
 */
typedef struct vigil_remote_options {
    const char *cacert;     /* a file: the authorities that are trusted; default: those of the system */
    const char *cert, *key; /* files: the certificate of this client, and its key */
    const char *user;       /* "name", or "name:password" */
    const char *password;
    int64_t ttl_ns; /* how long a lock outlives a machine that fails, 1 to 65,535 s, in whole seconds; 0: 10 s */
    bool tls;
} vigil_remote_options;

/*
 * vigil_remote_open - VIGIL_OK; the connection is made when it is needed. `at`: "etcd://host:port,host:port"; what
 * follows a slash after that is ignored. VIGIL_EINVAL: `at` cannot be read, or ttl_ns is less than a second.
 * VIGIL_ERANGE: it is more than 65,535 s. VIGIL_ENOMEM, VIGIL_ESYSTEM; the errors of vigil_agent_watch. A file that
 * cannot be used is told by the first call: VIGIL_EREFUSED.
 *
 * vigil_remote_close - VIGIL_OK, VIGIL_EBUSY while a lock of it is open or a call is pending.
 *
 * vigil_remote_why - a sentence that says what failed last, and at which endpoint; "" if nothing has. It is valid until
 * the next dispatch.
 */
VIGIL_API int vigil_remote_open(vigil_remote **remote, vigil_agent *agent, const char *at,
                                const vigil_remote_options *options);
VIGIL_API int vigil_remote_close(vigil_remote *remote);
VIGIL_API const char *vigil_remote_why(const vigil_remote *remote);

/*
 * A lock, or a semaphore of a number of slots. A name is 1 to VIGIL_REMOTE_NAME characters of A-Z a-z 0-9 . _ - and /,
 * and begins with a letter, a digit or _. Names of a cluster are the same for all its users.
 */
typedef void vigil_remote_lost(vigil_remote_lock *lock, int64_t left_ns, void *data);
typedef struct vigil_remote_lock_options {
    uint32_t slots;  /* a semaphore: if it is new, of so many slots, at most VIGIL_NAMED_SLOTS; 0: a lock */
    bool gives_back; /* release it to the cluster at once, also while no other machine waits */
    bool ties;       /* see vigil_remote_lock_tie */
    /* The lease could not be renewed, and ends in `left_ns`; or it has ended, and left_ns is 0. What the lock protects
     * must stop. The lock counts as held until it is released. */
    vigil_remote_lost *on_lost;
    void *data;
} vigil_remote_lock_options;

/*
 * vigil_remote_lock_open - VIGIL_OK, VIGIL_ENAME, VIGIL_ERANGE (too many slots), VIGIL_ENOMEM. A handle can hold the
 * lock once at a time; to hold it twice, open it twice.
 *
 * vigil_remote_lock_close - VIGIL_OK: it is closed, and the handle is freed. VIGIL_PENDING: what it holds is being
 * released, and then `closed(status, data)` is called and the handle freed; status as for release. `closed` may be
 * null. VIGIL_EBUSY while a request is pending: cancel it before; and while a release is: wait for its callback.
 *
 * vigil_remote_lock_abandon - free the handle as if its process had been killed, for a user of it that has ended while
 * the process goes on, such as a worker of a language runtime: VIGIL_OK. No call is made. Of a lock that is held alone
 * the next holder gets VIGIL_OWNER_DIED: of this machine at once, of others when the lease has ended. Callbacks that
 * are pending are not called. Not from a callback of the lock. VIGIL_ETOOLATE: this machine is giving the lock to the
 * handle just now. Dispatch the agent, and call it again.
 *
 * vigil_remote_lock_tie - for a holder that starts processes, after a lock opened with `ties` was granted alone: a
 * descriptor for them to inherit, as of vigil_named_tie: no other process of this machine gets the lock while any of
 * them has it open. VIGIL_EINVAL.
 *
 * vigil_remote_lock_describe - what others see of this one: up to 63 bytes of text, such as its command, and the
 * process. Default: the program's name, and this process.
 */
typedef void vigil_remote_closed(int status, void *data);
VIGIL_API int vigil_remote_lock_open(vigil_remote_lock **lock, vigil_remote *remote, const char *name,
                                     const vigil_remote_lock_options *options);
VIGIL_API int vigil_remote_lock_close(vigil_remote_lock *lock, vigil_remote_closed *closed, void *data);
VIGIL_API int vigil_remote_lock_abandon(vigil_remote_lock *lock);
VIGIL_API int vigil_remote_lock_tie(vigil_remote_lock *lock);
VIGIL_API int vigil_remote_lock_describe(vigil_remote_lock *lock, const char *text, uint32_t pid);

/*
 * vigil_remote_lock_take - VIGIL_PENDING, and then `callback(lock, status, data)` from the agent's dispatch:
 *
 *     VIGIL_OK            it is held
 *     VIGIL_OWNER_DIED    it is held, and the holder before died: see vigil_remote_lock_death
 *     VIGIL_TIMED_OUT     not in `timeout_ns`; 0: it is only tried
 *     VIGIL_EUNREACHABLE, VIGIL_EREFUSED, VIGIL_EPROTOCOL    see vigil_remote_why. Once the cluster has been reached, a
 *                         cluster that cannot be reached is tried until the timeout; a request that only tries the
 *                         lock ends with the first call that fails
 *     VIGIL_ENOMEM
 *     VIGIL_EINVAL        it is a semaphore of another number of slots, or does not exist and no number was given
 *
 * or an error of vigil_named_open, which the line of this machine needs. A request that ends without the lock leaves
 * the line after that, which takes some seconds if the cluster cannot be reached. VIGIL_EINUSE if it is held or a
 * request is pending. `how`: 0, or VIGIL_NAMED_SHARED: together with others that share it (not of a semaphore);
 * VIGIL_NAMED_FAIR may be given, and changes nothing: the line is first come, first served.
 *
 * vigil_remote_lock_cancel - end the pending request: VIGIL_OK, the callback will not be called. VIGIL_EIDLE.
 *
 * vigil_remote_lock_release - VIGIL_OK: it is released. VIGIL_PENDING: it is being released, and then
 * `callback(lock, status, data)` is called, with VIGIL_OK, or with an error: then others get it when the lease has
 * ended. VIGIL_ENOTHELD.
 *
 * vigil_remote_lock_token - while it is held: the token, greater than those of all grants before; else 0.
 * vigil_remote_lock_key - while it is held: the key in etcd that exists as long as the lease; else "".
 */
typedef void vigil_remote_callback(vigil_remote_lock *lock, int status, void *data);
VIGIL_API int vigil_remote_lock_take(vigil_remote_lock *lock, unsigned how, int64_t timeout_ns,
                                     vigil_remote_callback *callback, void *data);
VIGIL_API int vigil_remote_lock_cancel(vigil_remote_lock *lock);
VIGIL_API int vigil_remote_lock_release(vigil_remote_lock *lock, vigil_remote_callback *callback, void *data);
VIGIL_API int64_t vigil_remote_lock_token(const vigil_remote_lock *lock);
VIGIL_API const char *vigil_remote_lock_key(const vigil_remote_lock *lock);

/*
 * vigil_remote_lock_death - after VIGIL_OWNER_DIED, while it is held: which holder died: VIGIL_OK, VIGIL_EINVAL.
 *
 * vigil_remote_lock_consistent - after VIGIL_OWNER_DIED, while it is held alone: what it protects is in order again.
 * VIGIL_OK, VIGIL_ENOTHELD, VIGIL_EINVAL (no holder died). Without it, the next holder gets VIGIL_OWNER_DIED too.
 */
typedef struct vigil_remote_holder {
    char host[64];
    uint32_t pid;
    int64_t taken_at; /* seconds since 1970 */
    char text[64];
} vigil_remote_holder;
VIGIL_API int vigil_remote_lock_death(const vigil_remote_lock *lock, vigil_remote_holder *dead);
VIGIL_API int vigil_remote_lock_consistent(vigil_remote_lock *lock);

/*
 * vigil_remote_look - the holders and waiters of the lock or semaphore of that name: VIGIL_PENDING, and then
 * `looked(status, seen, data)`; what `seen` points to is valid during the call. First the holders, then the line, each
 * in their order; at most VIGIL_REMOTE_SEEN.
 */
#define VIGIL_REMOTE_SEEN 1000
typedef struct vigil_remote_one {
    bool holds, shares;
    int64_t revision, lease;
    vigil_remote_holder process;
} vigil_remote_one;
typedef struct vigil_remote_seen {
    const vigil_remote_one *all;
    uint32_t count, holders, waiters; /* how many of each there are */
    uint32_t slots;                   /* of a semaphore; 0: it has no number */
    bool died;                        /* a holder died, and the lock is not held alone since */
    vigil_remote_holder dead;
} vigil_remote_seen;
typedef void vigil_remote_looked(int status, const vigil_remote_seen *seen, void *data);
VIGIL_API int vigil_remote_look(vigil_remote *remote, const char *name, vigil_remote_looked *looked, void *data);

/*
 * The state of the cluster: VIGIL_PENDING, and then `told(status, health, data)`. The endpoint is the one that is used.
 */
typedef struct vigil_remote_health {
    char version[32];
    bool has_leader;
    int64_t round_trip_ns; /* of a read that all members agree on */
    int64_t database_bytes;
    unsigned alarms; /* of etcd: it accepts no changes */
} vigil_remote_health;
typedef void vigil_remote_told(int status, const vigil_remote_health *health, void *data);
VIGIL_API int vigil_remote_ask_health(vigil_remote *remote, vigil_remote_told *told, void *data);

/*
 * Words. The word of a name is the key of that name in etcd, a decimal number; a key that does not exist is 0. Each
 * call returns VIGIL_PENDING, and then `done(status, value, data)`:
 *
 *     load      VIGIL_OK, the value
 *     store     VIGIL_OK, the value before; 0 if that was no number
 *     cas       VIGIL_OK, or VIGIL_NOT_EQUAL: the value before
 *     notify    VIGIL_OK, how many waiters were woken: the first `count` in line; VIGIL_ALL
 *     wait      VIGIL_OK: woken by a notify; VIGIL_NOT_EQUAL: the word was not `expected`; VIGIL_TIMED_OUT;
 *               VIGIL_ELOST: the cluster was not reached for so long that a notify may be missed
 *
 * To compare and to join the line are one step, as in vigil_wait32. VIGIL_ETYPE: the key has another content than a
 * number, and it was not to be stored. A wait can be cancelled: vigil_remote_wait sets *wait, which is valid until
 * `done` is called.
 */
typedef void vigil_remote_done(int status, int64_t value, void *data);
typedef struct vigil_remote_wait vigil_remote_wait;
VIGIL_API int vigil_remote_word_load(vigil_remote *remote, const char *name, vigil_remote_done *done, void *data);
VIGIL_API int vigil_remote_word_store(vigil_remote *remote, const char *name, int64_t value, vigil_remote_done *done,
                                      void *data);
VIGIL_API int vigil_remote_word_cas(vigil_remote *remote, const char *name, int64_t expected, int64_t desired,
                                    vigil_remote_done *done, void *data);
VIGIL_API int vigil_remote_word_notify(vigil_remote *remote, const char *name, int64_t count, vigil_remote_done *done,
                                       void *data);
VIGIL_API int vigil_remote_word_wait(vigil_remote *remote, const char *name, int64_t expected, int64_t timeout_ns,
                                     vigil_remote_done *done, void *data, vigil_remote_wait **wait);
VIGIL_API int vigil_remote_word_cancel(vigil_remote_wait *wait);

#ifdef __cplusplus
}
#endif
#endif
