// SPDX-License-Identifier: MIT
// What differs from the package for the browser in arguments of what both have: common.d.ts.
import type { Segment } from './index.js';

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
