// SPDX-License-Identifier: MIT
'use strict';
// What is measured: for each row, the contestants by name. Each function returns a figure, or a promise of one.

const { Worker } = require('node:worker_threads');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const vigil = require('../../node/lib/index.js');
const kinds = require('./kinds.js');
const { contend } = require('./contend.js');

const now = () => performance.now();
const atomics = { V8: Atomics, Vigil: vigil.Atomics };
const on = (measure) => ({ Vigil: () => measure(atomics.Vigil), V8: () => measure(atomics.V8) });
const locks = (measure) => ({ Vigil: () => measure(kinds.vigil), 'the article': () => measure(kinds.article) });
const alive = () => setInterval(() => {}, 1000); // V8's waitAsync does not keep the process alive

/* Nanoseconds for each of `count` calls; the least of some repetitions, so that the code is optimised. */
function each(count, repeat) {
  let least = Infinity;
  for (let i = 0; i < 7; i++) {
    const began = now();
    repeat(count);
    least = Math.min(least, ((now() - began) * 1e6) / count);
  }
  return least;
}

const words = () => new Int32Array(new SharedArrayBuffer(64));
const WAITERS = 100000;

const notifyNobody = ({ notify }) => {
  const array = words();
  return each(200000, (count) => { for (let i = 0; i < count; i++) notify(array, 3); });
};

const waitNotEqual = ({ wait }) => {
  const array = words();
  return each(200000, (count) => { for (let i = 0; i < count; i++) wait(array, 3, 1); });
};

/* Register, notify all, and run the reactions of all promises. */
async function waitMany({ waitAsync, notify }, part) {
  const array = words(), keep = alive();
  const times = { register: Infinity, settle: Infinity };
  for (let i = 0; i < 3; i++) {
    let ran = 0;
    const count = () => { ran++; };
    let began = now();
    for (let j = 0; j < WAITERS; j++) waitAsync(array, 0, 0).value.then(count);
    times.register = Math.min(times.register, ((now() - began) * 1e6) / WAITERS);
    began = now();
    notify(array, 0);
    while (ran < WAITERS) await new Promise(setImmediate);
    times.settle = Math.min(times.settle, ((now() - began) * 1e6) / WAITERS);
  }
  clearInterval(keep);
  return times[part];
}

async function timeouts({ waitAsync }) {
  const array = words(), keep = alive(), began = now();
  await Promise.all(Array.from({ length: WAITERS }, (_, i) => waitAsync(array, 0, 0, 1 + (i % 50)).value));
  clearInterval(keep);
  return now() - began;
}

/* The main thread waits asynchronously, the worker blocks. Word 0 is the main thread's turn. */
async function roundTrip(name) {
  const array = words(), { notify, waitAsync } = atomics[name], trips = 3000, keep = alive();
  const worker = new Worker(`
    const { workerData: { array, name, trips, lib } } = require('worker_threads');
    const { wait, notify } = name === 'V8' ? Atomics : require(lib).Atomics;
    for (let i = 0; i < trips; i++) {
      while (Atomics.load(array, 1) <= i) wait(array, 1, i);
      Atomics.add(array, 0, 1);
      notify(array, 0);
    }`, { eval: true, workerData: { array, name, trips, lib: require.resolve('../../node/lib/index.js') } });
  await new Promise((resolve) => worker.once('online', resolve));
  const began = now();
  for (let i = 0; i < trips; i++) {
    Atomics.add(array, 1, 1);
    notify(array, 1);
    while (Atomics.load(array, 0) <= i) await waitAsync(array, 0, i).value;
  }
  const took = now() - began;
  clearInterval(keep);
  return (took * 1000) / trips;
}

const lockUnlock = (kind) => {
  const lock = kind(new SharedArrayBuffer(64));
  return each(200000, (count) => { for (let i = 0; i < count; i++) { lock.lock(); lock.unlock(); } });
};

const executeLocked = (kind) => {
  const lock = kind(new SharedArrayBuffer(64));
  let ran = 0;
  const count = () => { ran++; };
  return each(50000, (times) => { for (let i = 0; i < times; i++) lock.executeLocked(count); });
};

