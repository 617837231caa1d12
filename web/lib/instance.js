// SPDX-License-Identifier: MIT
// An instance of the module: a thread of the library, on memory that all of them share. See src/prim/wasm/prim_wasm.h.

export const STACK_BYTES = 32768;

/* SIDE, a constant of the build: this is the package for memory that belongs to another program, in which the module
 * is position-independent and gets a place (side.js). */

/*
 * Make an instance of handle.module, without a stack and thread-local data: those are what begin() and resume() give
 * it. Self-contained, because its source is also that of the workers that run threads of the library.
 *
 * hooks: alarm(word, at), when the loop must dispatch; start(main, argument), which starts a thread; spin(), if this
 * thread may not sleep.
 */
export async function openInstance(handle, hooks, stackBytes) {
  const { module, memory } = handle, decoder = new TextDecoder();
  const { timeOrigin } = performance; // reading it takes longer than now()
  const textAt = (address, bytes) => decoder.decode(new Uint8Array(memory.buffer, address, bytes).slice());
  const env = {
    memory,
    vigil_now: () => timeOrigin + performance.now(),
    vigil_processors: () => navigator.hardwareConcurrency,
    vigil_alarm: hooks.alarm,
    vigil_thread_start: hooks.start,
    vigil_spin: hooks.spin ?? (() => {}),
    vigil_write: (fd, address, bytes) => (console.error(textAt(address, bytes)), 1),
  };
  if (SIDE) {
    const global = (value, mutable = false) => new WebAssembly.Global({ value: 'i32', mutable }, value);
    env.__memory_base = global(handle.base);
    env.__table_base = global(1);
    env.__stack_pointer = global(handle.heap, true);
    env.__indirect_function_table = new WebAssembly.Table({ element: 'anyfunc', initial: 1 + handle.functions });
  }
  const { exports } = await WebAssembly.instantiate(module, { env });
  const stack = SIDE ? env.__stack_pointer : exports.__stack_pointer, firstStack = stack.value;
  const table = SIDE ? env.__indirect_function_table : exports.__indirect_function_table;
  /* Of a variable that is exported. */
  const addressOf = (variable) => (SIDE ? handle.base + variable.value : variable.value);

  const words = new Int32Array(memory.buffer), door = addressOf(exports.prim_wasm_door) >> 2;
  const number = Atomics.add(words, addressOf(exports.prim_wasm_threads) >> 2, 1) + 1;

  /* Unlock the door of prim_wasm.h, if the thread of that number has locked it. */
  function unlock(number) {
    if (Atomics.load(words, door) >>> 1 === number && Atomics.exchange(words, door, 0) & 1)
      Atomics.notify(words, door, 1);
  }

  /*
   * Do that behind the door. It is locked for a microsecond, unless a worker was terminated there: then it stays locked
   * until that is noticed, in which this thread may have a part.
   */
  async function behindDoor(work) {
    while (Atomics.compareExchange(words, door, 0, 2 * number) !== 0)
      await new Promise((resolve) => { setTimeout(resolve); });
    stack.value = firstStack;
    const result = work();
    unlock(number);
    return result;
  }

  return {
    exports,
    table,
    addressOf,
    number,
    unlock,

    /* A new thread: the address of its area, or 0 if there is no memory for it. */
    async begin(mayPark) {
      const area = await behindDoor(() => exports.prim_wasm_take_area(stackBytes));
      if (area === 0) return 0;
      stack.value = area + stackBytes;
      exports.__wasm_init_tls(area + stackBytes);
      exports.prim_wasm_begin_thread(mayPark, number);
      return area;
    },

    /* Be the thread that has that area, and does not run any more. This one does not sleep: it may be a page's. */
    resume(area) {
      stack.value = area + stackBytes;
      exports.__tls_base.value = area + stackBytes;
      exports.prim_wasm_resume_thread(false);
    },

    end(area) {
      exports.prim_wasm_end_thread();
      return behindDoor(() => exports.prim_wasm_give_area(area));
    },
  };
}

/* A worker that runs main(argument) of the module. */
export function startThread(handle, main, argument) {
  const run = async ({ data }) => {
    const [handle, main, argument, stackBytes] = data;
    const instance = await openInstance(handle, { alarm() {}, start: () => 0 }, stackBytes);
    const area = await instance.begin(true);
    if (area !== 0) instance.table.get(main)(argument);
    if (area !== 0) await instance.end(area);
    self.close();
  };
  const source = `const ${openInstance.name}=${openInstance};onmessage=${run}`;
  const worker = workerOf(source, 'vigil');
  worker.postMessage([handle, main, argument, STACK_BYTES]);
}

export function workerOf(source, name) {
  const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
  try {
    return new Worker(url, { name });
  } finally {
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
}
