/* SPDX-License-Identifier: MIT */
/*
 * vigil/named.h: taking and giving back what a name stands for.
 *
 * A handle takes it in stages, each of which may have to wait: blocked in the call, or pending on an agent. Both ways
 * run the same stages, by named_run:
 *
 *     TURNSTILE   with VIGIL_NAMED_FAIR: lock the turnstile, a fair mutex
 *     LOCK        lock the read-write lock, or acquire a permit
 *     TIE         wait until no process runs any more that a killed holder has tied to it (below)
 *
 * A handle that has the lock alone keeps the turnstile until it unlocks, so that the next one is woken once; others
 * unlock the turnstile as soon as they have it.
 *
 * TIES. A lock in a segment belongs to a process. If that is killed, the next waiter gets the lock, although processes
 * that it started may still run. So a handle that is tied takes, with the lock, a kernel lock on a byte of the file
 * which belongs to a description of its own, and lets those processes inherit the descriptor. A semaphore has such a
 * byte for each slot. The byte is free when the last process that inherited it has ended, or when the handle has given
 * it back for all of them: so it is found locked only if a holder was killed. Once any handle has been tied to a name
 * (`tied`), all handles that take it take the byte too.
 *
 * STEALING. vigil_named_steal takes the lock away from all its holders at once, by rwlock_steal: sync/rwlock.h. The
 * waiters stay where they are, in the line of the lock or at the turnstile. A holder that was robbed is told by
 * VIGIL_ESTOLEN when it unlocks: it holds the lock by a number that is not that of the lock's holder any more. It can
 * learn that earlier, by waiting for a change of `steals`.
 *
 *     S1  unlock the turnstile   the holder to be robbed may have it, and may hang
 *     S2  rwlock_steal           the lock is the thief's
 *     S3  increment steals       also selects another byte for ties: processes of a holder that was robbed keep no
 *                                other process from the lock
 *     S4  S1 again               for a holder that came between S1 and S2
 *     S5  notify at steals
 *
 * The turnstile may be unlocked although a waiter has it, and is unlocked once more by the holder that was robbed. Then
 * two waiters are past it at a time. That does no harm: they stand in the line of the lock in the order in which they
 * came through.
 *
 * If the thief is killed after S2, the lock says "owner died", and the next handle to take it notifies. If it is killed
 * between S2 and S3 the next one has, besides, to wait for the processes of the holder that was robbed. If it is killed
 * between S2 and S4, and that holder came with VIGIL_NAMED_FAIR after S1, others that are fair wait until that holder
 * unlocks or ends, as they would without the thief.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/deadline.h"
#include "base/tuning.h"
#include "book.h"
#include "memory/segment.h"
#include "prim.h"
#include "prim_file.h"
#include "sync/rwlock.h"
#include "sync/sem.h"
#include "vigil/wait.h"

#define FIND_FDS   1024 /* where an inherited descriptor is looked for */
#define ALL_FLAGS  (VIGIL_NAMED_SHARED | VIGIL_NAMED_FAIR | VIGIL_NAMED_AGAIN)

enum named_state { NAMED_IDLE, NAMED_TAKING, NAMED_HELD };
enum named_stage { STAGE_TURNSTILE, STAGE_LOCK, STAGE_TIE, STAGES_OVER };

struct vigil_named {
    vigil_buffer *buffer; /* the book */
    struct entry *entry;  /* with `use` held */
    uint32_t pid;         /* of the process, shown to others */
    char text[BOOK_TEXT_BYTES];

    enum named_state state;
    enum named_stage stage;
    unsigned how;
    bool has_turnstile, has_lock, owner_died, orphans;
    uint32_t number; /* of a lock: by which it is held, see sync/rwlock.h */
    uint64_t tie_at; /* the byte that is locked; 0: none */
    int tie_fd;      /* -1: none */
    int64_t deadline_ns;

    vigil_agent *agent; /* null: the caller blocks */
    vigil_named_callback *callback;
    void *data;
    vigil_request request;
    vigil_op tick;
    uint32_t never; /* waited on for TIE_TRY_NS; no thread notifies it */
};

/* Opening and closing. */

static int named_check_options(const vigil_named_options *options) {
    if (!options) return VIGIL_OK;
    if (options->slots > VIGIL_NAMED_SLOTS) return VIGIL_ERANGE;
    bool good = !options->mode || ((options->mode & 0600) == 0600 && !(options->mode & ~0666u));
    return good ? VIGIL_OK : VIGIL_EINVAL;
}

