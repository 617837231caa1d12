// SPDX-License-Identifier: MIT
// worker.terminate() at every stage. A browser may take two seconds to notice: lib/death.js.

import {
  library, test, equal, ok, throws, within, until, sleep, tick, randomOf, DIED_MS, HANGS_MS,
} from './support.js';

/*
 * For each kind of lock, its constructor and calls, as strings, because workers run them too. `lock` is at the given
 * index of an Int32Array. `tells`: the next holder is told that the owner has died.
 */
const KINDS = {
  Mutex: { tells: true, make: 'new vigil.Mutex(array, index)', sync: 'lock.acquireSync()', async: 'lock.acquire()' },
  'RwLock to write': { tells: true, make: 'new vigil.RwLock(array, index)', sync: 'lock.acquireWriteSync()',
    async: 'lock.acquireWrite()' },
  'RwLock to read': { tells: false, make: 'new vigil.RwLock(array, index)', sync: 'lock.acquireReadSync()',
    async: 'lock.acquireRead()', other: 'lock.acquireWrite()' },
  Semaphore: { tells: false, make: 'new vigil.Semaphore(array, index)', sync: 'lock.acquireSync(2)',
    async: 'lock.acquire(2)' },
  Lock: { tells: true, make: 'new vigil.Lock(array, index)', sync: '(lock.lock(), () => lock.unlock())',
    async: '(lock.lock(), () => lock.unlock())', other: 'new vigil.Mutex(array, index).acquire()', onlySync: true },
  AsyncLock: { tells: true, make: 'new vigil.AsyncLock(array.subarray(index))',
    sync: '(lock.lock(), () => lock.unlock())',
    async: `new Promise((resolve) => lock.executeLocked(() => {
      const { unlock } = lock; // it would be unlocked after this
      resolve(Object.assign(() => {}, { ownerDied: lock.ownerDied }));
    }))`, other: 'new vigil.Mutex(array, index).acquire()', onlySync: true },
};

/* The lock of that kind on the page: {take, free}, `take` returns a promise. */
function lockOf(vigil, array, index, { make, async: take, other = take }) {
  const lock = new Function('vigil', 'array', 'index', `return ${make};`)(vigil, array, index);
  return () => new Function('vigil', 'array', 'index', 'lock', `return ${other};`)(vigil, array, index, lock);
}

const codeOf = ({ make, sync, async: take, onlySync }, isSync, before = '', after = '') => `
  const { array, index } = data, lock = ${make};
  ${before}
  const held = ${isSync || onlySync ? sync : `await ${take}`};
  ${after}`;

function wordsOf(vigil) {
  const array = vigil.allocate(16);
  vigil.Semaphore.initialize(array, Object.keys(KINDS).indexOf('Semaphore'), 2);
  return array;
}

/*
 * worker.terminate() may meet a worker that is in line already, but has yet to leave the library. That damages the
 * memory, as the README says, and the test begins again.
 */
const ATTEMPTS = 3;
const untilOutside = (body) => async (t) => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await body(t);
    } catch (error) {
      if (t.damage.length === 0 || attempt === ATTEMPTS) throw error;
    }
    t.note(`a worker was inside at attempt ${attempt}`);
    t.mayDamage = true;
    t.damage.length = 0;
    t.forget(t.vigil);
    t.vigil = await t.createVigil();
  }
};

/* All kinds at the same time, because each takes two seconds. */
const eachKind = (body) => untilOutside(async (t) => {
  const array = wordsOf(t.vigil);
  const all = Object.entries(KINDS).map(([name, kind], index) =>
    body({ t, name, kind, array, index, take: lockOf(t.vigil, array, index, kind) })
      .catch((error) => { throw new Error(`${name}: ${error.stack}`); }));
  const outcomes = await Promise.allSettled(all);
  const failed = outcomes.filter(({ status }) => status === 'rejected');
  if (failed.length > 0) throw new Error(failed.map(({ reason }) => reason.message).join('\n'));
});

