// SPDX-License-Identifier: MIT
'use strict';

/*
 * What acquire() gives: a function that releases it, once; calling it again does nothing. It is also what `using` and
 * `await using` release. `ownerDied`: the previous holder ended while it held the lock.
 */
function held(release, ownerDied) {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    release();
  };
  once.release = once;
  once.ownerDied = ownerDied;
  if (Symbol.dispose) once[Symbol.dispose] = once;
  if (Symbol.asyncDispose) once[Symbol.asyncDispose] = async () => once();
  return once;
}

module.exports = { held };
