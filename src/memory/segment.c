/* SPDX-License-Identifier: MIT */
#include "segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/tuning.h"
#include "base/word_lock.h"
#include "prim_file.h"
#include "recovery/keeper.h"
#include "recovery/recovery.h"
#include "shm/backing.h"
#include "shm/member.h"
#include "shm/table.h"
#include "vigil/observe.h"
#include "vigil/segment.h"

#define DEFAULT_LENGTH  4096u
#define DEFAULT_WAITERS 1024u
#define DEFAULT_MEMBERS 64u
#define DEFAULT_MODE    0600u
#define NAME_MOST       200u

/* Held while a segment is opened or closed, and around fork: so a child inherits no segment outside the table. */
static uint32_t gate PRIM_PROCESS;

/* Fork. */

static void segment_before_fork(void) {
    word_lock(&gate);
    keeper_before_fork();
}

static void segment_in_parent(void) {
    word_unlock(&gate, false);
}

/* The child is no member. Calls on its copy are refused; using an address that it has kept faults. */
static void segment_in_child(void) {
    for (uint32_t i = 0; i < table_count(); i++) {
        struct segment *segment = table_segment(i);
        prim_file_close(segment->fd);
        prim_file_bar(segment->base, segment->layout.end);
        segment->fd = -1;
        segment->buffer.data = NULL;
        segment->buffer.length = &segment->buffer.own_length; /* zero */
    }
    table_clear();
    vigil__holder = 1;
    word_unlock(&gate, false);
}

const struct prim_fork segment_fork = {segment_before_fork, segment_in_parent, segment_in_child};

/* Opening. All of this under the gate. */

static int segment_trouble(void) {
    switch (errno) {
    case EBADF: return VIGIL_EINVAL;
    case EEXIST: return VIGIL_EEXISTS;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return VIGIL_ENOMEM;
    default: return VIGIL_ESYSTEM;
    }
}

static int segment_trouble_with_name(void) {
    switch (errno) {
    case ENOENT: return VIGIL_ENOTFOUND;
    case EACCES:
    case EPERM: return VIGIL_EOWNER;
    case EISDIR: return VIGIL_EFOREIGN;
    default: return segment_trouble();
    }
}

/* EACCES on our own file means that its mode was changed: VIGIL_ESYSTEM, and errno tells. */
static int segment_trouble_opening(const struct prim_file_stat *file) {
    bool denied = errno == EACCES || errno == EPERM;
    return denied && !file->owned ? VIGIL_EOWNER : segment_trouble();
}

/* The segment keeps the descriptor, but segment_unmap() does not close it. */
static int segment_map(struct segment **made, int fd, const struct prim_file_stat *file,
                       const struct segment_header *header) {
    uint32_t room = 64;
    while (room < 2 * header->members) room *= 2;
    struct segment *segment = calloc(1, sizeof *segment + room * sizeof *segment->found);
    unsigned char *base = segment ? prim_file_map(fd, header->layout.end) : NULL;
    if (!base) {
        int status = segment_trouble();
        free(segment);
        return status;
    }
    *segment = (struct segment){
        .base = base,
        .layout = header->layout,
        .device = file->device,
        .inode = file->inode,
        .fd = fd,
        .members = header->members,
        .opens = 1,
        .found_mask = room - 1,
    };
    memcpy(segment->label, header->label, sizeof segment->label);
    segment->buffer = (vigil_buffer){
        .data = base + header->layout.user_at,
        .length = &segment_header(segment)->length,
        .max_length = header->max_length,
        .growable = header->first_length < header->max_length,
        .segment = segment,
    };
    *made = segment;
    return VIGIL_OK;
}

static void segment_unmap(struct segment *segment) {
    prim_file_unmap(segment->base, segment->layout.end);
    free(segment);
}

/* How a new segment will be made. */
struct segment_plan {
    vigil_segment_options options; /* complete and checked */
    uint32_t buckets;
};

