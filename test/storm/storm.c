/* SPDX-License-Identifier: MIT */
/*
 * The storm of tokens - processes that lock, wait, notify and time out, and are killed meanwhile; every grant and every
 * notification is accounted for.
 *
 * The judge (judge.c), which is the process that was started first, starts the members (member.c) and then kills one
 * after the other by SIGKILL, at random moments, with a new one in its place each time; some it only stops, some it
 * stops and then kills, some it asks to leave. Now and then it calls for rest, kills no member, and checks the books
 * (ledger.h):
 *
 *     notifications   What is missing, of the tokens that have been given out, must be what the killed had in their
 *                     hands, or were offering. There are no more tokens than there should be.
 *     grants          As many as times that an actor was inside, except for actors killed right there; no more of them
 *                     with owner-died than actors were killed at the lock. Every actor that was granted a mutex has
 *                     checked that as well.
 *     signals         No more waits for the condition have ended than there were signals.
 *     waiting         No actor waits forever; no waiter is left in line.
 *
 * At the end all leave, every place to wait is available again, and a new member finds everything in order.
 */
#include "judge.h"

#include <sys/wait.h>

#define TOKENS    12 /* in circulation */
#define RESIDENTS 16 /* of the judge, in each line with tokens: more than those, so that a next in line always exists */

/* Members. */

static void deal(struct actor *actor, uint32_t tokens) {
    set_hand(actor, tokens_of(actor->hand) + tokens, 0);
    books.dealt += tokens;
}

static void start_with(unsigned number, uint32_t tokens_of_its_own) {
    deal(&ledger->members[number].actors[0], tokens_of_its_own);
    member_start(number);
}

static bool may_take_its_time(uint32_t activity) {
    return (activity & 0xff) == BETWEEN || (activity & 0xff) == RESTING;
}

