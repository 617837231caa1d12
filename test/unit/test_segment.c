/* SPDX-License-Identifier: MIT */
/* Segments: the file and what is refused, members and their death, growing, fork, exec and descriptors. */
#include "support.h"

#include "child.h"

#include <dirent.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "shm/member.h"
#include "shm/segment.h"
#include "shm/table.h"
#include "vigil/atomics.h"
#include "vigil/observe.h"
#include "vigil/segment.h"

static char name[64], path[128]; /* of this test's segment; removed at its end */

static int set_up(void **state) {
    static unsigned tests;
    (void)state;
    snprintf(name, sizeof name, "test-%ld-%u", (long)getpid(), tests++);
    snprintf(path, sizeof path, "/dev/shm/vigil-%u-%s", (unsigned)geteuid(), name);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (unlink(path) != 0) rmdir(path);
    return 0;
}

/* Not skip(), which ends the whole program with the stand-in for cmocka. */
static void leave_out(const char *why) {
    fprintf(stderr, "left out: %s\n", why);
}

static vigil_buffer *create(const vigil_segment_options *options) {
    vigil_buffer *buffer = NULL;
    assert_int_equal(vigil_segment_create(&buffer, name, options), VIGIL_OK);
    return buffer;
}

static vigil_buffer *open_it(void) {
    vigil_buffer *buffer = NULL;
    assert_int_equal(vigil_segment_open(&buffer, name), VIGIL_OK);
    return buffer;
}

static int try_open(void) {
    vigil_buffer *buffer = NULL;
    int status = vigil_segment_open(&buffer, name);
    if (status == VIGIL_OK) vigil_buffer_destroy(buffer);
    return status;
}

static void destroy(vigil_buffer *buffer) {
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static uint32_t life_of(vigil_buffer *buffer, uint32_t number) {
    return prim_load_acquire(&segment_member(buffer->segment, number)->life);
}

static bool joined(vigil_buffer *buffer, uint32_t number) {
    return life_of(buffer, number) & SEGMENT_JOINED;
}

/* Another process that has the segment open and does nothing else, until it is ended. */

static vigil_buffer *actors_own; /* in the actor */

/* It calls `something` first, reports that, and then does nothing else. */
static pid_t actor_start_with(void (*something)(void)) {
    int told[2];
    char byte;
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    pid_t actor = fork_here();
    if (actor == 0) {
        CHECK(vigil_segment_open(&actors_own, name) == VIGIL_OK);
        close(told[0]);
        something();
        CHECK(write(told[1], "!", 1) == 1);
        for (;;) pause();
    }
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    close(told[0]);
    return actor;
}

static void nothing(void) {
}

static pid_t actor_start(void) {
    return actor_start_with(nothing);
}

static void end(pid_t process) {
    assert_true(process > 0); /* kill(-1) would kill all processes */
    assert_int_equal(kill(process, SIGKILL), 0);
    assert_int_equal(waitpid(process, NULL, 0), process);
}

static void run_in_child(void (*checks)(void)) {
    pid_t child = fork_here();
    if (child == 0) {
        checks();
        _exit(0);
    }
    assert_int_equal(exit_status_of(child), 0);
}

/* Basic properties. */

static void a_segment_is_a_buffer(void **state) {
    (void)state;
    vigil_buffer *buffer = create(&(vigil_segment_options){.length = 10000, .max_length = 100000});
    assert_int_equal(vigil_buffer_length(buffer), 10000);
    assert_int_equal(vigil_buffer_max_length(buffer), 100000);
    assert_true(vigil_buffer_growable(buffer));
    unsigned char *data = vigil_buffer_data(buffer);
    assert_int_equal((uintptr_t)data % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
    for (int i = 0; i < 10000; i++) assert_int_equal(data[i], 0);

    vigil_view view;
    assert_int_equal(vigil_view_init(&view, buffer, VIGIL_I32, 4, VIGIL_TO_END), VIGIL_OK);
    assert_int_equal(vigil_view_length(view), 2499);
    assert_int_equal(vigil_atomics_add(view, 2498, 7, NULL), VIGIL_OK);
    assert_int_equal(vigil_atomics_add(view, 2499, 7, NULL), VIGIL_ERANGE);
    assert_int_equal(data[9996], 7);
    assert_int_equal(vigil_atomics_notify(view, 0, VIGIL_ALL), 0);

    assert_int_equal(vigil_buffer_grow(buffer, 100001), VIGIL_ERANGE);
    assert_int_equal(vigil_buffer_grow(buffer, 9999), VIGIL_EINVAL);
    assert_int_equal(vigil_buffer_grow(buffer, 100000), VIGIL_OK);
    assert_int_equal(vigil_buffer_grow(buffer, 100000), VIGIL_OK);
    assert_int_equal(vigil_view_length(view), 24999);
    assert_int_equal(vigil_atomics_store(view, 24998, -1), VIGIL_OK);
    destroy(buffer);

    buffer = open_it(); /* what was written is there */
    assert_int_equal(vigil_buffer_length(buffer), 100000);
    assert_true(vigil_buffer_growable(buffer));
    data = vigil_buffer_data(buffer);
    assert_int_equal(data[9996], 7);
    assert_int_equal(data[99999], 0xff);
    destroy(buffer);
}

static void zero_is_for_the_defaults(void **state) {
    (void)state;
    vigil_buffer *buffer = create(NULL);
    assert_int_equal(vigil_buffer_length(buffer), 4096);
    assert_int_equal(vigil_buffer_max_length(buffer), 4096);
    assert_false(vigil_buffer_growable(buffer));
    assert_int_equal(segment_header(buffer->segment)->waiters, 1024);
    assert_int_equal(segment_header(buffer->segment)->members, 64);
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode, S_IFREG | 0600);
    destroy(buffer);
}

static void areas_lie_one_behind_the_other(void **state) {
    (void)state;
    const uint32_t waiters[] = {1, 31, 32, 33, 1024, 1000000}, members[] = {1, 2, 64, 4096};
    for (size_t i = 0; i < COUNT_OF(waiters) * COUNT_OF(members); i++) {
        vigil_segment_options options = {.waiters = waiters[i % COUNT_OF(waiters)],
                                         .members = members[i / COUNT_OF(waiters)]};
        vigil_buffer *buffer = NULL;
        assert_int_equal(vigil_segment_create_anonymous(&buffer, &options), VIGIL_OK);
        struct segment_layout at = buffer->segment->layout;
        assert_true(at.buckets_at >= sizeof(struct segment_header));
        assert_true(at.members_at >= at.buckets_at + at.buckets * 8);
        assert_true(at.claims_at >= at.members_at + options.members * (uint64_t)64);
        assert_true(at.slots_at >= at.claims_at + at.slots * 4);
        assert_true(at.user_at >= at.slots_at + at.slots * 64);
        assert_int_equal(at.slots, options.waiters + 1);
        assert_true(at.buckets >= options.waiters / 4 && (at.buckets & (at.buckets - 1)) == 0);
        assert_int_equal((at.members_at | at.buckets_at | at.claims_at | at.slots_at) % 64, 0);
        assert_int_equal(at.user_at % SEGMENT_PAGE, 0);
        assert_ptr_equal(vigil_buffer_data(buffer), buffer->segment->base + at.user_at);
        destroy(buffer);
    }
}

static void names(void **state) {
    (void)state;
    char longest[202];
    memset(longest, 'x', sizeof longest);
    longest[201] = 0;
    const char *const bad[] = {"", ".", "..", ".x", "a/b", "/a", "-a", "a b", "a\n", "\xc3\xa4", "a*", longest};
    vigil_buffer *buffer = NULL;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(vigil_segment_create(&buffer, bad[i], NULL), VIGIL_ENAME);
        assert_int_equal(vigil_segment_open(&buffer, bad[i]), VIGIL_ENAME);
        assert_int_equal(vigil_segment_open_or_create(&buffer, bad[i], NULL), VIGIL_ENAME);
        assert_int_equal(vigil_segment_unlink(bad[i]), VIGIL_ENAME);
    }
    assert_null(buffer);
    int used = snprintf(longest, sizeof longest, "%s-Az09._-", name);
    longest[used] = 'x';
    longest[200] = 0;
    assert_int_equal(strlen(longest), 200);
    assert_int_equal(vigil_segment_create(&buffer, longest, NULL), VIGIL_OK);
    destroy(buffer);
    assert_int_equal(vigil_segment_unlink(longest), VIGIL_OK);
}

