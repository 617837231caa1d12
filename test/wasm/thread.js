// SPDX-License-Identifier: MIT
//
// thread.js - a worker that runs threads of a unit test, one after the other: see run.js, and E1 to E7 in
// src/prim/wasm/prim_wasm.h.
'use strict'
const fs = require('node:fs')
const os = require('node:os')
const {parentPort, workerData} = require('node:worker_threads')
const leftOut = require('./left_out.js')

const {name, module: module_, memory} = workerData
const STACK_BYTES = 256 * 1024 // prim_park_any's callers, and tests, have arrays there
const ENDED = new Error('the program has ended')
let number // of the thread that runs

const text = (address, bytes) => Buffer.from(new Uint8Array(memory.buffer, address, bytes)) // a copy
const env = {
    memory,
    vigil_now: () => performance.timeOrigin + performance.now(),
    vigil_processors: () => os.availableParallelism(),
    vigil_alarm() {}, // poll, in libc.c, reads it in the bell
    vigil_thread_start(main, argument) {
        parentPort.postMessage({start: {main, argument}})
        return 1
    },
    vigil_spin() {},
    vigil_write(fd, address, bytes) {
        fs.writeSync(fd, text(address, bytes))
        return 1
    },
    wasm_exit(status) {
        parentPort.postMessage({exit: status})
        throw ENDED
    },
    wasm_is_left_out(address, bytes) {
        const test = text(address, bytes).toString('latin1')
        const reason = leftOut[name]?.[test]
        if (reason) fs.writeSync(2, `[  LEFT OUT ] ${test}: ${reason}\n`)
        return reason ? 1 : 0
    },
}

const wasm = new WebAssembly.Instance(module_, {env}).exports
const firstStack = wasm.__stack_pointer.value
const door = wasm.prim_wasm_door.value / 4

function behindDoor(number, action) {
    const words = new Int32Array(memory.buffer)
    while (Atomics.compareExchange(words, door, 0, 2 * number) !== 0);
    try {
        return action()
    } finally {
        if (Atomics.exchange(words, door, 0) & 1) Atomics.notify(words, door, 1)
    }
}

function begin() {
    number = Atomics.add(new Int32Array(memory.buffer), wasm.prim_wasm_threads.value / 4, 1) + 1
    const area = behindDoor(number, () => wasm.prim_wasm_take_area(STACK_BYTES))
    if (!area) throw new Error('no memory for a stack')
    wasm.__stack_pointer.value = area + STACK_BYTES
    wasm.__wasm_init_tls(area + STACK_BYTES)
    wasm.prim_wasm_begin_thread(1, number)
    return area
}

function end(area) {
    wasm.prim_wasm_end_thread()
    wasm.__stack_pointer.value = firstStack
    behindDoor(number, () => wasm.prim_wasm_give_area(area))
}

parentPort.on('message', ({main, argument}) => {
    const area = begin()
    try {
        if (main) wasm.__indirect_function_table.get(main)(argument)
        else wasm.wasm_main()
    } catch (error) {
        if (error !== ENDED) throw error
        return
    }
    end(area)
    parentPort.postMessage({})
})
