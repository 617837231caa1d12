/* SPDX-License-Identifier: MIT */
/*
 * vigil lock --at, vigil sem --at: run a command while holding a lock, or a slot, of a cluster.
 *
 * While the command runs, the lease is renewed. If that fails, or the lock is lost, the command and all that it has
 * started get SIGTERM and, before the lease ends on the server, SIGKILL; the exit status is AT_LOST.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../command.h"
#include "../held.h"
#include "../redraw.h"
#include "at.h"

#define AT_LOST        75 /* EX_TEMPFAIL */
#define LOOK_EVERY_MS  500
#define KILL_BEFORE_NS INT64_C(500000000) /* the end of the lease */
#define KILL_AFTER_NS  INT64_C(500000000) /* SIGTERM, if the lease has ended already */
#define LOST_LOOK_MS   20
#define MILLISECOND    INT64_C(1000000)

struct at_lock {
    struct at at;
    vigil_remote_lock *lock;
    vigil_remote_lock_options lock_options;
    bool shared, try, wait_status;
    int64_t timeout_ns;
    uint64_t conflict; /* the exit status if it is not available in time */
    const char *on_owner_died;
    struct command command;

    int status; /* of the request */
    bool ended, held, closed;
    int64_t since_ns, waited_ns;
    bool lost;          /* SIGTERM has been sent */
    int64_t kill_at_ns; /* when SIGKILL is sent */
    int64_t left_ns;
    bool redraws, drawn, looking;
    uint32_t place; /* as last shown */
    char shown[REDRAW_MAX];
};

/* Showing the line. */

static const char *at_ordinal_ending(uint32_t number) {
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    bool teens = number % 100 >= 11 && number % 100 <= 13;
    return endings[teens || number % 10 > 3 ? 0 : number % 10];
}

static uint32_t at_own_place(const vigil_remote_seen *seen) {
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    uint32_t place = 0;
    for (uint32_t i = 0; i < seen->count; i++) {
        if (seen->all[i].holds) continue;
        place++;
        if (strcmp(seen->all[i].process.host, host) == 0) return place;
    }
    return 0;
}

static void at_say_place(const struct at_lock *lock, const vigil_remote_seen *seen, uint32_t place, char *text) {
    char waited[16], holder[256], held[200] = "";
    cli_print_duration(waited, vigil_now_ns() - lock->since_ns);
    if (seen->holders > 1) snprintf(held, sizeof held, "; held by %u", seen->holders);
    else if (seen->holders == 1)
        snprintf(held, sizeof held, "; held by %.180s", at_say_holder(&seen->all[0].process, holder, sizeof holder));
    if (place)
        snprintf(text, REDRAW_MAX, "%s: this machine is %u%s in line of %u, %s%s", lock->at.name, place,
                 at_ordinal_ending(place), seen->waiters, waited, held);
    else snprintf(text, REDRAW_MAX, "%s: in line on this machine, %s%s", lock->at.name, waited, held);
}

static void at_tell_place(const struct at_lock *lock, const vigil_remote_seen *seen, uint32_t place) {
    struct cli_json json;
    json_begin(&json, stderr);
    json_object(&json, NULL);
    json_text(&json, "event", "waiting");
    json_text(&json, "name", lock->at.name);
    json_unsigned(&json, "place", place);
    json_unsigned(&json, "of", seen->waiters);
    json_integer(&json, "waited_ns", vigil_now_ns() - lock->since_ns);
    json_unsigned(&json, "holders", seen->holders);
    if (seen->holders) {
        json_text(&json, "holder_host", seen->all[0].process.host);
        json_unsigned(&json, "holder_pid", seen->all[0].process.pid);
        json_text(&json, "holder_command", seen->all[0].process.text);
    }
    json_end(&json, '}');
}

static void at_looked(int status, const vigil_remote_seen *seen, void *data) {
    struct at_lock *lock = data;
    char text[REDRAW_MAX];
    lock->looking = false;
    if (status != VIGIL_OK || lock->ended) return;
    uint32_t place = at_own_place(seen);
    bool changed = place != lock->place || !lock->shown[0];
    at_say_place(lock, seen, place, text);
    if (lock->redraws) redraw_line(&lock->drawn, text);
    else if (changed && cli_wants_json) at_tell_place(lock, seen, place);
    else if (changed) cli_warn("%s", text);
    lock->place = place;
    snprintf(lock->shown, sizeof lock->shown, "%s", text);
}

