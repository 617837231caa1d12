// SPDX-License-Identifier: MIT
'use strict';
// Two copies of the package in one process, fork by child_process, cluster, and the descriptors and threads it uses.

const assert = require('node:assert');
const { fork } = require('node:child_process');
const cluster = require('node:cluster');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const {
    vigil,
    folder,
    library,
    tick,
    until,
    within,
    words,
    worker,
    processOf,
    uniqueName,
    uniqueSegment,
    temporaryFolder,
} = require('./support.js');

/* The package as installed in another folder: a real copy, so that the native part is loaded once more. */
function copyOf() {
    const copy = path.join(temporaryFolder(), 'node_modules', '@vigil', 'node');
    for (const part of ['lib', 'prebuilds'])
        fs.cpSync(path.join(folder, part), path.join(copy, part), { recursive: true });
    return path.join(copy, 'lib', 'index.js');
}

test('two copies in one process: one waits, the other notifies', async () => {
    const child = processOf(
        `
    const a = require(process.env.FIRST), b = require(process.env.SECOND);
    const array = new Int32Array(new SharedArrayBuffer(64));
    const waiting = a.waitAsync(array, 0, 0, 2000).value;
    say({ copies: a !== b, notified: b.notify(array, 0), outcome: await waiting });
    const mutex = new a.Mutex(array, 1), same = new b.Mutex(array, 1);
    await mutex.lockAsync();
    const granted = same.lockAsync({ timeout: 2000 }).then(() => 'granted', (error) => error.code);
    mutex.unlock();
    say(await granted);`,
        { load: false, environment: { FIRST: copyOf(), SECOND: copyOf() } },
    );
    assert.deepStrictEqual(await within(child.next(), 'the copies'), { copies: true, notified: 1, outcome: 'ok' });
    assert.strictEqual(await within(child.next(), 'the mutex'), 'granted');
    assert.strictEqual(await child.ended, 0);
});

/* The same with another version in its binaries: where that is compared, in object.c, it is a text of its own. */
function otherVersionOf() {
    const copy = copyOf(),
        prebuilds = path.join(path.dirname(copy), '..', 'prebuilds');
    const { version } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
    let changed = 0;
    for (const file of fs.readdirSync(prebuilds)) {
        const binary = fs.readFileSync(path.join(prebuilds, file)),
            text = Buffer.from(`${version}\0`);
        for (let at = binary.indexOf(text); at >= 0; at = binary.indexOf(text, at + 1)) {
            binary[at + version.length - 1] ^= 1;
            changed++;
        }
        fs.writeFileSync(path.join(prebuilds, file), binary);
    }
    assert.ok(changed > 0, 'the version is in the binaries');
    return copy;
}

test('two versions in one process: the second cannot be loaded, and the first goes on', async () => {
    const child = processOf(
        `
    const tried = [], attempt = (action) => { try { action(); } catch (error) { tried.push(error); } };
    const a = require(process.env.FIRST);
    attempt(() => require(process.env.SECOND));
    await import(process.env.SECOND).catch((error) => tried.push(error));
    const array = new Int32Array(new SharedArrayBuffer(4)), waiting = a.waitAsync(array, 0, 0, 2000).value;
    const codes = tried.map(({ name, code }) => [name, code]);
    say({ tried: codes, message: tried[0].message, notified: a.notify(array, 0) });
    await waiting;`,
        { load: false, environment: { FIRST: copyOf(), SECOND: otherVersionOf() } },
    );
    const { tried, message, notified } = await within(child.next(), 'the versions');
    assert.deepStrictEqual(tried, [
        ['VigilError', 'VIGIL_ECOPIES'],
        ['VigilError', 'VIGIL_ECOPIES'],
    ]);
    assert.match(message, /another version/);
    assert.strictEqual(notified, 1);
    assert.strictEqual(await child.ended, 0);
});

test('two copies, one in a worker, by name', async () => {
    const name = uniqueName('copies');
    const child = processOf(
        `
    const { Worker } = require('node:worker_threads');
    const a = require(process.env.FIRST), name = ${JSON.stringify(name)};
    const lock = await a.locks.acquire(name);
    const code = "const { parentPort } = require('node:worker_threads'), b = require(process.env.SECOND);" +
      "b.locks.request(" + JSON.stringify(name) + ", () => parentPort.postMessage('granted'));" +
      "parentPort.postMessage(1);";
    const worker = new Worker(code, { eval: true });
    worker.on('message', (message) => (message === 1 ? setTimeout(() => lock.release(), 20) : say(message)));
    await new Promise((resolve) => worker.once('exit', resolve));
    say('ended');`,
        { load: false, environment: { FIRST: copyOf(), SECOND: copyOf() } },
    );
    assert.strictEqual(await within(child.next(), 'the lock'), 'granted');
    assert.strictEqual(await within(child.next(), 'the worker'), 'ended');
    assert.strictEqual(await within(child.ended, 'the process'), 0);
});

