// SPDX-License-Identifier: MIT
'use strict';
// Mutex, AsyncLock and Lock: mutual exclusion, misuse, and the examples.

const assert = require('node:assert');
const { execFile } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { vigil, tick, until, within, words, worker, isBlocked, folder, uniqueSegment } = require('./support.js');

const { Mutex, AsyncLock, Lock } = vigil;
const notHeld = { name: 'NotHeldError', code: 'VIGIL_ENOTHELD' };

test('4 workers and main, blocking and asynchronous: no other increments meanwhile', async () => {
    const array = words(4),
        rounds = 3000;
    const code = `
    const mutex = new vigil.Mutex(data.array, 0);
    for (let i = 0; i < data.rounds; i++) {
      if (data.blocking || i % 3 === 0) mutex.lock(); else await mutex.lockAsync();
      data.array[1] = data.array[1] + 1;
      mutex.unlock();
    }
    say('done');`;
    const workers = [true, false, true, false].map((blocking) => worker(code, { array, rounds, blocking }));
    const mutex = new Mutex(array, 0);
    let ended = 0;
    workers.forEach((each) => each.once('exit', () => ended++));
    let own = 0;
    while (ended < 4) {
        await within(mutex.lockAsync(), 'the mutex');
        array[1] = array[1] + 1;
        own++;
        mutex.unlock();
        if (own % 10 === 0) await tick();
    }
    assert.strictEqual(array[1], 4 * rounds + own);
    assert.strictEqual(mutex.isLocked(), false);
});

test('a fair mutex: a waiter is not passed by a caller that comes just when it is released', async () => {
    const segment = vigil.Segment.create(uniqueSegment('fair'), { length: 64 });
    for (const target of [undefined, segment]) {
        const mutex = new Mutex(target, 0, { fair: true }),
            order = [];
        const other = new Mutex(mutex.array, 0); // the word says that it is fair
        for (let i = 0; i < 50; i++) {
            const release = await mutex.acquire();
            const first = mutex.acquire().then((held) => (order.push('first'), held()));
            release();
            const second = other.acquire().then((held) => (order.push('second'), held()));
            await within(Promise.all([first, second]), 'both');
        }
        assert.deepStrictEqual(order, Array(50).fill(['first', 'second']).flat());
        assert.strictEqual(mutex.isLocked(), false);
    }
    segment.close();
});

test('a fair mutex of workers that block and do not', async () => {
    const array = words(4),
        rounds = 300;
    const code = `
    const mutex = new vigil.Mutex(data.array, 0, { fair: true });
    for (let i = 0; i < data.rounds; i++) {
      if (data.blocking) mutex.lock(); else await mutex.lockAsync();
      data.array[1] = data.array[1] + 1;
      mutex.unlock();
    }`;
    const workers = [true, false, true].map((blocking) => worker(code, { array, rounds, blocking }));
    await within(Promise.all(workers.map((each) => each.ended)), 'the workers');
    assert.strictEqual(array[1], 3 * rounds);
});

test('AsyncLock as in the article: executeLocked among blocking workers', async () => {
    const buffer = new SharedArrayBuffer(8),
        array = new Int32Array(buffer),
        rounds = 2000;
    const code = `
    const lock = new vigil.AsyncLock(data.buffer), array = new Int32Array(data.buffer);
    for (let i = 0; i < data.rounds; i++) { lock.lock(); array[1] = array[1] + 1; lock.unlock(); }`;
    const workers = [1, 2].map(() => worker(code, { buffer, rounds }));
    const lock = new AsyncLock(buffer);
    assert.strictEqual(AsyncLock.INDEX, 0);
    assert.strictEqual(lock.sab, buffer);
    for (let i = 0; i < 500; i++) {
        const executed = new Promise((resolve) => lock.executeLocked(() => resolve((array[1] = array[1] + 1))));
        await within(executed, 'executeLocked');
    }
    await Promise.all(workers.map((each) => each.ended));
    assert.strictEqual(array[1], 2 * rounds + 500);
});

