/* SPDX-License-Identifier: MIT */
/* prim.c - prim.h in the simulator: sleeping, bells, threads, and a clock that only the simulator moves. */
#include "bell_word.h"
#include "no_watches.h"
#include "engine.h"

#include <errno.h>
#include <string.h>

unsigned sim_bug;

static PRIM_PROCESS void (*exit_hook)(struct prim_thread *);
static PRIM_PROCESS struct prim_thread main_thread; /* for calls outside of fibers */

uint64_t prim_now_ns(void) {
    return sim_now_ns;
}

uint64_t prim_now_coarse_ms(void) {
    return sim_now_ns / 1000000;
}

unsigned prim_processors(void) {
    return 2;
}

/* ---- A fence for all ---- */

bool prim_can_fence_everywhere(void) {
    return true;
}

bool prim_fence_everywhere(void) {
    static const struct sim_site here = {"fence everywhere", "", __FILE__, __LINE__};
    if (BUG(fence_only_here)) sim_fence_seq_cst(&here);
    else if (!BUG(fence_forgotten)) sim_fence_everywhere(&here);
    return true;
}

/* ---- Sleeping on a word ---- */

/* Sleeps in this state; but not if the deadline has passed, and perhaps, for no reason, not at all. */
static void prim_fall_asleep(enum sim_state state, const volatile void *on, uint64_t deadline_ns,
                             const struct sim_site *site) {
    if (deadline_ns <= sim_now_ns) {
        sim_trace(site, NULL, "the deadline has passed");
    } else if (sim_choose(2, 3, SIM_SPURIOUS)) {
        sim_trace(site, NULL, "wakes for no reason");
    } else {
        sim_trace(site, NULL, "sleeps");
        sim_sleep(state, on, deadline_ns);
    }
}

void sim_may_not_park(void) {
    sim_current->may_not_park = true;
}

static bool prim_spin_ends(void *spinning) {
    const struct sim_fiber *fiber = spinning;
    return *fiber->spin_word != fiber->spin_expected || fiber->deadline_ns <= sim_now_ns;
}

/* How often a fiber that may not park returns from a park on the same value before it waits for another value. */
#define SPINS 2u

static void prim_spin(uint32_t *word, uint32_t expected, uint64_t deadline_ns, const struct sim_site *site) {
    struct sim_fiber *self = sim_current;
    self->spins = self->spin_word == word && self->spin_expected == expected ? self->spins + 1 : 1;
    self->spin_word = word;
    self->spin_expected = expected;
    if (self->spins <= SPINS) {
        sim_trace(site, NULL, "may not park");
        return;
    }
    sim_trace(site, NULL, "spins");
    self->ready = prim_spin_ends;
    self->ready_argument = self;
    sim_sleep(SIM_UNTIL, NULL, deadline_ns);
    self->spins = 0;
}

static void prim_park_on(enum sim_state how, uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
    static const struct sim_site site = {"park", "", __FILE__, __LINE__};
    sim_check(sim_current, "park outside of fibers");
    sim_point((struct sim_footprint){.variable = word, .writes = true}, &site);
    uint32_t value = sim_memory_peek32(word);
    sim_trace(&site, word, "= %#x", value);
    if (value == expected && sim_current->may_not_park) {
        prim_spin(word, expected, deadline_ns, &site);
    } else if (value == expected) {
        prim_fall_asleep(how, sim_address_of(word), deadline_ns, &site);
    }
}

/* An asynchronous sleeper on a bell's word. It began before any other sleeper on that word, as its agent's thread may
 * park after that, and does not begin it while it is parked: so it is woken first. */
static bool prim_wake_listener(const volatile void *word);

static void prim_wake_some(enum sim_state how, uint32_t *word) {
    static const struct sim_site site = {"wake", "", __FILE__, __LINE__};
    if (sim_point((struct sim_footprint){.variable = word, .writes = true}, &site)) {
        sim_trace(&site, word, "%s", "");
        if (!prim_wake_listener(word)) {
            sim_wake_parked(how, sim_address_of(word));
        }
    }
}

void prim_wake_all(uint32_t *word) {
    static const struct sim_site site = {"wake all", "", __FILE__, __LINE__};
    if (sim_point((struct sim_footprint){.variable = word, .writes = true}, &site)) {
        sim_trace(&site, word, "%s", "");
        prim_wake_listener(word);
        while (sim_wake_parked(SIM_PARKED, sim_address_of(word))) {
        }
    }
}

void prim_park(uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
    prim_park_on(SIM_PARKED, word, expected, deadline_ns);
}

void prim_wake(uint32_t *word) {
    prim_wake_some(SIM_PARKED, word);
}

