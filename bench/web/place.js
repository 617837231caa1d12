// SPDX-License-Identifier: MIT
// On which processors the threads of a page run. In a virtual machine, a worker on the page's processor answers in a
// sixth of the time that one on another takes, which has to be woken up, and the system may leave them where they are
// for seconds: that decides the time of a round trip, rather than the contestant.

import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

/* Those that this program may use. */
export function processors() {
  const [, list] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'));
  return list.split(',').flatMap((part) => {
    const [from, to = from] = part.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
}

const workersOf = (process) => readdirSync(`/proc/${process}/task`).filter(
  (thread) => readFileSync(`/proc/${process}/task/${thread}/comm`, 'utf8').startsWith('DedicatedWorker'));

/* Bind all pages that have workers to one processor, and the workers to another, or the same. */
export async function bind(browser, pageTo, workersTo) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const pages = processInfo.filter(({ type, id }) => type === 'renderer' && workersOf(id).length > 0);
  if (pages.length === 0) throw new Error('no page has a worker');
  const put = (thread, processor) => execFileSync('taskset', ['--cpu-list', '--pid', processor, thread]);
  for (const { id } of pages) {
    put(`${id}`, `${pageTo}`);
    for (const worker of workersOf(id)) put(worker, `${workersTo}`);
  }
  await session.detach();
}
