// SPDX-License-Identifier: MIT
'use strict';
// Locks beyond one machine, on etcd: vigil/remote.h. In one line with `vigil lock --at` in a shell.

const { STATUS } = require('./core.js');
const { native, operationsOf } = require('./native.js');
const { VigilError, typeError, rangeError } = require('./errors.js');
const statuses = require('./statuses.js');

// The numbers of native/napi/remote.c.
const NEWS = { ENDED: 0, LOST: 1, RELEASED: 2 };

const failure = (status, why) => statuses.failure(native, status, why);

// libvigil-etcd needs libraries that not every machine has: it is loaded at the first use.
let loaded = false;

function load() {
  if (loaded) return;
  const version = require('../package.json').version.split('.', 2).join('.');
  const file = process.env.VIGIL_ETCD_LIBRARY || `libvigil-etcd.so.${version}`;
  const result = native.remoteLoad(file, deliver);
  if (typeof result === 'string')
    throw new VigilError('VIGIL_ENOTFOUND', 'locks of a cluster need libvigil-etcd, which cannot be loaded: ' +
      `${result}. Install the package libvigil-etcd${version}, or build Vigil where libnghttp2, OpenSSL, protobuf-c ` +
      'and c-ares are, and set VIGIL_ETCD_LIBRARY to the file');
  if (result < 0) throw failure(result);
  process.on('beforeExit', sweepAll); // so that no lease is left
  loaded = true;
}

/* A cluster that has been used, and its handles that are not in use, which keep their leases. */
class Cluster {
  constructor({ at, ttl, cacert, cert, key, user, password }) {
    this.at = at;
    this.number = native.remoteOpen(at, ttl ?? 0, cacert, cert, key, user, password);
    this.idle = new Map(); // name -> handles
    if (this.number === STATUS.EINVAL)
      throw new VigilError('VIGIL_EINVAL', `invalid: at is etcd://host:port,host:port, and not ${at}`);
    if (this.number < 0) throw failure(this.number);
  }

  get why() { return native.remoteWhy(this.number); }

  take(name) {
    return this.idle.get(name)?.pop() ?? new Handle(this, name);
  }

  give(handle) {
    const handles = this.idle.get(handle.name) ?? [];
    this.idle.set(handle.name, handles);
    handles.push(handle);
    handle.used = true;
    sweepSoon();
  }

  /* Close the handles that were not used since the last sweep. */
  sweep(all) {
    for (const [name, handles] of this.idle) {
      const kept = handles.filter((handle) => handle.used && !all);
      for (const handle of handles) if (!kept.includes(handle)) handle.close();
      for (const handle of kept) handle.used = false;
      if (kept.length > 0) this.idle.set(name, kept);
      else this.idle.delete(name);
    }
    return this.idle.size > 0;
  }
}

const clusters = new Map(); // of all options -> Cluster
const IDLE_MS = 1000;
let sweeping = false;

function clusterOf(options) {
  load();
  const key = JSON.stringify(options);
  let cluster = clusters.get(key);
  if (cluster === undefined) clusters.set(key, cluster = new Cluster(options));
  return cluster;
}

function sweepSoon() {
  if (sweeping) return;
  sweeping = true;
  setTimeout(() => {
    sweeping = false;
    if ([...clusters.values()].filter((cluster) => cluster.sweep(false)).length > 0) sweepSoon();
  }, IDLE_MS).unref();
}

function sweepAll() {
  for (const cluster of clusters.values()) cluster.sweep(true);
}

const handles = new Map(); // number -> Handle

function deliver(number, what, status) {
  const handle = handles.get(number);
  if (what === NEWS.LOST) handle?.onLost?.();
  else handle?.settle(status);
}

/* A handle can hold its lock once at a time, and makes one call at a time. */
class Handle {
  #resolve; #reject; #signal;

  constructor(cluster, name) {
    this.cluster = cluster;
    this.name = name;
    this.used = true;
    this.onLost = undefined;
    this.number = native.remoteLock(cluster.number, name);
    if (this.number === STATUS.ENAME)
      throw failure(this.number, 'of a cluster, a name is 1 to 150 characters of A-Z a-z 0-9 . _ - and /, and begins ' +
        'with a letter, a digit or _');
    if (this.number < 0) throw failure(this.number);
    handles.set(this.number, this);
  }

  /* The status of the request. Rejected if it is aborted. */
  take(how, timeout, signal) {
    const status = native.remoteTake(this.number, how, timeout);
    if (status !== STATUS.PENDING) return Promise.resolve(status);
    this.#signal = signal;
    if (signal !== undefined) operationsOf(signal).add(this);
    return this.#pending();
  }

