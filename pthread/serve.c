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

#include "serve.h"

static struct serve *served;
static int served_fd = -1;
static struct stat served_as; /* the program may have closed the descriptor, and opened another of that number */

static bool is_asked(uint32_t *asked) {
    *asked = served ? __atomic_load_n(&served->asked, __ATOMIC_SEQ_CST) : 0;
    return served && *asked != __atomic_load_n(&served->answered, __ATOMIC_RELAXED);
}

/* A request that comes while another thread makes a report is for that thread, which looks again. */
static void answer(uint32_t asked) {
    do {
        struct text text = {.fd = -1, .room = SERVE_BYTES - sizeof *served, .at = served->text};
        if (!report_write(&text, served->json)) return;
        served->length = (uint32_t)text.used;
        __atomic_store_n(&served->answered, asked, __ATOMIC_RELEASE);
    } while (is_asked(&asked));
}

/* On the terminal, say, unless it was `vigil show` that asked. */
static void on_signal(int number) {
    static char page[16384];
    (void)number;
    int errno_before = errno;
    uint32_t asked;
    if (is_asked(&asked)) {
        answer(asked);
    } else {
        struct text text = {.fd = 2, .room = sizeof page, .at = page};
        report_write(&text, false);
        text_flush(&text);
    }
    errno = errno_before;
}

static bool handle(int number) {
    struct sigaction before, ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigfillset(&ours.sa_mask);
    if (REAL(sigaction)(number, NULL, &before) != 0 || before.sa_handler != SIG_DFL) return false;
    return REAL(sigaction)(number, &ours, NULL) == 0;
}

/* Out of the way of programs that count on low numbers. */
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

static void open_file(void) {
    int fd = (int)syscall(SYS_memfd_create, SERVE_NAME, 1u /* MFD_CLOEXEC */);
    if (fd < 0) return;
    fd = move_up(fd);
    void *mapping = MAP_FAILED;
    if (ftruncate(fd, SERVE_BYTES) == 0)
        mapping = mmap(NULL, SERVE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (mapping == MAP_FAILED) {
        close(fd);
        return;
    }
    struct serve *fresh = mapping;
    fresh->pid = (uint32_t)getpid();
    fresh->signal = preload.signal;
    __atomic_store_n(&fresh->magic, SERVE_MAGIC, __ATOMIC_RELEASE);
    served = fresh;
    served_fd = fstat(fd, &served_as) == 0 ? fd : -1;
}

void serve_begin(void) {
    if (preload.signal && !handle(preload.signal)) preload.signal = 0;
    open_file();
}

/* The file that came along is the parent's. */
void serve_in_child(void) {
    int errno_before = errno;
    struct stat now;
    if (served) munmap(served, SERVE_BYTES);
    bool open = served_fd >= 0 && fstat(served_fd, &now) == 0;
    if (open && now.st_ino == served_as.st_ino && now.st_dev == served_as.st_dev) close(served_fd);
    served = NULL;
    served_fd = -1;
    open_file();
    errno = errno_before;
}

/* The program uses the signal itself: then it is its own. */
static void give_up(int number, bool installs) {
    if (!installs || number != preload.signal || !number) return;
    preload.signal = 0;
    if (served) served->signal = 0;
}

PRELOAD_API int sigaction(int number, const struct sigaction *new, struct sigaction *old) {
    bool ours = number && number == preload.signal;
    int failed = REAL(sigaction)(number, new, old);
    if (!failed && ours && old && old->sa_handler == on_signal) *old = (struct sigaction){.sa_handler = SIG_DFL};
    if (!failed) give_up(number, new);
    return failed;
}

PRELOAD_API sighandler_t signal(int number, sighandler_t handler) {
    sighandler_t before = REAL(signal)(number, handler);
    if (before != SIG_ERR) give_up(number, true);
    return before == on_signal ? SIG_DFL : before;
}
