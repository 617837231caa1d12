// SPDX-License-Identifier: MIT
// What the page and its workers both do: an instance of the program (host.c) on the memory, and its lock.

export async function openHost(module, memory) {
  const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
  return exports;
}

/* A mutex of Vigil's whose word is a variable of the program. */
export const mutexOf = (vigil, memory, exports) =>
  new vigil.Mutex(new Int32Array(memory.buffer, exports.lock_address(), 1), 0);
