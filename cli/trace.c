/* SPDX-License-Identifier: MIT */
/* vigil trace NAME -o FILE: record what happens in a segment or a process, until Ctrl-C or for a while. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "position.h"
#include "trace.h"

#define SOON_NS INT64_C(50000)
#define IDLE_NS INT64_C(2000000)   /* the ring fills up in this time only if the processes do nothing else */
#define LOOK_NS INT64_C(100000000) /* between looks at the members */
#define KEEP_NS INT64_C(300000000) /* between requests to go on recording */
#define SHOW_NS INT64_C(250000000) /* the progress, on a terminal */

struct output {
    const char *path; /* null: not wanted */
    FILE *file;
};

struct recording {
    const char *name;
    struct source *source;
    struct story story;
    struct output chrome, picture;
    int64_t end_ns; /* or INT64_MAX */
    int64_t pause_ns, kept_ns, looked_ns, shown_ns;
    sigset_t ends;                   /* signals */
    bool ended, gone, joined, shows; /* gone: the process has ended */
};

/* An existing file keeps its content until there is something to write. */
static FILE *open_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Before anything is recorded. False: a message was printed. */
static bool open_output(struct output *output) {
    if (!output->path) return true;
    output->file = strcmp(output->path, "-") == 0 ? stdout : open_file(output->path);
    if (!output->file) cli_fail(VIGIL_ESYSTEM, "cannot write %s", output->path);
    return output->file != NULL;
}

/* The file, truncated. Pipes and terminals cannot be truncated, and need not be. */
static FILE *emptied(const struct output *output) {
    if (output->file != stdout && ftruncate(fileno(output->file), 0) != 0) errno = 0;
    return output->file;
}

static bool close_output(struct output *output, bool written) {
    if (output->file == stdout) return written; /* main closes it */
    return fclose(output->file) == 0 && written;
}

static void show_progress(struct recording *recording, int64_t now_ns) {
    if (!recording->shows || now_ns - recording->shown_ns < SHOW_NS) return;
    recording->shown_ns = now_ns;
    char duration[16];
    cli_print_duration(duration, now_ns - recording->story.from_ns);
    fprintf(stderr, "\r\033[K%s: %llu events in %s; Ctrl-C ends it", recording->name,
            (unsigned long long)recording->story.event_count, duration);
}

static int trace_look(struct recording *recording, void (*take)(struct story *, const vigil_look *)) {
    vigil_look seen;
    int status = source_look(recording->source, &seen);
    if (status == VIGIL_OK) take(&recording->story, &seen);
    recording->looked_ns = vigil_now_ns();
    return status;
}

/* Fetches all events. Returns how many, or an error. */
static int64_t fetch(struct recording *recording) {
    vigil_event events[SOURCE_BATCH];
    uint64_t lost = 0;
    int64_t all = 0, count;
    bool more = false;
    do {
        count = source_events(recording->source, events, &lost, &more);
        for (int64_t i = 0; i < count; i++) {
            story_event(&recording->story, &events[i]);
            recording->joined |= events[i].type == VIGIL_EVENT_JOINED;
        }
        all += count;
    } while (more && !recording->story.full);
    if (count < 0) return count;
    if (lost) {
        story_lost(&recording->story, lost, vigil_now_ns());
        int status = trace_look(recording, story_sync);
        if (status < 0) return status;
    }
    return all;
}

/* Shorter if there were many events: the ring should never be more than half full. */
static void adapt_pause(struct recording *recording, int64_t count) {
    if (count > VIGIL_EVENTS_KEPT / 4) recording->pause_ns /= 4;
    else if (count > 0) recording->pause_ns = recording->pause_ns < SOON_NS ? 2 * recording->pause_ns + 1 : SOON_NS;
    else recording->pause_ns = recording->pause_ns < IDLE_NS / 2 ? 2 * recording->pause_ns + 1 : IDLE_NS;
}

