/* SPDX-License-Identifier: MIT */
/* Named locks at a path: the file, what is refused, other users, and files that are truncated or damaged. */
#include "support.h"

#include "child.h"
#include "named_support.h"

#include <grp.h>

static void make_file(const char *path, const void *content, size_t bytes, mode_t mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t had = 0; had < bytes;) {
        ssize_t more = write(fd, (const char *)content + had, bytes - had);
        assert_true(more > 0);
        had += (size_t)more;
    }
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* The content of the file; *bytes: how long it is. The caller frees it. */
static unsigned char *content_of(const char *path, size_t *bytes) {
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &file), 0);
    *bytes = (size_t)file.st_size;
    unsigned char *content = malloc(*bytes + 1);
    assert_non_null(content);
    assert_int_equal(read(fd, content, *bytes), *bytes);
    close(fd);
    return content;
}

static mode_t mode_of(const char *path) {
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    return file.st_mode & 07777;
}

/* It can be locked, and is in the same line for another process. */
static void works(const char *path) {
    vigil_named *named = open_it(path);
    assert_int_equal(vigil_named_trylock(named, 0), VIGIL_OK);
    pid_t child = fork_here();
    if (child == 0) {
        vigil_named *own = child_open(path);
        CHECK(vigil_named_trylock(own, VIGIL_NAMED_FAIR) == VIGIL_TIMED_OUT);
        CHECK(vigil_named_close(own) == VIGIL_OK);
        _exit(0);
    }
    assert_int_equal(exit_status_of(child), 0);
    close_it(named);
}

/* Files. */

static void a_path_is_created(void **state) {
    (void)state;
    mode_t before = umask(027);
    works(in_scratch("new"));
    assert_int_equal(mode_of(in_scratch("new")), 0640);
    assert_int_equal(try_open(in_scratch("mode"), &(vigil_named_options){.mode = 0666}), VIGIL_OK);
    assert_int_equal(mode_of(in_scratch("mode")), 0666);
    umask(before);
    assert_int_equal(try_open(in_scratch("mode"), &(vigil_named_options){.mode = 0600}), VIGIL_OK);
    assert_int_equal(mode_of(in_scratch("mode")), 0666); /* it is not new */
    struct stat file;
    assert_int_equal(stat(in_scratch("new"), &file), 0);
    assert_true(file.st_blocks * 512 <= 20480);
}

static void an_empty_file_becomes_a_lock(void **state) {
    (void)state;
    const char *path = in_scratch("touched");
    make_file(path, "", 0, 0664);
    assert_int_equal(try_open(path, &(vigil_named_options){.existing = true}), VIGIL_ENOTFOUND);
    assert_int_equal(try_open(path, &(vigil_named_options){.mode = 0600}), VIGIL_OK);
    assert_int_equal(mode_of(path), 0664);
    works(path);
    assert_int_equal(try_open(path, &(vigil_named_options){.existing = true}), VIGIL_OK);
}

static void refused_unchanged(const char *path, int status) {
    size_t before, after;
    unsigned char *was = content_of(path, &before);
    assert_int_equal(try_open(path, NULL), status);
    assert_int_equal(try_open(path, &(vigil_named_options){.existing = true}), status);
    unsigned char *is = content_of(path, &after);
    assert_int_equal(after, before);
    assert_memory_equal(is, was, before);
    free(was);
    free(is);
}

