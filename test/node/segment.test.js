// SPDX-License-Identifier: MIT
'use strict';
// Segment: open, create, grow, close, unlink, and files that are no segments.

const assert = require('node:assert');
const fs = require('node:fs');
const { test } = require('node:test');
const { vigil, tick, within, processOf, worker, uniqueSegment } = require('./support.js');

const { Segment } = vigil;
const fileOf = (name) => `/dev/shm/vigil-${process.geteuid()}-${name}`;
const coded = (code) => (error) => error.code === code && error instanceof vigil.VigilError;

test('create, open, openOrCreate, unlink', () => {
    const name = uniqueSegment('life'),
        segment = Segment.create(name, { length: 100, maxLength: 1 << 20 });
    assert.strictEqual(segment.name, name);
    assert.strictEqual(segment.byteLength, 100);
    assert.strictEqual(segment.maxByteLength, 1 << 20);
    assert.ok(segment.buffer instanceof ArrayBuffer);
    assert.throws(() => Segment.create(name), coded('VIGIL_EEXISTS'));
    const again = Segment.openOrCreate(name);
    new Int32Array(segment.buffer, 0, 4)[1] = 77;
    assert.strictEqual(new Int32Array(again.buffer, 0, 4)[1], 77);
    again.close();
    again.close();
    assert.strictEqual(new Int32Array(segment.buffer, 0, 4)[1], 77, 'the other opening stays');
    Segment.unlink(name);
    assert.throws(() => Segment.unlink(name), coded('VIGIL_ENOTFOUND'));
    assert.throws(() => Segment.open(name), coded('VIGIL_ENOTFOUND'));
    segment.close();
    if (Symbol.dispose) Segment.create(name)[Symbol.dispose]();
});

test('waits between processes, in its memory', async () => {
    const name = uniqueSegment('waits'),
        segment = Segment.create(name, { length: 64 });
    const array = new Int32Array(segment.buffer),
        wide = new BigInt64Array(segment.buffer);
    const child = processOf(`
    const segment = vigil.Segment.open(${JSON.stringify(name)}), array = new Int32Array(segment.buffer);
    const waiting = vigil.waitAsync(array, 3, 0).value;
    say('waits');
    say(await waiting);
    say(vigil.wait(new BigInt64Array(segment.buffer), 4, 0n));`);
    assert.strictEqual(await within(child.next(), 'the process'), 'waits');
    segment.close();
    assert.throws(() => segment.buffer, coded('VIGIL_EINVAL'));
    const mine = Segment.open(name),
        again = new Int32Array(mine.buffer);
    assert.strictEqual(vigil.notify(again, 3), 1);
    assert.strictEqual(await within(child.next(), 'the process'), 'ok');
    const all = new BigInt64Array(mine.buffer);
    while (vigil.notify(all, 4) === 0) await tick();
    assert.strictEqual(await within(child.next(), 'the process'), 'ok');
    assert.strictEqual(array.length + wide.length, 0);
    await child.ended;
    mine.close();
});

test('grow: locks and arrays of before go on', async () => {
    const name = uniqueSegment('grow'),
        segment = Segment.create(name, { length: 64, maxLength: 1 << 20 });
    const before = segment.buffer,
        array = new Int32Array(before);
    const mutex = new vigil.Mutex(segment, 0),
        semaphore = new vigil.Semaphore(segment, 1);
    vigil.Semaphore.initialize(segment, 1, 2);
    mutex.lock();
    const waiting = mutex.lockAsync(),
        word = vigil.waitAsync(array, 5, 0).value;
    segment.grow(1 << 16);
    assert.strictEqual(segment.byteLength, 1 << 16);
    assert.notStrictEqual(segment.buffer, before);
    assert.strictEqual(array.length, 16);
    mutex.unlock();
    await within(waiting, 'the mutex');
    mutex.unlock();
    semaphore.acquireSync()();
    assert.strictEqual(vigil.notify(new Int32Array(segment.buffer), 5), 1);
    assert.strictEqual(await word, 'ok');
    new vigil.Mutex(segment, 16000).lock();
    segment.grow(10);
    assert.strictEqual(segment.byteLength, 1 << 16, 'it does not shrink');
    for (const length of [-1, 1.5, NaN, '5', undefined])
        assert.throws(() => segment.grow(length), { code: 'VIGIL_ERANGE' });
    assert.throws(
        () => segment.grow(1 << 21),
        (error) => /^VIGIL_E/.test(error.code),
    );
    const child = processOf(
        `const segment = vigil.Segment.open(${JSON.stringify(name)}); segment.grow(1 << 17); say('grown');`,
    );
    await within(child.next(), 'the process');
    segment.grow(0);
    assert.strictEqual(segment.byteLength, 1 << 17);
    await child.ended;
});

