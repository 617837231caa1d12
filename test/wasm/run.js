#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// run.js TEST.wasm - run a unit test as WebAssembly, with the exit status of its main.
//
// All its threads, also the first one, are workers, each with an instance of the module (thread.js). This thread
// starts them and ends the process, and must not sleep: a thread that starts another one may go to sleep at once, and
// one that fails must be able to end all others. A worker whose thread has ended is used again, since starting one
// takes longer than most tests.
'use strict'
const fs = require('node:fs')
const path = require('node:path')
const {Worker} = require('node:worker_threads')

const file = process.argv[2]
const name = path.basename(file).replace(/^unit_|\.wasm$/g, '')
const module_ = new WebAssembly.Module(fs.readFileSync(file))
const memory = new WebAssembly.Memory({initial: 64, maximum: 16384, shared: true}) // as in cmake/wasm.cmake
const idle = []

function newWorker() {
    const worker = new Worker(path.join(__dirname, 'thread.js'), {workerData: {name, module: module_, memory}})
    worker.on('message', (message) => {
        if (message.start) run(message.start)
        else if (message.exit !== undefined) process.exit(message.exit)
        else idle.push(worker)
    })
    worker.on('error', (error) => {
        fs.writeSync(2, `${error.stack}\n`)
        process.exit(1)
    })
    return worker
}

function run(thread) {
    const worker = idle.pop() || newWorker()
    worker.postMessage(thread)
}

run({main: 0, argument: 0})
