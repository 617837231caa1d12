// SPDX-License-Identifier: MIT
'use strict';

const { closedError, checkCallback } = require('./errors.js');

const { load, store } = Atomics;

/* The class, on that core and its words. */
function createOnce({ mayBlock }, { wordOf }, { Mutex }) {
  /* Something done once, by the caller that needs it first. If that fails, or its caller ends, the next one tries. */
  class Once {
    #mutex; #array; #index;

    constructor(target, index = 0) {
      const word = wordOf(target, index, 2, 'Once');
      this.#mutex = new Mutex(word.array, index);
      this.#array = word.array;
      this.#index = index;
    }

    get array() { return this.#array; }
    get index() { return this.#index; }
    get isDone() {
      if (this.#array.length === 0) throw closedError();
      return load(this.#array, this.#index + 1) === 1;
    }

    #done() {
      if (this.#mutex.ownerDied) this.#mutex.consistent();
      store(this.#array, this.#index + 1, 1);
    }

    runSync(callback, options) {
      checkCallback(callback);
      mayBlock();
      if (this.isDone) return;
      this.#mutex.lock(options);
      try {
        if (this.isDone) return;
        callback();
        this.#done();
      } finally {
        this.#mutex.unlock();
      }
    }

    async run(callback, options) {
      checkCallback(callback);
      if (this.isDone) return;
      await this.#mutex.lockAsync(options);
      try {
        if (this.isDone) return;
        await callback();
        this.#done();
      } finally {
        this.#mutex.unlock();
      }
    }
  }

  return { Once };
}

module.exports = { createOnce };
