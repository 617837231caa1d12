// SPDX-License-Identifier: MIT
// serve.js [PORT] - serve the demonstration pages and the package on the loopback, with the headers that shared memory
// needs. Prints the address.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css',
  '.wasm': 'application/wasm', '.svg': 'image/svg+xml' };
export const isolation = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin' };

/* Start a server of these folders, by the first part of the path: {'': folder, vigil: folder}. */
export function serve(folders, { port = 0, headers = isolation } = {}) {
  const server = createServer(async ({ url }, response) => {
    try {
      const path = normalize(decodeURIComponent(new URL(url, 'http://localhost').pathname)).split('/').slice(1);
      const folder = path.length > 1 && folders[path[0]] !== undefined ? folders[path.shift()] : folders[''];
      const file = join(folder, ...path, path.at(-1) === '' ? 'index.html' : '');
      const body = await readFile(file);
      response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream', ...headers,
        'Cache-Control': 'no-store' });
      response.end(body);
    } catch {
      response.writeHead(404, { 'Content-Type': 'text/plain', ...headers });
      response.end('not found\n');
    }
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve({ server, origin: `http://localhost:${server.address().port}` }));
  });
}

const here = fileURLToPath(new URL('.', import.meta.url));
export const folders = { '': join(here, 'demo'), vigil: join(here, '..', 'build', 'web') };

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const port = Number(process.argv[2] ?? 8080);
  try {
    const { origin } = await serve(folders, { port });
    console.log(`Vigil's pages: ${origin}/   (Ctrl-C ends it)`);
  } catch (error) {
    console.error(error.code === 'EADDRINUSE' ? `port ${port} is in use: make page PORT=${port + 1}` : error.message);
    process.exitCode = 1;
  }
}
