// SPDX-License-Identifier: MIT
import { open, work } from './locks.js';

const STOP = 8; // this word says when to stop

/* Nanoseconds for locking and unlocking, without contention: the least of some repetitions. */
function uncontended({ lock }) {
  let least = Infinity;
  for (let i = 0; i < 10; i++) {
    const began = performance.now();
    for (let j = 0; j < 100000; j++) {
      lock.lock();
      lock.unlock();
    }
    least = Math.min(least, (performance.now() - began) * 10);
  }
  return least;
}

function contend({ lock }, { words, held, outside }) {
  let grants = 0;
  for (; Atomics.load(words, STOP) === 0; grants++) {
    lock.lock();
    work(held);
    lock.unlock();
    work(outside);
  }
  return grants;
}

/* Until the page is closed. */
function answer({ waits }, { words }) {
  for (let i = 0; ; i++) {
    while (Atomics.load(words, 2) <= i) waits.wait(words, 2, i);
    Atomics.add(words, 1, 1);
    waits.notify(words, 1);
  }
}

const tasks = { uncontended, contend, answer };

onmessage = async ({ data: { task, shared, ...rest } }) => {
  const opened = await open(shared);
  postMessage('ready');
  const figure = tasks[task](opened, { words: shared.words, ...rest });
  opened.close();
  postMessage({ figure });
};
