#!/usr/bin/env node
// SPDX-License-Identifier: MIT
'use strict';
/*
 * bench.js [--rounds N] [--only ROW,...] [--json FILE] [--markdown FILE] - Vigil from Node, against V8's own Atomics,
 * the article's lock in pure JavaScript, and packages of npm.
 *
 * Each figure is measured in a process of its own, the contestants one after the other in each round; shown is the
 * median of the rounds. Absolute times are those of one machine on one day: read them as ratios.
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

const digits = (figure) => (figure >= 100 ? figure.toFixed(0) : figure.toPrecision(3));

function markdownOf(results) {
  const lines = ['## From Node', '', `Node ${process.versions.node}, V8 ${process.versions.v8}.`, '',
    '| row | what | unit | Vigil | others | wanted |', '|---|---|---|---|---|---|'];
  for (const { row, what, unit, figures, wanted } of results) {
    const others = Object.entries(figures).filter(([name]) => name !== 'Vigil')
      .map(([name, figure]) => `${name} ${digits(figure)}`);
    lines.push(`| \`${row}\` | ${what} | ${unit} | ${digits(figures.Vigil)} | ${others.join(', ')} | ${wanted} |`);
  }
  return `${lines.join('\n')}\n`;
}

function main() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' }, only: { type: 'string' }, json: { type: 'string' },
      markdown: { type: 'string' },
    },
  });
  const { rows } = require('./rows.js');
  const wanted = values.only?.split(',');
  const results = [];
  for (const row of rows.filter(({ name }) => !wanted || wanted.includes(name))) {
    const names = Object.keys(row.contestants), all = Object.fromEntries(names.map((name) => [name, []]));
    for (let round = 0; round < Number(values.rounds); round++)
      for (const name of names) all[name].push(measureInChild(row.name, name));
    const figures = Object.fromEntries(names.map((name) => [name, median(all[name])]));
    results.push({ row: row.name, what: row.what, unit: row.unit, figures, all, wanted: row.wanted });
    const shown = names.map((name) => `${name} ${digits(figures[name])}`).join('  ');
    process.stderr.write(`${row.name.padEnd(22)} ${shown}  ${row.unit}   (wanted: ${row.wanted || '-'})\n`);
  }
  if (values.json) fs.writeFileSync(values.json, `${JSON.stringify({ node: process.versions, results }, null, 1)}\n`);
  if (values.markdown) fs.writeFileSync(values.markdown, markdownOf(results));
  process.exit(0);
}

if (process.argv[2] === '--measure') measure(process.argv[3], process.argv[4]);
else main();
