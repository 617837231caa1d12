/* SPDX-License-Identifier: MIT */
/*
 * fiber.c - the fibers of one execution, which of them runs next, and the clock.
 *
 * A fiber runs until it reaches a point (sim_point), sleeps, pauses or ends. There, in its own context, the next
 * fiber is chosen and switched to directly. The clock is one more actor: it moves to the next deadline when no fiber
 * can run, and earlier than that as if it preempted a fiber.
 *
 * Exhaustive exploration leaves out what makes no difference. When a fiber is preempted before its operation, and
 * nothing that conflicts with the operation happens until the fiber goes on, then preempting it one operation later
 * would have had the same result, with no more deviations. So a preempted fiber is `asleep` until another fiber does
 * something that conflicts, and an execution in which only such sleepers could go on is dropped. And no fiber is
 * preempted before an operation on a variable where no other fiber was ever seen to do anything that conflicts.
 *
 * A scenario's victims may be killed at any time. The other processes notice little of a kill: the victim's locks on
 * files are free, its pulses have ended, and it does not consume a wake. So a kill can be moved to an earlier time,
 * past whatever the others do, until right after a step of the victim's own, or right after a step of another fiber
 * that found it alive or woke it. These are the moments at which it is tried: when a fiber of the victim has come to
 * its next point (sim_may_die), and after such a step (sim_was_seen). A fiber finds a victim alive by a lock on a
 * file. A look at its pulse does not count, as a pulse is a hint: a kill between that look and the victim's next step
 * is not tried. After a kill no fiber is asleep any more, so nothing is left out because of it.
 */
#define _GNU_SOURCE
#include "engine.h"

#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#define STACK_BYTES     (128u << 10)
#define NO_ACCESS_BYTES (64u << 10) /* at least a page, whatever the page size */
#define START_NS        1000u
#define IDLE_LIMIT      200u /* beyond it the fibers that could end others' waits only wait for deadlines */

struct sim_fiber *sim_current;
uint64_t sim_now_ns;
FILE *sim_trace_file;
char sim_reason[400];

static struct sim_fiber fibers[SIM_FIBERS];
static unsigned fiber_count;
static unsigned steps;
static unsigned idle_times; /* how many times no fiber could go on until some deadline */
static uint64_t executions;
static enum sim_outcome outcome;
static void *main_stack_pointer;
static jmp_buf main_escape; /* for failures outside of fibers */
bool sim_executing;
static unsigned step_limit;
static void (*killed)(unsigned process); /* of the scenario: see sim_on_kill */
static unsigned victims;                 /* a bit for each process that may be killed at any time */

static uint64_t moments[8];
static unsigned moment_count;
static struct {
    const volatile void *variable;
    size_t size;
    const char *name;
} names[32];
static unsigned name_count;

/* ---- Switching stacks ---- */

/* Saves this context's callee-saved registers on its stack and continues the context that was saved in `load`. */
void sim_switch(void **save, void *load);

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl sim_switch\n"
        ".type sim_switch, @function\n"
        "sim_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size sim_switch, . - sim_switch\n");
#define FRAME_WORDS  8 /* six registers, the return address, and a word for the alignment after a call */
#define FRAME_RETURN 6
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl sim_switch\n"
        ".type sim_switch, %function\n"
        "sim_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size sim_switch, . - sim_switch\n");
#define FRAME_WORDS  20
#define FRAME_RETURN 11
#else
#error "the simulator knows how to switch stacks on x86-64 and aarch64 only"
#endif

static void fiber_switch_to(struct sim_fiber *next) {
    struct sim_fiber *self = sim_current;
    if (next != self) {
        sim_current = next;
        sim_process_enter(next->process);
        sim_switch(&self->stack_pointer, next->stack_pointer);
    }
}

static _Noreturn void fiber_leave_execution(enum sim_outcome why) {
    void *abandoned;
    outcome = why;
    sim_process_enter(0);
    if (!sim_current) {
        longjmp(main_escape, 1);
    }
    sim_current = NULL;
    sim_switch(&abandoned, main_stack_pointer);
    abort();
}

