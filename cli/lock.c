/* SPDX-License-Identifier: MIT */
/*
 * vigil lock: run a command while holding a lock.
 *
 * The lock is a read-write lock, which is not strictly fair. With --fair, a process first passes a turnstile: a mutex
 * that is first come, first served. A process that shares the lock unlocks the turnstile as soon as it has the lock;
 * a process that has the lock alone unlocks it when its command has ended, so that the next one is woken only once.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

#define LABEL      "vigil lock"
#define HELD       "VIGIL_LOCKS_HELD"
#define OWNER_DIED "VIGIL_OWNER_DIED"

/* In the segment's bytes. */
struct shell_lock {
    vigil_mutex turnstile; /* fair, and so never zero once a process has opened the segment */
    vigil_rwlock lock;
};

struct options {
    int64_t timeout_ns;
    bool fair, shared, wait_status;
    const char *on_owner_died;
};

/* Objects to wait for. */

static int turnstile_try(void *turnstile) {
    return vigil_mutex_trylock(turnstile);
}

static int turnstile_ask(vigil_agent *agent, vigil_request *request, void *turnstile, int64_t timeout_ns,
                         vigil_callback *callback) {
    return vigil_mutex_lock_async(agent, request, turnstile, timeout_ns, callback);
}

static int write_try(void *lock) {
    return vigil_rwlock_write_trylock(lock);
}

static int write_ask(vigil_agent *agent, vigil_request *request, void *lock, int64_t timeout_ns,
                     vigil_callback *callback) {
    return vigil_rwlock_write_lock_async(agent, request, lock, timeout_ns, callback);
}

static int read_try(void *lock) {
    return vigil_rwlock_read_trylock(lock);
}

static int read_ask(vigil_agent *agent, vigil_request *request, void *lock, int64_t timeout_ns,
                    vigil_callback *callback) {
    return vigil_rwlock_read_lock_async(agent, request, lock, timeout_ns, callback);
}

static bool is_ours(int status) {
    return status == VIGIL_OK || status == VIGIL_OWNER_DIED;
}

static int pass_turnstile(struct shell_lock *lock, struct waiting *waiting) {
    const struct want turnstile = {turnstile_try, turnstile_ask, &lock->turnstile};
    int status = waiting_for(waiting, &turnstile);
    if (status != VIGIL_OWNER_DIED) return status;
    return vigil_mutex_consistent(&lock->turnstile); /* it protects nothing but the order */
}

/* A lock, and how it is wanted. */
struct use {
    struct shell_lock *lock;
    const struct options *options;
};

static int acquire(void *data, struct waiting *waiting) {
    struct use *use = data;
    struct shell_lock *lock = use->lock;
    const struct options *options = use->options;
    const struct want to_read = {read_try, read_ask, &lock->lock}, to_write = {write_try, write_ask, &lock->lock};
    int status = options->fair ? pass_turnstile(lock, waiting) : VIGIL_OK;
    if (status != VIGIL_OK) return status;
    status = waiting_for(waiting, options->shared ? &to_read : &to_write);
    if (options->fair && (options->shared || !is_ours(status))) vigil_mutex_unlock(&lock->turnstile);
    return status;
}

static void release(void *data) {
    struct use *use = data;
    struct shell_lock *lock = use->lock;
    const struct options *options = use->options;
    if (options->shared) vigil_rwlock_read_unlock(&lock->lock);
    else vigil_rwlock_write_unlock(&lock->lock);
    if (options->fair && !options->shared) vigil_mutex_unlock(&lock->turnstile);
}

/* The death of the last holder. */

/* Whether to go on all the same. Prints the warning or the failure. */
static bool accept_death(const struct options *options, const char *name) {
    if (strcmp(options->on_owner_died, "fail") == 0) {
        cli_fail(VIGIL_OK,
                 "%s: its last holder was killed while holding it: repair what it left unfinished, "
                 "then use --on-owner-died continue",
                 name);
        return false;
    }
    cli_warn("%s: its last holder was killed while holding it, and may have left something unfinished", name);
    return true;
}

/* VIGIL_LOCKS_HELD: "deploy:4711 backup:4712" are names of locks, and the vigil processes that hold them. */

