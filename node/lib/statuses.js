// SPDX-License-Identifier: MIT
'use strict';
// The errors for the statuses of the library.

const { VigilError, TimeoutError, NotHeldError, SegmentError, LimitError } = require('./errors.js');

const CLASSES = {
  'timed-out': TimeoutError,
  'not-held': NotHeldError, 'stolen': NotHeldError,
  'limit-reached': LimitError, 'out-of-memory': LimitError,
  'exists': SegmentError, 'not-found': SegmentError, 'bad-name': SegmentError, 'foreign': SegmentError,
  'truncated': SegmentError, 'corrupt': SegmentError, 'other-version': SegmentError, 'other-machine': SegmentError,
  'other-owner': SegmentError, 'file-system': SegmentError, 'busy': SegmentError,
};
const CODES = {
  'timed-out': 'VIGIL_TIMED_OUT', 'cancelled': 'VIGIL_CANCELLED', 'null-pointer': 'VIGIL_ENULL',
  'misaligned': 'VIGIL_EMISALIGNED', 'may-not-block': 'VIGIL_EMAYNOTBLOCK', 'in-use': 'VIGIL_EINUSE',
  'forked': 'VIGIL_EFORKED', 'closing': 'VIGIL_ECLOSING', 'out-of-memory': 'VIGIL_ENOMEM',
  'limit-reached': 'VIGIL_ELIMIT', 'out-of-range': 'VIGIL_ERANGE', 'invalid': 'VIGIL_EINVAL',
  'system': 'VIGIL_ESYSTEM', 'not-held': 'VIGIL_ENOTHELD', 'deadlock': 'VIGIL_EDEADLOCK', 'exists': 'VIGIL_EEXISTS',
  'not-found': 'VIGIL_ENOTFOUND', 'bad-name': 'VIGIL_ENAME', 'foreign': 'VIGIL_EFOREIGN',
  'truncated': 'VIGIL_ETRUNCATED', 'corrupt': 'VIGIL_ECORRUPT', 'other-version': 'VIGIL_EVERSION',
  'other-machine': 'VIGIL_EMACHINE', 'other-owner': 'VIGIL_EOWNER', 'file-system': 'VIGIL_EFILESYSTEM',
  'busy': 'VIGIL_EBUSY', 'other-copy': 'VIGIL_ECOPIES', 'stolen': 'VIGIL_ESTOLEN', 'unreachable': 'VIGIL_EUNREACHABLE',
  'refused': 'VIGIL_EREFUSED', 'other-protocol': 'VIGIL_EPROTOCOL', 'lost': 'VIGIL_ELOST',
};

/* The error for a status of the library: its text says what to do. `why`, unless it is empty, says what happened. */
function failure(native, status, why) {
  const name = native.statusName(status);
  const type = CLASSES[name] ?? VigilError;
  return new type(CODES[name] ?? 'VIGIL_ESYSTEM', `${name}: ${why || native.statusText(status)}`);
}

module.exports = { failure };
