/* SPDX-License-Identifier: MIT */
/*
 * memory.c - memory as C11 promises it, no better: what a load may read.
 *
 * A view machine. Each location keeps its last messages: a value, a time stamp, and the view that a fiber gets when
 * it reads the message with acquire. Each fiber has a view: per location the oldest message that it may still read.
 * Then
 *
 *   a load        reads any message not older than the fiber's view, and raises the view to it;
 *   acquire       joins the message's view to the fiber's;
 *   release       gives the message the fiber's view; a relaxed store gives it what was there at the last fence;
 *   an update     reads the newest message, and its own message carries on that one's view (release sequence);
 *   a fence       joins the global view to the fiber's and the other way round, as an acquire and release as well;
 *   seq_cst       an access reads nothing older than the global view has, and puts its own message into it.
 *
 * What it cannot do: delay a store past a later one of another fiber to the same location, read from the future, or
 * read further back than HISTORY messages. It does not cover plain accesses: race.c checks that they are ordered by
 * atomic ones. Where memory turns out to have been written by a plain access, the location starts over with what is
 * there.
 *
 * Real memory always holds the newest value.
 */
#include "engine.h"

#include <string.h>

#define HISTORY 8
#define TABLE   1024u /* a power of two, well above SIM_LOCATIONS */
#define CALLER  __builtin_return_address(0)

struct message {
    uint64_t value;
    struct sim_view view;
};

struct location {
    const volatile void *key; /* sim_address_of of it */
    volatile void *variable;
    size_t size;
    int16_t oldest, newest; /* time stamps */
    struct message history[HISTORY];
};

static struct location locations[SIM_LOCATIONS];
static unsigned location_count;
static uint16_t table[TABLE];  /* by hash of the address: index into locations, plus one */
static struct sim_view global; /* of fences and seq_cst accesses */

void sim_memory_reset(void) {
    memset(table, 0, sizeof table);
    memset(&global, 0, sizeof global);
    location_count = 0;
}

static void memory_join(int16_t *clock, const int16_t *other, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        clock[i] = clock[i] > other[i] ? clock[i] : other[i];
    }
}

void sim_view_join(struct sim_view *view, const struct sim_view *other) {
    memory_join(view->seen, other->seen, location_count);
    memory_join(view->heard, other->heard, SIM_FIBERS);
}

void sim_view_passed_on(void) {
    sim_current->knows.now.heard[sim_fiber_index(sim_current)]++;
}

static uint64_t memory_real_read(const volatile void *variable, size_t size) {
    return size == 4 ? *(const volatile uint32_t *)variable : *(const volatile uint64_t *)variable;
}

static void memory_real_write(volatile void *variable, size_t size, uint64_t value) {
    if (size == 4) {
        *(volatile uint32_t *)variable = (uint32_t)value;
    } else {
        *(volatile uint64_t *)variable = value;
    }
}

static struct message *memory_message_at(struct location *location, int stamp) {
    return &location->history[stamp % HISTORY];
}

static struct message *memory_append(struct location *location, uint64_t value) {
    location->newest++;
    if (location->newest - location->oldest >= HISTORY) {
        location->oldest++;
    }
    struct message *message = memory_message_at(location, location->newest);
    message->value = value;
    return message;
}

/* The location's history begins here, with what memory holds. */
static void memory_begin(struct location *location, size_t size) {
    location->size = size;
    struct message *message = memory_append(location, memory_real_read(location->variable, size));
    memset(&message->view, 0, sizeof message->view);
    location->oldest = location->newest;
}

static struct location *memory_create(const volatile void *key, const volatile void *variable, size_t size) {
    sim_check(location_count < SIM_LOCATIONS, "more than %u atomic locations", SIM_LOCATIONS);
    struct location *location = &locations[location_count];
    location->key = key;
    location->variable = (volatile void *)(uintptr_t)variable;
    location->oldest = location->newest = -1;
    memory_begin(location, size);
    /* No fiber has seen anything of it: zero, the initial message, in all views. */
    global.seen[location_count] = 0;
    location_count++;
    return location;
}

/*
 * Null if the location does not exist and must not be created: then there is only one value. A location that is
 * accessed in another size than before starts over. Size 0: the size it has.
 */
static struct location *memory_find(const volatile void *variable, size_t size, bool to_be_created) {
    sim_check(variable && (uintptr_t)variable % (size ? size : 4) == 0, "atomic access to %p",
              (const void *)(uintptr_t)variable);
    const char *trouble = sim_heap_trouble(variable);
    sim_check(!trouble, "atomic access to %s", trouble);
    const volatile void *key = sim_address_of(variable);
    unsigned hash = (unsigned)(((uintptr_t)key >> 2) * 0x9E3779B1u) % TABLE;
    while (table[hash] && locations[table[hash] - 1].key != key) {
        hash = (hash + 1) % TABLE;
    }
    if (!table[hash] && !to_be_created) {
        return NULL;
    }
    if (!table[hash]) {
        memory_create(key, variable, size);
        table[hash] = (uint16_t)location_count;
    }
    struct location *location = &locations[table[hash] - 1];
    size = size ? size : location->size;
    bool plainly_written = memory_message_at(location, location->newest)->value != memory_real_read(variable, size);
    if (location->size != size || plainly_written) {
        memory_begin(location, size);
    }
    return location;
}

