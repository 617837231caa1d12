// SPDX-License-Identifier: MIT
// size.mjs - how much a page has to load: vigil.wasm, and that with vigil.js, compressed by brotli.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';

const KB = 1024, MOST_WASM = 20 * KB, MOST = 24 * KB;
const fileOf = (name) => fileURLToPath(new URL(`../../build/web/${name}`, import.meta.url));
const sizeOf = (name) => brotliCompressSync(readFileSync(fileOf(name))).length;

const wasm = sizeOf('vigil.wasm'), script = sizeOf('vigil.js');
console.log(`vigil.wasm: ${wasm} bytes of ${MOST_WASM}; with vigil.js (${script}): ${wasm + script} of ${MOST}`);
process.exit(wasm <= MOST_WASM && wasm + script <= MOST ? 0 : 1);