/* ---- Failures ---- */

_Noreturn void sim_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sim_reason, sizeof sim_reason, format, arguments);
    va_end(arguments);
    if (!sim_executing) {
        fprintf(stderr, "simulator: %s\n", sim_reason);
        abort();
    }
    fiber_leave_execution(SIM_FAILED);
}

static const char *fiber_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What assert calls when it fails. */
void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function) {
    sim_fail("%s:%u: %s: assertion failed: %s", fiber_base_name(file), line, function, assertion);
}

static void fiber_on_fault(int number) {
    if (!sim_current) {
        signal(number, SIG_DFL);
        return;
    }
    sim_fail("signal %d (%s) in %s", number, strsignal(number), sim_current->name);
}

/* A fiber that uses the processor for two ticks without reaching a point will never reach one. */
static void fiber_on_tick(int number) {
    static unsigned steps_before;
    static uint64_t executions_before;
    (void)number;
    if (sim_current && steps == steps_before && executions == executions_before) {
        sim_fail("%s loops without any atomic access", sim_current->name);
    }
    steps_before = steps;
    executions_before = executions;
}

static void fiber_catch_faults(void) {
    static char signal_stack[64 << 10];
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    sigaltstack(&stack, NULL);
    /* The handler leaves the fiber for good, so the signal must not stay blocked. */
    struct sigaction fault = {.sa_handler = fiber_on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER};
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigaction(faults[i], &fault, NULL);
    }
    struct sigaction tick = {.sa_handler = fiber_on_tick, .sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART};
    sigaction(SIGVTALRM, &tick, NULL);
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){{1, 0}, {1, 0}}, NULL);
}

/* ---- The trace ---- */

void sim_name(const volatile void *variable, size_t size, const char *name) {
    sim_check(name_count < sizeof names / sizeof *names, "too many names");
    names[name_count].variable = variable;
    names[name_count].size = size;
    names[name_count++].name = name;
}

static const char *fiber_name_of(const volatile void *variable) {
    for (unsigned i = 0; variable && i < name_count; i++) {
        if ((uintptr_t)variable - (uintptr_t)names[i].variable < names[i].size) {
            return names[i].name;
        }
    }
    return NULL;
}

void sim_trace(const struct sim_site *site, const volatile void *variable, const char *format, ...) {
    if (!sim_trace_file) {
        return;
    }
    char what[160], who[20] = "";
    const char *name = fiber_name_of(sim_address_of(variable));
    snprintf(what, sizeof what, "%s%s%s%s", site->expression, name ? " (" : "", name ? name : "", name ? ")" : "");
    if (sim_process) {
        snprintf(who, sizeof who, "%u: ", sim_process);
    }
    fprintf(sim_trace_file, "%5u %8llu  %s%-12s %-16s %-34s ", steps, (unsigned long long)sim_now_ns, who,
            sim_current->name, site->operation, what);
    va_list arguments;
    va_start(arguments, format);
    int length = vfprintf(sim_trace_file, format, arguments);
    va_end(arguments);
    fprintf(sim_trace_file, "%*s %s:%d\n", length < 24 ? 24 - length : 1, "", fiber_base_name(site->file), site->line);
}

