// SPDX-License-Identifier: MIT
'use strict';
// {timeout, deadline, signal, ref}: the options of everything that waits.

const { typeError } = require('./errors.js');

const DEFAULTS = Object.freeze({ timeout: Infinity, signal: undefined, ref: true });

function timeoutOf(options) {
  const { timeout, deadline } = options;
  if (timeout !== undefined && (typeof timeout !== 'number' || timeout !== timeout))
    throw typeError('timeout: expected a number of milliseconds');
  if (deadline === undefined) return timeout ?? Infinity;
  if (typeof deadline !== 'number' || deadline !== deadline)
    throw typeError('deadline: expected a time as performance.now() returns it');
  return Math.max(0, Math.min(timeout ?? Infinity, deadline - performance.now()));
}

function optionsOf(options) {
  if (options === undefined) return DEFAULTS;
  if (typeof options !== 'object' || options === null) throw typeError('expected an object of options');
  const { signal, ref } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw typeError('signal: expected an AbortSignal');
  return { timeout: timeoutOf(options), signal, ref: ref === undefined ? true : Boolean(ref) };
}

module.exports = { optionsOf };