for (const isSync of [true, false]) {
  const held = `terminate: while holding, taken ${isSync ? 'by blocking' : 'as a promise'}`;
  test(held, eachKind(async ({ t, kind, array, index, take }) => {
    const made = t.worker(codeOf(kind, isSync, '', "globalThis.kept = held; say('holds');"), { array, index });
    equal(await made.next(), 'holds');
    const next = take();
    await t.waiting(array, index, 1);
    made.terminate();
    const held = await within(next, 'the next holder', DIED_MS);
    equal(held.ownerDied, kind.tells, 'ownerDied');
    held();
  }));

  const waiting = `terminate: while waiting, ${isSync ? 'blocked' : 'as a promise'}`;
  test(waiting, eachKind(async ({ t, kind, array, index, take }) => {
    const held = await take();
    const made = t.worker(codeOf(kind, isSync), { array, index });
    await t.waiting(array, index, 1);
    const next = take();
    await t.waiting(array, index, 2);
    made.terminate();
    await until(() => t.vigil.waiters(array, index) === 1, 'its place to disappear', DIED_MS);
    held();
    (await within(next, 'the next holder'))();
  }));
}

/* The worker never returns to its event loop after it has attached. */
test('terminate: while holding, in an endless loop', eachKind(async ({ t, kind, array, index, take }) => {
  const made = t.worker(codeOf(kind, true, '', 'Atomics.store(array, 8 + index, 1); for (;;);'), { array, index });
  await until(() => Atomics.load(array, 8 + index) === 1, 'it to hold');
  const next = take();
  await t.waiting(array, index, 1);
  made.terminate();
  const held = await within(next, 'the next holder', DIED_MS);
  equal(held.ownerDied, kind.tells, 'ownerDied');
  held();
}));

test('terminate: while holding, and blocked in a wait', eachKind(async ({ t, kind, array, index, take }) => {
  const made = t.worker(codeOf(kind, true, '', 'vigil.wait(array, 8 + index, 0);'), { array, index });
  await t.waiting(array, 8 + index, 1);
  const next = take();
  await t.waiting(array, index, 1);
  made.terminate();
  const held = await within(next, 'the next holder', DIED_MS);
  equal(held.ownerDied, kind.tells, 'ownerDied');
  held();
  equal(t.vigil.waiters(array, 8 + index), 0);
}));

/* It is granted while the worker runs JavaScript, so that the worker cannot take delivery. */
test('terminate: while being granted', eachKind(async ({ t, kind, array, index, take }) => {
  if (kind.onlySync) return;
  const held = await take();
  const made = t.worker(codeOf(kind, false,
    `setTimeout(() => { Atomics.store(array, 8 + index, 1); for (;;); }, 1);`), { array, index });
  await t.waiting(array, index, 1);
  await until(() => Atomics.load(array, 8 + index) === 1, 'it to be busy');
  const next = take();
  await t.waiting(array, index, 2);
  held();
  made.terminate();
  (await within(next, 'the next holder', DIED_MS))();
}));

test('terminate: a wait that was notified passes it on', async (t) => {
  const { vigil } = t, array = vigil.allocate(4);
  const made = t.worker(`
    vigil.waitAsync(data, 0, 0);
    say('waits');
    setTimeout(() => { Atomics.store(data, 1, 1); for (;;); }, 1);`, array);
  equal(await made.next(), 'waits');
  await until(() => Atomics.load(array, 1) === 1, 'it to be busy');
  const behind = vigil.waitAsync(array, 0, 0).value;
  equal(vigil.notify(array, 0, 1), 1);
  made.terminate();
  equal(await within(behind, 'the next', DIED_MS), 'ok');
});

test('terminate: a condition and a barrier', untilOutside(async (t) => {
  const { vigil } = t, array = vigil.allocate(8);
  const mutex = new vigil.Mutex(array, 0), condition = new vigil.Condition(array, 1);
  vigil.Barrier.initialize(array, 2, 3);
  const made = [
    t.worker('const m = new vigil.Mutex(data, 0); m.lock(); new vigil.Condition(data, 1).wait(m);', array),
    t.worker(`const m = new vigil.Mutex(data, 0); await m.lockAsync();
      await new vigil.Condition(data, 1).waitAsync(m);`, array),
    t.worker('new vigil.Barrier(data, 2).wait();', array)];
  await t.waiting(array, 1, 2);
  await t.waiting(array, 2, 1);
  for (const each of made) each.terminate();
  await until(() => vigil.waiters(array, 1) === 0 && vigil.waiters(array, 2) === 0, 'their places', DIED_MS);
  equal(condition.signal(), 0);
  await within(mutex.lockAsync(), 'the mutex');
  equal(mutex.ownerDied, false);
  mutex.unlock();
}));

