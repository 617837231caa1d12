// SPDX-License-Identifier: MIT
// The chapter's worker. It attaches first; each further message makes it queue, hold the lock, and unlock it.

import { Vigil } from './vigil/vigil.js';

let lock;

async function attach({ handle, sharedArray }) {
  const vigil = await Vigil.attach(handle);
  lock = new vigil.Lock(sharedArray, 0);
  self.postMessage({ attached: vigil.thread });
}

async function queue({ holdMs }) {
  self.postMessage({ waiting: true });
  const began = performance.now();
  lock.lock(); // blocks
  self.postMessage({ got: true, waitedMs: performance.now() - began, ownerDied: lock.ownerDied });
  await new Promise((resolve) => setTimeout(resolve, holdMs));
  lock.unlock();
  self.postMessage({ released: true });
}

self.addEventListener('message', ({ data }) => (data.handle ? attach(data) : queue(data)));
