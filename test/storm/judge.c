/* SPDX-License-Identifier: MIT */
/*
 * The judge: starts the members, kills them, keeps the books of the dead (ledger.h), and reports.
 *
 *     storm [--queue] [--kills N] [--members N] [--seed S] [--json FILE]
 *
 * The storm of tokens is in storm.c and member.c, that of the queue in queue_judge.c and queue.c. The last line of the
 * output says whether the library passed. What is killed when depends on the scheduler: a seed makes the same choices,
 * not the same storm.
 */
#include "judge.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "shm/member.h"

extern char **environ;

struct options options;
struct process processes[MEMBERS_MOST];
struct member *judges;
uint64_t judge_seed;
unsigned members;
vigil_agent *agent;
void (*take_part)(void);
struct books books;

static uint64_t lives; /* how many members there have been */
static int segment_fd, ledger_fd;
static vigil_buffer *buffer;
static int64_t begin_ns;

/* Reporting a failure. */

static const char *const activity_names[] = {
#define ACTIVITY_TEXT(name, text) text,
    ACTIVITIES(ACTIVITY_TEXT)
#undef ACTIVITY_TEXT
};

static void print_member(unsigned number) {
    const struct member *member = &ledger->members[number];
    fprintf(stderr, "  member %u, process %ld, life %" PRIu64 "%s\n", number, (long)processes[number].pid,
            member->life / 2, member->life % 2 ? ", killed" : "");
    for (unsigned j = 0; j < ACTORS; j++) {
        const struct actor *actor = &member->actors[j];
        if (j > THE_LOOP && activity_of(actor->activity) == STARTING) continue;
        fprintf(stderr, "    %-9s %-18s %u  progress %u, hand %u + %u\n",
                j < THE_LOOP      ? "thread"
                : j == THE_LOOP   ? "loop"
                : j < FIRST_ASKER ? "wait"
                : j < THE_MAIN    ? "request"
                                  : "main",
                activity_names[activity_of(actor->activity)], actor->activity >> 8, actor->progress,
                tokens_of(actor->hand), offered_of(actor->hand));
    }
}

static void print_state(void) {
    fprintf(stderr, "moment %u; what each actor was doing:\n", ledger->moment);
    for (unsigned i = 0; i < members; i++) print_member(i);
    for (unsigned i = 0; i < MUTEXES; i++) {
        const struct payload *payload = &ledger->payload[i];
        fprintf(stderr, "  mutex %u: word %08x, inside %" PRIx64 ", %" PRIu64 " and %" PRIu64 "\n", i,
                arena->locks[i].mutex.word, payload->inside, payload->first, payload->second);
    }
    fprintf(stderr, "  queue: %s, last put %" PRIu64 ", last got %" PRIu64 "\n", arena->queue.full ? "full" : "empty",
            arena->queue.last_put, arena->queue.last_got);
    fprintf(stderr,
            "storm%s --kills %" PRIu64 " --members %" PRIu64 " --seed %" PRIu64 ": failed after %" PRIu64 " kills\n",
            ledger->is_queue ? " --queue" : "", options.kills, options.members, options.seed, books.kills);
}

static void print_waiter(const vigil_look *look, const vigil_seen_waiter *waiter) {
    uint32_t pid = 0;
    for (uint32_t i = 0; i < look->member_count; i++) {
        if (look->members[i].number == waiter->number) pid = look->members[i].pid;
    }
    fprintf(stderr, "    process %u, ", pid);
    if (waiter->thread_id) fprintf(stderr, "thread %u", waiter->thread_id);
    else fprintf(stderr, "event loop");
    fprintf(stderr, ", for %.3f s%s\n", (double)(look->at_ns - waiter->since_ns) / 1e9,
            waiter->called ? ", called" : "");
}

