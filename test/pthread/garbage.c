/* SPDX-License-Identifier: MIT */
/*
 * Pretends to be a process under vigil run. Its file (pthread/serve.h) contains random bytes; only what a reader checks
 * first is valid, so that it reads on. A request for a report is fulfilled at once, with random bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "serve.h"

static struct serve *file;

static void answer(int number) {
    (void)number;
    file->head.length = (uint32_t)rand() << 1;
    __atomic_store_n(&file->head.answered, file->head.asked, __ATOMIC_RELEASE);
}

static void fill(void *memory, size_t bytes) {
    unsigned char *at = memory;
    while (bytes--) *at++ = (unsigned char)(rand() >> 7);
}

/* Random waits and events: most fields are possible, so that the reader goes on to those that are not. */
static void fill_in(void) {
    fill(file, SERVE_BYTES);
    for (uint32_t i = 0; i < WAITS_MOST; i++) {
        file->waits[i].kind = (uint16_t)(rand() % (WAIT_KINDS + 1));
        if (i % 2) file->waits[i].thread_id = (uint32_t)getpid();
    }
    file->head.events = (uint64_t)rand() % (2 * EVENTS_KEPT);
    for (uint32_t i = 0; i < EVENTS_KEPT; i++) {
        file->ring[i].type = (uint16_t)(rand() % (SERVE_EVENT_TYPES + 1));
        file->ring[i].kind = (uint16_t)(rand() % (WAIT_KINDS + 1));
        file->ring[i].lock %= 64;
        file->ring[i].thread_id %= 64;
    }
    file->head.magic = SERVE_MAGIC;
    file->head.pid = (uint32_t)getpid();
    file->head.signal = rand() % 3 ? SIGUSR2 : rand();
    file->head.record_until_ns = 0;
}

/* While it is recorded: as if it happened. */
static void go_on(void) {
    uint64_t turn = file->head.events++;
    file->ring[turn % EVENTS_KEPT].sequence = rand() % 8 ? turn + 1 : (uint64_t)rand();
    if (rand() % 5000 == 0) file->head.events = (uint64_t)rand() << rand() % 40;
    usleep(20);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "1";
    int fd = memfd_create(SERVE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    srand((unsigned)atoi(mode));
    if (fd < 0 || ftruncate(fd, (off_t)SERVE_BYTES) != 0) return errno;
    file = mmap(NULL, SERVE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) return errno;
    fill_in();
    if (strcmp(mode, "unsealed") != 0) fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    if (strcmp(mode, "other") == 0) file->head.magic++;
    signal(SIGUSR2, answer);
    printf("ready\n");
    fflush(stdout);
    for (;;) go_on();
}
