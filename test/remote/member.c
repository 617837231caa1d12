/* SPDX-License-Identifier: MIT */
/*
 * member - a process of a simulated machine that uses locks of a cluster, for the scripts here.
 *
 *     member crowd AT NAME COUNT LABEL     COUNT requests at once, one after the other in line; prints "queued" then,
 *                                          and "LABEL NUMBER TOKEN" for each that is granted
 *     member keep AT NAME TTL LABEL        takes and releases it, and keeps the handle open for ever: prints "LABEL
 *                                          kept" then. TTL is in seconds
 *     member storm AT NAME LEDGER SEED     see storm.py: LEDGER is its socket
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vigil/remote.h>

#define SECOND_NS INT64_C(1000000000)

static vigil_agent *agent;
static vigil_remote *remote;

struct request {
    vigil_remote_lock *lock;
    int number;
    int status;
    bool ended, released, lost;
};

static void member_fail(const char *what, int status) {
    fprintf(stderr, "member: %s: %s: %s\n", what, vigil_status_name(status), vigil_remote_why(remote));
    exit(1);
}

static void member_check(const char *what, int status) {
    if (status != VIGIL_OK && status != VIGIL_PENDING) member_fail(what, status);
}

/* Runs the agent for so long, or until *done. */
static void member_run(const bool *done, int timeout_ms) {
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    int64_t until_ns = vigil_now_ns() + timeout_ms * (SECOND_NS / 1000);
    while (!*done) {
        int64_t left_ns = until_ns - vigil_now_ns();
        if (timeout_ms >= 0 && left_ns <= 0) return;
        poll(&seat, 1, timeout_ms < 0 ? -1 : (int)(left_ns / 1000000 + 1));
        vigil_agent_dispatch(agent);
    }
}

static void member_ended(vigil_remote_lock *lock, int status, void *data) {
    struct request *request = data;
    (void)lock;
    request->status = status;
    request->ended = true;
}

static void member_released(vigil_remote_lock *lock, int status, void *data) {
    struct request *request = data;
    (void)lock;
    (void)status; /* an error: the lease ends it */
    request->released = true;
}

static void member_closed(int status, void *data) {
    (void)status;
    *(bool *)data = true;
}

static void member_close(struct request *request) {
    bool closed = false;
    int status;
    while ((status = vigil_remote_lock_close(request->lock, member_closed, &closed)) == VIGIL_EBUSY)
        member_run(&closed, 10); /* a release is pending */
    member_check("close", status);
    if (status == VIGIL_PENDING) member_run(&closed, -1);
}

static bool member_holds(const struct request *request) {
    return request->ended && (request->status == VIGIL_OK || request->status == VIGIL_OWNER_DIED);
}

static void member_release(struct request *request) {
    request->released = false;
    int status = vigil_remote_lock_release(request->lock, member_released, request);
    member_check("release", status);
    if (status == VIGIL_PENDING) member_run(&request->released, -1);
}

/* So that the number of the cluster is known, and a request is in the line of the machine when it has been made. */
static void member_warm_up(void) {
    struct request request = {0};
    member_check("open", vigil_remote_lock_open(&request.lock, remote, "warm-up", NULL));
    vigil_remote_lock_take(request.lock, VIGIL_NAMED_SHARED, VIGIL_FOREVER, member_ended, &request);
    member_run(&request.ended, -1);
    if (!member_holds(&request)) member_fail("warm-up", request.status);
    member_close(&request);
}

/* A crowd. */

struct crowd {
    struct request request;
    const char *label;
    int *left;
};

static void crowd_granted(vigil_remote_lock *lock, int status, void *data) {
    struct crowd *one = data;
    if (status != VIGIL_OK) member_fail("take", status);
    printf("%s %d %lld\n", one->label, one->request.number, (long long)vigil_remote_lock_token(lock));
    member_check("release", vigil_remote_lock_release(lock, member_released, &one->request));
    --*one->left;
}

static int crowd_main(const char *name, int count, const char *label) {
    static const bool never = false;
    struct crowd *all = calloc((size_t)count, sizeof *all);
    int left = count;
    member_warm_up();
    for (int i = 0; i < count; i++) {
        all[i] = (struct crowd){.request.number = i, .label = label, .left = &left};
        member_check("open", vigil_remote_lock_open(&all[i].request.lock, remote, name, NULL));
        member_check("take", vigil_remote_lock_take(all[i].request.lock, 0, VIGIL_FOREVER, crowd_granted, &all[i]));
    }
    puts("queued");
    while (left) member_run(&never, 50);
    for (int i = 0; i < count; i++) member_close(&all[i].request);
    free(all);
    return 0;
}

static int keep_main(const char *name, const char *label) {
    static const bool never = false;
    struct request request = {0};
    member_check("open", vigil_remote_lock_open(&request.lock, remote, name, NULL));
    member_check("take", vigil_remote_lock_take(request.lock, 0, VIGIL_FOREVER, member_ended, &request));
    member_run(&request.ended, -1);
    if (!member_holds(&request)) member_fail("take", request.status);
    member_release(&request);
    printf("%s kept\n", label);
    member_run(&never, -1);
    return 0;
}

/* A storm. */

static FILE *ledger;
static uint64_t seed;

static unsigned storm_random(unsigned below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % below);
}

/* Tells the ledger, and returns its reply: "ok", "no", "end". */
__attribute__((format(printf, 1, 2))) static const char *storm_tell(const char *format, ...) {
    static char reply[16];
    va_list list;
    va_start(list, format);
    vfprintf(ledger, format, list);
    va_end(list);
    fputc('\n', ledger);
    fflush(ledger);
    if (!fgets(reply, sizeof reply, ledger)) exit(1); /* the storm is over */
    reply[strcspn(reply, "\n")] = 0;
    return reply;
}