/* All lines of the segment, seen from outside: none of its locks is taken. */
static void print_lines(void) {
    vigil_observer *observer = NULL;
    vigil_look look;
    if (vigil_observer_open_fd(&observer, segment_fd) != VIGIL_OK) return;
    if (vigil_observer_look(observer, &look) != VIGIL_OK) return;
    for (uint32_t i = 0; i < look.line_count; i++) {
        const vigil_seen_line *line = &look.lines[i];
        fprintf(stderr, "  %s at byte %" PRIu64 ": word %08x%s, %u in line\n", vigil_seen_kind_name(line->kind),
                line->offset, line->value, line->owner_died ? ", its owner died" : "", line->waiter_count);
        for (uint32_t j = 0; j < line->waiter_count; j++) print_waiter(&look, &line->waiters[j]);
    }
    vigil_observer_close(observer);
}

static void kill_all(void) {
    for (unsigned i = 0; i < members; i++) {
        if (processes[i].pid > 0) kill(processes[i].pid, SIGKILL);
    }
}

/* The judge itself is stuck, which means in the library. */
static void on_stuck(int signal_number) {
    (void)signal_number;
    fprintf(stderr, "\nthe judge itself is stuck\n");
    print_state();
    kill_all();
    _exit(1);
}

void judge_failures(void) {
    alarm(120);
    if (!NOW(ledger->failures)) return;
    print_state();
    for (unsigned i = 0; i < members; i++) {
        if (processes[i].pid > 0) kill(processes[i].pid, SIGSTOP);
    }
    fflush(NULL);
    alarm(5);
    print_lines();
    kill_all();
    exit(1);
}

void nap_ns(int64_t duration_ns) {
    struct timespec time = {duration_ns / SECOND, duration_ns % SECOND};
    nanosleep(&time, NULL);
}

/* Members. */

void member_start(unsigned number) {
    char number_text[16], seed_text[24], segment_text[16], ledger_text[16];
    struct member *member = &ledger->members[number];
    struct process *process = &processes[number];
    PUT(member->leave, 0);
    PUT(member->life, ++lives * 2);
    snprintf(number_text, sizeof number_text, "%u", number);
    snprintf(seed_text, sizeof seed_text, "%" PRIu64, random_next(&judge_seed));
    snprintf(segment_text, sizeof segment_text, "%d", segment_fd);
    snprintf(ledger_text, sizeof ledger_text, "%d", ledger_fd);
    char *arguments[] = {"storm-member", "--member", number_text, seed_text, segment_text, ledger_text, NULL};
    for (unsigned i = 0; i < ACTORS; i++) process->seen_ns[i] = vigil_now_ns();
    memset(process->seen, 0, sizeof process->seen);
    if (posix_spawn(&process->pid, "/proc/self/exe", NULL, NULL, arguments, environ) != 0) {
        fprintf(stderr, "a member cannot be started\n");
        kill_all();
        exit(2);
    }
}

/* Its page is closed: the actor writes there no more. */
static void take_over_page(struct actor *actor) {
    for (unsigned i = 0; i < TALLY_COUNT; i++) books.tallies[i] += actor->tallies[i];
    for (unsigned i = 0; i < MUTEXES; i++) {
        books.grants[i] += actor->grants[i];
        books.fresh_deaths[i] += actor->fresh_deaths[i];
    }
    books.died_with += tokens_of(actor->hand);
    memset(actor, 0, sizeof *actor);
}

/* Also records what the actor was doing at that moment. */
static void take_over_killed(struct actor *actor) {
    enum activity activity = activity_of(actor->activity);
    unsigned place = activity == RESTING ? 0 : (actor->activity >> 8) % PLACES_AT;
    books.killed[activity][place]++;
    books.offered += offered_of(actor->hand);
    take_over_page(actor);
}

void member_left(unsigned number) {
    for (unsigned i = 0; i < ACTORS; i++) take_over_page(&ledger->members[number].actors[i]);
    processes[number].pid = 0;
}

/*
 * If no actor comes inside a mutex between two kills, the second killed process may have taken it from the first. Not
 * if the mutex is free and does not say that its owner died: then it was not held, or an actor has been inside since.
 * (The word is read first.)
 */
