// SPDX-License-Identifier: MIT
'use strict';
// An Atomics object like the global one, on Vigil's lines.

const { typeError } = require('./errors.js');

const NotBlockable = 'Atomics.wait cannot be called where blocking is not allowed';

/* `parts`: those of atomics.js. */
function createDropIn(parts) {
  const { waitableView, viewOf, indexOf, toExpected, toTimeout, toCount, doWait, doWaitAsync, doNotify } = parts;

  /* An object with all of the standard's functions. Methods cannot be constructed, as the standard's cannot. */
  function createAtomics({ canBlock = true } = {}) {
    const functions = {
      wait(array, index, value, timeout) {
        const view = waitableView(array), i = indexOf(array, index), expected = toExpected(view, value);
        const ms = toTimeout(timeout);
        if (!canBlock) throw typeError(NotBlockable);
        return doWait(view, i, expected, ms);
      },
      waitAsync(array, index, value, timeout) {
        const view = waitableView(array), i = indexOf(array, index), expected = toExpected(view, value);
        return doWaitAsync(view, i, expected, toTimeout(timeout), undefined, true);
      },
      notify(array, index, count) {
        const view = viewOf(array), i = indexOf(array, index), most = toCount(count);
        return view === undefined ? 0 : doNotify(view, i, most);
      },
    };
    const lengths = { wait: 4, waitAsync: 4, notify: 3 };
    for (const name of Object.keys(functions))
      Object.defineProperty(functions[name], 'length', { value: lengths[name], configurable: true });
    const all = Object.getOwnPropertyDescriptors(Atomics);
    for (const name of Object.keys(functions))
      all[name] = { value: functions[name], writable: true, enumerable: false, configurable: true };
    return Object.create(Object.prototype, all);
  }

  return { createAtomics };
}

module.exports = { createDropIn };
