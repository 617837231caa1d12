// SPDX-License-Identifier: MIT
// What differs from the package for Node in arguments of what both have: common.d.ts.

/** Where a lock is: an array on Vigil's memory, or all of that. */
export type LockTarget = Int32Array | SharedArrayBuffer;

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
}
