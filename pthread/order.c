/* SPDX-License-Identifier: MIT */
/*
 * The check of lock order (vigil/check.h), for calls that have an address and no file and line. Each address that calls
 * gets a number, which stands for the line; in the text of a report, what the check has written as file and line is
 * replaced by the name of the address.
 */
#include "preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prim.h"

#define SITES (1u << 16)

static const void *sites[SITES]; /* open addressing: the number is the index */
static _Thread_local bool inside;

/* A lock that the check itself needs, in a report's symbols say, is not checked. */
bool order_enter(void) {
    if (inside) return false;
    inside = true;
    return true;
}

void order_leave(void) {
    inside = false;
}

int order_site(const void *site) {
    uint32_t at = (uint32_t)(((uintptr_t)site * UINT64_C(0x9E3779B97F4A7C15)) >> 48) % SITES;
    for (uint32_t i = 0; i < SITES; i++, at = (at + 1) % SITES) {
        const void *seen = __atomic_load_n(&sites[at], __ATOMIC_RELAXED);
        if (seen == site) return (int)at;
        if (seen) continue;
        if (__atomic_compare_exchange_n(&sites[at], &seen, site, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
            seen == site)
            return (int)at;
    }
    return 0; /* there are more than that: a wrong name is what it costs */
}

void order_forget(const void *lock, uint64_t length) {
    if (!order_enter()) return;
    vigil_check_forget(lock, length);
    order_leave();
}

static void report(enum vigil_check_problem problem, const char *found) {
    char page[4096], name[SYMBOL_BYTES];
    struct text text = {.fd = 2, .room = sizeof page, .at = page};
    (void)problem;
    while (*found) {
        const char *marker = strstr(found, ORDER_FILE ":");
        size_t plain = marker ? (size_t)(marker - found) : strlen(found);
        text_add(&text, "%.*s", (int)plain, found);
        found += plain;
        if (!marker) break;
        char *end;
        unsigned long number = strtoul(found + strlen(ORDER_FILE ":"), &end, 10);
        text_add(&text, "%s", symbol_of(sites[number % SITES], name));
        found = end;
    }
    text_flush(&text);
}

void order_begin(void) {
    vigil_check_on_problem(report);
}
