/* SPDX-License-Identifier: MIT */
/*
 * served.h - a process under vigil run, seen from outside by the file of pthread/serve.h. That belongs to the process,
 * or to another one of the same user: whatever is in it, these functions return, and what they return is in range.
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
    uint64_t next;         /* event to be fetched, counted from 0 */
    int64_t unfinished_ns; /* since when it is seen to be half written; zero: it is not */
    bool records;
};

enum served_status {
    SERVED_OK,
    SERVED_NOT,    /* it does not run on Vigil's locks, or there is no such process */
    SERVED_DENIED, /* we may not look */
    SERVED_OTHER   /* another version, or something else by that name */
};

/* Whether the text is the number of a process that exists. */
bool served_is_process(const char *name);
enum served_status served_open(struct served *served, const char *pid);
void served_close(struct served *served);
const char *served_why(enum served_status status);
/* Say why it cannot be opened: the exit status. */
int served_fail(enum served_status status, const char *pid);
/* False: the process has ended, or runs another program. */
bool served_is_there(const struct served *served);

/* Calls `found` with the number of each process of this user that has such a file. */
void served_list(void (*found)(const char *pid, void *data), void *data);

/* The threads that wait now, in no order: how many. `waits` has room for WAITS_MOST. */
uint32_t served_waits(const struct served *served, struct wait *waits);

/* Ask for a report. */
enum served_answer {
    SERVED_ANSWERED,
    SERVED_NO_SIGNAL, /* the program uses it itself */
    SERVED_BLOCKED,   /* all threads block it */
    SERVED_NO_THREAD, /* none that waits can be sent it, so that the program's own system calls would be interrupted */
    SERVED_REFUSED,   /* by the system: errno */
    SERVED_SILENT     /* no answer in time */
};
struct served_question {
    enum serve_form form;
    bool any_thread; /* is good enough to be sent the signal if none waits */
    int64_t patience_ns;
};
/* `text` is allocated, and freed by the caller. */
enum served_answer served_ask(struct served *served, const struct served_question *question, char **text,
                              size_t *length);

/* Record: to be called once a second. Adds to `lost` if that came too late. */
void served_record(struct served *served, uint64_t *lost);
/* What has happened since the last time, in the order of time as far as it goes: how many, at most `most`. */
size_t served_events(struct served *served, struct serve_event *events, size_t most, uint64_t *lost);

/* The name of a thread of it; of the process, if the thread is the first. Control characters are made visible. */
#define SERVED_NAME 32
void served_thread_name(uint32_t pid, uint32_t thread_id, char name[SERVED_NAME]);

#endif
