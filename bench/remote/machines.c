/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* A user that may not do it alone may do it in a user namespace of its own, on most systems. */
static bool machine_separate(void) {
    int what = CLONE_NEWNS | CLONE_NEWUTS;
    if (unshare(what) != 0 && unshare(what | CLONE_NEWUSER) != 0) return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, NULL) == 0;
}

static pid_t machine_fork(void) {
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
    }
    return pid;
}

bool machines_possible(void) {
    int status;
    pid_t pid = machine_fork();
    if (pid == 0) _exit(machine_separate() ? 0 : 1);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static void machine_name(unsigned machine) {
    char name[32];
    int length = snprintf(name, sizeof name, "machine-%u", machine);
    must(sethostname(name, (size_t)length) == 0);
}

pid_t machine_start(const struct round *round, machine_body *body, void *shared, unsigned machine, unsigned count) {
    pid_t pid = machine_fork();
    if (pid != 0) return pid;
    must(machine_separate());
    machine_name(machine);
    pid_t *pids = calloc(count, sizeof *pids);
    must(pids);
    for (unsigned i = 0; i < count; i++) {
        pids[i] = machine_fork();
        if (pids[i] != 0) continue;
        body(round, shared, machine, i);
        _exit(0);
    }
    for (unsigned i = 0; i < count; i++) machine_await(pids[i]);
    _exit(0);
}

void machine_await(pid_t pid) {
    int status;
    must(waitpid(pid, &status, 0) == pid && status == 0);
}

void *memory_shared(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED);
    return memory;
}
