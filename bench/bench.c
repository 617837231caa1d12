/* SPDX-License-Identifier: MIT */
/* bench - measures Vigil and its peers in turn. See bench.h for how it is put together. */
#include "alone.h"

#include "../cli/cli.h"
#include "../cli/descriptors.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct cli_command self = {
    .name = "bench",
    .help = "usage: vigil bench [--json] [--svg FILE] [--markdown FILE] [--only ROW,...] [--by NAME,...] [--rounds N]\n"
            "                   [--quick]\n"
            "\n"
            "See vigil bench --help.\n"};
const struct cli_command *cli_now = &self;
bool cli_wants_json;

static struct {
    const char *svg, *markdown, *only, *by;
    unsigned rounds; /* of each job; 0: as many as it takes */
    bool quick;
} options;

FILE *people(void) {
    return cli_wants_json ? stderr : stdout;
}

bool is_quick(void) {
    return options.quick;
}

static bool is_there[CONTESTANTS_MAX]; /* by contestant */

static bool list_contains(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *item = list; item != NULL; item = strchr(item, ',')) {
        item += *item == ',';
        if (strncmp(item, name, length) == 0 && (item[length] == ',' || item[length] == '\0')) return true;
    }
    return false;
}

_Noreturn static void refuse_row(const char *name) {
    cli_usage("there is no row %s", name);
    for (size_t i = 0; i < row_count && !cli_wants_json; i++)
        fprintf(stderr, "  %-29s %s\n", rows[i].name, rows[i].what);
    exit(CLI_USAGE);
}

static void check_only(void) {
    char *list = strdup(options.only), *rest = NULL;
    must(list != NULL);
    char *name = strtok_r(list, ",", &rest);
    if (name == NULL) exit(cli_usage("--only needs the name of a row"));
    for (; name != NULL; name = strtok_r(NULL, ",", &rest))
        if (row_find(name) == NULL) refuse_row(name);
    free(list);
}

static const struct contestant *contestant_find(const char *name) {
    for (size_t i = 0; i < contestant_count; i++)
        if (strcmp(contestants[i]->name, name) == 0) return contestants[i];
    return NULL;
}

static void check_by(void) {
    char *list = strdup(options.by), *rest = NULL;
    must(list != NULL);
    char *name = strtok_r(list, ",", &rest);
    if (name == NULL) exit(cli_usage("--by needs the name of a contestant, as in the tables"));
    for (; name != NULL; name = strtok_r(NULL, ",", &rest))
        if (contestant_find(name) == NULL) exit(cli_usage("there is no contestant %s", name));
    free(list);
}

static unsigned parse_rounds(const char *text) {
    uint64_t rounds;
    if (text == NULL) return options.quick ? 1 : 0;
    if (!cli_parse_count(text, &rounds) || rounds < 1 || rounds > ROUNDS_MAX)
        exit(cli_usage("--rounds takes a number from 1 to %d, not %s", ROUNDS_MAX, text));
    return (unsigned)rounds;
}

/* Fail now rather than after some minutes. If we are interrupted later, no file is left behind. */
static void check_writable(const char *path) {
    bool was_there = access(path, F_OK) == 0;
    FILE *file = fopen(path, "a");
    if (file == NULL) exit(cli_fail(VIGIL_ESYSTEM, "cannot write %s", path));
    fclose(file);
    if (!was_there) remove(path);
}

static void check_stdout(void) {
    if (write(STDOUT_FILENO, "", 0) == 0) return;
    cli_wants_json = false; /* stdout, where JSON goes, cannot be written */
    exit(cli_fail(VIGIL_ESYSTEM, "cannot write the figures"));
}