static void note_chain(void) {
    static uint64_t inside_before;
    bool held = NOW(arena->locks[WITH_COND].mutex.word) != 0;
    uint64_t inside = NOW(ledger->payload[WITH_COND].first);
    if (books.kills && held && inside == inside_before) books.chained++;
    inside_before = inside;
}

void member_killed(unsigned number) {
    struct process *process = &processes[number];
    int status = 0;
    PUT(ledger->members[number].life, ledger->members[number].life | 1);
    kill(process->pid, SIGKILL);
    waitpid(process->pid, &status, 0);
    DEMAND(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "member %u had ended before, with status %x", number,
           (unsigned)status);
    for (unsigned i = 0; i < ACTORS; i++) take_over_killed(&ledger->members[number].actors[i]);
    process->pid = 0;
    note_chain();
    books.kills++;
}

void signal_member(unsigned number, int signal_number) {
    kill(processes[number].pid, signal_number);
}

/* Waits until it has stopped, so that it cannot turn out later to have ended before. */
void member_stop(unsigned number) {
    int status = 0;
    signal_member(number, SIGSTOP);
    waitpid(processes[number].pid, &status, WUNTRACED);
    DEMAND(WIFSTOPPED(status), "member %u ended with status %x", number, (unsigned)status);
    books.stops++;
}

bool everybody_lives(void) {
    for (unsigned i = 0; i < members; i++) {
        int status = 0;
        if (!processes[i].pid || waitpid(processes[i].pid, &status, WNOHANG) == 0) continue;
        processes[i].pid = 0;
        DEMAND(false, "member %u ended with status %x", i, (unsigned)status);
        return false;
    }
    return true;
}

void some_stop(unsigned number) {
    member_stop(number);
    nap_ns((int64_t)random_below(&judge_seed, one_in(&judge_seed, 8) ? 80 : 10) * MILLISECOND);
}

static bool has_begun(const struct actor *actor) {
    return NOW(actor->progress) || activity_of(NOW(actor->activity)) == IN_COND;
}

/* Usually no member is struck before all are at work; sometimes one is that is still joining. */
void let_them_begin(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    for (unsigned i = 0; i < members && !one_in(&judge_seed, 20); i++) {
        while (!has_begun(&ledger->members[i].actors[0])) {
            nap_ns(MILLISECOND / 5);
            take_part();
            everybody_lives();
            DEMAND(vigil_now_ns() < until_ns, "member %u does not begin", i);
            judge_failures();
        }
    }
    nap_ns((int64_t)random_below(&judge_seed, 3000) * MICROSECOND);
}

/* Takes part where needed, until all members have left. */
void all_leave(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    PUT(ledger->moment, ledger->moment / 4 * 4 + END);
    for (unsigned i = 0; i < members; i++) {
        int status = 0;
        while (waitpid(processes[i].pid, &status, WNOHANG) == 0) {
            nap_ns(MILLISECOND);
            take_part();
            DEMAND(vigil_now_ns() < until_ns, "member %u does not leave", i);
            judge_failures();
        }
        DEMAND(WIFEXITED(status) && WEXITSTATUS(status) == 0, "member %u left with status %x", i, (unsigned)status);
        member_left(i);
    }
    judge_failures();
}

void receive(void) {
    int64_t served = vigil_agent_dispatch(agent);
    DEMAND(served >= 0, "dispatch returned %s", vigil_status_name((int)served));
}

/* The books, when all actors rest. */

uint64_t killed_while(enum activity activity) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < PLACES_AT; i++) sum += books.killed[activity][i];
    return sum;
}

/* Holding it, or about to lock or unlock it. */
static uint64_t killed_at(unsigned mutex) {
    static const enum activity activities[] = {LOCKING,    HOLDING,      UNLOCKING, IN_COND,
                                               SIGNALLING, BROADCASTING, CHANGING};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof activities / sizeof *activities; i++) {
        for (unsigned cond = 0; cond < CONDS; cond++) sum += books.killed[activities[i]][at(mutex, cond)];
    }
    return sum;
}

