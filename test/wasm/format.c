/* SPDX-License-Identifier: MIT */
/* format.c - printf for the unit tests in WebAssembly: %d %i %u %x %p %s %c, with width, `0`, `#`, and sizes. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct format_text {
    char *at;
    size_t room, length;
};

struct format_spec {
    bool zeros, prefixed;
    size_t width;
    unsigned longs; /* how many l */
    char kind;
};

static void format_put(struct format_text *text, char character) {
    if (text->length + 1 < text->room) text->at[text->length] = character;
    text->length++;
}

static void format_put_padded(struct format_text *text, const char *from, size_t length,
                              const struct format_spec *spec) {
    for (size_t i = length; i < spec->width; i++) format_put(text, spec->zeros ? '0' : ' ');
    for (size_t i = 0; i < length; i++) format_put(text, from[i]);
}

static void format_put_number(struct format_text *text, uint64_t value, const struct format_spec *spec) {
    char digits[24], *first = digits + sizeof digits;
    unsigned base = spec->kind == 'x' || spec->kind == 'p' ? 16 : 10;
    bool negative = (spec->kind == 'd' || spec->kind == 'i') && (int64_t)value < 0;
    bool prefixed = spec->kind == 'p' || (spec->prefixed && value);
    if (negative) value = 0 - value;
    do *--first = "0123456789abcdef"[value % base];
    while (value /= base);
    if (prefixed) *--first = 'x', *--first = '0';
    if (negative) *--first = '-';
    format_put_padded(text, first, (size_t)(digits + sizeof digits - first), spec);
}

static uint64_t format_take_number(const struct format_spec *spec, va_list *arguments) {
    if (spec->longs == 2) return va_arg(*arguments, uint64_t);
    if (spec->kind == 'd' || spec->kind == 'i') return (uint64_t)(int64_t)va_arg(*arguments, int32_t);
    return va_arg(*arguments, uint32_t);
}

static void format_put_one(struct format_text *text, const struct format_spec *spec, va_list *arguments) {
    if (spec->kind == 's') {
        const char *string = va_arg(*arguments, const char *);
        format_put_padded(text, string, strlen(string), spec);
    } else if (spec->kind == 'c') {
        format_put(text, (char)va_arg(*arguments, int));
    } else if (spec->kind == '%') {
        format_put(text, '%');
    } else {
        format_put_number(text, format_take_number(spec, arguments), spec);
    }
}

/* After the `%`; returns what follows. A size_t and a long have 32 bits. */
static const char *format_read(const char *format, struct format_spec *spec) {
    *spec = (struct format_spec){0};
    for (; *format == '0' || *format == '#'; format++) {
        if (*format == '0') spec->zeros = true;
        else spec->prefixed = true;
    }
    for (; *format >= '0' && *format <= '9'; format++) spec->width = spec->width * 10 + (size_t)(*format - '0');
    for (; *format == 'l' || *format == 'z' || *format == 'j' || *format == 't'; format++) {
        spec->longs += *format == 'l' ? 1 : *format == 'j' ? 2 : 0;
    }
    spec->kind = *format;
    return format + 1;
}

int vsnprintf(char *restrict to, size_t room, const char *restrict format, va_list arguments) {
    struct format_text text = {to, room, 0};
    struct format_spec spec;
    va_list rest;
    va_copy(rest, arguments);
    while (*format) {
        if (*format != '%') {
            format_put(&text, *format++);
            continue;
        }
        format = format_read(format + 1, &spec);
        format_put_one(&text, &spec, &rest);
    }
    va_end(rest);
    if (room) to[text.length < room ? text.length : room - 1] = '\0';
    return (int)text.length;
}

int snprintf(char *restrict to, size_t room, const char *restrict format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to, room, format, arguments);
    va_end(arguments);
    return length;
}
