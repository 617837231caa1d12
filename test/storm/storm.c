/* SPDX-License-Identifier: MIT */
/*
 * storm - processes that lock, wait, notify and time out, and are killed meanwhile; every grant and every notification is
 * accounted for.
 *
 *     storm [--kills N] [--members N] [--seed S] [--json FILE]
 *
 * The judge, which is this process, starts the members (member.c) and then kills one after the other by SIGKILL, at
 * random moments, with a new one in its place each time; some it only stops, some it stops and then kills, some it asks
 * to leave. Every now and then it calls for rest, nobody is killed, and it looks at the books (ledger.h):
 *
 *     notifications   What is missing, of the tokens that have been given out, must be what the killed had in their hands,
 *                     or were offering. There is no more than there should be.
 *     grants          As many as somebody was inside, but for those killed right there; no more of them with
 *                     owner-died than somebody was killed at the lock. Everyone who was granted a mutex has looked as well.
 *     waiting         Nobody waits for ever; nobody is left in line.
 *
 * In the end all leave, every place to wait is there again, and a new member finds everything in order.
 * The last line says whether it passed. What is killed when depends on the scheduler: a seed makes the same choices, not
 * the same storm.
 */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define TOKENS        12  /* so many are on their way */
#define RESIDENTS     16  /* of the judge's, in each line with tokens: more, so that there is always a next in line */
#define PLACES        512 /* for waiters */
#define KILLS_TO_REST 25
#define PATIENCE_NS   (30 * SECOND) /* for what must come */
#define LINE_MOST     (MEMBERS_MOST * (THREADS + WAITS))

extern char **environ;

static struct {
    uint64_t kills, members, seed;
    const char *json;
} options = {.kills = 150, .members = 4};

struct process {
    pid_t pid;
    uint32_t seen[ACTORS];   /* progress */
    int64_t seen_ns[ACTORS]; /* when it was last different */
};

static struct process processes[MEMBERS_MOST];
static struct member *judges; /* the judge's own page */
static uint64_t seed;
static uint64_t lives;   /* how many members there have been */
static unsigned members; /* how many there are */
static int segment_fd, ledger_fd;
static vigil_buffer *buffer;

/* What is known of those who are not there any more, and of the tokens. */
static struct {
    uint64_t kills, stopped_kills, stops, leaves, rests;
    uint64_t activities[ACTIVITY_COUNT]; /* of the killed */
    uint64_t tallies[TALLY_COUNT];
    uint64_t grants[MUTEXES], fresh_deaths[MUTEXES];
    uint64_t killed_at[MUTEXES]; /* holding it, or about to lock or unlock it */
    uint64_t killed_holding[MUTEXES];
    uint64_t dealt;     /* tokens given out by the judge */
    uint64_t died_with; /* tokens in the hands of the killed and of those who have left */
    uint64_t offered;   /* by the killed, who did not live to hear whether they were taken */
    uint64_t killed_waiting, killed_listening, killed_shouting; /* the latter two where there are no tokens */
} books;

/* Saying what is the matter. */

static const char *const activity_names[] = {
#define ACTIVITY_TEXT(name, text) text,
    ACTIVITIES(ACTIVITY_TEXT)
#undef ACTIVITY_TEXT
};

static void tell_state(void) {
    fprintf(stderr, "moment %u; who was doing what:\n", ledger->moment);
    for (unsigned i = 0; i < members; i++) {
        const struct member *member = &ledger->members[i];
        fprintf(stderr, "  member %u, process %ld, life %" PRIu64 "%s\n", i, (long)processes[i].pid, member->life / 2,
                member->life % 2 ? ", killed" : "");
        for (unsigned j = 0; j < ACTORS; j++) {
            const struct actor *actor = &member->actors[j];
            fprintf(stderr, "    %-9s %-14s %u  progress %u, hand %u + %u\n",
                    j < THE_LOOP      ? "thread"
                    : j == THE_LOOP   ? "loop"
                    : j < FIRST_ASKER ? "wait"
                                      : "request",
                    activity_names[actor->activity & 0xff], actor->activity >> 8, actor->progress,
                    tokens_of(actor->hand), offered_of(actor->hand));
        }
    }
    for (unsigned i = 0; i < MUTEXES; i++) {
        const struct guarded *guarded = &ledger->guarded[i];
        fprintf(stderr, "  mutex %u: word %08x, inside %" PRIx64 ", %" PRIu64 " and %" PRIu64 "\n", i,
                arena->locks[i].mutex.word, guarded->inside, guarded->first, guarded->second);
    }
    fprintf(stderr,
            "storm --kills %" PRIu64 " --members %" PRIu64 " --seed %" PRIu64 ": failed after %" PRIu64 " kills\n",
            options.kills, options.members, options.seed, books.kills);
}

