// SPDX-License-Identifier: MIT
// How chapter.html looks: one token for each thread, which moves between the places; a row of text for each; a log.

import { byId, make, setText, enable, onPress, stillWanted } from './common.js';

const MOST = 7; // the page and six workers
const LOG_MOST = 60;

function slotsOf(id, count, labelOf) {
  const slots = Array.from({ length: count }, (_, i) => make('div', { className: 'slot' }, labelOf(i)));
  byId(id).append(...slots);
  return slots;
}

const slots = { now: slotsOf('now', 1, () => ''), line: slotsOf('places', MOST, () => ''),
  away: slotsOf('away', MOST, () => '') };
const stage = byId('stage');

function move(token, slot) {
  token.style.width = `${slot.clientWidth - 8}px`;
  token.style.height = `${slot.clientHeight - 8}px`;
  const from = stage.getBoundingClientRect(), to = slot.getBoundingClientRect();
  const x = to.left - from.left + slot.clientLeft, y = to.top - from.top + slot.clientTop; // within its border
  token.style.transform = `translate(${x}px, ${y}px)`;
}

/* What is drawn of a thread: {token, row}. The buttons call queue and terminate, if they are given. */
export function addThread(id, name, { queue, terminate } = {}) {
  const token = make('div', { className: id === 'page' ? 'token page still' : 'token still' }, make('span', {}, name),
    make('small'));
  const row = make('li', { id }, make('span', { className: 'name' }, name), make('span', { className: 'is' }));
  const buttons = {};
  if (queue) {
    buttons.queue = make('button', { type: 'button', className: 'small queue' }, 'Lock');
    buttons.terminate = make('button', { type: 'button', className: 'small terminate' }, 'Terminate');
    for (const [button, action] of [[buttons.queue, queue], [buttons.terminate, terminate]]) {
      button.setAttribute('aria-label', `${button.textContent}: ${name}`);
      onPress(button, action);
    }
    row.append(make('span', { className: 'buttons' }, buttons.queue, buttons.terminate));
  }
  stage.append(token);
  byId('threads').append(row);
  return { token, row, buttons };
}

export function removeThread({ token, row }) {
  token.classList.add('gone');
  if (row.contains(document.activeElement)) byId('add').focus();
  row.remove();
  setTimeout(() => token.remove(), stillWanted.matches ? 0 : 500);
}

/* zones: {now, line, away}, each a list of threads in their order. */
export function place(zones) {
  for (const [zone, threads] of Object.entries(zones)) {
    threads.slice(0, slots[zone].length).forEach(({ view }, i) => {
      move(view.token, slots[zone][i]);
      if (view.token.classList.contains('still')) setTimeout(() => view.token.classList.remove('still'), 50);
    });
  }
}

export function describe({ view, isEnded }, short, long, canQueue) {
  setText(view.token.lastChild, short);
  setText(view.row.querySelector('.is'), long);
  view.token.classList.toggle('ended', isEnded);
  if (!view.buttons.queue) return;
  enable(view.buttons.queue, canQueue);
  enable(view.buttons.terminate, !isEnded);
}

const began = performance.now();

/* Into the log; and, unless it is minor, into the line that screen readers read out. */
export function say(text, { minor = false, died = false } = {}) {
  const time = `${((performance.now() - began) / 1000).toFixed(1)} s`;
  const log = byId('log');
  log.prepend(make('li', {}, make('time', {}, time), make('span', { className: died ? 'died' : '' }, text)));
  if (log.children.length > LOG_MOST) log.lastChild.remove();
  if (!minor) setText(byId('said'), text);
}