static void fiber_trace_event(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void fiber_trace_event(const char *format, ...) {
    if (sim_trace_file) {
        va_list arguments;
        va_start(arguments, format);
        fprintf(sim_trace_file, "               -- ");
        vfprintf(sim_trace_file, format, arguments);
        fprintf(sim_trace_file, "\n");
        va_end(arguments);
    }
}

/* ---- The clock ---- */

void sim_moment(uint64_t time_ns) {
    sim_check(moment_count < sizeof moments / sizeof *moments, "too many moments");
    moments[moment_count++] = time_ns;
}

static uint64_t fiber_deadline_of(const struct sim_fiber *fiber) {
    if (fiber->state == SIM_READY || fiber->state == SIM_ENDED || fiber->stopped) {
        return PRIM_NEVER;
    }
    uint64_t alarm = fiber->state == SIM_POLLING ? sim_bell_alarm(fiber->sleep_on) : PRIM_NEVER;
    return alarm < fiber->deadline_ns ? alarm : fiber->deadline_ns;
}

static void fiber_take_earlier(uint64_t *next, uint64_t time_ns) {
    if (time_ns > sim_now_ns && time_ns < *next) {
        *next = time_ns;
    }
}

static uint64_t fiber_next_deadline(void) {
    uint64_t next = PRIM_NEVER;
    for (unsigned i = 0; i < fiber_count; i++) {
        fiber_take_earlier(&next, fiber_deadline_of(&fibers[i]));
    }
    for (unsigned i = 0; i < moment_count; i++) {
        fiber_take_earlier(&next, moments[i]);
    }
    return next;
}

static void fiber_wake_sleepers(void) {
    for (unsigned i = 0; i < fiber_count; i++) {
        fibers[i].asleep = false;
    }
}

static void fiber_advance_clock(uint64_t time_ns) {
    sim_now_ns = time_ns;
    fiber_wake_sleepers();
    fiber_trace_event("time passes: %llu", (unsigned long long)time_ns);
}

/* ---- Which fiber runs next ---- */

/* Calls `ready` in the fiber's own process. */
static bool fiber_is_ready(const struct sim_fiber *fiber) {
    unsigned process = sim_process;
    sim_process_enter(fiber->process);
    bool ready = fiber->ready(fiber->ready_argument);
    sim_process_enter(process);
    return ready;
}

static bool fiber_can_run(const struct sim_fiber *fiber) {
    if (fiber->stopped) {
        return false;
    }
    switch (fiber->state) {
    case SIM_READY: return true;
    case SIM_ENDED: return false;
    case SIM_PARKED:
    case SIM_PARKED_SHARED: break;
    case SIM_AT_BELL:
        if (sim_bell_rung(fiber->sleep_on)) return true;
        break;
    case SIM_POLLING:
        if (sim_bell_readable(fiber->sleep_on)) return true;
        break;
    case SIM_JOINING: return ((const struct sim_fiber *)fiber->sleep_on)->state == SIM_ENDED;
    case SIM_UNTIL: return fiber_is_ready(fiber);
    }
    return fiber->deadline_ns <= sim_now_ns;
}

struct candidates {
    struct sim_fiber *fiber[SIM_FIBERS];
    unsigned count;
    unsigned allowed; /* a bit for each fiber that is not asleep */
};

static void fiber_add_candidate(struct candidates *candidates, struct sim_fiber *fiber) {
    if (fiber_can_run(fiber)) {
        candidates->allowed |= fiber->asleep ? 0 : 1u << candidates->count;
        candidates->fiber[candidates->count++] = fiber;
    }
}

/* All other fibers that can run, in turn, after this fiber. */
static void fiber_add_others(struct candidates *candidates) {
    unsigned self = sim_fiber_index(sim_current);
    for (unsigned i = 1; i < fiber_count; i++) {
        fiber_add_candidate(candidates, &fibers[(self + i) % fiber_count]);
    }
}

static struct sim_fiber *fiber_choose_fiber(const struct candidates *candidates, enum sim_deviation kind) {
    if (!candidates->allowed) {
        fiber_leave_execution(SIM_PRUNED);
    }
    unsigned option = candidates->count > 1 ? sim_choose(candidates->count, candidates->allowed, kind) : 0;
    struct sim_fiber *next = candidates->fiber[option];
    if (next != sim_current) {
        fiber_trace_event("%s goes on", next->name);
    }
    return next;
}

static _Noreturn void fiber_fail_deadlock(void) {
    static const char *const doing[] = {"ready",   "parked",  "parked",  "at its bell",
                                        "polling", "joining", "waiting", "ended"};
    char text[sizeof sim_reason - 60] = "";
    size_t length = 0;
    for (unsigned i = 0; i < fiber_count && length < sizeof text; i++) {
        const struct sim_fiber *fiber = &fibers[i];
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s %s", i ? "; " : "", fiber->name,
                                   fiber->stopped ? "stopped" : doing[fiber->state]);
        if (fiber->site && fiber->state != SIM_ENDED && length < sizeof text) {
            length += (size_t)snprintf(text + length, sizeof text - length, " after %s:%d",
                                       fiber_base_name(fiber->site->file), fiber->site->line);
        }
    }
    sim_fail("no fiber can go on, and %s: %s",
             idle_times > IDLE_LIMIT ? "deadlines do not help" : "no deadline is pending", text);
}