static void arguments_refused(void **state) {
    (void)state;
    static const struct {
        vigil_segment_options options;
        int status;
    } refused[] = {
        {{.length = 2, .max_length = 1}, VIGIL_ERANGE},
        {{.max_length = 4095}, VIGIL_ERANGE},
        {{.length = UINT64_MAX, .max_length = 1}, VIGIL_ERANGE},
        {{.length = 1, .max_length = UINT64_MAX}, VIGIL_ENOMEM},
        {{.length = 1, .max_length = SEGMENT_LENGTH_MOST}, VIGIL_ENOMEM},
        {{.length = SEGMENT_LENGTH_MOST}, VIGIL_ENOMEM},
        {{.waiters = SEGMENT_WAITERS_MOST + 1}, VIGIL_ERANGE},
        {{.members = SEGMENT_MEMBERS_MOST + 1}, VIGIL_ERANGE},
        {{.mode = 0400}, VIGIL_EINVAL},
        {{.mode = 0066}, VIGIL_EINVAL},
        {{.mode = 0700}, VIGIL_EINVAL},
        {{.mode = 04600}, VIGIL_EINVAL},
    };
    unsigned before = descriptors();
    vigil_buffer *buffer = NULL;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_int_equal(vigil_segment_create(&buffer, name, &refused[i].options), refused[i].status);
        assert_int_equal(vigil_segment_open_or_create(&buffer, name, &refused[i].options), refused[i].status);
        assert_int_equal(vigil_segment_create_anonymous(&buffer, &refused[i].options), refused[i].status);
    }
    assert_int_equal(vigil_segment_create(NULL, name, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_create(&buffer, NULL, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_open(NULL, name), VIGIL_ENULL);
    assert_int_equal(vigil_segment_open(&buffer, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_open_or_create(NULL, name, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_create_anonymous(NULL, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_unlink(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_fd(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_open_fd(NULL, 0), VIGIL_ENULL);
    assert_int_equal(vigil_segment_open_fd(&buffer, -1), VIGIL_EINVAL);
    assert_null(buffer);
    assert_int_equal(vigil_buffer_create(&buffer, 1, 1), VIGIL_OK);
    assert_int_equal(vigil_segment_fd(buffer), VIGIL_EINVAL);
    destroy(buffer);
    assert_int_equal(descriptors(), before);
    assert_int_equal(access(path, F_OK), -1);
}

static void one_of_a_name(void **state) {
    (void)state;
    vigil_buffer *buffer = NULL, *second = NULL;
    assert_int_equal(vigil_segment_open(&buffer, name), VIGIL_ENOTFOUND);
    assert_int_equal(vigil_segment_unlink(name), VIGIL_ENOTFOUND);
    unsigned before = descriptors();
    buffer = create(NULL);
    assert_int_equal(vigil_segment_create(&second, name, NULL), VIGIL_EEXISTS);
    assert_null(second);
    assert_int_equal(descriptors(), before + 1);

    /* After unlink, processes that have it open keep it, and the name is free. */
    assert_int_equal(vigil_segment_unlink(name), VIGIL_OK);
    assert_int_equal(try_open(), VIGIL_ENOTFOUND);
    second = create(&(vigil_segment_options){.length = 1});
    assert_ptr_not_equal(second, buffer);
    ((char *)vigil_buffer_data(buffer))[4095] = 1;
    destroy(buffer);
    destroy(second);
    assert_int_equal(descriptors(), before);
}

/* Only if no process has it open, not even this one. A dead process has nothing open. */
static void unlinked_if_unused(void **state) {
    (void)state;
    assert_int_equal(vigil_segment_unlink_unused(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_segment_unlink_unused("a/b"), VIGIL_ENAME);
    assert_int_equal(vigil_segment_unlink_unused(name), VIGIL_ENOTFOUND);
    unsigned before = descriptors();
    vigil_buffer *buffer = create(NULL);
    assert_int_equal(vigil_segment_unlink_unused(name), VIGIL_EBUSY);
    assert_ptr_equal(open_it(), buffer);
    destroy(buffer);
    assert_int_equal(vigil_segment_unlink_unused(name), VIGIL_EBUSY);
    destroy(buffer);
    pid_t other = fork();
    if (other == 0) {
        vigil_buffer *its = NULL;
        if (vigil_segment_open(&its, name) == VIGIL_OK && vigil_segment_unlink_unused(name) == VIGIL_EBUSY)
            raise(SIGKILL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_true(WIFSIGNALED(status));

    /* A process that only has a lock of its own on the file uses it, too. */
    buffer = open_it();
    int fd = vigil_segment_fd(buffer);
    destroy(buffer);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)3 << 60, .l_len = 1};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    assert_int_equal(vigil_segment_unlink_unused(name), VIGIL_EBUSY);
    lock.l_type = F_UNLCK;
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_int_equal(vigil_segment_unlink_unused(name), VIGIL_EBUSY);
    close(fd);
    assert_int_equal(vigil_segment_unlink_unused(name), VIGIL_OK);
    assert_int_equal(try_open(), VIGIL_ENOTFOUND);
    assert_int_equal(descriptors(), before);
}

static void opened_twice_is_the_same(void **state) {
    (void)state;
    vigil_buffer *buffer = create(NULL), *by_fd = NULL, *third = NULL;
    assert_ptr_equal(open_it(), buffer);
    int fd = vigil_segment_fd(buffer);
    assert_int_equal(vigil_segment_open_fd(&by_fd, fd), VIGIL_OK);
    close(fd);
    assert_ptr_equal(by_fd, buffer);
    assert_int_equal(vigil_segment_open_or_create(&third, name, NULL), VIGIL_OK);
    assert_ptr_equal(third, buffer);
    uint32_t self = segment_self(buffer->segment);
    for (int opens = 4; opens > 1; opens--) {
        destroy(buffer);
        assert_true(joined(buffer, self));
    }
    destroy(buffer);
    assert_null(segment_of(buffer));
}

static void not_destroyed_while_somebody_waits(void **state) {
    (void)state;
    vigil_buffer *buffer = create(NULL);
    struct sleeper sleeper;
    sleeper_start(&sleeper, vigil_buffer_data(buffer), false);
    assert_int_equal(vigil_buffer_destroy(buffer), VIGIL_EBUSY);
    assert_int_equal(vigil_forget(vigil_buffer_data(buffer), vigil_buffer_length(buffer)), 1);
    assert_int_equal(sleeper_join(&sleeper), VIGIL_CANCELLED);
    destroy(buffer);
}

/* Which address belongs to which segment. */

static void addresses(void **state) {
    (void)state;
    vigil_buffer *buffers[SEGMENTS_MOST], *one_more = NULL;
    char here = 0;
    assert_null(segment_of(&here));
    for (unsigned i = 0; i < SEGMENTS_MOST; i++) {
        assert_int_equal(vigil_segment_create_anonymous(&buffers[i], &(vigil_segment_options){.length = i + 1}), 0);
        for (unsigned j = 0; j <= i; j++) {
            struct segment *segment = buffers[j]->segment;
            unsigned char *data = vigil_buffer_data(buffers[j]);
            assert_ptr_equal(segment_of(segment->base), segment);
            assert_ptr_equal(segment_of(data), segment);
            assert_ptr_equal(segment_of(data + j), segment);
            assert_ptr_not_equal(segment_of(data + j + 1), segment);
            assert_ptr_not_equal(segment_of(segment->base - 1), segment);
        }
        assert_null(segment_of(&here));
    }
    unsigned before = descriptors();
    assert_int_equal(vigil_segment_create_anonymous(&one_more, NULL), VIGIL_ELIMIT);
    assert_int_equal(vigil_segment_create(&one_more, name, NULL), VIGIL_ELIMIT);
    assert_int_equal(descriptors(), before);
    for (unsigned i = 0; i < SEGMENTS_MOST; i++) {
        unsigned which = (i * 37 + 5) % SEGMENTS_MOST;
        void *data = vigil_buffer_data(buffers[which]);
        destroy(buffers[which]);
        assert_null(segment_of(data));
    }
}

struct looking {
    vigil_buffer *buffer;
    uint32_t looks, stop;
    bool wrong;
};

static void *look_on(void *argument) {
    struct looking *looking = argument;
    unsigned char *data = vigil_buffer_data(looking->buffer);
    while (!LOAD(looking->stop)) {
        if (segment_of(data) != looking->buffer->segment || segment_of(looking)) looking->wrong = true;
        STORE(looking->looks, looking->looks + 1);
    }
    return NULL;
}

/* Other segments are opened and closed, above and below. */
static void addresses_while_others_open(void **state) {
    (void)state;
    enum { OTHERS = 6, ROUNDS = 300 };
    vigil_buffer *others[OTHERS];
    struct looking looking = {.buffer = create(NULL)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look_on, &looking), 0);
    for (int round = 0; round < ROUNDS || LOAD(looking.looks) < ROUNDS; round++) {
        for (int i = 0; i < OTHERS; i++) assert_int_equal(vigil_segment_create_anonymous(&others[i], NULL), VIGIL_OK);
        for (int i = 0; i < OTHERS; i++) destroy(others[(i + round) % OTHERS]);
    }
    STORE(looking.stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(looking.wrong);
    destroy(looking.buffer);
}

/* What is refused. The file is written by hand. */

static uint64_t checksum_anew(const struct segment_header *header) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (const unsigned char *byte = (const unsigned char *)header; byte < (const unsigned char *)&header->checksum;
         byte++) {
        sum = (sum ^ *byte) * UINT64_C(0x100000001b3);
    }
    return sum;
}

static bool is_printable(const char *text) {
    while (isprint((unsigned char)*text)) text++;
    return !*text;
}

static struct segment_header good;
static uint64_t good_bytes;

static void make_good(void) {
    vigil_buffer *buffer =
        create(&(vigil_segment_options){.length = 100, .max_length = 1000, .waiters = 1000, .members = 3});
    good = *segment_header(buffer->segment);
    good_bytes = buffer->segment->layout.user_at + 100;
    destroy(buffer);
    assert_int_equal(checksum_anew(&good), good.checksum);
}

static int status_with(const struct segment_header *header, uint64_t file_bytes) {
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(ftruncate(fd, (off_t)good_bytes), 0);
    assert_int_equal(pwrite(fd, header, sizeof *header, 0), sizeof *header);
    assert_int_equal(ftruncate(fd, (off_t)file_bytes), 0);
    close(fd);
    return try_open();
}

static void every_bit_of_the_header_counts(void **state) {
    (void)state;
    make_good();
    unsigned before = descriptors();
    assert_int_equal(status_with(&good, good_bytes), VIGIL_OK);
    for (size_t bit = 0; bit < 8 * (offsetof(struct segment_header, checksum) + 8); bit++) {
        struct segment_header bad = good;
        ((unsigned char *)&bad)[bit / 8] ^= (unsigned char)(1u << bit % 8);
        size_t byte = bit / 8;
        int expected = byte < offsetof(struct segment_header, byte_order) ? VIGIL_EFOREIGN
                       : byte < offsetof(struct segment_header, version)  ? VIGIL_EMACHINE
                       : byte < offsetof(struct segment_header, members)  ? VIGIL_EVERSION
                                                                          : VIGIL_ECORRUPT;
        assert_int_equal(status_with(&bad, good_bytes), expected);
    }
    assert_int_equal(status_with(&good, good_bytes), VIGIL_OK);
    assert_int_equal(descriptors(), before);
}

/* Even if the checksum is correct. */
static void no_field_is_believed(void **state) {
    (void)state;
    make_good();
    static const uint64_t values[] = {0,
                                      1,
                                      63,
                                      64,
                                      4095,
                                      4096,
                                      65535,
                                      65536,
                                      INT32_MAX,
                                      UINT32_MAX,
                                      1u << 20,
                                      INT64_MAX,
                                      UINT64_MAX,
                                      UINT64_MAX - 65535,
                                      UINT64_C(1) << 61,
                                      UINT64_C(1) << 62};
    for (size_t at = offsetof(struct segment_header, members); at < offsetof(struct segment_header, checksum);) {
        size_t bytes = at < offsetof(struct segment_header, first_length) ? 4 : 8;
        for (size_t i = 0; i < COUNT_OF(values); i++) {
            struct segment_header bad = good;
            memcpy((char *)&bad + at, &values[i], bytes); /* the low bytes: our machines are little-endian */
            if (memcmp(&bad, &good, sizeof bad) == 0) continue;
            bad.checksum = checksum_anew(&bad);
            bool below_length = at == offsetof(struct segment_header, first_length) && values[i] <= 100;
            bool good_label = at >= offsetof(struct segment_header, label) &&
                              at < offsetof(struct segment_header, layout) && is_printable(bad.label);
            assert_int_equal(status_with(&bad, good_bytes), below_length || good_label ? VIGIL_OK : VIGIL_ECORRUPT);
        }
        at += bytes;
    }
    const uint64_t lengths[] = {0, 99, 1001, UINT64_MAX, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        struct segment_header bad = good;
        bad.length = lengths[i];
        assert_int_equal(status_with(&bad, good_bytes), VIGIL_ECORRUPT);
    }
    struct segment_header longer = good;
    longer.length = 101;
    assert_int_equal(status_with(&longer, good_bytes), VIGIL_ETRUNCATED);
    assert_int_equal(status_with(&longer, good_bytes + 1), VIGIL_OK); /* killed before recording the new length */
    assert_int_equal(status_with(&good, good_bytes + 500), VIGIL_OK);
}

static void truncated_files(void **state) {
    (void)state;
    make_good();
    for (uint64_t bytes = 0; bytes <= sizeof good; bytes++) {
        assert_int_equal(status_with(&good, bytes), bytes < 8 ? VIGIL_EFOREIGN : VIGIL_ETRUNCATED);
    }
    const uint64_t lengths[] = {sizeof good + 1,     4096,          good.layout.slots_at, good.layout.user_at - 1,
                                good.layout.user_at, good_bytes - 1};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        assert_int_equal(status_with(&good, lengths[i]), VIGIL_ETRUNCATED);
    }
    assert_int_equal(status_with(&good, good_bytes), VIGIL_OK);
}

/* By name and, where that is possible, by descriptor. */
static void foreign_things(void **state) {
    (void)state;
    vigil_buffer *buffer = NULL, *other;
    unsigned before = descriptors();
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(try_open(), VIGIL_EFOREIGN);
    assert_int_equal(vigil_segment_unlink(name), VIGIL_EFOREIGN);
    assert_int_equal(vigil_segment_open_or_create(&buffer, name, NULL), VIGIL_EFOREIGN);
    assert_int_equal(rmdir(path), 0);

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(try_open(), VIGIL_EFOREIGN); /* at once: the fifo has no reader or writer */
    assert_int_equal(unlink(path), 0);

    /* A link to a segment is not a segment. */
    char other_name[80], other_path[sizeof path + 8];
    snprintf(other_name, sizeof other_name, "%s-other", name);
    snprintf(other_path, sizeof other_path, "%s-other", path);
    assert_int_equal(vigil_segment_create(&other, other_name, NULL), VIGIL_OK);
    assert_int_equal(symlink(other_path, path), 0);
    assert_int_equal(try_open(), VIGIL_EFOREIGN);
    assert_int_equal(vigil_segment_create(&buffer, name, NULL), VIGIL_EEXISTS);
    assert_int_equal(vigil_segment_open_or_create(&buffer, name, NULL), VIGIL_EFOREIGN);
    destroy(other);
    assert_int_equal(vigil_segment_unlink(other_name), VIGIL_OK);
    assert_int_equal(try_open(), VIGIL_EFOREIGN); /* dangling now */
    assert_int_equal(vigil_segment_open_or_create(&buffer, name, NULL), VIGIL_EFOREIGN);

    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(vigil_segment_open_fd(&buffer, pair[0]), VIGIL_EFOREIGN);
    close(pair[0]);
    close(pair[1]);
    int null = open("/dev/null", O_RDWR), text = open("/proc/self/exe", O_RDONLY);
    assert_int_equal(vigil_segment_open_fd(&buffer, null), VIGIL_EFOREIGN);
    assert_int_not_equal(vigil_segment_open_fd(&buffer, text), VIGIL_OK);
    close(null);
    close(text);
    assert_null(buffer);
    assert_int_equal(descriptors(), before);
}

/* Members. */

static void the_killed_make_room(void **state) {
    (void)state;
    vigil_buffer *buffer = create(&(vigil_segment_options){.members = 3});
    struct segment *segment = buffer->segment;
    assert_int_equal(segment_self(segment), 0);
    assert_true(segment_member_alive(segment, 0));
    assert_int_equal(segment_member(segment, 0)->pid, getpid());
    assert_string_equal(segment_member(segment, 0)->name, "unit_segment");

    pid_t first = actor_start(), second = actor_start();
    assert_true(segment_member_alive(segment, 1) && segment_member_alive(segment, 2));
    assert_int_equal(segment_member(segment, 1)->pid, first);
    uint32_t life = life_of(buffer, 1), other_life = life_of(buffer, 2);
    pid_t third = fork_here();
    if (third == 0) {
        CHECK(try_open() == VIGIL_ELIMIT);
        _exit(0);
    }
    assert_int_equal(exit_status_of(third), 0);

    end(first);
    assert_false(segment_member_alive(segment, 1));
    assert_true(segment_member_alive(segment, 2));
    first = actor_start();
    assert_int_equal(life_of(buffer, 1), life + 2);
    assert_true(segment_member_alive(segment, 1));
    assert_int_equal(segment_member(segment, 1)->pid, first);
    assert_int_equal(life_of(buffer, 2), other_life);
    end(first);
    end(second);
    assert_false(segment_member_alive(segment, 1) || segment_member_alive(segment, 2));
    destroy(buffer);
}

static void who_leaves_is_gone(void **state) {
    (void)state;
    vigil_buffer *buffer = create(&(vigil_segment_options){.members = 2});
    uint32_t life = life_of(buffer, 1);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork_here();
        if (child == 0) {
            vigil_buffer *mine = NULL;
            CHECK(vigil_segment_open(&mine, name) == VIGIL_OK);
            CHECK(segment_self(mine->segment) == 1 && segment_member_alive(mine->segment, 0));
            CHECK(vigil_buffer_destroy(mine) == 0);
            _exit(0);
        }
        assert_int_equal(exit_status_of(child), 0);
        assert_false(joined(buffer, 1));
        assert_false(segment_member_alive(buffer->segment, 1));
        assert_int_equal(life_of(buffer, 1), life += 2);
    }
    destroy(buffer);
}

static void the_stopped_live(void **state) {
    (void)state;
    vigil_buffer *buffer = create(&(vigil_segment_options){.members = 2});
    pid_t actor = actor_start();
    int status;
    assert_int_equal(kill(actor, SIGSTOP), 0);
    assert_int_equal(waitpid(actor, &status, WUNTRACED), actor);
    assert_true(WIFSTOPPED(status));
    assert_true(segment_member_alive(buffer->segment, 1));
    pid_t late = fork_here();
    if (late == 0) _exit(try_open() == VIGIL_ELIMIT ? 0 : 1);
    assert_int_equal(exit_status_of(late), 0);
    end(actor);
    assert_false(segment_member_alive(buffer->segment, 1));
    destroy(buffer);
}

/* All processes come at once, each with another length. All get the same segment, and their additions add up. */
static void one_creates_and_all_open(void **state) {
    (void)state;
    enum { PROCESSES = 8, ROUNDS = 40 };
    for (int round = 0; round < ROUNDS; round++) {
        int start[2];
        pid_t children[PROCESSES];
        assert_int_equal(pipe(start), 0);
        for (int i = 0; i < PROCESSES; i++) {
            children[i] = fork_here();
            if (children[i] != 0) continue;
            vigil_buffer *buffer = NULL;
            char byte;
            close(start[1]);
            CHECK(read(start[0], &byte, 1) == 0); /* they all see the end of the pipe at once */
            vigil_segment_options options = {.length = 4096 + (uint64_t)i, .members = PROCESSES};
            CHECK(vigil_segment_open_or_create(&buffer, name, &options) == VIGIL_OK);
            uint32_t *words = vigil_buffer_data(buffer);
            __atomic_fetch_add(&words[0], 1, __ATOMIC_SEQ_CST);
            __atomic_fetch_add(&words[1], (uint32_t)vigil_buffer_length(buffer), __ATOMIC_SEQ_CST);
            _exit(0);
        }
        close(start[0]);
        close(start[1]);
        for (int i = 0; i < PROCESSES; i++) assert_int_equal(exit_status_of(children[i]), 0);
        vigil_buffer *buffer = open_it();
        uint32_t *words = vigil_buffer_data(buffer);
        assert_int_equal(words[0], PROCESSES);
        assert_int_equal(words[1], PROCESSES * vigil_buffer_length(buffer));
        destroy(buffer);
        assert_int_equal(vigil_segment_unlink(name), VIGIL_OK);
    }
}

/* Killed at any instruction of opening, creating, growing, leaving and unlinking. */

#define STORM_LENGTH (UINT64_C(1) << 22)
#define STORM_MATES  4

static void storm_actor(uint32_t *rounds, uint64_t seed) {
    const vigil_segment_options options = {.length = 1, .max_length = STORM_LENGTH, .members = STORM_MATES + 1};
    for (;;) {
        vigil_buffer *buffer = NULL;
        CHECK(vigil_segment_open_or_create(&buffer, name, &options) == VIGIL_OK);
        uint64_t length = vigil_buffer_length(buffer) + random_next(&seed) % 5000;
        int status = vigil_buffer_grow(buffer, length < STORM_LENGTH ? length : STORM_LENGTH);
        CHECK(status == VIGIL_OK || status == VIGIL_EINVAL);
        vigil_view bytes;
        CHECK(vigil_view_init(&bytes, buffer, VIGIL_U8, 0, VIGIL_TO_END) == VIGIL_OK);
        CHECK(vigil_atomics_add(bytes, vigil_view_length(bytes) - 1, 1, NULL) == VIGIL_OK);
        if (random_next(&seed) % 16 == 0) vigil_segment_unlink(name);
        CHECK(vigil_buffer_destroy(buffer) == 0);
        __atomic_fetch_add(rounds, 1, __ATOMIC_RELAXED);
    }
}

static pid_t storm_start(uint32_t *rounds, uint64_t seed) {
    pid_t child = fork_here();
    if (child == 0) storm_actor(rounds, seed);
    return child;
}

static void any_kill_leaves_it_whole(void **state) {
    (void)state;
    enum { KILLS = 150 };
    uint64_t seed = 20;
    pid_t actors[STORM_MATES];
    uint32_t *rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(rounds, MAP_FAILED);
    for (int i = 0; i < STORM_MATES; i++) actors[i] = storm_start(rounds, seed + (uint64_t)i);
    for (int kills = 0; kills < KILLS; kills++) {
        uint32_t until = LOAD(*rounds) + (uint32_t)(random_next(&seed) % 20);
        AWAIT((int32_t)(LOAD(*rounds) - until) >= 0);
        for (uint64_t spins = random_next(&seed) % 20000; spins; spins--) prim_pause();
        pid_t *actor = &actors[random_next(&seed) % STORM_MATES];
        end(*actor); /* fails if it has ended itself: by a failed check, or by a fault */
        *actor = storm_start(rounds, random_next(&seed) | 1);
    }
    for (int i = 0; i < STORM_MATES; i++) end(actors[i]);
    munmap(rounds, 4096);

    /* Whatever is left, no place is lost. */
    vigil_buffer *buffer = NULL;
    vigil_segment_options options = {.length = 1, .max_length = STORM_LENGTH, .members = STORM_MATES + 1};
    assert_int_equal(vigil_segment_open_or_create(&buffer, name, &options), VIGIL_OK);
    for (uint32_t i = 0; i <= STORM_MATES; i++) {
        assert_int_equal(segment_member_alive(buffer->segment, i), i == segment_self(buffer->segment));
    }
    for (int i = 0; i < STORM_MATES; i++) actors[i] = actor_start();
    for (uint32_t i = 0; i <= STORM_MATES; i++) assert_true(segment_member_alive(buffer->segment, i));
    for (int i = 0; i < STORM_MATES; i++) end(actors[i]);
    destroy(buffer);
}

/* Growing. */

static void growth_is_seen_by_others(void **state) {
    (void)state;
    const uint64_t most = 1 << 20;
    vigil_buffer *buffer = create(&(vigil_segment_options){.length = 8, .max_length = most});
    uint32_t *turn = vigil_buffer_data(buffer); /* [0]: the process that acts; [1]: the new length */
    pid_t child = fork_here();
    if (child == 0) {
        vigil_buffer *mine = NULL;
        vigil_view all;
        CHECK(vigil_segment_open(&mine, name) == VIGIL_OK);
        CHECK(vigil_view_init(&all, mine, VIGIL_U8, 0, VIGIL_TO_END) == VIGIL_OK);
        uint32_t *its_turn = vigil_buffer_data(mine);
        for (uint64_t length = 0; length < most;) {
            AWAIT(LOAD(its_turn[0]));
            length = its_turn[1];
            CHECK(vigil_view_length(all) == length);
            CHECK(vigil_atomics_store(all, length - 1, 42) == VIGIL_OK);
            STORE(its_turn[0], 0);
        }
        _exit(0);
    }
    for (uint64_t length = 9; length <= most; length = length < most && length * 3 > most ? most : length * 3) {
        assert_int_equal(vigil_buffer_grow(buffer, length), VIGIL_OK);
        turn[1] = (uint32_t)length;
        STORE(turn[0], 1);
        AWAIT(!LOAD(turn[0]));
        assert_int_equal(((unsigned char *)turn)[length - 1], 42);
        if (length == most) break;
    }
    assert_int_equal(exit_status_of(child), 0);
    destroy(buffer);
}

/* Two processes grow it, one always touches its last byte. In any order, the file is never shorter than the length. */
static void all_grow_at_once(void **state) {
    (void)state;
    enum { PROCESSES = 3 };
    pid_t children[PROCESSES];
    const vigil_segment_options options = {.length = 1, .max_length = 1 << 24};
    vigil_buffer *buffer = create(&options);
    for (uint64_t i = 0; i < PROCESSES; i++) {
        children[i] = fork_here();
        if (children[i] != 0) continue;
        vigil_buffer *mine = NULL;
        CHECK(vigil_segment_open(&mine, name) == VIGIL_OK);
        volatile unsigned char *data = vigil_buffer_data(mine);
        for (uint64_t length = 0; length < options.max_length;) {
            length = vigil_buffer_length(mine);
            data[length - 1]++;
            uint64_t more = length + i * 4096 < options.max_length ? length + i * 4096 : options.max_length;
            int status = vigil_buffer_grow(mine, more);
            CHECK(status == VIGIL_OK || (status == VIGIL_EINVAL && vigil_buffer_length(mine) > more));
        }
        _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) assert_int_equal(exit_status_of(children[i]), 0);
    assert_int_equal(vigil_buffer_length(buffer), options.max_length);
    destroy(buffer);
}

/* Fork and exec. */

static vigil_buffer *inherited;
static vigil_view fixed, to_end;

static void the_childs_copy_is_dead(void) {
    vigil_buffer *opened = NULL;
    vigil_view view;
    int64_t value;
    CHECK(vigil_buffer_length(inherited) == 0 && vigil_buffer_data(inherited) == NULL);
    CHECK(vigil_buffer_grow(inherited, 8192) == VIGIL_EFORKED);
    CHECK(vigil_view_init(&view, inherited, VIGIL_I32, 0, 0) == VIGIL_EFORKED);
    CHECK(vigil_atomics_load(fixed, 0, &value) == VIGIL_EFORKED);
    CHECK(vigil_atomics_store(to_end, 0, 1) == VIGIL_EFORKED);
    CHECK(vigil_atomics_notify(fixed, 0, VIGIL_ALL) == VIGIL_EFORKED);
    CHECK(vigil_view_length(to_end) == 0);
    CHECK(vigil_segment_fd(inherited) == VIGIL_EFORKED);
    CHECK(segment_of(inherited->segment->base) == NULL);

    CHECK(vigil_segment_open(&opened, name) == VIGIL_OK);
    CHECK(opened != inherited && segment_self(opened->segment) == 1);
    CHECK(segment_member_alive(opened->segment, 0));
    CHECK(vigil_view_init(&view, opened, VIGIL_I32, 0, 1) == VIGIL_OK);
    CHECK(vigil_atomics_store(view, 0, 5) == VIGIL_OK);
    CHECK(vigil_buffer_destroy(inherited) == 0);
    CHECK(vigil_atomics_load(view, 0, &value) == VIGIL_OK && value == 5);
    CHECK(vigil_buffer_destroy(opened) == 0);
}

static void touch_a_kept_address(void) {
    volatile unsigned char *data = inherited->segment->base + inherited->segment->layout.user_at;
    signal(SIGSEGV, SIG_DFL); /* a sanitizer may have a handler */
    data[0] = 1;
}

static void fork_gives_no_membership(void **state) {
    (void)state;
    inherited = create(&(vigil_segment_options){.max_length = 8192});
    assert_int_equal(vigil_view_init(&fixed, inherited, VIGIL_I32, 4, 1), VIGIL_OK);
    assert_int_equal(vigil_view_init(&to_end, inherited, VIGIL_I32, 4, VIGIL_TO_END), VIGIL_OK);
    run_in_child(the_childs_copy_is_dead);
    assert_int_equal(*(uint32_t *)vigil_buffer_data(inherited), 5);
    assert_true(joined(inherited, 0));

    pid_t child = fork_here();
    int ended;
    if (child == 0) {
        touch_a_kept_address();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended));
    assert_int_equal(WTERMSIG(ended), SIGSEGV);
    assert_int_equal(*(uint32_t *)vigil_buffer_data(inherited), 5);
    destroy(inherited);
}

/* Processes that outlive the member that forked them; they end when this pipe does. */
static int heirs_life[2];

static void fork_heir(void) {
    char byte;
    if (fork() != 0) return;
    close(heirs_life[1]);
    CHECK(read(heirs_life[0], &byte, 1) == 0);
    _exit(0);
}

static void end_heirs(void) {
    close(heirs_life[0]);
    close(heirs_life[1]);
}

static void no_child_inherits_the_lock(void **state) {
    (void)state;
    vigil_buffer *buffer = create(NULL);
    assert_int_equal(pipe(heirs_life), 0);
    pid_t actor = actor_start_with(fork_heir);
    assert_true(segment_member_alive(buffer->segment, 1));
    end(actor);
    AWAIT(!segment_member_alive(buffer->segment, 1)); /* although its child lives, which may need a moment to begin */
    end_heirs();
    destroy(buffer);
}

/*
 * Another thread is opening the segment during a fork, and then the process dies. Opening takes long here: most of the
 * places are taken, and it tries each of them.
 */
#define TAKEN 4000

static void *open_it_too(void *opened) {
    vigil_buffer *buffer = NULL;
    CHECK(vigil_segment_open(&buffer, name) == VIGIL_OK);
    STORE(*(uint32_t *)opened, 1);
    for (;;) pause();
    return NULL;
}

static void fork_while_opening(void) {
    uint32_t opened = 0;
    pthread_t thread;
    CHECK(vigil_buffer_destroy(actors_own) == 0);
    CHECK(pthread_create(&thread, NULL, open_it_too, &opened) == 0);
    fork_heir();
    AWAIT(LOAD(opened));
}

static void no_child_inherits_a_lock_in_the_making(void **state) {
    (void)state;
    vigil_buffer *buffer = create(&(vigil_segment_options){.members = TAKEN + 1});
    int fd = vigil_segment_fd(buffer);
    struct flock taken = {.l_type = F_WRLCK, .l_start = SEGMENT_LOCKS_AT + 1, .l_len = TAKEN - 1};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &taken), 0);
    assert_int_equal(pipe(heirs_life), 0);
    for (int i = 0; i < 20; i++) {
        end(actor_start_with(fork_while_opening));
        AWAIT(!segment_member_alive(buffer->segment, TAKEN));
    }
    end_heirs();
    close(fd);
    destroy(buffer);
}

/* Forked without the library's knowledge; or the child has not begun yet. */
static void leaving_needs_no_childs_help(void **state) {
    (void)state;
    vigil_buffer *buffer = create(&(vigil_segment_options){.members = 1});
    char byte;
    assert_int_equal(pipe(heirs_life), 0);
    fflush(NULL);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        close(heirs_life[1]);
        _exit(read(heirs_life[0], &byte, 1) == 0 ? 0 : 1);
    }
    destroy(buffer);
    assert_int_equal(try_open(), VIGIL_OK);
    end_heirs();
    assert_int_equal(exit_status_of(child), 0);
}

