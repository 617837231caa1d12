// SPDX-License-Identifier: MIT
'use strict';

const { wait, notify, waitAsync, createAtomics } = require('./atomics.js');
const { Mutex, AsyncLock, Lock } = require('./mutex.js');
const { RwLock, Semaphore, Condition, Barrier, Once } = require('./sync.js');
const { locks } = require('./named.js');
const { Segment } = require('./segment.js');
const { VigilError, TimeoutError, NotHeldError, SegmentError, LimitError } = require('./errors.js');

module.exports = {
  wait, notify, waitAsync, Atomics: createAtomics(), createAtomics,
  AsyncLock, Lock, Mutex, RwLock, Semaphore, Condition, Barrier, Once,
  locks, Segment,
  VigilError, TimeoutError, NotHeldError, SegmentError, LimitError,
};
