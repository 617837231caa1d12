// SPDX-License-Identifier: MIT
// types.mjs - TypeScript accepts the program in types/, and vigil.d.ts declares what vigil.js exports.

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url)), built = join(root, 'build', 'web');
const compiler = join(root, 'node', 'node_modules', 'typescript', 'bin', 'tsc');
if (!existsSync(compiler)) {
  console.log('skipped: npm ci has failed: node/node_modules/typescript is missing; see what node/build.sh says');
  process.exit(77);
}

const scratch = mkdtempSync(join(tmpdir(), 'vigil-web-types-')), failures = [];
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const folder = join(scratch, 'node_modules', '@vigil', 'web');
mkdirSync(folder, { recursive: true });
copyFileSync(join(root, 'web', 'package.json'), join(folder, 'package.json'));
for (const file of ['vigil.js', 'vigil.d.ts', 'side.js', 'side.d.ts', 'common.d.ts', 'target.d.ts'])
  copyFileSync(join(built, file), join(folder, file));
const from = join(root, 'test', 'web', 'types');
for (const file of readdirSync(from)) copyFileSync(join(from, file), join(scratch, file));

const checked = spawnSync(process.execPath, [compiler, '-p', scratch], { encoding: 'utf8', timeout: 120000 });
if (checked.status !== 0) failures.push(checked.stdout + checked.stderr);

const text = readFileSync(join(built, 'vigil.d.ts'), 'utf8'), exported = await import(join(built, 'vigil.js'));
const declared = [...text.matchAll(/^export (?:class|const|function) (\w+)/gm)].map((match) => match[1]).sort().join();
if (declared !== Object.keys(exported).sort().join())
  failures.push(`vigil.d.ts declares ${declared}, vigil.js exports ${Object.keys(exported).sort().join()}`);

const side = Object.keys(await import(join(built, 'side.js'))).sort().join();
if (side !== declared) failures.push(`vigil.js exports ${declared}, side.js ${side}`);

/* What the class has beside what it gives to its instances. */
const { Vigil } = exported, members = text.match(/^export class Vigil \{(.*?)^\}/ms)[1];
const names = [...Object.getOwnPropertyNames(Vigil.prototype), 'create', 'attach'];
for (const name of names.filter((each) => each !== 'constructor')) {
  if (!new RegExp(`^  (static |readonly )?${name}[(:]`, 'm').test(members)) failures.push(`${name} is not declared`);
}

for (const failure of failures) console.log(failure);
console.log(`${failures.length === 0 ? 1 : 0} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 ? 0 : 1;
