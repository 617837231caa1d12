/* SPDX-License-Identifier: MIT */
/* Looking at a segment from outside, checking and mending it, and recording what happens there. */
#include "support.h"

#include "child.h"
#include "actors.h"

#include "lot/shared.h"
#include "observe/observer.h"
#include "vigil/mutex.h"
#include "vigil/observe.h"
#include "vigil/rwlock.h"
#include "vigil/sem.h"

/* In the segment. */
#define WORD       0u
#define MUTEX      64u
#define RWLOCK     128u
#define SEM        192u
#define OTHER_WORD 256u

static vigil_observer *observer;
static vigil_look seen;

static int observe(void **state) {
    set_up(state);
    return vigil_observer_open_fd(&observer, fds[0]) != VIGIL_OK;
}

static int stop_observing(void **state) {
    assert_int_equal(vigil_observer_close(observer), VIGIL_OK);
    return tear_down(state);
}
#undef TEST
#define TEST(function) cmocka_unit_test_setup_teardown(function, observe, stop_observing)

static void look(void) {
    assert_int_equal(vigil_observer_look(observer, &seen), VIGIL_OK);
}

/* The line at that offset; null: no holder and no waiter. */
static const vigil_seen_line *line_at(uint32_t offset) {
    look();
    for (uint32_t i = 0; i < seen.line_count; i++) {
        if (seen.lines[i].offset == offset) return &seen.lines[i];
    }
    return NULL;
}

static uint32_t waiting_at(uint32_t offset) {
    const vigil_seen_line *line = line_at(offset);
    return line ? line->waiter_count : 0;
}

static pid_t pid_of(uint32_t number) {
    for (uint32_t i = 0; i < seen.member_count; i++) {
        if (seen.members[i].number == number) return (pid_t)seen.members[i].pid;
    }
    return -1;
}

/* Acts. */

static int64_t lock_mutex(const struct order *order) {
    return vigil_mutex_lock(at(order->where));
}

static int64_t unlock_mutex(const struct order *order) {
    return vigil_mutex_unlock(at(order->where));
}

static int64_t lock_to_read(const struct order *order) {
    return vigil_rwlock_read_lock(at(order->where));
}

static int64_t unlock_to_read(const struct order *order) {
    return vigil_rwlock_read_unlock(at(order->where));
}

static int64_t lock_to_write(const struct order *order) {
    return vigil_rwlock_write_lock(at(order->where));
}

static int64_t unlock_to_write(const struct order *order) {
    return vigil_rwlock_write_unlock(at(order->where));
}

static int64_t acquire(const struct order *order) {
    return vigil_sem_acquire(at(order->where), (uint32_t)order->number);
}

static int64_t release(const struct order *order) {
    return vigil_sem_release(at(order->where), (uint32_t)order->number);
}

static int64_t lock_and_unlock_often(const struct order *order) {
    for (int64_t i = 0; i < order->number; i++) {
        int status = vigil_mutex_lock(at(MUTEX));
        if (status != VIGIL_OK || vigil_mutex_unlock(at(MUTEX)) != VIGIL_OK) return -1;
        if (vigil_rwlock_read_lock(at(RWLOCK)) != VIGIL_OK || vigil_rwlock_read_unlock(at(RWLOCK)) != VIGIL_OK)
            return -1;
        if (vigil_rwlock_write_lock(at(RWLOCK)) != VIGIL_OK || vigil_rwlock_write_unlock(at(RWLOCK)) != VIGIL_OK)
            return -1;
    }
    return VIGIL_OK;
}

/* Opening. */

