// SPDX-License-Identifier: MIT
'use strict';
// navigator.locks, across processes: vigil/named.h. In one line with `vigil lock NAME` in a shell.

const { KIND, STATUS } = require('./core.js');
const { native, numbers, integers, start, startAsync, cancel, block, failure } = require('./native.js');
const { optionsOf } = require('./options.js');
const { typeError } = require('./errors.js');
const remote = require('./remote.js');

const SHARED = 1, FAIR = 2;
const notSupported = (message) => new DOMException(message, 'NotSupportedError');
const stolenError = (name) => new DOMException(`the lock ${name} was stolen`, 'AbortError');

/*
 * Handles of named locks. Each can hold its lock once at a time. One that is not in use is kept for the next request of
 * the name: opening costs some 10 us, taking the lock less than one. But while it is open the name cannot be removed,
 * so it is closed when the name has not been used for IDLE_MS to 2 * IDLE_MS. One of a path is closed at once: each
 * takes a descriptor, and the file could be replaced by another.
 */
const idle = new Map(); // name -> handles
const IDLE_NAMES = 64, IDLE_HANDLES = 4, IDLE_MS = 1000;
const recent = new Set(); // names given back since the last sweep
let sweeping = false;

function closeIdle(name) {
  const handles = idle.get(name) ?? [];
  idle.delete(name);
  handles.forEach(closeHandle);
}

function closeHandle(handle) {
  const watch = watches.get(handle);
  watches.delete(handle);
  if (watch !== undefined && !cancel(watch)) watch.closes = true; // it has ended, and will be settled
  else native.namedClose(handle);
}

function sweep() {
  for (const name of [...idle.keys()]) if (!recent.has(name)) closeIdle(name);
  recent.clear();
  sweeping = idle.size > 0;
  if (sweeping) setTimeout(sweep, IDLE_MS).unref();
}

function takeHandle(name) {
  const handles = idle.get(name);
  if (handles !== undefined && handles.length > 0) return handles.pop();
  const handle = native.namedOpen(name, 0);
  if (handle < 0) throw failure(handle);
  if (native.namedSlots(handle) > 0) {
    native.namedClose(handle);
    throw failure(STATUS.EINVAL); // it is a semaphore
  }
  return handle;
}

function giveHandle(name, handle) {
  const handles = idle.get(name) ?? [];
  if (handles.length >= IDLE_HANDLES || name.includes('/')) {
    closeHandle(handle);
    return;
  }
  handles.push(handle);
  idle.delete(name); // to the end: the most recent name
  idle.set(name, handles);
  recent.add(name);
  if (idle.size > IDLE_NAMES) closeIdle(idle.keys().next().value);
  if (!sweeping) {
    sweeping = true;
    setTimeout(sweep, IDLE_MS).unref();
  }
}

// Locks that this environment holds, by their handles.
const heldHere = new Map();

/*
 * A lock may be stolen by another environment. The holder learns that from a wait for the next steal of its name
 * (vigil_named_steals), which stays pending while the handle is open. Most locks are held for a moment: so the wait is
 * only started for those that are still held when the loop comes round.
 */
const watches = new Map(); // handle -> Watch
let watchesSoon = false;

class Watch {
  constructor(handle) {
    this.handle = handle;
    this.id = -1; // of the operation
    this.closes = false;
  }

  settle() {
    if (this.closes) {
      native.namedClose(this.handle);
      return;
    }
    watches.delete(this.handle);
    const lock = heldHere.get(this.handle);
    if (lock !== undefined) watch(lock, this.handle);
  }
}

function watch(lock, handle) {
  let status = STATUS.NOT_EQUAL;
  while (status === STATUS.NOT_EQUAL && !watches.has(handle) && native.namedWatch(handle) === STATUS.OK) {
    const made = new Watch(handle);
    status = start(KIND.WAIT32, made, false);
    if (status === STATUS.PENDING) watches.set(handle, made); // else it is told when it releases the lock
  }
  if (native.namedIsStolen(handle)) NamedLock.rob(lock);
}

