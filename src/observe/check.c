/* SPDX-License-Identifier: MIT */
/*
 * Checking: see vigil/observe.h.
 *
 * The members go on meanwhile, and what they are about to change looks broken for a moment. So it is looked several times,
 * some time apart, and what is found is what was found each time, in the same words.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lot/hold.h"
#include "lot/sound.h"
#include "lot/word_lock.h"
#include "observer.h"

#define LOOKS         6
#define APART_NS      UINT64_C(20000000) /* the watchers clear away after the dead in about as much */
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

__attribute__((format(printf, 3, 4))) static void find(struct findings *findings, vigil_finding finding,
                                                       const char *format, ...) {
    if (findings->count == FINDINGS_MOST) return;
    struct finding *found = &findings->all[findings->count++];
    found->finding = finding;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(found->sentence, sizeof found->sentence, format, arguments);
    va_end(arguments);
}

static struct lot_parts parts_of(const vigil_observer *observer) {
    return (struct lot_parts){
        .buckets = observer->buckets,
        .claims = observer->claims,
        .slots = observer->slots,
        .slot_count = (uint32_t)observer->segment->layout.slots,
        .bucket_bits = (uint32_t)__builtin_ctzll(observer->segment->layout.buckets),
    };
}

static bool is_member(const vigil_observer *observer, uint32_t number) {
    return segment_find_member(observer->segment, number) != NULL;
}

/* Members. */

/* Anything may stand there. */
static void copy_name(char to[sizeof((struct segment_member *)0)->name + 1], const char *name) {
    size_t length = 0;
    for (; length < sizeof((struct segment_member *)0)->name && name[length]; length++) {
        to[length] = name[length] >= ' ' && name[length] <= '~' ? name[length] : '?';
    }
    to[length] = 0;
}

static void check_members(const vigil_observer *observer, struct findings *findings) {
    struct segment *segment = observer->segment;
    char name[sizeof((struct segment_member *)0)->name + 1];
    if (!segment_is_sound(segment)) {
        find(findings, VIGIL_FINDING_BROKEN, "the header has been written over: nobody can open the segment any more");
    }
    for (uint32_t i = 0, used = segment_records(segment); i < segment->members; i++) {
        struct segment_member *record = segment_member(segment, i);
        if (!(prim_load_acquire(&record->life) & SEGMENT_JOINED)) continue;
        uint32_t number = prim_load_relaxed(&record->number);
        if (i >= used) {
            if (segment_member_alive(segment, i)) {
                find(findings, VIGIL_FINDING_BROKEN, "member %" PRIu32 " lives and is overlooked by the others", i);
            }
            continue;
        }
        if (!number || number >> SEGMENT_NUMBER_BITS || segment_find_member(segment, number) != record) {
            find(findings, VIGIL_FINDING_BROKEN, "member %" PRIu32 " goes by a number that is not its own", i);
        }
        if (!segment_member_alive(segment, i)) {
            copy_name(name, record->name);
            find(findings, VIGIL_FINDING_DEAD, "process %" PRIu32 " (%s) has died, and is still a member", record->pid,
                 name);
        }
    }
}

/* Slots. */

static bool is_possible(uint32_t state) {
    return state <= VIGIL_OWNER_DIED || state == SLOT_CALLED || state == SLOT_BESIDE || state == SLOT_WAITING ||
           state == SLOT_ASLEEP;
}

static void check_slot(const vigil_observer *observer, uint32_t index, struct findings *findings) {
    struct seen_slot seen;
    if (!observer_read(observer, index, &seen)) return;
    if (!is_member(observer, seen.number)) {
        find(findings, VIGIL_FINDING_DEAD, "place %" PRIu32 " belongs to a process that is gone", index);
    }
    if (!seen.slot.key) return;
    uint64_t key = seen.slot.key - (seen.slot.kind == SLOT_HOLDS);
    if (!seen_waits(&seen) && !seen_holds(&seen)) {
        find(findings, VIGIL_FINDING_BROKEN, "place %" PRIu32 " is of no kind that there is", index);
    } else if (!observer_has_word(observer, key)) {
        find(findings, VIGIL_FINDING_BROKEN, "who has place %" PRIu32 " waits outside of the segment", index);
    } else if (!is_possible(seen.slot.state)) {
        find(findings, VIGIL_FINDING_BROKEN, "place %" PRIu32 " is in no state that there is", index);
    }
}

/* Lines. */

/* A lock that is taken again and again looks as if it were kept. */
static bool is_kept(const uint32_t *word, uint32_t seen) {
    for (int look = 0; look < 1000; look++) {
        if (prim_load_relaxed(word) != seen) return false;
        prim_pause();
    }
    return true;
}

