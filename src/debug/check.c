/* SPDX-License-Identifier: MIT */
/*
 * Finding mistakes in the use of locks: vigil/check.h lists them.
 *
 * Two things are remembered, both under one lock, the gate. The holders: a list of holds, each added after the lock has
 * been taken and removed before it is released. So the list is right if all code is checked. If some is not, a hold may
 * be left in the list. The next thread that takes the lock shows that it was released, and removes it: every hold of
 * that lock, or, if it takes it to read, those to write. And the order: a graph of locks with an edge from A to B for
 * each "held A and went for B". An edge is added before the wait, so that a deadlock that does happen has been
 * reported.
 *
 * When memory runs out, something is not remembered, and a mistake may not be found.
 */
#undef VIGIL_CHECK /* the calls here must be the real ones */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* and the library's, not inlined: see tsan.h */
#endif
#include "vigil/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word_lock.h"
#include "sync/mutex.h"
#include "sync/robust.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"
#include "vigil/rwlock.h"

struct site {
    const char *file;
    int line;
};

struct check_hold {
    struct check_hold *next;
    const void *lock;
    struct prim_thread *thread;
    uint32_t thread_id;
    bool shared;
    bool loose; /* granted to an event loop: any thread may unlock it; the hold lasts while the callback runs */
    struct site site;
};

struct edge {
    struct edge *next;
    struct node *to;
    struct site held, wanted;
    uint32_t thread_id;
};

struct node {
    struct node *next; /* of the same hash */
    const void *lock;
    struct edge *edges;
    /* Of one search: */
    uint64_t search;
    struct node *next_to_visit, *came_from;
    struct edge *came_by, *way;
};

struct name {
    struct name *next;
    char text[];
};

struct reported {
    struct reported *next;
    enum vigil_check_problem problem;
    struct site one, other;
};

#define HASHES 1024u

static struct {
    uint32_t gate;
    struct check_hold *holds;
    struct node *nodes[HASHES];
    uint64_t searches;
    struct name *names;
    struct reported *reported;
} known;

static vigil_check_handler *handler;

/* Reports: written under the gate, passed to the handler after it. */

struct report {
    enum vigil_check_problem problem; /* 0: none */
    size_t used;
    char text[4096];
};

