// SPDX-License-Identifier: MIT
'use strict';
// locks.request and acquire with `at`, on a real etcd. VIGIL_ETCD_LIBRARY is libvigil-etcd, VIGIL_COMMAND the command.

const assert = require('node:assert');
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const { test, before, after } = require('node:test');
const {
  vigil, tick, sleep, until, within, worker, processOf, temporaryFolder, randomOf, seedOf,
} = require('./support.js');

const { locks } = vigil;
const root = path.join(__dirname, '..', '..');
const unpacked = `${root}/build/etcd/usr/bin`; // by tools/need.sh
const env = { ...process.env, PATH: `${process.env.PATH}:${unpacked}`, ETCDCTL_API: '3' };
const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`], { env }).status === 0;
const command = process.env.VIGIL_COMMAND;

function whatIsMissing() {
  if (!process.env.VIGIL_ETCD_LIBRARY) return 'set VIGIL_ETCD_LIBRARY to libvigil-etcd.so';
  const missing = ['etcd', 'etcdctl', 'setpriv', 'python3', 'bash'].find((program) => !has(program));
  return missing !== undefined && `there is no ${missing}`;
}
const skip = whatIsMissing();
const skipShell = skip || (!command && 'set VIGIL_COMMAND to the vigil command');

/* A server of its own, which ends with this process: test/remote/cluster.sh. */
async function startCluster() {
  const script = '. test/remote/cluster.sh; cluster_start 1 && echo "$cluster_at" && read -r _';
  const shell = spawn('bash', ['-c', script], { cwd: root, env, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => shell.once('close', resolve));
  const said = new Promise((resolve) => shell.stdout.setEncoding('utf8').once('data', resolve));
  const at = (await within(Promise.race([said, ended.then(() => '')]), 'the start of etcd')).trim();
  assert.match(at, /^etcd:/);
  return { at, stop: () => (shell.stdin.end(), ended) };
}

function ctl(at, ...args) {
  const endpoints = at.slice('etcd://'.length);
  const result = spawnSync('etcdctl', [`--endpoints=${endpoints}`, ...args], { env, encoding: 'utf8' });
  assert.strictEqual(result.status, 0, result.stderr);
  return result.stdout.split('\n').filter((line) => line !== '');
}
const keysOf = (name) => ctl(cluster.at, 'get', '--prefix', '--keys-only', `${name}!`);
const leases = () => ctl(cluster.at, 'lease', 'list').slice(1);
const revoke = (lock) => ctl(cluster.at, 'lease', 'revoke', lock.key.match(/\/[xs]\.([0-9a-f]+)\./)[1]);

let cluster, at, last = 0;
const used = new Set(['deploy', 'x'.repeat(150)]);
function newName(what) {
  const name = `nodetest-${what}-${++last}`; // the cluster is our own
  used.add(name);
  return name;
}

/* A machine has a lock of its own before each of the cluster: lock_local_name in remote/lock.c. */
function removeLocalLocks(where, names, ...options) {
  const said = ctl(where, ...options, 'endpoint', 'status', '--write-out=json').join('');
  const [, number] = /"cluster_id":(\d+)/.exec(said);
  for (const name of names) {
    try {
      locks.remove(`etcd-${BigInt(number).toString(16).padStart(16, '0')}-${name}`, { force: true });
    } catch (error) {
      assert.strictEqual(error.code, 'VIGIL_ENOTFOUND');
    }
  }
}

before(async () => {
  if (skip) return;
  cluster = await startCluster();
  at = cluster.at;
});
after(() => {
  if (cluster) removeLocalLocks(at, used);
  return cluster?.stop();
});

function remoteTest(what, body) {
  test(what, { skip }, () => within(body(), what));
}

/* Another process, with `locks`, `at` and `name` defined. */
const other = (name, code, options) =>
  processOf(`const { locks } = vigil, at = ${JSON.stringify(at)}, name = ${JSON.stringify(name)};${code}`, options);

remoteTest('request: the callback has the lock, and tokens grow', async () => {
  const name = newName('request');
  let before = 0n;
  for (let i = 0; i < 3; i++) {
    const result = await locks.request(name, { at }, async (lock) => {
      assert.strictEqual(lock.name, name);
      assert.strictEqual(lock.at, at);
      assert.strictEqual(lock.mode, 'exclusive');
      assert.strictEqual(lock.ownerDied, false);
      assert.strictEqual(lock.owner, undefined);
      assert.strictEqual(lock.lost.aborted, false);
      assert.strictEqual(lock.released, false);
      assert.ok(keysOf(name).includes(lock.key));
      assert.strictEqual(typeof lock.token, 'bigint');
      assert.ok(lock.token > before);
      before = lock.token;
      return lock;
    });
    assert.strictEqual(result.released, true);
    assert.throws(() => result.consistent(), { code: 'VIGIL_ENOTHELD' });
  }
  assert.deepStrictEqual(keysOf(name), []);
  await assert.rejects(locks.request(name, { at }, () => { throw new Error('inside'); }), /inside/);
  assert.deepStrictEqual(keysOf(name), []);
});

remoteTest('acquire: release is a promise, and may be repeated', async () => {
  const name = newName('acquire');
  const lock = await locks.acquire(name, { at });
  const release = lock.release();
  assert.strictEqual(lock.release(), release);
  await release;
  assert.deepStrictEqual(keysOf(name), []);
  if (!Symbol.asyncDispose) return;
  const another = await locks.acquire(name, { at });
  await another[Symbol.asyncDispose]();
  assert.strictEqual(another.released, true);
});

remoteTest('ifAvailable, timeout, abort', async () => {
  const name = newName('options');
  const holder = await locks.acquire(name, { at });
  assert.strictEqual(await locks.acquire(name, { at, ifAvailable: true }), null);
  assert.strictEqual(await locks.request(name, { at, ifAvailable: true }, (lock) => lock), null);
  await assert.rejects(locks.acquire(name, { at, timeout: 20 }), { name: 'TimeoutError', code: 'VIGIL_TIMED_OUT' });
  const controller = new AbortController();
  const waiting = Array.from({ length: 20 }, () => locks.acquire(name, { at, signal: controller.signal }));
  await tick();
  controller.abort(new Error('not needed'));
  for (const each of waiting) await assert.rejects(each, /not needed/);
  await assert.rejects(locks.acquire(name, { at, signal: controller.signal }), /not needed/);
  await until(() => !keysOf(name).some((key) => key.includes('!line/')), 'the line is left');
  await holder.release();
  const next = await locks.acquire(name, { at, ifAvailable: true });
  assert.strictEqual(next.ownerDied, false);
  await next.release();
});

remoteTest('shared together, exclusive alone', async () => {
  const name = newName('shared');
  const [first, second] = await Promise.all([1, 2].map(() => locks.acquire(name, { at, mode: 'shared' })));
  assert.strictEqual(first.mode, 'shared');
  assert.strictEqual(await locks.acquire(name, { at, ifAvailable: true }), null);
  const alone = locks.acquire(name, { at });
  await first.release();
  await second.release();
  await (await alone).release();
});

remoteTest('one line with another process', async () => {
  const name = newName('process');
  const child = other(name, `
    const lock = await locks.acquire(name, { at });
    say(String(lock.token));
    process.stdin.once('data', async () => { say('releases'); await lock.release(); });`);
  const token = BigInt(await child.next());
  assert.strictEqual(await locks.acquire(name, { at, ifAvailable: true }), null);
  let granted = false;
  const waiting = locks.acquire(name, { at }).then((lock) => ((granted = true), lock));
  await sleep(20);
  assert.strictEqual(granted, false);
  child.stdin.write('go\n');
  assert.strictEqual(await child.next(), 'releases');
  const lock = await waiting;
  assert.ok(lock.token > token);
  await lock.release();
  child.stdin.end();
  await child.ended;
});

remoteTest('a storm: processes and workers are never two, and tokens only grow', async () => {
  const name = newName('storm'), folder = temporaryFolder();
  fs.writeFileSync(path.join(folder, 'token'), '0');
  const body = `
    const fs = require('node:fs'), inside = ${JSON.stringify(folder)} + '/inside';
    for (let i = 0; i < 25; i++) {
      await vigil.locks.request(${JSON.stringify(name)}, { at: ${JSON.stringify(at)} }, async (lock) => {
        fs.writeFileSync(inside, '', { flag: 'wx' });
        const before = BigInt(fs.readFileSync(${JSON.stringify(folder)} + '/token', 'utf8'));
        if (lock.token <= before) throw new Error(lock.token + ' after ' + before);
        await new Promise(setImmediate);
        fs.writeFileSync(${JSON.stringify(folder)} + '/token', String(lock.token));
        fs.unlinkSync(inside);
      });
    }
    say('done');`;
  const all = [processOf(body), processOf(body), worker(body), worker(body)];
  for (const each of all) assert.strictEqual(await each.next(), 'done');
  for (const each of all) each.stdin?.end();
  await Promise.all(all.map((each) => each.ended));
  assert.deepStrictEqual(keysOf(name), []);
});

test('one line with the shell', { skip: skipShell }, async () => {
  const name = newName('shell');
  const shell = spawn(command, ['lock', '--at', `${at}/${name}`, '--', 'sh', '-c', 'echo $VIGIL_TOKEN; read -r _'],
    { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const token = BigInt(await within(new Promise((resolve) => shell.stdout.once('data', resolve)), 'the command'));
  assert.strictEqual(await locks.acquire(name, { at, ifAvailable: true }), null);
  const waiting = locks.acquire(name, { at });
  shell.stdin.end();
  const lock = await within(waiting, 'the lock of the command');
  assert.ok(lock.token > token);
  const tried = spawnSync(command, ['lock', '--try', '--at', `${at}/${name}`, '--', 'true'], { env });
  assert.strictEqual(tried.status, 124);
  await lock.release();
  assert.strictEqual(spawnSync(command, ['lock', '--at', `${at}/${name}`, '--', 'true'], { env }).status, 0);
});

remoteTest('the lease is revoked: request is rejected, and lock.lost aborted', async () => {
  const name = newName('lost');
  let seen;
  const inside = new Promise((resolve) => { seen = resolve; });
  const request = locks.request(name, { at }, (lock) => (seen(lock), new Promise(() => {})));
  const rejected = assert.rejects(request, { name: 'VigilError', code: 'VIGIL_ELOST' });
  const lock = await inside;
  revoke(lock);
  await rejected;
  assert.strictEqual(lock.lost.aborted, true);
  assert.strictEqual(lock.lost.reason.code, 'VIGIL_ELOST');
  assert.strictEqual(lock.released, true);

  const acquired = await locks.acquire(name, { at });
  assert.ok(acquired.token > lock.token);
  const lost = new Promise((resolve) => acquired.lost.addEventListener('abort', resolve));
  revoke(acquired);
  await lost;
  await assert.rejects(acquired.release(), { code: 'VIGIL_ELOST' });
  await (await locks.acquire(name, { at })).release();
});

remoteTest('a process exits while it holds: the next is told, and nothing is left', async () => {
  const name = newName('exit');
  const child = other(name, 'await locks.acquire(name, { at, ttl: 2000 }); say("held"); process.exit(7);');
  assert.strictEqual(await child.next(), 'held');
  assert.strictEqual(await child.ended, 7);
  const lock = await locks.acquire(name, { at });
  assert.strictEqual(lock.ownerDied, true);
  assert.strictEqual(lock.owner.pid, child.pid);
  assert.strictEqual(typeof lock.owner.host, 'string');
  await lock.release();
  await locks.request(name, { at }, (next) => {
    assert.strictEqual(next.ownerDied, true);
    next.consistent();
  });
  await locks.request(name, { at }, (next) => assert.strictEqual(next.ownerDied, false));
  assert.deepStrictEqual(keysOf(name), []);
  await until(() => leases().length === 0, 'the leases have ended');
});

remoteTest('a process ends by itself when it holds nothing, and leaves no lease', async () => {
  const name = newName('end');
  await until(() => leases().length === 0, 'the leases of other tests have ended');
  const child = other(name, `
    await locks.request(name, { at, ttl: 600000 }, () => {});
    const held = await locks.acquire(name, { at, ttl: 600000 });
    const waiting = locks.acquire(name, { at, ttl: 600000 });
    await held.release();
    await (await waiting).release();
    say('released');`, { dies: false });
  assert.strictEqual(await child.next(), 'released');
  assert.strictEqual(await child.ended, 0);
  assert.deepStrictEqual(leases(), []);
});

remoteTest('a held lock and a pending request keep the process alive', async () => {
  const name = newName('alive');
  const child = other(name, `
    const lock = await locks.acquire(name, { at });
    say(lock.key);
    await locks.acquire(name, { at });`, { dies: false });
  const key = await child.next();
  await sleep(50);
  assert.deepStrictEqual(keysOf(name).filter((each) => each === key), [key]);
  assert.strictEqual(child.exitCode, null);
  child.kill('SIGKILL');
  await child.ended;
  const lock = await locks.acquire(name, { at });
  assert.strictEqual(lock.ownerDied, true);
  lock.consistent();
  await lock.release();
});

remoteTest('a worker is terminated while it holds', async () => {
  const name = newName('terminate');
  for (const end of ['terminate', 'exit']) {
    const holder = worker(`
      await vigil.locks.acquire(data.name, { at: data.at });
      say('held');
      if (data.end === 'exit') process.exit();`, { name, at, end });
    assert.strictEqual(await holder.next(), 'held');
    const waiting = locks.acquire(name, { at });
    if (end === 'terminate') await holder.terminate();
    await holder.ended;
    const lock = await waiting;
    assert.strictEqual(lock.ownerDied, true);
    lock.consistent();
    await lock.release();
  }
  assert.deepStrictEqual(keysOf(name), []);
});

remoteTest('workers are terminated at any time', async () => {
  const name = newName('any-time'), random = randomOf(seedOf('remote'));
  const code = `
    const options = { at: data.at, mode: data.mode, ttl: 2000 };
    say('begins');
    for (;;) await vigil.locks.request(data.name, options, () => new Promise(setImmediate));`;
  for (let i = 0; i < 12; i++) {
    const mode = random(3) === 0 ? 'shared' : 'exclusive';
    const all = [1, 2].map(() => worker(code, { name, at, mode }));
    for (const each of all) await each.next();
    await sleep(random(40));
    for (const each of all) await each.terminate();
    await locks.request(name, { at }, (lock) => lock.ownerDied && lock.consistent());
  }
});

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

remoteTest('no server, and one that is not etcd', async () => {
  const port = await freePort();
  await assert.rejects(locks.acquire('a', { at: `etcd://127.0.0.1:${port}` }), (error) => {
    assert.ok(error instanceof vigil.VigilError);
    assert.strictEqual(error.code, 'VIGIL_EUNREACHABLE');
    assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${port}: Connection refused`));
    return true;
  });
  const server = net.createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const request = locks.request('a', { at: `etcd://127.0.0.1:${server.address().port}` }, () => assert.fail());
  await assert.rejects(request, { code: 'VIGIL_EPROTOCOL' });
  server.close();
});

