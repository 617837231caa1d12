/* SPDX-License-Identifier: MIT */
#include "fuzz_prim.h"
#include "no_watches.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned sim_bug;
uint64_t fuzz_now_ns;
unsigned fuzz_thread, fuzz_early_returns;
bool fuzz_no_descriptors, fuzz_tracing;

void fuzz_fail(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

void fuzz_trace(const char *format, ...) {
    if (!fuzz_tracing) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%12llu ns  thread %u  ", (unsigned long long)fuzz_now_ns, fuzz_thread);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* Time and sleep. */

uint64_t prim_now_ns(void) {
    return fuzz_now_ns;
}

uint64_t prim_now_coarse_ms(void) {
    return fuzz_now_ns / 1000000;
}

unsigned prim_processors(void) {
    return 2;
}

/* The deadline comes, or a spurious return. */
static void pass_time(uint64_t deadline_ns) {
    if (deadline_ns <= fuzz_now_ns) return;
    uint64_t left_ns = deadline_ns - fuzz_now_ns;
    if (fuzz_early_returns) {
        fuzz_early_returns--;
        left_ns /= 2;
    }
    fuzz_now_ns += left_ns;
}

static struct sleeper {
    const uint32_t *word;
    uint32_t expected;
    bool woken;
    struct sleeper *below; /* on the stack */
} * sleepers;

void prim_park(uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
    if (*word != expected) return;
    struct sleeper self = {word, expected, false, sleepers};
    sleepers = &self;
    fuzz_others_act();
    if (*word == expected) {
        if (deadline_ns < FUZZ_TIME_ENDS_NS) pass_time(deadline_ns);
        else fuzz_rescue();
    }
    sleepers = self.below;
    CHECK(*word == expected || self.woken, "a thread sleeps on although its word has changed");
    CHECK(*word != expected || deadline_ns < FUZZ_TIME_ENDS_NS, "a thread sleeps for ever");
}

void prim_wake(uint32_t *word) {
    for (struct sleeper *sleeper = sleepers; sleeper; sleeper = sleeper->below) {
        /* Woken before the word has changed, it would only fall asleep again. */
        if (sleeper->word == word && *word != sleeper->expected) sleeper->woken = true;
    }
}

/* Memory. */

void *prim_map(size_t bytes) {
    size_t pages = (bytes + 4095) / 4096 * 4096;
    void *mapping = bytes <= pages ? aligned_alloc(4096, pages) : NULL;
    return mapping ? memset(mapping, 0, bytes) : NULL;
}

bool prim_map_open(void *part, size_t bytes, bool dense) {
    (void)part, (void)bytes, (void)dense;
    return true;
}

void prim_map_densely(void *part, size_t bytes) {
    (void)part;
    (void)bytes;
}

void prim_unmap(void *mapping, size_t bytes) {
    (void)bytes;
    free(mapping);
}

void prim_map_clear(void *mapping, size_t bytes) {
    memset(mapping, 0, bytes);
}

bool prim_is_own(const void *address) {
    (void)address;
    return true;
}

/* Bells. Their number is their descriptor. */

#define BELLS 16
static struct {
    bool open, rung;
    uint64_t alarm_ns;
} bells[BELLS];

bool prim_bell_open(struct prim_bell *bell) {
    int number = 0;
    while (number < BELLS && bells[number].open) number++;
    if (fuzz_no_descriptors || number == BELLS) return false;
    bells[number].open = true;
    bells[number].rung = false;
    bells[number].alarm_ns = PRIM_NEVER;
    *bell = (struct prim_bell){.event_fd = number, .poll_fd = -1, .alarm_fd = -1};
    return true;
}

void prim_bell_close(struct prim_bell *bell) {
    CHECK(bells[bell->event_fd].open, "a bell is closed twice");
    bells[bell->event_fd].open = false;
}

void prim_bell_ring(struct prim_bell *bell) {
    CHECK(bells[bell->event_fd].open, "a bell is rung that is closed");
    CHECK(!bells[bell->event_fd].rung, "a bell is rung twice without being taken in between");
    bells[bell->event_fd].rung = true;
}

bool prim_bell_take(struct prim_bell *bell) {
    bool rung = bells[bell->event_fd].rung;
    bells[bell->event_fd].rung = false;
    return rung;
}

void prim_bell_wait(struct prim_bell *bell, uint64_t deadline_ns) {
    if (bells[bell->event_fd].rung) return;
    fuzz_others_act();
    if (bells[bell->event_fd].rung) return;
    if (deadline_ns < FUZZ_TIME_ENDS_NS) {
        pass_time(deadline_ns);
    } else {
        fuzz_rescue();
        CHECK(bells[bell->event_fd].rung, "an agent sleeps for ever");
    }
}

int prim_bell_fd(struct prim_bell *bell) {
    if (bell->poll_fd < 0 && !fuzz_no_descriptors) bell->poll_fd = bell->event_fd;
    return bell->poll_fd;
}

void prim_bell_alarm(struct prim_bell *bell, uint64_t deadline_ns) {
    CHECK(bell->poll_fd >= 0, "the alarm of a bell without a descriptor is set");
    bells[bell->event_fd].alarm_ns = deadline_ns;
}

bool fuzz_bell_rung(const struct prim_bell *bell) {
    return bells[bell->event_fd].rung;
}

uint64_t fuzz_bell_alarm_ns(const struct prim_bell *bell) {
    return bells[bell->event_fd].alarm_ns;
}

/* Threads. */

static struct prim_thread threads[FUZZ_THREADS];
static void (*thread_at_exit)(struct prim_thread *);
static void (*reset)(void);

struct prim_thread *prim_self(void) {
    return &threads[fuzz_thread];
}

uint32_t prim_thread_id(void) {
    return fuzz_thread + 1;
}

uint32_t prim_process_id(void) {
    return 1;
}

uint32_t prim_generation;

bool prim_start(void (*at_exit)(struct prim_thread *), void (*in_child)(void)) {
    thread_at_exit = at_exit;
    reset = in_child;
    return true;
}

bool prim_keep_self(bool may_allocate) {
    (void)may_allocate;
    return prim_self()->exit_hooked = true;
}

void fuzz_thread_ends(unsigned thread) {
    struct prim_thread *ending = &threads[thread];
    if (ending->exit_hooked) thread_at_exit(ending);
    CHECK(!ending->chunk_free && !ending->spare_slots, "a thread ends and keeps slots");
    *ending = (struct prim_thread){0};
}

unsigned fuzz_slots_kept(void) {
    unsigned kept = 0;
    for (unsigned i = 0; i < FUZZ_THREADS; i++) {
        int count = __builtin_popcountll(threads[i].chunk_free) + __builtin_popcountll(threads[i].spare_slots);
        if (i != fuzz_thread) kept += (unsigned)count;
    }
    return kept;
}

void fuzz_fork(void) {
    prim_generation++;
    if (reset) reset();
    for (unsigned i = 0; i < FUZZ_THREADS; i++) {
        if (i != fuzz_thread) threads[i] = (struct prim_thread){0};
    }
}

void prim_once(void (*initialise)(void)) {
    initialise();
}

bool prim_thread_start(struct prim_handle **handle, void (*main)(void *), void *argument, bool quiet) {
    (void)main, (void)argument, (void)quiet;
    return !handle; /* the keeper, which never runs: here no waiter is behind a loop */
}

void prim_thread_join(struct prim_handle *handle) {
    (void)handle;
}

void prim_park_shared(uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
    prim_park(word, expected, deadline_ns);
}

void prim_wake_shared(uint32_t *word) {
    prim_wake(word);
}

uint32_t prim_random(void) {
    return UINT32_MAX; /* one process */
}

int prim_park_any(const struct prim_word *words, unsigned count, uint64_t deadline_ns) {
    (void)count;
    prim_park(words[0].word, words[0].expected, deadline_ns);
    return -1;
}

void prim_wake_shared_all(uint32_t *word) {
    prim_wake(word);
}

bool prim_pulse_begin(struct prim_pulse *pulse) {
    (void)pulse;
    return false;
}

void prim_pulse_release(struct prim_pulse *pulse) {
    (void)pulse;
}

void prim_pulse_forget(void) {
}