test('close: refused while it is used, and then all is detached', async () => {
    const name = uniqueSegment('close'),
        segment = Segment.create(name, { length: 4096 });
    const array = new Int32Array(segment.buffer),
        busy = coded('VIGIL_EBUSY');
    const mutex = new vigil.Mutex(segment, 0),
        rwlock = new vigil.RwLock(segment, 1);
    const semaphore = new vigil.Semaphore(segment, 2),
        jobs = new vigil.Semaphore(segment, 3, { leased: false });
    const condition = new vigil.Condition(segment, 4),
        barrier = new vigil.Barrier(segment, 5);
    const once = new vigil.Once(segment, 7);
    vigil.Semaphore.initialize(segment, 2, 1);
    const controller = new AbortController();
    const waiting = vigil.waitAsync(array, 20, 0, { signal: controller.signal }).value;
    assert.throws(() => segment.close(), busy);
    controller.abort();
    await assert.rejects(waiting);
    for (const release of [
        mutex.acquireSync(),
        rwlock.acquireReadSync(),
        rwlock.tryAcquireRead() && null,
        semaphore.acquireSync(),
    ]) {
        assert.throws(() => segment.close(), busy);
        if (release === null) rwlock.readUnlock();
        else release();
    }
    const write = rwlock.acquireWriteSync();
    assert.throws(() => segment.close(), busy);
    write();
    const shared = segment.buffer;
    segment.close();
    assert.strictEqual(shared.byteLength, 0);
    assert.strictEqual(segment.byteLength, 0);
    const closed = { code: 'VIGIL_EINVAL' },
        options = { timeout: 1 };
    for (const action of [
        () => mutex.lock(),
        () => mutex.tryLock(),
        () => mutex.lockAsync(),
        () => mutex.isLocked(),
        () => mutex.lockAsync(options),
        () => mutex.ownerDied,
        () => rwlock.acquireRead(),
        () => rwlock.acquireWriteSync(),
        () => rwlock.tryAcquireRead(),
        () => semaphore.acquire(),
        () => semaphore.permits,
        () => jobs.release(),
        () => jobs.acquireSync(),
        () => barrier.wait(),
        () => barrier.waitAsync(),
        () => condition.signal(),
        () => condition.broadcast(),
        () => once.isDone,
        () => once.runSync(() => {}),
        () => segment.grow(8192),
        () => segment.maxByteLength,
    ])
        assert.throws(action, closed, String(action));
    for (const action of [
        () => mutex.unlock(),
        () => rwlock.readUnlock(),
        () => rwlock.writeUnlock(),
        () => semaphore.release(),
        () => condition.wait(mutex),
        () => vigil.wait(array, 0, 0),
        () => vigil.notify(array, 0),
        () => vigil.waitAsync(array, 0, 0),
        () => new vigil.Mutex(segment, 0),
        () => new vigil.Mutex(array, 0),
        () => mutex.consistent(),
        () => rwlock.downgrade(),
    ])
        assert.throws(action, (error) => /^VIGIL_E/.test(error.code), String(action));
});

test('a worker that ends with segments open and locks held gives all back', async () => {
    const name = uniqueSegment('worker'),
        segment = Segment.create(name, { length: 4096 });
    const made = worker(
        `
    const segment = vigil.Segment.open(data);
    new vigil.Mutex(segment, 0).lock();
    vigil.waitAsync(new Int32Array(segment.buffer), 9, 0);
    say('holds');
    process.exit();`,
        name,
    );
    await made.next();
    await made.ended;
    await within(new vigil.Mutex(segment, 0).lockAsync(), 'the mutex');
    assert.strictEqual(vigil.notify(new Int32Array(segment.buffer), 9), 0);
});

