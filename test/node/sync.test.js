// SPDX-License-Identifier: MIT
'use strict';
// RwLock, Semaphore, Condition, Barrier and Once: in private memory and in a segment.

const assert = require('node:assert');
const { test, after } = require('node:test');
const { vigil, tick, until, within, words, worker, processOf, isBlocked, uniqueSegment } = require('./support.js');

const { RwLock, Semaphore, Condition, Barrier, Once, Mutex } = vigil;
const notHeld = { name: 'NotHeldError', code: 'VIGIL_ENOTHELD' },
    timedOut = { code: 'VIGIL_TIMED_OUT' };

const name = uniqueSegment('sync'),
    segment = vigil.Segment.create(name, { length: 4096 });
after(() => segment.close());
let next = 16; // each test has its own elements
const places = [
    ['private memory', () => [words(8), 0]],
    ['a segment', () => [segment, (next += 8)]],
];

for (const [where, place] of places) {
    test(`RwLock in ${where}: readers together, a writer alone`, async () => {
        const lock = new RwLock(...place()),
            order = [];
        const first = await lock.acquireRead(),
            second = await lock.acquireRead();
        const writing = lock.acquireWrite().then((release) => {
            order.push('write');
            return release;
        });
        await tick();
        assert.strictEqual(lock.tryAcquireWrite(), undefined);
        first();
        await tick();
        assert.deepStrictEqual(order, [], 'a reader is left');
        second();
        const release = await within(writing, 'the writer');
        const reading = Promise.all([lock.acquireRead(), lock.acquireRead()]);
        reading.then(() => order.push('read'));
        await tick();
        assert.deepStrictEqual(order, ['write']);
        release();
        (await within(reading, 'the readers')).forEach((each) => each());
        assert.throws(() => lock.readUnlock(), notHeld);
        assert.throws(() => lock.writeUnlock(), notHeld);
        assert.throws(() => lock.downgrade(), notHeld);
        assert.throws(() => lock.consistent(), notHeld);
    });

    test(`RwLock in ${where}: abort, timeouts, try, downgrade, read and write`, async () => {
        const lock = new RwLock(...place());
        const write = lock.acquireWriteSync(),
            controller = new AbortController();
        assert.strictEqual(lock.tryAcquireRead(), undefined);
        const aborted = lock.acquireRead({ signal: controller.signal });
        controller.abort();
        await assert.rejects(aborted, { name: 'AbortError' });
        await assert.rejects(lock.acquireWrite({ signal: AbortSignal.abort() }), { name: 'AbortError' });
        await assert.rejects(lock.acquireRead({ timeout: 1 }), timedOut);
        assert.throws(() => lock.acquireWriteSync({ timeout: 1 }), timedOut);
        write();
        write();
        lock.acquireWriteSync();
        lock.downgrade();
        const reader = lock.tryAcquireRead();
        assert.strictEqual(lock.tryAcquireWrite(), undefined);
        reader();
        lock.readUnlock();
        assert.strictEqual(await lock.read(async () => 5), 5);
        await assert.rejects(
            lock.write(() => {
                throw new Error('inside');
            }),
            /inside/,
        );
        await assert.rejects(lock.write(), { code: 'VIGIL_ETYPE' });
        lock.tryAcquireWrite()();
    });

    test(`Semaphore in ${where}: permits, leased and not`, async () => {
        const [target, index] = place();
        Semaphore.initialize(target, index, 3);
        const semaphore = new Semaphore(target, index);
        const two = await semaphore.acquire(2);
        assert.strictEqual(semaphore.permits, 1);
        assert.strictEqual(semaphore.tryAcquire(2), undefined);
        const waiting = semaphore.acquire(2);
        await assert.rejects(semaphore.acquire(2, { timeout: 1 }), timedOut);
        assert.throws(() => semaphore.acquireSync(3, { timeout: 1 }), timedOut);
        const controller = new AbortController(),
            aborted = semaphore.acquire(3, { signal: controller.signal });
        controller.abort();
        await assert.rejects(aborted, { name: 'AbortError' });
        two();
        (await within(waiting, 'two permits'))();
        const one = await semaphore.acquire(1, { timeout: 1000 });
        assert.strictEqual(semaphore.permits, 2, 'taken once');
        one();
        one();
        assert.strictEqual(semaphore.permits, 3);
        assert.throws(() => semaphore.release(), notHeld);
        for (const permits of [0, -1, 1.5, NaN, '1', 2 ** 28, Infinity, 1n])
            assert.throws(() => semaphore.tryAcquire(permits), { code: 'VIGIL_ERANGE' });
        assert.strictEqual(await semaphore.runExclusive(() => semaphore.permits, 3), 0);

        const jobs = new Semaphore(target, index + 1, { leased: false });
        Semaphore.initialize(target, index + 1, 0, { leased: false });
        const job = jobs.acquire();
        jobs.release(2);
        await within(job, 'a job');
        assert.strictEqual(jobs.permits, 1);
        assert.throws(
            () => jobs.release(0xfffffff),
            (error) => error.code !== undefined,
        );
        assert.throws(() => Semaphore.initialize(target, index, -1), { code: 'VIGIL_ERANGE' });
    });

    test(`Condition in ${where}: a queue between workers and promises`, async () => {
        const [target, index] = place();
        const data = target === segment ? { name, index } : { array: target, index };
        const code = `
      const target = data.name ? vigil.Segment.open(data.name) : data.array;
      const array = data.name ? new Int32Array(target.buffer) : target;
      const mutex = new vigil.Mutex(target, data.index), filled = new vigil.Condition(target, data.index + 1);
      let got = 0;
      for (;;) {
        if (data.async) await mutex.lockAsync(); else mutex.lock();
        while (array[data.index + 2] === 0) data.async ? await filled.waitAsync(mutex) : filled.wait(mutex);
        const item = array[data.index + 2];
        if (item > 0) { array[data.index + 2]--; array[data.index + 3]++; got++; }
        mutex.unlock();
        if (item < 0) break;
      }
      say(got);`;
        const workers = [true, false, true].map((async) => worker(code, { ...data, async }));
        const array = target === segment ? new Int32Array(segment.buffer) : target;
        const mutex = new Mutex(target, index),
            filled = new Condition(target, index + 1);
        const items = 300;
        for (let i = 0; i < items; i++) {
            await within(mutex.lockAsync(), 'the mutex');
            array[index + 2]++;
            filled.signal();
            mutex.unlock();
            if (i % 5 === 0) await tick();
        }
        const counts = workers.map((each) => each.next());
        await until(() => Atomics.load(array, index + 3) === items, 'all items to be taken');
        await mutex.runExclusive(() => {
            array[index + 2] = -1;
            filled.broadcast();
        });
        const sum = (await within(Promise.all(counts), 'the workers')).reduce((a, b) => a + b, 0);
        assert.strictEqual(sum, items);
        await Promise.all(workers.map((each) => each.ended));
    });

    test(`Condition in ${where}: an abort takes the mutex again; timeouts; misuse`, async () => {
        const [target, index] = place();
        const mutex = new Mutex(target, index),
            condition = new Condition(target, index + 1);
        assert.throws(() => condition.wait(mutex), notHeld);
        assert.throws(() => condition.waitAsync(mutex), notHeld);
        assert.throws(() => condition.wait({}), { code: 'VIGIL_ETYPE' });
        await mutex.lockAsync();
        const controller = new AbortController();
        const waiting = condition.waitAsync(mutex, { signal: controller.signal });
        assert.strictEqual(mutex.isLocked(), false);
        await mutex.lockAsync();
        controller.abort(new Error('enough'));
        let ended = false;
        waiting.catch(() => {}).finally(() => (ended = true));
        for (let i = 0; i < 10; i++) await tick();
        assert.strictEqual(ended, false, 'it waits for the mutex');
        mutex.unlock();
        await assert.rejects(within(waiting, 'the abort'), /enough/);
        assert.strictEqual(mutex.isLocked(), true);
        await assert.rejects(condition.waitAsync(mutex, { signal: AbortSignal.abort() }), { name: 'AbortError' });
        assert.strictEqual(mutex.isLocked(), true, 'still held');
        assert.strictEqual(await condition.waitAsync(mutex, { timeout: 2 }), 'timed-out');
        assert.strictEqual(condition.wait(mutex, { timeout: 2 }), 'timed-out');
        assert.strictEqual(mutex.isLocked(), true);
        mutex.unlock();
        assert.strictEqual(condition.signal(), 0);
        assert.strictEqual(condition.broadcast(), 0);
    });

    test(`Barrier in ${where}: one party of each round is the last`, async () => {
        const [target, index] = place(),
            parties = 3,
            rounds = 20;
        Barrier.initialize(target, index, parties);
        const code = `
      const barrier = new vigil.Barrier(data.name ? vigil.Segment.open(data.name) : data.array, data.index);
      let last = 0;
      for (let i = 0; i < data.rounds; i++) last += data.async ? await barrier.waitAsync() : barrier.wait();
      say(last);`;
        const data = { index, rounds, ...(target === segment ? { name } : { array: target }) };
        const workers = [true, false].map((async) => worker(code, { ...data, async }));
        const lasts = workers.map((each) => each.next());
        const barrier = new Barrier(target, index);
        let last = 0;
        for (let i = 0; i < rounds; i++) last += await within(barrier.waitAsync(), 'the round');
        const others = await Promise.all(lasts);
        assert.strictEqual(last + others[0] + others[1], rounds);
        await assert.rejects(barrier.waitAsync({ timeout: 2 }), timedOut);
        assert.throws(() => barrier.wait({ timeout: 2 }), timedOut);
        const controller = new AbortController(),
            waiting = barrier.waitAsync({ signal: controller.signal });
        controller.abort();
        await assert.rejects(waiting, { name: 'AbortError' });
        for (const wrong of [0, -1, 65536, 1.5, '2']) {
            assert.throws(() => Barrier.initialize(target, index, wrong), { code: 'VIGIL_ERANGE' });
        }
        await Promise.all(workers.map((each) => each.ended));
    });

    test(`Once in ${where}: done once, by the first that succeeds`, async () => {
        const [target, index] = place(),
            data = { index, ...(target === segment ? { name } : { array: target }) };
        const once = new Once(target, index);
        await assert.rejects(
            once.run(() => {
                throw new Error('not yet');
            }),
            /not yet/,
        );
        assert.throws(
            () =>
                once.runSync(() => {
                    throw new Error('not yet');
                }),
            /not yet/,
        );
        assert.throws(() => once.runSync(), { code: 'VIGIL_ETYPE' });
        assert.strictEqual(once.isDone, false);
        const code = `
      const once = new vigil.Once(data.name ? vigil.Segment.open(data.name) : data.array, data.index);
      let ran = 0;
      if (data.async) await once.run(async () => { ran++; }); else once.runSync(() => { ran++; });
      say(ran);`;
        const workers = [true, false, true].map((async) => worker(code, { ...data, async }));
        const ran = await within(Promise.all(workers.map((each) => each.next())), 'the workers');
        assert.strictEqual(
            ran.reduce((a, b) => a + b),
            1,
        );
        assert.strictEqual(once.isDone, true);
        once.runSync(() => assert.fail());
        await once.run(() => assert.fail());
        await Promise.all(workers.map((each) => each.ended));
    });
}

