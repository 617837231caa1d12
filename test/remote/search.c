/* SPDX-License-Identifier: MIT */
/*
 * search.c - one execution: what happens next, and whether what has happened is right.
 *
 * First the scenario runs with faults. Then they stop, and every request that is left must be granted. In the end all
 * handles are closed, and nothing may be left in etcd.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../remote/remote.h"
#include "engine.h"
#include "search.h"

#define NAME            "a"
#define STEPS_OF_FAULTS 1500u
#define STEPS           40000u
#define FAULTS_NS       (12 * WORLD_TTL_NS)
#define QUIET_NS        (40 * WORLD_TTL_NS)   /* after the faults, and the longest pause: all must be over by then */
#define WAIT_NS         (10 * WORLD_TTL_NS)   /* a request is granted by then, without faults */
#define FAULT_WAIT_NS   (20 * WORLD_TTL_NS)   /* and after the last fault */
#define TRY_NS          (6 * WORLD_SECOND_NS) /* a try takes no longer: what is left of a place, and one call */

/* ---- What choose.c needs of an engine ---- */

char sim_reason[400];
FILE *sim_trace_file;
unsigned remote_bug;
static jmp_buf failed_here, killed_here;

_Noreturn void sim_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sim_reason, sizeof sim_reason, format, arguments);
    va_end(arguments);
    longjmp(failed_here, 1);
}

void sim_sharing_forget(void) {
}
bool sim_sharing_grew(void) {
    return false;
}

/* ---- The world ---- */

struct process world_processes[WORLD_PROCESSES];
unsigned world_process_count;
int64_t world_now_ns;
bool world_faults;
int world_refusal;
unsigned world_kills_left;
struct process *world_running;
static unsigned world_others_left, world_steps;
static bool world_had_faults, world_hand;
static int64_t world_hand_ns;  /* when it last did something */
static int64_t world_fault_ns; /* when the last fault was; 0: there was none */
static int64_t world_late_ns;  /* when processes were last slow: time went on before what was due was done */
static const struct scenario *world_scenario;

void world_trace(const char *format, ...) {
    if (!sim_trace_file) return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(sim_trace_file, format, arguments);
    fputc('\n', sim_trace_file);
    va_end(arguments);
}

unsigned world_choose(unsigned options, int kind) {
    if (options < 2 || !world_faults) return 0;
    if (options > 31) options = 31;
    if (kind == CHOOSE_LOSS && !(world_scenario->faults & FAULT_LOSS)) return 0;
    unsigned option = sim_choose(options, (1u << options) - 1, (enum sim_deviation)kind);
    if (option && kind != CHOOSE_ORDER && kind != CHOOSE_CANCEL) {
        world_had_faults = true;
        world_fault_ns = world_now_ns;
    }
    return option;
}

void events_add(struct events *events, struct event event) {
    assert(events->count < WORLD_EVENTS);
    unsigned at = events->count++;
    for (; at && events->list[at - 1].number > event.number; at--) events->list[at] = events->list[at - 1];
    events->list[at] = event;
}

void events_at(struct events *events, int64_t at_ns) {
    if (at_ns > world_now_ns && at_ns < events->next_ns) events->next_ns = at_ns;
}

/* ---- Actors ---- */

enum actor_state { ACTOR_READY, ACTOR_PENDING, ACTOR_HOLDS, ACTOR_RELEASING, ACTOR_CLOSING, ACTOR_CLOSED, ACTOR_DEAD };

struct actor {
    const struct actor_plan *plan;
    struct process *process;
    vigil_remote_lock *lock;
    enum actor_state state;
    unsigned rounds_left, number;
    bool alone;
    bool knows;    /* its process has reached the cluster before it asked */
    bool in_call;  /* of the library: callbacks must not come now */
    bool lost;     /* it was told */
    bool vanished; /* its key is gone, and it was not released */
    bool by_hand;  /* and that was a hand's work */
    int64_t vanished_ns;
    int64_t asked_ns; /* when it asked, or the process was last stopped or cut since */
    int64_t next_ns;  /* not before that it acts */
    char key[256];
};
static struct actor actors[SEARCH_ACTORS];
static unsigned actor_count;

/* What is true. `owed`: a holder died or lost the lock without releasing it: the next must be told. `maybe`: the next
 * may be told: see truth_is_vague. */
static struct {
    bool owed, maybe;
    int64_t alone_token, any_token;
    unsigned streak, streak_machine, kills;
    int64_t streak_since; /* a revision */
    /* Of the word: waiters that notifiers were told of, and notifiers that do not know; waiters that were woken, and
     * those that do not know. */
    unsigned notified, maybe_notified, woken, maybe_woken;
} truth;

/*
 * VIGIL_OWNER_DIED is also told, though no holder died, when
 * - a process was killed while it was asking for the lock or releasing it: the cluster may have granted it before, or
 *   not have released it yet, and what it did with the lock is not known;
 * - a machine that keeps the lock, or a process that is releasing it, lost the lease: the mark is there until a release
 *   arrives;
 * - a grant whose reply was lost has made the mark, and its lease ended before the client could find that out.
 */
