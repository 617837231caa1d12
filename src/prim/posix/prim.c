/* SPDX-License-Identifier: MIT */
/*
 * prim.h with nothing but POSIX: threads, a pipe and poll. For systems without futexes, such as macOS and the BSDs, and
 * for private memory only.
 *
 * PARKING
 *
 * A sleeping thread has a pipe, from a pool, and sleeps in poll until a byte is in it. It is found through a table of
 * sleepers, hashed by the address of the word:
 *
 *     to park   P1  lock the word's bucket of the table          to wake   S1  change the word (the caller)
 *               P2  compare; unequal: unlock, return                       S2  lock the bucket
 *               P3  join the bucket's list, unlock                         S3  the first sleeper on the word: write
 *               P4  poll the pipe                                          S4  unlock
 *               P5  lock, leave the list, unlock
 *
 * If P1 comes after S4 then P2 sees S1. Else S3 finds the sleeper, and a byte stays in a pipe until it is read. S3
 * happens under the lock, and P5 locks every bucket in which the sleeper was: so after P5 no thread knows the pipe, and
 * what has been written into it can be read and the pipe put back.
 *
 * Why no condition variables: vigil_notify may be called in a signal handler, also by one that interrupts the very
 * thread that it wakes. A handler can write into a pipe, but cannot signal a condition that its own thread is just
 * waiting for. The locks of the table are mutexes, with the same problem; but a thread holds one for some ten
 * instructions only, and never sleeps with it. So a handler that interrupts such a section (`depth`) leaves a note, and
 * the thread, when it has left the section, wakes all sleepers: that is rare, and callers of prim_park loop.
 *
 * If no pipe can be made (EMFILE), the thread looks again every millisecond.
 *
 * BELLS
 *
 * A bell is a pipe as well, which contains a byte for a ring, and one if the alarm has gone off. So its end to read is
 * the descriptor to poll, and there is no need for timers that can be polled: a thread of the library's, the clock,
 * sleeps until the first alarm of all bells is due, and then writes that byte. Both bytes stay until they are taken,
 * each by the agent's own thread:
 *
 *     take    read all; if the alarm's byte is among them, put it back
 *     wait    read the alarm's byte, as only a ring counts; put it back afterwards
 *     alarm   under the clock's gate: read all, put the ring back, if any; set the new time
 *
 * No other thread reads, and a ring is not rung again before it is taken, so nothing is counted twice; several bytes of
 * the same kind mean the same as one. The clock writes under its gate, and only to bells in its list: a bell is taken
 * out of the list before it is closed.
 */
#ifdef __APPLE__
#define _DARWIN_C_SOURCE
#elif !defined PRIM_PPOLL
#define _GNU_SOURCE /* ppoll, where the headers are those of glibc */
#endif
#include "prim.h"
#include "no_watches.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  1000000000u
#define NS_PER_MS 1000000u

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

uint64_t prim_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t prim_now_coarse_ms(void) {
    return prim_now_ns() / NS_PER_MS;
}

unsigned prim_processors(void) {
    int errno_before = errno;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    errno = errno_before;
    return processors > 1 ? (unsigned)processors : 1;
}

/*
 * Pipes. The functions of libc are cancellation points, and change errno: between these two calls they are not, and the
 * caller's errno is kept.
 */

struct quiet {
    int cancel_state, error;
};

static struct quiet quiet_begin(void) {
    struct quiet before = {.error = errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.cancel_state);
    return before;
}

static void quiet_end(struct quiet before) {
    pthread_setcancelstate(before.cancel_state, NULL);
    errno = before.error;
}

struct pipe_ends {
    int read_fd, write_fd;
};