function watchHeld() {
  watchesSoon = false;
  for (const [handle, lock] of [...heldHere]) if (!watches.has(handle)) watch(lock, handle);
}

function watchSoon() {
  if (watchesSoon) return;
  watchesSoon = true;
  setImmediate(watchHeld); // not unref: then it would run only after the loop has slept
}

class NamedLock {
  #handle; #stolen = false; #told = false; #onStolen;

  constructor(key, name, mode, handle, status) {
    if (key !== takeHandle) throw typeError('use locks.request or locks.acquire');
    this.name = name;
    this.mode = mode;
    this.ownerDied = status === STATUS.OWNER_DIED;
    this.owner = this.ownerDied ? native.namedDeath(handle) : undefined;
    this.#handle = handle;
    heldHere.set(handle, this);
    watchSoon();
  }

  /* Calling it again does nothing. An AbortError if the lock was stolen, unless request() has told that. */
  release() {
    const handle = this.#handle;
    if (handle >= 0) {
      const status = this.#giveBack();
      if (status === STATUS.ESTOLEN) this.#stolen = true;
      else if (status < 0) throw failure(status);
    }
    if (!this.#stolen || this.#told) return;
    this.#told = true;
    throw stolenError(this.name);
  }

  #giveBack() {
    const handle = this.#handle;
    this.#handle = -1;
    heldHere.delete(handle);
    const status = native.namedUnlock(handle);
    giveHandle(this.name, handle);
    return status;
  }

