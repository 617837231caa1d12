/* SPDX-License-Identifier: MIT */
/* The terminal: rows, keys, and two pages of text: details of a segment or process, and help. */
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "top.h"

#define ROWS_FROM 3 /* below the two lines about all rows, and the titles */
#define ESCAPE    27
#define ESCAPE_MS 50 /* how long an Esc may be the beginning of another key */

enum { THREAD_PAIR = 1, LOOP_PAIR, DEAD_PAIR, CALLED_PAIR };

static struct {
    struct overview *overview;
    struct frame frame;
    enum { TABLE, DETAILS, HELP } view;
    enum column order;
    bool reversed, frozen, types_filter, done;
    char filter[64];
    size_t selected, first;   /* the row with the cursor, and the uppermost row on the screen */
    char name[SHOW_NAME_MAX]; /* of the segment or process on the page of details */
    bool of_process;
    size_t page_first, page_lines; /* the uppermost line of the page of text, and how many it has */
    int status, error;             /* why looking failed, and errno */
    char interval[16];             /* between looks */
} screen;

static const char help[] = "Each row is a waiter: how long it has waited, for which place in which segment,\n"
                           "where in the line, and which process has that place. Below are locks that\n"
                           "are held without waiters, and segments that cannot be read. For a process under\n"
                           "vigil run, the rows are the threads that wait. A narrow terminal has fewer\n"
                           "columns; what is cut off ends in a mark.\n"
                           "\n"
                           "  q          quit; from here, back\n"
                           "  f, space   freeze, or go on\n"
                           "  s          sort by the next column: WAIT, LINE, PLACE, PID\n"
                           "  r          reverse the order\n"
                           "  /          show only rows that contain a text; Enter keeps it, Esc clears\n"
                           "  arrows     another row; also PgUp, PgDn, Home, End\n"
                           "  Enter      everything about the segment or process of that row\n"
                           "  h, ?       this help\n"
                           "\n"
                           "  WAIT       how long it has waited in line\n"
                           "  LINE       the segment, and the place in it. For vigil lock: lock, or fair,\n"
                           "             where --fair waiters queue for it. For vigil sem: slots. Otherwise\n"
                           "             the byte, as in @1024. For a process: its pid, and the lock, by its\n"
                           "             symbol or by the end of its address\n"
                           "  PLACE      3/5: third of five; called: it is its turn, but it has yet to run\n"
                           "  PID        for a process under vigil run: the thread's id\n"
                           "  AS         a thread, which is blocked, or an event loop, which is not; for a\n"
                           "             process's thread: the kind of lock it waits for\n"
                           "  HELD BY    +2: and by two more; owner died: the last holder was killed, and\n"
                           "             the lock is not yet repaired; last: a semaphore has no holder, this\n"
                           "             is the thread that took it last\n";

static const char *const order_names[ORDERS][2] = {
    [WAIT] = {"longest wait first", "shortest wait first"},
    [LINE] = {"lines from A to Z", "lines from Z to A"},
    [PLACE] = {"first in line first", "last in line first"},
    [PID] = {"lowest PID first", "highest PID first"},
};

/* Drawing. */

static void draw_line(int y, int x, size_t columns, const char *line) {
    char text[FRAME_BYTES];
    frame_cut(columns, line, text);
    mvaddstr(y, x, text);
}

static void colour_cell(int y, enum column column, attr_t attributes, short pair) {
    if (screen.frame.from[column] >= screen.frame.columns || screen.frame.width[column] == 0) return;
    mvchgat(y, (int)screen.frame.from[column], (int)screen.frame.width[column], attributes, pair, NULL);
}

static size_t rows_there(void) {
    return LINES > ROWS_FROM + 1 ? (size_t)(LINES - ROWS_FROM - 1) : 1;
}

/* Keeps the cursor on an existing row, and that row on the screen. */
static void keep_in_sight(void) {
    size_t count = screen.overview->shown_count, room = rows_there();
    if (screen.selected >= count) screen.selected = count ? count - 1 : 0;
    if (screen.first > screen.selected) screen.first = screen.selected;
    if (screen.first + room <= screen.selected) screen.first = screen.selected - room + 1;
    if (screen.first + room > count) screen.first = count > room ? count - room : 0;
}

