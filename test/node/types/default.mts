// SPDX-License-Identifier: MIT
import vigil, { Mutex } from '@vigil/node';

export const mutex: Mutex = new vigil.Mutex();