static void kill_all(void) {
    for (unsigned i = 0; i < members; i++) {
        if (processes[i].pid > 0) kill(processes[i].pid, SIGKILL);
    }
}

/* The judge itself is stuck: in the library, then. */
static void on_stuck(int signal_number) {
    (void)signal_number;
    fprintf(stderr, "\nthe judge itself does not get on\n");
    tell_state();
    kill_all();
    _exit(1);
}

/* Ends the storm if something has failed, with all that may help to find out why. */
static void judge_failures(void) {
    alarm(120);
    if (!NOW(ledger->failures)) return;
    tell_state();
    for (unsigned i = 0; i < members; i++) {
        if (processes[i].pid > 0) kill(processes[i].pid, SIGSTOP);
    }
    fflush(NULL);
    alarm(5);
    vigil_debug_dump(STDERR_FILENO);
    kill_all();
    exit(1);
}

static void nap_ns(int64_t duration_ns) {
    struct timespec time = {duration_ns / SECOND, duration_ns % SECOND};
    nanosleep(&time, NULL);
}

/* Members. */

static void deal(struct actor *actor, uint32_t tokens) {
    set_hand(actor, tokens_of(actor->hand) + tokens, 0);
    books.dealt += tokens;
}

static void member_start(unsigned number, uint32_t tokens_of_its_own) {
    char number_text[16], seed_text[24], segment_text[16], ledger_text[16];
    struct member *member = &ledger->members[number];
    struct process *process = &processes[number];
    PUT(member->leave, 0);
    PUT(member->life, ++lives * 2);
    deal(&member->actors[0], tokens_of_its_own);
    snprintf(number_text, sizeof number_text, "%u", number);
    snprintf(seed_text, sizeof seed_text, "%" PRIu64, random_next(&seed));
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

/* Its page is closed: it writes there no more. */
static void take_over_page(struct actor *actor) {
    for (unsigned i = 0; i < TALLY_COUNT; i++) books.tallies[i] += actor->tallies[i];
    for (unsigned i = 0; i < MUTEXES; i++) {
        books.grants[i] += actor->grants[i];
        books.fresh_deaths[i] += actor->fresh_deaths[i];
    }
    books.died_with += tokens_of(actor->hand);
    memset(actor, 0, sizeof *actor);
}

/* And says what it was doing at the very moment. */
static void take_over_killed(struct actor *actor) {
    enum activity activity = (enum activity)(actor->activity & 0xff);
    unsigned which = actor->activity >> 8;
    books.activities[activity]++;
    if (activity == WAITING && which != SHOUTS) books.killed_waiting++;
    if (activity == WAITING && which == SHOUTS) books.killed_listening++;
    if (activity == NOTIFYING && which == SHOUTS) books.killed_shouting++;
    if (activity == HOLDING) books.killed_holding[which]++;
    if (activity == LOCKING || activity == HOLDING || activity == UNLOCKING || activity == IN_COND)
        books.killed_at[which]++;
    books.offered += offered_of(actor->hand);
    take_over_page(actor);
}

/* Both answer how many tokens it had: whoever comes in its place gets as many. */

static uint32_t member_left(unsigned number) {
    uint64_t before = books.died_with;
    for (unsigned i = 0; i < ACTORS; i++) take_over_page(&ledger->members[number].actors[i]);
    processes[number].pid = 0;
    return (uint32_t)(books.died_with - before);
}

static uint32_t member_killed(unsigned number) {
    struct process *process = &processes[number];
    uint64_t before = books.died_with;
    int status = 0;
    PUT(ledger->members[number].life, ledger->members[number].life | 1);
    kill(process->pid, SIGKILL);
    waitpid(process->pid, &status, 0);
    DEMAND(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "member %u had ended before, with status %x", number,
           (unsigned)status);
    for (unsigned i = 0; i < ACTORS; i++) take_over_killed(&ledger->members[number].actors[i]);
    process->pid = 0;
    books.kills++;
    return (uint32_t)(books.died_with - before);
}

static void signal_member(unsigned number, int signal_number) {
    kill(processes[number].pid, signal_number);
}

/* Waits until it is, so that nobody can say later that it had ended before. */
static void member_stop(unsigned number) {
    int status = 0;
    signal_member(number, SIGSTOP);
    waitpid(processes[number].pid, &status, WUNTRACED);
    DEMAND(WIFSTOPPED(status), "member %u ended with status %x", number, (unsigned)status);
    books.stops++;
}

static bool everybody_lives(void) {
    for (unsigned i = 0; i < members; i++) {
        int status = 0;
        if (!processes[i].pid || waitpid(processes[i].pid, &status, WNOHANG) == 0) continue;
        processes[i].pid = 0;
        DEMAND(false, "member %u ended with status %x", i, (unsigned)status);
        return false;
    }
    return true;
}

static bool may_take_its_time(uint32_t activity) {
    return (activity & 0xff) == BETWEEN || (activity & 0xff) == RESTING;
}

/* Everybody who is in a call must come out of it. */
static void judge_progress(void) {
    int64_t now_ns = vigil_now_ns();
    for (unsigned i = 0; i < members; i++) {
        for (unsigned j = 0; j < ACTORS; j++) {
            struct actor *actor = &ledger->members[i].actors[j];
            if (NOW(actor->progress) != processes[i].seen[j] || may_take_its_time(NOW(actor->activity))) {
                processes[i].seen[j] = NOW(actor->progress);
                processes[i].seen_ns[j] = now_ns;
            }
            if (j > THE_LOOP && (actor->activity & 0xff) == STARTING) continue; /* its loop is what counts */
            DEMAND(now_ns - processes[i].seen_ns[j] < PATIENCE_NS, "member %u, actor %u: no progress for 30 s", i, j);
        }
    }
}

static void look_around(void) {
    everybody_lives();
    judge_progress();
    judge_failures();
}

/*
 * The judge takes part: its residents are in line for tokens that their owners did not live to use, and it gives them
 * back. But it does not touch the segment while somebody is stopped, who may be in the midst of something there.
 */

static struct resident {
    vigil_op op; /* first */
    unsigned line;
    bool pending;
} residents[SHOUTS][RESIDENTS];
static vigil_agent *agent;
static bool receiving; /* residents go back into line */

static void resident_joins(struct resident *resident);

static void on_token(vigil_op *op, int status) {
    struct resident *resident = (struct resident *)op;
    resident->pending = false;
    DEMAND(status == VIGIL_OK, "a resident's wait ended with %s", vigil_status_name(status));
    take_token(&judges->actors[0]);
    if (receiving) resident_joins(resident);
}

static void resident_joins(struct resident *resident) {
    uint64_t *word = &arena->lines[resident->line].word;
    int status;
    do status = vigil_wait64_async(agent, &resident->op, word, NOW(*word), VIGIL_FOREVER, on_token);
    while (status == VIGIL_NOT_EQUAL);
    DEMAND(status == VIGIL_PENDING, "a resident's wait: %s", vigil_status_name(status));
    resident->pending = status == VIGIL_PENDING;
}

static void residents_join(void) {
    receiving = true;
    for (unsigned i = 0; i < SHOUTS * RESIDENTS; i++) {
        struct resident *resident = &residents[i / RESIDENTS][i % RESIDENTS];
        resident->line = i / RESIDENTS;
        resident_joins(resident);
    }
}

static void receive(void) {
    int64_t served = vigil_agent_dispatch(agent);
    DEMAND(served >= 0, "dispatch answered %s", vigil_status_name((int)served));
}

static int64_t residents_in(unsigned line) {
    int64_t pending = 0;
    for (unsigned i = 0; i < RESIDENTS; i++) pending += residents[line][i].pending;
    return pending;
}

/* Those who were notified before they could be cancelled have a token more. */
static void residents_leave(void) {
    receiving = false;
    for (unsigned i = 0; i < SHOUTS * RESIDENTS; i++) {
        struct resident *resident = &residents[i / RESIDENTS][i % RESIDENTS];
        if (resident->pending && vigil_cancel(&resident->op) == VIGIL_OK) resident->pending = false;
    }
    for (unsigned line = 0; line < SHOUTS; line++) {
        while (residents_in(line)) receive();
    }
}

static void take_part(void) {
    struct actor *me = &judges->actors[0];
    receive();
    if (tokens_of(me->hand)) offer_tokens(me, (unsigned)random_below(&seed, SHOUTS), tokens_of(me->hand));
}

/* It leaves as one should, while the others go on. */
static uint32_t member_leaves(unsigned number) {
    int status = 0;
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    pid_t pid = processes[number].pid;
    PUT(ledger->members[number].leave, 1);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        nap_ns(MILLISECOND / 2);
        take_part();
        DEMAND(vigil_now_ns() < until_ns, "member %u does not leave", number);
        judge_failures();
    }
    DEMAND(WIFEXITED(status) && WEXITSTATUS(status) == 0, "member %u left with status %x", number, (unsigned)status);
    books.leaves++;
    return member_left(number);
}