static bool pipe_prepare(int fd) {
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static void pipe_close(struct pipe_ends ends) {
    struct quiet quiet = quiet_begin();
    close(ends.read_fd);
    close(ends.write_fd);
    quiet_end(quiet);
}

/* False: see errno. */
static bool pipe_open(struct pipe_ends *ends) {
    int fds[2];
    if (pipe(fds) != 0) return false;
    *ends = (struct pipe_ends){fds[0], fds[1]};
    if (pipe_prepare(fds[0]) && pipe_prepare(fds[1])) return true;
    int why = errno;
    pipe_close(*ends);
    errno = why;
    return false;
}

/* Never full: what is in a pipe is at most a few bytes. */
static void pipe_put(int write_fd, unsigned char byte) {
    struct quiet quiet = quiet_begin();
    while (write(write_fd, &byte, 1) < 0 && errno == EINTR) {
    }
    quiet_end(quiet);
}

/* All bytes that are in the pipe, or-ed together. */
static unsigned pipe_take(int read_fd) {
    struct quiet quiet = quiet_begin();
    unsigned char bytes[16];
    unsigned all = 0;
    ssize_t count;
    while ((count = read(read_fd, bytes, sizeof bytes)) > 0 || (count < 0 && errno == EINTR)) {
        for (ssize_t i = 0; i < count; i++) all |= bytes[i];
    }
    quiet_end(quiet);
    return all;
}

#if PRIM_PPOLL
static int pipe_poll(struct pollfd *fds, nfds_t count, uint64_t left_ns) {
    struct timespec left = {.tv_sec = (time_t)(left_ns / NS_PER_S), .tv_nsec = (long)(left_ns % NS_PER_S)};
    return ppoll(fds, count, left_ns == PRIM_NEVER ? NULL : &left, NULL);
}
#else
static int pipe_poll(struct pollfd *fds, nfds_t count, uint64_t left_ns) {
    uint64_t left_ms = left_ns / NS_PER_MS + 1;
    return poll(fds, count, left_ns == PRIM_NEVER ? -1 : left_ms < 3600000 ? (int)left_ms : 3600000);
}
#endif

/* Sleep until a byte is in the pipe (-1: none), or the deadline, or for no reason. */
static void pipe_wait(int read_fd, uint64_t deadline_ns) {
    struct quiet quiet = quiet_begin();
    struct pollfd readable = {.fd = read_fd, .events = POLLIN};
    uint64_t now_ns = deadline_ns == PRIM_NEVER ? 0 : prim_now_ns();
    uint64_t left_ns = deadline_ns == PRIM_NEVER ? PRIM_NEVER : deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    if (pipe_poll(&readable, 1, left_ns) < 0 && errno == EINTR) prim_self()->signalled = true;
    quiet_end(quiet);
}

/* Sections: see PARKING. */

static _Thread_local uint32_t depth;    /* for this thread and its signal handlers */
static _Thread_local uint32_t wake_all; /* the same: a handler has left this note */

static void table_wake_all(void);

static void section_lock(pthread_mutex_t *mutex) {
    prim_own_store(&depth, 1);
    pthread_mutex_lock(mutex);
}

/* A handler that runs before the store of `depth` leaves its note before it is looked for; a later one finds no
 * section. */
static void section_unlock(pthread_mutex_t *mutex) {
    pthread_mutex_unlock(mutex);
    prim_own_store(&depth, 0);
    while (prim_own_load(&wake_all)) {
        prim_own_store(&wake_all, 0);
        table_wake_all();
    }
}

/* The pool of pipes. */

#define POOL_MOST 4096u /* more than these are closed after use */
static struct {
    pthread_mutex_t gate;
    uint32_t count;
    struct pipe_ends pipes[POOL_MOST];
} pool = {.gate = PTHREAD_MUTEX_INITIALIZER};

static bool pool_take(struct pipe_ends *ends) {
    section_lock(&pool.gate);
    bool found = pool.count > 0;
    if (found) *ends = pool.pipes[--pool.count];
    section_unlock(&pool.gate);
    if (found) return true;
    struct quiet quiet = quiet_begin();
    bool opened = pipe_open(ends);
    quiet_end(quiet);
    return opened;
}

static void pool_give(struct pipe_ends ends) {
    section_lock(&pool.gate);
    bool room = pool.count < POOL_MOST;
    if (room) pool.pipes[pool.count++] = ends;
    section_unlock(&pool.gate);
    if (!room) pipe_close(ends);
}

/* The table of sleepers. */

struct sleeper {
    uint32_t *word; /* null: not in the list (any more) */
    int write_fd;
    uint32_t *woken; /* by S3: the thread's own, one for all its words */
    uint32_t index;  /* of the word, from 1: what is stored there */
    struct sleeper *next, **link;
};

#define TABLE_BITS 8
static struct table_bucket {
    pthread_mutex_t gate;
    struct sleeper *first, **last;
} table[1 << TABLE_BITS];

static void table_begin(void) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        pthread_mutex_init(&table[i].gate, NULL);
        table[i].first = NULL;
        table[i].last = &table[i].first;
    }
}

