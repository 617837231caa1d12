// SPDX-License-Identifier: MIT
'use strict';
// The native part: loading it, and what both sides share. See native/environment.h.

const path = require('node:path');
const { VigilError, failure } = require('./errors.js');

// The C library decides which of the two can be loaded: the other one lacks its libraries.
function load() {
  if (process.platform !== 'linux')
    throw new VigilError('VIGIL_EMACHINE', `@vigil/node is for Linux, not for ${process.platform}`);
  const errors = [];
  for (const libc of ['glibc', 'musl']) {
    const file = path.join(__dirname, '..', 'prebuilds', `linux-${process.arch}-${libc}.node`);
    try {
      return require(file);
    } catch (error) {
      errors.push(error.message);
    }
  }
  throw new VigilError('VIGIL_EMACHINE', `no binary of @vigil/node for linux-${process.arch} can be loaded: ` +
    `${errors.join('; ')}. In a checkout of Vigil, \`make node\` builds it`);
}

const native = load();

// The numbers of native/environment.h and native/holdings.c.
const KIND = { WAIT32: 0, WAIT64: 1, MUTEX: 2, READ: 3, WRITE: 4, PERMITS: 5, CONDITION: 6, BARRIER: 7, NAMED: 8 };
const HOLDING = { MUTEX: 1, COUNTED_MUTEX: 2, RWLOCK: 3, PERMITS: 4 };
const STATUS = {
  OK: 0, NOT_EQUAL: 1, TIMED_OUT: 2, PENDING: 3, CANCELLED: 4, LAST: 5, OWNER_DIED: 6, TERMINATED: 0x100,
  EIDLE: -6, ETOOLATE: -7, EINVAL: -16, ENOTHELD: -18, ENOTFOUND: -21, EBUSY: -29,
};

// struct scratch of native/environment.h.
const scratch = new ArrayBuffer(native.scratchBytes);
const numbers = new Float64Array(scratch, 0, 4); // address, second, timeout in ms, count
const wide = new BigInt64Array(scratch, 32, 1);
const integers = new Int32Array(scratch, 40, 6); // value, ref, id, entry, delivered
const batch = new Int32Array(scratch, 64);

// Pending operations, by their id: what to call with the outcome.
const pending = [];

function deliver(count) {
  for (let i = 0; i < count; i++) {
    const id = batch[2 * i];
    const operation = pending[id];
    pending[id] = undefined;
    integers[4] = i + 1;
    operation.settle(batch[2 * i + 1]);
  }
}

native.setup(scratch, deliver, () => {});

/*
 * Start an asynchronous wait. The caller has filled in the scratch, except for `ref`. `operation.settle(status)` will
 * be called if VIGIL_PENDING is returned; until then `operation` keeps the memory alive that is waited on.
 */
function start(kind, operation, ref) {
  integers[1] = ref ? 1 : 0;
  const status = native.start(kind);
  if (status === STATUS.PENDING) {
    operation.id = integers[2];
    pending[operation.id] = operation;
  }
  return status;
}

/* Take it back: true if it will not be settled. */
function cancel(operation) {
  if (native.cancel(operation.id) !== STATUS.OK) return false;
  pending[operation.id] = undefined;
  return true;
}

/*
 * One listener of each AbortSignal, for all operations that it may abort: Node warns of more than ten, and removing one
 * of many takes long.
 */
const abortable = new WeakMap(); // AbortSignal -> Set of operations

function operationsOf(signal) {
  const known = abortable.get(signal);
  if (known !== undefined) return known;
  const operations = new Set();
  abortable.set(signal, operations);
  signal.addEventListener('abort', () => {
    for (const operation of [...operations]) operation.onAbort();
    operations.clear();
  }, { once: true });
  return operations;
}

// The functions of the promise that was made last: one function for all promises, because making one takes time.
let resolveLast, rejectLast;
const capture = (resolve, reject) => {
  resolveLast = resolve;
  rejectLast = reject;
};

/* An operation that is a promise: resolved with the status, or rejected by its AbortSignal. */
class Operation {
  constructor(pin, signal) {
    this.pin = pin;
    this.id = -1;
    this.signal = signal;
    this.aborted = undefined;
    this.promise = new Promise(capture);
    this.resolve = resolveLast;
    this.reject = rejectLast;
  }

  settle(status) {
    if (this.signal !== undefined) this.unlisten();
    this.resolve(status);
  }

  /* `aborted()`, unless undefined, is called first, and waited for. */
  listen(aborted) {
    if (this.signal === undefined) return;
    this.aborted = aborted;
    operationsOf(this.signal).add(this);
  }

  unlisten() {
    operationsOf(this.signal).delete(this);
  }

  onAbort() {
    if (!cancel(this)) return; // it has been given what it waited for
    const reject = () => this.reject(this.signal.reason);
    if (this.aborted) this.aborted().then(reject, reject);
    else reject();
  }
}

/* The promise of the outcome of a wait that has been described in the scratch. */
function startAsync(kind, pin, options, aborted) {
  const operation = new Operation(pin, options.signal);
  const status = start(kind, operation, options.ref);
  if (status !== STATUS.PENDING) return status < 0 ? Promise.reject(failure(native, status)) : Promise.resolve(status);
  operation.listen(aborted);
  return operation.promise;
}

/* The outcome of a wait that has been described in the scratch, when it is over. */
function block(kind) {
  const status = native.block(kind);
  if (status < 0) throw failure(native, status);
  return status;
}

// What this environment holds of locks whose words do not say so: see native/holdings.c. The native part counts what it
// takes and releases, by the entry in the scratch; JavaScript, what it takes and releases itself.
const holdings = { counts: new Int32Array(1024) };
native.counts(holdings.counts);

// Locks that are gone but were never released stay held, until the environment ends.
const neverReleased = new Set();
const forget = new FinalizationRegistry((holding) => {
  const held = holding.what === HOLDING.MUTEX ? isMine(holding.address) : holdings.counts[holding.entry] !== 0;
  if (held) neverReleased.add(holding);
  else native.untrack(holding.entry);
});

function isMine(address) {
  numbers[0] = address;
  return native.mine();
}

/* Remember that this environment may hold the lock. Returns the index of its count. */
function track(lock, what, address, array) {
  numbers[0] = address;
  const entry = native.track(what);
  if (entry < 0) throw failure(native, entry);
  if (entry >= holdings.counts.length) {
    const longer = new Int32Array(holdings.counts.length * 2);
    longer.set(holdings.counts);
    holdings.counts = longer;
    native.counts(longer);
  }
  holdings.counts[entry] = 0;
  forget.register(lock, { what, address, entry, array }); // the array keeps the memory alive until then
  return entry;
}

module.exports = {
  native, KIND, HOLDING, STATUS, numbers, wide, integers, holdings,
  start, startAsync, cancel, block, track, isMine, Operation,
  failure: (status) => failure(native, status),
};
