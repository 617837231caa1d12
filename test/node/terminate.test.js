// SPDX-License-Identifier: MIT
'use strict';
// A worker is terminated while it waits, while it holds, and while it is being granted something: nothing is lost.

const assert = require('node:assert');
const { test, after } = require('node:test');
const {
    vigil,
    tick,
    until,
    within,
    words,
    worker,
    isBlocked,
    randomOf,
    seedOf,
    uniqueName,
    uniqueSegment,
} = require('./support.js');

/* Locks of each kind, on an Int32Array of 16 elements or in a segment. The workers have the same by this source. */
const source = `(vigil, memory, name) => {
  const timed = { timeout: 50000 };
  const mutex = new vigil.Mutex(memory, 0), rwlock = new vigil.RwLock(memory, 1);
  const semaphore = new vigil.Semaphore(memory, 2);
  const releaseOf = (lock) => lock && Object.assign(() => lock.release(), { ownerDied: lock.ownerDied });
  return {
    Mutex: { async: () => mutex.acquire(timed), sync: () => mutex.acquireSync(timed), try: () => mutex.tryAcquire(),
      consistent: () => mutex.consistent() },
    'RwLock to write': { async: () => rwlock.acquireWrite(timed), sync: () => rwlock.acquireWriteSync(timed),
      try: () => rwlock.tryAcquireWrite() },
    'RwLock to read': { async: () => rwlock.acquireRead(timed), sync: () => rwlock.acquireReadSync(timed),
      try: () => rwlock.tryAcquireWrite(), blocker: () => rwlock.acquireWrite(timed) },
    Semaphore: { async: () => semaphore.acquire(2, timed), sync: () => semaphore.acquireSync(2, timed),
      try: () => semaphore.tryAcquire(3), blocker: () => semaphore.acquire(3, timed) },
    'a named lock': { async: () => vigil.locks.acquire(name, timed).then(releaseOf),
      sync: () => releaseOf(vigil.locks.acquireSync(name, timed)),
      try: () => releaseOf(vigil.locks.acquireSync(name, { ifAvailable: true })) ?? undefined },
  };
}`;
const locksOf = eval(source); // eslint-disable-line no-eval
const KINDS = ['Mutex', 'RwLock to write', 'RwLock to read', 'Semaphore', 'a named lock'];
const TELLS = ['Mutex', 'RwLock to write', 'a named lock'];

function memories() {
    const array = words(16),
        segmentName = uniqueSegment('terminate');
    const segment = vigil.Segment.create(segmentName, { length: 4096 });
    for (const memory of [array, segment]) vigil.Semaphore.initialize(memory, 2, 3);
    return [
        ['private memory', array, undefined],
        ['a segment', segment, segmentName],
    ];
}
const all = memories();
after(() => all[1][1].close());

const setup = `
  const { array, segmentName, name, flags, kind, seed } = data;
  const memory = segmentName ? vigil.Segment.open(segmentName) : array;
  const locks = (${source})(vigil, memory, name);
  const busy = () => { while (Atomics.load(flags, 0) === 0); };
`;

