// SPDX-License-Identifier: MIT
'use strict';
// What waits, on the native part: native/environment.h. Node and the browser have a native part each.

const { typeError } = require('./errors.js');

// The numbers of native/environment.h and native/holdings.c.
const KIND = { WAIT32: 0, WAIT64: 1, MUTEX: 2, READ: 3, WRITE: 4, PERMITS: 5, CONDITION: 6, BARRIER: 7, NAMED: 8,
  ONCE: 9 };
const HOLDING = { MUTEX: 1, COUNTED_MUTEX: 2, RWLOCK: 3, PERMITS: 4, ONCE: 5 };
const STATUS = {
  OK: 0, NOT_EQUAL: 1, TIMED_OUT: 2, PENDING: 3, CANCELLED: 4, LAST: 5, OWNER_DIED: 6, TERMINATED: 0x100,
  IS_NEW: 0x101,
  EIDLE: -6, ETOOLATE: -7, EINVAL: -16, ENOTHELD: -18, ENOTFOUND: -21, ENAME: -22, EBUSY: -29,
  ESTOLEN: -32, ELOST: -36,
};

const SCRATCH_BATCH = 1000;

// struct scratch of native/environment.h, at that offset of the buffer.
function scratchOf(buffer, offset) {
  return {
    numbers: new Float64Array(buffer, offset, 4), // address, second, timeout in ms, count
    wide: new BigInt64Array(buffer, offset + 32, 1),
    integers: new Int32Array(buffer, offset + 40, 6), // value, ref, id, entry, delivered
    batch: new Int32Array(buffer, offset + 64, 2 * SCRATCH_BATCH),
  };
}

/* What a wait becomes. */
const outcomeOf = (status) => (status === STATUS.OK ? 'ok' : 'timed-out');

/*
 * native      start, block, cancel, notify, release, signal, consistent, downgrade, holder, mine, threadId
 * memory      what words.js needs to know of arrays
 * scratch     as scratchOf returns it
 * holdings    {counts}: what this environment holds of each lock that is counted
 * track       (lock, what, address, array): the index of the lock's count there
 * canBlock    whether this thread may block
 * failure     (status): the error for it
 */
function createCore({ native, memory, scratch, holdings, track, canBlock, failure }) {
  const { numbers, wide, integers, batch } = scratch;

  // Pending operations, by their id: an object with settle(status); or, as there may be very many plain waits, the
  // function that resolves the promise of one. What is waited on is kept alive by `pins`, or the object.
  const pending = [], pins = [];

  function deliver(count) {
    for (let i = 0; i < count; i++) {
      const id = batch[2 * i];
      const operation = pending[id];
      pending[id] = undefined;
      integers[4] = i + 1;
      if (typeof operation === 'function') {
        pins[id] = undefined;
        operation(outcomeOf(batch[2 * i + 1]));
      } else {
        operation.settle(batch[2 * i + 1]);
      }
    }
  }

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

  /* The same for a plain wait on the array: resolve('ok') or resolve('timed-out') will be called. */
  function startWait(kind, array, resolve, ref) {
    integers[1] = ref ? 1 : 0;
    const status = native.start(kind);
    if (status === STATUS.PENDING) {
      const id = integers[2];
      pending[id] = resolve;
      pins[id] = array;
    }
    return status;
  }

  /* The native part cannot be used any more. */
  function rejectPending(error) {
    for (const operation of pending.splice(0)) {
      if (typeof operation === 'function') operation(Promise.reject(error));
      else if (operation !== undefined) operation.fail(error);
    }
    pins.length = 0;
  }

  /* Take it back: true if it will not be settled. */
  function cancel(operation) {
    if (native.cancel(operation.id) !== STATUS.OK) return false;
    pending[operation.id] = undefined;
    return true;
  }

  /*
   * One listener of each AbortSignal, for all operations that it may abort: Node warns of more than ten, and removing
   * one of many takes long.
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

    fail(error) {
      if (this.signal !== undefined) this.unlisten();
      this.reject(error);
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
    if (status !== STATUS.PENDING) return status < 0 ? Promise.reject(failure(status)) : Promise.resolve(status);
    operation.listen(aborted);
    return operation.promise;
  }

  /* Called first by what may block: it throws where that is not allowed, also if it would not have blocked. */
  function mayBlock() {
    if (!canBlock) throw typeError('blocking is not allowed on this thread: use the form that returns a promise');
  }

  /* The outcome of a wait that has been described in the scratch, when it is over. */
  function block(kind) {
    const status = native.block(kind);
    if (status < 0) throw failure(status);
    return status;
  }

  function isMine(address) {
    numbers[0] = address;
    return native.mine() !== 0;
  }

  return {
    native, memory, numbers, wide, integers, holdings, track,
    deliver, rejectPending, start, startWait, startAsync, cancel, operationsOf, mayBlock, block, isMine, Operation,
    failure,
  };
}

module.exports = { KIND, HOLDING, STATUS, outcomeOf, scratchOf, createCore };
