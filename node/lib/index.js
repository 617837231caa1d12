// SPDX-License-Identifier: MIT
'use strict';

const core = require('./native.js');
const { createWords } = require('./words.js');
const { createWaits } = require('./atomics.js');
const { createDropIn } = require('./dropin.js');
const { createMutexes } = require('./mutex.js');
const { createLocks } = require('./sync.js');
const { createOnce } = require('./once.js');
const { locks } = require('./named.js');
const { Segment } = require('./segment.js');
const { VigilError, TimeoutError, NotHeldError, SegmentError, LimitError } = require('./errors.js');

const words = createWords(core.memory);
const { wait, notify, waitAsync, parts } = createWaits(core, words);
const { createAtomics } = createDropIn(parts);
const { Mutex, AsyncLock, Lock } = createMutexes(core, words);
const { RwLock, Semaphore, Condition, Barrier } = createLocks(core, words, { Mutex });
const { Once } = createOnce(core, words);

module.exports = {
  wait, notify, waitAsync, Atomics: createAtomics(), createAtomics,
  AsyncLock, Lock, Mutex, RwLock, Semaphore, Condition, Barrier, Once,
  locks, Segment,
  VigilError, TimeoutError, NotHeldError, SegmentError, LimitError,
};