test('executeLocked: callbacks in order, one at a time, and unlocked after an exception', async () => {
    const lock = new AsyncLock(new SharedArrayBuffer(4)),
        order = [];
    lock.lock();
    for (let i = 0; i < 5; i++) lock.executeLocked(() => order.push(i));
    assert.deepStrictEqual(order, []);
    lock.unlock();
    await until(() => order.length === 5);
    assert.deepStrictEqual(order, [0, 1, 2, 3, 4]);
    await until(() => new Promise((resolve) => lock.executeLocked(() => resolve(true))));
    assert.throws(() => lock.unlock(), notHeld);
    assert.throws(() => lock.executeLocked('no function'), { code: 'VIGIL_ETYPE' });
});

test('an exception in executeLocked is uncaught, as in other callbacks, and the lock is free', async () => {
    const { status, said } = await new Promise((resolve) => {
        const code = `const { AsyncLock } = require(${JSON.stringify(path.join(folder, 'lib', 'index.js'))});
      const lock = new AsyncLock(new SharedArrayBuffer(4));
      process.on('uncaughtException', (error) => lock.executeLocked(() => console.log(error.message)));
      lock.executeLocked(() => { throw new Error('thrown'); });
      lock.lock();
      lock.executeLocked(() => { throw new Error('thrown later'); });
      lock.unlock();`;
        execFile(process.execPath, ['-e', code], (error, said) => resolve({ status: error?.code ?? 0, said }));
    });
    assert.strictEqual(status, 0);
    assert.deepStrictEqual(said.trim().split('\n').sort(), ['thrown', 'thrown later']);
});

test('Lock: main unlocks what a worker waits for', async () => {
    const array = words(2);
    Lock.initialize(array, 1);
    const lock = new Lock(array, 1);
    lock.lock();
    assert.strictEqual(lock.tryLock(), false);
    const made = worker(
        'say(tid); const lock = new vigil.Lock(data, 1); lock.lock(); say("Unlocked"); lock.unlock();',
        array,
    );
    const tid = await made.next();
    await until(() => isBlocked(tid));
    const next = made.next();
    lock.unlock();
    assert.strictEqual(await next, 'Unlocked');
    await made.ended;
    assert.strictEqual(lock.tryLock(), true);
    lock.unlock();
    assert.strictEqual(Lock.NUMINTS, 1);
});

test('lockAsync: abort before, while waiting, and when it has been granted', async () => {
    const mutex = new Mutex();
    await assert.rejects(mutex.lockAsync({ signal: AbortSignal.abort() }), { name: 'AbortError' });
    assert.strictEqual(mutex.isLocked(), false);
    mutex.lock();
    const controller = new AbortController();
    const waiting = mutex.lockAsync({ signal: controller.signal }),
        behind = mutex.lockAsync();
    controller.abort(new Error('no more'));
    await assert.rejects(waiting, /no more/);
    mutex.unlock();
    await within(behind, 'the one behind');
    const late = new AbortController(),
        granted = mutex.lockAsync({ signal: late.signal });
    mutex.unlock();
    let got = false;
    granted.then(
        () => (got = true),
        () => {},
    );
    for (let i = 0; i < 20 && !got; i++) await tick();
    late.abort();
    if (
        await granted.then(
            () => true,
            () => false,
        )
    )
        mutex.unlock();
    assert.strictEqual(mutex.tryLock(), true, 'held or not, it was not lost');
});

test('timeouts and deadlines', async () => {
    const mutex = new Mutex(),
        before = performance.now();
    mutex.lock();
    const timedOut = { name: 'TimeoutError', code: 'VIGIL_TIMED_OUT' };
    assert.throws(() => mutex.lock({ timeout: 5 }), timedOut);
    assert.throws(() => mutex.acquireSync({ deadline: performance.now() + 5 }), timedOut);
    await assert.rejects(mutex.lockAsync({ timeout: 5 }), timedOut);
    await assert.rejects(mutex.acquire({ deadline: performance.now() + 5 }), timedOut);
    await assert.rejects(mutex.lockAsync({ timeout: 0 }), timedOut);
    assert.ok(performance.now() - before >= 20);
    assert.strictEqual(mutex.tryAcquire(), undefined);
    mutex.unlock();
});

