// SPDX-License-Identifier: MIT
'use strict';
// The AsyncLock of https://v8.dev/features/atomics: workers block in lock(), the main thread uses executeLocked().

const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { AsyncLock } = require('..'); // '@vigil/node' where it is installed

const ROUNDS = 10000;

/* Not atomic: it is the lock that keeps two from doing it at once. */
function increment(counter) {
  counter[1] = counter[1] + 1;
}

function inWorker() {
  const lock = new AsyncLock(workerData), counter = new Int32Array(workerData);
  for (let i = 0; i < ROUNDS; i++) {
    lock.lock();
    increment(counter);
    lock.unlock();
  }
}

async function inMain() {
  const sab = new SharedArrayBuffer(16); // the lock is in its first element
  const lock = new AsyncLock(sab), counter = new Int32Array(sab);
  const workers = [1, 2].map(() => new Worker(__filename, { workerData: sab }));
  const ended = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
  let left = 100;
  await new Promise((resolve) => {
    const next = () => {
      increment(counter);
      if (--left === 0) resolve();
      else setImmediate(() => lock.executeLocked(next));
    };
    lock.executeLocked(next);
  });
  await Promise.all(ended);
  lock.executeLocked(() => console.log(`${counter[1]} increments`));
}

if (isMainThread) inMain();
else inWorker();
