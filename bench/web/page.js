// SPDX-License-Identifier: MIT
// What is measured in a page: window.prepare(row, contestants), then window.measure() returns a promise of the figures
// of each, as many for one as for the other.

import { createShared, open, work } from './locks.js';

const RUN_MS = 2000, STOP = 8;
/* Of round trips. */
const TRIPS = 500, BLOCKS_BEFORE = 30, BLOCKS = 30;
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
 * Round trips: the page waits asynchronously in each, the worker blocks. Word 1 counts the page's turns, word 2 those
 * of the worker. Returns a function that makes some of them, and returns how many microseconds one has taken.
 */
async function createTrips({ shared, vigil }) {
  const { waits } = await open(shared, vigil), { words } = shared;
  await start({ task: 'answer', shared });
  let turn = 0;
  return async (trips) => {
    const began = performance.now();
    for (const end = turn + trips; turn < end; turn++) {
      const { value } = waits.waitAsync(words, 1, turn);
      Atomics.add(words, 2, 1);
      waits.notify(words, 2);
      await value;
      if (Atomics.load(words, 1) !== turn + 1) throw new Error('the page was woken too early');
    }
    return ((performance.now() - began) * 1000) / trips;
  };
}

/*
 * Blocks of round trips, the contestants in turn, each beginning every other time. The first blocks are not counted:
 * the browser compiles scripts and WebAssembly meanwhile, on threads that compete for the processors.
 */
async function blocksInTurn(contestants) {
  const figures = contestants.map(() => []);
  for (let block = -BLOCKS_BEFORE; block < BLOCKS; block++) {
    for (let i = 0; i < contestants.length; i++) {
      const which = Math.abs(i + block) % contestants.length;
      const figure = await contestants[which](TRIPS);
      if (block >= 0) figures[which].push(figure);
      await pause(0);
    }
  }
  return figures;
}

async function each(contestants, measure) {
  const figures = [];
  for (const contestant of contestants) figures.push([await measure(contestant)]);
  return figures;
}
const simple = (figureOf) => ({ prepare: (shared) => shared, measure: (all) => each(all, figureOf) });
const trips = { prepare: createTrips, measure: blocksInTurn };

const rows = {
  web_lock_unlock: simple(uncontended),
  web_page_worst_wait: simple(async (shared) => (await contend(shared, 1, 0)).worst),
  web_light_contention: simple(async (shared) => (await contend(shared, 0.02, 0.1)).grants),
  web_round_trip: trips,
  web_round_trip_apart: trips,
  web_round_trip_first: { prepare: createTrips, measure: (all) => each(all, (go) => go(5000)) },
};

let prepared, measured;
window.prepare = async (row, names) => {
  measured = rows[row], prepared = [];
  for (const name of names) prepared.push(await measured.prepare(await createShared(name)));
};
window.measure = () => measured.measure(prepared);
document.documentElement.dataset.ready = 'true';
