// SPDX-License-Identifier: MIT
// screenshots.mjs [PAGE...] - pictures of the demonstration pages at work, in Chromium, light and dark, wide and
// narrow: build/screenshots/chapter-light-1200.png and so on. It fails if a page is wider than its window or has an
// error, or if a picture in doc/ shows other words than its page.
//
// screenshots.mjs --doc - write the pictures of doc/, which the READMEs show.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { launch, root, within } from './browsers.mjs';
import { startServers } from './servers.mjs';

const SCHEMES = ['light', 'dark'], WIDTHS = [1200, 390], HEIGHT = 844;
const DOC = { chapter: 'main > .card', article: '.pair' }; // the last that is in the picture
const DOC_WIDTH = 1000;
const PAGE_MS = 60000;

/* What happens on each page before its picture is taken. */
const scenes = {
  async index() {},

  async chapter(page) {
    await page.waitForSelector('main[data-holder="page"][data-line*=" "]');
    await page.click('#add');
    await page.waitForSelector('main[data-line$="worker-3"]');
    await page.selectOption('#hold', '6000');
    await page.click('#unlock');
    await page.waitForSelector('main[data-holder^="worker"]');
    await page.click('#lock');
    await page.waitForSelector('main[data-line$="page"]');
  },

  async article(page, isForDoc) {
    await page.waitForSelector('main[data-state="ready"]');
    if (!isForDoc) {
      await page.selectOption('#length', '1000');
      await page.selectOption('#rounds', '1');
    }
    await page.click('#start');
    await page.waitForSelector('main[data-state="done"]');
  },

  async lines(page) {
    await page.waitForSelector('main[data-state="ready"]');
    await page.waitForSelector('#lines tr[data-waiters*=" "]');
  },
};

/* What a page says whatever happens on it. */
function fixedWords() {
  const nodes = document.querySelectorAll('h1, .lead, h3, .controls button, label, dt, .big span');
  return [...nodes].map(({ textContent }) => textContent.replace(/\s+/g, ' ').trim()).join('\n');
}

/* A picture of a page is known by a hash of that, in a comment of the PNG, behind its first chunk. */
const KEYWORD = Buffer.from('Comment\0words of the page: '), FIRST_CHUNKS_BYTES = 8 + 25;

const hashOf = (words) => createHash('sha256').update(words).digest('hex');

function withHash(png, hash) {
  const typed = Buffer.concat([Buffer.from('tEXt'), KEYWORD, Buffer.from(hash)]);
  const chunk = Buffer.alloc(typed.length + 8);
  chunk.writeUInt32BE(typed.length - 4);
  typed.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(typed), typed.length + 4);
  return Buffer.concat([png.subarray(0, FIRST_CHUNKS_BYTES), chunk, png.subarray(FIRST_CHUNKS_BYTES)]);
}

function hashIn(png) {
  const at = png.indexOf(KEYWORD);
  return at < 0 ? undefined : png.toString('latin1', at + KEYWORD.length, at + KEYWORD.length + 64);
}

const docOf = (name) => join(root, 'doc', `${name}.png`);

async function overflowOf(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/* `until`: a selector of what is the last to be in the picture. Returns the page's fixed words. */
async function shoot(browser, demo, name, { colorScheme, width, path, until }) {
  const { driver: page } = await browser.open('about:blank', { ready: false }), errors = [];
  page.on('pageerror', (error) => errors.push(error));
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize({ width, height: HEIGHT });
  await page.goto(`${demo}${name}.html`);
  await scenes[name](page, until !== undefined);
  await page.mouse.move(0, 0);
  await page.waitForTimeout(1000); // for the eye only: what moves has arrived
  const last = until && await page.locator(until).first().boundingBox();
  const clip = last ? { x: 0, y: 0, width, height: Math.round(last.y + last.height + 16) } : undefined;
  const png = await page.screenshot({ clip, fullPage: true }), hash = hashOf(await page.evaluate(fixedWords));
  const overflow = await overflowOf(page);
  await page.close();
  if (errors.length > 0) throw errors[0];
  if (overflow > 0) throw new Error(`${path}: the page is ${overflow} pixels wider than the window`);
  writeFileSync(path, withHash(png, hash));
  return hash;
}

async function shootAll(browser, demo, names) {
  const folder = join(root, 'build', 'screenshots');
  mkdirSync(folder, { recursive: true });
  let stale = 0;
  for (const name of names) {
    const hashes = new Set(DOC[name] ? [hashIn(readFileSync(docOf(name)))] : []);
    for (const colorScheme of SCHEMES) {
      for (const width of WIDTHS) {
        const path = join(folder, `${name}-${colorScheme}-${width}.png`);
        hashes.add(await within(shoot(browser, demo, name, { colorScheme, width, path }), path, PAGE_MS));
        console.log(`ok     ${path.slice(root.length)}`);
      }
    }
    if (hashes.size === 1) continue;
    stale++;
    console.log(`FAILED doc/${name}.png is not what the page says now: test/web/run.sh screenshots --doc`);
  }
  return stale === 0;
}

/* Without what is below the figures. */
async function shootDoc(browser, demo) {
  for (const [name, until] of Object.entries(DOC)) {
    await shoot(browser, demo, name, { colorScheme: 'light', width: DOC_WIDTH, path: docOf(name), until });
    console.log(`wrote doc/${name}.png`);
  }
  return true;
}

const [first, ...others] = process.argv.slice(2), isForDoc = first === '--doc';
const names = first && !isForDoc ? [first, ...others] : Object.keys(scenes);
if (names.some((name) => !Object.hasOwn(scenes, name))) {
  console.error(`usage: screenshots.mjs --doc|[${Object.keys(scenes).join('|')}]...`);
  process.exit(2);
}
const { demo } = await startServers(), browser = await launch('chromium');
const ok = isForDoc ? await shootDoc(browser, demo) : await shootAll(browser, demo, names);
await browser.close();
process.exit(ok ? 0 : 1);
