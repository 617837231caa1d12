#!/usr/bin/env node
// SPDX-License-Identifier: MIT
/*
 * bench.js [--rounds N] [--only ROW,...] [--json FILE] [--markdown FILE] - Vigil in Chromium, against the article's
 * lock and the browser's own Atomics.
 *
 * Each figure is measured in a page of its own, the contestants one after the other in each round; shown is the median
 * of the rounds. Absolute times are those of one machine on one day: read them as ratios.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium } from '../../web/node_modules/playwright-core/index.mjs';
import { folders, serve } from '../../web/serve.js';

const rows = [
  { name: 'web_lock_unlock', what: 'AsyncLock in a worker: lock and unlock', unit: 'ns', peer: 'the article',
    wanted: 'at most 0.6x' },
  { name: 'web_page_worst_wait', what: 'longest wait of the page; two workers hold the lock for 1 ms each', unit: 'ms',
    peer: 'the article', wanted: 'at most 0.5x' },
  { name: 'web_light_contention', what: 'grants to two workers and the page; held for 20 us, 100 us outside',
    unit: 'per s', peer: 'the article', wanted: 'at least 1.0x' },
  { name: 'web_round_trip', what: 'page waits asynchronously, worker blocks', unit: 'us', peer: 'Atomics',
    wanted: 'at most 1.3x' },
  { name: 'web_round_trip_first', what: 'the same, the first 5,000 of a page: code is being compiled', unit: 'us',
    peer: 'Atomics', wanted: '-' },
];

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' }, only: { type: 'string' }, json: { type: 'string' },
    markdown: { type: 'string' }, chromium: { type: 'string', default: '/usr/bin/chromium' },
  },
});

function median(figures) {
  const sorted = [...figures].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
const digits = (figure) => (figure >= 100 ? figure.toFixed(0) : figure.toPrecision(3));

async function measure(context, origin, row, contestant) {
  const page = await context.newPage();
  try {
    await page.goto(`${origin}/`);
    await page.addScriptTag({ url: '/page.js', type: 'module' });
    await page.waitForSelector('html[data-ready]', { state: 'attached' });
    return await page.evaluate(([row, contestant]) => window.measure(row, contestant), [row, contestant]);
  } finally {
    await page.close();
  }
}

async function main() {
  const here = fileURLToPath(new URL('.', import.meta.url));
  const { server, origin } = await serve({ '': here, demo: folders[''], vigil: folders.vigil });
  const browser = await chromium.launch({ executablePath: values.chromium, args: ['--no-sandbox', '--disable-gpu',
    '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
    '--disable-sync'] });
  const context = await browser.newContext(), only = values.only?.split(','), results = [];
  for (const row of rows.filter(({ name }) => !only || only.includes(name))) {
    const all = { Vigil: [], [row.peer]: [] };
    for (let round = 0; round < Number(values.rounds); round++)
      for (const name of Object.keys(all)) all[name].push(await measure(context, origin, row.name, name));
    const figures = Object.fromEntries(Object.keys(all).map((name) => [name, median(all[name])]));
    results.push({ row: row.name, what: row.what, unit: row.unit, figures, all, wanted: row.wanted });
    const ratio = (figures.Vigil / figures[row.peer]).toFixed(2);
    process.stderr.write(`${row.name.padEnd(22)} Vigil ${digits(figures.Vigil)}  ${row.peer} ` +
      `${digits(figures[row.peer])} ${row.unit}  ${ratio}x   (wanted: ${row.wanted})\n`);
  }
  const version = browser.version();
  await browser.close();
  server.close();
  if (values.json) writeFileSync(values.json, `${JSON.stringify({ chromium: version, results }, null, 1)}\n`);
  if (values.markdown) writeFileSync(values.markdown, markdownOf(version, results));
}

function markdownOf(version, results) {
  const lines = ['## In the browser', '', `Chromium ${version}.`, '',
    '| row | what | unit | Vigil | others | wanted |', '|---|---|---|---|---|---|'];
  for (const { row, what, unit, figures, wanted } of results) {
    const [, other] = Object.keys(figures);
    lines.push(`| \`${row}\` | ${what} | ${unit} | ${digits(figures.Vigil)} | ${other} ${digits(figures[other])} | ` +
      `${wanted} |`);
  }
  return `${lines.join('\n')}\n`;
}

await main();
