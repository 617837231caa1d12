// SPDX-License-Identifier: MIT
// What the page offers to the driver (tests.mjs): the names of all tests, and a function that runs one of them.

import { tests, run } from './support.js';
import './wait.js';
import './locks.js';
import './order.js';
import './abort.js';
import './misuse.js';
import './bells.js';
import './scale.js';
import './close.js';
import './terminate.js';
import './soak.js';

Object.assign(globalThis, { names: () => [...tests.keys()], run, isReady: true });
