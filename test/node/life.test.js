// SPDX-License-Identifier: MIT
'use strict';
// What keeps a process alive, and how it ends while threads wait.

const assert = require('node:assert');
const fs = require('node:fs');
const { test } = require('node:test');
const {
    vigil,
    until,
    within,
    words,
    worker,
    isBlocked,
    processOf,
    sleep,
    uniqueName,
    library,
} = require('./support.js');

/* The exit status of a process that runs the code. Its standard input does not keep it alive. */
async function statusOf(code) {
    const child = processOf(code, { dies: false });
    const status = await within(child.ended, 'the process');
    return { status, said: await Promise.race([child.next(), undefined]) };
}
const array = 'const array = new Int32Array(new SharedArrayBuffer(16));';

test('a pending wait keeps the process alive until it is over', async () => {
    const { status, said } = await statusOf(`${array}
    const before = performance.now();
    vigil.waitAsync(array, 0, 0, 200).value.then(() => say(performance.now() - before));`);
    assert.strictEqual(status, 0);
    assert.ok(said >= 200);
});

test('{ref: false} does not', async () => {
    const { status, said } = await statusOf(`${array}
    process.exitCode = 5;
    process.on('exit', () => say('ended'));
    vigil.waitAsync(array, 0, 0, { ref: false }).value.then(() => say('never'));
    const mutex = new vigil.Mutex();
    await mutex.lockAsync();
    mutex.lockAsync({ ref: false }).then(() => say('never'));`);
    assert.strictEqual(status, 5);
    assert.strictEqual(said, 'ended');
});

test('once a wait is over, or aborted, it does not keep the process alive', async () => {
    const { status, said } = await statusOf(`${array}
    const controller = new AbortController();
    const waits = [vigil.waitAsync(array, 0, 0).value,
      vigil.waitAsync(array, 1, 0, { signal: controller.signal }).value,
      vigil.waitAsync(array, 2, 0, 1).value];
    vigil.waitAsync(array, 3, 0, { ref: false });
    vigil.notify(array, 0);
    controller.abort();
    say((await Promise.allSettled(waits)).map((each) => each.value ?? 'aborted'));`);
    assert.strictEqual(status, 0);
    assert.deepStrictEqual(said, ['ok', 'aborted', 'timed-out']);
});

test('a wait with ref among others without keeps the process alive until it ends', async () => {
    const { status, said } = await statusOf(`${array}
    for (let i = 0; i < 100; i++) vigil.waitAsync(array, 0, 0, { ref: false });
    say(await vigil.waitAsync(array, 1, 0, { timeout: 50 }).value);`);
    assert.strictEqual(status, 0);
    assert.strictEqual(said, 'timed-out');
});

test('a lock that is awaited keeps a process alive; one that is held does not', async () => {
    const name = uniqueName('life');
    const { status } = await statusOf(`await vigil.locks.acquire('${name}'); process.exitCode = 6;`);
    assert.strictEqual(status, 6);
});

for (const count of [1, 1000, 100000]) {
    test(`process.exit with ${count} pending`, async () => {
        const { status, said } = await statusOf(`${array}
      for (let i = 0; i < ${count}; i++) vigil.waitAsync(array, i % 4, 0, i % 3 === 0 ? 1e6 : undefined);
      setImmediate(() => { say(vigil.waitAsync(array, 0, 1).value); process.exit(7); });`);
        assert.strictEqual(said, 'not-equal');
        assert.strictEqual(status, 7);
    });
}

test('worker.terminate with 10,000 pending, and the worker was the only one to load the package', async () => {
    const child = processOf(
        `
    const { Worker } = require('node:worker_threads');
    const code = \`const vigil = require(\${JSON.stringify(process.env.LIBRARY)});
      const array = new Int32Array(new SharedArrayBuffer(16));
      for (let i = 0; i < 10000; i++) vigil.waitAsync(array, i % 4, 0);
      require('node:worker_threads').parentPort.postMessage('ready');\`;
    const worker = new Worker(code, { eval: true });
    worker.once('message', async () => say(await worker.terminate()));
  `,
        { load: false, environment: { LIBRARY: library } },
    );
    assert.strictEqual(await within(child.next(), 'terminate'), 1);
    child.kill('SIGKILL');
    await child.ended;
});

