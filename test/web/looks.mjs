// SPDX-License-Identifier: MIT
// What the tests of the demonstration pages run inside them: each function must be complete in itself.

/* What is wider than the page, or cut off. The places are filled first with the longest texts that they can have. */
export function layoutFaults() {
  for (const rule of document.styleSheets[0].cssRules) {
    if (rule.media?.mediaText.includes('reduced-motion')) rule.media.mediaText = 'all'; // nothing is on its way
  }
  dispatchEvent(new Event('resize'));
  const fill = (selector, text) => {
    for (const node of document.querySelectorAll(selector)) node.textContent = text;
  };
  fill('.token span, #threads li .name', 'Worker 12');
  fill('.table.low td:nth-child(2) span', 'waits for more jobs, place 8');
  fill('.chip', 'Page 99 s');
  for (const chip of document.querySelectorAll('.chip')) chip.hidden = false;
  const root = document.documentElement, faults = [];
  const nameOf = (node) => `${node.localName}.${node.className}#${node.id}`;
  if (root.scrollWidth > root.clientWidth) faults.push(`${root.scrollWidth} pixels wide`);
  for (const node of document.querySelectorAll('body *:not(pre *, svg *, pre, .log, .skip)')) {
    if (node.clientWidth === 0) continue;
    const { right } = node.getBoundingClientRect();
    if (right > root.clientWidth + 1) faults.push(`${nameOf(node)} ends at ${right}`);
    if (node.scrollWidth > node.clientWidth + 1) faults.push(`${nameOf(node)}: too narrow`);
    if (node.matches('tr, td, .token, .chips, .threads li') && node.scrollHeight > node.clientHeight + 1)
      faults.push(`${nameOf(node)}: too low`);
  }
  return faults;
}

/* The contrast of each text with what is behind it, and of samples of what is seen rarely. */
export function weakContrasts(scheme) {
  globalThis.darkRules ??= [...document.styleSheets[0].cssRules]
    .filter(({ media }) => media?.mediaText.includes('prefers-color-scheme'));
  for (const { media } of globalThis.darkRules) media.mediaText = scheme === 'dark' ? 'all' : 'not all';
  const samples = document.createElement('div');
  samples.innerHTML = `<div class="card problem"><h2>a</h2><p>b</p></div><button aria-disabled="true">c</button>
    <div class="log"><span class="died">d</span></div><div class="token ended">e</div>
    <span class="chip holds">f</span>`;
  document.querySelector('main').append(samples);
  const partsOf = (colour) => colour.match(/[\d.]+/g).map(Number);
  const lightOf = (colour) => partsOf(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => (Math.max(lightOf(a), lightOf(b)) + 0.05) / (Math.min(lightOf(a), lightOf(b)) + 0.05);
  function groundsOf(node) {
    const svg = node.closest('svg');
    if (svg) return [...svg.querySelectorAll('rect')].map((rect) => getComputedStyle(rect).fill);
    for (let at = node; at; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      if (partsOf(backgroundColor)[3] !== 0) return [backgroundColor];
    }
    return ['rgb(255, 255, 255)'];
  }
  let least = Infinity;
  const weak = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { parentElement: node, textContent } = texts.currentNode;
    if (!textContent.trim() || node.closest('script, noscript, title') || node.getClientRects().length === 0) continue;
    const { color, fill } = getComputedStyle(node);
    for (const ground of groundsOf(node)) {
      const ratio = contrast(node.closest('svg') ? fill : color, ground);
      least = Math.min(least, ratio);
      if (ratio < 4.5) weak.push(`${ratio.toFixed(2)}: ${node.localName} "${textContent.trim()}"`);
    }
  }
  samples.remove();
  return { least, weak };
}

/* What the key Tab goes through, in its order; focused() returns the same names. */
export function tabStops() {
  return [...document.querySelectorAll('a[href], button, select, [tabindex="0"]')].map((node, i) => {
    node.dataset.stop = `${i}: ${node.localName} ${node.textContent.trim().slice(0, 20)}`;
    return node.dataset.stop;
  });
}

export function focused() {
  const node = document.activeElement, { outlineStyle, outlineWidth } = getComputedStyle(node);
  const { left, right, top, bottom } = node.getBoundingClientRect();
  const isInView = left >= 0 && right <= innerWidth && top < innerHeight && bottom > 0;
  const label = document.getElementById(node.getAttribute('aria-labelledby')) ?? node.labels?.[0] ?? node;
  const name = node.getAttribute('aria-label') ?? label.textContent;
  return { is: node.dataset.stop ?? node.localName, named: name.trim() !== '',
    seen: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && isInView };
}