static void top_draw_row(int y, const struct row *row, bool selected) {
    char text[FRAME_BYTES];
    frame_row(&screen.frame, row, text);
    mvaddstr(y, 0, text);
    if (selected) mvchgat(y, 0, -1, A_REVERSE, 0, NULL);
    else if (row->dead || row->type == ROW_UNREADABLE) mvchgat(y, 0, -1, A_NORMAL, DEAD_PAIR, NULL);
    else if (row->type == ROW_HELD) mvchgat(y, 0, -1, A_DIM, 0, NULL);
    else {
        colour_cell(y, AS, A_NORMAL, row->asynchronous ? LOOP_PAIR : THREAD_PAIR);
        if (row->called) colour_cell(y, PLACE, A_BOLD, CALLED_PAIR);
    }
    if (row->holder_dead && !selected) colour_cell(y, HELD_BY, A_NORMAL, DEAD_PAIR);
}

static void draw_titles(void) {
    char text[FRAME_BYTES];
    frame_titles(&screen.frame, text);
    mvaddstr(ROWS_FROM - 1, 0, text);
    mvchgat(ROWS_FROM - 1, 0, -1, A_REVERSE, 0, NULL);
    colour_cell(ROWS_FROM - 1, screen.order, A_BOLD, 0);
}

static void draw_table(void) {
    char text[FRAME_BYTES], filter[160] = "";
    const struct overview *overview = screen.overview;
    frame_head(&screen.frame, overview, text);
    attron(A_BOLD);
    mvaddstr(0, 0, text);
    attroff(A_BOLD);
    if (*screen.filter)
        snprintf(filter, sizeof filter, "; %zu of %zu with: %s", overview->shown_count, overview->row_count,
                 screen.filter);
    snprintf(text, sizeof text, "%s, %s%s%s", order_names[screen.order][screen.reversed],
             screen.frozen ? "frozen" : "every ", screen.frozen ? "" : screen.interval, filter);
    draw_line(1, 0, (size_t)COLS, text);
    draw_titles();
    for (size_t i = screen.first; i < overview->shown_count && i < screen.first + rows_there(); i++)
        top_draw_row(ROWS_FROM + (int)(i - screen.first), overview->shown[i], i == screen.selected);
    if (overview->shown_count == 0)
        draw_line(ROWS_FROM + 1, 2, COLS > 2 ? (size_t)COLS - 2 : 0,
                  *screen.filter ? "No row contains that text." : "There are no waiters, and no holders are seen.");
}

/* Draws those lines of a text that fit; the line at the bottom says which. */
static void draw_page(const char *text) {
    size_t count = 0, room = LINES > 1 ? (size_t)LINES - 1 : 1;
    char line[FRAME_BYTES];
    for (const char *c = text; *c; c++) count += *c == '\n';
    if (screen.page_first + room > count) screen.page_first = count > room ? count - room : 0;
    screen.page_lines = count;
    for (size_t i = 0; *text && i < screen.page_first + room; i++) {
        int length = (int)strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", length, text);
        if (i >= screen.page_first) draw_line((int)(i - screen.page_first), 0, (size_t)COLS, line);
        text += length + (text[length] == '\n');
    }
}

static const struct segment *find_segment(const char *name) {
    for (size_t i = 0; i < screen.overview->segment_count; i++) {
        if (strcmp(screen.overview->segments[i].name, name) == 0) return &screen.overview->segments[i];
    }
    return NULL;
}

static const struct process *find_process(const char *name) {
    for (size_t i = 0; i < screen.overview->process_count; i++) {
        if (strcmp(screen.overview->processes[i].name, name) == 0) return &screen.overview->processes[i];
    }
    return NULL;
}

static void print_process(FILE *out) {
    const struct process *process = find_process(screen.name);
    if (!process || process->status == SERVED_NOT) fprintf(out, "Process %s has ended.\n", screen.name);
    else if (process->status != SERVED_OK) fprintf(out, "%s: %s\n", screen.name, served_why(process->status));
    else threads_text(out, &process->look);
}

static void draw_details(void) {
    char *text = NULL;
    size_t bytes;
    const struct segment *segment = find_segment(screen.name);
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return;
    if (screen.of_process) print_process(out);
    else if (!segment) fprintf(out, "%s has been removed.\n", screen.name);
    else if (segment->status != VIGIL_OK)
        fprintf(out, "%s: %s\n", screen.name, cli_why(segment->status, segment->error));
    else show_text(out, screen.name, &segment->look, (size_t)COLS, false);
    if (fclose(out) == 0) draw_page(text);
    free(text);
}

