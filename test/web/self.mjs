// SPDX-License-Identifier: MIT
// self.mjs [--demo] [PATTERN] - the tests can fail: each planted bug (plants.mjs) is found, by the error that it must
// cause, and without it the same test passes. With --demo, the bugs of the demonstration pages; else the others.

import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch, root } from './browsers.mjs';
import { demoTests, limits } from './demos.mjs';
import { startServers } from './servers.mjs';
import { plants } from './plants.mjs';
import { PageRunner, Report } from './tests.mjs';

const { build } = createRequire(join(root, 'web', 'package.json'))('esbuild');
const built = join(root, 'build', 'web'), scratch = mkdtempSync(join(tmpdir(), 'vigil-web-self-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

/*
 * With a planted bug, hanging is noticed after a shorter time than in the tests, but longer than a browser takes to end
 * a worker. Sound programs, and bugs that had another effect than they must have, get as long as in the tests: the
 * machine may be busy.
 */
const SHORT = { hangsMs: 5000, blockedMs: 20000, demoMs: 5000 };
const LONG = { hangsMs: 20000, blockedMs: 60000, demoMs: 45000 };

function replace(text, from, to, where) {
  if (text.split(from).length !== 2) throw new Error(`${where}: \`${from}\` must occur once`);
  return text.replace(from, () => to);
}

/* vigil.js with the bug. */
function bundle(folder, { file, from, to }) {
  const plugin = { name: 'plant', setup: ({ onLoad }) => onLoad({ filter: /\.js$/ }, ({ path }) =>
    (path === join(root, file) ? { contents: replace(readFileSync(path, 'utf8'), from, to, file) } : undefined)) };
  return build({ entryPoints: [join(root, 'web', 'lib', 'index.js')], bundle: true, format: 'esm', target: 'es2022',
    define: { SIDE: 'false' }, outfile: join(folder, 'vigil.js'), logLevel: 'error', plugins: [plugin] });
}

/* vigil.wasm with the bug in a source of it. */
function compile(folder, { source, from, to }) {
  const changed = join(folder, 'planted.c');
  writeFileSync(changed, replace(readFileSync(join(root, source), 'utf8'), from, to, source));
  execFileSync(join(root, 'web', 'build.sh'), ['--plant', source, changed, folder], { stdio: 'inherit' });
}

/* The demonstration pages with the bug. */
function changeDemo(folder, { demo, from, to }) {
  const file = join(folder, demo);
  cpSync(join(root, 'web', 'demo'), folder, { recursive: true });
  writeFileSync(file, replace(readFileSync(file, 'utf8'), from, to, demo));
}

async function serverOf(plant) {
  if (plant.demo) {
    const pages = mkdtempSync(join(scratch, 'demo-'));
    changeDemo(pages, plant);
    return startServers(built, pages);
  }
  const folder = mkdtempSync(join(scratch, 'package-'));
  for (const file of ['vigil.js', 'vigil.wasm']) copyFileSync(join(built, file), join(folder, file));
  if (plant.file) await bundle(folder, plant);
  if (plant.source) compile(folder, plant);
  return startServers(folder);
}

async function runDemo(browser, servers, name, demoMs) {
  const before = performance.now();
  limits.demoMs = demoMs;
  const error = await demoTests[name](browser, servers, () => {}).then(() => undefined, ({ message }) => message);
  return { error, ms: Math.round(performance.now() - before) };
}

/* The test `found`. */
async function runTest(browser, servers, { found: name, query = '' }, { hangsMs, blockedMs, demoMs }) {
  if (demoTests[name]) return runDemo(browser, servers, name, demoMs);
  const runner = new PageRunner(browser, `${servers.isolated}?hangs=${hangsMs}&${query}`);
  const result = await runner.run(name, blockedMs);
  await runner.close();
  return result;
}

/* With the bug, the test must fail, and its error must match `says`. */
async function runPlanted(browser, plant) {
  const servers = await serverOf(plant), isWrong = ({ error }) => error !== undefined && !plant.says.test(error);
  let seen = await runTest(browser, servers, plant, SHORT);
  if (isWrong(seen)) seen = await runTest(browser, servers, plant, LONG);
  const { error, ms } = seen;
  if (error === undefined) return { ms, error: `not found by ${plant.found}` };
  return { ms, error: isWrong(seen) ? `${plant.found} must say ${plant.says}, but says ${error}` : undefined };
}

const ofDemo = process.argv[2] === '--demo', pattern = new RegExp(process.argv[ofDemo ? 3 : 2] ?? '');
const browser = await launch('chromium'), report = new Report(), sound = await startServers();
const chosen = Object.entries(plants).filter(([title, { demo }]) => pattern.test(title) && ofDemo === Boolean(demo));
const passes = new Map(chosen.map(([, { found, query }]) => [`${found} ${query}`, { found, query }]));
for (const each of passes.values()) report.add(`passes: ${each.found}`, await runTest(browser, sound, each, LONG));
for (const [title, plant] of chosen) report.add(`found: ${title}`, await runPlanted(browser, plant));
const isGood = report.end();
await browser.close();
process.exit(isGood ? 0 : 1);
