// SPDX-License-Identifier: MIT
'use strict';

const { KIND, HOLDING, STATUS } = require('./core.js');
const { optionsOf } = require('./options.js');
const { closedError, checkCallback } = require('./errors.js');

const { load, compareExchange } = Atomics;
const NEW = 0, RUNNING = 1, DONE = 3;

/*
 * The class, on that core and its words. The word is a vigil_once (vigil/once.h), so C programs and other processes can
 * use the same: JavaScript changes it from NEW to RUNNING, and the native part does the rest, since C may wait for it.
 */
function createOnce({ native, numbers, integers, holdings, startAsync, mayBlock, block, track, failure }, { wordOf }) {
  /* Something done once, by the caller that needs it first. If that fails, or its caller ends, the next one tries. */
  class Once {
    #array; #index; #address; #inSegment; #entry;

    constructor(target, index = 0) {
      const word = wordOf(target, index, 1, 'Once');
      this.#array = word.array;
      this.#index = index;
      this.#address = word.address;
      this.#inSegment = word.segment !== undefined;
      this.#entry = track(this, HOLDING.ONCE, word.address, word.array);
    }

    get array() { return this.#array; }
    get index() { return this.#index; }
    get isDone() {
      if (this.#array.length === 0) throw closedError();
      return load(this.#array, this.#index) === DONE;
    }

    /* True: this caller has to do it, and then to call #end. */
    #begin() {
      const running = this.#inSegment ? native.holder() : RUNNING; // with the number of the process
      if (compareExchange(this.#array, this.#index, NEW, running) !== NEW) return false;
      holdings.counts[this.#entry] = 1;
      return true;
    }

    #end(done) {
      numbers[0] = this.#address;
      integers[0] = done ? 1 : 0;
      integers[3] = this.#entry;
      const status = native.release(KIND.ONCE);
      if (status !== STATUS.OK) throw failure(status);
    }

    /* What to wait for: that it is done, or new again. */
    #describe(end) {
      numbers[0] = this.#address;
      numbers[2] = Math.max(0, end - performance.now());
      integers[0] = 0;
      integers[3] = -1;
    }

    /* The outcome of such a wait: true if it is done. */
    #isOver(status) {
      if (status !== STATUS.OK && status !== STATUS.IS_NEW) throw failure(status);
      return status === STATUS.OK;
    }

    runSync(callback, options) {
      checkCallback(callback);
      mayBlock();
      if (this.isDone) return;
      const end = performance.now() + optionsOf(options).timeout;
      while (!this.#begin()) {
        this.#describe(end);
        if (this.#isOver(block(KIND.ONCE))) return;
      }
      let done = false;
      try {
        callback();
        done = true;
      } finally {
        this.#end(done);
      }
    }

    async run(callback, options) {
      checkCallback(callback);
      if (this.isDone) return;
      const waiting = optionsOf(options), end = performance.now() + waiting.timeout;
      if (waiting.signal?.aborted) throw waiting.signal.reason;
      while (!this.#begin()) {
        this.#describe(end);
        if (this.#isOver(await startAsync(KIND.ONCE, this.#array, waiting))) return;
      }
      let done = false;
      try {
        await callback();
        done = true;
      } finally {
        this.#end(done);
      }
    }
  }

  return { Once };
}

module.exports = { createOnce };