test('Once: if the worker that does it is terminated, the next one tries', async () => {
    const array = words(2),
        once = new Once(array, 0);
    const made = worker(
        'const once = new vigil.Once(data, 0); once.run(() => { say("runs"); return new Promise(() => {}); });' +
            'setInterval(() => {}, 1000);',
        array,
    );
    assert.strictEqual(await made.next(), 'runs');
    const running = once.run(() => 'mine');
    await made.terminate();
    await within(running, 'the next');
    assert.strictEqual(once.isDone, true);
});

test('Once: the word is that of vigil/once.h', async () => {
    for (const target of [words(1), segment]) {
        const once = new Once(target, target === segment ? 200 : 0),
            word = () => once.array[once.index];
        const above = target === segment ? new Mutex(segment, 201) : undefined;
        above?.lock();
        const number = above ? above.array[201] >> 4 : 0; // of this process, as in a mutex that it holds
        above?.unlock();
        let finish;
        const first = once.run(() => new Promise((resolve) => (finish = resolve)));
        assert.strictEqual(word(), (number << 4) | 1, 'running');
        const second = once.run(() => assert.fail());
        assert.strictEqual(word(), (number << 4) | 2, 'running, with waiters');
        finish();
        await within(Promise.all([first, second]), 'both');
        assert.strictEqual(word(), 3, 'done');
        once.array[once.index] = 0;
        await assert.rejects(once.run(() => Promise.reject(new Error('failed'))), /failed/);
        assert.strictEqual(word(), 0, 'new again');
    }
});

