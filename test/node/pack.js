// SPDX-License-Identifier: MIT
'use strict';
/*
 * pack.js - make the package, install it into an empty folder without scripts, registry or compiler, and use it there:
 * the first example of its README as an ES module, as CommonJS, each in a worker too, and under TypeScript's checker.
 */
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { root, blocksOf, toCommonJs, privately, runCommand, runProgram } = require('./blocks.js');

const FILES = /^package\/(lib\/[a-z0-9.]+\.m?[jt]s|prebuilds\/[a-z0-9-]+\.node|README\.md|LICENSE|package\.json)$/;

function checkContents(tarball) {
  const files = runCommand('tar', ['-tzf', tarball]).trim().split('\n');
  const unexpected = files.filter((file) => !FILES.test(file));
  if (unexpected.length > 0) throw new Error(`the package contains ${unexpected.join(', ')}`);
  for (const file of ['LICENSE', 'README.md', 'package.json', 'lib/index.js', 'lib/index.d.ts', 'lib/index.d.mts']) {
    if (!files.includes(`package/${file}`)) throw new Error(`the package does not contain ${file}`);
  }
}

/* The version is that of the library, and the READMEs name the file. */
function checkVersion(tarball) {
  const header = fs.readFileSync(path.join(root, 'include/vigil/version.h'), 'utf8');
  const version = ['MAJOR', 'MINOR', 'PATCH'].map((part) => header.match(`VIGIL_VERSION_${part} (\\d+)`)[1]).join('.');
  if (path.basename(tarball) !== `vigil-node-${version}.tgz`) throw new Error(`${tarball}: Vigil is ${version}`);
  for (const file of ['README.md', 'node/README.md']) {
    const text = fs.readFileSync(path.join(root, file), 'utf8');
    if (!text.match(`npm install (\\S*/)?vigil-node-${version}.tgz`)) throw new Error(`${file}: not ${version}`);
  }
}

/* Node and npm in PATH, and nothing else but what npm itself starts. */
function bareEnvironment(scratch) {
  const bin = path.join(scratch, 'bin');
  fs.mkdirSync(bin);
  const npm = process.env.PATH.split(':').map((folder) => path.join(folder, 'npm')).find((file) => fs.existsSync(file));
  fs.symlinkSync(process.execPath, path.join(bin, 'node'));
  fs.symlinkSync(fs.realpathSync(npm), path.join(bin, 'npm'));
  fs.symlinkSync('/bin/sh', path.join(bin, 'sh'));
  return { PATH: bin, HOME: scratch, npm_config_offline: 'true', npm_config_cache: path.join(scratch, 'cache') };
}

function inWorker(name) {
  return `import { Worker } from 'node:worker_threads';
new Worker(new URL('./${name}', import.meta.url)).on('exit', (code) => { process.exitCode = code; });
// What it prints:\n`;
}

function checkTypes(project, example) {
  fs.writeFileSync(path.join(project, 'checked.mts'), privately(example, project));
  fs.writeFileSync(path.join(project, 'tsconfig.json'), JSON.stringify({
    compilerOptions: {
      strict: true, noEmit: true, module: 'nodenext', target: 'es2022', lib: ['esnext', 'dom'], types: [],
    },
    files: ['checked.mts'],
  }));
  runCommand(process.execPath, [path.join(root, 'node/node_modules/typescript/bin/tsc'), '-p', project],
    { timeout: 120000 });
}

function main(scratch) {
  runCommand(path.join(root, 'node/pack.sh'), [scratch], { timeout: 120000 });
  const tarball = path.join(scratch, fs.readdirSync(scratch).find((name) => name.endsWith('.tgz')));
  checkContents(tarball);
  checkVersion(tarball);

  const project = path.join(scratch, 'project'), env = bareEnvironment(scratch);
  fs.mkdirSync(project);
  fs.writeFileSync(path.join(project, 'package.json'), '{"name": "project", "version": "1.0.0"}\n');
  runCommand('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', tarball],
    { cwd: project, env, timeout: 120000 });

  const example = blocksOf('node/README.md')[0].code;
  const expected = example.split('\n').filter((line) => line.includes('console.log(')).join('\n');
  runProgram(project, 'example.mjs', example);
  runProgram(project, 'example.cjs', toCommonJs(example));
  const comments = `/*\n${expected}\n*/\n`;
  runProgram(project, 'worker-module.mjs', inWorker('example.mjs') + comments);
  runProgram(project, 'worker-commonjs.mjs', inWorker('example.cjs') + comments);
  checkTypes(project, example);
}

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'vigil-pack-'));
try {
  main(scratch);
} finally {
  fs.rmSync(scratch, { recursive: true });
}
