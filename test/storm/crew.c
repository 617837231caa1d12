/* SPDX-License-Identifier: MIT */
/* crew.c - what the members of both storms have in common: threads that block, an event loop, and a main thread. */
#include "ledger.h"

#include <poll.h>
#include <sys/prctl.h>

struct member *self;
static uint64_t member_seed;

bool leaving(void) {
    return phase_of(NOW(ledger->moment)) == END || NOW(self->leave);
}

bool raging(void) {
    return phase_of(NOW(ledger->moment)) == STORM && !NOW(self->leave);
}

uint64_t seed_for(unsigned actor) {
    uint64_t seed = (member_seed + actor + 1) * UINT64_C(0x9E3779B97F4A7C15) | 1;
    for (int i = 0; i < 8; i++) random_next(&seed);
    return seed;
}

/*
 * Whether there is something to dispatch, within a millisecond. A loop that is not rung does not look, so that a
 * missing ring is noticed. Sometimes the loop is busy with something else, while several things are sent to it.
 */
bool readable(vigil_agent *agent, uint64_t *seed) {
    if (one_in(seed, 4)) usleep((useconds_t)random_below(seed, 5000));
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    return poll(&seat, 1, 1) > 0;
}

static bool over(pthread_t thread) {
    return pthread_tryjoin_np(thread, NULL) == 0;
}

static void look_after(const struct crew *crew) {
    static uint64_t seed;
    if (!seed) seed = seed_for(THE_MAIN);
    if (crew->look_after_them) crew->look_after_them(&self->actors[THE_MAIN], &seed);
    usleep(1000);
}

int crew_main(const struct crew *crew, unsigned number, int segment_fd, uint64_t seed) {
    pthread_t threads[THREADS + 1];
    vigil_buffer *buffer = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    self = &ledger->members[number];
    member_seed = seed;
    int status = vigil_segment_open_fd(&buffer, segment_fd);
    DEMAND(status == VIGIL_OK, "to open the segment: %s", vigil_status_name(status));
    if (status != VIGIL_OK) return 1;
    arena = vigil_buffer_data(buffer);
    for (unsigned i = 0; i <= THREADS; i++)
        threads[i] = start_thread(i == THE_LOOP ? crew->loop_main : crew->thread_main, &self->actors[i]);
    while (!leaving()) look_after(crew);
    for (unsigned i = 0; i <= THREADS; i++) {
        while (!over(threads[i])) look_after(crew);
    }
    int64_t left = vigil_buffer_destroy(buffer);
    DEMAND(left == 0, "leaving returned %s", vigil_status_name((int)left));
    return left != 0;
}
