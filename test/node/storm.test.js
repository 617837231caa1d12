// SPDX-License-Identifier: MIT
'use strict';
/*
 * Six processes with workers are killed at random and started again. In a segment there is a ledger, protected by a
 * mutex of the segment, and one protected by a named lock; both are changed in steps, so that a killed holder leaves
 * them half done. The next holder must be told, and repairs them. At the end nothing may be lost, or held.
 */

const assert = require('node:assert');
const { test } = require('node:test');
const { vigil, sleep, within, processOf, randomOf, seedOf, uniqueName, uniqueSegment } = require('./support.js');

const SECONDS = Number(process.env.VIGIL_STORM_SECONDS ?? 4),
    PROCESSES = 6;

// Elements of the segment.
const MUTEX = 0,
    PERMITS = 1,
    DONE = 2,
    WRONG = 3,
    REPAIRED = 4,
    STOP = 5,
    NAMED_DONE = 6;
const JOURNAL = 16; // 1 while a transfer is under way, both accounts, and what was in them
const ACCOUNTS = 32,
    COUNT = 8,
    START = 1000;
const PAIR = 64; // of the named lock: two counters that are equal

const source = `
  const MUTEX = ${MUTEX}, PERMITS = ${PERMITS}, DONE = ${DONE}, WRONG = ${WRONG}, REPAIRED = ${REPAIRED},
    STOP = ${STOP},
    NAMED_DONE = ${NAMED_DONE}, JOURNAL = ${JOURNAL}, ACCOUNTS = ${ACCOUNTS}, COUNT = ${COUNT},
    START = ${START}, PAIR = ${PAIR};
  const open = (vigil, segmentName, name) => {
    const segment = vigil.Segment.open(segmentName), cells = new Int32Array(segment.buffer);
    const mutex = new vigil.Mutex(segment, MUTEX), permits = new vigil.Semaphore(segment, PERMITS);
    const sum = () => { let all = 0; for (let i = 0; i < COUNT; i++) all += cells[ACCOUNTS + i]; return all; };
    const pause = () => { for (let i = Math.random() ** 4 * 300000; i > 0; i--) Atomics.load(cells, STOP); };
    const repair = () => {
      if (cells[JOURNAL] === 1) {
        cells[cells[JOURNAL + 1]] = cells[JOURNAL + 3];
        cells[cells[JOURNAL + 2]] = cells[JOURNAL + 4];
        Atomics.store(cells, JOURNAL, 0);
        Atomics.add(cells, REPAIRED, 1);
      }
      mutex.consistent();
    };
    const transfer = () => { // with the mutex held
      if (mutex.ownerDied) repair();
      if (cells[JOURNAL] !== 0 || sum() !== COUNT * START) Atomics.add(cells, WRONG, 1);
      const from = ACCOUNTS + Math.floor(Math.random() * COUNT), to = ACCOUNTS + Math.floor(Math.random() * COUNT);
      if (from !== to) {
        cells.set([from, to, cells[from], cells[to]], JOURNAL + 1);
        Atomics.store(cells, JOURNAL, 1);
        Atomics.sub(cells, from, 7);
        pause();
        Atomics.add(cells, to, 7);
        Atomics.store(cells, JOURNAL, 0);
      }
      Atomics.add(cells, DONE, 1);
    };
    const count = (lock) => { // with the named lock held
      if (lock.ownerDied) { Atomics.store(cells, PAIR + 1, cells[PAIR]); lock.consistent(); }
      if (cells[PAIR] !== cells[PAIR + 1]) Atomics.add(cells, WRONG, 1);
      Atomics.add(cells, PAIR, 1);
      pause();
      Atomics.add(cells, PAIR + 1, 1);
      Atomics.add(cells, NAMED_DONE, 1);
    };
    const blocking = () => {
      while (!Atomics.load(cells, STOP)) {
        mutex.lock(); transfer(); mutex.unlock();
        const release = permits.acquireSync(); pause(); release();
        const lock = vigil.locks.acquireSync(name); count(lock); lock.release();
      }
    };
    const asynchronous = async () => {
      while (!Atomics.load(cells, STOP)) {
        await mutex.lockAsync(); transfer(); mutex.unlock();
        await permits.runExclusive(pause);
        await vigil.locks.request(name, count);
      }
    };
    return { segment, cells, mutex, permits, sum, transfer, count, blocking, asynchronous };
  };`;

const childCode = (segmentName, name) => {
    const names = `${JSON.stringify(segmentName)}, ${JSON.stringify(name)}`;
    const threads = `
    const vigil = require(process.env.STORM_LIBRARY);
    ${source}
    const { workerData } = require('node:worker_threads');
    const it = open(vigil, ${names});
    if (workerData === 'blocking') it.blocking(); else it.asynchronous();`;
    return `
    ${source}
    const { Worker } = require('node:worker_threads');
    const it = open(vigil, ${names});
    for (const workerData of ['blocking', 'asynchronous'])
      new Worker(${JSON.stringify(threads)}, { eval: true, workerData });
    say('ready');
    await it.asynchronous();`;
};

test(`kill storm, ${SECONDS} s`, async () => {
    const random = randomOf(seedOf('storm')),
        segmentName = uniqueSegment('storm'),
        name = uniqueName('storm');
    const created = vigil.Segment.create(segmentName, { length: 4096, waiters: 4096 });
    vigil.Semaphore.initialize(created, PERMITS, 3);
    new Int32Array(created.buffer).fill(START, ACCOUNTS, ACCOUNTS + COUNT);
    const open = eval(`${source} open`); // eslint-disable-line no-eval
    const it = open(vigil, segmentName, name);
    const environment = { STORM_LIBRARY: require('./support.js').library };
    const start = () => processOf(childCode(segmentName, name), { environment });
    const processes = Array.from({ length: PROCESSES }, start);
    await within(Promise.all(processes.map((each) => each.next())), 'the processes to start');
    const end = performance.now() + SECONDS * 1000;
    let kills = 0;
    while (performance.now() < end) {
        await sleep(random(60));
        const i = random(PROCESSES);
        processes[i].kill('SIGKILL');
        await processes[i].ended;
        processes[i] = start();
        kills++;
        if (random(3) === 0) {
            // this process takes part
            await within(it.mutex.lockAsync(), 'the mutex');
            it.transfer();
            it.mutex.unlock();
            await within(vigil.locks.request(name, it.count), 'the name');
        }
    }
    Atomics.store(it.cells, STOP, 1);
    const statuses = await within(Promise.all(processes.map((each) => each.ended)), 'the processes to end');
    assert.deepStrictEqual(new Set(statuses), new Set([0]));
    await within(it.mutex.lockAsync({ timeout: 30000 }), 'the mutex');
    it.transfer();
    it.mutex.unlock();
    (await it.permits.acquire(3, { timeout: 30000 }))();
    await vigil.locks.request(name, { timeout: 30000 }, it.count);
    console.log(
        `# ${kills} killed, ${it.cells[DONE]} transfers, ` +
          `${it.cells[NAMED_DONE]} counts, ${it.cells[REPAIRED]} repaired`,
    );
    assert.strictEqual(it.cells[WRONG], 0, 'a holder was not told that its predecessor died, or was not alone');
    assert.strictEqual(it.sum(), COUNT * START);
    assert.strictEqual(it.permits.permits, 3);
    assert.ok(it.cells[DONE] > 0 && it.cells[NAMED_DONE] > 0 && kills > 0);
    it.segment.close();
    created.close();
});
