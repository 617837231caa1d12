// SPDX-License-Identifier: MIT
// Tests of whole pages: reloaded, closed, not isolated, without workers of the package's own.

import { setTimeout as sleep } from 'node:timers/promises';
import { within } from './browsers.mjs';

const PAGE_MS = 30000;

/* The tests that are also run where Atomics.waitAsync does not exist. */
export const WITHOUT_WAIT_ASYNC = new RegExp('^(order|bells|wait|as WebAssembly|exclusion|abort|' +
  'scale: (10,000|two|close)|terminate: (while waiting, as|during a storm of workers))');

function equal(seen, expected, what) {
  if (JSON.stringify(seen) !== JSON.stringify(expected))
    throw new Error(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(seen)}`);
}

/* Run a test of the page. */
async function runOne(page, name) {
  const { error } = await within(page.evaluate((which) => globalThis.run(which), name), name, PAGE_MS);
  if (error) throw new Error(`${name}: ${error}`);
}

const SIMPLE = 'exclusion: Mutex, two workers that block and the page';

/* How many Web Locks with names that begin so are held, and asked for, in all pages: as another page sees it. */
function countLocks(watcher, prefix) {
  return watcher.evaluate(async (start) => {
    const { held, pending } = await navigator.locks.query();
    return [held, pending].map((locks) => locks.filter(({ name }) => name.startsWith(start)).length);
  }, prefix);
}

/*
 * Leave a worker blocked in lock(), one in wait(), one that waits without blocking, and the page waiting as well: each
 * of the four environments holds a Web Lock as long as it exists. Then end the page. No lock may be left: a worker
 * that went on, or an environment that others wait for, would keep its own.
 */
async function endWhileWaiting(page, watcher, end) {
  const prefix = await page.evaluate(() => globalThis.leaveWaiting());
  const before = await countLocks(watcher, prefix);
  equal(before[0], 4, 'locks that are held while they wait');
  await within(end(), 'the end of the page', PAGE_MS);
  const gone = async () => {
    while ((await countLocks(watcher, prefix)).some((count) => count > 0)) await sleep(50);
  };
  await within(gone(), 'locks of the page that has ended', PAGE_MS);
}

export const pageTests = {
  'pages: reloaded while workers and the page wait': async (browser, { isolated }) => {
    const page = await browser.open(isolated), watcher = await browser.open(isolated);
    for (let i = 0; i < 3; i++) await endWhileWaiting(page, watcher, () => page.reload());
    await runOne(page, SIMPLE);
    await page.close();
    await watcher.close();
  },

  'pages: closed while workers and the page wait': async (browser, { isolated }) => {
    const watcher = await browser.open(isolated);
    for (let i = 0; i < 3; i++) {
      const page = await browser.open(isolated);
      await endWhileWaiting(page, watcher, () => page.close());
    }
    await runOne(watcher, SIMPLE);
    await watcher.close();
  },

  'pages: two at a time do not meet': async (browser, { isolated }) => {
    const pages = [await browser.open(isolated), await browser.open(isolated)];
    await Promise.all(pages.map((page) => runOne(page, SIMPLE)));
    await Promise.all(pages.map((page) => page.close()));
  },

  'pages: one that is not isolated gets an error that says what to do': async (browser, { plain }) => {
    const page = await browser.open(plain);
    const seen = await page.evaluate(async () => {
      const { Vigil, VigilError } = await import('/vigil/vigil.js');
      const of = (error) => [error instanceof VigilError, error.code, error.message];
      return [await Vigil.create().then(() => 'created', of), globalThis.crossOriginIsolated];
    });
    await page.close();
    equal(seen[1], false, 'crossOriginIsolated');
    equal(seen[0].slice(0, 2), [true, 'VIGIL_ESYSTEM'], 'the error');
    for (const header of ['Cross-Origin-Opener-Policy: same-origin', 'Cross-Origin-Embedder-Policy: require-corp'])
      equal(seen[0][2].includes(header), true, `the error names ${header}`);
  },

  'pages: a policy that forbids the workers of the package': async (browser, { strict }, note) => {
    const page = await browser.open(strict);
    for (const name of [SIMPLE, 'order: a mutex, a mixed line']) await runOne(page, name);
    note('works without the keeper');
    await page.close();
  },
};
