// SPDX-License-Identifier: MIT
// A worker of the shop: it blocks, and does nothing else.

import { Vigil } from './vigil/vigil.js';
import { JOBS, JOB_COUNT, MORE_JOBS, Note, ORDERS, PAUSE, PRICES, PRINTERS, READS, ROLES, WRITES, durationOf }
  from './lines_shop.js';

const sleepWord = new Int32Array(new SharedArrayBuffer(4));
const sleep = (kind) => Atomics.wait(sleepWord, 0, 0, durationOf(kind));

/* What a worker can do: each waits for a lock, holds it for that long, and releases it. */
function createTasks(vigil, array, note) {
  const orders = new vigil.Mutex(array, ORDERS), prices = new vigil.RwLock(array, PRICES);
  const printers = new vigil.Semaphore(array, PRINTERS), jobs = new vigil.Mutex(array, JOBS);
  const moreJobs = new vigil.Condition(array, MORE_JOBS);

  function hold(place, mode, acquire, howLong) {
    const release = acquire();
    note.write(place, mode);
    sleep(howLong);
    note.write(-1);
    release();
  }

  function takeJob(howLong) {
    jobs.lock();
    while (array[JOB_COUNT] === 0) moreJobs.wait(jobs);
    array[JOB_COUNT]--;
    note.write(JOBS);
    sleep(howLong);
    note.write(-1);
    jobs.unlock();
  }

  return {
    orders: (howLong) => hold(ORDERS, WRITES, () => orders.acquireSync(), howLong),
    print: (howLong) => hold(PRINTERS, WRITES, () => printers.acquireSync(), howLong),
    'read prices': (howLong) => hold(PRICES, READS, () => prices.acquireReadSync(), howLong),
    'write prices': (howLong) => hold(PRICES, WRITES, () => prices.acquireWriteSync(), howLong),
    'take job': takeJob,
  };
}

self.addEventListener('message', async ({ data: { handle, array, notes, number } }) => {
  const vigil = await Vigil.attach(handle), note = new Note(notes, number);
  const tasks = createTasks(vigil, array, note), { day } = ROLES[number - 1];
  self.postMessage(vigil.thread);
  note.write(-1);
  for (let step = 0; ; step = (step + 1) % day.length) {
    vigil.wait(array, PAUSE, 1); // 1: the shop is closed for a while
    const [task, howLong] = day[step];
    tasks[task](howLong);
    sleep('rest');
  }
});
