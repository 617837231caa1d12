/* SPDX-License-Identifier: MIT */
/*
 * actors.h - other processes, which share a segment with the test and do what it tells them. Include after support.h
 * and child.h.
 *
 * The test directs and observes. It does not wait in the segment itself: so it has no threads when it forks, and the
 * process that discovers the death of an actor is another actor.
 *
 *     actor_begin(&actors[0], wait_32, 0);                   an act, which an actor performs; where in the segment
 *     AWAIT(vigil_waiters(at(0)) == 1);
 *     assert_int_equal(vigil_notify(at(0), 1), 1);
 *     assert_hears(&actors[0], VIGIL_OK);                   what the act returned
 */
#ifndef VIGIL_TEST_ACTORS_H
#define VIGIL_TEST_ACTORS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "vigil/request.h"
#include "vigil/segment.h"

/* The segments of a test. Offsets from OTHER on are in the second one. */
#define OTHER 0x100000u
static vigil_buffer *buffers[2]; /* this process's own */
static int fds[2];               /* descriptors through which the actors open them */

static inline void *at(uint32_t offset) {
    return (char *)vigil_buffer_data(buffers[offset / OTHER]) + offset % OTHER;
}

/* An act runs in an actor. If it returns VIGIL_PENDING, a second result follows. */
struct order;
typedef int64_t act(const struct order *order);
struct order {
    act *act;
    uint32_t where, tag; /* the tag comes back with the result */
    int64_t number;
    bool in_thread; /* in a thread of its own */
};

struct answer {
    int64_t status;
    uint32_t tag, padding;
};

#define ACTORS 8
static struct actor {
    pid_t pid;
    int socket;
} actors[ACTORS];

/* In the actor. */

static int director = -1; /* socket to the test */
static vigil_agent *actors_agent;
static bool deaf; /* does not serve its agent */

static inline void say(uint32_t tag, int64_t status) {
    struct answer answer = {.status = status, .tag = tag};
    CHECK(send(director, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer);
}

static inline void *act_in_thread(void *argument) {
    struct order *order = argument;
    say(order->tag, order->act(order));
    free(order);
    return NULL;
}

static inline void perform(const struct order *order) {
    if (!order->in_thread) {
        say(order->tag, order->act(order));
        return;
    }
    pthread_t thread;
    struct order *copy = malloc(sizeof *copy);
    CHECK(copy != NULL);
    *copy = *order;
    CHECK(pthread_create(&thread, NULL, act_in_thread, copy) == 0 && pthread_detach(thread) == 0);
}

/* An event loop for orders and for the agent. At the end of the orders it leaves the segment properly. */
static inline void serve(void) {
    for (;;) {
        struct order order;
        struct pollfd sources[] = {{.fd = director, .events = POLLIN},
                                   {.fd = vigil_agent_fd(actors_agent), .events = POLLIN}};
        CHECK(poll(sources, deaf ? 1 : 2, -1) > 0 || errno == EINTR);
        if (!deaf) CHECK(vigil_agent_dispatch(actors_agent) >= 0);
        if (!sources[0].revents) continue;
        ssize_t bytes = recv(director, &order, sizeof order, MSG_DONTWAIT);
        if (bytes == 0) return;
        if (bytes == sizeof order) perform(&order);
        else CHECK(bytes < 0 && (errno == EAGAIN || errno == EINTR));
    }
}

static void *actors_avoid; /* an address that is occupied in the actors, so that the segment cannot be mapped there */

static inline void actor_join_segments(void) {
    for (int i = 0; i < 2; i++) {
        if (!buffers[i]) continue;
        CHECK(vigil_buffer_destroy(buffers[i]) == 0); /* inherited */
        if (actors_avoid) mmap(actors_avoid, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(vigil_segment_open_fd(&buffers[i], fds[i]) == VIGIL_OK);
    }
}

static inline void actor_main(void) {
    actor_join_segments();
    CHECK(vigil_agent_create(&actors_agent, 0) == VIGIL_OK);
    say(0, VIGIL_OK);
    serve();
    CHECK(vigil_agent_destroy(actors_agent) == VIGIL_OK);
    for (int i = 0; i < 2; i++) CHECK(!buffers[i] || vigil_buffer_destroy(buffers[i]) == 0);
    _exit(0);
}

/* In the test. */

static inline int64_t actor_hears_tagged(struct actor *actor, uint32_t *tag) {
    struct answer answer = {.status = UNDECIDED};
    ssize_t bytes;
    do bytes = recv(actor->socket, &answer, sizeof answer, 0);
    while (bytes < 0 && errno == EINTR);
    assert_int_equal(bytes, sizeof answer);
    if (tag) *tag = answer.tag;
    return answer.status;
}

static inline int64_t actor_hears(struct actor *actor) {
    return actor_hears_tagged(actor, NULL);
}

#define assert_hears(actor, expected) assert_int_equal(actor_hears(actor), expected)

/* No result has arrived from it. */
static inline bool actor_silent(struct actor *actor) {
    struct pollfd source = {.fd = actor->socket, .events = POLLIN};
    return poll(&source, 1, 0) == 0;
}

/*
 * The first actor that reports, which must report `expected`. A lock that is not fair, or a busy machine, does not keep
 * the order.
 */
static inline struct actor *first_to_say(int64_t expected) {
    for (;; sched_yield()) {
        for (int i = 0; i < ACTORS; i++) {
            if (!actors[i].pid || actor_silent(&actors[i])) continue;
            assert_hears(&actors[i], expected);
            return &actors[i];
        }
    }
}

static inline bool all_silent(void) {
    bool silent = true;
    for (int i = 0; i < ACTORS; i++) silent &= !actors[i].pid || actor_silent(&actors[i]);
    return silent;
}

static inline void close_sockets(void) {
    for (int i = 0; i < ACTORS; i++) {
        if (actors[i].pid) close(actors[i].socket);
    }
}

static inline void actor_fork(struct actor *actor, void (*main)(void)) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = fork_here();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_sockets();
        close(pair[0]);
        director = pair[1];
        main();
    }
    assert_true(pid > 0);
    close(pair[1]);
    *actor = (struct actor){.pid = pid, .socket = pair[0]};
}

