// SPDX-License-Identifier: MIT
'use strict';
// wait, notify and waitAsync: order, timeouts, arrays, abort.

const assert = require('node:assert');
const { test } = require('node:test');
const { vigil, tick, until, within, words, worker, isBlocked } = require('./support.js');

const { wait, notify, waitAsync } = vigil;

test('blocking workers and promises wait in one line, first come, first served', async () => {
    const array = words(4),
        order = [];
    const workers = [];
    for (let i = 0; i < 6; i++) {
        if (i % 2 === 0) {
            waitAsync(array, 0, 0).value.then(() => order.push(i));
            continue;
        }
        const made = worker('say(tid); vigil.wait(data, 0, 0); say("woken");', array);
        const tid = await made.next();
        await until(() => isBlocked(tid), 'the worker to block');
        made.on('message', () => order.push(i));
        workers.push(made);
    }
    for (let i = 0; i < 6; i++) {
        assert.strictEqual(notify(array, 0, 1), 1);
        await until(() => order.length === i + 1, `waiter ${i}`);
    }
    assert.deepStrictEqual(order, [0, 1, 2, 3, 4, 5]);
    assert.strictEqual(notify(array, 0), 0);
    await Promise.all(workers.map((each) => each.ended));
});

test('notify(n) resolves the first n promises, in order', async () => {
    const array = words(1),
        order = [];
    const all = Array.from({ length: 10 }, (_, i) => waitAsync(array, 0, 0).value.then(() => order.push(i)));
    assert.strictEqual(notify(array, 0, 4), 4);
    await tick();
    assert.deepStrictEqual(order, [0, 1, 2, 3]);
    assert.strictEqual(notify(array, 0, 100), 6);
    await Promise.all(all);
    assert.deepStrictEqual(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test('timeouts are never early, blocking or not', async () => {
    const array = words(1);
    const timed = async (ms) => {
        const before = performance.now();
        assert.strictEqual(await waitAsync(array, 0, 0, ms).value, 'timed-out');
        assert.ok(performance.now() - before >= ms, `async: early by ${ms - (performance.now() - before)} ms`);
    };
    await Promise.all([0.5, 1, 1.5, 2, 3.3, 5, 7, 10, 20].flatMap((ms) => [timed(ms), timed(ms)]));
    for (const ms of [0, 0.1, 0.9, 1, 2.5, 5]) {
        const before = performance.now();
        assert.strictEqual(wait(array, 0, 0, ms), 'timed-out');
        assert.ok(performance.now() - before >= ms, 'early');
    }
});

test('not equal, and a timeout of zero: at once', async () => {
    const array = words(1);
    array[0] = 7;
    assert.strictEqual(wait(array, 0, 8), 'not-equal');
    assert.deepStrictEqual(waitAsync(array, 0, 8), { async: false, value: 'not-equal' });
    assert.deepStrictEqual(waitAsync(array, 0, 7, 0), { async: false, value: 'timed-out' });
    assert.deepStrictEqual(waitAsync(array, 0, 7, -5), { async: false, value: 'timed-out' });
    assert.strictEqual(wait(array, 0, 7, 0), 'timed-out');
});

test('BigInt64Array', async () => {
    const array = words(2, BigInt64Array),
        large = -(2n ** 62n) - 1n;
    array[1] = large;
    assert.deepStrictEqual(waitAsync(array, 1, large + 2n ** 32n), { async: false, value: 'not-equal' });
    const waiting = waitAsync(array, 1, large);
    assert.strictEqual(waiting.async, true);
    assert.strictEqual(notify(array, 0), 0);
    assert.strictEqual(notify(array, 1), 1);
    assert.strictEqual(await waiting.value, 'ok');
    const made = worker('say(tid); say(vigil.wait(data.array, 1, data.large));', { array, large });
    const tid = await made.next();
    await until(() => isBlocked(tid));
    assert.strictEqual(notify(array, 1, 1), 1);
    assert.strictEqual(await made.next(), 'ok');
    await made.ended;
    assert.throws(() => waitAsync(array, 1, 5), TypeError);
    assert.throws(() => waitAsync(words(1), 0, 5n), TypeError);
});

const growable = typeof SharedArrayBuffer.prototype.grow === 'function';
test('growable SharedArrayBuffer', { skip: !growable && 'from Node 20 on' }, async () => {
    const buffer = new SharedArrayBuffer(8, { maxByteLength: 65536 });
    const array = new Int32Array(buffer);
    assert.throws(() => waitAsync(array, 2, 0), RangeError);
    const first = waitAsync(array, 1, 0).value;
    buffer.grow(65536);
    const last = waitAsync(array, 16383, 0).value;
    assert.strictEqual(notify(array, 1), 1);
    assert.strictEqual(notify(array, 16383), 1);
    assert.deepStrictEqual(await Promise.all([first, last]), ['ok', 'ok']);
    const mutex = new vigil.Mutex(array, 9000);
    await mutex.runExclusive(() => {});
});

test('two views of the same memory, and a copy of the array in a worker, are one line', async () => {
    const buffer = new SharedArrayBuffer(32);
    const narrow = new Int32Array(buffer, 8, 2),
        all = new Int32Array(buffer);
    const waiting = waitAsync(narrow, 1, 0).value;
    assert.strictEqual(notify(all, 3), 1);
    assert.strictEqual(await waiting, 'ok');
});

test('abort before: rejected, and never in the line', async () => {
    const array = words(1);
    const result = waitAsync(array, 0, 0, { signal: AbortSignal.abort(new Error('early')) });
    assert.strictEqual(result.async, true);
    await assert.rejects(result.value, /early/);
    assert.strictEqual(notify(array, 0), 0);
});

test('abort while waiting: rejected with the reason, and the next gets the notification', async () => {
    const array = words(1),
        controller = new AbortController();
    const first = waitAsync(array, 0, 0, { signal: controller.signal }).value;
    const second = waitAsync(array, 0, 0).value;
    controller.abort();
    await assert.rejects(first, { name: 'AbortError' });
    assert.strictEqual(notify(array, 0, 1), 1);
    assert.strictEqual(await second, 'ok');
});

test('abort after notify, before delivery: not lost', async () => {
    const array = words(1);
    for (let i = 0; i < 100; i++) {
        const controller = new AbortController();
        const waiting = waitAsync(array, 0, 0, { signal: controller.signal }).value;
        assert.strictEqual(notify(array, 0, 1), 1);
        controller.abort();
        assert.strictEqual(await waiting, 'ok');
    }
});

test('abort races with a notification from a worker: none is lost', async () => {
    const array = words(4);
    const made = worker(
        `
    for (let round = 1; round <= 500; round++) {
      while (Atomics.load(data, 1) !== round);
      say(vigil.notify(data, 0, 1));
    }`,
        array,
    );
    const notified = [];
    made.on('message', (count) => notified.push(count));
    let aborted = 0;
    for (let round = 1; round <= 500; round++) {
        const controller = new AbortController();
        const first = waitAsync(array, 0, 0, { signal: controller.signal }).value.catch(() => 'aborted');
        const second = waitAsync(array, 0, 0).value;
        Atomics.store(array, 1, round);
        for (let spin = 0; spin < (round % 50) * 40; spin++) Atomics.load(array, 2);
        controller.abort();
        const outcome = await within(first, `round ${round}`);
        aborted += outcome === 'aborted';
        await until(() => notified.length === round);
        if (outcome === 'ok') assert.strictEqual(notify(array, 0), 1, 'the second was notified, too');
        assert.strictEqual(await within(second, `second of round ${round}, after ${outcome}`), 'ok');
        assert.strictEqual(notified[round - 1], 1);
    }
    await made.ended;
    console.log(`# ${aborted} of 500 were aborted in time`);
});

for (const count of [1, 2, 1000, 100000]) {
    test(`${count} pending: aborted, timed out, and notified`, async () => {
        const array = words(3),
            controller = new AbortController();
        process.once('warning', assert.fail); // of too many listeners
        const outcomes = { ok: 0, 'timed-out': 0, aborted: 0 };
        const all = [];
        for (let i = 0; i < count; i++) {
            all.push(waitAsync(array, 0, 0).value, waitAsync(array, 1, 0, { timeout: 1 + (i % 50) }).value);
            all.push(waitAsync(array, 2, 0, { signal: controller.signal }).value.catch(() => 'aborted'));
        }
        assert.strictEqual(notify(array, 0), count);
        controller.abort();
        for (const outcome of await within(Promise.all(all), 'all of them')) outcomes[outcome]++;
        process.removeListener('warning', assert.fail);
        assert.deepStrictEqual(outcomes, { ok: count, 'timed-out': count, aborted: count });
    });
}

test('the drop-in Atomics leaves the global one alone, and has its other functions', () => {
    assert.notStrictEqual(vigil.Atomics, Atomics);
    assert.notStrictEqual(vigil.Atomics.wait, Atomics.wait);
    assert.strictEqual(vigil.Atomics.add, Atomics.add);
    assert.strictEqual(Object.prototype.toString.call(vigil.Atomics), '[object Atomics]');
});

test('wrong arguments: exceptions with a code', () => {
    const array = words(2);
    const cases = [
        [() => wait(new Int32Array(4), 0, 0), TypeError],
        [() => wait(new Uint8Array(new SharedArrayBuffer(4)), 0, 0), TypeError],
        [() => wait(undefined, 0, 0), TypeError],
        [() => wait({}, 0, 0), TypeError],
        [() => wait(array, 2, 0), RangeError],
        [() => wait(array, -1, 0), RangeError],
        [() => wait(array, Infinity, 0), RangeError],
        [() => notify(array, 2), RangeError],
        [() => notify(new Int32Array(4), 0), TypeError],
        [() => waitAsync(array, 5, 0), RangeError],
        [() => waitAsync(array, 0, 0, { timeout: 'soon' }), TypeError],
        [() => waitAsync(array, 0, 0, { signal: 5 }), TypeError],
        [() => waitAsync(array, 0, 0, { deadline: NaN }), TypeError],
    ];
    for (const [action, type] of cases) {
        assert.throws(action, (error) => error instanceof type && /^VIGIL_E/.test(error.code), String(action));
    }
    const detached = new Int32Array(new ArrayBuffer(8));
    structuredClone(detached.buffer, { transfer: [detached.buffer] });
    for (const action of [() => wait(detached, 0, 0), () => notify(detached, 0), () => waitAsync(detached, 0, 0)])
        assert.throws(action, { name: 'TypeError', code: 'VIGIL_ETYPE' });
});