int vigil_named_open(vigil_named **named, const char *name, const vigil_named_options *options) {
    if (!named || !name) return VIGIL_ENULL;
    int status = named_check_options(options);
    if (status != VIGIL_OK) return status;
    bool create = !options || !options->existing;
    vigil_named *made = calloc(1, sizeof *made);
    if (!made) return VIGIL_ENOMEM;
    status = book_open(&made->buffer, name, options, create);
    if (status == VIGIL_OK) {
        made->entry = book_use(made->buffer, book_name(name), options ? options->slots : 0, create, &status);
        if (!made->entry) vigil_buffer_destroy(made->buffer);
    }
    if (status != VIGIL_OK) {
        free(made);
        return status;
    }
    made->tie_fd = -1;
    made->pid = prim_process_id();
    prim_process_name(made->text, sizeof made->text - 1);
    *named = made;
    return VIGIL_OK;
}

static bool named_forked(const vigil_named *named) {
    return !vigil_buffer_data(named->buffer);
}

int vigil_named_close(vigil_named *named) {
    if (!named) return VIGIL_ENULL;
    if (!named_forked(named)) {
        if (named->state == NAMED_TAKING) return VIGIL_EBUSY;
        if (named->state == NAMED_HELD) vigil_named_unlock(named);
        if (named->entry) vigil_rwlock_read_unlock(&named->entry->use);
        named->entry = NULL; /* for the next try, if the buffer is busy */
    }
    int64_t status = vigil_buffer_destroy(named->buffer);
    if (status < 0) return (int)status;
    if (named->tie_fd >= 0) prim_file_close(named->tie_fd);
    free(named);
    return VIGIL_OK;
}

uint32_t vigil_named_slots(const vigil_named *named) {
    return named && !named_forked(named) ? prim_load_relaxed(&named->entry->slots) : 0;
}

int vigil_named_set_slots(vigil_named *named, uint32_t slots) {
    if (!named) return VIGIL_ENULL;
    if (named_forked(named)) return VIGIL_EFORKED;
    if (!prim_load_relaxed(&named->entry->slots)) return VIGIL_EINVAL;
    if (!slots || slots > VIGIL_NAMED_SLOTS) return VIGIL_ERANGE;
    return book_set_slots(named->buffer, named->entry, slots);
}

/* Ties. */

static bool named_is_semaphore(const vigil_named *named) {
    return prim_load_relaxed(&named->entry->slots) != 0;
}

static bool named_is_alone(const vigil_named *named) {
    return !(named->how & VIGIL_NAMED_SHARED) && !named_is_semaphore(named);
}

int vigil_named_tie(vigil_named *named) {
    if (!named) return VIGIL_ENULL;
    if (named_forked(named)) return VIGIL_EFORKED;
    if (named->tie_fd < 0) named->tie_fd = vigil_segment_fd(named->buffer);
    if (named->tie_fd >= 0) prim_store_seq_cst(&named->entry->tied, 1);
    return named->tie_fd >= 0 ? named->tie_fd : VIGIL_ESYSTEM;
}

bool vigil_named_orphans(const vigil_named *named) {
    return named && named->orphans;
}

/* Whether this process has inherited the descriptor that holds the byte: tried through that, the byte is free. It is
 * free through all others as well if it has just been unlocked. */
static bool named_may_be_orphan(const vigil_named *named, uint64_t at) {
    for (int fd = 0; fd < FIND_FDS; fd++) {
        bool own = fd == named->tie_fd || fd == named->buffer->segment->fd;
        if (!own && segment_is_file(named->buffer->segment, fd) && prim_file_test(fd, at, 1) == PRIM_LOCK_FREE)
            return true;
    }
    return false;
}

static enum prim_lock named_lock_byte(vigil_named *named, uint64_t at) {
    bool shared = named->how & VIGIL_NAMED_SHARED;
    enum prim_lock lock = shared ? prim_file_lock_shared(named->tie_fd, at) : prim_file_lock(named->tie_fd, at);
    if (lock == PRIM_LOCK_FREE) named->tie_at = at;
    return lock;
}

/* Call it with the lock held. A semaphore has a byte for each of its slots, and any free one will do. Processes begin
 * to look at different bytes, by their pids: the first bytes are mostly taken. */
