/* SPDX-License-Identifier: MIT */
/* show.h - what a look at a segment says to people: for show, and for the rows and details of top. */
#ifndef VIGIL_CLI_SHOW_H
#define VIGIL_CLI_SHOW_H

#include "cli.h"

#define SHOW_NAME_MAX 201 /* bytes of a segment's name */

/* What it is made for: its label, control characters made visible, or "words" if it has none. */
void show_kind(const vigil_look *look, char kind[32]);

/* What a place in the segment is called: "lock", "turnstile" and "slots" in those that lock and sem make; else "byte 64". */
void show_place(const vigil_look *look, const vigil_seen_line *line, char place[32]);

/* Null: there is no such member any more; it has left, or died. */
const vigil_seen_member *show_member(const vigil_look *look, uint32_t number);

/* Who it is, where there is little room: its command line without the program's folder, or, of `vigil lock` and `vigil
 * sem`, what it runs. At most `bytes`, the final 0 included. */
void show_task(const vigil_look *look, uint32_t number, char *text, size_t bytes);

/* Everything, as text of at most `columns` columns. */
void show_text(FILE *out, const char *name, const vigil_look *look, size_t columns, bool colour);
/* What the threads of a process wait for, if it runs under vigil run: the exit status. */
int show_process(const char *pid);
void show_json(struct cli_json *json, const char *name, const vigil_look *look);

#endif
