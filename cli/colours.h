/* SPDX-License-Identifier: MIT */
/* colours.h - escape sequences for colours, for use where cli_colour allows them. */
#ifndef VIGIL_CLI_COLOURS_H
#define VIGIL_CLI_COLOURS_H

#define PLAIN   "\033[0m"
#define BOLD    "\033[1m"
#define FAINT   "\033[2m"
#define RED     "\033[31m"
#define GREEN   "\033[32m"
#define YELLOW  "\033[33m"
#define MAGENTA "\033[35m"
#define CYAN    "\033[36m"

#endif
