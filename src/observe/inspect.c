/* SPDX-License-Identifier: MIT */
/*
 * Checking: see vigil/observe.h.
 *
 * The members keep running meanwhile, and what they are about to change looks broken for a moment. So the check looks
 * several times, some time apart, and reports only what it found each time, in the same words.
 *
 * However much is damaged, the slots are gone through a bounded number of times. So what needs a second look is
 * collected and looked at again all together; and nothing more is looked for once there is no room for it.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tuning.h"
#include "base/word_lock.h"
#include "recovery/hold.h"
#include "recovery/consistency.h"
#include "observer.h"

#define FINDINGS_MOST 256u
#define SENTENCE_MOST 160u

struct finding {
    vigil_finding finding;
    char sentence[SENTENCE_MOST];
};

struct findings {
    uint32_t count;
    struct finding all[FINDINGS_MOST];
};

static bool observer_is_full(const struct findings *findings) {
    return findings->count == FINDINGS_MOST;
}

__attribute__((format(printf, 3, 4))) static void observer_find(struct findings *findings, vigil_finding finding,
                                                                const char *format, ...) {
    if (observer_is_full(findings)) return;
    struct finding *found = &findings->all[findings->count++];
    found->finding = finding;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(found->sentence, sizeof found->sentence, format, arguments);
    va_end(arguments);
}

static struct lot_parts observer_parts_of(const vigil_observer *observer) {
    return (struct lot_parts){
        .buckets = observer->buckets,
        .claims = observer->claims,
        .slots = observer->slots,
        .slot_count = backing_slots(observer->segment),
        .bucket_bits = (uint32_t)__builtin_ctzll(observer->segment->layout.buckets),
    };
}

static bool observer_is_member(const vigil_observer *observer, uint32_t number) {
    return segment_find_member(observer->segment, number) != NULL;
}

/* Members. */

/* The name may be damaged: any bytes are possible. */
static void observer_copy_name(char to[sizeof((struct segment_member *)0)->name + 1], const char *name) {
    size_t length = 0;
    for (; length < sizeof((struct segment_member *)0)->name && name[length]; length++) {
        to[length] = name[length] >= ' ' && name[length] <= '~' ? name[length] : '?';
    }
    to[length] = 0;
}

static void observer_check_members(const vigil_observer *observer, struct findings *findings) {
    struct segment *segment = observer->segment;
    char name[sizeof((struct segment_member *)0)->name + 1];
    if (!segment_is_intact(segment)) {
        observer_find(findings, VIGIL_FINDING_BROKEN,
                      "the header has been overwritten: no process can open the segment any more");
    }
    for (uint32_t i = 0, used = segment_rows(segment); i < backing_members(segment); i++) {
        struct segment_member *row = segment_member(segment, i);
        if (!(prim_load_acquire(&row->life) & SEGMENT_JOINED)) continue;
        uint32_t number = prim_load_relaxed(&row->number);
        if (i >= used) {
            if (segment_member_alive(segment, i)) {
                observer_find(findings, VIGIL_FINDING_BROKEN,
                              "member %" PRIu32 " is alive, but the other members do not see it", i);
            }
            continue;
        }
        if (!number || number >> SEGMENT_NUMBER_BITS || segment_find_member(segment, number) != row) {
            observer_find(findings, VIGIL_FINDING_BROKEN, "member %" PRIu32 " has a number that is not its own", i);
        }
        if (!segment_member_alive(segment, i)) {
            observer_copy_name(name, row->name);
            observer_find(findings, VIGIL_FINDING_DEAD, "process %" PRIu32 " (%s) has died and is still a member",
                          row->pid, name);
        }
    }
}

/* Slots. */

static bool observer_is_possible(uint32_t state) {
    return state <= VIGIL_OWNER_DIED || state == SLOT_CALLED || state == SLOT_BESIDE || state == SLOT_WAITING ||
           state == SLOT_ASLEEP;
}

static void observer_check_slot(const vigil_observer *observer, uint32_t index, struct findings *findings) {
    struct seen_slot seen;
    if (!observer_read(observer, index, &seen)) return;
    if (!observer_is_member(observer, seen.number)) {
        observer_find(findings, VIGIL_FINDING_DEAD, "slot %" PRIu32 " belongs to a process that is gone", index);
    }
    if (!seen.slot.key) return;
    uint64_t key = seen.slot.key - (seen.slot.kind == SLOT_HOLDS);
    if (!seen_waits(&seen) && !seen_holds(&seen)) {
        observer_find(findings, VIGIL_FINDING_BROKEN, "slot %" PRIu32 " is of an unknown kind", index);
    } else if (!observer_has_word(observer, key)) {
        observer_find(findings, VIGIL_FINDING_BROKEN, "slot %" PRIu32 " refers to a word outside the segment", index);
    } else if (!observer_is_possible(seen.slot.state)) {
        observer_find(findings, VIGIL_FINDING_BROKEN, "slot %" PRIu32 " is in an invalid state", index);
    }
}

