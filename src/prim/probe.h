/* SPDX-License-Identifier: MIT */
/*
 * probe.h - points for tracing tools (bpftrace, perf, systemtap) to look at: USDT probes, a no-op each until a tool
 * is attached. None where the system lacks their header.
 *
 *     vigil:lock_contended   a waiter has joined the line of a lock
 *     vigil:lock_granted     a waiter has got the lock
 *     vigil:lock_released    the holder has released the lock, and looked at the line
 *     vigil:lock_reserved    and has reserved it for the head of the line
 *
 * Each has the address of the lock's word, which is that of the mutex, semaphore or read-write lock:
 *
 *     bpftrace -e 'usdt:libvigil.so:vigil:lock_contended { @[arg0] = count(); }'
 */
#ifndef VIGIL_PROBE_H
#define VIGIL_PROBE_H

#if defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#if defined(__clang__) /* its macros are not quite C11 */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#define PROBE(name, address) DTRACE_PROBE1(vigil, name, address)
#endif
#endif
#ifndef PROBE
#define PROBE(name, address) ((void)(address))
#endif

#endif