test('Once: aborted and timed out while another caller does it', async () => {
    const once = new Once(words(1), 0),
        controller = new AbortController();
    let finish;
    const first = once.run(() => new Promise((resolve) => (finish = resolve)));
    await assert.rejects(once.run(() => assert.fail(), { timeout: 5 }), { code: 'VIGIL_TIMED_OUT' });
    assert.throws(() => once.runSync(() => assert.fail(), { timeout: 5 }), { code: 'VIGIL_TIMED_OUT' });
    const aborted = once.run(() => assert.fail(), { signal: controller.signal });
    controller.abort();
    await assert.rejects(aborted, { name: 'AbortError' });
    finish();
    await within(first, 'the first');
});

test('Once in a segment: if the process that does it is killed, the next one tries', async () => {
    const killed = processOf(`
      const once = new vigil.Once(vigil.Segment.open(${JSON.stringify(name)}), 202);
      once.run(() => { say('runs'); return new Promise(() => {}); });
      setInterval(() => {}, 1000);`);
    assert.strictEqual(await within(killed.next(), 'the process'), 'runs');
    const once = new Once(segment, 202);
    let ran = 0;
    const both = Promise.all([once.run(() => ran++), once.run(() => ran++)]);
    killed.kill('SIGKILL');
    await within(both, 'the next');
    assert.deepStrictEqual([ran, once.isDone], [1, true]);
    await killed.ended;
});