/* Make a segment in a new, empty file. */
static int segment_make(struct segment **made, int fd, const struct segment_plan *plan) {
    struct segment_header header;
    memset(&header, 0, sizeof header);
    format_fill_header(&header, &plan->options, plan->buckets);

    struct prim_file_stat file;
    bool good = prim_file_permit(fd, plan->options.mode) && backing_begin(fd, &header) && prim_file_stat(fd, &file);
    int status = good ? segment_map(made, fd, &file, &header) : segment_trouble();
    if (status != VIGIL_OK) return status;
    memcpy((*made)->base, &header, sizeof header);
    status = member_join(*made, recovery_empty);
    if (status != VIGIL_OK) segment_unmap(*made);
    return status;
}

/*
 * Of the mapping, only the header is known to be backed by the file: check the rest. The length is loaded before the
 * file's size, so that a file that grows meanwhile is never found shorter than its length.
 */
static int segment_length_check(const struct segment *segment, uint64_t first_length) {
    uint64_t length = prim_load_seq_cst(segment->buffer.length);
    if (length < first_length || length > segment->buffer.max_length) return VIGIL_ECORRUPT;
    struct prim_file_stat file;
    if (!prim_file_stat(segment->fd, &file)) return segment_trouble();
    return file.bytes < segment->layout.user_at + length ? VIGIL_ETRUNCATED : VIGIL_OK;
}

/* Map a file that may contain anything, if it is a segment. */
static int segment_adopt(struct segment **made, int fd, const struct prim_file_stat *file) {
    struct segment_header header;
    memset(&header, 0, sizeof header);
    int64_t had = prim_file_read(fd, &header, sizeof header);
    int status = had < 0 ? segment_trouble() : format_check_header(&header, (uint64_t)had);
    if (status == VIGIL_OK) status = segment_map(made, fd, file, &header);
    if (status != VIGIL_OK) return status;
    status = segment_length_check(*made, header.first_length);
    if (status != VIGIL_OK) segment_unmap(*made);
    return status;
}

static int segment_adopt_and_join(struct segment **made, int fd, const struct prim_file_stat *file) {
    int status = segment_adopt(made, fd, file);
    if (status != VIGIL_OK) return status;
    status = member_join(*made, recovery_empty);
    if (status != VIGIL_OK) segment_unmap(*made);
    return status;
}

/* A file found by name must be ours. A descriptor that we were given may be of another user's file, if its owner lets
 * others write. The user has chosen a path, and the permissions of the file decide. */
static int segment_examine(int fd, enum segment_way way, struct prim_file_stat *file) {
    if (!prim_file_stat(fd, file)) return segment_trouble();
    if (!file->regular) return VIGIL_EFOREIGN;
    bool ours = file->owned || way == SEGMENT_BY_PATH || (way == SEGMENT_BY_FD && file->for_others);
    return ours ? VIGIL_OK : VIGIL_EOWNER;
}

static bool segment_table_full(void) {
    return table_count() == SEGMENTS_MOST;
}

static int segment_attach(struct segment **found, int fd, enum segment_way way) {
    struct prim_file_stat file;
    int status = segment_examine(fd, way, &file);
    if (status != VIGIL_OK) return status;
    *found = table_find_file(file.device, file.inode);
    if (*found) {
        (*found)->opens++;
        return VIGIL_OK;
    }
    if (segment_table_full()) return VIGIL_ELIMIT;
    status = segment_adopt_and_join(found, fd, &file);
    if (status == VIGIL_OK) table_add(*found);
    return status;
}

/* Examined twice: what is refused must not be opened at all, and another thread may have put another file there. */
static int segment_open_behind(struct segment **found, int given, enum segment_way way) {
    struct prim_file_stat file;
    int status = segment_examine(given, way, &file);
    if (status != VIGIL_OK) return status;
    int fd = prim_file_reopen(given);
    if (fd < 0) return segment_trouble_opening(&file);
    status = segment_attach(found, fd, way);
    if (status != VIGIL_OK || (*found)->fd != fd) prim_file_close(fd);
    return status;
}

static void segment_close_last(struct segment *segment, bool leaves_something) {
    int fd = segment->fd;
    if (fd >= 0) {
        table_remove(segment);
        member_leave(segment, leaves_something);
        bool member_elsewhere = table_count();
        if (!member_elsewhere) prim_store_relaxed(&vigil__holder, 1);
    }
    segment_unmap(segment);
    if (fd >= 0) prim_file_close(fd);
}

