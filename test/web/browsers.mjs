// SPDX-License-Identifier: MIT
// Chromium by playwright-core, Firefox by puppeteer-core over WebDriver BiDi: no programs but the browsers themselves.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));

const PROGRAMS = { chromium: ['chromium', 'google-chrome', 'chromium-browser'], firefox: ['firefox-esr', 'firefox'] };
const CHROMIUM = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];

export function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(77);
}

export function programOf(browser) {
  for (const name of PROGRAMS[browser]) {
    const found = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' });
    if (found.status === 0) return found.stdout.trim();
  }
  return skip(`there is no ${PROGRAMS[browser][0]}; on Debian, install ${PROGRAMS[browser][0]}`);
}

async function packageOf(name, file) {
  try {
    return await import(pathToFileURL(join(root, 'web', 'node_modules', name, file)));
  } catch {
    return skip(`npm ci has failed: web/node_modules/${name} is missing; see what web/build.sh says`);
  }
}

/*
 * The browser's profile is in a folder of its own, by whose name its processes are found. However this process ends,
 * a shell that it does not know of any more sees the end of a pipe, ends them, and removes the folder. (Not of standard
 * input: Node closes that when the shell's parent has ended.)
 */
const profile = mkdtempSync(join(tmpdir(), 'vigil-web-'));
const CLEANER = `
    read -r _
    for i in 1 2 3 4 5 6 7 8 9 10; do
        found=
        for each in /proc/[0-9]*; do
            id=\${each#/proc/}
            [ "$id" = $$ ] && continue
            grep -qaF -- "$1" "$each/cmdline" 2>/dev/null && kill -KILL "$id" 2>/dev/null && found=yes
        done
        [ "$found" ] || break
        sleep 0.2
    done
    rm -rf "$1"`;
const cleaner = spawn('sh', ['-c', 'setsid sh -c "$2" cleaner "$1" <&3 >/dev/null 2>&1 &', 'sh', profile, CLEANER],
  { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
cleaner.unref();
cleaner.stdio[3].unref();
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => process.exit(1));

/* The processes whose command line names the profile. */
function killAll() {
  for (const id of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      const line = readFileSync(`/proc/${id}/cmdline`, 'utf8');
      if (line.includes(profile) && !line.includes('cleaner')) process.kill(Number(id), 'SIGKILL');
    } catch {
      // it has ended meanwhile
    }
  }
}

async function launchChromium() {
  const { chromium } = await packageOf('playwright-core', 'index.mjs');
  const context = await chromium.launchPersistentContext(profile, { executablePath: programOf('chromium'),
    headless: true, args: CHROMIUM, timeout: 60000, handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false });
  return { newPage: () => context.newPage(), close: () => context.close() };
}

async function launchFirefox() {
  const { default: puppeteer } = await packageOf('puppeteer-core', 'lib/puppeteer/puppeteer-core.js');
  const browser = await puppeteer.launch({ browser: 'firefox', headless: true,
    executablePath: programOf('firefox'), userDataDir: profile, protocolTimeout: 600000, timeout: 60000,
    handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false });
  return { newPage: () => browser.newPage(), close: () => browser.close() };
}

/*
 * Returns {open(address), close()}. open() returns a page when that is loaded and its module has run: {evaluate(f,
 * argument), click(selector), press(key), resize(width), reload(), close(), requests, driver}; requests: the addresses
 * that it has asked for; driver is what playwright or puppeteer calls a page.
 */
export async function launch(name) {
  const start = () => (name === 'chromium' ? launchChromium() : launchFirefox());
  let browser = await start();
  return {
    close: () => within(browser.close(), 'closing the browser', 20000).catch(() => {}),
    /* A page that does not answer may keep others from running. */
    async restart() {
      killAll();
      await this.close();
      browser = await start();
    },
    /* first: [function, argument], called in the page before its own scripts. */
    async open(address, { ready = true, first } = {}) {
      const page = await browser.newPage();
      if (first) await (page.addInitScript ?? page.evaluateOnNewDocument).call(page, ...first);
      const requests = [];
      page.on('request', (request) => requests.push(request.url()));
      const opened = {
        requests,
        evaluate: (body, argument) => page.evaluate(body, argument),
        click: (selector) => page.click(selector),
        press: (key) => page.keyboard.press(key),
        resize: (width) => (page.setViewportSize ?? page.setViewport).call(page, { width, height: 800 }),
        async reload() {
          await page.reload();
          if (ready) await page.waitForFunction(() => globalThis.isReady);
        },
        close: () => page.close(),
        driver: page,
      };
      page.on('console', (message) => {
        if (process.env.VIGIL_WEB_VERBOSE) console.log(`# console: ${message.text()}`);
      });
      await page.goto(address);
      if (ready) await page.waitForFunction(() => globalThis.isReady);
      return opened;
    },
  };
}

/* The promise, or an exception after that time. */
export function within(promise, what, ms) {
  let timer;
  const hangs = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hangs: ${what}`)), ms);
  });
  return Promise.race([promise, hangs]).finally(() => clearTimeout(timer));
}