static struct table_bucket *table_bucket_of(const uint32_t *word) {
    uint64_t scattered = (uint64_t)(uintptr_t)word / 4 * UINT64_C(0x9E3779B97F4A7C15);
    return &table[scattered >> (64 - TABLE_BITS)];
}

static void table_unlink(struct table_bucket *bucket, struct sleeper *sleeper) {
    *sleeper->link = sleeper->next;
    if (sleeper->next) sleeper->next->link = sleeper->link;
    else bucket->last = sleeper->link;
    sleeper->word = NULL;
}

/* S3 */
static void table_wake(struct table_bucket *bucket, struct sleeper *sleeper) {
    table_unlink(bucket, sleeper);
    prim_store_relaxed(sleeper->woken, sleeper->index);
    pipe_put(sleeper->write_fd, 1);
}

static void table_wake_all(void) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        section_lock(&table[i].gate);
        while (table[i].first) table_wake(&table[i], table[i].first);
        section_unlock(&table[i].gate);
    }
}

/* P1 to P3. */
static bool table_join(struct sleeper *sleeper, const struct prim_word *word) {
    struct table_bucket *bucket = table_bucket_of(word->word);
    section_lock(&bucket->gate);
    bool equal = prim_load_relaxed(word->word) == word->expected;
    if (equal) {
        sleeper->word = word->word;
        sleeper->next = NULL;
        sleeper->link = bucket->last;
        *bucket->last = sleeper;
        bucket->last = &sleeper->next;
    }
    section_unlock(&bucket->gate);
    return equal;
}

/* P5 */
static void table_leave(struct sleeper *sleeper, const struct prim_word *word) {
    struct table_bucket *bucket = table_bucket_of(word->word);
    section_lock(&bucket->gate);
    if (sleeper->word) table_unlink(bucket, sleeper);
    section_unlock(&bucket->gate);
}

static void prim_load(void);
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

/* If one of several words has been woken, and this thread is not going to use that because another differs, no other
 * sleeper on it is woken: the caller looks at all its words anyway, and is the only one that sleeps on them. */
int prim_park_any(const struct prim_word *words, unsigned count, uint64_t deadline_ns) {
    struct sleeper sleepers[PRIM_WORDS];
    struct pipe_ends ends;
    uint32_t woken = 0;
    unsigned joined = 0;
    pthread_once(&loaded, prim_load);
    if (!pool_take(&ends)) { /* no descriptors left */
        uint64_t soon_ns = prim_now_ns() + NS_PER_MS;
        pipe_wait(-1, soon_ns < deadline_ns ? soon_ns : deadline_ns);
        return -1;
    }
    while (joined < count) {
        sleepers[joined] = (struct sleeper){.write_fd = ends.write_fd, .woken = &woken, .index = joined + 1};
        if (!table_join(&sleepers[joined], &words[joined])) break;
        joined++;
    }
    if (joined == count) pipe_wait(ends.read_fd, deadline_ns); /* P4 */
    for (unsigned i = 0; i < joined; i++) table_leave(&sleepers[i], &words[i]);
    pipe_take(ends.read_fd);
    pool_give(ends);
    return (int)prim_load_relaxed(&woken) - 1;
}