static void foreign_files_are_refused(void **state) {
    (void)state;
    static const char zeros[70000], text[] = "This is no lock.\n";
    const char *path = in_scratch("foreign");
    const size_t lengths[] = {1, 7, 8, 200, sizeof(struct segment_header), 4096, sizeof zeros};
    make_file(path, text, sizeof text, 0600);
    refused_unchanged(path, VIGIL_EFOREIGN);
    assert_int_equal(vigil_named_remove(path, true), VIGIL_EFOREIGN);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        make_file(path, zeros, lengths[i], 0600);
        refused_unchanged(path, VIGIL_EFOREIGN);
    }
    assert_int_equal(vigil_named_remove(path, true), VIGIL_EFOREIGN);
    assert_int_equal(access(path, F_OK), 0);

    vigil_buffer *words = NULL; /* a segment, but not a lock */
    char name[64], of_words[96];
    snprintf(name, sizeof name, "%swords", prefix);
    snprintf(of_words, sizeof of_words, "/dev/shm/vigil-%u-%s", (unsigned)geteuid(), name);
    assert_int_equal(vigil_segment_create(&words, name, NULL), VIGIL_OK);
    memset(vigil_buffer_data(words), 0x5a, 4096);
    assert_int_equal(try_open(of_words, NULL), VIGIL_EFOREIGN);
    for (int i = 0; i < 4096; i++) assert_int_equal(((unsigned char *)vigil_buffer_data(words))[i], 0x5a);
    assert_int_equal(vigil_buffer_destroy(words), 0);
    assert_int_equal(vigil_segment_unlink(name), VIGIL_OK);
}

static void what_is_no_file_is_refused(void **state) {
    (void)state;
    const char *path = in_scratch("other");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(try_open(path, NULL), VIGIL_EFOREIGN);
    assert_int_equal(vigil_named_remove(path, true), VIGIL_EFOREIGN);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(try_open(path, NULL), VIGIL_EFOREIGN);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(try_open("/dev/null", NULL), VIGIL_EFOREIGN);
    assert_int_equal(try_open(in_scratch("no/such/folder"), NULL), VIGIL_ESYSTEM);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(vigil_named_remove(in_scratch("none"), true), VIGIL_ENOTFOUND);
}

static void links_are_followed(void **state) {
    (void)state;
    const char *target = in_scratch("target"), *path = in_scratch("link");
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(try_open(path, NULL), VIGIL_ESYSTEM); /* it leads nowhere, and does not loop */
    assert_int_equal(errno, ENOENT);
    vigil_named *one = open_it(target), *other = open_it(path);
    assert_int_equal(vigil_named_trylock(one, 0), VIGIL_OK);
    assert_int_equal(vigil_named_trylock(other, 0), VIGIL_TIMED_OUT);
    close_it(one);
    close_it(other);
}

/* Killed between the steps of segment.c: I1 to I3. */
static void a_file_half_made_is_completed(void **state) {
    (void)state;
    const char *whole = in_scratch("whole"), *path = in_scratch("half");
    size_t bytes;
    assert_int_equal(try_open(whole, NULL), VIGIL_OK);
    unsigned char *content = content_of(whole, &bytes);
    struct segment_header begun;
    memcpy(&begun, content, sizeof begun);
    memset(begun.magic, 0, sizeof begun.magic);
    begun.rows = begun.members_backed = begun.slots_backed = 0;
    begun.recovered = begun.deaths = 0;

    make_file(path, &begun, sizeof begun, 0600); /* after I1 */
    assert_int_equal(try_open(path, &(vigil_named_options){.existing = true}), VIGIL_ENOTFOUND);
    works(path);
    make_file(path, &begun, sizeof begun, 0600); /* during I2 */
    assert_int_equal(truncate(path, 65536), 0);
    works(path);
    make_file(path, &begun, sizeof begun, 0600); /* after I2 */
    assert_int_equal(truncate(path, (off_t)bytes), 0);
    works(path);
    memset(content, 0, sizeof begun.magic); /* before I3 */
    make_file(path, content, bytes, 0600);
    works(path);
    free(content);
}

/* Many processes create it at once, and some of them are killed. */
static void create_and_lock(const struct actor *self, const char *path) {
    actor_say(self, VIGIL_OK);
    for (;;) {
        vigil_named *named = NULL;
        int status = vigil_named_open(&named, path, NULL);
        CHECK(status == VIGIL_OK);
        status = vigil_named_lock(named, 0);
        CHECK(status == VIGIL_OK || status == VIGIL_OWNER_DIED);
        if (status == VIGIL_OWNER_DIED) CHECK(vigil_named_consistent(named) == VIGIL_OK);
        CHECK(vigil_named_close(named) == VIGIL_OK);
        vigil_named_remove(path, false);
    }
}

