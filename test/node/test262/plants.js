// SPDX-License-Identifier: MIT
'use strict';
// Bugs to plant in an Atomics object, each with a file that must find it: test262.js --self-test.

const { load } = Atomics;

const plants = {
  'notify-counts-one-more': {
    file: 'Atomics/notify/notify-zero.js',
    bug: ({ notify }) => ({ notify: (...rest) => notify(...rest) + 1 }),
  },
  'notify-wakes-one-more': {
    file: 'Atomics/notify/notify-one.js',
    bug: ({ notify }) => ({
      notify: (array, index, count) => notify(array, index, count === undefined ? count : Number(count) + 1),
    }),
  },
  'wrong-error': {
    file: 'Atomics/wait/non-int32-typedarray-throws.js',
    bug: ({ wait }) => ({
      wait(...rest) {
        try {
          return wait(...rest);
        } catch (error) {
          throw error instanceof TypeError ? new RangeError(error.message) : error;
        }
      },
    }),
  },
  'wrong-order': {
    file: 'Atomics/wait/out-of-range-index-throws.js',
    bug: ({ wait }) => ({ wait: (array, index, value, timeout) => wait(array, index, Number(value), timeout) }),
  },
  'length-after-index': {
    file: 'Atomics/wait/retrieve-length-before-index-coercion.js',
    bug: ({ wait }) => ({ wait: (array, index, value, timeout) => wait(array, Number(index), value, timeout) }),
  },
  'early-timeout': {
    file: 'Atomics/wait/no-spurious-wakeup-no-operation.js',
    bug: ({ wait }) => ({ wait: (array, index, value, timeout) => wait(array, index, value, timeout / 2) }),
  },
  'spurious-wakeup': {
    file: 'Atomics/waitAsync/no-spurious-wakeup-on-add.js',
    bug: ({ waitAsync }) => ({
      waitAsync(...rest) {
        const result = waitAsync(...rest);
        return result.async ? { async: true, value: Promise.race([result.value, after(50)]) } : result;
      },
    }),
  },
  'not-compared': {
    file: 'Atomics/waitAsync/returns-result-object-value-is-string-not-equal.js',
    bug: ({ waitAsync }) => ({
      waitAsync: (array, index, value, timeout) => waitAsync(array, index, load(array, index), timeout),
    }),
  },
  'never-resolved': {
    file: 'Atomics/waitAsync/true-for-timeout.js',
    bug: ({ waitAsync }) => ({
      waitAsync(...rest) {
        const result = waitAsync(...rest);
        return result.async ? { async: true, value: new Promise(() => {}) } : result;
      },
    }),
  },
  'crash': {
    file: 'Atomics/notify/non-shared-bufferdata-count-evaluation-throws.js',
    bug: () => ({ notify: () => process.kill(process.pid, 'SIGTERM') }),
  },
};

const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms, 'ok'));

/* The object, with the bug of that name in it; without a name as it is. */
function plant(name, atomics) {
  if (name === undefined) return atomics;
  const { wait, waitAsync, notify } = atomics;
  for (const [method, bug] of Object.entries(plants[name].bug({ wait, waitAsync, notify }))) {
    const wrong = { [method](...rest) { return bug(...rest); } }[method];
    Object.defineProperty(wrong, 'length', { value: atomics[method].length, configurable: true });
    atomics[method] = wrong;
  }
  return atomics;
}

module.exports = { plant, plants };