void prim_park(uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
    prim_park_any(&(struct prim_word){word, expected, true}, 1, deadline_ns);
}

void prim_wake(uint32_t *word) {
    if (prim_own_load(&depth)) { /* a signal handler, in a section of its thread */
        prim_own_store(&wake_all, 1);
        return;
    }
    pthread_once(&loaded, prim_load);
    struct table_bucket *bucket = table_bucket_of(word);
    section_lock(&bucket->gate);
    struct sleeper *sleeper = bucket->first;
    while (sleeper && sleeper->word != word) sleeper = sleeper->next;
    if (sleeper) table_wake(bucket, sleeper);
    section_unlock(&bucket->gate);
}

/* Memory. */

void *prim_map(size_t bytes) {
    void *mapping = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapping == MAP_FAILED ? NULL : mapping;
}

bool prim_map_open(void *part, size_t bytes, bool dense) {
    (void)dense;
    return mprotect(part, bytes, PROT_READ | PROT_WRITE) == 0;
}

void prim_map_densely(void *part, size_t bytes) {
    (void)part;
    (void)bytes;
}

void prim_unmap(void *mapping, size_t bytes) {
    munmap(mapping, bytes);
}

/* All of it is open afterwards, which is allowed. */
void prim_map_clear(void *mapping, size_t bytes) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(mapping, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) abort();
}

/* Shared memory is not noticed: POSIX has nothing that tells it. */
bool prim_is_own(const void *address) {
    int errno_before = errno;
    unsigned char resident;
    uintptr_t page = (uintptr_t)address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    bool mapped = mincore((void *)page, 1, (void *)&resident) == 0 || errno != ENOMEM;
    errno = errno_before;
    return mapped;
}

/* Bells. */

#define BELL_RING  1u
#define BELL_ALARM 2u

struct alarm {
    int write_fd;        /* of its bell */
    uint32_t gone_off;   /* atomic: set by the clock, cleared when the alarm is set anew */
    uint32_t generation; /* prim_generation when it was put into the clock's list */
    uint64_t at_ns;      /* under the clock's gate, as the links; PRIM_NEVER: not in the list */
    struct alarm *previous, *next;
};

static void clock_forget(struct alarm *alarm);

bool prim_bell_open(struct prim_bell *bell) {
    struct pipe_ends ends;
    if (!pipe_open(&ends)) return false;
    *bell = (struct prim_bell){.read_fd = ends.read_fd, .write_fd = ends.write_fd};
    return true;
}

void prim_bell_close(struct prim_bell *bell) {
    if (bell->alarm) clock_forget(bell->alarm);
    free(bell->alarm);
    pipe_close((struct pipe_ends){bell->read_fd, bell->write_fd});
}

void prim_bell_ring(struct prim_bell *bell) {
    int write_fd = bell->write_fd;
    /* Pairs with the acquire in prim_bell_take: the pipe orders ring and take as well, but C does not know that. */
    __atomic_fetch_add(&bell->rings, 1, __ATOMIC_RELEASE);
    pipe_put(write_fd, BELL_RING);
}

bool prim_bell_take(struct prim_bell *bell) {
    unsigned had = pipe_take(bell->read_fd);
    if (had & BELL_ALARM) pipe_put(bell->write_fd, BELL_ALARM);
    if (!(had & BELL_RING)) return false;
    prim_load_acquire(&bell->rings);
    return true;
}