uint64_t tally_now(enum tally tally) {
    uint64_t sum = books.tallies[tally];
    for (unsigned i = 0; i <= MEMBERS_MOST; i++) {
        for (unsigned j = 0; j < ACTORS; j++) sum += ledger->members[i].actors[j].tallies[tally];
    }
    return sum;
}

uint64_t heirless_now(void) {
    return NOW(segment_header(buffer->segment)->heirless);
}

bool all_recovered(void) {
    const struct segment *segment = buffer->segment;
    unsigned joined = 0;
    for (uint32_t i = 0; i < segment_rows(segment); i++)
        joined += NOW(segment_member(segment, i)->life) & SEGMENT_JOINED;
    return joined == members + 1 && segment_deaths(segment) == NOW(segment_header(segment)->recovered);
}

static uint64_t killed_holding(unsigned mutex) {
    return books.killed[HOLDING][at(mutex, 0)];
}

/* The judge takes each mutex itself, and checks what has happened inside. */
void judge_grants(void) {
    struct actor *me = &judges->actors[0];
    for (unsigned i = 0; i < MUTEXES; i++) {
        now_does(me, LOCKING, i);
        int status = vigil_mutex_lock_for(&arena->locks[i].mutex, PATIENCE_NS);
        DEMAND(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "mutex %u is not available: %s", i,
               vigil_status_name(status));
        judge_failures();
        go_inside(me, i, status, &judge_seed);
        uint64_t grants = books.grants[i], deaths = books.fresh_deaths[i], inside = ledger->payload[i].first;
        for (unsigned j = 0; j <= MEMBERS_MOST; j++) {
            for (unsigned k = 0; k < ACTORS; k++) {
                grants += ledger->members[j].actors[k].grants[i];
                deaths += ledger->members[j].actors[k].fresh_deaths[i];
            }
        }
        DEMAND(grants <= inside && inside <= grants + killed_holding(i),
               "mutex %u: %" PRIu64 " grants, %" PRIu64 " times inside, %" PRIu64 " killed there", i, grants, inside,
               killed_holding(i));
        DEMAND(deaths <= killed_at(i), "mutex %u: %" PRIu64 " times owner-died, %" PRIu64 " killed at it", i, deaths,
               killed_at(i));
        go_outside(me, i);
        DEMAND(vigil_mutex_unlock(&arena->locks[i].mutex) == VIGIL_OK, "unlock");
        done(me);
    }
}

/* No wait for a condition has ended without a signal. */
void judge_signals(void) {
    for (unsigned cond = 0; cond < CONDS; cond++) {
        uint64_t woken = tally_now((enum tally)(WOKEN + cond)), signals = tally_now((enum tally)(SIGNALLED + cond));
        uint64_t unknown = 0; /* given by the killed before they could enter them */
        for (unsigned mutex = 0; mutex <= NO_MUTEX; mutex++) {
            unknown += books.killed[SIGNALLING][at(mutex, cond)];
            unknown += books.killed[BROADCASTING][at(mutex, cond)] * LINE_MOST;
        }
        DEMAND(woken <= signals + unknown,
               "condition %u: %" PRIu64 " waits ended, %" PRIu64 " signals given and %" PRIu64 " at most by the killed",
               cond, woken, signals, unknown);
    }
}

/* The dead disappear from a line as soon as a process notices their death. */
void judge_line(const volatile void *place, int64_t expected, const char *what) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS / 3, waiters;
    while ((waiters = vigil_waiters(place)) != expected && vigil_now_ns() < until_ns) {
        nap_ns(MILLISECOND);
        receive();
    }
    DEMAND(waiters == expected, "%" PRId64 " in line for a %s, while all rest", waiters, what);
}

