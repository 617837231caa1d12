/* SPDX-License-Identifier: MIT */
/*
 * What another language sees of Vigil: no header, no inline function, a library to open and the names in it. A lock is
 * a 32-bit word, a status is an int. The argument is the library's path.
 */
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, TIMED_OUT = 2, NOT_HELD = -18, I32 = 5 };

struct view {
    void *buffer;
    uint64_t byte_offset, length;
    int type;
};

static int (*mutex_lock)(uint32_t *), (*mutex_trylock)(uint32_t *), (*mutex_unlock)(uint32_t *);
static bool (*mutex_is_locked)(const uint32_t *);
static int (*sem_acquire)(uint32_t *, uint32_t), (*sem_tryacquire)(uint32_t *, uint32_t);
static int (*sem_release)(uint32_t *, uint32_t);
static uint32_t (*sem_value)(const uint32_t *);
static int (*rwlock_read_lock)(uint32_t *), (*rwlock_read_unlock)(uint32_t *);
static int (*rwlock_write_lock)(uint32_t *), (*rwlock_write_trylock)(uint32_t *), (*rwlock_write_unlock)(uint32_t *);
static int (*once_call)(uint32_t *, int (*)(void *), void *);
static bool (*once_is_done)(const uint32_t *);
static int (*buffer_create)(void **, uint64_t, uint64_t);
static int64_t (*buffer_destroy)(void *);
static int (*view_init)(struct view *, void *, int, uint64_t, uint64_t);
static int (*atomics_store)(struct view, uint64_t, int64_t), (*atomics_load)(struct view, uint64_t, int64_t *);
static int (*atomics_add)(struct view, uint64_t, int64_t, int64_t *);
static int64_t (*atomics_notify)(struct view, uint64_t, int64_t);

/* Stores the function of that name into `*function`. */
static void find(void *library, const char *name, void *function) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(function, &found, sizeof found);
}

static void find_all(void *library) {
#define FIND(name) find(library, "vigil_" #name, &name)
    FIND(mutex_lock), FIND(mutex_trylock), FIND(mutex_unlock), FIND(mutex_is_locked);
    FIND(sem_acquire), FIND(sem_tryacquire), FIND(sem_release), FIND(sem_value);
    FIND(rwlock_read_lock), FIND(rwlock_read_unlock);
    FIND(rwlock_write_lock), FIND(rwlock_write_trylock), FIND(rwlock_write_unlock);
    FIND(once_call), FIND(once_is_done);
    FIND(buffer_create), FIND(buffer_destroy), FIND(view_init);
    FIND(atomics_store), FIND(atomics_load), FIND(atomics_add), FIND(atomics_notify);
}

#define TIMES 20000
static uint32_t mutex;
static int count;

static void *contend(void *nothing) {
    for (int i = 0; i < TIMES; i++) {
        assert(mutex_lock(&mutex) == OK);
        count++;
        assert(mutex_unlock(&mutex) == OK);
    }
    return nothing;
}

static void use_mutex(void) {
    assert(mutex_unlock(&mutex) == NOT_HELD && !mutex_is_locked(&mutex));
    assert(mutex_trylock(&mutex) == OK && mutex_trylock(&mutex) == TIMED_OUT && mutex_is_locked(&mutex));
    assert(mutex_unlock(&mutex) == OK);

    pthread_t other;
    assert(pthread_create(&other, NULL, contend, NULL) == 0);
    contend(NULL);
    pthread_join(other, NULL);
    assert(count == 2 * TIMES);
}

static void use_sem(void) {
    uint32_t sem = 0;
    assert(sem_release(&sem, 3) == OK && sem_value(&sem) == 3);
    assert(sem_acquire(&sem, 2) == OK && sem_tryacquire(&sem, 2) == TIMED_OUT && sem_tryacquire(&sem, 1) == OK);
}

static void use_rwlock(void) {
    uint32_t lock = 0;
    assert(rwlock_read_lock(&lock) == OK && rwlock_read_lock(&lock) == OK && rwlock_write_trylock(&lock) == TIMED_OUT);
    assert(rwlock_read_unlock(&lock) == OK && rwlock_read_unlock(&lock) == OK);
    assert(rwlock_read_unlock(&lock) == NOT_HELD);
    assert(rwlock_write_lock(&lock) == OK && rwlock_write_unlock(&lock) == OK);
}

static int called(void *times) {
    ++*(int *)times;
    return OK;
}

static void use_once(void) {
    uint32_t once = 0;
    int times = 0;
    assert(!once_is_done(&once));
    assert(once_call(&once, called, &times) == OK && once_call(&once, called, &times) == OK);
    assert(once_is_done(&once) && times == 1);
}

static void use_atomics(void) {
    void *buffer;
    struct view view;
    int64_t old, now;
    assert(buffer_create(&buffer, 64, 64) == OK && view_init(&view, buffer, I32, 0, 16) == OK);
    assert(atomics_store(view, 3, 40) == OK && atomics_add(view, 3, 2, &old) == OK && old == 40);
    assert(atomics_load(view, 3, &now) == OK && now == 42 && atomics_notify(view, 3, 1) == 0);
    assert(buffer_destroy(buffer) == 0);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    find_all(dlopen(argv[1], RTLD_NOW));
    use_mutex();
    use_sem();
    use_rwlock();
    use_once();
    use_atomics();
    puts("mutex, semaphore, read-write lock, once and atomics, by name");
    return 0;
}
