// SPDX-License-Identifier: MIT
// The types that this package and that for the browser, or for Node, have in common.
/// <reference lib="esnext.disposable" />

import type { BlockOptions, LockTarget, WaitOptions } from './target.js';

/** What acquiring returns: a function that releases it. Calling it again does nothing. */
export interface Held extends Disposable, AsyncDisposable {
  (): void;
  /** The same function. */
  release(): void;
  /** The previous holder ended while it held the lock. */
  readonly ownerDied: boolean;
}

/** What wait returns. */
export type WaitResult = 'ok' | 'not-equal' | 'timed-out';

/** What waitAsync returns. */
export type WaitAsyncResult =
  | { async: false; value: 'not-equal' | 'timed-out' }
  | { async: true; value: Promise<'ok' | 'timed-out'> };

/**
 * Block while the element is `value`, until it is notified.
 * @param timeout in milliseconds; default: Infinity
 */
export function wait(array: Int32Array, index: number, value: number, timeout?: number): WaitResult;
export function wait(array: BigInt64Array, index: number, value: bigint, timeout?: number): WaitResult;

/** Wait without blocking. A promise in the result is rejected only by the signal of the options. */
export function waitAsync(
  array: Int32Array, index: number, value: number, timeout?: number | WaitOptions): WaitAsyncResult;
export function waitAsync(
  array: BigInt64Array, index: number, value: bigint, timeout?: number | WaitOptions): WaitAsyncResult;

/**
 * Wake waiters of the element, those that came first.
 * @param count how many at most; default: all
 * @returns how many were waiting and are woken
 */
export function notify(array: Int32Array | BigInt64Array, index: number, count?: number): number;

/** A lock with one holder at a time, for workers and event loops. One element. */
export class Mutex {
  /**
   * Without a target, on memory of its own: see `array`. Fair: strictly first come, first served, which costs a switch
   * of threads for each hold while there are waiters. The first that makes a Mutex on an element decides that.
   */
  constructor(target?: LockTarget, index?: number, options?: { fair?: boolean });
  /** Where it is: pass it to workers. */
  readonly array: Int32Array;
  /** Of its first element in `array`. */
  readonly index: number;
  /** Block until it is held. */
  lock(options?: BlockOptions): void;
  /** The same as a promise. */
  lockAsync(options?: WaitOptions): Promise<void>;
  /** Whether it is held now. Does not wait. */
  tryLock(): boolean;
  /** @throws NotHeldError */
  unlock(): void;
  /** Wait until it is held. */
  acquire(options?: WaitOptions): Promise<Held>;
  /** Block until it is held. */
  acquireSync(options?: BlockOptions): Held;
  /** Undefined, if it is held already. Does not wait. */
  tryAcquire(): Held | undefined;
  /** Call it while holding the mutex, until its promise is settled. */
  runExclusive<T>(callback: () => T | PromiseLike<T>, options?: WaitOptions): Promise<T>;
  /** Whether any environment holds it. */
  isLocked(): boolean;
  /** unlock(), under the name that async-mutex has for it. */
  release(): void;
  /** A holder ended while it held the mutex, and consistent() has not been called since. */
  readonly ownerDied: boolean;
  /** After ownerDied: what the mutex protects is in order again. Otherwise the next holder is told, too. */
  consistent(): void;
}

/** The lock of the article on https://v8.dev/features/atomics, at element 0 of a SharedArrayBuffer. */
export class AsyncLock {
  /** The element that it uses. */
  static INDEX: number;
  /** Without an argument, on memory of its own: see `sab`. */
  constructor(sab?: LockTarget);
  /** Its memory: pass it to workers. */
  sab: ArrayBufferLike;
  /** An array on `sab`. */
  i32a: Int32Array;
  /** Block until it is held. */
  lock(): void;
  /** @throws NotHeldError */
  unlock(): void;
  /** Call it as soon as the lock can be held, at once if it is free, and unlock it afterwards. */
  executeLocked(callback: () => void): void;
  /** Whether the holder before the last lock() or executeLocked() ended while it held the lock. */
  readonly ownerDied: boolean;
}

/** The lock of "Exploring ES2016 and ES2017", on NUMINTS elements. */
export class Lock {
  /** How many elements it needs. */
  static NUMINTS: number;
  /** Once, before it is used. */
  static initialize(iab: Int32Array, ibase: number): void;
  constructor(iab: Int32Array, ibase: number);
  /** Its array. */
  iab: Int32Array;
  /** Its index in the array. */
  ibase: number;
  /** Block until it is held. */
  lock(): void;
  /** Whether it is held now. Does not wait. */
  tryLock(): boolean;
  /** @throws NotHeldError */
  unlock(): void;
  /** Whether the holder before the last lock() ended while it held the lock. */
  readonly ownerDied: boolean;
}

