/* SPDX-License-Identifier: MIT */
/* See served.h. */
#include "served.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST_PAUSE_NS 20000
#define PAUSE_NS       1000000
#define RECORDED_NS    INT64_C(1500000000) /* events are recorded this long after the last request */
#define UNFINISHED_NS  INT64_C(100000000)  /* an event unfinished for this long is skipped */

/* Opening. */

bool served_is_process(const char *name) {
    char path[64];
    if (!*name || strspn(name, "0123456789") != strlen(name) || strlen(name) > 10) return false;
    snprintf(path, sizeof path, "/proc/%s", name);
    return access(path, F_OK) == 0;
}

static bool is_served(const char *path) {
    static const char name[] = "/memfd:" SERVE_NAME;
    char target[64];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) return false;
    target[length] = 0;
    return strncmp(target, name, sizeof name - 1) == 0;
}

/* Searches the process's descriptors for the file: its number is not known. Zero, or an error number. */
static int find_file(const char *pid, char path[64]) {
    char folder[64];
    bool found = false;
    snprintf(folder, sizeof folder, "/proc/%s/fd", pid);
    DIR *listing = opendir(folder);
    if (!listing) return errno;
    for (struct dirent *entry; !found && (entry = readdir(listing));) {
        snprintf(path, 64, "/proc/%.12s/fd/%.12s", pid, entry->d_name);
        found = is_served(path);
    }
    closedir(listing);
    return found ? 0 : ENOENT;
}

/* Its size cannot shrink, so that the mapping stays valid. */
static bool is_sealed(int fd) {
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &status) == 0 && status.st_size == (off_t)SERVE_BYTES;
}

enum served_status served_open(struct served *served, const char *pid) {
    struct stat status;
    *served = (struct served){.pid = (uint32_t)strtoul(pid, NULL, 10), .fd = -1, .file = MAP_FAILED};
    int error = find_file(pid, served->path);
    if (!error && (served->fd = open(served->path, O_RDWR | O_CLOEXEC)) < 0) error = errno;
    if (error) return error == EACCES || error == EPERM ? SERVED_DENIED : SERVED_NOT;
    if (is_sealed(served->fd))
        served->file = mmap(NULL, SERVE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, served->fd, 0);
    bool ours = served->file != MAP_FAILED && fstat(served->fd, &status) == 0 &&
                __atomic_load_n(&served->file->head.magic, __ATOMIC_ACQUIRE) == SERVE_MAGIC;
    if (!ours) {
        served_close(served);
        return SERVED_OTHER;
    }
    served->inode = status.st_ino;
    return SERVED_OK;
}

void served_close(struct served *served) {
    if (served->file != MAP_FAILED) munmap(served->file, SERVE_BYTES);
    if (served->fd >= 0) close(served->fd);
    served->file = MAP_FAILED;
    served->fd = -1;
}

const char *served_why(enum served_status status) {
    switch (status) {
    case SERVED_NOT: return "it does not use Vigil's locks";
    case SERVED_DENIED: return "permission denied";
    case SERVED_OTHER: return "it uses another version of Vigil's locks";
    default: return "";
    }
}

int served_fail(enum served_status status, const char *pid) {
    if (status == SERVED_DENIED) {
        errno = EACCES;
        return cli_fail(VIGIL_ESYSTEM, "cannot look at process %s", pid);
    }
    if (status == SERVED_OTHER) return cli_fail(VIGIL_OK, "process %s uses another version of Vigil's locks", pid);
    return cli_fail(VIGIL_OK, "process %s does not use Vigil's locks: start it with vigil run -- PROGRAM", pid);
}

bool served_is_there(const struct served *served) {
    struct stat status;
    return stat(served->path, &status) == 0 && status.st_ino == served->inode;
}

void served_list(void (*found)(const char *pid, void *data), void *data) {
    char path[64];
    struct stat status;
    DIR *listing = opendir("/proc");
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name)) continue;
        bool ours = fstatat(dirfd(listing), entry->d_name, &status, 0) == 0 && status.st_uid == geteuid();
        if (ours && find_file(entry->d_name, path) == 0) found(entry->d_name, data);
    }
    if (listing) closedir(listing);
}

/* Waits. */

static bool copy_wait(const struct wait *wait, struct wait *copy) {
    uint32_t sequence = __atomic_load_n(&wait->sequence, __ATOMIC_ACQUIRE);
    if (!sequence) return false;
    *copy = *(const volatile struct wait *)wait;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&wait->sequence, __ATOMIC_RELAXED) == sequence && copy->thread_id && copy->kind < WAIT_KINDS;
}