static bool fiber_all_ended(void) {
    for (unsigned i = 0; i < fiber_count; i++) {
        if (fibers[i].state != SIM_ENDED && !fibers[i].endless) {
            return false;
        }
    }
    return true;
}

/* Interrupts a fiber that sleeps in the kernel and still has signals to come. */
static bool fiber_interrupt_sleeper(void) {
    for (unsigned i = 0; i < fiber_count; i++) {
        struct sim_fiber *fiber = &fibers[i];
        bool sleeps = fiber->state == SIM_PARKED || fiber->state == SIM_PARKED_SHARED || fiber->state == SIM_AT_BELL ||
                      fiber->state == SIM_POLLING;
        if (sleeps && !fiber->stopped && fiber->handler && fiber->signals) {
            fiber->interrupted = true;
            fiber->state = SIM_READY;
            return true;
        }
    }
    return false;
}

/* The next fiber, in turn, when this one need not go on (but may, if it can). */
static struct sim_fiber *fiber_choose_anybody(void) {
    for (;;) {
        if (fiber_all_ended()) {
            fiber_leave_execution(SIM_PASSED);
        }
        struct candidates candidates = {.count = 0};
        fiber_add_candidate(&candidates, sim_current);
        fiber_add_others(&candidates);
        if (candidates.count > 0) {
            return fiber_choose_fiber(&candidates, SIM_TURN);
        }
        if (fiber_interrupt_sleeper()) {
            continue;
        }
        uint64_t deadline_ns = fiber_next_deadline();
        if (deadline_ns == PRIM_NEVER || ++idle_times > IDLE_LIMIT) {
            fiber_fail_deadlock();
        }
        fiber_advance_clock(deadline_ns);
    }
}

/* The clock may move first. Returns true if it did. */
static bool fiber_clock_intervenes(void) {
    uint64_t deadline_ns = fiber_next_deadline();
    if (deadline_ns == PRIM_NEVER || !sim_choose(2, 3, SIM_PREEMPTION)) {
        return false;
    }
    while (fiber_interrupt_sleeper()) { /* a signal is not delayed beyond a deadline */
    }
    fiber_advance_clock(deadline_ns);
    return true;
}

static void fiber_count_step(void) {
    if (++steps > step_limit) {
        sim_fail("more than %u steps: the fibers do not come to an end", step_limit);
    }
}

static bool fiber_conflict(const struct sim_footprint *a, const struct sim_footprint *b) {
    if ((a->fence && (b->fence || b->seq_cst)) || (b->fence && a->seq_cst) || a->everywhere || b->everywhere) {
        return true;
    }
    return a->variable && a->variable == b->variable && (a->writes || b->writes);
}

static void fiber_wake_conflicting_sleepers(const struct sim_footprint *footprint) {
    for (unsigned i = 0; i < fiber_count; i++) {
        if (fibers[i].asleep && fiber_conflict(&fibers[i].pending, footprint)) {
            fibers[i].asleep = false;
        }
    }
}

/* Which fibers were ever seen to read or write a variable, and to write it; by hash of the variable. */
static struct sharing {
    const volatile void *variable;
    uint16_t users, writers;
} sharing[2048];
static unsigned sharing_count;
static bool sharing_grew;

void sim_sharing_forget(void) {
    memset(sharing, 0, sizeof sharing);
    sharing_count = 0;
    sharing_grew = false;
}

bool sim_sharing_grew(void) {
    bool grew = sharing_grew;
    sharing_grew = false;
    return grew;
}