static void truth_is_vague(void) {
    truth.maybe = true;
}

static struct actor *actor_of_key(const char *key) {
    for (unsigned i = 0; i < actor_count; i++)
        if (actors[i].state == ACTOR_HOLDS && strcmp(actors[i].key, key) == 0) return &actors[i];
    return NULL;
}

static bool key_is_alone(const char *key) {
    return strstr(key, "!held/x.") != NULL;
}

static const char *key_identity(const char *key) {
    const char *dot = strstr(key, "!line/");
    return dot ? dot + 6 : strchr(key, '.') + 1;
}

static unsigned world_slots(void) {
    for (unsigned i = 0; i < model_keys(); i++) {
        const char *value;
        if (strcmp(model_key(i, NULL, NULL, &value), NAME "!slots") == 0) return (unsigned)strtoul(value, NULL, 10);
    }
    return 0;
}

static void check_held_keys(void) {
    unsigned alone = 0, others = 0, slots = world_slots();
    for (unsigned i = 0; i < model_keys(); i++) {
        const char *key = model_key(i, NULL, NULL, NULL);
        if (strstr(key, "!held/")) *(key_is_alone(key) ? &alone : &others) += 1;
    }
    sim_check(alone <= 1 && !(alone && others), "%u hold it alone, and %u others share it", alone, others);
    sim_check(!slots || others <= slots, "%u slots of %u are held", others, slots);
}

void search_key_created(const char *key, int64_t revision, const char *oldest_in_line) {
    (void)revision;
    if (!strstr(key, "!held/")) return;
    check_held_keys();
    sim_check(!oldest_in_line[0] || strcmp(key_identity(key), key_identity(oldest_in_line)) == 0,
              "%s is granted before %s", key, oldest_in_line);
}

void search_key_gone(const char *key, enum model_end how) {
    if (!strstr(key, "!held/")) return;
    struct actor *actor = actor_of_key(key);
    if (how == MODEL_RELEASED) {
        sim_check(!actor || actor->lost, "the key of a holder is deleted");
        return;
    }
    sim_check(how != MODEL_EXPIRED || world_had_faults, "a lease ends with its key, and nothing has gone wrong");
    if (actor) {
        actor->vanished = true;
        actor->by_hand = how == MODEL_BY_HAND;
        actor->vanished_ns = world_now_ns;
        sim_check(how != MODEL_REVOKED || actor->lost, "the lease of a holder is revoked");
    }
    if (!key_is_alone(key)) return;
    if (actor) truth.owed = true;
    else truth_is_vague();
}

/* ---- What actors do ---- */

static void actor_step(void *what, unsigned way);

static void actor_goes_on(struct actor *actor, int64_t after_ns) {
    actor->next_ns = world_now_ns + after_ns;
    if (actor->plan->acts & ACTS_EAGERLY && !after_ns && !actor->in_call) actor_step(actor, 0);
}

static bool other_machine_waits(unsigned machine, int64_t since) {
    char host[8];
    snprintf(host, sizeof host, "m%u ", machine);
    for (unsigned i = 0; i < model_keys(); i++) {
        int64_t created;
        const char *value, *key = model_key(i, &created, NULL, &value);
        if (strstr(key, "!line/") && strncmp(value, host, strlen(host)) != 0 && created < since) return true;
    }
    return false;
}

static void check_turns(const struct actor *actor) {
    bool in_a_row = truth.streak_machine == actor->process->machine && truth.streak_since &&
                    other_machine_waits(actor->process->machine, truth.streak_since);
    truth.streak = in_a_row ? truth.streak + 1 : 0;
    truth.streak_machine = actor->process->machine;
    truth.streak_since = model_revision() + 1;
    sim_check(truth.streak <= VIGIL_REMOTE_HANDOVERS + truth.kills,
              "another machine waits, and %u times in a row this one has it", truth.streak);
}

static void check_token(const struct actor *actor) {
    int64_t token = vigil_remote_lock_token(actor->lock);
    int64_t least = actor->alone ? truth.any_token : truth.alone_token;
    sim_check(token > least, "token %lld after %lld", (long long)token, (long long)least);
    if (actor->alone) truth.alone_token = token;
    if (token > truth.any_token) truth.any_token = token;
    if (actor->alone) check_turns(actor);
}

static void check_death(const struct actor *actor, int status) {
    if (actor->plan->slots) {
        sim_check(status == VIGIL_OK, "a slot is granted with %s", vigil_strerror(status));
        return;
    }
    sim_check(status != VIGIL_OK || !truth.owed, "a holder died, and the next is not told");
    sim_check(status == VIGIL_OK || truth.owed || truth.maybe, "no holder died, and the next is told that one did");
    vigil_remote_holder dead;
    sim_check(status == VIGIL_OK || vigil_remote_lock_death(actor->lock, &dead) == VIGIL_OK, "it has no death");
    sim_check(status == VIGIL_OK || (dead.host[0] == 'm' && dead.pid >= 100), "the holder that died is not named");
    if (actor->alone && status != VIGIL_OK) truth.owed = true;
    if (actor->alone) truth.maybe = false;
}