uint32_t served_waits(const struct served *served, struct wait *waits) {
    uint32_t bound = __atomic_load_n(&served->file->head.bound, __ATOMIC_ACQUIRE), count = 0;
    int64_t now_ns = vigil_now_ns();
    if (bound > WAITS_MOST) bound = WAITS_MOST;
    for (uint32_t i = 0; i < bound; i++) {
        struct wait *copy = &waits[count];
        if (!copy_wait(&served->file->waits[i], copy)) continue;
        if (copy->since_ns < 0) copy->since_ns = 0;
        if (copy->since_ns > now_ns) copy->since_ns = now_ns;
        count++;
    }
    return count;
}

/* Asking. */

/* Whether the thread would run the handler now: it is not stopped, and does not block the signal. */
static bool would_handle(uint32_t pid, const char *thread, int number) {
    char path[PATH_MAX], line[256];
    unsigned long long blocked = ~0ull, caught = 0;
    bool runs = false;
    snprintf(path, sizeof path, "/proc/%u/task/%s/status", pid, thread);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "State:", 6) == 0) runs = !strpbrk(line + 6, "TtZX");
        if (strncmp(line, "SigBlk:", 7) == 0) blocked = strtoull(line + 7, NULL, 16);
        if (strncmp(line, "SigCgt:", 7) == 0) caught = strtoull(line + 7, NULL, 16);
    }
    if (status) fclose(status);
    return runs && caught >> (number - 1) & 1 && !(blocked >> (number - 1) & 1);
}

/* One thread is enough. If all threads block the signal, one may wait for it with sigwait, as a message. */
static bool any_would_handle(uint32_t pid, int number) {
    char folder[64];
    bool handles = false;
    snprintf(folder, sizeof folder, "/proc/%u/task", pid);
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && !handles && (entry = readdir(listing));)
        handles = entry->d_name[0] != '.' && would_handle(pid, entry->d_name, number);
    if (listing) closedir(listing);
    return handles;
}

/* Semaphores last; then the longest wait first. No system call of the program is interrupted if the thread sleeps in
 * a wait of ours; the longer it has waited, the more likely it still does when the signal comes. */
static int best_first(const void *one, const void *other) {
    const struct wait *a = one, *b = other;
    int semaphores = (a->kind == WAIT_SEM) - (b->kind == WAIT_SEM);
    if (semaphores) return semaphores;
    return (a->since_ns > b->since_ns) - (a->since_ns < b->since_ns);
}

/* A waiting thread that can take the signal; zero: none. */
static uint32_t choose_thread(const struct served *served, int number) {
    if (served->file->head.pid != served->pid) return 0; /* in another pid namespace its threads have other numbers */
    struct wait *waits = malloc(WAITS_MOST * sizeof *waits);
    uint32_t count = waits ? served_waits(served, waits) : 0, chosen = 0;
    if (count) qsort(waits, count, sizeof *waits, best_first);
    for (uint32_t i = 0; i < count && !chosen; i++) {
        char thread[16];
        snprintf(thread, sizeof thread, "%u", waits[i].thread_id);
        if (!waits[i].heeds_signals && would_handle(served->pid, thread, number)) chosen = waits[i].thread_id;
    }
    free(waits);
    return chosen;
}

static void pause_ns(int64_t *ns) {
    struct timespec pause = {.tv_nsec = *ns};
    nanosleep(&pause, NULL);
    if (*ns < PAUSE_NS) *ns *= 2;
}

/* One process asks at a time. */
static bool lock_file(const struct served *served, int64_t end_ns) {
    int64_t wait_ns = FIRST_PAUSE_NS;
    while (flock(served->fd, LOCK_EX | LOCK_NB) != 0) {
        if (vigil_now_ns() > end_ns) return false;
        pause_ns(&wait_ns);
    }
    return true;
}

static bool wait_for_answer(const struct served *served, uint32_t asked, int64_t end_ns) {
    int64_t wait_ns = FIRST_PAUSE_NS;
    while (__atomic_load_n(&served->file->head.answered, __ATOMIC_ACQUIRE) != asked) {
        if (vigil_now_ns() > end_ns) return false;
        pause_ns(&wait_ns);
    }
    return true;
}

static enum served_answer copy_answer(const struct served *served, char **text, size_t *length) {
    *length = *(const volatile uint32_t *)&served->file->head.length;
    if (*length > SERVE_TEXT_BYTES) *length = SERVE_TEXT_BYTES;
    *text = malloc(*length + 1);
    if (!*text) return SERVED_SILENT;
    memcpy(*text, served->file->text, *length);
    (*text)[*length] = 0;
    return SERVED_ANSWERED;
}