/* End one of the opens. */
static void segment_let_go(struct segment *segment, bool leaves_something) {
    if (segment->opens == 1) segment_close_last(segment, leaves_something);
    else segment->opens--;
}

static bool segment_leads_to(const char *path, const struct segment *segment) {
    int fd = prim_file_find(path);
    bool leads = fd >= 0 && segment_is_file(segment, fd);
    if (fd >= 0) prim_file_close(fd);
    return leads;
}

/* Between finding the name and joining, another process may have done U1 to U3: then look again. */
static int segment_open_named(struct segment **found, const char *path) {
    for (;;) {
        int fd = prim_file_find(path);
        if (fd < 0) return segment_trouble_with_name();
        int status = segment_open_behind(found, fd, SEGMENT_BY_NAME);
        prim_file_close(fd);
        if (status != VIGIL_OK || segment_leads_to(path, *found) || BUG(nameless_joined)) return status;
        segment_let_go(*found, false);
    }
}

static int segment_create_named(struct segment **made, const char *path, const struct segment_plan *plan) {
    struct prim_draft draft;
    if (segment_table_full()) return VIGIL_ELIMIT;
    if (!prim_draft_open(&draft)) return segment_trouble();
    int status = segment_make(made, draft.fd, plan);
    if (status == VIGIL_OK && !prim_draft_link(&draft, path)) {
        status = segment_trouble();
        segment_unmap(*made);
    }
    prim_draft_end(&draft);
    if (status == VIGIL_OK) table_add(*made);
    else prim_file_close(draft.fd);
    return status;
}

static int segment_create_anonymous(struct segment **made, const struct segment_plan *plan) {
    if (segment_table_full()) return VIGIL_ELIMIT;
    int fd = prim_file_anonymous();
    if (fd < 0) return segment_trouble();
    int status = segment_make(made, fd, plan);
    if (status == VIGIL_OK) {
        prim_file_seal(fd);
        table_add(*made);
    } else {
        prim_file_close(fd);
    }
    return status;
}

/* If another process creates the name between the two, open what it made; repeat if that is unlinked at once. */
static int segment_open_or_create(struct segment **found, const char *path, const struct segment_plan *plan) {
    int status;
    do {
        status = segment_open_named(found, path);
        if (status == VIGIL_ENOTFOUND) status = segment_create_named(found, path, plan);
    } while (status == VIGIL_EEXISTS);
    return status;
}

/* At a path that the user has chosen. */

static int segment_trouble_at_path(void) {
    switch (errno) {
    case EROFS:
    case ENODEV:
    case EOPNOTSUPP: return VIGIL_EFILESYSTEM;
    case EISDIR: return VIGIL_EFOREIGN;
    default: return segment_trouble();
    }
}

/*
 * A file that is empty, or that a killed process has begun to make a segment of:
 *
 *     I1  write the header, but not its first 8 bytes
 *     I2  back the rest of the file
 *     I3  write the first 8 bytes
 */
static bool segment_is_blank(int fd) {
    struct segment_header header;
    static const char none[sizeof header.magic];
    memset(&header, 0, sizeof header);
    int64_t had = prim_file_read(fd, &header, sizeof header);
    bool begun = had == sizeof header && memcmp(header.magic, none, sizeof none) == 0 &&
                 header.byte_order == SEGMENT_BYTE_ORDER && header.checksum;
    return had == 0 || begun;
}

static int segment_fill_blank(int fd, const struct segment_plan *plan) {
    struct segment_header header;
    memset(&header, 0, sizeof header);
    format_fill_header(&header, &plan->options, plan->buckets);
    const size_t first = sizeof header.magic;
    header.members_backed = header.slots_backed = 0;
    bool good = prim_file_write(fd, (char *)&header + first, sizeof header - first, first) && /* I1 */
                backing_begin(fd, &header) &&                                                 /* I2 */
                prim_file_write(fd, (char *)&header + first, sizeof header - first, first) &&
                prim_file_write(fd, &header, first, 0); /* I3 */
    return good ? VIGIL_OK : segment_trouble_at_path();
}

