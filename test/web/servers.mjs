// SPDX-License-Identifier: MIT
// The servers of the tests, on the loopback: with the headers that the package needs, without, and with a policy that
// forbids the workers which the package makes itself; and those of the demonstration pages, with headers and without.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isolation, serve } from '../../web/serve.js';
import { root, skip } from './browsers.mjs';

const policy = { 'Content-Security-Policy': "worker-src 'self'" };

/* The package and the demonstration pages are taken from those folders. Returns the addresses. */
export async function startServers(folder = join(root, 'build', 'web'), demoFolder = join(root, 'web', 'demo')) {
  if (!existsSync(join(folder, 'vigil.wasm'))) skip('the package is not built: see what web/build.sh says');
  const folders = { '': join(root, 'test', 'web', 'page'), vigil: folder };
  const demos = { '': demoFolder, vigil: folder };
  const addressOf = async (served, headers) => `${(await serve(served, { headers })).origin}/`;
  return {
    isolated: await addressOf(folders, isolation),
    plain: await addressOf(folders, {}),
    strict: await addressOf(folders, { ...isolation, ...policy }),
    demo: await addressOf(demos, isolation),
    plainDemo: await addressOf(demos, {}),
  };
}