static void exec_cat(void) {
    CHECK(dup2(heirs_life[0], STDIN_FILENO) == STDIN_FILENO);
    CHECK(fcntl(heirs_life[1], F_SETFD, FD_CLOEXEC) == 0);
    execl("/bin/cat", "cat", (char *)NULL);
    _exit(1);
}

/* The process continues as another program, which waits for the end of the pipe. */
static void exec_ends_membership(void **state) {
    (void)state;
    vigil_buffer *buffer = create(NULL);
    uint32_t life = life_of(buffer, 1);
    assert_int_equal(pipe(heirs_life), 0);
    pid_t member = fork_here();
    if (member == 0) {
        CHECK(vigil_segment_open(&actors_own, name) == VIGIL_OK);
        exec_cat();
    }
    AWAIT(life_of(buffer, 1) != life); /* it has joined; by now it may have been struck off, too */
    AWAIT(!segment_member_alive(buffer->segment, 1));
    assert_int_equal(waitpid(member, NULL, WNOHANG), 0);
    end_heirs();
    assert_int_equal(exit_status_of(member), 0);
    destroy(buffer);
}

/* Descriptors. */

static void send_fd(int socket, int fd) {
    char byte = '!';
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    CHECK(sendmsg(socket, &message, 0) == 1);
}