static void check_bucket(const vigil_observer *observer, const struct lot_parts *parts, uint32_t bucket,
                         uint32_t expected, struct findings *findings) {
    uint32_t word = prim_load_acquire(&parts->buckets[bucket].word), number = word / WORD_HOLDER, linked;
    if ((word & WORD_LOCKED) && !is_member(observer, number)) {
        find(findings, VIGIL_FINDING_DEAD, "a process died while it was changing the lines of bucket %" PRIu32, bucket);
    } else if (word & WORD_LOCKED) {
        if (!is_kept(&parts->buckets[bucket].word, word)) return;
        find(findings, VIGIL_FINDING_STUCK,
             "process %" PRIu32 " has been inside bucket %" PRIu32 " for long: is it stopped? Nobody can wait there",
             segment_find_member(observer->segment, number) ? segment_find_member(observer->segment, number)->pid : 0,
             bucket);
    } else {
        const char *fault = bucket_fault(parts, bucket, &linked);
        if (!fault && linked != expected && linked != bucket_census(parts, bucket)) {
            fault = "somebody waits and is in no line";
        }
        if (fault) find(findings, VIGIL_FINDING_BROKEN, "in bucket %" PRIu32 ", %s", bucket, fault);
    }
}

static bool check_buckets(const vigil_observer *observer, struct findings *findings) {
    struct lot_parts parts = parts_of(observer);
    uint32_t *expected = bucket_censuses(&parts);
    if (!expected) return false;
    for (uint32_t bucket = 0; bucket < 1u << parts.bucket_bits; bucket++) {
        bool used = expected[bucket] || prim_load_relaxed(&parts.buckets[bucket].word);
        if (used) check_bucket(observer, &parts, bucket, expected[bucket], findings);
    }
    free(expected);
    return true;
}

/* What holders' records say must be what the word of a read-write lock says. */
static bool agrees(const vigil_seen_line *line) {
    uint32_t held = 0;
    if (line->kind != VIGIL_SEEN_RWLOCK) return true;
    for (uint32_t j = 0; j < line->holder_count; j++) {
        held += line->holders[j].shared ? line->holders[j].count * HOLD_READER : line->holders[j].count;
    }
    return held == (line->value & 0x7ffffff1u);
}

/* Which is the first that does not; offsets below `from` have been looked at. */
static bool find_disagreement(const vigil_look *look, uint64_t from, uint64_t *offset) {
    for (uint32_t i = 0; i < look->line_count; i++) {
        *offset = look->lines[i].offset;
        if (*offset >= from && !agrees(&look->lines[i])) return true;
    }
    return false;
}

/* One that is busy is seen between its word and its records often enough, but not each time. */
static int check_holders(vigil_observer *observer, struct findings *findings) {
    vigil_look look;
    uint64_t from = 0, offset = 0, again;
    int status = vigil_observer_look(observer, &look);
    while (status == VIGIL_OK && find_disagreement(&look, from, &offset)) {
        bool still = true;
        for (int more = 0; more < 10 && still && status == VIGIL_OK; more++) {
            status = vigil_observer_look(observer, &look);
            still = find_disagreement(&look, offset, &again) && again == offset;
        }
        if (still) {
            find(findings, VIGIL_FINDING_BROKEN,
                 "the read-write lock at byte %" PRIu64 " says otherwise than its holders' records", offset);
        }
        from = offset + 1;
    }
    return status;
}

static int check_once(vigil_observer *observer, struct findings *findings) {
    findings->count = 0;
    observer->usable = segment_usable(observer->segment);
    check_members(observer, findings);
    for (uint32_t index = 1; index < observer->segment->layout.slots; index++) check_slot(observer, index, findings);
    if (!check_buckets(observer, findings)) return VIGIL_ENOMEM;
    return check_holders(observer, findings);
}

static bool is_among(const struct finding *one, const struct findings *findings) {
    for (uint32_t i = 0; i < findings->count; i++) {
        if (strcmp(findings->all[i].sentence, one->sentence) == 0) return true;
    }
    return false;
}

static void keep_common(struct findings *kept, const struct findings *now) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < kept->count; i++) {
        if (is_among(&kept->all[i], now)) kept->all[count++] = kept->all[i];
    }
    kept->count = count;
}

static int check(vigil_observer *observer, struct findings *kept, struct findings *now) {
    uint32_t nothing = 0;
    int status = check_once(observer, kept);
    for (int look = 1; look < LOOKS && kept->count && status == VIGIL_OK; look++) {
        prim_park(&nothing, 0, prim_now_ns() + APART_NS);
        status = check_once(observer, now);
        keep_common(kept, now);
    }
    return status;
}

int64_t vigil_observer_check(vigil_observer *observer, vigil_found *found, void *data) {
    if (!observer || !found) return VIGIL_ENULL;
    struct findings *findings = calloc(2, sizeof *findings);
    if (!findings) return VIGIL_ENOMEM;
    int status = check(observer, &findings[0], &findings[1]);
    uint32_t count = findings->count;
    for (uint32_t i = 0; i < count && status == VIGIL_OK; i++) {
        found(findings->all[i].finding, findings->all[i].sentence, data);
    }
    free(findings);
    return status == VIGIL_OK ? (int64_t)count : status;
}