/* The worker leaves the line before it has heard of the signal, so that another one must get it. */
for (const isHeld of [true, false]) {
  const when = isHeld ? 'while the mutex is held' : 'when the mutex is free';
  test(`terminate: a signal of a condition, given ${when}, goes to the next`, async (t) => {
    const { vigil } = t, array = vigil.allocate(8), mutex = new vigil.Mutex(array, 0);
    const condition = new vigil.Condition(array, 1);
    const made = t.worker(`
      const mutex = new vigil.Mutex(data, 0);
      await mutex.lockAsync();
      new vigil.Condition(data, 1).waitAsync(mutex);
      setTimeout(() => { Atomics.store(data, 4, 1); for (;;); }, 1);`, array);
    await t.waiting(array, 1, 1);
    await until(() => Atomics.load(array, 4) === 1, 'it to be busy');
    await within(mutex.lockAsync(), 'the mutex');
    const next = condition.waitAsync(mutex);
    await t.waiting(array, 1, 2);
    if (isHeld) await within(mutex.lockAsync(), 'the mutex');
    equal(condition.signal(), 1);
    if (isHeld) mutex.unlock();
    made.terminate();
    equal(await within(next, 'the next', DIED_MS), 'ok');
    mutex.unlock();
  });
}

/* Three parties. If the arrival of the one that is terminated counted, the second of the others would go on. */
test('terminate: a party of a barrier, whose arrival is taken back', untilOutside(async (t) => {
  const { vigil } = t, array = vigil.allocate(4);
  vigil.Barrier.initialize(array, 0, 3);
  const code = `say('arrives'); return new vigil.Barrier(data, 0).wait();`, first = t.worker(code, array);
  await t.waiting(array, 0, 1);
  first.terminate();
  await until(() => vigil.waiters(array, 0) === 0, 'its place to disappear', DIED_MS);
  const made = [t.worker(code, array), t.worker(code, array)];
  for (const each of made) equal(await each.next(), 'arrives');
  await t.waiting(array, 0, 2);
  equal(await within(new vigil.Barrier(array, 0).waitAsync(), 'the third'), true, 'the page is the last');
  equal(await Promise.all(made.map((each) => each.next())), [false, false]);
}));

test('terminate: idle, and what they had is used again', async (t) => {
  const { vigil } = t, array = vigil.allocate(4), bytes = [];
  for (let round = 0; round < 4; round++) {
    const made = Array.from({ length: 10 }, () => t.worker(`
      new vigil.Mutex(data).lock();
      new vigil.Mutex(data).unlock();
      vigil.waitAsync(data, 1, 0);
      say('idle');`, array));
    for (const each of made) equal(await each.next(), 'idle');
    equal(vigil.waiters(array, 1), 10);
    for (const each of made) each.terminate();
    await until(() => vigil.waiters(array, 1) === 0, 'all to be gone', DIED_MS);
    bytes.push(vigil.memory.buffer.byteLength / 65536);
  }
  t.note(`memory: ${bytes.join(', ')} pages`);
  ok(bytes[3] <= bytes[0] + 4, `the memory grows: ${bytes}`);
});

/*
 * While it attaches: nothing of it may stay locked. Workers that have attached do not call the library, inside of which
 * they could be terminated.
 */
test('terminate: while it attaches', async (t) => {
  const { vigil } = t, array = vigil.allocate(4);
  for (let round = 0; round < 8; round++) {
    const made = Array.from({ length: 4 }, () => t.worker('say("attached");', array));
    for (let i = 0; i < round; i++) await sleep(8);
    for (const each of made) each.terminate();
  }
  const last = t.worker('return vigil.wait(data, 0, 0);', array);
  await t.waiting(array, 0, 1);
  equal(vigil.notify(array, 0), 1);
  equal(await last.next(), 'ok');
});

/*
 * A worker that attaches, and stops behind the door of src/prim/wasm/prim_wasm.h until element 0 changes: element 1 is
 * 1 then. What it attaches by is in data; when it has attached, element 2 is 1.
 */
const behindDoor = `
  const { handle, array } = data, { exchange } = Atomics;
  Atomics.exchange = (...all) => {
    Atomics.exchange = exchange;
    Atomics.store(array, 1, 1);
    Atomics.wait(array, 0, 0);
    return exchange(...all);
  };
  await library.Vigil.attach(handle);
  Atomics.store(array, 2, 1);
  return 'attached';`;