static void killed_makers_leave_a_usable_path(void **state) {
    (void)state;
    uint64_t random = 362436069;
    const char *path = in_scratch("makers");
    for (unsigned round = 0; round < 60; round++) {
        struct actor actors[2];
        for (unsigned i = 0; i < 2; i++) actors[i] = actor_start(create_and_lock, path);
        for (unsigned i = 0; i < 2; i++) assert_int_equal(actor_hear(&actors[i]), VIGIL_OK);
        for (unsigned i = 0; i < 2; i++) {
            let_pass((int64_t)(random_next(&random) % 2000) * MICROSECOND);
            actor_end(&actors[i]);
        }
        vigil_named *named = open_it(path);
        int status = vigil_named_lock_for(named, 0, 100 * SECOND);
        assert_true(status == VIGIL_OK || status == VIGIL_OWNER_DIED);
        close_it(named);
    }
}

/* File systems. */

static void a_read_only_file_system_is_refused(void **state) {
    (void)state;
    const char *folder = in_scratch("readonly"), *path = in_scratch("readonly/lock");
    const char *none = in_scratch("readonly/none");
    assert_int_equal(mkdir(folder, 0700), 0);
    if (!own_book || mount("test", folder, "tmpfs", 0, "size=1m") != 0) {
        leave_out("a read-only file system");
        return;
    }
    assert_int_equal(try_open(path, NULL), VIGIL_OK);
    assert_int_equal(mount("test", folder, NULL, MS_REMOUNT | MS_RDONLY, "size=1m"), 0);
    assert_int_equal(try_open(path, NULL), VIGIL_EFILESYSTEM);
    assert_int_equal(try_open(path, &(vigil_named_options){.existing = true}), VIGIL_EFILESYSTEM);
    assert_int_equal(try_open(none, NULL), VIGIL_EFILESYSTEM);
    assert_int_equal(umount(folder), 0);
    leave_out("NFS and FUSE, which need a server");
}

static void a_full_file_system(void **state) {
    (void)state;
    const char *folder = in_scratch("full"), *path = in_scratch("full/lock"), *filler = in_scratch("full/filler");
    static const char page[4096];
    assert_int_equal(mkdir(folder, 0700), 0);
    if (!own_book || mount("test", folder, "tmpfs", 0, "size=64k") != 0) {
        leave_out("a full file system");
        return;
    }
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, page, sizeof page) == sizeof page) continue;
    close(fd);
    assert_int_equal(try_open(path, NULL), VIGIL_ENOMEM);
    assert_int_equal(unlink(filler), 0);
    works(path);
    assert_int_equal(umount(folder), 0);
}

/* Removing. */

static void a_path_is_removed_while_it_is_open(void **state) {
    (void)state;
    const char *path = in_scratch("removed");
    vigil_named *old = open_it(path), *new;
    assert_int_equal(vigil_named_lock(old, 0), VIGIL_OK);
    assert_int_equal(vigil_named_remove(path, false), VIGIL_EBUSY);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(vigil_named_remove(path, false), VIGIL_ENOTFOUND);
    new = open_it(path);
    assert_int_equal(vigil_named_trylock(new, 0), VIGIL_OK); /* another lock */
    assert_int_equal(vigil_named_remove(path, true), VIGIL_OK);
    assert_int_equal(vigil_named_unlock(old), VIGIL_OK);
    assert_int_equal(vigil_named_lock(old, VIGIL_NAMED_FAIR), VIGIL_OK);
    close_it(old);
    close_it(new);
    works(path);
    assert_int_equal(vigil_named_remove(path, false), VIGIL_OK);
    assert_int_equal(access(path, F_OK), -1);
}