static struct sharing *fiber_sharing_of(const volatile void *variable) {
    const unsigned size = sizeof sharing / sizeof *sharing;
    unsigned hash = (unsigned)(((uintptr_t)variable >> 2) * 0x9E3779B1u) % size;
    while (sharing[hash].variable && sharing[hash].variable != variable) {
        hash = (hash + 1) % size;
    }
    if (!sharing[hash].variable) {
        sim_check(++sharing_count < size / 2, "too many variables");
        sharing[hash].variable = variable;
    }
    return &sharing[hash];
}

/* Notes this use of the variable. Returns whether another fiber's use of it may conflict. */
static bool fiber_shared(const struct sim_footprint *footprint) {
    if (!footprint->variable) {
        return true;
    }
    struct sharing *known = fiber_sharing_of(footprint->variable);
    uint16_t self = (uint16_t)(1u << sim_fiber_index(sim_current));
    uint16_t users = known->users | self, writers = known->writers | (footprint->writes ? self : 0);
    sharing_grew |= users != known->users || writers != known->writers;
    known->users = users;
    known->writers = writers;
    return (footprint->writes ? users : writers) & ~self;
}

/* ---- Sudden death, and stopping ---- */

void sim_kill(unsigned process) {
    struct sim_view known = {.seen = {0}};
    fiber_trace_event("process %u is killed", process);
    if (killed) {
        killed(process);
    }
    for (unsigned i = 0; i < fiber_count; i++) {
        if (fibers[i].process == process) {
            fibers[i].state = SIM_ENDED;
            sim_view_join(&known, &fibers[i].knows.now);
        }
    }
    sim_process_died(process);
    sim_file_process_died(process, &known);
    sim_prim_process_died(process, &known);
    fiber_wake_sleepers();
    if (sim_current && sim_process == process) {
        fiber_switch_to(fiber_choose_anybody());
    }
}

void sim_on_kill(void (*call)(unsigned process)) {
    killed = call;
}

void sim_victim(unsigned process) {
    victims |= 1u << process;
}

static bool fiber_may_be_killed(unsigned process) {
    return (victims >> process & 1) && sim_current && !sim_dead(process);
}

void sim_may_die(void) {
    if (fiber_may_be_killed(sim_process) && sim_choose(2, 3, SIM_KILL)) {
        sim_kill(sim_process);
    }
}

void sim_was_seen(unsigned process) {
    if (process != sim_process && fiber_may_be_killed(process) && sim_choose(2, 3, SIM_KILL)) {
        sim_kill(process);
    }
}

void sim_stop(unsigned process) {
    fiber_trace_event("process %u is stopped", process);
    for (unsigned i = 0; i < fiber_count; i++) {
        fibers[i].stopped |= fibers[i].process == process;
    }
    fiber_wake_sleepers();
    if (sim_current && sim_process == process) {
        fiber_switch_to(fiber_choose_anybody());
    }
}

/* A stopped fiber is taken out of its sleep in the kernel: it looks at its word again when it continues. */
void sim_continue(unsigned process) {
    fiber_trace_event("process %u goes on", process);
    for (unsigned i = 0; i < fiber_count; i++) {
        struct sim_fiber *fiber = &fibers[i];
        if (fiber->process == process && fiber->stopped) {
            bool parked = fiber->state == SIM_PARKED || fiber->state == SIM_PARKED_SHARED;
            fiber->stopped = false;
            fiber->state = parked ? SIM_READY : fiber->state;
        }
    }
    fiber_wake_sleepers();
}

/* ---- Signals ---- */

void sim_handle(void (*handler)(void), unsigned signals) {
    sim_current->handler = handler;
    sim_current->signals = handler ? signals : 0;
}

static void fiber_handle_signal(void) {
    struct sim_fiber *self = sim_current;
    self->signals--;
    fiber_trace_event("a signal to %s", self->name);
    self->handler();
    fiber_trace_event("the handler returns");
}

