#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Encrypted connections: the certificates that are wrong, missing and right.
. "$(dirname "$0")/common.sh"
command -v openssl >/dev/null || skip "no openssl"
cluster --tls --client-auth ${hub6:+--ipv6} 1
machine east
here_at=etcd://127.0.0.1:${ports%% *}/job # the certificate is for that address
run() { timeout 60 "$vigil" "$@"; }
good=(--cacert "$folder/ca.pem" --cert "$folder/client.pem" --key "$folder/client.key")
until_true run lock --at "$here_at" "${good[@]}" -- true
expect 0 run lock --at "$here_at" "${good[@]}" -- sh -c 'echo "$VIGIL_TOKEN"'
[ "$out" -gt 0 ] || fail "token: $out"
ETCDCTL_CACERT=$folder/ca.pem ETCDCTL_CERT=$folder/client.pem ETCDCTL_KEY=$folder/client.key \
    expect 0 run lock --at "$here_at" -- true
if [ -n "$hub6" ]; then # it is for [::1] as well
    expect 0 run lock --at "etcd://[::1]:${ports%% *}/job" "${good[@]}" -- true
    expect 125 run lock --at "etcd://[$hub6]:${ports%% *}/job" "${good[@]}" -- echo ran
    contains "$err" "[$hub6]"
fi
expect 125 run lock --at "$here_at" --cacert "$folder/wrong_ca.pem" --cert "$folder/client.pem" \
    --key "$folder/client.key" -- echo ran
contains "$err" certificate
expect 125 run lock --at "$here_at" --cacert "$folder/ca.pem" -- echo ran
contains "$err" certificate
expect 125 run lock --at "$here_at" -- echo ran
contains "$err" TLS
expect 125 on east timeout 60 "$vigil" lock --at "$at/job" "${good[@]}" -- echo ran # valid for another address
contains "$err" "$hub"
expect 125 run lock --at "$here_at" --cacert "$folder/ca.pem" --cert "$folder/client.pem" \
    --key "$folder/server.key" -- echo ran
contains "$err" key
[ -z "$out" ] || fail "it ran"
verdict