/* A hand may have deleted the key before the holder is told that it has it. */
static bool check_key_is_there(struct actor *actor) {
    for (unsigned i = 0; i < model_keys(); i++)
        if (strcmp(model_key(i, NULL, NULL, NULL), actor->key) == 0) return true;
    sim_check(world_hand, "it is granted, and its key is gone");
    bool slow = world_late_ns >= world_hand_ns; /* it may have been given the named lock before, and be told now */
    sim_check(world_scenario->faults != FAULT_HAND || slow || world_now_ns - world_hand_ns < WORLD_TTL_NS,
              "it is granted, and its key has been gone for long");
    actor->vanished = actor->by_hand = true;
    actor->vanished_ns = world_now_ns;
    if (actor->alone && vigil_remote_lock_token(actor->lock) > truth.alone_token) {
        truth.alone_token = vigil_remote_lock_token(actor->lock);
        truth.owed = true;
    }
    return false;
}

/* No request waits until a process happens to act that has no reason to. */
static void check_wait(const struct actor *actor) {
    int64_t since_ns = actor->asked_ns > world_fault_ns ? actor->asked_ns : world_fault_ns;
    sim_check(world_now_ns - since_ns <= (world_had_faults ? FAULT_WAIT_NS : WAIT_NS), "actor %u waits too long",
              actor->number);
}

static void actor_granted(struct actor *actor, int status) {
    actor->state = ACTOR_HOLDS;
    actor->lost = actor->vanished = actor->by_hand = false;
    snprintf(actor->key, sizeof actor->key, "%s", vigil_remote_lock_key(actor->lock));
    world_trace("  actor %u holds it%s, token %lld, %s", actor->number, actor->alone ? "" : " with others",
                (long long)vigil_remote_lock_token(actor->lock), vigil_strerror(status));
    check_wait(actor);
    if (check_key_is_there(actor)) {
        check_token(actor);
        check_death(actor, status);
    }
    if (status == VIGIL_OWNER_DIED && actor->alone && actor->plan->acts & ACTS_CONSISTENT) {
        sim_check(vigil_remote_lock_consistent(actor->lock) == VIGIL_OK, "it cannot be declared consistent");
        if (!actor->vanished) truth.owed = false;
    }
    actor_goes_on(actor, actor->plan->hold_ns);
}

/* A request of a process that runs ends at its deadline, whatever the network does, and a try soon. The first request
 * has to find the cluster. */
static void check_end_in_time(const struct actor *actor) {
    int64_t timeout_ns = actor->plan->timeout_ns, most_ns = timeout_ns ? timeout_ns : TRY_NS;
    bool slow = world_late_ns >= actor->asked_ns || actor->process->stopped_until_ns > actor->asked_ns;
    if (slow || !actor->knows || timeout_ns == VIGIL_FOREVER) return;
    sim_check(world_now_ns - actor->asked_ns <= most_ns, "a request ends %lld ms late",
              (long long)(world_now_ns - actor->asked_ns - most_ns) / 1000000);
}

static void check_refusal(const struct actor *actor, int status) {
    int64_t timeout_ns = actor->plan->timeout_ns;
    bool for_ever = timeout_ns == VIGIL_FOREVER;
    if (world_refusal && status == world_refusal) return;
    sim_check(status == VIGIL_TIMED_OUT || status == VIGIL_EUNREACHABLE, "a request ends with %d", status);
    sim_check(!for_ever || !actor->process->remote->cluster, "a request for ever ends with %d", status);
    sim_check(status != VIGIL_TIMED_OUT || for_ever || world_now_ns - actor->asked_ns >= timeout_ns || !timeout_ns,
              "a request times out early");
}

static void search_asked(vigil_remote_lock *lock, int status, void *data) {
    struct actor *actor = data;
    world_point(); /* the last at which the record may be torn */
    sim_check(lock == actor->lock && actor->state == ACTOR_PENDING && !actor->in_call,
              "a callback that none asked for");
    sim_check(process_runs(actor->process) && world_running == actor->process, "a callback of another process");
    actor->rounds_left--;
    check_end_in_time(actor);
    if (status == VIGIL_OK || status == VIGIL_OWNER_DIED) {
        actor_granted(actor, status);
        return;
    }
    world_trace("  actor %u gets status %d", actor->number, status);
    check_refusal(actor, status);
    actor->state = ACTOR_READY;
    actor_goes_on(actor, actor->plan->pause_ns);
}

static void search_released(vigil_remote_lock *lock, int status, void *data) {
    struct actor *actor = data;
    world_point();
    sim_check(lock == actor->lock && actor->state == ACTOR_RELEASING && !actor->in_call, "released, unasked");
    world_trace("  actor %u has released it: %d", actor->number, status);
    actor->state = ACTOR_READY;
    actor_goes_on(actor, actor->plan->pause_ns);
}

static void actor_open_lock(struct actor *actor);

static void actor_closed(struct actor *actor) {
    bool again = actor->plan->acts & ACTS_REOPENS && actor->rounds_left;
    actor->state = again ? ACTOR_READY : ACTOR_CLOSED;
    actor->lock = NULL;
    if (!again) return;
    actor_open_lock(actor);
    actor->next_ns = world_now_ns + actor->plan->pause_ns;
}