__attribute__((format(printf, 2, 3))) static void check_say(struct report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof report->text - report->used;
    int length = vsnprintf(report->text + report->used, room, format, arguments);
    va_end(arguments);
    if (length > 0) report->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void check_report(const struct report *report) {
    vigil_check_handler *to = prim_load_acquire(&handler);
    if (!report->problem) return;
    if (to) to(report->problem, report->text);
    else prim_write(2, report->text, report->used);
}

void vigil_check_on_problem(vigil_check_handler *new) {
    prim_store_release(&handler, new);
}

/* File names are copied: the code that contains them may be unloaded. */
static struct site check_keep(struct site site) {
    struct name *name = known.names;
    while (name && strcmp(name->text, site.file) != 0) name = name->next;
    if (!name) {
        size_t bytes = strlen(site.file) + 1;
        name = malloc(sizeof *name + bytes);
        if (!name) return (struct site){"?", site.line};
        memcpy(name->text, site.file, bytes);
        name->next = known.names;
        known.names = name;
    }
    return (struct site){name->text, site.line};
}

static bool check_same_site(struct site a, struct site b) {
    return a.line == b.line && strcmp(a.file, b.file) == 0;
}

static bool check_first_report(enum vigil_check_problem problem, struct site one, struct site other) {
    for (struct reported *old = known.reported; old; old = old->next) {
        if (old->problem != problem) continue;
        if (check_same_site(old->one, one) && check_same_site(old->other, other)) return false;
        if (check_same_site(old->one, other) && check_same_site(old->other, one)) return false;
    }
    struct reported *new = malloc(sizeof *new);
    if (!new) return true;
    *new = (struct reported){known.reported, problem, check_keep(one), check_keep(other)};
    known.reported = new;
    return true;
}

/* The gate. */

static void check_report_ended(const struct check_hold *hold, struct report *report) {
    if (hold->loose || robust_has(hold->thread, hold->lock) ||
        !check_first_report(VIGIL_CHECK_THREAD_ENDED, hold->site, hold->site))
        return;
    if (!report->problem)
        check_say(report, "vigil: thread ended: thread %" PRIu32 " holds these, and nothing will unlock them\n",
                  hold->thread_id);
    report->problem = VIGIL_CHECK_THREAD_ENDED;
    check_say(report, "    lock %p, locked at %s:%d\n", hold->lock, hold->site.file, hold->site.line);
}

/* Remove the thread's holds: another thread may get the same prim_thread. */
static void check_on_thread_exit(struct prim_thread *thread) {
    struct report report = {.problem = 0};
    thread->on_exit = NULL;
    word_lock(&known.gate);
    for (struct check_hold **link = &known.holds; *link;) {
        struct check_hold *hold = *link;
        if (hold->thread != thread) {
            link = &hold->next;
        } else {
            check_report_ended(hold, &report);
            *link = hold->next;
            free(hold);
        }
    }
    word_unlock(&known.gate, false);
    check_report(&report);
}

/* Another thread may have held the gate at the fork: so forget everything, and leak the memory. */
static void check_in_child(void) {
    memset(&known, 0, sizeof known);
}

static void check_enter(void) {
    struct prim_thread *self = prim_self();
    if (!self->on_exit && lot_private()) {
        prim_store_relaxed(&lot_in_child, check_in_child);
        self->on_exit = check_on_thread_exit;
        prim_keep_self(true); /* we allocate memory anyway */
    }
    word_lock(&known.gate);
}

static void check_leave(const struct report *report) {
    word_unlock(&known.gate, false);
    if (report) check_report(report);
}

/* Holds. */

static struct check_hold **check_link_of(const void *lock, const struct prim_thread *thread) {
    struct check_hold **link = &known.holds;
    while (*link && ((*link)->lock != lock || (*link)->thread != thread)) link = &(*link)->next;
    return link;
}

static void check_remove_hold(struct check_hold **link) {
    struct check_hold *hold = *link;
    *link = hold->next;
    free(hold);
}

/* The lock has been taken: its earlier holds in the list are stale. */
static void check_remove_stale(const void *lock, bool shared) {
    for (struct check_hold **link = &known.holds; *link;) {
        if ((*link)->lock == lock && !(shared && (*link)->shared)) check_remove_hold(link);
        else link = &(*link)->next;
    }
}

static void check_note_hold(const void *lock, bool shared, bool loose, struct site site) {
    check_enter();
    check_remove_stale(lock, shared);
    struct check_hold *hold = malloc(sizeof *hold);
    if (hold) {
        *hold = (struct check_hold){known.holds, lock, prim_self(), prim_thread_id(), shared, loose, site};
        known.holds = hold;
    }
    check_leave(NULL);
}

static void check_report_stranger(const struct check_hold *hold, struct site site, struct report *report) {
    if (!check_first_report(VIGIL_CHECK_STRANGER, hold->site, site)) return;
    report->problem = VIGIL_CHECK_STRANGER;
    check_say(report, "vigil: unlock by a stranger: lock %p\n", hold->lock);
    check_say(report, "    locked at %s:%d by thread %" PRIu32 "\n", hold->site.file, hold->site.line, hold->thread_id);
    check_say(report, "    unlocked at %s:%d by thread %" PRIu32 "\n", site.file, site.line, prim_thread_id());
}

/* Before an unlock. True if this thread held the lock: then `was` is the hold. */
static bool check_note_release(const void *lock, bool shared, struct site site, struct check_hold *was) {
    struct report report = {.problem = 0};
    check_enter();
    struct check_hold **link = check_link_of(lock, prim_self());
    bool ours = *link;
    if (!ours && !shared) { /* of several readers, it is not known which one this is */
        link = &known.holds;
        while (*link && ((*link)->lock != lock || (*link)->shared)) link = &(*link)->next;
        if (*link && !(*link)->loose) check_report_stranger(*link, site, &report);
    }
    if (ours) *was = **link;
    if (ours || (!shared && *link)) check_remove_hold(link);
    check_leave(&report);
    return ours;
}

/* This thread has just taken a read lock. If it already had one, a writer in between would have waited for this
 * thread, and this thread for the writer. */
static void check_read_again(const vigil_rwlock *lock, struct site site) {
    const vigil_rwlock readers_pass = VIGIL_RWLOCK_READERS_PASS;
    struct report report = {.problem = 0};
    if (prim_load_relaxed(&lock->word) & readers_pass.word) return;
    check_enter();
    const struct check_hold *first = NULL;
    for (const struct check_hold *hold = known.holds; hold; hold = hold->next) {
        if (hold->lock == lock && hold->thread == prim_self() && hold->shared) first = hold;
    }
    if (first && check_first_report(VIGIL_CHECK_READ_AGAIN, first->site, site)) {
        report.problem = VIGIL_CHECK_READ_AGAIN;
        check_say(&report,
                  "vigil: read again: thread %" PRIu32 " reads lock %p; with a writer in between it waits for itself\n",
                  first->thread_id, (const void *)lock);
        check_say(&report, "    locked at %s:%d\n", first->site.file, first->site.line);
        check_say(&report, "    and again at %s:%d\n", site.file, site.line);
    }
    check_leave(&report);
}

static bool check_waits_for_itself(const void *lock, struct site site) {
    struct report report = {.problem = 0};
    check_enter();
    const struct check_hold *hold = *check_link_of(lock, prim_self());
    bool itself = hold && !hold->loose;
    if (itself && check_first_report(VIGIL_CHECK_SELF_DEADLOCK, hold->site, site)) {
        report.problem = VIGIL_CHECK_SELF_DEADLOCK;
        check_say(&report, "vigil: self-deadlock: thread %" PRIu32 " waits for lock %p, which it holds\n",
                  hold->thread_id, lock);
        check_say(&report, "    locked at %s:%d\n", hold->site.file, hold->site.line);
        check_say(&report, "    and again at %s:%d\n", site.file, site.line);
    }
    check_leave(&report);
    return itself;
}

/* Order. */

static struct node **check_node_link(const void *lock) {
    struct node **link = &known.nodes[(uintptr_t)lock / sizeof(uint32_t) % HASHES];
    while (*link && (*link)->lock != lock) link = &(*link)->next;
    return link;
}

static struct node *check_node_of(const void *lock) {
    struct node **link = check_node_link(lock);
    if (!*link) {
        *link = calloc(1, sizeof **link);
        if (*link) (*link)->lock = lock;
    }
    return *link;
}

static const struct edge *check_edge_between(const struct node *from, const struct node *to) {
    const struct edge *edge = from->edges;
    while (edge && edge->to != to) edge = edge->next;
    return edge;
}

/* Breadth first. Leaves the shortest way in the nodes' `way`. */
static bool check_find_way(struct node *from, struct node *to) {
    uint64_t search = ++known.searches;
    struct node *last = from;
    from->search = search;
    from->next_to_visit = NULL;
    for (struct node *node = from; node && to->search != search; node = node->next_to_visit) {
        for (struct edge *edge = node->edges; edge; edge = edge->next) {
            struct node *next = edge->to;
            if (next->search == search) continue;
            next->search = search;
            next->came_from = node;
            next->came_by = edge;
            next->next_to_visit = NULL;
            last = last->next_to_visit = next;
        }
    }
    if (to->search != search) return false;
    for (struct node *node = to; node != from; node = node->came_from) node->came_from->way = node->came_by;
    return true;
}

static void check_say_edge(struct report *report, const void *held, const struct edge *edge) {
    check_say(report, "    thread %" PRIu32 " held %p, locked at %s:%d, and went for %p at %s:%d\n", edge->thread_id,
              held, edge->held.file, edge->held.line, edge->to->lock, edge->wanted.file, edge->wanted.line);
}

static void check_report_circle(const struct node *from, const struct edge *edge, struct report *report) {
    if (!check_first_report(VIGIL_CHECK_ORDER, edge->wanted, edge->to->way->wanted)) return;
    report->problem = VIGIL_CHECK_ORDER;
    check_say(report, "vigil: lock order: these wait for each other, if they come at the same time\n");
    check_say_edge(report, from->lock, edge);
    for (const struct node *node = edge->to; node != from; node = node->way->to)
        check_say_edge(report, node->lock, node->way);
}

static void check_note_edge(const struct check_hold *hold, const void *wanted, struct site site,
                            struct report *report) {
    struct node *from = check_node_of(hold->lock), *to = check_node_of(wanted);
    if (!from || !to || check_edge_between(from, to)) return;
    struct edge *edge = malloc(sizeof *edge);
    if (!edge) return;
    *edge = (struct edge){from->edges, to, check_keep(hold->site), check_keep(site), hold->thread_id};
    if (check_find_way(to, from)) check_report_circle(from, edge, report);
    from->edges = edge;
}

/* This thread is about to wait for the lock. */
static void check_note_order(const void *lock, struct site site) {
    struct report report = {.problem = 0};
    check_enter();
    for (const struct check_hold *hold = known.holds; hold; hold = hold->next) {
        if (hold->thread == prim_self() && hold->lock != lock) check_note_edge(hold, lock, site, &report);
    }
    check_leave(&report);
}

/* Forgetting. */

static bool check_inside(const void *lock, const void *address, uint64_t length) {
    return (uintptr_t)lock - (uintptr_t)address < length;
}

static void check_forget_edges(struct node *node, const void *address, uint64_t length) {
    bool all = check_inside(node->lock, address, length);
    for (struct edge **link = &node->edges; *link;) {
        struct edge *edge = *link;
        if (all || check_inside(edge->to->lock, address, length)) {
            *link = edge->next;
            free(edge);
        } else {
            link = &edge->next;
        }
    }
}

static void check_forget_nodes(const void *address, uint64_t length) {
    for (unsigned hash = 0; hash < HASHES; hash++) {
        for (struct node *node = known.nodes[hash]; node; node = node->next) check_forget_edges(node, address, length);
    }
    for (unsigned hash = 0; hash < HASHES; hash++) {
        for (struct node **link = &known.nodes[hash]; *link;) {
            struct node *node = *link;
            if (check_inside(node->lock, address, length)) {
                *link = node->next;
                free(node);
            } else {
                link = &node->next;
            }
        }
    }
}

void vigil_check_forget(const void *address, uint64_t length) {
    check_enter();
    for (struct check_hold **link = &known.holds; *link;) {
        if (check_inside((*link)->lock, address, length)) check_remove_hold(link);
        else link = &(*link)->next;
    }
    check_forget_nodes(address, length);
    check_leave(NULL);
}

/* The calls. */

typedef int taker(void *lock, int64_t timeout_ns);

static int check_acquire(void *lock, bool shared, int64_t timeout_ns, struct site site, taker *take) {
    bool may_wait = deadline_of(timeout_ns) != DEADLINE_PASSED && !prim_self()->may_not_block;
    if (may_wait) check_note_order(lock, site);
    int status = take(lock, may_wait ? 0 : timeout_ns);
    if (may_wait && status == VIGIL_TIMED_OUT) {
        if (check_waits_for_itself(lock, site)) return VIGIL_EDEADLOCK;
        status = take(lock, timeout_ns);
    }
    if (lock_is_ours(status) && may_wait && shared) check_read_again(lock, site);
    if (lock_is_ours(status)) check_note_hold(lock, shared, false, site);
    return status;
}

static int check_take_mutex(void *lock, int64_t timeout_ns) {
    return vigil_mutex_lock_for(lock, timeout_ns);
}

int vigil__check_mutex_lock(vigil_mutex *mutex, int64_t timeout_ns, const char *file, int line) {
    return check_acquire(mutex, false, timeout_ns, (struct site){file, line}, check_take_mutex);
}

int vigil__check_mutex_unlock(vigil_mutex *mutex, const char *file, int line) {
    struct check_hold was;
    check_note_release(mutex, false, (struct site){file, line}, &was);
    return vigil_mutex_unlock(mutex);
}

/*
 * Giving up what a holder held that has ended, on whatever thread: no mistake. All under the gate, so that the hold
 * that is removed is not that of the next holder, which notes its own there.
 */

typedef int giver(void *lock);

static int check_abandon(void *lock, giver *give_up) {
    check_enter();
    int status = give_up(lock);
    if (status == VIGIL_OK) check_remove_stale(lock, false);
    check_leave(NULL);
    return status;
}

static int check_give_up_mutex(void *lock) {
    return vigil_mutex_abandon(lock);
}

static int check_give_up_to_write(void *lock) {
    return vigil_rwlock_write_abandon(lock);
}

int vigil__check_mutex_abandon(vigil_mutex *mutex) {
    return check_abandon(mutex, check_give_up_mutex);
}

int vigil__check_rwlock_write_abandon(vigil_rwlock *lock) {
    return check_abandon(lock, check_give_up_to_write);
}

/* Event loops. A request remembers the site of its call. */

static struct site check_site_of(const vigil_request *request) {
    return (struct site){request->second, (int)request->argument};
}

static void check_call_back(vigil_request *request, int status, vigil_mutex *mutex, vigil_callback *callback,
                            bool loose, struct site site) {
    check_note_hold(mutex, false, loose, site);
    callback(&request->op, status); /* after which the request may be gone */
    check_enter();
    struct check_hold **link = check_link_of(mutex, prim_self());
    if (*link && (*link)->loose == loose) check_remove_hold(link);
    check_leave(NULL);
}

static void check_granted(vigil_request *request, int status) {
    check_call_back(request, status, request->object, request->callback, true, check_site_of(request));
}

static void check_granted_to_execute(vigil_request *request, int status) {
    vigil_mutex *mutex = request->object;
    check_call_back(request, status, mutex, request->callback, false, check_site_of(request));
    vigil_mutex_unlock(mutex);
}

static const struct lock_kind check_locking = {MUTEX_KIND, .granted = check_granted};
static const struct lock_kind check_executing = {MUTEX_KIND, .granted = check_granted_to_execute};

static int check_start(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                       vigil_callback *callback, const struct lock_kind *kind, struct site site) {
    uint32_t *word = mutex ? &mutex->word : NULL;
    int status = request_start(agent, request, kind, word, (uint32_t)site.line, timeout_ns, callback);
    if (status == VIGIL_PENDING) request->second = (void *)(uintptr_t)site.file;
    return status;
}

int vigil__check_mutex_lock_async(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                                  vigil_callback *callback, const char *file, int line) {
    int status = check_start(agent, request, mutex, timeout_ns, callback, &check_locking, (struct site){file, line});
    if (lock_is_ours(status)) {
        check_enter();
        check_remove_stale(mutex, false);
        check_leave(NULL);
    }
    return status;
}

int vigil__check_mutex_execute_later(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                                     vigil_callback *callback, const char *file, int line) {
    struct site site = {file, line};
    int status = check_start(agent, request, mutex, timeout_ns, callback, &check_locking, site);
    if (lock_is_ours(status)) check_call_back(request, status, mutex, callback, true, site);
    return status;
}

int vigil__check_mutex_execute(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                               vigil_callback *callback, const char *file, int line) {
    struct site site = {file, line};
    bool idle = request && callback && !(request->op.flags & OP_PENDING);
    int status = idle ? vigil_mutex_trylock(mutex) : VIGIL_TIMED_OUT;
    if (!lock_is_ours(status))
        status = check_start(agent, request, mutex, timeout_ns, callback, &check_executing, site);
    if (lock_is_ours(status)) {
        check_call_back(request, status, mutex, callback, false, site);
        vigil_mutex_unlock(mutex);
    }
    return status;
}

/* Conditions: they release the mutex, and take it again. */

int vigil__check_cond_wait(vigil_cond *cond, vigil_mutex *mutex, int64_t timeout_ns, const char *file, int line) {
    struct site site = {file, line};
    struct check_hold was;
    bool held = check_note_release(mutex, false, site, &was);
    check_note_order(mutex, site);
    int status = vigil_cond_wait_for(cond, mutex, timeout_ns);
    if (lock_is_ours(status) || lock_gave_up(status)) check_note_hold(mutex, false, false, site);
    else if (held && status != VIGIL_CANCELLED) check_note_hold(mutex, false, was.loose, was.site);
    return status;
}

int vigil__check_cond_wait_async(vigil_agent *agent, vigil_request *request, vigil_cond *cond, vigil_mutex *mutex,
                                 int64_t timeout_ns, vigil_callback *callback, const char *file, int line) {
    struct check_hold was;
    bool held = check_note_release(mutex, false, (struct site){file, line}, &was);
    int status = vigil_cond_wait_async(agent, request, cond, mutex, timeout_ns, callback);
    if (held && status != VIGIL_PENDING) check_note_hold(mutex, false, was.loose, was.site);
    return status;
}

/* Read-write locks. */

static int check_take_to_read(void *lock, int64_t timeout_ns) {
    return vigil_rwlock_read_lock_for(lock, timeout_ns);
}

static int check_take_to_write(void *lock, int64_t timeout_ns) {
    return vigil_rwlock_write_lock_for(lock, timeout_ns);
}

int vigil__check_rwlock_read_lock(vigil_rwlock *lock, int64_t timeout_ns, const char *file, int line) {
    return check_acquire(lock, true, timeout_ns, (struct site){file, line}, check_take_to_read);
}

int vigil__check_rwlock_read_unlock(vigil_rwlock *lock, const char *file, int line) {
    struct check_hold was;
    check_note_release(lock, true, (struct site){file, line}, &was);
    return vigil_rwlock_read_unlock(lock);
}

int vigil__check_rwlock_write_lock(vigil_rwlock *lock, int64_t timeout_ns, const char *file, int line) {
    return check_acquire(lock, false, timeout_ns, (struct site){file, line}, check_take_to_write);
}

int vigil__check_rwlock_write_unlock(vigil_rwlock *lock, const char *file, int line) {
    struct check_hold was;
    check_note_release(lock, false, (struct site){file, line}, &was);
    return vigil_rwlock_write_unlock(lock);
}

/* Noted before the downgrade: afterwards there may be other readers. */
int vigil__check_rwlock_downgrade(vigil_rwlock *lock, const char *file, int line) {
    struct site site = {file, line};
    struct check_hold was;
    bool held = check_note_release(lock, false, site, &was);
    if (held) check_note_hold(lock, true, was.loose, was.site);
    int status = vigil_rwlock_downgrade(lock);
    if (held && status != VIGIL_OK) check_note_release(lock, true, site, &was);
    return status;
}
