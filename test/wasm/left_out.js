// SPDX-License-Identifier: MIT
//
// left_out.js - by program, the tests that make no sense in WebAssembly, and why. (test/CMakeLists.txt leaves out whole
// programs.) A test that calls what is absent there fails, with a message, until it is listed here.
'use strict'

const FILES = 'needs files or descriptors'
const FORK = 'forks'
const SIGNAL = 'needs signals'

module.exports = {
    agent: {
        create_without_descriptors: FILES,
        destroy_gives_descriptors_and_seats_back: FILES,
        the_descriptor_stays_the_same: FILES,
        fits_level_and_edge_triggered_epoll: FILES,
    },
    async: {
        a_callback_starts_its_own_operation_again: 'keeps 64 bits in a pointer',
    },
    atomics: {
        destroying_a_buffer_wakes_its_threads: FILES,
    },
    barrier: {
        as_many_parties_as_there_can_be: 'needs more waiters than there can be (PRIM_CHUNK_LIMIT)',
    },
    check: {
        without_a_handler_it_goes_to_stderr: FILES,
        the_child_of_a_fork_can_go_on: FORK,
    },
    interrupt: {
        from_a_signal_handler: SIGNAL,
        in_the_child_of_a_fork: FORK,
        counted: 'takes too long: each of 20,000 interruptions is noticed within PRIM_SLICE_NS',
    },
    lock_peers: {
        parking_lot_515_a_child_of_a_process_with_a_line: FORK,
        parking_lot_515_reserved_for_one_the_child_has_not: FORK,
    },
    memory: {
        a_growable_buffer: 'needs 8 GiB of address space',
    },
    mutex_async: {
        a_callback_that_forks: FORK,
    },
    once: {
        the_function_may_fork: FORK,
    },
    peers: {
        no_stale_queues_after_fork: FORK,
        a_wait_inside_a_wait: SIGNAL,
        memory_is_bounded_by_those_who_wait: FILES,
    },
    robust_mutex: {
        the_child_of_a_fork_can_unlock_it: FORK,
        the_next_one_is_told: 'needs pthread_exit and pthread_cancel',
    },
    wait: {
        without_memory_an_error: FORK,
        signals_do_not_end_a_wait: SIGNAL,
        signals_do_not_move_a_deadline: SIGNAL,
    },
}
