// SPDX-License-Identifier: MIT
// Many waits, much memory, many workers, several Vigils.

import { test, equal, ok, throws, within, until } from './support.js';

test('scale: 10,000 pending waits, settled and timed out', async (t) => {
  const { vigil } = t, array = vigil.allocate(16), count = 10000;
  const waits = (timeout) => Array.from({ length: count }, (_, i) => vigil.waitAsync(array, i % 16, 0, timeout).value);
  const settled = waits(1e6);
  let notified = 0;
  for (let i = 0; i < 16; i++) notified += vigil.notify(array, i);
  equal(notified, count);
  ok((await within(Promise.all(settled))).every((each) => each === 'ok'));
  const timed = waits(50);
  ok((await within(Promise.all(timed))).every((each) => each === 'timed-out'));
  for (let i = 0; i < 16; i++) equal(vigil.waiters(array, i), 0);
  const mixed = waits(100), first = vigil.notify(array, 3);
  ok(first > 0);
  const outcomes = await within(Promise.all(mixed));
  equal(outcomes.filter((each) => each === 'ok').length, first);
});

test('scale: 10,000 pending waits of a worker, notified by the page', async (t) => {
  const { vigil } = t, array = vigil.allocate(2);
  const made = t.worker(`
    const all = Array.from({ length: 10000 }, () => vigil.waitAsync(data, 0, 0).value);
    say('waits');
    const outcomes = await Promise.all(all);
    return outcomes.filter((each) => each === 'ok').length;`, array);
  equal(await made.next(), 'waits');
  let notified = 0;
  while (notified < 10000) notified += vigil.notify(array, 0, 1 + notified % 500);
  equal(notified, 10000);
  equal(await made.next(), 10000);
});

test('scale: too many waits are an error, and the rest go on', async ({ vigil }) => {
  const { LimitError } = await import('/vigil/vigil.js');
  const array = vigil.allocate(1), all = [];
  let error;
  while (!error && all.length < 100000) {
    try {
      all.push(vigil.waitAsync(array, 0, 0).value);
    } catch (thrown) {
      error = thrown;
    }
  }
  ok(error instanceof LimitError, `after ${all.length}: ${error}`);
  equal(vigil.notify(array, 0), all.length);
  await within(Promise.all(all));
  const again = vigil.waitAsync(array, 0, 0).value;
  equal(vigil.notify(array, 0), 1);
  equal(await within(again), 'ok');
});

/* Arrays that were made before the memory grew are on another SharedArrayBuffer of the same memory. */
test('scale: the memory grows while arrays are held', async (t) => {
  const { vigil } = t, array = vigil.allocate(4), mutex = new vigil.Mutex(array, 1), before = vigil.memory.buffer;
  const made = t.worker(`
    const { array } = data, mutex = new vigil.Mutex(array, 1);
    vigil.wait(array, 0, 0);
    mutex.lock();
    say('holds');
    await hear();
    const grown = vigil.allocate(500000);
    mutex.unlock();
    vigil.wait(array, 2, 0);
    return grown;`, { array });
  await t.waiting(array, 0, 1);
  const large = Array.from({ length: 20 }, () => vigil.allocate(250000));
  ok(vigil.memory.buffer !== before && vigil.memory.buffer.byteLength > before.byteLength, 'it has grown');
  equal(vigil.notify(new Int32Array(vigil.memory.buffer), array.byteOffset / 4), 1, 'by the new buffer');
  equal(await made.next(), 'holds');
  const locked = mutex.lockAsync();
  made.tell('go');
  await within(locked, 'the mutex');
  mutex.unlock();
  await t.waiting(array, 2, 1);
  equal(vigil.notify(array, 2), 1, 'by the old buffer');
  const grown = await made.next();
  equal(grown.length, 500000);
  const waiting = vigil.waitAsync(grown, 499999, 0).value;
  equal(vigil.notify(grown, 499999), 1);
  equal(await within(waiting), 'ok');
  ok(large.every((each) => each.every((word) => word === 0)), 'zeroed');
  for (const each of [...large, grown]) vigil.free(each);
  const pages = vigil.memory.buffer.byteLength;
  for (let i = 0; i < 20; i++) vigil.free(vigil.allocate(1000000));
  equal(vigil.memory.buffer.byteLength, pages, 'what is freed is used again');
});

test('scale: many locks, more than fit in the first table of what is held', async (t) => {
  const { vigil } = t, array = vigil.allocate(1000);
  const isFree = (lock) => {
    const write = lock.tryAcquireWrite();
    write?.();
    return write !== undefined;
  };
  /* The last lock is the page's, as soon as it is released. */
  const made = t.worker(`
    const isFree = ${isFree};
    const locks = Array.from({ length: 1000 }, (_, i) => new vigil.RwLock(data, i));
    const held = locks.map((lock) => lock.acquireReadSync());
    say('holds');
    await hear();
    for (const each of held) each();
    return locks.slice(0, 999).filter((lock) => !isFree(lock)).length;`, array);
  equal(await made.next(), 'holds');
  const locks = Array.from({ length: 1000 }, (_, i) => new vigil.RwLock(array, i));
  equal(locks.filter(isFree).length, 0, 'free locks');
  const writer = locks[999].acquireWrite();
  made.tell('go');
  (await within(writer, 'the writer'))();
  equal(await made.next(), 0, 'locks that are still held');
  equal(locks.filter(isFree).length, 1000, 'free locks');
});

