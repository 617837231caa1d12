// SPDX-License-Identifier: MIT
// The article's lock and ours under the same load: rounds of equal length in turn, for the page and four workers.

import { byId, enable, milliseconds, onPress, openVigil, setData, setText, make, startWorker } from './common.js';
import { CONTENDERS, Figures, busyFor, now, openLocks } from './article_load.js';
import { Frames } from './article_frames.js';

const KINDS = ['article', 'vigil'];
const NAMES = { article: "the article's lock", vigil: "Vigil's lock" };
const SHOW_MS = 250;
const TIMER_MS = 4; // setTimeout may be as late as that

const main = byId('main');
const contenderId = (i) => (i === 0 ? 'page' : `worker-${i}`);
const values = new Float64Array(new SharedArrayBuffer(8 * Figures.LENGTH)), figures = new Figures(values);
const frames = new Frames(byId('dot'));
const workers = [];
let vigil, locks, totals, isStopped;

/* The page's part of a round. */

const { port1, port2 } = new MessageChannel();
const inAnotherTask = (action) => {
  port1.onmessage = action;
  port2.postMessage(0);
};

function restFor(ms, then) {
  const end = performance.now() + ms;
  const look = () => (performance.now() < end ? inAnotherTask(look) : then());
  if (ms > TIMER_MS) setTimeout(then, ms);
  else inAnotherTask(look);
}

/* Resolves when the round is over, and the page neither has the lock nor wants it. */
function contend(lock, holdMs, restMs) {
  return new Promise((resolve) => {
    function want() {
      if (figures.isOver) return resolve();
      figures.wants(0);
      return lock.executeLocked(() => {
        figures.gets(0);
        busyFor(holdMs);
        restFor(restMs, want);
      });
    }
    want();
  });
}

/* Rounds. */

const emptyTotal = () => ({ ms: 0, grants: Array(CONTENDERS).fill(0), longestMs: Array(CONTENDERS).fill(0),
  drawn: 0, dropped: 0, longestFrameMs: 0 });

/* What a total becomes with the round that is running. */
function plusRound(total, began) {
  const seen = figures.read();
  return {
    ms: total.ms + Math.min(now(), figures.end) - began,
    grants: total.grants.map((grants, i) => grants + seen[i].grants),
    longestMs: total.longestMs.map((longest, i) => Math.max(longest, seen[i].longestMs)),
    drawn: total.drawn + frames.drawn,
    dropped: total.dropped + frames.dropped,
    longestFrameMs: Math.max(total.longestFrameMs, frames.longestMs),
  };
}

const over = (worker) => new Promise((resolve) => { worker.onmessage = resolve; });

async function round(kind, { holdMs, restMs, roundMs }, progress) {
  const began = now();
  figures.begin(began + roundMs);
  frames.reset();
  byId(kind).classList.add('running');
  const timer = setInterval(() => {
    show(kind, plusRound(totals[kind], began));
    progress(Math.min(1, (now() - began) / roundMs));
  }, SHOW_MS);
  const others = workers.map(over);
  for (const worker of workers) worker.postMessage({ kind, holdMs, restMs });
  await contend(locks[kind], holdMs, restMs);
  const total = plusRound(totals[kind], began);
  await Promise.all(others);
  clearInterval(timer);
  totals[kind] = total;
  show(kind, total);
  byId(kind).classList.remove('running');
}

/* What is shown. Each figure is also in data-value of its element, as a plain number. */

function showFigure(id, value, text) {
  setText(byId(id), text);
  setData(byId(id), 'value', value);
}