static void at_look(struct at_lock *lock) {
    bool shows = lock->redraws || lock->wait_status || cli_wants_json;
    if (!shows || lock->looking || lock->ended) return;
    lock->looking = vigil_remote_look(lock->at.remote, lock->at.name, at_looked, lock) == VIGIL_PENDING;
}

/* Waiting. */

static void at_taken(vigil_remote_lock *handle, int status, void *data) {
    struct at_lock *lock = data;
    (void)handle;
    lock->status = status;
    lock->ended = true;
}

/* VIGIL_CANCELLED: a signal has come, see run_end. */
static int at_await(struct at_lock *lock) {
    int signals_fd = run_deadly_fd();
    lock->since_ns = vigil_now_ns();
    lock->redraws = !cli_wants_json && terminal_redraws();
    int status = vigil_remote_lock_take(lock->lock, lock->shared ? VIGIL_NAMED_SHARED : 0,
                                        lock->try ? 0 : lock->timeout_ns, at_taken, lock);
    if (status != VIGIL_PENDING) lock->status = status, lock->ended = true;
    while (!at_run(&lock->at, &lock->ended, signals_fd, LOOK_EVERY_MS)) {
        if (run_take_deadly(signals_fd)) {
            vigil_remote_lock_cancel(lock->lock);
            lock->status = VIGIL_CANCELLED;
            break;
        }
        at_look(lock);
    }
    lock->ended = true;
    lock->waited_ns = vigil_now_ns() - lock->since_ns;
    redraw_end(&lock->drawn);
    close(signals_fd);
    return lock->status;
}

static int at_not_taken(struct at_lock *lock, int status) {
    char waited[16];
    if (run_deadly()) return CLI_RUN_SIGNAL + run_deadly();
    if (status == VIGIL_EINVAL)
        return cli_fail(VIGIL_OK, "%s: the semaphore has another number of slots than %u", lock->at.name,
                        lock->lock_options.slots);
    if (status != VIGIL_TIMED_OUT) return at_fail(&lock->at, status);
    cli_print_duration(waited, lock->waited_ns);
    if (!lock->try) cli_fail(status, "waited %s for %s%s", waited, lock->at.name, cli_wants_json ? "" : "; gave up");
    else if (cli_wants_json) cli_fail(status, "%s", lock->at.name);
    return (int)lock->conflict; /* with --try, the exit status is enough */
}

/* Holding. */

static void at_tell_granted(const struct at_lock *lock, bool owner_died) {
    struct cli_json json;
    if (!cli_wants_json) return;
    json_begin(&json, stderr);
    json_object(&json, NULL);
    json_text(&json, "event", "granted");
    json_text(&json, "name", lock->at.name);
    json_integer(&json, "waited_ns", lock->waited_ns);
    json_integer(&json, "token", vigil_remote_lock_token(lock->lock));
    json_text(&json, "key", vigil_remote_lock_key(lock->lock));
    json_bool(&json, "owner_died", owner_died);
    json_end(&json, '}');
}

static bool at_accept_death(const struct at_lock *lock) {
    vigil_remote_holder dead = {0};
    char holder[256];
    vigil_remote_lock_death(lock->lock, &dead);
    at_say_holder(&dead, holder, sizeof holder);
    if (strcmp(lock->on_owner_died, "fail") == 0) {
        cli_fail(VIGIL_OK,
                 "%s: its last holder died or lost it while holding it, %s: repair what it left unfinished, then use "
                 "--on-owner-died continue",
                 lock->at.name, holder);
        return false;
    }
    cli_warn("%s: its last holder died or lost it while holding it, and may have left something unfinished: %s",
             lock->at.name, holder);
    return true;
}

static bool at_set_environment(const struct at_lock *lock, bool owner_died) {
    char token[HELD_TOKEN], number[24];
    snprintf(token, sizeof token, "etcd!%s", lock->at.name);
    snprintf(number, sizeof number, "%lld", (long long)vigil_remote_lock_token(lock->lock));
    return held_add(token, lock->shared) && held_say_owner_died(owner_died) && setenv("VIGIL_TOKEN", number, 1) == 0 &&
           setenv("VIGIL_KEY", vigil_remote_lock_key(lock->lock), 1) == 0;
}

