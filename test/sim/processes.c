/* SPDX-License-Identifier: MIT */
/* Scenarios with several processes, one of which may be killed at any time. */
#include "scenario.h"
#include "shm/member.h"
#include "shm/segment.h"
#include "vigil/segment.h"

/* ---- Each process has its own lines ---- */

FIBER(private_waiter) {
    (void)argument;
    wait_while_zero(&words[0], 500);
}

FIBER(private_notifier) { /* the same address, but a word of another process */
    (void)argument;
    sim_check(notify(&words[0], 1) == 0, "notified a waiter of another process");
}

static void private_lines(void) {
    begin();
    go_in(1, "waiter", private_waiter);
    go_in(2, "notifier", private_notifier);
}

static void private_lines_with_ours(void) {
    begin();
    go_in(1, "other waiter", private_waiter);
    go("waiter", waiter);
    go("notifier", notifier_all);
}

/* ---- Members ---- */

/*
 * Here the victim stores the index of its row, plus one, while it certainly is a member. A reader that acquires it
 * also sees the victim's joining.
 */
#define VICTIMS_ROW 32

static struct segment_member *row_of(vigil_buffer *buffer, uint32_t number) {
    return segment_member(buffer->segment, number);
}

FIBER(passing_member) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    uint32_t self = segment_self(buffer->segment);
    sim_check(prim_load_relaxed(&row_of(buffer, self)->life) & SEGMENT_JOINED, "joined, but not a member");
    sim_check(row_of(buffer, self)->pid == prim_process_id(), "another process's row");
    leave_segment(buffer);
}

static void join_and_leave(void) {
    begin_shared(3);
    go_in(VICTIM, "first", passing_member);
    go_in(SURVIVOR, "second", passing_member);
}

FIBER(victim_member) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    prim_store_release(&shared[VICTIMS_ROW], segment_self(buffer->segment) + 1);
    prim_store_release(&shared[VICTIMS_ROW], 0u);
    leave_segment(buffer);
    victim_is_done();
}

/* A living member is never taken for dead. */
FIBER(looking_on) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    uint32_t row = prim_load_acquire(&shared[VICTIMS_ROW]);
    if (row) {
        bool alive = segment_member_alive(buffer->segment, row - 1);
        bool still = shared[VICTIMS_ROW] == row && !sim_dead(VICTIM);
        sim_check(alive || !still, "a member that lives is taken for dead");
    }
    leave_segment(buffer);
}

static void begin_with_victim(uint32_t members) {
    begin_shared(members);
    sim_victim(VICTIM);
}

static void killed_while_watched(void) {
    begin_with_victim(3);
    go_in(VICTIM, "victim", victim_member);
    go_in(SURVIVOR, "survivor", looking_on);
}

/* A dead member is recognized as dead, and its row can be taken like that of a member that has left. */
FIBER(successor) {
    (void)argument;
    await_victim();
    leave_segment(join_segment());
}

static void succeeded(void) {
    begin_with_victim(2);
    go_in(VICTIM, "victim", victim_member);
    go_in(SURVIVOR, "survivor", successor);
}

static void succeeded_again(void) {
    begin_with_victim(3);
    go_in(VICTIM, "victim", victim_member);
    go_in(SURVIVOR, "survivor", looking_on);
    go_in(OTHER, "successor", successor);
}

static uint32_t life_of(uint32_t number) {
    return row_of(observed, number)->life;
}

/* The victim has left, or died: as a member, or before it was one. */
static void seen_to_be_dead(void) {
    bool left = !(life_of(1) & SEGMENT_JOINED);
    sim_check(left || sim_dead(VICTIM), "no process was killed, and yet there is a member");
    sim_check(!segment_member_alive(observed->segment, 1), "a dead member is taken for alive");
    balance();
}

static void killed_alone(void) {
    begin_with_victim(2);
    go_in(VICTIM, "victim", victim_member);
}

/* ---- Creating a segment ---- */

#define NAME "scenario"

static const vigil_segment_options small = {.length = 64, .waiters = 8, .members = 2};

static void check_and_close(vigil_buffer *buffer) {
    sim_check(vigil_buffer_length(buffer) == 64, "%d bytes", (int)vigil_buffer_length(buffer));
    sim_check(*(uint32_t *)vigil_buffer_data(buffer) == 0, "not zero");
    leave_segment(buffer);
}

FIBER(creator) {
    (void)argument;
    vigil_buffer *buffer;
    int status = vigil_segment_create(&buffer, NAME, &small);
    sim_check(status == VIGIL_OK || status == VIGIL_EEXISTS, "create: %s", vigil_status_name(status));
    if (status == VIGIL_OK) check_and_close(buffer);
}

