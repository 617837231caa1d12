// SPDX-License-Identifier: MIT
'use strict';
// locks.request, acquire and query: the examples of the Web Locks specification, and other processes.

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { vigil, tick, sleep, until, within, worker, processOf, uniqueName, temporaryFolder } = require('./support.js');

const { locks } = vigil;
const never = () => assert.fail('must not be called');

test('request: the callback has the lock, the promise its result', async () => {
    const name = uniqueName('request');
    const result = await locks.request(name, async (lock) => {
        assert.strictEqual(lock.name, name);
        assert.strictEqual(lock.mode, 'exclusive');
        assert.strictEqual(lock.ownerDied, false);
        assert.ok((await locks.query()).held.some((each) => each.name === name && each.pid === process.pid));
        await tick();
        return 'result';
    });
    assert.strictEqual(result, 'result');
    assert.ok(!(await locks.query()).held.some((each) => each.name === name));
    await assert.rejects(
        locks.request(name, () => {
            throw new Error('inside');
        }),
        /inside/,
    );
    await assert.rejects(
        locks.request(name, async () => {
            throw new Error('later');
        }),
        /later/,
    );
    assert.strictEqual(await locks.request(name, {}, () => 5), 5, 'released after exceptions');
});

test('requests are granted in order, and held until the promise of the callback is settled', async () => {
    const name = uniqueName('order'),
        order = [];
    let release;
    const first = locks.request(name, () => new Promise((resolve) => (release = resolve)));
    const others = [1, 2, 3].map((i) =>
        locks.request(name, async () => {
            order.push(i);
            await tick();
            order.push(-i);
        }),
    );
    await until(() => release);
    await tick();
    assert.deepStrictEqual(order, []);
    release();
    await within(Promise.all([first, ...others]), 'all');
    assert.deepStrictEqual(order, [1, -1, 2, -2, 3, -3]);
});

test("mode 'shared': readers together, the writer alone, and later readers behind it", async () => {
    const name = uniqueName('shared'),
        order = [];
    let release;
    const readers = [
        locks.request(name, { mode: 'shared' }, () => new Promise((resolve) => (release = resolve))),
        locks.request(name, { mode: 'shared' }, async (lock) => {
            order.push(lock.mode);
        }),
    ];
    await within(readers[1], 'the second reader');
    const writer = locks.request(name, async () => {
        order.push('writer');
    });
    await until(async () =>
        (await locks.query()).pending.some((each) => each.name === name && each.mode === 'exclusive'),
    );
    const late = locks.request(name, { mode: 'shared' }, async () => {
        order.push('late');
    });
    await tick();
    assert.strictEqual(await locks.request(name, { mode: 'shared', ifAvailable: true }, (lock) => lock), null);
    release();
    await within(Promise.all([readers[0], writer, late]), 'all');
    assert.deepStrictEqual(order, ['shared', 'writer', 'late']);
});

test('ifAvailable: null if it is held', async () => {
    const name = uniqueName('available');
    await locks.request(name, async () => {
        assert.strictEqual(await locks.request(name, { ifAvailable: true }, (lock) => lock), null);
        assert.strictEqual(await locks.acquire(name, { ifAvailable: true }), null);
        assert.strictEqual(locks.acquireSync(name, { ifAvailable: true }), null);
    });
    assert.strictEqual(await locks.request(name, { ifAvailable: true }, (lock) => lock.name), name);
});

test('steal: the holder is told by an AbortError, and its callback goes on', async () => {
    const name = uniqueName('steal');
    let finish,
        ended = false;
    const robbed = locks.request(name, () => new Promise((resolve) => (finish = resolve)).then(() => (ended = true)));
    await until(() => finish);
    let waited = false;
    const waiting = locks.request(name, () => (waited = true));
    await locks.request(name, { steal: true }, async (lock) => {
        assert.strictEqual(lock.mode, 'exclusive');
        await assert.rejects(robbed, { name: 'AbortError' });
        assert.strictEqual(waited, false);
    });
    await within(waiting, 'the one in line');
    assert.strictEqual(ended, false);
    finish();
    await tick();
    assert.strictEqual(ended, true);
    assert.strictEqual(await locks.request(name, { steal: true }, () => 1), 1, 'one that is free');
});

test('steal: before the callback has been called', async () => {
    const name = uniqueName('steal'),
        robbed = locks.request(name, () => assert.fail());
    const thief = locks.request(name, { steal: true }, (lock) => lock.mode);
    await assert.rejects(within(robbed, 'the one that was robbed'), { name: 'AbortError' });
    assert.strictEqual(await thief, 'exclusive');
});