static void at_lost(vigil_remote_lock *handle, int64_t left_ns, void *data) {
    struct at_lock *lock = data;
    (void)handle;
    lock->left_ns = left_ns;
    lock->kill_at_ns = vigil_now_ns() + (left_ns > 2 * KILL_BEFORE_NS ? left_ns - KILL_BEFORE_NS : KILL_AFTER_NS);
    if (left_ns && lock->kill_at_ns > vigil_now_ns() + left_ns) lock->kill_at_ns = vigil_now_ns() + left_ns / 2;
    lock->lost = true;
    run_signal_all(&lock->command, SIGTERM);
}

static int at_say_lost(const struct at_lock *lock) {
    char left[16];
    cli_print_duration(left, lock->left_ns);
    if (lock->left_ns)
        cli_fail(VIGIL_OK, "%s: the lease could not be renewed, %s before its end: the command was ended",
                 lock->at.name, left);
    else
        cli_fail(VIGIL_OK,
                 "%s: the lock was lost, because its lease ended or its key was deleted: the command was ended, but "
                 "others may have held the lock meanwhile",
                 lock->at.name);
    return AT_LOST;
}

/* After a loss, look often: what the command has started may be gone without a signal for us. */
static int at_patience_ms(const struct at_lock *lock) {
    if (!lock->lost) return -1;
    int64_t left_ms = (lock->kill_at_ns - vigil_now_ns()) / MILLISECOND + 1;
    return left_ms <= 1 ? 1 : left_ms < LOST_LOOK_MS ? (int)left_ms : LOST_LOOK_MS;
}

/* Until the command has ended, and after a loss, all that it has started. */
static int at_watch_command(struct at_lock *lock) {
    static const bool never = false;
    int status = 0, signals_fd = run_signals_fd();
    bool ended = false;
    while (!ended || (lock->lost && run_signal_all(&lock->command, 0))) {
        at_run(&lock->at, lock->lost ? &never : &lock->lost, signals_fd, at_patience_ms(lock));
        if (lock->lost && vigil_now_ns() >= lock->kill_at_ns) run_signal_all(&lock->command, SIGKILL);
        ended |= run_attend(&lock->command, &status);
    }
    close(signals_fd);
    return lock->lost ? at_say_lost(lock) : status;
}

