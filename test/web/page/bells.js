// SPDX-License-Identifier: MIT
// The bell of an environment: rung for its event loop, and for its thread that blocks, at the same time.

import { test, equal, within, until } from './support.js';

/* The event loop waits for the bell, and then the thread does. array: what it blocks on, what it waits for. */
test('bells: a worker that blocks while operations are pending is woken', async (t) => {
  const { vigil } = t, array = vigil.allocate(8);
  const made = t.worker(`
    let settled = 0;
    const pending = Array.from({ length: 3 }, () => vigil.waitAsync(data, 1, 0).value.then(() => settled++));
    await tick();
    for (let round = 0; round < 50; round++) {
      const outcome = vigil.wait(data, 0, round);
      if (outcome === 'timed-out') return 'timed out in round ' + round;
      Atomics.add(data, 2, 1);
      if (round % 3 === 0) await tick();
    }
    say('blocked');
    await Promise.all(pending);
    return settled;`, array);
  for (let round = 0; round < 50; round++) {
    await t.waiting(array, 0, 1);
    Atomics.store(array, 0, round + 1);
    equal(vigil.notify(array, 0), 1);
    await until(() => Atomics.load(array, 2) === round + 1, `round ${round}`);
  }
  equal(await made.next(), 'blocked');
  equal(vigil.notify(array, 1), 3);
  equal(await made.next(), 3);
});

/*
 * A thread that blocks, and its event loop, sleep on the same word: src/prim/bell_word.h. Here the page sleeps in place
 * of the thread, behind the event loop, on which a ring for one sleeper would be spent.
 */
test('bells: a ring wakes all sleepers on the word', async (t) => {
  if (typeof Atomics.waitAsync !== 'function') {
    t.note('it is for helpers as for threads');
    return;
  }
  const { vigil } = t, array = vigil.allocate(2), made = t.worker(`
    const { waitAsync } = Atomics;
    let bell;
    Atomics.waitAsync = (words, index, seen) => {
      bell = index;
      return waitAsync(words, index, seen);
    };
    const { value } = vigil.waitAsync(data, 0, 0);
    say(bell);
    return await value;`, array);
  const bell = await made.next(), words = new Int32Array(vigil.memory.buffer);
  const second = Atomics.waitAsync(words, bell, Atomics.load(words, bell));
  equal(second.async, true, 'it sleeps');
  equal(vigil.notify(array, 0), 1);
  equal(await within(second.value, 'the second sleeper'), 'ok');
  equal(await made.next(), 'ok');
});

/* What is settled meanwhile must be delivered when the thread comes back to its loop. */
test('bells: operations that end while the worker blocks are delivered afterwards', async (t) => {
  const { vigil } = t, array = vigil.allocate(8);
  const made = t.worker(`
    for (let round = 0; round < 30; round++) {
      const pending = [vigil.waitAsync(data, 1, round).value, vigil.waitAsync(data, 1, round, 1e6).value];
      if (round % 2 === 0) await tick();
      vigil.wait(data, 0, round);
      say(await Promise.all(pending));
    }`, array);
  for (let round = 0; round < 30; round++) {
    await t.waiting(array, 1, 2);
    await t.waiting(array, 0, 1);
    equal(vigil.notify(array, 1), 2);
    Atomics.store(array, 1, round + 1);
    Atomics.store(array, 0, round + 1);
    equal(vigil.notify(array, 0), 1);
    equal(await made.next(), ['ok', 'ok'], `round ${round}`);
  }
});

/* Both at once: the ring for the pending operation comes while the thread goes to sleep, or wakes up. */
test('bells: a storm of both', async (t) => {
  const { vigil } = t, array = vigil.allocate(8), rounds = 2000;
  const code = (mine, other) => `
    const sleepers = [];
    for (let round = 0; round < ${rounds}; round++) {
      const pending = vigil.waitAsync(data, ${2 + mine}, round).value;
      Atomics.store(data, ${mine}, round + 1);
      vigil.notify(data, ${mine});
      if (Atomics.load(data, ${other}) <= round) vigil.wait(data, ${other}, round);
      Atomics.store(data, ${2 + other}, round + 1);
      vigil.notify(data, ${2 + other});
      if (pending !== 'not-equal') await pending;
    }
    return 'done';`;
  const made = [t.worker(code(0, 1), array), t.worker(code(1, 0), array)];
  for (const each of made) equal(await each.next('the storm'), 'done');
});