/* Another one: element 3 says how often it has tried the door. */
const beforeDoor = `
  const { handle, array } = data, { compareExchange } = Atomics;
  Atomics.compareExchange = (...all) => {
    Atomics.add(array, 3, 1);
    return compareExchange(...all);
  };
  await library.Vigil.attach(handle);
  Atomics.store(array, 4, 1);
  return 'attached';`;

async function twoAtDoor(t) {
  const array = new Int32Array(new SharedArrayBuffer(32)), data = { handle: t.vigil.handle, array };
  const inside = t.worker(behindDoor, data, null);
  await until(() => Atomics.load(array, 1) === 1, 'the first to be behind the door');
  const outside = t.worker(beforeDoor, data, null);
  await until(() => Atomics.load(array, 3) > 2 || Atomics.load(array, 4) === 1, 'the second to try');
  equal(Atomics.load(array, 4), 0, 'the second has attached');
  return { array, inside, outside };
}

test('attach: one at a time goes through the door', async (t) => {
  const { array, inside, outside } = await twoAtDoor(t);
  Atomics.store(array, 0, 1);
  Atomics.notify(array, 0);
  equal(await inside.next(), 'attached');
  equal(await outside.next(), 'attached');
});

test('terminate: behind the door, which is opened', async (t) => {
  const { array, inside, outside } = await twoAtDoor(t), { vigil } = t;
  inside.terminate();
  await until(() => Atomics.load(array, 4) === 1, 'the second to attach', DIED_MS);
  equal(await outside.next(), 'attached');
  equal(Atomics.load(array, 2), 0);
  vigil.free(vigil.allocate(4)); // the heap is the page's again
});

/*
 * A worker that stays inside the library, when that asks for the time, until element 2 changes: it says its thread, and
 * element 1 is 1 as soon as it is inside, and 2 when it goes on.
 */
const STUCK = `
  const now = performance.now.bind(performance);
  say(vigil.thread);
  performance.now = () => {
    performance.now = now;
    Atomics.store(data, 1, 1);
    Atomics.wait(data, 2, 0);
    Atomics.store(data, 1, 2);
    return now();
  };
  vigil.wait(data, 0, 0, 100000);`;

async function stuckWorker(t, array) {
  const made = t.worker(STUCK, array), thread = await made.next();
  await until(() => Atomics.load(array, 1) === 1, 'it to be inside');
  return [made, thread];
}

test('terminate: inside the library, which is reported', async (t) => {
  t.mayDamage = true;
  const [made] = await stuckWorker(t, t.vigil.allocate(4));
  made.terminate();
  await until(() => t.damage.length > 0, 'a report', DIED_MS);
  equal(t.damage.map(({ code }) => code), ['VIGIL_ECORRUPT']);
  t.forget(t.vigil);
});

test('terminate: inside the library, after the creator has closed: the others are told', async (t) => {
  const { vigil } = t, array = vigil.allocate(4), [made] = await stuckWorker(t, array);
  const promised = t.worker(caught('return await vigil.waitAsync(data, 3, 0).value;'), array);
  await t.waiting(array, 3, 1);
  vigil.close();
  made.terminate();
  equal(await promised.next('the worker with a promise', HANGS_MS + DIED_MS), 'VIGIL_ECORRUPT');
});

/*
 * A worker that stops when the library asks for the time while it moves the waiters of a condition: it has locked the
 * bucket of their line then. The worker in the line, one that wants the bucket's lock, promises and newcomers all fail.
 */
const withBucket = `
  const now = performance.now.bind(performance);
  performance.now = () => {
    Atomics.store(data, 5, 1);
    Atomics.wait(data, 6, 0);
    return now();
  };
  new vigil.Condition(data, 0).broadcast();`;
const caught = (code) => `try { ${code} } catch (error) { return error.code; }`;
const rejectionOf = (promise) => within(promise, 'a rejection').then(() => 'none', ({ code }) => code);