static void storm_lost(vigil_remote_lock *lock, int64_t left_ns, void *data) {
    struct request *request = data;
    (void)lock;
    (void)left_ns;
    request->lost = true;
}

static void storm_open(struct request *request, const char *name) {
    vigil_remote_lock_options options = {.gives_back = storm_random(2) != 0, .on_lost = storm_lost, .data = request};
    member_check("open", vigil_remote_lock_open(&request->lock, remote, name, &options));
}

static void storm_let_go(struct request *request, const char *name) {
    if (storm_random(4)) {
        member_release(request);
        return;
    }
    member_close(request); /* as `vigil lock` does */
    storm_open(request, name);
}

/* While it holds the lock: some writes, with pauses, mostly short. A holder that has lost it stops; some do not. */
static void storm_hold(struct request *request, const char *name) {
    bool stubborn = storm_random(3) == 0;
    int pause_ms = storm_random(20) == 0 ? 1500 : (int)storm_random(20);
    long long token = vigil_remote_lock_token(request->lock);
    storm_tell("granted %lld %d", token, request->status == VIGIL_OWNER_DIED);
    bool told = false;
    for (unsigned i = storm_random(4) + 1; i && (!request->lost || stubborn); i--) {
        storm_tell("write %lld", token);
        member_run(told ? &(bool){false} : &request->lost, pause_ms);
        if (request->lost && !told) storm_tell("lost %lld", token);
        told = request->lost;
    }
    if (request->lost) {
        if (!told) storm_tell("lost %lld", token);
    } else if (request->status == VIGIL_OWNER_DIED && storm_random(4)) {
        vigil_remote_lock_consistent(request->lock);
        storm_tell("consistent %lld", token);
    }
    storm_tell("release %lld %d", token, request->lost);
    storm_let_go(request, name);
}

/* It shares the lock for a moment, or has a slot of a semaphore: no writes, and nothing for the ledger. */
static void storm_visit(struct request *request, unsigned how) {
    request->ended = request->lost = false;
    member_check("take", vigil_remote_lock_take(request->lock, how, VIGIL_FOREVER, member_ended, request));
    member_run(&request->ended, -1);
    if (!member_holds(request)) return;
    member_run(&request->lost, (int)storm_random(20));
    member_release(request);
}

static void storm_visit_pool(const char *name) {
    struct request request = {0};
    vigil_remote_lock_options options = {.slots = 2, .on_lost = storm_lost, .data = &request};
    char pool[64];
    snprintf(pool, sizeof pool, "%s-pool", name);
    member_check("open", vigil_remote_lock_open(&request.lock, remote, pool, &options));
    storm_visit(&request, 0);
    member_close(&request);
}

static void storm_turn(struct request *request, const char *name, bool calm) {
    unsigned what = calm ? 9 : storm_random(10);
    int64_t timeout_ns = what == 0 ? 0 : what == 1 ? SECOND_NS / 3 : VIGIL_FOREVER;
    request->ended = request->lost = false;
    int status = vigil_remote_lock_take(request->lock, 0, timeout_ns, member_ended, request);
    member_check("take", status);
    if (what == 2) {
        member_run(&request->ended, (int)storm_random(30));
        if (!request->ended && vigil_remote_lock_cancel(request->lock) == VIGIL_OK) return;
    }
    member_run(&request->ended, -1);
    if (member_holds(request)) storm_hold(request, name);
    else storm_tell("ended %d", request->status);
    if (what == 3) member_run(&(bool){false}, (int)storm_random(4000)); /* it keeps the lock, perhaps, or a lease */
}

static int storm_main(const char *name, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) return 1;
    ledger = fdopen(fd, "r+");
    struct request request = {0};
    storm_tell("member %d", (int)getpid());
    storm_open(&request, name);
    for (const char *next; strcmp(next = storm_tell("next"), "end") != 0;) {
        bool calm = strcmp(next, "calm") == 0;
        unsigned visit = calm ? 9 : storm_random(10);
        if (visit == 0) storm_visit(&request, VIGIL_NAMED_SHARED);
        else if (visit == 1) storm_visit_pool(name);
        else storm_turn(&request, name, calm);
        if (storm_random(5)) continue;
        member_close(&request);
        storm_open(&request, name);
    }
    member_close(&request);
    storm_tell("bye");
    fclose(ledger);
    return 0;
}

static void member_usage(void) {
    fputs("usage: member crowd AT NAME COUNT LABEL\n"
          "       member keep AT NAME TTL LABEL\n"
          "       member storm AT NAME LEDGER SEED\n",
          stderr);
    exit(2);
}

int main(int count, char **arguments) {
    const char *mode = count == 6 ? arguments[1] : "";
    bool storm = strcmp(mode, "storm") == 0, keep = strcmp(mode, "keep") == 0;
    if (!storm && !keep && strcmp(mode, "crowd") != 0) member_usage();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    vigil_remote_options options = {.ttl_ns = (storm ? 2 : keep ? atoi(arguments[4]) : 10) * SECOND_NS};
    member_check("agent", vigil_agent_create(&agent, 0));
    member_check("open", vigil_remote_open(&remote, agent, arguments[2], &options));
    seed = storm ? strtoull(arguments[5], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) | 1 : 1;
    int status = storm  ? storm_main(arguments[3], arguments[4])
                 : keep ? keep_main(arguments[3], arguments[5])
                        : crowd_main(arguments[3], atoi(arguments[4]), arguments[5]);
    static const bool never = false;
    while (vigil_remote_close(remote) == VIGIL_EBUSY) member_run(&never, 10);
    vigil_agent_destroy(agent);
    return status;
}
