// SPDX-License-Identifier: MIT
import vigil = require('@vigil/node');

export const mutex: vigil.Mutex = new vigil.Mutex();
