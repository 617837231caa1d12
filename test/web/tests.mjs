// SPDX-License-Identifier: MIT
// tests.mjs chromium|firefox [PATTERN] - run the tests of page/ in the browser, and those of whole pages (pages.mjs).

import { launch, within } from './browsers.mjs';
import { startServers } from './servers.mjs';
import { demoTests } from './demos.mjs';
import { pageTests, WITHOUT_WAIT_ASYNC } from './pages.mjs';
import { sideTests, WITH_SIDE } from './sides.mjs';

/* A test that takes longer has blocked its page, which then cannot tell. */
const BLOCKED_MS = 60000;

/* The tests of page/ in one page, as long as that answers; then in a new one. `name in page`: the title of a test. */
export class PageRunner {
  #browser; #address; #page;

  constructor(browser, address) {
    this.#browser = browser;
    this.#address = address;
  }

  async #ready() {
    return this.#page ??= await within(this.#browser.open(this.#address), 'opening the page', BLOCKED_MS);
  }

  async names() {
    const page = await this.#ready();
    return page.evaluate(() => globalThis.names());
  }

  /* Returns {error, ms, notes}. */
  async run(name, blockedMs = BLOCKED_MS) {
    try {
      const page = await this.#ready();
      const result = await within(page.evaluate((which) => globalThis.run(which), name), 'the page', blockedMs);
      if (result.error) await this.close();
      return result;
    } catch (error) {
      this.#page = undefined;
      await this.#browser.restart();
      return { error: error.message, ms: blockedMs };
    }
  }

  async close() {
    const page = this.#page;
    this.#page = undefined;
    if (page) await within(page.close(), 'closing the page', 20000).catch(() => {});
  }
}

export class Report {
  passed = 0;
  failed = [];

  add(name, { error, ms, notes = [] }) {
    if (error) this.failed.push(name);
    else this.passed++;
    console.log(`${error ? 'FAILED' : 'ok    '} ${name} (${ms} ms)`);
    for (const note of notes) console.log(`       ${note}`);
    if (error) console.log(error.replace(/^/gm, '       '));
  }

  end() {
    for (const name of this.failed) console.log(`failed: ${name}`);
    console.log(`${this.passed} passed, ${this.failed.length} failed`);
    return this.failed.length === 0;
  }
}

async function runInPage(browser, address, report, pattern, title) {
  const runner = new PageRunner(browser, address);
  for (const name of await runner.names()) {
    if (pattern.test(name) && title(name)) report.add(title(name), await runner.run(name));
  }
  await runner.close();
}

async function runPageTests(name, browser, servers, report, pattern) {
  for (const [title, body] of Object.entries({ ...pageTests, ...sideTests, ...demoTests })) {
    if (!pattern.test(title)) continue;
    const before = performance.now(), notes = [], note = (text) => notes.push(text);
    const error = await within(body(browser, servers, note, name), title, BLOCKED_MS)
      .then(() => undefined, (thrown) => String(thrown.stack));
    report.add(title, { error, notes, ms: Math.round(performance.now() - before) });
  }
}

async function main(name, pattern) {
  const servers = await startServers(), report = new Report(), browser = await launch(name);
  const before = performance.now();
  const query = process.env.VIGIL_WEB_QUERY ?? ''; // seed=1&rounds=50, for a storm
  await runInPage(browser, `${servers.isolated}?${query}`, report, pattern, (title) => title);
  await runInPage(browser, `${servers.isolated}?without=waitAsync`, report, pattern,
    (title) => WITHOUT_WAIT_ASYNC.test(title) && `without Atomics.waitAsync: ${title}`);
  await runInPage(browser, `${servers.isolated}?script=side`, report, pattern,
    (title) => WITH_SIDE.test(title) && `side.js: ${title}`);
  await runPageTests(name, browser, servers, report, pattern);
  console.log(`${name}: ${Math.round((performance.now() - before) / 1000)} s`);
  const ok = report.end();
  await browser.close();
  process.exit(ok ? 0 : 1);
}

if (process.argv[1] === new URL(import.meta.url).pathname)
  await main(process.argv[2], new RegExp(process.argv[3] ?? ''));
