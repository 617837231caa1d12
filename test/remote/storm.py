#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""storm.py - three nodes, eight members on four machines, and faults at random. Started by storm.sh.

    storm.sh [--seed S] [--faults N | --minutes M]

Members take a lock, write to the ledger with their token, and release (member.c); some share it for a moment, or have
one of two slots of a semaphore, without writing, and some do nothing for a time. The ledger, which is this program,
accepts a write only with a token that is not less than the last one accepted. Processes are killed and stopped,
networks cut, nodes killed, stopped and started again. The seed makes the faults; the scheduler decides what they hit.

What is checked:
  * no token is granted twice, and no member gets one that is less than one that it had before;
  * a grant is told while the holder before still holds only if a fault has hit that one's machine, or the cluster,
    since its grant; and a token that is less than that of a grant told before, only if a fault has hit the machine that
    tells it, or the cluster, since that grant, and not any more when the faults have stopped;
  * a holder that died or lost the lock is told to the next; none is told where none did;
  * no member ends but by a kill of ours, or at the end with the status 0;
  * when the faults have stopped, each member gets the lock again, three times, and then ends well;
  * at the end no key and no lease is left.
What the machine does to us counts as a fault: if this program runs late, so may a holder, past the end of its lease.
check_ledger feeds the ledger with mistakes before each storm: it must find them.
"""
import argparse
import bisect
import os
import random
import re
import selectors
import signal
import socket
import subprocess
import sys
import time

from etcd import Etcd

PATIENCE_S = 200  # for what must happen in the end
MACHINES = 4
MEMBERS = 8
LATE_S = 0.25  # if we run so late, members may too
SETTLE_S = 3  # for members that were stopped to say what they had to say
HUB = "10.77.0.1"
ALL = -1  # what a fault has hit, if not a machine


class Failure(Exception):
    pass


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


class Cluster:
    def __init__(self):
        self.serve = subprocess.Popen([os.environ["SERVE"], "--host", HUB, "3"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.at = self.serve.stdout.readline().split()[0]
        ports = re.findall(r":(\d+)", self.at)
        self.etcd = Etcd(",".join(f"127.0.0.1:{port}" for port in ports), timeout=5)
        self.well = [True] * 3

    def do(self, verb, node=0):
        self.serve.stdin.write(f"{verb} {node}\n")
        self.serve.stdin.flush()
        reply = self.serve.stdout.readline().strip()
        if verb != "leader" and reply != "done":
            raise Failure(f"{verb} of node {node}: {reply}")
        return reply

    def hurt(self, verb, node):
        """False: it is hurt already, and must not be healed for this."""
        if not self.well[node]:
            return False
        self.well[node] = False
        self.do(verb, node)
        return True

    def heal(self, verb, node):
        self.do(verb, node)
        self.well[node] = True


class Machine:
    def __init__(self, number):
        self.number = number
        self.keeper = subprocess.Popen(
            ["unshare", "--mount", "--uts", "--net", "--propagation", "private", "sh", "-c",
             f"mount -t tmpfs tmpfs /dev/shm && hostname m{number} && ip link set lo up && echo up &&"
             " exec sleep infinity"],
            stdout=subprocess.PIPE)
        self.keeper.stdout.readline()
        run("ip", "link", "add", f"hub{number}", "type", "veth", "peer", "name", "wire", "netns", str(self.keeper.pid))
        run("ip", "addr", "add", f"10.77.{number}.1/24", "dev", f"hub{number}")
        run("ip", "link", "set", f"hub{number}", "up")
        run(*self.there("ip", "addr", "add", f"10.77.{number}.2/24", "dev", "wire"))
        run(*self.there("ip", "link", "set", "wire", "up"))
        run(*self.there("ip", "route", "add", "default", "via", f"10.77.{number}.1"))

    def there(self, *words):
        return ["nsenter", "-t", str(self.keeper.pid), "--mount", "--uts", "--net", "--", *words]

    def cut(self, way):
        if way != "answers":
            run(*self.there("ip", "neigh", "replace", f"10.77.{self.number}.1", "lladdr", "02:00:00:00:00:99", "dev",
                            "wire", "nud", "permanent"))
        if way != "requests":
            run("ip", "route", "replace", "blackhole", f"10.77.{self.number}.2/32")

    def mend(self):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(self.there("ip", "neigh", "del", f"10.77.{self.number}.1", "dev", "wire"), **quiet)
        subprocess.run(["ip", "route", "del", "blackhole", f"10.77.{self.number}.2/32"], **quiet)


class Ledger:
    """What members tell, in the order in which it arrives."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        self.pieces = {}  # of what a connection has said
        self.pid_of = {}
        self.last = 0  # the token that was accepted last
        self.owner = {}  # of a token: the pid that got it
        self.state = {}  # of a token: held, releasing, lost, dirty, late
        self.order = []  # tokens, as they were told
        self.seen = {}  # of a pid: its last token
        self.doubts = 0  # faults after which a death may be told
        self.doubts_before = 0
        self.hits = {}  # of a machine, or ALL: beginnings and ends of faults
        self.hits_at = {}  # of a token: these when it was told
        self.hurt = []  # machines, or ALL: the faults that are in effect
        self.machine_of = {}  # of a pid
        self.broken = False  # a holder died, and nothing has been repaired since
        self.phase = "storm"
        self.grants_since = {}
        self.counts = dict.fromkeys(("grants", "told", "accepted", "refused", "lost", "released", "ended"), 0)
        self.bye = set()

    def listen(self, path):
        self.listener.bind(path)
        self.listener.listen(64)
        self.selector.register(self.listener, selectors.EVENT_READ)

    def demand(self, good, text):
        if not good:
            raise Failure(text)

    def hit(self, where):
        """A fault begins or ends."""
        self.doubts += 1
        self.hits[where] = self.hits.get(where, 0) + 1

    def was_hit_since(self, token, pid):
        """Whether the machine of the process was, or all."""
        places, then = (self.machine_of[pid], ALL), self.hits_at[token]
        return any(where in self.hurt or self.hits.get(where) != then.get(where) for where in places)

    def serve(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                if key.fileobj is self.listener:
                    connection, _ = self.listener.accept()
                    self.selector.register(connection, selectors.EVENT_READ)
                    self.pieces[connection] = b""
                else:
                    self.read(key.fileobj)

    def read(self, connection):
        try:
            data = connection.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(connection)
            connection.close()
            return
        self.pieces[connection] += data
        while b"\n" in self.pieces[connection]:
            line, self.pieces[connection] = self.pieces[connection].split(b"\n", 1)
            reply = self.hear(connection, line.decode().split())
            try:
                connection.send(reply.encode() + b"\n")
            except OSError:
                pass

    def hear(self, connection, words):
        verb, pid = words[0], self.pid_of.get(connection)
        token = int(words[1]) if len(words) > 1 else 0
        if verb == "member":
            self.pid_of[connection] = token
        elif verb == "next":
            if self.phase == "storm":
                return "take"
            return "end" if self.grants_since.get(pid, 0) >= 3 else "calm"
        elif verb == "granted":
            self.granted(pid, token, words[2] == "1")
        elif verb == "write":
            return self.write(token)
        elif verb == "lost":
            self.counts["lost"] += 1
            self.doubts += 1
            self.state[token] = "lost"
        elif verb == "consistent":
            if self.state.get(token) == "held":
                self.broken = False
        elif verb == "release":
            self.counts["released"] += 1
            if self.state[token] == "held":
                self.state[token] = "releasing"
        elif verb == "ended":
            self.counts["ended"] += 1
        elif verb == "bye":
            self.bye.add(pid)
        return "ok"

    def granted(self, pid, token, told):
        self.counts["grants"] += 1
        self.counts["told"] += told
        self.demand(token not in self.owner, f"token {token} is that of {self.owner.get(token)}, and of {pid}")
        self.demand(token > self.seen.get(pid, 0), f"{pid} had {self.seen.get(pid)} and then {token}")
        if self.order and token < self.order[-1]:  # it was stopped before it could tell
            self.granted_late(pid, token)
            return
        before = self.order[-1] if self.order else None
        if before is not None:
            self.demand(self.state[before] != "held" or self.was_hit_since(before, self.owner[before]),
                        f"{pid} was granted {token} while {self.owner[before]} held {before}")
            if self.state[before] == "dirty":
                self.broken = True
            if self.state[before] in ("held", "lost"):
                self.doubts += 1
            self.demand(told or not self.broken, f"{pid} was not told at {token} of the holder of {before}, which died")
        # What was released may be kept, or may be still there: a fault that goes on ends its lease, and the mark stays.
        kept = self.hurt and before is not None and self.state[before] == "releasing"
        self.demand(not told or self.broken or kept or self.doubts > self.doubts_before,
                    f"{pid} was told at {token} of a death that was none; before it {before}, "
                    f"{self.state.get(before)}; {len(self.hurt)} faults")
        if told:
            self.broken = True
        elif before is not None:
            self.broken = False
        self.doubts_before = self.doubts if not told else self.doubts_before
        self.owner[token], self.state[token], self.seen[pid] = pid, "held", token
        self.hits_at[token] = dict(self.hits)
        self.order.append(token)
        self.grants_since[pid] = self.grants_since.get(pid, 0) + (self.phase != "storm")

    def granted_late(self, pid, token):
        at = bisect.bisect(self.order, token)
        good = self.phase == "storm" and (at == 0 or self.was_hit_since(self.order[at - 1], pid))
        self.demand(good, f"{pid} was granted {token} when {self.order[-1]} had been")
        self.owner[token], self.state[token], self.seen[pid] = pid, "late", token
        self.doubts += 1

    def write(self, token):
        if token < self.last:
            self.counts["refused"] += 1
            return "no"
        self.last = token
        self.counts["accepted"] += 1
        return "ok"

    def killed(self, pid):
        self.doubts += 1
        token = self.seen.get(pid)
        if token is not None and self.state[token] == "held" and token == self.order[-1]:
            self.state[token] = "dirty"


# What a ledger hears of the members 1 and 2, on machines of these numbers, and whether it must object. "fault" and
# "calm" are the storm's.
LEDGER_CHECKS = (
    (False, "1 granted 5 0; 1 release 5 0; 2 granted 7 0; fault 2; 1 granted 8 0; 2 release 7 0"),
    (True, "1 granted 5 0; 2 granted 5 0"),
    (True, "1 granted 5 0; 1 release 5 0; 2 granted 7 0; 2 release 7 0; 2 granted 6 0"),
    (True, "1 granted 5 0; 2 granted 7 0"),
    (True, "fault 1; 1 granted 5 0; 2 granted 7 0"),
    (True, "1 granted 5 0; calm; 1 release 5 0; 2 granted 7 0; 1 granted 8 0"),
    (False, "1 granted 5 0; fault 1; 2 granted 7 0"),
    (False, "1 granted 5 0; fault -1; 2 granted 7 0"),
    (True, "1 granted 5 0; fault 2; 2 granted 7 0"),
    (False, "1 granted 5 0; 1 lost 5; 2 granted 7 1"),
    (True, "1 granted 5 0; 1 release 5 0; 2 granted 7 0; 2 release 7 0; 1 granted 6 0"),
    (False, "1 granted 5 0; 1 release 5 0; fault 1; 2 granted 7 0; 1 granted 6 0"),
    (True, "1 granted 5 0; 1 release 5 0; fault 2; 2 granted 7 0; 1 granted 6 0"),
    (True, "1 granted 5 0; 1 release 5 0; fault 1; 2 granted 7 0; calm; 1 granted 6 0"),
    (True, "1 granted 5 0; fault 1; killed 1; 2 granted 7 0"),
    (False, "1 granted 5 0; fault 1; killed 1; 2 granted 7 1"),
    (True, "1 granted 5 0; 1 release 5 0; 2 granted 7 1"),
)


def check_ledger():
    for bad, story in LEDGER_CHECKS:
        ledger, caught = Ledger(), ""
        ledger.pid_of = {"1": 1, "2": 2}
        ledger.machine_of = {1: 1, 2: 2}
        try:
            for words in (step.split() for step in story.split("; ")):
                if words[0] == "fault":
                    ledger.hit(int(words[1]))
                elif words[0] == "calm":
                    ledger.phase = "calm"
                elif words[0] == "killed":
                    ledger.killed(int(words[1]))
                else:
                    ledger.hear(words[0], words[1:])
        except Failure as failure:
            caught = str(failure)
        if bool(caught) != bad:
            sys.exit(f"FAILED: the ledger {'objects' if caught else 'does not object'} to: {story}. {caught}")


class Storm:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.scratch = os.environ["REMOTE_SCRATCH"]
        self.cluster = Cluster()
        self.machines = [Machine(i + 1) for i in range(MACHINES)]
        self.ledger = Ledger()
        self.ledger.listen(self.scratch + "/ledger")
        self.members = [None] * MEMBERS
        self.killed = set()  # processes, by us
        self.lives = 0
        self.due = []  # (when, what, where): the ends of faults
        self.counts = {}

    def check_end(self, member):
        """Whether it has ended, which it must not have done by itself."""
        status = member.poll()
        if status is None:
            return False
        good = status == -signal.SIGKILL if member in self.killed else status == 0 and member.pid in self.ledger.bye
        if not good:
            raise Failure(f"the member {member.pid} has ended with {status}")
        return True

    def check_ends(self):
        return all([self.check_end(member) for member in self.members if member])

    def start(self, number):
        if self.members[number] and not self.check_end(self.members[number]):
            return
        self.lives += 1
        words = [os.environ["MEMBER"], "storm", self.cluster.at, "storm", self.scratch + "/ledger",
                 str(self.lives * 8 + number + 1)]
        self.members[number] = subprocess.Popen(self.machines[number % MACHINES].there(*words))
        self.ledger.machine_of[self.members[number].pid] = number % MACHINES

    def kill(self, number):
        member = self.members[number]
        if not self.check_end(member):
            self.killed.add(member)
            member.kill()
        member.wait()
        self.check_end(member)
        self.ledger.serve(0.001)  # what it has said before
        self.ledger.killed(member.pid)

    def later(self, seconds, what, where=ALL):
        self.due.append((time.monotonic() + seconds, what, where))
        self.ledger.hurt = [where for _, _, where in self.due]

    def stop(self, number, seconds):
        member, where = self.members[number], number % MACHINES
        if not self.check_end(member):
            member.send_signal(signal.SIGSTOP)
            self.later(seconds, lambda: member.poll() is None and member.send_signal(signal.SIGCONT), where)

    def fail_machine(self, machine, seconds):
        there = [i for i in range(MEMBERS) if i % MACHINES == machine]
        for i in there:
            if not self.check_end(self.members[i]):
                self.members[i].send_signal(signal.SIGSTOP)
        for i in there:
            self.kill(i)
            self.later(seconds, lambda i=i: self.start(i), machine)

    def holder(self, number):
        pid = self.ledger.owner[self.ledger.order[-1]]
        return next((i for i in range(MEMBERS) if self.members[i].pid == pid), number)

    def fault(self):
        """One fault. The seed chooses which, and how long; half of those of members are aimed at the last holder."""
        choice, number = self.random.randrange(20), self.random.randrange(MEMBERS)
        if self.random.randrange(2):
            number = self.holder(number)
        seconds, node = self.random.choice((0.1, 0.5, 1, 3, 4)), self.random.randrange(3)
        machine, way = self.machines[number % MACHINES], self.random.choice(("both", "requests", "answers"))
        where, began = number % MACHINES if choice < 16 else ALL, time.monotonic()
        self.ledger.hit(where)
        if choice < 7:
            name = "kill"
            self.kill(number)
            self.later(seconds / 4, lambda: self.start(number), where)
        elif choice < 11:
            name = "stop"
            self.stop(number, seconds)
        elif choice < 15:
            name = "cut"
            machine.cut(way)
            self.later(seconds, machine.mend, where)
        elif choice < 16:
            name = "machine"
            self.fail_machine(number % MACHINES, seconds)
        elif choice < 18:
            name = "node"
            if self.cluster.hurt("kill", node):
                self.later(seconds, lambda: self.cluster.heal("restart", node))
        elif choice < 19:
            name = "frozen node"
            if self.cluster.hurt("freeze", node):
                self.later(seconds, lambda: self.cluster.heal("thaw", node))
        else:
            name = "leader"
            leader = self.cluster.do("leader")
            if leader.isdigit() and self.cluster.hurt("kill", int(leader)):
                self.later(seconds, lambda: self.cluster.heal("restart", int(leader)))
        late = time.monotonic() - began > LATE_S  # while members waited for a reply of the ledger
        self.ledger.hit(ALL if late else where)
        self.counts[name] = self.counts.get(name, 0) + 1
        return self.random.choice((0.1, 0.3, 0.6, 1.5))

    def serve(self, seconds):
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            ready = [one for one in self.due if one[0] <= now]
            self.due = [one for one in self.due if one[0] > now]
            for _, what, where in ready:
                began = time.monotonic()
                what()
                self.ledger.hit(ALL if time.monotonic() - began > LATE_S else where)
            self.ledger.hurt = [where for _, _, where in self.due]
            began, wanted = time.monotonic(), min([end - now, 0.05])
            self.ledger.serve(wanted)
            if time.monotonic() - began > wanted + LATE_S:
                self.ledger.hit(ALL)
                self.counts["late"] = self.counts.get("late", 0) + 1
            self.check_ends()

    def await_(self, what, good):
        end = time.monotonic() + PATIENCE_S
        while not good():
            if time.monotonic() > end:
                raise Failure(f"never came true: {what}; keys {self.keys()}")
            self.serve(0.1)

    def keys(self):
        try:
            return self.cluster.etcd.pairs("storm")
        except OSError as error:
            return repr(error)

    def is_clean(self):
        try:
            etcd = self.cluster.etcd
            return not etcd.leases() and set(etcd.keys("storm")) <= {"storm-pool!slots"}
        except OSError:
            return False

    def begin(self):
        self.await_("the cluster is up", lambda: self.can(lambda: self.cluster.etcd.put("ready", "yes")))
        for i in range(MEMBERS):
            self.start(i)
        self.await_("some grants", lambda: self.ledger.counts["grants"] >= 10)

    @staticmethod
    def can(what):
        try:
            what()
            return True
        except OSError:
            return False

    def calm(self):
        """All faults end now."""
        while self.due:
            self.serve(0.1)
        for machine in self.machines:
            machine.mend()
        for i in range(MEMBERS):
            self.start(i)
        self.ledger.hit(ALL)
        self.serve(SETTLE_S)
        self.ledger.phase = "calm"
        self.await_("each member gets the lock three times more, and ends", self.check_ends)
        at = self.cluster.at + "/storm"
        words = [os.environ["VIGIL"], "lock", "--at", at, "--ttl", "2s", "--", "true"]
        last = subprocess.run(self.machines[0].there(*words), check=False)
        if last.returncode:
            raise Failure(f"the last lock: {last.returncode}")
        self.await_("no key and no lease is left", self.is_clean)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--faults", type=int, default=24)
    parser.add_argument("--minutes", type=float, default=0)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())
    check_ledger()
    print(f"storm of a cluster: seed {seed}", flush=True)
    storm = Storm(seed)
    began, faults = time.monotonic(), 0
    try:
        storm.begin()
        while time.monotonic() - began < options.minutes * 60 if options.minutes else faults < options.faults:
            storm.serve(storm.fault())
            faults += 1
        storm.calm()
    except Failure as failure:
        sys.exit(f"FAILED, seed {seed}: {failure}\nfaults {storm.counts}, {storm.ledger.counts}")
    print(f"{faults} faults {storm.counts}, {storm.ledger.counts}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
