// SPDX-License-Identifier: MIT
// wait, waitAsync and notify, on the page and in workers.

import { test, equal, ok, throws, rejects, within, until, tick } from './support.js';

test('wait: not equal, and a timeout of zero, at once', async ({ vigil }) => {
  const array = vigil.allocate(4);
  array[1] = 7;
  equal(vigil.waitAsync(array, 1, 8), { async: false, value: 'not-equal' });
  equal(vigil.waitAsync(array, 1, 7, 0), { async: false, value: 'timed-out' });
  equal(vigil.waitAsync(array, 1, 7, -5), { async: false, value: 'timed-out' });
});

test('wait: the same, blocking', async (t) => {
  const array = t.vigil.allocate(4);
  array[1] = 7;
  const made = t.worker(`
    const { wait } = vigil;
    return [wait(data, 1, 8), wait(data, 1, 7, 0), wait(data, 1, 7, -5), wait(data, 1, 8, NaN), wait(data, 1, 7, 1)];`,
  array);
  equal(await made.next(), ['not-equal', 'timed-out', 'timed-out', 'not-equal', 'timed-out']);
});

test('wait: timeouts are never early, and end', async (t) => {
  const array = t.vigil.allocate(1);
  const timed = async (ms) => {
    const before = performance.now();
    equal(await within(t.vigil.waitAsync(array, 0, 0, ms).value, `a timeout of ${ms} ms`), 'timed-out');
    ok(performance.now() - before >= ms - 0.1, `early by ${ms - (performance.now() - before)} ms`);
  };
  await Promise.all([0.5, 1, 1.5, 2, 3.3, 5, 7, 10, 20].flatMap((ms) => [timed(ms), timed(ms)]));
  const made = t.worker(`
    const early = [];
    for (const ms of [0, 0.1, 0.9, 1, 2.5, 5, 20]) {
      const before = performance.now();
      const result = vigil.wait(data, 0, 0, ms), took = performance.now() - before;
      if (result !== 'timed-out' || took < ms - 0.1) early.push([ms, result, took]);
    }
    return early;`, array);
  equal(await made.next(), []);
});

/* One after the other: each sets the alarm anew, and a timer of the browser may go off a little too early. */
test('wait: each of many short timeouts ends', async (t) => {
  const array = t.vigil.allocate(1);
  const code = `
    for (let i = 0; i < 150; i++) {
      let timer;
      const late = new Promise((resolve) => { timer = setTimeout(resolve, 10000, 'lost'); });
      const outcome = await Promise.race([vigil.waitAsync(data, 0, 0, 1 + i % 3).value, late]);
      clearTimeout(timer);
      if (outcome !== 'timed-out') return outcome + ' in round ' + i;
    }
    return 'all';`;
  const made = [t.worker(code, array), t.worker(code, array)];
  const AsyncFunction = (async () => {}).constructor;
  equal(await within(new AsyncFunction('vigil', 'data', code)(t.vigil, array), 'the page', 60000), 'all');
  for (const each of made) equal(await each.next(), 'all');
});

test('wait: an early alarm is set again', async (t) => {
  /* A browser whose timers are early: the first one goes off at once. */
  const { setTimeout: original } = globalThis, array = t.vigil.allocate(1);
  let early = 0;
  globalThis.setTimeout = (callback, ms, ...rest) => {
    const isAlarm = ms > 300 && ms <= 400;
    if (isAlarm) early++;
    return original(callback, isAlarm ? 1 : ms, ...rest);
  };
  try {
    equal(await within(t.vigil.waitAsync(array, 0, 0, 400).value, 'a timeout of 400 ms', 5000), 'timed-out');
    ok(early > 0, 'the alarm is a timer');
  } finally {
    globalThis.setTimeout = original;
  }
});