for (const [where, memory, segmentName] of all) {
    for (const kind of KINDS) {
        const data = () => ({
            array: segmentName ? undefined : memory,
            segmentName,
            name: uniqueName('terminate'),
            kind,
            flags: words(4),
        });

        const told = []; // ownerDied of the next holders

        /* Deterministic: it is granted while the worker runs JavaScript, so that the worker cannot take delivery. */
        test(`${kind} in ${where}: terminated while being granted`, async () => {
            for (let round = 0; round < 3; round++) {
                const given = data(),
                    locks = locksOf(vigil, memory, given.name)[kind];
                const release = await (locks.blocker ?? locks.async)();
                const victim = worker(
                    `${setup} locks[kind].async(); say('waits'); setImmediate(() => { say('busy'); busy(); });`,
                    given,
                );
                assert.strictEqual(await victim.next(), 'waits');
                assert.strictEqual(await victim.next(), 'busy');
                const behind = locks.async();
                release();
                await within(victim.terminate(), 'terminate');
                const next = await within(behind, 'the next');
                next();
                const free = locks.try();
                assert.strictEqual(typeof free, 'function', 'all of it is there again');
                free();
            }
        });

        test(`${kind} in ${where}: terminated while waiting, blocked or not`, async () => {
            for (const how of ['sync', 'async']) {
                const given = data(),
                    locks = locksOf(vigil, memory, given.name)[kind];
                const release = await (locks.blocker ?? locks.async)();
                const victim = worker(
                    `${setup} say(tid); const release = locks[kind].${how}(); say('waits');`,
                    given,
                );
                const tid = await victim.next();
                if (how === 'sync') await until(() => isBlocked(tid));
                else assert.strictEqual(await victim.next(), 'waits');
                const behind = locks.async();
                await within(victim.terminate(), 'terminate');
                release();
                (await within(behind, 'the next'))();
                const free = locks.try();
                assert.strictEqual(typeof free, 'function');
                free();
            }
        });

        for (const how of ['async', 'sync']) {
            test(`${kind} in ${where}: terminated while holding, taken ${how}`, async () => {
                const given = data(),
                    locks = locksOf(vigil, memory, given.name)[kind];
                const victim = worker(
                    `${setup} globalThis.kept = await locks[kind].${how}(); say('holds'); setInterval(() => {}, 1000);`,
                    given,
                );
                assert.strictEqual(await victim.next(), 'holds');
                assert.strictEqual(locks.try(), undefined);
                const behind = (locks.blocker ?? locks.async)();
                await within(victim.terminate(), 'terminate');
                const release = await within(behind, 'the next');
                told.push(release.ownerDied);
                release();
                repair(memory, given.name);
            });
        }

        test(`${kind} in ${where}: ownerDied after a holder was terminated`, () => {
            const expected = TELLS.includes(kind);
            assert.deepStrictEqual(told, [expected, expected]);
        });
    }
}

/* Make what was told of dead owners consistent, for the next test. */
function repair(memory, name) {
    const mutex = new vigil.Mutex(memory, 0),
        rwlock = new vigil.RwLock(memory, 1);
    mutex.lock({ timeout: 10000 });
    if (mutex.ownerDied) mutex.consistent();
    mutex.unlock();
    const write = rwlock.acquireWriteSync({ timeout: 10000 });
    if (write.ownerDied) rwlock.consistent();
    write();
    const held = vigil.locks.acquireSync(name, { timeout: 10000 });
    if (held.ownerDied) held.consistent();
    held.release();
}

test('wait: notified, but terminated before it could hear of it: the next is notified', async () => {
    const array = words(2),
        flags = words(1);
    for (let i = 0; i < 5; i++) {
        const victim = worker(
            `
      vigil.waitAsync(data.array, 0, 0).value.then(() => say('woken'));
      say('waits');
      setImmediate(() => { say('busy'); while (Atomics.load(data.flags, 0) === 0); });`,
            { array, flags },
        );
        assert.strictEqual(await victim.next(), 'waits');
        assert.strictEqual(await victim.next(), 'busy');
        const behind = vigil.waitAsync(array, 0, 0).value;
        assert.strictEqual(vigil.notify(array, 0, 1), 1);
        await within(victim.terminate(), 'terminate');
        assert.strictEqual(await within(behind, 'the next'), 'ok');
    }
});

test('a condition: signalled, but terminated before it could hear of it: the next is signalled', async () => {
    const array = words(4);
    const mutex = new vigil.Mutex(array, 0),
        condition = new vigil.Condition(array, 1);
    const victim = worker(
        `
    const mutex = new vigil.Mutex(data, 0), condition = new vigil.Condition(data, 1);
    await mutex.lockAsync();
    condition.waitAsync(mutex).then(() => say('woken'));
    say('waits');
    setImmediate(() => { say('busy'); for (;;); });`,
        array,
    );
    assert.strictEqual(await victim.next(), 'waits');
    assert.strictEqual(await victim.next(), 'busy');
    await mutex.lockAsync();
    const behind = condition.waitAsync(mutex);
    assert.strictEqual(condition.signal(), 1);
    await within(victim.terminate(), 'terminate');
    assert.strictEqual(await within(behind, 'the next'), 'ok');
    mutex.unlock();
});

