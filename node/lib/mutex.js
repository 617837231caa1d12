// SPDX-License-Identifier: MIT
'use strict';

const { KIND, HOLDING, STATUS } = require('./core.js');
const { optionsOf } = require('./options.js');
const { held } = require('./held.js');
const { typeError, closedError, checkCallback } = require('./errors.js');

const { compareExchange, load, store } = Atomics;
const granted = Promise.resolve();

// The word of a mutex: vigil/mutex.h and native/holdings.c.
const ROBUST = 0x20000000;
const LOCKED = 1, FAIR = 4, DIED = 8;

/*
 * How often to try again before going to the line, which costs some 10 us: critical sections are mostly shorter. Tuned
 * by the rows contended and contended_main_share of bench/node. Medians of 7 on two busy cores, grants per ms and the
 * share of the main thread: 10 tries 6,350 and 0.52; 100 tries 5,550 and 0.81; 1,000 tries 4,900 and 0.68. Fewer tries
 * starve the main thread, whose target is a share of 0.6.
 */
const TRIES = 100;

/* The classes, on that core and its words. */
function createMutexes(core, { wordOf }) {
  const { native, numbers, integers, holdings, startAsync, mayBlock, block, track, isMine, failure } = core;

  /*
   * The word of a lock that one environment holds at a time. While there are no waiters, taking and releasing it is
   * one compareExchange, here; otherwise the library does it.
   *
   * In private memory the word has the id of the thread that holds it. In a segment it has the number of the process,
   * and which environment it is, is counted: only that one may unlock it.
   */
  class MutexWord {
    constructor(lock, target, index, name, fair = false) {
      const word = wordOf(target, index, 1, name);
      this.array = word.array;
      this.index = index;
      this.address = word.address;
      this.counted = word.segment !== undefined;
      const robust = this.counted ? 0 : ROBUST;
      compareExchange(this.array, index, 0, robust | (fair ? FAIR : 0)); // the first that uses it says what it is
      this.free = robust | (load(this.array, index) & FAIR);
      this.taken = this.free | (this.counted ? native.holder() : LOCKED | (native.threadId << 4));
      this.entry = track(lock, this.counted ? HOLDING.COUNTED_MUTEX : HOLDING.MUTEX, word.address, word.array);
    }

    tryFast() {
      if (this.counted && this.array.length === 0) throw closedError();
      if (compareExchange(this.array, this.index, this.free, this.taken) !== this.free) return false;
      if (this.counted) holdings.counts[this.entry] = 1;
      return true;
    }

    spin() {
      if (this.array.length === 0) throw closedError();
      for (let i = 0; i < TRIES; i++) {
        if (load(this.array, this.index) === this.free && this.tryFast()) return true;
      }
      return false;
    }

    describe(timeout) {
      numbers[0] = this.address;
      numbers[2] = timeout;
      integers[0] = this.counted ? 0 : 1;
      integers[3] = this.counted ? this.entry : -1;
    }

    /* The outcome of a wait: an exception unless it is held now. */
    check(status) {
      if (status !== STATUS.OK && status !== STATUS.OWNER_DIED) throw failure(status);
    }

    block(timeout) {
      this.describe(timeout);
      this.check(block(KIND.MUTEX));
    }

    wait(options) {
      this.describe(options.timeout);
      return startAsync(KIND.MUTEX, this.array, options).then((status) => this.check(status));
    }

    tryOnce() {
      if (this.tryFast()) return true;
      this.describe(0);
      const status = block(KIND.MUTEX);
      if (status === STATUS.TIMED_OUT) return false;
      this.check(status);
      return true;
    }

    unlock() {
      if (this.counted) this.checkHeld();
      if (compareExchange(this.array, this.index, this.taken, this.free) !== this.taken) this.unlockContended();
      else if (this.counted) holdings.counts[this.entry] = 0;
    }

    /* Whether this environment holds it; in private memory, whether the word says so. */
    checkHeld() {
      if (this.counted && this.array.length === 0) throw closedError();
      if (this.counted ? holdings.counts[this.entry] === 0 : !isMine(this.address)) throw failure(STATUS.ENOTHELD);
    }

    unlockContended() {
      this.describe(0);
      const status = native.release(KIND.MUTEX);
      if (status !== STATUS.OK) throw failure(status);
    }

    get isLocked() {
      if (this.array.length === 0) throw closedError();
      const state = load(this.array, this.index) & 3;
      return state === 1 || state === 2;
    }

    get ownerDied() {
      if (this.array.length === 0) throw closedError();
      return (load(this.array, this.index) & DIED) !== 0;
    }

    consistent() {
      this.checkHeld();
      numbers[0] = this.address;
      const status = native.consistent(KIND.MUTEX);
      if (status !== STATUS.OK) throw failure(status);
    }
  }

  class Mutex {
    #word;

    constructor(target, index = 0, { fair = false } = {}) {
      this.#word = new MutexWord(this, target, index, 'Mutex', Boolean(fair));
    }

    get array() { return this.#word.array; }
    get index() { return this.#word.index; }

    lock(options) {
      const word = this.#word;
      mayBlock();
      if (word.tryFast()) return;
      const { timeout } = optionsOf(options);
      if (!word.spin()) word.block(timeout);
    }

    lockAsync(options) {
      const word = this.#word;
      if (options === undefined && word.tryFast()) return granted;
      return this.#lockSlowly(optionsOf(options));
    }

    #lockSlowly(options) {
      if (options.signal?.aborted) return Promise.reject(options.signal.reason);
      if (this.#word.spin()) return granted;
      return this.#word.wait(options);
    }

    tryLock() {
      return this.#word.tryOnce();
    }

    unlock() {
      this.#word.unlock();
    }

    acquire(options) {
      return this.lockAsync(options).then(() => held(() => this.unlock(), this.ownerDied));
    }

    acquireSync(options) {
      this.lock(options);
      return held(() => this.unlock(), this.ownerDied);
    }

    tryAcquire() {
      return this.tryLock() ? held(() => this.unlock(), this.ownerDied) : undefined;
    }

    async runExclusive(callback, options) {
      checkCallback(callback);
      await this.lockAsync(options);
      try {
        return await callback();
      } finally {
        this.unlock();
      }
    }

    /* As async-mutex has them. */
    isLocked() { return this.#word.isLocked; }
    release() { this.unlock(); }

    get ownerDied() { return this.#word.ownerDied; }
    consistent() { this.#word.consistent(); }

    /* For Condition: the wait gives the mutex up, and takes it again. */
    static wordOf(mutex) {
      if (!(mutex instanceof Mutex)) throw typeError('expected a Mutex');
      return mutex.#word;
    }
  }

  /*
   * The word of the locks below, which know nothing of death: if its holder has ended, the next one gets it all the
   * same, and `died` tells, until the next hold.
   */
  class SeedWord extends MutexWord {
    died = false;

    takeAtOnce() {
      if (!this.tryFast() && !this.spin()) return false;
      this.died = false;
      return true;
    }

    noteDeath() {
      this.died = this.ownerDied;
      if (this.died) this.consistent();
    }

    lock() {
      if (this.takeAtOnce()) return; // on a page, too, as with the locks that these are made after
      mayBlock();
      this.block(Infinity);
      this.noteDeath();
    }
  }

  /*
   * The lock of the article: https://v8.dev/features/atomics. `lock` blocks, `executeLocked` does not. Any environment
   * may unlock it.
   */
  class AsyncLock {
    static INDEX = 0;
    #word;

    constructor(sab) {
      this.#word = new SeedWord(this, sab, AsyncLock.INDEX, 'AsyncLock');
      this.sab = this.#word.array.buffer;
      this.i32a = this.#word.array;
    }

    lock() { this.#word.lock(); }
    unlock() { this.#word.unlock(); }
    get ownerDied() { return this.#word.died; }

    executeLocked(f) {
      checkCallback(f);
      const word = this.#word;
      if (word.takeAtOnce()) {
        this.#execute(f);
        return;
      }
      word.wait(optionsOf()).then(() => {
        word.noteDeath();
        this.#execute(f);
      }, (error) => {
        if (error.code !== 'VIGIL_CANCELLED') throw error; // by close() of the browser's package: no turn, no call
      });
    }

    /* An exception of the callback is not the caller's: it is reported as those of other callbacks are. */
    #execute(f) {
      try {
        f();
      } catch (error) {
        queueMicrotask(() => { throw error; });
      } finally {
        this.unlock();
      }
    }
  }

  /* The lock of the chapter: exploringjs.com/es2016-es2017. `iab` is an Int32Array on shared memory. */
  class Lock {
    static NUMINTS = 1;
    #word;

    static initialize(iab, ibase) {
      const word = wordOf(iab, ibase, 1, 'Lock');
      store(word.array, ibase, word.segment === undefined ? ROBUST : 0);
    }

    constructor(iab, ibase) {
      this.#word = new SeedWord(this, iab, ibase, 'Lock');
      this.iab = iab;
      this.ibase = ibase;
    }

    lock() { this.#word.lock(); }
    unlock() { this.#word.unlock(); }
    get ownerDied() { return this.#word.died; }

    tryLock() {
      const taken = this.#word.tryOnce();
      if (taken) this.#word.noteDeath();
      return taken;
    }
  }

  return { Mutex, AsyncLock, Lock };
}

module.exports = { createMutexes };
