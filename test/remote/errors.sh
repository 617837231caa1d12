#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What can be wrong with a cluster, or with what is asked of it: a clear message and exit status, at once. etcd#10811.
. "$(dirname "$0")/common.sh"
cluster 1
machine east
port=${ports%% *}
run() { on east timeout 60 "$vigil" "$@"; }

# Nothing listens; no such host; a host that does not reply, with a deadline.
expect 125 run lock --at "etcd://$hub:1/job" -- echo ran
contains "$err" "$hub:1" refused
expect 125 run lock --at etcd://no-such-host.invalid/job -- echo ran
contains "$err" 'no-such-host.invalid' 'address is not known'
expect 3 run load --at "etcd://$hub:1/word"
contains "$err" refused
expect 3 run wait --at "etcd://$hub:1/word" 0
expect 3 run show --at "etcd://$hub:1/job"
expect 3 run doctor --at "etcd://$hub:1"
ip route add blackhole 10.77.200.1/32
on east ip route add blackhole 10.77.200.1/32
expect 124 run lock --at etcd://10.77.200.2/job --timeout 500ms -- echo ran
expect 125 run lock --at etcd://10.77.200.2/job -- echo ran # not for ever
[ -z "$out" ] || fail "it ran"

# Not etcd.
python3 -m http.server --bind $hub 8000 >http.log 2>&1 &
until_true python3 -c "import socket; socket.create_connection(('$hub', 8000))"
expect 125 run lock --at "etcd://$hub:8000/job" -- echo ran
contains "$err" "$hub:8000" 'not etcd'
expect 125 run lock --at "etcd://$hub:$port/job" --cacert /no/such/file -- echo ran
contains "$err" /no/such/file
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3 -subj /CN=x -keyout k -out c 2>log
expect 125 run lock --at "etcd://$hub:$port/job" --cacert "$scratch/c" -- echo ran
contains "$err" 'does not speak TLS'

# An older etcd lacks what we need. This one only says that it is older, or newer.
relay 3300 --replace 3.4. 3.3.
relay 2900 --replace 3.4. 2.9.
relay 4000 --replace 3.4. 4.0.
for old in 3.3 2.9; do
    expect 125 run lock --at "etcd://$hub:${old/./}00/job" -- echo ran
    contains "$err" "$hub:${old/./}00: this is etcd $old." 'version 3.4 or later is needed'
    [ -z "$out" ] || fail "it ran with etcd $old"
    expect 125 run sem --at "etcd://$hub:${old/./}00/pool" --slots 2 -- echo ran
    expect 3 run wait --at "etcd://$hub:${old/./}00/word" 0
    contains "$err" 'version 3.4 or later is needed'
    expect 3 run doctor --at "etcd://$hub:${old/./}00"
done
expect 0 run lock --at "etcd://$hub:4000/job" -- true
until_true no_leases # nothing was left there

# What is asked is wrong.
expect 125 run lock --at "http://$hub:$port/job" -- echo ran
contains "$err" 'etcd://host:2379'
expect 125 run lock --at "etcd://$hub:$port" -- echo ran
contains "$err" 'NAME'
expect 125 run lock --at "etcd://$hub:99999/job" -- echo ran
expect 125 run lock --at "etcd://$hub:$port/-job" -- echo ran
contains "$err" 'invalid name'
expect 125 run lock --at "etcd://$hub:$port/$(printf 'x%.0s' {1..151})" -- echo ran
contains "$err" 'too long'
many=$(printf "$hub:$port,%.0s" {1..100}) # a list is not cut off
expect 125 run lock --at "etcd://${many%,}/job" -- echo ran
contains "$err" 'endpoints are too long'
ETCDCTL_ENDPOINTS=${many%,} expect 125 run lock --at etcd:///job -- echo ran
contains "$err" 'endpoints are too long'
[ -z "$out" ] || fail "it ran"
name=$(printf 'x%.0s' {1..150})
expect 0 run lock --at "etcd://$hub:$port/$name" -- echo ran
expect 0 run lock --at "etcd://$hub:$port/a/b" -- true
expect 125 run lock --at "etcd://$hub:$port/job" --ttl 900ms -- echo ran
contains "$err" '--ttl: at least 1s'
for ttl in 65536s 9223372036.5s; do
    expect 125 run lock --at "etcd://$hub:$port/job" --ttl $ttl -- echo ran
    contains "$err" '--ttl: at most 65535s'
