/* SPDX-License-Identifier: MIT */
/*
 * segment.c - files that were segments until they were changed: any field, any length, any bytes, even with a correct
 * checksum. Opening one returns an error or a segment that can be used, to its last byte.
 *
 * The files are real ones, in memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz_prim.h"
#include "shm/member.h"
#include "shm/segment.h"
#include "vigil/vigil.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *input, *input_end;
static struct segment_header header;
static uint64_t file_bytes;

/* No thread sleeps here. */
void fuzz_others_act(void) {
}

void fuzz_rescue(void) {
    CHECK(false, "asleep");
}

static uint8_t byte(void) {
    return input < input_end ? *input++ : 0;
}

static uint64_t some_number(void) {
    static const uint64_t numbers[] = {0,          1,         2,          63,         64,
                                       100,        4096,      65535,      65536,      65537,
                                       1u << 20,   INT32_MAX, UINT32_MAX, 1ull << 46, 1ull << 61,
                                       1ull << 62, INT64_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 65535};
    uint8_t choice = byte();
    if (choice < 128) return numbers[choice % (sizeof numbers / sizeof numbers[0])];
    uint64_t number = 0;
    for (int i = 0; i < choice % 9; i++) number = number << 8 | byte();
    return number;
}

static void compute_checksum(void) {
    const uint8_t *bytes = (const uint8_t *)&header;
    header.checksum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < offsetof(struct segment_header, checksum); i++) {
        header.checksum = (header.checksum ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
}

/* Starts with a valid file. An equal checksum shows that this file and the library compute it in the same way. */
static void start_anew(void) {
    static const uint32_t waiters[] = {1, 31, 32, 1000};
    static const uint64_t most[] = {0, 100, 1 << 20, 1ull << 40};
    vigil_segment_options options = {
        .length = 1 + byte() % 100u, .waiters = waiters[byte() % 4], .members = 1 + byte() % 5u};
    options.max_length = options.length + most[byte() % 4];
    vigil_buffer *buffer;
    CHECK(vigil_segment_create_anonymous(&buffer, &options) == VIGIL_OK, "no segment to begin with");
    header = *segment_header(buffer->segment);
    file_bytes = header.layout.user_at + options.length;
    CHECK(vigil_buffer_destroy(buffer) == 0, "there are waiters");
    uint64_t right = header.checksum;
    compute_checksum();
    CHECK(header.checksum == right, "another checksum");
}

static void change_field(void) {
    size_t width = byte() % 2 ? 8 : 4, at = byte() * width % sizeof header;
    uint64_t value = some_number();
    if (at + width <= sizeof header) memcpy((uint8_t *)&header + at, &value, width);
}

static void change(void) {
    switch (byte() % 8) {
    case 0:
    case 1: change_field(); break;
    case 2: ((uint8_t *)&header)[byte() % sizeof header] ^= byte(); break;
    case 3: header.length = some_number(); break;
    case 4: file_bytes = byte() % 2 ? some_number() % (1 << 22) : byte(); break;
    case 5: file_bytes += byte() - 128u; break;
    case 6: header.length += byte() - 128u; break;
    case 7: compute_checksum(); break;
    }
}

static int new_file(void) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    CHECK(fd >= 0 && fchmod(fd, 0600) == 0, "no file");
    file_bytes %= 1 << 23;
    CHECK(pwrite(fd, &header, sizeof header, 0) == sizeof header, "no room");
    for (uint64_t at = sizeof header; input < input_end; at += 64 + byte()) { /* the rest of it, into the members */
        uint8_t one = byte();
        CHECK(pwrite(fd, &one, 1, (off_t)at) == 1, "no room");
    }
    CHECK(ftruncate(fd, (off_t)file_bytes) == 0, "no room");
    return fd;
}

