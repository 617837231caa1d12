/* SPDX-License-Identifier: MIT */
/*
 * replay.c - a main for the fuzz targets where libFuzzer is not available:
 *
 *     fuzz_line_replay FILE...                            runs the files, with a trace
 *     fuzz_line_replay --random SEED --runs N             random inputs; a failing one is written to fuzz_failed.bin
 *     fuzz_line_replay --bug NAME --random SEED --runs N  with a planted bug: succeeds if it is found
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_prim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES 1024
#define HANG_S      200 /* no input takes more than milliseconds */

static uint8_t input[INPUT_BYTES];
static size_t input_bytes;
static const char *bug_name;

static uint64_t random64(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* The current input has failed: with a planted bug that is the goal. */
static void on_failure(int signal_number) {
    if (bug_name) _exit(0);
    FILE *file = fopen("fuzz_failed.bin", "wb");
    if (file) {
        fwrite(input, 1, input_bytes, file);
        fclose(file);
        fprintf(stderr, "the input is in fuzz_failed.bin\n");
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void run_random(uint64_t seed, unsigned long runs) {
    signal(SIGABRT, on_failure);
    signal(SIGALRM, on_failure);
    for (unsigned long run = 0; run < runs; run++) {
        input_bytes = random64(&seed) % sizeof input;
        for (size_t i = 0; i < input_bytes; i++) input[i] = (uint8_t)random64(&seed);
        alarm(HANG_S);
        LLVMFuzzerTestOneInput(input, input_bytes);
    }
    printf("%lu runs, nothing found\n", runs);
}

static int run_file(const char *name) {
    FILE *file = fopen(name, "rb");
    if (!file) {
        perror(name);
        return 1;
    }
    uint8_t *data = malloc(1 << 20);
    size_t size = data ? fread(data, 1, 1 << 20, file) : 0;
    fclose(file);
    fuzz_tracing = true;
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

static unsigned bug_number(const char *name) {
#define X(part, bug, text)                                                                                             \
    if (strcmp(name, #bug) == 0) return BUG_##bug;
    SIM_BUGS(X)
#undef X
    fprintf(stderr, "no such bug: %s\n", name);
    exit(2);
}

int main(int count, char **words) {
    uint64_t seed = 0;
    unsigned long runs = 0;
    int failed = 0;
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? words[i + 1] : "";
        if (words[i][0] != '-') {
            failed |= run_file(words[i]);
            continue;
        }
        if (strcmp(words[i], "--random") == 0) seed = strtoull(value, NULL, 0);
        else if (strcmp(words[i], "--runs") == 0) runs = strtoul(value, NULL, 0);
        else if (strcmp(words[i], "--bug") == 0) sim_bug = bug_number(bug_name = value);
        else return fprintf(stderr, "usage: [--bug NAME] --random SEED --runs N | FILE...\n"), 2;
        i++;
    }
    if (runs) run_random(seed, runs);
    return failed || bug_name ? 1 : 0;
}
