/* SPDX-License-Identifier: MIT */
/* Reads and prints numbers and durations. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cli.h"

#define SECOND INT64_C(1000000000)

/* Reads digits of the base at *text, and moves it behind them. False: there are none, or too many for 64 bits. */
static bool read_digits(const char **text, unsigned base, uint64_t *value) {
    const char *start = *text;
    for (*value = 0; isxdigit((unsigned char)**text); ++*text) {
        int letter = tolower((unsigned char)**text);
        unsigned digit = (unsigned)(isdigit(letter) ? letter - '0' : letter - 'a' + 10);
        if (digit >= base) break;
        if (__builtin_mul_overflow(*value, base, value) || __builtin_add_overflow(*value, digit, value)) return false;
    }
    return *text != start;
}

static bool read_number(const char **text, uint64_t *value) {
    bool hex = (*text)[0] == '0' && tolower((unsigned char)(*text)[1]) == 'x';
    if (hex) *text += 2;
    return read_digits(text, hex ? 16 : 10, value);
}

bool cli_parse_count(const char *text, uint64_t *count) {
    static const char units[] = "kmgt";
    uint64_t value, times = 1;
    if (!read_number(&text, &value)) return false;
    if (*text) {
        const char *unit = strchr(units, tolower((unsigned char)*text));
        if (!unit || text[1]) return false;
        times = UINT64_C(1024) << 10 * (unit - units);
    }
    return !__builtin_mul_overflow(value, times, count);
}

bool cli_parse_integer(const char *text, unsigned bits, int64_t *value) {
    uint64_t magnitude, sign = UINT64_C(1) << (bits - 1);
    bool negative = *text == '-';
    text += negative;
    if (!read_number(&text, &magnitude) || *text) return false;
    if (magnitude > (negative ? sign : sign | (sign - 1))) return false;
    uint64_t pattern = negative ? 0 - magnitude : magnitude;
    if (pattern & sign) pattern |= ~(sign - 1); /* a negative number may be written as its bit pattern */
    *value = (int64_t)pattern;
    return true;
}

/* One to nine digits after the point, as billionths. */
static bool read_billionths(const char **text, uint64_t *value) {
    const char *start = *text;
    uint64_t worth = SECOND;
    for (*value = 0; isdigit((unsigned char)**text); ++*text) {
        worth /= 10;
        *value += worth * (uint64_t)(**text - '0');
    }
    return *text > start && *text - start <= 9;
}

static int64_t unit_ns(const char *text) {
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ns", 1},          {"us", 1000},         {"ms", 1000000},       {"s", SECOND},
                 {"m", 60 * SECOND}, {"h", 3600 * SECOND}, {"d", 86400 * SECOND}, {"", SECOND}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text, units[i].name) == 0) return units[i].ns;
    return 0;
}

bool cli_parse_duration(const char *text, int64_t *ns) {
    uint64_t whole, billionths = 0;
    if (!read_digits(&text, 10, &whole)) {
        if (!isdigit((unsigned char)*text)) return false;
        whole = UINT64_MAX; /* more digits than fit */
        while (isdigit((unsigned char)*text)) text++;
    }
    if (*text == '.' && (text++, !read_billionths(&text, &billionths))) return false;
    int64_t unit = unit_ns(text), part;
    if (unit == 0) return false;
    if (unit >= SECOND) part = (int64_t)billionths * (unit / SECOND); /* else rounded up: never too short */
    else part = ((int64_t)billionths + SECOND / unit - 1) / (SECOND / unit);
    if (__builtin_mul_overflow(whole, unit, ns) || __builtin_add_overflow(*ns, part, ns)) *ns = VIGIL_FOREVER;
    return true;
}

void cli_print_duration(char text[16], int64_t ns) {
    static const char *const small[] = {"ns", "us", "ms", "s"};
    double value = ns < 0 ? 0 : (double)ns;
    int64_t s = ns / SECOND;
    if (s < 60) {
        unsigned unit = 0;
        while (unit < 3 && value >= 999.95) value /= 1000, unit++;
        snprintf(text, 16, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, small[unit]);
    } else if (s < 3600) {
        snprintf(text, 16, "%" PRId64 "m%02ds", s / 60, (int)(s % 60));
    } else if (s < 86400) {
        snprintf(text, 16, "%" PRId64 "h%02dm", s / 3600, (int)(s / 60 % 60));
    } else {
        snprintf(text, 16, "%" PRId64 "d%02dh", s / 86400, (int)(s / 3600 % 24));
    }
}
