// SPDX-License-Identifier: MIT
// lines.html: the lines of a page, with their holders, four times a second. The page takes part in them, too.

import { byId, hasFailed, make, onPress, openVigil, seconds, setData, setText, startWorker } from './common.js';
import { JOBS, JOB_COUNT, MORE_JOBS, Note, NOTE_FIELDS, ORDERS, PAUSE, PLACES, PRINTERS, PRINTER_COUNT, READS, ROLES }
  from './lines_shop.js';

const SHOW_MS = 250;
const CHIPS = 8;
const PAGE_HOLDS_MS = 400, PAGE_RESTS_MS = 1500;

const threads = [{ id: 'page', name: 'Page', short: 'Page', role: 'owner' },
  ...ROLES.map(({ role }, i) => ({ id: `worker-${i + 1}`, name: `Worker ${i + 1}`, short: `W${i + 1}`, role }))];
let vigil, array, notes, isPaused = false;

/* The page's own work. */

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function work() {
  const orders = new vigil.Mutex(array, ORDERS), jobs = new vigil.Mutex(array, JOBS);
  const moreJobs = new vigil.Condition(array, MORE_JOBS), note = threads[0].note;
  for (;;) {
    await vigil.waitAsync(array, PAUSE, 1).value;
    await orders.runExclusive(async () => {
      note.write(ORDERS);
      await sleep(PAGE_HOLDS_MS);
      note.write(-1);
    });
    await jobs.runExclusive(() => { array[JOB_COUNT]++; });
    moreJobs.signal();
    await sleep(PAGE_RESTS_MS);
  }
}

function togglePause() {
  isPaused = !isPaused;
  Atomics.store(array, PAUSE, isPaused ? 1 : 0);
  if (!isPaused) vigil.notify(array, PAUSE);
  setText(byId('pause'), isPaused ? 'Let them work' : 'Let them rest');
}

/* The tables: their rows are made once, and only texts change. */

const cell = (label, className, ...children) => {
  const td = make('td', { className }, ...children);
  td.dataset.label = label;
  return td;
};

function chipsOf(count) {
  const chips = Array.from({ length: count }, () => make('span', { className: 'chip', hidden: true }));
  return { box: make('div', { className: 'chips' }, ...chips), chips };
}

function fillChips(chips, entries, isHolding) {
  chips.forEach((chip, i) => {
    const entry = entries[i];
    const isHidden = entry === undefined;
    if (chip.hidden !== isHidden) chip.hidden = isHidden;
    if (isHidden) return;
    const side = isHolding ? 'chip holds' : entry.thread.id === 'page' ? 'chip page' : 'chip';
    if (chip.className !== side) chip.className = side;
    setText(chip, `${entry.thread.short} ${seconds(entry.ms)}`);
  });
}

function headOf(name, more) {
  const head = make('th', {}, name, make('small', {}, more));
  head.scope = 'row';
  return head;
}

function addLine(place, index) {
  const holders = chipsOf(index === PAUSE || index === MORE_JOBS ? 0 : CHIPS), waiters = chipsOf(CHIPS);
  const count = make('span', {}, '0'), longest = make('span', {}, '\u2013');
  const row = make('tr', { id: `line-${index}` }, headOf(place.name, place.kind), cell('Held by', '', holders.box),
    cell('In line', 'right', count), cell('Longest', 'right', longest), cell('Who waits', '', waiters.box));
  byId('lines').append(row);
  return { row, holders: holders.chips, waiters: waiters.chips, count, longest };
}

function addThread(thread) {
  const does = make('span'), ms = make('span');
  const row = make('tr', { id: thread.id }, headOf(thread.name, thread.role), cell('Now', '', does),
    cell('For', 'right', ms));
  byId('threads').append(row);
  return { row, does, ms };
}

/* What the library and the threads say at one time. */
function lookAround() {
  const seen = vigil.look(), byNumber = new Map(threads.map((thread) => [thread.number, thread]));
  const holding = threads.map((thread) => ({ thread, ...thread.note.read() }));
  return PLACES.map((place, index) => {
    const line = seen.find(({ address }) => address === array.byteOffset + 4 * index);
    const waiters = (line?.waiters ?? []).map(({ thread, waited }) => ({ thread: byNumber.get(thread), ms: waited }))
      .filter(({ thread }) => thread !== undefined);
    const holders = holding.filter(({ place: held }) => held === index)
      .map(({ thread, heldMs, mode }) => ({ thread, ms: heldMs, mode }));
    return { place, index, count: line?.count ?? 0, waiters, holders };
  });
}

function showLine({ index, count, waiters, holders }) {
  const { view } = PLACES[index];
  fillChips(view.holders, holders, true);
  fillChips(view.waiters, waiters, false);
  setText(view.count, String(count));
  setText(view.longest, waiters.length > 0 ? seconds(Math.max(...waiters.map(({ ms }) => ms))) : '\u2013');
  setData(view.row, 'count', count);
  setData(view.row, 'holders', holders.map(({ thread }) => thread.id).join(' '));
  setData(view.row, 'waiters', waiters.map(({ thread }) => thread.id).join(' '));
}

const verbOf = (index, mode) => (index === PRINTERS ? 'uses one of the' : mode === READS ? 'reads' : 'holds');

function showThread(thread, lines) {
  const { view } = thread;
  for (const { place, index, waiters, holders } of lines) {
    const at = waiters.findIndex((one) => one.thread === thread), held = holders.find((one) => one.thread === thread);
    if (at < 0 && !held) continue;
    setText(view.does, held ? `${verbOf(index, held.mode)} ${place.name}` : index === PAUSE ? 'rests'
      : `waits for ${place.name}, place ${at + 1}`);
    setText(view.ms, seconds(held ? held.ms : waiters[at].ms));
    return;
  }
  setText(view.does, 'wants nothing');
  setText(view.ms, '\u2013');
}

function show() {
  const lines = lookAround();
  lines.forEach(showLine);
  for (const thread of threads) showThread(thread, lines);
  const waiting = lines.flatMap(({ waiters }) => waiters);
  setText(byId('sum'), `${waiting.length} of ${threads.length} threads wait, in ` +
    `${lines.filter(({ count }) => count > 0).length} of ${lines.length} lines.`);
}

/* Beginning. */

function startOne(thread, number) {
  return new Promise((resolve) => {
    const worker = startWorker('lines_worker.js', thread.name);
    worker.onmessage = ({ data }) => {
      thread.number = data;
      resolve();
    };
    worker.postMessage({ handle: vigil.handle, array, notes, number });
  });
}

async function begin() {
  PLACES.forEach((place, index) => { place.view = addLine(place, index); });
  for (const thread of threads) thread.view = addThread(thread);
  byId('main').dataset.state = 'opening';
  vigil = await openVigil();
  if (!vigil) return;
  array = vigil.allocate(PLACES.length + 1);
  notes = vigil.allocate(threads.length * NOTE_FIELDS);
  vigil.Semaphore.initialize(array, PRINTERS, PRINTER_COUNT);
  threads.forEach((thread, i) => { thread.note = new Note(notes, i); });
  threads[0].number = vigil.thread;
  await Promise.all(threads.slice(1).map((thread, i) => startOne(thread, i + 1)));
  work();
  onPress(byId('pause'), togglePause);
  byId('pause').setAttribute('aria-disabled', 'false');
  setInterval(() => { if (!document.hidden && !hasFailed()) show(); }, SHOW_MS);
  show();
  byId('main').dataset.state = 'ready';
}

begin();
