/* SPDX-License-Identifier: MIT */
/* The atomics of prim.h as calls into the simulator: each is a moment at which another fiber may run. */
#ifndef VIGIL_PRIM_ATOMIC_H
#define VIGIL_PRIM_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_order { SIM_RELAXED, SIM_ACQUIRE, SIM_RELEASE, SIM_ACQ_REL, SIM_SEQ_CST };
enum sim_change { SIM_EXCHANGE, SIM_ADD, SIM_OR, SIM_AND };

/* Where in the source an access is, for the trace. */
struct sim_site {
    const char *operation;
    const char *expression;
    const char *file;
    int line;
};

uint64_t sim_load(const volatile void *variable, size_t size, enum sim_order order, const struct sim_site *site);
void sim_store(volatile void *variable, size_t size, uint64_t value, enum sim_order order, const struct sim_site *site);
uint64_t sim_update(volatile void *variable, size_t size, enum sim_change change, uint64_t operand,
                    enum sim_order order, const struct sim_site *site);
bool sim_cas(volatile void *variable, size_t size, void *expected, uint64_t value, enum sim_order order,
             const struct sim_site *site);
void sim_fence_seq_cst(const struct sim_site *site);
void sim_fence_everywhere(const struct sim_site *site);
void sim_pause(const struct sim_site *site);

#define SIM_BITS(v) ((uint64_t)(uintptr_t)(v))
/* The type of *p without its qualifiers: what the comma operator yields. */
#define SIM_TYPE(p) __typeof__(((void)0, *(p)))
/* Does `call`, in which `sim_site` is this site in the source. A statement expression's value may be left unused. */
#define SIM_AT(operation, expression, call)                                                                            \
    __extension__({                                                                                                    \
        static const struct sim_site sim_site = {operation, expression, __FILE__, __LINE__};                           \
        call;                                                                                                          \
    })

#define SIM_LOAD(p, order, text) SIM_AT(text, #p, (SIM_TYPE(p))(uintptr_t)sim_load((p), sizeof *(p), order, &sim_site))
#define prim_load_relaxed(p)     SIM_LOAD(p, SIM_RELAXED, "load relaxed")
#define prim_load_acquire(p)     SIM_LOAD(p, SIM_ACQUIRE, "load acquire")
#define prim_load_seq_cst(p)     SIM_LOAD(p, SIM_SEQ_CST, "load seq_cst")
#define prim_peek(p)             (*(p))

#define SIM_STORE(p, v, order, text) SIM_AT(text, #p, sim_store((p), sizeof *(p), SIM_BITS(v), order, &sim_site))
#define prim_store_relaxed(p, v)     SIM_STORE(p, v, SIM_RELAXED, "store relaxed")
#define prim_store_release(p, v)     SIM_STORE(p, v, SIM_RELEASE, "store release")
#define prim_store_seq_cst(p, v)     SIM_STORE(p, v, SIM_SEQ_CST, "store seq_cst")

#define SIM_UPDATE(p, change, v, order, text)                                                                          \
    SIM_AT(text, #p, (SIM_TYPE(p))(uintptr_t)sim_update((p), sizeof *(p), change, SIM_BITS(v), order, &sim_site))
#define prim_exchange_acq_rel(p, v)  SIM_UPDATE(p, SIM_EXCHANGE, v, SIM_ACQ_REL, "exchange acq_rel")
#define prim_exchange_relaxed(p, v)  SIM_UPDATE(p, SIM_EXCHANGE, v, SIM_RELAXED, "exchange relaxed")
#define prim_fetch_add_acq_rel(p, v) SIM_UPDATE(p, SIM_ADD, v, SIM_ACQ_REL, "add acq_rel")
#define prim_fetch_or_acq_rel(p, v)  SIM_UPDATE(p, SIM_OR, v, SIM_ACQ_REL, "or acq_rel")
#define prim_fetch_and_acq_rel(p, v) SIM_UPDATE(p, SIM_AND, v, SIM_ACQ_REL, "and acq_rel")

#define SIM_CAS(p, e, v, order, text) SIM_AT(text, #p, sim_cas((p), sizeof *(p), (e), SIM_BITS(v), order, &sim_site))
#define prim_cas_acquire(p, e, v)     SIM_CAS(p, e, v, SIM_ACQUIRE, "cas acquire")
#define prim_cas_release(p, e, v)     SIM_CAS(p, e, v, SIM_RELEASE, "cas release")
#define prim_cas_acq_rel(p, e, v)     SIM_CAS(p, e, v, SIM_ACQ_REL, "cas acq_rel")
#define prim_cas_seq_cst(p, e, v)     SIM_CAS(p, e, v, SIM_SEQ_CST, "cas seq_cst")

/* No other fiber sees these accesses: only a signal may come here. */
void sim_signal_point(void);
#define prim_own_load(p)     (sim_signal_point(), *(p))
#define prim_own_store(p, v)                                                                                           \
    __extension__({                                                                                                    \
        SIM_TYPE(p) sim_value = (v);                                                                                   \
        sim_signal_point();                                                                                            \
        *(p) = sim_value;                                                                                              \
        (void)0;                                                                                                       \
    })
#define prim_own_cas(p, e, v)                                                                                          \
    __extension__({                                                                                                    \
        SIM_TYPE(p) sim_value = (v);                                                                                   \
        sim_signal_point();                                                                                            \
        bool sim_equal = *(p) == *(e);                                                                                 \
        *(sim_equal ? (p) : (e)) = sim_equal ? sim_value : *(p);                                                       \
        sim_equal;                                                                                                     \
    })

#define prim_fence_seq_cst() SIM_AT("fence seq_cst", "", sim_fence_seq_cst(&sim_site))
#define prim_exchange_and_fence(p, v)                                                                                  \
    __extension__({                                                                                                    \
        SIM_TYPE(p) sim_before = SIM_UPDATE(p, SIM_EXCHANGE, v, SIM_SEQ_CST, "exchange seq_cst");                      \
        prim_fence_seq_cst();                                                                                          \
        sim_before;                                                                                                    \
    })
#define prim_signal_fence()  ((void)0) /* operations are in the order of the program */
#define prim_pause()         SIM_AT("pause", "", sim_pause(&sim_site))

#endif