test('terminate: with a lock of the library, after which all calls fail', async (t) => {
  t.mayDamage = true;
  const { vigil } = t, array = vigil.allocate(16), mutex = new vigil.Mutex(array, 2), free = new vigil.Mutex(array, 8);
  const holder = t.worker("new vigil.Mutex(data, 2).lock(); say('holds');", array);
  equal(await holder.next(), 'holds');
  const inLine = t.worker(caught(`const mutex = new vigil.Mutex(data, 1);
    mutex.lock();
    return new vigil.Condition(data, 0).wait(mutex);`), array);
  const promised = t.worker(caught('return await vigil.waitAsync(data, 3, 0).value;'), array);
  const pending = [mutex.lockAsync(), vigil.waitAsync(array, 3, 0).value,
    vigil.waitAsync(array, 3, 0, { signal: new AbortController().signal }).value];
  for (const each of pending) each.catch(() => {});
  await t.waiting(array, 0, 1);
  await t.waiting(array, 3, 3);
  const dying = t.worker(withBucket, array);
  await until(() => Atomics.load(array, 5) === 1, 'it to lock the bucket');
  const atBucket = t.worker(caught('Atomics.store(data, 7, 1); return vigil.notify(data, 0);'), array);
  await until(() => Atomics.load(array, 7) === 1, 'another one to want it');
  dying.terminate();
  for (const each of pending) equal(await rejectionOf(each), 'VIGIL_ECORRUPT', 'a promise');
  for (const [what, each] of Object.entries({ 'the worker in line': inLine, 'the worker with a promise': promised,
    'the worker that wants the bucket': atBucket })) equal(await each.next(what), 'VIGIL_ECORRUPT', what);
  equal(t.damage.map(({ code }) => code), ['VIGIL_ECORRUPT'], 'reports');
  equal(await rejectionOf(mutex.lockAsync()), 'VIGIL_ECORRUPT', 'a new wait');
  throws(() => vigil.notify(array, 3), library.VigilError, 'notify');
  throws(() => vigil.allocate(4), library.VigilError, 'allocate');
  await free.runExclusive(() => {}); // which needs no library
  const last = t.worker(caught('await library.Vigil.attach(data);'), vigil.handle, null);
  equal(await last.next('the worker that attaches'), 'VIGIL_ECORRUPT', 'attach');
  vigil.close();
});

/* When the library asks for the time, the stack is full. */
test('damage: a call that ends in an exception, after which all calls fail', async (t) => {
  t.mayDamage = true;
  const { vigil } = t, array = vigil.allocate(8), pending = vigil.waitAsync(array, 3, 0).value;
  pending.catch(() => {});
  const made = t.worker(`
    const failureOf = (call) => {
      try { return call(); } catch (error) { return error.code ?? error.name; }
    };
    const deep = () => deep() + 1;
    performance.now = deep;
    say(failureOf(() => vigil.wait(data, 0, 0, 1000)));
    say(failureOf(() => vigil.notify(data, 0)));`, array);
  const name = await made.next();
  ok(['RangeError', 'InternalError'].includes(name), `a full stack, not ${name}`);
  equal(await made.next(), 'VIGIL_ECORRUPT', 'the next call');
  equal(await rejectionOf(pending), 'VIGIL_ECORRUPT', 'a promise of the page');
  equal(t.damage.map(({ code }) => code), ['VIGIL_ECORRUPT'], 'reports');
  t.forget(vigil);
});

test('damage: a call from inside the library', async (t) => {
  t.mayDamage = true;
  const { vigil } = t, array = vigil.allocate(8), made = t.worker(`
    const now = performance.now.bind(performance);
    performance.now = () => {
      performance.now = now;
      try {
        vigil.notify(data, 1);
        say('none');
      } catch (error) {
        say(error.name);
      }
      return now();
    };
    vigil.wait(data, 0, 0, 100);`, array);
  equal(await made.next(), 'RuntimeError', 'the exception');
  await until(() => t.damage.length > 0, 'a report');
  t.forget(vigil);
});

test('terminate: by vigil.terminate, which waits until the worker is outside', async (t) => {
  const { vigil } = t, array = vigil.allocate(4), [made, thread] = await stuckWorker(t, array);
  const { now } = performance;
  performance.now = () => { // called by the page as it begins to wait
    Atomics.store(array, 2, 1);
    Atomics.notify(array, 2);
    return now.call(performance);
  };
  try {
    made.terminateBy(vigil, thread);
  } finally {
    performance.now = now;
  }
  equal(Atomics.load(array, 1), 2, 'it has gone on');
  await until(() => vigil.waiters(array) === 0, 'its place to disappear', DIED_MS);
});

/* How often a worker that has been terminated still calls the library: it counts that in element 1. */
function callsAfter(array) {
  const first = Atomics.load(array, 1), end = performance.now() + 250;
  while (performance.now() < end && Atomics.load(array, 1) <= first + 1);
  return Atomics.load(array, 1) - first;
}

