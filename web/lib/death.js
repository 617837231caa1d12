// SPDX-License-Identifier: MIT
// Workers that are terminated, or close. Each environment holds a Web Lock as long as it exists, and the one that has
// created the memory asks for it too: when it is granted, the environment has ended, and whatever it left behind is
// ended for it (native/web.c). The browser may take two seconds to notice a termination.

import { ECORRUPT, failure } from './statuses.js';
import { STACK_BYTES, openInstance, startThread } from './instance.js';

const lockOf = (handle, thread) => `vigil ${handle.id} ${thread}`;
/* Longer than a thread is kept from running. */
const SPIN_MOST_MS = 5000;

const hasLocks = () => typeof navigator !== 'undefined' && navigator.locks !== undefined;

/*
 * Hold the lock. Resolves to a function that gives it up, when it is held and told. Only then does the environment take
 * anything in the memory, or block: it cannot be terminated unnoticed.
 */
export function announce(handle, channel, thread) {
  if (!hasLocks()) return Promise.resolve(() => {});
  return new Promise((resolve) => {
    navigator.locks.request(lockOf(handle, thread), () => new Promise((release) => {
      channel.postMessage({ attached: thread });
      resolve(release);
    }));
  });
}

/*
 * For a thread that may not sleep: it spins for locks that are held for microseconds, and throws if one was left behind
 * by a worker that was terminated, rather than hang. begin() is called before each call of the library.
 */
export function createPatience() {
  let since = 0;
  return {
    begin() { since = 0; },
    spin() {
      since ||= performance.now();
      if (performance.now() - since > SPIN_MOST_MS) throw failure(ECORRUPT);
    },
  };
}

/*
 * In the environment that has created the memory, of which `own` is the instance: end those that were terminated, and
 * start threads for all.
 */
export function takeCare(handle, channel, own, mayPark, onDamage) {
  async function end(thread) {
    own.unlock(thread);
    const web = own.exports.web_find(thread);
    if (web === 0) return; // it had not attached yet
    const hooks = { alarm() {}, start: () => 0, spin: createPatience().spin }, area = own.exports.web_area(web);
    const instance = await openInstance(handle, hooks, STACK_BYTES);
    instance.resume(area, mayPark);
    if (instance.exports.web_end(web) !== 0) throw failure(ECORRUPT);
    await instance.end(area);
  }

  channel.onmessage = ({ data: { attached, start } }) => {
    if (start) startThread(handle, ...start);
    if (attached) navigator.locks.request(lockOf(handle, attached), () => { end(attached).catch(onDamage); });
  };
}
