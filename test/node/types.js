// SPDX-License-Identifier: MIT
'use strict';
// types.js - TypeScript accepts the programs in types/, in both module systems, and all that is exported has a type.
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { root, runCommand } = require('./blocks.js');

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'vigil-types-'));
fs.mkdirSync(path.join(scratch, 'node_modules/@vigil'), { recursive: true });
fs.symlinkSync(path.join(root, 'node'), path.join(scratch, 'node_modules/@vigil/node'));
const from = path.join(__dirname, 'types');
for (const file of fs.readdirSync(from)) fs.copyFileSync(path.join(from, file), path.join(scratch, file));
fs.copyFileSync(path.join(from, 'sample.mts'), path.join(scratch, 'sample.cts')); // the same as CommonJS

/* The names of properties, without those of the language. */
const namesOf = (object) => Object.getOwnPropertyNames(object)
  .filter((name) => !['constructor', 'length', 'name', 'prototype'].includes(name));

/*
 * Find members that exist and are not declared, and methods that are declared and do not exist. Mutex.wordOf is private
 * to the package.
 */
function checkMembers(file, exported) {
  const typescript = require(path.join(root, 'node/node_modules/typescript'));
  const program = typescript.createProgram([file], { lib: ['lib.esnext.d.ts', 'lib.dom.d.ts'], types: [] });
  const checker = program.getTypeChecker(), source = program.getSourceFile(file);
  const compare = (name, object, type) => {
    const isMethod = (symbol) => (symbol.flags & typescript.SymbolFlags.Method) !== 0;
    const declared = checker.getPropertiesOfType(type).filter(({ name }) => !name.startsWith('__@'));
    const missing = namesOf(object).filter((member) => !declared.some((symbol) => symbol.name === member));
    const extra = declared.filter((symbol) => isMethod(symbol) && !(symbol.name in object))
      .map((symbol) => symbol.name);
    const wrong = [...missing, ...extra].filter((member) => `${name}.${member}` !== 'Mutex.wordOf');
    if (wrong.length > 0) throw new Error(`index.d.ts is wrong about ${name}: ${wrong.join(', ')}`);
  };
  for (const symbol of checker.getExportsOfModule(checker.getSymbolAtLocation(source))) {
    const value = exported[symbol.name];
    if ((symbol.flags & typescript.SymbolFlags.Class) !== 0 && !(value.prototype instanceof Error)) {
      compare(symbol.name, value.prototype, checker.getDeclaredTypeOfSymbol(symbol));
      compare(symbol.name, value, checker.getTypeOfSymbolAtLocation(symbol, source));
    } else if (symbol.name === 'locks')
      compare('locks', Object.getPrototypeOf(value), checker.getTypeOfSymbolAtLocation(symbol, source));
  }
}

try {
  const compiler = path.join(root, 'node/node_modules/typescript/bin/tsc');
  runCommand(process.execPath, [compiler, '-p', scratch], { timeout: 120000 });
  const file = path.join(root, 'node/lib/index.d.ts'), exported = require(path.join(root, 'node'));
  const files = [file, path.join(root, 'node/lib/common.d.ts')];
  const text = files.map((each) => fs.readFileSync(each, 'utf8')).join('');
  const declared = text.matchAll(/^export (?:class|const|function) (\w+)/gm);
  const types = [...new Set([...declared].map((match) => match[1]))].sort().join();
  const values = Object.keys(exported).sort().join();
  if (types !== values) throw new Error(`index.d.ts declares\n${types}\nbut the package exports\n${values}`);
  checkMembers(file, exported);
} finally {
  fs.rmSync(scratch, { recursive: true });
}