test('steal from several readers', async () => {
    const name = uniqueName('steal'),
        held = [await locks.acquire(name, { mode: 'shared' }), await locks.acquire(name, { mode: 'shared' })];
    await locks.request(name, { steal: true }, () => {});
    assert.deepStrictEqual(
        held.map((each) => [each.stolen, each.released]),
        [
            [true, true],
            [true, true],
        ],
    );
    for (const each of held) assert.throws(() => each.release(), { name: 'AbortError' });
    held.forEach((each) => each.release());
});

test('signal: before, while waiting, and after it was granted', async () => {
    const name = uniqueName('signal'),
        controller = new AbortController();
    await assert.rejects(locks.request(name, { signal: AbortSignal.abort() }, never), { name: 'AbortError' });
    const lock = await locks.acquire(name);
    const waiting = locks.request(name, { signal: controller.signal }, never);
    await until(async () => (await locks.query()).pending.some((each) => each.name === name));
    controller.abort(new Error('too long'));
    await assert.rejects(waiting, /too long/);
    lock.release();
    const late = new AbortController();
    assert.strictEqual(
        await locks.request(name, { signal: late.signal }, async () => {
            late.abort();
            return 6;
        }),
        6,
    );
    await assert.rejects(
        locks.request(name, { timeout: 1 }, () => locks.request(name, { timeout: 1 }, never)),
        { code: 'VIGIL_TIMED_OUT' },
    );
});

test('wrong names and options are exceptions', async () => {
    const callback = never;
    for (const name of [
        '',
        '-dash',
        '.dot',
        'with space',
        'a'.repeat(201),
        'nul\0',
        'ünicode',
        '\ud800',
        'new\nline',
    ])
        await assert.rejects(
            locks.request(name, callback),
            (error) => error.code !== undefined,
            JSON.stringify(name),
        );
    await assert.rejects(locks.request(Symbol('name'), callback), { code: 'VIGIL_ETYPE' });
    await assert.rejects(locks.request('-dash', callback), { name: 'NotSupportedError' });
    const name = uniqueName('wrong');
    for (const options of [
        { steal: true, ifAvailable: true },
        { steal: true, mode: 'shared' },
        { signal: new AbortController().signal, steal: true },
        { signal: new AbortController().signal, ifAvailable: true },
    ])
        await assert.rejects(locks.request(name, options, callback), { name: 'NotSupportedError' });
    for (const options of [{ mode: 'other' }, 5, null, { timeout: 'x' }])
        await assert.rejects(locks.request(name, options, callback), { code: 'VIGIL_ETYPE' });
    await assert.rejects(locks.request(name), { code: 'VIGIL_ETYPE' });
    await assert.rejects(locks.request(name, {}), { code: 'VIGIL_ETYPE' });
    await assert.rejects(locks.request('/nonexistent/folder/lock', callback), (error) => /^VIGIL_E/.test(error.code));
});

test('a lock is released once; consistent needs a reason', async () => {
    const name = uniqueName('twice'),
        lock = await locks.acquire(name);
    assert.throws(() => lock.consistent(), { code: 'VIGIL_EINVAL' });
    lock.release();
    const next = await locks.acquire(name);
    lock.release();
    assert.strictEqual(await locks.acquire(name, { ifAvailable: true }), null, 'the second call did nothing');
    assert.throws(() => lock.consistent(), { code: 'VIGIL_ENOTHELD' });
    if (Symbol.asyncDispose) await next[Symbol.asyncDispose]();
    else next.release();
});

test('workers block for a name, in line with promises', async () => {
    const name = uniqueName('workers'),
        lock = await locks.acquire(name);
    const made = worker('const lock = vigil.locks.acquireSync(data); say(lock.name); lock.release();', name);
    await until(async () => (await locks.query()).pending.some((each) => each.name === name));
    const behind = locks.acquire(name);
    lock.release();
    assert.strictEqual(await within(made.next(), 'the worker'), name);
    (await within(behind, 'the promise')).release();
    await made.ended;
});

// The holder says that it holds the lock, and then how its request ended, and whether its callback ran on.
const HOLDER = (name) => `
    let finish, ended = false;
    const alive = setInterval(() => {}, 1000); // a lock that is held does not keep it alive
    const robbed = vigil.locks.request(${JSON.stringify(name)}, () =>
        new Promise((resolve) => { finish = resolve; say('holds'); }).then(() => { ended = true; }));
    await robbed.catch((error) => say(error.name));
    finish();
    await new Promise(setImmediate);
    say(ended);
    clearInterval(alive);`;