static void parse_options(int count, char **arguments) {
    const char *rounds = NULL;
    const struct cli_option known[] = {
        {"svg", 0, CLI_TEXT, &options.svg},     {"markdown", 0, CLI_TEXT, &options.markdown},
        {"only", 0, CLI_TEXT, &options.only},   {"by", 0, CLI_TEXT, &options.by},
        {"rounds", 0, CLI_TEXT, &rounds},       {"quick", 0, CLI_FLAG, &options.quick},
        {0}};
    struct cli_arguments parsed;
    if (!cli_options(count, arguments, known, &parsed)) exit(cli_usage_status());
    if (parsed.operand_count) exit(cli_usage("unexpected argument %s: it takes options only", parsed.operands[0]));
    options.rounds = parse_rounds(rounds);
    if (options.only != NULL) check_only();
    if (options.by != NULL) check_by();
    if (options.svg != NULL) check_writable(options.svg);
    if (options.markdown != NULL) check_writable(options.markdown);
    check_stdout();
}

static bool is_wanted(const struct job *job) {
    bool reported = false;
    for (size_t i = 0; i < FIGURES_MAX; i++) {
        if (job->rows[i] == NULL) continue;
        reported = true;
        if (options.only == NULL || list_contains(options.only, job->rows[i])) return true;
    }
    return !reported && options.only == NULL && options.svg != NULL;
}

const struct skill *skill_for(const struct contestant *contestant, const struct job *job) {
    for (size_t i = 0; i < SKILLS_MAX && contestant->skills[i] != NULL; i++)
        for (const struct skill *skill = contestant->skills[i]; skill->job != NULL; skill++)
            if (strcmp(skill->job, job->name) == 0) return skill;
    return NULL;
}

static bool takes_part(size_t contestant, const struct job *job, unsigned round) {
    const struct skill *skill = skill_for(contestants[contestant], job);
    return is_there[contestant] && skill != NULL && !(skill->once && round > 0);
}

/* What a job has used so far. While it needs more rounds than planned, it may use this much. */
static uint64_t used_ns[JOBS_MAX];
static const uint64_t BUDGET_NS = 6000000000;

static bool needs_round(size_t job, unsigned round) {
    unsigned planned = options.rounds > 0 && jobs[job].rounds > 1 ? options.rounds : jobs[job].rounds;
    if (!is_wanted(&jobs[job]) || round >= ROUNDS_MAX) return false;
    if (round < planned) return true;
    return options.rounds == 0 && planned > 1 && used_ns[job] < BUDGET_NS && !job_is_known(job);
}

static size_t jobs_left(unsigned round) {
    size_t count = 0;
    for (size_t job = 0; job < job_count; job++) count += needs_round(job, round);
    return count;
}

static struct {
    uint64_t start_ns, said_ns;
    bool animated;
} progress;

