/* SPDX-License-Identifier: MIT */
/* All lines of the memory, for people: lib/index.js has the same layout. */
#include "lot/lot.h"
#include "node/native/environment.h"

#define SEEN_WAITERS 8u
struct seen_line {
    double address, lock, count, reserved;
    struct {
        double thread, for_ms;
    } waiters[SEEN_WAITERS];
};

static void look_copy(struct seen_line *seen, const struct lot_line *line) {
    *seen = (struct seen_line){(double)line->key, line->for_lock, (double)line->count, 0, {{0, 0}}};
    for (uint32_t i = 0; i < line->count && i < SEEN_WAITERS && i < LOT_GLANCES; i++) {
        seen->waiters[i].thread = line->waiters[i].thread_id;
        seen->waiters[i].for_ms = (uint32_t)prim_now_coarse_ms() - line->waiters[i].since_ms;
    }
}

int32_t look_lines(struct environment *environment, int32_t most);
int32_t look_lines(struct environment *environment, int32_t most) {
    struct seen_line *seen = (struct seen_line *)(uintptr_t)environment->scratch->address;
    struct lot *lot = lot_private_if_used();
    int32_t count = 0;
    for (uint32_t number = 0; lot && number < 1u << lot->bucket_bits; number++) {
        struct lot_line line = {0};
        do {
            lot_read_line(lot, number, line.key, &line);
            if (line.key && count < most) look_copy(&seen[count++], &line);
        } while (line.key);
    }
    return count;
}
