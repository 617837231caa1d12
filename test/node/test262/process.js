// SPDX-License-Identifier: MIT
'use strict';
// A process of the pool of test262.js. It runs the jobs that it is sent, one at a time, each in a fresh worker.

const path = require('node:path');
const { Worker } = require('node:worker_threads');

/* Sends null if the test passes, or what is wrong; and only when the worker, with its agents, has ended. */
async function run(job) {
  const worker = new Worker(path.join(__dirname, 'host.js'), { workerData: job });
  const outcome = await new Promise((resolve) => {
    worker.on('message', resolve);
    worker.on('error', (error) => resolve(String(error?.stack ?? error)));
    worker.on('exit', () => resolve('the environment ended before the test'));
  });
  await worker.terminate();
  process.send(outcome);
}

process.on('message', run);
