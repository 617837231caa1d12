// SPDX-License-Identifier: MIT
'use strict';

/* The base of all errors of this package. `code` is the name of the status in vigil/status.h. */
class VigilError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.code = code;
  }
  get name() { return this.constructor.name; }
  static name = 'VigilError'; // also where the names of classes are made shorter
}

/* The timeout passed first; nothing was acquired. */
class TimeoutError extends VigilError { static name = 'TimeoutError'; }
/* Released what is not held, or not by this environment. */
class NotHeldError extends VigilError { static name = 'NotHeldError'; }
/* A segment or a name is missing, exists already, is damaged, or belongs to another user or version. */
class SegmentError extends VigilError { static name = 'SegmentError'; }
/* Too many waiters, segments or members, or not enough memory. */
class LimitError extends VigilError { static name = 'LimitError'; }

/* Wrong arguments, as Node's own functions have them. */
function typeError(message) {
  return Object.assign(new TypeError(message), { code: 'VIGIL_ETYPE' });
}
function rangeError(message) {
  return Object.assign(new RangeError(message), { code: 'VIGIL_ERANGE' });
}

/* The memory of a lock is gone: its array is detached. */
function closedError() {
  return new SegmentError('VIGIL_EINVAL', 'the segment of the lock has been closed');
}
function checkCallback(callback) {
  if (typeof callback !== 'function') throw typeError('expected a function to call');
}

module.exports = {
  VigilError, TimeoutError, NotHeldError, SegmentError, LimitError,
  typeError, rangeError, closedError, checkCallback,
};
