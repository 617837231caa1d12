// SPDX-License-Identifier: MIT
// An instance of the module: a thread of the library, on memory that all of them share. See src/prim/wasm/prim_wasm.h.

export const STACK_BYTES = 32768;

/*
 * Make an instance, without a stack and thread-local data: those are what begin() and resume() give it. Self-contained,
 * because its source is also that of the workers that run threads of the library.
 *
 * hooks: alarm(word, at), when the loop must dispatch; start(main, argument), which starts a thread; spin(), if this
 * thread may not sleep.
 */
export async function openInstance(module, memory, hooks, stackBytes) {
  const decoder = new TextDecoder(), { timeOrigin } = performance; // reading it takes longer than now()
  const textAt = (address, bytes) => decoder.decode(new Uint8Array(memory.buffer, address, bytes).slice());
  const { exports } = await WebAssembly.instantiate(module, {
    env: {
      memory,
      vigil_now: () => timeOrigin + performance.now(),
      vigil_processors: () => navigator.hardwareConcurrency,
      vigil_alarm: hooks.alarm,
      vigil_thread_start: hooks.start,
      vigil_spin: hooks.spin ?? (() => {}),
      vigil_write: (fd, address, bytes) => (console.error(textAt(address, bytes)), 1),
    },
  });
  const firstStack = exports.__stack_pointer.value;

  /* The door of prim_wasm.h. It is locked for a microsecond; if it stays locked, a worker was terminated there. */
  function behindDoor(work) {
    const words = new Int32Array(memory.buffer), door = exports.prim_wasm_door.value >> 2;
    const end = performance.now() + 2000;
    while (Atomics.compareExchange(words, door, 0, 1) !== 0 && performance.now() < end);
    exports.__stack_pointer.value = firstStack;
    const result = work();
    Atomics.store(words, door, 0);
    return result;
  }

  return {
    exports,

    /* A new thread: the address of its area, or 0 if there is no memory for it. */
    begin(mayPark) {
      const area = behindDoor(() => exports.prim_wasm_take_area(stackBytes));
      if (area === 0) return 0;
      exports.__stack_pointer.value = area + stackBytes;
      exports.__wasm_init_tls(area + stackBytes);
      exports.prim_wasm_begin_thread(mayPark);
      return area;
    },

    /* Be the thread that has that area, and does not run any more. */
    resume(area, mayPark) {
      exports.__stack_pointer.value = area + stackBytes;
      exports.__tls_base.value = area + stackBytes;
      exports.prim_wasm_resume_thread(mayPark);
    },

    end(area) {
      exports.prim_wasm_end_thread();
      behindDoor(() => exports.prim_wasm_give_area(area));
    },
  };
}

/* A worker that runs main(argument) of the module. */
export function startThread(module, memory, main, argument) {
  const run = async ({ data }) => {
    const [module, memory, main, argument, stackBytes] = data;
    const instance = await openInstance(module, memory, { alarm() {}, start: () => 0 }, stackBytes);
    const area = instance.begin(true);
    if (area !== 0) instance.exports.__indirect_function_table.get(main)(argument);
    if (area !== 0) instance.end(area);
    self.close();
  };
  const source = `const ${openInstance.name}=${openInstance};onmessage=${run}`;
  const worker = workerOf(source, 'vigil');
  worker.postMessage([module, memory, main, argument, STACK_BYTES]);
}

export function workerOf(source, name) {
  const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
  try {
    return new Worker(url, { name });
  } finally {
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
}