for (const [where, holderOf] of [
    ['another process', (name) => processOf(`${HOLDER(name)} process.exit(0);`)],
    ['a worker', (name) => worker(HOLDER(name), null)],
]) {
    test(`steal from ${where}: it is told, and those in line stay there`, async () => {
        const name = uniqueName('steal'),
            holder = holderOf(name);
        assert.strictEqual(await within(holder.next(), 'the holder'), 'holds');
        let waited = false;
        const waiting = locks.request(name, () => (waited = true));
        await locks.request(name, { steal: true }, async (lock) => {
            assert.strictEqual(lock.ownerDied, false);
            assert.strictEqual(await within(holder.next(), 'the holder that was robbed'), 'AbortError');
            assert.strictEqual(await within(holder.next(), 'its callback'), true);
            assert.strictEqual(waited, false);
            assert.strictEqual(lock.stolen, false);
        });
        assert.strictEqual(await within(waiting, 'the one in line'), true);
        await within(holder.ended, 'the holder');
    });
}

test('stolen by another process: stolen, release(), and what the next holder has stays its own', async () => {
    const name = uniqueName('steal'),
        robbed = await locks.acquire(name);
    const thief = processOf(`
        const lock = vigil.locks.acquireSync(${JSON.stringify(name)}, { steal: true });
        say('has it');
        lock.release();
        say('released');
        process.exit(0);`);
    assert.strictEqual(await within(thief.next(), 'the thief'), 'has it');
    assert.strictEqual(await within(thief.next(), 'the thief'), 'released');
    assert.strictEqual(robbed.stolen, true);
    const next = await within(locks.acquire(name), 'the lock');
    assert.throws(() => robbed.release(), { name: 'AbortError' });
    robbed.release(); // nothing any more
    assert.strictEqual(await locks.acquire(name, { ifAvailable: true }), null, 'the next holder still has it');
    assert.strictEqual(next.stolen, false);
    next.release();
    await thief.ended;
});

test('a thief that is killed: the next holder is told', async () => {
    const name = uniqueName('steal'),
        robbed = await locks.acquire(name);
    const thief = processOf(`
        await vigil.locks.acquire(${JSON.stringify(name)}, { steal: true });
        say('has it');
        setInterval(() => {}, 1000);`);
    assert.strictEqual(await within(thief.next(), 'the thief'), 'has it');
    thief.kill('SIGKILL');
    const next = await within(locks.acquire(name), 'the lock of a dead thief');
    assert.strictEqual(next.ownerDied, true);
    assert.strictEqual(next.owner.pid, thief.pid);
    next.consistent();
    next.release();
    await until(() => robbed.released, 'that the holder is told');
    assert.throws(() => robbed.release(), { name: 'AbortError' });
    await thief.ended;
});

test('another process: order, query, and a holder that is killed', async () => {
    const name = uniqueName('process');
    const child = processOf(`
    const lock = await vigil.locks.acquire(${JSON.stringify(name)});
    say('holds');
    setInterval(() => {}, 1000);`);
    assert.strictEqual(await within(child.next(), 'the process'), 'holds');
    assert.strictEqual(await locks.acquire(name, { ifAvailable: true }), null);
    await assert.rejects(locks.acquire(name, { timeout: 5 }), { name: 'TimeoutError', code: 'VIGIL_TIMED_OUT' });
    assert.ok((await locks.query()).held.some((each) => each.name === name && each.pid === child.pid));
    const waiting = locks.acquire(name);
    await until(async () =>
        (await locks.query()).pending.some((each) => each.name === name && each.pid === process.pid),
    );
    child.kill('SIGKILL');
    const lock = await within(waiting, 'the lock of a dead process');
    assert.strictEqual(lock.ownerDied, true);
    assert.strictEqual(lock.owner.pid, child.pid);
    lock.release();
    const again = await locks.acquire(name);
    assert.strictEqual(again.ownerDied, true, 'until it is consistent');
    again.consistent();
    again.release();
    await locks.request(name, (last) => assert.strictEqual(last.ownerDied, false));
    await child.ended;
});

test('exclusion between processes with workers', async () => {
    const name = uniqueName('exclusion'),
        file = path.join(temporaryFolder(), 'counter');
    fs.writeFileSync(file, '0');
    const code = `
    const fs = require('node:fs');
    for (let i = 0; i < 50; i++) await vigil.locks.request(${JSON.stringify(name)}, async () => {
      const count = Number(fs.readFileSync(${JSON.stringify(file)}));
      await new Promise((resolve) => setImmediate(resolve));
      fs.writeFileSync(${JSON.stringify(file)}, String(count + 1));
    });`;
    const processes = [1, 2, 3].map(() => processOf(`${code} process.exit(0);`));
    const workers = [1, 2].map(() => worker(code));
    await within(Promise.all([...processes, ...workers].map((each) => each.ended)), 'all');
    assert.strictEqual(fs.readFileSync(file, 'utf8'), '250');
});