remoteTest('a server that wants a user', async () => {
  const guarded = await startCluster();
  for (const args of [['user', 'add', 'root:secret'], ['role', 'add', 'root'], ['user', 'grant-role', 'root', 'root'],
    ['auth', 'enable']]) ctl(guarded.at, ...args);
  await assert.rejects(locks.acquire('a', { at: guarded.at }), { code: 'VIGIL_EREFUSED' });
  await assert.rejects(locks.acquire('a', { at: guarded.at, user: 'root', password: 'x' }), { code: 'VIGIL_EREFUSED' });
  const lock = await locks.acquire('a', { at: guarded.at, user: 'root:secret' });
  await lock.release();
  removeLocalLocks(guarded.at, ['a'], '--user=root:secret');
  await guarded.stop();
});

remoteTest('the example of the README', async () => {
  const [block] = fs.readFileSync(path.join(root, 'node/README.md'), 'utf8').match(/(?<=^```javascript\n)[^`]*/m);
  assert.match(block, /etcd:\/\/127\.0\.0\.1:2379/);
  const code = block.replace('import', '//').replace('etcd://127.0.0.1:2379', at).replaceAll('console.log', 'say');
  const child = processOf(`const { locks } = vigil;\n${code}`);
  assert.strictEqual(await child.next(), true);
  child.stdin.end();
  await child.ended;
});

