/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "cli.h"

static void put_text(FILE *out, const char *text) {
    putc('"', out);
    while (*text) {
        unsigned char first = (unsigned char)*text;
        size_t length = cli_utf8(text);
        if (first == '"' || first == '\\') putc('\\', out);
        if (length) fwrite(text, 1, length, out);
        else if (first < 0x20 || first == 0x7f) fprintf(out, "\\u%04x", first);
        else fputs("\\ufffd", out);
        text += length ? length : 1;
    }
    putc('"', out);
}

/* A comma if one is due, and the key. */
static void put_key(struct cli_json *json, const char *key) {
    if (json->more) putc(',', json->out);
    json->more = true;
    if (!key) return;
    put_text(json->out, key);
    putc(':', json->out);
}

static void open_bracket(struct cli_json *json, const char *key, char bracket) {
    put_key(json, key);
    putc(bracket, json->out);
    json->depth++;
    json->more = false;
}

/* On stderr, where other processes write as well, each line must be one write. */
void json_begin(struct cli_json *json, FILE *out) {
    static char line[BUFSIZ];
    if (out == stderr) setvbuf(stderr, line, _IOLBF, sizeof line);
    *json = (struct cli_json){.out = out};
}

void json_object(struct cli_json *json, const char *key) {
    open_bracket(json, key, '{');
}

void json_array(struct cli_json *json, const char *key) {
    open_bracket(json, key, '[');
}

void json_end(struct cli_json *json, char bracket) {
    putc(bracket, json->out);
    json->more = true;
    if (--json->depth == 0) putc('\n', json->out);
}

void json_text(struct cli_json *json, const char *key, const char *text) {
    put_key(json, key);
    put_text(json->out, text);
}

void json_integer(struct cli_json *json, const char *key, int64_t value) {
    put_key(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void json_unsigned(struct cli_json *json, const char *key, uint64_t value) {
    put_key(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_bool(struct cli_json *json, const char *key, bool value) {
    put_key(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_null(struct cli_json *json, const char *key) {
    put_key(json, key);
    fputs("null", json->out);
}
