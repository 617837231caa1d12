// SPDX-License-Identifier: MIT
'use strict';
// RwLock, Semaphore, Condition and Barrier: blocking (…Sync), and as promises.

const { KIND, HOLDING, STATUS } = require('./core.js');
const { optionsOf } = require('./options.js');
const { held } = require('./held.js');
const { typeError, rangeError, closedError, checkCallback } = require('./errors.js');

const { compareExchange, load, store } = Atomics;

/* The classes, on that core and its words. */
function createLocks(core, { wordOf }, { Mutex }) {
  const { native, numbers, integers, holdings, startAsync, mayBlock, block, track, failure } = core;

  /* What to wait for, or to release: in the scratch. The native part counts it, unless `entry` is -1. */
  function describe(word, timeout, value, entry) {
    if (word.array.length === 0) throw closedError();
    numbers[0] = word.address;
    numbers[2] = timeout;
    integers[0] = value;
    integers[3] = entry;
  }

  function check(status) {
    if (status !== STATUS.OK && status !== STATUS.OWNER_DIED) throw failure(status);
    return status === STATUS.OWNER_DIED;
  }

  function release(kind, word, value, entry) {
    describe(word, 0, value, entry);
    check(native.release(kind));
  }

  function aborted(options) {
    return options.signal?.aborted ? Promise.reject(options.signal.reason) : undefined;
  }

  async function run(acquire, callback) {
    checkCallback(callback);
    const release = await acquire();
    try {
      return await callback();
    } finally {
      release();
    }
  }

  /* Many readers or one writer. What an environment has locked, it must unlock itself. */
  class RwLock {
    #word; #array; #index; #fast; #entry;

    constructor(target, index = 0) {
      const word = wordOf(target, index, 1, 'RwLock');
      this.#word = word;
      this.#array = word.array;
      this.#index = index;
      this.#fast = word.segment === undefined; // in a segment it is written down which process holds it
      this.#entry = track(this, HOLDING.RWLOCK, word.address, word.array);
    }

    get array() { return this.#array; }
    get index() { return this.#index; }

    #tryRead() {
      if (!this.#fast) return false;
      const seen = load(this.#array, this.#index);
      if ((seen & 0x8000000f) !== 0) return false; // a writer, waiters, or an owner that died
      if (compareExchange(this.#array, this.#index, seen, seen + 16) !== seen) return false;
      holdings.counts[this.#entry]++;
      return true;
    }

    #tryWrite() {
      if (!this.#fast || compareExchange(this.#array, this.#index, 0, 1) !== 0) return false;
      holdings.counts[this.#entry] = -1;
      return true;
    }

    #granted(kind, status) {
      return this.#held(kind, check(status));
    }

    #held(kind, died) {
      return held(() => (kind === KIND.READ ? this.readUnlock() : this.writeUnlock()), died);
    }

    #acquireSync(kind, taken, options) {
      if (taken) return this.#held(kind, false);
      describe(this.#word, optionsOf(options).timeout, 0, this.#entry);
      return this.#granted(kind, block(kind));
    }

    #acquire(kind, taken, given) {
      if (taken) return Promise.resolve(this.#held(kind, false));
      const options = optionsOf(given);
      describe(this.#word, options.timeout, 0, this.#entry);
      return aborted(options) ?? startAsync(kind, this.#array, options).then((status) => this.#granted(kind, status));
    }

    acquireRead(options) { return this.#acquire(KIND.READ, options === undefined && this.#tryRead(), options); }
    acquireWrite(options) { return this.#acquire(KIND.WRITE, options === undefined && this.#tryWrite(), options); }
    acquireReadSync(options) {
      mayBlock();
      return this.#acquireSync(KIND.READ, this.#tryRead(), options);
    }
    acquireWriteSync(options) {
      mayBlock();
      return this.#acquireSync(KIND.WRITE, this.#tryWrite(), options);
    }

    #tryAcquire(kind, taken) {
      if (taken) return this.#held(kind, false);
      describe(this.#word, 0, 0, this.#entry);
      const status = block(kind);
      return status === STATUS.TIMED_OUT ? undefined : this.#granted(kind, status);
    }

    tryAcquireRead() { return this.#tryAcquire(KIND.READ, this.#tryRead()); }
    tryAcquireWrite() { return this.#tryAcquire(KIND.WRITE, this.#tryWrite()); }

    read(callback, options) { return run(() => this.acquireRead(options), callback); }
    write(callback, options) { return run(() => this.acquireWrite(options), callback); }

    readUnlock() {
      if (holdings.counts[this.#entry] <= 0) throw failure(STATUS.ENOTHELD);
      const seen = this.#fast ? load(this.#array, this.#index) : 15;
      const counted = (seen & 0x0ffffff0) !== 0 && (seen & 0x1000000f) === 0; // not in a lane: src/sync/lanes.h
      if (counted && compareExchange(this.#array, this.#index, seen, seen - 16) === seen)
        holdings.counts[this.#entry]--;
      else release(KIND.READ, this.#word, 0, this.#entry);
    }

    writeUnlock() {
      if (holdings.counts[this.#entry] >= 0) throw failure(STATUS.ENOTHELD);
      if (this.#fast && compareExchange(this.#array, this.#index, 1, 0) === 1) holdings.counts[this.#entry] = 0;
      else release(KIND.WRITE, this.#word, 0, this.#entry);
    }

    /* From writing to reading, without another writer in between. What acquireWrite gave must not be released then. */
    downgrade() {
      if (holdings.counts[this.#entry] >= 0) throw failure(STATUS.ENOTHELD);
      describe(this.#word, 0, 0, this.#entry);
      check(native.downgrade());
    }

    consistent() {
      if (holdings.counts[this.#entry] >= 0) throw failure(STATUS.ENOTHELD);
      describe(this.#word, 0, 0, -1);
      check(native.consistent(KIND.WRITE));
    }
  }

  const MOST_PERMITS = 0xfffffff;

  function permitsOf(permits) {
    if (!Number.isInteger(permits) || permits < 0 || permits > MOST_PERMITS)
      throw rangeError(`permits: expected an integer from 0 to ${MOST_PERMITS}`);
    return permits;
  }

  /*
   * n at a time. Permits that an environment has acquired and not released come back when it ends, and only those may
   * be released; with {leased: false} any environment may release any number, as for a count of jobs.
   */
  class Semaphore {
    #word; #array; #index; #leased; #fast; #entry;

    static initialize(target, index, permits, { leased = true } = {}) {
      const word = wordOf(target, index, 1, 'Semaphore');
      store(word.array, index, (permitsOf(permits) << 4) | (leased && word.segment !== undefined ? 8 : 0));
    }

    constructor(target, index = 0, { leased = true } = {}) {
      const isNew = typeof target === 'number';
      if (isNew && typeof index === 'object') leased = index.leased ?? leased;
      const word = isNew ? wordOf(undefined, 0, 1, 'Semaphore') : wordOf(target, index, 1, 'Semaphore');
      if (target === undefined) throw typeError('Semaphore: say how many permits, or where the semaphore is');
      if (isNew) store(word.array, 0, permitsOf(target) << 4);
      this.#word = word;
      this.#array = word.array;
      this.#index = word.index;
      this.#leased = leased;
      this.#fast = word.segment === undefined;
      this.#entry = leased ? track(this, HOLDING.PERMITS, word.address, word.array) : -1;
    }

    get array() { return this.#array; }
    get index() { return this.#index; }
    get permits() {
      if (this.#array.length === 0) throw closedError();
      return load(this.#array, this.#index) >>> 4;
    }

    #permits(permits) {
      if (permitsOf(permits) === 0) throw rangeError('permits: at least 1');
      return permits;
    }

    #try(permits) {
      if (!this.#fast) return false;
      const seen = load(this.#array, this.#index);
      if ((seen & 14) !== 0 || seen >>> 4 < permits) return false;
      if (compareExchange(this.#array, this.#index, seen, seen - (permits << 4)) !== seen) return false;
      if (this.#leased) holdings.counts[this.#entry] += permits;
      return true;
    }

    #granted(permits, status) {
      check(status);
      return this.#held(permits);
    }

    #held(permits) {
      return held(() => this.release(permits), false);
    }

    acquire(permits = 1, given) {
      this.#permits(permits);
      if (given === undefined && this.#try(permits)) return Promise.resolve(this.#held(permits));
      const options = optionsOf(given);
      describe(this.#word, options.timeout, permits, this.#entry);
      return aborted(options) ??
        startAsync(KIND.PERMITS, this.#array, options).then((status) => this.#granted(permits, status));
    }

    acquireSync(permits = 1, options) {
      mayBlock();
      if (this.#try(this.#permits(permits))) return this.#held(permits);
      describe(this.#word, optionsOf(options).timeout, permits, this.#entry);
      return this.#granted(permits, block(KIND.PERMITS));
    }

    tryAcquire(permits = 1) {
      if (this.#try(this.#permits(permits))) return this.#held(permits);
      describe(this.#word, 0, permits, this.#entry);
      const status = block(KIND.PERMITS);
      return status === STATUS.TIMED_OUT ? undefined : this.#granted(permits, status);
    }

    release(permits = 1) {
      this.#permits(permits);
      if (this.#leased && holdings.counts[this.#entry] < permits) throw failure(STATUS.ENOTHELD);
      const seen = this.#fast ? load(this.#array, this.#index) : 9;
      const simple = (seen & 9) === 0 && permits <= MOST_PERMITS - (seen >>> 4);
      if (!simple || compareExchange(this.#array, this.#index, seen, seen + (permits << 4)) !== seen)
        release(KIND.PERMITS, this.#word, permits, this.#entry);
      else if (this.#leased) holdings.counts[this.#entry] -= permits;
    }

    runExclusive(callback, permits = 1, options) {
      return run(() => this.acquire(permits, options), callback);
    }
  }

  /* Release a mutex and wait, in one step, until another environment signals a change. */
  class Condition {
    #word;

    constructor(target, index = 0) {
      this.#word = wordOf(target, index, 1, 'Condition');
    }

    get array() { return this.#word.array; }
    get index() { return this.#word.index; }

    #describe(word, timeout) {
      word.checkHeld();
      describe(this.#word, timeout, word.counted ? 0 : 1, word.counted ? word.entry : -1);
      numbers[1] = word.address;
    }

    #ended(status) {
      if (status < 0 || status === STATUS.CANCELLED) throw failure(status);
      return status === STATUS.TIMED_OUT ? 'timed-out' : 'ok';
    }

    /* Block until it is signalled: 'ok', or 'timed-out'. The mutex is held again in both cases. */
    wait(mutex, options) {
      mayBlock();
      const word = Mutex.wordOf(mutex), { timeout } = optionsOf(options);
      this.#describe(word, timeout);
      return this.#ended(block(KIND.CONDITION));
    }

    /* The same as a promise. It is rejected, if it is aborted, when the mutex is held again. */
    waitAsync(mutex, given) {
      const word = Mutex.wordOf(mutex), options = optionsOf(given);
      const already = aborted(options);
      if (already) return already;
      this.#describe(word, options.timeout);
      const pin = [this.#word.array, word.array];
      return startAsync(KIND.CONDITION, pin, options, () => mutex.lockAsync()).then((status) => this.#ended(status));
    }

    #signal(value) {
      describe(this.#word, 0, value, -1);
      const count = native.signal();
      if (count < 0) throw failure(count);
      return count;
    }

    signal() { return this.#signal(1); }
    broadcast() { return this.#signal(0); }
  }

  /* No party goes on until all have arrived. */
  class Barrier {
    #word;

    static initialize(target, index, parties) {
      const word = wordOf(target, index, 2, 'Barrier');
      if (!Number.isInteger(parties) || parties < 1 || parties > 65535)
        throw rangeError('Barrier: expected 1 to 65535 parties');
      store(word.array, index, 0);
      store(word.array, index + 1, parties);
    }

    constructor(target, index = 0) {
      const isNew = typeof target === 'number';
      if (target === undefined) throw typeError('Barrier: say how many parties, or where the barrier is');
      const word = isNew ? wordOf(undefined, 0, 2, 'Barrier') : wordOf(target, index, 2, 'Barrier');
      if (isNew) Barrier.initialize(word.array, 0, target);
      this.#word = word;
    }

    get array() { return this.#word.array; }
    get index() { return this.#word.index; }

    /* true for the party that completes the round, false for the others. */
    #ended(status) {
      if (status !== STATUS.OK && status !== STATUS.LAST) throw failure(status);
      return status === STATUS.LAST;
    }

    wait(options) {
      mayBlock();
      describe(this.#word, optionsOf(options).timeout, 0, -1);
      return this.#ended(block(KIND.BARRIER));
    }

    waitAsync(given) {
      const options = optionsOf(given);
      describe(this.#word, options.timeout, 0, -1);
      return aborted(options) ??
        startAsync(KIND.BARRIER, this.#word.array, options).then((status) => this.#ended(status));
    }
  }

  return { RwLock, Semaphore, Condition, Barrier };
}

module.exports = { createLocks };
