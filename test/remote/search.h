/* SPDX-License-Identifier: MIT */
/* search.h - scenarios: which actors there are, what they do, and which faults may happen. */
#ifndef VIGIL_TEST_REMOTE_SEARCH_H
#define VIGIL_TEST_REMOTE_SEARCH_H

#include "world.h"

#define SEARCH_ACTORS 9u

/* An actor has one handle, in a process of a machine. `process` is a number of its own for each process of the world.
 * It takes the lock, holds it, releases it, `rounds` times, and closes the handle. */
enum {
    ACTS_SHARED = 1,       /* it shares the lock */
    ACTS_CANCEL = 2,       /* it may cancel at any moment */
    ACTS_CONSISTENT = 4,   /* it declares the lock consistent after VIGIL_OWNER_DIED */
    ACTS_GIVES_BACK = 8,   /* see vigil_remote_lock_options */
    ACTS_EAGERLY = 16,     /* it does the next thing in the callback of the last */
    ACTS_CLOSES_HELD = 32, /* it closes the handle without releasing the lock before */
    ACTS_MIXED = 64,       /* each second round is shared */
    ACTS_IMMORTAL = 128,   /* its process is not killed */
    ACTS_ABANDON = 256,    /* it may abandon its handle at any moment, which counts as a kill */
    ACTS_WAITS = 512,      /* it has no handle, and waits for the word instead, until its timeout */
    ACTS_NOTIFIES = 1024,  /* it has no handle, and wakes one waiter */
    ACTS_REOPENS = 2048,   /* each round has a handle of its own, closed while it holds: as `vigil lock` does */
};
struct actor_plan {
    unsigned machine, process;
    unsigned acts;
    unsigned rounds;
    int64_t timeout_ns; /* 0: only tries; VIGIL_FOREVER */
    int64_t hold_ns;
    unsigned slots;
    int64_t pause_ns;
    int64_t begin_ns; /* after the beginning */
};

enum {
    FAULT_LOSS = 1,     /* of calls, replies, watches */
    FAULT_STOP = 2,     /* a process is stopped for a time */
    FAULT_CUT = 4,      /* from the network */
    FAULT_HAND = 8,     /* keys are deleted, leases revoked, by hand */
    FAULT_CLUSTER = 16, /* a new leader; watches end */
    FAULT_KILL = 32,
    FAULT_REFUSAL = 64, /* with LOSS: the cluster refuses calls */
    FAULT_MEMORY = 128, /* with LOSS: there is no memory for a call, or for its reply */
    FAULT_INSIDE = 256, /* a process is stopped in the middle of an event, before it reads the clock */
};
struct scenario {
    struct sim_scenario sim; /* the first: choose.c passes it on */
    unsigned faults;
    unsigned kills, others; /* how many faults: kills; stops, cuts and so on */
    struct actor_plan plans[SEARCH_ACTORS];
};

extern const struct scenario remote_scenarios[];
extern unsigned remote_bug;

#endif