static int receive_fd(int socket) {
    char byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int fd = -1;
    if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message)) {
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    }
    return fd;
}

/*
 * The creator of an anonymous segment is killed while its descriptor is in transit. The receiver gets the segment, and
 * the creator is known to be dead although its descriptor lives on.
 */
static void a_descriptor_passed_on(void **state) {
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    pid_t maker = fork_here();
    if (maker == 0) {
        vigil_buffer *mine = NULL;
        CHECK(vigil_segment_create_anonymous(&mine, &(vigil_segment_options){.length = 8, .max_length = 80}) ==
              VIGIL_OK);
        int fd = vigil_segment_fd(mine);
        CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
        CHECK(ftruncate(fd, 0) == -1); /* no process can take away what we use */
        memcpy(vigil_buffer_data(mine), "passed!", 8);
        send_fd(pair[1], fd);
        for (;;) pause();
    }
    close(pair[1]);
    int fd = receive_fd(pair[0]);
    close(pair[0]);
    assert_true(fd >= 0);
    vigil_buffer *buffer = NULL;
    assert_int_equal(vigil_segment_open_fd(&buffer, fd), VIGIL_OK);
    assert_string_equal(vigil_buffer_data(buffer), "passed!");
    assert_int_equal(segment_self(buffer->segment), 1);
    assert_true(segment_member_alive(buffer->segment, 0));
    end(maker);
    assert_false(segment_member_alive(buffer->segment, 0));
    assert_int_equal(vigil_buffer_grow(buffer, 80), VIGIL_OK);
    destroy(buffer);
    assert_int_equal(vigil_segment_open_fd(&buffer, fd), VIGIL_OK); /* it was ours all the time */
    assert_true(segment_self(buffer->segment) <= 1); /* the dead one has been struck off, or not yet */
    assert_int_equal(vigil_buffer_length(buffer), 80);
    destroy(buffer);
    assert_int_equal(close(fd), 0);
}