static void what_cannot_be_observed(void **state) {
    (void)state;
    vigil_observer *none = NULL;
    vigil_look nothing_seen;
    assert_int_equal(vigil_observer_open(NULL, "x"), VIGIL_ENULL);
    assert_int_equal(vigil_observer_open(&none, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_observer_open(&none, "a b"), VIGIL_ENAME);
    assert_int_equal(vigil_observer_open(&none, "no-such-segment-here"), VIGIL_ENOTFOUND);
    assert_int_equal(vigil_observer_open_fd(&none, -1), VIGIL_EINVAL);
    int null = open("/dev/null", O_RDWR);
    assert_int_equal(vigil_observer_open_fd(&none, null), VIGIL_EFOREIGN);
    close(null);
    assert_null(none);
    assert_int_equal(vigil_observer_close(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_observer_look(NULL, &nothing_seen), VIGIL_ENULL);
    assert_int_equal(vigil_observer_look(observer, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_observer_check(NULL, NULL, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_observer_record(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_observer_events(NULL, NULL, 0, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_mend(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_list(NULL, NULL), VIGIL_ENULL);
}

static void count_name(const char *name, void *data) {
    const char **wanted = data;
    if (wanted[0] && strcmp(name, wanted[0]) == 0) wanted[0] = NULL;
}

static void names_and_labels(void **state) {
    (void)state;
    char name[64];
    snprintf(name, sizeof name, "observed-%d", (int)getpid());
    vigil_buffer *buffer = NULL;
    vigil_segment_options options = {.label = "thirty-one characters, no more."};
    assert_int_equal(vigil_segment_create(&buffer, name, &options), VIGIL_OK);
    assert_string_equal(vigil_segment_label(buffer), options.label);
    assert_string_equal(vigil_segment_label(buffers[0]), "");
    assert_string_equal(vigil_segment_label(NULL), "");
    vigil_observer *by_name = NULL;
    assert_int_equal(vigil_observer_open(&by_name, name), VIGIL_OK);
    assert_int_equal(vigil_observer_look(by_name, &seen), VIGIL_OK);
    assert_string_equal(seen.label, options.label);
    assert_int_equal(vigil_observer_close(by_name), VIGIL_OK);
    const char *wanted = name;
    assert_true(vigil_segment_list(count_name, &wanted) >= 1);
    assert_null(wanted);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
    assert_int_equal(vigil_segment_unlink(name), VIGIL_OK);
    const char *bad[] = {"thirty-two characters are too many", "a\nline", "\x7f", "\xc3\xa4"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        options.label = bad[i];
        assert_int_equal(vigil_segment_create_anonymous(&buffer, &options), VIGIL_EINVAL);
    }
}

/* Members. */

static void members_are_seen(void **state) {
    (void)state;
    actors_start(2);
    look();
    assert_int_equal(seen.member_count, 3);
    assert_int_equal(seen.members[0].pid, getpid());
    for (int i = 0; i < 2; i++) {
        assert_int_equal(seen.members[i + 1].pid, actors[i].pid);
        assert_true(seen.members[i + 1].alive && seen.members[i + 1].number != seen.members[0].number);
        assert_memory_equal(seen.members[i + 1].program, "unit_shared_ob", 14);
    }
    actor_kill(&actors[0]); /* it is struck off, and nothing else needs mending */
    do look();
    while (seen.member_count == 3);
    assert_int_equal(seen.member_count, 2);
    assert_int_equal(seen.members[1].pid, actors[1].pid);
    assert_true(seen.members[1].alive);
    assert_int_equal(vigil_segment_mend(buffers[0]), 0);
}

/* An observer is not a member: a process that opens the segment as the only member finds it as if it were new. */
static void an_observer_is_no_member(void **state) {
    (void)state;
    assert_int_equal(vigil_sem_tryacquire(&(vigil_sem)VIGIL_SEM_INIT(1), 1), VIGIL_OK);
    actors_start(1);
    assert_int_equal(actor_does(&actors[0], lock_to_write, RWLOCK), VIGIL_OK);
    assert_int_equal(vigil_buffer_destroy(buffers[0]), 0);
    actor_kill(&actors[0]);
    assert_int_equal(line_at(RWLOCK)->holder_count, 1);
    assert_int_equal(vigil_segment_open_fd(&buffers[0], fds[0]), VIGIL_OK);
    assert_null(line_at(RWLOCK));
    assert_int_equal(vigil_rwlock_write_trylock(at(RWLOCK)), VIGIL_OWNER_DIED);
}

/* The first member of an emptied segment counts dead members from the start again: the count may equal an older one. */
static void as_many_gone_as_before(void **state) {
    (void)state;
    actors_start(4); /* so that more rows are used now than later */
    actors_dismiss();
    struct segment_header *header = mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    assert_true(header != MAP_FAILED);
    header->recovered = 2; /* the count when one of the two actors that follow is killed */
    assert_int_equal(vigil_buffer_destroy(buffers[0]), 0);
    assert_int_equal(vigil_segment_open_fd(&buffers[0], fds[0]), VIGIL_OK);
    actors_start(2);
    assert_int_equal(actor_does(&actors[0], lock_to_read, RWLOCK), VIGIL_OK);
    actor_kill(&actors[0]);
    assert_int_equal(actor_does(&actors[1], lock_to_write, RWLOCK), VIGIL_OK);
    assert_int_equal(actor_does(&actors[1], unlock_to_write, RWLOCK), VIGIL_OK);
    munmap(header, sizeof *header);
}

/* Lines. */

/* Never late, and early by as much as the kernel's coarse clock may be behind: 10 s, on a machine that stands still. */
static void assert_about(int64_t since_ns, int64_t after_ns, int64_t before_ns) {
    assert_true(since_ns > after_ns - INT64_C(10000000000));
    assert_true(since_ns <= before_ns);
}

static void a_line_in_order(void **state) {
    (void)state;
    actors_start(4);
    int64_t before_ns = vigil_now_ns();
    actor_begin(&actors[0], wait_32, WORD);
    AWAIT(waiting_at(WORD) == 1);
    assert_int_equal(actor_does(&actors[1], wait_async, WORD), VIGIL_PENDING);
    actor_begin(&actors[2], wait_32, WORD);
    AWAIT(waiting_at(WORD) == 3);
    assert_int_equal(actor_does(&actors[3], wait_async, WORD), VIGIL_PENDING);
    const vigil_seen_line *line = line_at(WORD);
    assert_int_equal(line->waiter_count, 4);
    assert_int_equal(line->holder_count, 0);
    assert_int_equal(line->kind, VIGIL_SEEN_WORD);
    assert_string_equal(vigil_seen_kind_name(line->kind), "word");
    for (int i = 0; i < 4; i++) {
        const vigil_seen_waiter *waiter = &line->waiters[i];
        assert_int_equal(pid_of(waiter->number), actors[i].pid);
        assert_int_equal(waiter->thread_id, i % 2 ? 0 : actors[i].pid); /* its main thread */
        assert_false(waiter->called);
        assert_about(waiter->since_ns, before_ns, seen.at_ns);
    }
    assert_int_equal(seen.slots_used, 4);
    assert_int_equal(vigil_notify(at(WORD), VIGIL_ALL), 4);
    for (int i = 0; i < 4; i++) assert_hears(&actors[i], VIGIL_OK);
    AWAIT(!line_at(WORD));
}

static void who_is_called_and_does_not_come(void **state) {
    (void)state;
    actors_start(2);
    assert_int_equal(actor_does(&actors[0], wait_async, WORD), VIGIL_PENDING);
    actor_stop(&actors[0]);
    assert_int_equal(vigil_notify(at(WORD), 1), 1);
    const vigil_seen_line *line = line_at(WORD);
    assert_int_equal(line->waiter_count, 1);
    assert_true(line->waiters[0].called);
    actor_continue(&actors[0]);
    assert_hears(&actors[0], VIGIL_OK);
}

static void locks_and_their_holders(void **state) {
    (void)state;
    actors_start(3);
    *(vigil_sem *)at(SEM) = (vigil_sem)VIGIL_SEM_LEASED(5);
    assert_int_equal(actor_does(&actors[0], lock_mutex, MUTEX), VIGIL_OK);
    assert_null(line_at(MUTEX)); /* only the program knows what that word is */
    int64_t before_ns = vigil_now_ns();
    assert_int_equal(actor_does(&actors[0], lock_to_write, RWLOCK), VIGIL_OK);
    assert_int_equal(actor_does_with(&actors[0], acquire, SEM, 4), VIGIL_OK);
    int64_t now_ns = vigil_now_ns();
    actor_begin(&actors[1], lock_mutex, MUTEX);
    actor_begin(&actors[2], lock_to_read, RWLOCK);
    AWAIT(waiting_at(MUTEX) == 1 && waiting_at(RWLOCK) == 1);

    const vigil_seen_line *line = line_at(MUTEX);
    assert_int_equal(line->kind, VIGIL_SEEN_MUTEX);
    assert_int_equal(line->holder_count, 1);
    assert_int_equal(pid_of(line->holders[0].number), actors[0].pid);
    assert_int_equal(line->holders[0].since_ns, 0);
    line = line_at(RWLOCK);
    assert_int_equal(line->kind, VIGIL_SEEN_RWLOCK);
    assert_int_equal(line->holder_count, 1);
    assert_int_equal(pid_of(line->holders[0].number), actors[0].pid);
    assert_false(line->holders[0].shared);
    assert_about(line->holders[0].since_ns, before_ns, now_ns);
    assert_true(line->waiters[0].shared);
    line = line_at(SEM);
    assert_int_equal(line->kind, VIGIL_SEEN_SEM);
    assert_int_equal(line->holders[0].count, 4);
    assert_int_equal(line->waiter_count, 0);

    actor_kill(&actors[0]); /* the waiters are told, and hold it now */
    assert_hears(&actors[1], VIGIL_OWNER_DIED);
    assert_hears(&actors[2], VIGIL_OWNER_DIED);
    line = line_at(RWLOCK);
    assert_true(line->owner_died);
    assert_true(line->holders[0].shared);
    assert_int_equal(actor_does(&actors[1], unlock_mutex, MUTEX), VIGIL_OK);
    assert_int_equal(actor_does(&actors[2], unlock_to_read, RWLOCK), VIGIL_OK);
    look();
    assert_int_equal(seen.line_count, 0);
}

/* Checking. */

static struct {
    uint32_t counts[VIGIL_FINDINGS];
    char last[200];
} found;

static void note_finding(vigil_finding finding, const char *sentence, void *data) {
    (void)data;
    found.counts[finding]++;
    snprintf(found.last, sizeof found.last, "%s", sentence);
}

static int64_t check(void) {
    memset(&found, 0, sizeof found);
    return vigil_observer_check(observer, note_finding, NULL);
}

/* However busy the members are, nothing is reported as damage, and no member is held up. */
static void nothing_is_wrong_while_all_goes_well(void **state) {
    (void)state;
    actors_start(3);
    for (int i = 0; i < 3; i++) {
        actor_order(&actors[i], &(struct order){.act = lock_and_unlock_often, .number = 3000});
    }
    int looks = 0;
    do {
        int64_t findings = check();
        if (findings) fprintf(stderr, "%s\n", found.last);
        assert_int_equal(findings, 0);
        look();
        looks++;
    } while (actor_silent(&actors[0]) || looks < 20);
    for (int i = 0; i < 3; i++) assert_hears(&actors[i], VIGIL_OK);
}

/*
 * Stops them while none of them is inside a line. While the lot is damaged no member may use it: members trust each
 * other.
 */
static void stop_all(int count) {
    struct lot *lot = lot_in(buffers[0]->segment);
    for (bool inside = true; inside;) {
        for (int i = 0; i < count; i++) actor_stop(&actors[i]);
        inside = false;
        for (uint32_t i = 0; i < 1u << lot->bucket_bits; i++) inside |= prim_load_relaxed(&lot->buckets[i].word) & 1;
        for (int i = 0; i < count && inside; i++) actor_continue(&actors[i]);
    }
}

/* No process has swept after it: the observer is not a member, and the only member is stopped. */
static void the_dead_are_found(void **state) {
    (void)state;
    actors_start(2);
    actor_begin(&actors[0], wait_32, WORD);
    AWAIT(waiting_at(WORD) == 1);
    stop_all(2);
    assert_int_equal(vigil_buffer_destroy(buffers[0]), 0);
    actor_kill(&actors[0]);
    assert_int_equal(check(), 1); /* only the member: its slot still belongs to one */
    assert_int_equal(found.counts[VIGIL_FINDING_DEAD], 1);
    assert_non_null(strstr(found.last, "has died"));
    actor_continue(&actors[1]);
    AWAIT(check() == 0 && !line_at(WORD));
    assert_int_equal(vigil_segment_open_fd(&buffers[0], fds[0]), VIGIL_OK);
}

static struct slot *slot_at(uint32_t offset, uint32_t nth) {
    struct lot *lot = lot_in(buffers[0]->segment);
    uint64_t key = (uint64_t)(uintptr_t)at(offset) - lot->base;
    for (uint32_t i = 1; i < lot->share->slots; i++) {
        if (lot->share->claims[i] && lot->slots[i].key == key && !nth--) return &lot->slots[i];
    }
    return NULL;
}

static uint32_t free_slot(void) {
    struct lot *lot = lot_in(buffers[0]->segment);
    uint32_t index = 1;
    while (lot->share->claims[index]) index++;
    return index;
}

/*
 * The links of a line are overwritten: this is found and mended, and the waiters there are notified in order. Which
 * slots the waiters have depends on their processes' random numbers. So what is written is derived from the line:
 * any fixed index would sometimes be the right one.
 */
static void damaged_links(void **state) {
    (void)state;
    enum damage { NEXT, PREV, TAIL, FREE_TAIL, FAR_AWAY, DAMAGES };
    for (enum damage damage = 0; damage < DAMAGES; damage++) {
        actors_start(3);
        for (uint32_t i = 0; i < 3; i++) {
            actor_begin(&actors[i], wait_32, WORD);
            AWAIT(waiting_at(WORD) == i + 1);
        }
        stop_all(3);
        struct slot *head = slot_at(WORD, 0);
        while (prim_load_relaxed(&head->prev)) head = &lot_in(buffers[0]->segment)->slots[head->prev];
        if (damage == NEXT) head->next = 0;
        else if (damage == PREV) lot_in(buffers[0]->segment)->slots[head->next].prev = 0;
        else if (damage == TAIL) head->tail = head->next;
        else if (damage == FREE_TAIL) head->tail = free_slot();
        else head->next = 123456789;
        assert_true(check() >= 1);
        assert_int_equal(found.counts[VIGIL_FINDING_BROKEN], check());
        assert_true(vigil_segment_mend(buffers[0]) >= 1);
        assert_int_equal(check(), 0);
        for (int i = 0; i < 3; i++) actor_continue(&actors[i]);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(vigil_notify(at(WORD), 1), 1);
            assert_hears(&actors[i], VIGIL_OK);
        }
        actors_dismiss();
    }
}

static void a_stopped_process_in_a_bucket(void **state) {
    (void)state;
    struct lot *lot = lot_in(buffers[0]->segment);
    lot->buckets[0].word = 1u | lot->number << 4; /* as if this process held it */
    assert_int_equal(check(), 1);
    assert_int_equal(found.counts[VIGIL_FINDING_STUCK], 1);
    lot->buckets[0].word = 1u | 12345u << 4; /* not a member's number */
    assert_int_equal(check(), 1);
    assert_int_equal(found.counts[VIGIL_FINDING_DEAD], 1);
    assert_int_equal(vigil_segment_mend(buffers[0]) >= 0, true);
    assert_int_equal(check(), 0);
}

/* The next waiter there would stand behind a slot that does not wait. */
static void a_line_of_nobody(void **state) {
    (void)state;
    lot_in(buffers[0]->segment)->buckets[0].line = 5;
    assert_int_equal(check(), 1);
    assert_int_equal(found.counts[VIGIL_FINDING_BROKEN], 1);
    assert_int_equal(vigil_segment_mend(buffers[0]), 1);
    assert_int_equal(check(), 0);
}

static int64_t read_and_wait_often(const struct order *order) {
    for (int64_t i = 0; i < order->number; i++) {
        if (vigil_rwlock_read_lock(at(RWLOCK)) != VIGIL_OK || vigil_rwlock_read_unlock(at(RWLOCK)) != VIGIL_OK)
            return -1;
        if (vigil_wait32(at(WORD), 0, 1) != VIGIL_TIMED_OUT) return -2;
    }
    return VIGIL_OK;
}

/* However busy the members are: nothing that is intact is mended, and no waiter is harmed. */
static void mending_what_is_well(void **state) {
    (void)state;
    actors_start(3);
    assert_int_equal(actor_does(&actors[2], wait_async, OTHER_WORD), VIGIL_PENDING);
    for (int i = 0; i < 2; i++) actor_order(&actors[i], &(struct order){.act = read_and_wait_often, .number = 30000});
    while (actor_silent(&actors[0]) || actor_silent(&actors[1])) assert_int_equal(vigil_segment_mend(buffers[0]), 0);
    for (int i = 0; i < 2; i++) assert_hears(&actors[i], VIGIL_OK);
    assert_int_equal(vigil_notify(at(OTHER_WORD), 1), 1);
    assert_hears(&actors[2], VIGIL_OK);
}

static void note_status(vigil_op *op, int status) {
    *(int *)op->data = status;
}

/* The same for an event loop of the process that mends. */
static void mending_while_one_waits(void **state) {
    (void)state;
    vigil_agent *agent;
    int status = VIGIL_PENDING;
    vigil_op op = {.data = &status};
    assert_int_equal(vigil_agent_create(&agent, 0), VIGIL_OK);
    assert_int_equal(vigil_wait32_async(agent, &op, at(WORD), 0, VIGIL_FOREVER, note_status), VIGIL_PENDING);
    assert_int_equal(vigil_segment_mend(buffers[0]), 0);
    assert_int_equal(check(), 0);
    assert_int_equal(vigil_notify(at(WORD), 1), 1);
    vigil_agent_run(agent);
    assert_int_equal(status, VIGIL_OK);
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
}

/* A waiter at a place where no process can notify it any more is woken. */
static void a_waiter_whose_key_is_lost(void **state) {
    (void)state;
    actors_start(1);
    actor_begin(&actors[0], wait_32, WORD);
    AWAIT(waiting_at(WORD) == 1);
    stop_all(1);
    slot_at(WORD, 0)->key = 3;
    assert_true(check() >= 1);
    assert_true(vigil_segment_mend(buffers[0]) >= 1);
    actor_continue(&actors[0]);
    assert_hears(&actors[0], VIGIL_OK);
    assert_int_equal(check(), 0);
}

/* A length that exceeds the file, a header that cannot be opened, members that are overlooked: none of it is fatal. */
static void a_damaged_header(void **state) {
    (void)state;
    struct segment_header *header = segment_header(buffers[0]->segment), good = *header;
    actors_start(1);
    actor_begin(&actors[0], wait_32, WORD);
    AWAIT(waiting_at(WORD) == 1);
    header->length = UINT64_MAX;
    assert_int_equal(check(), 1);
    look();
    assert_int_equal(seen.length, 4096);
    header->length = good.length;
    memset(header->label, 'A', sizeof header->label);
    assert_int_equal(check(), 1);
    look();
    assert_string_equal(seen.label, "");
    assert_string_equal(vigil_segment_label(buffers[0]), "");
    memcpy(header->label, good.label, sizeof header->label);
    header->rows = 1; /* only this process is left */
    assert_true(check() >= 1);
    assert_int_equal(found.counts[VIGIL_FINDING_BROKEN], 1);
    assert_int_equal(vigil_segment_mend(buffers[0]), 1);
    assert_int_equal(check(), 0);
    assert_int_equal(vigil_notify(at(WORD), 1), 1);
    assert_hears(&actors[0], VIGIL_OK);
}

/*
 * A live process holds every bucket permanently: mending ends, and is completed once they are free. The buckets are
 * taken before the death, so that the keeper of this process cannot sweep meanwhile.
 */
static void mending_around_the_stuck(void **state) {
    (void)state;
    struct lot *lot = lot_in(buffers[0]->segment);
    actors_start(1);
    actor_begin(&actors[0], wait_32, WORD);
    AWAIT(waiting_at(WORD) == 1);
    for (uint32_t i = 0; i < 1u << lot->bucket_bits; i++) lot->buckets[i].word |= 1u | lot->number << 4;
    actor_kill(&actors[0]);
    vigil_segment_mend(buffers[0]);
    assert_int_equal(waiting_at(WORD), 1);
    for (uint32_t i = 0; i < 1u << lot->bucket_bits; i++) lot->buckets[i].word &= ~(1u | UINT32_MAX << 4);
    vigil_segment_mend(buffers[0]);
    AWAIT(check() == 0);
    assert_int_equal(waiting_at(WORD), 0);
}

/* Whatever is written there, looking and mending end, and afterwards there is no damage. */
static void garbage(void **state) {
    (void)state;
    struct lot *lot = lot_in(buffers[0]->segment);
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 40; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            struct slot *slot = &lot->slots[random % 64];
            uint32_t *claim = &lot->share->claims[random % 64], small = (uint32_t)(random >> 40) % 300;
            switch (random >> 8 & 15) {
            case 0: *claim = small; break;
            case 1: *claim = lot->number; break;
            case 2: slot->key = random; break;
            case 3: slot->key = buffers[0]->segment->layout.user_at + small; break;
            case 4: slot->kind = small % 12; break;
            case 5: slot->state = small; break;
            case 6: slot->state = SLOT_WAITING; break;
            case 7: slot->next = small % 70; break;
            case 8: slot->prev = (uint32_t)random; break;
            case 9: slot->next_line = small % 3 ? small % 70 : (uint32_t)random; break;
            case 10: slot->of = small % 12; break;
            case 11: lot->buckets[random % 256].line = small % 3 ? small % 70 : (uint32_t)random; break;
            case 12: lot->buckets[random % 256].word = (small % 4) | small << 4; break;
            case 13: slot->tail = small % 70; break;
            case 14:
                slot->seat = small % 3;
                slot->row = small % 5 ? small % 80 : random;
                break;
            case 15: slot->gift = random; break;
            }
        }
        look();
        if (round % 50 == 0) check();
        if (round % 10) continue;
        for (uint32_t i = 1; i < lot->share->slots; i++) {
            if (lot->share->claims[i] == lot->number) lot->share->claims[i] = 0; /* this process has no waiters */
        }
        assert_true(vigil_segment_mend(buffers[0]) >= 0);
        int64_t findings = check();
        if (findings) fprintf(stderr, "round %d: %s\n", round, found.last);
        assert_int_equal(findings, 0);
    }
    assert_int_equal(vigil_rwlock_write_trylock(at(RWLOCK)) >= 0, true);
}

/* Much damage: it is reported as far as there is room, and the slots are not scanned again for each finding. */

#define MANY        2000u
#define FOUND_MOST  256
#define PASSES_MOST 200u

static void observe_many(void) {
    assert_int_equal(vigil_observer_close(observer), VIGIL_OK);
    segment_end(0);
    segment_new(0, &(vigil_segment_options){.length = MANY * sizeof(vigil_rwlock), .waiters = MANY + 8});
    assert_int_equal(vigil_observer_open_fd(&observer, fds[0]), VIGIL_OK);
    segment_header(buffers[0]->segment)->slots_backed = MANY + 9; /* as after a crowd */
}

static void assert_told_soon(const char *sentence) {
    uint64_t before = observer->passes;
    assert_int_equal(check(), FOUND_MOST);
    assert_int_equal(found.counts[VIGIL_FINDING_BROKEN], FOUND_MOST);
    assert_non_null(strstr(found.last, sentence));
    assert_in_range(observer->passes - before, 1, PASSES_MOST);
}

static void many_locks_written_over(void **state) {
    (void)state;
    observe_many();
    vigil_rwlock *locks = at(0);
    for (uint32_t i = 0; i < MANY; i++) assert_int_equal(vigil_rwlock_read_lock(&locks[i]), VIGIL_OK);
    assert_int_equal(check(), 0);
    memset(locks, 0x40, MANY * sizeof *locks);
    assert_told_soon("disagrees with its holders' holds");
}

/* As if this process waited there, in no line. */
static struct slot *forge_waiter(uint32_t index, uint32_t offset) {
    struct lot *lot = lot_in(buffers[0]->segment);
    struct slot *slot = &lot->slots[index];
    *slot = (struct slot){.key = (uint64_t)(uintptr_t)at(offset) - lot->base, .state = SLOT_WAITING};
    lot->share->claims[index] = lot->number;
    return slot;
}

static void unforge_waiter(uint32_t index) {
    struct lot *lot = lot_in(buffers[0]->segment);
    lot->share->claims[index] = 0;
    lot->slots[index] = (struct slot){0};
}

static void many_waiters_in_no_line(void **state) {
    (void)state;
    observe_many();
    for (uint32_t i = 1; i <= MANY; i++) forge_waiter(i, (i - 1) * (uint32_t)sizeof(uint32_t));
    assert_told_soon("a slot is waiting, but is not linked into a line");
    for (uint32_t i = 1; i <= MANY; i++) unforge_waiter(i);
    assert_int_equal(check(), 0);
}

/* Times. */

static void assert_in_the_past(int64_t since_ns) {
    assert_true(since_ns >= 0);
    assert_true(since_ns <= seen.at_ns);
}

static void damaged_times(void **state) {
    (void)state;
    const uint64_t times[] = {0, 1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    struct slot *waiter = forge_waiter(1, WORD), *holder = forge_waiter(2, RWLOCK);
    *holder = (struct slot){.key = holder->key + 1, .kind = SLOT_HOLDS, .of = SLOT_RWLOCK, .held = 1};
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        waiter->began_ns = times[i];
        waiter->seat = 1; /* an event loop's */
        assert_in_the_past(line_at(WORD)->waiters[0].since_ns);
    }
    for (uint64_t ms = 0; ms < UINT32_MAX; ms += UINT32_MAX / 100) { /* the clock has run for less than most of these */
        waiter->signature = holder->signature = ms << 32 | 1;
        waiter->seat = 0; /* a thread's */
        assert_in_the_past(line_at(WORD)->waiters[0].since_ns);
        assert_in_the_past(line_at(RWLOCK)->holders[0].since_ns);
    }
    unforge_waiter(1);
    unforge_waiter(2);
}

/* Recording. */

static vigil_event events[2 * VIGIL_EVENTS_KEPT];
static size_t event_count;

static const vigil_event *event_of(vigil_event_type type, uint32_t offset) {
    int64_t more = vigil_observer_events(observer, events + event_count, COUNT_OF(events) - event_count, NULL);
    assert_true(more >= 0);
    event_count += (size_t)more;
    for (size_t i = 0; i < event_count; i++) {
        if (events[i].type == type && events[i].offset == offset) return &events[i];
    }
    return NULL;
}

/* However slow the test is, recording has not ended by then. */
static void keep_recording(void) {
    segment_header(buffers[0]->segment)->record_until_ns = UINT64_MAX;
}

static void begin_to_record(void) {
    event_count = 0;
    assert_int_equal(vigil_observer_record(observer), VIGIL_OK);
    keep_recording();
}

static void what_happens_is_recorded(void **state) {
    (void)state;
    begin_to_record();
    actors_start(3);
    look();
    uint32_t numbers[3];
    for (int i = 0; i < 3; i++) numbers[i] = seen.members[i + 1].number;
    assert_int_equal(event_of(VIGIL_EVENT_JOINED, 0)->pid, actors[0].pid);

    assert_int_equal(actor_does(&actors[0], lock_to_write, RWLOCK), VIGIL_OK);
    actor_begin(&actors[1], lock_to_write, RWLOCK);
    AWAIT(waiting_at(RWLOCK) == 1);
    assert_int_equal(event_of(VIGIL_EVENT_GRANTED, RWLOCK)->number, numbers[0]);
    assert_null(event_of(VIGIL_EVENT_RELEASED, RWLOCK));
    const vigil_event *event = event_of(VIGIL_EVENT_WAITS, RWLOCK);
    assert_int_equal(event->number, numbers[1]);
    assert_int_equal(event->thread_id, actors[1].pid);
    assert_int_equal(event->kind, VIGIL_SEEN_RWLOCK);
    assert_int_equal(actor_does(&actors[0], unlock_to_write, RWLOCK), VIGIL_OK);
    assert_hears(&actors[1], VIGIL_OK);
    event = event_of(VIGIL_EVENT_CALLED, RWLOCK);
    assert_int_equal(event->number, numbers[1]);
    assert_int_equal(event->by, numbers[0]);
    assert_int_equal(event->status, VIGIL_OK);
    assert_int_equal(event->waiter, event_of(VIGIL_EVENT_WAITS, RWLOCK)->waiter);
    assert_int_equal(event_of(VIGIL_EVENT_RELEASED, RWLOCK)->number, numbers[0]);

    actor_order(&actors[2], &(struct order){.act = wait_async, .where = WORD, .number = 1000000});
    assert_hears(&actors[2], VIGIL_PENDING);
    assert_hears(&actors[2], VIGIL_TIMED_OUT);
    event = event_of(VIGIL_EVENT_GAVE_UP, WORD);
    assert_int_equal(event->number, numbers[2]);
    assert_int_equal(event->thread_id, 0);

    actor_begin(&actors[2], lock_to_write, RWLOCK);
    AWAIT(waiting_at(RWLOCK) == 1);
    actor_kill(&actors[1]);
    assert_hears(&actors[2], VIGIL_OWNER_DIED);
    event = event_of(VIGIL_EVENT_DIED, 0);
    assert_int_equal(event->number, numbers[1]);
    assert_true(event->by && event->by != numbers[1]); /* the member that watched it */
    for (size_t i = 1; i < event_count; i++) assert_true(events[i].at_ns >= events[0].at_ns);
    assert_int_equal(actor_does(&actors[2], unlock_to_write, RWLOCK), VIGIL_OK);
    actor_dismiss(&actors[2]);
    assert_int_equal(event_of(VIGIL_EVENT_LEFT, 0)->number, numbers[2]);
}

static void too_much_to_keep(void **state) {
    (void)state;
    actors_start(1);
    *(vigil_sem *)at(SEM) = (vigil_sem)VIGIL_SEM_LEASED(1);
    begin_to_record();
    uint64_t lost = 0;
    for (int i = 0; i < VIGIL_EVENTS_KEPT; i++) { /* two events each */
        assert_int_equal(vigil_sem_acquire(at(SEM), 1), VIGIL_OK);
        assert_int_equal(vigil_sem_release(at(SEM), 1), VIGIL_OK);
    }
    assert_int_equal(vigil_observer_events(observer, events, COUNT_OF(events), &lost), VIGIL_EVENTS_KEPT);
    assert_int_equal(lost, VIGIL_EVENTS_KEPT);
    assert_int_equal(events[0].type, VIGIL_EVENT_GRANTED);
    assert_int_equal(vigil_observer_events(observer, events, COUNT_OF(events), &lost), 0);
    assert_int_equal(actor_does_with(&actors[0], acquire, SEM, 1), VIGIL_OK);
    assert_int_equal(actor_does_with(&actors[0], release, SEM, 1), VIGIL_OK);
    assert_int_equal(vigil_observer_events(observer, events, 1, &lost), 1);
    assert_int_equal(vigil_observer_events(observer, events, 1, &lost), 1);
    assert_int_equal(events[0].type, VIGIL_EVENT_RELEASED);
    assert_int_equal(vigil_observer_events(observer, events, 1, &lost), 0);
}

static void a_damaged_event(void **state) {
    (void)state;
    const uint64_t times[] = {INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    struct segment *segment = buffers[0]->segment;
    begin_to_record();
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        uint64_t turn = segment_header(segment)->events;
        assert_int_equal(vigil_rwlock_write_lock(at(RWLOCK)), VIGIL_OK);
        assert_int_equal(vigil_rwlock_write_unlock(at(RWLOCK)), VIGIL_OK);
        segment_event(segment, turn)->at_ns = times[i];
        assert_int_equal(vigil_observer_events(observer, events, COUNT_OF(events), NULL), 2);
        assert_true(events[0].at_ns >= 0);
        assert_true(events[0].at_ns <= vigil_now_ns());
    }
}

/* A recorder renews its recording regularly. If it is late, what happened in between is lost, and that is reported. */
static void recorded_too_late(void **state) {
    (void)state;
    uint64_t lost = 0;
    begin_to_record();
    assert_int_equal(vigil_observer_record(observer), VIGIL_OK);
    assert_int_equal(vigil_observer_events(observer, events, COUNT_OF(events), &lost), 0);
    assert_int_equal(lost, 0);
    observer->recorded_until_ns = 1; /* long ago */
    assert_int_equal(vigil_observer_record(observer), VIGIL_OK);
    assert_int_equal(vigil_observer_events(observer, events, COUNT_OF(events), &lost), 0);
    assert_int_equal(lost, 1);
    assert_int_equal(vigil_observer_events(observer, events, COUNT_OF(events), &lost), 0);
    assert_int_equal(lost, 1);
}

/* An observer that has stopped recording, or was killed, is forgotten. */
static void nobody_records(void **state) {
    (void)state;
    struct segment_header *header = segment_header(buffers[0]->segment);
    begin_to_record();
    assert_true(header->record_until_ns > 0);
    header->record_until_ns = 1; /* long ago */
    uint64_t before = header->events;
    assert_int_equal(vigil_rwlock_write_lock(at(RWLOCK)), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_unlock(at(RWLOCK)), VIGIL_OK);
    assert_int_equal(header->events, before);
    assert_int_equal(header->record_until_ns, 0);
    vigil_observer *other;
    assert_int_equal(vigil_observer_open_fd(&other, fds[0]), VIGIL_OK);
    assert_int_equal(vigil_observer_record(other), VIGIL_OK);
    assert_true(header->record_until_ns > 0);
    assert_int_equal(vigil_observer_close(other), VIGIL_OK);
    assert_int_equal(header->record_until_ns, 0);
}

/* The segment's header has room for one request. The other observer calls record before or after this one, or both. */
static void two_record_and_one_ends(void **state) {
    (void)state;
    uint64_t lost = 0;
    for (int order = 1; order < 8; order++) {
        vigil_observer *other;
        assert_int_equal(vigil_observer_open_fd(&other, fds[0]), VIGIL_OK);
        if (order & 1) assert_int_equal(vigil_observer_record(other), VIGIL_OK);
        assert_int_equal(vigil_observer_record(observer), VIGIL_OK);
        if (order & 2) assert_int_equal(vigil_observer_record(other), VIGIL_OK);
        if (order & 4) assert_int_equal(vigil_observer_record(other), VIGIL_OK); /* replaces its own */
        int64_t until_ns = (int64_t)observer->recorded_until_ns;
        assert_int_equal(vigil_observer_close(other), VIGIL_OK);
        assert_int_equal(vigil_rwlock_write_lock(at(RWLOCK)), VIGIL_OK);
        assert_int_equal(vigil_rwlock_write_unlock(at(RWLOCK)), VIGIL_OK);
        bool in_time = vigil_now_ns() < until_ns;
        int64_t count = vigil_observer_events(observer, events, COUNT_OF(events), &lost);
        if (in_time) assert_int_equal(count, 2);
    }
}

/* A process that is killed while it writes an event does not hold up others. */
static void an_event_that_never_comes(void **state) {
    (void)state;
    struct segment_header *header = segment_header(buffers[0]->segment);
    begin_to_record();
    header->events++;
    assert_int_equal(vigil_rwlock_write_lock(at(RWLOCK)), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_unlock(at(RWLOCK)), VIGIL_OK);
    uint64_t lost = 0;
    assert_int_equal(vigil_observer_events(observer, events, 10, &lost), 0);
    AWAIT(vigil_observer_events(observer, events, 10, &lost) == 2);
    assert_int_equal(lost, 1);
}

static void a_lock_whose_readers_pass_is_in_order(void **state) {
    (void)state;
    const vigil_rwlock passing = VIGIL_RWLOCK_READERS_PASS;
    *(vigil_rwlock *)at(RWLOCK) = passing;
    actors_start(1);
    assert_int_equal(actor_does(&actors[0], lock_to_read, RWLOCK), VIGIL_OK);
    assert_int_equal(check(), 0);
    assert_int_equal(actor_does(&actors[0], unlock_to_read, RWLOCK), VIGIL_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_cannot_be_observed),
        TEST(names_and_labels),
        TEST(members_are_seen),
        TEST(an_observer_is_no_member),
        TEST(as_many_gone_as_before),
        TEST(a_line_in_order),
        TEST(who_is_called_and_does_not_come),
        TEST(locks_and_their_holders),
        TEST(nothing_is_wrong_while_all_goes_well),
        TEST(the_dead_are_found),
        TEST(damaged_links),
        TEST(a_stopped_process_in_a_bucket),
        TEST(a_lock_whose_readers_pass_is_in_order),
        TEST(a_line_of_nobody),
        TEST(mending_what_is_well),
        TEST(mending_while_one_waits),
        TEST(a_waiter_whose_key_is_lost),
        TEST(a_damaged_header),
        TEST(mending_around_the_stuck),
        TEST(garbage),
        TEST(many_locks_written_over),
        TEST(many_waiters_in_no_line),
        TEST(damaged_times),
        TEST(what_happens_is_recorded),
        TEST(too_much_to_keep),
        TEST(a_damaged_event),
        TEST(recorded_too_late),
        TEST(nobody_records),
        TEST(two_record_and_one_ends),
        TEST(an_event_that_never_comes),
    };
    return children_can_start_threads() ? cmocka_run_group_tests(tests, NULL, NULL) : NO_THREADS_IN_CHILDREN;
}