static void segment_rest(void) {
    uint32_t nothing = 0;
    prim_park(&nothing, 0, prim_now_ns() + MEMBER_DOOR_NS);
}

static bool segment_lock_door(int fd) {
    enum prim_lock door;
    while ((door = prim_file_lock(fd, SEGMENT_DOOR_AT)) == PRIM_LOCK_HELD) segment_rest();
    return door == PRIM_LOCK_FREE;
}

static int segment_make_of_blank(int fd, const struct segment_plan *plan) {
    if (!segment_is_blank(fd)) return VIGIL_OK;
    if (!plan) return VIGIL_ENOTFOUND;
    if (!segment_lock_door(fd)) return segment_trouble_at_path();
    int status = segment_is_blank(fd) ? segment_fill_blank(fd, plan) : VIGIL_OK;
    prim_file_unlock(fd, SEGMENT_DOOR_AT);
    return status;
}

/* VIGIL_EEXISTS: another process has just created it. A symbolic link that leads nowhere exists as well. */
static int segment_create_path(int *opened, const char *path, unsigned mode) {
    struct prim_file_stat link;
    *opened = prim_path_create(path, mode);
    if (*opened >= 0) return VIGIL_OK;
    if (errno != EEXIST) return segment_trouble_at_path();
    int found = prim_file_find(path);
    bool is_file = found < 0 || !prim_file_stat(found, &link) || link.regular;
    if (found >= 0) prim_file_close(found);
    if (is_file) return VIGIL_EEXISTS;
    errno = ENOENT;
    return VIGIL_ESYSTEM;
}

/* The file at the path, opened to read and write. */
static int segment_open_path(int *opened, const char *path, const struct segment_plan *plan) {
    struct prim_file_stat file;
    int found = prim_path_find(path), status = VIGIL_OK;
    if (found < 0 && errno == ENOENT && plan) return segment_create_path(opened, path, plan->options.mode);
    if (found < 0) return errno == ENOENT ? VIGIL_ENOTFOUND : segment_trouble_at_path();
    status = segment_examine(found, SEGMENT_BY_PATH, &file);
    *opened = status == VIGIL_OK ? prim_file_reopen(found) : -1;
    if (status == VIGIL_OK && *opened < 0) status = segment_trouble_at_path();
    prim_file_close(found);
    return status;
}

static bool segment_path_leads_to(const char *path, const struct segment *segment) {
    int fd = prim_path_find(path);
    bool leads = fd >= 0 && segment_is_file(segment, fd);
    if (fd >= 0) prim_file_close(fd);
    return leads;
}

static int segment_open_at(struct segment **found, const char *path, const struct segment_plan *plan) {
    for (;;) {
        int fd = -1, status = segment_open_path(&fd, path, plan);
        if (status == VIGIL_EEXISTS) continue; /* another process has just created it */
        if (status == VIGIL_OK && !prim_file_is_local(fd)) status = VIGIL_EFILESYSTEM;
        if (status == VIGIL_OK) status = segment_make_of_blank(fd, plan);
        if (status == VIGIL_OK) status = segment_attach(found, fd, SEGMENT_BY_PATH);
        if (fd >= 0 && (status != VIGIL_OK || (*found)->fd != fd)) prim_file_close(fd);
        if (status != VIGIL_OK || segment_path_leads_to(path, *found)) return status;
        segment_let_go(*found, false); /* it was removed meanwhile */
    }
}

/* The interface. */

bool segment_name_good(const char *name) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strspn(name, letters);
    return length >= 1 && length <= NAME_MOST && !name[length] && name[0] != '.' && name[0] != '-';
}

static int segment_path_of(char path[PRIM_PATH_BYTES], const char *name) {
    if (!name) return VIGIL_ENULL;
    if (!segment_name_good(name)) return VIGIL_ENAME;
    prim_file_path(path, name);
    return VIGIL_OK;
}