void prim_park_shared(uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
    prim_park_on(SIM_PARKED_SHARED, word, expected, deadline_ns);
}

void prim_wake_shared(uint32_t *word) {
    prim_wake_some(SIM_PARKED_SHARED, word);
}

void prim_wake_shared_all(uint32_t *word) {
    static const struct sim_site site = {"wake all", "", __FILE__, __LINE__};
    if (sim_point((struct sim_footprint){.variable = word, .writes = true}, &site)) {
        while (sim_wake_parked(SIM_PARKED_SHARED, sim_address_of(word))) {
        }
    }
}

/* One point for each word, as an operation on any of them conflicts; then all are compared in one step. */
int prim_park_any(const struct prim_word *words, unsigned count, uint64_t deadline_ns) {
    static const struct sim_site site = {"park on any", "", __FILE__, __LINE__};
    sim_check(sim_current && count && count - 1 < SIM_WORDS, "park on %u words", count);
    for (unsigned i = 0; i < count; i++) {
        sim_point((struct sim_footprint){.variable = words[i].word, .writes = true}, &site);
    }
    for (unsigned i = 0; i < count; i++) {
        if (sim_memory_peek32(words[i].word) != words[i].expected) {
            return -1;
        }
        if (i) {
            sim_current->sleep_on_more[i - 1] = sim_address_of(words[i].word);
        }
    }
    sim_current->own_words = 0;
    for (unsigned i = 0; i < count; i++) {
        sim_current->own_words |= (unsigned)words[i].own << i;
    }
    sim_current->sleep_on_more[count - 1] = NULL;
    sim_current->woken_on = NULL;
    prim_fall_asleep(SIM_PARKED_SHARED, sim_address_of(words[0].word), deadline_ns, &site);
    sim_current->sleep_on_more[0] = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (sim_address_of(words[i].word) == sim_current->woken_on) {
            return (int)i;
        }
    }
    return -1;
}

/* ---- Pulses ---- */

static struct {
    struct prim_pulse *pulse;
    unsigned process;
} pulses[8];

bool prim_pulse_begin(struct prim_pulse *pulse) {
    unsigned i = 0;
    while (pulses[i].pulse) {
        sim_check(++i < sizeof pulses / sizeof *pulses, "too many pulses");
    }
    pulses[i].pulse = pulse;
    pulses[i].process = sim_process;
    prim_store_release(&pulse->word, 1 + sim_process);
    return true;
}

static void prim_forget_pulse(const struct prim_pulse *pulse) {
    for (unsigned i = 0; i < sizeof pulses / sizeof *pulses; i++) {
        if (pulses[i].pulse == pulse) {
            pulses[i].pulse = NULL;
        }
    }
}

void prim_pulse_release(struct prim_pulse *pulse) {
    prim_store_seq_cst(&pulse->word, 0);
    prim_forget_pulse(pulse);
}

void prim_pulse_forget(void) {
}

void sim_prim_process_died(unsigned process, const struct sim_view *known) {
    for (unsigned i = 0; i < sizeof pulses / sizeof *pulses; i++) {
        struct prim_pulse *pulse = pulses[i].pulse;
        if (!pulse || pulses[i].process != process) {
            continue;
        }
        pulses[i].pulse = NULL;
        sim_memory_write32(&pulse->word, PRIM_PULSE_ENDED, known);
        sim_wake_parked(SIM_PARKED_SHARED, &pulse->word);
    }
}

/* ---- Memory ---- */

static _Alignas(4096) char mappings[SIM_PROCESSES][1 << 20];
static PRIM_PROCESS size_t mapped;

void *prim_map(size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    sim_check(bytes <= sizeof *mappings - mapped, "no room for a mapping of %zu bytes", bytes);
    void *mapping = mappings[sim_process] + mapped;
    mapped += bytes;
    return memset(mapping, 0, bytes);
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
    (void)mapping;
    (void)bytes;
}

void prim_map_clear(void *mapping, size_t bytes) {
    memset(mapping, 0, bytes);
}

bool prim_is_own(const void *address) {
    (void)address;
    return true;
}

/* ---- Bells ---- */

#define BELLS    16
#define FIRST_FD 1000

static struct bell {
    unsigned process;
    bool open;
    bool rung;
    bool has_fd;
    uint64_t alarm_ns;
    struct sim_view view; /* what the ringer knew */
    uint32_t *word;       /* null: the bell is not a word; else `rung` and `view` are not used */
    bool listened_to;     /* there is an asynchronous sleeper on the word */
} bells[BELLS];
static bool word_bells;

void sim_word_bells(void) {
    word_bells = true;
}

