/* SPDX-License-Identifier: MIT */
/* prim.h on Linux: futexes, eventfd, timerfd and epoll, with glibc or musl. */
#define _GNU_SOURCE
#include "prim.h"

#include "object.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S        1000000000u
#define PRIM_READY_MOST 32u

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

static struct timespec prim_timespec_of(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

uint64_t prim_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t prim_now_coarse_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

unsigned prim_processors(void) {
    int errno_before = errno;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    errno = errno_before;
    return processors > 1 ? (unsigned)processors : 1;
}

/* Park and wake. The callers loop, so any early return is allowed. */

static void prim_park_on(uint32_t *word, uint32_t expected, uint64_t deadline_ns, int private) {
    struct timespec deadline = prim_timespec_of(deadline_ns);
    const struct timespec *until = deadline_ns == PRIM_NEVER ? NULL : &deadline;
    int errno_before = errno;
    long failed = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | private, expected, until, NULL, FUTEX_BITSET_MATCH_ANY);
    if (failed && errno == EINTR) prim_self()->signalled = true;
    errno = errno_before;
}

static void prim_wake_some(uint32_t *word, int count, int private) {
    int errno_before = errno;
    syscall(SYS_futex, word, FUTEX_WAKE | private, count, NULL, NULL, 0);
    errno = errno_before;
}

void prim_park(uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
    prim_park_on(word, expected, deadline_ns, FUTEX_PRIVATE_FLAG);
}

void prim_wake(uint32_t *word) {
    prim_wake_some(word, 1, FUTEX_PRIVATE_FLAG);
}

void prim_park_shared(uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
    prim_park_on(word, expected, deadline_ns, 0);
}

void prim_wake_shared(uint32_t *word) {
    prim_wake_some(word, 1, 0);
}

void prim_wake_shared_all(uint32_t *word) {
    prim_wake_some(word, INT_MAX, 0);
}

/* Linux 5.16; the headers may be older. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
struct waitv {
    uint64_t value, address;
    uint32_t flags, reserved;
};
#define WAITV_32 2u
_Static_assert(PRIM_WORDS <= 128, "as many as the system takes");

/* Returns the index of the word that was woken; -1: none; -2: the system does not have this call. */
static long prim_park_on_all(const struct prim_word *words, unsigned count, const struct timespec *until) {
    struct waitv waits[PRIM_WORDS];
    for (unsigned i = 0; i < count; i++)
        waits[i] = (struct waitv){words[i].expected, (uint64_t)(uintptr_t)words[i].word,
                                  WAITV_32 | (words[i].own ? FUTEX_PRIVATE_FLAG : 0), 0};
    long woken = syscall(SYS_futex_waitv, waits, count, 0, until, CLOCK_MONOTONIC);
    if (woken < 0 && errno == EINTR) prim_self()->signalled = true;
    bool slept = woken >= 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT || errno == EFAULT;
    return slept ? woken : -2;
}

int prim_park_any(const struct prim_word *words, unsigned count, uint64_t deadline_ns) {
    int errno_before = errno;
    struct timespec deadline = prim_timespec_of(deadline_ns);
    long woken = count == 1 ? -2 : prim_park_on_all(words, count, deadline_ns == PRIM_NEVER ? NULL : &deadline);
    if (woken == -2) {
        uint64_t slice_ns = count == 1 ? PRIM_NEVER : prim_now_ns() + PRIM_SLICE_NS;
        prim_park_on(words[0].word, words[0].expected, slice_ns < deadline_ns ? slice_ns : deadline_ns,
                     words[0].own ? FUTEX_PRIVATE_FLAG : 0);
    }
    errno = errno_before;
    return woken >= 0 ? (int)woken : -1;
}

/* membarrier: Linux 4.14. A child of fork inherits the registration. */
#define MEMBARRIER_FENCE    8  /* MEMBARRIER_CMD_PRIVATE_EXPEDITED */
#define MEMBARRIER_REGISTER 16 /* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED */

bool prim_can_fence_everywhere(void) {
    int errno_before = errno;
    bool can = syscall(SYS_membarrier, MEMBARRIER_REGISTER, 0, 0) == 0;
    errno = errno_before;
    return can;
}