FIBER(opener) {
    (void)argument;
    vigil_buffer *buffer;
    expect(vigil_segment_open_or_create(&buffer, NAME, &small), VIGIL_OK, "open or create");
    check_and_close(buffer);
    expect(vigil_segment_unlink(NAME), VIGIL_OK, "unlink");
}

static void creator_killed(void) {
    begin();
    sim_victim(VICTIM);
    go_in(VICTIM, "creator", creator);
    go_in(SURVIVOR, "opener", opener);
}

static void unlinked(void) {
    int status = vigil_segment_unlink(NAME); /* of a segment that was created after the other was unlinked */
    sim_check(status == VIGIL_OK || status == VIGIL_ENOTFOUND, "unlink: %s", vigil_status_name(status));
    balance();
}

FIBER(grower) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    expect(vigil_buffer_grow(buffer, 512), VIGIL_OK, "grow");
    leave_segment(buffer);
    victim_is_done();
}

FIBER(grows_as_well) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    uint64_t length = vigil_buffer_length(buffer);
    sim_check(length == 256 || length == 512, "%d bytes", (int)length);
    prim_store_relaxed(&shared[length / 4 - 1], 1u);
    expect(vigil_buffer_grow(buffer, 512), VIGIL_OK, "grow");
    leave_segment(buffer);
}

static void growing_killed(void) {
    begin_with_victim(3);
    go_in(VICTIM, "victim", grower);
    go_in(SURVIVOR, "survivor", grows_as_well);
}

/* ---- Stopped, asleep, or killed on purpose ---- */

static bool is_stopped;

FIBER(stopped_member) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    prim_store_release(&shared[VICTIMS_ROW], segment_self(buffer->segment) + 1);
    while (prim_load_acquire(&shared[0]) == 0) {
        sim_check(!is_stopped, "the process runs although it is stopped");
        prim_park_shared(&shared[0], 0, prim_now_ns() + 1000000);
    }
    leave_segment(buffer);
}

static bool victim_is_member(void *unused) {
    (void)unused;
    return shared[VICTIMS_ROW] != 0;
}

/* Sleeps until the victim is a member, and sees its joining. Returns the index of its row. */
static uint32_t hear_of_victim(void) {
    uint32_t row;
    sim_until(victim_is_member, NULL);
    while (!(row = prim_load_acquire(&shared[VICTIMS_ROW]))) prim_pause();
    return row - 1;
}

FIBER(stopper) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    uint32_t row = hear_of_victim();
    is_stopped = true;
    sim_stop(VICTIM);
    let_pass(5000000); /* longer than its deadline */
    sim_check(segment_member_alive(buffer->segment, row), "a stopped member is taken for dead");
    prim_store_release(&shared[0], 1u);
    prim_wake_shared(&shared[0]); /* which it does not notice */
    is_stopped = false;
    sim_continue(VICTIM);
    leave_segment(buffer);
}

static void stopped(void) {
    begin_shared(3);
    is_stopped = false;
    go_in(VICTIM, "stopped", stopped_member);
    go_in(SURVIVOR, "stopper", stopper);
}

FIBER(sleeper_for_ever) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    prim_store_release(&shared[VICTIMS_ROW], segment_self(buffer->segment) + 1);
    for (;;) prim_park_shared(&shared[0], 0, PRIM_NEVER);
}

FIBER(killer) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    uint32_t row = hear_of_victim();
    sim_check(segment_member_alive(buffer->segment, row), "a sleeping member is taken for dead");
    sim_kill(VICTIM);
    sim_check(!segment_member_alive(buffer->segment, row), "a dead member is taken for alive");
    leave_segment(buffer);
}

static void killed_on_purpose(void) {
    begin_shared(3);
    go_in(VICTIM, "victim", sleeper_for_ever);
    go_in(SURVIVOR, "killer", killer);
}

/* ---- Struck off ---- */

/* Two threads of one process strike the victim off, while another process takes its row. */
static uint32_t victims_number;

FIBER(striker) {
    (void)argument;
    segment_member_lives(observed->segment, victims_number);
}

FIBER(takes_the_row) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    uint32_t *life = &row_of(buffer, segment_self(buffer->segment))->life, before = prim_load_relaxed(life);
    let_pass(1000);
    sim_check(prim_load_relaxed(life) == before, "a member that lives is struck off");
    leave_segment(buffer);
}

FIBER(killer_before_strikers) {
    (void)argument;
    victims_number = prim_load_relaxed(&row_of(observed, hear_of_victim())->number);
    sim_kill(VICTIM);
    go("striker", striker);
    go("other striker", striker);
    go_in(SURVIVOR, "joiner", takes_the_row);
}