/* Two users. */

#define NOBODY 65534

static int status_for_nobody(vigil_buffer *buffer) {
    int fd = vigil_segment_fd(buffer);
    assert_true(fd >= 0);
    pid_t child = fork_here();
    if (child == 0) {
        vigil_buffer *mine = NULL;
        CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
        int status = vigil_segment_open_fd(&mine, fd);
        CHECK(vigil_segment_open(&mine, name) == VIGIL_ENOTFOUND); /* names are per user */
        _exit(-status);
    }
    close(fd);
    return -exit_status_of(child);
}

static void other_users(void **state) {
    (void)state;
    if (geteuid() != 0) {
        leave_out("only root can become somebody else");
        return;
    }
    vigil_buffer *buffer = create(NULL), *mine = NULL, *for_all = NULL;
    int status = status_for_nobody(buffer);
    assert_int_equal(status, VIGIL_EOWNER);
    assert_int_equal(vigil_segment_create_anonymous(&mine, NULL), VIGIL_OK);
    assert_int_equal(status_for_nobody(mine), VIGIL_EOWNER);
    assert_int_equal(vigil_segment_create_anonymous(&for_all, &(vigil_segment_options){.mode = 0666}), VIGIL_OK);
    assert_int_equal(status_for_nobody(for_all), VIGIL_OK);
    destroy(mine);
    destroy(for_all);
    destroy(buffer);

    /* A file of another user in the place of our name, although we could open it as root. */
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(try_open(), VIGIL_OK);
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    assert_int_equal(try_open(), VIGIL_EOWNER);
    assert_int_equal(vigil_segment_open_or_create(&buffer, name, NULL), VIGIL_EOWNER);
}

