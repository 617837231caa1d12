// SPDX-License-Identifier: MIT
// Locks of each kind, shared by workers that block, workers that do not, and the page.

import { test, equal, ok, tick, within } from './support.js';

/* Long enough for all to run at the same time, also on one processor. */
const LOOP_MS = 300;

/*
 * How each lock is taken: the body of a function of `vigil`, `array` (the lock is at 0) and `inside`, which must be
 * called by one at a time. Strings, because workers run them too.
 */
const WAYS = {
  'Mutex.lock': 'const lock = new vigil.Mutex(array); return () => { lock.lock(); inside(); lock.unlock(); };',
  'Mutex.lockAsync': `const lock = new vigil.Mutex(array);
    return async () => { await lock.lockAsync(); inside(); lock.unlock(); };`,
  'Mutex.runExclusive': 'const lock = new vigil.Mutex(array); return () => lock.runExclusive(inside);',
  'Mutex.acquireSync': `const lock = new vigil.Mutex(array);
    return () => { const held = lock.acquireSync(); inside(); held.release(); };`,
  'Mutex.acquire': `const lock = new vigil.Mutex(array);
    return async () => { const held = await lock.acquire({ timeout: 1e6 }); inside(); held(); };`,
  'Lock.lock': 'const lock = new vigil.Lock(array, 0); return () => { lock.lock(); inside(); lock.unlock(); };',
  'Lock.tryLock': `const lock = new vigil.Lock(array, 0);
    return async () => { while (!lock.tryLock()) await tick(); inside(); lock.unlock(); };`,
  'AsyncLock.lock': `const lock = new vigil.AsyncLock(array);
    return () => { lock.lock(); inside(); lock.unlock(); };`,
  'AsyncLock.executeLocked': `const lock = new vigil.AsyncLock(array);
    return () => new Promise((resolve) => lock.executeLocked(() => { inside(); resolve(); }));`,
  'RwLock.acquireWriteSync': `const lock = new vigil.RwLock(array);
    return () => { const held = lock.acquireWriteSync(); inside(); held(); };`,
  'RwLock.write': 'const lock = new vigil.RwLock(array); return () => lock.write(inside);',
  'Semaphore.acquireSync': `const lock = new vigil.Semaphore(array);
    return () => { const held = lock.acquireSync(); inside(); held(); };`,
  'Semaphore.runExclusive': 'const lock = new vigil.Semaphore(array); return () => lock.runExclusive(inside);',
};

/*
 * array: the lock, the counter, how many are inside, and how many have come. All begin at the same time. The counter
 * is not changed atomically. Returns how often this one has counted.
 */
const LOOP = `
  const { array, way, all } = data;
  const inside = () => {
    const seen = array[1];
    if (Atomics.add(array, 2, 1) !== 0) throw new Error('two are inside');
    for (let i = 0; i < 50; i++) Atomics.load(array, 3);
    Atomics.sub(array, 2, 1);
    array[1] = seen + 1;
  };
  Atomics.add(array, 3, 1);
  while (Atomics.load(array, 3) < all) await tick();
  const once = new Function('vigil', 'array', 'inside', 'tick', way)(vigil, array, inside, tick);
  let rounds = 0;
  for (const end = performance.now() + ${LOOP_MS}; performance.now() < end; rounds++) await once();
  return rounds;`;

const AsyncFunction = (async () => {}).constructor;
const here = (vigil, data, tick) => new AsyncFunction('vigil', 'data', 'tick', LOOP)(vigil, data, tick);

/* Semaphores begin with a permit, everything else with zero. */
function lockWords(vigil, way) {
  const array = vigil.allocate(4);
  if (way.startsWith('Semaphore')) vigil.Semaphore.initialize(array, 0, 1);
  if (way.startsWith('Lock')) vigil.Lock.initialize(array, 0);
  return array;
}

function exclusion(title, workerWays, pageWay) {
  test(`exclusion: ${title}`, async (t) => {
    const array = lockWords(t.vigil, pageWay);
    const all = workerWays.length + 1;
    const made = workerWays.map((way) => t.worker(LOOP, { array, way: WAYS[way], all }));
    const counts = [await within(here(t.vigil, { array, way: WAYS[pageWay], all }, tick), 'the page')];
    for (const each of made) counts.push(await each.next());
    equal(array[1], counts.reduce((sum, each) => sum + each, 0), 'the counter');
    ok(counts.every((each) => each > 0), `all had it: ${counts}`);
    t.note(`${counts.slice(1)} times by workers, ${counts[0]} by the page`);
  });
}