static void struck_off_by_two(void) {
    begin_shared(2);
    go_in(VICTIM, "victim", sleeper_for_ever);
    go("killer", killer_before_strikers);
}

/* Damage: the header counts fewer rows than are in use. It is mended while another process joins. */
static bool is_mended;

static bool mended(void *unused) {
    (void)unused;
    return is_mended;
}

FIBER(joins_meanwhile) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    uint32_t number = prim_load_relaxed(&row_of(buffer, segment_self(buffer->segment))->number);
    sim_until(mended, NULL);
    sim_check(segment_find_member(buffer->segment, number), "a member that lives is overlooked");
    leave_segment(buffer);
}

FIBER(mender) {
    (void)argument;
    hear_of_victim();
    prim_store_relaxed(&segment_header(observed->segment)->rows, 1u);
    go_in(SURVIVOR, "joiner", joins_meanwhile);
    sim_check(vigil_segment_mend(observed) >= 0, "mending failed");
    is_mended = true;
    sim_kill(VICTIM);
}

static void mended_beside_joiner(void) {
    begin_shared(4);
    is_mended = false;
    go_in(VICTIM, "victim", sleeper_for_ever);
    go("mender", mender);
}

/* ---- A name that is removed ---- */

/* A process that opens by name while others use that name gets their segment, even if an unused name may be removed. */
static struct {
    unsigned users;
    uint64_t inode;
} inside;

FIBER(user_of_name) {
    (void)argument;
    vigil_buffer *buffer;
    expect(vigil_segment_open_or_create(&buffer, NAME, &small), VIGIL_OK, "open or create");
    uint64_t inode = buffer->segment->inode;
    sim_check(!inside.users || inside.inode == inode, "two processes use one name, but two segments");
    inside.inode = inode;
    inside.users++;
    prim_pause();
    inside.users--;
    leave_segment(buffer);
}

FIBER(remover) {
    (void)argument;
    int status = vigil_segment_unlink_unused(NAME);
    sim_check(status == VIGIL_OK || status == VIGIL_EBUSY || status == VIGIL_ENOTFOUND, "unlink: %s",
              vigil_status_name(status));
}

static void name_removed(void) {
    vigil_buffer *buffer;
    begin();
    inside.users = 0;
    expect(vigil_segment_create(&buffer, NAME, &small), VIGIL_OK, "create");
    leave_segment(buffer);
    go_in(SURVIVOR, "user", user_of_name);
    go_in(OTHER, "other user", user_of_name);
    go_in(VICTIM, "remover", remover);
}

/* ---- Asleep on a shared word ---- */

FIBER(shared_waker) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    prim_store_release(&shared[0], 1u);
    prim_wake_shared(&shared[0]);
    leave_segment(buffer);
}

/* Checks again and again whether the victim still lives, as watchers do. */
FIBER(shared_sleeper) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    while (prim_load_acquire(&shared[0]) == 0 && !sim_dead(VICTIM)) {
        prim_park_shared(&shared[0], 0, prim_now_ns() + 1000000);
    }
    leave_segment(buffer);
}

static void waker_killed(void) {
    begin_with_victim(3);
    go_in(SURVIVOR, "sleeper", shared_sleeper);
    go_in(VICTIM, "waker", shared_waker);
}

const struct sim_scenario process_scenarios[] = {
    {"private_lines", "two processes have two lines for one address", private_lines, balance},
    {"private_lines_with_ours", "the same beside a wait that is notified", private_lines_with_ours, balance},
    {"join_and_leave", "two processes join a segment and leave", join_and_leave, balance},
    {"killed_alone", "killed while it joins and leaves", killed_alone, seen_to_be_dead},
    {"killed_while_watched", "the same, and another process watches", killed_while_watched, balance},
    {"succeeded", "the last free row is the victim's, and then another's", succeeded, balance},
    {"succeeded_again", "the same beside another member", succeeded_again, balance},
    {"creator_killed", "two processes create a name, and one is killed", creator_killed, unlinked},
    {"growing_killed", "killed while the segment grows", growing_killed, balance},
    {"stopped", "a stopped process is a member", stopped, balance},
    {"killed_on_purpose", "a sleeping process is killed", killed_on_purpose, balance},
    {"struck_off_by_two", "two threads strike a dead member off, another joins", struck_off_by_two, balance},
    {"mended_beside_joiner", "mending while another joins", mended_beside_joiner, balance},
    {"name_removed", "a name is removed if it is unused", name_removed, unlinked},
    {"shared_waker_killed", "a process is killed that should wake another", waker_killed, balance},
    {NULL, NULL, NULL, NULL},
};