static void search_closed(int status, void *data) {
    struct actor *actor = data;
    sim_check(actor->state == ACTOR_CLOSING && !actor->in_call, "closed, unasked");
    world_trace("  actor %u is closed: %d", actor->number, status);
    actor_closed(actor);
}

static void search_lost(vigil_remote_lock *lock, int64_t left_ns, void *data) {
    struct actor *actor = data;
    world_point();
    sim_check(lock == actor->lock && actor->state == ACTOR_HOLDS && !actor->lost, "lost, and not held");
    sim_check(left_ns >= 0 && left_ns < WORLD_TTL_NS, "%lld ns are left", (long long)left_ns);
    world_trace("  actor %u has lost it, %lld ms are left", actor->number, (long long)left_ns / 1000000);
    actor->lost = true;
    if (actor->alone && !actor->vanished) truth.owed = true; /* it has to stop midway */
    actor_goes_on(actor, 0);
}

static void actor_take(struct actor *actor) {
    bool second = (actor->plan->rounds - actor->rounds_left) % 2;
    bool shared = actor->plan->acts & ACTS_SHARED || (actor->plan->acts & ACTS_MIXED && second);
    actor->alone = !shared && !actor->plan->slots;
    actor->state = ACTOR_PENDING;
    actor->asked_ns = world_now_ns;
    actor->knows = actor->process->remote->cluster;
    int status = vigil_remote_lock_take(actor->lock, shared ? VIGIL_NAMED_SHARED : 0, actor->plan->timeout_ns,
                                        search_asked, actor);
    sim_check(status == VIGIL_PENDING, "take returns %d", status);
}

/* It does not know that its lease has ended, and releases it. If none had it since, that may be as good. */
static void truth_of_late_release(const struct actor *actor) {
    bool since = truth.alone_token != vigil_remote_lock_token(actor->lock);
    if (!actor->alone || !actor->vanished || actor->lost || since) return;
    truth.owed = false;
    truth_is_vague();
}

static void actor_release(struct actor *actor) {
    truth_of_late_release(actor);
    actor->state = ACTOR_RELEASING;
    int status = vigil_remote_lock_release(actor->lock, search_released, actor);
    sim_check(status == VIGIL_OK || status == VIGIL_PENDING, "release returns %d", status);
    if (status == VIGIL_OK) {
        actor->state = ACTOR_READY;
        actor->next_ns = world_now_ns + actor->plan->pause_ns;
    }
}

/* Of the word. */

static void search_waited(int status, int64_t value, void *data) {
    struct actor *actor = data;
    bool cluster = actor->process->remote->cluster;
    (void)value;
    world_trace("  actor %u has waited: %d", actor->number, status);
    sim_check(actor->state == ACTOR_PENDING && !actor->in_call, "a waiter ends, unasked");
    sim_check(status == VIGIL_OK || status == VIGIL_TIMED_OUT || (status == VIGIL_ELOST && world_had_faults) ||
                  (status == VIGIL_EUNREACHABLE && world_had_faults && (!actor->knows || !cluster)),
              "a waiter ends with %d", status);
    truth.woken += status == VIGIL_OK;
    truth.maybe_woken += status == VIGIL_ELOST;
    actor->rounds_left--;
    actor->state = actor->rounds_left ? ACTOR_READY : ACTOR_CLOSED;
    actor_goes_on(actor, actor->plan->pause_ns);
}

static void search_notified(int status, int64_t value, void *data) {
    struct actor *actor = data;
    world_trace("  actor %u has woken %d: %d", actor->number, (int)value, status);
    sim_check(actor->state == ACTOR_PENDING && !actor->in_call && value <= 1, "a notify ends, unasked");
    truth.notified += status == VIGIL_OK ? (unsigned)value : 0;
    truth.maybe_notified += status != VIGIL_OK;
    actor->rounds_left--;
    actor->state = actor->rounds_left ? ACTOR_READY : ACTOR_CLOSED;
    actor_goes_on(actor, actor->plan->pause_ns);
}

static void actor_use_word(struct actor *actor) {
    vigil_remote *remote = actor->process->remote;
    actor->state = ACTOR_PENDING;
    actor->knows = remote->cluster;
    int status = actor->plan->acts & ACTS_NOTIFIES
                     ? vigil_remote_word_notify(remote, NAME, 1, search_notified, actor)
                     : vigil_remote_word_wait(remote, NAME, 0, actor->plan->timeout_ns, search_waited, actor, NULL);
    sim_check(status == VIGIL_PENDING, "a call of the word returns %d", status);
}

/* Each that was woken knows that it was, or that it may have been; and no other does. */
static void check_word(void) {
    sim_check(truth.notified <= truth.woken + truth.maybe_woken, "%u were woken, and %u know", truth.notified,
              truth.woken);
    sim_check(truth.woken <= truth.notified + truth.maybe_notified, "%u were woken, and %u say so", truth.notified,
              truth.woken);
}

