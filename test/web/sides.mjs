// SPDX-License-Identifier: MIT
// Tests of side.js, the package for memory that belongs to another program, beside those that tests.mjs runs with it;
// and of how much memory the library takes.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from '../../web/serve.js';
import { root, within } from './browsers.mjs';

const PAGE_MS = 45000;
const example = join(root, 'web', 'example', 'side');

/* What is run with side.js, too. */
export const WITH_SIDE = /^(order: a mutex|exclusion: Mutex|terminate: while holding, taken|bells: page and worker)/;

function buildHost() {
  const folder = mkdtempSync(join(tmpdir(), 'vigil-web-host-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  execFileSync('clang-19', ['--target=wasm32', '-O2', '-nostdlib', '-matomics', '-mbulk-memory', '-Wall', '-Werror',
    '-Wl,--no-entry,--shared-memory,--import-memory,--initial-memory=131072,--max-memory=67108864',
    join(example, 'host.c'), '-o', join(folder, 'host.wasm')]);
  return folder;
}

/*
 * In the page: a mutex is held in a place of `bytes`, the page waits for a word, and workers block in lock(). Returns
 * how many bytes the first worker has taken when it had attached, and how many workers got the mutex in the end.
 */
async function crowd({ bytes, count }) {
  const { Vigil } = await import('/vigil/side.js');
  const memory = new WebAssembly.Memory({ initial: 128, maximum: 128, shared: true });
  const vigil = await Vigil.create({ memory, base: 65536, bytes }), array = vigil.allocate(2);
  const mutex = new vigil.Mutex(array);
  const freeNow = () => { // in steps of 1 KiB, with what the heap adds
    const all = [];
    try {
      for (;;) all.push(vigil.allocate(240));
    } catch {
      for (const each of all) vigil.free(each);
    }
    return 1024 * all.length;
  };
  const startOne = () => {
    const worker = new Worker('./worker.js?script=side', { type: 'module' }), said = [], readers = [];
    worker.onmessage = ({ data }) => (readers.length > 0 ? readers.shift()(data) : said.push(data));
    worker.postMessage({ handle: vigil.handle, data: array, code: `say('attached'); await hear();
      const mutex = new vigil.Mutex(data); mutex.lock(); mutex.unlock(); return 'got it';` });
    const next = () => new Promise((resolve) => (said.length > 0 ? resolve(said.shift()) : readers.push(resolve)));
    return { next: () => next().then((data) => data.said ?? data.error), go: () => worker.postMessage({ told: 'go' }) };
  };
  await mutex.lockAsync();
  vigil.waitAsync(array, 1, 0);
  const before = freeNow(), first = startOne(), outcomes = [await first.next()], taken = before - freeNow();
  const workers = [first];
  while (workers.length < count) {
    workers.push(startOne());
    outcomes.push(await workers.at(-1).next());
  }
  for (const [i, worker] of workers.entries()) {
    worker.go();
    while (vigil.waiters(array) <= i) await new Promise((resolve) => { setTimeout(resolve); });
  }
  mutex.unlock();
  outcomes.push(...await Promise.all(workers.map(({ next }) => next())));
  return { taken, got: outcomes.filter((each) => each === 'got it').length, outcomes };
}

/* The figures of the first two are those of web/README.md. */
export const sideTests = {
  'memory: for a page and three workers that wait, and for each one more': async (browser, servers, note) => {
    const page = await browser.open(servers.isolated), least = 2 << 20, ONE = 255000, ENVIRONMENT = 42000;
    for (const more of [0, 1, 6]) {
      const asked = { bytes: Math.ceil((least + more * ONE) / 64) * 64, count: 3 + more };
      const { taken, got, outcomes } = await within(page.evaluate(crowd, asked), `${more} more`, PAGE_MS);
      if (got !== 3 + more) throw new Error(`${asked.bytes} bytes: ${outcomes.join('; ')}`);
      if (taken > ENVIRONMENT) throw new Error(`a worker that attaches takes ${taken} bytes`);
      note(`${asked.bytes} bytes: ${got} workers; one that attaches takes ${taken} bytes`);
    }
    await page.close();
  },

  'memory: it grows to 1.5 MiB with the first waiter': async (browser, { isolated }) => {
    const page = await browser.open(isolated);
    const bytes = await page.evaluate(async () => {
      const { Vigil } = await import('/vigil/vigil.js'), vigil = await Vigil.create();
      vigil.waitAsync(vigil.allocate(1), 0, 0);
      return vigil.memory.buffer.byteLength;
    });
    await page.close();
    if (bytes !== 3 << 19) throw new Error(`${bytes} bytes`);
  },

  'side: the example, at a variable of a program with memory of its own': async (browser, servers, note) => {
    const folders = { '': example, vigil: join(root, 'build', 'web'), host: buildHost() };
    const { origin } = await serve(folders);
    const page = await within(browser.open(`${origin}/`), 'the page', PAGE_MS);
    const seen = await page.evaluate(() => document.querySelector('output').textContent);
    await page.close();
    if (seen !== '8000 times, none lost') throw new Error(`expected 8000 times, got ${seen}`);
    note(seen);
  },

  'side: a wrong place is an error, and nothing beyond the place is touched': async (browser, { isolated }) => {
    const page = await browser.open(isolated);
    const seen = await page.evaluate(async () => {
      const { Vigil } = await import('/vigil/side.js'), bytes = 2 << 20;
      const memory = new WebAssembly.Memory({ initial: 64, maximum: 64, shared: true }), size = 64 * 65536;
      const all = new Uint8Array(memory.buffer).fill(0xa5), names = [];
      for (const place of [{}, { base: 0 }, { base: 65 }, { base: -64 }, { base: 64, bytes: 64 }, { base: 64.5 },
        { base: size - bytes + 64 }, { base: 64, bytes: size }, { base: 64, bytes: Infinity }])
        names.push(await Vigil.create({ memory, ...place }).then(() => 'none', ({ name }) => name));
      names.push(await Vigil.create({ base: 64 }).then(() => 'none', ({ name }) => name));
      const untouched = all.every((byte) => byte === 0xa5);
      const vigil = await Vigil.create({ memory, base: 65536, bytes }), array = vigil.allocate(1);
      const mutex = new vigil.Mutex(array), held = await mutex.acquire(), next = mutex.acquire();
      held();
      (await next)();
      let full;
      try {
        for (;;) vigil.allocate(1000);
      } catch ({ name }) {
        full = name;
      }
      const isOurs = (_, at) => at >= 65536 && at < 65536 + bytes;
      return { names, untouched, full, kept: all.every((byte, at) => byte === 0xa5 || isOurs(byte, at)),
        inside: array.byteOffset >= 65536 && array.byteOffset < 65536 + bytes };
    });
    await page.close();
    const expected = { names: [...Array(9).fill('RangeError'), 'TypeError'], untouched: true, full: 'LimitError',
      kept: true, inside: true };
    if (JSON.stringify(seen) !== JSON.stringify(expected))
      throw new Error(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(seen)}`);
  },
};
