#!/usr/bin/env node
// SPDX-License-Identifier: MIT
'use strict';
/*
 * test262.js [OPTION...] [TEXT...] - test262's files for Atomics.wait, notify and waitAsync, with the package's Atomics
 * object in place of the global one. Each file runs in sloppy and in strict mode, each time in a fresh worker of a
 * pool of processes. TEXT: only files whose path contains one of them.
 *
 *     --engine       run them with the engine's own Atomics, for comparison
 *     --jobs N       how many at a time (default: six for each processor, at most 16: they mostly sleep)
 *     --json         print the outcome of each file as JSON
 *     --plant NAME   plant a bug: see test262/plants.js
 *     --self-test    show that each planted bug is found
 *
 * The environment variable TEST262 says where test262 is: the directory with harness/ and test/. Exit status: 0 if the
 * files that fail are those of EXPECTED, 1 if not, 77 if TEST262 is not set.
 */

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { fork } = require('node:child_process');
const { parseArgs } = require('node:util');
const { plants } = require('./test262/plants.js');

const SKIPPED = 77;
const TIMEOUT_MS = 120000; // of one run of one file, with all its sleeps, on a slow machine

// Files that use a feature fail where this version of Node does not have it.
const EXPECTED = [
  {
    feature: 'immutable-arraybuffer',
    when: typeof ArrayBuffer.prototype.transferToImmutable !== 'function',
    reason: `Node ${process.versions.node} has no immutable ArrayBuffers`,
  },
  {
    feature: 'resizable-arraybuffer', // since Node 20
    when: typeof ArrayBuffer.prototype.resize !== 'function',
    reason: `Node ${process.versions.node} has no resizable ArrayBuffers`,
  },
];

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    engine: { type: 'boolean' }, json: { type: 'boolean' }, 'self-test': { type: 'boolean' },
    jobs: { type: 'string' }, plant: { type: 'string' },
  },
});

const root = process.env.TEST262 ? path.resolve(process.env.TEST262) : undefined;

/* What the comment at the top of a file says: the part of YAML that test262 uses for it. */
function metadataOf(source) {
  const text = /\/\*---([^]*?)---\*\//.exec(source)?.[1] ?? '';
  const list = (name) => { // [a, b], or a line with a dash for each
    const found = new RegExp(`^${name}:\\s*(?:\\[([^\\]]*)\\]|\\n((?:\\s+- .*\\n)+))`, 'm').exec(text);
    return (found?.[1] ?? found?.[2] ?? '').split(/[\s,]+/).filter((word) => word !== '' && word !== '-');
  };
  const negative = /^negative:\s*\n((?:[ \t]+.*\n)+)/m.exec(text)?.[1];
  return {
    flags: list('flags'), includes: list('includes'), features: list('features'),
    negative: negative && { phase: /phase:\s*(\S+)/.exec(negative)[1], type: /type:\s*(\S+)/.exec(negative)[1] },
  };
}

const readMetadata = (file) => metadataOf(fs.readFileSync(path.join(root, 'test', file), 'utf8'));

/* Why the file cannot pass with this version of Node, or undefined. */
function expectedFailure(file) {
  const { features } = readMetadata(file);
  return EXPECTED.find(({ feature, when }) => when && features.includes(feature))?.reason;
}

/* The runs of a file: in sloppy mode, in strict mode, or in both. */
function jobsOf(file, { plant, engine }) {
  const { flags, includes, negative } = readMetadata(file);
  const raw = flags.includes('raw'), async = flags.includes('async');
  if (flags.includes('module')) throw new Error(`${file}: modules are not supported`);
  const harness = raw ? [] : ['assert.js', 'sta.js', ...(async ? ['doneprintHandle.js'] : []), ...includes];
  const canBlock = !flags.includes('CanBlockIsFalse');
  const common = { root, file, includes: harness, async, negative, canBlock, plant, engine };
  const modes = raw || flags.includes('noStrict') ? [false] : flags.includes('onlyStrict') ? [true] : [false, true];
  return modes.map((strict) => ({ ...common, strict }));
}

function findFiles(texts) {
  const folder = path.join(root, 'test', 'built-ins', 'Atomics');
  return ['notify', 'wait', 'waitAsync']
    .flatMap((name) => fs.readdirSync(path.join(folder, name), { recursive: true })
      .map((file) => path.posix.join('built-ins/Atomics', name, file)))
    .filter((file) => file.endsWith('.js') && !file.includes('_FIXTURE'))
    .filter((file) => texts.length === 0 || texts.some((text) => file.includes(text)))
    .sort();
}

