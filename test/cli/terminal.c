/* SPDX-License-Identifier: MIT */
/*
 * terminal SCREEN COMMAND...: runs it on its own terminal. Our input is typed there; the terminal's output goes to the
 * file SCREEN. Ends as the command did.
 */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Copy what can be read now. False if there will be no more of it: reading from a terminal that no process has open any
 * more is an error. */
static bool copy(int from, int to) {
    char text[4096];
    ssize_t length = read(from, text, sizeof text);
    if (length > 0 && write(to, text, (size_t)length) != length) abort();
    return length > 0;
}

static void work(int terminal, int screen) {
    struct pollfd from[] = {{.fd = terminal, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    do {
        if (poll(from, 2, -1) < 0) abort();
        if (from[1].revents && !copy(STDIN_FILENO, terminal)) from[1].fd = -1;
    } while (!from[0].revents || copy(terminal, screen));
}

int main(int count, char **words) {
    int status, terminal;
    if (count < 3) return 2;
    int screen = open(words[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_t pid = screen < 0 ? -1 : forkpty(&terminal, NULL, NULL, NULL);
    if (pid < 0) abort();
    if (pid == 0) {
        execvp(words[2], words + 2);
        _exit(127);
    }
    work(terminal, screen);
    if (waitpid(pid, &status, 0) != pid) abort();
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