/* Every actor that is in a call must come out of it. */
static void judge_progress(void) {
    int64_t now_ns = vigil_now_ns();
    for (unsigned i = 0; i < members; i++) {
        for (unsigned j = 0; j < ACTORS; j++) {
            struct actor *actor = &ledger->members[i].actors[j];
            if (NOW(actor->progress) != processes[i].seen[j] || may_take_its_time(NOW(actor->activity))) {
                processes[i].seen[j] = NOW(actor->progress);
                processes[i].seen_ns[j] = now_ns;
            }
            if (j > THE_LOOP && (actor->activity & 0xff) == STARTING) continue; /* the loop counts instead */
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
 * back. But it does not touch the segment while a member is stopped, possibly in the middle of something there.
 */

static struct resident {
    vigil_op op; /* first */
    unsigned line;
    bool pending;
} residents[SHOUTS][RESIDENTS];
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

static int64_t residents_in(unsigned line) {
    int64_t pending = 0;
    for (unsigned i = 0; i < RESIDENTS; i++) pending += residents[line][i].pending;
    return pending;
}

/* Residents that were notified before they could be cancelled have a token more. */
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

static void receive_and_offer(void) {
    struct actor *me = &judges->actors[0];
    receive();
    if (tokens_of(me->hand)) offer_tokens(me, (unsigned)random_below(&judge_seed, SHOUTS), tokens_of(me->hand));
}

/* The member leaves properly, while the others continue. */
static void member_leaves(unsigned number) {
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
    member_left(number);
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

/* Every actor that still waits gets a new token; one after the other, so that there are always residents in line. */
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
        DEMAND(vigil_now_ns() < until_ns, "the members do not come to rest");
        look_around();
    }
    books.rests++;
}

/* The books, when all actors rest. */

static uint64_t tokens_now(void) {
    uint64_t sum = 0;
    for (unsigned i = 0; i <= MEMBERS_MOST; i++) {
        for (unsigned j = 0; j < ACTORS; j++) sum += tokens_of(ledger->members[i].actors[j].hand);
    }
    return sum;
}

/* Tokens that should exist and do not. */
static int64_t tokens_missing(void) {
    return (int64_t)(books.dealt - books.died_with - tally_now(BURNT) - tokens_now());
}

/*
 * Since the last time, `offered` tokens may be missing: those that the killed were offering, because it is not known
 * whether they were taken. One may turn up after all that was thought missing then, for the same reason. Tokens on
 * their way to the killed are passed on, and must arrive; except if an actor was killed on the few instructions
 * between the end of its wait and the record of it, which is as rare as these instructions are few.
 */
static struct {
    int64_t missing, offered, excused; /* as of the last time; excused: since then, for being offered */
    int64_t on_few_instructions;       /* in all */
} tokens;

static uint64_t killed_waiting(void) {
    return killed_while(WAITING) - books.killed[WAITING][SHOUTS];
}

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
    DEMAND(tokens.on_few_instructions <= 2 + (int64_t)killed_waiting() / 2000,
           "%" PRId64 " notifications lost; %" PRIu64 " were killed waiting", tokens.on_few_instructions,
           killed_waiting());
    tokens.excused = more < 0 ? 0 : more < offered ? more : offered;
    tokens.missing += more;
    tokens.offered += offered;
}

static void judge_shouts(void) {
    int64_t unheard = (int64_t)(tally_now(SHOUTED) - tally_now(HEARD));
    DEMAND(unheard <= (int64_t)books.killed[WAITING][SHOUTS],
           "%" PRId64 " of the notifications to all lost, %" PRIu64 " were killed waiting for them", unheard,
           books.killed[WAITING][SHOUTS]);
    DEMAND(-unheard <= (int64_t)books.killed[NOTIFYING][SHOUTS] * LINE_MOST,
           "%" PRId64 " notifications to all too many", -unheard);
}

static void judge(void) {
    judge_tokens();
    judge_shouts();
    judge_grants();
    judge_signals();
    for (unsigned i = 0; i < MUTEXES; i++) judge_line(&arena->locks[i].mutex, 0, "mutex");
    judge_line(&arena->conds[0].cond, 0, "condition");
    for (unsigned i = 0; i < LINES; i++) judge_line(&arena->lines[i].word, i == SHOUTS ? 0 : RESIDENTS, "word");
    judge_failures();
}

/* There are as many tokens as in the beginning, and the storm continues. An actor at rest does not look at its page. */
static void call_for_storm(void) {
    count(&judges->actors[0], BURNT, tokens_now());
    for (unsigned i = 0; i <= MEMBERS_MOST; i++) {
        for (unsigned j = 0; j < ACTORS; j++) set_hand(&ledger->members[i].actors[j], 0, 0);
    }
    for (unsigned i = 0; i < TOKENS; i++) deal(&ledger->members[i % members].actors[i % THREADS], 1);
    PUT(ledger->moment, ledger->moment / 4 * 4 + STORM);
}

/* The storm. */

/* The replacement gets as many tokens as the member had. */
static void replace(unsigned number, void (*goes)(unsigned number)) {
    uint64_t before = books.died_with;
    goes(number);
    start_with(number, (uint32_t)(books.died_with - before));
}

static void kill_and_replace(unsigned number) {
    replace(number, member_killed);
}

static void strike(void) {
    unsigned number = (unsigned)random_below(&judge_seed, members);
    unsigned other = (number + 1) % members;
    uint64_t dice = random_below(&judge_seed, 100);
    if (dice < 70) {
        kill_and_replace(number);
    } else if (dice < 85) { /* notified while it is stopped, and killed before it notices */
        some_stop(number);
        books.stopped_kills++;
        kill_and_replace(number);
    } else if (dice < 95) {
        some_stop(number);
        if (other != number && one_in(&judge_seed, 2)) kill_and_replace(other);
        nap_ns((int64_t)random_below(&judge_seed, 5) * MILLISECOND);
        signal_member(number, SIGCONT);
    } else {
        replace(number, member_leaves);
    }
}

static void rage(void) {
    uint64_t next_rest = KILLS_TO_REST;
    while (books.kills < options.kills) {
        let_them_begin();
        strike();
        take_part();
        look_around();
        print_progress();
        if (books.kills < next_rest) continue;
        next_rest += KILLS_TO_REST;
        call_for_rest();
        judge();
        call_for_storm();
    }
    call_for_rest();
    judge();
}

/* A new member finds everything in order. */
static void judge_newcomer(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    PUT(ledger->moment, ledger->moment / 4 * 4 + STORM);
    start_with(0, TOKENS);
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

/* At the end all leave, and everything is available again. */
void token_storm(void) {
    take_part = receive_and_offer;
    residents_join();
    for (unsigned i = 0; i < members; i++) start_with(i, TOKENS / members);
    rage();
    all_leave();
    residents_leave();
    judge_places();
    residents_join();
    judge_newcomer();
}

void report_tokens(FILE *json) {
    if (json) {
        fprintf(json,
                " \"died_with_tokens\": %" PRIu64 ", \"offered_by_the_killed\": %" PRIu64 ", \"lost\": %" PRId64 "}\n",
                books.died_with, books.offered, tokens.on_few_instructions);
        return;
    }
    printf("Tokens: %" PRIu64 " given out, %" PRIu64 " died with their owners, %" PRIu64
           " were being offered by the killed, of which %" PRId64 " are missing; %" PRId64 " lost\n",
           books.dealt, books.died_with, books.offered, tokens.missing - tokens.on_few_instructions,
           tokens.on_few_instructions);
}