test('terminate: by vigil.terminate, after which the worker calls nothing', async (t) => {
  const { vigil } = t, array = vigil.allocate(4);
  const made =
    t.worker('say(vigil.thread); for (;;) { Atomics.add(data, 1, 1); vigil.notify(data, 0); }', array);
  const thread = await made.next();
  await until(() => Atomics.load(array, 1) > 100, 'it to run');
  made.terminateBy(vigil, thread);
  const more = callsAfter(array);
  ok(more <= 1, `${more} calls more`);
});

/*
 * A worker that creates the memory, and workers of its own: begin(code) returns one, of which next() is what it says.
 */
const CREATES = `
  const { STUCK, withBucket } = data, damage = [];
  vigil = await library.Vigil.create({ onDamage: ({ code }) => damage.push(code) });
  const array = vigil.allocate(16), until = async (condition) => { while (!condition()) await tick(); };
  function begin(code) {
    const worker = new Worker('./worker.js', { type: 'module' }), said = [];
    worker.onmessage = ({ data }) => said.push(data);
    worker.postMessage({ handle: vigil.handle, code, data: array });
    return { worker, next: async () => {
      await until(() => said.length > 0);
      const { said: message, error } = said.shift();
      if (error !== undefined) throw new Error(error);
      return message;
    } };
  }`;
/* The library spins for five seconds. */
const SPINS_MS = HANGS_MS + 5000;
const creator = (t, code) => t.worker(`${CREATES}${code}`, { STUCK, withBucket }, null);

test('created by a worker: those that are terminated are ended, also while the worker blocks', async (t) => {
  const made = creator(t, `
    const mutex = new vigil.Mutex(array, 0), holder = begin('new vigil.Mutex(data, 0).lock(); say("holds");');
    await holder.next();
    holder.worker.terminate();
    const held = await mutex.acquire();
    say(held.ownerDied);
    mutex.consistent();
    const waiter = begin('say("waits"); vigil.wait(data, 1, 0); say("woken");');
    await waiter.next();
    await until(() => vigil.waiters(array, 1) === 1);
    say(vigil.wait(array, 2, 0, 7500));
    held();
    say([vigil.notify(array, 1), await waiter.next(), damage]);`);
  equal(await made.next(), true, 'ownerDied');
  equal(await made.next('a wait', SPINS_MS), 'timed-out', 'a wait of more than five seconds');
  equal(await made.next(), [1, 'woken', []]);
});

test('created by a worker: vigil.terminate, of one that does not come out', async (t) => {
  const made = creator(t, `
    const stuck = begin(STUCK), thread = await stuck.next();
    await until(() => Atomics.load(array, 1) === 1);
    try {
      vigil.terminate(stuck.worker, thread);
    } catch ({ code }) {
      say(code);
    }`);
  equal(await made.next('vigil.terminate', SPINS_MS), 'VIGIL_ECORRUPT');
});

/* The first is in a line of which the second, which has stopped, has locked the bucket. */
test('created by a worker: one is terminated behind a lock that another one has kept', async (t) => {
  const made = creator(t, `
    const first = begin('const m = new vigil.Mutex(data, 1); m.lock(); new vigil.Condition(data, 0).wait(m);');
    await until(() => vigil.waiters(array, 0) === 1);
    begin(withBucket);
    await until(() => Atomics.load(array, 5) === 1);
    first.worker.terminate();
    await until(() => damage.length > 0);
    return damage;`);
  equal(await made.next('the report', SPINS_MS), ['VIGIL_ECORRUPT']);
});

/* The page does nothing else meanwhile, so the message of the worker's attaching cannot have come. */
test('terminate: by vigil.terminate, of a worker that the page has not heard of', async (t) => {
  const { vigil } = t, array = vigil.allocate(8);
  const made = t.worker(`
    const { handle, array } = data;
    say('began');
    await hear();
    const vigil2 = await library.Vigil.attach(handle), mutex = new vigil2.Mutex(array, 3);
    mutex.lock();
    Atomics.store(array, 2, vigil2.thread);
    for (;;) { Atomics.add(array, 1, 1); vigil2.notify(array, 0); }`, { handle: vigil.handle, array }, null);
  await made.next();
  made.tell('go');
  const end = performance.now() + HANGS_MS;
  while (Atomics.load(array, 1) < 100 && performance.now() < end);
  made.terminateBy(vigil, Atomics.load(array, 2));
  const first = Atomics.load(array, 1), more = callsAfter(array);
  ok(first >= 100 && more <= 1, `${first}, and ${more} calls more`);
  const held = await within(new vigil.Mutex(array, 3).acquire(), 'what it held', DIED_MS);
  equal(held.ownerDied, true);
});