static int segment_complete(struct segment_plan *plan, const vigil_segment_options *given) {
    vigil_segment_options *all = &plan->options;
    *all = given ? *given : (vigil_segment_options){0};
    if (!all->length) all->length = DEFAULT_LENGTH;
    if (!all->max_length) all->max_length = all->length;
    if (!all->waiters) all->waiters = DEFAULT_WAITERS;
    if (!all->members) all->members = DEFAULT_MEMBERS;
    if (!all->mode) all->mode = DEFAULT_MODE;
    if (!all->label) all->label = "";
    if ((all->mode & ~0666u) || (all->mode & 0600) != 0600) return VIGIL_EINVAL;
    if (!format_label_good(all->label)) return VIGIL_EINVAL;
    plan->buckets = format_buckets(all->waiters);
    if (all->length <= all->max_length && all->max_length > SEGMENT_LENGTH_MOST) return VIGIL_ENOMEM;
    return format_limits_good(all->members, all->waiters, all->length, all->max_length) ? VIGIL_OK : VIGIL_ERANGE;
}

static bool segment_enter(void) {
    if (!prim_fork_handled()) return false;
    word_lock(&gate);
    return true;
}

static int segment_finish(vigil_buffer **buffer, struct segment *segment, int status) {
    struct lot *lot = status == VIGIL_OK ? lot_in(segment) : NULL;
    if (lot) keeper_attend(lot); /* if that fails, others ask the kernel about us; tried again when we wait */
    if (status == VIGIL_OK && !lot) {
        segment_let_go(segment, false);
        status = lot_missing(NULL);
    }
    word_unlock(&gate, false);
    if (status == VIGIL_OK) *buffer = &segment->buffer;
    return status;
}

typedef int opener(struct segment **found, const char *path, const struct segment_plan *plan);

static int segment_open_by_name(vigil_buffer **buffer, const char *name, const vigil_segment_options *options,
                                opener *open) {
    char path[PRIM_PATH_BYTES];
    struct segment_plan all;
    struct segment *segment = NULL;
    int status = buffer ? segment_path_of(path, name) : VIGIL_ENULL;
    if (status == VIGIL_OK) status = segment_complete(&all, options);
    if (status != VIGIL_OK) return status;
    if (!segment_enter()) return VIGIL_ENOMEM;
    status = open(&segment, path, &all);
    return segment_finish(buffer, segment, status);
}

int vigil_segment_create(vigil_buffer **buffer, const char *name, const vigil_segment_options *options) {
    return segment_open_by_name(buffer, name, options, segment_create_named);
}

static int segment_open_existing(struct segment **found, const char *path, const struct segment_plan *plan) {
    (void)plan;
    return segment_open_named(found, path);
}

int vigil_segment_open(vigil_buffer **buffer, const char *name) {
    return segment_open_by_name(buffer, name, NULL, segment_open_existing);
}

int vigil_segment_open_or_create(vigil_buffer **buffer, const char *name, const vigil_segment_options *options) {
    return segment_open_by_name(buffer, name, options, segment_open_or_create);
}

int segment_open_book(vigil_buffer **buffer, const char *path, const vigil_segment_options *options, uint32_t buckets) {
    char of_user[PRIM_PATH_BYTES];
    struct segment_plan plan;
    struct segment *segment = NULL;
    unsigned mode = options ? options->mode : 0;
    int status = segment_complete(&plan, options);
    if (status != VIGIL_OK) return status;
    plan.buckets = buckets;
    if (!segment_enter()) return VIGIL_ENOMEM;
    prim_file_path(of_user, NULL);
    if (path) {
        plan.options.mode = mode; /* zero: as the umask says */
        status = segment_open_at(&segment, path, options ? &plan : NULL);
    } else {
        status = options ? segment_open_or_create(&segment, of_user, &plan) : segment_open_named(&segment, of_user);
    }
    return segment_finish(buffer, segment, status);
}

int vigil_segment_unlink(const char *name) {
    char path[PRIM_PATH_BYTES];
    int status = segment_path_of(path, name);
    if (status != VIGIL_OK) return status;
    return prim_file_unlink(path) ? VIGIL_OK : segment_trouble_with_name();
}

