// SPDX-License-Identifier: MIT
'use strict';

const { STATUS } = require('./core.js');
const { native, memory: { segments }, failure } = require('./native.js');
const { typeError, rangeError, VigilError } = require('./errors.js');

const OPEN = 0, CREATE = 1, OPEN_OR_CREATE = 2;

function size(options, name, most) {
  const value = options[name];
  if (value === undefined) return 0;
  if (!Number.isInteger(value) || value < 1 || value > most)
    throw rangeError(`${name}: expected an integer from 1 to ${most}`);
  return value;
}

function open(name, how, options = {}) {
  if (typeof name !== 'string') throw typeError('the name of a segment is a string');
  if (typeof options !== 'object' || options === null) throw typeError('expected an object of options');
  const most = Number.MAX_SAFE_INTEGER;
  const number = native.segmentOpen(name, how, size(options, 'length', most), size(options, 'maxLength', most),
    size(options, 'waiters', 2 ** 20), size(options, 'members', 65536), size(options, 'mode', 0o666));
  if (number < 0) throw failure(number);
  return new Segment(open, name, number);
}

/* Memory that several processes share, with the lines and locks in it: vigil/segment.h. */
class Segment {
  #number; #buffer;

  static open(name) { return open(name, OPEN); }
  static create(name, options) { return open(name, CREATE, options); }
  static openOrCreate(name, options) { return open(name, OPEN_OR_CREATE, options); }

  /* The memory stays while processes have it open; the name can be used for another. */
  static unlink(name) {
    if (typeof name !== 'string') throw typeError('the name of a segment is a string');
    const status = native.segmentUnlink(name);
    if (status < 0) throw failure(status);
  }

  constructor(key, name, number) {
    if (key !== open) throw typeError('use Segment.open, Segment.create or Segment.openOrCreate');
    this.name = name;
    this.#number = number;
    this.#view();
  }

  #view() {
    this.#buffer = native.segmentBuffer(this.#number);
    segments.set(this.#buffer, this);
  }

  #check() {
    if (this.#number < 0) throw new VigilError('VIGIL_EINVAL', `the segment ${this.name} has been closed`);
  }

  /*
   * Its bytes. After grow, another one; the one of before stays, with its length. All are detached when it is closed.
   * If another process has grown it, call grow.
   */
  get buffer() {
    this.#check();
    return this.#buffer;
  }
  get byteLength() { return this.#buffer.byteLength; }

  get maxByteLength() {
    this.#check();
    return native.segmentLength(this.#number, true);
  }

  grow(length) {
    this.#check();
    if (!Number.isInteger(length) || length < 0) throw rangeError('expected a length in bytes');
    const now = native.segmentLength(this.#number, false);
    if (length > now) {
      const status = native.segmentGrow(this.#number, length);
      if (status < 0) throw failure(status);
    }
    if (native.segmentLength(this.#number, false) !== this.#buffer.byteLength) this.#view();
  }

  /* VIGIL_EBUSY while this process waits in it, this environment holds a lock in it, or its bytes were transferred. */
  close() {
    if (this.#number < 0) return;
    const status = native.segmentClose(this.#number);
    if (status !== STATUS.OK) throw failure(status);
    this.#number = -1;
  }
}
if (Symbol.dispose) Segment.prototype[Symbol.dispose] = Segment.prototype.close;

module.exports = { Segment };
