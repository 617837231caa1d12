// SPDX-License-Identifier: MIT
// Contention for as long as the driver (soak.mjs) wants: counters of each lock, which must be exact at the end.

import { library, randomOf, tick, until } from './support.js';

/* words: five locks, five counters, and whether to stop. */
const LOCKS = 5, STOP = 10;

const LOOP = `
  const { array, seed, sync } = data, random = randomOf(seed), counts = [0, 0, 0, 0, 0];
  const locks = [new vigil.Mutex(array, 0), new vigil.RwLock(array, 1), new vigil.Semaphore(array, 2),
    new vigil.Mutex(array, 3), new vigil.RwLock(array, 4)];
  const take = (which, options) => {
    const lock = locks[which], isRw = which === 1 || which === 4, read = which === 4 && random(4) > 0;
    if (sync && isRw) return read ? lock.acquireReadSync() : lock.acquireWriteSync();
    if (sync) return lock.acquireSync();
    if (isRw) return read ? lock.acquireRead(options) : lock.acquireWrite(options);
    return which === 2 ? lock.acquire(1, options) : lock.acquire(options);
  };
  while (Atomics.load(array, ${STOP}) === 0) {
    const which = random(${LOCKS}), options = !sync && random(3) === 0 ? { timeout: random(5) } : undefined;
    let held;
    try {
      held = sync ? take(which) : await take(which, options);
    } catch (error) {
      if (error.code === 'VIGIL_TIMED_OUT') continue;
      throw error;
    }
    if (which === 4) { // readers count atomically
      Atomics.add(array, 9, 1);
    } else {
      const seen = array[5 + which];
      for (let i = random(30); i > 0; i--) Atomics.load(array, ${STOP});
      if (!sync && random(10) === 0) await tick();
      array[5 + which] = seen + 1;
    }
    counts[which]++;
    held();
    if (!sync && random(4) === 0) await tick();
  }
  return counts;`;

const AsyncFunction = (async () => {}).constructor;
let soak;

export async function begin(seed) {
  const damage = [], vigil = await library.Vigil.create({ onDamage: (error) => damage.push(String(error)) });
  const array = vigil.allocate(16), ends = [];
  vigil.Semaphore.initialize(array, 2, 1);
  for (const [i, sync] of [true, true, false].entries()) {
    const worker = new Worker('./worker.js', { type: 'module' });
    ends.push(new Promise((resolve, reject) => {
      worker.onmessage = ({ data: { said, error } }) => (error ? reject(new Error(error)) : resolve(said));
    }));
    worker.postMessage({ handle: vigil.handle, code: LOOP, data: { array, seed: seed + i, sync } });
  }
  ends.push(new AsyncFunction('vigil', 'data', 'tick', 'randomOf', LOOP)(vigil,
    { array, seed: seed + 3, sync: false }, tick, randomOf));
  let failed;
  for (const end of ends) end.catch((error) => { failed = String(error.stack); });
  soak = { vigil, array, ends, damage, failed: () => failed };
}

/* The counters, as they are now. */
export function look() {
  const { array, damage, failed } = soak;
  return { counts: [...array.subarray(5, 5 + LOCKS)], error: damage[0] ?? failed() };
}

/* Returns what is wrong, or nothing. */
export async function end() {
  const { vigil, array, ends } = soak;
  Atomics.store(array, STOP, 1);
  let all;
  Promise.all(ends).then((counts) => { all = counts; });
  await until(() => all !== undefined || soak.failed(), 'the workers to end');
  if (soak.failed()) return soak.failed();
  const sums = [0, 1, 2, 3, 4].map((which) => all.reduce((sum, counts) => sum + counts[which], 0) | 0);
  vigil.close();
  const seen = [...array.subarray(5, 5 + LOCKS)];
  return sums.join() === seen.join() ? undefined : `counters ${seen}, but counted ${sums}`;
}

Object.assign(globalThis, { soak: { begin, look, end } });