const contended = (part) => ({
  Vigil: async () => (await contend('vigil', 1000))[part],
  'the article': async () => (await contend('article', 1000))[part],
});

/* An await of a lock that other processes could take, and its release. */
async function acquireRelease(count, acquire) {
  let least = Infinity;
  for (let i = 0; i < 5; i++) {
    const began = now();
    for (let j = 0; j < count; j++) (await acquire())();
    least = Math.min(least, ((now() - began) * 1000) / count);
  }
  return least;
}

const otherProcess = {
  async Vigil() {
    const name = `bench-node-${process.pid}`;
    const figure = await acquireRelease(20000, async () => {
      const lock = await vigil.locks.acquire(name);
      return () => lock.release();
    });
    return figure;
  },
  async 'Vigil, Mutex in a segment'() {
    const name = `bench-node-${process.pid}`, segment = vigil.Segment.create(name, { length: 4096 });
    const mutex = new vigil.Mutex(segment);
    const figure = await acquireRelease(50000, async () => {
      await mutex.lockAsync();
      return () => mutex.unlock();
    });
    segment.close();
    vigil.Segment.unlink(name);
    return figure;
  },
  async 'proper-lockfile'() {
    const lockfile = require('../../node/node_modules/proper-lockfile');
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'vigil-bench-'));
    const file = path.join(folder, 'file');
    fs.writeFileSync(file, '');
    const figure = await acquireRelease(50, () => lockfile.lock(file));
    fs.rmSync(folder, { recursive: true });
    return figure;
  },
  async 'async-mutex (one thread)'() {
    const mutex = new (require('../../node/node_modules/async-mutex').Mutex)();
    return acquireRelease(20000, () => mutex.acquire());
  },
};

/* worker.terminate() of a worker that blocks. */
async function terminate(name) {
  const array = words();
  const worker = new Worker(`
    const { workerData: { array, name, lib } } = require('worker_threads');
    const { wait } = name === 'V8' ? Atomics : require(lib).Atomics;
    Atomics.store(array, 1, 1);
    wait(array, 0, 0);`, { eval: true, workerData: { array, name, lib: require.resolve('../../node/lib/index.js') } });
  while (Atomics.load(array, 1) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const began = now();
  await worker.terminate();
  return now() - began;
}

const rows = [
  ['notify_nobody', 'notify with no waiter', 'ns', on(notifyNobody), '1.0x V8'],
  ['wait_not_equal', 'wait on a word that holds another value', 'ns', on(waitNotEqual), '0.5x V8'],
  ['wait_async_register', 'one of 100,000 waitAsync', 'ns', on((a) => waitMany(a, 'register')), '0.7x V8'],
  ['wait_async_settle', 'then notify all and run the reactions, each', 'ns',
    on((a) => waitMany(a, 'settle')), '0.2x V8'],
  ['wait_async_timeouts', '100,000 timeouts of 1 to 50 ms, until all have settled', 'ms', on(timeouts), '0.1x V8'],
  ['round_trip', 'main thread with waitAsync, worker with wait', 'us',
    { Vigil: () => roundTrip('Vigil'), V8: () => roundTrip('V8') }, '0.6x V8'],
  ['lock_unlock', 'lock and unlock of an AsyncLock that is free', 'ns', locks(lockUnlock), '0.5x the article'],
  ['execute_locked', 'executeLocked of one that is free', 'ns', locks(executeLocked), ''],
  ['contended', '4 workers and the main thread at one AsyncLock: grants', 'per ms, more is better', contended('perMs'),
    '1.5x the article'],
  ['contended_main_share', "of these, the main thread's, relative to a fifth", 'x, more is better',
    contended('mainShare'), '0.6'],
  ['other_process', 'await and release a free lock that other processes share', 'us', otherProcess, '1 us'],
  ['terminate', 'worker.terminate() while the worker blocks', 'ms',
    { Vigil: () => terminate('Vigil'), V8: () => terminate('V8') }, '15 ms'],
].map(([name, what, unit, contestants, wanted]) => ({ name, what, unit, contestants, wanted }));

module.exports = { rows };