static void actor_close(struct actor *actor) {
    if (actor->state == ACTOR_HOLDS) truth_of_late_release(actor);
    actor->state = ACTOR_CLOSING;
    int status = vigil_remote_lock_close(actor->lock, search_closed, actor);
    sim_check(status == VIGIL_OK || status == VIGIL_PENDING, "close returns %d", status);
    if (status == VIGIL_OK) actor_closed(actor);
}

static void actor_step(void *what, unsigned way) {
    struct actor *actor = what;
    (void)way;
    bool held = actor->state == ACTOR_HOLDS;
    bool closes = !actor->rounds_left && (!held || actor->plan->acts & ACTS_CLOSES_HELD);
    closes |= held && actor->plan->acts & ACTS_REOPENS;
    actor->in_call = true;
    world_trace("  actor %u %s", actor->number, closes ? "closes" : actor->state == ACTOR_HOLDS ? "releases" : "takes");
    if (actor->plan->acts & (ACTS_WAITS | ACTS_NOTIFIES)) actor_use_word(actor);
    else if (closes) actor_close(actor);
    else if (actor->state == ACTOR_HOLDS) actor_release(actor);
    else actor_take(actor);
    actor->in_call = false;
}

static void actor_cancel(void *what, unsigned way) {
    struct actor *actor = what;
    (void)way;
    actor->in_call = true;
    int status = vigil_remote_lock_cancel(actor->lock);
    actor->in_call = false;
    world_trace("  actor %u cancels: %d", actor->number, status);
    sim_check(status == VIGIL_OK, "cancel returns %d", status);
    actor->state = ACTOR_READY;
    actor->rounds_left--;
    actor_goes_on(actor, 0);
}

static void actor_collect(struct actor *actor, struct events *events) {
    if (actor->state != ACTOR_READY && actor->state != ACTOR_HOLDS) return;
    struct event event = {.name = "actor", .run = actor_step, .what = actor, .process = actor->process, .ways = 1};
    event.number = 1u << 30;
    events_at(events, actor->next_ns);
    if (actor->next_ns <= world_now_ns && process_runs(actor->process)) events_add(events, event);
}

/* ---- Faults ---- */

static void process_free(struct process *process) {
    for (unsigned i = 0; i < actor_count; i++) {
        if (actors[i].process != process) continue;
        if (actors[i].lock) remote_forget(actors[i].lock);
        actors[i].lock = NULL;
    }
    if (process->remote) free(process->etcd);
    free(process->remote);
    process->remote = NULL;
}

/* The actor is no more, and has not released what it may hold. */
static void actor_dies(struct actor *actor) {
    if (actor->alone && actor->state == ACTOR_HOLDS && !actor->vanished) truth.owed = true;
    else if (actor->alone) truth_is_vague();
    actor->state = ACTOR_DEAD;
}

static void process_kill(struct process *process) {
    world_trace("  process %u is killed", process->number);
    world_kills_left--;
    truth.kills++;
    process->alive = false;
    for (unsigned i = 0; i < actor_count; i++) {
        struct actor *actor = &actors[i];
        if (actor->process == process && actor->state != ACTOR_CLOSED && actor->state != ACTOR_DEAD) actor_dies(actor);
    }
    model_killed(process);
    machine_killed(process);
    process_free(process);
}

/* A handle is abandoned. If it is too late for that, nothing happens: it can be tried again. */
static void actor_abandon(void *what, unsigned way) {
    struct actor *actor = what;
    (void)way;
    vigil_remote_lock *lock = actor->lock;
    enum actor_state before = actor->state;
    actor->in_call = true;
    int status = vigil_remote_lock_abandon(lock);
    actor->in_call = false;
    world_trace("  actor %u abandons it: %d", actor->number, status);
    sim_check(status == VIGIL_OK || (status == VIGIL_ETOOLATE && before == ACTOR_PENDING), "abandon returns %d",
              status);
    if (status != VIGIL_OK) return;
    world_kills_left--;
    truth.kills++;
    actor->lock = NULL;
    actor_dies(actor);
}

static bool process_may_die(const struct process *process) {
    return process->alive && process->may_die && world_kills_left && world_faults;
}

void world_point(void) {
    assert(world_running);
    if (!process_may_die(world_running) || !world_choose(2, CHOOSE_KILL)) {
        machine_point(false);
        return;
    }
    machine_point(true);
    process_kill(world_running);
    longjmp(killed_here, 1);
}

void world_pause(void) {
    if (!world_running || !world_others_left || !(world_scenario->faults & FAULT_INSIDE)) return;
    unsigned way = world_choose(3, CHOOSE_FAULT);
    if (!way) return;
    world_others_left--;
    world_now_ns += way == 1 ? WORLD_TTL_NS * 9 / 10 : 3 * WORLD_TTL_NS;
    world_trace("  it is stopped, and goes on at %lld ms", (long long)(world_now_ns / 1000000));
    world_fault_ns = world_late_ns = world_now_ns;
}

static void fault_kill(void *what, unsigned way) {
    (void)way;
    process_kill(what);
}

