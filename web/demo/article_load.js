// SPDX-License-Identifier: MIT
// The load of article.html, for the page and its workers: want the lock, hold it for a while, be outside for a while.

import { AsyncLock } from './article_lock.js';

export const CONTENDERS = 5; // the page first, then four workers

// What each contender writes, as numbers in shared memory.
const GRANTS = 0, LONGEST_MS = 1, SINCE_MS = 2, FIELDS = 3;

export const now = () => performance.timeOrigin + performance.now();

export function busyFor(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/* The figures of a round. `values` is a Float64Array on shared memory; the last one is when the round ends. */
export class Figures {
  static LENGTH = CONTENDERS * FIELDS + 1;

  constructor(values) {
    this.values = values;
  }

  begin(end) {
    this.values.fill(0);
    this.values[Figures.LENGTH - 1] = end;
  }

  get end() { return this.values[Figures.LENGTH - 1]; }
  set end(time) { this.values[Figures.LENGTH - 1] = time; }
  get isOver() { return now() >= this.end; }

  wants(contender) {
    this.values[contender * FIELDS + SINCE_MS] = now();
  }

  /* A wait that outlasts the round counts up to its end, and not as a grant. */
  gets(contender) {
    const at = contender * FIELDS, time = now(), { end, values } = this;
    values[at + LONGEST_MS] = Math.max(values[at + LONGEST_MS], Math.min(time, end) - values[at + SINCE_MS]);
    values[at + SINCE_MS] = 0;
    if (time < end) values[at + GRANTS]++;
  }

  /* Up to now, with the waits that are not over. */
  read() {
    const { values } = this, time = Math.min(now(), this.end);
    return Array.from({ length: CONTENDERS }, (_, contender) => {
      const at = contender * FIELDS, since = values[at + SINCE_MS];
      const waits = since > 0 ? Math.max(0, time - since) : 0;
      return { grants: values[at + GRANTS], longestMs: Math.max(values[at + LONGEST_MS], waits) };
    });
  }
}

/* Both locks: the article's on a SharedArrayBuffer, ours on an array in Vigil's memory. */
export function openLocks(vigil, words) {
  return { article: new AsyncLock(words.article), vigil: new vigil.AsyncLock(words.vigil) };
}
