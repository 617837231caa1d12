// SPDX-License-Identifier: MIT
// package.mjs - the folder that npm installs has what its README links to, and what package.json exports.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const pathOf = (name) => fileURLToPath(new URL(`../../build/web/${name}`, import.meta.url));
const textOf = (name) => readFileSync(pathOf(name), 'utf8');
let passed = 0, failed = 0;
function check(good, what) {
  if (good) passed++;
  else failed++;
  if (!good) console.log(`FAILED ${what}`);
}

/* In the installed folder: neither above it, nor missing from it. */
function checkFile(name, what) {
  check(!name.startsWith('..') && existsSync(pathOf(name)), `${what}: ${name} is not in the package`);
}

const readme = textOf('README.md').replace(/^```.*?^```$/gms, '');
const anchors = [...readme.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
  title.toLowerCase().replace(/[^\w -]/g, '').replaceAll(' ', '-'));
const links = [...readme.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link).filter((link) => !/^https?:/.test(link));
for (const link of links) {
  const [file, anchor] = link.split('#');
  if (file) checkFile(file, 'README.md');
  else check(anchors.includes(anchor), `README.md: there is no section for #${anchor}`);
}
check(links.includes('isolate.js'), 'README.md: no link to isolate.js');

const { exports, files, name } = JSON.parse(textOf('package.json'));
const exported = Object.values(exports).flatMap((each) => (typeof each === 'string' ? each : Object.values(each)));
for (const file of exported) {
  checkFile(file, 'package.json');
  check(file === './package.json' || files.some((pattern) => file.endsWith(pattern.replace('*', ''))), // npm adds that
    `package.json: ${file} is not in "files"`);
}
for (const [, path] of textOf('README.md').matchAll(new RegExp(`${name}/([\\w.]+)`, 'g')))
  check(`./${path}` in exports, `README.md: package.json does not export ${name}/${path}`);

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