static void draw_bottom(void) {
    static const char *const keys[] = {
        [TABLE] = "q quit  f freeze  s sort  r reverse  / filter  Enter details  h help",
        [DETAILS] = "q back  f freeze  arrows scroll",
        [HELP] = "q back  arrows scroll",
    };
    char text[160];
    size_t room = rows_there() + ROWS_FROM, last = screen.page_first + room, columns = (size_t)COLS - 1;
    move(LINES - 1, 0);
    clrtoeol();
    if (screen.types_filter) { /* and the cursor stays there */
        snprintf(text, sizeof text, "Rows with: %s", screen.filter);
        draw_line(LINES - 1, 0, columns, text);
        return;
    }
    snprintf(text, sizeof text, "%s", keys[screen.view]);
    if (screen.view != TABLE && screen.page_lines > room)
        snprintf(text, sizeof text, "%s  lines %zu-%zu of %zu", keys[screen.view], screen.page_first + 1, last,
                 screen.page_lines);
    if (screen.frozen && columns > 9) columns -= 9;
    draw_line(LINES - 1, 0, columns, text);
    if (!screen.frozen) return;
    attron(A_REVERSE | A_BOLD | COLOR_PAIR(DEAD_PAIR));
    mvaddstr(LINES - 1, COLS > 9 ? COLS - 9 : 0, " FROZEN ");
    attroff(A_REVERSE | A_BOLD | COLOR_PAIR(DEAD_PAIR));
}

static void top_draw(void) {
    overview_arrange(screen.overview, screen.order, screen.reversed, screen.filter);
    frame_layout(&screen.frame, (size_t)COLS);
    keep_in_sight();
    erase();
    if (screen.view == TABLE) draw_table();
    else if (screen.view == DETAILS) draw_details();
    else draw_page(help);
    draw_bottom();
    curs_set(screen.types_filter);
    refresh();
}

/* Keys. */

static void type_filter(int key) {
    size_t length = strlen(screen.filter);
    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        screen.types_filter = false;
    } else if (key == ESCAPE) {
        *screen.filter = 0;
        screen.types_filter = false;
    } else if (key == KEY_BACKSPACE || key == '\b' || key == 127) {
        while (length && (screen.filter[--length] & 0xc0) == 0x80) continue; /* all bytes of a character */
        screen.filter[length] = 0;
    } else if (key >= ' ' && key <= 0xff && length + 1 < sizeof screen.filter) {
        screen.filter[length] = (char)key;
        screen.filter[length + 1] = 0;
    }
}

/* Moves *at, possibly beyond the last row: the drawing corrects that. */
static bool scroll_key(int key, size_t *at, size_t page) {
    switch (key) {
    case KEY_UP: *at -= *at > 0; return true;
    case KEY_DOWN: *at += 1; return true;
    case KEY_PPAGE: *at -= *at < page ? *at : page; return true;
    case KEY_NPAGE: *at += page; return true;
    case KEY_HOME: *at = 0; return true;
    case KEY_END: *at = SIZE_MAX / 2; return true;
    default: return false;
    }
}

static void show_details(void) {
    if (screen.selected >= screen.overview->shown_count) return;
    const struct row *row = screen.overview->shown[screen.selected];
    snprintf(screen.name, sizeof screen.name, "%s", row->name);
    screen.of_process = row->process;
    screen.view = DETAILS;
    screen.page_first = 0;
}

static void table_key(int key) {
    if (scroll_key(key, &screen.selected, rows_there())) return;
    switch (key) {
    case 'q': screen.done = true; break;
    case 's': screen.order = (screen.order + 1) % ORDERS, screen.reversed = false; break;
    case 'r': screen.reversed = !screen.reversed; break;
    case '/': screen.types_filter = true; break;
    case ESCAPE: *screen.filter = 0; break;
    case '\n':
    case '\r':
    case KEY_ENTER: show_details(); break;
    case 'h':
    case '?': screen.view = HELP, screen.page_first = 0; break;
    default: break;
    }
}

static void page_key(int key) {
    if (scroll_key(key, &screen.page_first, rows_there())) return;
    switch (key) {
    case 'q':
    case 'h':
    case '?':
    case ESCAPE:
    case '\n':
    case '\r':
    case KEY_ENTER: screen.view = TABLE; break;
    default: break;
    }
}

