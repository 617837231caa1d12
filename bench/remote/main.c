/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/*
 * vigil-bench-remote [--quick] [--rounds N] [--only NAME,...] [--json FILE] [--markdown FILE] - the locks of a cluster,
 * against a put and etcd's own locks. NAME is one of pairs, handover, contention, command, waiting. --quick checks that
 * everything works, and shows no figures.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define SKIPPED 77

static const struct measurement {
    const char *name;
    void (*measure)(const struct round *round);
} measurements[] = {{"pairs", measure_pairs},
                    {"handover", measure_handover},
                    {"contention", measure_contention},
                    {"command", measure_command},
                    {"waiting", measure_waiting}};

struct options {
    bool quick;
    unsigned rounds;
    const char *only, *json, *markdown;
};

void die(const char *what) {
    fprintf(stderr, "vigil-bench-remote: this failed: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    _exit(1);
}

void sample(const struct round *round, enum series series, double value) {
    struct samples *samples = &round->series[series];
    unsigned at = atomic_fetch_add(&samples->count, 1);
    must(at < SAMPLES_MAX);
    samples->values[at] = value;
}

static int main_usage(void) {
    fprintf(stderr, "usage: vigil-bench-remote [--quick] [--rounds N] [--only NAME,...] [--json FILE] "
                    "[--markdown FILE]\n");
    return 2;
}

static bool main_read(struct options *options, char **words) {
    *options = (struct options){.rounds = 5};
    for (; *words; words++) {
        const char **text = strcmp(*words, "--only") == 0       ? &options->only
                            : strcmp(*words, "--json") == 0     ? &options->json
                            : strcmp(*words, "--markdown") == 0 ? &options->markdown
                                                                : NULL;
        if (strcmp(*words, "--quick") == 0) options->quick = true, options->rounds = 1;
        else if (!words[1]) return false;
        else if (text) *text = *++words;
        else if (strcmp(*words, "--rounds") == 0) options->rounds = (unsigned)atoi(*++words);
        else return false;
    }
    return options->rounds > 0;
}

static bool main_wants(const struct options *options, const char *name) {
    const char *found = options->only ? strstr(options->only, name) : name;
    return found != NULL;
}

static void main_measure(const struct options *options, struct samples *all) {
    static struct cluster clusters[2];
    must(cluster_start(&clusters[0], 1, NULL));
    must(cluster_start(&clusters[1], 3, NULL));
    for (unsigned i = 0; i < options->rounds; i++) {
        for (size_t j = 0; j < sizeof measurements / sizeof measurements[0]; j++) {
            if (!main_wants(options, measurements[j].name)) continue;
            fprintf(stderr, "\rround %u of %u: %-12s", i + 1, options->rounds, measurements[j].name);
            for (unsigned k = 0; k < 2; k++) {
                struct round round = {cluster_at(&clusters[k]), all + k * SERIES, options->quick};
                measurements[j].measure(&round);
            }
        }
    }
    fprintf(stderr, "\r%-40s\r", "");
    cluster_stop(&clusters[0]);
    cluster_stop(&clusters[1]);
}

static void main_write(const char *path, void (*report)(FILE *, const struct samples *), const struct samples *all) {
    if (!path) return;
    FILE *out = fopen(path, "w");
    must(out);
    report(out, all);
    must(fclose(out) == 0);
}

int main(int count, char **words) {
    struct options options;
    (void)count;
    if (!main_read(&options, words + 1)) return main_usage();
    if (!cluster_etcd()) {
        fprintf(stderr, "skipped: there is no etcd; on Debian, install etcd-server\n");
        return SKIPPED;
    }
    if (!machines_possible()) {
        fprintf(stderr, "skipped: no process may have a mount namespace of its own here, which stands for a machine\n");
        return SKIPPED;
    }
    struct samples *all = memory_shared(2 * SERIES * sizeof *all);
    main_measure(&options, all);
    if (options.quick) { /* with fewer processes and requests than the rows say: these are no figures */
        printf("everything was measured once\n");
        return 0;
    }
    report_table(stdout, all);
    main_write(options.json, report_json, all);
    main_write(options.markdown, report_markdown, all);
    return 0;
}
