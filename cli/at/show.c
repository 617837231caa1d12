/* SPDX-License-Identifier: MIT */
/* vigil show, top and doctor with --at: the holders and waiters of a lock of a cluster, and what is wrong. */
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../colours.h"
#include "at.h"

#define TOP_EVERY_MS 1000
#define SECOND_NS    INT64_C(1000000000)

struct view {
    struct at at;
    bool done;
    int status;
    uint32_t waiters, holders;
    bool died;
    int64_t oldest_s; /* how long the oldest holder has had it */
};

static void view_ago(int64_t taken_at, char text[16]) {
    int64_t seconds = (int64_t)time(NULL) - taken_at;
    cli_print_duration(text, (seconds < 0 ? 0 : seconds) * SECOND_NS);
}

/* Text. */

static void view_print_one(const vigil_remote_one *one, uint32_t place) {
    char ago[16], what[128], host[128], where[24] = "holds";
    view_ago(one->process.taken_at, ago);
    cli_visible(what, sizeof what, one->process.text);
    cli_visible(host, sizeof host, one->process.host);
    if (one->holds && one->shares) strcpy(where, "shares");
    else if (!one->holds) snprintf(where, sizeof where, "%u", place);
    printf("%8s  %8s  %-16s %8u  %s\n", where, ago, host, one->process.pid, what);
}

static void view_print(const struct view *view, const vigil_remote_seen *seen) {
    char holder[256];
    printf("%s: ", view->at.name);
    if (seen->slots) printf("%u of %u slots taken", seen->holders, seen->slots);
    else if (seen->holders) printf("held%s", seen->holders > 1 ? " by several" : "");
    else printf("free");
    printf(", %u waiting\n", seen->waiters);
    if (seen->died)
        printf("its last holder died or lost it while holding it: %s\n",
               at_say_holder(&seen->dead, holder, sizeof holder));
    if (seen->count) printf("%8s  %8s  %-16s %8s  %s\n", "PLACE", "SINCE", "HOST", "PID", "COMMAND");
    uint32_t place = 0;
    for (uint32_t i = 0; i < seen->count; i++) view_print_one(&seen->all[i], seen->all[i].holds ? 0 : ++place);
    if (seen->count < seen->holders + seen->waiters)
        printf("and %u more\n", seen->holders + seen->waiters - seen->count);
}

/* JSON. */

static void view_json_holder(struct cli_json *json, const char *key, const vigil_remote_holder *process) {
    json_object(json, key);
    json_text(json, "host", process->host);
    json_unsigned(json, "pid", process->pid);
    json_integer(json, "since", process->taken_at);
    json_text(json, "command", process->text);
}

static void view_json_all(struct cli_json *json, const char *key, const vigil_remote_seen *seen, bool holders) {
    json_array(json, key);
    for (uint32_t i = 0; i < seen->count; i++) {
        const vigil_remote_one *one = &seen->all[i];
        if (one->holds != holders) continue;
        view_json_holder(json, NULL, &one->process);
        if (holders) json_bool(json, "shares", one->shares);
        json_integer(json, "revision", one->revision);
        json_end(json, '}');
    }
    json_end(json, ']');
}

static void view_json(const struct view *view, const vigil_remote_seen *seen) {
    struct cli_json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "name", view->at.name);
    if (seen->slots) json_unsigned(&json, "slots", seen->slots);
    json_unsigned(&json, "holder_count", seen->holders);
    json_unsigned(&json, "waiter_count", seen->waiters);
    json_bool(&json, "owner_died", seen->died);
    if (seen->died) {
        view_json_holder(&json, "dead", &seen->dead);
        json_end(&json, '}');
    }
    view_json_all(&json, "holders", seen, true);
    view_json_all(&json, "waiters", seen, false);
    json_end(&json, '}');
}

static void view_looked(int status, const vigil_remote_seen *seen, void *data) {
    struct view *view = data;
    view->status = status;
    view->done = true;
    if (status != VIGIL_OK) return;
    if (cli_wants_json) view_json(view, seen);
    else view_print(view, seen);
}

static int view_look(struct view *view, vigil_remote_looked *looked) {
    view->done = false;
    int status = vigil_remote_look(view->at.remote, view->at.name, looked, view);
    if (status == VIGIL_PENDING) at_run(&view->at, &view->done, -1, -1);
    else view->status = status;
    return view->status;
}

static bool view_read(struct view *view, int count, char **arguments, bool maybe) {
    struct cli_arguments parsed;
    const struct cli_option options[] = {AT_OPTIONS(view->at), {0}};
    if (!cli_options(count, arguments, options, &parsed)) return false;
    if (!at_read(&view->at, &parsed.operands, &parsed.operand_count, maybe)) return false;
    if (parsed.operand_count) {
        cli_usage("unexpected argument %s: give one NAME", parsed.operands[0]);
        return false;
    }
    return true;
}

int at_show(int count, char **arguments) {
    struct view view = {0};
    if (!view_read(&view, count, arguments, false)) return cli_usage_status();
    if (!at_open(&view.at)) return CLI_CANNOT;
    int status = view_look(&view, view_looked), failed = status == VIGIL_OK ? CLI_OK : at_fail(&view.at, status);
    at_close(&view.at);
    return failed;
}

