// SPDX-License-Identifier: MIT
// The contestants: Vigil's AsyncLock, and that of the article in pure JavaScript.

import { AsyncLock } from '/demo/article_lock.js';
import { Vigil } from '/vigil/vigil.js';

/* In the page: memory for words, and what a worker needs to use them. */
export async function createShared(contestant) {
  if (contestant !== 'Vigil') return { shared: { contestant, words: new Int32Array(new SharedArrayBuffer(64)) } };
  const vigil = await Vigil.create();
  return { shared: { contestant, words: vigil.allocate(16), handle: vigil.handle }, vigil };
}

/* In the page and in workers: the lock in the first word, and wait, waitAsync and notify. */
export async function open({ contestant, words, handle }, vigil) {
  if (contestant !== 'Vigil') return { lock: new AsyncLock(words.buffer), waits: Atomics, close() {} };
  vigil ??= await Vigil.attach(handle);
  return { lock: new vigil.AsyncLock(words), waits: vigil, close: () => vigil.close() };
}

/* Keep the thread busy for so many milliseconds. */
export function work(ms) {
  for (const end = performance.now() + ms; performance.now() < end;);
}
