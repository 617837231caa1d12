// SPDX-License-Identifier: MIT
// serve.mjs - web/serve.js by itself, as `make page` runs it: it prints its address, serves the pages and the package
// with the headers, and says what to do if the port is in use.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../web/serve.js', import.meta.url));
const start = (port) => spawn(process.execPath, [program, port], { stdio: ['ignore', 'pipe', 'pipe'] });

/* What is expected of a path: its status and its type. */
const FILES = { '': [200, 'text/html; charset=utf-8'], 'chapter.js': [200, 'text/javascript'],
  'vigil/vigil.js': [200, 'text/javascript'], 'vigil/vigil.wasm': [200, 'application/wasm'],
  'missing.html': [404, 'text/plain'], '..%2fpackage.json': [404, 'text/plain'],
  '%': [404, 'text/plain'] };

const server = start('0');
process.on('exit', () => server.kill());
const [line] = await once(server.stdout, 'data');
const [, origin, port] = /^Vigil's pages: (http:\/\/localhost:(\d+))\/ .*\n$/.exec(line) ?? [];
assert.ok(origin, `it prints its address, not ${line}`);
console.log(`ok     it prints its address: ${origin}/`);

for (const [path, [status, type]] of Object.entries(FILES)) {
  const response = await fetch(`${origin}/${path}`), header = (name) => response.headers.get(name);
  assert.deepEqual([response.status, header('Content-Type')], [status, type], `/${path}`);
  assert.equal(header('Cross-Origin-Opener-Policy'), 'same-origin', `/${path}`);
  assert.equal(header('Cross-Origin-Embedder-Policy'), 'require-corp', `/${path}`);
  await response.arrayBuffer();
  console.log(`ok     /${path}: ${status}, ${type}, with the headers`);
}

const second = start(port), errors = text(second.stderr);
const [status] = await once(second, 'exit');
assert.equal(await errors, `port ${port} is in use: make page PORT=${Number(port) + 1}\n`);
assert.equal(status, 1);
console.log('ok     a port that is in use is an error, which names the next one');
server.kill();