test('new Semaphore(n) and new Barrier(n)', async () => {
    const semaphore = new Semaphore(2),
        jobs = new Semaphore(0, { leased: false });
    semaphore.tryAcquire(2)();
    jobs.release(5);
    assert.strictEqual(jobs.permits, 5);
    assert.strictEqual(new Barrier(1).wait(), true);
    assert.throws(() => new Semaphore(), { code: 'VIGIL_ETYPE' });
    assert.throws(() => new Barrier(), { code: 'VIGIL_ETYPE' });
    assert.throws(() => new Semaphore(-1), { code: 'VIGIL_ERANGE' });
});

test('a blocked reader and writer in workers, woken by main', async () => {
    const array = words(1),
        lock = new RwLock(array, 0),
        write = lock.acquireWriteSync();
    const made = ['Read', 'Write', 'Read'].map((kind) =>
        worker(
            `say(tid); const release = new vigil.RwLock(data, 0).acquire${kind}Sync(); release(); say('done');`,
            array,
        ),
    );
    for (const each of made) {
        const tid = await each.next();
        await until(() => isBlocked(tid));
    }
    const done = made.map((each) => each.next());
    write();
    assert.deepStrictEqual(await within(Promise.all(done), 'the workers'), ['done', 'done', 'done']);
});
