// SPDX-License-Identifier: MIT
// The scenario of lines.html: a shop, with the locks of its books and machines, and what its workers do.

// One element each, in one array. The condition goes with the mutex `jobs`; `pause` is no lock, but a word to wait on.
export const PLACES = [
  { name: 'orders', kind: 'Mutex' },
  { name: 'prices', kind: 'RwLock' },
  { name: 'printers', kind: 'Semaphore, 2 permits' },
  { name: 'jobs', kind: 'Mutex' },
  { name: 'more jobs', kind: 'Condition, with jobs' },
  { name: 'pause', kind: 'plain wait' },
];
export const [ORDERS, PRICES, PRINTERS, JOBS, MORE_JOBS, PAUSE] = PLACES.keys();
export const JOB_COUNT = PLACES.length; // how many jobs there are: protected by `jobs`
export const PRINTER_COUNT = 2;

// What each thread writes down of itself in an array of its own: what it holds, to write or not, and since when.
export const NOTE_FIELDS = 3;
export const READS = 0, WRITES = 1;

const clockMs = () => (performance.timeOrigin + performance.now()) | 0; // of which only differences matter

export class Note {
  constructor(array, thread) {
    this.array = array;
    this.at = thread * NOTE_FIELDS;
  }

  /* place: which lock it holds; -1: none. */
  write(place, mode = WRITES) {
    Atomics.store(this.array, this.at + 2, clockMs());
    Atomics.store(this.array, this.at + 1, mode);
    Atomics.store(this.array, this.at, place + 1);
  }

  read() {
    const [place, mode, since] = this.array.subarray(this.at, this.at + NOTE_FIELDS);
    return { place: place - 1, mode, heldMs: Math.max(0, (clockMs() - since) | 0) };
  }
}

// How long something takes, in milliseconds: {kind: [least, most]}.
const TAKES = { rest: [80, 400], short: [200, 700], middle: [500, 1400], long: [1200, 2600] };
export function durationOf(kind) {
  const [least, most] = TAKES[kind];
  return least + Math.random() * (most - least);
}

// The worker's day, over and over: [what, how long it holds it].
const CLERK = { role: 'clerk', day: [['orders', 'short'], ['print', 'long'], ['read prices', 'middle']] };
const SELLER = { role: 'seller', day: [['read prices', 'middle'], ['orders', 'short'], ['print', 'long']] };
const PACKER = { role: 'packer', day: [['take job', 'short'], ['read prices', 'middle'], ['print', 'long']] };
const MANAGER = { role: 'manager', day: [['write prices', 'middle'], ['orders', 'short'], ['write prices', 'short']] };
export const ROLES = [CLERK, CLERK, CLERK, SELLER, SELLER, PACKER, PACKER, MANAGER];
