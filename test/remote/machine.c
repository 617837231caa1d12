/* SPDX-License-Identifier: MIT */
/*
 * machine.c - a model of the named locks of each machine, as far as remote/lock.c uses them: first come, first served
 * among the processes of a machine, with data, and with VIGIL_OWNER_DIED after a kill.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define MACHINES      4u
#define MACHINE_NAMES 2u
#define WAITERS       16u
#define WORDS         (VIGIL_NAMED_DATA / 8)

enum named_state { NAMED_IDLE, NAMED_WAITS, NAMED_GIVEN, NAMED_HELD };

struct name {
    char name[256];
    vigil_named *holder; /* GIVEN or HELD */
    bool died;
    unsigned dead; /* the process */
    vigil_named *waiters[WAITERS];
    unsigned waiter_count;
    uint64_t data[WORDS];
    uint64_t before[WORDS]; /* as it was at the last point of the process that holds it */
};

struct vigil_named {
    struct process *process;
    struct name *name;
    enum named_state state;
    int status; /* GIVEN */
    int64_t deadline_ns;
    vigil_named_callback *callback;
    void *data;
    vigil_named *next;
};

static struct name names[MACHINES][MACHINE_NAMES];
static vigil_named *handles;

void machine_reset(void) {
    while (handles) {
        vigil_named *next = handles->next;
        free(handles);
        handles = next;
    }
    memset(names, 0, sizeof names);
}

/* ---- The line ---- */

static void name_leave_line(vigil_named *named) {
    struct name *name = named->name;
    unsigned i = 0;
    while (i < name->waiter_count && name->waiters[i] != named) i++;
    assert(i < name->waiter_count);
    memmove(&name->waiters[i], &name->waiters[i + 1], (--name->waiter_count - i) * sizeof *name->waiters);
}

static void name_give(struct name *name, vigil_named *to, enum named_state state) {
    name->holder = to;
    memcpy(name->before, name->data, sizeof name->before);
    if (!to) return;
    to->state = state;
    to->status = name->died ? VIGIL_OWNER_DIED : VIGIL_OK;
}

static void name_hand_on(struct name *name) {
    vigil_named *next = name->waiter_count ? name->waiters[0] : NULL;
    if (next) name_leave_line(next);
    name_give(name, next, NAMED_GIVEN);
}

static void name_remember_death(vigil_named *named) {
    named->name->died = true;
    named->name->dead = named->process->number;
}

static int name_try(vigil_named *named) {
    struct name *name = named->name;
    if (name->holder || name->waiter_count) return VIGIL_TIMED_OUT;
    name_give(name, named, NAMED_HELD);
    return named->status;
}

/* ---- What lock.c calls ---- */

int vigil_named_open(vigil_named **result, const char *text, const vigil_named_options *options) {
    assert(world_running && !options && strlen(text) < sizeof names[0][0].name);
    struct name *name = names[world_running->machine];
    while (name->name[0] && strcmp(name->name, text) != 0) name++;
    assert(name < names[world_running->machine] + MACHINE_NAMES);
    strcpy(name->name, text);
    vigil_named *named = calloc(1, sizeof *named);
    *named = (struct vigil_named){.process = world_running, .name = name, .next = handles};
    handles = named;
    *result = named;
    return VIGIL_OK;
}

int vigil_named_close(vigil_named *named) {
    assert(named->state == NAMED_IDLE && world_running == named->process);
    vigil_named **at = &handles;
    while (*at != named) at = &(*at)->next;
    *at = named->next;
    free(named);
    return VIGIL_OK;
}

int vigil_named_trylock(vigil_named *named, unsigned how) {
    assert(how == VIGIL_NAMED_FAIR && world_running == named->process);
    world_point();
    if (named->state != NAMED_IDLE) return VIGIL_EINUSE;
    int status = name_try(named);
    world_point();
    return status;
}

int vigil_named_lock_async(vigil_agent *agent, vigil_named *named, unsigned how, int64_t timeout_ns,
                           vigil_named_callback *callback, void *data) {
    assert(agent == (vigil_agent *)named->process && how == VIGIL_NAMED_FAIR);
    world_point();
    if (named->state != NAMED_IDLE) return VIGIL_EINUSE;
    int status = name_try(named);
    if (status == VIGIL_TIMED_OUT && timeout_ns > 0) {
        struct name *name = named->name;
        assert(name->waiter_count < WAITERS);
        name->waiters[name->waiter_count++] = named;
        named->state = NAMED_WAITS;
        named->deadline_ns = timeout_ns >= INT64_MAX - world_now_ns ? INT64_MAX : world_now_ns + timeout_ns;
        named->callback = callback;
        named->data = data;
        status = VIGIL_PENDING;
    }
    world_point();
    return status;
}

