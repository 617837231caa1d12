// SPDX-License-Identifier: MIT
// Waiting for the agent's bell, a word of memory, without blocking: src/prim/bell_word.h.

import { workerOf } from './instance.js';

const RUNG = 1;

/* Call ring() once, soon after the word is no longer `seen`. */
const viaWaitAsync = {
  wait(words, index, seen, ring) {
    const { async, value } = Atomics.waitAsync(words, index, seen);
    if (async) value.then(ring);
    else queueMicrotask(ring);
  },
  end() {},
};

/*
 * The same where Atomics.waitAsync does not exist: a helper, which is a worker, blocks, and tells by a channel of that
 * name. The environment that has created the memory starts it, as `new Worker` in a worker of Firefox may never return.
 * The helper rings once when it has begun: what it was told before is lost.
 */
function viaHelper(name, start) {
  let channel;
  return {
    wait(words, index, seen, ring) {
      if (!channel) {
        channel = new BroadcastChannel(name());
        start();
      }
      channel.onmessage = ring;
      channel.postMessage([index, seen]);
    },
    end() {
      channel?.close();
      endHelper(name());
    },
  };
}

const helpers = {};

export function startHelper(memory, name) {
  const help = ({ data: [memory, name] }) => {
    const channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }) => {
      Atomics.wait(new Int32Array(memory.buffer), ...data);
      channel.postMessage(0);
    };
    channel.postMessage(0);
  };
  helpers[name] = workerOf(`onmessage=${help}`, name);
  helpers[name].postMessage([memory, name]);
}

export function endHelper(name) {
  helpers[name]?.terminate();
  delete helpers[name];
}

/*
 * Returns {watch(address), alarm(word, at), close()}: dispatch() is called when the bell has rung, as long as it
 * returns true, and at the time of the alarm. After it has returned false, watch must be called again. name(): of this
 * environment; start() starts its helper.
 */
export function createBell(memory, dispatch, name, start) {
  const { wait, end } = typeof Atomics.waitAsync === 'function' ? viaWaitAsync : viaHelper(name, start);
  let words, index, watching = false, timer;

  function look() {
    const seen = Atomics.load(words, index);
    if ((seen & RUNG) === 0) wait(words, index, seen, ring);
    else queueMicrotask(ring);
  }

  function ring() {
    watching = dispatch();
    if (watching) look();
  }

  /*
   * Timers may be early, and cannot be set for more than 24 days. A time since 1970 is exact to a quarter of a
   * microsecond: at that time, by another sum, it could be too early for the library, which would not set it again.
   */
  function setAlarm(at) {
    const left = at + 0.001 - performance.timeOrigin - performance.now();
    if (left <= 0) queueMicrotask(dispatch);
    else timer = setTimeout(setAlarm, Math.min(Math.ceil(left), 0x7fffffff), at);
  }

  return {
    watch(address) {
      if (watching) return;
      watching = true;
      words ??= new Int32Array(memory.buffer);
      index = address >> 2;
      look();
    },
    alarm(word, at) {
      clearTimeout(timer);
      if (at !== Infinity) setAlarm(at);
    },
    close() {
      clearTimeout(timer);
      end();
    },
  };
}