function show(kind, total) {
  const sum = total.grants.reduce((a, b) => a + b, 0);
  for (let i = 0; i < CONTENDERS; i++) {
    const id = `${kind}-${contenderId(i)}`, share = sum > 0 ? total.grants[i] / sum : 0;
    showFigure(`${id}-share`, share, `${(100 * share).toFixed(1)} %`);
    showFigure(`${id}-grants`, total.grants[i], String(total.grants[i]));
    byId(`${id}-bar`).style.width = `${Math.min(100, 250 * share)}%`; // the middle is a fifth
  }
  const share = sum > 0 ? total.grants[0] / sum : 0, workersLongest = Math.max(...total.longestMs.slice(1));
  showFigure(`${kind}-share`, share, `${(100 * share).toFixed(1)} %`);
  const rate = Math.round(sum / Math.max(1, total.ms) * 1000);
  showFigure(`${kind}-grants`, sum, String(sum));
  showFigure(`${kind}-rate`, rate, String(rate));
  showFigure(`${kind}-page-longest`, total.longestMs[0], milliseconds(total.longestMs[0]));
  showFigure(`${kind}-workers-longest`, workersLongest, milliseconds(workersLongest));
  showFigure(`${kind}-dropped`, total.dropped, `${total.dropped} of ${total.drawn + total.dropped}`);
  showFigure(`${kind}-frame`, total.longestFrameMs, milliseconds(total.longestFrameMs));
}

function showState(state, text) {
  setData(main, 'state', state);
  setText(byId('status'), text);
  enable(byId('start'), state !== 'running');
  enable(byId('stop'), state === 'running');
}

function rows(kind) {
  const bars = byId(`${kind}-bars`);
  for (let i = 0; i < CONTENDERS; i++) {
    const id = `${kind}-${contenderId(i)}`, bar = make('span', { className: i === 0 ? 'bar page' : 'bar' },
      make('i', { id: `${id}-bar` }));
    bars.append(make('span', {}, i === 0 ? 'Page' : `Worker ${i}`), bar,
      make('span', { id: `${id}-share`, className: 'number' }, '\u2013'),
      make('span', { id: `${id}-grants`, className: 'number' }, '\u2013'));
  }
}

/* A run: rounds in turn, and then everything stops. */

const busyNote = () => (frames.idleDropped === 0 ? ''
  : ' This computer is busy: frames were missed before it began.');
const numberOf = (id) => Number(byId(id).value);

async function run() {
  const load = { holdMs: numberOf('hold'), restMs: numberOf('rest'), roundMs: numberOf('length') };
  const rounds = numberOf('rounds');
  isStopped = false;
  totals = { article: emptyTotal(), vigil: emptyTotal() };
  showState('running', 'Measuring the frames of an idle page.');
  for (const kind of KINDS) show(kind, totals[kind]);
  await frames.start();
  for (let i = 0; i < 2 * rounds && !isStopped; i++) {
    const kind = KINDS[i % 2];
    setText(byId('status'), `Round ${i + 1} of ${2 * rounds}: ${NAMES[kind]}.`);
    await round(kind, load, (part) => { byId('progress').style.width = `${100 * (i + part) / (2 * rounds)}%`; });
  }
  frames.stop();
  byId('progress').style.width = isStopped ? '0' : '100%';
  setText(byId('figures'), JSON.stringify({ load: { ...load, rounds }, stopped: isStopped,
    idleDropped: frames.idleDropped, ...totals }));
  const enough = totals.vigil.ms > 0 && !isStopped;
  showState('done', enough ? `Done: ${2 * rounds} rounds of ${load.roundMs / 1000} s, ` +
    `${Math.round(frames.perSecond)} frames a second.${busyNote()}` : 'Stopped.');
}

function stop() {
  isStopped = true;
  figures.end = Math.min(figures.end, now());
}

async function begin() {
  for (const kind of KINDS) rows(kind);
  setData(main, 'state', 'opening');
  vigil = await openVigil();
  if (!vigil) return;
  if (typeof Atomics.waitAsync !== 'function') {
    setText(byId('status'), 'This browser has no Atomics.waitAsync, which the article\u2019s lock needs.');
    return;
  }
  const words = { article: new SharedArrayBuffer(4), vigil: vigil.allocate(1) };
  locks = openLocks(vigil, words);
  for (let i = 1; i < CONTENDERS; i++) {
    const worker = startWorker('article_worker.js', `worker ${i}`);
    workers.push(worker);
    worker.postMessage({ handle: vigil.handle, contender: i, values, words });
  }
  await Promise.all(workers.map(over));
  onPress(byId('start'), run);
  onPress(byId('stop'), stop);
  document.addEventListener('visibilitychange', () => { if (document.hidden) stop(); }); // a hidden page has no frames
  showState('ready', 'Ready.');
}

begin();