static struct bell *prim_bell_of(int fd) {
    struct bell *bell = &bells[(unsigned)(fd - FIRST_FD) % BELLS];
    sim_check(fd >= FIRST_FD && fd < FIRST_FD + BELLS && bell->open && bell->process == sim_process, "no open bell: %d",
              fd);
    return bell;
}

bool prim_bell_open(struct prim_bell *bell) {
    for (int i = 0; i < BELLS; i++) {
        if (!bells[i].open) {
            bells[i] = (struct bell){.process = sim_process, .open = true, .alarm_ns = PRIM_NEVER};
            bells[i].word = word_bells ? bell->word : NULL;
            *bell = (struct prim_bell){.event_fd = FIRST_FD + i, .poll_fd = -1};
            return true;
        }
    }
    return false;
}

void prim_bell_close(struct prim_bell *bell) {
    struct bell *self = prim_bell_of(bell->event_fd);
    if (self->word) {
        bell_word_close(self->word);
    }
    sim_check(!self->listened_to, "a bell is closed with a sleeper on its word");
    self->open = false;
}

void prim_bell_ring(struct prim_bell *bell) {
    static const struct sim_site site = {"ring", "", __FILE__, __LINE__};
    struct bell *self = prim_bell_of(bell->event_fd);
    if (self->word) {
        bell_word_ring(self->word);
        return;
    }
    bool simulated = sim_point((struct sim_footprint){.variable = self, .writes = true}, &site);
    self = prim_bell_of(bell->event_fd); /* it may have been closed meanwhile */
    sim_check(!self->rung, "a bell is rung again before the first ring was taken");
    self->rung = true;
    if (simulated) {
        sim_trace(&site, NULL, "bell %d", bell->event_fd - FIRST_FD);
        sim_view_join(&self->view, &sim_current->knows.now);
        sim_view_passed_on();
    }
}

bool prim_bell_take(struct prim_bell *bell) {
    static const struct sim_site site = {"take the ring", "", __FILE__, __LINE__};
    struct bell *self = prim_bell_of(bell->event_fd);
    if (self->word) {
        return bell_word_take(self->word);
    }
    bool simulated = sim_point((struct sim_footprint){.variable = self, .writes = true}, &site);
    bool rung = self->rung;
    self->rung = false;
    if (simulated) {
        sim_trace(&site, NULL, "bell %d: %s", bell->event_fd - FIRST_FD, rung ? "taken" : "none");
        if (rung) {
            sim_view_join(&sim_current->knows.now, &self->view);
        }
    }
    return rung;
}

void prim_bell_wait(struct prim_bell *bell, uint64_t deadline_ns) {
    static const struct sim_site site = {"wait for a ring", "", __FILE__, __LINE__};
    struct bell *self = prim_bell_of(bell->event_fd);
    sim_check(sim_current, "bell_wait outside of fibers");
    if (self->word) {
        bell_word_wait(self->word, deadline_ns);
        return;
    }
    sim_point((struct sim_footprint){.variable = self, .writes = true}, &site);
    sim_trace(&site, NULL, "bell %d%s", bell->event_fd - FIRST_FD, self->rung ? ": rung" : "");
    if (!self->rung) {
        prim_fall_asleep(SIM_AT_BELL, self, deadline_ns, &site);
    }
}

int prim_bell_fd(struct prim_bell *bell) {
    prim_bell_of(bell->event_fd)->has_fd = true;
    bell->poll_fd = bell->event_fd;
    return bell->poll_fd;
}

void prim_bell_alarm(struct prim_bell *bell, uint64_t deadline_ns) {
    struct bell *self = prim_bell_of(bell->event_fd);
    sim_check(self->has_fd, "an alarm is set, but the descriptor was never asked for");
    self->alarm_ns = deadline_ns;
}

bool sim_poll(int fd, uint64_t deadline_ns) {
    static const struct sim_site site = {"poll", "", __FILE__, __LINE__};
    struct bell *self = prim_bell_of(fd);
    sim_check(self->has_fd, "poll of a bell that has no descriptor");
    uint32_t seen;
    if (self->word && !self->listened_to && (bell_word_rung(self->word, &seen) || !sim_bell_listen(fd, seen))) {
        return true;
    }
    sim_point((struct sim_footprint){.variable = self, .writes = true}, &site);
    bool sleeps = !sim_bell_readable(self) && deadline_ns > sim_now_ns;
    sim_trace(&site, NULL, "bell %d: %s", fd - FIRST_FD, sleeps ? "sleeps" : "stays awake");
    if (sleeps) {
        sim_sleep(SIM_POLLING, self, deadline_ns);
    }
    return sim_bell_readable(self);
}

uint32_t sim_bell_look(int fd) {
    return prim_load_acquire(prim_bell_of(fd)->word);
}

