// SPDX-License-Identifier: MIT
// Vigil in the browser: the library as WebAssembly, on memory that a page and its workers share. The classes are those
// of @vigil/node, whose files they are.

import { HOLDING, scratchOf, createCore } from '../../node/lib/core.js';
import { createWords } from '../../node/lib/words.js';
import { createWaits } from '../../node/lib/atomics.js';
import { createMutexes } from '../../node/lib/mutex.js';
import { createLocks } from '../../node/lib/sync.js';
import { VigilError, TimeoutError, NotHeldError, LimitError, typeError, rangeError } from '../../node/lib/errors.js';
import { STACK_BYTES, openInstance, startThread } from './instance.js';
import { createBell, startHelper } from './bell.js';
import { announce, createDamage, createPatience, lockOf, takeCare } from './death.js';
import { prepare } from './side.js';
import { CANCELLED, ECLOSING, ECORRUPT, ENOMEM, failure } from './statuses.js';

const PAGE_BYTES = 65536, PAGES_FIRST = 4, PAGES_MOST = 16384;
const LINE_WORDS = 4 + 2 * 8; // struct seen_line of native/look.c

function checkIsolated() {
  if (globalThis.crossOriginIsolated === false)
    throw new VigilError('VIGIL_ESYSTEM', 'the page is not cross-origin isolated, so it cannot share memory with ' +
      'workers. Serve it with the headers Cross-Origin-Opener-Policy: same-origin and ' +
      'Cross-Origin-Embedder-Policy: require-corp; see the README of @vigil/web');
}

