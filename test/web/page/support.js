// SPDX-License-Identifier: MIT
// What the tests in the page share. The address may say which parts of the platform are missing: ?without=waitAsync;
// and which of the two scripts of the package is to be used: ?script=side.

const { searchParams } = new URL(location), script = searchParams.get('script') ?? 'vigil';
if (searchParams.get('without') === 'waitAsync') delete Atomics.waitAsync;

/* Imported when that is done. Each test has a Vigil of its own. */
export const library = await import(`/vigil/${script}.js`);
const { Vigil } = library;

/* Longer than anything takes that does not hang, on a machine that is busy. Planted bugs must be found sooner. */
export const HANGS_MS = Number(searchParams.get('hangs') ?? 20000);
/* How soon the next holder must be told that the owner of a lock has died. */
export const DIED_MS = Math.min(10000, HANGS_MS);

export const tests = new Map();
export function test(name, body) {
  if (tests.has(name)) throw new Error(`two tests are called ${name}`);
  tests.set(name, body);
}

/* A turn of the event loop. Timers of pages are slowed down when they are nested, messages are not. */
const { port1, port2 } = new MessageChannel(), turns = [];
port1.onmessage = () => turns.shift()();
export const tick = () => new Promise((resolve) => {
  turns.push(resolve);
  port2.postMessage(0);
});
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* The promise, or an exception if that hangs. */
export function within(promise, what = 'a promise', ms = HANGS_MS) {
  let timer;
  const hangs = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hangs: ${what}`)), ms);
  });
  return Promise.race([promise, hangs]).finally(() => clearTimeout(timer));
}

export async function until(condition, what = 'a condition', ms = HANGS_MS) {
  const end = performance.now() + ms;
  for (;;) {
    const result = condition();
    if (result) return result;
    if (performance.now() > end) throw new Error(`gave up waiting for ${what}`);
    await tick();
  }
}

/* A small generator of random numbers, the same for the same seed: random(n) is from 0 to n - 1. */
export function randomOf(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 4294967296) * n);
  };
}

/* Assertions. */

const KINDS = { bigint: (each) => `${each}n`, function: (each) => `function ${each.name}` };
const shown = (value) => JSON.stringify(value, (_, each) => KINDS[typeof each]?.(each) ?? each);

export function ok(condition, what = 'expected something else') {
  if (!condition) throw new Error(what);
}

export function equal(seen, expected, what = 'value') {
  if (shown(seen) !== shown(expected)) throw new Error(`${what}: expected ${shown(expected)}, got ${shown(seen)}`);
}

function checkError(error, Class, what, pattern) {
  ok(error instanceof Class, `${what}: expected ${Class.name}, got ${error}`);
  if (pattern) ok(pattern.test(error.message), `${what}: expected ${pattern}, got ${error.message}`);
}

export function throws(action, Class, what = String(action), pattern) {
  try {
    action();
  } catch (error) {
    checkError(error, Class, what, pattern);
    return;
  }
  throw new Error(`${what}: threw nothing`);
}

export async function rejects(promise, Class, what = 'the promise', pattern) {
  try {
    await within(promise, what);
  } catch (error) {
    if (error.message.startsWith('hangs: ')) throw error;
    checkError(error, Class, what, pattern);
    return;
  }
  throw new Error(`${what}: was not rejected`);
}

/* Workers. */

/* A function that returns promises of what is put, in order. */
function queue() {
  const items = [], readers = [];
  return {
    put: (item) => (readers.length > 0 ? readers.shift()(item) : items.push(item)),
    next: () => new Promise((resolve) => (items.length > 0 ? resolve(items.shift()) : readers.push(resolve))),
  };
}

/* What a worker said; an error of it is one here. */
function unpack({ said, error }) {
  if (error !== undefined) throw new Error(`in the worker: ${error}`);
  return said;
}

class TestWorker {
  #worker; #queue = queue();

  constructor(handle, code, data) {
    this.#worker = new Worker(`./worker.js${location.search}`, { type: 'module' });
    this.#worker.onmessage = ({ data }) => this.#queue.put(data);
    this.#worker.onerror = (event) => this.#queue.put({ error: event.message ?? 'cannot be started' });
    this.#worker.postMessage({ handle, code, data });
  }

  next(what = 'what the worker says', ms = HANGS_MS) { return within(this.#queue.next(), what, ms).then(unpack); }
  tell(message) { this.#worker.postMessage({ told: message }); }
  terminate() { this.#worker.terminate(); }
  /* By the library, outside of it. */
  terminateBy(vigil, thread) { vigil.terminate(this.#worker, thread); }
}

/* For side.js: a place in the middle of memory that is full of other things. */
function placeOf(name) {
  if (name !== 'side') return {};
  const memory = new WebAssembly.Memory({ initial: 1024, maximum: 1024, shared: true });
  new Uint8Array(memory.buffer).fill(0xa5);
  return { memory, base: 5 * 65536 + 64, bytes: 1000 * 65536 };
}

/* What a test gets. */
class Context {
  damage = [];
  mayDamage = false;
  #workers = [];
  #vigils = [];

  async createVigil(options) {
    const vigil = await Vigil.create({ onDamage: (error) => this.damage.push(error), ...placeOf(script), ...options });
    this.#vigils.push(vigil);
    return vigil;
  }

  /*
   * A worker that runs the code, the body of an asynchronous function, with `vigil`, `data`, `say(message)`, `hear()`,
   * `library`, `tick()` and `randomOf`. At the end it says what that returns; next() returns what it says.
   */
  worker(code, data, vigil = this.vigil) {
    const made = new TestWorker(vigil?.handle, code, data);
    this.#workers.push(made);
    return made;
  }

  /* Wait until so many wait for the element. */
  waiting(array, index, count) {
    return until(() => this.vigil.waiters(array, index) === count, `${count} waiters`);
  }

  /* What is damaged cannot be closed. */
  forget(vigil) { this.#vigils = this.#vigils.filter((each) => each !== vigil); }

  end() {
    for (const worker of this.#workers) worker.terminate();
    for (const vigil of this.#vigils) vigil.close();
  }
}

/* Errors that no test has asked for. What a test leaves pending is cancelled at its end. */
let stray = [], mayBeDamaged = () => false;
function noteStray(error, text) {
  const isExpected = error?.code === 'VIGIL_CANCELLED' || (error?.code === 'VIGIL_ECORRUPT' && mayBeDamaged());
  if (!isExpected) stray.push(text);
}
addEventListener('error', ({ error, message }) => noteStray(error, String(message)));
addEventListener('unhandledrejection', ({ reason }) => noteStray(reason, `unhandled: ${reason?.stack ?? reason}`));

/* Run the test of that name. Returns {ms, notes}, or {error, ms} if it failed. */
export async function run(name) {
  const context = new Context(), before = performance.now(), notes = [];
  context.note = (text) => notes.push(text);
  stray = [];
  mayBeDamaged = () => context.mayDamage;
  let error;
  try {
    context.vigil = await context.createVigil();
    await tests.get(name)(context);
    if (context.damage.length > 0 && !context.mayDamage) throw context.damage[0];
    ok(stray.length === 0, `errors: ${stray.join('; ')}`);
  } catch (thrown) {
    error = String(thrown?.stack ?? thrown).includes(thrown?.message) ? String(thrown.stack) : `${thrown}`;
    if (stray.length > 0) error += ` (errors: ${stray.join('; ')})`;
  }
  try {
    context.end();
  } catch (thrown) {
    error ??= `at the end: ${thrown}`;
  }
  return { error, notes, ms: Math.round(performance.now() - before) };
}