test('wait: order of notify(n)', async ({ vigil }) => {
  const array = vigil.allocate(1), order = [];
  const all = Array.from({ length: 10 }, (_, i) => vigil.waitAsync(array, 0, 0).value.then(() => order.push(i)));
  equal(vigil.waiters(array), 10);
  equal(vigil.notify(array, 0, 0), 0);
  equal(vigil.notify(array, 0, 4), 4);
  await until(() => order.length >= 4);
  await tick();
  equal(order, [0, 1, 2, 3]);
  equal(vigil.notify(array, 0, 100), 6);
  await within(Promise.all(all));
  equal(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  equal(vigil.notify(array, 0), 0);
  equal(vigil.waiters(array), 0);
});

test('wait: BigInt64Array', async (t) => {
  const { vigil } = t, words = vigil.allocate(4), large = -(2n ** 62n) - 1n;
  const array = new BigInt64Array(words.buffer, words.byteOffset, 2);
  array[1] = large;
  equal(vigil.waitAsync(array, 1, large + 2n ** 32n), { async: false, value: 'not-equal' });
  const waiting = vigil.waitAsync(array, 1, large);
  equal(waiting.async, true);
  equal(vigil.notify(array, 0), 0);
  equal(vigil.notify(array, 1), 1);
  equal(await within(waiting.value), 'ok');
  const made = t.worker('return vigil.wait(data.array, 1, data.large);', { array, large });
  await t.waiting(array, 1, 1);
  equal(vigil.notify(array, 1, 1), 1);
  equal(await made.next(), 'ok');
  equal(await within(vigil.waitAsync(array, 1, large, 5).value), 'timed-out');
  throws(() => vigil.waitAsync(array, 1, 5), TypeError);
  throws(() => vigil.waitAsync(words, 0, 5n), TypeError);
});

test('wait: two views of the memory, and what a worker was sent, are one line', async (t) => {
  const { vigil } = t, array = vigil.allocate(8);
  const narrow = new Int32Array(array.buffer, array.byteOffset + 8, 2), all = new Int32Array(vigil.memory.buffer);
  const waiting = vigil.waitAsync(narrow, 1, 0).value;
  equal(vigil.notify(all, array.byteOffset / 4 + 3), 1);
  equal(await within(waiting), 'ok');
  const made = t.worker('return vigil.wait(data, 1, 0);', narrow);
  await t.waiting(array, 3, 1);
  equal(vigil.notify(all, array.byteOffset / 4 + 3), 1);
  equal(await made.next(), 'ok');
});

test('wait: a deadline is a timeout', async ({ vigil }) => {
  const array = vigil.allocate(1), before = performance.now();
  const outcome = await within(vigil.waitAsync(array, 0, 0, { deadline: before + 20, timeout: 5000 }).value);
  equal(outcome, 'timed-out');
  ok(performance.now() - before >= 19.9, 'early');
  equal(vigil.waitAsync(array, 0, 0, { deadline: before }), { async: false, value: 'timed-out' });
});

/* What the WebAssembly threads proposal asserts of memory.atomic.wait32, wait64 and notify, said of ours. */

const FORTY_EIGHT = 0xffffffffffffn;

function filled(vigil) {
  const words = vigil.allocate(4), wide = new BigInt64Array(words.buffer, words.byteOffset, 2);
  wide[0] = FORTY_EIGHT;
  return { words, wide };
}

const outcomes = `
  const { words, wide } = data, { wait, notify } = vigil;
  return [
    wait(words, 0, 0, 0), wait(wide, 0, 0n, 0),      // 1: not equal
    wait(words, 0, 0, Infinity), wait(wide, 0, 0n, Infinity),
    wait(words, 0, -1, 0), wait(wide, 0, ${FORTY_EIGHT}n, 0), // 2: timed out
    wait(words, 0, -1, 0.00001), wait(wide, 0, ${FORTY_EIGHT}n, 0.00001),
    wait(words, 0, -1, 10), wait(wide, 0, ${FORTY_EIGHT}n, 10),
    notify(words, 0, 0), notify(words, 0, 1), notify(wide, 0, 0), notify(wide, 0, 1), notify(wide, 0),
  ];`;

test('as WebAssembly: wait32, wait64 and notify by one thread', async (t) => {
  const made = t.worker(outcomes, filled(t.vigil));
  equal(await made.next(), [...Array(4).fill('not-equal'), ...Array(6).fill('timed-out'), 0, 0, 0, 0, 0]);
});

/* Arrays have no addresses that are not aligned: of those, test/unit/test_wait.c asserts it, as WebAssembly as well. */
test('as WebAssembly: out of bounds', async (t) => {
  const { vigil } = t, { words, wide } = filled(vigil);
  for (const index of [4, 65536, -1, 2 ** 32, 2 ** 53]) {
    throws(() => vigil.waitAsync(words, index, 0), RangeError, `wait32 at ${index}`);
    throws(() => vigil.waitAsync(wide, index, 0n), RangeError, `wait64 at ${index}`);
    throws(() => vigil.notify(words, index, 0), RangeError, `notify at ${index}`);
    throws(() => vigil.notify(wide, index, 0), RangeError, `notify at ${index}, of 64 bits`);
  }
  throws(() => vigil.waitAsync(wide, 2, 0n), RangeError, 'wait64 behind the last one');
  const made = t.worker(`
    const { words, wide } = data, thrown = [];
    for (const index of [4, 65536, -1, 2 ** 32]) {
      for (const action of [() => vigil.wait(words, index, 0, 0), () => vigil.wait(wide, index, 0n, 0),
        () => vigil.notify(words, index), () => vigil.notify(wide, index)]) {
        try { thrown.push(action()); } catch (error) { thrown.push(error.constructor.name); }
      }
    }
    return thrown;`, { words, wide });
  equal(await made.next(), Array(16).fill('RangeError'));
});

test('as WebAssembly: notify goes by the address, whatever the width', async ({ vigil }) => {
  const { words, wide } = filled(vigil);
  words.fill(0);
  const waits = [vigil.waitAsync(wide, 1, 0n).value, vigil.waitAsync(words, 2, 0).value];
  equal([vigil.notify(words, 3), vigil.notify(wide, 0)], [0, 0], 'beside it');
  equal([vigil.notify(words, 2, 1), vigil.notify(wide, 1)], [1, 1]);
  equal(await within(Promise.all(waits)), ['ok', 'ok']);
});

test('as WebAssembly: unshared memory cannot be waited on', async ({ vigil }) => {
  const array = new Int32Array(new WebAssembly.Memory({ initial: 1, maximum: 1 }).buffer);
  throws(() => vigil.waitAsync(array, 0, 0), TypeError);
  throws(() => vigil.notify(array, 0, 0), TypeError);
});

/* wait_notify: one thread waits until the other has stored and notified; at most one is notified. */
test('as WebAssembly: two threads, one waits and one notifies', async (t) => {
  const { vigil } = t;
  for (const forms of [['words', '0', '0'], ['wide', '0n', '0n']]) {
    const { words, wide } = filled(vigil);
    words.fill(0);
    const [name, value] = forms;
    const waiter = t.worker(`return vigil.wait(data.${name}, 0, ${value});`, { words, wide });
    const notifier = t.worker(`
      await hear();
      const { words, wide } = data;
      let count;
      do count = vigil.notify(${name}, 0, 1); while (count === 0);
      return [count, vigil.notify(${name}, 0, 1)];`, { words, wide });
    notifier.tell('go');
    equal(await waiter.next(), 'ok');
    equal(await notifier.next(), [1, 0]);
  }
});

test('as WebAssembly: notify returns how many it has woken, of many threads', async (t) => {
  const { vigil } = t, { words } = filled(vigil);
  words.fill(0);
  const made = Array.from({ length: 4 }, () => t.worker('return vigil.wait(data, 0, 0);', words));
  await t.waiting(words, 0, 4);
  const promise = vigil.waitAsync(words, 0, 0).value;
  equal(vigil.notify(words, 0, 3), 3);
  equal(vigil.waiters(words), 2);
  equal(vigil.notify(words, 0, 2 ** 31), 2);
  equal(await within(promise), 'ok');
  for (const each of made) equal(await each.next(), 'ok');
});

test('wait: rejected when aborted before, and never in the line', async ({ vigil }) => {
  const array = vigil.allocate(1);
  const result = vigil.waitAsync(array, 0, 0, { signal: AbortSignal.abort(new Error('early')) });
  equal(result.async, true);
  await rejects(result.value, Error, 'aborted', /early/);
  equal(vigil.notify(array, 0), 0);
});