/* chapter.html: the threads that are drawn at each place, and what the page has of them: both must be the same. */
export function drawnAndMeant() {
  const tokens = [...document.querySelectorAll('#stage .token:not(.gone)')];
  const isIn = (slot, token) => {
    const [outer, inner] = [slot, token].map((node) => node.getBoundingClientRect());
    return inner.left >= outer.left - 1 && inner.right <= outer.right + 1 && inner.top >= outer.top - 1 &&
      inner.bottom <= outer.bottom + 1;
  };
  const drawnIn = (zone) => [...document.querySelectorAll(`#${zone} .slot`)]
    .map((slot) => tokens.filter((token) => isIn(slot, token)).map((token) => token.firstChild.textContent).join('+'));
  const nameOf = (id) => document.querySelector(`#${id} .name`).textContent;
  const { holder, line } = document.querySelector('main').dataset, ids = line.split(' ').filter((id) => id);
  const said = ids.map((id) => document.querySelector(`#${id} .is`).textContent.match(/waits, place (\d+),/)?.[1]);
  const places = drawnIn('places');
  return { drawn: [...drawnIn('now'), ...places].join(), meant: [holder && nameOf(holder), ...ids.map(nameOf),
    ...Array(places.length - ids.length).fill('')].join(), said: said.join(), places: ids.map((_, i) => i + 1).join(),
    away: drawnIn('away').filter((each) => each).length, others: tokens.length - ids.length - (holder ? 1 : 0) };
}

/* lines.html: what does not fit together in what is shown now. */
export function linesFaults() {
  const faults = [], rowsOf = (id) => [...document.querySelectorAll(`#${id} tr`)];
  const check = (good, what) => { if (!good) faults.push(what); };
  const secondsOf = (text) => parseFloat(text.match(/([\d.]+) s$/)?.[1] ?? '-1');
  const textOf = (row, label) => row.querySelector(`td[data-label="${label}"]`).textContent;
  const chipsOf = (row, label) => [...row.querySelectorAll(`td[data-label="${label}"] .chip`)]
    .filter((chip) => !chip.hidden).map(({ textContent }) => textContent);
  const places = new Map();
  let waiting = 0, lines = 0;
  for (const row of rowsOf('lines')) {
    const name = row.querySelector('th').firstChild.textContent;
    const ids = row.dataset.waiters.split(' ').filter((id) => id);
    const count = Number(textOf(row, 'In line')), shown = chipsOf(row, 'Who waits'), times = shown.map(secondsOf);
    check(Math.min(count, 8) === shown.length && shown.length === ids.length, `${name}: ${count} in line: ${shown}`);
    check(textOf(row, 'Longest') === '\u2013' ? shown.length === 0
      : secondsOf(textOf(row, 'Longest')) === Math.max(...times), `${name}: ${textOf(row, 'Longest')} of ${times}`);
    check(shown.every((text, i) => text.startsWith(ids[i].replace('worker-', 'W').replace('page', 'Page'))),
      `${name}: ${shown} for ${ids}`);
    ids.forEach((id, i) => places.set(id, [...(places.get(id) ?? []), `${name}, place ${i + 1}`]));
    waiting += ids.length;
    if (count > 0) lines++;
  }
  for (const row of rowsOf('threads')) {
    const now = textOf(row, 'Now'), at = places.get(row.id) ?? [];
    check(at.length <= 1, `${row.id} waits at ${at}`);
    check(at.length === 0 ? !/^waits for|^rests/.test(now) : /^(holds|reads|uses|rests)/.test(now) ||
      now === `waits for ${at[0]}`, `${row.id}: ${now}; in line: ${at}`);
  }
  const sum = document.getElementById('sum').textContent;
  check(sum === `${waiting} of 9 threads wait, in ${lines} of 6 lines.`, `${sum} ${waiting}, ${lines}`);
  return faults;
}

/* lines.html: what of the tables changes, beside texts, until the times in line have been drawn so often. */
export function changesAtRest(draws) {
  const tables = document.querySelectorAll('#lines, #threads'), changes = [];
  const isElement = ({ nodeType }) => nodeType === Node.ELEMENT_NODE;
  return new Promise((resolve) => {
    let left = draws;
    const observer = new MutationObserver((records) => {
      for (const { type, target, attributeName, addedNodes, removedNodes } of records) {
        if (type === 'attributes') changes.push(`${attributeName} of ${target.localName} ${target.id}`);
        else if ([...addedNodes, ...removedNodes].some(isElement)) changes.push(`elements of ${target.localName}`);
      }
      if (--left > 0) return;
      observer.disconnect();
      resolve(changes);
    });
    for (const table of tables) observer.observe(table, { attributes: true, childList: true, subtree: true });
  });
}