/* One process of the pool. It is replaced if it ends, and killed if a job takes too long. */
class Seat {
  #process;

  run(job) {
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc'];
    const child = this.#process ??= fork(path.join(__dirname, 'test262', 'process.js'), { stdio });
    return new Promise((resolve) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        child.kill('SIGKILL');
      }, TIMEOUT_MS);
      const end = (outcome) => {
        clearTimeout(timer);
        child.removeAllListeners();
        resolve(outcome);
      };
      child.once('message', end);
      child.once('exit', (code, signal) => {
        this.#process = undefined;
        end(isLate ? `not over after ${TIMEOUT_MS / 1000} s` : `the process ended: ${signal ?? `status ${code}`}`);
      });
      child.send(job);
    });
  }

  leave() {
    this.#process?.disconnect();
  }
}

/* Returns the outcomes of the files: {sloppy, strict} of each, null where it passed, otherwise what is wrong. */
async function runAll(files, settings) {
  const outcomes = {};
  const queue = files.flatMap((file) => jobsOf(file, settings)).values();
  const serve = async (seat) => {
    for (const job of queue) (outcomes[job.file] ??= {})[job.strict ? 'strict' : 'sloppy'] = await seat.run(job);
    seat.leave();
  };
  await Promise.all(Array.from({ length: settings.seats }, () => serve(new Seat())));
  return outcomes;
}

const hasPassed = (outcome) => Object.values(outcome).every((error) => error === null);

/* What is not as expected. */
function judge(outcomes) {
  const problems = [];
  for (const [file, outcome] of Object.entries(outcomes)) {
    const expected = expectedFailure(file) !== undefined;
    if (hasPassed(outcome) && expected) problems.push(`${file}: passes, though it is expected to fail`);
    if (hasPassed(outcome) || expected) continue;
    for (const [mode, error] of Object.entries(outcome))
      if (error !== null) problems.push(`${file} (${mode}): ${error}`);
  }
  return problems.sort();
}

function print(files, outcomes, problems, ms) {
  const passed = Object.values(outcomes).filter(hasPassed).length, node = process.versions.node;
  const result = { node, files: files.length, passed, problems, outcomes };
  if (options.json) return console.log(JSON.stringify(result, null, 2));
  for (const problem of problems) console.log(problem);
  for (const file of files) {
    const reason = expectedFailure(file);
    if (reason !== undefined && !hasPassed(outcomes[file])) console.log(`${file}: fails as expected: ${reason}`);
  }
  console.log(`test262, Atomics of ${options.engine ? 'the engine' : '@vigil/node'}, Node ${node}: ${passed} of ` +
    `${files.length} files passed, ${problems.length} problems, in ${(ms / 1000).toFixed(1)} s`);
}

async function main() {
  const start = Date.now(), files = findFiles(positionals);
  const seats = Math.max(1, Number(options.jobs ?? Math.min(16, 6 * os.cpus().length)) || 1);
  const outcomes = await runAll(files, { seats, plant: options.plant, engine: options.engine });
  const problems = judge(outcomes);
  print(files, outcomes, problems, Date.now() - start);
  return files.length > 0 && (problems.length === 0 || options.engine);
}

/* Each bug must be found, by a file that passes without it. */
async function selfTest() {
  const right = await runAll(findFiles(Object.values(plants).map(({ file }) => file)), { seats: 4 });
  const found = await Promise.all(Object.entries(plants).map(async ([name, { file }]) => {
    const wrong = judge(await runAll(findFiles([file]), { seats: 1, plant: name }));
    console.log(`${name}: ${wrong.length > 0 ? `found: ${wrong[0].split('\n', 1)[0]}` : `not found by ${file}`}`);
    return wrong.length > 0;
  }));
  for (const problem of judge(right)) console.log(problem);
  return judge(right).length === 0 && found.every(Boolean);
}

if (root === undefined) {
  console.log('skipped: TEST262 is not set. With a checkout of https://github.com/tc39/test262, run\n' +
    '    TEST262=path/to/test262 node test/node/test262.js');
  process.exitCode = SKIPPED;
} else {
  (options['self-test'] ? selfTest() : main()).then((good) => { process.exitCode = good ? 0 : 1; });
}
