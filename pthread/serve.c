/* SPDX-License-Identifier: MIT */
/* The signal that asks for a report, and where that goes: see serve.h. */
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record.h"

struct serve served __attribute__((aligned(SERVE_ALIGN)));
static int served_fd = -1;
static struct stat served_as; /* the program may have closed the descriptor, and opened another of that number */

static bool is_asked(uint32_t *asked) {
    *asked = __atomic_load_n(&served.head.asked, __ATOMIC_SEQ_CST);
    return *asked != __atomic_load_n(&served.head.answered, __ATOMIC_RELAXED);
}

/* A request that comes while another thread makes a report is for that thread, which looks again. */
static void answer(uint32_t asked) {
    do {
        struct text text = {.fd = -1, .room = SERVE_TEXT_BYTES, .at = served.text};
        if (!report_write(&text, (enum serve_form)__atomic_load_n(&served.head.form, __ATOMIC_RELAXED))) return;
        served.head.length = (uint32_t)text.used;
        __atomic_store_n(&served.head.answered, asked, __ATOMIC_RELEASE);
    } while (is_asked(&asked));
}

/* Whether `vigil show` or another such command has sent it: they choose a thread; people send it to the process. */
static bool is_from_observer(const siginfo_t *information) {
    return information->si_code == SI_TKILL && information->si_pid != getpid();
}

/* On the terminal, for example, unless there is a request; a late one has been answered together with the next. */
static void on_signal(int number, siginfo_t *information, void *context) {
    static char page[16384];
    (void)number;
    (void)context;
    int errno_before = errno;
    uint32_t asked;
    if (is_asked(&asked)) {
        answer(asked);
    } else if (!is_from_observer(information)) {
        struct text text = {.fd = 2, .room = sizeof page, .at = page};
        report_write(&text, SERVE_TEXT);
        text_flush(&text);
    }
    errno = errno_before;
}

static bool handle(int number) {
    struct sigaction before, ours = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigfillset(&ours.sa_mask);
    if (REAL(sigaction)(number, NULL, &before) != 0 || before.sa_handler != SIG_DFL) return false;
    return REAL(sigaction)(number, &ours, NULL) == 0;
}

/* Out of the way of programs that expect low numbers. */
static int move_up(int fd) {
    struct rlimit limit;
    int high = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 64 && limit.rlim_cur < 1024
                   ? (int)limit.rlim_cur - 8
                   : 1000;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, high);
    if (moved < 0) return fd;
    close(fd);
    return moved;
}

/* The system would end a process that makes a file which is larger than it may be. */
static bool may_be_so_large(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= SERVE_BYTES;
}

/* With what is in `served` now, and of that size for ever: a process that maps it can rely on that. */
static int make_file(void) {
    if (!may_be_so_large()) return -1;
    int fd = (int)syscall(SYS_memfd_create, SERVE_NAME, 3u /* MFD_CLOEXEC, MFD_ALLOW_SEALING */);
    if (fd < 0) return -1;
    fd = move_up(fd);
    size_t used = offsetof(struct serve, waits) + served.head.bound * sizeof *served.waits;
    bool made = ftruncate(fd, (off_t)SERVE_BYTES) == 0 && pwrite(fd, &served, used, 0) == (ssize_t)used &&
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    if (made) return fd;
    close(fd);
    return -1;
}

/* Over the variable. */
static void serve_map_file(void) {
    int fd = make_file();
    void *mapping =
        fd < 0 ? MAP_FAILED
               : mmap(&served, SERVE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
    if (fd >= 0 && mapping == MAP_FAILED) close(fd);
    if (mapping == MAP_FAILED) return;
    served.head.pid = (uint32_t)getpid();
    served.head.signal = preload.signal;
    served.head.profiles = preload.profile;
    __atomic_store_n(&served.head.magic, SERVE_MAGIC, __ATOMIC_RELEASE);
    served_fd = fstat(fd, &served_as) == 0 ? fd : -1;
}

void serve_begin(void) {
    if (preload.signal && !handle(preload.signal)) preload.signal = 0;
    serve_map_file();
}

/* The file that came along is the parent's, and so are the threads that wait. A signal handler may have forked in the
 * middle of a wait, which ends here as well: so the memory of its entry stays, and is zero. */
void serve_in_child(void) {
    int errno_before = errno;
    struct stat now;
    bool open = served_fd >= 0 && fstat(served_fd, &now) == 0;
    if (open && now.st_ino == served_as.st_ino && now.st_dev == served_as.st_dev) close(served_fd);
    served_fd = -1;
    mmap(&served, SERVE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    serve_map_file();
    errno = errno_before;
}

/* If the program uses the signal itself, it keeps it. */
static void give_up(int number, bool installs) {
    if (!installs || number != preload.signal || !number) return;
    preload.signal = 0;
    served.head.signal = 0;
}

PRELOAD_API int sigaction(int number, const struct sigaction *new, struct sigaction *old) {
    bool ours = number && number == preload.signal;
    int failed = REAL(sigaction)(number, new, old);
    if (!failed && ours && old && old->sa_sigaction == on_signal) *old = (struct sigaction){.sa_handler = SIG_DFL};
    if (!failed) give_up(number, new);
    return failed;
}

PRELOAD_API sighandler_t signal(int number, sighandler_t handler) {
    sighandler_t before = REAL(signal)(number, handler);
    if (before != SIG_ERR) give_up(number, true);
    return (uintptr_t)before == (uintptr_t)on_signal ? SIG_DFL : before;
}