/** Many readers or one writer. One element. */
export class RwLock {
  constructor(target?: LockTarget, index?: number);
  /** Where it is: pass it to workers. */
  readonly array: Int32Array;
  /** Of its first element in `array`. */
  readonly index: number;
  /** Wait until it can be read, together with other readers. */
  acquireRead(options?: WaitOptions): Promise<Held>;
  /** Wait until it can be written, alone. */
  acquireWrite(options?: WaitOptions): Promise<Held>;
  /** The same as acquireRead; blocks. */
  acquireReadSync(options?: BlockOptions): Held;
  /** The same as acquireWrite; blocks. */
  acquireWriteSync(options?: BlockOptions): Held;
  /** Undefined, if a writer has it or waits. Does not wait. */
  tryAcquireRead(): Held | undefined;
  /** Undefined, if a reader or a writer has it. Does not wait. */
  tryAcquireWrite(): Held | undefined;
  /** Call it while reading is allowed, until its promise is settled. */
  read<T>(callback: () => T | PromiseLike<T>, options?: WaitOptions): Promise<T>;
  /** Call it while writing is allowed, until its promise is settled. */
  write<T>(callback: () => T | PromiseLike<T>, options?: WaitOptions): Promise<T>;
  /** @throws NotHeldError */
  readUnlock(): void;
  /** @throws NotHeldError */
  writeUnlock(): void;
  /** From writing to reading, without another writer in between. End it by readUnlock(). */
  downgrade(): void;
  /** After ownerDied: what the lock protects is in order again. */
  consistent(): void;
}

/** Options of a Semaphore: the same in all environments that use it. */
export interface SemaphoreOptions {
  /**
   * Permits belong to the environment that acquired them: only it may release them, and they come back when it ends.
   * Default: true. With false, any environment may release any number.
   */
  leased?: boolean;
}

/** A number of permits. One element. */
export class Semaphore {
  /** On memory of its own, with so many permits. */
  constructor(permits: number, options?: SemaphoreOptions);
  /** Where initialize() has made one. */
  constructor(target: LockTarget, index?: number, options?: SemaphoreOptions);
  /** Once, before it is used. */
  static initialize(target: LockTarget, index: number, permits: number, options?: SemaphoreOptions): void;
  /** Where it is: pass it to workers. */
  readonly array: Int32Array;
  /** Of its first element in `array`. */
  readonly index: number;
  /** How many are free. */
  readonly permits: number;
  /** Wait for permits; default: 1. */
  acquire(permits?: number, options?: WaitOptions): Promise<Held>;
  /** The same; blocks. */
  acquireSync(permits?: number, options?: BlockOptions): Held;
  /** Undefined, if there are not so many. Does not wait. */
  tryAcquire(permits?: number): Held | undefined;
  /** @throws NotHeldError */
  release(permits?: number): void;
  /** Call it with permits, until its promise is settled. */
  runExclusive<T>(callback: () => T | PromiseLike<T>, permits?: number, options?: WaitOptions): Promise<T>;
}

/** Wait for a change of what a mutex protects. One element. */
export class Condition {
  constructor(target?: LockTarget, index?: number);
  /** Where it is: pass it to workers. */
  readonly array: Int32Array;
  /** Of its first element in `array`. */
  readonly index: number;
  /** Unlock the mutex and block until it is signalled, in one step. The mutex is held again afterwards, in any case. */
  wait(mutex: Mutex, options?: BlockOptions): 'ok' | 'timed-out';
  /** The same as a promise. If it is aborted, it is rejected when the mutex is held again. */
  waitAsync(mutex: Mutex, options?: WaitOptions): Promise<'ok' | 'timed-out'>;
  /** Wake one waiter. Returns how many were waiting and are woken. */
  signal(): number;
  /** Wake all. */
  broadcast(): number;
}

/** No party goes on until all have arrived; then it can be used again. Two elements. */
export class Barrier {
  /** On memory of its own, for so many parties. */
  constructor(parties: number);
  /** Where initialize() has made one. */
  constructor(target: LockTarget, index?: number);
  /** Once, before it is used. */
  static initialize(target: LockTarget, index: number, parties: number): void;
  /** Where it is: pass it to workers. */
  readonly array: Int32Array;
  /** Of its first element in `array`. */
  readonly index: number;
  /** Block until all have arrived. True for the last one. */
  wait(options?: BlockOptions): boolean;
  /** The same as a promise. */
  waitAsync(options?: WaitOptions): Promise<boolean>;
}
