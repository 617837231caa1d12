// SPDX-License-Identifier: MIT
// Checked by TypeScript: see types.mjs. It is not run.
import {
  Vigil, VigilError, TimeoutError, NotHeldError, LimitError,
  type VigilHandle, type CreateOptions, type SeenLine, type LockTarget, type Held, type WaitAsyncResult,
  type WaitOptions, type Mutex,
} from '@vigil/web';
import * as all from '@vigil/web';
import * as side from '@vigil/web/side';

/* Compiles only if both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
function same<A>() { return { as<B>(..._: Same<A, B> extends true ? [] : [never]) {} }; }

export async function begin(memory: WebAssembly.Memory, module: WebAssembly.Module, worker: Worker) {
  const options: CreateOptions = { memory, wasm: module, onDamage: (error) => same<typeof error>().as<VigilError>() };
  const vigil = await Vigil.create(options);
  same<typeof vigil>().as<Vigil>();
  await Vigil.create({ wasm: new URL('vigil.wasm', import.meta.url) });
  worker.postMessage(vigil.handle);
  const handle: VigilHandle = vigil.handle, other = await Vigil.attach(handle);
  // @ts-expect-error: a handle
  Vigil.attach(memory);
  // @ts-expect-error: use create or attach
  new Vigil();
  same<typeof other.memory>().as<WebAssembly.Memory>();
  same<typeof other.thread>().as<number>();
  vigil.terminate(worker, other.thread);
  // @ts-expect-error: which worker, and its thread
  vigil.terminate(worker);
  other.close();
}

export async function waits(vigil: Vigil, signal: AbortSignal) {
  const words = vigil.allocate(4), big = new BigInt64Array(words.buffer);
  same<ReturnType<typeof vigil.wait>>().as<'ok' | 'not-equal' | 'timed-out'>();
  vigil.wait(big, 0, 0n);
  // @ts-expect-error: a bigint for 64 bits
  vigil.wait(big, 0, 0);
  const result: WaitAsyncResult = vigil.waitAsync(words, 0, 0, { timeout: 5, deadline: 10, signal });
  if (result.async) same<Awaited<typeof result.value>>().as<'ok' | 'timed-out'>();
  same<number>().as<ReturnType<typeof vigil.notify>>();
  const lines: SeenLine[] = vigil.look();
  for (const { address, lock, count, waiters } of lines) {
    same<typeof address>().as<number>();
    same<typeof lock>().as<boolean>();
    if (count > 0) same<number | undefined>().as<typeof waiters[0]['waited'] | undefined>();
  }
  vigil.free(words);
  // @ts-expect-error: the name of no element
  vigil.waiters(words, 'first');
}

export async function locks(vigil: Vigil, options: WaitOptions) {
  const mutex: Mutex = new vigil.Mutex();
  {
    await using held = await mutex.acquire(options);
    same<typeof held>().as<Held>();
    if (held.ownerDied) mutex.consistent();
  }
  mutex.lock({ timeout: 4 });
  // @ts-expect-error: a thread that blocks hears of no signal
  mutex.lock({ signal: options.signal });
  const rwlock = new vigil.RwLock(mutex.array, 0), text = await rwlock.read(() => 'text');
  same<typeof text>().as<string>();
  const semaphore = new vigil.Semaphore(4), condition = new vigil.Condition();
  using permits = semaphore.acquireSync(2);
  same<Awaited<ReturnType<typeof condition.waitAsync>>>().as<'ok' | 'timed-out'>();
  same<Awaited<ReturnType<InstanceType<typeof vigil.Barrier>['waitAsync']>>>().as<boolean>();
  new vigil.AsyncLock(mutex.array.buffer as SharedArrayBuffer).executeLocked(() => {});
  vigil.Lock.initialize(mutex.array, 0);
  new vigil.Lock(mutex.array, 0).lock();
  return permits.ownerDied;
}

/* Only in the package for Node. */
export function absent(vigil: Vigil) {
  same<LockTarget>().as<Int32Array | SharedArrayBuffer>();
  // @ts-expect-error: no wait keeps a page alive
  vigil.waitAsync(vigil.allocate(1), 0, 0, { ref: false });
  // @ts-expect-error: there are no segments
  type Segment = all.Segment;
  // @ts-expect-error: locks with names are the browser's
  all.locks.query();
  // @ts-expect-error: there is no Once
  new vigil.Once();
}

export async function elsewhere(memory: WebAssembly.Memory, base: number) {
  const vigil: Vigil = await side.Vigil.create({ memory, base, bytes: 1 << 22 });
  same<typeof vigil>().as<side.Vigil>();
  await side.Vigil.attach(vigil.handle);
  // @ts-expect-error: a place in the memory
  side.Vigil.create({ memory });
  // @ts-expect-error: whose memory
  side.Vigil.create({ base });
  try {
    new vigil.Mutex(new Int32Array(memory.buffer, 0, 1)).tryLock();
  } catch (error) {
    if (error instanceof side.VigilError) return error.code;
  }
  return undefined;
}

export function errors(error: unknown) {
  if (error instanceof TimeoutError || error instanceof NotHeldError) return error.code;
  if (error instanceof LimitError) return error.message;
  if (error instanceof VigilError) same<typeof error.code>().as<string>();
  return undefined;
}
