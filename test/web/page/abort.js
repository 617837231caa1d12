// SPDX-License-Identifier: MIT
// AbortSignal and timeouts, at every moment: either it was aborted and holds nothing, or it holds.

import { test, equal, ok, rejects, within, until, tick, randomOf } from './support.js';

const LOCKS = {
  Mutex: (vigil) => {
    const lock = new vigil.Mutex();
    return { array: lock.array, acquire: (options) => lock.acquire(options), try: () => lock.tryAcquire() };
  },
  'RwLock to write': (vigil) => {
    const lock = new vigil.RwLock();
    return { array: lock.array, acquire: (options) => lock.acquireWrite(options), try: () => lock.tryAcquireWrite() };
  },
  'RwLock to read': (vigil) => {
    const lock = new vigil.RwLock();
    return { array: lock.array, acquire: (options) => lock.acquireRead(options), try: () => lock.tryAcquireWrite(),
      blocker: () => lock.acquireWrite() };
  },
  Semaphore: (vigil) => {
    const lock = new vigil.Semaphore(2);
    return { array: lock.array, acquire: (options) => lock.acquire(2, options), try: () => lock.tryAcquire(2) };
  },
};

for (const [name, create] of Object.entries(LOCKS)) {
  test(`abort: ${name}, before, while it waits, when it is granted, and after`, async ({ vigil }) => {
    const lock = create(vigil), blocker = lock.blocker ?? lock.acquire;
    await rejects(lock.acquire({ signal: AbortSignal.abort(new Error('before')) }), Error, 'before', /before/);
    const release = await blocker();
    const controller = new AbortController(), { signal } = controller;
    const waiting = lock.acquire({ signal }), behind = lock.acquire();
    controller.abort(new Error('waiting'));
    await rejects(waiting, Error, 'while it waits', /waiting/);
    const granted = new AbortController(), third = lock.acquire({ signal: granted.signal });
    release();
    (await within(behind, 'the one behind'))();
    granted.abort(new Error('granted'));
    const outcome = await within(third.then((held) => (held(), 'held'), (error) => error.message));
    ok(outcome === 'held' || outcome === 'granted', outcome);
    granted.abort();
    const free = lock.try();
    equal(typeof free, 'function', 'it is free');
    free();
    equal(vigil.waiters(lock.array), 0);
  });

  test(`abort: ${name}, timeouts and deadlines`, async (t) => {
    const { vigil } = t, { TimeoutError } = await import('/vigil/vigil.js');
    const lock = create(vigil), release = await (lock.blocker ?? lock.acquire)();
    await rejects(lock.acquire({ timeout: 0 }), TimeoutError, 'no time');
    await rejects(lock.acquire({ timeout: 5 }), TimeoutError, '5 ms');
    await rejects(lock.acquire({ deadline: performance.now() + 5 }), TimeoutError, 'a deadline');
    await rejects(lock.acquire({ deadline: performance.now() - 5 }), TimeoutError, 'a deadline that has passed');
    await rejects(lock.acquire({ signal: AbortSignal.timeout(5) }), DOMException, 'AbortSignal.timeout');
    equal(vigil.waiters(lock.array), 0);
    release();
    (await within(lock.acquire({ timeout: 1e9 }), 'free'))();
    (await within(lock.acquire({ timeout: Infinity }), 'free'))();
  });
}

/* A worker holds and releases; the page aborts after a random number of turns, also when it is just being granted. */
test('abort: at any moment, against a worker', async (t) => {
  const { vigil } = t, array = vigil.allocate(4), mutex = new vigil.Mutex(array), random = randomOf(7);
  const made = t.worker(`
    const mutex = new vigil.Mutex(data);
    while (Atomics.load(data, 1) === 0) {
      mutex.lock();
      for (let i = 0; i < 50000; i++) Atomics.load(data, 1);
      mutex.unlock();
      Atomics.add(data, 3, 1);
    }
    return 'done';`, array);
  const seen = { held: 0, aborted: 0 };
  await until(() => Atomics.load(array, 3) > 0, 'the worker to lock');
  for (let i = 0; i < 300; i++) {
    const controller = new AbortController();
    const taken = mutex.acquire({ signal: controller.signal });
    for (let turns = random(2) ? random(4) : random(400); turns > 0; turns--) await tick();
    controller.abort(new Error('aborted'));
    const outcome = await within(taken.then((held) => {
      equal(Atomics.add(array, 2, 1), 0, 'alone');
      Atomics.sub(array, 2, 1);
      held();
      return 'held';
    }, (error) => error.message), `round ${i}`);
    seen[outcome]++;
  }
  Atomics.store(array, 1, 1);
  equal(await made.next(), 'done');
  ok(seen.held > 0 && seen.aborted > 0, `both: ${seen.held} held, ${seen.aborted} aborted`);
  t.note(`${seen.held} held, ${seen.aborted} aborted`);
  ok(mutex.tryLock(), 'it is free');
  mutex.unlock();
});

test('abort: a timeout at the moment of a notify, each is one or the other', async (t) => {
  const { vigil } = t, array = vigil.allocate(2);
  const made = t.worker(`
    let woken = 0;
    while (Atomics.load(data, 1) === 0) woken += vigil.notify(data, 0, 1);
    return woken;`, array);
  let oks = 0;
  for (let i = 0; i < 200; i++) {
    const { async: isAsync, value } = vigil.waitAsync(array, 0, 0, 0.2);
    const outcome = isAsync ? await within(value, `wait ${i}`) : value;
    ok(outcome === 'ok' || outcome === 'timed-out', outcome);
    if (outcome === 'ok') oks++;
  }
  Atomics.store(array, 1, 1);
  equal(await made.next(), oks, 'what notify counted');
});

test('abort: a condition is rejected when the mutex is held again', async ({ vigil }) => {
  const mutex = new vigil.Mutex(), condition = new vigil.Condition(), controller = new AbortController();
  await mutex.lockAsync();
  const waiting = condition.waitAsync(mutex, { signal: controller.signal });
  equal(mutex.isLocked(), false);
  await mutex.lockAsync();
  controller.abort(new Error('enough'));
  let over = false;
  const outcome = waiting.then(() => 'ok', (error) => error.message).finally(() => { over = true; });
  await tick();
  equal(over, false);
  mutex.unlock();
  equal(await within(outcome), 'enough');
  equal(mutex.isLocked(), true);
  mutex.unlock();
});

test('abort: a thousand waits by one signal', async ({ vigil }) => {
  const array = vigil.allocate(1), controller = new AbortController();
  const all = Array.from({ length: 1000 }, () => vigil.waitAsync(array, 0, 0, { signal: controller.signal }).value);
  equal(vigil.waiters(array), 1000);
  controller.abort(new Error('all'));
  const outcomes = await within(Promise.allSettled(all));
  ok(outcomes.every(({ reason }) => reason?.message === 'all'));
  equal(vigil.notify(array, 0), 0);
});