  /* The status of the release. */
  release() {
    const status = native.remoteRelease(this.number);
    return status === STATUS.PENDING ? this.#pending() : Promise.resolve(status);
  }

  #pending() {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  settle(status) {
    if (this.#signal !== undefined) operationsOf(this.#signal).delete(this);
    this.#signal = undefined;
    this.#resolve(status < 0 ? failure(status, this.cluster.why) : status); // the text is of this moment
  }

  onAbort() {
    const { reason } = this.#signal;
    if (native.remoteCancel(this.number) !== STATUS.OK) return; // it has been granted
    this.#signal = undefined;
    this.#reject(reason);
  }

  close() {
    handles.delete(this.number);
    native.remoteClose(this.number);
  }
}

class RemoteLock {
  #handle; #lost = new AbortController(); #release;

  constructor(key, handle, mode, status) {
    if (key !== Handle) throw typeError('use locks.request or locks.acquire');
    const { token, key: heldKey } = native.remoteHeld(handle.number);
    this.name = handle.name;
    this.at = handle.cluster.at;
    this.mode = mode;
    this.token = token;
    this.key = heldKey;
    this.ownerDied = status === STATUS.OWNER_DIED;
    this.owner = this.ownerDied ? native.remoteDeath(handle.number) : undefined;
    this.#handle = handle;
    handle.onLost = () => this.#lost.abort(failure(STATUS.ELOST, handle.cluster.why));
  }

  /* Aborted when the lease is lost. The reason is the error. */
  get lost() { return this.#lost.signal; }
  get released() { return this.#release !== undefined; }

  /* A promise: the lock has been released. Calling it again does nothing more. */
  release() {
    this.#release ??= this.#giveBack();
    return this.#release;
  }

  async #giveBack() {
    const handle = this.#handle;
    const status = await handle.release();
    handle.onLost = undefined;
    if (status === STATUS.OK && !this.lost.aborted) {
      handle.cluster.give(handle);
      return;
    }
    handle.close();
    if (this.lost.aborted) throw this.lost.reason;
    throw status instanceof Error ? status : failure(status);
  }

  /* After ownerDied: what the lock protects is in order again. Otherwise the next holder is told, too. */
  consistent() {
    const status = this.released ? STATUS.ENOTHELD : native.remoteConsistent(this.#handle.number);
    if (status < 0) throw failure(status);
  }
}
if (Symbol.asyncDispose) RemoteLock.prototype[Symbol.asyncDispose] = RemoteLock.prototype.release;

/* {at, ttl, ...} of the options of a request. */
function clusterOptions({ at, ttl, cacert, cert, key, user, password }) {
  const texts = { at, cacert, cert, key, user, password };
  for (const [name, text] of Object.entries(texts))
    if (text !== undefined && typeof text !== 'string') throw typeError(`${name}: expected a string`);
  if (ttl !== undefined && typeof ttl !== 'number') throw typeError('ttl: expected a number of milliseconds');
  if (ttl !== undefined && !(ttl >= 1000 && ttl <= 65535000))
    throw rangeError('ttl: expected 1000 to 65535000 milliseconds');
  return { ...texts, ttl };
}

/* The lock; null, if it is not available and must be. */
async function acquire(name, { cluster, mode, how, ifAvailable, waiting }) {
  const handle = clusterOf(cluster).take(name);
  let status;
  try {
    status = await handle.take(how, ifAvailable ? 0 : waiting.timeout, waiting.signal);
  } catch (error) { // it was aborted
    handle.cluster.give(handle);
    throw error;
  }
  if (status === STATUS.OK || status === STATUS.OWNER_DIED) return new RemoteLock(Handle, handle, mode, status);
  handle.cluster.give(handle);
  if (status === STATUS.TIMED_OUT && ifAvailable) return null;
  throw status instanceof Error ? status : failure(status);
}

const lostOf = (lock) => new Promise((_, reject) =>
  lock.lost.addEventListener('abort', () => reject(lock.lost.reason), { once: true }));

async function request(name, options, callback) {
  const lock = await acquire(name, options);
  if (lock === null) return callback(null);
  let result;
  try {
    result = await Promise.race([lostOf(lock), (async () => callback(lock))()]);
  } catch (error) {
    const release = lock.release().catch(() => {}); // the first error counts
    if (!lock.lost.aborted) await release;
    throw error;
  }
  await lock.release();
  return result;
}

module.exports = { acquire, request, clusterOptions, RemoteLock };
