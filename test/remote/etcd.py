#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""etcd.py - what the tests do to a cluster behind the library's back, through etcd's JSON gateway.

    etcd.py HOST:PORT[,...] keys PREFIX        the keys that begin so, oldest first, one per line
    etcd.py HOST:PORT[,...] get KEY            the value
    etcd.py HOST:PORT[,...] put KEY VALUE
    etcd.py HOST:PORT[,...] delete KEY
    etcd.py HOST:PORT[,...] lease-of KEY       the number of its lease
    etcd.py HOST:PORT[,...] leases             all leases
    etcd.py HOST:PORT[,...] revoke LEASE
    etcd.py HOST:PORT[,...] compact            all history up to now
    etcd.py HOST:PORT[,...] leader             which of these leads, from 0
    etcd.py HOST:PORT[,...] call PATH JSON     any call
"""
import base64
import json
import sys
import urllib.error
import urllib.request


def encode(text):
    return base64.b64encode(text.encode()).decode()


def decode(text):
    return base64.b64decode(text).decode(errors="replace")


class Etcd:
    """The first endpoint that replies is used; an error of the last is raised."""

    def __init__(self, endpoints, timeout=10):
        self.endpoints = endpoints.replace("etcd://", "").split("/")[0].split(",")
        self.timeout = timeout

    def call(self, path, **body):
        for endpoint in self.endpoints:
            request = urllib.request.Request(f"http://{endpoint}/v3/{path}", json.dumps(body).encode())
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as reply:
                    return json.load(reply)
            except OSError as error:
                failure = error
        raise failure

    def pairs(self, prefix):
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\0"
        reply = self.call("kv/range", key=encode(prefix or "\0"), range_end=encode(end), sort_target="CREATE")
        return [(decode(pair["key"]), decode(pair.get("value", "")), int(pair.get("lease", 0)))
                for pair in reply.get("kvs", [])]

    def keys(self, prefix=""):
        return [key for key, _, _ in self.pairs(prefix)]

    def one(self, key):
        pairs = self.call("kv/range", key=encode(key)).get("kvs", [])
        if not pairs:
            raise KeyError(key)
        return pairs[0]

    def get(self, key):
        return decode(self.one(key).get("value", ""))

    def put(self, key, value):
        self.call("kv/put", key=encode(key), value=encode(value))

    def delete(self, key):
        return int(self.call("kv/deleterange", key=encode(key)).get("deleted", 0))

    def leases(self):
        return [int(lease["ID"]) for lease in self.call("lease/leases").get("leases", [])]

    def revoke(self, lease):
        self.call("kv/lease/revoke", ID=lease)

    def revision(self):
        return int(self.call("kv/range", key=encode("x"))["header"]["revision"])

    def leader(self):
        for number, endpoint in enumerate(self.endpoints):
            try:
                status = Etcd(endpoint, self.timeout).call("maintenance/status")
            except OSError:
                continue
            if status.get("leader") == status["header"]["member_id"]:
                return number
        raise KeyError("leader")

    def compact(self):
        self.call("kv/compaction", revision=self.revision(), physical=True)


def main(endpoints, verb, *words):
    etcd = Etcd(endpoints)
    if verb == "keys":
        print("\n".join(etcd.keys(*words)))
    elif verb == "get":
        print(etcd.get(*words))
    elif verb == "put":
        etcd.put(*words)
    elif verb == "delete":
        print(etcd.delete(*words))
    elif verb == "lease-of":
        print(etcd.one(*words).get("lease", 0))
    elif verb == "leases":
        print("\n".join(map(str, etcd.leases())))
    elif verb == "revoke":
        etcd.revoke(int(words[0]))
    elif verb == "compact":
        etcd.compact()
    elif verb == "leader":
        print(etcd.leader())
    elif verb == "call":
        print(json.dumps(etcd.call(words[0], **json.loads(words[1] if len(words) > 1 else "{}"))))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (OSError, KeyError) as error:
        sys.exit(f"etcd.py: {error!r}")
