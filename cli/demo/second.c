/* SPDX-License-Identifier: MIT */
/*
 * The second process. It has contestants of its own in the same line. From the middle of the act on, the first of
 * them that is granted the lock keeps it; then the process is killed, with the lock held and with places in the line.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo.h"

static struct act *act;
static pid_t second;
static pthread_t killer;

/* The second process must not outlive its parent, however that ends. */
static void die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    for (int number = 1; number <= SIGTERM; number++) { /* the parent's handlers are for the screen */
        if (signal(number, SIG_DFL) == SIG_IGN) signal(number, SIG_IGN);
    }
}

/* Completes the records of the killed process. */
static void finish_book(int contestant) {
    struct showing *showing = &act->stage->showing[contestant];
    struct record *record = &act->records[contestant];
    uint32_t asking = __atomic_load_n(&showing->asking, __ATOMIC_SEQ_CST);
    record->count = asking / 2;
    struct visit *last = &record->visits[record->count];
    if (last->called_ns) { /* begun, and not completely ended */
        last->ending = KILLED;
        last->endings = 1;
        last->ended_ns = act->killed_ns;
        if (last->leaves_ns > act->killed_ns) last->leaves_ns = act->killed_ns;
        record->count++;
        showing->endings[KILLED]++;
    } else if (showing->holding) {
        last[-1].released_ns = act->killed_ns;
    }
    __atomic_store_n(&showing->holding, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&showing->asking, asking + asking % 2, __ATOMIC_SEQ_CST);
}

bool second_has_ended(void) {
    siginfo_t ended = {0};
    waitid(P_PID, (id_t)second, &ended, WEXITED | WNOHANG | WNOWAIT);
    return ended.si_pid;
}

/* Waits until one of its contestants keeps the lock. False: it has ended by itself, or it never gets the lock. */
static bool wait_for_doom(void) {
    int64_t give_up_ns = act->began_ns + act->duration_ns + NO_NEWS_NS;
    while (vigil_wait32(&act->stage->doomed, 0, 100 * MILLISECOND) == VIGIL_TIMED_OUT) {
        if (second_has_ended() || vigil_now_ns() > give_up_ns) return false;
    }
    return true;
}

static void *kill_it(void *argument) {
    bool doomed = wait_for_doom();
    if (doomed) {
        rest(2 * act->hold_ns); /* so that the others join the line */
        __atomic_store_n(&act->killed_ns, vigil_now_ns(), __ATOMIC_RELEASE);
    }
    kill(second, SIGKILL);
    waitpid(second, NULL, 0);
    for (int i = 0; i < CONTESTANTS; i++) {
        if (doomed && is_in_second(act, i)) finish_book(i);
    }
    __atomic_store_n(&act->lost, !doomed, __ATOMIC_RELEASE);
    return argument;
}

void second_begin(struct act *next, void (*play)(void)) {
    pid_t parent = getpid();
    int fd = stage_fd();
    act = next;
    fflush(stdout); /* otherwise the child would have a copy of the buffer */
    second = fork();
    if (second == 0) {
        die_with(parent);
        stage_enter(act, fd);
        play();
    }
    must("cannot start a second process", second < 0 ? VIGIL_ESYSTEM : VIGIL_OK);
    close(fd);
}

void second_doom(void) {
    start_thread(&killer, kill_it, NULL);
}

void second_end(void) {
    pthread_join(killer, NULL);
}