const blockers = {
    wait: 'vigil.wait(data, 0, 0);',
    'Mutex.lock': 'new vigil.Mutex(data, 1).lock();',
    'RwLock.acquireWriteSync': 'new vigil.RwLock(data, 2).acquireWriteSync();',
    'Semaphore.acquireSync': 'new vigil.Semaphore(data, 3).acquireSync();',
    'Barrier.wait': 'vigil.Barrier.initialize(data, 4, 2); new vigil.Barrier(data, 4).wait();',
    'Condition.wait':
        'const mutex = new vigil.Mutex(data, 6); mutex.lock(); new vigil.Condition(data, 7).wait(mutex);',
};
for (const [name, code] of Object.entries(blockers)) {
    test(`worker.terminate while a worker blocks in ${name}`, async () => {
        const data = words(8);
        const mutex = new vigil.Mutex(data, 1),
            rwlock = new vigil.RwLock(data, 2);
        mutex.lock();
        const write = rwlock.acquireWriteSync();
        const made = worker(`say(tid); ${code} say('woken');`, data);
        const tid = await made.next();
        await until(() => isBlocked(tid), 'the worker to block');
        const before = performance.now();
        await within(made.terminate(), 'terminate');
        const ms = performance.now() - before;
        console.log(`# terminated in ${ms.toFixed(1)} ms`);
        assert.ok(ms < 10000);
        mutex.unlock();
        write();
        assert.strictEqual(vigil.notify(data, 0), 0, 'nothing is left in the line');
        assert.strictEqual(mutex.tryLock(), true);
        mutex.unlock();
        assert.strictEqual(typeof rwlock.tryAcquireWrite(), 'function');
    });
}

test('worker.terminate while a worker blocks for the second time, with messages for it meanwhile', async () => {
    const data = words(2);
    for (let i = 0; i < 5; i++) {
        const made = worker(
            'parentPort.on("message", () => {}); say(tid); vigil.wait(data, 0, 0); say(1); vigil.wait(data, 1, 0);',
            data,
        );
        const tid = await made.next();
        await until(() => isBlocked(tid));
        for (let j = 0; j <= i; j++) made.postMessage('while blocked');
        await until(() => vigil.notify(data, 0) === 1);
        await made.next();
        await until(() => isBlocked(tid));
        made.postMessage('again');
        await within(made.terminate(), 'terminate');
    }
});

test('process.exit while workers block', async () => {
    const { status } = await statusOf(`
    const { Worker } = require('node:worker_threads');
    const array = new Int32Array(new SharedArrayBuffer(16));
    const code = \`const { workerData, parentPort } = require('node:worker_threads');
      const vigil = require(\${JSON.stringify(${JSON.stringify(library)})});
      parentPort.postMessage(1); vigil.wait(workerData, 0, 0);\`;
    let ready = 0;
    for (let i = 0; i < 3; i++)
      new Worker(code, { eval: true, workerData: array })
        .on('message', () => { if (++ready === 3) process.exit(8); });`);
    assert.strictEqual(status, 8);
});

test('a blocked worker uses little processor time', async () => {
    const made = worker('say(tid); vigil.wait(data, 0, 0);', words(1));
    const tid = await made.next();
    await until(() => isBlocked(tid));
    const ticks = () =>
        fs
            .readFileSync(`/proc/self/task/${tid}/stat`, 'utf8')
            .split(') ')[1]
            .split(' ')
            .slice(11, 13)
            .reduce((sum, each) => sum + Number(each), 0);
    const before = ticks();
    await sleep(300);
    assert.ok(ticks() - before <= 10, `${ticks() - before} of 30 ticks`);
    await made.terminate();
});

test('exceptions after a wait are uncaught, and the other outcomes are delivered all the same', async () => {
    const { status, said } = await statusOf(`${array}
    let uncaught = 0, settled = 0;
    process.on('uncaughtException', () => uncaught++);
    process.on('unhandledRejection', () => uncaught++);
    process.on('exit', () => say({ uncaught, settled }));
    for (let i = 0; i < 3000; i++) vigil.waitAsync(array, 0, 0, 1).value.then(() => {
      settled++;
      if (i % 100 === 0) process.nextTick(() => { throw new Error('in a tick'); });
      if (i % 100 === 1) throw new Error('in a reaction');
    });`);
    assert.deepStrictEqual({ status, said }, { status: 0, said: { uncaught: 60, settled: 3000 } });
    assert.strictEqual(
        (
            await statusOf(`${array}
    vigil.waitAsync(array, 0, 0, 1).value.then(() => process.nextTick(() => process.exit(9)));`)
        ).status,
        9,
    );
});
