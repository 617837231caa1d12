// SPDX-License-Identifier: MIT
// The jobs of the benchmark for V8: reads "job n" lines, and prints a line with the job's figures for each.
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { createInterface } from 'node:readline';
import { memoryUsage } from 'node:process';

const LINE = 32; // Int32 elements between words that two threads use: 128 bytes
const nowNs = () => Number(process.hrtime.bigint());
const sharedWords = count => new Int32Array(new SharedArrayBuffer(4 * count));

function median(values) {
    values.sort((a, b) => a - b);
    return (values[(values.length - 1) >> 1] + values[values.length >> 1]) / 2;
}

const clockCostNs = median(Array.from({ length: 10001 }, () => {
    const start = nowNs();
    return nowNs() - start;
}));

function perCallNs(loop, n) {
    loop(n / 10);
    const start = nowNs();
    loop(n);
    return (nowNs() - start) / n;
}

function notifyNobody(n) {
    const words = sharedWords(1);
    return [perCallNs(n => {
        for (let i = 0; i < n; i++) Atomics.notify(words, 0, 1);
    }, n)];
}

function waitNotEqual(n) {
    const words = sharedWords(1);
    return [perCallNs(n => {
        for (let i = 0; i < n; i++) Atomics.wait(words, 0, 1, Infinity);
    }, n)];
}

// n asynchronous waiters, in one line or in n lines: the last tenth to register, all to notify, all to settle.
async function line(n, distinct) {
    const words = sharedWords(distinct ? n : 1);
    const batch = Math.max(1, n / 10);
    const repeats = Math.max(1, 100000 / n);
    let settled, allSettled;
    const onNotified = () => {
        if (++settled === n) allSettled();
    };
    const register = (from, to) => {
        for (let i = from; i < to; i++) Atomics.waitAsync(words, distinct ? i : 0, 0).value.then(onNotified);
    };
    const sums = [0, 0, 0];
    const warmUp = repeats > 1 ? Math.ceil(repeats / 10) : 0;
    for (let repeat = -warmUp; repeat < repeats; repeat++) {
        settled = 0;
        const done = new Promise(resolve => { allSettled = resolve; });
        register(0, n - batch);
        const start = nowNs();
        register(n - batch, n);
        const registered = nowNs();
        if (distinct) for (let i = 0; i < n; i++) Atomics.notify(words, i, 1);
        else Atomics.notify(words, 0);
        const notified = nowNs();
        await done;
        const end = nowNs();
        if (repeat < 0) continue;
        sums[0] += (registered - start - clockCostNs) / batch;
        sums[1] += (notified - registered - clockCostNs) / n;
        sums[2] += (end - notified - clockCostNs) / n;
    }
    return sums.map(sum => sum / repeats);
}

async function bytes(n, distinct) {
    const words = sharedWords(distinct ? n : 1);
    words.fill(1);
    words.fill(0);
    const onNotified = () => {};
    const register = (from, to) => {
        for (let i = from; i < to; i++) {
            Atomics.waitAsync(words, distinct ? i : 0, 0, 3600e3 + i).value.then(onNotified);
        }
    };
    register(0, 1);
    gc();
    const before = memoryUsage.rss();
    register(1, n);
    gc();
    return [(memoryUsage.rss() - before) / (n - 1)];
}

// Deadlines of 1 to 50 ms: how long until all have fired, and how many fired early.
async function timeouts(n) {
    const words = sharedWords(1);
    let fired = 0, early = 0, allFired;
    const done = new Promise(resolve => { allFired = resolve; });
    const start = nowNs();
    for (let i = 0; i < n; i++) {
        const timeoutMs = 1 + 49 * Math.random();
        const deadlineNs = nowNs() + timeoutMs * 1e6;
        Atomics.waitAsync(words, 0, 0, timeoutMs).value.then(() => {
            if (nowNs() < deadlineNs) early++;
            if (++fired === n) allFired();
        });
    }
    await done;
    return [(nowNs() - start) / 1e6, early];
}

function throwBall(words, side, ball) {
    Atomics.store(words, side * LINE, ball);
    Atomics.notify(words, side * LINE, 1);
}

function catchBall(words, side, ball) {
    let seen;
    while ((seen = Atomics.load(words, side * LINE)) !== ball) Atomics.wait(words, side * LINE, seen);
}

