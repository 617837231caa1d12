// SPDX-License-Identifier: MIT
// Vigil in memory that belongs to another WebAssembly program. The program reserves room for Vigil in its own memory;
// its threads, which block, and the page, which may not, take turns at a variable of the program. The server has this
// folder, the package as /vigil/ and the program as /host/host.wasm: test/web/sides.mjs.

import { Vigil } from '/vigil/side.js';
import { mutexOf, openHost } from './open.js';

const WORKERS = 3, TURNS = 2000, BYTES = 4 << 20;

export async function contest() {
  const memory = new WebAssembly.Memory({ initial: 2, maximum: 1024, shared: true });
  const module = await WebAssembly.compileStreaming(fetch('/host/host.wasm'));
  const host = await openHost(module, memory);
  const vigil = await Vigil.create({ memory, base: host.reserve(BYTES), bytes: BYTES });
  const mutex = mutexOf(vigil, memory, host);

  const ended = Array.from({ length: WORKERS }, () => new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
    worker.onmessage = resolve;
    worker.onerror = reject;
    worker.postMessage({ handle: vigil.handle, module, turns: TURNS });
  }));
  for (let turn = 0; turn < TURNS; turn++) await mutex.runExclusive(() => host.increment());
  await Promise.all(ended);
  const count = host.get_count();
  vigil.close();
  return { count, expected: (WORKERS + 1) * TURNS };
}