bool prim_fence_everywhere(void) {
    int errno_before = errno;
    bool done = syscall(SYS_membarrier, MEMBARRIER_FENCE, 0, 0) == 0;
    uint64_t drained_ns = done ? 0 : prim_now_ns() + PRIM_STORES_DRAIN_NS;
    for (uint32_t nothing = 0; !done && prim_now_ns() < drained_ns;) prim_park(&nothing, 0, drained_ns);
    errno = errno_before;
    return done;
}

/*
 * When a thread ends, the kernel goes through its robust list: it marks each word in the list that holds the thread's
 * id and, as FUTEX_WAITERS is set, wakes one sleeper. libc has a list of its own for each thread; for the library's
 * thread, which never locks a robust mutex, this list replaces it. The kernel may read the list at any instruction:
 * each change is one store.
 */
static struct robust_list_head pulses; /* of the only thread that has pulses */

bool prim_pulse_begin(struct prim_pulse *pulse) {
    int errno_before = errno;
    if (!pulses.list.next) {
        pulses.futex_offset = (long)offsetof(struct prim_pulse, word) - (long)offsetof(struct prim_pulse, link);
        pulses.list.next = &pulses.list;
    }
    bool good = syscall(SYS_set_robust_list, &pulses, sizeof pulses) == 0;
    errno = errno_before;
    if (!good) return false;
    pulse->link = (uint64_t)(uintptr_t)pulses.list.next;
    prim_store_release(&pulses.list.next, (struct robust_list *)(void *)&pulse->link);
    prim_store_release(&pulse->word, (uint32_t)syscall(SYS_gettid) | FUTEX_WAITERS); /* once the kernel has the list */
    return true;
}

void prim_pulse_release(struct prim_pulse *pulse) {
    struct robust_list *ours = (struct robust_list *)(void *)&pulse->link, *at = &pulses.list;
    prim_store_seq_cst(&pulse->word, 0);
    if (!at->next) return;
    while (at->next != ours && at->next != &pulses.list) at = at->next;
    if (at->next == ours) prim_store_release(&at->next, ours->next);
}

void prim_pulse_forget(void) {
    pulses.list.next = NULL;
}

uint32_t prim_random(void) {
    int errno_before = errno;
    uint32_t number;
    if (syscall(SYS_getrandom, &number, sizeof number, 0) != sizeof number)
        number = (uint32_t)(prim_now_ns() * 2654435761u) ^ (uint32_t)getpid() << 16;
    errno = errno_before;
    return number;
}

/* Memory. */

/*
 * Unlocked before any part is opened: in a program that has locked all its future memory (mlockall), every page would
 * otherwise be allocated at once.
 */
void *prim_map(size_t bytes) {
    void *mapping = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return NULL;
    int errno_before = errno;
    munlock(mapping, bytes);
    errno = errno_before;
    return mapping;
}

bool prim_map_open(void *part, size_t bytes, bool dense) {
    if (mprotect(part, bytes, PROT_READ | PROT_WRITE) != 0) return false;
    int errno_before = errno;
    if (dense) madvise(part, bytes, MADV_HUGEPAGE);
    errno = errno_before;
    return true;
}

void prim_map_densely(void *part, size_t bytes) {
    int errno_before = errno;
    madvise(part, bytes, MADV_HUGEPAGE);
    madvise(part, bytes, MADV_COLLAPSE); /* at once; kernels without it do so bit by bit */
    errno = errno_before;
}

void prim_unmap(void *mapping, size_t bytes) {
    munmap(mapping, bytes);
}

void prim_map_clear(void *mapping, size_t bytes) {
    madvise(mapping, bytes, MADV_DONTNEED); /* private anonymous pages read as zero afterwards */
}

/* By bare system calls, here and below: see Bells. */
static void prim_close_fd(int fd) {
    syscall(SYS_close, fd);
}

/*
 * Bells. By bare system calls: in libc's functions a thread that has been cancelled would end, and the ring would be
 * lost. All of them, because the thread sanitizer must see either all of a descriptor's life or none of it.
 */