void say_left_out(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%sLeft out: ", progress.animated ? "\r\033[K" : "");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

static void progress_show(unsigned round, const struct job *job, const char *contestant) {
    if (!progress.animated) return;
    fprintf(stderr, "\r\033[Kround %u  %s %llu  %s", round + 1, job->name, (unsigned long long)job->n, contestant);
    fflush(stderr);
}

/* Later rounds are short: a line each would be too many. */
static void progress_round_ends(unsigned round, size_t unknown) {
    static const uint64_t PAUSE_NS = 10000000000;
    uint64_t now = now_ns();
    if (progress.animated) fprintf(stderr, "\r\033[K");
    if (now - progress.said_ns < PAUSE_NS && unknown > 0) return;
    progress.said_ns = now;
    fprintf(stderr, "round %u done in %.0f s, %zu of the jobs go on\n", round + 1,
            (double)(now - progress.start_ns) / 1e9, unknown);
}

static void measure(size_t job_index, size_t contestant, unsigned round) {
    struct job job = jobs[job_index];
    if (!takes_part(contestant, &job, round)) return;
    if (options.quick && job.n > 1000) job.n = job.n < 100000 ? 1000 : job.n / 100;
    progress_show(round, &job, contestants[contestant]->name);
    double figures[FIGURES_MAX] = {NAN, NAN, NAN};
    skill_for(contestants[contestant], &job)->measure(&job, figures);
    result_add(job_index, contestant, figures);
}

/* Each contestant takes a turn at being first: the first to run after another job may find colder caches. */
static void measure_all(size_t job, unsigned round) {
    uint64_t start_ns = now_ns();
    for (size_t i = 0; i < contestant_count; i++) measure(job, (i + round) % contestant_count, round);
    used_ns[job] += now_ns() - start_ns;
}

/* A round takes all jobs that need it, so that the samples of each are spread over the time of the whole run. */
static void run(void) {
    progress.animated = isatty(STDERR_FILENO);
    progress.start_ns = now_ns();
    for (unsigned round = 0; jobs_left(round) > 0; round++) {
        for (size_t job = 0; job < job_count; job++)
            if (needs_round(job, round)) measure_all(job, round);
        progress_round_ends(round, jobs_left(round + 1));
    }
}

/* The measurements keep two cores busy: other programs that use them distort the figures. */
static void look_for_load(void) {
    static const struct timespec moment = {.tv_nsec = 500000000};
    if (options.quick) return;
    struct load_mark mark = load_mark();
    nanosleep(&moment, NULL);
    load_before = load_since(&mark);
    if (load_distorts(load_before))
        fprintf(people(), "Note: other programs are busy (%.1f processors); the figures of this run will be rough.\n",
                load_before.others + load_before.stolen);
}

static void *no_work(void *argument) {
    return argument;
}

/* The C library's mutex skips its atomic instructions until the program has started a thread. */
static void start_a_thread(void) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, no_work, NULL) == 0);
    pthread_join(thread, NULL);
}

/* One that is not may take a while to start. */
static bool is_needed(const struct contestant *contestant) {
    if (options.by != NULL && !list_contains(options.by, contestant->name)) return false;
    for (size_t job = 0; job < job_count; job++)
        if (is_wanted(&jobs[job]) && skill_for(contestant, &jobs[job]) != NULL) return true;
    return false;
}

static void open_contestants(void) {
    if (contestants_missing[0] != '\0') fprintf(people(), "Not installed, skipped: %s\n", contestants_missing);
    for (size_t i = 0; i < contestant_count; i++) {
        if (!is_needed(contestants[i])) continue;
        is_there[i] = contestants[i]->open == NULL || contestants[i]->open();
        if (!is_there[i]) fprintf(people(), "Not installed, skipped: %s\n", contestants[i]->name);
    }
}

static void close_contestants(void) {
    for (size_t i = 0; i < contestant_count; i++)
        if (is_there[i] && contestants[i]->close != NULL) contestants[i]->close();
}

static bool written(bool success, const char *what) {
    if (!success) fprintf(stderr, "vigil bench: cannot write %s: %s\n", what, strerror(errno));
    return success;
}

static bool report_file(const char *path, bool (*write_to)(const char *)) {
    if (path == NULL) return true;
    if (!written(write_to(path), path)) return false;
    fprintf(people(), "Written: %s\n", path);
    return true;
}

static bool report(void) {
    report_table(people());
    if (!options.quick) report_targets(people());
    if (cli_wants_json) report_json(stdout);
    bool success = written(fflush(stdout) == 0 && !ferror(stdout), "the figures");
    success &= report_file(options.svg, chart_svg);
    success &= report_file(options.markdown, figures_markdown);
    return success;
}

int main(int argc, char **argv) {
    fill_standard_descriptors();
    if (argc == 3 && strcmp(argv[1], "--alone") == 0) /* run by the benchmark itself */
        return serve_alone(contestant_find(argv[2]));
    parse_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    look_for_load();
    start_a_thread();
    struct load_mark mark = load_mark();
    open_contestants();
    run();
    close_contestants();
    load_meanwhile = load_since(&mark);
    return report() ? CLI_OK : CLI_CANNOT;
}
