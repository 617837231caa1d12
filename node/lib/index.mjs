// SPDX-License-Identifier: MIT
import vigil from './index.js';

export const {
  wait, notify, waitAsync, Atomics, createAtomics,
  AsyncLock, Lock, Mutex, RwLock, Semaphore, Condition, Barrier, Once,
  locks, Segment,
  VigilError, TimeoutError, NotHeldError, SegmentError, LimitError,
} = vigil;
export default vigil;