/*
 * Our own file, but closed to us: it is not reported as another user's. Run as an unprivileged user, since nothing is
 * closed to root.
 */
static void ones_own_permission(void) {
    static const mode_t modes[] = {0, 0200, 0400};
    vigil_buffer *buffer = NULL;
    vigil_observer *observer = NULL;
    bool denied = true;
    if (geteuid() == 0) CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    snprintf(path, sizeof path, "/dev/shm/vigil-%u-%s", (unsigned)geteuid(), name);
    CHECK(vigil_segment_create(&buffer, name, NULL) == VIGIL_OK && vigil_buffer_destroy(buffer) == 0);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        denied &= chmod(path, modes[i]) == 0 && try_open() == VIGIL_ESYSTEM && errno == EACCES;
        errno = 0;
        denied &= vigil_observer_open(&observer, name) == VIGIL_ESYSTEM && errno == EACCES;
    }
    CHECK(unlink(path) == 0);
    CHECK(denied);
}

static void denied_is_not_another_users(void **state) {
    (void)state;
    run_in_child(ones_own_permission);
}

/* A system without unnamed files. */

#define UNKNOWN_HERE 77

static void refuse_unnamed_files(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT_OF(steps), .filter = steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(UNKNOWN_HERE);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(UNKNOWN_HERE);
    int fd = openat(AT_FDCWD, "/dev/shm", O_RDWR | O_TMPFILE, 0600);
    if (fd >= 0 || errno != EOPNOTSUPP) _exit(UNKNOWN_HERE);
}