async function catchBallAsync(words, side, ball) {
    let seen;
    while ((seen = Atomics.load(words, side * LINE)) !== ball) {
        await Atomics.waitAsync(words, side * LINE, seen).value;
    }
}

function ownWordsLoop(words, who, n) {
    for (let i = 0; i < n; i++) {
        Atomics.notify(words, who * LINE, 1);
        Atomics.wait(words, who * LINE, 1, Infinity);
    }
}

const SLICES = 11;

// Run in a worker: the other side of a job that takes two threads.
const seconds = {
    pong(words, n) {
        for (let i = 1; i <= n; i++) {
            catchBall(words, 0, i);
            throwBall(words, 1, i);
        }
    },
    // Times itself: the main thread has a loop to run.
    ping(words, warmUp, n) {
        let start;
        for (let i = 1; i <= warmUp + n; i++) {
            if (i === warmUp + 1) start = nowNs();
            throwBall(words, 0, i);
            catchBall(words, 1, i);
        }
        return (nowNs() - start) / n;
    },
    ownWords(words, n) {
        ownWordsLoop(words, 1, n);
        for (let slice = 1; slice <= SLICES; slice++) {
            catchBall(words, 2, slice);
            ownWordsLoop(words, 1, n);
            throwBall(words, 3, slice);
        }
    },
};

// Starts seconds[name](...args) in a worker. Resolves when it runs, with a promise of what it returns.
async function startSecond(name, ...args) {
    const worker = new Worker(new URL(import.meta.url), { workerData: { name, args } });
    await new Promise(resolve => worker.once('message', resolve));
    const result = new Promise(resolve => worker.once('message', resolve));
    worker.postMessage('go');
    return { result: result.then(async value => (await worker.terminate(), value)) };
}

async function pingpongBlock(n) {
    const words = sharedWords(2 * LINE);
    const warmUp = Math.ceil(n / 10);
    const { result } = await startSecond('pong', words, warmUp + n);
    let start;
    for (let i = 1; i <= warmUp + n; i++) {
        if (i === warmUp + 1) start = nowNs();
        throwBall(words, 0, i);
        catchBall(words, 1, i);
    }
    const elapsedNs = nowNs() - start;
    await result;
    return [elapsedNs / n];
}

async function pingpongAsync(n) {
    const words = sharedWords(2 * LINE);
    const warmUp = Math.ceil(n / 10);
    const { result } = await startSecond('ping', words, warmUp, n);
    for (let i = 1; i <= warmUp + n; i++) {
        await catchBallAsync(words, 0, i);
        throwBall(words, 1, i);
    }
    return [await result];
}

async function notifyParallel(n) {
    const words = sharedWords(4 * LINE);
    const each = Math.ceil(n / SLICES);
    const { result } = await startSecond('ownWords', words, each);
    ownWordsLoop(words, 0, each);
    const speedups = [];
    for (let slice = 1; slice <= SLICES; slice++) {
        let start = nowNs();
        ownWordsLoop(words, 0, each);
        const aloneNs = nowNs() - start;
        throwBall(words, 2, slice);
        start = nowNs();
        ownWordsLoop(words, 0, each);
        catchBall(words, 3, slice);
        speedups.push(2 * aloneNs / (nowNs() - start));
    }
    await result;
    return [median(speedups)];
}

const jobs = {
    version: () => [`${process.versions.v8} (node ${process.version})`],
    notify_nobody: notifyNobody,
    wait_not_equal: waitNotEqual,
    notify_parallel: n => notifyParallel(n / 8),
    line: n => line(n, false),
    lines: n => line(n, true),
    bytes: n => bytes(n, false),
    bytes_distinct: n => bytes(n, true),
    timeouts,
    pingpong_block: pingpongBlock,
    pingpong_async: pingpongAsync,
};

if (isMainThread) {
    for await (const question of createInterface({ input: process.stdin })) {
        const [job, n] = question.split(' ');
        gc();
        const figures = await jobs[job](Number(n));
        process.stdout.write(figures.join(' ') + '\n');
    }
    process.exit(0); // else the timers of pending waiters would keep it alive
} else {
    parentPort.once('message', () => parentPort.postMessage(seconds[workerData.name](...workerData.args)));
    parentPort.postMessage('here');
}
