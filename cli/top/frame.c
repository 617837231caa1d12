/* SPDX-License-Identifier: MIT */
/* Formats rows as text. */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "top.h"

#define CELL_BYTES 512

static const struct {
    const char *title;
    size_t width; /* at least */
    bool right;
} columns[COLUMNS] = {
    [WAIT] = {"WAIT", 8, true},         [LINE] = {"LINE", 15, false}, [PLACE] = {"PLACE", 7, false},
    [PID] = {"PID", 7, true},           [AS] = {"AS", 6, false},      [COMMAND] = {"COMMAND", 16, false},
    [HELD_BY] = {"HELD BY", 14, false},
};

/* All columns fit into 80; any further width goes to those with long texts. */
void frame_layout(struct frame *frame, size_t columns_there) {
    size_t used = COLUMNS;
    for (int i = 0; i < COLUMNS; i++) used += columns[i].width;
    size_t extra = columns_there > used ? columns_there - used : 0, from = 0;
    frame->columns = columns_there < FRAME_BYTES / 4 ? columns_there : FRAME_BYTES / 4;
    for (int i = 0; i < COLUMNS; i++) {
        frame->from[i] = from;
        frame->width[i] = columns[i].width;
        if (i == LINE || i == HELD_BY) frame->width[i] += extra / 4;
        if (i == COMMAND) frame->width[i] += extra - extra / 4 * 2;
        from += frame->width[i] + (i == WAIT ? 2 : 1);
    }
}

/* How many columns the text takes on the terminal. Characters that this locale cannot show become '?'. */
static size_t measure(char *text) {
    wchar_t wide[CELL_BYTES];
    size_t length = mbstowcs(wide, text, CELL_BYTES);
    int width = length == (size_t)-1 || length == CELL_BYTES ? -1 : wcswidth(wide, length);
    if (width >= 0) return (size_t)width;
    for (char *c = text; *c; c++) {
        if (*c < ' ' || *c > '~') *c = '?';
    }
    return strlen(text);
}

struct pen {
    const struct frame *frame;
    char *text;
    size_t bytes, columns; /* written so far */
};

static void put_spaces(struct pen *pen, size_t until) {
    while (pen->columns < until && pen->columns < pen->frame->columns) {
        pen->text[pen->bytes++] = ' ';
        pen->columns++;
    }
    pen->text[pen->bytes] = 0;
}

/* As much of a text as certainly fits into that many columns: no character takes more columns than it has bytes. */
static void cut(char cell[CELL_BYTES], size_t width, const char *text) {
    size_t bytes = 0, next;
    while (text[bytes] && (next = cli_utf8(text + bytes)) > 0 && bytes + next <= width && bytes + next < CELL_BYTES)
        bytes += next;
    memcpy(cell, text, bytes);
    cell[bytes] = 0;
    if (!text[bytes] || bytes == 0) return;
    while (bytes > 1 && ((unsigned char)cell[bytes - 1] & 0xc0) == 0x80)
        bytes--; /* to where its last character begins */
    strcpy(cell + bytes - 1, "~");
}

/* Writes the text at that column. */
static void put(struct pen *pen, size_t from, size_t width, bool right, const char *text) {
    char cell[CELL_BYTES];
    put_spaces(pen, from);
    if (pen->columns >= pen->frame->columns) return;
    size_t room = pen->frame->columns - pen->columns;
    if (width > room) width = room;
    cut(cell, width, text);
    size_t shown = measure(cell);
    if (right && shown < width) put_spaces(pen, pen->columns + width - shown);
    size_t bytes = strlen(cell);
    memcpy(pen->text + pen->bytes, cell, bytes + 1);
    pen->bytes += bytes;
    pen->columns += shown;
}

static void put_cell(struct pen *pen, enum column column, const char *text) {
    put(pen, pen->frame->from[column], pen->frame->width[column], columns[column].right, text);
}

void frame_titles(const struct frame *frame, char text[FRAME_BYTES]) {
    struct pen pen = {.frame = frame, .text = text};
    for (enum column i = 0; i < COLUMNS; i++) put_cell(&pen, i, columns[i].title);
}

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

void frame_head(const struct frame *frame, const struct scene *scene, char text[FRAME_BYTES]) {
    struct pen pen = {.frame = frame, .text = text};
    char head[CELL_BYTES], dead[32] = "", processes[40] = "";
    if (scene->dead_count) snprintf(dead, sizeof dead, " (%u dead)", scene->dead_count);
    if (scene->process_count)
        snprintf(processes, sizeof processes, ", %zu process%s", scene->process_count,
                 scene->process_count == 1 ? "" : "es");
    snprintf(head, sizeof head, "vigil top %s  %zu segment%s, %u member%s%s%s, %u holder%s, %u waiter%s", scene->clock,
             scene->segment_count, plural(scene->segment_count), scene->member_count, plural(scene->member_count), dead,
             processes, scene->holder_count, plural(scene->holder_count), scene->waiter_count,
             plural(scene->waiter_count));
    put(&pen, 0, frame->columns, false, head);
}

/* The segment's name may be cut, but not the place in it, which tells its lines apart. */
static void put_line(struct pen *pen, const struct row *row) {
    const char *place = row->place_name, *name = row->name;
    char text[SHOW_NAME_MAX + 64], at[32];
    if (strncmp(place, "byte ", 5) == 0) snprintf(at, sizeof at, "@%s", place + 5), place = at;
    size_t width = pen->frame->width[LINE], used = strlen(place) + 1, room = width > used ? width - used : 0;
    if (strlen(name) <= room || room == 0) snprintf(text, sizeof text, "%s %s", name, place);
    else snprintf(text, sizeof text, "%.*s~ %s", (int)room - 1, name, place);
    put_cell(pen, LINE, text);
}

static void put_waiter(struct pen *pen, const struct row *row) {
    char wait[16], place[32], pid[16];
    cli_print_duration(wait, row->wait_ns);
    snprintf(place, sizeof place, "%u/%u", row->place, row->line_length);
    snprintf(pid, sizeof pid, "%u", row->pid);
    put_cell(pen, WAIT, wait);
    put_line(pen, row);
    put_cell(pen, PLACE, row->called ? "called" : place);
    put_cell(pen, PID, row->pid ? pid : "?");
    put_cell(pen, AS, row->as);
    put_cell(pen, COMMAND, row->task);
    put_cell(pen, HELD_BY, row->held_by);
}

static void put_held(struct pen *pen, const struct row *row) {
    char held[64], duration[16];
    cli_print_duration(duration, row->wait_ns);
    snprintf(held, sizeof held, row->wait_ns ? "no waiters; held for %s" : "no waiters", duration);
    put_cell(pen, WAIT, "-");
    put_line(pen, row);
    put(pen, pen->frame->from[PLACE], pen->frame->from[HELD_BY] - pen->frame->from[PLACE] - 1, false, held);
    put_cell(pen, HELD_BY, row->held_by);
}

void frame_row(const struct frame *frame, const struct row *row, char text[FRAME_BYTES]) {
    struct pen pen = {.frame = frame, .text = text};
    switch (row->type) {
    case ROW_WAITER: put_waiter(&pen, row); break;
    case ROW_HELD: put_held(&pen, row); break;
    case ROW_UNREADABLE:
        put_cell(&pen, WAIT, "-");
        put_cell(&pen, LINE, row->name);
        put(&pen, frame->from[PLACE], CELL_BYTES, false, row->task);
        break;
    }
}