static int named_try_tie(vigil_named *named) {
    if (named->tie_fd < 0 && !prim_load_seq_cst(&named->entry->tied)) return VIGIL_OK;
    if (named->tie_fd < 0 && vigil_named_tie(named) < 0) return VIGIL_ESYSTEM;
    uint64_t first = book_ties_at(named->buffer, named->entry), count = prim_load_relaxed(&named->entry->slots);
    if (!count) {
        first += prim_load_relaxed(&named->entry->steals);
        count = 1;
    }
    for (uint64_t i = 0; i < count; i++) {
        enum prim_lock lock = named_lock_byte(named, first + (named->pid + i) % count);
        if (lock != PRIM_LOCK_HELD) return lock == PRIM_LOCK_FREE ? VIGIL_OK : VIGIL_ESYSTEM;
    }
    if (count > 1 || !named_may_be_orphan(named, first)) return VIGIL_TIMED_OUT;
    return named_lock_byte(named, first) == PRIM_LOCK_FREE ? VIGIL_OK : VIGIL_EDEADLOCK;
}

static void named_untie(vigil_named *named) {
    if (named->tie_at) prim_file_unlock(named->tie_fd, named->tie_at);
    named->tie_at = 0;
}

/* Giving back. */

static void named_unlock_turnstile(vigil_named *named) {
    if (named->has_turnstile) vigil_mutex_unlock(&named->entry->turnstile);
    named->has_turnstile = false;
}

static int named_give_slot_back(struct entry *entry) {
    return book_take_excess(entry) ? sem_remove_own(&entry->permits) : vigil_sem_release(&entry->permits, 1);
}

/* What this handle does with the lock that it holds, or held until it was stolen. */
static int named_robbed(const vigil_named *named, int status) {
    return status == VIGIL_ENOTHELD && !named_is_semaphore(named) ? VIGIL_ESTOLEN : status;
}

static int named_unlock(vigil_named *named, bool died) {
    vigil_rwlock *lock = &named->entry->lock;
    if (named_is_semaphore(named)) return named_give_slot_back(named->entry);
    if (named->how & VIGIL_NAMED_SHARED) return rwlock_read_unlock_by(lock, named->number);
    return died ? rwlock_write_abandon_by(lock, named->number) : rwlock_write_unlock_by(lock, named->number);
}

/* `died`: as after the death of its process, though that goes on. Slots and shared locks come back in both cases. */
static int named_give_back(vigil_named *named, bool died) {
    int status = VIGIL_OK;
    named_untie(named);
    if (named->has_lock) status = named_robbed(named, named_unlock(named, died));
    named->has_lock = named->orphans = false;
    named_unlock_turnstile(named);
    named->state = NAMED_IDLE;
    return status;
}

int vigil_named_unlock(vigil_named *named) {
    if (!named) return VIGIL_ENULL;
    if (named_forked(named)) return VIGIL_EFORKED;
    return named->state == NAMED_HELD ? named_give_back(named, false) : VIGIL_ENOTHELD;
}

int vigil_named_abandon(vigil_named *named) {
    if (!named) return VIGIL_ENULL;
    if (named_forked(named)) return VIGIL_EFORKED;
    return named->state == NAMED_HELD ? named_give_back(named, true) : VIGIL_ENOTHELD;
}

/* Taking. */

/* The timeout of a stage: an absolute time, see vigil_until. */
static int64_t named_left_ns(const vigil_named *named) {
    return named->deadline_ns ? vigil_until(named->deadline_ns) : 0; /* 0: the caller only tries */
}

static int64_t named_remaining_ns(const vigil_named *named) {
    bool timed = named->deadline_ns > 0 && named->deadline_ns != VIGIL_FOREVER; /* else the difference may overflow */
    return timed ? named->deadline_ns - vigil_now_ns() : named->deadline_ns;
}

static void named_on_stage(vigil_op *op, int status);

/* Starts a stage by one of two calls, on the agent or blocking. The further arguments are the lock and, of a semaphore,
 * the number of permits. A macro, because the types of the locks differ. */
#define NAMED_START(named, call_async, call_for, ...)                                                                  \
    ((named)->agent ? call_async((named)->agent, &(named)->request, __VA_ARGS__, named_left_ns(named), named_on_stage) \
                    : call_for(__VA_ARGS__, named_left_ns(named)))

static int named_lock_turnstile(vigil_named *named) {
    return NAMED_START(named, vigil_mutex_lock_async, vigil_mutex_lock_for, &named->entry->turnstile);
}

