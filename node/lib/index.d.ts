// SPDX-License-Identifier: MIT
/// <reference lib="esnext.disposable" />

import type { WaitAsyncResult } from './common.js';
import type { BlockOptions, LockTarget, WaitOptions } from './target.js';

export * from './common.js';
export type { BlockOptions, LockTarget, WaitOptions };

/** The functions of the global Atomics; `wait`, `waitAsync` and `notify` are those of this package. */
export type VigilAtomics = typeof globalThis.Atomics & {
  waitAsync(array: Int32Array, index: number, value: number, timeout?: number): WaitAsyncResult;
  waitAsync(array: BigInt64Array, index: number, value: bigint, timeout?: number): WaitAsyncResult;
};
/** In place of the global Atomics, which is never changed: exactly the functions, properties and errors of ECMA-262. */
export const Atomics: VigilAtomics;
/** Another such object. With `canBlock: false`, `wait` throws a TypeError, as in the main thread of a browser. */
export function createAtomics(options?: { canBlock?: boolean }): VigilAtomics;

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
  /** With `at`, see RemoteLockOptions. */
  at?: undefined;
}

/** Options of locks of a cluster. */
export interface RemoteLockOptions {
  /** The servers of etcd: 'etcd://host:port,host:port'. */
  at: string;
  /** How long the lock outlives a machine that fails, in ms, at least 1000. Default: 10000. */
  ttl?: number;
  /** A file: the authorities that are trusted. The connection is encrypted. Default: those of the system. */
  cacert?: string;
  /** A file: the certificate of this client. */
  cert?: string;
  /** A file: the key of that certificate. */
  key?: string;
  /** 'name', or 'name:password'. */
  user?: string;
  password?: string;
  /** Default: 'exclusive'. */
  mode?: LockMode;
  /** Do not wait: the callback gets null if the lock is not free. */
  ifAvailable?: boolean;
  /** In ms. */
  timeout?: number;
  /** A time of performance.now(). */
  deadline?: number;
  signal?: AbortSignal;
}

/** A lock of a cluster, held by this environment. */
export interface RemoteLock extends AsyncDisposable {
  readonly name: string;
  readonly at: string;
  readonly mode: LockMode;
  /** Greater than those of all grants before: what is written to can refuse a token that is less than one before. */
  readonly token: bigint;
  /** In etcd, which exists as long as the lease. */
  readonly key: string;
  /** Aborted when the lease was lost: what the lock protects must stop. The reason is the error, VIGIL_ELOST. */
  readonly lost: AbortSignal;
  /** The previous holder was killed, or its environment or machine ended, while it held the lock. */
  readonly ownerDied: boolean;
  /** With ownerDied, that holder, if it is known. `takenAt` is as Date.now() counts, `text` is its command. */
  readonly owner:
    { readonly host: string; readonly pid: number; readonly takenAt: number; readonly text: string } | undefined;
  /** Whether release() was called. */
  readonly released: boolean;
  /** Resolved when it is released. Rejected if the lease was lost, or the cluster cannot be told. */
  release(): Promise<void>;
  /** After ownerDied: what the lock protects is in order again. Otherwise the next holder is told, too. */
  consistent(): void;
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
  /** The lock of a cluster, in one line with `vigil lock --at`. It needs libvigil-etcd. */
  request<T>(
    name: string, options: RemoteLockOptions & { ifAvailable?: false },
    callback: (lock: RemoteLock) => T): Promise<Awaited<T>>;
  request<T>(name: string, options: RemoteLockOptions, callback: (lock: RemoteLock | null) => T): Promise<Awaited<T>>;
  /** A lock to be released by release() or `await using`. Null only with `ifAvailable`, if the lock is not free. */
  acquire(name: string, options?: LockOptions & { ifAvailable?: false }): Promise<NamedLock>;
  acquire(name: string, options: LockOptions): Promise<NamedLock | null>;
  acquire(name: string, options: RemoteLockOptions & { ifAvailable?: false }): Promise<RemoteLock>;
  acquire(name: string, options: RemoteLockOptions): Promise<RemoteLock | null>;
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