done
expect 125 run lock --at "etcd://$hub:$port/job" --ttl 999999999999h -- echo ran
contains "$err" '--ttl 999999999999h is too long'
expect 0 run lock --at "etcd://$hub:$port/job" --ttl 65535s -- echo ran
expect 125 run lock --at "etcd://$hub:$port/job"
contains "$err" 'command to run is missing'
expect 125 run lock --at "etcd://$hub:$port/job" -E 256 -- true
expect 125 run lock --at "etcd://$hub:$port/job" --on-owner-died maybe -- true
expect 125 run lock --at "etcd://$hub:$port/job" --shared --exclusive -- true

# The first endpoint is a learner, which refuses nearly all calls: the next is used.
peer=http://127.0.0.1:45002
eval "$(ETCDCTL_API=3 etcdctl --dial-timeout=120s --command-timeout=120s --endpoints="127.0.0.1:$port" \
    member add learner --learner --peer-urls=$peer | grep ^ETCD_INITIAL_CLUSTER=)"
command "${VIGIL_ETCD:-etcd}" --name=learner --data-dir="$scratch/learner" \
    --initial-cluster="${ETCD_INITIAL_CLUSTER:?}" --initial-cluster-state=existing \
    --listen-peer-urls=$peer --initial-advertise-peer-urls=$peer \
    --listen-client-urls=http://0.0.0.0:45001 --advertise-client-urls=http://$hub:45001 >learner.log 2>&1 &
learner=$!
until_true has learner.log 'ready to serve'
expect 0 run lock --at "etcd://$hub:45001,${at#etcd://}/job" -- echo ran
[ "$out" = ran ] || fail "with a learner: $out$err"
expect 0 run store --at "etcd://$hub:45001,${at#etcd://}/word" 7
expect 0 run load --at "etcd://$hub:45001,${at#etcd://}/word"
[ "$out" = 7 ] || fail "with a learner: $out$err"
expect 3 run load --at "etcd://$hub:45001/word"
contains "$err" learner
kill -KILL $learner

# A password is needed, and is wrong; a user that may not write.
etcd call auth/user/add '{"name": "root", "password": "secret"}' >calls
etcd call auth/user/grant '{"user": "root", "role": "root"}' >>calls
etcd call auth/user/add '{"name": "reader", "password": "r"}' >>calls
etcd call auth/role/add '{"name": "looks"}' >>calls
etcd call auth/role/grant '{"name": "looks", "perm": {"key": "AA==", "range_end": "AA=="}}' >>calls
etcd call auth/user/grant '{"user": "reader", "role": "looks"}' >>calls
etcd call auth/enable >>calls
expect 125 run lock --at "$at/job" -- echo ran
contains "$err" "$hub:$port" user
expect 125 run lock --at "$at/job" --user root:wrong -- echo ran
contains "$err" password
expect 125 run lock --at "$at/job" --user nobody:x -- echo ran
expect 125 run lock --at "$at/job" --user reader:r --timeout 60s -- echo ran
contains "$err" permission
expect 3 run load --at "$at/word" --user root:wrong
expect 0 run lock --at "$at/job" --user root:secret -- echo ran
ETCDCTL_USER=root ETCDCTL_PASSWORD=secret expect 0 run lock --at "$at/job" -- echo ran
ETCDCTL_USER=root:secret expect 0 run load --at "$at/word"
ETCDCTL_PASSWORD=wrong expect 0 run lock --at "$at/job" --user root:secret -- echo ran # the command line counts
ETCDCTL_PASSWORD=secret expect 0 run lock --at "$at/job" --user root -- echo ran
ETCDCTL_PASSWORD=secret expect 125 run lock --at "$at/job" --user root:wrong -- echo ran
verdict
