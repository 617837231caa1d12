/* SPDX-License-Identifier: MIT */
/* show.h - a look at a segment as text and as JSON: for show, and for the rows and details of top. */
#ifndef VIGIL_CLI_SHOW_H
#define VIGIL_CLI_SHOW_H

#include "cli.h"

#define SHOW_NAME_MAX 201 /* bytes of a segment's name */

/* The segment's label, control characters made visible, or "words" if it has none. */
void show_kind(const vigil_look *look, char kind[32]);

/* The name of a line: "lock", "turnstile" and "slots" in those of vigil lock and sem; else "byte 64".
 * */
void show_line_name(const vigil_look *look, const vigil_seen_line *line, char name[32]);

/* The member with that number; null: it has left, or died. */
const vigil_seen_member *show_member(const vigil_look *look, uint32_t number);

/* A short text for a member: its command line without the program's folder, or, for `vigil lock` and `vigil sem`, the
 * command that it runs. At most `bytes`, the final 0 included. */
void show_task(const vigil_look *look, uint32_t number, char *text, size_t bytes);

/* Everything, as text of at most `columns` columns. */
void show_text(FILE *out, const char *name, const vigil_look *look, size_t columns, bool colour);
/* Prints what the threads of a process under vigil run wait for. Returns the exit status. */
int show_process(const char *pid);
void show_json(struct cli_json *json, const char *name, const vigil_look *look);

/* "its last holder, pid 4711 (make), which took it 3 min ago, was killed while holding it"; null: not known. */
void show_owner_died(const vigil_named_holder *dead, char *text, size_t bytes);

#endif
