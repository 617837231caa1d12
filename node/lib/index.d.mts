// SPDX-License-Identifier: MIT
import * as vigil from './index.js';

export * from './index.js';
export default vigil;
