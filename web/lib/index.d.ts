// SPDX-License-Identifier: MIT
/// <reference lib="esnext.disposable" />
import type * as common from './common.js';

export type {
  Held, WaitResult, WaitAsyncResult, SemaphoreOptions, Mutex, AsyncLock, Lock, RwLock, Semaphore, Condition, Barrier,
} from './common.js';
export type { BlockOptions, LockTarget, WaitOptions } from './target.js';

/** What a worker needs to attach: send it by postMessage. */
export interface VigilHandle {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly id: string;
}

export interface CreateOptions {
  /** Shared memory to use, new and empty. Default: a new one, that grows up to 1 GiB. */
  memory?: WebAssembly.Memory;
  /** Where vigil.wasm is, or the module. Default: beside the script. */
  wasm?: string | URL | WebAssembly.Module;
  /**
   * Called if a worker was terminated in the middle of a change to the memory, or a call threw there. Default:
   * reportError.
   */
  onDamage?: (error: VigilError) => void;
}

/** A line of waiters. */
export interface SeenLine {
  /** Of the element, in bytes from the beginning of the memory. */
  readonly address: number;
  /** Its waiters want a lock. */
  readonly lock: boolean;
  readonly count: number;
  /** The first eight: which environment, and for how many milliseconds it has waited. */
  readonly waiters: readonly { readonly thread: number; readonly waited: number }[];
}

/** The library, on memory that a page and its workers share. Locks and words must be in that memory. */
export class Vigil {
  private constructor();
  /** On a page, or wherever the memory is made. This environment must live as long as the others. */
  static create(options?: CreateOptions): Promise<Vigil>;
  /** In a worker. */
  static attach(handle: VigilHandle): Promise<Vigil>;

  readonly handle: VigilHandle;
  readonly memory: WebAssembly.Memory;
  /** The number of this environment, as look() shows it. */
  readonly thread: number;

  /** Zeroed words in the memory, for locks and data. postMessage passes them on without a copy. */
  allocate(length: number): Int32Array;
  /** @throws TypeError if it is not what allocate() has returned, or is free already */
  free(array: Int32Array): void;
  /** How many wait for the element. */
  waiters(array: Int32Array | BigInt64Array, index?: number): number;
  /** The lines in which at least one waiter is; at most 256. */
  look(): SeenLine[];
  /**
   * Terminate the worker in which vigil.thread is that number, when it is not inside the library: nothing is damaged.
   * @throws VigilError if the worker does not come out for five seconds; it is terminated all the same
   * @throws TypeError in an environment that has not created the memory, or if the number is its own: the worker goes
   * on
   */
  terminate(worker: Worker, thread: number): void;
  /**
   * Reject what is pending, with VIGIL_CANCELLED, and give up what is held. Callbacks of executeLocked that wait are
   * not called. Nothing may be called afterwards.
   */
  close(): void;

  readonly wait: typeof common.wait;
  readonly waitAsync: typeof common.waitAsync;
  readonly notify: typeof common.notify;
  readonly Mutex: typeof common.Mutex;
  readonly AsyncLock: typeof common.AsyncLock;
  readonly Lock: typeof common.Lock;
  readonly RwLock: typeof common.RwLock;
  readonly Semaphore: typeof common.Semaphore;
  readonly Condition: typeof common.Condition;
  readonly Barrier: typeof common.Barrier;
}

export class VigilError extends Error {
  constructor(code: string, message: string, options?: ErrorOptions);
  /** The name of the status in vigil/status.h. */
  readonly code: string;
}
export class TimeoutError extends VigilError {}
export class NotHeldError extends VigilError {}
export class LimitError extends VigilError {}
