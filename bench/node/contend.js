// SPDX-License-Identifier: MIT
'use strict';
// Four workers and the main thread at one lock: how often each gets it in a second.

const { Worker, isMainThread, workerData } = require('node:worker_threads');
const kinds = require('./kinds.js');

const WORKERS = 4;

/* What the holder does: some 0.2 us. */
function critical(array) {
  let x = array[1];
  for (let i = 0; i < WORK; i++) x = (Math.imul(x, 1103515245) + 12345) | 0;
  array[28] = x;
  array[1]++;
}
const WORK = +process.env.WORK || 0;

/* Everyone counts its own grants, and the total, which only the holder changes: grants that overlap would be seen. */
function work(array, lock, self) {
  lock.lock();
  critical(array);
  lock.unlock();
  Atomics.add(array, 2 + self, 1);
}

function worker({ sab, kind, self }) {
  const array = new Int32Array(sab, 64), lock = kinds[kind](sab);
  Atomics.add(array, 0, 1);
  while (Atomics.load(array, 30) === 0);
  while (Atomics.load(array, 31) === 0) for (let i = 0; i < 100; i++) work(array, lock, self);
}

/* The main thread does not block: while it is served at once it goes on asking, otherwise when it has been served. */
function serve(array, lock) {
  return new Promise((resolve) => {
    let served = false, waits = false;
    const ask = () => {
      for (let i = 0; i < 100; i++) {
        if (Atomics.load(array, 31) !== 0) return resolve();
        served = false;
        lock.executeLocked(grant);
        if (!served) {
          waits = true;
          return;
        }
      }
      setImmediate(ask);
    };
    const grant = () => {
      critical(array);
      Atomics.add(array, 2 + WORKERS, 1);
      served = true;
      if (waits) queueMicrotask(ask);
      waits = false;
    };
    ask();
  });
}

async function contend(kind, ms) {
  const sab = new SharedArrayBuffer(256), array = new Int32Array(sab, 64), lock = kinds[kind](sab);
  const workers = Array.from({ length: WORKERS }, (_, self) =>
    new Worker(__filename, { workerData: { sab, kind, self } }));
  const stop = new Worker(`const { workerData: [a, ms] } = require('worker_threads');
    Atomics.wait(a, 30, 0); Atomics.wait(a, 29, 0, ms); Atomics.store(a, 31, 1);`,
    { eval: true, workerData: [array, ms] });
  const ended = [...workers, stop].map((each) => new Promise((resolve) => each.once('exit', resolve)));
  while (Atomics.load(array, 0) < WORKERS) await new Promise((resolve) => setTimeout(resolve, 1));
  Atomics.store(array, 30, 1);
  Atomics.notify(array, 30);
  const began = performance.now();
  await serve(array, lock);
  const took = performance.now() - began;
  await Promise.all(ended);
  const grants = Array.from(array.subarray(2, 3 + WORKERS)), total = grants.reduce((a, b) => a + b);
  if (total !== array[1]) throw new Error(`${kind}: ${total} grants, ${array[1]} counted under the lock`);
  return { perMs: total / took, mainShare: grants[WORKERS] / (total / (WORKERS + 1)), grants };
}

if (isMainThread) module.exports = { contend };
else worker(workerData);