static pid_t parent_of(pid_t pid) {
    char path[32], line[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, sizeof line, file);
    if (file) fclose(file);
    const char *name_end = read ? strrchr(line, ')') : NULL; /* the name may contain anything */
    return name_end ? (pid_t)strtol(name_end + 4, NULL, 10) : 0;
}

/* A command left in the background has the variable too, but no process waits for it. */
static bool is_ancestor(pid_t pid) {
    pid_t at = getppid();
    while (at > 1 && at != pid) at = parent_of(at);
    return at == pid && pid > 0;
}

static bool is_held_for_us(const char *name) {
    const char *held = getenv(HELD);
    size_t length = strlen(name);
    for (; held && *held; held += strcspn(held, " ")) {
        held += strspn(held, " ");
        if (strncmp(held, name, length) == 0 && held[length] == ':' &&
            is_ancestor((pid_t)strtol(held + length + 1, NULL, 10)))
            return true;
    }
    return false;
}

static bool set_environment(const char *name, bool owner_died) {
    const char *before = getenv(HELD);
    char *held;
    if (asprintf(&held, "%s%s%s:%d", before ? before : "", before ? " " : "", name, (int)getpid()) < 0) return false;
    bool done = setenv(HELD, held, 1) == 0;
    free(held);
    return done && (owner_died ? setenv(OWNER_DIED, "1", 1) : unsetenv(OWNER_DIED)) == 0;
}

static bool prepare(void *data, const char *name, bool owner_died, int *status) {
    const struct use *use = data;
    *status = CLI_RUN_CANNOT;
    if (owner_died && !accept_death(use->options, name)) return false;
    if (set_environment(name, owner_died)) return true;
    *status = cli_fail(VIGIL_ENOMEM, "%s", name);
    return false;
}

/* If the command does not get that far, the next holder is told of the death as well. */
static void started(void *data, bool owner_died) {
    struct use *use = data;
    if (owner_died && !use->options->shared) vigil_rwlock_consistent(&use->lock->lock);
}

static int lock_and_run(vigil_buffer *buffer, const struct options *options, const char *name, char **words) {
    static const struct run_steps steps = {acquire, prepare, started, release};
    struct use use = {vigil_buffer_data(buffer), options};
    struct waiting waiting = {.name = name, .timeout_ns = options->timeout_ns, .wait_status = options->wait_status};
    struct leash leash = {.shared = options->shared, .count = 1};
    uint32_t nobody = 0;
    const vigil_mutex fair = VIGIL_MUTEX_FAIR;
    __atomic_compare_exchange_n(&use.lock->turnstile.word, &nobody, fair.word, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    return run_under(buffer, &leash, &waiting, words, &steps, &use);
}

static int open_and_run(const struct options *options, const char *name, char **words) {
    vigil_buffer *buffer;
    if (is_held_for_us(name))
        return cli_fail(
            VIGIL_OK, "%s: this already runs under that lock, and would wait for itself: use the lock only once", name);
    if (run_open(&buffer, name, LABEL) != VIGIL_OK) return CLI_RUN_CANNOT;
    const char *label = vigil_segment_label(buffer);
    int status =
        strcmp(label, LABEL) == 0 ? lock_and_run(buffer, options, name, words) : run_other_kind(name, label, "lock");
    vigil_buffer_destroy(buffer);
    return status;
}

int cli_lock(int count, char **arguments) {
    struct options given = {.timeout_ns = VIGIL_FOREVER, .on_owner_died = "continue"};
    bool try = false;
    char *name, **words;
    const struct cli_option options[] = {
        {"timeout", 0, CLI_DURATION, &given.timeout_ns},
        {"try", 0, CLI_FLAG, &try},
        {"fair", 0, CLI_FLAG, &given.fair},
        {"shared", 0, CLI_FLAG, &given.shared},
        {"wait-status", 0, CLI_FLAG, &given.wait_status},
        {"on-owner-died", 0, CLI_TEXT, &given.on_owner_died},
        {0},
    };
    if (!run_arguments(count, arguments, options, &name, &words)) return cli_usage_status();
    if (strcmp(given.on_owner_died, "continue") != 0 && strcmp(given.on_owner_died, "fail") != 0)
        return cli_usage("--on-owner-died must be continue or fail, not '%s'", given.on_owner_died);
    if (try) given.timeout_ns = 0;
    run_signals_begin();
    return run_end(open_and_run(&given, name, words));
}