/* The same in a process that was forked, or started by cluster: it has its own environment, and the names in common. */
const childFile = (name) => {
    const file = path.join(temporaryFolder(), 'child.js');
    fs.writeFileSync(
        file,
        `
    const vigil = require(${JSON.stringify(library)});
    process.on('disconnect', () => process.exit(3));
    const array = new Int32Array(new SharedArrayBuffer(8));
    (async () => {
      const outcome = await vigil.waitAsync(array, 0, 0, 5).value;
      process.send(outcome);
      await vigil.locks.request(${JSON.stringify(name)}, (lock) => process.send('granted ' + lock.ownerDied));
      process.exit(4);
    })();`,
    );
    return file;
};

async function checkChild(child, lock) {
    const messages = [];
    child.on('message', (message) => messages.push(message));
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await until(() => messages.length === 1, 'the wait of the child');
    await until(async () => (await vigil.locks.query()).pending.some((each) => each.name === lock.name));
    assert.deepStrictEqual(messages, ['timed-out']);
    lock.release();
    assert.strictEqual(await within(ended, 'the child'), 4);
    assert.deepStrictEqual(messages, ['timed-out', 'granted false']);
}

test('child_process.fork, after this process has waited and holds locks', async () => {
    const name = uniqueName('fork'),
        lock = await vigil.locks.acquire(name),
        array = words(1);
    const waiting = vigil.waitAsync(array, 0, 0).value;
    await checkChild(fork(childFile(name)), lock);
    assert.strictEqual(vigil.notify(array, 0), 1);
    assert.strictEqual(await waiting, 'ok');
});

test('cluster', async () => {
    const name = uniqueName('cluster'),
        lock = await vigil.locks.acquire(name);
    cluster.setupPrimary({ exec: childFile(name) });
    await checkChild(cluster.fork(), lock);
});

const descriptors = () => fs.readdirSync('/proc/self/fd').length;
const threads = () => fs.readdirSync('/proc/self/task').length;

test('descriptors: at most 4 for an environment that waits; workers give all back', async () => {
    const child = processOf(
        `
    const fs = require('node:fs'), { Worker } = require('node:worker_threads');
    const descriptors = () => fs.readdirSync('/proc/self/fd').length,
      threads = () => fs.readdirSync('/proc/self/task').length;
    const array = new Int32Array(new SharedArrayBuffer(8));
    const before = descriptors();
    const vigil = require(${JSON.stringify(library)});
    const loaded = descriptors();
    await vigil.waitAsync(array, 0, 0, 1).value;
    vigil.wait(array, 0, 0, 1);
    new vigil.Mutex(array, 1).lock();
    await new vigil.Mutex(array, 1).lockAsync({ timeout: 1 }).catch(() => {});
    const waited = descriptors();
    const code = "const vigil = require(" + ${JSON.stringify(JSON.stringify(library))} + ");" +
      "const { workerData: array, parentPort } = require('node:worker_threads');" +
      "vigil.waitAsync(array, 0, 0, 1); vigil.wait(array, 0, 0, 1); " +
      "new vigil.Mutex(array, 1).lockAsync({ ref: false });" +
      "vigil.waitAsync(array, 0, 0).value.then(() => parentPort.postMessage(1));" +
      "if (Math.random() < 0.5) vigil.wait(array, 0, 0);";
    const run = async () => {
      const worker = new Worker(code, { eval: true, workerData: array });
      await new Promise((resolve) => worker.once('online', resolve));
      if (Math.random() < 0.5) await new Promise((resolve) => setTimeout(resolve, 20 * Math.random()));
      await worker.terminate();
    };
    await run();
    const firstThreads = threads(), first = descriptors();
    for (let i = 0; i < 100; i += 4) await Promise.all([run(), run(), run(), run()]);
    say({ loaded: loaded - before, waited: waited - before,
      workers: descriptors() - first, threads: threads() - firstThreads });
    process.exit(0);`,
        { load: false },
    );
    const counts = await within(child.next(), 'the workers');
    console.log(`# ${JSON.stringify(counts)}`);
    assert.ok(counts.waited <= 4, `${counts.waited} descriptors`);
    assert.ok(counts.workers <= 0, `${counts.workers} descriptors left of 100 workers`);
    assert.ok(counts.threads <= 1, `${counts.threads} threads left of 100 workers`);
    assert.strictEqual(await child.ended, 0);
});

test('descriptors and threads: names and segments in workers that end', async () => {
    const name = uniqueName('left'),
        segmentName = uniqueSegment('left');
    const segment = vigil.Segment.create(segmentName, { length: 4096 });
    const run = async () => {
        const made = worker(
            `
      const segment = vigil.Segment.open(data.segmentName), lock = await vigil.locks.acquire(data.name);
      new vigil.Mutex(segment, 0).lockAsync({ ref: false });
      vigil.waitAsync(new Int32Array(segment.buffer), 9, 0, { ref: false });
      say('ready');`,
            { name, segmentName },
        );
        await within(made.next(), 'the worker');
        await made.ended;
    };
    await run();
    await tick();
    const before = descriptors(),
        threadsBefore = threads();
    for (let i = 0; i < 10; i++) await run();
    await until(() => descriptors() <= before, 'the descriptors'); // the kernel lists a thread for a moment longer
    await until(() => threads() <= threadsBefore, 'the threads');
    segment.close();
});