/* Rest. */

static bool all_at_rest(void) {
    for (unsigned i = 0; i < members; i++) {
        for (unsigned j = 0; j <= THE_LOOP; j++) {
            if (!at_rest(&ledger->members[i].actors[j], ledger->moment)) return false;
        }
    }
    return true;
}

/* Everybody who still waits gets a new token; one after the other, so that there are always residents in line. */
static void end_waits(void) {
    receive();
    for (unsigned line = 0; line < SHOUTS; line++) {
        uint64_t *word = &arena->lines[line].word;
        while (vigil_waiters(word) > residents_in(line)) {
            uint64_t told = (uint64_t)vigil_notify(word, 1);
            count(&judges->actors[0], NOTIFIED, told);
            books.dealt += told;
            receive();
        }
    }
    shout(&judges->actors[0]);
}

static void call_for_rest(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    PUT(ledger->moment, (ledger->moment / 4 + 1) * 4 + REST);
    while (!all_at_rest()) {
        end_waits();
        nap_ns(MILLISECOND / 5);
        DEMAND(vigil_now_ns() < until_ns, "they do not come to rest");
        look_around();
    }
    books.rests++;
}

/* The books, when everybody rests. */

static uint64_t tally_now(enum tally tally) {
    uint64_t sum = books.tallies[tally];
    for (unsigned i = 0; i <= MEMBERS_MOST; i++) {
        for (unsigned j = 0; j < ACTORS; j++) sum += ledger->members[i].actors[j].tallies[tally];
    }
    return sum;
}