bool sim_bell_listen(int fd, uint32_t seen) {
    static const struct sim_site site = {"listen", "", __FILE__, __LINE__};
    struct bell *self = prim_bell_of(fd);
    sim_check(self->word && !self->listened_to, "a second sleeper on the word of a bell");
    sim_point((struct sim_footprint){.variable = self->word, .writes = true}, &site);
    uint32_t value = sim_memory_peek32(self->word);
    sim_trace(&site, self->word, "= %#x%s", value, value == seen ? "" : ", not as seen");
    self->listened_to = value == seen;
    return self->listened_to;
}

static bool prim_wake_listener(const volatile void *word) {
    for (int i = 0; i < BELLS; i++) {
        if (bells[i].open && bells[i].listened_to && bells[i].word == word) {
            bells[i].listened_to = false;
            return true;
        }
    }
    return false;
}

/* Where bells are words: whether sim_poll need not wait, as its sleeper has been woken. */
bool sim_bell_rung(const volatile void *bell) {
    const volatile struct bell *self = bell;
    return self->word ? !self->listened_to : self->rung;
}

uint64_t sim_bell_alarm(const volatile void *bell) {
    return ((const volatile struct bell *)bell)->alarm_ns;
}

bool sim_bell_readable(const volatile void *bell) {
    return sim_bell_rung(bell) || sim_bell_alarm(bell) <= sim_now_ns;
}

/* ---- Threads ---- */

struct prim_thread *prim_self(void) {
    return sim_current ? &sim_current->self : &main_thread;
}

/* The upper bits become the number of the process, which leads it to its slots: with these, the order of slots is not
 * that of the waiters in line, so that a repair in the order of slots is found out (repair_in_any_order). */
uint32_t prim_random(void) {
    static PRIM_PROCESS uint32_t asked;
    return 2 * ((sim_process + 1) * 0x9E3779B1u + asked++ * 0x85EBCA6Bu);
}

uint32_t prim_process_id(void) {
    return 100 + sim_process;
}

uint32_t prim_thread_id(void) {
    return 1; /* not used here */
}

uint32_t prim_generation; /* there is no fork here */

bool prim_start(void (*at_exit)(struct prim_thread *), void (*in_child)(void)) {
    (void)in_child;
    exit_hook = at_exit;
    return true;
}

bool prim_keep_self(bool may_allocate) {
    (void)may_allocate;
    if (sim_current) {
        sim_current->keeps_self = true;
    }
    return true;
}

void sim_thread_exit(struct sim_fiber *fiber) {
    if (fiber->keeps_self) {
        exit_hook(&fiber->self);
    }
}

static PRIM_PROCESS struct {
    bool begun, done;
    struct sim_view view; /* what the fiber that did it knew, and all others get to know */
} once;

static bool prim_once_is_done(void *unused) {
    (void)unused;
    return once.done;
}

void prim_once(void (*initialise)(void)) {
    if (!once.begun) {
        once.begun = true;
        initialise();
        once.done = true;
        if (sim_current) {
            once.view = sim_current->knows.now;
            sim_view_passed_on();
        }
    } else if (!once.done) {
        sim_until(prim_once_is_done, NULL);
    }
    if (sim_current) {
        sim_view_join(&sim_current->knows.now, &once.view);
    }
}

void *prim_meet(void *mine, size_t bytes) {
    (void)bytes;
    return mine;
}

/* A prim_handle is the thread's fiber. */
bool prim_thread_start(struct prim_handle **handle, void (*main)(void *), void *argument, bool quiet) {
    (void)quiet;
    if (!sim_current) { /* there are no threads before the scenario begins */
        return false;
    }
    struct sim_fiber *fiber = sim_fiber_new(sim_process, handle ? "worker" : "keeper", main, argument);
    fiber->endless = !handle;
    if (handle) {
        *handle = (struct prim_handle *)(void *)fiber;
    }
    return true;
}

void prim_thread_join(struct prim_handle *handle) {
    struct sim_fiber *fiber = (struct sim_fiber *)(void *)handle;
    if (fiber->state != SIM_ENDED) {
        sim_sleep(SIM_JOINING, fiber, PRIM_NEVER);
    }
    sim_view_join(&sim_current->knows.now, &fiber->knows.now);
}

/* ---- Between executions ---- */

void sim_prim_reset(void) {
    memset(pulses, 0, sizeof pulses);
    word_bells = false;
    for (int i = 0; i < BELLS; i++) {
        bells[i].open = false;
    }
}

const char *sim_prim_leak(void) {
    for (int i = 0; i < BELLS; i++) {
        if (bells[i].open && !sim_dead(bells[i].process)) {
            return "a bell was not closed";
        }
    }
    return NULL;
}