static void rest(struct recording *recording, int64_t now_ns) {
    int64_t left_ns = recording->end_ns - now_ns, pause_ns = recording->pause_ns;
    if (pause_ns > left_ns) pause_ns = left_ns > 0 ? left_ns : 0;
    struct timespec pause = {.tv_nsec = pause_ns};
    if (sigtimedwait(&recording->ends, NULL, &pause) > 0) recording->ended = true;
}

/* The name of a new member is read at once: it may leave soon. Threads of a process are named when an event mentions
 * them. */
static int look_around(struct recording *recording, int64_t now_ns) {
    if (!recording->joined && now_ns - recording->looked_ns < LOOK_NS) return VIGIL_OK;
    recording->joined = false;
    if (!source_pid(recording->source)) return trace_look(recording, story_members);
    recording->looked_ns = now_ns;
    recording->gone = !source_is_there(recording->source);
    recording->ended |= recording->gone;
    return VIGIL_OK;
}

static int step(struct recording *recording) {
    int64_t now_ns = vigil_now_ns(), count;
    if (now_ns - recording->kept_ns >= KEEP_NS) {
        int kept = source_record(recording->source);
        if (kept < 0) return kept;
        recording->kept_ns = now_ns;
    }
    if ((count = fetch(recording)) < 0) return (int)count;
    int status = look_around(recording, now_ns);
    if (status < 0) return status;
    show_progress(recording, now_ns);
    adapt_pause(recording, count);
    rest(recording, now_ns);
    recording->ended |= vigil_now_ns() >= recording->end_ns || recording->story.full;
    return VIGIL_OK;
}

static void hold_signals(struct recording *recording) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigemptyset(&recording->ends);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaddset(&recording->ends, ends[i]);
    struct sigaction action;
    sigaction(SIGHUP, NULL, &action);
    if (action.sa_handler == SIG_IGN) sigdelset(&recording->ends, SIGHUP); /* nohup */
    sigprocmask(SIG_BLOCK, &recording->ends, NULL);
    prctl(PR_SET_TIMERSLACK, 1000); /* keep the pauses short */
}

static int record(struct recording *recording, int64_t duration_ns) {
    int status = source_record(recording->source);
    if (status < 0) return status;
    recording->kept_ns = vigil_now_ns();
    story_begin(&recording->story, recording->source, recording->kept_ns);
    recording->end_ns = duration_ns < INT64_MAX - recording->kept_ns ? recording->kept_ns + duration_ns : INT64_MAX;
    recording->pause_ns = SOON_NS;
    status = trace_look(recording, story_sync);
    if (!recording->shows) fprintf(stderr, "vigil trace: recording %s\n", recording->name); /* scripts wait for it */
    while (status == VIGIL_OK && !recording->ended) status = step(recording);
    if (recording->shows) fputs("\r\033[K", stderr);
    if (status == VIGIL_OK && fetch(recording) < 0) status = VIGIL_ENOMEM;
    if (recording->gone) story_leave(&recording->story, vigil_now_ns());
    story_end(&recording->story, vigil_now_ns());
    return status;
}