int vigil_named_cancel(vigil_named *named) {
    assert(world_running == named->process);
    if (named->state == NAMED_GIVEN) return VIGIL_ETOOLATE;
    if (named->state != NAMED_WAITS) return VIGIL_EIDLE;
    name_leave_line(named);
    named->state = NAMED_IDLE;
    return VIGIL_OK;
}

int vigil_named_unlock(vigil_named *named) {
    assert(world_running == named->process);
    if (named->state != NAMED_HELD) return VIGIL_ENOTHELD;
    world_point();
    named->state = NAMED_IDLE;
    name_hand_on(named->name);
    world_point();
    return VIGIL_OK;
}

int vigil_named_abandon(vigil_named *named) {
    if (named->state == NAMED_HELD) name_remember_death(named);
    return vigil_named_unlock(named);
}

int vigil_named_death(const vigil_named *named, vigil_named_holder *dead) {
    if (!named->name->died) return VIGIL_EINVAL;
    *dead = (vigil_named_holder){.pid = named->name->dead + 100, .text = "killed"};
    return VIGIL_OK;
}

int vigil_named_consistent(vigil_named *named) {
    if (named->state != NAMED_HELD) return VIGIL_ENOTHELD;
    if (!named->name->died) return VIGIL_EINVAL;
    world_point();
    named->name->died = false;
    world_point();
    return VIGIL_OK;
}

void *vigil_named_data(vigil_named *named) {
    assert(named->state == NAMED_HELD); /* else it may not be read */
    return named->name->data;
}

int vigil_named_describe(vigil_named *named, const char *text, uint32_t pid) {
    (void)named;
    (void)text;
    (void)pid;
    return VIGIL_OK;
}

int vigil_named_tie(vigil_named *named) {
    (void)named;
    return VIGIL_ESYSTEM; /* not modelled: the scenarios tie nothing */
}

int vigil_agent_ref(vigil_agent *agent) {
    ((struct process *)agent)->references++;
    return VIGIL_OK;
}

int vigil_agent_unref(vigil_agent *agent) {
    sim_check(--((struct process *)agent)->references >= 0, "an agent is unreferenced too often");
    return VIGIL_OK;
}

/* ---- Events ---- */

static void named_given(void *what, unsigned way) {
    vigil_named *named = what;
    (void)way;
    named->state = NAMED_HELD;
    memcpy(named->name->before, named->name->data, sizeof named->name->before);
    named->callback(named, named->status, named->data);
}

static void named_timed_out(void *what, unsigned way) {
    vigil_named *named = what;
    (void)way;
    name_leave_line(named);
    named->state = NAMED_IDLE;
    named->callback(named, VIGIL_TIMED_OUT, named->data);
}

void machine_collect(struct events *events) {
    for (vigil_named *named = handles; named; named = named->next) {
        struct event event = {.what = named, .process = named->process, .ways = 1, .number = named->process->number};
        bool due = named->state == NAMED_WAITS && named->deadline_ns <= world_now_ns;
        if (named->state == NAMED_WAITS) events_at(events, named->deadline_ns);
        if (!process_runs(named->process) || (named->state != NAMED_GIVEN && !due)) continue;
        event.name = due ? "named lock times out" : "named lock is given";
        event.run = due ? named_timed_out : named_given;
        events_add(events, event);
    }
}

/* ---- Kills ---- */

/* A kill while the record is being saved leaves some words as they were. */
static void name_tear(struct name *name) {
    static const unsigned old_words[] = {0, ~0u, 0x15, 0x2a, 0x20, 0x07};
    bool changed = memcmp(name->before, name->data, sizeof name->data) != 0;
    unsigned mask = changed ? old_words[world_choose(6, CHOOSE_ORDER)] : 0;
    for (unsigned i = 0; i < WORDS; i++)
        if (mask >> i & 1) name->data[i] = name->before[i];
}

void machine_point(bool killed) {
    for (vigil_named *named = handles; named; named = named->next) {
        if (named->process != world_running || named->state != NAMED_HELD) continue;
        if (killed) name_tear(named->name);
        memcpy(named->name->before, named->name->data, sizeof named->name->before);
    }
}

/* A process that was given the lock, and does not know it yet, has not used it: its death is not told. */
static void named_die(vigil_named *named) {
    enum named_state state = named->state;
    named->state = NAMED_IDLE;
    if (state == NAMED_WAITS) name_leave_line(named);
    if (state == NAMED_HELD) name_remember_death(named);
    if (state == NAMED_GIVEN || state == NAMED_HELD) name_hand_on(named->name);
}

void machine_killed(struct process *process) {
    for (vigil_named **at = &handles; *at;) {
        vigil_named *named = *at;
        if (named->process != process) {
            at = &named->next;
            continue;
        }
        *at = named->next;
        named_die(named);
        free(named);
    }
}
