/* SPDX-License-Identifier: MIT */
/* threads.h - who waits in a process under vigil run, for what, and who holds it: for top, and for the beginning of a
 * trace. */
#ifndef VIGIL_CLI_THREADS_H
#define VIGIL_CLI_THREADS_H

#include "cli.h"
#include "served.h"
#include "symbol.h"

struct thread_wait {
    uint32_t thread_id;
    enum wait_kind kind;
    uint64_t lock, site;
    int64_t since_ns;
    uint32_t holder; /* thread id; zero: none, or none that is known. Of a semaphore: that has taken it last */
    uint32_t readers;
    uint64_t holder_site; /* zero: not known */
};

struct threads_look {
    uint32_t pid;
    char program[SERVED_NAME];
    int64_t at_ns;
    bool asked; /* for the holders; else they are not known */
    uint32_t count, lock_count;
    struct thread_wait *waits; /* by lock, then the longest first */
};

/* ask: also for the holders, if that can be done without disturbing the program. False: there is no memory. */
bool threads_look(struct threads_look *look, struct served *served, bool ask);
void threads_forget(struct threads_look *look);

/* How many of them wait for the same lock as the one at `first`, which is the first of them. */
uint32_t threads_in_line(const struct threads_look *look, uint32_t first);

const char *threads_kind(enum wait_kind kind);
vigil_seen_kind threads_seen_kind(enum wait_kind kind);

/* The symbol of an address, without that of the file if `bare`. They are remembered. */
const char *threads_symbol(uint32_t pid, uint64_t address, bool bare, char name[SYMBOL_BYTES]);

/* Everything, for people and for programs. */
void threads_text(FILE *out, const struct threads_look *look);
void threads_json(struct cli_json *json, const struct threads_look *look);

#endif
