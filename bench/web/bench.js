#!/usr/bin/env node
// SPDX-License-Identifier: MIT
/*
 * bench.js [--rounds N] [--only ROW,...] [--json FILE] [--markdown FILE] - Vigil in Chromium, against the article's
 * lock and the browser's own Atomics.
 *
 * Each round measures both contestants, in a page each or, for round trips, in turn in one page. Shown are the medians,
 * and the median of the rounds' ratios with the range in which half of them are. Absolute times are those of one
 * machine on one day: read them as ratios.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium } from '../../web/node_modules/playwright-core/index.mjs';
import { folders, serve } from '../../web/serve.js';
import { MOST, MOST_WASM, sizesOf } from '../../test/web/size.mjs';
import { bind, processors } from './place.js';

/*
 * places: how many processors the page and its workers are bound to; together: the contestants are in one page; files:
 * a sum of sizes, which have no peer. most, least: what is wanted of the ratio, or of the sum.
 */
const rows = [
  { name: 'web_lock_unlock', what: 'AsyncLock in a worker: lock and unlock', unit: 'ns', peer: 'the article',
    most: 0.6 },
  { name: 'web_page_worst_wait', what: 'longest wait of the page; two workers hold the lock for 1 ms each', unit: 'ms',
    peer: 'the article', most: 0.5 },
  { name: 'web_light_contention', what: 'grants to two workers and the page; held for 20 us, 100 us outside',
    unit: 'per s', peer: 'the article', least: 1 },
  { name: 'web_round_trip', what: 'page waits asynchronously, worker blocks; both on one processor', unit: 'us',
    peer: 'Atomics', most: 1.3, places: 1, together: true },
  { name: 'web_round_trip_apart', what: 'the same on two processors', unit: 'us', peer: 'Atomics',
    most: 1.3, places: 2, together: true },
  { name: 'web_round_trip_first', what: 'on one processor, the first 5,000 of a page: code is being compiled',
    unit: 'us', peer: 'Atomics', places: 1 },
  { name: 'web_size_wasm', what: 'vigil.wasm, compressed by brotli', unit: 'bytes', files: ['vigil.wasm'],
    most: MOST_WASM },
  { name: 'web_size', what: 'vigil.wasm and vigil.js, compressed by brotli', unit: 'bytes',
    files: ['vigil.wasm', 'vigil.js'], most: MOST },
];

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '11' }, only: { type: 'string' }, json: { type: 'string' },
    markdown: { type: 'string' }, chromium: { type: 'string', default: '/usr/bin/chromium' },
  },
});

function quantile(figures, part) {
  const sorted = [...figures].sort((a, b) => a - b), at = part * (sorted.length - 1), below = Math.floor(at);
  return sorted[below] + (at - below) * (sorted[Math.ceil(at)] - sorted[below]);
}
const median = (figures) => quantile(figures, 0.5);
const ratioText = (ratio) => (ratio >= 0.1 ? ratio.toFixed(2) : ratio.toPrecision(2));
/* What is wanted, and whether `seen`, the ratio or the sum, is that. */
function verdictOf({ files, most, least }, seen) {
  const bound = most ?? least;
  if (bound === undefined) return { wanted: '', met: '' };
  const isMet = most === undefined ? seen >= least : seen <= most;
  return { wanted: `at ${most === undefined ? 'least' : 'most'} ${files ? bound : `${bound.toFixed(1)}x`}`,
    met: isMet ? 'met' : '**missed**' };
}
const digits = (figure) => (figure >= 100 ? figure.toFixed(0) : figure.toPrecision(3));

/* In a new page: the median of the figures of each of these contestants. */
async function measure({ browser, context, origin }, { name, places }, contestants) {
  const page = await context.newPage();
  try {
    await page.goto(`${origin}/`);
    await page.addScriptTag({ url: '/page.js', type: 'module' });
    await page.waitForSelector('html[data-ready]', { state: 'attached' });
    await page.evaluate(([name, contestants]) => window.prepare(name, contestants), [name, contestants]);
    if (places) await bind(browser, processors()[0], processors()[places - 1]);
    return (await page.evaluate(() => window.measure())).map(median);
  } finally {
    await page.close();
  }
}