static void observer_check_slots(vigil_observer *observer, struct findings *findings) {
    observer->passes++;
    for (uint32_t index = 1; index < backing_slots(observer->segment) && !observer_is_full(findings); index++) {
        observer_check_slot(observer, index, findings);
    }
}

/* Lines. */

/* Whether the lock stays taken. In a few looks, a lock that is taken again and again looks the same. */
static bool observer_is_kept(const uint32_t *word, uint32_t seen) {
    for (int look = 0; look < 1000; look++) {
        if (prim_load_relaxed(word) != seen) return false;
        prim_pause();
    }
    return true;
}

/* Follow the bucket's links, if no process is changing them. False, or `linked` is the number of slots. */
static bool observer_check_links(const vigil_observer *observer, const struct lot_parts *parts, uint32_t bucket,
                                 struct findings *findings, uint32_t *linked) {
    uint32_t word = prim_load_acquire(&parts->buckets[bucket].word), number = word / WORD_HOLDER;
    if ((word & WORD_LOCKED) && !observer_is_member(observer, number)) {
        observer_find(findings, VIGIL_FINDING_DEAD, "a process died while it was changing the lines of bucket %" PRIu32,
                      bucket);
        return false;
    } else if (word & WORD_LOCKED) {
        if (!observer_is_kept(&parts->buckets[bucket].word, word)) return false;
        observer_find(
            findings, VIGIL_FINDING_STUCK,
            "process %" PRIu32 " has kept bucket %" PRIu32 " locked for long: is it stopped? No process can wait there",
            segment_find_member(observer->segment, number) ? segment_find_member(observer->segment, number)->pid : 0,
            bucket);
        return false;
    }
    const char *fault = bucket_fault(parts, bucket, linked);
    if (fault) observer_find(findings, VIGIL_FINDING_BROKEN, "in bucket %" PRIu32 ", %s", bucket, fault);
    return !fault;
}

/* Buckets where the number of linked slots differs from the number of slots that say that they are in line. */
struct doubts {
    uint32_t count;
    struct doubt {
        uint32_t bucket, linked;
    } * all;
};

static uint32_t *observer_count_waiters(vigil_observer *observer, const struct lot_parts *parts) {
    observer->passes++;
    return buckets_count_in_line(parts);
}

static bool observer_check_all_links(vigil_observer *observer, const struct lot_parts *parts, struct findings *findings,
                                     struct doubts *doubts) {
    uint32_t *expected = observer_count_waiters(observer, parts), linked;
    if (!expected) return false;
    for (uint32_t bucket = 0; bucket < 1u << parts->bucket_bits && !observer_is_full(findings); bucket++) {
        struct bucket *there = &parts->buckets[bucket];
        bool used = expected[bucket] || prim_load_relaxed(&there->word) || prim_load_relaxed(&there->line);
        if (!used || !observer_check_links(observer, parts, bucket, findings, &linked)) continue;
        if (linked != expected[bucket]) doubts->all[doubts->count++] = (struct doubt){bucket, linked};
    }
    free(expected);
    return true;
}

/* False: a process is changing it. */
static bool observer_count_linked(const struct lot_parts *parts, uint32_t bucket, uint32_t *linked) {
    for (int again = 0; again < OBSERVER_AGAIN; again++) {
        bool locked = prim_load_acquire(&parts->buckets[bucket].word) & WORD_LOCKED;
        if (!locked && !bucket_fault(parts, bucket, linked)) return true;
        prim_pause();
    }
    return false;
}

/* In a healthy bucket as many slots are linked as were counted just before or after; if it is busy, not each time. */
static bool observer_settle_doubts(vigil_observer *observer, const struct lot_parts *parts, struct doubts *doubts) {
    for (int again = 0; again < OBSERVER_AGAIN && doubts->count; again++) {
        uint32_t *expected = observer_count_waiters(observer, parts), kept = 0;
        if (!expected) return false;
        for (uint32_t i = 0; i < doubts->count; i++) {
            struct doubt doubt = doubts->all[i];
            if (doubt.linked == expected[doubt.bucket]) continue;
            if (!observer_count_linked(parts, doubt.bucket, &doubt.linked)) continue;
            if (doubt.linked != expected[doubt.bucket]) doubts->all[kept++] = doubt;
        }
        doubts->count = kept;
        free(expected);
    }
    return true;
}