/*
 * Right before a step of the fiber's own. A signal that comes after others have run is the same as a signal that
 * comes before them, with a handler that is preempted at its first step.
 */
void sim_signal_point(void) {
    while (sim_current && sim_current->signals && sim_choose(2, 3, SIM_SIGNAL)) {
        fiber_handle_signal();
    }
}

/* ---- Points ---- */

bool sim_point(struct sim_footprint footprint, const struct sim_site *site) {
    struct sim_fiber *self = sim_current;
    if (!self) {
        return false;
    }
    fiber_count_step();
    sim_may_die();
    sim_signal_point();
    self->site = *site->expression ? site : self->site;
    footprint.variable = sim_address_of(footprint.variable);
    self->pending = footprint;
    if (fiber_clock_intervenes()) {
        fiber_switch_to(fiber_choose_anybody());
    } else {
        struct candidates candidates = {.count = 0};
        fiber_add_candidate(&candidates, self);
        fiber_add_others(&candidates);
        if (sim_exhaustive() && !fiber_shared(&footprint)) {
            candidates.allowed &= 1;
        }
        struct sim_fiber *next = fiber_choose_fiber(&candidates, SIM_PREEMPTION);
        self->asleep = next != self && sim_exhaustive();
        fiber_switch_to(next);
    }
    fiber_wake_conflicting_sleepers(&footprint);
    return true;
}

void sim_pause(const struct sim_site *site) {
    if (!sim_current) {
        return;
    }
    fiber_count_step();
    sim_may_die();
    sim_signal_point();
    sim_trace(site, NULL, "%s", "");
    struct candidates candidates = {.count = 0};
    fiber_add_others(&candidates);
    if (candidates.count > 0) {
        fiber_switch_to(fiber_choose_fiber(&candidates, SIM_PREEMPTION));
    }
}

void sim_sleep(enum sim_state state, const volatile void *on, uint64_t deadline_ns) {
    struct sim_fiber *self = sim_current;
    sim_may_die();
    self->state = state;
    self->sleep_on = on;
    self->deadline_ns = deadline_ns;
    fiber_switch_to(fiber_choose_anybody());
    self->state = SIM_READY;
    self->sleep_on_more[0] = NULL;
    if (self->interrupted) {
        self->interrupted = false;
        fiber_handle_signal();
    }
}

void sim_until(bool (*ready)(void *), void *argument) {
    sim_current->ready = ready;
    sim_current->ready_argument = argument;
    sim_sleep(SIM_UNTIL, NULL, PRIM_NEVER);
}

static bool fiber_sleeps_on(const struct sim_fiber *fiber, enum sim_state how, const volatile void *word) {
    if (fiber->state != SIM_PARKED && fiber->state != SIM_PARKED_SHARED) {
        return false;
    }
    unsigned at = 0;
    const volatile void *variable = fiber->sleep_on;
    while (variable != word) {
        variable = at < SIM_WORDS ? fiber->sleep_on_more[at++] : NULL;
        if (!variable) {
            return false;
        }
    }
    bool own = fiber->state == SIM_PARKED || (fiber->own_words >> at & 1);
    return own == (how == SIM_PARKED);
}

bool sim_wake_parked(enum sim_state how, const volatile void *word) {
    for (unsigned i = 0; i < fiber_count; i++) {
        struct sim_fiber *fiber = &fibers[i];
        bool ours = how == SIM_PARKED_SHARED || fiber->process == sim_process;
        if (ours && fiber_sleeps_on(fiber, how, word) && fiber->deadline_ns > sim_now_ns && !fiber->stopped) {
            fiber->state = SIM_READY;
            fiber->woken_on = word;
            sim_was_seen(fiber->process);
            return true;
        }
    }
    return false;
}

unsigned sim_fiber_count(void) {
    return fiber_count;
}

unsigned sim_fiber_index(const struct sim_fiber *fiber) {
    return (unsigned)(fiber - fibers);
}

struct sim_fiber *sim_fiber_at(unsigned index) {
    return &fibers[index];
}

const char *sim_fiber_name(unsigned index) {
    return fibers[index].name;
}

