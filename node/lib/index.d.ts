// SPDX-License-Identifier: MIT
/// <reference lib="esnext.disposable" />

/** Where a lock is: an array on shared memory, all of a SharedArrayBuffer, or a segment. */
export type LockTarget = Int32Array | SharedArrayBuffer | Segment;

/** Options of everything that blocks. Times are in milliseconds. */
export interface BlockOptions {
  /** How long to wait at most. Default: Infinity. */
  timeout?: number;
  /** When to stop waiting, as `performance.now()` counts. With `timeout`, the earlier one counts. */
  deadline?: number;
}

/** Options of everything that returns a promise. */
export interface WaitOptions extends BlockOptions {
  /** Leave the line when it is aborted: the promise is rejected with the reason of the signal. */
  signal?: AbortSignal;
  /** Whether the wait keeps the process, or the worker, alive. Default: true. */
  ref?: boolean;
}

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

/** The functions of the global Atomics; `wait`, `waitAsync` and `notify` are those of this package. */
export type VigilAtomics = typeof globalThis.Atomics & {
  waitAsync(array: Int32Array, index: number, value: number, timeout?: number): WaitAsyncResult;
  waitAsync(array: BigInt64Array, index: number, value: bigint, timeout?: number): WaitAsyncResult;
};
/** In place of the global Atomics, which is never changed: exactly the functions, properties and errors of ECMA-262. */
export const Atomics: VigilAtomics;
/** Another such object. With `canBlock: false`, `wait` throws a TypeError, as in the main thread of a browser. */
export function createAtomics(options?: { canBlock?: boolean }): VigilAtomics;

/** A lock with one holder at a time, for workers, event loops and, in a segment, processes. One element. */
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

/** Something that is done once. If the callback throws, or its caller ends, the next one tries again. Two elements. */
export class Once {
  constructor(target?: LockTarget, index?: number);
  /** Where it is: pass it to workers. */
  readonly array: Int32Array;
  /** Of its first element in `array`. */
  readonly index: number;
  /** Whether a callback has succeeded. */
  readonly isDone: boolean;
  /** Call it, unless it is done. Returns when it is done, by this or another caller. */
  run(callback: () => unknown, options?: WaitOptions): Promise<void>;
  /** The same; blocks while another environment is doing it. */
  runSync(callback: () => void, options?: BlockOptions): void;
}

/** Alone, or together with others that are shared. */
export type LockMode = 'exclusive' | 'shared';

/** Options of locks with a name. */
export interface LockOptions extends WaitOptions {
  /** Default: 'exclusive'. */
  mode?: LockMode;
  /** Do not wait: the callback gets null if the lock is not free. */
  ifAvailable?: boolean;
  /**
   * Take it from its holders, in whatever thread or process, without waiting. Their requests are rejected: AbortError.
   * Those that wait in line stay there.
   */
  steal?: boolean;
}

/** A lock with a name, held by this environment. */
export interface NamedLock extends Disposable, AsyncDisposable {
  readonly name: string;
  readonly mode: LockMode;
  /** The previous holder was killed, or its environment ended, while it held the lock. */
  readonly ownerDied: boolean;
  /** With ownerDied, that holder, if it is known. `takenAt` is as Date.now() counts, `text` is its command. */
  readonly owner: { readonly pid: number; readonly takenAt: number; readonly text: string } | undefined;
  /** Whether it is not held any more: released, or stolen. */
  readonly released: boolean;
  /** Whether another request has taken it away. */
  readonly stolen: boolean;
  /** Calling it again does nothing. An AbortError if the lock was stolen, unless request() is rejected for that. */
  release(): void;
  /** After ownerDied: what the lock protects is in order again. Otherwise the next holder is told, too. */
  consistent(): void;
}

/** A row of locks.query(). `clientId` is the pid as a string. */
export interface LockInfo {
  name: string;
  mode: LockMode;
  clientId: string;
  pid: number;
}

/** navigator.locks, across processes. In one line with `vigil lock NAME` in a shell and vigil/named.h in C. */
export interface LockManager {
  /** Call it with the lock, and release the lock when its promise is settled. */
  request<T>(name: string, callback: (lock: NamedLock) => T): Promise<Awaited<T>>;
  request<T>(
    name: string, options: LockOptions & { ifAvailable?: false },
    callback: (lock: NamedLock) => T): Promise<Awaited<T>>;
  request<T>(name: string, options: LockOptions, callback: (lock: NamedLock | null) => T): Promise<Awaited<T>>;
  /** A lock to be released by release() or `await using`. Null only with `ifAvailable`, if the lock is not free. */
  acquire(name: string, options?: LockOptions & { ifAvailable?: false }): Promise<NamedLock>;
  acquire(name: string, options: LockOptions): Promise<NamedLock | null>;
  /** The same for workers that may block. */
  acquireSync(name: string, options?: BlockOptions & { mode?: LockMode; ifAvailable?: false }): NamedLock;
  acquireSync(name: string, options: BlockOptions & { mode?: LockMode; ifAvailable?: boolean }): NamedLock | null;
  /**
   * Remove a name for which there is no more use: false if there is none. VIGIL_EBUSY while a process uses it; with
   * `force` that process keeps its lock, and the next request of the name makes another.
   */
  remove(name: string, options?: { force?: boolean }): boolean;
  /** Holders and waiters at the names of this user, in all processes. */
  query(): Promise<{ held: LockInfo[]; pending: LockInfo[] }>;
}
/** The locks with names. */
export const locks: LockManager;

/** Properties of a new segment. */
export interface SegmentOptions {
  /** In bytes, which are zero at first. Default: 4096. */
  length?: number;
  /** Up to which it can grow. Default: `length`. */
  maxLength?: number;
  /** How many can wait in it at the same time. Default: 1024. */
  waiters?: number;
  /** How many processes can have it open at the same time. Default: 64. */
  members?: number;
  /** Permissions of its file. Default: 0o600. */
  mode?: number;
}

/** Memory that several processes share, with the waits and locks in it. */
export class Segment implements Disposable {
  private constructor();
  /** @throws SegmentError if there is none */
  static open(name: string): Segment;
  /** @throws SegmentError if there is one already */
  static create(name: string, options?: SegmentOptions): Segment;
  /** Open the one of that name; if there is none, create it with these properties. */
  static openOrCreate(name: string, options?: SegmentOptions): Segment;
  /** The memory stays while processes have it open; the name can be used for another. */
  static unlink(name: string): void;
  readonly name: string;
  /** Its bytes. After grow() another one, with all of them. */
  readonly buffer: ArrayBuffer;
  /** Of `buffer`. */
  readonly byteLength: number;
  /** Up to which it can grow. */
  readonly maxByteLength: number;
  /** To at least that length; also to see what another process has grown it to. */
  grow(length: number): void;
  /** Detaches the buffer. The segment stays until it is unlinked. */
  close(): void;
  /** close() */
  [Symbol.dispose](): void;
}

/** The base of all errors of this package. */
export class VigilError extends Error {
  constructor(code: string, message?: string, options?: { cause?: unknown });
  /** The name of the status in vigil/status.h, such as 'VIGIL_TIMED_OUT'. */
  readonly code: string;
}
/** The timeout or deadline passed first; nothing was acquired. */
export class TimeoutError extends VigilError {}
/** Released what is not held, or not by this environment. */
export class NotHeldError extends VigilError {}
/** A segment or a name is missing, exists already, is damaged, or belongs to another user or version. */
export class SegmentError extends VigilError {}
/** Too many waiters, segments or members, or not enough memory. */
export class LimitError extends VigilError {}
