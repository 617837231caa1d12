// SPDX-License-Identifier: MIT
'use strict';
/*
 * blocks.js - the code blocks of the READMEs, as programs: for readme.js and pack.js.
 *
 * A block of `js` is an ES module; one of `ts` is converted by TypeScript. The comments after its calls of console.log
 * say what it must print; the order does not matter.
 */
const fs = require('node:fs');
const path = require('node:path');
const { spawnSync } = require('node:child_process');

const root = path.join(__dirname, '..', '..');

/* [{language, code, line}] */
function blocksOf(file) {
  const blocks = [];
  let block;
  fs.readFileSync(path.join(root, file), 'utf8').split('\n').forEach((text, index) => {
    if (block === undefined && /^```(js|ts)$/.test(text))
      block = { language: text.slice(3), line: index + 2, code: '' };
    else if (block !== undefined && text === '```') {
      blocks.push(block);
      block = undefined;
    } else if (block !== undefined) block.code += `${text}\n`;
  });
  return blocks;
}

const expectedOf = (code) => [...code.matchAll(/^.*console\.log\(.*\);? \/\/ (.*)$/gm)].map((match) => match[1]);

/* Names are of the user: a block must not meet other programs, nor itself in a test at the same time. */
const privately = (code, folder) => code.replaceAll("'deploy'", `'${folder}/deploy'`)
  .replaceAll("'book'", `'book-${process.pid}'`);

const toCommonJs = (code) =>
  `(async () => {\n${code.replace(/^import (\{.*\}) from ('.*');$/gm, 'const $1 = require($2);')}\n})();\n`;

function runCommand(command, args, options) {
  const result = spawnSync(command, args, { encoding: 'utf8', timeout: 30000, ...options });
  if (result.status === 0) return result.stdout;
  throw new Error(`${command} ${args.join(' ')}: ${result.error ?? `exit status ${result.status ?? result.signal}`}\n` +
    `${result.stdout}${result.stderr}`);
}

/* Run the program, a file in the folder, and compare what it prints. */
function runProgram(folder, name, code) {
  fs.writeFileSync(path.join(folder, name), privately(code, folder));
  const printed = runCommand(process.execPath, [name], { cwd: folder }).split('\n').slice(0, -1);
  const expected = expectedOf(code);
  if (printed.sort().join('\n') === expected.sort().join('\n')) return;
  throw new Error(`${name}: expected\n${expected.join('\n')}\nbut it printed\n${printed.join('\n')}`);
}

module.exports = { root, blocksOf, toCommonJs, privately, expectedOf, runCommand, runProgram };