/* U1 to U3, for a file that was found by that name; VIGIL_NOT_EQUAL: by now the name leads elsewhere. */
static int segment_unlink_unused(struct segment *segment, const char *path) {
    int status = VIGIL_EBUSY;
    if (!member_lock_door(segment)) return VIGIL_ESYSTEM; /* U1 */
    if (!segment_leads_to(path, segment)) status = VIGIL_NOT_EQUAL;
    else if (!prim_file_locked(segment->fd))
        status = prim_file_unlink(path) ? VIGIL_OK : segment_trouble_with_name(); /* U2 */
    prim_file_unlock(segment->fd, SEGMENT_DOOR_AT);                               /* U3 */
    return status;
}

/* Under the gate, since it locks a byte of the file: a child forked meanwhile would inherit that lock. */
int vigil_segment_unlink_unused(const char *name) {
    char path[PRIM_PATH_BYTES];
    struct segment *segment;
    int status = segment_path_of(path, name);
    if (status != VIGIL_OK) return status;
    if (!segment_enter()) return VIGIL_ENOMEM;
    do {
        status = segment_glimpse(&segment, name);
        if (status != VIGIL_OK) break;
        status = segment_unlink_unused(segment, path);
        segment_forget(segment);
    } while (status == VIGIL_NOT_EQUAL);
    word_unlock(&gate, false);
    return status;
}

int vigil_segment_create_anonymous(vigil_buffer **buffer, const vigil_segment_options *options) {
    struct segment_plan all;
    struct segment *segment = NULL;
    int status = buffer ? segment_complete(&all, options) : VIGIL_ENULL;
    if (status != VIGIL_OK) return status;
    if (!segment_enter()) return VIGIL_ENOMEM;
    status = segment_create_anonymous(&segment, &all);
    return segment_finish(buffer, segment, status);
}

int vigil_segment_fd(vigil_buffer *buffer) {
    if (!buffer) return VIGIL_ENULL;
    if (!buffer->segment) return VIGIL_EINVAL;
    if (!buffer->data) return VIGIL_EFORKED;
    int fd = prim_file_reopen(buffer->segment->fd);
    return fd < 0 ? VIGIL_ESYSTEM : fd;
}

int vigil_segment_open_fd(vigil_buffer **buffer, int fd) {
    struct segment *segment = NULL;
    if (!buffer) return VIGIL_ENULL;
    if (!segment_enter()) return VIGIL_ENOMEM;
    int status = segment_open_behind(&segment, fd, SEGMENT_BY_FD);
    return segment_finish(buffer, segment, status);
}

const char *vigil_segment_label(vigil_buffer *buffer) {
    return buffer && buffer->segment && buffer->data ? buffer->segment->label : "";
}

/* Any process may have put files into the directory: invalid names are not passed on. */
struct listing {
    vigil_listed *listed;
    void *data;
    int64_t count;
};

static void segment_list_if_good(const char *name, void *data) {
    struct listing *listing = data;
    if (!segment_name_good(name)) return;
    listing->count++;
    listing->listed(name, listing->data);
}

int64_t vigil_segment_list(vigil_listed *listed, void *data) {
    if (!listed) return VIGIL_ENULL;
    struct listing listing = {listed, data, 0};
    return prim_file_list(segment_list_if_good, &listing) ? listing.count : VIGIL_ESYSTEM;
}

/* Observers. */

/* As segment_open_behind, without becoming a member: so the gate is not needed, unless the caller then locks a byte
 * there. */
int segment_glimpse_behind(struct segment **seen, int given, enum segment_way way) {
    struct prim_file_stat file;
    int status = segment_examine(given, way, &file);
    if (status != VIGIL_OK) return status;
    int fd = prim_file_reopen(given);
    if (fd < 0) return segment_trouble_opening(&file);
    status = segment_examine(fd, way, &file);
    if (status == VIGIL_OK) status = segment_adopt(seen, fd, &file);
    if (status != VIGIL_OK) prim_file_close(fd);
    else (*seen)->self = UINT32_MAX; /* none of the rows */
    return status;
}

