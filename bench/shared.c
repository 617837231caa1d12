/* SPDX-License-Identifier: MIT */
/* Other processes, and the memory that they share with us. */
#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void *shared_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED);
    return memory;
}

void shared_memory_free(void *memory, size_t size) {
    must(munmap(memory, size) == 0);
}

/* The pids of the partners that must end by returning from `main`; 0: none. */
enum { PARTNERS_MAX = 8 };
static volatile int partners[PARTNERS_MAX];

static bool has_failed(int pid) {
    siginfo_t end = {0};
    return waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == pid &&
           !(end.si_code == CLD_EXITED && end.si_status == 0);
}

/* If a partner is gone, we would wait for ever for what it should have done. */
static void look_after_partners(int signal) {
    (void)signal;
    int error = errno;
    for (size_t i = 0; i < PARTNERS_MAX; i++) {
        if (partners[i] == 0 || !has_failed(partners[i])) continue;
        static const char message[] = "bench: a process that takes part has ended too early\n";
        _exit(write(STDERR_FILENO, message, sizeof message - 1) >= 0 ? 1 : 2);
    }
    errno = error;
}

static void expect_end(int pid) {
    size_t i = 0;
    while (i < PARTNERS_MAX && partners[i] != 0) i++;
    must(i < PARTNERS_MAX);
    partners[i] = pid;
    look_after_partners(SIGCHLD); /* the partner may have ended, and the signal come, before this */
}

static void expect_no_more(int pid) {
    for (size_t i = 0; i < PARTNERS_MAX; i++)
        if (partners[i] == pid) partners[i] = 0;
}

_Noreturn static void partner_live(int parent, const struct arena *arena, void (*main)(void *), void *argument) {
    must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    if (getppid() != parent) _exit(1); /* the parent was gone before we asked to be told */
    signal(SIGCHLD, SIG_DFL);
    if (arena->join != NULL) arena->join();
    main(argument);
    _exit(0);
}

void partner_start(struct partner *partner, const struct arena *arena, void (*main)(void *), void *argument) {
    struct sigaction action = {.sa_handler = look_after_partners, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    must(sigaction(SIGCHLD, &action, NULL) == 0);
    int parent = getpid(), pid = fork();
    must(pid >= 0);
    if (pid == 0) partner_live(parent, arena, main, argument);
    partner->pid = pid; /* only in the parent: `partner` may be in memory that both share */
    expect_end(pid);
}

void partner_kill(struct partner *partner) {
    expect_no_more(partner->pid);
    must(kill(partner->pid, SIGKILL) == 0);
}

void partner_wait(struct partner *partner) {
    must(waitpid(partner->pid, NULL, 0) == partner->pid);
    expect_no_more(partner->pid);
}

double shared_per_call_ns(const struct arena *arena, void (*loop)(uint64_t n), uint64_t n) {
    arena->open();
    double cost_ns = per_call_ns(loop, n);
    arena->close();
    return cost_ns;
}

struct player {
    void (*play)(uint64_t n);
    uint64_t n;
};

static void player_main(void *argument) {
    struct player *player = argument;
    player->play(player->n);
}

double shared_per_round_trip_ns(const struct arena *arena, void (*ping)(uint64_t n), void (*pong)(uint64_t n),
                                uint64_t n) {
    uint64_t warm_up = n / 10 + 1;
    struct player player = {pong, warm_up + n};
    struct partner partner;
    arena->open();
    partner_start(&partner, arena, player_main, &player);
    ping(warm_up);
    uint64_t start = now_ns();
    ping(n);
    double elapsed_ns = (double)(now_ns() - start);
    partner_wait(&partner);
    arena->close();
    return elapsed_ns / (double)n;
}