static int named_take_slot(vigil_named *named) {
    return NAMED_START(named, vigil_sem_acquire_async, vigil_sem_acquire_for, &named->entry->permits, 1);
}

static int named_read(vigil_named *named) {
    vigil_rwlock *lock = &named->entry->lock;
    int status = named->how & VIGIL_NAMED_AGAIN ? rwlock_read_again(lock) : VIGIL_NOT_EQUAL;
    if (status != VIGIL_NOT_EQUAL) return status;
    return NAMED_START(named, vigil_rwlock_read_lock_async, vigil_rwlock_read_lock_for, lock);
}

static int named_write(vigil_named *named) {
    return NAMED_START(named, vigil_rwlock_write_lock_async, vigil_rwlock_write_lock_for, &named->entry->lock);
}

/* The kernel could wake a thread when the byte is free, but neither an event loop nor at a deadline: so it is tried
 * from time to time. Usually it is free at once, because its holders have just been killed. */
static int named_wait_for_tie(vigil_named *named) {
    int status = named_try_tie(named);
    int64_t left_ns = named_remaining_ns(named);
    if (status != VIGIL_TIMED_OUT || left_ns <= 0) return status;
    named->orphans = true;
    if (left_ns > TIE_TRY_NS) left_ns = TIE_TRY_NS;
    status = named->agent ? vigil_wait32_async(named->agent, &named->tick, &named->never, 0, left_ns, named_on_stage)
                          : vigil_wait32(&named->never, 0, left_ns);
    return status == VIGIL_TIMED_OUT ? VIGIL_NOT_EQUAL : status; /* try again */
}

static int named_begin_stage(vigil_named *named) {
    switch (named->stage) {
    case STAGE_TURNSTILE: return named->how & VIGIL_NAMED_FAIR ? named_lock_turnstile(named) : VIGIL_OK;
    case STAGE_LOCK:
        if (named_is_semaphore(named)) return named_take_slot(named);
        return named->how & VIGIL_NAMED_SHARED ? named_read(named) : named_write(named);
    default: return named_wait_for_tie(named);
    }
}

static bool named_got(int status) {
    return status == VIGIL_OK || status == VIGIL_OWNER_DIED;
}

/* What others see. After the death of a holder its own entry stays until the lock is consistent. */
static void named_sign(const vigil_named *named) {
    struct entry *entry = named->entry;
    entry->pid = named->pid;
    entry->space = prim_process_space();
    entry->taken_at = (int64_t)time(NULL);
    memcpy(entry->text, named->text, sizeof entry->text);
}

/* This thread has just taken the lock, or a permit. */
static void named_has_lock(vigil_named *named, int status) {
    named->has_lock = true;
    named->number = rwlock_number();
    named->owner_died = status == VIGIL_OWNER_DIED;
    if (named->owner_died) vigil_notify(&named->entry->steals, VIGIL_ALL); /* for a thief that was killed before S5 */
    if (named_is_alone(named) && !named->owner_died) named_sign(named);
}

/* The stage has ended. True: so has the taking, with *status. */
static bool named_end_stage(vigil_named *named, int *status) {
    if (named->stage == STAGE_TIE && (*status == VIGIL_NOT_EQUAL || *status == VIGIL_TIMED_OUT)) {
        if (named_remaining_ns(named) > 0) return false;
        *status = VIGIL_TIMED_OUT;
    }
    if (!named_got(*status)) {
        bool orphans = named->stage == STAGE_TIE && *status == VIGIL_TIMED_OUT;
        named_give_back(named, false);
        named->orphans = orphans;
        return true;
    }
    if (named->stage == STAGE_LOCK && named_is_semaphore(named) && book_take_excess(named->entry)) {
        sem_remove_own(&named->entry->permits);
        return false; /* acquire another */
    }
    if (named->stage == STAGE_TURNSTILE) {
        named->has_turnstile = named->how & VIGIL_NAMED_FAIR;
        if (*status == VIGIL_OWNER_DIED)
            vigil_mutex_consistent(&named->entry->turnstile); /* it protects only the order */
    } else if (named->stage == STAGE_LOCK) {
        named_has_lock(named, *status);
    }
    named->stage++;
    return named->stage == STAGES_OVER;
}

static int named_taken(vigil_named *named) {
    named->state = NAMED_HELD;
    named->orphans = false;
    if (!named_is_alone(named)) named_unlock_turnstile(named);
    return named->owner_died ? VIGIL_OWNER_DIED : VIGIL_OK;
}

