// SPDX-License-Identifier: MIT
// The page's frames: how many are drawn, and how many are missed, with a dot that moves one step for each.

import { stillWanted } from './common.js';

const REFERENCE_MS = 1000 / 60;

/* The times from frame to frame while nothing happens, sorted: mostly the display's, 60 a second. */
function measureIdle() {
  return new Promise((resolve) => {
    const gaps = [];
    let last;
    function frame(time) {
      if (last !== undefined) gaps.push(time - last);
      last = time;
      if (gaps.length < 30) requestAnimationFrame(frame);
      else resolve(gaps.sort((a, b) => a - b));
    }
    requestAnimationFrame(frame);
  });
}

/* Counts frames from start() to stop(). The dot goes to and fro on its track. */
export class Frames {
  #last; #request; #period; #dot; #steps = 0;

  constructor(dot) {
    this.#dot = dot;
    this.reset();
  }

  reset() {
    this.drawn = this.dropped = this.longestMs = 0;
    this.#last = undefined;
  }

  async start() {
    const gaps = await measureIdle(), period = gaps[gaps.length >> 1];
    this.#period = Math.abs(period - REFERENCE_MS) < 2 ? REFERENCE_MS : period;
    this.idleDropped = gaps.reduce((sum, gap) => sum + this.#missedIn(gap), 0);
    this.reset();
    this.#request = requestAnimationFrame((time) => this.#frame(time));
  }

  stop() {
    cancelAnimationFrame(this.#request);
  }

  get perSecond() { return 1000 / this.#period; }

  #missedIn(gap) { return Math.max(0, Math.round(gap / this.#period) - 1); }

  #frame(time) {
    if (this.#last !== undefined) {
      const gap = time - this.#last;
      this.drawn++;
      this.dropped += this.#missedIn(gap);
      this.longestMs = Math.max(this.longestMs, gap);
    }
    this.#last = time;
    if (!stillWanted.matches) this.#move();
    this.#request = requestAnimationFrame((next) => this.#frame(next));
  }

  #move() {
    const room = this.#dot.parentElement.clientWidth - 22, step = (this.#steps += 3) % (2 * room);
    this.#dot.style.transform = `translateX(${step < room ? step : 2 * room - step}px)`;
  }
}