static void on_place(vigil_op *op, int status) {
    (void)op;
    DEMAND(false, "a place ended with %s", vigil_status_name(status));
}

/* The places of the dead come back as soon as a process notices their death. */
void judge_places(void) {
    static vigil_op ops[PLACES];
    for (unsigned i = 0; i < LINES; i++) judge_line(&arena->lines[i].word, 0, "word");
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS / 3;
    int status = VIGIL_PENDING;
    unsigned taken = 0;
    while (taken < PLACES && vigil_now_ns() < until_ns) {
        uint64_t *word = &arena->lines[taken % LINES].word;
        status = vigil_wait64_async(agent, &ops[taken], word, NOW(*word), VIGIL_FOREVER, on_place);
        if (status == VIGIL_PENDING) taken++;
        else nap_ns(MILLISECOND);
    }
    DEMAND(taken == PLACES, "%u places of %u: %s", taken, PLACES, vigil_status_name(status));
    while (taken) DEMAND(vigil_cancel(&ops[--taken]) == VIGIL_OK, "place %u", taken);
    judge_failures();
}

/* The report. */

void print_progress(void) {
    static int64_t printed_ns;
    int64_t now_ns = vigil_now_ns();
    if (!isatty(STDOUT_FILENO) || now_ns - printed_ns < SECOND / 5) return;
    printed_ns = now_ns;
    printf("\r%" PRIu64 " of %" PRIu64 " kills, %" PRIu64 " grants, %" PRIu64 " %s, %" PRId64 " s ", books.kills,
           options.kills, tally_now(GRANTS), tally_now(ledger->is_queue ? CONSUMED : NOTIFIED),
           ledger->is_queue ? "items" : "notifications", (now_ns - begin_ns) / SECOND);
    fflush(stdout);
}

static const struct {
    const char *key, *text;
} tally_names[] = {
#define TALLY_TEXT(name, key, text) {key, text},
    TALLIES(TALLY_TEXT)
#undef TALLY_TEXT
};

/* Zeros are left out. */
static void report_line(uint64_t number, const char *text) {
    if (number) printf("%12" PRIu64 "  %s\n", number, text);
}

static void report(double seconds) {
    printf("%s%" PRIu64 " kills in %.1f s, %" PRIu64 " of them while stopped; %" PRIu64 " stops, %" PRIu64
           " left, %" PRIu64 " times at rest; seed %" PRIu64 "\n",
           isatty(STDOUT_FILENO) ? "\r\033[K" : "", books.kills, seconds, books.stopped_kills, books.stops,
           books.leaves, books.rests, options.seed);
    printf("What the threads and operations of the killed were doing:\n");
    for (unsigned i = 0; i < ACTIVITY_COUNT; i++) report_line(killed_while((enum activity)i), activity_names[i]);
    printf("Results:\n");
    for (unsigned i = 0; i < TALLY_COUNT; i++) report_line(tally_now((enum tally)i), tally_names[i].text);
    if (ledger->is_queue) report_queue(NULL);
    else report_tokens(NULL);
}

static void report_json(double seconds) {
    FILE *file = options.json ? fopen(options.json, "w") : NULL;
    if (!file) return;
    fprintf(file, "{\"seed\": %" PRIu64 ", \"members\": %" PRIu64 ", \"seconds\": %.1f, \"failures\": %u,\n",
            options.seed, options.members, seconds, ledger->failures);
    fprintf(file,
            " \"kills\": %" PRIu64 ", \"kills_while_stopped\": %" PRIu64 ", \"stops\": %" PRIu64 ", \"left\": %" PRIu64
            ", \"rests\": %" PRIu64 ",\n \"killed_while\": {",
            books.kills, books.stopped_kills, books.stops, books.leaves, books.rests);
    for (unsigned i = 0; i < ACTIVITY_COUNT; i++)
        fprintf(file, "%s\"%s\": %" PRIu64, i ? ", " : "", activity_names[i], killed_while((enum activity)i));
    fprintf(file, "},\n");
    for (unsigned i = 0; i < TALLY_COUNT; i++)
        fprintf(file, " \"%s\": %" PRIu64 ",\n", tally_names[i].key, tally_now((enum tally)i));
    if (ledger->is_queue) report_queue(file);
    else report_tokens(file);
    fclose(file);
}

