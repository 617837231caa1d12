/* SPDX-License-Identifier: MIT */
/* The contestants. Each takes the lock again and again until the act is over, and records each visit in its book. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../cli.h"
#include "demo.h"

#define TICK_NS   (10 * MILLISECOND)
#define BUSY_NS   (MILLISECOND) /* how long each tick keeps the loop busy */
#define GO_HOME_S 30            /* this long after the end of an act, no contestant may still be waiting */

const char *const contestant_names[CONTESTANTS] = {"thread A", "thread B", "thread C", "thread D", "loop 1", "loop 2"};

struct contestant {
    int number;
    struct record *record;
    struct showing *showing;
    pthread_t thread;
    uint64_t random;

    /* A loop's. */
    vigil_agent *agent;
    vigil_request request;
    vigil_op timer, clock, change_of_mind;
    vigil_function *next;
    int64_t deadline_ns, next_tick_ns;
    bool waiting, gone;
};

static struct act *act;
static struct stage *stage;
static struct contestant contestants[CONTESTANTS];
static bool in_second; /* this is the second process */
static uint32_t never; /* a word that is never notified: a wait for it is a timer */

static void contest_count(uint32_t *number) {
    __atomic_fetch_add(number, 1, __ATOMIC_RELAXED);
}

static void expect(bool right) {
    if (!right) contest_count(&stage->failures);
}

/* Whether a contestant is still to be told of the death. In the second process this stays true: it runs until it is
 * killed. */
static bool news_to_come(void) {
    return act->two_processes && !__atomic_load_n(&act->heir_ns, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&act->lost, __ATOMIC_ACQUIRE);
}

static bool over(const struct contestant *me) {
    int64_t late_ns = vigil_now_ns() - (act->began_ns + act->duration_ns);
    return (late_ns >= 0 && !news_to_come()) || late_ns >= NO_NEWS_NS || me->record->count == me->record->capacity;
}

/* Random numbers. */

static uint32_t chance(struct contestant *me, uint32_t below) {
    me->random = me->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(me->random >> 33) % below;
}

/* A random time from half to one and a half of the duration. */
static int64_t about(struct contestant *me, int64_t duration_ns) {
    return duration_ns / 2 + (int64_t)chance(me, 1000) * duration_ns / 1000;
}

/* In slow motion, a pause before each visit. At full speed most contestants come back at once: then the order
 * matters. */
static int64_t time_to_think(struct contestant *me) {
    return act->slow || chance(me, 4) == 0 ? about(me, act->think_ns) : 0;
}

/* One visit in six has a deadline; of a loop's other visits, one in six is cancelled. */
static int64_t choose_deadline(struct contestant *me) {
    me->deadline_ns = chance(me, 6) == 0 ? about(me, act->deadline_ns) : VIGIL_FOREVER;
    return me->deadline_ns;
}

/* The book. */

static struct visit *visit_of(struct contestant *me) {
    return &me->record->visits[me->record->count];
}

static void begin_visit(struct contestant *me) {
    struct visit *visit = visit_of(me);
    int64_t deadline_ns = choose_deadline(me), now_ns = vigil_now_ns();
    visit->leaves_ns = deadline_ns == VIGIL_FOREVER ? INT64_MAX : now_ns + deadline_ns;
    visit->called_ns = now_ns;
    __atomic_store_n(&me->showing->asking, 2 * me->record->count + 1, __ATOMIC_SEQ_CST);
}

static void end_visit(struct contestant *me, enum ending ending) {
    struct visit *visit = visit_of(me);
    visit->ended_ns = vigil_now_ns();
    if (ending == GRANTED) visit->leaves_ns = visit->ended_ns;
    visit->ending = ending;
    visit->endings++;
    __atomic_store_n(&me->showing->asking, 2 * me->record->count + 2, __ATOMIC_SEQ_CST);
    contest_count(&me->showing->endings[ending]);
    if (ending != GRANTED) me->record->count++;
}

/*
 * A sleeping thread cannot say when it joined the line. But if the same contestants are asking before and after a
 * look at the line, and just as many waiters are in it, then all of them are in line. Places of the killed process
 * would be counted as well, until the line has been seen empty once. Only the holder looks.
 */
