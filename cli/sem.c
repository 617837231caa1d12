/* SPDX-License-Identifier: MIT */
/*
 * vigil sem: run at most a given number of commands at once.
 *
 * The number of slots is part of the segment's label, "vigil sem 4", and is fixed when the segment is created. The
 * permits are leased: those of a process that is killed come back.
 */
#include <string.h>

#include "run.h"

#define LABEL "vigil sem "

static int slot_try(void *sem) {
    return vigil_sem_tryacquire(sem, 1);
}

static int slot_ask(vigil_agent *agent, vigil_request *request, void *sem, int64_t timeout_ns,
                    vigil_callback *callback) {
    return vigil_sem_acquire_async(agent, request, sem, 1, timeout_ns, callback);
}

static int acquire(void *sem, struct waiting *waiting) {
    const struct want slot = {slot_try, slot_ask, sem};
    return waiting_for(waiting, &slot);
}

static void release(void *sem) {
    vigil_sem_release(sem, 1);
}

/* There is a leash for each slot: so processes that killed holders started count as running, too. */
static int acquire_and_run(vigil_buffer *buffer, uint64_t slots, struct waiting *waiting, char **words) {
    static const struct run_steps steps = {.acquire = acquire, .release = release};
    vigil_sem *sem = vigil_buffer_data(buffer);
    const vigil_sem all = VIGIL_SEM_LEASED(slots);
    struct leash leash = {.count = slots};
    uint32_t nothing = 0; /* a new segment: the word of a leased semaphore is never zero again */
    __atomic_compare_exchange_n(&sem->word, &nothing, all.word, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return run_under(buffer, &leash, waiting, words, &steps, sem);
}

/* The number of slots; 0: not a semaphore of vigil sem. */
static uint64_t slots_of(const char *label) {
    uint64_t slots;
    size_t length = strlen(LABEL);
    bool good = strncmp(label, LABEL, length) == 0 && cli_parse_count(label + length, &slots);
    return good && slots <= VIGIL_SEM_MAX ? slots : 0;
}

static int run_if_as_wanted(vigil_buffer *buffer, uint64_t wanted, struct waiting *waiting, char **words) {
    const char *label = vigil_segment_label(buffer), *name = waiting->name;
    uint64_t slots = slots_of(label);
    if (!slots) return run_other_kind(name, label, "semaphore");
    if (!wanted || wanted == slots) return acquire_and_run(buffer, slots, waiting, words);
    return cli_fail(VIGIL_OK,
                    "%s has %llu slots, not %llu: leave out --slots, or, if it is not in use, vigil rm %s first", name,
                    (unsigned long long)slots, (unsigned long long)wanted, name);
}

static int open_and_run(uint64_t slots, struct waiting *waiting, char **words) {
    vigil_buffer *buffer;
    char label[32];
    snprintf(label, sizeof label, LABEL "%llu", (unsigned long long)slots);
    if (run_open(&buffer, waiting->name, slots ? label : NULL) != VIGIL_OK) return CLI_RUN_CANNOT;
    int status = run_if_as_wanted(buffer, slots, waiting, words);
    vigil_buffer_destroy(buffer);
    return status;
}

int cli_sem(int count, char **arguments) {
    struct waiting waiting = {.timeout_ns = VIGIL_FOREVER};
    bool try = false;
    uint64_t slots = UINT64_MAX; /* not given */
    char *name, **words;
    const struct cli_option options[] = {
        {"slots", 0, CLI_COUNT, &slots},
        {"timeout", 0, CLI_DURATION, &waiting.timeout_ns},
        {"try", 0, CLI_FLAG, &try},
        {"wait-status", 0, CLI_FLAG, &waiting.wait_status},
        {0},
    };
    if (!run_arguments(count, arguments, options, &name, &words)) return cli_usage_status();
    bool given = slots != UINT64_MAX;
    if (given && (slots < 1 || slots > VIGIL_SEM_MAX))
        return cli_usage("--slots must be a number from 1 to %u", VIGIL_SEM_MAX);
    if (try) waiting.timeout_ns = 0;
    waiting.name = name;
    run_signals_begin();
    return run_end(open_and_run(given ? slots : 0, &waiting, words));
}