static void at_describe(const struct at_lock *lock, pid_t pid) {
    char text[64] = "";
    size_t used = 0;
    for (char **word = lock->command.words; *word && used < sizeof text - 1; word++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", *word);
    vigil_remote_lock_describe(lock->lock, text, (uint32_t)pid);
}

static int at_run_command(struct at_lock *lock, bool owner_died) {
    int status = CLI_OK;
    at_tell_granted(lock, owner_died);
    if (owner_died && !at_accept_death(lock)) return CLI_RUN_CANNOT;
    if (!at_set_environment(lock, owner_died)) return cli_fail(VIGIL_ENOMEM, "%s", lock->at.name);
    if (lock->lost) return at_say_lost(lock);
    lock->command.tie_fd = lock->lock_options.ties && !lock->shared ? vigil_remote_lock_tie(lock->lock) : -1;
    run_keep_orphans();
    if (!run_start(&lock->command, &status)) return status;
    if (owner_died && !lock->shared) vigil_remote_lock_consistent(lock->lock);
    return at_watch_command(lock);
}

/* The end. */

static void at_closed(int status, void *data) {
    struct at_lock *lock = data;
    lock->closed = true;
    if (status != VIGIL_OK && lock->held && !lock->lost)
        cli_warn("%s: the release was not confirmed: others get the lock when its lease has ended", lock->at.name);
}

static void at_give_back(struct at_lock *lock) {
    int status = vigil_remote_lock_close(lock->lock, at_closed, lock);
    lock->closed |= status == VIGIL_OK;
    at_run(&lock->at, &lock->closed, -1, -1);
}

/* A look may be pending still. */
static void at_finish(struct at_lock *lock) {
    static const bool never = false;
    while (vigil_remote_close(lock->at.remote) == VIGIL_EBUSY) at_run(&lock->at, &never, -1, 100);
    vigil_agent_destroy(lock->at.agent);
}

static int at_lock_and_run(struct at_lock *lock) {
    char token[HELD_TOKEN];
    snprintf(token, sizeof token, "etcd!%s", lock->at.name);
    enum held_how held = lock->lock_options.slots ? NOT_HELD : held_for_us(token);
    if (held != NOT_HELD)
        return cli_fail(VIGIL_OK, "%s: this already runs under that lock, and would wait for itself: use it only once",
                        lock->at.name);
    run_signals_begin();
    if (!at_open(&lock->at)) return CLI_RUN_CANNOT;
    lock->lock_options.gives_back = true;
    lock->lock_options.ties = true;
    lock->lock_options.on_lost = at_lost;
    lock->lock_options.data = lock;
    int status = vigil_remote_lock_open(&lock->lock, lock->at.remote, lock->at.name, &lock->lock_options);
    if (status == VIGIL_OK) {
        at_describe(lock, getpid());
        status = at_await(lock);
        lock->held = status == VIGIL_OK || status == VIGIL_OWNER_DIED;
        status = lock->held ? at_run_command(lock, status == VIGIL_OWNER_DIED) : at_not_taken(lock, status);
        at_give_back(lock);
    } else if (status == VIGIL_ENAME) {
        status = cli_fail(VIGIL_OK,
                          "%s: invalid name; use 1 to %d characters of A-Z a-z 0-9 . _ - /, and no dot, dash "
                          "or slash first",
                          lock->at.name, VIGIL_REMOTE_NAME);
    } else {
        status = at_fail(&lock->at, status);
    }
    at_finish(lock);
    return status;
}

static int at_start(struct at_lock *lock, struct cli_arguments *parsed) {
    if (!at_read(&lock->at, &parsed->operands, &parsed->operand_count, false)) return cli_usage_status();
    if (parsed->operand_count) return cli_usage("unexpected argument %s", parsed->operands[0]);
    lock->command.words = parsed->command;
    if (!parsed->command || !*parsed->command)
        return cli_usage("the command to run is missing: vigil %s --at etcd://host:2379/NAME -- COMMAND",
                         cli_now->name);
    if (lock->conflict > 255) return cli_usage("-E: an exit status is from 0 to 255");
    return run_end(at_lock_and_run(lock));
}

int at_lock(int count, char **arguments) {
    struct at_lock lock = {.timeout_ns = VIGIL_FOREVER, .conflict = CLI_RUN_TIMED_OUT, .on_owner_died = "continue"};
    struct cli_arguments parsed;
    bool fair = false, alone = false;
    const struct cli_option options[] = {
        AT_OPTIONS(lock.at),
        {"timeout", 'w', CLI_DURATION, &lock.timeout_ns},
        {"try", 'n', CLI_FLAG, &lock.try},
        {"fair", 0, CLI_FLAG, &fair},
        {"shared", 's', CLI_FLAG, &lock.shared},
        {"exclusive", 'x', CLI_FLAG, &alone},
        {"conflict-exit-code", 'E', CLI_COUNT, &lock.conflict},
        {"on-owner-died", 0, CLI_TEXT, &lock.on_owner_died},
        {"wait-status", 0, CLI_FLAG, &lock.wait_status},
        {0},
    };
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    bool known = strcmp(lock.on_owner_died, "continue") == 0 || strcmp(lock.on_owner_died, "fail") == 0;
    if (!known) return cli_usage("--on-owner-died: invalid value '%s'; write continue or fail", lock.on_owner_died);
    if (alone && lock.shared) return cli_usage("choose one of --shared and --exclusive");
    return at_start(&lock, &parsed);
}

int at_sem(int count, char **arguments) {
    struct at_lock lock = {.timeout_ns = VIGIL_FOREVER, .conflict = CLI_RUN_TIMED_OUT, .on_owner_died = "continue"};
    struct cli_arguments parsed;
    bool fair = false;
    uint64_t slots = 0;
    const struct cli_option options[] = {
        AT_OPTIONS(lock.at),
        {"slots", 'j', CLI_COUNT, &slots},
        {"timeout", 'w', CLI_DURATION, &lock.timeout_ns},
        {"try", 'n', CLI_FLAG, &lock.try},
        {"fair", 0, CLI_FLAG, &fair},
        {"conflict-exit-code", 'E', CLI_COUNT, &lock.conflict},
        {"wait-status", 0, CLI_FLAG, &lock.wait_status},
        {0},
    };
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    if (slots < 1 || slots > VIGIL_NAMED_SLOTS)
        return cli_usage("--slots must be a number from 1 to %u; it is the same on all machines", VIGIL_NAMED_SLOTS);
    lock.lock_options.slots = (uint32_t)slots;
    return at_start(&lock, &parsed);
}
