// SPDX-License-Identifier: MIT
// For memory that belongs to another WebAssembly program: side.wasm is position-independent, and all that it uses lies
// between two addresses that the program has reserved.

import { rangeError } from '../../node/lib/errors.js';

const LINE_BYTES = 64, FIRST_STACK_BYTES = 4096;
/* The lot, and four environments that wait. */
export const LEAST_BYTES = 0x200000;
/* Addresses are also passed as signed numbers: prim_wasm.h. */
const MOST = 0x80000000;

/* What the section "dylink.0" of the conventions for dynamic linking says: how much data and how many functions. */
function needsOf(module) {
  const bytes = new Uint8Array(WebAssembly.Module.customSections(module, 'dylink.0')[0]);
  let at = 2; // the first part is WASM_DYLINK_MEM_INFO: its number, its length, then four numbers
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const [data, , functions] = [number(), number(), number()];
  return { data, functions };
}

/* Returns what instances need to know of their place: for the handle. The place is cleared. */
export function prepare({ module, memory }, { base, bytes = LEAST_BYTES }) {
  const size = memory.buffer.byteLength, end = base + bytes;
  if (!Number.isInteger(base) || !Number.isInteger(bytes) || base <= 0 || base % LINE_BYTES !== 0)
    throw rangeError(`create: base must be an address in the memory, and a multiple of ${LINE_BYTES}`);
  if (bytes < LEAST_BYTES || end > size || end > MOST)
    throw rangeError(`create: bytes must be at least ${LEAST_BYTES}, and end in the memory, below 2 GiB`);
  const { data, functions } = needsOf(module), heap = Math.ceil((base + data) / LINE_BYTES) * LINE_BYTES;
  new Uint8Array(memory.buffer, base, bytes).fill(0);
  return { base, end, functions, heap: heap + FIRST_STACK_BYTES };
}