static void fault_stop(void *what, unsigned way) {
    struct process *process = what;
    process->stopped_until_ns = world_now_ns + (way ? 3 * WORLD_TTL_NS : WORLD_TTL_NS / 2);
}

static void fault_cut(void *what, unsigned way) {
    struct process *process = what;
    process->cut_until_ns = world_now_ns + (way ? 3 * WORLD_TTL_NS : WORLD_TTL_NS / 2);
}

static void fault_delete(void *what, unsigned way) {
    (void)way;
    world_hand = true;
    world_hand_ns = world_now_ns;
    model_delete_by_hand((unsigned)(uintptr_t)what);
}

static void fault_revoke(void *what, unsigned way) {
    (void)way;
    world_hand = true;
    world_hand_ns = world_now_ns;
    model_revoke_by_hand((unsigned)(uintptr_t)what);
}

static void fault_leader(void *what, unsigned way) {
    (void)what;
    (void)way;
    model_change_leader();
}

static void fault_watch(void *what, unsigned way) {
    (void)way;
    model_lose_watch((unsigned)(uintptr_t)what);
}

static void fault_add(struct events *faults, const char *name, void (*run)(void *, unsigned), void *what,
                      unsigned ways) {
    struct event event = {.name = name, .run = run, .what = what, .ways = ways};
    if (faults->count < 30) events_add(faults, event);
}

static void faults_of_processes(struct events *faults) {
    for (unsigned i = 0; i < world_process_count && world_others_left; i++) {
        struct process *process = &world_processes[i];
        if (!process_runs(process)) continue;
        if (world_scenario->faults & FAULT_STOP) fault_add(faults, "stop", fault_stop, process, 2);
        if (world_scenario->faults & FAULT_CUT && !process_is_cut(process))
            fault_add(faults, "cut", fault_cut, process, 2);
    }
}

static void faults_of_cluster(struct events *faults) {
    if (!world_others_left) return;
    unsigned hand = world_scenario->faults & FAULT_HAND, cluster = world_scenario->faults & FAULT_CLUSTER;
    for (unsigned i = 0; hand && i < model_keys(); i++) {
        const char *key = model_key(i, NULL, NULL, NULL);
        bool leased = strstr(key, "!line/") || strstr(key, "!held/");
        if (leased) fault_add(faults, "delete by hand", fault_delete, (void *)(uintptr_t)i, 1);
    }
    for (unsigned i = 0; hand && i < model_leases(); i++)
        fault_add(faults, "revoke by hand", fault_revoke, (void *)(uintptr_t)i, 1);
    for (unsigned i = 0; cluster && i < model_watches(); i++)
        fault_add(faults, "watch is lost", fault_watch, (void *)(uintptr_t)i, 1);
    if (cluster && model_leases()) fault_add(faults, "new leader", fault_leader, NULL, 1);
}

static void world_run(const struct event *event, unsigned way) {
    world_trace("%5u %7lld ms p%d %s %u%s%.0u", world_steps, (long long)(world_now_ns / 1000000),
                event->process ? (int)event->process->number : -1, event->name, event->number, way ? " way " : "", way);
    world_running = event->process;
    if (setjmp(killed_here) == 0) {
        event->run(event->what, way);
        if (world_running && world_running->alive) machine_point(false);
    }
    world_running = NULL;
}

/* Each of these returns whether something happened. */

static bool world_fault(void) {
    struct events faults = {.count = 0};
    faults_of_processes(&faults);
    faults_of_cluster(&faults);
    unsigned chosen = faults.count ? world_choose(faults.count + 1, CHOOSE_FAULT) : 0;
    if (!chosen) return false;
    world_others_left--;
    const struct event *fault = &faults.list[chosen - 1];
    world_run(fault, world_choose(fault->ways, CHOOSE_FAULT));
    return true;
}

static bool world_kill_between(void) {
    struct events kills = {.count = 0};
    for (unsigned i = 0; i < world_process_count; i++)
        if (process_may_die(&world_processes[i])) fault_add(&kills, "kill", fault_kill, &world_processes[i], 1);
    unsigned chosen = kills.count ? world_choose(kills.count + 1, CHOOSE_KILL) : 0;
    if (chosen) world_run(&kills.list[chosen - 1], 0);
    return chosen != 0;
}

static bool world_cancel(void) {
    struct events cancels = {.count = 0};
    for (unsigned i = 0; i < actor_count; i++) {
        struct actor *actor = &actors[i];
        struct event event = {
            .name = "cancel", .run = actor_cancel, .what = actor, .process = actor->process, .ways = 1};
        bool may = actor->plan->acts & ACTS_CANCEL && actor->state == ACTOR_PENDING && process_runs(actor->process);
        if (may) events_add(&cancels, event);
    }
    unsigned chosen = cancels.count ? world_choose(cancels.count + 1, CHOOSE_CANCEL) : 0;
    if (chosen) world_run(&cancels.list[chosen - 1], 0);
    return chosen != 0;
}

static bool actor_may_abandon(const struct actor *actor) {
    return actor->plan->acts & ACTS_ABANDON && actor->lock && actor->state != ACTOR_DEAD &&
           process_runs(actor->process) && world_kills_left;
}