test('terminate: by vigil.terminate, of a worker that does not come out', async (t) => {
  t.mayDamage = true;
  const [made, thread] = await stuckWorker(t, t.vigil.allocate(4));
  let thrown;
  try {
    made.terminateBy(t.vigil, thread);
  } catch (error) {
    thrown = error;
  }
  equal(thrown?.code, 'VIGIL_ECORRUPT');
  await until(() => t.damage.length > 0, 'a report', DIED_MS);
  t.forget(t.vigil);
});

test('terminate: by vigil.terminate, of one that is unknown or has closed', async (t) => {
  const { vigil } = t, made = t.worker('vigil.close(); say(1); for (;;);');
  await made.next();
  made.terminateBy(vigil, 12345);
  const other = t.worker('say(vigil.thread); vigil.close(); say(2); for (;;);'), thread = await other.next();
  await other.next();
  other.terminateBy(vigil, thread);
});

/*
 * A storm: workers that take and release, blocking, without a pause, and are terminated at any moment; meanwhile the
 * page takes the same locks. A worker that is stopped in the middle of the library leaves damage, which is reported.
 * Without such a report, nothing may hang, and everything is free afterwards.
 */
const STORM = `
  const { array, seed } = data, random = randomOf(seed);
  const mutex = new vigil.Mutex(array, 0), rwlock = new vigil.RwLock(array, 1);
  const semaphore = new vigil.Semaphore(array, 2);
  const ways = [() => mutex.acquireSync(), () => rwlock.acquireWriteSync(), () => rwlock.acquireReadSync(),
    () => semaphore.acquireSync(1 + random(2))];
  say(vigil.thread);
  for (;;) {
    const way = random(4), held = ways[way]();
    if (held.ownerDied && way === 0) mutex.consistent();
    if (held.ownerDied && way === 1) rwlock.consistent();
    for (let i = random(50); i > 0; i--) Atomics.load(array, 3);
    held();
    Atomics.add(array, 4, 1);
  }`;

/* `terminate(made, vigil, thread)` ends a worker. */
async function stormRound(t, seed, terminate) {
  const damage = [], random = randomOf(seed);
  const vigil = await t.createVigil({ onDamage: (error) => damage.push(error) });
  const array = vigil.allocate(8);
  vigil.Semaphore.initialize(array, 2, 3);
  const mutex = new vigil.Mutex(array, 0), rwlock = new vigil.RwLock(array, 1);
  const semaphore = new vigil.Semaphore(array, 2);
  const ways = [() => mutex.acquire(), () => rwlock.acquireWrite(), () => rwlock.acquireRead(),
    () => semaphore.acquire(2)];
  const made = [1, 2].map((i) => t.worker(STORM, { array, seed: seed + i }, vigil));
  const threads = new Map();
  for (const each of made) threads.set(each, await each.next());
  let stop = false;
  const contend = async (way) => {
    while (!stop) {
      const held = await ways[way]();
      if (held.ownerDied && way < 2) (way === 0 ? mutex : rwlock).consistent();
      await tick();
      held();
      await tick();
    }
  };
  const loops = Promise.all([0, 1, 2, 3].map(contend));
  loops.catch(() => {}); // below
  for (const each of made) {
    for (let i = random(60); i > 0; i--) await tick();
    terminate(each, vigil, threads.get(each));
  }
  const released = () => Atomics.load(array, 4);
  let seen;
  do { // the workers have stopped
    seen = released();
    await sleep(300);
  } while (released() !== seen);
  stop = true;
  const isDamage = (error) => (error.code === 'VIGIL_ECORRUPT' ? 'damaged' : `failed: ${error}`);
  const outcome = await Promise.race([loops.then(() => 'free', isDamage),
    until(() => damage.length > 0, 'a report', 15000).then(() => 'damaged', () => 'hangs')]);
  if (outcome !== 'free') {
    t.forget(vigil);
    return { outcome, released: seen };
  }
  await until(() => damage.length > 0 || semaphore.permits === 3, 'the permits to come back', DIED_MS);
  for (const way of [0, 1, 3]) {
    const last = await Promise.race([ways[way](), until(() => damage.length > 0, 'x', DIED_MS)
      .then(() => undefined, () => 'hangs')]);
    if (last === 'hangs') return { outcome: `hangs at last: ${way}`, released: seen };
    last?.();
  }
  if (damage.length > 0) t.forget(vigil);
  return { outcome: damage.length > 0 ? 'damaged' : 'free', released: seen };
}

