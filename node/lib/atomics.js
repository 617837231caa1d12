// SPDX-License-Identifier: MIT
'use strict';
// Atomics.wait, notify and waitAsync, as in ECMA-262, on Vigil's lines; and the same with options.

const { KIND, STATUS, outcomeOf } = require('./core.js');
const { lengthOf } = require('./words.js');
const { optionsOf } = require('./options.js');
const { typeError, rangeError } = require('./errors.js');

const { load } = Atomics; // the functions as they were when this was loaded

/* The functions, on that core and its words. */
function createWaits(core, { viewOf }) {
  const { native, numbers, wide, integers, start, startWait, mayBlock, block, failure, Operation } = core;

  /* ValidateAtomicAccess: the length is read before the index is converted. */
  function indexOf(array, index) {
    const length = lengthOf(array);
    if (typeof index !== 'number' || index >>> 0 !== index) {
      index = index === undefined ? 0 : Math.trunc(+index) || 0; // ToIndex
      if (index < 0 || index > Number.MAX_SAFE_INTEGER) throw rangeError('the index is out of range');
    }
    if (index >= length) throw rangeError('the index is out of range');
    return index;
  }

  function waitableView(array) {
    const view = viewOf(array);
    if (view === undefined) throw typeError('the array is not on shared memory');
    return view;
  }

  /* Only to be thrown away: BigInt.asIntN converts as ToBigInt64 does. */
  const toExpected = (view, value) => (view.is64 ? BigInt.asIntN(64, value) : value | 0);

  function toTimeout(timeout) {
    const ms = timeout === undefined ? Infinity : +timeout;
    return ms !== ms ? Infinity : Math.max(ms, 0);
  }

  function describe(view, index, expected, timeout) {
    numbers[0] = view.address + index * view.bytes;
    numbers[2] = timeout;
    if (view.is64) wide[0] = expected;
    else integers[0] = expected;
  }

  function doWait(view, index, expected, timeout) {
    if (load(view.array, index) !== expected) return 'not-equal';
    describe(view, index, expected, timeout);
    const status = block(view.is64 ? KIND.WAIT64 : KIND.WAIT32);
    return status === STATUS.OK ? 'ok' : status === STATUS.NOT_EQUAL ? 'not-equal' : 'timed-out';
  }

  /* A wait with an AbortSignal. */
  class AbortableWaiting extends Operation {
    settle(status) {
      super.settle(outcomeOf(status));
    }
  }

  // One function for all promises, because making one takes time.
  let resolveLast;
  const capture = (resolve) => { resolveLast = resolve; };

  /* The result of waitAsync if the promise is not needed. */
  function immediately(status) {
    if (status < 0) throw failure(status);
    return { async: false, value: status === STATUS.NOT_EQUAL ? 'not-equal' : 'timed-out' };
  }

  function doWaitAsync(view, index, expected, timeout, signal, ref) {
    if (load(view.array, index) !== expected) return immediately(STATUS.NOT_EQUAL);
    if (timeout === 0) return immediately(STATUS.TIMED_OUT);
    if (signal !== undefined) return waitAbortably(view, index, expected, timeout, signal, ref);
    const promise = new Promise(capture);
    describe(view, index, expected, timeout);
    const status = startWait(view.is64 ? KIND.WAIT64 : KIND.WAIT32, view.array, resolveLast, ref);
    return status === STATUS.PENDING ? { async: true, value: promise } : immediately(status);
  }

  function waitAbortably(view, index, expected, timeout, signal, ref) {
    const operation = new AbortableWaiting(view.array, signal);
    describe(view, index, expected, timeout);
    const status = start(view.is64 ? KIND.WAIT64 : KIND.WAIT32, operation, ref);
    if (status !== STATUS.PENDING) return immediately(status);
    operation.listen();
    return { async: true, value: operation.promise };
  }

  function toCount(count) {
    if (count === undefined) return Infinity;
    const integer = Math.trunc(+count) || 0;
    return integer > 0 ? integer : 0;
  }

  function doNotify(view, index, count) {
    numbers[0] = view.address + index * view.bytes;
    numbers[3] = count;
    native.notify();
    if (numbers[3] < 0) throw failure(numbers[3]);
    return numbers[3];
  }

  /* waitAsync takes {timeout, deadline, signal, ref} in place of a timeout. */
  function wait(array, index, value, timeout) {
    const view = waitableView(array), i = indexOf(array, index), expected = toExpected(view, value);
    const ms = toTimeout(timeout);
    mayBlock();
    return doWait(view, i, expected, ms);
  }

  function notify(array, index, count) {
    const view = viewOf(array), i = indexOf(array, index);
    if (view === undefined) throw typeError('the array is not on shared memory');
    return doNotify(view, i, count === undefined ? Infinity : toCount(count));
  }

  function waitAsync(array, index, value, timeout) {
    const view = waitableView(array), i = indexOf(array, index), expected = toExpected(view, value);
    if (typeof timeout !== 'object' || timeout === null)
      return doWaitAsync(view, i, expected, toTimeout(timeout), undefined, true);
    const options = optionsOf(timeout);
    if (options.signal?.aborted) return { async: true, value: Promise.reject(options.signal.reason) };
    return doWaitAsync(view, i, expected, Math.max(options.timeout, 0), options.signal, options.ref);
  }

  return {
    wait, notify, waitAsync,
    parts: { waitableView, viewOf, indexOf, toExpected, toTimeout, toCount, doWait, doWaitAsync, doNotify },
  };
}

module.exports = { createWaits };