const command = process.env.VIGIL_COMMAND;
const skip = !command && 'set VIGIL_COMMAND to the vigil command';
test('in one line with the command `vigil lock NAME`', { skip }, async () => {
    const name = uniqueName('command');
    const shell = (...args) => {
        const child = spawn(command, ['lock', name, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
        child.ended = new Promise((resolve) => child.once('close', resolve));
        return child;
    };
    const pending = async () => (await locks.query()).pending.filter((each) => each.name === name).length;
    const lock = await locks.acquire(name),
        order = [];
    assert.strictEqual(await shell('--try', '--', 'true').ended, 124);
    const first = shell('--fair', '--', 'cat');
    first.stdout.on('data', () => {});
    await until(async () => (await pending()) === 1, 'the command to wait');
    const second = locks.request(name, () => order.push('node'));
    await until(async () => (await pending()) === 2);
    const third = shell('--fair', '--', 'true');
    third.ended.then(() => order.push('command'));
    await until(async () => (await pending()) === 3);
    lock.release();
    await until(async () => (await locks.query()).held.some((each) => each.name === name && each.pid === first.pid));
    assert.deepStrictEqual(order, []);
    first.stdin.end();
    assert.strictEqual(await first.ended, 0);
    await within(Promise.all([second, third.ended]), 'the others');
    assert.deepStrictEqual(order, ['node', 'command']);

    const killed = shell('--', 'cat');
    await until(async () => (await locks.query()).held.some((each) => each.name === name));
    killed.kill('SIGKILL');
    const next = await within(locks.acquire(name), 'the lock of a killed command');
    assert.strictEqual(next.ownerDied, true);
    next.consistent();
    next.release();
});

test('steal from the command `vigil lock NAME`: it is told when its command has ended', { skip }, async () => {
    const name = uniqueName('command'),
        holds = async () => (await locks.query()).held.some((each) => each.name === name);
    const child = spawn(command, ['lock', name, '--', 'cat'], { stdio: ['pipe', 'pipe', 'pipe'] });
    const ended = new Promise((resolve) => child.once('close', resolve));
    let text = '';
    child.stderr.setEncoding('utf8').on('data', (more) => (text += more));
    await until(holds, 'the command to hold it');
    (await within(locks.acquire(name, { steal: true }), 'the lock')).release();
    const lock = await within(locks.acquire(name), 'the lock, although the command still runs');
    child.stdin.end();
    assert.strictEqual(await within(ended, 'the command'), 0);
    assert.match(text, /was stolen/);
    assert.strictEqual(lock.stolen, false);
    assert.ok(await holds());
    lock.release();
});

test('a path is a lock, too, and keeps no descriptor', async () => {
    const file = path.join(temporaryFolder(), 'lock');
    await locks.request(file, (lock) => assert.strictEqual(lock.name, file));
    const descriptors = fs.readdirSync('/proc/self/fd').length;
    for (let i = 0; i < 10; i++) await locks.request(`${file}-${i}`, () => {});
    assert.ok(fs.readdirSync('/proc/self/fd').length <= descriptors + 1);
    fs.rmSync(file);
    await locks.request(file, () => assert.ok(fs.existsSync(file)));
});

test('500 names at once, and 2,000 one after another', async () => {
    const names = Array.from({ length: 500 }, () => uniqueName('many'));
    const held = await within(Promise.all(names.map((name) => locks.acquire(name))), 'all names');
    held.forEach((lock) => lock.release());
    for (let i = 0; i < 2000; i++) await locks.request(names[i % 500], () => {});
    for (const name of names) assert.strictEqual(locks.remove(name), true);
});

test('remove: not while it is used elsewhere; idle names can be removed by others after a while', async () => {
    const name = uniqueName('remove');
    assert.strictEqual(locks.remove(name), false);
    const child = processOf(`
    const name = ${JSON.stringify(name)}, lock = await vigil.locks.acquire(name);
    say('holds');
    process.stdin.ref();
    process.stdin.once('data', () => { lock.release(); say('released'); });`);
    await within(child.next(), 'the process');
    assert.throws(() => locks.remove(name), { code: 'VIGIL_EBUSY' });
    child.stdin.write('x');
    await within(child.next(), 'the process');
    await until(async () => {
        await sleep(50);
        try {
            return locks.remove(name);
        } catch {
            return false;
        }
    }, 'the idle handle of the other process to be closed');
    child.kill('SIGKILL');
    await child.ended;
});