  get released() { return this.#handle < 0; }
  /* Also while the event loop has not been told yet. */
  get stolen() { return this.#stolen || (this.#handle >= 0 && native.namedIsStolen(this.#handle)); }

  /* After ownerDied: what the lock protects is in order again. Otherwise the next holder is told, too. */
  consistent() {
    if (this.#handle < 0) throw failure(STATUS.ENOTHELD);
    const status = native.namedConsistent(this.#handle);
    if (status < 0) throw failure(status);
  }

  /* For request(): what to call when it is stolen. */
  static watch(lock, onStolen) {
    lock.#onStolen = onStolen;
  }

  /* It has been stolen: give back what is left of it, and tell the holder. */
  static rob(lock) {
    if (lock.#handle < 0) return;
    lock.#giveBack();
    lock.#stolen = true;
    lock.#told = lock.#onStolen !== undefined;
    lock.#onStolen?.();
  }
}
if (Symbol.dispose) NamedLock.prototype[Symbol.dispose] = NamedLock.prototype.release;
if (Symbol.asyncDispose) NamedLock.prototype[Symbol.asyncDispose] = async function () { this.release(); };

function requestOptions(options) {
  if (options !== undefined && (typeof options !== 'object' || options === null))
    throw typeError('expected an object of options');
  const { mode = 'exclusive', ifAvailable = false, steal = false, at } = options ?? {};
  if (mode !== 'exclusive' && mode !== 'shared') throw typeError(`mode: 'exclusive' or 'shared', not ${String(mode)}`);
  const waiting = optionsOf(options);
  if (steal && ifAvailable) throw notSupported('steal and ifAvailable cannot be used together');
  if (steal && mode !== 'exclusive') throw notSupported("steal is only for mode 'exclusive'");
  if (waiting.signal && (steal || ifAvailable)) throw notSupported('signal cannot be used with steal or ifAvailable');
  if (steal && at !== undefined) throw notSupported('steal cannot be used with at');
  if (!waiting.ref && at !== undefined) throw notSupported('ref: false cannot be used with at');
  const how = FAIR | (mode === 'shared' ? SHARED : 0);
  const cluster = at === undefined ? undefined : remote.clusterOptions(options);
  return { mode, ifAvailable, steal, how, waiting, cluster };
}

function checkName(name) {
  if (typeof name === 'symbol') throw typeError('the name of a lock is a string');
  if (typeof name !== 'string') name = String(name);
  if (name.startsWith('-')) throw notSupported("a name must not begin with '-'");
  return name;
}

function describe(handle, how, timeout) {
  numbers[1] = handle;
  numbers[2] = timeout;
  integers[0] = how;
}

function granted(name, { mode }, handle, status) {
  if (status === STATUS.OK || status === STATUS.OWNER_DIED)
    return new NamedLock(takeHandle, name, mode, handle, status);
  giveHandle(name, handle);
  throw failure(status);
}

/* Take it away from its holders, which are told: those of this environment at once. */
function steal(name, request) {
  const handle = takeHandle(name);
  const lock = granted(name, request, handle, native.namedSteal(handle));
  for (const holder of [...heldHere.values()]) if (holder !== lock && holder.name === name) NamedLock.rob(holder);
  return lock;
}

/* The lock, or a promise of it; null, if it is not available and must be. */
function take(name, request) {
  if (request.steal) return steal(name, request);
  const handle = takeHandle(name);
  const status = native.namedTry(handle, request.how);
  if (status !== STATUS.TIMED_OUT) return granted(name, request, handle, status);
  if (!request.ifAvailable) return waitFor(name, request, handle);
  giveHandle(name, handle);
  return null;
}

async function waitFor(name, request, handle) {
  describe(handle, request.how, request.waiting.timeout);
  let outcome;
  try {
    outcome = await startAsync(KIND.NAMED, handle, request.waiting);
  } catch (error) { // it was aborted, or could not be started
    giveHandle(name, handle);
    throw error;
  }
  return granted(name, request, handle, outcome);
}

class LockManager {
  async request(name, options, callback) {
    if (callback === undefined) [options, callback] = [undefined, options];
    if (typeof callback !== 'function') throw typeError('expected a callback');
    const checked = checkName(name), request = requestOptions(options);
    if (request.waiting.signal?.aborted) throw request.waiting.signal.reason;
    if (request.cluster !== undefined) return remote.request(checked, request, callback);
    const lock = await take(checked, request);
    if (lock === null) return callback(null);
    if (lock.released) throw stolenError(checked); // since it was granted
    const robbed = new Promise((_, reject) =>
      NamedLock.watch(lock, () => reject(stolenError(checked))));
    try {
      return await Promise.race([robbed, (async () => callback(lock))()]);
    } finally {
      lock.release();
    }
  }

  /* A lock to be released by release() or `await using`; null, if it is not available and must be. */
  async acquire(name, options) {
    const checked = checkName(name), request = requestOptions(options);
    if (request.waiting.signal?.aborted) throw request.waiting.signal.reason;
    if (request.cluster !== undefined) return remote.acquire(checked, request);
    return take(checked, request);
  }

  /* The same for workers that may block. */
  acquireSync(name, options) {
    const checked = checkName(name), request = requestOptions(options);
    if (request.cluster !== undefined) throw notSupported('acquireSync cannot be used with at');
    if (request.steal) return steal(checked, request);
    const handle = takeHandle(checked);
    describe(handle, request.how, request.ifAvailable ? 0 : request.waiting.timeout);
    let status;
    try {
      status = block(KIND.NAMED);
    } catch (error) {
      giveHandle(checked, handle);
      throw error;
    }
    if (status === STATUS.TIMED_OUT && request.ifAvailable) {
      giveHandle(checked, handle);
      return null;
    }
    return granted(checked, request, handle, status);
  }

  /*
   * Remove a name for which there is no more use: true, or false if there is none. VIGIL_EBUSY while a process uses it;
   * with {force: true} that keeps its lock, and the next request of the name makes another.
   */
  remove(name, { force = false } = {}) {
    const checked = checkName(name);
    closeIdle(checked);
    const status = native.namedRemove(checked, Boolean(force));
    if (status < 0 && status !== STATUS.ENOTFOUND) throw failure(status);
    return status === STATUS.OK;
  }

  /* The holders and waiters of the names of this user, in all processes. */
  async query() {
    const rows = native.namedQuery();
    const shape = ({ name, mode, pid }) => ({ name, mode, clientId: String(pid), pid });
    return { held: rows.filter((row) => row.held).map(shape), pending: rows.filter((row) => !row.held).map(shape) };
  }
}

module.exports = { locks: new LockManager(), LockManager, NamedLock };
