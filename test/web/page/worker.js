// SPDX-License-Identifier: MIT
// A worker of the tests: see Context.worker in support.js.

const { searchParams } = new URL(location);
if (searchParams.get('without') === 'waitAsync') delete Atomics.waitAsync;

const AsyncFunction = (async () => {}).constructor;
const items = [], readers = [];
const hear = () => new Promise((resolve) => (items.length > 0 ? resolve(items.shift()) : readers.push(resolve)));
const say = (said) => postMessage({ said });
const { port1, port2 } = new MessageChannel(), turns = [];
port1.onmessage = () => turns.shift()();
const tick = () => new Promise((resolve) => {
  turns.push(resolve);
  port2.postMessage(0);
});

function randomOf(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 4294967296) * n);
  };
}

async function begin({ handle, code, data }) {
  try {
    const library = await import(`/vigil/${searchParams.get('script') ?? 'vigil'}.js`);
    const vigil = handle && await library.Vigil.attach(handle);
    const body = new AsyncFunction('vigil', 'data', 'say', 'hear', 'library', 'tick', 'randomOf', code);
    const result = await body(vigil, data, say, hear, library, tick, randomOf);
    if (result !== undefined) say(result);
  } catch (error) {
    postMessage({ error: String(error?.stack ?? error).includes(error?.message) ? error.stack : String(error) });
  }
}

onmessage = ({ data }) => {
  if (data.code !== undefined) begin(data);
  else if (readers.length > 0) readers.shift()(data.told);
  else items.push(data.told);
};
