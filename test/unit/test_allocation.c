/* SPDX-License-Identifier: MIT */
/*
 * Waiting and notifying never allocate memory, not even the first time. This program has an allocator of its own,
 * which aborts the program if it is called while that is forbidden, by any thread including the library's own.
 *
 * Many keys of pthread_key_create exist when the library is used for the first time. In test_allocation_late.c they
 * exist even when it is loaded, and then no key is left that fits into a glibc thread's own storage.
 */
#include "support.h"

#include <unistd.h>

#include "vigil/barrier.h"
#include "vigil/memory.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"
#include "vigil/once.h"
#include "vigil/rwlock.h"
#include "vigil/segment.h"
#include "vigil/sem.h"

enum { KEYS = 40, PARTIES = 4 };

/* The allocator: memory is taken from a pool, and never returned. */

static uint32_t forbidden;

#if !UNDER_ASAN && !UNDER_TSAN /* sanitizers have their own, and this program tests nothing */
static _Alignas(64) unsigned char pool[64u << 20];
static size_t pool_used;

static void check_permitted(void) {
    static const char text[] = "memory is allocated or freed where that is forbidden\n";
    if (!LOAD(forbidden)) return;
    STORE(forbidden, 0);
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(2);
    abort();
}

static void *take_from_pool(size_t alignment, size_t bytes) {
    check_permitted();
    if (alignment < 64) alignment = 64;
    size_t need = (bytes + 63) / 64 * 64 + 64 + alignment;
    size_t at = __atomic_fetch_add(&pool_used, need, __ATOMIC_RELAXED);
    if (bytes > sizeof pool || at + need > sizeof pool) return NULL;
    size_t start = (at + 64 + alignment - 1) / alignment * alignment;
    memcpy(&pool[start - sizeof bytes], &bytes, sizeof bytes);
    return &pool[start];
}

void *malloc(size_t bytes) {
    return take_from_pool(64, bytes);
}

void *calloc(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) return NULL;
    return take_from_pool(64, count * size); /* which is zero, because it has never been used */
}

void *realloc(void *old, size_t bytes) {
    void *new = take_from_pool(64, bytes);
    size_t had;
    if (!old || !new) return new;
    memcpy(&had, (unsigned char *)old - sizeof had, sizeof had);
    return memcpy(new, old, had < bytes ? had : bytes);
}