bool prim_bell_open(struct prim_bell *bell) {
    bell->poll_fd = bell->alarm_fd = -1;
    bell->rings = bell->watched = 0;
    bell->event_fd = (int)syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
    return bell->event_fd >= 0;
}

void prim_bell_close(struct prim_bell *bell) {
    if (bell->poll_fd >= 0) {
        prim_close_fd(bell->poll_fd);
        prim_close_fd(bell->alarm_fd);
    }
    prim_close_fd(bell->event_fd);
}

void prim_bell_ring(struct prim_bell *bell) {
    int errno_before = errno, event_fd = bell->event_fd;
    uint64_t one = 1;
    /* Pairs with the acquire in prim_bell_take: the kernel orders ring and take as well, but C does not know that. */
    __atomic_fetch_add(&bell->rings, 1, __ATOMIC_RELEASE);
    long written = syscall(SYS_write, event_fd, &one, sizeof one);
    assert(written == sizeof one); /* the counter holds at most one ring */
    (void)written;
    errno = errno_before;
}

bool prim_bell_take(struct prim_bell *bell) {
    int errno_before = errno;
    uint64_t rings;
    bool taken = syscall(SYS_read, bell->event_fd, &rings, sizeof rings) == sizeof rings;
    prim_load_acquire(&bell->rings);
    errno = errno_before;
    return taken;
}

