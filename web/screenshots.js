// SPDX-License-Identifier: MIT
// screenshots.js FOLDER [PAGE...] - pictures of the demonstration pages at work, light and dark, wide and narrow:
// FOLDER/chapter-light-1200.png and so on. With --doc in place of the folder: those of doc/, of which the README shows
// two. Needs build/web, and Chromium: CHROMIUM=/usr/bin/chromium.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { folders, serve } from './serve.js';

const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const SCHEMES = ['light', 'dark'], WIDTHS = [1200, 390];
const HEIGHT = 844;

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

  async article(page) {
    await page.waitForSelector('main[data-state="ready"]');
    await page.click('#start');
    await page.waitForSelector('main[data-state="done"]');
  },

  async lines(page) {
    await page.waitForSelector('main[data-state="ready"]');
    await page.waitForSelector('#line-0[data-waiters*=" "]');
  },
};

/* `until`: a selector of what is the last to be in the picture. */
async function shoot(browser, origin, name, { colorScheme, width, path, until }) {
  const context = await browser.newContext({ viewport: { width, height: HEIGHT }, colorScheme });
  const page = await context.newPage(), errors = [];
  page.on('pageerror', (error) => errors.push(error));
  await page.goto(`${origin}/${name}.html`);
  await scenes[name](page);
  await page.mouse.move(0, 0);
  await page.waitForTimeout(1000); // what moves has arrived
  const last = until && await page.locator(until).first().boundingBox();
  const clip = last ? { x: 0, y: 0, width, height: Math.round(last.y + last.height + 16) } : undefined;
  await page.screenshot({ path, clip, fullPage: true });
  const overflow = await page.evaluate(() => {
    const root = document.documentElement;
    return root.scrollWidth - root.clientWidth;
  });
  await context.close();
  if (errors.length > 0) throw errors[0];
  if (overflow > 0) throw new Error(`${path}: the page is ${overflow} pixels wider than the window`);
  console.log(path);
}

async function shootAll(browser, origin, folder, names) {
  await mkdir(folder, { recursive: true });
  for (const name of names) {
    for (const colorScheme of SCHEMES) {
      for (const width of WIDTHS) {
        const path = join(folder, `${name}-${colorScheme}-${width}.png`);
        await shoot(browser, origin, name, { colorScheme, width, path });
      }
    }
  }
}

/* Without what is below the figures. */
async function shootDoc(browser, origin) {
  const doc = fileURLToPath(new URL('../doc/', import.meta.url));
  for (const [name, until] of [['chapter', 'main > .card'], ['article', '.pair']]) {
    await shoot(browser, origin, name, { colorScheme: 'light', width: 1000, path: join(doc, `${name}.png`), until });
  }
}

const [folder, ...names] = process.argv.slice(2);
if (folder === undefined || names.some((name) => !Object.hasOwn(scenes, name))) {
  console.error(`usage: screenshots.js FOLDER|--doc [${Object.keys(scenes).join('|')}]...`);
  process.exit(2);
}
const { server, origin } = await serve(folders);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ARGUMENTS });
try {
  if (folder === '--doc') await shootDoc(browser, origin);
  else await shootAll(browser, origin, folder, names.length > 0 ? names : Object.keys(scenes));
} finally {
  await browser.close();
  server.close();
  server.closeAllConnections();
}
