// SPDX-License-Identifier: MIT
// Checked by TypeScript as an ES module and, copied to sample.cts, as CommonJS: see types.js. It is not run.
import {
  wait, waitAsync, notify, Atomics as VigilAtomics, createAtomics, AsyncLock, Lock, Mutex, RwLock, Semaphore, Condition,
  Barrier, Once, locks, Segment, VigilError, TimeoutError, NotHeldError, SegmentError, LimitError,
  type Held, type NamedLock, type RemoteLock, type LockInfo, type WaitOptions, type WaitAsyncResult,
} from '@vigil/node';

/* Compiles only if both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
function same<A>() { return { as<B>(..._: Same<A, B> extends true ? [] : [never]) {} }; }

export async function waits(signal: AbortSignal) {
  const small = new Int32Array(new SharedArrayBuffer(8)), big = new BigInt64Array(new SharedArrayBuffer(8));
  const outcome = wait(small, 0, 0, 10);
  same<typeof outcome>().as<'ok' | 'not-equal' | 'timed-out'>();
  wait(big, 0, 0n);
  // @ts-expect-error: a bigint for 64 bits
  wait(big, 0, 0);
  // @ts-expect-error: an Int32Array or a BigInt64Array
  wait(new Uint8Array(8), 0, 0);
  const result: WaitAsyncResult = waitAsync(small, 0, 0, { timeout: 5, deadline: 10, signal, ref: false });
  if (result.async) same<Awaited<typeof result.value>>().as<'ok' | 'timed-out'>();
  else same<typeof result.value>().as<'not-equal' | 'timed-out'>();
  waitAsync(big, 0, 0n, 100);
  const woken = notify(small, 0) + notify(big, 0, 1) + VigilAtomics.notify(small, 0) + VigilAtomics.load(small, 0);
  same<typeof woken>().as<number>();
  VigilAtomics.waitAsync(small, 0, 0, 5).value;
  createAtomics({ canBlock: false }).wait(small, 0, 0);
}

export async function mutexes(options: WaitOptions) {
  const mutex = new Mutex(), other = new Mutex(mutex.array, mutex.index);
  {
    await using held = await mutex.acquire(options);
    same<typeof held>().as<Held>();
    if (held.ownerDied) mutex.consistent();
  }
  {
    using held = other.acquireSync({ timeout: 5 });
    held.release();
  }
  const release = await mutex.acquire();
  release();
  const value = await mutex.runExclusive(async () => 42, { timeout: 1000 });
  same<typeof value>().as<number>();
  const perhaps = mutex.tryAcquire();
  // @ts-expect-error: undefined if it is held
  perhaps();
  perhaps?.();
  if (mutex.tryLock() && mutex.isLocked()) mutex.unlock();
  mutex.lock();
  // @ts-expect-error: a thread that blocks hears of no signal
  mutex.lock({ signal: options.signal });
  await mutex.lockAsync();
  const article = new AsyncLock(new SharedArrayBuffer(4));
  article.executeLocked(() => {});
  Lock.initialize(article.i32a, 0);
  new Lock(article.i32a, Lock.NUMINTS - 1).lock();
}

export async function others(segment: Segment) {
  const rw = new RwLock(segment, 3);
  const text = await rw.read(() => 'text');
  same<typeof text>().as<string>();
  await rw.write(async () => {}, { timeout: 3 });
  (await rw.acquireWrite()).release();
  rw.tryAcquireRead()?.();
  const four = new Semaphore(4, { leased: false });
  Semaphore.initialize(segment, 4, 2);
  const two = new Semaphore(segment, 4);
  using permits = two.acquireSync(2);
  await two.runExclusive(() => permits.ownerDied, 1, { timeout: 5 });
  (await four.acquire())();
  // @ts-expect-error: how many permits, or where
  new Semaphore();
  const mutex = new Mutex(), condition = new Condition();
  const outcome = await condition.waitAsync(mutex, { timeout: 4 });
  same<typeof outcome>().as<'ok' | 'timed-out'>();
  condition.wait(mutex);
  same<number>().as<ReturnType<typeof condition.signal>>();
  const last = await new Barrier(2).waitAsync();
  same<typeof last>().as<boolean>();
  const once = new Once(segment, 10);
  await once.run(async () => 3);
  once.runSync(() => {}, { deadline: performance.now() + 5 });
}

export async function names(signal: AbortSignal) {
  const result = await locks.request('deploy', async (lock) => {
    same<typeof lock>().as<NamedLock>();
    return lock.owner?.pid;
  });
  same<typeof result>().as<number | undefined>();
  await locks.request('deploy', { ifAvailable: true }, (lock) => same<typeof lock>().as<NamedLock | null>());
  await locks.request('deploy', { mode: 'shared', signal, timeout: 5 }, (lock) => lock.name);
  // @ts-expect-error: no such mode
  await locks.request('deploy', { mode: 'exclusiv' }, () => {});
  await using lock = await locks.acquire('deploy');
  if (lock.ownerDied) lock.consistent();
  using blocking = locks.acquireSync('deploy', { mode: 'shared' });
  (await locks.acquire('deploy', { ifAvailable: true }))?.release();
  const at = 'etcd://h1:2379', ttl = 5000;
  await locks.request('deploy', { at, ttl }, (lock) => same<typeof lock>().as<RemoteLock>());
  await locks.request('deploy', { at, ifAvailable: true }, (lock) => same<typeof lock>().as<RemoteLock | null>());
  await using remote = await locks.acquire('deploy', { at, mode: 'shared', signal, timeout: 5, user: 'root:secret' });
  same<typeof remote.token>().as<bigint>();
  same<typeof remote.lost>().as<AbortSignal>();
  // @ts-expect-error: only local locks can be stolen
  await locks.request('deploy', { at, steal: true }, () => {});
  const { held, pending } = await locks.query();
  same<typeof held>().as<LockInfo[]>();
  return blocking.released || pending.length > 0;
}

export function segments() {
  const options = { length: 4096, maxLength: 65536, waiters: 10, members: 4, mode: 0o600 };
  using segment = Segment.openOrCreate('book', options);
  // @ts-expect-error: use open, create or openOrCreate
  new Segment();
  segment.grow(8192);
  same<typeof segment.buffer>().as<ArrayBuffer>();
  Segment.unlink(segment.name);
}

export function errors(error: unknown) {
  if (error instanceof TimeoutError || error instanceof NotHeldError) return error.code;
  if (error instanceof SegmentError || error instanceof LimitError) return error.message;
  if (error instanceof VigilError) same<typeof error.code>().as<string>();
  return undefined;
}
