// SPDX-License-Identifier: MIT
'use strict';
// The shared lock of the chapter "Shared memory and atomics": the main thread unlocks what a worker waits for. In place
// of a click on a button there is a timer.

const { Worker, isMainThread, parentPort } = require('node:worker_threads');
const { Lock } = require('..'); // '@vigil/node' where it is installed

if (isMainThread) {
  const worker = new Worker(__filename);

  // Set up the shared memory
  const sharedBuffer = new SharedArrayBuffer(1 * Int32Array.BYTES_PER_ELEMENT);
  const sharedArray = new Int32Array(sharedBuffer);

  // Set up the lock
  Lock.initialize(sharedArray, 0);
  const lock = new Lock(sharedArray, 0);
  lock.lock(); // writes to sharedBuffer

  worker.postMessage({ sharedBuffer }); // (A)

  worker.on('message', (text) => {
    console.log(text);
    if (text === 'Waiting for lock...') setTimeout(() => lock.unlock(), 100); // (B)
  });
} else {
  parentPort.once('message', function (data) {
    const { sharedBuffer } = data;
    const lock = new Lock(new Int32Array(sharedBuffer), 0);

    parentPort.postMessage('Waiting for lock...'); // (A)
    lock.lock(); // (B) blocks!
    parentPort.postMessage('Unlocked'); // (C)
  });
}
