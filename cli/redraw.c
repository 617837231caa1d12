/* SPDX-License-Identifier: MIT */
#include "redraw.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

bool terminal_redraws(void) {
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static void redraw_write(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* a failure cannot be reported */
}

/* In the background we would draw over what the user types. */
static bool redraw_is_ours(void) {
    return tcgetpgrp(STDERR_FILENO) == getpgrp();
}

/* At most one row of the terminal: a wrapped line could not be drawn over. */
void redraw_line(bool *drawn, const char *text) {
    struct winsize size;
    char line[REDRAW_MAX + 32];
    if (!redraw_is_ours()) return;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    int width = known ? size.ws_col - 1 : 79;
    snprintf(line, sizeof line, "\r\033[Kvigil %s %s", cli_now->name, text);
    size_t controls = strlen("\r\033[K");
    if (strlen(line) > controls + (size_t)width) strcpy(line + controls + (size_t)width - 1, ">"); /* cut */
    redraw_write(line);
    *drawn = true;
}

void redraw_end(bool *drawn) {
    if (*drawn && redraw_is_ours()) redraw_write("\r\033[K");
    *drawn = false;
}
