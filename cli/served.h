/* SPDX-License-Identifier: MIT */
/*
 * served.h - a process under vigil run, seen from outside through the file of pthread/serve.h. The file belongs to
 * the process, or to another one of the same user, and may contain anything: these functions always return, and what
 * they return is in range.
 */
#ifndef VIGIL_CLI_SERVED_H
#define VIGIL_CLI_SERVED_H

#include <sys/types.h>

#include "cli.h"
#include "serve.h"

struct served {
    uint32_t pid;
    int fd;
    struct serve *file;
    char path[64]; /* of the descriptor, /proc/PID/fd/N */
    ino_t inode;
    uint64_t next;         /* event to fetch, counted from 0 */
    int64_t unfinished_ns; /* since when that event is seen unfinished; zero: it is not */
    bool records;
};

enum served_status {
    SERVED_OK,
    SERVED_NOT,    /* it does not use Vigil's locks, or there is no such process */
    SERVED_DENIED, /* no permission */
    SERVED_OTHER   /* another version, or another kind of file with that name */
};

/* Whether the text is the pid of a process that exists. */
bool served_is_process(const char *name);
enum served_status served_open(struct served *served, const char *pid);
void served_close(struct served *served);
const char *served_why(enum served_status status);
/* Prints why it cannot be opened. Returns the exit status. */
int served_fail(enum served_status status, const char *pid);
/* False: the process has ended, or runs another program by now (exec). */
bool served_is_there(const struct served *served);

/* Calls `found` with the pid of each process of this user that has a file of pthread/serve.h open. */
void served_list(void (*found)(const char *pid, void *data), void *data);

/* Copies the threads that wait now, in no order. Returns how many. `waits` has room for WAITS_MOST. */
uint32_t served_waits(const struct served *served, struct wait *waits);

/* Asking for a report. */
enum served_answer {
    SERVED_ANSWERED,
    SERVED_NO_SIGNAL, /* the program uses the signal itself */
    SERVED_BLOCKED,   /* all threads block the signal */
    SERVED_NO_THREAD, /* no waiting thread can take the signal; another thread's system calls would be interrupted */
    SERVED_REFUSED,   /* the system refused the signal: errno */
    SERVED_SILENT     /* no answer in time */
};
struct served_question {
    enum serve_form form;
    bool any_thread; /* if no waiting thread can take the signal, send it to the process */
    int64_t patience_ns;
};
/* The caller frees `text`. */
enum served_answer served_ask(struct served *served, const struct served_question *question, char **text,
                              size_t *length);

/* Starts recording, and keeps it going: call it once a second. Adds to `lost` if the call came too late. */
void served_record(struct served *served, uint64_t *lost);
/* Fetches events since the last call, sorted by time within this batch. Returns how many, at most `most`. */
size_t served_events(struct served *served, struct serve_event *events, size_t most, uint64_t *lost);

/* The name of a thread; for the first thread, that of the process. Control characters are made visible. */
#define SERVED_NAME 32
void served_thread_name(uint32_t pid, uint32_t thread_id, char name[SERVED_NAME]);

#endif