static void look_at_the_line(void) {
    uint32_t before[CONTESTANTS];
    int64_t asking = 0;
    for (int i = 0; i < CONTESTANTS; i++) {
        before[i] = __atomic_load_n(&stage->showing[i].asking, __ATOMIC_SEQ_CST);
        asking += before[i] & 1;
    }
    int64_t in_line = vigil_waiters(&stage->mutex), now_ns = vigil_now_ns();
    if (in_line == 0) stage->dead_in_line = false;
    if (in_line != asking || stage->dead_in_line) return;
    for (int i = 0; i < CONTESTANTS; i++) {
        if (__atomic_load_n(&stage->showing[i].asking, __ATOMIC_SEQ_CST) != before[i]) return;
    }
    for (int i = 0; i < CONTESTANTS; i++) {
        if (!(before[i] & 1)) continue;
        int64_t *seen_ns = &contestants[i].record->visits[before[i] / 2].in_line_ns, nobody = 0;
        __atomic_compare_exchange_n(seen_ns, &nobody, now_ns, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

/* The second process was killed with the lock held. Its heir repairs the stage and makes the mutex consistent. */
static void take_over(struct contestant *me) {
    expect(stage->owner && is_in_second(act, (int)stage->owner - 1) && !in_second);
    stage->owner = 0;
    visit_of(me)->owner_died = true;
    expect(vigil_mutex_consistent(&stage->mutex) == VIGIL_OK);
    act->heir = me->number;
    __atomic_store_n(&act->heir_ns, visit_of(me)->ended_ns, __ATOMIC_RELEASE);
}

/* `status`: that with which the lock was granted. */
static void enter(struct contestant *me, int status) {
    end_visit(me, GRANTED);
    if (status == VIGIL_OWNER_DIED) take_over(me);
    if (stage->owner) contest_count(&stage->intrusions);
    stage->owner = (uint32_t)me->number + 1;
    stage->counter++;
    __atomic_store_n(&me->showing->holding, 1, __ATOMIC_RELAXED);
    look_at_the_line();
}

static void leave(struct contestant *me) {
    look_at_the_line();
    __atomic_store_n(&me->showing->holding, 0, __ATOMIC_RELAXED);
    if (stage->owner != (uint32_t)me->number + 1) contest_count(&stage->intrusions);
    stage->owner = 0;
    visit_of(me)->released_ns = vigil_now_ns();
    me->record->count++;
    expect(vigil_mutex_unlock(&stage->mutex) == VIGIL_OK);
}

/* The first contestant of the second process that has the lock in the second half of the act keeps it: second.c waits
 * for that. */
static bool keeps_it(struct contestant *me) {
    if (!in_second || vigil_now_ns() < act->began_ns + act->duration_ns / 2) return false;
    stage->dead_in_line = true;
    __atomic_store_n(&stage->doomed, (uint32_t)me->number + 1, __ATOMIC_SEQ_CST);
    vigil_notify(&stage->doomed, VIGIL_ALL);
    return true;
}

static bool is_grant(int status) {
    return status == VIGIL_OK || status == VIGIL_OWNER_DIED;
}

/* Threads. */

static void work(int64_t duration_ns) {
    for (int64_t until_ns = vigil_now_ns() + duration_ns; vigil_now_ns() < until_ns;) vigil_atomics_pause();
}

void rest(int64_t duration_ns) {
    if (duration_ns == 0) return;
    struct timespec duration = {duration_ns / SECOND, duration_ns % SECOND};
    nanosleep(&duration, NULL);
}

static void *thread_main(void *argument) {
    struct contestant *me = argument;
    contest_count(&stage->ready);
    while (!over(me)) {
        begin_visit(me);
        int status = vigil_mutex_lock_for(&stage->mutex, me->deadline_ns);
        if (is_grant(status)) {
            enter(me, status);
            while (keeps_it(me)) pause();
            if (act->slow) rest(about(me, act->hold_ns));
            else work(about(me, act->hold_ns));
            leave(me);
        } else {
            expect(status == VIGIL_TIMED_OUT);
            end_visit(me, TIMED_OUT);
        }
        rest(time_to_think(me));
    }
    return NULL;
}

/* Loops: the same, without blocking. */

static void contest_ask(vigil_agent *agent, void *argument);

static void on_timer(vigil_op *op, int status) {
    struct contestant *me = op->data;
    expect(status == VIGIL_TIMED_OUT);
    me->next(me->agent, me);
}

static void contest_later(struct contestant *me, int64_t duration_ns, vigil_function *next) {
    me->next = next;
    int status = duration_ns ? vigil_wait32_async(me->agent, &me->timer, &never, 0, duration_ns, on_timer)
                             : vigil_agent_post(me->agent, next, me);
    expect(status == (duration_ns ? VIGIL_PENDING : VIGIL_OK));
}

static void release(vigil_agent *agent, void *argument) {
    struct contestant *me = argument;
    (void)agent;
    leave(me);
    contest_later(me, time_to_think(me), contest_ask);
}

static void on_answer(vigil_op *op, int status) {
    struct contestant *me = op->data;
    me->waiting = false;
    vigil_cancel(&me->change_of_mind);
    if (is_grant(status)) {
        enter(me, status);
        if (keeps_it(me)) {
            vigil_agent_ref(me->agent); /* the loop goes on until its process is killed */
        } else if (act->slow) {
            contest_later(me, about(me, act->hold_ns), release);
        } else {
            work(about(me, act->hold_ns));
            release(me->agent, me);
        }
    } else {
        expect(status == VIGIL_TIMED_OUT);
        end_visit(me, TIMED_OUT);
        contest_later(me, time_to_think(me), contest_ask);
    }
}

static void on_change_of_mind(vigil_op *op, int status) {
    struct contestant *me = op->data;
    visit_of(me)->leaves_ns = vigil_now_ns();
    expect(status == VIGIL_TIMED_OUT);
    expect(vigil_cancel(&me->request.op) == VIGIL_OK);
    me->waiting = false;
    end_visit(me, CANCELLED);
    contest_later(me, time_to_think(me), contest_ask);
}

static void contest_ask(vigil_agent *agent, void *argument) {
    struct contestant *me = argument;
    if ((me->gone = over(me))) return;
    begin_visit(me);
    me->waiting = true;
    int status = vigil_mutex_lock_async(agent, &me->request, &stage->mutex, me->deadline_ns, on_answer);
    if (status != VIGIL_PENDING) {
        on_answer(&me->request.op, status);
        return;
    }
    __atomic_store_n(&visit_of(me)->in_line_ns, vigil_now_ns(), __ATOMIC_RELAXED);
    if (me->deadline_ns == VIGIL_FOREVER && chance(me, 6) == 0)
        vigil_wait32_async(agent, &me->change_of_mind, &never, 0, about(me, act->cancel_ns), on_change_of_mind);
}

static void start_clock(struct contestant *me);

static void on_tick(vigil_op *op, int status) {
    struct contestant *me = op->data;
    struct record *record = me->record;
    int64_t now_ns = vigil_now_ns();
    expect(status == VIGIL_TIMED_OUT);
    work(BUSY_NS);
    record->ticks[record->tick_count++] =
        (struct tick){now_ns, now_ns - me->next_tick_ns, vigil_now_ns() - now_ns, me->waiting};
    contest_count(&me->showing->ticks);
    if (!me->gone && record->tick_count < record->tick_capacity) start_clock(me);
}

static void start_clock(struct contestant *me) {
    int64_t now_ns = vigil_now_ns();
    me->next_tick_ns += TICK_NS;
    if (me->next_tick_ns <= now_ns) me->next_tick_ns = now_ns + TICK_NS;
    expect(vigil_wait32_async(me->agent, &me->clock, &never, 0, me->next_tick_ns - now_ns, on_tick) == VIGIL_PENDING);
}

static void *loop_main(void *argument) {
    struct contestant *me = argument;
    must("cannot make an event loop", vigil_agent_create(&me->agent, VIGIL_AGENT_MAY_NOT_BLOCK));
    contest_count(&stage->ready);
    me->request.op.data = me->timer.data = me->clock.data = me->change_of_mind.data = me;
    me->next_tick_ns = act->began_ns;
    if (me->number == TICKING) start_clock(me);
    vigil_agent_post(me->agent, contest_ask, me);
    vigil_agent_run(me->agent);
    vigil_agent_destroy(me->agent);
    return NULL;
}

/* The act. */

static void contest_prepare(int number) {
    struct record *record = &act->records[number];
    record->capacity = book_capacity(act);
    record->tick_capacity = number == TICKING ? (uint32_t)(act->duration_ns / TICK_NS) * 2 + 1000 : 0;
    record->ticks = calloc(record->tick_capacity + 1, sizeof *record->ticks);
    must("cannot note down the ticks", record->ticks ? VIGIL_OK : VIGIL_ENOMEM);
    contestants[number] = (struct contestant){.number = number, .record = record, .random = (uint64_t)number + 1};
}

void start_thread(pthread_t *thread, void *(*main)(void *), void *argument) {
    errno = pthread_create(thread, NULL, main, argument);
    must("cannot start a thread", errno ? VIGIL_ESYSTEM : VIGIL_OK);
}

/* The contestants of this process. */
static void start_contestants(void) {
    stage = act->stage;
    for (int i = 0; i < CONTESTANTS; i++) {
        if (is_in_second(act, i) != in_second) continue;
        contestants[i].showing = &stage->showing[i];
        start_thread(&contestants[i].thread, is_loop(i) ? loop_main : thread_main, &contestants[i]);
    }
}

static void play_in_second(void) {
    in_second = true;
    start_contestants();
    for (;;) pause();
}

/* A failure to start is reported before anything is shown. */
static void wait_for_contestants(void) {
    while (__atomic_load_n(&stage->ready, __ATOMIC_RELAXED) < CONTESTANTS) {
        if (act->two_processes && second_has_ended()) exit(CLI_CANNOT); /* it has printed why */
        rest(MILLISECOND / 10);
    }
}

void contest_begin(struct act *next) {
    act = next;
    stage_open(act);
    for (int i = 0; i < CONTESTANTS; i++) contest_prepare(i);
    act->began_ns = vigil_now_ns();
    if (act->two_processes) second_begin(act, play_in_second);
    start_contestants();
    wait_for_contestants();
    if (act->two_processes) second_doom();
}

static void wait_for_end(const struct contestant *one) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += GO_HOME_S;
    if (pthread_timedjoin_np(one->thread, NULL, &until) == 0) return;
    printf("\nWRONG: %s still waits, %d s after the end\n", contestant_names[one->number], GO_HOME_S);
    exit(1);
}

void contest_end(void) {
    for (int i = 0; i < CONTESTANTS; i++) {
        if (!is_in_second(act, i)) wait_for_end(&contestants[i]);
    }
    if (act->two_processes) second_end();
    act->counted = stage->counter;
    act->intrusions = stage->intrusions;
    act->failures = stage->failures;
    stage_close(act);
    stage = act->stage;
}

void contest_glimpse(int number, struct glimpse *glimpse) {
    struct showing *one = &stage->showing[number];
    uint32_t asking = __atomic_load_n(&one->asking, __ATOMIC_SEQ_CST);
    glimpse->waiting = asking & 1;
    glimpse->holding = __atomic_load_n(&one->holding, __ATOMIC_RELAXED);
    glimpse->dead = is_in_second(act, number) && __atomic_load_n(&act->killed_ns, __ATOMIC_ACQUIRE);
    glimpse->called_ns = glimpse->waiting ? act->records[number].visits[asking / 2].called_ns : 0;
    for (int i = 0; i < ENDINGS; i++) glimpse->endings[i] = __atomic_load_n(&one->endings[i], __ATOMIC_RELAXED);
}

uint32_t contest_ticks(void) {
    return __atomic_load_n(&stage->showing[TICKING].ticks, __ATOMIC_RELAXED);
}
