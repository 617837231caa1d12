/* SPDX-License-Identifier: MIT */
/* redraw.h - a line on stderr that is drawn again and again. */
#ifndef VIGIL_CLI_REDRAW_H
#define VIGIL_CLI_REDRAW_H

#include <stdbool.h>

#define REDRAW_MAX 512

/* Whether stderr is a terminal on which a line can be redrawn. */
bool terminal_redraws(void);
/* Draws "vigil SUBCOMMAND text" over the line; *drawn becomes true. Nothing in the background. */
void redraw_line(bool *drawn, const char *text);
/* Clears it, if it was drawn. */
void redraw_end(bool *drawn);

#endif