bool sim_on_own_stack(const volatile void *variable) {
    return (uintptr_t)variable - (uintptr_t)sim_current->stack < NO_ACCESS_BYTES + STACK_BYTES;
}

/* ---- The life of a fiber, and of an execution ---- */

static void fiber_main(void) {
    struct sim_fiber *self = sim_current;
    self->main(self->argument);
    sim_thread_exit(self);
    sim_may_die();
    self->state = SIM_ENDED;
    fiber_switch_to(fiber_choose_anybody());
    abort();
}

static char *fiber_new_stack(void) {
    char *stack = mmap(NULL, NO_ACCESS_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, NO_ACCESS_BYTES, PROT_NONE) != 0) {
        perror("simulator: stack");
        exit(2);
    }
    return stack;
}

struct sim_fiber *sim_fiber_new(unsigned process, const char *name, void (*main)(void *), void *argument) {
    sim_check(fiber_count < SIM_FIBERS, "more than %u fibers", SIM_FIBERS);
    sim_check(process < SIM_PROCESSES && !sim_dead(process), "there is no process %u", process);
    step_limit = process ? SIM_STEP_LIMIT * SIM_STEPS_MORE : step_limit;
    struct sim_fiber *fiber = &fibers[fiber_count++];
    char *stack = fiber->stack ? fiber->stack : fiber_new_stack();
    *fiber = (struct sim_fiber){.name = name, .main = main, .argument = argument, .process = process, .stack = stack};
    if (sim_current) { /* a fiber that starts another passes on what it knows */
        fiber->knows.now = fiber->knows.upcoming = fiber->knows.fenced = sim_current->knows.now;
        sim_view_passed_on();
    }
    fiber->knows.now.heard[sim_fiber_index(fiber)] = 1;
    void **frame = (void **)(void *)(stack + NO_ACCESS_BYTES + STACK_BYTES) - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
    void (*entry)(void) = fiber_main;
    memcpy(&frame[FRAME_RETURN], &entry, sizeof entry);
    fiber->stack_pointer = frame;
    return fiber;
}

void sim_go(const char *name, void (*main)(void *), void *argument) {
    sim_fiber_new(sim_process, name, main, argument);
}

void sim_go_in(unsigned process, const char *name, void (*main)(void *), void *argument) {
    sim_fiber_new(process, name, main, argument);
}

static void fiber_run_fibers(void) {
    if (fiber_count == 0) {
        return;
    }
    struct candidates candidates = {.count = 0};
    for (unsigned i = 0; i < fiber_count; i++) {
        fiber_add_candidate(&candidates, &fibers[i]);
    }
    sim_current = fiber_choose_fiber(&candidates, SIM_TURN);
    sim_process_enter(sim_current->process);
    sim_switch(&main_stack_pointer, sim_current->stack_pointer);
}

static void fiber_check_house(void) {
    const char *leak = sim_prim_leak();
    leak = leak ? leak : sim_file_leak();
    sim_check(!leak, "%s", leak);
    sim_check(sim_heap_in_use() == 0, "%zu blocks of memory were not freed", sim_heap_in_use());
}

enum sim_outcome sim_execute(const struct sim_scenario *scenario) {
    static bool catching;
    if (!catching) {
        fiber_catch_faults();
        catching = true;
    }
    executions++;
    sim_memory_reset();
    sim_heap_reset();
    sim_race_reset();
    sim_prim_reset();
    sim_file_reset();
    sim_process_reset();
    victims = 0;
    killed = NULL;
    step_limit = SIM_STEP_LIMIT;
    fiber_count = steps = idle_times = moment_count = name_count = 0;
    sim_now_ns = START_NS;
    outcome = SIM_PASSED;
    sim_executing = true;
    if (setjmp(main_escape) == 0) {
        scenario->setup();
        fiber_run_fibers();
        if (outcome == SIM_PASSED) {
            if (scenario->finish) {
                scenario->finish();
            }
            fiber_check_house();
        }
    }
    sim_executing = false;
    return outcome;
}