test('its bytes cannot be given to another thread', () => {
    const segment = Segment.create(uniqueSegment('transfer'), { length: 4096 });
    try {
        structuredClone(segment.buffer, { transfer: [segment.buffer] });
    } catch (error) {
        assert.strictEqual(error.name, 'DataCloneError');
    }
    assert.strictEqual(segment.byteLength, 4096);
    new vigil.Mutex(segment, 0).lock();
});

test('wrong names and options', () => {
    for (const name of ['', '-x', '.x', 'a b', 'x/y', 'x'.repeat(300), 'nul\0', 'é'])
        assert.throws(
            () => Segment.create(name),
            (error) => /^VIGIL_E/.test(error.code),
            JSON.stringify(name),
        );
    for (const name of [undefined, null, 5, {}, Symbol('name')]) {
        for (const action of [Segment.open, Segment.create, Segment.openOrCreate, Segment.unlink])
            assert.throws(() => action(name), { code: 'VIGIL_ETYPE' });
    }
    const name = uniqueSegment('options');
    for (const options of [
        { length: 0 },
        { length: -1 },
        { length: 1.5 },
        { length: '5' },
        { maxLength: NaN },
        { waiters: 2 ** 30 },
        { members: 0 },
        { mode: 0o777 },
        { length: 2 ** 53 },
        { length: 2 ** 52 },
        { length: 4096, maxLength: 64 },
    ])
        assert.throws(
            () => Segment.create(name, options),
            (error) => /^VIGIL_E/.test(error.code),
            JSON.stringify(options),
        );
    for (const options of [null, 5, 'x']) assert.throws(() => Segment.create(name, options), { code: 'VIGIL_ETYPE' });
    assert.throws(() => new Segment('x', 'y', 1), { code: 'VIGIL_ETYPE' });
});

test('files that are no segments, or of another version or machine, or damaged', () => {
    const name = uniqueSegment('foreign'),
        file = fileOf(name);
    const segment = Segment.create(name, { length: 4096 });
    const good = fs.readFileSync(file);
    segment.close();
    Segment.unlink(name);
    const changed = (at, ...bytes) => {
        const copy = Buffer.from(good);
        copy.set(bytes, at);
        return copy;
    };
    const contents = {
        VIGIL_EFOREIGN: [
            Buffer.from('garbage'.repeat(10000)),
            Buffer.alloc(100000),
            Buffer.from('#!/bin/sh\n'),
            changed(0, 88),
        ],
        VIGIL_EVERSION: [changed(14, 99, 0), changed(14, good[14] + 1, 0), changed(14, 1, 0)],
        VIGIL_EMACHINE: [changed(8, 1, 2, 3, 4), changed(12, 4)],
        VIGIL_ECORRUPT: [changed(16, 255, 255, 255), changed(40, 1, 2, 3, 4, 5, 6, 7, 8)],
        VIGIL_ETRUNCATED: [good.subarray(0, 4096)],
    };
    for (const [code, files] of Object.entries(contents)) {
        for (const [i, content] of files.entries()) {
            fs.writeFileSync(file, content, { mode: 0o600 });
            assert.throws(
                () => Segment.open(name),
                (error) => error instanceof vigil.SegmentError && error.code === code,
                `${code} ${i}`,
            );
            fs.rmSync(file);
        }
    }
    for (let length = 0; length < 300; length += 7) {
        fs.writeFileSync(file, good.subarray(0, length), { mode: 0o600 });
        assert.throws(
            () => Segment.open(name),
            (error) => /^VIGIL_E/.test(error.code),
            `${length} bytes`,
        );
        fs.rmSync(file);
    }
    fs.mkdirSync(file);
    assert.throws(
        () => Segment.open(name),
        (error) => /^VIGIL_E/.test(error.code),
    );
    fs.rmdirSync(file);
});
