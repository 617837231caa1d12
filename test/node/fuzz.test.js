// SPDX-License-Identifier: MIT
'use strict';
// Random garbage as arguments of everything: exceptions, never a crash or a hang. In a worker, so that a crash shows.

const assert = require('node:assert');
const { test } = require('node:test');
const { within, processOf, seedOf, uniqueName, uniqueSegment } = require('./support.js');

const SECONDS = Number(process.env.VIGIL_FUZZ_SECONDS ?? 3);

const code = `
  const name = process.env.FUZZ_NAME, lockName = process.env.FUZZ_LOCK;
  const random = (${require('./support.js').randomOf})(Number(process.env.FUZZ_SEED));
  const segment = vigil.Segment.create(name, { length: 4096, maxLength: 65536 });
  const closed = vigil.Segment.open(name);
  const closedArray = new Int32Array(closed.buffer);
  const closedMutex = new vigil.Mutex(closed, 200), closedSemaphore = new vigil.Semaphore(closed, 201);
  closed.close();
  const shared = new SharedArrayBuffer(64), array = new Int32Array(shared), wide = new BigInt64Array(shared);
  const detached = new Int32Array(8);
  structuredClone(detached.buffer, { transfer: [detached.buffer] });
  const controller = new AbortController();
  const timeouts = [{ timeout: 0 }, { timeout: 0.1 }, { timeout: 0.1, ref: false }, { deadline: 1 }];
  const objects = () => [new vigil.Mutex(array, random(16)), new vigil.RwLock(array, random(16)),
    new vigil.Semaphore(array, random(16)), new vigil.Condition(array, random(16)),
    new vigil.Barrier(array, random(14)),
    new vigil.Once(array, random(14)), new vigil.AsyncLock(shared), new vigil.Lock(array, random(16)),
    new vigil.Mutex(segment, random(64)), new vigil.RwLock(segment, random(64)),
    new vigil.Semaphore(segment, random(64)),
    new vigil.Barrier(segment, random(64)), closedMutex, closedSemaphore, segment, closed, vigil.locks, vigil.Segment,
    vigil, vigil.Atomics, vigil.Lock, vigil.Semaphore, vigil.Barrier];
  const values = () => [undefined, null, true, 0, -0, 1, -1, 2, 7, 15, 16, 1.5, NaN, Infinity, -Infinity,
    2 ** 31, 2 ** 32,
    2 ** 53, 1e300, 0n, 1n, -1n, 2n ** 64n, '', '0', '1', 'x', 'a'.repeat(300), '\\ud800', Symbol('s'), {}, [], [1],
    () => {}, async () => {}, class {}, new Proxy({}, {}), new Proxy(array, {}), new Date(), /x/, new Map(),
    shared, array,
    wide, detached, closedArray, detached.buffer, new ArrayBuffer(8), new Uint8Array(shared), new Float64Array(shared),
    new Int32Array(8), new Int32Array(shared, 4, 3), new DataView(shared), segment, closed, segment.buffer,
    new Int32Array(segment.buffer), new BigInt64Array(segment.buffer, 8, 4), controller.signal, AbortSignal.abort(),
    { valueOf() { throw new Error('valueOf'); } }, { valueOf() { return 3; } }, { toString() { return name; } },
    { get timeout() { throw new Error('getter'); } }, { signal: {} }, { mode: 'shared', ifAvailable: true },
    Object.create(null), globalThis.process, new Error('e')];
  /* What would be the name of a lock: of the garbage, only what is none may get there. */
  const isName = (value) => {
    try {
      return /^[!-.0-~]{1,200}$/.test(String(value));
    } catch {
      return false;
    }
  };
  const skipped = new Set(['constructor', 'close', 'unlink', 'openOrCreate', 'create', 'open', 'remove',
    'grow', 'query',
    'Atomics', 'locks', 'wordOf', 'prototype', 'name', 'length', 'arguments', 'caller']);
  const blocking = /^(wait|lock|acquireSync|acquireReadSync|acquireWriteSync|runSync)$/;
  const methodsOf = (object) => {
    const names = new Set();
    for (let at = object; at && at !== Object.prototype && at !== Function.prototype; at = Object.getPrototypeOf(at))
      Object.getOwnPropertyNames(at).forEach((each) => names.add(each));
    return [...names].filter((each) => !skipped.has(each) && /^[a-z]/.test(each));
  };
  const kept = [];
  let calls = 0, thrown = 0;
  const observe = (result) => {
    if (typeof result?.then === 'function') result.then((value) => observe(value), () => thrown++);
    else if (typeof result?.value?.then === 'function') observe(result.value);
    else if (typeof result === 'function' && random(2) && result.release) try { result(); } catch { thrown++; }
    else if (typeof result?.release === 'function' && random(2)) try { result.release(); } catch { thrown++; }
  };
  const end = performance.now() + 1000 * Number(process.env.FUZZ_SECONDS);
  process.on('unhandledRejection', () => {});
  process.on('uncaughtException', () => thrown++);
  while (performance.now() < end) {
    const all = objects(), garbage = values();
    for (let i = 0; i < 200; i++) {
      const object = all[random(all.length)], methods = methodsOf(object), method = methods[random(methods.length)];
      const count = random(5), args = Array.from({ length: count }, () => garbage[random(garbage.length)]);
      if (object === vigil.locks && isName(args[0])) args[0] = lockName;
      if (blocking.test(method)) {
        if (object === vigil || object === vigil.Atomics) args[3] = [0, 0.1, -1, NaN === 0][random(3)];
        else if (object instanceof vigil.AsyncLock || object instanceof vigil.Lock) continue;
        else if (object instanceof vigil.Semaphore) args[1] = timeouts[random(4)];
        else if (object === vigil.locks) args[1] = { timeout: 0.1 };
        else if (object instanceof vigil.Condition || object instanceof vigil.Once) args[1] = timeouts[random(4)];
        else args[0] = timeouts[random(4)];
      }
      calls++;
      try {
        const descriptor = typeof object[method];
        if (descriptor === 'function') observe(object[method](...args));
      } catch (error) {
        thrown++;
        if (!(error instanceof Error)) throw error;
      }
      if (random(4) === 0) {
        calls++;
        try {
          const Type = vigil[['Mutex', 'RwLock', 'Semaphore', 'Condition', 'Barrier', 'Once', 'AsyncLock', 'Lock',
            'Segment'][random(9)]];
          kept.push(new Type(...args));
        } catch { thrown++; }
      }
    }
    for (let i = 0; i < 16; i++) array[i] = 0; // whatever it was
    new Int32Array(segment.buffer).fill(0);
    vigil.notify(array, random(16));
    await new Promise((resolve) => setImmediate(resolve));
  }
  say({ calls, thrown });
  process.exit(0);`;

test('garbage as arguments', async () => {
    const name = uniqueSegment('fuzz'),
        lockName = uniqueName('fuzz'),
        seed = seedOf('fuzz');
    const child = processOf(code, {
        environment: { FUZZ_NAME: name, FUZZ_LOCK: lockName, FUZZ_SEED: String(seed), FUZZ_SECONDS: String(SECONDS) },
    });
    const status = await within(child.ended, 'the garbage', (SECONDS + 60) * 1000);
    assert.strictEqual(status, 0);
    const { calls, thrown } = await child.next();
    console.log(`# ${calls} calls, ${thrown} exceptions`);
    assert.ok(thrown > 0 && calls > thrown / 2);
});
