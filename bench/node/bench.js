#!/usr/bin/env node
// SPDX-License-Identifier: MIT
'use strict';
/*
 * bench.js [--rounds N] [--only ROW,...] [--json FILE] [--markdown FILE] - Vigil from Node, against V8's own Atomics,
 * the article's lock in pure JavaScript, and packages of npm.
 *
 * Each figure is measured in a process of its own, the contestants one after the other in each round; shown is the
 * median of the rounds. There are as many rounds as it takes to know all medians of a row to 2 %, but 6 to 12; --rounds
 * says exactly how many. Absolute times are those of one machine on one day: read them as ratios.
 */
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const { parseArgs } = require('node:util');

async function measure(row, contestant) {
  const { rows } = require('./rows.js');
  const figure = await rows.find(({ name }) => name === row).contestants[contestant]();
  process.stdout.write(`${figure}\n`, () => process.exit(0)); // workers may be blocked
}

function measureInChild(row, contestant) {
  const child = spawnSync(process.execPath, [__filename, '--measure', row, contestant],
    { encoding: 'utf8', timeout: 120000 });
  const figure = Number(child.stdout);
  if (child.status !== 0 || !(figure >= 0)) throw new Error(`${row}, ${contestant}: ${child.stderr || child.signal}`);
  return figure;
}

function median(figures) {
  const sorted = [...figures].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/*
 * How far the true median may be from that of the figures, as a part of it, with 95 % confidence: bench/results.c has
 * the argument. Of less than 6 figures: the greatest distance.
 */
function errorOf(figures) {
  const sorted = [...figures].sort((a, b) => a - b), count = sorted.length, middle = median(figures);
  let rank = 0, chance = 0.5 ** count, outside = 2 * chance;
  while (outside <= 0.05 && rank < count >> 1) {
    chance *= (count - rank) / ++rank;
    outside += 2 * chance;
  }
  const low = sorted[Math.max(rank, 1) - 1], high = sorted[count - Math.max(rank, 1)];
  return middle === low && middle === high ? 0 : Math.max(middle - low, high - middle) / middle;
}

const [LEAST_ROUNDS, MOST_ROUNDS, KNOWN_WELL] = [6, 12, 0.02];
const isKnown = (all) => Object.values(all).every((figures) => errorOf(figures) <= KNOWN_WELL);
const percent = (part) => `±${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;

const digits = (figure) => (figure >= 100 ? figure.toFixed(0) : figure.toPrecision(3));

function markdownOf(results) {
  const lines = ['## From Node', '', `Node ${process.versions.node}, V8 ${process.versions.v8}.`, '',
    '| row | what | unit | Vigil | ± | others | wanted |', '|---|---|---|---|---|---|---|'];
  for (const { row, what, unit, figures, errors, wanted } of results) {
    const others = Object.entries(figures).filter(([name]) => name !== 'Vigil').map(([name, figure]) =>
      `${name} ${digits(figure)}${errors[name] > KNOWN_WELL ? ` ${percent(errors[name])}` : ''}`);
    const cells = [`\`${row}\``, what, unit, digits(figures.Vigil), percent(errors.Vigil).slice(1), others.join(', '),
      wanted];
    lines.push(`| ${cells.join(' | ')} |`);
  }
  return `${lines.join('\n')}\n`;
}

/* The figures of all contestants, by name. */
function measureRow(row, rounds) {
  const names = Object.keys(row.contestants), all = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < (rounds ?? MOST_ROUNDS); round++) {
    if (!rounds && round >= LEAST_ROUNDS && isKnown(all)) break;
    for (const name of names) all[name].push(measureInChild(row.name, name));
  }
  return all;
}

function main() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string' }, only: { type: 'string' }, json: { type: 'string' },
      markdown: { type: 'string' },
    },
  });
  const { rows } = require('./rows.js');
  const wanted = values.only?.split(',');
  const results = [];
  for (const row of rows.filter(({ name }) => !wanted || wanted.includes(name))) {
    const all = measureRow(row, values.rounds && Number(values.rounds)), names = Object.keys(all);
    const of = (value) => Object.fromEntries(names.map((name) => [name, value(all[name])]));
    const figures = of(median), errors = of(errorOf);
    results.push({ row: row.name, what: row.what, unit: row.unit, figures, errors, all, wanted: row.wanted });
    const shown = names.map((name) => `${name} ${digits(figures[name])} ${percent(errors[name])}`).join('  ');
    process.stderr.write(`${row.name.padEnd(22)} ${shown}  ${row.unit}   (wanted: ${row.wanted || '-'})\n`);
  }
  if (values.json) fs.writeFileSync(values.json, `${JSON.stringify({ node: process.versions, results }, null, 1)}\n`);
  if (values.markdown) fs.writeFileSync(values.markdown, markdownOf(results));
  process.exit(0);
}

if (process.argv[2] === '--measure') measure(process.argv[3], process.argv[4]);
else main();