test('scale: two Vigils in one page', async (t) => {
  const one = t.vigil, two = await t.createVigil();
  const arrays = [one.allocate(4), two.allocate(4)];
  equal(arrays[0].byteOffset, arrays[1].byteOffset, 'the same address');
  const made = [one, two].map((vigil, i) => t.worker('return vigil.wait(data, 0, 0);', arrays[i], vigil));
  await until(() => one.waiters(arrays[0]) === 1 && two.waiters(arrays[1]) === 1, 'both');
  equal(two.notify(arrays[1], 0), 1);
  equal(await made[1].next(), 'ok');
  equal(one.waiters(arrays[0]), 1, 'the other waits');
  equal(one.notify(arrays[0], 0), 1);
  equal(await made[0].next(), 'ok');
  const both = t.worker(`
    const other = await library.Vigil.attach(data.handle);
    const first = new vigil.Mutex(data.arrays[0], 1), second = new other.Mutex(data.arrays[1], 1);
    for (let i = 0; i < 200; i++) {
      first.lock(); second.lock();
      data.arrays[0][2]++; data.arrays[1][2]++;
      second.unlock(); first.unlock();
    }
    other.close();
    return 'done';`, { handle: two.handle, arrays });
  const first = new one.Mutex(arrays[0], 1), second = new two.Mutex(arrays[1], 1);
  for (let i = 0; i < 100; i++) {
    await within(first.lockAsync());
    await within(second.lockAsync());
    arrays[0][2]++;
    arrays[1][2]++;
    second.unlock();
    first.unlock();
  }
  equal(await both.next(), 'done');
  equal([arrays[0][2], arrays[1][2]], [300, 300]);
  two.close();
  const again = one.waitAsync(arrays[0], 3, 0).value;
  equal(one.notify(arrays[0], 3), 1);
  equal(await within(again), 'ok');
});

/* Each worker attaches, uses the library, and closes, again and again. */
test('scale: 40 environments at a time attach and close, and their memory is used again', async (t) => {
  const { vigil } = t, array = vigil.allocate(4);
  const code = `
    vigil.close();
    for (let i = 0; i < 3; i++) {
      const made = [];
      for (let j = 0; j < 5; j++) made.push(await library.Vigil.attach(data.handle));
      for (const each of made) {
        const mutex = new each.Mutex(data.array);
        mutex.lock();
        data.array[1]++;
        mutex.unlock();
        each.waitAsync(data.array, 2, 0);
        await each.waitAsync(data.array, 2, 0, 1).value;
      }
      for (const each of made) each.close();
    }
    return 'done';`;
  const round = async () => {
    const made = Array.from({ length: 8 }, () => t.worker(code, { handle: vigil.handle, array }));
    for (const each of made) equal(await each.next('attach and close'), 'done');
    for (const each of made) each.terminate();
  };
  await round();
  const bytes = [vigil.memory.buffer.byteLength];
  for (let i = 0; i < 4; i++) {
    await round();
    bytes.push(vigil.memory.buffer.byteLength);
  }
  equal(array[1], 5 * 8 * 15, 'the counter');
  t.note(`memory: ${bytes.map((each) => each / 65536).join(', ')} pages`);
  ok(bytes[4] <= bytes[0] + 100 * 65536, `the memory grows: ${bytes}`); // 600 environments need 1000 pages and more
  equal(vigil.waiters(array, 2), 0);
});

test('scale: close in a worker cancels, and gives up what is held', async (t) => {
  const { vigil } = t, array = vigil.allocate(8), mutex = new vigil.Mutex(array, 0);
  const made = t.worker(`
    new vigil.Mutex(data, 0).lock();
    new vigil.RwLock(data, 1).acquireReadSync();
    vigil.waitAsync(data, 2, 0).value.then(() => say('woken'));
    vigil.waitAsync(data, 3, 0, 20).value.then(() => say('timed out'));
    say('holds');
    await hear();
    vigil.close();
    vigil.close();
    return 'closed';`, array);
  equal(await made.next(), 'holds');
  equal([vigil.waiters(array, 2), mutex.tryLock()], [1, false]);
  const behind = mutex.acquire();
  made.tell('go');
  const held = await within(behind, 'the mutex');
  equal(held.ownerDied, true);
  mutex.consistent();
  held();
  equal(await made.next(), 'closed');
  equal(vigil.waiters(array, 2), 0);
  const write = new vigil.RwLock(array, 1).tryAcquireWrite();
  equal(typeof write, 'function', 'the read-write lock is free');
});

test('scale: close on the page, and a new Vigil', async (t) => {
  const { VigilError } = await import('/vigil/vigil.js');
  for (let i = 0; i < 10; i++) {
    const vigil = await t.createVigil(), array = vigil.allocate(2);
    const made = t.worker('return vigil.wait(data, 0, 0);', array, vigil);
    await until(() => vigil.waiters(array) === 1);
    vigil.waitAsync(array, 1, 0);
    equal(vigil.notify(array, 0), 1);
    equal(await made.next(), 'ok');
    vigil.close();
    throws(() => vigil.notify(array, 0), VigilError, 'after close()', /closed/);
    equal(typeof vigil.thread, 'number');
    made.terminate();
  }
});

/* For pages.mjs: leave everything waiting. Returns by which the locks of its environments are known (death.js). */
globalThis.leaveWaiting = async () => {
  const { library } = await import('./support.js');
  const vigil = await library.Vigil.create(), array = vigil.allocate(4), mutex = new vigil.Mutex(array);
  await mutex.lockAsync();
  const codes = ['new vigil.Mutex(data).lock();', 'vigil.wait(data, 1, 0);', 'vigil.waitAsync(data, 2, 0);'];
  for (const code of codes) {
    const worker = new Worker('./worker.js', { type: 'module' });
    worker.postMessage({ handle: vigil.handle, code, data: array });
  }
  vigil.waitAsync(array, 3, 0);
  await until(() => [0, 1, 2].every((index) => vigil.waiters(array, index) === 1), 'three workers');
  return `vigil ${vigil.handle.id}`;
};
