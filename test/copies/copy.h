/* SPDX-License-Identifier: MIT */
/* The functions of one copy of the library: what the shared objects of the test export. */
#ifndef VIGIL_TEST_COPY_H
#define VIGIL_TEST_COPY_H

#define VIGIL_NO_INLINE
#include <vigil/vigil.h>

struct copy {
    __typeof__(vigil_wait32) *wait32;
    __typeof__(vigil_wait32_async) *wait32_async;
    __typeof__(vigil_notify) *notify;
    __typeof__(vigil_waiters) *waiters;
    __typeof__(vigil_forget) *forget;
    __typeof__(vigil_agent_create) *agent_create;
    __typeof__(vigil_agent_destroy) *agent_destroy;
    __typeof__(vigil_agent_run) *agent_run;
    __typeof__(vigil_mutex_lock) *mutex_lock;
    __typeof__(vigil_mutex_lock_for) *mutex_lock_for;
    __typeof__(vigil_mutex_unlock) *mutex_unlock;
    __typeof__(vigil_mutex_lock_async) *mutex_lock_async;
    __typeof__(vigil_sem_acquire) *sem_acquire;
    __typeof__(vigil_sem_release) *sem_release;
    __typeof__(vigil_cond_signal) *cond_signal;
    __typeof__(vigil_once_call) *once_call;
    __typeof__(vigil_segment_create_anonymous) *segment_create_anonymous;
    __typeof__(vigil_buffer_destroy) *buffer_destroy;
    __typeof__(vigil_buffer_data) *buffer_data;
};

#define COPY_CALLS                                                                                                     \
    {                                                                                                                  \
        vigil_wait32, vigil_wait32_async, vigil_notify, vigil_waiters, vigil_forget, vigil_agent_create,               \
            vigil_agent_destroy, vigil_agent_run, vigil_mutex_lock, vigil_mutex_lock_for, vigil_mutex_unlock,          \
            vigil_mutex_lock_async, vigil_sem_acquire, vigil_sem_release, vigil_cond_signal, vigil_once_call,          \
            vigil_segment_create_anonymous, vigil_buffer_destroy, vigil_buffer_data                                    \
    }

#endif