exclusion('Mutex, two workers that block and the page', ['Mutex.lock', 'Mutex.lock'], 'Mutex.lockAsync');
exclusion('Mutex, in each way', ['Mutex.acquireSync', 'Mutex.lockAsync', 'Mutex.runExclusive'], 'Mutex.acquire');
exclusion('Lock', ['Lock.lock', 'Lock.lock', 'Lock.tryLock'], 'Lock.tryLock');
exclusion('AsyncLock', ['AsyncLock.lock', 'AsyncLock.executeLocked', 'AsyncLock.lock'], 'AsyncLock.executeLocked');
exclusion('RwLock to write', ['RwLock.acquireWriteSync', 'RwLock.write', 'RwLock.acquireWriteSync'], 'RwLock.write');
exclusion('Semaphore of one', ['Semaphore.acquireSync', 'Semaphore.runExclusive', 'Semaphore.acquireSync'],
  'Semaphore.runExclusive');
exclusion('a Mutex that the seeds\' locks share', ['AsyncLock.lock', 'Lock.lock', 'Mutex.lock'], 'Mutex.lockAsync');

/*
 * array: the lock, two words that are equal unless a writer is between them, how many read now, at most, and how many
 * have come. Returns how often this one has written.
 */
const READ_WRITE = `
  const { array, all, sync } = data, lock = new vigil.RwLock(array);
  let written = 0;
  const write = () => {
    const next = array[1] + 1;
    array[1] = next;
    for (let i = 0; i < 30; i++) Atomics.load(array, 7);
    array[2] = next;
    written++;
  };
  const read = () => {
    const now = Atomics.add(array, 3, 1) + 1;
    if (now > array[4]) array[4] = now;
    if (array[1] !== array[2]) throw new Error('a reader beside a writer');
    for (let i = 0; i < 100; i++) Atomics.load(array, 7);
    Atomics.sub(array, 3, 1);
  };
  Atomics.add(array, 5, 1);
  while (Atomics.load(array, 5) < all) await tick();
  const end = performance.now() + ${LOOP_MS};
  for (let i = 0; performance.now() < end; i++) {
    if (sync && i % 5 === 0) { const held = lock.acquireWriteSync(); write(); held(); }
    else if (sync) { const held = lock.acquireReadSync(); read(); held(); }
    else if (i % 5 === 0) await lock.write(write);
    else await lock.read(read);
  }
  return written;`;

test('exclusion: RwLock, readers and writers', async (t) => {
  const array = t.vigil.allocate(8), all = 4;
  const made = [true, true, false].map((sync) => t.worker(READ_WRITE, { array, all, sync }));
  const page = new AsyncFunction('vigil', 'data', 'tick', READ_WRITE)(t.vigil, { array, all, sync: false }, tick);
  let written = await within(page, 'the page');
  for (const each of made) written += await each.next();
  equal([array[1], array[2], array[3]], [written, written, 0]);
  t.note(`${written} times written, at most ${array[4]} readers at a time`);
});

test('RwLock: downgrade, try, and readers together', async (t) => {
  const { vigil } = t, lock = new vigil.RwLock();
  const write = await lock.acquireWrite();
  equal(lock.tryAcquireRead(), undefined);
  const made = t.worker(`
    const lock = new vigil.RwLock(data), held = lock.acquireReadSync();
    say('reads');
    await hear();
    held();
    return 'released';`, lock.array);
  await t.waiting(lock.array, 0, 1);
  lock.downgrade();
  equal(await made.next(), 'reads');
  equal(lock.tryAcquireWrite(), undefined);
  lock.readUnlock();
  equal(lock.tryAcquireWrite(), undefined);
  const writer = lock.acquireWrite();
  made.tell('go');
  equal(await made.next(), 'released');
  const held = await within(writer, 'the writer'), reader = lock.acquireRead();
  held();
  (await within(reader, 'the reader'))();
  ok(write.ownerDied === false);
});

/* array: the semaphore, how many are inside, how many have come, and how often. */
const PERMITS = `
  const { array, all, sync, permits } = data, semaphore = new vigil.Semaphore(array);
  const inside = () => {
    const now = Atomics.add(array, 1, permits) + permits;
    if (now > 3) throw new Error(now + ' permits of 3');
    for (let i = 0; i < 50; i++) Atomics.load(array, 4);
    Atomics.sub(array, 1, permits);
    Atomics.add(array, 3, 1);
  };
  Atomics.add(array, 2, 1);
  while (Atomics.load(array, 2) < all) await tick();
  let rounds = 0;
  for (const end = performance.now() + ${LOOP_MS}; performance.now() < end; rounds++) {
    const held = sync ? semaphore.acquireSync(permits) : await semaphore.acquire(permits);
    inside();
    held();
  }
  return rounds;`;

test('exclusion: Semaphore of three, one and two at a time', async (t) => {
  const array = t.vigil.allocate(8), all = 5;
  t.vigil.Semaphore.initialize(array, 0, 3);
  const made = [[true, 1], [true, 2], [false, 2], [true, 3]].map(([sync, permits]) =>
    t.worker(PERMITS, { array, all, sync, permits }));
  const page = new AsyncFunction('vigil', 'data', 'tick', PERMITS);
  let rounds = await within(page(t.vigil, { array, all, sync: false, permits: 2 }, tick), 'the page');
  for (const each of made) rounds += await each.next();
  equal([array[1], array[3]], [0, rounds]);
  equal(new t.vigil.Semaphore(array).permits, 3);
});