void prim_bell_wait(struct prim_bell *bell, uint64_t deadline_ns) {
    int errno_before = errno;
    struct pollfd ring = {.fd = bell->watched ? bell->poll_fd : bell->event_fd, .events = POLLIN};
    uint64_t now_ns = prim_now_ns();
    struct timespec left = prim_timespec_of(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
    syscall(SYS_ppoll, &ring, 1, deadline_ns == PRIM_NEVER ? NULL : &left, NULL, 0);
    errno = errno_before;
}

static bool prim_watch(int poll_fd, int fd) {
    struct epoll_event readable = {.events = EPOLLIN};
    return syscall(SYS_epoll_ctl, poll_fd, EPOLL_CTL_ADD, fd, &readable) == 0;
}

int prim_bell_fd(struct prim_bell *bell) {
    if (bell->poll_fd >= 0) return bell->poll_fd;
    int poll_fd = (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
    int alarm_fd = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (poll_fd < 0 || alarm_fd < 0 || !prim_watch(poll_fd, bell->event_fd) || !prim_watch(poll_fd, alarm_fd)) {
        int why = errno;
        if (poll_fd >= 0) prim_close_fd(poll_fd);
        if (alarm_fd >= 0) prim_close_fd(alarm_fd);
        errno = why;
        return -1;
    }
    bell->alarm_fd = alarm_fd;
    return bell->poll_fd = poll_fd;
}

void prim_bell_alarm(struct prim_bell *bell, uint64_t deadline_ns) {
    int errno_before = errno;
    struct itimerspec alarm = {0}; /* zero disarms the timer, and clears an alarm that has gone off */
    if (deadline_ns != PRIM_NEVER) alarm.it_value = prim_timespec_of(deadline_ns);
    long failed = syscall(SYS_timerfd_settime, bell->alarm_fd, TFD_TIMER_ABSTIME, &alarm, NULL);
    assert(!failed);
    (void)failed;
    errno = errno_before;
}

bool prim_bell_watch(struct prim_bell *bell, int fd, unsigned events, void *data, bool known) {
    if (prim_bell_fd(bell) < 0) return false;
    struct epoll_event event = {.data.ptr = data};
    if (events & PRIM_READABLE) event.events |= EPOLLIN | EPOLLRDHUP;
    if (events & PRIM_WRITABLE) event.events |= EPOLLOUT;
    if (syscall(SYS_epoll_ctl, bell->poll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) return false;
    if (!known) bell->watched++;
    return true;
}

void prim_bell_unwatch(struct prim_bell *bell, int fd) {
    int errno_before = errno;
    struct epoll_event unused = {0};
    syscall(SYS_epoll_ctl, bell->poll_fd, EPOLL_CTL_DEL, fd, &unused);
    bell->watched--;
    errno = errno_before;
}

/* The kernel gives those that it has not given for the longest time first. The ring and the alarm have no data. */
unsigned prim_bell_ready(struct prim_bell *bell, struct prim_ready *ready, unsigned most) {
    int errno_before = errno;
    struct epoll_event events[PRIM_READY_MOST];
    if (most > PRIM_READY_MOST) most = PRIM_READY_MOST;
    long found = syscall(SYS_epoll_pwait, bell->poll_fd, events, most, 0, NULL, 0);
    unsigned count = 0;
    for (long i = 0; i < found; i++) {
        if (!events[i].data.ptr) continue;
        unsigned which = 0;
        if (events[i].events & ~(uint32_t)EPOLLOUT) which |= PRIM_READABLE;
        if (events[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) which |= PRIM_WRITABLE;
        ready[count++] = (struct prim_ready){.data = events[i].data.ptr, .events = which};
    }
    errno = errno_before;
    return count;
}

/* Text. */

bool prim_write(int fd, const char *text, size_t bytes) {
    while (bytes) {
        long written = syscall(SYS_write, fd, text, bytes);
        if (written < 0 && errno != EINTR) return false;
        if (written < 0) continue;
        text += written;
        bytes -= (size_t)written;
    }
    return true;
}

/* Threads. */

PRIM_SELF struct prim_thread prim_thread_self;
static void (*thread_at_exit)(struct prim_thread *);
static void (*child_begins)(void);
static pthread_once_t initialised = PTHREAD_ONCE_INIT;
uint32_t prim_generation;

uint32_t prim_thread_id(void) {
    struct prim_thread *self = prim_self();
    if (!self->id) self->id = (uint32_t)syscall(SYS_gettid);
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

/* A thread that was initialising does not exist in the child: the next caller of prim_once starts over. */
static void prim_in_child(void) {
    prim_generation++;
    initialised = (pthread_once_t)PTHREAD_ONCE_INIT;
    if (child_begins) child_begins();
}

/*
 * What the library needs before the program does anything:
 *
 *     the fork handler        so that in the child it runs before those of the program, which may use what it resets:
 *                             there they run in the order in which they were registered
 *     a key                   by which it is told that a thread ends. In glibc a thread has room for the values of the
 *                             first 32 keys; for a value of any other key it allocates memory
 *     to stay loaded          as the system calls these two until the process ends
 */
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static bool fork_handled;
static bool key_made;
static bool key_has_room;
static pthread_key_t exit_key;

#ifdef __GLIBC__
#define KEYS_WITH_ROOM 32u
#else
#define KEYS_WITH_ROOM UINT_MAX
#endif

static void prim_load(void) {
    fork_handled = pthread_atfork(NULL, NULL, prim_in_child) == 0;
    key_made = pthread_key_create(&exit_key, prim_on_thread_exit) == 0;
    key_has_room = key_made && exit_key < KEYS_WITH_ROOM;
}

/*
 * Before every constructor without a priority: 101 is the lowest that is not reserved for the C library. The object is
 * pinned here, not in prim_load: pinning calls dlopen, which would call this constructor if it has not begun yet. What
 * meets no other copy (PRIM_COPIES is 0) is preloaded, and stays loaded anyway.
 */
__attribute__((constructor(101))) static void prim_load_first(void) {
    pthread_once(&loaded, prim_load);
    if (PRIM_COPIES) object_pin();
}

bool prim_start(void (*at_exit)(struct prim_thread *), void (*at_child)(void)) {
    pthread_once(&loaded, prim_load); /* another constructor may wait on a word before ours has run */
    thread_at_exit = at_exit;
    child_begins = at_child;
    return fork_handled;
}

bool prim_keep_self(bool may_allocate) {
    bool possible = may_allocate ? key_made : key_has_room;
    struct prim_thread *self = prim_self();
    if (!self->exit_hooked && possible) self->exit_hooked = pthread_setspecific(exit_key, self) == 0;
    return self->exit_hooked;
}

void prim_once(void (*initialise)(void)) {
    pthread_once(&initialised, initialise);
}
