/* SPDX-License-Identifier: MIT */
/*
 * process.c - several processes in one program: the variables that each of them has of its own.
 *
 * The processes of an execution share all memory but one section: the variables that are marked PRIM_PROCESS, both
 * the library's and the simulator's. The section holds those of the process that the running fiber belongs to. Those
 * of the other processes are kept in images, and are swapped in when a fiber of another process goes on, as with
 * virtual memory. At the beginning of an execution every process finds there what the program began with.
 *
 * So one address is a different variable in each process. Wherever variables are compared (memory.c, race.c, fiber.c),
 * one of a process is identified by its copy in that process's image: sim_address_of.
 *
 * Process 0 is the one that setup and finish belong to.
 */
#include "engine.h"

#include <string.h>

#define IMAGE_BYTES (32u << 10)

extern char __start_vigil_process[], __stop_vigil_process[]; /* from the linker */

unsigned sim_process;

static _Alignas(64) char initial[IMAGE_BYTES], images[SIM_PROCESSES][IMAGE_BYTES];
static bool begun[SIM_PROCESSES], dead[SIM_PROCESSES];

static size_t process_section_bytes(void) {
    return (size_t)(__stop_vigil_process - __start_vigil_process);
}

static size_t process_offset_of(const volatile void *variable) {
    return (uintptr_t)variable - (uintptr_t)__start_vigil_process;
}

const volatile void *sim_address_elsewhere(const volatile void *variable) {
    return process_offset_of(variable) < process_section_bytes() ? images[sim_process] + process_offset_of(variable)
                                                                 : variable;
}

void sim_new_process(void) {
    memcpy(__start_vigil_process, initial, process_section_bytes());
}

void sim_process_enter(unsigned process) {
    if (process == sim_process) {
        return;
    }
    memcpy(images[sim_process], __start_vigil_process, process_section_bytes());
    memcpy(__start_vigil_process, begun[process] ? images[process] : initial, process_section_bytes());
    begun[process] = true;
    sim_process = process;
}

void sim_within(unsigned process, void (*call)(void)) {
    sim_process_enter(process);
    call();
    sim_process_enter(0);
}

bool sim_dead(unsigned process) {
    return dead[process];
}

void sim_process_died(unsigned process) {
    dead[process] = true;
}

void sim_process_reset(void) {
    static bool saved;
    if (!saved) {
        sim_check(process_section_bytes() <= IMAGE_BYTES, "the variables of a process are of %zu bytes",
                  process_section_bytes());
        memcpy(initial, __start_vigil_process, process_section_bytes());
        saved = true;
    }
    sim_process = 0;
    sim_new_process();
    memset(begun, 0, sizeof begun);
    begun[0] = true;
    memset(dead, 0, sizeof dead);
}
