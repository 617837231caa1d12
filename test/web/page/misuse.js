// SPDX-License-Identifier: MIT
// What must throw: blocking on the page, memory of others, unlocking what is not held.

import { test, equal, ok, throws, within, library } from './support.js';

const { Vigil, VigilError, NotHeldError, TimeoutError, LimitError } = library;

test('misuse: blocking forms throw a TypeError on the page', async ({ vigil }) => {
  const mutex = new vigil.Mutex(), rwlock = new vigil.RwLock(), semaphore = new vigil.Semaphore(1);
  const condition = new vigil.Condition(), array = vigil.allocate(1);
  const barrier = new vigil.Barrier(1);
  for (const action of [() => vigil.wait(array, 0, 0), () => vigil.wait(array, 0, 1), () => vigil.wait(array, 0, 0, 0),
    () => mutex.lock(), () => mutex.acquireSync(),
    () => rwlock.acquireReadSync(), () => rwlock.acquireWriteSync(), () => semaphore.acquireSync(),
    () => condition.wait(mutex), () => barrier.wait()])
    throws(action, TypeError);
  equal([mutex.isLocked(), semaphore.permits], [false, 1]);
});

test('misuse: on the page the locks of the seeds block only if they are not free', async (t) => {
  const { vigil } = t, array = vigil.allocate(2);
  vigil.Lock.initialize(array, 0);
  const lock = new vigil.Lock(array, 0), article = new vigil.AsyncLock(array);
  lock.lock();
  throws(() => lock.lock(), TypeError);
  throws(() => article.lock(), TypeError);
  equal(lock.tryLock(), false);
  lock.unlock();
  article.lock();
  article.unlock();
  const made = t.worker(`
    const lock = new vigil.Lock(data, 0);
    lock.lock();
    say(1);
    await hear();
    lock.unlock();
    say(2);`, array);
  equal(await made.next(), 1);
  throws(() => lock.lock(), TypeError);
  made.tell('go');
  equal(await made.next(), 2);
  lock.lock();
  lock.unlock();
});

test('misuse: a lock that is not held, or held by another environment', async (t) => {
  const { vigil } = t, mutex = new vigil.Mutex(), rwlock = new vigil.RwLock(), semaphore = new vigil.Semaphore(2);
  const condition = new vigil.Condition();
  const check = () => {
    for (const action of [() => mutex.unlock(), () => mutex.consistent(), () => rwlock.readUnlock(),
      () => rwlock.writeUnlock(), () => rwlock.downgrade(), () => semaphore.release()])
      throws(action, NotHeldError);
    throws(() => condition.waitAsync(mutex), NotHeldError);
  };
  check();
  await mutex.lockAsync();
  mutex.unlock();
  const held = await rwlock.acquireRead();
  held();
  held(); // once more does nothing
  check();
  const made = t.worker(`
    const { mutex, rwlock, semaphore } = data, held = [new vigil.Mutex(mutex).acquireSync(),
      new vigil.RwLock(rwlock).acquireReadSync(), new vigil.Semaphore(semaphore).acquireSync()];
    say('holds');
    await hear();
    for (const each of held) each();
    return 'released';`,
  { mutex: mutex.array, rwlock: rwlock.array, semaphore: semaphore.array });
  equal(await made.next(), 'holds');
  for (const action of [() => rwlock.readUnlock(), () => rwlock.writeUnlock(), () => semaphore.release()])
    throws(action, NotHeldError);
  made.tell('go');
  equal(await made.next(), 'released');
  equal(semaphore.permits, 2);
});

test('misuse: arrays of other memory', async (t) => {
  const { vigil } = t, other = await t.createVigil(), theirs = other.allocate(4);
  const detached = new Int32Array(4);
  structuredClone(detached.buffer, { transfer: [detached.buffer] });
  const wrong = { 'of another Vigil': theirs, 'of a SharedArrayBuffer': new Int32Array(new SharedArrayBuffer(1 << 20)),
    'of a short SharedArrayBuffer': new Int32Array(new SharedArrayBuffer(16)), 'not shared': new Int32Array(4),
    detached, 'of another type': new Uint32Array(vigil.memory.buffer), 'no array': {}, null: null };
  for (const [what, array] of Object.entries(wrong)) {
    throws(() => vigil.waitAsync(array, 0, 0), TypeError, `waitAsync: ${what}`);
    throws(() => vigil.notify(array, 0), TypeError, `notify: ${what}`);
    for (const name of ['Mutex', 'RwLock', 'Semaphore', 'Condition', 'Barrier', 'Lock'])
      throws(() => new vigil[name](array, 0), TypeError, `${name}: ${what}`);
    throws(() => new vigil.AsyncLock(array), TypeError, `AsyncLock: ${what}`);
    if (what !== 'of another type') throws(() => vigil.free(array), TypeError, `free: ${what}`);
  }
  const lengths = new Set([4, 8, 16, 100, 1000, 1024, 4096, 8192, 16384, 65536, 131072, 262144]);
  for (const length of lengths) {
    const array = new Int32Array(new SharedArrayBuffer(length));
    throws(() => vigil.waitAsync(array, 0, 0), TypeError, `a buffer of ${length} bytes`);
  }
});