static void trace_print_summary(const struct recording *recording) {
    const struct story *story = &recording->story;
    int64_t duration_ns = story->to_ns - story->from_ns;
    uint32_t waits = story_spans(story, SPAN_WAIT), holds = story_spans(story, SPAN_HOLD);
    if (story->lost)
        cli_warn("at least %llu events were lost: they came faster than they could be recorded",
                 (unsigned long long)story->lost);
    if (story->full) cli_warn("the recording ended early: there is no room for more");
    if (recording->gone) cli_warn("process %s has ended, and so has the recording", recording->name);
    if (recording->chrome.file == stdout || recording->picture.file == stdout) return;
    if (cli_wants_json) {
        struct cli_json json;
        json_begin(&json, stdout);
        json_object(&json, NULL);
        json_text(&json, "status", vigil_status_name(VIGIL_OK));
        json_text(&json, "name", recording->name);
        if (recording->chrome.path) json_text(&json, "file", recording->chrome.path);
        if (recording->picture.path) json_text(&json, "svg", recording->picture.path);
        json_integer(&json, "duration_ns", duration_ns);
        json_unsigned(&json, "events", story->event_count);
        json_unsigned(&json, "lost", story->lost);
        json_unsigned(&json, story->pid ? "threads" : "processes", story->processes.count);
        json_unsigned(&json, "waits", waits);
        json_unsigned(&json, "holds", holds);
        json_unsigned(&json, "handovers", story->handovers.count);
        if (!story->pid) json_unsigned(&json, "deaths", story->deaths.count);
        json_end(&json, '}');
        return;
    }
    char duration[16];
    cli_print_duration(duration, duration_ns);
    printf("%s%s, %s: %llu events, %u %s; waits: %u, holds: %u, hand-overs: %u", story->pid ? "process " : "",
           recording->name, duration, (unsigned long long)story->event_count, story->processes.count,
           story->pid ? "threads" : "processes", waits, holds, story->handovers.count);
    if (story->pid) printf("\n");
    else printf(", deaths: %u\n", story->deaths.count);
    if (recording->chrome.path)
        printf("%s: open it at https://ui.perfetto.dev or chrome://tracing\n", recording->chrome.path);
    if (recording->picture.path) printf("%s: the picture\n", recording->picture.path);
}

/* "process 4711 (bank)". */
static void name_all(const struct recording *recording, char *name, size_t bytes) {
    const struct story *story = &recording->story;
    if (story->pid) snprintf(name, bytes, "process %u (%s)", story->pid, story->label);
    else snprintf(name, bytes, "%s", recording->name);
}

static int trace_write_all(struct recording *recording) {
    struct output *chrome = &recording->chrome, *picture = &recording->picture;
    char name[320];
    name_all(recording, name, sizeof name);
    errno = 0;
    if (chrome->path && !close_output(chrome, chrome_write(emptied(chrome), name, &recording->story)))
        return cli_fail(VIGIL_ESYSTEM, "cannot write %s", chrome->path);
    if (picture->path && !close_output(picture, timeline_draw(emptied(picture), name, &recording->story)))
        return cli_fail(VIGIL_ESYSTEM, "cannot write %s", picture->path);
    trace_print_summary(recording);
    return CLI_OK;
}

static int trace(struct recording *recording, int64_t duration_ns) {
    int exit_status = source_open(&recording->source, recording->name);
    if (exit_status != CLI_OK) return exit_status;
    exit_status = CLI_CANNOT;
    if (open_output(&recording->chrome) && open_output(&recording->picture)) {
        int status = record(recording, duration_ns);
        exit_status = status < 0 ? cli_fail(status, "cannot record %s", recording->name) : trace_write_all(recording);
        story_free(&recording->story);
    }
    source_close(recording->source);
    return exit_status;
}

int cli_trace(int count, char **arguments) {
    struct recording recording = {0};
    int64_t duration_ns = INT64_MAX;
    const struct cli_option options[] = {{"output", 'o', CLI_TEXT, &recording.chrome.path},
                                         {"svg", 0, CLI_TEXT, &recording.picture.path},
                                         {"for", 0, CLI_DURATION, &duration_ns},
                                         {0}};
    struct cli_arguments parsed;
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    const char *chrome = recording.chrome.path, *picture = recording.picture.path;
    bool chrome_out = chrome && strcmp(chrome, "-") == 0, picture_out = picture && strcmp(picture, "-") == 0;
    if (parsed.operand_count != 1 || parsed.command) return cli_usage("exactly one NAME or PID is needed");
    if (!chrome && !picture) return cli_usage("an output is missing: use -o FILE, --svg FILE or both");
    if (chrome_out + picture_out + cli_wants_json > 1) return cli_usage("only one output can go to standard output");
    if (chrome && picture && strcmp(chrome, picture) == 0) return cli_usage("-o and --svg need different files");
    recording.name = parsed.operands[0];
    recording.shows = !cli_wants_json && terminal_redraws();
    hold_signals(&recording);
    return trace(&recording, duration_ns);
}