remoteTest('without the library: what to do', async () => {
  const child = other('a', `
    await locks.acquire(name, { at }).catch((error) => say([error.name, error.code, error.message]));
    await locks.request('nodetest-' + process.pid, () => say('local'));
    locks.remove('nodetest-' + process.pid);`, { environment: { VIGIL_ETCD_LIBRARY: '/nowhere/libvigil-etcd.so' } });
  const [type, code, message] = await child.next();
  assert.deepStrictEqual([type, code], ['VigilError', 'VIGIL_ENOTFOUND']);
  assert.match(message, /\/nowhere\/libvigil-etcd\.so.*[Ii]nstall.*VIGIL_ETCD_LIBRARY/);
  assert.strictEqual(await child.next(), 'local');
  child.stdin.end();
  await child.ended;
});

remoteTest('arguments', async () => {
  const refused = (options, expected) => assert.rejects(locks.acquire('a', options), expected);
  await refused({ at, steal: true }, { name: 'NotSupportedError' });
  await refused({ at, ref: false }, { name: 'NotSupportedError' });
  await refused({ at: 5 }, TypeError);
  await refused({ at, user: 5 }, TypeError);
  await refused({ at, ttl: '10' }, TypeError);
  await refused({ at, ttl: 999 }, RangeError);
  await refused({ at: 'etcd://' }, { code: 'VIGIL_EINVAL' });
  await refused({ at, cacert: '/nowhere/ca.pem' }, { code: 'VIGIL_EREFUSED', message: /\/nowhere\/ca\.pem/ });
  await assert.rejects(locks.acquire('a!b', { at }), { code: 'VIGIL_ENAME' });
  await assert.rejects(locks.acquire('x'.repeat(151), { at }), { code: 'VIGIL_ENAME' });
  await (await locks.acquire('x'.repeat(150), { at })).release();
  assert.throws(() => locks.acquireSync('a', { at }), { name: 'NotSupportedError' });
});