test('Semaphore: try, and a release that calls who waits', async ({ vigil }) => {
  const semaphore = new vigil.Semaphore(3);
  equal(semaphore.tryAcquire(4), undefined);
  const permits = semaphore.tryAcquire(3), waiter = semaphore.acquire(2);
  equal(semaphore.tryAcquire(), undefined);
  permits();
  (await within(waiter, 'the waiter'))();
  equal(semaphore.permits, 3);
});

/* A queue of at most four numbers. array: mutex, not full, not empty, first, length, and the numbers from 8 on. */
const PRODUCE = `
  const { array, count, sync } = data, mutex = new vigil.Mutex(array, 0);
  const notFull = new vigil.Condition(array, 1), notEmpty = new vigil.Condition(array, 2);
  for (let i = 1; i <= count; i++) {
    if (sync) mutex.lock(); else await mutex.lockAsync();
    while (array[4] === 4) { if (sync) notFull.wait(mutex); else await notFull.waitAsync(mutex); }
    array[8 + (array[3] + array[4]++) % 4] = i;
    notEmpty.signal();
    mutex.unlock();
  }
  return 'done';`;
const CONSUME = `
  const { array, count, sync } = data, mutex = new vigil.Mutex(array, 0);
  const notFull = new vigil.Condition(array, 1), notEmpty = new vigil.Condition(array, 2);
  let sum = 0;
  for (let i = 0; i < count; i++) {
    if (sync) mutex.lock(); else await mutex.lockAsync();
    while (array[4] === 0) { if (sync) notEmpty.wait(mutex); else await notEmpty.waitAsync(mutex); }
    sum += array[8 + array[3]];
    array[3] = (array[3] + 1) % 4;
    array[4]--;
    notFull.signal();
    mutex.unlock();
  }
  return sum;`;

test('Condition: a queue between the page and workers, that block or not', async (t) => {
  const array = t.vigil.allocate(16), count = 400, each = count / 2;
  const producers = [t.worker(PRODUCE, { array, count: each, sync: true }),
    t.worker(PRODUCE, { array, count: each, sync: false }), t.worker(PRODUCE, { array, count: each, sync: true })];
  const consumers = [t.worker(CONSUME, { array, count, sync: true }),
    t.worker(CONSUME, { array, count: 150, sync: false })];
  let sum = await within(new AsyncFunction('vigil', 'data', CONSUME)(t.vigil, { array, count: 50, sync: false }));
  for (const worker of consumers) sum += await worker.next();
  for (const worker of producers) equal(await worker.next(), 'done');
  equal(sum, 3 * (each * (each + 1)) / 2, 'the sum');
  equal(array[4], 0);
});

test('Condition: timeout and broadcast; the mutex is held again', async (t) => {
  const { vigil } = t, array = vigil.allocate(4);
  const mutex = new vigil.Mutex(array, 0), condition = new vigil.Condition(array, 1);
  await mutex.lockAsync();
  equal(await within(condition.waitAsync(mutex, { timeout: 5 })), 'timed-out');
  mutex.unlock();
  const made = Array.from({ length: 3 }, () => t.worker(`
    const mutex = new vigil.Mutex(data, 0), condition = new vigil.Condition(data, 1);
    mutex.lock();
    Atomics.add(data, 2, 1);
    const outcome = condition.wait(mutex);
    data[3]++;
    mutex.unlock();
    return outcome;`, array));
  await t.waiting(array, 1, 3);
  await within(mutex.lockAsync());
  equal(condition.broadcast(), 3);
  mutex.unlock();
  for (const each of made) equal(await each.next(), 'ok');
  equal(array[3], 3);
  equal(condition.signal(), 0);
});

test('Barrier: the page and workers go on together', async (t) => {
  const array = t.vigil.allocate(8), rounds = 100;
  t.vigil.Barrier.initialize(array, 0, 4);
  const code = (wait) => `
    const barrier = new vigil.Barrier(data, 0);
    let last = 0;
    for (let i = 0; i < ${rounds}; i++) {
      Atomics.add(data, 2, 1);
      if (${wait}) last++;
      if (Atomics.load(data, 2) < 4 * (i + 1)) throw new Error('too soon in round ' + i);
    }
    return last;`;
  const made = [t.worker(code('barrier.wait()'), array), t.worker(code('await barrier.waitAsync()'), array),
    t.worker(code('barrier.wait()'), array)];
  const page = new AsyncFunction('vigil', 'data', code('await barrier.waitAsync()'));
  let last = await within(page(t.vigil, array), 'the page', 60000);
  for (const each of made) last += await each.next();
  equal(last, rounds, 'one completes each round');
});
