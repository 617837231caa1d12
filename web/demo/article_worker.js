// SPDX-License-Identifier: MIT
// A contender of article.html that blocks: one message to attach, one for each round.

import { Vigil } from './vigil/vigil.js';
import { Figures, busyFor, openLocks } from './article_load.js';

const sleepWord = new Int32Array(new SharedArrayBuffer(4));
let contender, figures, locks;

function restFor(ms) {
  if (ms < 1) busyFor(ms);
  else Atomics.wait(sleepWord, 0, 0, ms);
}

function round({ kind, holdMs, restMs }) {
  const lock = locks[kind];
  while (!figures.isOver) {
    figures.wants(contender);
    lock.lock();
    figures.gets(contender);
    busyFor(holdMs);
    lock.unlock();
    restFor(restMs);
  }
}

self.addEventListener('message', async ({ data }) => {
  if (data.handle) {
    locks = openLocks(await Vigil.attach(data.handle), data.words);
    contender = data.contender;
    figures = new Figures(data.values);
    self.postMessage('attached');
  } else {
    round(data);
    self.postMessage('over');
  }
});