static void use(vigil_buffer *buffer) {
    uint64_t length = vigil_buffer_length(buffer);
    CHECK(length <= vigil_buffer_max_length(buffer), "longer than it may be");
    CHECK(buffer->segment->layout.user_at + length <= file_bytes, "longer than the file");
    vigil_view view;
    CHECK(vigil_view_init(&view, buffer, VIGIL_U8, 0, VIGIL_TO_END) == VIGIL_OK, "no view");
    CHECK(vigil_view_length(view) == length, "another length");
    if (length) CHECK(vigil_atomics_add(view, 0, 1, NULL) == VIGIL_OK, "no first byte");
    if (length) CHECK(vigil_atomics_add(view, length - 1, 1, NULL) == VIGIL_OK, "no last byte");
    for (uint32_t i = 0; i < buffer->segment->members; i++) {
        CHECK(segment_member_alive(buffer->segment, i) == (i == segment_self(buffer->segment)), "a stranger");
    }
    uint64_t more = length + 5000 < vigil_buffer_max_length(buffer) ? length + 5000 : vigil_buffer_max_length(buffer);
    CHECK(vigil_buffer_grow(buffer, more) == VIGIL_OK, "does not grow");
    if (more) CHECK(vigil_atomics_add(view, more - 1, 1, NULL) == VIGIL_OK, "no last byte");
}

/* Whatever the file says about lines and holders: no other process is there. */
static void use_lines(vigil_buffer *buffer) {
    if (vigil_buffer_length(buffer) < 32) return;
    uint32_t *words = vigil_buffer_data(buffer);
    memset(words, 0, 32);
    vigil_mutex *mutex = (vigil_mutex *)(void *)&words[1];
    vigil_rwlock *rwlock = (vigil_rwlock *)(void *)&words[2];
    vigil_sem *sem = (vigil_sem *)(void *)&words[3];
    *sem = (vigil_sem)VIGIL_SEM_LEASED(2);
    CHECK(vigil_waiters(words) == 0 && vigil_notify(words, 1) == 0, "there are waiters");
    CHECK(vigil_wait32(words, 0, 0) == VIGIL_TIMED_OUT, "no wait");
    CHECK(vigil_mutex_trylock(mutex) == VIGIL_OK && vigil_mutex_unlock(mutex) == VIGIL_OK, "no mutex");
    CHECK(vigil_rwlock_read_trylock(rwlock) == VIGIL_OK && vigil_rwlock_read_trylock(rwlock) == VIGIL_OK, "no reader");
    CHECK(vigil_rwlock_read_unlock(rwlock) == VIGIL_OK && vigil_rwlock_read_unlock(rwlock) == VIGIL_OK, "no reader");
    CHECK(vigil_sem_tryacquire(sem, 2) == VIGIL_OK && vigil_sem_release(sem, 2) == VIGIL_OK, "no permits");
    CHECK(vigil_forget(words, vigil_buffer_length(buffer)) == 0, "there are waiters");
}

static bool may_answer(int status) {
    return status == VIGIL_OK || status == VIGIL_EFOREIGN || status == VIGIL_ETRUNCATED || status == VIGIL_ECORRUPT ||
           status == VIGIL_EVERSION || status == VIGIL_EMACHINE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input = data;
    input_end = data + size;
    start_anew();
    for (int changes = byte() % 6; changes > 0; changes--) change();
    if (byte() % 2) compute_checksum();

    int fd = new_file(), next = dup(fd);
    close(next);
    vigil_buffer *buffer = NULL;
    int status = vigil_segment_open_fd(&buffer, fd);
    fuzz_trace("%s", vigil_status_name(status));
    CHECK(may_answer(status), "status %d", status);
    CHECK((status == VIGIL_OK) == (buffer != NULL), "a buffer with an error, or none without");
    if (buffer) use(buffer);
    if (buffer) use_lines(buffer);
    if (buffer) CHECK(vigil_buffer_destroy(buffer) == 0, "there are waiters");
    CHECK(dup(fd) == next, "a descriptor is left open");
    close(next);
    close(fd);
    return 0;
}
