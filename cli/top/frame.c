/* SPDX-License-Identifier: MIT */
/* Formats rows as text. */
#include <langinfo.h>
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

/* Which columns go first if there is little room. WAIT, LINE and HELD BY stay: they fit into 40. */
static const enum column goes_first[] = {AS, COMMAND, PLACE, PID};

static size_t column_width(enum column column) {
    return columns[column].width + (column == WAIT ? 2 : 1);
}

/* All columns fit into 80; any further width goes to those with long texts. */
void frame_layout(struct frame *frame, size_t columns_there) {
    size_t used = 0, from = 0;
    bool gone[COLUMNS] = {false};
    for (enum column i = 0; i < COLUMNS; i++) used += column_width(i);
    used--; /* no gap after the last */
    for (size_t i = 0; i < sizeof goes_first / sizeof *goes_first && used > columns_there; i++) {
        gone[goes_first[i]] = true;
        used -= column_width(goes_first[i]);
    }
    size_t extra = columns_there > used ? columns_there - used : 0, part = gone[COMMAND] ? extra / 2 : extra / 4;
    frame->columns = columns_there < FRAME_BYTES / 8 ? columns_there : FRAME_BYTES / 8;
    for (enum column i = 0; i < COLUMNS; i++) {
        frame->from[i] = from;
        frame->width[i] = gone[i] ? 0 : columns[i].width;
        if (gone[i]) continue;
        if (i == LINE || i == HELD_BY) frame->width[i] += part;
        if (i == COMMAND) frame->width[i] += extra - part * 2;
        from += frame->width[i] + (i == WAIT ? 2 : 1);
    }
}

/* Stands for what was cut off. One column. */
static const char *cut_mark(void) {
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? "\u2026" : ">";
}

/* The next character as this locale shows it, or '?' if it cannot. Returns its bytes in the text. */
static size_t next_character(const char *text, char shown[8], size_t *width) {
    size_t bytes = cli_utf8(text);
    wchar_t wide;
    int there = bytes && mbtowc(&wide, text, bytes) == (int)bytes ? wcwidth(wide) : -1;
    snprintf(shown, 8, "%.*s", there < 0 ? 1 : (int)bytes, there < 0 ? "?" : text);
    *width = there < 0 ? 1 : (size_t)there;
    return bytes ? bytes : 1;
}

/* As much of the text as fits into that many columns, with a mark if that is not all. Returns the columns used. */
static size_t cut(char *cell, size_t bytes, size_t columns_most, const char *text) {
    size_t used = 0, column = 0, mark_at = 0, mark_column = 0, width;
    char shown[8];
    *cell = 0;
    if (columns_most == 0) return 0;
    while (*text) {
        text += next_character(text, shown, &width);
        if (column + width > columns_most || used + sizeof shown >= bytes) {
            strcpy(cell + mark_at, cut_mark());
            return mark_column + 1;
        }
        strcpy(cell + used, shown);
        used += strlen(shown);
        column += width;
        if (column < columns_most && used + 2 * sizeof shown < bytes) mark_at = used, mark_column = column;
    }
    return column;
}

void frame_cut(size_t columns_there, const char *line, char text[FRAME_BYTES]) {
    cut(text, FRAME_BYTES, columns_there, line);
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

/* Writes the text at that column. */
static void frame_put(struct pen *pen, size_t from, size_t width, bool right, const char *text) {
    char cell[CELL_BYTES];
    put_spaces(pen, from);
    if (pen->columns >= pen->frame->columns) return;
    size_t room = pen->frame->columns - pen->columns;
    if (width > room) width = room;
    size_t shown = cut(cell, sizeof cell, width, text);
    if (right && shown < width) put_spaces(pen, pen->columns + width - shown);
    size_t bytes = strlen(cell);
    memcpy(pen->text + pen->bytes, cell, bytes + 1);
    pen->bytes += bytes;
    pen->columns += shown;
}

static void put_cell(struct pen *pen, enum column column, const char *text) {
    if (pen->frame->width[column] == 0) return;
    frame_put(pen, pen->frame->from[column], pen->frame->width[column], columns[column].right, text);
}

void frame_titles(const struct frame *frame, char text[FRAME_BYTES]) {
    struct pen pen = {.frame = frame, .text = text};
    for (enum column i = 0; i < COLUMNS; i++) put_cell(&pen, i, columns[i].title);
}

static const char *frame_plural(size_t count) {
    return count == 1 ? "" : "s";
}

void frame_head(const struct frame *frame, const struct overview *overview, char text[FRAME_BYTES]) {
    struct pen pen = {.frame = frame, .text = text};
    char head[CELL_BYTES], dead[32] = "", processes[40] = "";
    if (overview->dead_count) snprintf(dead, sizeof dead, " (%u dead)", overview->dead_count);
    if (overview->process_count)
        snprintf(processes, sizeof processes, ", %zu process%s", overview->process_count,
                 overview->process_count == 1 ? "" : "es");
    snprintf(head, sizeof head, "vigil top %s  %zu segment%s, %u member%s%s%s, %u holder%s, %u waiter%s",
             overview->clock, overview->segment_count, frame_plural(overview->segment_count), overview->member_count,
             frame_plural(overview->member_count), dead, processes, overview->holder_count,
             frame_plural(overview->holder_count), overview->waiter_count, frame_plural(overview->waiter_count));
    frame_put(&pen, 0, frame->columns, false, head);
}

/* The segment's name may be cut, but not the place in it, which tells its lines apart. */
static void put_line(struct pen *pen, const struct row *row) {
    const char *line = row->line_name, *name = row->name;
    char text[SHOW_NAME_MAX + 64], at[32];
    if (strncmp(line, "byte ", 5) == 0) snprintf(at, sizeof at, "@%s", line + 5), line = at;
    size_t width = pen->frame->width[LINE], used = strlen(line) + 1, room = width > used ? width - used : 0;
    if (strlen(name) <= room || room == 0) snprintf(text, sizeof text, "%s %s", name, line);
    else snprintf(text, sizeof text, "%.*s%s %s", (int)room - 1, name, cut_mark(), line);
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
    size_t from = pen->frame->from[PLACE], to = pen->frame->from[HELD_BY];
    if (to > from) frame_put(pen, from, to - from - 1, false, held);
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
        frame_put(&pen, frame->from[PLACE], CELL_BYTES, false, row->task);
        break;
    }
}