static bool temporary_left(void) {
    char prefix[64];
    bool found = false;
    snprintf(prefix, sizeof prefix, ".vigil-%u-%ld-", (unsigned)geteuid(), (long)getpid());
    DIR *folder = opendir("/dev/shm");
    CHECK(folder != NULL);
    for (struct dirent *entry; (entry = readdir(folder));) found |= strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(folder);
    return found;
}

static void without_unnamed_files(void **state) {
    (void)state;
    pid_t child = fork_here();
    if (child == 0) {
        vigil_buffer *buffer = NULL, *second = NULL;
        refuse_unnamed_files();
        CHECK(vigil_segment_create(&buffer, name, NULL) == VIGIL_OK);
        CHECK(vigil_segment_create(&second, name, NULL) == VIGIL_EEXISTS);
        CHECK(vigil_segment_open_or_create(&second, name, NULL) == VIGIL_OK && second == buffer);
        CHECK(vigil_buffer_destroy(buffer) == 0 && vigil_buffer_destroy(buffer) == 0);
        CHECK(try_open() == VIGIL_OK);
        CHECK(!temporary_left());
        _exit(0);
    }
    int status = exit_status_of(child);
    if (status == UNKNOWN_HERE) {
        leave_out("no system calls can be refused here");
        return;
    }
    assert_int_equal(status, 0);
    assert_int_equal(try_open(), VIGIL_OK);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_segment_is_a_buffer),
        TEST(zero_is_for_the_defaults),
        TEST(areas_lie_one_behind_the_other),
        TEST(names),
        TEST(arguments_refused),
        TEST(one_of_a_name),
        TEST(unlinked_if_unused),
        TEST(opened_twice_is_the_same),
        TEST(not_destroyed_while_somebody_waits),
        TEST(addresses),
        TEST(addresses_while_others_open),
        TEST(every_bit_of_the_header_counts),
        TEST(no_field_is_believed),
        TEST(truncated_files),
        TEST(foreign_things),
        TEST(the_killed_make_room),
        TEST(who_leaves_is_gone),
        TEST(the_stopped_live),
        TEST(one_creates_and_all_open),
        TEST(any_kill_leaves_it_whole),
        TEST(growth_is_seen_by_others),
        TEST(all_grow_at_once),
        TEST(fork_gives_no_membership),
        TEST(no_child_inherits_the_lock),
        TEST(no_child_inherits_a_lock_in_the_making),
        TEST(leaving_needs_no_childs_help),
        TEST(exec_ends_membership),
        TEST(a_descriptor_passed_on),
        TEST(other_users),
        TEST(denied_is_not_another_users),
        TEST(without_unnamed_files),
    };
    return children_can_start_threads() ? cmocka_run_group_tests_name("segment", tests, NULL, NULL)
                                        : NO_THREADS_IN_CHILDREN;
}
