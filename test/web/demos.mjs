// SPDX-License-Identifier: MIT
// Tests of the demonstration pages: their buttons, and the numbers on them; that they can be read and used.

import { within } from './browsers.mjs';
import { changesAtRest, drawnAndMeant, focused, layoutFaults, linesFaults, tabStops, weakContrasts }
  from './looks.mjs';

/* Longer than anything takes that does not hang. */
export const limits = { demoMs: 45000 };
const NAMES = ['index', 'chapter', 'article', 'lines'];
const WIDTHS = [320, 360, 480, 720, 820, 1280];

function check(good, what) {
  if (!good) throw new Error(what);
}

/*
 * Returns what the function returns in the page, as soon as that is true there. `loads`: the page may be loaded again
 * meanwhile, and cannot be asked then.
 */
function until(page, what, body, argument, loads = false) {
  const look = async () => {
    for (;;) {
      const seen = await page.evaluate(body, argument).catch((error) => {
        if (!loads) throw error;
      });
      if (seen) return seen;
      await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
  };
  return within(look(), what, limits.demoMs);
}

async function open(browser, address, first) {
  const page = await browser.open(address, { ready: false, first });
  const state = await until(page, 'the page begins', () => {
    const { state: now } = document.querySelector('main').dataset;
    return ['ready', 'failed'].includes(now) && now;
  });
  check(state === 'ready', `the page is ${state}`);
  return page;
}

/* index.html has no state. */
const openNamed = (browser, demo, name) => (name === 'index' ? browser.open(`${demo}index.html`, { ready: false })
  : open(browser, `${demo}${name}.html`));

/* Also what the page does not offer. */
const select = (page, id, value) => page.evaluate(([which, what]) => {
  const chosen = document.getElementById(which);
  chosen.value = what;
  if (chosen.value !== what) chosen.add(new Option(what, what, true, true));
}, [id, value]);

/*
 * The chapter's page, with two workers in line, which hold the lock for as long as this: they learn it as they queue.
 * Returns the page and the line.
 */
async function openChapter(browser, demo, holdMs) {
  const choose = (ms) => addEventListener('DOMContentLoaded', () => {
    const option = document.querySelector('#hold option');
    option.value = String(ms);
    document.getElementById('hold').value = option.value;
  });
  const page = await open(browser, `${demo}chapter.html`, [choose, holdMs]);
  const line = await until(page, 'both workers wait', () => {
    const { holder, line: now } = document.querySelector('main').dataset;
    return holder === 'page' && now.split(' ').length === 2 && now.split(' ');
  });
  return { page, line };
}
const FOR_EVER_MS = 100000000;

const press = async (page, selector) => {
  await until(page, `${selector} can be pressed`,
    (which) => document.querySelector(`${which}[aria-disabled=false]`) !== null, selector);
  await page.click(selector);
};

const chapterIs = (page, ...wanted) => until(page, `holder and line are ${wanted.join(', ')}`, ([holder, line]) => {
  const { dataset } = document.querySelector('main');
  return dataset.holder === holder && dataset.line === line;
}, wanted);

/*
 * Unlock, and return the worker that has got the lock, and the other one, which waits. Usually that is their order in
 * the line; but a waiter that is called and does not come for some milliseconds is passed by the next: page/order.js.
 */
async function unlockAndSeeHolder(page) {
  await press(page, '#unlock');
  return until(page, 'one worker has the lock, and the other one waits', () => {
    const { holder, line } = document.querySelector('main').dataset;
    return /^worker-\d$/.test(holder) && /^worker-\d$/.test(line) && [holder, line];
  });
}

/* Tokens are on their way for a moment. */
async function drawnAsMeant(page) {
  let last;
  const agrees = async () => {
    for (;;) {
      last = await page.evaluate(drawnAndMeant);
      if (last.drawn === last.meant && last.said === last.places && last.away === last.others) return;
    }
  };
  await within(agrees(), 'drawn as meant', limits.demoMs).catch(() => check(false, JSON.stringify(last)));
}

/* The figures of a run beside what is shown of them. */
function articleFaults(figures) {
  const valueOf = (id) => Number(document.getElementById(id).dataset.value), faults = [];
  for (const kind of ['article', 'vigil']) {
    const { ms, grants, longestMs, drawn, dropped, longestFrameMs } = figures[kind];
    const sum = grants.reduce((a, b) => a + b, 0), expected = { grants: sum, share: grants[0] / sum,
      rate: Math.round(sum / Math.max(1, ms) * 1000), 'page-longest': longestMs[0],
      'workers-longest': Math.max(...longestMs.slice(1)), dropped, frame: longestFrameMs };
    grants.forEach((each, i) => {
      const name = i === 0 ? 'page' : `worker-${i}`, { width } = document.getElementById(`${kind}-${name}-bar`).style;
      Object.assign(expected, { [`${name}-grants`]: each, [`${name}-share`]: each / sum });
      if (Math.abs(parseFloat(width) - Math.min(100, 250 * each / sum)) > 0.01) faults.push(`${name}: ${width} wide`);
    });
    for (const [name, value] of Object.entries(expected))
      if (valueOf(`${kind}-${name}`) !== value) faults.push(`${kind}-${name}: ${valueOf(`${kind}-${name}`)}, ${value}`);
    const frames = document.getElementById(`${kind}-dropped`).textContent;
    if (frames !== `${dropped} of ${drawn + dropped}` || drawn === 0) faults.push(`${kind}: frames: ${frames}`);
    if (longestMs.some((each) => !(each >= 0 && each <= ms + 1000))) faults.push(`${kind}: waits of ${longestMs}`);
  }
  return faults;
}

/* Unlock: both workers must get the lock, and then the page. Returns whether that was in the order of the line. */
async function isInOrder(browser, demo, note) {
  const { page, line } = await openChapter(browser, demo, 1);
  await page.click('#unlock');
  const names = line.map((id) => id.replace('worker-', 'Worker '));
  const log = await until(page, 'both workers had it', (both) => {
    const all = [...document.querySelectorAll('#log li')].map(({ textContent }) => textContent).reverse().join('\n');
    return both.every((name) => all.includes(`${name} got the lock`)) && all;
  }, names);
  const [first, second] = names.map((name) => log.indexOf(`${name} got the lock`));
  if (first > second) note(`not in the order of the line, ${line}:\n${log}`);
  await page.click('#lock');
  await until(page, 'the page has it again', () => document.querySelector('main').dataset.holder === 'page');
  await page.close();
  return first < second;
}

export const demoTests = {
  /* A busy machine may be late, as in page/order.js: one attempt must be in order. */
  'demo: the chapter: the click unlocks, and the workers get the lock in order': async (browser, { demo }, note) => {
    let attempts = 1;
    while (!await isInOrder(browser, demo, note)) check(++attempts <= 10, 'not once in the order of the line');
  },

  'demo: the article: the figures of a run are complete and fit together': async (browser, { demo }, note) => {
    const page = await open(browser, `${demo}article.html`);
    for (const choice of [['hold', '0.2'], ['length', '1000'], ['rounds', '1']]) await select(page, ...choice);
    await page.click('#start');
    const figures = await until(page, 'the run ends', () => document.querySelector('main').dataset.state === 'done' &&
      JSON.parse(document.getElementById('figures').textContent));
    check(!figures.stopped, 'it was stopped');
    const faults = await page.evaluate(articleFaults, figures);
    check(faults.length === 0, faults.join('; '));
    for (const kind of ['article', 'vigil']) {
      const { grants, longestMs } = figures[kind], sum = grants.reduce((a, b) => a + b, 0);
      check(grants.length === 5 && sum > 0, `${kind}: ${grants} grants`);
      note(`${kind}: ${sum} grants; the page ${(100 * grants[0] / sum).toFixed(1)} %, ${longestMs[0].toFixed(0)} ms`);
    }
    await page.close();
  },

  /*
   * The page holds the lock for 400 ms, in which it draws nothing, and then waits for the four workers: four times as
   * long. So a page which blocks or spins while it waits draws nothing for longer than its longest wait. How fast the
   * computer is does not matter: all of them look at the clock.
   */
  'demo: the article: the page draws while it waits': async (browser, { demo }, note) => {
    const page = await open(browser, `${demo}article.html`);
    for (const choice of [['hold', '400'], ['length', '4000'], ['rounds', '1']]) await select(page, ...choice);
    await page.click('#start');
    const { vigil } = await until(page, 'the run ends', () => document.querySelector('main').dataset.state === 'done' &&
      JSON.parse(document.getElementById('figures').textContent));
    const frameMs = vigil.longestFrameMs, waitMs = vigil.longestMs[0];
    const seen = `${frameMs.toFixed(0)} ms without a frame, ${waitMs.toFixed(0)} ms of waiting`;
    check(frameMs < 0.75 * waitMs, seen);
    note(`${seen}; ${vigil.drawn} frames`);
    await page.close();
  },

  'demo: the article: Stop ends a run, and another can begin': async (browser, { demo }) => {
    const page = await open(browser, `${demo}article.html`);
    for (const choice of [['length', '10000'], ['rounds', '5']]) await select(page, ...choice);
    for (let i = 0; i < 2; i++) {
      await press(page, '#start');
      await until(page, 'a grant', () => Number(document.getElementById('article-grants').dataset.value) > 0);
      check(await page.evaluate(() => document.querySelector('#start[aria-disabled=true]') !== null), 'Start is left');
      await press(page, '#stop');
      await until(page, 'the run ends', () => document.querySelector('main').dataset.state === 'done');
      const [status, { stopped }] = await page.evaluate(() => [document.getElementById('status').textContent,
        JSON.parse(document.getElementById('figures').textContent)]);
      check(stopped && status === 'Stopped.', `${stopped}: ${status}`);
    }
    await page.close();
  },

  'demo: who waits: what is shown fits together': async (browser, { demo }) => {
    const page = await open(browser, `${demo}lines.html`), lines = new Set();
    while (lines.size < 10) {
      const [faults, shown] = await page.evaluate(new Function(`return [(${linesFaults})(),
        [...document.querySelectorAll('#lines tr')].map(({ dataset }) => dataset.waiters).join()]`));
      check(faults.length === 0, faults.join('; '));
      lines.add(shown);
    }
    await page.close();
  },

  'demo: who waits: at rest nothing flashes or changes its place': async (browser, { demo }) => {
    const page = await open(browser, `${demo}lines.html`);
    await press(page, '#pause');
    await until(page, 'all threads wait', () => document.getElementById('sum').textContent.startsWith('9 of 9 '));
    const changes = await page.evaluate(changesAtRest, 8);
    check(changes.length === 0, [...new Set(changes)].join('; '));
    check((await page.evaluate(linesFaults)).length === 0, 'what is shown does not fit together');
    await page.close();
  },

  'demo: who waits: lines come and go, and all threads rest when they are told to': async (browser, { demo }) => {
    const page = await open(browser, `${demo}lines.html`);
    await until(page, 'a line with a holder', () => [...document.querySelectorAll('#lines tr')]
      .some(({ dataset }) => Number(dataset.count) > 0 && dataset.holders !== '' && dataset.waiters !== ''));
    await page.click('#pause');
    await until(page, 'nothing is held', () => [...document.querySelectorAll('#lines tr')]
      .every(({ dataset }) => dataset.holders === ''));
    await page.click('#pause');
    await until(page, 'something is held again', () => [...document.querySelectorAll('#lines tr')]
      .some(({ dataset }) => dataset.holders !== ''));
    await page.close();
  },

  'demo: the chapter: workers that are terminated leave, and the next one gets the lock': async (browser, { demo }) => {
    const { page } = await openChapter(browser, demo, FOR_EVER_MS), [holder, other] = await unlockAndSeeHolder(page);
    await page.click(`#${holder} .terminate`);
    await until(page, 'the other one has it', (id) => document.querySelector('main').dataset.holder === id, other);
    await page.click('#lock');
    await until(page, 'the page waits', () => document.querySelector('main').dataset.line === 'page');
    await page.click(`#${other} .terminate`);
    await until(page, 'the page has it', () => document.querySelector('main').dataset.holder === 'page' &&
      document.querySelectorAll('#threads li').length === 1);
    check((await page.evaluate(() => document.getElementById('said').textContent)).includes('was terminated'),
      'the page is not told');
    await page.close();
  },

  'demo: the chapter: the page draws while it waits, and can leave the line': async (browser, { demo }) => {
    const { page } = await openChapter(browser, demo, FOR_EVER_MS);
    await drawnAsMeant(page);
    const [holder, other] = await unlockAndSeeHolder(page);
    await press(page, '#lock');
    await chapterIs(page, holder, `${other} page`);
    await drawnAsMeant(page);
    const texts = await within(page.evaluate(async () => {
      const seen = new Set();
      for (let frames = 0; frames < 30 || seen.size < 3; frames++) {
        await new Promise((resolve) => { requestAnimationFrame(resolve); });
        seen.add(document.querySelector('#page .is').textContent);
      }
      return [...seen];
    }), '30 frames', limits.demoMs);
    check(texts.every((text) => text.startsWith('waits, place 2, ')), texts.join('; '));
    await press(page, '#leave');
    await chapterIs(page, holder, other);
    await drawnAsMeant(page);
    const said = await page.evaluate(() => document.getElementById('said').textContent);
    check(said === 'The page left the line.', said);
    await page.close();
  },

  'demo: the chapter: workers are added, and each can queue again': async (browser, { demo }) => {
    const { page } = await openChapter(browser, demo, 100);
    for (const name of ['worker-3', 'worker-4', 'worker-5', 'worker-6']) {
      await press(page, '#add');
      await until(page, `${name} waits`, (id) => document.querySelector('main').dataset.line.endsWith(id), name);
    }
    check(await page.evaluate(() => document.querySelector('#add[aria-disabled=true]') !== null), 'no limit');
    await drawnAsMeant(page);
    await press(page, '#unlock');
    const isQuiet = () => !document.querySelector('.queue[aria-disabled=true]');
    await until(page, 'all workers had it', isQuiet); // the page could pass the last one
    await press(page, '#lock');
    await chapterIs(page, 'page', '');
    await drawnAsMeant(page);
    const line = [];
    for (const name of ['worker-5', 'worker-2']) {
      await press(page, `#${name} .queue`);
      line.push(name);
      await chapterIs(page, 'page', line.join(' '));
    }
    await drawnAsMeant(page);
    await page.close();
  },

  /* The channel by which the library tells of damage: lib/death.js. */
  'demo: the chapter: damaged memory: the page says so, and stops': async (browser, { demo }) => {
    const page = await open(browser, `${demo}chapter.html`);
    await page.evaluate(async () => {
      const held = () => navigator.locks.query().then((all) => all.held);
      const { clientId } = (await navigator.locks.request('mine', held)).find(({ name }) => name === 'mine');
      const { name } = (await held()).find((lock) => lock.clientId === clientId); // not of a page that is closing
      new BroadcastChannel(name.split(' ', 2).join(' ')).postMessage({ damaged: true });
    });
    await until(page, 'the page says so', () => document.querySelector('main[data-state=failed] > .problem') !== null);
    const { errors, enabled, said } = await page.evaluate(() => {
      const seen = [];
      addEventListener('error', ({ message }) => seen.push(message));
      dispatchEvent(new Event('resize')); // it would draw
      return { errors: seen, enabled: document.querySelectorAll('main button[aria-disabled=false]').length,
        said: document.getElementById('said').textContent };
    });
    check(errors.length === 0 && enabled === 0 && said === 'Nothing can be shown.', `${errors}; ${enabled}; ${said}`);
    await page.close();
  },

  'demo: on a host without headers: the service worker isolates the pages': async (browser, { plainDemo }) => {
    const page = await browser.open(`${plainDemo}chapter.html`, { ready: false });
    await until(page, 'the page says that it is not isolated', () => !globalThis.crossOriginIsolated &&
      document.querySelector('main[data-state=failed] > .problem #isolate') !== null);
    await page.click('#isolate');
    await until(page, 'it is loaded again, and ready', () => globalThis.crossOriginIsolated &&
      document.querySelector('main')?.dataset.state === 'ready', undefined, true);
    await until(page, 'both workers wait', () => document.querySelector('main').dataset.line.includes(' '));
    await page.click('#unlock');
    await until(page, 'a worker has it', () => document.querySelector('main').dataset.holder.startsWith('worker'));
    const other = await open(browser, `${plainDemo}lines.html`); // from its first load on
    check(await other.evaluate(() => navigator.serviceWorker.controller !== null), 'served by the service worker');
    await other.close();
    await page.evaluate(async () => (await navigator.serviceWorker.getRegistration()).unregister());
    await page.reload();
    await until(page, 'without it, the page is not isolated', () => !globalThis.crossOriginIsolated &&
      document.querySelector('main[data-state=failed]') !== null, undefined, true);
    await page.close();
  },

  'demo: nothing is loaded from elsewhere': async (browser, { demo }, note) => {
    const originOf = (address) => new URL(address).origin; // of blob:http://..., too
    for (const name of NAMES) {
      const page = await openNamed(browser, demo, name);
      await page.close();
      check(page.requests.includes(`${demo}${name}.html`), `${name}: its requests are not seen`);
      const elsewhere = page.requests.filter((address) => originOf(address) !== originOf(demo));
      check(elsewhere.length === 0, `${name}: ${elsewhere.join(' ')}`);
      note(`${name}: ${page.requests.length} requests`);
    }
  },

  'demo: nothing is cut off, or wider than the page': async (browser, { demo }) => {
    for (const name of NAMES) {
      const page = await openNamed(browser, demo, name);
      for (const width of WIDTHS) {
        await page.resize(width);
        await until(page, `${width} pixels`, (wanted) => innerWidth === wanted, width);
        const faults = await page.evaluate(layoutFaults);
        check(faults.length === 0, `${name}, ${width} pixels: ${faults.join('; ')}`);
      }
      await page.close();
    }
  },

  'demo: text has a contrast of 4.5, light and dark': async (browser, { demo }, note) => {
    for (const name of NAMES) {
      const page = await openNamed(browser, demo, name);
      for (const scheme of ['light', 'dark']) {
        const { least, weak } = await page.evaluate(weakContrasts, scheme);
        check(weak.length === 0, `${name}, ${scheme}: ${weak.join('; ')}`);
        note(`${name}, ${scheme}: ${least.toFixed(2)} or more`);
      }
      await page.close();
    }
  },

  'demo: by keyboard: the focus goes through all controls in order, and is seen': async (browser, { demo }) => {
    for (const name of NAMES) {
      const page = await openNamed(browser, demo, name);
      const stops = await page.evaluate(tabStops);
      for (const stop of stops) {
        await page.press('Tab');
        const { is, seen, named } = await page.evaluate(focused);
        check(is === stop, `${name}: ${is} has the focus, expected ${stop}`);
        check(seen && named, `${name}: ${is}: ${seen ? 'it has no name' : 'the focus is not seen'}`);
      }
      await page.close();
    }
  },

  'demo: by keyboard: Space and Enter press, and the button keeps the focus': async (browser, { demo }) => {
    const { page } = await openChapter(browser, demo, FOR_EVER_MS);
    await page.evaluate(() => document.getElementById('unlock').focus());
    await page.press(' ');
    await until(page, 'a worker has it', () => document.querySelector('main').dataset.holder.startsWith('worker'));
    check(await page.evaluate(() => document.activeElement.id === 'unlock'), 'the focus is lost');
    await page.press('Tab');
    await page.press('Enter');
    await until(page, 'the page waits', () => document.querySelector('main').dataset.line.endsWith(' page'));
    await page.close();
  },
};