static uint64_t tokens_now(void) {
    uint64_t sum = 0;
    for (unsigned i = 0; i <= MEMBERS_MOST; i++) {
        for (unsigned j = 0; j < ACTORS; j++) sum += tokens_of(ledger->members[i].actors[j].hand);
    }
    return sum;
}

/* Tokens that should be there and are not. */
static int64_t tokens_missing(void) {
    return (int64_t)(books.dealt - books.died_with - tally_now(BURNT) - tokens_now());
}

/*
 * Since the last time, `offered` tokens may be missing: those that the killed were offering, as nobody knows whether
 * they were taken. One may turn up after all: one that was thought to be missing then, for the same reason. Those that
 * were on their way to the killed are passed on, and must arrive; but for one who was killed on the few instructions
 * between the end of his wait and the note of it. That is as rare as the instructions are few.
 */
static struct {
    int64_t missing, offered, excused; /* as of the last time; excused: since then, for being offered */
    int64_t on_few_instructions;       /* in all */
} tokens;

static void judge_tokens(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS / 3;
    int64_t offered = (int64_t)books.offered - tokens.offered;
    int64_t more;
    while ((more = tokens_missing() - tokens.missing) > offered && vigil_now_ns() < until_ns) {
        nap_ns(MILLISECOND);
        end_waits();
    }
    DEMAND(more >= -tokens.excused, "%" PRId64 " notifications too many, %" PRId64 " explained", -more, tokens.excused);
    if (more > offered) tokens.on_few_instructions += more - offered;
    DEMAND(tokens.on_few_instructions <= 1 + (int64_t)books.killed_waiting / 2000,
           "%" PRId64 " notifications lost; %" PRIu64 " were killed waiting", tokens.on_few_instructions,
           books.killed_waiting);
    tokens.excused = more < 0 ? 0 : more < offered ? more : offered;
    tokens.missing += more;
    tokens.offered += offered;
}

