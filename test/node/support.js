// SPDX-License-Identifier: MIT
'use strict';
// What the tests of the Node package share. The package is taken from VIGIL_NODE, or from node/ of this checkout.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { Worker } = require('node:worker_threads');

const folder = process.env.VIGIL_NODE ?? path.join(__dirname, '..', '..', 'node');
const library = path.join(folder, 'lib', 'index.js');
const vigil = require(library);

/* Longer than anything takes that does not hang. */
const HANGS_MS = 60000;
const tick = () => new Promise((resolve) => setImmediate(resolve));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(condition, what = 'a condition') {
  const end = performance.now() + HANGS_MS;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (performance.now() > end) throw new Error(`gave up waiting for ${what}`);
    await tick();
  }
}

/* The promise, or an exception if that hangs. */
function within(promise, what = 'a promise', ms = HANGS_MS) {
  let timer;
  const hangs = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hangs: ${what}`)), ms);
  });
  return Promise.race([promise, hangs]).finally(() => clearTimeout(timer));
}

function words(count, Type = Int32Array) {
  return new Type(new SharedArrayBuffer(count * Type.BYTES_PER_ELEMENT));
}

/* A small generator of random numbers, the same for the same seed (mulberry32): random(n) is from 0 to n - 1. */
function randomOf(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * n);
  };
}
const seedOf = (name) => {
  const seed = Number(process.env.VIGIL_SEED ?? (Date.now() % 1000000));
  console.log(`# ${name}: VIGIL_SEED=${seed}`);
  return seed;
};

// What must not outlive this process.
const children = new Set();
const names = new Set(), segments = new Set(), folders = new Set();
let last = 0;

function uniqueName(what) {
  const name = `nodetest-${process.pid}-${what}-${++last}`;
  names.add(name);
  return name;
}

function uniqueSegment(what) {
  const name = `nodetest-${process.pid}-${what}-${++last}`;
  segments.add(name);
  return name;
}

function temporaryFolder() {
  const made = fs.mkdtempSync(path.join(require('node:os').tmpdir(), 'vigil-node-'));
  folders.add(made);
  return made;
}

function attempt(action) {
  try {
    return action();
  } catch {
    return undefined;
  }
}

process.on('exit', () => {
  for (const child of children) attempt(() => process.kill(child.pid, 'SIGKILL'));
  for (const name of names) attempt(() => vigil.locks.remove(name, { force: true }));
  for (const name of segments) attempt(() => vigil.Segment.unlink(name));
  for (const each of folders) attempt(() => fs.rmSync(each, { recursive: true, force: true }));
});
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(1));

/* A function that returns promises of what is put, in order. */
function queueOf(listen) {
  const items = [], readers = [];
  listen((item) => (readers.length > 0 ? readers.shift()(item) : items.push(item)));
  return () => new Promise((resolve) => (items.length > 0 ? resolve(items.shift()) : readers.push(resolve)));
}

/* A worker that runs the code, with `vigil`, `data` (workerData), `say` (postMessage) and `tid` defined. */
function worker(code, data, options = {}) {
  const prelude = `
    const { parentPort, workerData: data } = require('node:worker_threads');
    const vigil = require(${JSON.stringify(library)});
    const say = (message) => parentPort.postMessage(message);
    const tid = Number(require('node:fs').readlinkSync('/proc/thread-self').split('/').pop());
    (async () => {`;
  const made = new Worker(`${prelude}${code}\n})();`, { eval: true, workerData: data, ...options });
  made.ended = new Promise((resolve) => made.once('exit', resolve));
  const failed = new Promise((_, reject) => made.once('error', reject));
  failed.catch(() => {});
  const next = queueOf((put) => made.on('message', put));
  made.next = () => Promise.race([next(), failed]);
  return made;
}

/* Whether the thread sleeps in a blocking call of ours: in epoll_wait or epoll_pwait. */
function isBlocked(tid) {
  const call = attempt(() => fs.readFileSync(`/proc/self/task/${tid}/syscall`, 'utf8'));
  if (call === undefined) return false;
  return ['232', '281', '22'].includes(call.split(' ')[0]);
}

/*
 * Another Node process that runs the code, with `vigil` and `say` (a line of JSON to us) defined. It ends when this
 * process ends, because its standard input does.
 */
function processOf(code, { environment = {}, dies = true, load = true } = {}) {
  const prelude = `
    ${load ? `const vigil = require(${JSON.stringify(library)});` : ''}
    const say = (message) => require('node:fs').writeSync(1, JSON.stringify(message) + '\\n');
    ${dies ? 'process.stdin.on("end", () => process.exit(3)).resume(); process.stdin.unref?.();' : ''}
    (async () => {`;
  const child = spawn(process.execPath, ['-e', `${prelude}${code}\n})();`],
    { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...environment } });
  children.add(child);
  let text = '';
  child.next = queueOf((put) => child.stdout.setEncoding('utf8').on('data', (more) => {
    text += more;
    for (let at; (at = text.indexOf('\n')) >= 0; text = text.slice(at + 1)) put(JSON.parse(text.slice(0, at)));
  }));
  child.ended = new Promise((resolve) => child.once('close', (code, signal) => {
    children.delete(child);
    resolve(signal ?? code);
  }));
  return child;
}

module.exports = {
  vigil, folder, library, tick, sleep, until, within, words, randomOf, seedOf, uniqueName, uniqueSegment,
  temporaryFolder, attempt, worker, isBlocked, processOf, HANGS_MS,
};