int segment_glimpse(struct segment **seen, const char *name) {
    char path[PRIM_PATH_BYTES];
    int status = segment_path_of(path, name);
    if (status != VIGIL_OK) return status;
    int fd = prim_file_find(path);
    if (fd < 0) return segment_trouble_with_name();
    status = segment_glimpse_behind(seen, fd, SEGMENT_BY_NAME);
    prim_file_close(fd);
    return status;
}

int segment_glimpse_book(struct segment **seen, const char *path) {
    char of_user[PRIM_PATH_BYTES];
    prim_file_path(of_user, NULL);
    int fd = path ? prim_path_find(path) : prim_file_find(of_user);
    if (fd < 0)
        return errno == ENOENT ? VIGIL_ENOTFOUND : path ? segment_trouble_at_path() : segment_trouble_with_name();
    int status = segment_glimpse_behind(seen, fd, path ? SEGMENT_BY_PATH : SEGMENT_BY_NAME);
    prim_file_close(fd);
    return status;
}

int segment_glimpse_user(struct segment **seen, uint32_t user, const char *name) {
    char path[PRIM_PATH_BYTES];
    struct prim_file_stat file;
    if (name && !segment_name_good(name)) return VIGIL_ENAME;
    prim_file_path_of(path, user, name);
    int fd = prim_file_find(path);
    if (fd < 0) return segment_trouble_with_name();
    bool theirs = prim_file_stat(fd, &file) && file.owner == user;
    int status = theirs ? segment_glimpse_behind(seen, fd, SEGMENT_BY_PATH) : VIGIL_EOWNER;
    prim_file_close(fd);
    return status;
}

/* It is a segment, but cannot be used. */
static bool segment_is_damaged(int status) {
    return status == VIGIL_ECORRUPT || status == VIGIL_ETRUNCATED || status == VIGIL_EVERSION ||
           status == VIGIL_EMACHINE;
}

int segment_unlink_path(const char *path, bool force) {
    struct segment *segment;
    if (!segment_enter()) return VIGIL_ENOMEM;
    int status = segment_glimpse_book(&segment, path);
    if (status == VIGIL_OK) {
        status = VIGIL_EBUSY;
        bool locked = member_lock_door(segment);
        bool leads = segment_path_leads_to(path, segment), unused = !prim_file_locked(segment->fd);
        if (leads && (force || unused)) status = prim_file_unlink(path) ? VIGIL_OK : segment_trouble();
        if (locked) prim_file_unlock(segment->fd, SEGMENT_DOOR_AT);
        segment_forget(segment);
    } else if (force && segment_is_damaged(status)) {
        status = prim_file_unlink(path) ? VIGIL_OK : segment_trouble();
    }
    word_unlock(&gate, false);
    return status;
}

void segment_forget(struct segment *segment) {
    prim_file_close(segment->fd);
    segment_unmap(segment);
}

bool segment_is_intact(const struct segment *segment) {
    struct segment_header header = *segment_header(segment);
    return format_check_header(&header, sizeof header) == VIGIL_OK &&
           segment_length_check(segment, header.first_length) == VIGIL_OK &&
           memcmp(&header.layout, &segment->layout, sizeof header.layout) == 0;
}

int64_t vigil_segment_mend(vigil_buffer *buffer) {
    if (!buffer) return VIGIL_ENULL;
    if (!buffer->segment) return VIGIL_EINVAL;
    return buffer->data ? recovery_mend(lot_in(buffer->segment)) : VIGIL_EFORKED;
}

int segment_extend(struct segment *segment, uint64_t new_length) {
    uint64_t user_at = segment->layout.user_at, length = prim_load_relaxed(segment->buffer.length);
    return prim_file_back(segment->fd, user_at + length, user_at + new_length) ? VIGIL_OK : segment_trouble(); /* G1 */
}

int64_t segment_close(struct segment *segment) {
    word_lock(&gate);
    bool last = segment->opens == 1;
    int status = last && segment_leaving ? segment_leaving(segment) : VIGIL_OK;
    if (status >= 0) segment_let_go(segment, status == VIGIL_OWNER_DIED);
    word_unlock(&gate, false);
    return status < 0 ? status : VIGIL_OK;
}
