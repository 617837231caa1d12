/* SPDX-License-Identifier: MIT */
/*
 * world.h - the world in which the recipes of remote/ are searched: a model of etcd (model.c), machines with their
 * named locks (machine.c), processes, time, and the faults of all of them. search.c decides what happens next.
 *
 * Whatever can happen next is an event. Each execution is a sequence of events, and which one comes next, and in which
 * of its ways, is chosen by the simulator's own search (src/prim/sim/choose.c). The first way is the ordinary one, the
 * others are faults.
 */
#ifndef VIGIL_TEST_REMOTE_WORLD_H
#define VIGIL_TEST_REMOTE_WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <vigil/remote.h>

#include "../../remote/etcd.h"
#include "sim.h"

#define WORLD_PROCESSES 9u
#define WORLD_EVENTS    64u
#define WORLD_SECOND_NS INT64_C(1000000000)
#define WORLD_TTL_S     4
#define WORLD_TTL_NS    (WORLD_TTL_S * WORLD_SECOND_NS)

/* Kinds of choices, as choose.c knows them. */
unsigned world_choose(unsigned options, int kind);
enum { CHOOSE_ORDER, CHOOSE_TIME, CHOOSE_LOSS, CHOOSE_CANCEL, CHOOSE_KILL, CHOOSE_FAULT }; /* see enum sim_deviation */

struct process {
    unsigned machine, number;
    bool alive, may_die;
    int64_t stopped_until_ns, cut_until_ns;
    struct etcd *etcd;
    vigil_remote *remote;
    int references; /* of the agent */
};

extern struct process world_processes[WORLD_PROCESSES];
extern unsigned world_process_count;
extern int64_t world_now_ns;
extern bool world_faults;  /* are possible now */
extern int world_refusal;  /* how a call may end at once: VIGIL_EREFUSED, VIGIL_ENOMEM; 0: it may not */
extern unsigned world_kills_left;
extern struct process *world_running; /* its code runs now; null: none */

struct event {
    const char *name;
    void (*run)(void *what, unsigned way);
    void *what;
    struct process *process; /* null: of no process */
    unsigned ways;
    unsigned number; /* for traces */
};
struct events {
    struct event list[WORLD_EVENTS];
    unsigned count;
    int64_t next_ns; /* the next moment at which time alone makes something happen */
};
void events_add(struct events *events, struct event event);
void events_at(struct events *events, int64_t at_ns); /* something will happen then, if it has not yet come */

static inline bool process_runs(const struct process *process) {
    return process->alive && process->stopped_until_ns <= world_now_ns;
}
static inline bool process_is_cut(const struct process *process) {
    return process->cut_until_ns > world_now_ns;
}

/* The running process may be killed here. Never returns then. */
void world_point(void);
/* The running process may be stopped here, and go on much later: nothing happens meanwhile but that time passes. */
void world_pause(void);
void world_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* model.c */
void model_reset(void);
void model_collect(struct events *events);
struct etcd *model_open(struct process *process);
void model_killed(struct process *process);
bool model_has_due_timer(const struct process *process);
bool model_is_quiet(void);
/* By hand, and by the cluster. */
unsigned model_keys(void);
const char *model_key(unsigned index, int64_t *created, int64_t *lease, const char **value);
void model_delete_by_hand(unsigned index);
unsigned model_leases(void);
void model_revoke_by_hand(unsigned index);
void model_change_leader(void);
unsigned model_watches(void);
void model_lose_watch(unsigned index);
uint64_t model_random(void);
int64_t model_revision(void);
/* What search.c is told. */
enum model_end { MODEL_RELEASED, MODEL_EXPIRED, MODEL_REVOKED, MODEL_BY_HAND };
void search_key_created(const char *key, int64_t revision, const char *oldest_in_line);
void search_key_gone(const char *key, enum model_end how);

/* machine.c */
void machine_reset(void);
void machine_collect(struct events *events);
void machine_point(bool killed); /* the running process is at a point: remember its record, or tear it */
void machine_killed(struct process *process);

#endif