test('bells: a timeout ends while the worker blocks, and one blocks while a timeout is pending', async (t) => {
  const { vigil } = t, array = vigil.allocate(4);
  const made = t.worker(`
    const early = vigil.waitAsync(data, 1, 0, 5).value, late = vigil.waitAsync(data, 1, 0, 60).value;
    const outcome = vigil.wait(data, 0, 0, 30);
    return [outcome, await early, await late];`, array);
  equal(await made.next(), ['timed-out', 'timed-out', 'timed-out']);
  const other = t.worker(`
    const late = vigil.waitAsync(data, 1, 0, 30).value;
    await tick();
    const outcome = vigil.wait(data, 0, 0);
    return [outcome, await late];`, array);
  await t.waiting(array, 0, 1);
  await new Promise((resolve) => setTimeout(resolve, 60));
  equal(vigil.notify(array, 0), 1);
  equal(await other.next(), ['ok', 'timed-out']);
});

test('bells: page and worker, one after the other, thousands of times', async (t) => {
  const { vigil } = t, array = vigil.allocate(4), rounds = 3000;
  const made = t.worker(`
    for (let i = 0; i < ${rounds}; i++) {
      if (Atomics.load(data, 0) === i) vigil.wait(data, 0, i);
      Atomics.store(data, 1, i + 1);
      vigil.notify(data, 1);
    }
    return 'done';`, array);
  for (let i = 0; i < rounds; i++) {
    Atomics.store(array, 0, i + 1);
    vigil.notify(array, 0);
    const { async: isAsync, value } = vigil.waitAsync(array, 1, i);
    if (isAsync) await within(value, `round ${i}`);
  }
  equal(await made.next(), 'done');
});

test('bells: workers that do not block, at one mutex with the page', async (t) => {
  const { vigil } = t, array = vigil.allocate(4), mutex = new vigil.Mutex(array);
  const code = `
    const mutex = new vigil.Mutex(data);
    const loop = async () => {
      for (let i = 0; i < 100; i++) {
        await mutex.lockAsync({ timeout: 1e6 });
        data[1]++;
        if (i % 10 === 0) await tick();
        mutex.unlock();
      }
    };
    await Promise.all([loop(), loop(), loop()]);
    return 'done';`;
  const made = [t.worker(code, array), t.worker(code, array)];
  for (let i = 0; i < 100; i++) {
    await within(mutex.lockAsync({ timeout: 1e6 }), `lock ${i}`);
    array[1]++;
    mutex.unlock();
  }
  for (const each of made) equal(await each.next('the loops of a worker'), 'done');
  equal(array[1], 700);
});

/* named(name): the workers of that name that this page has made, until restore(). */
function watchWorkers() {
  const { Worker } = globalThis, made = [];
  globalThis.Worker = class extends Worker {
    constructor(url, options) {
      super(url, options);
      this.named = options?.name;
      made.push(this);
    }
    terminate() {
      this.isTerminated = true;
      super.terminate();
    }
  };
  return { named: (name) => made.filter(({ named }) => named === name), restore() { globalThis.Worker = Worker; } };
}

/* Where Atomics.waitAsync is missing: lib/bell.js. This page, which has created the memory, starts and ends helpers. */
test('bells: the helper of an environment ends with it', async (t) => {
  if (typeof Atomics.waitAsync === 'function') {
    t.note('there are no helpers');
    return;
  }
  const { vigil } = t, array = vigil.allocate(2), { named, restore } = watchWorkers();
  const begin = async (code) => {
    const made = t.worker(`vigil.waitAsync(data, 0, 0); say(vigil.thread); ${code}`, array);
    const name = `vigil ${vigil.handle.id} ${await made.next()}`;
    await until(() => named(name).length === 1, 'the helper to begin');
    return { made, gone: (what) => until(() => named(name)[0].isTerminated, `the helper of ${what} to be ended`) };
  };
  try {
    const terminated = await begin(''), closed = await begin('await hear(); vigil.close();');
    terminated.made.terminate();
    closed.made.tell('go');
    await terminated.gone('the one that was terminated');
    await closed.gone('the one that has closed');
  } finally {
    restore();
  }
});
