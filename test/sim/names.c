/* SPDX-License-Identifier: MIT */
/*
 * Scenarios with a book of names (named/book.h): processes create, use and remove names, and one of them is killed at
 * any time. In the end each name is found once, and every entry can be used again.
 */
#include <string.h>

#include "named/book.h"
#include "recovery/recovery.h"
#include "scenario.h"
#include "shm/member.h"

#define BOOK_BYTES 2048u

static const struct entry *entries_held[SIM_PROCESSES]; /* by each process; of the dead, when they were killed */

static struct book *the_book(void) {
    return (struct book *)(void *)shared;
}

static struct entry *the_entries(void) {
    return (struct entry *)(void *)(the_book() + 1);
}

static void begin_names(uint32_t members, bool with_victim) {
    begin_shared_of(members, BOOK_BYTES);
    if (with_victim) sim_victim(VICTIM);
    memset(entries_held, 0, sizeof entries_held);
}

static void go_joined(unsigned process, const char *name, void (*fiber)(void *)) {
    join_before(process);
    go_in(process, name, fiber);
}

static bool held_by_another(const struct entry *entry) {
    for (unsigned i = 0; i < SIM_PROCESSES; i++) {
        if (i != sim_process && !sim_dead(i) && entries_held[i] == entry) return true;
    }
    return false;
}

/* Open the name, lock it, and close it. */
static void use_name(vigil_buffer *buffer, const char *name) {
    int status = VIGIL_OK;
    struct entry *entry = book_use(buffer, name, 0, true, &status);
    sim_check(entry, "cannot use %s: %s", name, vigil_status_name(status));
    sim_check(strcmp(entry->name, name) == 0, "%s has become another name", name);
    status = vigil_rwlock_write_lock(&entry->lock);
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "lock: %s", vigil_status_name(status));
    sim_check(!held_by_another(entry), "another process has the lock of %s", name);
    entries_held[sim_process] = entry;
    if (status == VIGIL_OWNER_DIED) expect(vigil_rwlock_consistent(&entry->lock), VIGIL_OK, "consistent");
    sim_check(strcmp(entry->name, name) == 0, "%s has become another name", name);
    entries_held[sim_process] = NULL;
    expect(vigil_rwlock_write_unlock(&entry->lock), VIGIL_OK, "unlock");
    expect(vigil_rwlock_read_unlock(&entry->use), VIGIL_OK, "close");
}

static void remove_name(vigil_buffer *buffer, const char *name, bool force) {
    int status = book_remove(buffer, name, force);
    bool known = status == VIGIL_OK || status == VIGIL_ENOTFOUND || (status == VIGIL_EBUSY && !force);
    sim_check(known, "remove: %s", vigil_status_name(status));
}

/* ---- The end ---- */

static void check_free_list(uint32_t free_ones) {
    uint32_t on_list = 0;
    for (uint32_t at = the_book()->free; at; at = the_entries()[at - 1].next) {
        sim_check(at <= the_book()->count && the_entries()[at - 1].state == ENTRY_FREE, "a wrong entry is free");
        sim_check(++on_list <= free_ones, "the free list has a loop");
    }
    sim_check(on_list == free_ones, "%u of %u free entries are lost", (unsigned)(free_ones - on_list),
              (unsigned)free_ones);
}

static void book_in_order(void) {
    struct entry *entries = the_entries();
    segment_strike_off_all(observed->segment);
    recovery_run(lot_in(observed->segment), PRIM_NEVER);
    int status = vigil_mutex_trylock(&the_book()->mutex); /* here no process can wait for it */
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "trylock: %s", vigil_status_name(status));
    expect(vigil_mutex_unlock(&the_book()->mutex), VIGIL_OK, "unlock");
    use_name(observed, "end"); /* if a holder of the mutex has died, this rebuilds the chains */
    uint32_t free_ones = 0;
    for (uint32_t i = 0; i < the_book()->count; i++) {
        free_ones += entries[i].state == ENTRY_FREE;
        if (entries[i].state != ENTRY_USED) continue;
        const struct entry *found = book_peek((unsigned char *)shared, BOOK_BYTES, entries[i].name);
        sim_check(found == &entries[i], "%s is there twice, or is not found", entries[i].name);
    }
    check_free_list(free_ones);
    sim_check(the_book()->count <= 4, "%u entries have been used", (unsigned)the_book()->count);
    for (uint32_t i = 0; i < the_book()->count; i++) {
        if (entries[i].state == ENTRY_USED) expect(book_remove(observed, entries[i].name, false), VIGIL_OK, "remove");
        bool clear = !entries[i].lock.word && !entries[i].name[0];
        sim_check(entries[i].state == ENTRY_REMOVED || clear, "a free entry is not clear: %#x", entries[i].lock.word);
    }
    balance();
}