static bool observer_check_buckets(vigil_observer *observer, struct findings *findings) {
    struct lot_parts parts = observer_parts_of(observer);
    struct doubts doubts = {.all = calloc((size_t)1 << parts.bucket_bits, sizeof *doubts.all)};
    bool done = doubts.all && observer_check_all_links(observer, &parts, findings, &doubts) &&
                observer_settle_doubts(observer, &parts, &doubts);
    for (uint32_t i = 0; done && i < doubts.count; i++) {
        observer_find(findings, VIGIL_FINDING_BROKEN,
                      "in bucket %" PRIu32 ", a slot is waiting, but is not linked into a line", doubts.all[i].bucket);
    }
    free(doubts.all);
    return done;
}

/* The word of a read-write lock must agree with the holds of its holders. */
static bool observer_agrees(const vigil_seen_line *line) {
    uint32_t held = 0;
    if (line->kind != VIGIL_SEEN_RWLOCK) return true;
    for (uint32_t j = 0; j < line->holder_count; j++) {
        held += line->holders[j].shared ? line->holders[j].count * HOLD_READER : line->holders[j].count;
    }
    return held == (line->value & HOLD_RWLOCK);
}

/* The lines where they disagree: sorted by offset, as lines are. */
static uint32_t observer_find_disagreements(const vigil_look *look, uint64_t *offsets) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < look->line_count; i++) {
        if (!observer_agrees(&look->lines[i])) offsets[count++] = look->lines[i].offset;
    }
    return count;
}

/* Drop the lines that agree now. Returns how many are left. */
static uint32_t observer_keep_disagreements(const vigil_look *look, uint64_t *offsets, uint32_t count) {
    uint32_t kept = 0, at = 0;
    for (uint32_t i = 0; i < count; i++) {
        while (at < look->line_count && look->lines[at].offset < offsets[i]) at++;
        bool there = at < look->line_count && look->lines[at].offset == offsets[i];
        if (there && !observer_agrees(&look->lines[at])) offsets[kept++] = offsets[i];
    }
    return kept;
}

/* A look often falls between the changes of a busy lock's word and of its holds, but not each time. */
static int observer_check_holders(vigil_observer *observer, struct findings *findings) {
    vigil_look look;
    int status = vigil_observer_look(observer, &look);
    if (status != VIGIL_OK) return status;
    uint64_t *offsets = calloc(look.line_count + 1u, sizeof *offsets);
    if (!offsets) return VIGIL_ENOMEM;
    uint32_t count = observer_find_disagreements(&look, offsets);
    for (int again = 0; again < OBSERVER_AGAIN && count && status == VIGIL_OK; again++) {
        status = vigil_observer_look(observer, &look);
        if (status == VIGIL_OK) count = observer_keep_disagreements(&look, offsets, count);
    }
    for (uint32_t i = 0; i < count && status == VIGIL_OK; i++) {
        observer_find(findings, VIGIL_FINDING_BROKEN,
                      "the word of the read-write lock at byte %" PRIu64 " disagrees with its holders' holds",
                      offsets[i]);
    }
    free(offsets);
    return status;
}

static int observer_check_once(vigil_observer *observer, struct findings *findings) {
    findings->count = 0;
    observer->usable = segment_usable(observer->segment);
    observer_check_members(observer, findings);
    observer_check_slots(observer, findings);
    if (!observer_is_full(findings) && !observer_check_buckets(observer, findings)) return VIGIL_ENOMEM;
    return observer_is_full(findings) ? VIGIL_OK : observer_check_holders(observer, findings);
}

static bool observer_is_among(const struct finding *one, const struct findings *findings) {
    for (uint32_t i = 0; i < findings->count; i++) {
        if (strcmp(findings->all[i].sentence, one->sentence) == 0) return true;
    }
    return false;
}

static void observer_keep_common(struct findings *kept, const struct findings *now) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < kept->count; i++) {
        if (observer_is_among(&kept->all[i], now)) kept->all[count++] = kept->all[i];
    }
    kept->count = count;
}

static int observer_check(vigil_observer *observer, struct findings *kept, struct findings *now) {
    uint32_t nothing = 0;
    int status = observer_check_once(observer, kept);
    for (int look = 1; look < OBSERVER_LOOKS && kept->count && status == VIGIL_OK; look++) {
        prim_park(&nothing, 0, prim_now_ns() + OBSERVER_APART_NS);
        status = observer_check_once(observer, now);
        observer_keep_common(kept, now);
    }
    return status;
}

int64_t vigil_observer_check(vigil_observer *observer, vigil_found *found, void *data) {
    if (!observer || !found) return VIGIL_ENULL;
    struct findings *findings = calloc(2, sizeof *findings);
    if (!findings) return VIGIL_ENOMEM;
    int status = observer_check(observer, &findings[0], &findings[1]);
    uint32_t count = findings->count;
    for (uint32_t i = 0; i < count && status == VIGIL_OK; i++) {
        found(findings->all[i].finding, findings->all[i].sentence, data);
    }
    free(findings);
    return status == VIGIL_OK ? (int64_t)count : status;
}
