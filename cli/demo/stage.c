/* SPDX-License-Identifier: MIT */
/* The memory of the contest: the process's own or, for two processes, a segment. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

static vigil_buffer *segment;

uint32_t book_capacity(const struct act *act) {
    return (uint32_t)(act->duration_ns / act->hold_ns) * 2 + 1000;
}

/* One visit more than the capacity: it stays empty, so that the code may read beyond the last one. */
static size_t book_visits(const struct act *act) {
    return book_capacity(act) + 1;
}

static size_t stage_bytes(const struct act *act) {
    return sizeof(struct stage) + CONTESTANTS * book_visits(act) * sizeof(struct visit);
}

static void set_stage(struct act *act, void *memory) {
    act->stage = memory;
    for (size_t i = 0; i < CONTESTANTS; i++) act->records[i].visits = &act->stage->visits[i * book_visits(act)];
}

static void *memory_of_our_own(size_t bytes) {
    void *memory = calloc(1, bytes);
    must("no memory for the stage", memory ? VIGIL_OK : VIGIL_ENOMEM);
    return memory;
}

void stage_open(struct act *act) {
    size_t bytes = stage_bytes(act);
    if (act->two_processes) {
        must("cannot make a segment",
             vigil_segment_create_anonymous(&segment, &(vigil_segment_options){.length = bytes}));
        set_stage(act, vigil_buffer_data(segment));
    } else {
        set_stage(act, memory_of_our_own(bytes));
    }
    act->stage->mutex = act->mutex;
}

int stage_fd(void) {
    int fd = vigil_segment_fd(segment);
    must("cannot pass the segment on", fd);
    return fd;
}

/* After a fork the inherited segment is unusable. */
void stage_enter(struct act *act, int fd) {
    vigil_buffer_destroy(segment);
    must("cannot open the segment", vigil_segment_open_fd(&segment, fd));
    close(fd);
    set_stage(act, vigil_buffer_data(segment));
}

void stage_close(struct act *act) {
    if (!act->two_processes) return;
    void *copy = memory_of_our_own(stage_bytes(act));
    memcpy(copy, act->stage, stage_bytes(act));
    set_stage(act, copy);
    must("cannot leave the segment", (int)vigil_buffer_destroy(segment));
}

void stage_free(struct act *act) {
    free(act->stage);
}
