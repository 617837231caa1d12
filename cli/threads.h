/* SPDX-License-Identifier: MIT */
/* threads.h - the waiting threads of a process under vigil run, their locks and the holders: for top, and for the
 * start of a trace. */
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
    uint32_t holder; /* thread id; zero: none, or not known. For a semaphore: the thread that took it last */
    uint32_t readers;
    uint64_t holder_site; /* zero: not known */
};

struct threads_look {
    uint32_t pid;
    char program[SERVED_NAME];
    int64_t at_ns;
    bool asked; /* the holders are known */
    uint32_t count, lock_count;
    struct thread_wait *waits; /* sorted by lock, then the longest wait first */
};

/* `ask`: also ask the process for the holders, if that does not disturb the program. False: no memory. */
bool threads_look(struct threads_look *look, struct served *served, bool ask);
void threads_forget(struct threads_look *look);

/* How many waits, from `first` on, are for the same lock. */
uint32_t threads_in_line(const struct threads_look *look, uint32_t first);

const char *threads_kind(enum wait_kind kind);
vigil_seen_kind threads_seen_kind(enum wait_kind kind);

/* The symbol of an address; `bare`: without the file's name. Cached. */
const char *threads_symbol(uint32_t pid, uint64_t address, bool bare, char name[SYMBOL_BYTES]);

/* The whole look, as text and as JSON. */
void threads_text(FILE *out, const struct threads_look *look);
void threads_json(struct cli_json *json, const struct threads_look *look);

#endif
