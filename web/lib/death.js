// SPDX-License-Identifier: MIT
// Workers that are terminated, or close. Each environment holds a Web Lock as long as it exists, and the one that has
// created the memory asks for it too: when it is granted, the environment has ended, and whatever it left behind is
// ended for it (native/web.c). The browser may take two seconds to notice a termination.

import { ECORRUPT, failure } from './statuses.js';
import { endHelper, startHelper } from './bell.js';
import { STACK_BYTES, openInstance, startThread } from './instance.js';

export const lockOf = (handle, thread) => `vigil ${handle.id} ${thread}`;
/* Longer than a thread is kept from running. */
const SPIN_MOST_MS = 5000;

const hasLocks = () => typeof navigator !== 'undefined' && navigator.locks !== undefined;

/*
 * Hold the lock. Resolves to a function that gives it up, when it is held and told. Only then does the environment take
 * anything in the memory, or block: it cannot be terminated unnoticed.
 */
export function announce(handle, channel, thread) {
  if (!hasLocks()) return Promise.resolve(() => {});
  return new Promise((resolve, reject) => {
    navigator.locks.request(lockOf(handle, thread), () => new Promise((release) => {
      channel.postMessage({ attached: thread });
      resolve(release);
    })).catch(reject); // a page whose storage is blocked gets no locks
  });
}

/*
 * A worker that was terminated inside the library leaves the memory damaged: from then on nothing calls the library.
 *
 *     D1  the creator learns of it (below), or a thread spins in vain: it sets the flag, a word in the memory
 *     D2  it tells all environments by the channel, and fails: what is pending there is rejected, and so are new calls
 *     D3  an environment that is told fails as well
 *     D4  a thread that blocks looks at the flag once a second (prim_park), fails, and throws
 *
 * An environment that attaches listens to the channel first and looks at the flag last, so that it misses neither.
 *
 * `damage(error)` is D1 to D3. `fail(error)` is called once or more.
 */
export function createDamage(memory, address, channel, fail) {
  const flag = new Int32Array(memory.buffer, address, 1);
  const isDamaged = () => Atomics.load(flag, 0) !== 0;
  function damage(error = failure(ECORRUPT)) {
    /* The creator may have closed its own channel. */
    if (Atomics.exchange(flag, 0, 1) === 0) new BroadcastChannel(channel.name).postMessage({ damaged: true });
    fail(error);
  }
  channel.onmessage = ({ data: { damaged } }) => { if (damaged) damage(); };
  return { isDamaged, damage };
}

/*
 * What a thread calls that waits for a lock inside the library, or sleeps: it throws, rather than hang, if the memory
 * is damaged. One that may not sleep, and the creator, which is not told, find that out by themselves: such locks are
 * held for microseconds. A worker that has created the memory may also be asleep in a call that blocks. begin() is
 * called before each call of the library.
 */
export function createPatience(canBlock, creates) {
  let since = 0, call;
  return {
    damages: undefined, // set when there is an instance
    begin(name) { since = 0, call = name; },
    spin() {
      const { isDamaged, damage } = this.damages, mayTakeLong = canBlock && (!creates || call === 'block');
      since ||= performance.now();
      if (!isDamaged() && (mayTakeLong || performance.now() - since <= SPIN_MOST_MS)) return;
      damage();
      throw failure(ECORRUPT);
    },
  };
}

/*
 * In the environment that has created the memory, of which `own` is the instance: end those that were terminated, and
 * start threads and helpers for all.
 */
export function takeCare(handle, channel, own, damages) {
  const { isDamaged, damage } = damages;
  async function end(thread) {
    own.unlock(thread);
    const web = own.exports.web_find(thread);
    if (web === 0 || isDamaged()) return; // it had not attached yet, or cannot be ended
    const patience = Object.assign(createPatience(), { damages }), area = own.exports.web_area(web);
    const hooks = { alarm() {}, start: () => 0, spin: () => patience.spin() };
    const instance = await openInstance(handle, hooks, STACK_BYTES);
    instance.resume(area);
    if (instance.exports.web_end(web) !== 0) throw failure(ECORRUPT);
    await instance.end(area);
  }

  channel.onmessage = ({ data: { attached, start, helper, damaged } }) => {
    if (start) startThread(handle, ...start);
    if (helper) startHelper(handle.memory, helper);
    if (attached) {
      const name = lockOf(handle, attached);
      navigator.locks.request(name, () => {
        endHelper(name);
        end(attached).catch(damage);
      });
    }
    if (damaged) damage();
  };
}