void prim_bell_wait(struct prim_bell *bell, uint64_t deadline_ns) {
    bool alarm = bell->alarm && prim_load_acquire(&bell->alarm->gone_off);
    bool rung = alarm && (pipe_take(bell->read_fd) & BELL_RING);
    if (rung) pipe_put(bell->write_fd, BELL_RING);
    else pipe_wait(bell->read_fd, deadline_ns);
    if (alarm) pipe_put(bell->write_fd, BELL_ALARM);
}

int prim_bell_fd(struct prim_bell *bell) {
    if (!bell->alarm) {
        bell->alarm = malloc(sizeof *bell->alarm);
        if (!bell->alarm) return -1;
        *bell->alarm = (struct alarm){.write_fd = bell->write_fd, .at_ns = PRIM_NEVER};
    }
    return bell->read_fd;
}

/* The clock. */

static struct {
    pthread_mutex_t gate;
    struct alarm *first; /* alarms that are set and have not gone off */
    uint64_t until_ns;   /* the first of them, or earlier; the clock sleeps until then */
    uint32_t changes;    /* atomic; the clock sleeps on it */
    bool running;
} clocks = {.gate = PTHREAD_MUTEX_INITIALIZER, .until_ns = PRIM_NEVER};

static void clock_unlink(struct alarm *alarm) {
    if (alarm->at_ns == PRIM_NEVER || alarm->generation != prim_generation) return; /* not in this process's list */
    if (alarm->previous) alarm->previous->next = alarm->next;
    else clocks.first = alarm->next;
    if (alarm->next) alarm->next->previous = alarm->previous;
    alarm->at_ns = PRIM_NEVER;
}

static void clock_link(struct alarm *alarm, uint64_t at_ns) {
    alarm->at_ns = at_ns;
    alarm->generation = prim_generation;
    alarm->previous = NULL;
    alarm->next = clocks.first;
    if (alarm->next) alarm->next->previous = alarm;
    clocks.first = alarm;
}

static void clock_go_off(struct alarm *alarm) {
    clock_unlink(alarm);
    prim_store_release(&alarm->gone_off, 1);
    pipe_put(alarm->write_fd, BELL_ALARM);
}

/* Returns when the next alarm is due. */
static uint64_t clock_strike(uint64_t now_ns) {
    uint64_t next_ns = PRIM_NEVER;
    for (struct alarm *alarm = clocks.first, *next; alarm; alarm = next) {
        next = alarm->next;
        if (alarm->at_ns <= now_ns) clock_go_off(alarm);
        else if (alarm->at_ns < next_ns) next_ns = alarm->at_ns;
    }
    return next_ns;
}

static void clock_main(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&clocks.gate);
        uint64_t until_ns = clocks.until_ns = clock_strike(prim_now_ns());
        uint32_t seen = prim_load_relaxed(&clocks.changes);
        pthread_mutex_unlock(&clocks.gate);
        prim_park(&clocks.changes, seen, until_ns); /* returns if `changes` has risen since */
    }
}

/* Under the gate. */
static void clock_start(void) {
    if (!clocks.running) clocks.running = prim_thread_start(NULL, clock_main, NULL, true);
}

static void clock_forget(struct alarm *alarm) {
    pthread_mutex_lock(&clocks.gate);
    clock_unlink(alarm);
    pthread_mutex_unlock(&clocks.gate);
}

static void clock_silence(struct prim_bell *bell) {
    if (!prim_load_relaxed(&bell->alarm->gone_off)) return;
    prim_store_relaxed(&bell->alarm->gone_off, 0);
    if (pipe_take(bell->read_fd) & BELL_RING) pipe_put(bell->write_fd, BELL_RING);
}

/* If the clock cannot be started, the alarm goes off at once: the loop looks too often, but misses nothing. */
static void clock_set(struct alarm *alarm, uint64_t at_ns) {
    clock_start();
    clock_link(alarm, at_ns);
    if (!clocks.running) clock_go_off(alarm);
}