void free(void *memory) {
    (void)memory;
    check_permitted();
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return take_from_pool(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    *memory = take_from_pool(alignment, bytes);
    return *memory ? 0 : 12;
}
#endif

/* The keys. */

static void make_keys(void) {
    pthread_key_t key;
    for (int i = 0; i < KEYS; i++) {
        if (pthread_key_create(&key, NULL) != 0) abort();
    }
}

#ifdef KEYS_COME_FIRST
__attribute__((constructor(101))) static void make_keys_early(void) { /* before the library's: see the link order */
    make_keys();
}
#endif

/* What each thread does, repeated until every kind of object has been waited for. */

struct all {
    uint32_t word;
    vigil_mutex mutex, fair, with_cond;
    vigil_cond cond;
    vigil_sem sem;
    vigil_rwlock rwlock;
    vigil_barrier barrier;
    vigil_once once;
    uint32_t turns, ready;
};

static struct {
    struct all *all;
    uint32_t started, done, begin;
} stage;

static int take_a_while(void *all) {
    AWAIT(vigil_waiters(&((struct all *)all)->once) == PARTIES - 1);
    return VIGIL_OK;
}

static void ensure(bool good) {
    if (!good) abort();
}

/* All threads but the last wait for a notification; the last one notifies them. */
static void wait_and_notify(struct all *all) {
    if (__atomic_add_fetch(&all->turns, 1, __ATOMIC_ACQ_REL) < PARTIES) {
        ensure(vigil_wait32(&all->word, 0, VIGIL_FOREVER) == VIGIL_OK);
    } else {
        ensure(vigil_wait32(&all->word, 1, VIGIL_FOREVER) == VIGIL_NOT_EQUAL);
        for (int64_t told = 0; told < PARTIES - 1;) told += vigil_notify(&all->word, VIGIL_ALL);
        ensure(vigil_wait32(&all->word, 0, MILLISECOND) == VIGIL_TIMED_OUT);
    }
}

/* The holder releases it when all others wait. */
static void lock_together(vigil_mutex *mutex, const uint32_t *word) {
    ensure(vigil_mutex_lock(mutex) == VIGIL_OK);
    static uint32_t first;
    if (!__atomic_exchange_n(&first, 1, __ATOMIC_ACQ_REL)) AWAIT(vigil_waiters(word) == PARTIES - 1);
    ensure(vigil_mutex_unlock(mutex) == VIGIL_OK);
    ensure(vigil_barrier_wait(&stage.all->barrier) >= VIGIL_OK);
    STORE(first, 0);
    ensure(vigil_barrier_wait(&stage.all->barrier) >= VIGIL_OK);
}

static void wait_for_condition(struct all *all) {
    ensure(vigil_mutex_lock(&all->with_cond) == VIGIL_OK);
    if (++all->ready < PARTIES) {
        while (all->ready < PARTIES) ensure(vigil_cond_wait(&all->cond, &all->with_cond) == VIGIL_OK);
    } else {
        ensure(vigil_cond_signal(&all->cond) == 1);
        ensure(vigil_cond_broadcast(&all->cond) == PARTIES - 2);
    }
    ensure(vigil_cond_wait_for(&all->cond, &all->with_cond, MICROSECOND) == VIGIL_TIMED_OUT);
    ensure(vigil_mutex_unlock(&all->with_cond) == VIGIL_OK);
}

static void take_turns(struct all *all) {
    bool last = vigil_barrier_wait(&all->barrier) == VIGIL_LAST;
    if (last) AWAIT(vigil_waiters(&all->sem) == PARTIES - 1);
    else ensure(vigil_sem_acquire(&all->sem, 1) == VIGIL_OK);
    if (last) ensure(vigil_sem_release(&all->sem, PARTIES - 1) == VIGIL_OK);

    last = vigil_barrier_wait(&all->barrier) == VIGIL_LAST;
    if (last) ensure(vigil_rwlock_write_lock(&all->rwlock) == VIGIL_OK);
    ensure(vigil_barrier_wait(&all->barrier) >= VIGIL_OK);
    if (last) AWAIT(vigil_waiters(&all->rwlock) == PARTIES - 1);
    else ensure(vigil_rwlock_read_lock(&all->rwlock) == VIGIL_OK);
    if (last) ensure(vigil_rwlock_write_unlock(&all->rwlock) == VIGIL_OK);
    else ensure(vigil_rwlock_read_unlock(&all->rwlock) == VIGIL_OK);
}

static void *go_through(void *unused) {
    struct all *all = stage.all;
    __atomic_add_fetch(&stage.started, 1, __ATOMIC_ACQ_REL);
    AWAIT(LOAD(stage.begin));
    wait_and_notify(all);
    lock_together(&all->mutex, &all->mutex.word);
    lock_together(&all->fair, &all->fair.word);
    wait_for_condition(all);
    take_turns(all);
    ensure(vigil_once_call(&all->once, take_a_while, all) == VIGIL_OK);
    __atomic_add_fetch(&stage.done, 1, __ATOMIC_ACQ_REL);
    AWAIT(!LOAD(stage.begin));
    return unused;
}

/* Threads allocate memory when they start and end; in between it is forbidden. */
static void run_all(struct all *all) {
    pthread_t threads[PARTIES];
    *all = (struct all){.fair = VIGIL_MUTEX_FAIR, .barrier = VIGIL_BARRIER_INIT(PARTIES)};
    stage.all = all;
    STORE(stage.started, 0);
    STORE(stage.done, 0);
    for (int i = 0; i < PARTIES; i++) assert_int_equal(pthread_create(&threads[i], NULL, go_through, NULL), 0);
    AWAIT(LOAD(stage.started) == PARTIES);
    STORE(forbidden, 1);
    STORE(stage.begin, 1);
    AWAIT(LOAD(stage.done) == PARTIES);
    STORE(forbidden, 0);
    STORE(stage.begin, 0);
    for (int i = 0; i < PARTIES; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void in_private_memory(void **state) {
    static struct all all;
    (void)state;
    run_all(&all); /* for the first time in this process */
    run_all(&all); /* other threads, for the first time */
}

static void in_a_segment(void **state) {
    vigil_buffer *buffer;
    (void)state;
    assert_int_equal(vigil_segment_create_anonymous(&buffer, NULL), VIGIL_OK);
    run_all(vigil_buffer_data(buffer));
    run_all(vigil_buffer_data(buffer));
    assert_int_equal(vigil_buffer_destroy(buffer), VIGIL_OK);
}

/* Whether this thread keeps slots between its waits: see lot/slot.c. */
static void slots_are_kept_if_possible(void **state) {
    uint32_t word = 0;
    bool possible = true;
    (void)state;
#if defined(__GLIBC__) && defined(KEYS_COME_FIRST)
    possible = false;
#endif
    assert_int_equal(vigil_wait32(&word, 0, 1), VIGIL_TIMED_OUT);
    assert_int_equal(prim_self()->exit_hooked, possible);
    assert_int_equal(prim_self()->spare_slots != 0, possible);
}

/* However a thread's slots are kept, none is lost when the thread ends. */
static void slots_come_back(void **state) {
    static struct all all;
    (void)state;
    run_all(&all);
    uint32_t used = slots_ever_used();
    for (int i = 0; i < 100; i++) run_all(&all);
    assert_in_range(slots_ever_used(), used, used + 2 * PARTIES * SLOT_CHUNK);
}

int main(void) {
#ifndef KEYS_COME_FIRST
    make_keys();
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_private_memory),
        cmocka_unit_test(slots_are_kept_if_possible),
        cmocka_unit_test(slots_come_back),
        cmocka_unit_test(in_a_segment), /* last: afterwards a thread of the library ends, which frees memory */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
