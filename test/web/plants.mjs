// SPDX-License-Identifier: MIT
// Bugs to plant into the package, each with a test that must find it. `file`: the script in which `from` becomes `to`;
// `source`: the same in C; `wasm`: the same in bytes.

const EXCLUSION = 'exclusion: Mutex, two workers that block and the page';
const HOLDING = 'terminate: while holding, taken as a promise';

export const plants = {
  'the bell wakes one sleeper': {
    // i32.const -1; memory.atomic.notify align=4
    wasm: { from: [0x41, 0x7f, 0xfe, 0x00, 0x02], to: [0x41, 0x01, 0xfe, 0x00, 0x02] },
    found: 'bells: a worker that blocks while operations are pending is woken' },
  'notify counts one too many': { file: 'node/lib/atomics.js', from: 'return numbers[3];', to: 'return numbers[3] + 1;',
    found: 'wait: order of notify(n)' },
  'the last waiter that notify may wake sleeps on': { file: 'node/lib/atomics.js', from: 'numbers[3] = count;',
    to: 'numbers[3] = count > 1 ? count - 1 : count;',
    found: 'as WebAssembly: notify returns how many it has woken, of many threads' },
  'terminated workers are not noticed': { file: 'web/lib/death.js', to: '',
    from: 'end(web, area).catch(onDamage);',
    found: HOLDING },
  'a worker that stops inside the library is not noticed': { source: 'web/native/web.c',
    from: 'prim_cas_acquire(&web->state, &seen, INSIDE)', to: 'prim_cas_acquire(&web->state, &seen, OUTSIDE)',
    found: 'terminate: inside the library, which is reported' },
  'a worker is terminated before it has left the library': { source: 'web/native/web.c',
    from: '|| seen == STOPPED) return', to: '|| true) return',
    found: 'terminate: by vigil.terminate, which waits until the worker is outside' },
  'a worker that was stopped goes on': { source: 'web/native/web.c',
    from: 'for (uint32_t seen = OUTSIDE; !prim_cas_acquire(&web->state, &seen, INSIDE); seen = OUTSIDE)\n'
      + '        prim_park(&web->state, STOPPED, PRIM_NEVER);',
    to: 'uint32_t seen = OUTSIDE;\n    prim_cas_acquire(&web->state, &seen, INSIDE);',
    found: 'terminate: by vigil.terminate, after which the worker calls nothing' },
  'a thread that may not sleep spins for ever': { file: 'web/lib/death.js',
    from: 'if (performance.now() - since > SPIN_MOST_MS) throw', to: 'if (false) throw',
    found: 'terminate: by vigil.terminate, of a worker that does not come out' },
  'the door stays locked': { file: 'web/lib/instance.js', from: 'Atomics.store(words, door, 0);', to: ';',
    found: 'scale: 40 environments at a time attach and close, and their memory is used again' },
  'attach does not wait until the worker is announced': { file: 'web/lib/index.js', from: '= await announce(',
    to: '= announce(', found: 'terminate: while holding, in an endless loop' },
  'the next holder is not told that the owner died': { file: 'node/lib/mutex.js',
    from: 'return (load(this.array, this.index) & DIED) !== 0;', to: 'return false;', found: HOLDING },
  'what a worker had is not used again': { file: 'web/lib/death.js', from: 'instance.end(area);', to: ';',
    found: 'scale: 40 environments at a time attach and close, and their memory is used again' },
  'the page may block': { file: 'node/lib/core.js', from: 'if (!canBlock) throw', to: 'if (false) throw',
    found: 'misuse: blocking forms throw a TypeError on the page' },
  'unlock wakes no waiter': { file: 'node/lib/mutex.js', from: 'const status = native.release(KIND.MUTEX);',
    to: 'const status = STATUS.OK; store(this.array, this.index, this.free);', found: EXCLUSION },
  'a lock that is held is taken': { file: 'node/lib/mutex.js',
    from: 'if (compareExchange(this.array, this.index, this.free, this.taken) !== this.free) return false;',
    to: 'store(this.array, this.index, this.taken);', found: EXCLUSION },
  'an early alarm is not set again': { file: 'web/lib/bell.js', from: 'setTimeout(setAlarm,',
    to: 'setTimeout(dispatch,', found: 'wait: an early alarm is set again' },
  'abort leaves the waiter in line': { file: 'node/lib/core.js',
    from: 'if (native.cancel(operation.id) !== STATUS.OK) return false;', to: '',
    found: 'abort: a thousand waits by one signal' },
  'free takes what is free already': { source: 'web/native/web.c', from: '&marked, 0))', to: '&marked, marked))',
    found: 'misuse: free, of what was not allocated' },
  'memory of others is accepted': { file: 'web/lib/index.js', from: 'return known.has(buffer);', to: 'return true;',
    found: 'misuse: arrays of other memory' },
};