/* Vigil's figure and the peer's; in every other round the peer comes first. */
async function measureRound(where, row, round) {
  const order = round % 2 ? [row.peer, 'Vigil'] : ['Vigil', row.peer], figures = {};
  const pages = row.together ? [order] : order.map((name) => [name]);
  for (const names of pages) {
    const medians = await measure(where, row, names);
    names.forEach((name, i) => { figures[name] = medians[i]; });
  }
  return figures;
}

function sumSizes(row) {
  const { name, what, unit, files } = row, sum = files.map((file) => sizesOf(file)[2]).reduce((a, b) => a + b);
  return { row: name, what, unit, figures: { Vigil: sum }, ratio: '', all: { Vigil: [sum] }, ...verdictOf(row, sum) };
}

async function measureRow(where, row) {
  const all = { Vigil: [], [row.peer]: [] };
  for (let round = 0; round < Number(values.rounds); round++) {
    const figures = await measureRound(where, row, round);
    for (const name of Object.keys(all)) all[name].push(figures[name]);
  }
  const ratios = all.Vigil.map((figure, round) => figure / all[row.peer][round]);
  const [ratio, from, to] = [0.5, 0.25, 0.75].map((part) => ratioText(quantile(ratios, part)));
  const verdict = verdictOf(row, median(ratios));
  const figures = Object.fromEntries(Object.keys(all).map((name) => [name, median(all[name])]));
  return { row: row.name, what: row.what, unit: row.unit, figures, ratio: `${ratio}x (${from} to ${to})`, all,
    ...verdict };
}

function report({ row, unit, figures, ratio, wanted, met }) {
  const all = Object.entries(figures).map(([name, figure]) => `${name} ${digits(figure)}`).join('  ');
  process.stderr.write(`${row.padEnd(22)} ${all} ${unit}  ${ratio}${met && `   (${wanted}: ${met})`}\n`);
}

async function main() {
  const here = fileURLToPath(new URL('.', import.meta.url));
  const { server, origin } = await serve({ '': here, demo: folders[''], vigil: folders.vigil });
  const browser = await chromium.launch({ executablePath: values.chromium, args: ['--no-sandbox', '--disable-gpu',
    '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
    '--disable-sync'] });
  const where = { browser, context: await browser.newContext(), origin }, results = [];
  const only = values.only?.split(',') ?? rows.map(({ name }) => name);
  for (const row of rows.filter(({ name }) => only.includes(name))) {
    if (row.places > processors().length) {
      process.stderr.write(`${row.name}: skipped, needs ${row.places} processors\n`);
      continue;
    }
    results.push(row.files ? sumSizes(row) : await measureRow(where, row));
    report(results.at(-1));
  }
  const version = browser.version();
  await browser.close();
  server.close();
  if (values.json) writeFileSync(values.json, `${JSON.stringify({ chromium: version, results }, null, 1)}\n`);
  if (values.markdown) writeFileSync(values.markdown, markdownOf(version, results));
}

function markdownOf(version, results) {
  const lines = ['## In the browser', '', `Chromium ${version}; ${values.rounds} rounds. The ratio is that of the ` +
    'median round; half of the rounds are in the range after it.', '',
    '| row | what | unit | Vigil | others | ratio | wanted | |',
    '|---|---|---|---|---|---|---|---|'];
  for (const { row, what, unit, figures, ratio, wanted, met } of results) {
    const [, other] = Object.keys(figures), others = other ? `${other} ${digits(figures[other])}` : '';
    const cells = [`\`${row}\``, what, unit, digits(figures.Vigil), others, ratio, wanted, met];
    lines.push(`| ${cells.join(' | ')} |`);
  }
  return `${lines.join('\n')}\n`;
}

await main();
