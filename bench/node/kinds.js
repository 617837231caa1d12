// SPDX-License-Identifier: MIT
'use strict';
// The article's lock in pure JavaScript, as it is there, and ours.

const vigil = require('../../node/lib/index.js');

class ArticleLock {
  static INDEX = 0;
  static UNLOCKED = 0;
  static LOCKED = 1;

  constructor(sab) {
    this.sab = sab;
    this.i32a = new Int32Array(sab);
  }

  lock() {
    while (true) {
      const oldValue = Atomics.compareExchange(this.i32a, ArticleLock.INDEX, ArticleLock.UNLOCKED, ArticleLock.LOCKED);
      if (oldValue == ArticleLock.UNLOCKED) return;
      Atomics.wait(this.i32a, ArticleLock.INDEX, ArticleLock.LOCKED);
    }
  }

  unlock() {
    const oldValue = Atomics.compareExchange(this.i32a, ArticleLock.INDEX, ArticleLock.LOCKED, ArticleLock.UNLOCKED);
    if (oldValue != ArticleLock.LOCKED) throw new Error('Tried to unlock while not holding the mutex');
    Atomics.notify(this.i32a, ArticleLock.INDEX, 1);
  }

  executeLocked(f) {
    const self = this;
    async function tryGetLock() {
      while (true) {
        const oldValue = Atomics.compareExchange(self.i32a, ArticleLock.INDEX,
          ArticleLock.UNLOCKED, ArticleLock.LOCKED);
        if (oldValue == ArticleLock.UNLOCKED) {
          f();
          self.unlock();
          return;
        }
        const result = Atomics.waitAsync(self.i32a, ArticleLock.INDEX, ArticleLock.LOCKED);
        await result.value;
      }
    }
    tryGetLock();
  }
}

module.exports = {
  article: (sab) => new ArticleLock(sab),
  vigil: (sab) => new vigil.AsyncLock(sab),
};
