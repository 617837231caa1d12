// SPDX-License-Identifier: MIT
// Tests of whole pages: reloaded, closed, not isolated, without workers of the package's own.

import { within } from './browsers.mjs';

const PAGE_MS = 30000;

/*
 * The tests that are also run where Atomics.waitAsync does not exist. In Firefox only those in which no worker needs a
 * helper: there `new Worker` of a worker does not return, about once in ten runs, when several are made at once.
 */
export const WITHOUT_WAIT_ASYNC = {
  chromium: /^(order|bells|wait: (each|order)|exclusion: Mutex)/,
  firefox: /^(wait: order|exclusion: Mutex, two|bells: page and worker)/,
};

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

/* Leave a worker blocked in lock(), one in wait(), one that waits without blocking, and the page waiting as well. */
async function leaveWaiting(page) {
  await page.evaluate(() => globalThis.leaveWaiting());
}

export const pageTests = {
  'pages: reloaded while workers and the page wait': async (browser, { isolated }) => {
    const page = await browser.open(isolated);
    for (let i = 0; i < 3; i++) {
      await leaveWaiting(page);
      await within(page.reload(), 'reload', PAGE_MS);
    }
    await runOne(page, SIMPLE);
    await page.close();
  },

  'pages: closed while workers and the page wait': async (browser, { isolated }) => {
    for (let i = 0; i < 3; i++) {
      const page = await browser.open(isolated);
      await leaveWaiting(page);
      await within(page.close(), 'closing the page', PAGE_MS);
    }
    const page = await browser.open(isolated);
    await runOne(page, SIMPLE);
    await page.close();
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