static bool memory_acquires(enum sim_order order) {
    return order == SIM_ACQUIRE || order == SIM_ACQ_REL || order == SIM_SEQ_CST;
}

static bool memory_releases(enum sim_order order) {
    return order == SIM_RELEASE || order == SIM_ACQ_REL || order == SIM_SEQ_CST;
}

static void memory_raise(struct sim_view *view, unsigned index, int stamp) {
    if (view->seen[index] < stamp) {
        view->seen[index] = (int16_t)stamp;
    }
}

/* The current fiber reads this message. */
static void memory_observe(struct location *location, int stamp, enum sim_order order) {
    unsigned index = (unsigned)(location - locations);
    struct sim_knowledge *knows = &sim_current->knows;
    const struct sim_view *view = &memory_message_at(location, stamp)->view;
    memory_raise(&knows->now, index, stamp);
    sim_view_join(&knows->upcoming, view);
    if (memory_acquires(order)) {
        sim_view_join(&knows->now, view);
    }
    if (order == SIM_SEQ_CST) {
        memory_raise(&global, index, stamp);
    }
}

/* The current fiber writes; `continues`: as an update of the message that was the newest. */
static void memory_publish(struct location *location, uint64_t value, enum sim_order order, bool continues) {
    unsigned index = (unsigned)(location - locations);
    struct sim_knowledge *knows = &sim_current->knows;
    const struct message *before = memory_message_at(location, location->newest);
    struct message *message = memory_append(location, value);
    memory_raise(&knows->now, index, location->newest);
    message->view = memory_releases(order) ? knows->now : knows->fenced;
    memory_raise(&message->view, index, location->newest);
    if (continues) {
        sim_view_join(&message->view, &before->view);
    }
    if (order == SIM_SEQ_CST) {
        memory_raise(&global, index, location->newest);
    }
    if (memory_releases(order)) {
        sim_view_passed_on();
    }
    memory_real_write(location->variable, location->size, value);
}

static int memory_oldest_visible(const struct location *location, enum sim_order order) {
    unsigned index = (unsigned)(location - locations);
    int oldest = sim_current->knows.now.seen[index];
    if (order == SIM_SEQ_CST && oldest < global.seen[index]) {
        oldest = global.seen[index];
    }
    return oldest > location->oldest ? oldest : location->oldest;
}

/*
 * Chooses the message to read: the newest by default. Older messages that have the value of the next newer one are
 * left out, and so are those that have the value `except`, if it is given.
 */
static int memory_choose_message(struct location *location, enum sim_order order, const uint64_t *except) {
    int stamps[HISTORY] = {location->newest};
    unsigned options = 1;
    uint64_t last = memory_message_at(location, location->newest)->value;
    for (int stamp = location->newest - 1; stamp >= memory_oldest_visible(location, order); stamp--) {
        uint64_t value = memory_message_at(location, stamp)->value;
        if (value != last && !(except && value == *except)) {
            stamps[options++] = stamp;
        }
        last = value;
    }
    return stamps[options > 1 ? sim_choose(options, (1u << options) - 1, SIM_STALE) : 0];
}

static const char *memory_age(const struct location *location, int stamp) {
    return stamp == location->newest ? "" : "   (an old value)";
}

uint64_t sim_load(const volatile void *variable, size_t size, enum sim_order order, const struct sim_site *site) {
    struct sim_footprint footprint = {.variable = variable, .seq_cst = order == SIM_SEQ_CST};
    if (!sim_point(footprint, site)) {
        return memory_real_read(variable, size);
    }
    struct location *location = memory_find(variable, size, false);
    int stamp = location ? memory_choose_message(location, order, NULL) : 0;
    uint64_t value = location ? memory_message_at(location, stamp)->value : memory_real_read(variable, size);
    sim_trace(site, variable, "= %#llx%s", (unsigned long long)value, location ? memory_age(location, stamp) : "");
    if (location) {
        memory_observe(location, stamp, order);
    }
    sim_race_atomic(variable, size, false, CALLER);
    return value;
}

void sim_store(volatile void *variable, size_t size, uint64_t value, enum sim_order order,
               const struct sim_site *site) {
    value = size == 4 ? (uint32_t)value : value;
    struct sim_footprint footprint = {.variable = variable, .writes = true, .seq_cst = order == SIM_SEQ_CST};
    if (!sim_point(footprint, site)) {
        memory_real_write(variable, size, value);
        return;
    }
    sim_trace(site, variable, ":= %#llx", (unsigned long long)value);
    struct location *location = memory_find(variable, size, true);
    sim_race_atomic(variable, size, true, CALLER);
    memory_publish(location, value, order, false);
}

