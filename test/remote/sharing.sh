#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil lock --shared --at, and vigil sem --at: how many run at once, and in which order.
. "$(dirname "$0")/common.sh"
cluster 1
machine east
machine west
lock=("$vigil" lock --at "$at/table")
sem=("$vigil" sem --at "$at/pool")
mkfifo go{1,2,3,4,5,6}
hold='echo "$VIGIL_TOKEN"; read -r line <go'

# Two share it, a third that wants it alone waits, and a fourth that shares waits behind the third.
begin east reader1 "${lock[@]}" --shared -- sh -c "${hold}1"; reader1=$begun
until_true lines reader1.out 1
begin west reader2 "${lock[@]}" --shared -- sh -c "${hold}2"; reader2=$begun
until_true lines reader2.out 1
expect 124 on west "${lock[@]}" --try -- true
begin west writer "${lock[@]}" -- sh -c "${hold}3"; writer=$begun
until_true waits table 1
begin east reader3 "${lock[@]}" --shared -- sh -c "${hold}4"; reader3=$begun
until_true waits table 2
expect 124 on east "${lock[@]}" --shared --try -- true
until_true waits table 2
echo >go1; ends 0 $reader1 reader1
[ ! -s writer.out ] || fail "it was held alone beside one that shares"
echo >go2; ends 0 $reader2 reader2
until_true lines writer.out 1
[ ! -s reader3.out ] || fail "it was shared beside one that has it alone"
echo >go3; ends 0 $writer writer
until_true lines reader3.out 1
[ "$(cat reader2.out)" -lt "$(cat writer.out)" ] && [ "$(cat writer.out)" -lt "$(cat reader3.out)" ] ||
    fail "tokens: $(cat reader2.out writer.out reader3.out)"
echo >go4; ends 0 $reader3 reader3
until_true no_keys table

# Two slots, three that want one.
for i in 1 2; do
    begin east slot$i "${sem[@]}" --slots 2 -- sh -c "$hold$i"
    eval "slot$i=$begun"
    until_true lines slot$i.out 1
done
expect 124 on west "${sem[@]}" --slots 2 --try -- echo ran
[ -z "$out" ] || fail "a third ran"
expect 125 on west "${sem[@]}" --slots 3 -- true
contains "$err" 'another number of slots'
begin west slot3 "${sem[@]}" --slots 2 --wait-status -- sh -c "${hold}3"; slot3=$begun
until_true has slot3.err 'in line of 1'
begin west slot4 "${sem[@]}" --slots 2 -- sh -c "${hold}4"; slot4=$begun
until_true waits pool 2
echo >go2; ends 0 "${slot2:-0}" slot2
until_true lines slot3.out 1
[ ! -s slot4.out ] || fail "slot4 ran out of turn"
key_count 'pool!held/' 2 || fail "held: $(etcd keys 'pool!')"

# A slot whose process is killed is free when its lease has ended.
begin west slot5 "${sem[@]}" --slots 2 --ttl 1s --timeout 100s -- sh -c "${hold}5"; slot5=$begun
until_true waits pool 2
echo >go3; ends 0 $slot3 slot3
until_true lines slot4.out 1
echo >go1; ends 0 "${slot1:-0}" slot1
until_true lines slot5.out 1
kill -KILL $slot5
wait $slot5 2>/dev/null
expect 0 on east "${sem[@]}" --slots 2 -- sh -c 'echo free'
echo >go4; ends 0 $slot4 slot4
until_true key_count 'pool!held/' 0
until_true no_leases
expect 125 on east "${sem[@]}" -- true
verdict