/* ---- Scenarios ---- */

FIBER(uses_and_removes) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    use_name(buffer, "a");
    remove_name(buffer, "a", false);
    leave_segment(buffer);
}

FIBER(uses_both) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    use_name(buffer, "a");
    use_name(buffer, "b");
    leave_segment(buffer);
}

/* The entry of one name is used for the other. */
FIBER(replaces) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    use_name(buffer, "a");
    remove_name(buffer, "a", false);
    use_name(buffer, "b");
    leave_segment(buffer);
}

FIBER(removes_by_force) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    remove_name(buffer, "a", true);
    use_name(buffer, "b");
    leave_segment(buffer);
}

/* A process is dead, one recovers what it held, and another removes the name. */

static bool victim_holds;

FIBER(holds_for_ever) {
    (void)argument;
    int status = VIGIL_OK;
    struct entry *entry = book_use(join_segment(), "a", 0, true, &status);
    sim_check(entry, "cannot use a: %s", vigil_status_name(status));
    expect(vigil_rwlock_write_lock(&entry->lock), VIGIL_OK, "lock");
    victim_holds = true;
    for (;;) let_pass(VIGIL_FOREVER);
}

static bool victim_has_it(void *unused) {
    (void)unused;
    return victim_holds;
}

static bool victim_is_dead(void *unused) {
    (void)unused;
    return sim_dead(VICTIM);
}

FIBER(kills_and_recovers) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(victim_has_it, NULL);
    sim_kill(VICTIM);
    recovery_now(lot_in(buffer->segment));
    leave_segment(buffer);
}

FIBER(removes_and_replaces) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(victim_is_dead, NULL);
    remove_name(buffer, "a", false);
    use_name(buffer, "b");
    leave_segment(buffer);
}

static void removed_while_recovered(void) {
    begin_names(4, false);
    victim_holds = false;
    go_joined(VICTIM, "victim", holds_for_ever);
    go_joined(SURVIVOR, "recoverer", kills_and_recovers);
    go_joined(OTHER, "remover", removes_and_replaces);
}

static void remover_killed(void) {
    begin_names(3, true);
    go_joined(VICTIM, "victim", uses_and_removes);
    go_joined(SURVIVOR, "survivor", uses_and_removes);
}

static void replacer_killed(void) {
    begin_names(3, true);
    go_joined(VICTIM, "victim", replaces);
    go_joined(SURVIVOR, "survivor", uses_both);
}

static void user_killed_and_replaced(void) {
    begin_names(3, true);
    go_joined(VICTIM, "victim", uses_both);
    go_joined(SURVIVOR, "survivor", replaces);
}

static void user_killed_and_removed(void) {
    begin_names(4, true);
    go_joined(VICTIM, "victim", uses_both);
    go_joined(SURVIVOR, "survivor", removes_by_force);
    go_joined(OTHER, "other", uses_and_removes);
}

const struct sim_scenario name_scenarios[] = {
    {"remover_killed", "killed while it creates, uses and removes a name", remover_killed, book_in_order},
    {"replacer_killed", "the same, and its entry is used for another name", replacer_killed, book_in_order},
    {"user_killed_and_replaced", "killed while another process does that", user_killed_and_replaced, book_in_order},
    {"user_killed_and_removed", "killed while its name is removed by force", user_killed_and_removed, book_in_order},
    {"removed_while_recovered", "removed while another process recovers what its dead holder had",
     removed_while_recovered, book_in_order},
    {NULL, NULL, NULL, NULL},
};