static inline void actor_start_by(struct actor *actor, void (*main)(void)) {
    actor_fork(actor, main);
    assert_hears(actor, VIGIL_OK);
}

static inline void actor_start(struct actor *actor) {
    actor_start_by(actor, actor_main);
}

static inline void actors_start_from(int first, int end) {
    for (int i = first; i < end; i++) actor_start(&actors[i]);
}

static inline void actors_start(int count) {
    actors_start_from(0, count);
}

static inline void actor_order(struct actor *actor, const struct order *order) {
    assert_int_equal(send(actor->socket, order, sizeof *order, MSG_NOSIGNAL), sizeof *order);
}

static inline void actor_begin(struct actor *actor, act *what, uint32_t where) {
    actor_order(actor, &(struct order){.act = what, .where = where});
}

static inline int64_t actor_does_with(struct actor *actor, act *what, uint32_t where, int64_t number) {
    actor_order(actor, &(struct order){.act = what, .where = where, .number = number});
    return actor_hears(actor);
}

static inline int64_t actor_does(struct actor *actor, act *what, uint32_t where) {
    return actor_does_with(actor, what, where, 0);
}

/* How actors end: killed; stopped and continued; or dismissed, and then they leave. */

static inline void actor_gone(struct actor *actor) {
    close(actor->socket);
    actor->pid = 0;
}

static inline void actor_kill(struct actor *actor) {
    assert_true(actor->pid > 0); /* kill(-1) would kill all processes */
    assert_int_equal(kill(actor->pid, SIGKILL), 0);
    assert_int_equal(waitpid(actor->pid, NULL, 0), actor->pid);
    actor_gone(actor);
}

