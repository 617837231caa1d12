/* SPDX-License-Identifier: MIT */
/* The results as JSON. */
#include <stdio.h>

#include "../cli.h"
#include "demo.h"

static void write_contestant(struct cli_json *json, const struct act *act, int contestant) {
    static const char *const endings[ENDINGS] = {"served", "timed_out", "cancelled", "killed"};
    const struct record *record = &act->records[contestant];
    json_object(json, NULL);
    json_text(json, "name", contestant_names[contestant]);
    json_integer(json, "process", is_in_second(act, contestant) ? 2 : 1);
    for (int i = 0; i < ENDINGS; i++) json_unsigned(json, endings[i], record->endings[i]);
    json_integer(json, "longest_wait_ns", record->longest_wait_ns);
    json_end(json, '}');
}

static void write_act(struct cli_json *json, const struct act *act) {
    json_object(json, NULL);
    json_text(json, "title", act->column);
    json_bool(json, "fair", act->fair);
    json_integer(json, "duration_ns", act->duration_ns);
    json_unsigned(json, "served", act->granted);
    json_unsigned(json, "out_of_turn", act->out_of_turn);
    if (act->heir_ns) {
        json_integer(json, "killed_at_ns", act->killed_ns - act->began_ns);
        json_integer(json, "next_after_ns", act->heir_ns - act->killed_ns);
    }
    json_array(json, "contestants");
    for (int i = 0; i < CONTESTANTS; i++) write_contestant(json, act, i);
    json_end(json, ']');
    json_end(json, '}');
}

void summary_write(FILE *out, const struct act *acts, int count, bool right) {
    struct cli_json json;
    json_begin(&json, out);
    json_object(&json, NULL);
    json_text(&json, "status", vigil_status_name(VIGIL_OK));
    json_text(&json, "verdict", right ? "right" : "wrong");
    json_array(&json, "acts");
    for (int i = 0; i < count; i++) write_act(&json, &acts[i]);
    json_end(&json, ']');
    json_end(&json, '}');
}