static enum served_answer served_await_answer(struct served *served, const struct served_question *question, int number,
                                              int64_t end_ns) {
    struct serve_head *head = &served->file->head;
    uint32_t thread = choose_thread(served, number);
    if (!thread && !question->any_thread) return SERVED_NO_THREAD;
    if (!thread && !any_would_handle(served->pid, number)) return SERVED_BLOCKED;
    __atomic_store_n(&head->form, (uint32_t)question->form, __ATOMIC_RELAXED);
    uint32_t asked = __atomic_add_fetch(&head->asked, 1, __ATOMIC_ACQ_REL);
    long failed =
        thread ? syscall(SYS_tgkill, (pid_t)served->pid, (pid_t)thread, number) : kill((pid_t)served->pid, number);
    if (failed) return SERVED_REFUSED;
    return wait_for_answer(served, asked, end_ns) ? SERVED_ANSWERED : SERVED_SILENT;
}

enum served_answer served_ask(struct served *served, const struct served_question *question, char **text,
                              size_t *length) {
    int64_t end_ns = vigil_now_ns() + question->patience_ns;
    int number = *(const volatile int32_t *)&served->file->head.signal;
    *text = NULL;
    *length = 0;
    if (number < 1 || number > 64) return SERVED_NO_SIGNAL;
    if (!lock_file(served, end_ns)) return SERVED_SILENT;
    enum served_answer answer = served_await_answer(served, question, number, end_ns);
    if (answer == SERVED_ANSWERED) answer = copy_answer(served, text, length);
    int error = errno;
    flock(served->fd, LOCK_UN);
    errno = error;
    return answer;
}

/* Recording. */

void served_record(struct served *served, uint64_t *lost) {
    struct serve_head *head = &served->file->head;
    int64_t now_ns = vigil_now_ns(), until_ns = __atomic_load_n(&head->record_until_ns, __ATOMIC_RELAXED);
    if (!served->records) served->next = __atomic_load_n(&head->events, __ATOMIC_ACQUIRE);
    else if (until_ns < now_ns) ++*lost;
    served->records = true;
    if (until_ns < now_ns + RECORDED_NS)
        __atomic_store_n(&head->record_until_ns, now_ns + RECORDED_NS, __ATOMIC_RELAXED);
}

/* Skips events that the ring has overwritten. `events` was read from the file, and may be anything. */
static void skip_lost(struct served *served, uint64_t events, uint64_t *lost) {
    if (events < served->next) served->next = events;
    if (events - served->next <= EVENTS_KEPT) return;
    *lost += events - served->next - EVENTS_KEPT;
    served->next = events - EVENTS_KEPT;
}

/* True: the entry is complete; `valid` says whether it is the next event and its values are possible. False: it is
 * still being written. */
static bool read_event(const struct served *served, struct serve_event *event, bool *valid, int64_t now_ns) {
    const struct serve_event *entry = &served->file->ring[served->next % EVENTS_KEPT];
    uint64_t sequence = __atomic_load_n(&entry->sequence, __ATOMIC_ACQUIRE);
    *event = *(const volatile struct serve_event *)entry;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    bool whole = sequence == served->next + 1 && __atomic_load_n(&entry->sequence, __ATOMIC_RELAXED) == sequence;
    *valid = whole && event->type < SERVE_EVENT_TYPES && event->kind < WAIT_KINDS && event->thread_id;
    if (event->at_ns < 0) event->at_ns = 0;
    if (event->at_ns > now_ns) event->at_ns = now_ns;
    return whole || sequence > served->next + 1;
}

/* A thread that was killed, or is stopped, does not finish its event: it must not delay later events for long. */
static bool will_be_finished(struct served *served, int64_t now_ns) {
    if (!served->unfinished_ns) served->unfinished_ns = now_ns;
    return now_ns - served->unfinished_ns < UNFINISHED_NS;
}

static void insert_event(struct serve_event *events, size_t count, const struct serve_event *event) {
    size_t at = count;
    for (; at && events[at - 1].at_ns > event->at_ns; at--) events[at] = events[at - 1];
    events[at] = *event;
}

size_t served_events(struct served *served, struct serve_event *events, size_t most, uint64_t *lost) {
    size_t count = 0;
    int64_t now_ns = vigil_now_ns();
    uint64_t there = __atomic_load_n(&served->file->head.events, __ATOMIC_ACQUIRE);
    skip_lost(served, there, lost);
    while (count < most && served->next != there) {
        struct serve_event event;
        bool valid;
        if (!read_event(served, &event, &valid, now_ns) && will_be_finished(served, now_ns)) break;
        served->unfinished_ns = 0;
        served->next++;
        if (valid) insert_event(events, count++, &event);
        else ++*lost;
    }
    return count;
}

/* Names. */

void served_thread_name(uint32_t pid, uint32_t thread_id, char name[SERVED_NAME]) {
    char path[64], text[SERVED_NAME] = "";
    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", pid, thread_id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (length > 0 && text[length - 1] == '\n') text[length - 1] = 0;
    cli_visible(name, SERVED_NAME, text);
}