/* Whether this thread may sleep: the thread of a page may not. */
function canSleep() {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1, 0);
    return true;
  } catch {
    return false;
  }
}

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  const ours = SIDE ? new URL('./side.wasm', import.meta.url) : new URL('./vigil.wasm', import.meta.url);
  const response = await fetch(source ?? ours);
  if (!response.ok) throw new VigilError('VIGIL_ENOTFOUND', `vigil.wasm: ${response.status} ${response.url}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

function checkMemory(memory) {
  if (!(memory instanceof WebAssembly.Memory) || !(memory.buffer instanceof SharedArrayBuffer))
    throw typeError('memory: expected a WebAssembly.Memory that is shared');
  const grown = PAGES_FIRST - memory.buffer.byteLength / PAGE_BYTES;
  if (!SIDE && grown > 0) memory.grow(grown);
}

/*
 * Whether two arrays are the same memory. It gets a new SharedArrayBuffer when it grows, so the buffers cannot be
 * compared, but a value that is stored in one can be seen in the other. Other environments may store theirs meanwhile.
 */
function areSame(ours, theirs) {
  let seen = 0;
  for (let i = 0; i < 100 && seen < 3; i++) {
    const value = Atomics.add(ours, 0, 1 + Math.random() * 0xffff) | 0;
    if (Atomics.load(theirs, 0) !== value && Atomics.load(theirs, 0) === Atomics.load(ours, 0)) seen++;
  }
  return seen === 3;
}

function createMemory(memory, probe, native) {
  const known = new WeakSet();
  function isShared(buffer) {
    if (!(buffer instanceof SharedArrayBuffer) || buffer.byteLength < probe + 4) return false;
    if (!known.has(buffer) && areSame(new Int32Array(memory.buffer, probe, 1), new Int32Array(buffer, probe, 1)))
      known.add(buffer);
    return known.has(buffer);
  }
  return {
    name: 'memory that vigil.allocate() returns',
    segments: new WeakMap(),
    isShared,
    addressOf: (array) => array.byteOffset,
    allocate(count) {
      const address = native.allocate(4 * count) >>> 0;
      if (address === 0) throw failure(ENOMEM);
      return new Int32Array(memory.buffer, address, count);
    },
  };
}

/*
 * As native.js of @vigil/node: what core.js needs of the native part. An exception, such as that of a stack which is
 * full, leaves the library in the middle of a change.
 */
function createNative(exports, web, patience, threadId) {
  const native = { threadId, holder: () => 0 };
  for (const name of ['start', 'block', 'cancel', 'notify', 'release', 'signal', 'consistent', 'downgrade', 'track',
    'untrack', 'mine', 'dispatch', 'delivered', 'waiters', 'look', 'allocate', 'free', 'stop', 'close']) {
    const call = exports[`web_${name}`];
    native[name] = (argument = 0) => {
      patience.begin(name);
      try {
        return call(web, argument);
      } catch (error) {
        patience.damages.damage();
        throw error;
      }
    };
  }
  return native;
}

/* What this environment holds: as in native.js of @vigil/node, but the counts are in the memory. */
function createHoldings(memory, exports, web, native, scratch) {
  const countsNow = (length) => new Int32Array(memory.buffer, exports.web_counts(web), length);
  const holdings = { counts: countsNow(64) };
  const forget = new FinalizationRegistry(({ what, address, entry }) => {
    if (holdings.ended) return;
    scratch.numbers[0] = address;
    const held = what === HOLDING.MUTEX ? native.mine() : holdings.counts[entry];
    if (!held) native.untrack(entry);
  });
  return {
    holdings,
    track(lock, what, address) {
      scratch.numbers[0] = address;
      const entry = native.track(what);
      if (entry < 0) throw failure(ENOMEM);
      if (entry >= holdings.counts.length) holdings.counts = countsNow(2 * holdings.counts.length);
      holdings.counts[entry] = 0;
      forget.register(lock, { what, address, entry });
      return entry;
    },
  };
}

export class Vigil {
  #instance; #web; #core; #handle; #channel; #bell; #release; #creates; #closed = false; #failed = false;

  /* On a page, or wherever the memory is made. */
  static async create(options = {}) {
    let { memory, wasm, onDamage = reportError } = options;
    checkIsolated();
    if (memory !== undefined || SIDE) checkMemory(memory);
    memory ??= new WebAssembly.Memory({ initial: PAGES_FIRST, maximum: PAGES_MOST, shared: true });
    const handle = { module: await compile(wasm), memory, id: crypto.randomUUID() };
    if (SIDE) Object.assign(handle, prepare(handle, options));
    return Vigil.#open(handle, onDamage);
  }

  /* In a worker: `handle` is that of the Vigil which was created. */
  static async attach(handle) {
    checkIsolated();
    if (!(handle?.memory instanceof WebAssembly.Memory))
      throw typeError('attach: expected the handle of another Vigil: postMessage(vigil.handle)');
    return Vigil.#open(handle);
  }

  static async #open(handle, onDamage) {
    const vigil = new Vigil();
    vigil.#channel = new BroadcastChannel(`vigil ${handle.id}`);
    try {
      await vigil.#begin(handle, onDamage);
      return vigil;
    } catch (error) {
      vigil.#channel.close();
      vigil.#release?.();
      throw error;
    }
  }

  async #begin(handle, onDamage) {
    const { memory } = handle, channel = this.#channel;
    const name = () => lockOf(handle, instance.number);
    const bell = createBell(memory, () => this.#dispatch(), name,
      () => (onDamage ? startHelper(memory, name()) : channel.postMessage({ helper: name() })));
    const start = onDamage ? (main, argument) => startThread(handle, main, argument)
      : (main, argument) => channel.postMessage({ start: [main, argument] });
    const canBlock = canSleep(), patience = createPatience(canBlock, onDamage);
    const hooks = { alarm: bell.alarm, spin: () => patience.spin(), start: (main, argument) => {
      try {
        start(main, argument);
      } catch { // a policy may forbid it: the library's own thread is useful, not necessary
      }
      return 1;
    } };
    const instance = await openInstance(handle, hooks, STACK_BYTES);
    const { exports } = instance;
    const damages = patience.damages = createDamage(memory, instance.addressOf(exports.web_damaged), channel,
      (error) => this.#fail(error, onDamage));
    if (SIDE && onDamage) {
      exports.__wasm_apply_data_relocs();
      exports.prim_wasm_set_heap(handle.heap, handle.end);
    }
    this.#release = await announce(handle, channel, instance.number);
    const area = await instance.begin(canBlock), web = area && exports.web_begin(area);
    if (!web) {
      if (area) await instance.end(area);
      throw failure(ENOMEM);
    }
    this.#instance = instance, this.#web = web, this.#handle = handle, this.#bell = bell;
    this.#offer(bell, canBlock, patience);
    this.#creates = onDamage !== undefined;
    if (onDamage) takeCare(handle, channel, instance, damages);
    if (damages.isDamaged()) throw failure(ECORRUPT);
  }

  #offer(bell, canBlock, patience) {
    const { exports } = this.#instance, { memory } = this.#handle, web = this.#web;
    const address = exports.web_scratch(web), scratch = scratchOf(memory.buffer, address);
    const native = createNative(exports, web, patience, this.#instance.number), { start, notify } = native;
    native.start = (kind) => {
      const status = start(kind);
      if (status === 3) bell.watch(exports.web_bell(web)); // pending
      return status;
    };
    native.notify = () => {
      if (notify() === 0) return;
      const count = scratch.numbers[3];
      this.#dispatch();
      scratch.numbers[3] = count;
    };
    const ours = createMemory(memory, this.#instance.addressOf(exports.web_probe), native);
    const core = this.#core = createCore({ native, memory: ours, scratch, canBlock, failure,
      ...createHoldings(memory, exports, web, native, scratch) });
    const words = createWords(ours), waits = createWaits(core, words), mutexes = createMutexes(core, words);
    Object.assign(this, { wait: waits.wait, notify: waits.notify, waitAsync: waits.waitAsync }, mutexes,
      createLocks(core, words, mutexes));
  }

  /* True: operations are still pending. */
  #dispatch() {
    if (this.#closed || this.#failed) return false;
    const { native, deliver } = this.#core;
    let count;
    do {
      count = native.dispatch();
      deliver(count);
    } while (native.delivered(count));
    return this.#instance.exports.web_pending(this.#web) !== 0;
  }

  /* To be sent to workers by postMessage, for attach. */
  get handle() { return this.#handle; }
  get memory() { return this.#handle.memory; }
  /* By which look() names this environment. */
  get thread() { return this.#core.native.threadId; }

  /* Zeroed words in the memory, for locks and data: postMessage passes them on as they are. */
  allocate(length) {
    if (!Number.isInteger(length) || length < 1 || length > 0x10000000)
      throw rangeError('allocate: expected a number of elements, at least 1');
    return this.#core.memory.allocate(length);
  }

  free(array) {
    const { memory, native } = this.#core;
    if (!memory.isShared(array?.buffer) || native.free(array.byteOffset) !== 0)
      throw typeError('free: expected what allocate() has returned');
  }

  /* How many wait for the element. */
  waiters(array, index = 0) {
    this.#core.numbers[0] = array.byteOffset + index * array.BYTES_PER_ELEMENT;
    return this.#core.native.waiters();
  }

  /* All lines: [{address, lock, count, waiters: [{thread, waited}]}], with the first eight waiters of each. */
  look() {
    const { native, numbers } = this.#core, rows = 256, table = native.allocate(8 * LINE_WORDS * rows) >>> 0;
    if (table === 0) return [];
    numbers[0] = table;
    const count = native.look(rows), values = new Float64Array(this.memory.buffer, table, LINE_WORDS * rows);
    const lines = Array.from({ length: count }, (_, row) => {
      const [address, lock, waiting, , ...waiters] = values.subarray(LINE_WORDS * row, LINE_WORDS * (row + 1));
      return { address, lock: lock !== 0, count: waiting, waiters: Array.from({ length: Math.min(waiting, 8) },
        (_, i) => ({ thread: waiters[2 * i], waited: waiters[2 * i + 1] })) };
    });
    native.free(table);
    return lines;
  }

  /*
   * Terminate a worker, whose vigil.thread this is, outside of the library: its places in lines disappear, what it
   * holds goes to the next, and nothing is damaged.
   */
  terminate(worker, thread) {
    if (!this.#creates) throw typeError('terminate: only for the environment that has created the memory');
    if (thread === this.thread) throw typeError("terminate: this is the caller's own: give vigil.thread of the worker");
    const web = this.#instance.exports.web_find(thread);
    try {
      if (web && !this.#closed && !this.#failed) this.#core.native.stop(web);
    } finally {
      worker.terminate();
    }
  }

  /* The library is not called any more. What is pending is rejected with the error. */
  #disable(status, error) {
    const { native, holdings, rejectPending } = this.#core;
    for (const name of Object.keys(native)) {
      if (name !== 'threadId') native[name] = () => { throw failure(status); };
    }
    native.start = () => status;
    holdings.ended = true;
    this.#bell.close();
    rejectPending(error);
  }

  /* The memory is damaged. Before the end of attach it is enough that this throws. */
  #fail(error, onDamage) {
    if (this.#failed || this.#closed || !this.#core) return;
    this.#failed = true;
    this.#disable(ECORRUPT, error);
    if (onDamage) queueMicrotask(() => onDamage(error)); // not inside of WebAssembly
  }

  /* Cancel what is pending, by rejecting it, and give up what is held. Nothing else may be called afterwards. */
  close() {
    if (this.#closed) return;
    const { close } = this.#core.native;
    this.#closed = true;
    this.#disable(ECLOSING, failure(CANCELLED));
    this.#core.holdings.counts = undefined;
    if (!this.#failed) close();
    this.#channel.close();
    this.#release(); // the creator frees the rest
  }
}

export { VigilError, TimeoutError, NotHeldError, LimitError };
