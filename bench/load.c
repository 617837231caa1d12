/* SPDX-License-Identifier: MIT */
/* What else the machine does: the processor time of all programs without ours, and what the hypervisor keeps back. */
#include "bench.h"

#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

static const double PROCESSORS_TOO_MANY = 0.1;

struct load load_before = {NAN, NAN}, load_meanwhile = {NAN, NAN};

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double own_seconds(int whose) {
    struct rusage usage;
    must(getrusage(whose, &usage) == 0);
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

/* Interrupts are not counted: nothing says for which program they come. */
struct load_mark load_mark(void) {
    unsigned long long user, nice, system, stolen;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    FILE *stat = fopen("/proc/stat", "r");
    bool is_known =
        stat != NULL && fscanf(stat, "cpu %llu %llu %llu %*u %*u %*u %*u %llu", &user, &nice, &system, &stolen) == 4;
    if (stat != NULL) fclose(stat);
    return (struct load_mark){
        .at_ns = now_ns(),
        .busy_s = is_known ? (double)(user + nice + system) / ticks : NAN,
        .stolen_s = is_known ? (double)stolen / ticks : NAN,
        .own_s = own_seconds(RUSAGE_SELF) + own_seconds(RUSAGE_CHILDREN),
    };
}

/* The kernel counts by ticks there and exactly here: the difference may be a little less than nothing. */
static double load_per_second(double used_s, double elapsed_s) {
    return isnan(used_s) ? NAN : fmax(0, used_s / elapsed_s);
}

struct load load_since(const struct load_mark *mark) {
    struct load_mark now = load_mark();
    double elapsed_s = (double)(now.at_ns - mark->at_ns) / 1e9;
    double others_s = (now.busy_s - mark->busy_s) - (now.own_s - mark->own_s);
    return (struct load){load_per_second(others_s, elapsed_s),
                         load_per_second(now.stolen_s - mark->stolen_s, elapsed_s)};
}

bool load_distorts(struct load load) {
    return load.others + load.stolen > PROCESSORS_TOO_MANY; /* false if it is not known */
}

static void describe_one(FILE *out, const char *when, struct load load) {
    if (isnan(load.others)) fprintf(out, "What other programs used %s is not known.", when);
    else
        fprintf(out, "Other programs used %.2f processors %s, the hypervisor kept back %.2f.", load.others, when,
                load.stolen);
    if (load_distorts(load)) fprintf(out, " So the figures are rough.");
    fprintf(out, "\n");
}

void load_describe(FILE *out) {
    describe_one(out, "before the run", load_before);
    describe_one(out, "meanwhile", load_meanwhile);
}