/* Again and again; on a terminal always at the same place. */
int at_top(int count, char **arguments) {
    static const bool never = false;
    struct view view = {0};
    if (!view_read(&view, count, arguments, false)) return cli_usage_status();
    if (!at_open(&view.at)) return CLI_CANNOT;
    int status = VIGIL_OK;
    while (status == VIGIL_OK && !ferror(stdout)) {
        if (!cli_wants_json && isatty(STDOUT_FILENO)) fputs("\033[H\033[2J", stdout);
        status = view_look(&view, view_looked);
        fflush(stdout);
        if (status == VIGIL_OK) at_run(&view.at, &never, -1, TOP_EVERY_MS);
    }
    int failed = status == VIGIL_OK ? CLI_OK : at_fail(&view.at, status);
    at_close(&view.at);
    return failed;
}

/* Doctor. */

#define TTL_ROUND_TRIPS 20 /* a lease must survive some failures of its renewal, and an election */

struct finding {
    struct view *view;
    vigil_remote_health health;
    unsigned faults;
};

static void doctor_health(int status, const vigil_remote_health *health, void *data) {
    struct finding *finding = data;
    finding->view->status = status;
    finding->view->done = true;
    if (health) finding->health = *health;
}

static void doctor_looked(int status, const vigil_remote_seen *seen, void *data) {
    struct view *view = data;
    view->status = status;
    view->done = true;
    if (status != VIGIL_OK) return;
    view->waiters = seen->waiters;
    view->holders = seen->holders;
    view->died = seen->died;
}

static void doctor_say(struct finding *finding, bool bad, const char *text) {
    finding->faults += bad;
    if (cli_wants_json) return;
    bool colour = cli_colour(stdout);
    printf("%s%s%s %s\n", colour ? (bad ? RED : GREEN) : "", bad ? "fault" : "good ", colour ? PLAIN : "", text);
}

static void doctor_check_leader(struct finding *finding) {
    const vigil_remote_health *health = &finding->health;
    char text[256], version[128];
    snprintf(text, sizeof text, "the cluster replies: etcd %s", cli_visible(version, sizeof version, health->version));
    doctor_say(finding, false, text);
    doctor_say(finding, !health->has_leader,
               health->has_leader ? "it has a leader" : "it has no leader: more than half of its members are missing");
}

static void doctor_check_cluster(struct finding *finding) {
    const vigil_remote_health *health = &finding->health;
    char text[256], trip[16], ttl[16];
    int64_t ttl_ns = finding->view->at.options.ttl_ns ? finding->view->at.options.ttl_ns : 10 * SECOND_NS;
    cli_print_duration(trip, health->round_trip_ns);
    cli_print_duration(ttl, ttl_ns);
    bool slow = health->round_trip_ns * TTL_ROUND_TRIPS > ttl_ns;
    snprintf(text, sizeof text, "a round trip takes %s, and a lease lives for %s%s", trip, ttl,
             slow ? ": too short, use a longer --ttl" : "");
    doctor_say(finding, slow, text);
    doctor_say(finding, health->alarms != 0,
               health->alarms ? "it has raised an alarm, and accepts no changes: etcdctl alarm list, and etcd's guide "
                                "to maintenance"
                              : "it has raised no alarm");
}

static void doctor_check_lock(struct finding *finding) {
    const struct view *view = finding->view;
    char text[256];
    snprintf(text, sizeof text, "%s: %u hold it, %u wait", view->at.name, view->holders, view->waiters);
    doctor_say(finding, false, text);
    if (view->died) {
        snprintf(text, sizeof text,
                 "%s: its last holder died or lost it: the next one is told, and vigil lock --on-owner-died continue "
                 "goes on",
                 view->at.name);
        doctor_say(finding, true, text);
    }
    bool stuck = view->waiters && !view->holders;
    if (stuck) {
        snprintf(text, sizeof text, "%s: %u wait, and no process holds it: if it stays so, see vigil show",
                 view->at.name, view->waiters);
        doctor_say(finding, true, text);
    }
}

static void doctor_json(const struct finding *finding) {
    struct cli_json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "version", finding->health.version);
    json_bool(&json, "has_leader", finding->health.has_leader);
    json_integer(&json, "round_trip_ns", finding->health.round_trip_ns);
    json_integer(&json, "database_bytes", finding->health.database_bytes);
    json_unsigned(&json, "alarms", finding->health.alarms);
    if (finding->view->at.name[0]) {
        json_text(&json, "name", finding->view->at.name);
        json_unsigned(&json, "holders", finding->view->holders);
        json_unsigned(&json, "waiters", finding->view->waiters);
        json_bool(&json, "owner_died", finding->view->died);
    }
    json_unsigned(&json, "faults", finding->faults);
    json_end(&json, '}');
}

int at_doctor(int count, char **arguments) {
    struct view view = {0};
    struct finding finding = {.view = &view};
    if (!view_read(&view, count, arguments, true)) return cli_usage_status();
    if (!at_open(&view.at)) return CLI_CANNOT;
    int status = vigil_remote_ask_health(view.at.remote, doctor_health, &finding);
    if (status == VIGIL_PENDING) {
        at_run(&view.at, &view.done, -1, -1);
        status = view.status;
    }
    bool leaderless = status != VIGIL_OK && finding.health.version[0] && !finding.health.has_leader;
    if (leaderless || status == VIGIL_OK) doctor_check_leader(&finding);
    if (status == VIGIL_OK) doctor_check_cluster(&finding);
    if (status == VIGIL_OK && view.at.name[0]) status = view_look(&view, doctor_looked);
    if (status == VIGIL_OK && view.at.name[0]) doctor_check_lock(&finding);
    bool told = status == VIGIL_OK || leaderless;
    int failed = told ? finding.faults != 0 : at_fail(&view.at, status);
    if (told && cli_wants_json) doctor_json(&finding);
    at_close(&view.at);
    return failed;
}
