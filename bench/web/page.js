// SPDX-License-Identifier: MIT
// What is measured in a page: window.measure(row, contestant) returns a promise of the figure.

import { createShared, open, work } from './locks.js';

const RUN_MS = 2000, STOP = 8;
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/* A worker that is ready; `figure` is a promise of what it returns. */
async function start(message) {
  const worker = new Worker('./worker.js', { type: 'module' });
  let finish;
  const figure = new Promise((resolve) => { finish = resolve; });
  await new Promise((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(event.message));
    worker.onmessage = ({ data }) => (data === 'ready' ? resolve() : finish(data.figure));
    worker.postMessage(message);
  });
  return { worker, figure };
}

async function uncontended({ shared }) {
  const { figure } = await start({ task: 'uncontended', shared });
  return figure;
}

/* Two workers and the page: how long the page waited at most, and how many grants there were. */
async function contend({ shared, vigil }, held, outside) {
  const { lock } = await open(shared, vigil), { words } = shared;
  const workers = [];
  for (let i = 0; i < 2; i++) workers.push(await start({ task: 'contend', shared, held, outside }));
  let worst = 0, grants = 0;
  for (const end = performance.now() + RUN_MS; performance.now() < end; grants++) {
    const began = performance.now();
    await new Promise((resolve) => {
      lock.executeLocked(() => {
        worst = Math.max(worst, performance.now() - began);
        work(held);
        resolve();
      });
    });
    await pause(0);
  }
  Atomics.store(words, STOP, 1);
  for (const { figure } of workers) grants += await figure;
  return { worst, grants: grants / (RUN_MS / 1000) };
}

/*
 * The page waits asynchronously, the worker blocks. Word 1 is the page's turn. For each contestant alike, the first
 * trips are not counted: the browser compiles scripts and WebAssembly meanwhile, on threads that compete for the
 * processors.
 */
async function roundTrip({ shared, vigil }, before, trips) {
  const { waits } = await open(shared, vigil), { words } = shared;
  const { figure } = await start({ task: 'answer', shared, trips: before + trips });
  let began;
  for (let i = 0; i < before + trips; i++) {
    if (i === before) began = performance.now();
    Atomics.add(words, 2, 1);
    waits.notify(words, 2);
    while (Atomics.load(words, 1) <= i) {
      const { async, value } = waits.waitAsync(words, 1, i);
      if (async) await value;
    }
  }
  const took = performance.now() - began;
  await figure;
  return (took * 1000) / trips;
}

const rows = {
  web_lock_unlock: uncontended,
  web_page_worst_wait: async (shared) => (await contend(shared, 1, 0)).worst,
  web_light_contention: async (shared) => (await contend(shared, 0.02, 0.1)).grants,
  web_round_trip: (shared) => roundTrip(shared, 20000, 20000),
  web_round_trip_first: (shared) => roundTrip(shared, 0, 5000),
};

window.measure = async (row, contestant) => rows[row](await createShared(contestant));
document.documentElement.dataset.ready = 'true';
