/* SPDX-License-Identifier: MIT */
/* vigil show PID: asks a process that runs under vigil run for its report. See pthread/serve.h for how. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "serve.h"
#include "show.h"

#define PATIENCE_NS INT64_C(5000000000)
#define LOOK_NS     1000000

/* One of its descriptors is the file, perhaps; the number is not known. */
static int open_served(const char *pid) {
    char folder[64], path[PATH_MAX], target[64];
    int fd = -1;
    snprintf(folder, sizeof folder, "/proc/%s/fd", pid);
    DIR *listing = opendir(folder);
    if (!listing) return -1;
    errno = ENOENT;
    for (struct dirent *entry; fd < 0 && (entry = readdir(listing));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = 0;
        if (strncmp(target, "/memfd:" SERVE_NAME, strlen("/memfd:" SERVE_NAME)) == 0)
            fd = open(path, O_RDWR | O_CLOEXEC);
    }
    int error = errno;
    closedir(listing);
    errno = error;
    return fd;
}

static bool thread_would_handle(const char *pid, const char *thread, int number) {
    char path[PATH_MAX], line[256];
    unsigned long long blocked = ~0ull, caught = 0;
    snprintf(path, sizeof path, "/proc/%s/task/%s/status", pid, thread);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "SigBlk:", 7) == 0) blocked = strtoull(line + 7, NULL, 16);
        if (strncmp(line, "SigCgt:", 7) == 0) caught = strtoull(line + 7, NULL, 16);
    }
    if (status) fclose(status);
    return caught >> (number - 1) & 1 && !(blocked >> (number - 1) & 1);
}

/* One thread is enough. Where all of them block the signal, one may be waiting for it, as for a message. */
static bool would_handle(const char *pid, int number) {
    char folder[64];
    bool handles = false;
    snprintf(folder, sizeof folder, "/proc/%s/task", pid);
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && !handles && (entry = readdir(listing));)
        handles = entry->d_name[0] != '.' && thread_would_handle(pid, entry->d_name, number);
    if (listing) closedir(listing);
    return handles;
}

static bool wait_for_answer(const struct serve *served, uint32_t asked) {
    int64_t end_ns = vigil_now_ns() + PATIENCE_NS;
    struct timespec pause = {.tv_nsec = LOOK_NS};
    while (__atomic_load_n(&served->answered, __ATOMIC_ACQUIRE) != asked) {
        if (vigil_now_ns() > end_ns) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static int ask(struct serve *served, const char *pid) {
    int number = served->signal;
    if (!number) return cli_fail(VIGIL_OK, "process %s uses the signal itself: start it with vigil run --signal", pid);
    if (!would_handle(pid, number))
        return cli_fail(VIGIL_OK, "process %s blocks signal %d: start it with another vigil run --signal", pid, number);
    served->json = cli_wants_json;
    uint32_t asked = __atomic_add_fetch(&served->asked, 1, __ATOMIC_ACQ_REL);
    if (kill((pid_t)strtol(pid, NULL, 10), number) != 0)
        return cli_fail(VIGIL_ESYSTEM, "cannot signal process %s", pid);
    if (!wait_for_answer(served, asked)) return cli_fail(VIGIL_OK, "process %s does not respond: is it stopped?", pid);
    fwrite(served->text, 1, served->length < SERVE_BYTES - sizeof *served ? served->length : 0, stdout);
    return CLI_OK;
}

bool show_is_process(const char *name) {
    char path[64];
    if (!*name || strspn(name, "0123456789") != strlen(name) || strlen(name) > 10) return false;
    snprintf(path, sizeof path, "/proc/%s", name);
    return access(path, F_OK) == 0;
}

int show_process(const char *pid) {
    struct stat status;
    int fd = open_served(pid);
    if (fd < 0 && errno == EACCES) return cli_fail(VIGIL_ESYSTEM, "cannot look at process %s", pid);
    if (fd < 0)
        return cli_fail(VIGIL_OK, "process %s does not run on Vigil's locks: start it with vigil run -- PROGRAM", pid);
    struct serve *served = MAP_FAILED;
    if (fstat(fd, &status) == 0 && status.st_size == SERVE_BYTES)
        served = mmap(NULL, SERVE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    bool ours = served != MAP_FAILED && __atomic_load_n(&served->magic, __ATOMIC_ACQUIRE) == SERVE_MAGIC;
    if (!ours) return cli_fail(VIGIL_OK, "process %s runs on another version of Vigil's locks", pid);
    return ask(served, pid);
}
