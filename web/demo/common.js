// SPDX-License-Identifier: MIT
// What the pages share: opening Vigil, saying why it cannot be opened, and changing the page without needless work.

export const byId = (id) => document.getElementById(id);

/* Write only what has changed: so nothing flashes, and a selection stays. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
export function setData(node, name, value) {
  if (node.dataset[name] !== String(value)) node.dataset[name] = value;
}

/* An element with properties and children: make('li', { className: 'a' }, 'text'). */
export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/* A button that cannot be used now keeps the focus, so it is not `disabled`. */
export function enable(button, on) {
  const value = on ? 'false' : 'true';
  if (button.getAttribute('aria-disabled') !== value) button.setAttribute('aria-disabled', value);
}
export function onPress(button, action) {
  button.addEventListener('click', (event) => {
    event.preventDefault();
    if (button.getAttribute('aria-disabled') !== 'true') action();
  });
}

export function seconds(ms) {
  return ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}
export function milliseconds(ms) {
  return ms < 9.95 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

/* Say at the top of the page why it cannot do anything, or not any more. */
function showFailure(title, text, ...more) {
  const main = document.querySelector('main');
  for (const button of main.querySelectorAll('button')) enable(button, false);
  const box = make('section', { className: 'card problem' }, make('h2', {}, title),
    make('p', {}, text[0].toUpperCase() + text.slice(1)), ...more);
  box.setAttribute('role', 'alert');
  main.prepend(box);
  main.dataset.state = 'failed';
  for (const node of document.querySelectorAll('.said, .status')) setText(node, 'Nothing can be shown.');
}

export const hasFailed = () => document.querySelector('main').dataset.state === 'failed';

/* For a host that cannot set headers: isolate.js adds them, from the next load on. */
function offerServiceWorker() {
  if (!navigator.serviceWorker) return [];
  const button = make('button', { id: 'isolate', type: 'button' }, 'Add the headers by a service worker, and reload');
  onPress(button, async () => {
    await navigator.serviceWorker.register('isolate.js');
    await navigator.serviceWorker.ready;
    location.reload();
  });
  return [button];
}

/* The library, or undefined: then the page says why. */
export async function openVigil() {
  let package_;
  try {
    package_ = await import('./vigil/vigil.js');
  } catch (error) {
    showFailure('The package is not there', `vigil/vigil.js cannot be loaded: run web/build.sh. (${error.message})`);
    return undefined;
  }
  try {
    return await package_.Vigil.create({
      onDamage: (error) => showFailure('The shared memory is damaged', error.message),
    });
  } catch (error) {
    const isolated = globalThis.crossOriginIsolated !== false;
    showFailure(isolated ? 'Vigil cannot be opened' : 'This page is not cross-origin isolated', error.message,
      ...(isolated ? [] : offerServiceWorker()));
    return undefined;
  }
}

export function startWorker(file, name) {
  return new Worker(new URL(file, import.meta.url), { type: 'module', name });
}

export const stillWanted = matchMedia('(prefers-reduced-motion: reduce)');
