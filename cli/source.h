/* SPDX-License-Identifier: MIT */
/*
 * source.h - a source of events to record: a segment, or a process under vigil run. Both yield looks and events of
 * vigil/observe.h. In those of a process, the members are its threads, by their thread ids; the offset of a word is
 * the address of a lock.
 */
#ifndef VIGIL_CLI_SOURCE_H
#define VIGIL_CLI_SOURCE_H

#include "cli.h"

struct source;

/* Zero; or the exit status, after a message was printed. */
int source_open(struct source **source, const char *name);
void source_close(struct source *source);

/* The pid of the process; zero: it is a segment. */
uint32_t source_pid(const struct source *source);
/* False: the process has ended. Segments stay. */
bool source_is_there(const struct source *source);

/* Like the functions of an observer. The first look at a process asks it for the holders of its locks; later ones do
 * not. */
int source_look(struct source *source, vigil_look *look);
int source_record(struct source *source);
/* `more`: further events may be available at once. `events` has room for SOURCE_BATCH. */
#define SOURCE_BATCH 256
int64_t source_events(struct source *source, vigil_event *events, uint64_t *lost, bool *more);

/* The name of a lock of a process: "mutex accounts (bank)". */
#define SOURCE_NAME 96
void source_name(const struct source *source, uint64_t offset, vigil_seen_kind kind, char name[SOURCE_NAME]);
/* The name of a thread of a process; empty: it has ended. */
void source_thread_name(const struct source *source, uint32_t thread_id, char name[20]);

#endif
