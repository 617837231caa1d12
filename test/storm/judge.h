/* SPDX-License-Identifier: MIT */
/* judge.h - what the judges of both storms share: members and their ends, the books of the dead, the report. */
#ifndef VIGIL_STORM_JUDGE_H
#define VIGIL_STORM_JUDGE_H

#include "ledger.h"

#define PLACES        512 /* for waiters */
#define KILLS_TO_REST 25
#define PATIENCE_NS   (30 * SECOND) /* for what must happen */
#define LINE_MOST     (MEMBERS_MOST * (THREADS + WAITS))

extern struct options {
    uint64_t kills, members, seed;
    const char *json;
} options;

extern struct process {
    pid_t pid;
    uint32_t seen[ACTORS];   /* progress */
    int64_t seen_ns[ACTORS]; /* when it last changed */
} processes[MEMBERS_MOST];

extern struct member *judges; /* the judge's own page */
extern uint64_t judge_seed;
extern unsigned members; /* how many there are */
extern vigil_agent *agent;

/* The part of a member that the judge itself plays, called again and again while no member is stopped. */
extern void (*take_part)(void);

/* What is known of members that have ended, and of the tokens. */
extern struct books {
    uint64_t kills, stopped_kills, stops, leaves, rests;
    uint64_t killed[ACTIVITY_COUNT][PLACES_AT]; /* what the actors of the killed did, and where */
    uint64_t chained; /* kills that may have hit an owner of WITH_COND that took it from the one killed before */
    uint64_t tallies[TALLY_COUNT];
    uint64_t grants[MUTEXES], fresh_deaths[MUTEXES];
    uint64_t dealt;     /* tokens given out by the judge */
    uint64_t died_with; /* tokens in the hands of the killed and of those that have left */
    uint64_t offered;   /* by the killed, before they could know whether they were taken */
} books;

void judge_failures(void); /* ends the storm if something has failed, with all information that may help */
void nap_ns(int64_t duration_ns);

void member_start(unsigned number);
void member_left(unsigned number);
void member_killed(unsigned number);
void member_stop(unsigned number);
void signal_member(unsigned number, int signal_number);
bool everybody_lives(void);
void some_stop(unsigned number);
void let_them_begin(void);
void all_leave(void);

void receive(void);
uint64_t killed_while(enum activity activity);
uint64_t tally_now(enum tally tally);
uint64_t heirless_now(void); /* signals, as the library counts them */
bool all_recovered(void);    /* nothing of the killed is left in the segment, as the library reports */
void judge_grants(void);
void judge_signals(void);
void judge_line(const volatile void *place, int64_t expected, const char *what);
void judge_places(void);
void print_progress(void);

/* The two storms: storm.c, queue_judge.c. Each ends with the results that only it has. */
void token_storm(void);
void report_tokens(FILE *json); /* as text if there is no file */
void queue_storm(void);
void report_queue(FILE *json);

#endif
