// SPDX-License-Identifier: MIT
import type { CreateOptions as Options, Vigil as Common, VigilHandle } from './vigil.js';

export type {
  BlockOptions, LockTarget, WaitOptions, Held, WaitResult, WaitAsyncResult, SemaphoreOptions, SeenLine, VigilHandle,
  Mutex, AsyncLock, Lock, RwLock, Semaphore, Condition, Barrier,
} from './vigil.js';
export { VigilError, TimeoutError, NotHeldError, LimitError } from './vigil.js';

export interface CreateOptions extends Omit<Options, 'memory'> {
  /** Shared memory of another program. */
  memory: WebAssembly.Memory;
  /** The first byte in it that the program has reserved for Vigil: a multiple of 64. It is cleared. */
  base: number;
  /**
   * How many bytes from there on: at least 2 MiB, which is the default, for four environments that wait, and 255 kB for
   * each one more. Vigil uses no others.
   */
  bytes?: number;
}

/** As in '@vigil/web'. */
export type Vigil = Common;
export const Vigil: {
  create(options: CreateOptions): Promise<Vigil>;
  attach(handle: VigilHandle): Promise<Vigil>;
};