static void take_key(int key) {
    if (screen.types_filter) type_filter(key);
    else if (key == 'f' || key == ' ') screen.frozen = !screen.frozen;
    else if (screen.view == TABLE) table_key(key);
    else page_key(key);
}

/* The terminal. */

static void end(SCREEN *terminal) {
    endwin();
    delscreen(terminal);
}

/* False: the type of the terminal is unknown, or its cursor cannot be moved, as on a dumb one. */
static bool top_begin(SCREEN **terminal) {
    *terminal = newterm(NULL, stdout, stdin);
    if (!*terminal) return false;
    if (!tigetstr("cup")) {
        end(*terminal);
        return false;
    }
    cbreak();
    noecho();
    nonl();
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_MS);
    if (!cli_colour(stdout) || start_color() == ERR) return true;
    use_default_colors();
    init_pair(THREAD_PAIR, COLOR_YELLOW, -1);
    init_pair(LOOP_PAIR, COLOR_CYAN, -1);
    init_pair(DEAD_PAIR, COLOR_RED, -1);
    init_pair(CALLED_PAIR, COLOR_GREEN, -1);
    return true;
}

/* Signals come through a descriptor, so that none comes at a bad moment. Ctrl-C quits normally. Returns the signal by
 * which to end once the terminal is restored, or 0. */
static int take_signal(int signals_fd) {
    struct signalfd_siginfo information;
    struct winsize size;
    if (read(signals_fd, &information, sizeof information) != (ssize_t)sizeof information) return 0;
    int signal_number = (int)information.ssi_signo;
    if (signal_number == SIGWINCH) {
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
            resizeterm(size.ws_row, size.ws_col);
        clearok(stdscr, TRUE);
        return 0;
    }
    screen.done = true;
    return signal_number == SIGINT ? 0 : signal_number;
}

/* Until a key, a signal, or the time of the next look. */
static int wait_for_input(int signals_fd, int64_t next_look_ns) {
    struct pollfd sources[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signals_fd, .events = POLLIN}};
    int64_t left_ns = next_look_ns - vigil_now_ns(), left_ms = left_ns > 0 ? left_ns / 1000000 + 1 : 0;
    int timeout_ms = screen.frozen ? -1 : left_ms < INT32_MAX ? (int)left_ms : INT32_MAX;
    if (poll(sources, 2, timeout_ms) < 0) return 0; /* stopped and continued */
    if (sources[1].revents) return take_signal(signals_fd);
    if (sources[0].revents & (POLLHUP | POLLERR | POLLNVAL)) screen.done = true; /* the terminal has gone */
    for (int key = getch(); key != ERR && !screen.done; key = getch()) take_key(key);
    return 0;
}

/* Returns the signal that ended it, or 0; -1: see screen.status. */
static int loop(int signals_fd, int64_t interval_ns) {
    int64_t next_look_ns = 0;
    int signal_number = 0;
    while (!screen.done) {
        if (!screen.frozen && vigil_now_ns() >= next_look_ns) {
            screen.status = overview_look(screen.overview);
            screen.error = errno;
            if (screen.status != VIGIL_OK) return -1;
            next_look_ns = vigil_now_ns() + interval_ns;
        }
        top_draw();
        signal_number = wait_for_input(signals_fd, next_look_ns);
    }
    return signal_number;
}

int screen_run(struct overview *overview, int64_t interval_ns) {
    SCREEN *terminal;
    sigset_t ours, before;
    screen.overview = overview;
    cli_print_duration(screen.interval, interval_ns);

    sigemptyset(&ours);
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(&ours, numbers[i]);
    sigprocmask(SIG_BLOCK, &ours, &before);
    int signals_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_fd < 0) return cli_fail(VIGIL_ESYSTEM, "cannot receive signals");
    if (!top_begin(&terminal)) {
        const char *type = getenv("TERM");
        return cli_fail(VIGIL_OK, "cannot draw on a terminal of the type '%s' (TERM): use --once", type ? type : "");
    }
    int signal_number = loop(signals_fd, interval_ns);
    end(terminal);
    close(signals_fd);
    if (signal_number < 0) {
        errno = screen.error;
        return overview_fail(screen.status);
    }
    if (signal_number > 0) signal(signal_number, SIG_DFL), raise(signal_number);
    sigprocmask(SIG_SETMASK, &before, NULL); /* the signal ends the process here */
    return CLI_OK;
}
