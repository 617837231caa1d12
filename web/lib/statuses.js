// SPDX-License-Identifier: MIT
// The errors for those statuses of the library (vigil/status.h) that it can return here.

import { VigilError, TimeoutError, NotHeldError, LimitError } from '../../node/lib/errors.js';

const STATUSES = {
  2: ['TIMED_OUT', 'the deadline passed first', TimeoutError],
  4: ['CANCELLED', 'ended by close()'],
  '-11': ['ECLOSING', 'this Vigil has been closed'],
  '-12': ['ENOMEM', 'the memory is full, and cannot grow any more', LimitError],
  '-13': ['ELIMIT', 'too many waiters or workers', LimitError],
  '-16': ['EINVAL', 'an argument has an invalid value'],
  '-18': ['ENOTHELD', 'not held, or not by this page or worker: release only what was acquired', NotHeldError],
  '-25': ['ECORRUPT', 'a worker was terminated, or a call threw, in the middle of a change to the shared memory, ' +
    'which cannot be used any more. Reload the page, and see vigil.terminate()'],
};
const UNKNOWN = ['ESYSTEM', 'unexpected'];

export const CANCELLED = 4, ECLOSING = -11, ENOMEM = -12, ECORRUPT = -25;

export function failure(status) {
  const [code, text, type = VigilError] = STATUSES[status] ?? UNKNOWN;
  return new type(`VIGIL_${code}`, text);
}
