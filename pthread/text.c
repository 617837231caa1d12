/* SPDX-License-Identifier: MIT */
#include "preload.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "prim.h"

#define LONGEST 1024u

void text_flush(struct text *text) {
    if (text->fd < 0) return;
    prim_write(text->fd, text->at, text->used);
    text->used = 0;
}

void text_add(struct text *text, const char *format, ...) {
    if (text->room - text->used < LONGEST) text_flush(text);
    if (text->room - text->used < LONGEST) return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->at + text->used, LONGEST, format, arguments);
    va_end(arguments);
    if (length > 0) text->used += (size_t)length < LONGEST ? (size_t)length : LONGEST - 1;
}

void text_json(struct text *text, const char *value) {
    char quoted[6 * SYMBOL_BYTES + 3], *at = quoted;
    *at++ = '"';
    for (size_t i = 0; value[i] && i < SYMBOL_BYTES; i++) {
        unsigned char c = (unsigned char)value[i];
        if (c == '"' || c == '\\') *at++ = '\\', *at++ = (char)c;
        else if (c < ' ' || c >= 127) at += snprintf(at, 7, "\\u%04x", c);
        else *at++ = (char)c;
    }
    *at++ = '"';
    *at = 0;
    text_add(text, "%s", quoted);
}