static void judge_shouts(void) {
    int64_t unheard = (int64_t)(tally_now(SHOUTED) - tally_now(HEARD));
    DEMAND(unheard <= (int64_t)books.killed_listening,
           "%" PRId64 " of the notifications to all lost, %" PRIu64 " were killed waiting for them", unheard,
           books.killed_listening);
    DEMAND(-unheard <= (int64_t)books.killed_shouting * LINE_MOST, "%" PRId64 " notifications to all too many",
           -unheard);
}

/* The judge takes each mutex himself, and looks what has been going on inside. */
static void judge_grants(void) {
    struct actor *me = &judges->actors[0];
    for (unsigned i = 0; i < MUTEXES; i++) {
        now_does(me, LOCKING, i);
        int status = vigil_mutex_lock_for(&arena->locks[i].mutex, PATIENCE_NS);
        DEMAND(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "mutex %u is not to be had: %s", i,
               vigil_status_name(status));
        judge_failures();
        go_inside(me, i, status, &seed);
        uint64_t grants = books.grants[i], deaths = books.fresh_deaths[i], inside = ledger->guarded[i].first;
        for (unsigned j = 0; j <= MEMBERS_MOST; j++) {
            for (unsigned k = 0; k < ACTORS; k++) {
                grants += ledger->members[j].actors[k].grants[i];
                deaths += ledger->members[j].actors[k].fresh_deaths[i];
            }
        }
        DEMAND(grants <= inside && inside <= grants + books.killed_holding[i],
               "mutex %u: %" PRIu64 " grants, %" PRIu64 " times inside, %" PRIu64 " killed there", i, grants, inside,
               books.killed_holding[i]);
        DEMAND(deaths <= books.killed_at[i], "mutex %u: %" PRIu64 " times owner-died, %" PRIu64 " killed at it", i,
               deaths, books.killed_at[i]);
        go_outside(me, i);
        DEMAND(vigil_mutex_unlock(&arena->locks[i].mutex) == VIGIL_OK, "unlock");
        done(me);
    }
}

/* The dead disappear from a line as soon as somebody finds out. */
static void judge_line(const volatile void *place, int64_t expected, const char *what) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS / 3, waiters;
    while ((waiters = vigil_waiters(place)) != expected && vigil_now_ns() < until_ns) {
        nap_ns(MILLISECOND);
        receive();
    }
    DEMAND(waiters == expected, "%" PRId64 " in line for a %s, while all rest", waiters, what);
}

static void judge(void) {
    judge_tokens();
    judge_shouts();
    judge_grants();
    for (unsigned i = 0; i < MUTEXES; i++) judge_line(&arena->locks[i].mutex, 0, "mutex");
    judge_line(&arena->cond, 0, "condition");
    for (unsigned i = 0; i < LINES; i++) judge_line(&arena->lines[i].word, i == SHOUTS ? 0 : RESIDENTS, "word");
    judge_failures();
}

/* There are as many tokens as in the beginning, and the storm goes on. Who rests does not look at his page. */
static void call_for_storm(void) {
    count(&judges->actors[0], BURNT, tokens_now());
    for (unsigned i = 0; i <= MEMBERS_MOST; i++) {
        for (unsigned j = 0; j < ACTORS; j++) set_hand(&ledger->members[i].actors[j], 0, 0);
    }
    for (unsigned i = 0; i < TOKENS; i++) deal(&ledger->members[i % members].actors[i % THREADS], 1);
    PUT(ledger->moment, ledger->moment / 4 * 4 + STORM);
}

