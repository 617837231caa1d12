// SPDX-License-Identifier: MIT
// soak.mjs SECONDS [SEED] [chromium|firefox] - workers that block, one that does not, and the page contend for locks of
// each kind. Every few seconds all counters must have moved, and at the end they must be exact.

import { launch, within } from './browsers.mjs';
import { startServers } from './servers.mjs';

const [seconds = '600', seed = String(Math.floor(Date.now() / 1000)), name = 'chromium'] = process.argv.slice(2);
const LOOK_MS = 10000, HANGS_MS = 60000;

const browser = await launch(name), { isolated } = await startServers();
const page = await browser.open(isolated);
const call = (body, argument) => within(page.evaluate(body, argument), 'the page', HANGS_MS);
await call((from) => globalThis.soak.begin(from), Number(seed));
let counts = [], error, stuck = 0;
for (const end = Date.now() + 1000 * Number(seconds); Date.now() < end && !error;) {
  await new Promise((resolve) => setTimeout(resolve, Math.min(LOOK_MS, Math.max(end - Date.now(), 100))));
  const seen = await call(() => globalThis.soak.look());
  stuck = seen.counts.some((count, i) => count === counts[i]) ? stuck + 1 : 0;
  error = seen.error;
  if (stuck * LOOK_MS >= HANGS_MS) error ??= `a counter does not move: ${counts} and ${seen.counts}`;
  counts = seen.counts;
}
error ??= await call(() => globalThis.soak.end());
const times = counts.reduce((sum, each) => sum + each, 0);
console.log(error ?? `${name}: ${seconds} s, seed ${seed}: ${times} times locked`);
await browser.close();
process.exit(error ? 1 : 0);