test('AsyncLock and Lock: the next gets it, and ownerDied tells', async () => {
    for (const take of ['new vigil.AsyncLock(data).lock();', 'new vigil.Lock(new Int32Array(data), 0).lock();']) {
        const array = words(1);
        const victim = worker(`${take} say('holds'); setInterval(() => {}, 1000);`, array.buffer);
        assert.strictEqual(await victim.next(), 'holds');
        const lock = new vigil.AsyncLock(array.buffer);
        const executed = new Promise((resolve) => lock.executeLocked(() => resolve(lock.ownerDied)));
        await victim.terminate();
        assert.strictEqual(await within(executed, 'executeLocked'), true, 'ownerDied');
        await new Promise((resolve) => lock.executeLocked(resolve));
        assert.strictEqual(lock.ownerDied, false);
    }
});

/*
 * Random: workers that take and release everything, blocked and not, are terminated at any moment, while this thread
 * contends. Afterwards everything must be free. flags: [1] 1 while a worker holds the mutex; [2] how often it
 * was released; [3] how often a worker found the mutex of a terminated one and was not told.
 */
const STORM = `${setup}
  const kinds = ${JSON.stringify(KINDS)};
  let state = seed;
  const random = (n) => (state = (Math.imul(state, 1103515245) + 12345) >>> 0, (state >>> 8) % n);
  const pause = () => new Promise((resolve) => setImmediate(resolve));
  const loop = async (kind) => {
    for (;;) {
      const release = await (data.how === 'sync' ? locks[kind].sync() : locks[kind].async());
      if (kind === 'Mutex') {
        if (Atomics.exchange(flags, 1, 1) !== 0 && !release.ownerDied) Atomics.add(flags, 3, 1);
        if (release.ownerDied) locks.Mutex.consistent();
      }
      for (let i = random(300); i > 0; i--);
      if (random(4) === 0) await pause();
      if (kind === 'Mutex') Atomics.store(flags, 1, 0);
      release();
      Atomics.add(flags, 2, 1);
      if (random(3) === 0) await pause();
    }
  };
  say('ready');
  if (data.how === 'sync') loop(kinds[random(kinds.length)]);
  else for (const kind of kinds) { loop(kind); loop(kind); }`;

for (const [where, memory, segmentName] of all) {
    const flags = words(4);
    test(`random terminations, in ${where}`, async () => {
        const random = randomOf(seedOf('terminations')),
            name = uniqueName('storm'),
            locks = locksOf(vigil, memory, name);
        const rounds = Number(process.env.VIGIL_ROUNDS ?? 12);
        for (let round = 0; round < rounds; round++) {
            const victims = ['sync', 'async', 'sync'].map((how) =>
                worker(STORM, {
                    array: segmentName ? undefined : memory,
                    segmentName,
                    name,
                    flags,
                    how,
                    seed: random(1e9),
                }),
            );
            await Promise.all(victims.map((each) => each.next()));
            let stop = false;
            const contend = async (kind) => {
                while (!stop) {
                    (await locks[kind].async())();
                    await tick();
                }
            };
            const loops = KINDS.map(contend);
            for (const victim of victims) {
                for (let i = random(8); i > 0; i--) await tick();
                await within(victim.terminate(), 'terminate');
            }
            stop = true;
            await within(Promise.all(loops), `the loops of round ${round}`);
            for (const kind of KINDS) {
                const free = locks[kind].try();
                assert.strictEqual(typeof free, 'function', `${kind} is free again after round ${round}`);
                free();
            }
            repair(memory, name);
            Atomics.store(flags, 1, 0);
        }
        assert.strictEqual(new vigil.Semaphore(memory, 2).permits, 3);
        console.log(`# ${3 * rounds} workers terminated, ${flags[2]} times released`);
    });

    test(`random terminations, in ${where}: the next holder of the mutex was always told`, () => {
        assert.strictEqual(flags[3], 0);
    });
}
