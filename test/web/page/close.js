// SPDX-License-Identifier: MIT
// vigil.close(), and attach that fails: nothing hangs, and nothing is left.

import { library, test, equal, throws, within, until, sleep } from './support.js';

const outcomeOf = (promise, what) => within(promise.then(String, ({ code, message }) => `${code}: ${message}`), what);

/* What no program handles while the function runs, and soon after. */
async function uncaughtIn(body) {
  const seen = [], note = ({ reason, message }) => seen.push(String(reason ?? message));
  for (const name of ['error', 'unhandledrejection']) addEventListener(name, note);
  try {
    await body(seen);
    await sleep(50);
  } finally {
    for (const name of ['error', 'unhandledrejection']) removeEventListener(name, note);
  }
  return seen;
}

test('close: what is pending is rejected, and a later abort throws nothing', async (t) => {
  const { vigil } = t, array = vigil.allocate(8), { signal } = new AbortController(), all = new AbortController();
  const other = await t.createVigil(), mutex = new vigil.Mutex(array, 0), held = await mutex.acquire();
  await new vigil.Mutex(array, 3).lockAsync();
  const options = { signal: all.signal };
  const pending = {
    lockAsync: mutex.lockAsync(options),
    acquireWrite: new vigil.RwLock(array, 1).acquireRead().then(() => new vigil.RwLock(array, 1).acquireWrite()),
    acquire: new vigil.Semaphore(array, 2).acquire(1, options),
    'Condition.waitAsync': new vigil.Condition(array, 4).waitAsync(new vigil.Mutex(array, 3), { signal }),
    waitAsync: vigil.waitAsync(array, 5, 0).value,
    'waitAsync with a timeout': vigil.waitAsync(array, 5, 0, 1e6).value,
    'waitAsync with a signal': vigil.waitAsync(array, 5, 0, options).value,
  };
  const elsewhere = other.waitAsync(other.allocate(1), 0, 0, options).value;
  await sleep(0); // acquireWrite
  vigil.close();
  for (const [what, each] of Object.entries(pending))
    equal(await outcomeOf(each, what), 'VIGIL_CANCELLED: ended by close()', what);
  const uncaught = await uncaughtIn(async () => {
    all.abort(new Error('aborted'));
    equal(await outcomeOf(elsewhere, 'a wait of another Vigil'), 'undefined: aborted');
  });
  equal([uncaught, typeof held], [[], 'function']);
});

test('close: a callback of executeLocked is not called, and nothing is reported', async (t) => {
  const { vigil } = t, lock = new vigil.AsyncLock(vigil.allocate(1)), uncaught = await uncaughtIn((seen) => {
    lock.lock();
    lock.executeLocked(() => seen.push('called'));
    vigil.close();
  });
  equal(uncaught, []);
});

/* As where storage is blocked, or in a frame with an opaque origin. */
test('attach: without Web Locks, create and attach are rejected', async ({ vigil }) => {
  const { prototype } = LockManager, { request } = prototype, { Vigil } = library;
  const uncaught = await uncaughtIn(async () => {
    prototype.request = () => Promise.reject(new Error('blocked'));
    try {
      equal(await outcomeOf(Vigil.attach(vigil.handle), 'attach'), 'undefined: blocked');
      equal(await outcomeOf(Vigil.create(), 'create'), 'undefined: blocked');
    } finally {
      prototype.request = request;
    }
  });
  equal(uncaught, []);
});

/*
 * How many channels are open after the function which were not before, and how many Web Locks are held: the browser
 * takes them back a moment later.
 */
async function leftBy(body) {
  const { BroadcastChannel: Channel } = globalThis, open = new Set();
  globalThis.BroadcastChannel = class extends Channel {
    constructor(name) {
      super(name);
      open.add(this);
    }
    close() {
      open.delete(this);
      super.close();
    }
  };
  const held = async () => (await navigator.locks.query()).held.length, before = await held();
  try {
    await body();
  } finally {
    globalThis.BroadcastChannel = Channel;
  }
  for (let i = 0; i < 100 && await held() > before; i++) await sleep(20);
  return [open.size, await held() - before];
}

test('attach: one that fails leaves neither a channel nor a Web Lock', async (t) => {
  t.mayDamage = true;
  const { vigil } = t, { handle } = vigil, { attach } = library.Vigil;
  equal(await leftBy(async () => {
    const wrong = { ...handle, module: {} };
    equal((await outcomeOf(attach(wrong), 'attach')).split(':')[0], 'undefined', 'a TypeError');
  }), [0, 0], 'no module');
  new BroadcastChannel(`vigil ${handle.id}`).postMessage({ damaged: true });
  await until(() => t.damage.length > 0, 'the report');
  equal(await leftBy(async () => {
    equal((await outcomeOf(attach(handle), 'attach')).split(':')[0], 'VIGIL_ECORRUPT');
  }), [0, 0], 'damaged memory');
  t.forget(vigil);
});

/* There is memory for its stack, but not for more. */
test('attach: one that finds too little memory gives back what it has taken', async (t) => {
  const memory = new WebAssembly.Memory({ initial: 4, maximum: 8, shared: true }), { attach } = library.Vigil;
  const vigil = await t.createVigil({ memory }), blocks = [], count = 38;
  const allocate = () => blocks.push(vigil.allocate(252)); // a kilobyte with its header
  throws(() => { for (;;) allocate(); }, library.LimitError);
  for (let round = 0; round < 3; round++) {
    for (const block of blocks.splice(-count)) vigil.free(block);
    const outcome = await outcomeOf(attach(vigil.handle), 'attach');
    equal(outcome, 'VIGIL_ENOMEM: the memory is full, and cannot grow any more', `round ${round}`);
    for (let i = 0; i < count; i++) allocate();
  }
});