/* Runs the stages until one is pending, or all are over. */
static int named_run(vigil_named *named) {
    int status;
    do {
        status = named_begin_stage(named);
        if (status == VIGIL_PENDING) return status;
    } while (!named_end_stage(named, &status));
    return named_got(status) ? named_taken(named) : status;
}

static void named_on_stage(vigil_op *op, int status) {
    vigil_named *named = op->data;
    if (status == VIGIL_CANCELLED) named->deadline_ns = 0; /* the agent ends */
    if (named->stage == STAGE_TIE && status == VIGIL_TIMED_OUT) status = VIGIL_NOT_EQUAL;
    int result = status;
    if (named_end_stage(named, &result)) result = named_got(result) ? named_taken(named) : result;
    else result = named_run(named);
    if (result != VIGIL_PENDING) named->callback(named, result, named->data);
}

static int named_check(vigil_named *named, unsigned how) {
    if (!named) return VIGIL_ENULL;
    if (named_forked(named)) return VIGIL_EFORKED;
    if (named->state != NAMED_IDLE) return VIGIL_EINUSE;
    bool shared = how & VIGIL_NAMED_SHARED;
    bool good = !(how & ~(unsigned)ALL_FLAGS) && (shared || !(how & VIGIL_NAMED_AGAIN)) &&
                !(shared && named_is_semaphore(named));
    return good ? VIGIL_OK : VIGIL_EINVAL;
}

static void named_begin(vigil_named *named, vigil_agent *agent, unsigned how, int64_t deadline_ns) {
    named->state = NAMED_TAKING;
    named->stage = how & VIGIL_NAMED_AGAIN ? STAGE_LOCK : STAGE_TURNSTILE;
    named->how = how;
    named->agent = agent;
    named->deadline_ns = deadline_ns;
    named->has_turnstile = named->has_lock = named->owner_died = named->orphans = false;
    named->request = (vigil_request){.op.data = named};
    named->tick = (vigil_op){.data = named};
}

static int named_take(vigil_named *named, vigil_agent *agent, unsigned how, int64_t deadline_ns) {
    named_begin(named, agent, how, deadline_ns);
    return named_run(named);
}

static int64_t named_deadline(int64_t timeout_ns) {
    uint64_t deadline_ns = deadline_of(timeout_ns);
    return deadline_ns < INT64_MAX ? (int64_t)deadline_ns : VIGIL_FOREVER;
}

int vigil_named_lock_until(vigil_named *named, unsigned how, int64_t deadline_ns) {
    int status = named_check(named, how);
    return status == VIGIL_OK ? named_take(named, NULL, how, deadline_ns) : status;
}

int vigil_named_lock_for(vigil_named *named, unsigned how, int64_t timeout_ns) {
    return vigil_named_lock_until(named, how, named_deadline(timeout_ns));
}

int vigil_named_lock(vigil_named *named, unsigned how) {
    return vigil_named_lock_until(named, how, VIGIL_FOREVER);
}

int vigil_named_trylock(vigil_named *named, unsigned how) {
    return vigil_named_lock_until(named, how, 0);
}

int vigil_named_lock_async(vigil_agent *agent, vigil_named *named, unsigned how, int64_t timeout_ns,
                           vigil_named_callback *callback, void *data) {
    if (!agent || !callback) return VIGIL_ENULL;
    int status = named_check(named, how);
    if (status != VIGIL_OK) return status;
    named->callback = callback;
    named->data = data;
    return named_take(named, agent, how, named_deadline(timeout_ns));
}

int vigil_named_cancel(vigil_named *named) {
    if (!named) return VIGIL_ENULL;
    if (named_forked(named)) return VIGIL_EFORKED;
    if (named->state != NAMED_TAKING) return VIGIL_EIDLE;
    int status = vigil_cancel(named->stage == STAGE_TIE ? &named->tick : &named->request.op);
    if (status == VIGIL_OK) named_give_back(named, false);
    return status;
}

void *vigil_named_data(vigil_named *named) {
    return named && !named_forked(named) ? named->entry->data : NULL;
}

/* Stealing. */

/* S3 to S5. Another thief may have taken the byte: then this one has been robbed already. */
static int named_rob(vigil_named *named) {
    int status;
    do {
        prim_fetch_add_acq_rel(&named->entry->steals, 1);
        status = named_try_tie(named);
    } while (status == VIGIL_TIMED_OUT);
    vigil_mutex_unlock(&named->entry->turnstile);
    vigil_notify(&named->entry->steals, VIGIL_ALL);
    return status;
}

