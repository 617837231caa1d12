// SPDX-License-Identifier: MIT
// The chapter's page: it holds the lock, workers block in lock(), and a click unlocks it.

import { byId, enable, hasFailed, onPress, openVigil, seconds, setData, startWorker, stillWanted } from './common.js';
import { addThread, describe, place, removeThread, say } from './chapter_view.js';

const MOST_WORKERS = 6;
const LOOK_MS = 100;

const threads = new Map(); // id -> {id, name, number, state, isEnded, view, worker}: in the order of their beginning
let vigil, sharedArray, lock, mutex, leaving, workersSoFar = 0;

const page = { id: 'page', name: 'the page', state: 'away', isEnded: false };
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const holdMs = () => Number(byId('hold').value);

/* What the threads do. */

function got(thread, waitedMs, ownerDied) {
  for (const other of threads.values()) if (other.state === 'holds') released(other); // its message is on its way
  thread.state = 'holds';
  thread.since = performance.now();
  const wait = waitedMs < 50 ? 'without waiting' : `after ${seconds(waitedMs)} in line`;
  const died = ownerDied ? '; its last holder was terminated' : '';
  say(`${capital(thread.name)} got the lock ${wait}${died}.`, { died: ownerDied });
}

function released(thread) {
  if (thread.state !== 'holds') return;
  thread.state = 'away';
  if (!thread.isEnded) say(`${capital(thread.name)} unlocked it.`, { minor: true });
}

async function lockPage() {
  page.state = 'waits';
  leaving = new AbortController();
  const began = performance.now();
  draw();
  try {
    await mutex.lockAsync({ signal: leaving.signal }); // the page goes on meanwhile
    const { ownerDied } = mutex;
    if (ownerDied) mutex.consistent();
    got(page, performance.now() - began, ownerDied);
  } catch {
    page.state = 'away';
    if (leaving.signal.aborted) say('The page left the line.');
  }
  draw();
}

function unlockPage() {
  released(page);
  lock.unlock();
  draw();
}

function onWorkerMessage(thread, { attached, waiting, got: isGot, waitedMs, ownerDied, released: isReleased }) {
  if (thread.isEnded) return;
  if (attached) {
    thread.number = attached;
    queue(thread);
  }
  if (waiting) say(`${capital(thread.name)}: waiting for lock...`, { minor: true });
  if (isGot) got(thread, waitedMs, ownerDied);
  if (isReleased) released(thread);
  draw();
}

function queue(thread) {
  thread.state = 'waits';
  thread.worker.postMessage({ holdMs: holdMs() });
  draw();
}

function terminate(thread) {
  vigil.terminate(thread.worker, thread.number); // not inside the library
  thread.isEnded = true;
  say(`${capital(thread.name)} was terminated while it ${{ waits: 'waited', holds: 'held the lock', away: 'was away' }[
    thread.state]}.`);
  draw();
}

function addWorker() {
  const id = `worker-${++workersSoFar}`, name = `worker ${workersSoFar}`;
  const thread = { id, name, state: 'away', isEnded: false, worker: startWorker('chapter_worker.js', name) };
  thread.view = addThread(id, capital(name), { queue: () => queue(thread), terminate: () => terminate(thread) });
  thread.worker.onmessage = ({ data }) => onWorkerMessage(thread, data);
  thread.worker.postMessage({ handle: vigil.handle, sharedArray });
  threads.set(id, thread);
  draw();
}

/* What is shown: the line as the library has it, and the rest as the threads have told. */

function lineNow() {
  const waiters = vigil.look().find(({ address }) => address === sharedArray.byteOffset)?.waiters ?? [];
  const all = [...threads.values()];
  return waiters.map(({ thread: number, waited }) => ({ thread: all.find((one) => one.number === number), waited }))
    .filter(({ thread }) => thread !== undefined && thread.state === 'waits');
}

/* A terminated worker is shown until the library knows of it. */
function forgetEnded(line) {
  for (const thread of threads.values()) {
    const inLine = line.some((place) => place.thread === thread);
    if (!thread.isEnded || inLine || (thread.state === 'holds' && mutex.isLocked())) continue;
    if (thread.state === 'waits') say(`The place of ${thread.name} is gone.`, { minor: true });
    threads.delete(thread.id);
    removeThread(thread.view);
  }
}

function describeAll(line) {
  for (const thread of threads.values()) {
    const at = line.findIndex((place) => place.thread === thread), ended = thread.isEnded ? 'terminated; ' : '';
    if (at >= 0) {
      const waited = seconds(line[at].waited);
      describe(thread, thread.isEnded ? 'ended' : waited, `${ended}waits, place ${at + 1}, ${waited}`, false);
    } else if (thread.state === 'holds') {
      const held = seconds(performance.now() - thread.since);
      describe(thread, thread.isEnded ? 'ended' : held, `${ended}holds the lock, ${held}`, false);
    } else {
      const isAway = thread.state === 'away' && thread.number !== undefined;
      describe(thread, '', isAway ? 'does not want the lock' : 'is about to queue', isAway);
    }
  }
}

function draw() {
  if (hasFailed()) return;
  const line = lineNow();
  forgetEnded(line);
  const all = [...threads.values()], holder = all.find(({ state }) => state === 'holds');
  const queued = line.map(({ thread }) => thread);
  place({ now: holder ? [holder] : [], line: queued, away: all.filter((one) => one.state === 'away') });
  describeAll(line);
  enable(byId('unlock'), page.state === 'holds');
  enable(byId('lock'), page.state === 'away');
  enable(byId('leave'), page.state === 'waits');
  enable(byId('add'), threads.size <= MOST_WORKERS);
  const main = byId('main');
  setData(main, 'holder', holder?.id ?? '');
  setData(main, 'line', queued.map(({ id }) => id).join(' '));
}

async function begin() {
  vigil = await openVigil();
  if (!vigil) return;
  sharedArray = vigil.allocate(1);
  vigil.Lock.initialize(sharedArray, 0);
  lock = new vigil.Lock(sharedArray, 0);
  mutex = new vigil.Mutex(sharedArray, 0);
  page.number = vigil.thread;
  page.view = addThread(page.id, 'Page');
  threads.set(page.id, page);
  lock.lock(); // it is free: does not wait
  got(page, 0, false);
  addWorker();
  addWorker();
  onPress(byId('unlock'), unlockPage);
  onPress(byId('lock'), lockPage);
  onPress(byId('leave'), () => leaving.abort());
  onPress(byId('add'), addWorker);
  addEventListener('resize', draw);
  stillWanted.addEventListener('change', draw);
  setInterval(() => { if (!document.hidden) draw(); }, LOOK_MS);
  byId('main').dataset.state = 'ready';
}

begin();
