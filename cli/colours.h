/* SPDX-License-Identifier: MIT */
/* colours.h - what a terminal is sent for colours, where cli_colour allows it. */
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
