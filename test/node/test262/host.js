// SPDX-License-Identifier: MIT
'use strict';
/*
 * A worker in which a file of test262 runs, or an agent that such a file starts: the host that its INTERPRETING.md
 * asks for. Both replace the global Atomics of their own environment. The host itself uses the engine's.
 */

const fs = require('node:fs');
const path = require('node:path');
const v8 = require('node:v8');
const vm = require('node:vm');
const { parentPort, workerData: job, Worker, MessageChannel, receiveMessageOnPort } = require('node:worker_threads');
const { plant } = require('./plants.js');

const { add, load, notify, wait } = Atomics;

// Words that a test shares with its agents.
const RUNNING = 0, SENT = 1, RECEIVED = 2, REPORTS = 3, WORDS = 4;

function runScript(source, filename) {
  return vm.runInThisContext(source, { filename });
}

/* The package must leave the global Atomics alone; only then replace it, as a program may. */
function replaceAtomics() {
  const engine = Atomics, before = Object.getOwnPropertyDescriptors(Atomics);
  const { createAtomics } = require('../../../node/lib/index.js');
  const after = Object.getOwnPropertyDescriptors(Atomics);
  const same = Reflect.ownKeys(after).every((key) => after[key].value === before[key]?.value);
  if (Atomics !== engine || !same || Reflect.ownKeys(before).length !== Reflect.ownKeys(after).length)
    throw new Error('loading the package has changed the global Atomics');
  const value = plant(job.plant, createAtomics({ canBlock: job.canBlock }));
  Object.defineProperty(globalThis, 'Atomics', { value, writable: true, enumerable: false, configurable: true });
}

const still = new Int32Array(new SharedArrayBuffer(4));
const both = {
  sleep(ms) { wait(still, 0, 0, ms); },
  monotonicNow() { return Number(process.hrtime.bigint()) / 1e6; },
};

/* $262.agent of a test. Reports are numbered, so that they arrive in the order in which the agents made them. */
function parentAgent() {
  const words = new Int32Array(new SharedArrayBuffer(4 * WORDS));
  const ports = [], reports = new Map();
  let next = 0;

  function sleepUntil(word, value) {
    for (let seen = load(words, word); seen !== value; seen = load(words, word)) wait(words, word, seen);
  }

  function drain() {
    for (const port of ports) {
      for (let got = receiveMessageOnPort(port); got; got = receiveMessageOnPort(port)) {
        const { number, text, error } = got.message;
        if (error !== undefined) throw new Error(`in an agent: ${error}`);
        reports.set(number, text);
      }
    }
  }

  return {
    ...both,
    start(script) {
      const { port1, port2 } = new MessageChannel();
      ports.push(port1);
      const workerData = { ...job, script, words, port: port2, sent: load(words, SENT) };
      new Worker(__filename, { workerData, transferList: [port2] });
      sleepUntil(RUNNING, ports.length);
    },
    broadcast(buffer, number) {
      const received = load(words, RECEIVED) + ports.length;
      for (const port of ports) port.postMessage({ buffer, number });
      add(words, SENT, 1);
      notify(words, SENT);
      sleepUntil(RECEIVED, received);
    },
    getReport() {
      drain();
      const text = reports.get(next);
      if (text === undefined) return null;
      reports.delete(next++);
      return text;
    },
  };
}

/* $262.agent of an agent. */
function childAgent({ words, port, sent }) {
  return {
    ...both,
    receiveBroadcast(callback) {
      while (load(words, SENT) === sent) wait(words, SENT, sent);
      sent++;
      const { buffer, number } = receiveMessageOnPort(port).message;
      add(words, RECEIVED, 1);
      notify(words, RECEIVED);
      callback(buffer, number);
    },
    report(value) {
      const text = String(value);
      port.postMessage({ number: add(words, REPORTS, 1), text });
    },
    leaving() {},
  };
}

/* $262 of a realm. */
function hostOf(global, evalScript, agent) {
  return {
    global, evalScript, agent,
    createRealm() {
      const context = vm.createContext();
      return hostOf(vm.runInContext('globalThis', context), (source) => vm.runInContext(source, context), agent);
    },
    detachArrayBuffer(buffer) { structuredClone(null, { transfer: [buffer] }); },
    gc() {
      v8.setFlagsFromString('--expose-gc');
      vm.runInNewContext('gc')();
    },
  };
}

function runAgent() {
  const fail = (error) => job.port.postMessage({ error: String(error?.stack ?? error) });
  process.on('uncaughtException', fail);
  globalThis.$262 = hostOf(globalThis, runScript, childAgent(job));
  add(job.words, RUNNING, 1);
  notify(job.words, RUNNING);
  runScript(job.script, 'agent');
}

/* null: it ended as it should. Otherwise what is wrong. */
function judge(error, ended) {
  const { negative } = job;
  if (!negative) return ended ? null : String(error?.stack ?? error);
  if (ended) return `expected a ${negative.type}`;
  return error?.constructor?.name === negative.type ? null : `expected a ${negative.type}: ${error?.stack ?? error}`;
}

function runTest() {
  const finish = (outcome) => setImmediate(() => parentPort.postMessage(outcome)); // after unhandled rejections
  globalThis.$262 = hostOf(globalThis, runScript, parentAgent());
  globalThis.print = (text) => {
    if (text === 'Test262:AsyncTestComplete') finish(judge(undefined, true));
    else if (String(text).startsWith('Test262:AsyncTestFailure')) finish(String(text));
  };
  for (const file of job.includes) runScript(fs.readFileSync(path.join(job.root, 'harness', file), 'utf8'), file);
  const source = fs.readFileSync(path.join(job.root, 'test', job.file), 'utf8');
  try {
    runScript(job.strict ? `'use strict';\n${source}` : source, job.file);
  } catch (error) {
    return finish(judge(error, false));
  }
  if (!job.async) finish(judge(undefined, true));
}

if (job.engine) setInterval(() => {}, 1000); // the engine's waitAsync does not keep an environment alive
else replaceAtomics();
if (job.script === undefined) runTest();
else runAgent();