static bool world_abandon(void) {
    struct events list = {.count = 0};
    for (unsigned i = 0; i < actor_count; i++) {
        struct actor *actor = &actors[i];
        struct event event = {
            .name = "abandon", .run = actor_abandon, .what = actor, .process = actor->process, .ways = 1};
        if (actor_may_abandon(actor)) events_add(&list, event);
    }
    unsigned chosen = list.count ? world_choose(list.count + 1, CHOOSE_KILL) : 0;
    if (chosen) world_run(&list.list[chosen - 1], 0);
    return chosen != 0;
}

/* ---- One execution ---- */

static bool actor_believes(const struct actor *actor) {
    return actor->state == ACTOR_HOLDS && !actor->lost && !actor->by_hand && process_runs(actor->process) &&
           !model_has_due_timer(actor->process);
}

static void check_beliefs(void) {
    unsigned alone = 0, others = 0;
    for (unsigned i = 0; i < actor_count; i++) {
        const struct actor *actor = &actors[i];
        if (actor_believes(actor)) *(actor->alone ? &alone : &others) += 1;
        int64_t since_ns = world_now_ns - 2 * WORLD_TTL_NS;
        bool overlooked = actor->state == ACTOR_HOLDS && actor->vanished && !actor->lost &&
                          actor->vanished_ns < since_ns && actor->process->stopped_until_ns < since_ns &&
                          actor->process->cut_until_ns < since_ns && !model_has_due_timer(actor->process);
        sim_check(!overlooked, "actor %u does not notice that its key is gone", actor->number);
    }
    unsigned slots = actors[0].plan->slots;
    sim_check(alone <= 1 && !(alone && others), "%u believe to hold it alone, and %u to share it", alone, others);
    sim_check(!slots || others <= slots, "%u believe to hold one of %u slots", others, slots);
}

static bool all_want_it_alone(void) {
    for (unsigned i = 0; i < actor_count; i++)
        if (actors[i].plan->slots || actors[i].plan->acts & (ACTS_SHARED | ACTS_MIXED)) return false;
    return true;
}

/* A machine stands in line once. After faults, a key may be left until its lease ends. */
static void check_places(void) {
    if (world_had_faults || !all_want_it_alone()) return;
    unsigned places[WORLD_PROCESSES] = {0};
    for (unsigned i = 0; i < model_keys(); i++) {
        const char *value, *key = model_key(i, NULL, NULL, &value);
        if (!strstr(key, "!line/") && !strstr(key, "!held/")) continue;
        unsigned machine = (unsigned)(value[1] - '0'); /* the host is m0, m1 and so on */
        sim_check(++places[machine] == 1, "machine %u stands in line twice", machine);
    }
}

static void collect(struct events *events) {
    *events = (struct events){.next_ns = INT64_MAX};
    model_collect(events);
    machine_collect(events);
    for (unsigned i = 0; i < actor_count; i++) actor_collect(&actors[i], events);
    for (unsigned i = 0; i < world_process_count; i++) {
        if (!world_processes[i].alive) continue;
        events_at(events, world_processes[i].stopped_until_ns);
        events_at(events, world_processes[i].cut_until_ns);
    }
}

/* False: nothing can happen any more. */
static bool world_step(void) {
    struct events events;
    world_steps++;
    if (world_faults && (world_fault() || world_kill_between() || world_cancel() || world_abandon())) return true;
    collect(&events);
    bool waits = events.next_ns != INT64_MAX;
    if (!events.count && !waits) return false;
    bool late = events.count && waits && world_choose(2, CHOOSE_TIME);
    if (!events.count || late) {
        world_now_ns = events.next_ns;
        if (late) world_fault_ns = world_late_ns = world_now_ns;
        return true;
    }
    const struct event *event = &events.list[world_choose(events.count, CHOOSE_ORDER)];
    world_run(event, world_choose(event->ways, CHOOSE_LOSS));
    return true;
}

static bool all_closed(void) {
    for (unsigned i = 0; i < actor_count; i++)
        if (actors[i].state != ACTOR_CLOSED && actors[i].state != ACTOR_DEAD) return false;
    return true;
}

static void process_go_on(struct process *process) {
    if (!process_runs(process)) process->stopped_until_ns = world_now_ns;
    if (process_is_cut(process)) process->cut_until_ns = world_now_ns;
}

static void run_with_faults(void) {
    world_faults = true;
    while (!all_closed() && world_steps < STEPS_OF_FAULTS && world_now_ns < FAULTS_NS) {
        if (!world_step()) break;
        check_beliefs();
        check_places();
    }
    world_faults = false;
    for (unsigned i = 0; i < world_process_count; i++) process_go_on(&world_processes[i]);
}

static int64_t world_longest_pause_ns(void) {
    int64_t longest_ns = 0;
    for (unsigned i = 0; i < actor_count; i++)
        if (actors[i].plan->pause_ns > longest_ns) longest_ns = actors[i].plan->pause_ns;
    return longest_ns;
}