static inline void actor_stop(struct actor *actor) {
    int status;
    assert_int_equal(kill(actor->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(actor->pid, &status, WUNTRACED), actor->pid);
    assert_true(WIFSTOPPED(status));
}

static inline void actor_continue(struct actor *actor) {
    assert_int_equal(kill(actor->pid, SIGCONT), 0);
}

/*
 * A failed test may leave an actor stopped, or in a wait without end. It is continued, so that the alarm of fork_here
 * ends it in the second case: a stopped process is not killed by SIGALRM, and the failure would never be reported.
 */
static inline void actor_dismiss(struct actor *actor) {
    pid_t pid = actor->pid;
    actor_continue(actor);
    actor_gone(actor);
    assert_int_equal(exit_status_of(pid), 0);
}

/* Fixtures. */

static inline void segment_new(int which, const vigil_segment_options *options) {
    assert_int_equal(vigil_segment_create_anonymous(&buffers[which], options), VIGIL_OK);
    fds[which] = vigil_segment_fd(buffers[which]);
    assert_true(fds[which] >= 0);
}

static inline void segment_end(int which) {
    if (!buffers[which]) return;
    assert_int_equal(vigil_buffer_destroy(buffers[which]), 0);
    buffers[which] = NULL;
    close(fds[which]);
}

/* Removes what a failed test has left behind. */
static inline void clear_away(void) {
    for (int i = 0; i < ACTORS; i++) {
        if (actors[i].pid) actor_kill(&actors[i]);
    }
    for (int i = 0; i < 2; i++) buffers[i] = NULL;
}

static int set_up(void **state) {
    (void)state;
    clear_away();
    segment_new(0, NULL);
    return 0;
}

/* The remaining actors must be able to leave properly. */
static inline void actors_dismiss(void) {
    for (int i = 0; i < ACTORS; i++) {
        if (actors[i].pid) actor_dismiss(&actors[i]);
    }
}

static int tear_down(void **state) {
    (void)state;
    actors_dismiss();
    segment_end(0);
    segment_end(1);
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* Acts that several tests use. */

static inline int64_t nothing(const struct order *order) {
    (void)order;
    return VIGIL_OK;
}

static inline int64_t wait_32(const struct order *order) {
    return vigil_wait32(at(order->where), 0, VIGIL_FOREVER);
}

/* Two actors perform `what`, which goes on until the test ends it; a third one is killed at random moments. */
#define ACTOR_KILLS (UNDER_TSAN ? 10 : 60)

static inline void actor_repeats(struct actor *actor, act *what, int64_t seed) {
    actor_order(actor, &(struct order){.act = what, .number = seed, .in_thread = seed % 2});
}

static inline void actors_kill_at_random(act *what) {
    uint64_t seed = 1;
    actors_start(3);
    actor_repeats(&actors[0], what, 1);
    actor_repeats(&actors[1], what, 2);
    for (int kills = 0; kills < ACTOR_KILLS; kills++) {
        actor_repeats(&actors[2], what, kills + 3);
        let_pass((int64_t)(random_next(&seed) % 400) * MICROSECOND);
        actor_kill(&actors[2]);
        actor_start(&actors[2]);
    }
}

/* Asynchronous operations of an actor, by their tags. */
#define OPS 64
static union actors_op {
    vigil_op op; /* first, as in a request */
    vigil_request request;
} actors_ops[OPS];

static inline void report_outcome(vigil_op *op, int status) {
    say((uint32_t)((union actors_op *)op - actors_ops), status);
}

static inline int64_t cancel_op(const struct order *order) {
    return vigil_cancel(&actors_ops[order->tag].op);
}

static inline int64_t wait_async(const struct order *order) {
    int64_t timeout_ns = order->number ? order->number : VIGIL_FOREVER;
    return vigil_wait32_async(actors_agent, &actors_ops[order->tag].op, at(order->where), 0, timeout_ns,
                              report_outcome);
}

static inline int64_t actor_does_tagged(struct actor *actor, act *what, uint32_t where, uint32_t tag) {
    actor_order(actor, &(struct order){.act = what, .where = where, .tag = tag});
    return actor_hears(actor);
}

static inline int64_t leave_segment(const struct order *order) {
    int64_t status = vigil_buffer_destroy(buffers[order->where / OTHER]);
    if (status >= 0) buffers[order->where / OTHER] = NULL;
    return status;
}

/* The process continues as another program, which ends with its orders. */
static inline int64_t become_another_program(const struct order *order) {
    (void)order;
    CHECK(dup2(director, STDIN_FILENO) == STDIN_FILENO);
    execl("/bin/cat", "cat", (char *)NULL);
    return VIGIL_ESYSTEM;
}

/* Without leaving the segment. */
static inline int64_t just_exit(const struct order *order) {
    (void)order;
    exit(0);
}

/* Fork without exec: a child that ends at once, and one that outlives its parent until this pipe ends. */

static int heirs_life[2];

static inline int64_t fork_and_reap(const struct order *order) {
    (void)order;
    pid_t child = fork();
    if (child == 0) _exit(0);
    return child > 0 && waitpid(child, NULL, 0) == child ? VIGIL_OK : VIGIL_ESYSTEM;
}

static inline int64_t fork_heir(const struct order *order) {
    (void)order;
    char byte;
    pid_t child = fork();
    if (child != 0) return child > 0 ? VIGIL_OK : VIGIL_ESYSTEM;
    close(heirs_life[1]);
    close(director);
    _exit(read(heirs_life[0], &byte, 1) == 0 ? 0 : 1);
}

static inline void allow_heirs(void) {
    assert_int_equal(pipe2(heirs_life, O_CLOEXEC), 0);
}

static inline void end_heirs(void) {
    close(heirs_life[0]);
    close(heirs_life[1]);
}

#endif