/* The storm. */

static void some_stop(unsigned number) {
    member_stop(number);
    nap_ns((int64_t)random_below(&seed, one_in(&seed, 8) ? 80 : 10) * MILLISECOND);
}

static void kill_and_replace(unsigned number) {
    member_start(number, member_killed(number));
}

static void strike(void) {
    unsigned number = (unsigned)random_below(&seed, members);
    unsigned other = (number + 1) % members;
    uint64_t dice = random_below(&seed, 100);
    if (dice < 70) {
        kill_and_replace(number);
    } else if (dice < 85) { /* notified while it is stopped, and killed before it knows */
        some_stop(number);
        books.stopped_kills++;
        kill_and_replace(number);
    } else if (dice < 95) {
        some_stop(number);
        if (other != number && one_in(&seed, 2)) kill_and_replace(other);
        nap_ns((int64_t)random_below(&seed, 5) * MILLISECOND);
        signal_member(number, SIGCONT);
    } else {
        member_start(number, member_leaves(number));
    }
}

static void tell_progress(int64_t begin_ns) {
    static int64_t told_ns;
    int64_t now_ns = vigil_now_ns();
    if (!isatty(STDOUT_FILENO) || now_ns - told_ns < SECOND / 5) return;
    told_ns = now_ns;
    printf("\r%" PRIu64 " of %" PRIu64 " kills, %" PRIu64 " grants, %" PRIu64 " notifications, %" PRId64 " s ",
           books.kills, options.kills, tally_now(GRANTS), tally_now(NOTIFIED), (now_ns - begin_ns) / SECOND);
    fflush(stdout);
}

/* Mostly nobody is struck before all are at work; now and then somebody is who is still joining. */
static void let_them_begin(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    for (unsigned i = 0; i < members && !one_in(&seed, 20); i++) {
        while (!NOW(ledger->members[i].actors[0].progress)) {
            nap_ns(MILLISECOND / 5);
            take_part();
            everybody_lives();
            DEMAND(vigil_now_ns() < until_ns, "member %u does not begin", i);
            judge_failures();
        }
    }
    nap_ns((int64_t)random_below(&seed, 3000) * MICROSECOND);
}

static void rage(int64_t begin_ns) {
    uint64_t next_rest = KILLS_TO_REST;
    while (books.kills < options.kills) {
        let_them_begin();
        strike();
        take_part();
        look_around();
        tell_progress(begin_ns);
        if (books.kills < next_rest) continue;
        next_rest += KILLS_TO_REST;
        call_for_rest();
        judge();
        call_for_storm();
    }
    call_for_rest();
    judge();
}

/* The end: all leave, and everything is there again. */

static void all_leave(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    PUT(ledger->moment, ledger->moment / 4 * 4 + END);
    for (unsigned i = 0; i < members; i++) {
        int status = 0;
        while (waitpid(processes[i].pid, &status, WNOHANG) == 0) {
            nap_ns(MILLISECOND);
            DEMAND(vigil_now_ns() < until_ns, "member %u does not leave", i);
            judge_failures();
        }
        DEMAND(WIFEXITED(status) && WEXITSTATUS(status) == 0, "member %u left with status %x", i, (unsigned)status);
        member_left(i);
    }
    judge_failures();
}

static void on_place(vigil_op *op, int status) {
    (void)op;
    DEMAND(false, "a place ended with %s", vigil_status_name(status));
}

/* The dead ones' places come back as soon as somebody finds out. */
static void judge_places(void) {
    static vigil_op ops[PLACES];
    residents_leave();
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
    residents_join();
    judge_failures();
}

/* As good as new. */
static void judge_newcomer(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    PUT(ledger->moment, ledger->moment / 4 * 4 + STORM);
    member_start(0, TOKENS);
    while (!NOW(ledger->members[0].actors[0].progress)) {
        nap_ns(MILLISECOND);
        DEMAND(vigil_now_ns() < until_ns, "the newcomer does nothing");
        judge_failures();
    }
    members = 1;
    call_for_rest();
    judge();
    all_leave();
    residents_leave();
}

