// SPDX-License-Identifier: MIT
'use strict';
// The native part of Node: loading it, and what it shares with core.js. See native/napi/addon.h.

const path = require('node:path');
const { VigilError } = require('./errors.js');
const { failure } = require('./statuses.js');
const { HOLDING, scratchOf, createCore } = require('./core.js');

// The C library decides which of the two can be loaded: the other one lacks its libraries.
function load() {
  if (process.platform !== 'linux')
    throw new VigilError('VIGIL_EMACHINE', `@vigil/node is for Linux, not for ${process.platform}`);
  const errors = [];
  for (const libc of ['glibc', 'musl']) {
    const file = path.join(__dirname, '..', 'prebuilds', `linux-${process.arch}-${libc}.node`);
    try {
      return require(file);
    } catch (error) {
      if (error.code === 'VIGIL_ECOPIES')
        throw new VigilError(error.code, 'another version of @vigil/node, or of Vigil, is loaded in this process, ' +
          'and the two cannot share their lines: have one version (`npm ls @vigil/node` shows them)');
      errors.push(error.message);
    }
  }
  throw new VigilError('VIGIL_EMACHINE', `no binary of @vigil/node for linux-${process.arch} can be loaded: ` +
    `${errors.join('; ')}. In a checkout of Vigil, \`make node\` builds it`);
}

const native = load();

const scratchBuffer = new ArrayBuffer(native.scratchBytes);
const scratch = scratchOf(scratchBuffer, 0);

// What this environment holds of locks whose words do not say so: see native/holdings.c. The native part counts what it
// takes and releases, by the entry in the scratch; JavaScript, what it takes and releases itself.
const holdings = { counts: new Int32Array(1024) };
native.counts(holdings.counts);

// Locks that are gone but were never released stay held, until the environment ends.
const neverReleased = new Set();
const forget = new FinalizationRegistry((holding) => {
  const held = holding.what === HOLDING.MUTEX ? core.isMine(holding.address) : holdings.counts[holding.entry] !== 0;
  if (held) neverReleased.add(holding);
  else native.untrack(holding.entry);
});

/* Remember that this environment may hold the lock. Returns the index of its count. */
function track(lock, what, address, array) {
  scratch.numbers[0] = address;
  const entry = native.track(what);
  if (entry < 0) throw core.failure(entry);
  if (entry >= holdings.counts.length) {
    const longer = new Int32Array(holdings.counts.length * 2);
    longer.set(holdings.counts);
    holdings.counts = longer;
    native.counts(longer);
  }
  holdings.counts[entry] = 0;
  forget.register(lock, { what, address, entry, array }); // the array keeps the memory alive until then
  return entry;
}

const sharedLength = Object.getOwnPropertyDescriptor(SharedArrayBuffer.prototype, 'byteLength').get;

// What words.js asks: any SharedArrayBuffer can be waited on, and the bytes of open segments.
const memory = {
  name: 'a SharedArrayBuffer or a Segment',
  segments: new WeakMap(), // ArrayBuffer -> Segment
  isShared(buffer) {
    try {
      Reflect.apply(sharedLength, buffer, []);
      return true;
    } catch {
      return false;
    }
  },
  addressOf: (array) => native.address(array),
  allocate: (count) => new Int32Array(new SharedArrayBuffer(4 * count)),
};

const core = createCore({
  native, memory, scratch, holdings, track, canBlock: true, failure: (status) => failure(native, status),
});
native.setup(scratchBuffer, core.deliver, () => {});

module.exports = core;