/* Beginning. */

static void map_ledger(int fd) {
    ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ledger != MAP_FAILED) return;
    fprintf(stderr, "no memory for the books\n");
    exit(2);
}

static void prepare(bool is_queue) {
    ledger_fd = memfd_create("storm-ledger", 0);
    if (ledger_fd < 0 || ftruncate(ledger_fd, sizeof *ledger) != 0) exit(2);
    map_ledger(ledger_fd);
    ledger->is_queue = is_queue;
    judges = &ledger->members[MEMBERS_MOST];
    PUT(judges->life, ++lives * 2);
    const vigil_segment_options wanted = {
        .length = sizeof *arena, .waiters = PLACES, .members = (uint32_t)options.members + 1};
    int status = vigil_segment_create_anonymous(&buffer, &wanted);
    if (status == VIGIL_OK) status = vigil_agent_create(&agent, 0);
    segment_fd = status == VIGIL_OK ? vigil_segment_fd(buffer) : -1;
    if (segment_fd < 0 || fcntl(segment_fd, F_SETFD, 0) != 0) {
        fprintf(stderr, "no segment: %s\n", vigil_status_name(status));
        exit(2);
    }
    arena = vigil_buffer_data(buffer);
    arena->locks[FAIR_ONE].mutex = (vigil_mutex)VIGIL_MUTEX_FAIR;
    signal(SIGALRM, on_stuck);
}

static bool read_arguments(int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        if (read_option(argv + i, "--kills", &options.kills) || read_option(argv + i, "--members", &options.members) ||
            read_option(argv + i, "--seed", &options.seed)) {
            continue;
        }
        if (strcmp(argv[i], "--json") == 0 && argv[i + 1]) {
            options.json = argv[i + 1];
            continue;
        }
        fprintf(stderr, "usage: storm [--queue] [--kills N] [--members N] [--seed S] [--json FILE]\n");
        return false;
    }
    return options.members >= 1 && options.members <= MEMBERS_MOST;
}

static int become_member(char **argv) {
    map_ledger(atoi(argv[5]));
    const struct crew *crew = ledger->is_queue ? &queue_crew : &token_crew;
    return crew_main(crew, (unsigned)atoi(argv[2]), atoi(argv[4]), strtoull(argv[3], NULL, 10));
}

int main(int argc, char **argv) {
    if (argc == 6 && strcmp(argv[1], "--member") == 0) return become_member(argv);
    bool is_queue = argc > 1 && strcmp(argv[1], "--queue") == 0;
    options = is_queue ? (struct options){.kills = 100, .members = 6} : (struct options){.kills = 150, .members = 4};
    options.seed = (uint64_t)vigil_now_ns() / 1000 % 1000000;
    if (!read_arguments(argc - is_queue, argv + is_queue)) return 2;
    judge_seed = options.seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    prepare(is_queue);
    members = (unsigned)options.members;
    printf("storm%s: %" PRIu64 " kills, %" PRIu64 " members, seed %" PRIu64 "\n", is_queue ? " of the queue" : "",
           options.kills, options.members, options.seed);
    fflush(stdout);
    begin_ns = vigil_now_ns();
    if (is_queue) queue_storm();
    else token_storm();
    double seconds = (double)(vigil_now_ns() - begin_ns) / 1e9;
    report(seconds);
    DEMAND(vigil_agent_destroy(agent) == VIGIL_OK, "the judge's agent");
    DEMAND(vigil_buffer_destroy(buffer) == 0, "the judge does not leave");
    report_json(seconds);
    printf("%s\n", ledger->failures ? "failed" : "passed");
    return ledger->failures != 0;
}