async function storm(t, terminate) {
  const seed = Number(new URL(location).searchParams.get('seed') ?? Date.now() % 1000000);
  const rounds = Number(new URL(location).searchParams.get('rounds') ?? 3), outcomes = [];
  for (let round = 0; round < rounds; round++)
    outcomes.push(...await Promise.all([1, 2, 3].map((i) => stormRound(t, seed + 100 * round + 10 * i, terminate))));
  const count = (which) => outcomes.filter(({ outcome }) => outcome === which).length;
  t.note(`seed ${seed}: ${2 * outcomes.length} workers terminated, ${outcomes.reduce((sum, each) => sum + each.released,
    0)} times released; of ${outcomes.length} Vigils ${count('damaged')} reported damage`);
  return outcomes.map(({ outcome }) => outcome).filter((outcome) => outcome !== 'free');
}

test('terminate: during a storm of locking', async (t) => {
  t.mayDamage = true;
  const outcomes = await storm(t, (made) => made.terminate());
  equal(outcomes.filter((outcome) => outcome !== 'damaged'), [], 'hangs without a report');
});

test('terminate: by vigil.terminate, during a storm of locking', async (t) => {
  equal(await storm(t, (made, vigil, thread) => made.terminateBy(vigil, thread)), [], 'damage');
});

/*
 * The same, but the workers come back to their event loops. Chromium stops a worker there, unless it does not come back
 * for two seconds, so nothing is damaged; Firefox stops it anywhere.
 */
test('terminate: during a storm of workers that do not block', async (t) => {
  t.mayDamage = navigator.userAgent.includes('Firefox');
  const { vigil } = t, array = vigil.allocate(8), random = randomOf(11);
  vigil.Semaphore.initialize(array, 2, 3);
  const code = `
    const mutex = new vigil.Mutex(data, 0), rwlock = new vigil.RwLock(data, 1);
    const semaphore = new vigil.Semaphore(data, 2);
    const loop = async (way) => {
      for (;;) {
        const held = await way();
        if (held.ownerDied && mutex.isLocked()) { try { mutex.consistent(); } catch {} }
        await tick();
        held();
        Atomics.add(data, 4, 1);
        await tick();
      }
    };
    say('runs');
    for (const way of [() => mutex.acquire(), () => rwlock.acquireRead(), () => semaphore.acquire(2)]) {
      loop(way);
      loop(way);
    }`;
  for (let round = 0; round < 4 && t.damage.length === 0; round++) {
    const made = [1, 2, 3].map(() => t.worker(code, array));
    const begun = Promise.all(made.map((each) => each.next()));
    await begun.catch((error) => { if (t.damage.length === 0) throw error; }); // what is damaged cannot be attached
    for (const each of made) {
      for (let i = random(100); i > 0; i--) await tick();
      each.terminate();
    }
  }
  const all = [['the mutex', () => new vigil.Mutex(array, 0).acquire()],
    ['the read-write lock', () => new vigil.RwLock(array, 1).acquireWrite()],
    ['the semaphore', () => new vigil.Semaphore(array, 2).acquire(3)]];
  for (const [what, take] of all) {
    if (t.damage.length > 0) break;
    const damaged = until(() => t.damage.length > 0, what, 2 * DIED_MS).catch(() => {});
    try {
      const held = await within(Promise.race([take(), damaged]), what, DIED_MS + 5000);
      if (t.damage.length === 0) held();
    } catch (error) { // the page was held up by what was damaged
      if (error.code !== 'VIGIL_ECORRUPT') throw error;
      t.damage.push(error);
    }
  }
  /* The page may have had the mutex before the places of all that were terminated have gone. */
  const isOver = () => t.damage.length > 0 || vigil.waiters(array, 0) === 0;
  await until(isOver, 'the line to be empty', DIED_MS);
  if (t.damage.length > 0) t.forget(vigil);
  t.note(`12 workers terminated, ${array[4]} times released, ${t.damage.length} reports of damage`);
});
