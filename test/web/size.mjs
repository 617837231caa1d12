// SPDX-License-Identifier: MIT
// size.mjs - how much a page has to load: vigil.wasm, and that with vigil.js, compressed by brotli, is within its
// bounds; and the table "Sizes" of web/README.md says what the files have now.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';

/* 20 and 24 kB. */
export const MOST_WASM = 20000, MOST = 24000;
/* A change of the library is not to be written down if it is less than that; nor another version of zlib. */
const TOLERANCE = 0.01;
const pathOf = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

/* [bytes, by gzip, by brotli]: the columns of the table. */
export function sizesOf(name) {
  const bytes = readFileSync(pathOf(`build/web/${name}`));
  return [bytes, gzipSync(bytes, { level: 9 }), brotliCompressSync(bytes)].map(({ length }) => length);
}

/* {name: the same, as it is written}. */
function written() {
  const readme = readFileSync(pathOf('web/README.md'), 'utf8');
  const rows = readme.matchAll(/^\| `([\w.]+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$/gm);
  return Object.fromEntries([...rows].map(([, name, ...sizes]) => [name,
    sizes.map((size) => Number(size.replaceAll(',', '')))]));
}

function main() {
  const table = written();
  let failed = 0;
  const check = (good, what) => {
    console.log(`${good ? 'ok    ' : 'FAILED'} ${what}`);
    if (!good) failed++;
  };
  for (const name of ['vigil.js', 'vigil.wasm', 'side.js', 'side.wasm']) {
    const now = sizesOf(name), then = table[name] ?? [];
    const isNear = now.every((size, i) => Math.abs(size - then[i]) <= TOLERANCE * size);
    const row = now.map((size) => size.toLocaleString('en')).join(' | ');
    check(isNear, `| \`${name}\` | ${row} |${isNear ? '' : `: web/README.md has ${then.join(', ')}`}`);
  }
  const wasm = sizesOf('vigil.wasm')[2], script = sizesOf('vigil.js')[2];
  check(wasm <= MOST_WASM, `vigil.wasm by brotli: ${wasm} of ${MOST_WASM} bytes`);
  check(wasm + script <= MOST, `with vigil.js: ${wasm + script} of ${MOST}`);
  process.exit(failed);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
