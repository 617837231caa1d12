// SPDX-License-Identifier: MIT
// emscripten.mjs - libvigil.a for programs that Emscripten links: web/example/emscripten.c in Node and in a page.
// Skipped where there is no emcc: on Debian it is in the package emscripten, of some 800 MB.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serve } from '../../web/serve.js';
import { launch, root, skip, within } from './browsers.mjs';

const HANGS_MS = 60000, into = join(root, 'build', 'emscripten');
/* A page and four threads: web/example/emscripten.c. */
const RIGHT = '10000 times locked, 2000 of them by the loop: none was lost';
/* Debian's emcc needs acorn, which a Node that is not Debian's does not find. */
const env = { ...process.env, NODE_PATH: process.env.NODE_PATH ?? '/usr/share/nodejs' };

function run(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: root, env, encoding: 'utf8',
    timeout: 10 * HANGS_MS });
  if (error || status !== 0)
    throw new Error(`${program} ${args.join(' ')}: ${error ?? `status ${status}`}\n${(stdout + stderr).slice(-2000)}`);
  return stdout;
}

function check(seen, where) {
  if (!seen.includes(RIGHT)) throw new Error(`${where}: expected "${RIGHT}", got ${seen}`);
  console.log(`ok     ${where}: ${RIGHT}`);
}

/* What the program prints, when it has ended. */
const PAGE = `<!doctype html><meta charset="utf-8"><title>Emscripten</title><script>
  var Module = { print: (text) => { globalThis.printed = text; } }, isReady = true;
</script><script src="contest.js"></script>`;

async function runInPage(name) {
  const browser = await launch(name), { origin } = await serve({ '': into });
  const page = await browser.open(`${origin}/`);
  const printed = async () => {
    for (;;) {
      const seen = await page.evaluate(() => globalThis.printed);
      if (seen) return seen;
    }
  };
  check(await within(printed(), 'the page', HANGS_MS), name);
  await browser.close();
}

if (spawnSync('emcc', ['--version'], { env }).status !== 0) skip('there is no emcc; on Debian, install emscripten');
mkdirSync(into, { recursive: true });
run('emcmake', ['cmake', '-B', into, '-S', root, '-DVIGIL_WERROR=ON']);
run('cmake', ['--build', into]);
if (!existsSync(join(into, 'libvigil.a'))) throw new Error('no libvigil.a');
run('emcc', ['-pthread', '-sPTHREAD_POOL_SIZE=6', '-sINITIAL_MEMORY=64MB', '-O2', '-Wall', '-Wextra', '-Werror',
  '-Iinclude', '-Iweb/emscripten', 'web/example/emscripten.c', join(into, 'libvigil.a'),
  '-o', join(into, 'contest.js')]);
/* Emscripten before 3.1.12 takes Node for a page if that has fetch. */
check(run('node', ['--no-experimental-fetch', join(into, 'contest.js')]), 'Node');
writeFileSync(join(into, 'index.html'), PAGE);
for (const name of ['chromium', 'firefox']) await runInPage(name);
process.exit(0);