static void damaged_files_are_removed_by_force(void **state) {
    (void)state;
    const char *path = in_scratch("damaged");
    assert_int_equal(try_open(path, NULL), VIGIL_OK);
    assert_int_equal(truncate(path, 1000), 0);
    assert_int_equal(try_open(path, NULL), VIGIL_ETRUNCATED);
    assert_int_equal(vigil_named_remove(path, false), VIGIL_ETRUNCATED);
    assert_int_equal(vigil_named_remove(path, true), VIGIL_OK);
    works(path);
}

/* Other users. */

static void become_another(void) {
    CHECK(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
}

static void another_user(const struct actor *self, const char *path) {
    vigil_named *named = NULL;
    become_another();
    int status = vigil_named_open(&named, path, NULL);
    actor_say(self, status == VIGIL_ESYSTEM && errno == EACCES ? VIGIL_EOWNER : status);
    if (status != VIGIL_OK) return;
    actor_say(self, vigil_named_lock(named, 0));
}

static bool can_be_another_user(void) {
    pid_t child = fork_here();
    if (child == 0) {
        bool can = setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 &&
                   setresuid(65534, 65534, 65534) == 0;
        _exit(can ? 0 : 1);
    }
    return exit_status_of(child) == 0;
}

static void the_mode_decides(void **state) {
    (void)state;
    static const struct {
        mode_t mode;
        int status;
    } cases[] = {{0600, VIGIL_EOWNER}, {0644, VIGIL_EOWNER}, {0622, VIGIL_EOWNER}, {0666, VIGIL_OK}};
    const char *path = in_scratch("users");
    if (geteuid() != 0 || !can_be_another_user()) {
        leave_out("other users");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        vigil_named *named = open_it(path);
        assert_int_equal(chmod(path, cases[i].mode), 0);
        struct actor actor = actor_start(another_user, path);
        assert_int_equal(actor_hear(&actor), cases[i].status);
        if (cases[i].status == VIGIL_OK) {
            assert_int_equal(actor_hear(&actor), VIGIL_OK);
            assert_int_equal(vigil_named_trylock(named, 0), VIGIL_TIMED_OUT);
        }
        actor_end(&actor);
        assert_int_equal(vigil_named_lock_for(named, 0, 100 * SECOND),
                         cases[i].status == VIGIL_OK ? VIGIL_OWNER_DIED : VIGIL_OK);
        close_it(named);
    }
}

/* An unreadable file may be anything: it is not removed, even by force. */
static void remove_by_force(const struct actor *self, const char *path) {
    become_another();
    actor_say(self, vigil_named_remove(path, true) == VIGIL_OK ? 1 : 0);
}

static void what_cannot_be_read_is_not_removed(void **state) {
    (void)state;
    const char *path = in_scratch("unreadable");
    if (geteuid() != 0 || !can_be_another_user()) {
        leave_out("other users");
        return;
    }
    make_file(path, "text", 4, 0600);
    struct actor actor = actor_start(remove_by_force, path);
    assert_int_equal(actor_hear(&actor), 0);
    actor_end(&actor);
    assert_int_equal(access(path, F_OK), 0);
}

/* Damage. A child opens files that have been damaged, and must survive that. */

#define CASES 2000u
#define CASES_EACH 25u /* by one child */
#define HANGS_S 100u

static void no_name(const char *name, void *data) {
    (void)name, (void)data;
}

static void look_at(const char *name) {
    vigil_observer *observer = NULL;
    vigil_look look;
    vigil_event events[4];
    if (vigil_observer_open(&observer, name) != VIGIL_OK) return;
    vigil_observer_look(observer, &look);
    vigil_observer_events(observer, events, COUNT_OF(events), NULL);
    vigil_observer_close(observer);
}

static void use_damaged(const char *name, uint64_t random) {
    vigil_named *named = NULL, *second = NULL;
    vigil_named_holder dead;
    look_at(name);
    vigil_named_list(no_name, NULL);
    if (vigil_named_open(&named, name, &(vigil_named_options){.slots = random % 8 == 0}) != VIGIL_OK) return;
    look_at(name);
    if (vigil_named_lock_for(named, random & 3, MILLISECOND) >= 0) {
        vigil_named_death(named, &dead);
        vigil_named_consistent(named);
        vigil_named_set_slots(named, 1 + (uint32_t)random % 5);
        if (vigil_named_open(&second, name, NULL) == VIGIL_OK) {
            vigil_named_lock_for(second, random / 4 & 3, MILLISECOND);
            vigil_named_close(second);
        }
        vigil_named_unlock(named);
    }
    vigil_named_mend(name);
    vigil_named_lock_for(named, 0, MILLISECOND);
    vigil_named_close(named);
    vigil_named_remove(name, random % 16 == 0);
}

struct original {
    unsigned char *content;
    size_t bytes;
};

/* A place in one of the areas; the second half of the file's bytes is mostly unused. */
static size_t place_in(const struct original *original, uint64_t *random) {
    const struct segment_header *header = (const void *)original->content;
    const struct segment_layout *at = &header->layout;
    const struct {
        uint64_t from, bytes;
    } areas[] = {{0, sizeof *header},
                 {offsetof(struct segment_header, length), sizeof *header - offsetof(struct segment_header, length)},
                 {at->buckets_at, at->buckets * SEGMENT_BUCKET_BYTES},
                 {at->members_at, 4 * sizeof(struct segment_member)},
                 {at->claims_at, 32 * SEGMENT_CLAIM_BYTES},
                 {at->slots_at, 64 * SEGMENT_SLOT_BYTES},
                 {at->user_at, sizeof(struct book)},
                 {at->user_at, 64},
                 {at->user_at + sizeof(struct book), 4 * sizeof(struct entry)}};
    uint64_t which = random_next(random) % COUNT_OF(areas);
    return (size_t)(areas[which].from + random_next(random) % areas[which].bytes);
}

static void damage(const struct original *original, unsigned char *copy, size_t *bytes, uint64_t *random) {
    static const uint32_t likely[] = {0, 1, 2, 3, 7, 16, 17, UINT32_MAX, 1u << 31, 1u << 30, 64, 4096};
    memcpy(copy, original->content, original->bytes);
    *bytes = original->bytes;
    unsigned times = 1 + (unsigned)(random_next(random) % 8);
    for (unsigned i = 0; i < times; i++) {
        size_t at = place_in(original, random);
        uint64_t how = random_next(random) % 4;
        uint32_t word = how ? likely[random_next(random) % COUNT_OF(likely)] : (uint32_t)random_next(random);
        if (how == 3) copy[at] ^= (unsigned char)(1u << random_next(random) % 8);
        else if (at / 4 * 4 + 4 <= *bytes) memcpy(&copy[at / 4 * 4], &word, 4);
    }
    uint64_t cut = random_next(random);
    if (cut % 16 == 0) *bytes = (size_t)(random_next(random) % original->bytes);
    if (cut % 64 == 1) *bytes = place_in(original, random);
}

/* As a new file, because an old one may still be used by a process that is ending. */
static void put_file(const char *path, const unsigned char *content, size_t bytes) {
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    for (size_t at = 0; at < bytes; at += 4096) { /* with holes, as the original has */
        static const unsigned char zeros[4096];
        size_t length = bytes - at < 4096 ? bytes - at : 4096;
        if (memcmp(&content[at], zeros, length) == 0) continue;
        CHECK(pwrite(fd, &content[at], length, (off_t)at) == (ssize_t)length);
    }
    CHECK(ftruncate(fd, (off_t)bytes) == 0);
    close(fd);
}

static unsigned *case_now; /* shared with the child */

static void survive(const struct original *original, const char *path, const char *name, unsigned first) {
    unsigned char *copy = malloc(original->bytes);
    CHECK(copy);
    for (unsigned number = first; number < first + CASES_EACH; number++) {
        uint64_t random = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
        size_t bytes;
        *case_now = number;
        alarm(HANGS_S);
        for (int i = 0; i < 4; i++) random_next(&random);
        damage(original, copy, &bytes, &random);
        put_file(path, copy, bytes);
        use_damaged(name, random_next(&random));
    }
    _exit(0);
}

static unsigned failures_with(const struct original *original, const char *path, const char *name, unsigned cases) {
    unsigned failed = 0;
    for (unsigned first = 0; first < cases;) {
        pid_t child = fork_here();
        if (child == 0) survive(original, path, name, first);
        bool survived = exit_status_of(child) == 0;
        if (!survived) fprintf(stderr, "case %u of %s has failed\n", *case_now, name);
        failed += !survived;
        first = survived ? first + CASES_EACH : *case_now + 1;
    }
    unlink(path);
    return failed;
}

static void hold_and_wait(const struct actor *self, const char *name) {
    vigil_named *named = child_open(name);
    CHECK(vigil_named_tie(named) >= 0);
    actor_say(self, vigil_named_lock_for(named, VIGIL_NAMED_FAIR, 0));
    vigil_named_lock_for(named, VIGIL_NAMED_FAIR, 50 * SECOND);
}

/* A file as two processes leave it that are killed at once, a holder and a waiter. */
static struct original original_of(const char *path, const char *name) {
    struct original original;
    vigil_named *named = open_it(name);
    struct entry *entry = entry_of(name);
    struct actor holder = actor_start(hold_and_wait, name);
    assert_int_equal(actor_hear(&holder), VIGIL_OK);
    struct actor waiter = actor_start(hold_and_wait, name);
    assert_int_equal(actor_hear(&waiter), VIGIL_TIMED_OUT);
    AWAIT(waiters_in_line(&entry->turnstile) == 1);
    original.content = content_of(path, &original.bytes);
    actor_end(&waiter);
    actor_end(&holder);
    close_it(named);
    return original;
}

static void damaged_paths_do_no_harm(void **state) {
    (void)state;
    const char *path = in_scratch("fuzzed"), *copy = in_scratch("fuzzed-copy");
    struct original original = original_of(path, path);
    assert_int_equal(failures_with(&original, copy, copy, CASES / 2), 0);
    free(original.content);
}

static void a_damaged_book_does_no_harm(void **state) {
    (void)state;
    char path[64], name[64];
    if (!own_book) {
        leave_out("damage to the book of names, which is the user's");
        return;
    }
    snprintf(path, sizeof path, "/dev/shm/vigil-%u", (unsigned)geteuid());
    snprintf(name, sizeof name, "%s", numbered("fuzzed", 1));
    for (unsigned i = 0; i < 6; i++) assert_int_equal(try_open(numbered("fuzzed", i), NULL), VIGIL_OK);
    assert_int_equal(vigil_named_remove(numbered("fuzzed", 3), false), VIGIL_OK);
    struct original original = original_of(path, name);
    assert_int_equal(failures_with(&original, path, name, CASES / 2), 0);
    free(original.content);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_created),
        cmocka_unit_test(an_empty_file_becomes_a_lock),
        cmocka_unit_test(foreign_files_are_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(links_are_followed),
        cmocka_unit_test(a_file_half_made_is_completed),
        cmocka_unit_test(killed_makers_leave_a_usable_path),
        cmocka_unit_test(a_read_only_file_system_is_refused),
        cmocka_unit_test(a_full_file_system),
        cmocka_unit_test(a_path_is_removed_while_it_is_open),
        cmocka_unit_test(damaged_files_are_removed_by_force),
        cmocka_unit_test(the_mode_decides),
        cmocka_unit_test(what_cannot_be_read_is_not_removed),
        cmocka_unit_test(damaged_paths_do_no_harm),
        cmocka_unit_test(a_damaged_book_does_no_harm),
    };
    case_now = mmap(NULL, sizeof *case_now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_named_tests(run);
}
