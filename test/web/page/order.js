// SPDX-License-Identifier: MIT
// One line for all: blocked workers, workers that do not block, and the page are served in the order of their arrival.

import { test, equal, ok, until, within } from './support.js';

/* The waiters append their number to array[2...] when they are served. array[1] is how many were. */
const append = 'const done = (number) => { array[2 + Atomics.add(array, 1, 1)] = number; };';

const KINDS = {
  'a mutex': {
    take: (vigil, array) => new vigil.Mutex(array).lockAsync(),
    give: (vigil, array) => new vigil.Mutex(array).unlock(),
    blocked: 'const lock = new vigil.Mutex(array); lock.lock(); done(number); lock.unlock();',
    async: 'const lock = new vigil.Mutex(array); await lock.lockAsync(); done(number); lock.unlock();',
  },
  'a lock of the article': {
    take: (vigil, array) => new vigil.Mutex(array).lockAsync(),
    give: (vigil, array) => new vigil.Mutex(array).unlock(),
    blocked: 'const lock = new vigil.AsyncLock(array); lock.lock(); done(number); lock.unlock();',
    async: `const lock = new vigil.AsyncLock(array);
      await new Promise((resolve) => lock.executeLocked(() => { done(number); resolve(); }));`,
  },
  'a read-write lock': {
    take: (vigil, array) => new vigil.RwLock(array).acquireWrite(),
    give: (vigil, array, held) => held(),
    blocked: 'const held = new vigil.RwLock(array).acquireWriteSync(); done(number); held();',
    async: 'const held = await new vigil.RwLock(array).acquireWrite(); done(number); held();',
  },
  'a semaphore': {
    take: (vigil, array) => {
      vigil.Semaphore.initialize(array, 0, 1);
      return new vigil.Semaphore(array).acquire();
    },
    give: (vigil, array, held) => held(),
    blocked: 'const held = new vigil.Semaphore(array).acquireSync(); done(number); held();',
    async: 'const held = await new vigil.Semaphore(array).acquire(); done(number); held();',
  },
};

const AsyncFunction = (async () => {}).constructor;

/* An environment has one place in the line of a lock, however often it asks for it: so the page is there once. */
const LINE = ['blocked', 'page', 'async', 'blocked', 'async', 'blocked'];

/*
 * They stand in line when they are told to. Returns a function that tells all, one after the other, checks that this is
 * their order in the line, and returns promises of their ends.
 */
async function createLine(t, array, { blocked, async: notBlocked }) {
  const bodyOf = (kind) => `${append} ${kind === 'blocked' ? blocked : notBlocked}`;
  const page = new AsyncFunction('vigil', 'array', 'number', bodyOf('page'));
  const workers = LINE.map((kind) => kind !== 'page' && t.worker(`
    const array = data;
    say(vigil.thread);
    for (;;) {
      const number = await hear();
      { ${bodyOf(kind)} }
      say(number);
    }`, array));
  const threads = await Promise.all(workers.map((made) => (made ? made.next() : t.vigil.thread)));
  return async () => {
    const ends = [];
    for (const [number, made] of workers.entries()) {
      if (made) made.tell(number);
      ends.push(made ? made.next() : page(t.vigil, array, number).then(() => number));
      await t.waiting(array, 0, number + 1);
    }
    const line = t.vigil.look().find(({ address }) => address === array.byteOffset);
    equal(line?.waiters.map(({ thread }) => thread), threads, 'the line');
    return ends;
  };
}

const ALL = [0, 1, 2, 3, 4, 5];

/*
 * A waiter that is called and does not come for some milliseconds loses its turn to the next, so that a busy page holds
 * up no others (src/recovery/guard.h). A browser on a busy machine may take longer than that: so each attempt
 * must serve all of them, and one must be in order.
 */
for (const [name, kind] of Object.entries(KINDS)) {
  test(`order: ${name}, a mixed line`, async (t) => {
    const array = t.vigil.allocate(16), line = await createLine(t, array, kind), seen = [];
    while (seen.at(-1) !== ALL.join() && seen.length < 40) {
      array.fill(0, 1);
      const held = await within(kind.take(t.vigil, array), 'the lock');
      const ends = await line();
      kind.give(t.vigil, array, held);
      equal(await within(Promise.all(ends), 'all of them'), ALL);
      seen.push(array.subarray(2, 8).join());
    }
    equal(seen.at(-1), ALL.join(), 'the order at last');
    if (seen.length > 1) t.note(`in order at attempt ${seen.length}`);
  });
}

/*
 * A fair lock is passed on in order, unless a waiter that is called does not come for a second: then the next is called
 * (FAIR_PATIENCE_NS). An attempt that is over sooner must be in order, each of them; others say nothing.
 */
const PATIENCE_MS = 900;

test('order: a fair mutex, a mixed line, in each attempt', async (t) => {
  const array = t.vigil.allocate(16), mutex = new t.vigil.Mutex(array, 0, { fair: true });
  const made = 'const lock = new vigil.Mutex(array, 0, { fair: true });';
  const line = await createLine(t, array, {
    blocked: `${made} lock.lock(); done(number); lock.unlock();`,
    async: `${made} await lock.lockAsync(); done(number); lock.unlock();`,
  });
  let sooner = 0, attempts = 0;
  for (; sooner < 20 && attempts < 40; attempts++) {
    array.fill(0, 1);
    await within(mutex.lockAsync(), 'the lock');
    const ends = await line(), began = performance.now();
    mutex.unlock();
    equal(await within(Promise.all(ends), 'all of them'), ALL);
    if (performance.now() - began >= PATIENCE_MS) continue;
    sooner++;
    equal([...array.subarray(2, 8)], ALL, `the order of attempt ${attempts}`);
  }
  ok(sooner > 0, 'no attempt was over within a second');
  if (sooner < attempts) t.note(`${attempts - sooner} of ${attempts} attempts took too long`);
});

test('order: notify, a mixed line', async (t) => {
  const array = t.vigil.allocate(16);
  const line = await createLine(t, array, {
    blocked: 'vigil.wait(array, 0, 0); done(number);',
    async: 'await vigil.waitAsync(array, 0, 0).value; done(number);',
  });
  const ends = await line();
  for (let i = 1; i <= 6; i++) {
    equal(t.vigil.notify(array, 0, 1), 1);
    await until(() => Atomics.load(array, 1) === i, `waiter ${i}`);
  }
  equal(t.vigil.notify(array, 0, 1), 0);
  equal(await within(Promise.all(ends), 'all of them'), ALL);
  equal([...array.subarray(2, 8)], ALL, 'the order');
});

test('order: one waiter that gives up leaves the others in theirs', async (t) => {
  const { vigil } = t, array = vigil.allocate(16), order = [], abort = new AbortController();
  const mutex = new vigil.Mutex(array);
  await mutex.lockAsync();
  const take = (number, options) => mutex.acquire(options).then((held) => {
    order.push(number);
    held();
  });
  const first = take(0), second = take(1, { signal: abort.signal }), third = take(2);
  abort.abort();
  equal(await second.then(() => 'taken', (error) => error.name), 'AbortError');
  mutex.unlock();
  await within(Promise.all([first, third]));
  equal(order, [0, 2]);
});