static uint64_t memory_changed(uint64_t old, enum sim_change change, uint64_t operand) {
    switch (change) {
    case SIM_ADD: return old + operand;
    case SIM_OR: return old | operand;
    case SIM_AND: return old & operand;
    case SIM_EXCHANGE: break;
    }
    return operand;
}

uint64_t sim_update(volatile void *variable, size_t size, enum sim_change change, uint64_t operand,
                    enum sim_order order, const struct sim_site *site) {
    struct sim_footprint footprint = {.variable = variable, .writes = true, .seq_cst = order == SIM_SEQ_CST};
    bool simulated = sim_point(footprint, site);
    uint64_t old = memory_real_read(variable, size);
    uint64_t value = memory_changed(old, change, operand);
    value = size == 4 ? (uint32_t)value : value;
    if (simulated) {
        sim_trace(site, variable, "%#llx -> %#llx", (unsigned long long)old, (unsigned long long)value);
        struct location *location = memory_find(variable, size, true);
        memory_observe(location, location->newest, order);
        sim_race_atomic(variable, size, true, CALLER);
        memory_publish(location, value, order, true);
    } else {
        memory_real_write(variable, size, value);
    }
    return old;
}

bool sim_cas(volatile void *variable, size_t size, void *expected, uint64_t value, enum sim_order order,
             const struct sim_site *site) {
    value = size == 4 ? (uint32_t)value : value;
    uint64_t wanted = memory_real_read(expected, size);
    struct sim_footprint footprint = {.variable = variable, .writes = true, .seq_cst = order == SIM_SEQ_CST};
    bool simulated = sim_point(footprint, site);
    uint64_t found = memory_real_read(variable, size);
    if (!simulated) {
        memory_real_write(found == wanted ? variable : expected, size, found == wanted ? value : found);
        return found == wanted;
    }
    /* It succeeds on the newest value only, but a failure may have seen an old one. */
    struct location *location = memory_find(variable, size, true);
    int stamp = memory_choose_message(location, SIM_RELAXED, &wanted);
    found = memory_message_at(location, stamp)->value;
    bool success = found == wanted;
    if (success) {
        sim_trace(site, variable, "%#llx -> %#llx", (unsigned long long)found, (unsigned long long)value);
        memory_observe(location, stamp, order);
        sim_race_atomic(variable, size, true, CALLER);
        memory_publish(location, value, order, true);
    } else {
        sim_trace(site, variable, "= %#llx, not %#llx%s", (unsigned long long)found, (unsigned long long)wanted,
                  memory_age(location, stamp));
        memory_observe(location, stamp, SIM_RELAXED);
        sim_race_atomic(variable, size, false, CALLER);
        memory_real_write(expected, size, found);
    }
    return success;
}

static void memory_fence(struct sim_fiber *fiber) {
    struct sim_knowledge *knows = &fiber->knows;
    sim_view_join(&knows->now, &knows->upcoming);
    /* A fence alone does not order plain accesses: `heard` stays out of the global view. */
    memory_join(knows->now.seen, global.seen, location_count);
    memory_join(global.seen, knows->now.seen, location_count);
    knows->upcoming = knows->fenced = knows->now;
    knows->now.heard[sim_fiber_index(fiber)]++;
}

void sim_fence_seq_cst(const struct sim_site *site) {
    if (!sim_point((struct sim_footprint){.fence = true}, site)) {
        return;
    }
    sim_trace(site, NULL, "%s", "");
    memory_fence(sim_current);
}

/* A fence in each fiber of the process, where it is now. The caller's first makes known what it did before; its second
 * lets it see what the others did. */
void sim_fence_everywhere(const struct sim_site *site) {
    if (!sim_point((struct sim_footprint){.fence = true, .everywhere = true}, site)) {
        return;
    }
    sim_trace(site, NULL, "%s", "");
    memory_fence(sim_current);
    for (unsigned i = 0; i < sim_fiber_count(); i++) {
        struct sim_fiber *fiber = sim_fiber_at(i);
        if (fiber != sim_current && fiber->process == sim_process) {
            memory_fence(fiber);
        }
    }
    memory_fence(sim_current);
}

/* The word may be half of a larger one. */
uint32_t sim_memory_peek32(const uint32_t *word) {
    struct location *location = memory_find(word, 0, false);
    if (!location) {
        return *word;
    }
    memory_observe(location, location->newest, SIM_RELAXED);
    return *word;
}

void sim_memory_write32(uint32_t *word, uint32_t value, const struct sim_view *known) {
    if (!sim_current) {
        *word = value;
        return;
    }
    struct location *location = memory_find(word, sizeof *word, true);
    unsigned index = (unsigned)(location - locations);
    struct message *message = memory_append(location, value);
    message->view = *known;
    memory_raise(&message->view, index, location->newest);
    memory_raise(&global, index, location->newest); /* so that seq_cst loads see it */
    memory_real_write(location->variable, location->size, value);
}