test('acquire gives a function that releases once; runExclusive returns what its callback does', async () => {
    const mutex = new Mutex(),
        release = await mutex.acquire();
    assert.strictEqual(release.ownerDied, false);
    release();
    mutex.lock();
    release();
    release.release();
    assert.strictEqual(mutex.isLocked(), true, 'the second call did nothing');
    mutex.unlock();
    assert.strictEqual(await mutex.runExclusive(async () => 5), 5);
    await assert.rejects(
        mutex.runExclusive(() => {
            throw new Error('inside');
        }),
        /inside/,
    );
    await assert.rejects(mutex.runExclusive(undefined), { code: 'VIGIL_ETYPE' });
    assert.strictEqual(mutex.isLocked(), false);
    if (Symbol.asyncDispose) await (await mutex.acquire())[Symbol.asyncDispose]();
    if (Symbol.dispose) mutex.acquireSync()[Symbol.dispose]();
    assert.strictEqual(mutex.isLocked(), false);
});

test('misuse: exceptions with a code', async () => {
    const mutex = new Mutex(),
        shared = new SharedArrayBuffer(8);
    assert.throws(() => mutex.unlock(), notHeld);
    mutex.lock();
    mutex.unlock();
    assert.throws(() => mutex.unlock(), notHeld);
    assert.throws(() => mutex.consistent(), notHeld);
    mutex.lock();
    assert.throws(() => mutex.consistent(), { code: 'VIGIL_EINVAL' });
    mutex.unlock();
    const constructors = [
        (...args) => new Mutex(...args),
        (...args) => new Lock(...args),
        (...args) => new vigil.RwLock(...args),
        (...args) => new vigil.Condition(...args),
        (...args) => new vigil.Once(...args),
        (...args) => Lock.initialize(...args),
    ];
    const wrong = [
        [new Int32Array(4), 0],
        [new BigInt64Array(shared), 0],
        [new Uint8Array(shared), 0],
        [null, 0],
        [5, 0],
        ['text', 0],
        [{}, 0],
        [{ buffer: shared }, 0],
        [shared, 2],
        [shared, -1],
        [shared, 0.5],
        [shared, NaN],
        [shared, '0'],
        [shared, Symbol('index')],
        [shared, 1n],
        [Symbol('array'), 0],
        [new ArrayBuffer(8), 0],
        [() => {}, 0],
    ];
    for (const make of constructors) {
        for (const args of wrong) {
            assert.throws(
                () => make(...args),
                (error) => /^VIGIL_E/.test(error.code),
                `${String(make)} ${typeof args[0]}`,
            );
        }
    }
    for (const args of [[new Int32Array(4)], [null], [5], [new ArrayBuffer(8)], [new SharedArrayBuffer(2)]])
        assert.throws(
            () => new AsyncLock(...args),
            (error) => /^VIGIL_E/.test(error.code),
        );
    for (const options of [5, null, 'x', { timeout: '5' }, { timeout: NaN }, { signal: {} }, { deadline: 'later' }])
        assert.throws(() => mutex.lockAsync(options), { code: 'VIGIL_ETYPE' });
});

test('a mutex in a segment: only the environment that holds it may unlock it', async () => {
    const name = uniqueSegment('mutex'),
        segment = vigil.Segment.create(name, { length: 4096 });
    const mutex = new Mutex(segment, 3);
    const made = worker(
        `
    const segment = vigil.Segment.open(data), mutex = new vigil.Mutex(segment, 3);
    mutex.lock();
    say('holds');
    parentPort.once('message', () => { mutex.unlock(); segment.close(); });`,
        name,
    );
    await made.next();
    assert.throws(() => mutex.unlock(), notHeld);
    const waiting = mutex.lockAsync();
    made.postMessage('unlock');
    await within(waiting, 'the mutex');
    await made.ended;
    mutex.unlock();
    segment.close();
});

for (const [name, expected] of [
    ['article', '20100 increments\n'],
    ['chapter', 'Waiting for lock...\nUnlocked\n'],
]) {
    test(`example/${name}.js`, async () => {
        const file = path.join(__dirname, '..', '..', 'node', 'example', `${name}.js`);
        const said = await new Promise((resolve, reject) => {
            execFile(process.execPath, [file], { timeout: 60000 }, (error, out) =>
                error ? reject(error) : resolve(out),
            );
        });
        assert.strictEqual(said, expected);
    });
}