void prim_bell_alarm(struct prim_bell *bell, uint64_t deadline_ns) {
    struct quiet quiet = quiet_begin();
    pthread_mutex_lock(&clocks.gate);
    clock_unlink(bell->alarm);
    clock_silence(bell);
    if (deadline_ns != PRIM_NEVER) clock_set(bell->alarm, deadline_ns);
    bool earlier = deadline_ns < clocks.until_ns;
    if (earlier) {
        clocks.until_ns = deadline_ns;
        prim_store_relaxed(&clocks.changes, clocks.changes + 1);
    }
    pthread_mutex_unlock(&clocks.gate);
    if (earlier) prim_wake(&clocks.changes);
    quiet_end(quiet);
}

/* Text. */

bool prim_write(int fd, const char *text, size_t bytes) {
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    while (bytes) {
        ssize_t written = write(fd, text, bytes);
        if (written < 0 && errno != EINTR) break;
        if (written < 0) continue;
        text += written;
        bytes -= (size_t)written;
    }
    pthread_setcancelstate(cancel_state, NULL);
    return bytes == 0;
}

/* Threads. */

PRIM_SELF struct prim_thread prim_thread_self;
static void (*thread_at_exit)(struct prim_thread *);
static void (*child_begins)(void);
static pthread_once_t initialised = PTHREAD_ONCE_INIT;
static bool fork_handled;
static bool key_made;
static pthread_key_t exit_key;
static uint32_t threads; /* atomic: how many have an id */
uint32_t prim_generation;

/* POSIX has no ids of threads that can be printed: they are numbered. */
uint32_t prim_thread_id(void) {
    struct prim_thread *self = prim_self();
    if (!self->id) self->id = prim_fetch_add_acq_rel(&threads, 1) + 1;
    return self->id;
}

uint32_t prim_process_id(void) {
    return (uint32_t)getpid();
}

static void prim_on_thread_exit(void *thread) {
    struct prim_thread *ending = thread;
    ending->exit_hooked = false;
    thread_at_exit(ending);
}

/* The parent's pipes: the child must neither read nor write there. Its locks may have been held by other threads. */
static void pool_in_child(void) {
    pthread_mutex_init(&pool.gate, NULL);
    while (pool.count) pipe_close(pool.pipes[--pool.count]);
}

static void clock_in_child(void) {
    pthread_mutex_init(&clocks.gate, NULL);
    clocks.first = NULL;
    clocks.until_ns = PRIM_NEVER;
    clocks.running = false;
}

/* A thread that was initialising does not exist in the child: the next caller of prim_once starts over. */
static void prim_in_child(void) {
    prim_generation++;
    initialised = (pthread_once_t)PTHREAD_ONCE_INIT;
    table_begin();
    pool_in_child();
    clock_in_child();
    if (child_begins) child_begins();
}

/* Before the program does anything, so that in the child our handler runs before those of the program. */
static void prim_load(void) {
    table_begin();
    fork_handled = pthread_atfork(NULL, NULL, prim_in_child) == 0;
    key_made = pthread_key_create(&exit_key, prim_on_thread_exit) == 0;
}

__attribute__((constructor)) static void prim_load_first(void) {
    pthread_once(&loaded, prim_load);
}

bool prim_start(void (*at_exit)(struct prim_thread *), void (*at_child)(void)) {
    pthread_once(&loaded, prim_load);
    thread_at_exit = at_exit;
    child_begins = at_child;
    return fork_handled;
}

bool prim_keep_self(bool may_allocate) {
    (void)may_allocate;
    struct prim_thread *self = prim_self();
    if (!self->exit_hooked && key_made) self->exit_hooked = pthread_setspecific(exit_key, self) == 0;
    return self->exit_hooked;
}

void prim_once(void (*initialise)(void)) {
    pthread_once(&initialised, initialise);
}

void *prim_meet(void *mine, size_t bytes) {
    (void)bytes;
    return mine;
}
