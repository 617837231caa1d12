// SPDX-License-Identifier: MIT
'use strict';
// Words of memory: typed arrays on shared memory, and the addresses of their elements.

const { typeError, rangeError } = require('./errors.js');

const getter = (prototype, name) => {
  const { get } = Object.getOwnPropertyDescriptor(prototype, name);
  return (object) => Reflect.apply(get, object, []);
};
const TypedArray = Object.getPrototypeOf(Int32Array.prototype);
const typeOf = getter(TypedArray, Symbol.toStringTag); // not what the array says of itself
const bufferOf = getter(TypedArray, 'buffer');
const lengthOf = getter(TypedArray, 'length');
const { values } = TypedArray; // throws unless the array is in bounds
/*
 * What is known of an array: its address and whether it is of 64 bits. It cannot change while the array exists, except
 * for those of segments, which are detached when the segment is closed or grows.
 */
class View {
  constructor(array, address, is64, segment) {
    this.array = array;
    this.address = address;
    this.is64 = is64;
    this.bytes = is64 ? 8 : 4;
    this.segment = segment;
  }
}
/* False: its buffer is detached, or has been resized so that the array does not fit any more. */
function isInBounds(array) {
  try {
    Reflect.apply(values, array, []);
    return true;
  } catch {
    return false;
  }
}

/*
 * memory: {name, segments, isShared(buffer), addressOf(array), allocate(count)}: which buffers can be waited on, and
 * where their arrays are; `segments`: ArrayBuffer -> Segment, those that count as shared while they are open.
 */
function createWords(memory) {
  const views = new WeakMap();

  /* The view of an array that can be waited on, or undefined. Throws for other values. */
  function viewOf(array) {
    const known = views.get(array);
    if (known !== undefined && (known.segment === undefined || lengthOf(array) > 0)) return known;
    const type = typeof array === 'object' && array !== null ? typeOf(array) : undefined;
    if (type !== 'Int32Array' && type !== 'BigInt64Array')
      throw typeError('expected an Int32Array or a BigInt64Array');
    const buffer = bufferOf(array);
    const segment = memory.segments.get(buffer);
    if (segment !== undefined) {
      if (!isInBounds(array)) throw typeError('the segment of the array has been closed');
    } else if (!memory.isShared(buffer)) {
      if (!isInBounds(array)) throw typeError('the buffer of the array is detached, or has become too short for it');
      return undefined;
    }
    const view = new View(array, memory.addressOf(array), type === 'BigInt64Array', segment);
    views.set(array, view);
    return view;
  }

  /*
   * The word of a lock: `target` is an Int32Array on shared memory, a SharedArrayBuffer, a Segment, or undefined for
   * new memory. Returns the array, the index in it, its address, and the segment, if it is in one.
   */
  function wordOf(target, index, count, name) {
    let array = target === undefined ? memory.allocate(count) : target;
    if (typeof target === 'object' && target !== null && memory.segments.get(target.buffer) === target)
      array = new Int32Array(target.buffer, 0, Math.floor(target.byteLength / 4));
    else if (memory.isShared(target)) array = new Int32Array(target, 0, Math.floor(target.byteLength / 4));
    const view = viewOf(array);
    if (view === undefined || view.is64)
      throw typeError(`${name} needs an Int32Array on ${memory.name}`);
    if (!Number.isInteger(index) || index < 0 || index + count > lengthOf(array))
      throw rangeError(`${name}: the index ${String(index)} is out of range: there must be room for ${count} element` +
        `${count > 1 ? 's' : ''} below ${lengthOf(array)}`);
    return { array, index, address: view.address + 4 * index, segment: view.segment };
  }

  return { viewOf, wordOf };
}

module.exports = { createWords, lengthOf };