static void run_to_the_end(void) {
    int64_t until_ns = world_now_ns + QUIET_NS + world_longest_pause_ns();
    while (!all_closed()) {
        bool more = world_step();
        check_beliefs();
        for (unsigned i = 0; i < actor_count; i++)
            sim_check((more && world_now_ns < until_ns && world_steps < STEPS) || actors[i].state == ACTOR_CLOSED ||
                          actors[i].state == ACTOR_DEAD,
                      "actor %u waits for ever, in state %d", i, (int)actors[i].state);
    }
}

static void check_nothing_left(bool leases) {
    bool marked = false;
    for (unsigned i = 0; i < model_keys(); i++) {
        const char *key = model_key(i, NULL, NULL, NULL);
        bool mark = strcmp(key, NAME "!mark") == 0;
        marked |= mark;
        sim_check(mark || strcmp(key, NAME "!slots") == 0, "%s is left", key);
    }
    sim_check(!marked || truth.owed || truth.maybe, "the mark says that a holder died, and none did");
    sim_check(marked || !truth.owed, "a holder died, and no mark says so");
    sim_check(!leases || !model_leases(), "a lease is left");
}

static void run_down(void) {
    for (unsigned i = 0; i < world_process_count; i++) {
        struct process *process = &world_processes[i];
        if (!process->alive) continue;
        while (process->remote->open && world_step()) continue; /* the lease of a waiter is being revoked */
        sim_check(process->references == 0, "process %u keeps %d references", i, process->references);
        sim_check(vigil_remote_close(process->remote) == VIGIL_OK, "the cluster cannot be closed");
        process->remote = NULL;
    }
    if (!world_had_faults) check_nothing_left(false); /* a lease without keys ends by itself */
    while (world_step()) sim_check(world_steps < 2 * STEPS, "it does not come to an end");
    check_nothing_left(true);
}

static void world_clear(void) {
    for (unsigned i = 0; i < world_process_count; i++) process_free(&world_processes[i]);
    machine_reset();
    model_reset();
    memset(world_processes, 0, sizeof world_processes);
    memset(actors, 0, sizeof actors);
    memset(&truth, 0, sizeof truth);
    world_process_count = actor_count = world_steps = 0;
    world_now_ns = WORLD_SECOND_NS;
    world_fault_ns = world_late_ns = 0;
    world_had_faults = world_faults = world_hand = false;
    world_running = NULL;
}

static void actor_open_lock(struct actor *actor) {
    const struct actor_plan *plan = actor->plan;
    bool gives_back = plan->acts & (ACTS_GIVES_BACK | ACTS_REOPENS);
    vigil_remote_lock_options options = {
        .slots = plan->slots, .gives_back = gives_back, .on_lost = search_lost, .data = actor};
    assert(vigil_remote_lock_open(&actor->lock, actor->process->remote, NAME, &options) == VIGIL_OK);
}

static void actor_open(const struct actor_plan *plan) {
    struct actor *actor = &actors[actor_count];
    struct process *process = &world_processes[plan->process];
    if (plan->process >= world_process_count) world_process_count = plan->process + 1;
    if (!process->remote) {
        vigil_remote_options options = {.ttl_ns = WORLD_TTL_NS};
        *process = (struct process){.machine = plan->machine, .number = plan->process, .alive = true, .may_die = true};
        assert(vigil_remote_open(&process->remote, (vigil_agent *)process, "etcd://sim", &options) == VIGIL_OK);
        process->etcd = process->remote->etcd;
    }
    if (plan->acts & ACTS_IMMORTAL) process->may_die = false;
    *actor = (struct actor){.plan = plan, .process = process, .rounds_left = plan->rounds, .number = actor_count++};
    actor->next_ns = world_now_ns + plan->begin_ns;
    if (plan->acts & (ACTS_WAITS | ACTS_NOTIFIES)) return;
    world_running = process;
    actor_open_lock(actor);
    world_running = NULL;
}

enum sim_outcome sim_execute(const struct sim_scenario *scenario) {
    world_clear();
    world_scenario = (const struct scenario *)scenario;
    world_kills_left = world_scenario->kills;
    world_others_left = world_scenario->others;
    unsigned faults = world_scenario->faults;
    world_refusal = faults & FAULT_REFUSAL ? VIGIL_EREFUSED : faults & FAULT_MEMORY ? VIGIL_ENOMEM : 0;
    if (setjmp(failed_here)) return SIM_FAILED;
    for (const struct actor_plan *plan = world_scenario->plans; plan->rounds; plan++) actor_open(plan);
    run_with_faults();
    run_to_the_end();
    check_word();
    run_down();
    return SIM_PASSED;
}

/* ---- What the library asks the system ---- */

int __wrap_gethostname(char *name, size_t length);
time_t __wrap_time(time_t *at);
pid_t __wrap_getpid(void);

int __wrap_gethostname(char *name, size_t length) {
    snprintf(name, length, "m%u", world_running ? world_running->machine : 9);
    return 0;
}

time_t __wrap_time(time_t *at) {
    time_t now = (time_t)(world_now_ns / WORLD_SECOND_NS);
    if (at) *at = now;
    return now;
}

pid_t __wrap_getpid(void) {
    return world_running ? (pid_t)world_running->number + 100 : 99;
}