test('misuse: indices and numbers', async ({ vigil }) => {
  const array = vigil.allocate(4);
  for (const index of [-1, 4, 1.5, NaN, Infinity, '0', 2 ** 32]) {
    for (const name of ['Mutex', 'RwLock', 'Semaphore', 'Condition', 'Lock'])
      throws(() => new vigil[name](array, index), RangeError, `${name} at ${index}`);
  }
  throws(() => new vigil.Barrier(array, 3), RangeError, 'a barrier has two elements');
  throws(() => new vigil.Semaphore(-1), RangeError);
  throws(() => new vigil.Barrier(0), RangeError);
  throws(() => new vigil.Mutex(new BigInt64Array(vigil.memory.buffer, 0, 1)), TypeError);
  for (const length of [0, -1, 1.5, NaN, undefined, '4', 2 ** 29])
    throws(() => vigil.allocate(length), RangeError, `allocate(${length})`);
  throws(() => vigil.allocate(0x10000000), LimitError, 'more than there is');
  const mutex = new vigil.Mutex(array);
  throws(() => mutex.lockAsync({ timeout: 'long' }), TypeError);
  throws(() => mutex.lockAsync({ timeout: NaN }), TypeError);
  throws(() => mutex.lockAsync({ deadline: 'tomorrow' }), TypeError);
  throws(() => mutex.lockAsync({ signal: {} }), TypeError);
  throws(() => mutex.lockAsync(5), TypeError);
  equal(mutex.isLocked(), false);
});

test('misuse: create and attach', async () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1 });
  const rejected = async (start, Class, what) => {
    const error = await within(start().then(() => undefined, (thrown) => thrown), what); // it must not throw
    ok(error instanceof Class, `${what}: ${error}`);
  };
  await rejected(() => Vigil.create({ memory }), TypeError, 'memory that is not shared');
  await rejected(() => Vigil.create({ memory: {} }), TypeError, 'no memory');
  await rejected(() => Vigil.create({ wasm: '/missing.wasm' }), VigilError, 'a missing file');
  await rejected(() => Vigil.attach(undefined), TypeError, 'no handle');
  await rejected(() => Vigil.attach({}), TypeError, 'not a handle');
  ok(new TimeoutError('VIGIL_TIMED_OUT', 'x') instanceof VigilError);
  for (const [name, Class] of Object.entries({ VigilError, TimeoutError, NotHeldError, LimitError }))
    equal(new Class('VIGIL_EINVAL', 'x').name, name);
});

test('misuse: memory of the caller, small, and then shared by a worker', async (t) => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1000, shared: true });
  const vigil = await t.createVigil({ memory });
  ok(vigil.memory === memory && vigil.handle.memory === memory);
  const array = vigil.allocate(1), made = t.worker('return vigil.wait(data, 0, 0);', array, vigil);
  while (vigil.notify(array, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  equal(await made.next(), 'ok');
});

test('misuse: free, of what was not allocated', async (t) => {
  const { vigil } = t, array = vigil.allocate(100), other = vigil.allocate(4);
  const wrong = { 'nothing': undefined, 'a part': array.subarray(1), 'a later part': array.subarray(64, 80),
    'all of the memory': new Int32Array(vigil.memory.buffer), 'other memory': new Int32Array(4),
    'the end': new Int32Array(vigil.memory.buffer, vigil.memory.buffer.byteLength, 0),
    'an odd address': new Int8Array(vigil.memory.buffer, array.byteOffset + 1, 4) };
  array.fill(-1);
  for (const [what, each] of Object.entries(wrong)) throws(() => vigil.free(each), TypeError, what);
  ok(array.every((value) => value === -1), 'nothing has changed');
  vigil.free(array);
  throws(() => vigil.free(array), TypeError, 'twice');
  const again = vigil.allocate(100);
  equal(again.byteOffset, array.byteOffset, 'it is used again');
  ok(again.every((value) => value === 0), 'and zeroed');
  const made = t.worker('vigil.free(data); return 1;', other);
  equal(await made.next(), 1, 'another environment frees it');
  throws(() => vigil.free(other), TypeError, 'twice, by two');
});

test('misuse: vigil.terminate, with the thread of the caller', async (t) => {
  const { vigil } = t, made = t.worker('say(1); await hear(); return 2;');
  equal(await made.next(), 1);
  throws(() => made.terminateBy(vigil, vigil.thread), TypeError, 'terminate', /vigil\.thread of the worker/);
  made.tell('go');
  equal(await made.next(), 2, 'the worker goes on');
  vigil.free(vigil.allocate(1));
});

test('misuse: vigil.terminate, by an environment that has not created the memory', async (t) => {
  const made = t.worker(`
    let isTerminated = false;
    try {
      vigil.terminate({ terminate() { isTerminated = true; } }, 12345);
      return 'threw nothing';
    } catch ({ name, message }) {
      return [name, isTerminated, message.includes('has created the memory')];
    }`);
  equal(await made.next(), ['TypeError', false, true]);
});
