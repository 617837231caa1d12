// SPDX-License-Identifier: MIT
'use strict';
// readme.js - run each code block of node/README.md, and those for Node in README.md, with the package in node/.
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { root, blocksOf, runProgram } = require('./blocks.js');

const typescript = require(path.join(root, 'node/node_modules/typescript'));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'vigil-readme-'));
fs.mkdirSync(path.join(folder, 'node_modules/@vigil'), { recursive: true });
fs.symlinkSync(path.join(root, 'node'), path.join(folder, 'node_modules/@vigil/node'));

const toJavaScript = ({ language, code }) => (language === 'js' ? code : typescript.transpileModule(code, {
  compilerOptions: { target: 'es2022', module: 'esnext' },
}).outputText);

let failed = 0, count = 0;
for (const file of ['node/README.md', 'README.md']) {
  for (const block of blocksOf(file)) {
    count++;
    try {
      runProgram(folder, `line-${block.line}.mjs`, toJavaScript(block));
    } catch (error) {
      failed++;
      console.log(`${file}:${block.line}: ${error.message}`);
    }
  }
}
fs.rmSync(folder, { recursive: true });
console.log(`${count} blocks, ${failed} failed`);
if (failed > 0 || count < 15) process.exit(1);
