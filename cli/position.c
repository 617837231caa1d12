/* SPDX-License-Identifier: MIT */
#include "position.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LOOK_EVERY_MS 250
#define TEXT_MAX      512

struct position_seen {
    uint32_t place, of;
    uint32_t holders;
    const vigil_seen_member *holder; /* the first holder; null: there is none, or it has died */
    uint32_t pid;                    /* of the command that it runs, or its own */
    int64_t held_ns;                 /* 0: not known */
};

static const vigil_seen_member *member_of(const vigil_look *look, uint32_t number) {
    for (uint32_t i = 0; i < look->member_count; i++)
        if (look->members[i].number == number) return &look->members[i];
    return NULL;
}

static void count_waiters(struct position_seen *at, const vigil_seen_line *line) {
    uint32_t ours = __atomic_load_n(&vigil__holder, __ATOMIC_RELAXED) / 16; /* see status.h */
    for (uint32_t i = 0; i < line->waiter_count; i++)
        if (line->waiters[i].number == ours && !at->place) at->place = at->of + i + 1;
    at->of += line->waiter_count;
}

static void find_holder(struct position_seen *at, const vigil_look *look, const vigil_seen_line *line) {
    if (!line->holder_count) return;
    at->holders = line->holder_count;
    at->holder = member_of(look, line->holders[0].number);
    at->pid = at->holder ? cli_task_pid(at->holder) : 0;
    if (line->holders[0].since_ns) at->held_ns = look->at_ns - line->holders[0].since_ns;
}

/* A mutex is a turnstile: its waiters are behind the processes that have passed it, and its holder is one of these,
 * or holds the lock. False: we are in no line right now. */
static bool position_find(struct position_seen *at, const vigil_look *look) {
    *at = (struct position_seen){0};
    for (int turnstiles = 0; turnstiles <= 1; turnstiles++) {
        for (uint32_t i = 0; i < look->line_count; i++) {
            const vigil_seen_line *line = &look->lines[i];
            if ((line->kind == VIGIL_SEEN_MUTEX) != turnstiles) continue;
            count_waiters(at, line);
            if (!turnstiles) find_holder(at, look, line);
        }
    }
    return at->place;
}

static const char *ordinal_ending(uint32_t number) {
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    bool teens = number % 100 >= 11 && number % 100 <= 13;
    return endings[teens || number % 10 > 3 ? 0 : number % 10];
}

/* The command comes last: a narrow terminal cuts it off. */
static void say_holder(const struct position_seen *at, char *text, size_t bytes) {
    char command[64], held[16] = "";
    if (at->holders > 1) {
        snprintf(text, bytes, "; held by %u", at->holders);
    } else if (at->holder) {
        cli_task(at->holder, command, sizeof command);
        cli_print_duration(held, at->held_ns);
        snprintf(text, bytes, "; held%s%s by pid %u%s: %s", at->held_ns ? " for " : "", at->held_ns ? held : "",
                 at->pid, at->holder->other_space ? " of another pid namespace" : "", command);
    } else {
        text[0] = 0;
    }
}

static void position_say(const struct position *position, const struct position_seen *at, int64_t waited_ns, char *text,
                         size_t bytes) {
    char waited[16], holder[160];
    cli_print_duration(waited, waited_ns);
    say_holder(at, holder, sizeof holder);
    snprintf(text, bytes, "%s: %u%s in line of %u, %s%s", position->name, at->place, ordinal_ending(at->place), at->of,
             waited, holder);
}

static void position_print_json(const struct position *position, const struct position_seen *at, int64_t waited_ns) {
    char command[256];
    struct cli_json json;
    json_begin(&json, stderr);
    json_object(&json, NULL);
    json_text(&json, "event", "waiting");
    json_text(&json, "name", position->name);
    json_unsigned(&json, "place", at->place);
    json_unsigned(&json, "of", at->of);
    json_integer(&json, "waited_ns", waited_ns);
    json_unsigned(&json, "holders", at->holders);
    if (at->holder) {
        cli_task(at->holder, command, sizeof command);
        json_unsigned(&json, "holder_pid", at->pid);
        json_unsigned(&json, "holder_vigil_pid", at->holder->pid);
        json_text(&json, "holder_command", command);
    }
    if (at->held_ns) json_integer(&json, "held_ns", at->held_ns);
    json_end(&json, '}');
}

static void position_print(struct position *position, const struct position_seen *at, int64_t waited_ns) {
    char text[TEXT_MAX];
    bool changed = at->place != position->number;
    position->number = at->place;
    position_say(position, at, waited_ns, text, sizeof text);
    if (position->redraws) redraw_line(&position->drawn, text);
    else if (changed && cli_wants_json) position_print_json(position, at, waited_ns);
    else if (changed) cli_warn("%s", text);
}

void position_begin(struct position *position, const char *name, int64_t since_ns, bool lines) {
    *position = (struct position){.name = name, .since_ns = since_ns, .redraws = !cli_wants_json && terminal_redraws()};
    if (!position->redraws && !lines) return;
    if (vigil_observer_open(&position->observer, name) != VIGIL_OK) position->observer = NULL;
}

int position_show(struct position *position) {
    vigil_look look;
    struct position_seen at;
    if (!position->observer) return -1;
    bool there = vigil_observer_look(position->observer, &look) == VIGIL_OK && position_find(&at, &look);
    int64_t waited_ns = vigil_now_ns() - position->since_ns;
    bool only_just = position->redraws && waited_ns < LOOK_EVERY_MS * INT64_C(1000000); /* it would only flicker */
    if (there && !only_just) position_print(position, &at, waited_ns);
    return LOOK_EVERY_MS;
}

int position_show_orphans(struct position *position) {
    char text[TEXT_MAX], waited[16];
    if (!position->observer || cli_wants_json) return LOOK_EVERY_MS;
    cli_print_duration(waited, vigil_now_ns() - position->since_ns);
    snprintf(text, sizeof text, "%s: processes that a killed holder started still run, %s", position->name, waited);
    if (position->redraws) redraw_line(&position->drawn, text);
    else if (!position->orphans_shown) cli_warn("%s", text);
    position->orphans_shown = true;
    return LOOK_EVERY_MS;
}

void position_holder(const char *name, char *text, size_t bytes) {
    vigil_observer *observer;
    vigil_look look;
    struct position_seen at;
    text[0] = 0;
    if (vigil_observer_open(&observer, name) != VIGIL_OK) return;
    if (vigil_observer_look(observer, &look) == VIGIL_OK) {
        position_find(&at, &look);
        say_holder(&at, text, bytes);
    }
    vigil_observer_close(observer);
}

void position_end(struct position *position) {
    redraw_end(&position->drawn);
    if (position->observer) vigil_observer_close(position->observer);
    *position = (struct position){0};
}