int vigil_named_steal(vigil_named *named) {
    int status = named_check(named, 0);
    if (status != VIGIL_OK) return status;
    if (named_is_semaphore(named)) return VIGIL_EINVAL;
    named_begin(named, NULL, 0, 0);
    vigil_mutex_unlock(&named->entry->turnstile); /* S1 */
    status = rwlock_steal(&named->entry->lock);   /* S2 */
    if (!named_got(status)) {
        named->state = NAMED_IDLE;
        return status;
    }
    named_has_lock(named, status);
    status = named_rob(named);
    if (status == VIGIL_OK) return named_taken(named);
    named_give_back(named, false);
    return status;
}

bool vigil_named_is_stolen(const vigil_named *named) {
    if (!named || named_forked(named) || named->state != NAMED_HELD || named_is_semaphore(named)) return false;
    return !rwlock_is_held_by(&named->entry->lock, named->number);
}

const uint32_t *vigil_named_steals(const vigil_named *named) {
    bool lock = named && !named_forked(named) && !named_is_semaphore(named);
    return lock ? &named->entry->steals : NULL;
}

/* The dead. */

int vigil_named_consistent(vigil_named *named) {
    if (!named) return VIGIL_ENULL;
    if (named_forked(named)) return VIGIL_EFORKED;
    if (named->state != NAMED_HELD || !named_is_alone(named)) return VIGIL_ENOTHELD;
    if (vigil_named_is_stolen(named)) return VIGIL_ESTOLEN; /* even if no holder died */
    int status = named_robbed(named, rwlock_consistent_by(&named->entry->lock, named->number));
    if (status == VIGIL_OK) named_sign(named);
    return status;
}

int vigil_named_describe(vigil_named *named, const char *text, uint32_t pid) {
    if (!named || !text) return VIGIL_ENULL;
    memset(named->text, 0, sizeof named->text);
    strncpy(named->text, text, sizeof named->text - 1);
    named->pid = pid;
    bool held = !named_forked(named) && named->state == NAMED_HELD && named_is_alone(named);
    if (held && !named->owner_died && !vigil_named_is_stolen(named)) named_sign(named);
    return VIGIL_OK;
}

int vigil_named_death(const vigil_named *named, vigil_named_holder *dead) {
    if (!named || !dead) return VIGIL_ENULL;
    if (named_forked(named)) return VIGIL_EFORKED;
    const struct entry *entry = named->entry;
    if (!(prim_load_relaxed(&entry->lock.word) >> 31)) return VIGIL_EINVAL;
    *dead = (vigil_named_holder){
        .pid = entry->pid, .other_space = entry->space != prim_process_space(), .taken_at = entry->taken_at};
    memcpy(dead->text, entry->text, sizeof dead->text - 1);
    return VIGIL_OK;
}

/* Names. */

int64_t vigil_named_list(vigil_listed *listed, void *data) {
    if (!listed) return VIGIL_ENULL;
    struct segment *book;
    int status = segment_glimpse_book(&book, NULL);
    if (status != VIGIL_OK) return status == VIGIL_ENOTFOUND ? 0 : status;
    int64_t count = (int64_t)book_each(book->buffer.data, segment_usable(book), listed, data);
    segment_forget(book);
    return count;
}

int vigil_named_remove(const char *name, bool force) {
    if (!name) return VIGIL_ENULL;
    if (book_is_path(name)) return segment_unlink_path(name, force);
    vigil_buffer *buffer;
    int status = book_open(&buffer, name, NULL, false);
    if (status != VIGIL_OK) return status;
    status = book_remove(buffer, name, force);
    vigil_buffer_destroy(buffer);
    return status;
}

int64_t vigil_named_remove_unused(void) {
    vigil_buffer *buffer;
    int status = book_open(&buffer, "any", NULL, false);
    if (status != VIGIL_OK) return status == VIGIL_ENOTFOUND ? 0 : status;
    int64_t removed = book_remove_unused(buffer);
    vigil_buffer_destroy(buffer);
    return removed;
}

int64_t vigil_named_mend(const char *name) {
    if (!name) return VIGIL_ENULL;
    vigil_buffer *buffer;
    int64_t mended = book_open(&buffer, name, NULL, false);
    if (mended != VIGIL_OK) return mended;
    mended = vigil_segment_mend(buffer);
    vigil_buffer_destroy(buffer);
    return mended;
}
