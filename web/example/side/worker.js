// SPDX-License-Identifier: MIT
import { Vigil } from '/vigil/side.js';
import { mutexOf, openHost } from './open.js';

self.onmessage = async ({ data: { handle, module, turns } }) => {
  const host = await openHost(module, handle.memory), vigil = await Vigil.attach(handle);
  const mutex = mutexOf(vigil, handle.memory, host);
  for (let turn = 0; turn < turns; turn++) {
    mutex.lock(); // blocks
    host.increment();
    mutex.unlock();
  }
  vigil.close();
  self.postMessage('ended');
};