/* The report. */

static const struct {
    const char *key, *text;
} tally_names[] = {
#define TALLY_TEXT(name, key, text) {key, text},
    TALLIES(TALLY_TEXT)
#undef TALLY_TEXT
};

static void report(double seconds) {
    printf("%s%" PRIu64 " kills in %.1f s, %" PRIu64 " of them while stopped; %" PRIu64 " stops, %" PRIu64
           " left, %" PRIu64 " times at rest; seed %" PRIu64 "\n",
           isatty(STDOUT_FILENO) ? "\r\033[K" : "", books.kills, seconds, books.stopped_kills, books.stops,
           books.leaves, books.rests, options.seed);
    printf("What the threads and operations of the killed were doing:\n");
    for (unsigned i = 0; i < ACTIVITY_COUNT; i++) printf("%12" PRIu64 "  %s\n", books.activities[i], activity_names[i]);
    printf("What has come of it all:\n");
    for (unsigned i = 0; i < TALLY_COUNT; i++)
        printf("%12" PRIu64 "  %s\n", tally_now((enum tally)i), tally_names[i].text);
    printf("Tokens: %" PRIu64 " given out, %" PRIu64 " died with their owners, %" PRIu64
           " were being offered by the killed, of which %" PRId64 " are missing; %" PRId64 " lost\n",
           books.dealt, books.died_with, books.offered, tokens.missing - tokens.on_few_instructions,
           tokens.on_few_instructions);
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
        fprintf(file, "%s\"%s\": %" PRIu64, i ? ", " : "", activity_names[i], books.activities[i]);
    fprintf(file, "},\n");
    for (unsigned i = 0; i < TALLY_COUNT; i++)
        fprintf(file, " \"%s\": %" PRIu64 ",\n", tally_names[i].key, tally_now((enum tally)i));
    fprintf(file,
            " \"died_with_tokens\": %" PRIu64 ", \"offered_by_the_killed\": %" PRIu64 ", \"lost\": %" PRId64 "}\n",
            books.died_with, books.offered, tokens.on_few_instructions);
    fclose(file);
}

/* Beginning. */

static void map_ledger(int fd) {
    ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ledger != MAP_FAILED) return;
    fprintf(stderr, "no memory for the books\n");
    exit(2);
}

static void prepare(void) {
    ledger_fd = memfd_create("storm-ledger", 0);
    if (ledger_fd < 0 || ftruncate(ledger_fd, sizeof *ledger) != 0) exit(2);
    map_ledger(ledger_fd);
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
        fprintf(stderr, "usage: storm [--kills N] [--members N] [--seed S] [--json FILE]\n");
        return false;
    }
    return options.members >= 1 && options.members <= MEMBERS_MOST;
}

int main(int argc, char **argv) {
    if (argc == 6 && strcmp(argv[1], "--member") == 0) {
        map_ledger(atoi(argv[5]));
        return member_main((unsigned)atoi(argv[2]), atoi(argv[4]), strtoull(argv[3], NULL, 10));
    }
    options.seed = (uint64_t)vigil_now_ns() / 1000 % 1000000;
    if (!read_arguments(argc, argv)) return 2;
    seed = options.seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    prepare();
    members = (unsigned)options.members;
    printf("storm: %" PRIu64 " kills, %" PRIu64 " members, seed %" PRIu64 "\n", options.kills, options.members,
           options.seed);
    fflush(stdout);
    int64_t begin_ns = vigil_now_ns();
    residents_join();
    for (unsigned i = 0; i < members; i++) member_start(i, TOKENS / members);
    rage(begin_ns);
    all_leave();
    judge_places();
    judge_newcomer();
    double seconds = (double)(vigil_now_ns() - begin_ns) / 1e9;
    report(seconds);
    DEMAND(vigil_agent_destroy(agent) == VIGIL_OK, "the judge's agent");
    DEMAND(vigil_buffer_destroy(buffer) == 0, "the judge does not leave");
    report_json(seconds);
    printf("%s\n", ledger->failures ? "failed" : "passed");
    return ledger->failures != 0;
}
