# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the tests here. Each script runs in namespaces of its own: processes, mounts, network. When it ends, also
# when it is killed, all its processes end, and its interfaces and files are gone; an empty folder may stay.
#
# Bugs that others had, and which test would find them here:
#
#     granted without a lease: etcd#11456, #9921, #10111                                 stopped.sh
#     a stale unlock deletes a newer lock: etcd#22082                                    keys.sh
#     compaction leaves an orphan: etcd#9715                                             keys.sh, test_answers.c,
#                                                                                        test_failover.c
#     a loss is not noticed: etcd#10811, curator#727, #1121, RedLock.net#92              keys.sh, stopped.sh, network.sh
#     leases reset or revoked at a change of the leader: etcd#13294, #9395, #15247       nodes.sh
#     a silent watch: etcd#8980, #17611, kubernetes#89488                                network.sh, partition.sh
#     the child survives, or is killed late: consul#2022, #797, #2489, #9788             keys.sh, network.sh, death.sh
#     a herd: consul#7523                                                                keys.sh
#     ambiguous release and create: curator#1193                                         test_answers.c
#     a lease is extended after it has expired: node-redlock#283, redlock-rb#36          stopped.sh
#     no deadlines: striker#33                                                           network.sh, errors.sh
#
#     cluster [OPTION...] NODES     starts a cluster: $at is "etcd://HOST:PORT,...", $ports are the ports
#     node kill|freeze|thaw|restart I; leader
#     etcd VERB...                  see etcd.py
#     relay PORT [OPTION...]        the first node once more, at that port of $hub: see relay.py
#     machine NAME                  makes a simulated machine: its own /dev/shm, host name, and network
#     on NAME COMMAND...            runs the command there, as a child of this shell without another in between
#     cut NAME [requests|answers]; mend NAME
#     resource                      makes write: sh write FILE TOKEN NAME, of which FILE accepts no token that is less
#                                   than one it has seen
#     fail_machine NAME             the power goes: all its processes end at the same moment
set -u
vigil=${VIGIL:?the path of the vigil command}
serve=${SERVE:?the path of test/remote/serve}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

PATH=$PATH:$(dirname "$(dirname "$here")")/build/etcd/usr/bin # by tools/need.sh

skip() {
    echo "skipped: $*"
    exit 77
}

# The first time, outside: begin anew inside.
if [ -z "${REMOTE_SCRATCH:-}" ]; then
    for command in unshare nsenter ip python3; do
        command -v $command >/dev/null || skip "no $command"
    done
    [ -x "${VIGIL_ETCD:-}" ] || command -v etcd >/dev/null || skip "no etcd"
    [ -x "$(dirname "$vigil")/vigil-at" ] || skip "vigil-at was not built"
    inside=(unshare --mount --uts --net --pid --fork --kill-child --mount-proc --propagation private)
    [ "$(id -u)" = 0 ] || inside+=(--map-root-user)
    "${inside[@]}" sh -c 'mount -t tmpfs tmpfs /dev/shm && ip link set lo up && unshare -n true' 2>/dev/null ||
        skip "no namespaces: neither root, nor those of users"
    REMOTE_SCRATCH=$(mktemp -d)
    export REMOTE_SCRATCH
    "${inside[@]}" bash "$0" "$@" &
    trap 'kill -KILL $! 2>/dev/null; wait; rmdir "$REMOTE_SCRATCH"' EXIT
    trap 'exit 143' TERM INT HUP
    wait $!
    exit $?
fi
scratch=$REMOTE_SCRATCH
mount -t tmpfs tmpfs "$scratch" && mount -t tmpfs tmpfs /dev/shm && ip link set lo up || exit 1
export TMPDIR=$scratch
unset NO_COLOR VIGIL_AT
cd "$scratch" || exit 1
[ -z "${REMOTE_TRACE:-}" ] || set -x
failures=0
hub=10.77.0.1 # where machines find the cluster
hub6=fd77::1  # the same, with IPv6, if there is any
ip addr add $hub/32 dev lo
ip addr add $hub6/128 dev lo nodad 2>/dev/null || hub6=""

# fail TEXT...: go on, but the test has failed.
fail() {
    echo "FAILED: line ${BASH_LINENO[*]}: $*" >&2
    failures=$((failures + 1))
}

# expect STATUS COMMAND...: its exit status; what it printed is in $out and $err.
expect() {
    local want=$1 got
    shift
    out=$("$@" 2>"$scratch/err")
    got=$?
    err=$(cat "$scratch/err")
    [ $got = "$want" ] || fail "exit status $got instead of $want: $* (out: $out) (err: $err)"
}

# ends STATUS PID WHAT: the process, a child of this shell, ends with it.
ends() {
    local got
    until_true is_gone "$2" || kill -KILL "$2"
    wait "$2"
    got=$?
    [ $got = "$1" ] || fail "$3: exit status $got instead of $1: $(cat "$scratch/$3.err" 2>/dev/null)"
}

# contains TEXT PART...: each part is somewhere in it.
contains() {
    local text=$1 part
    shift
    for part in "$@"; do
        [[ $text == *"$part"* ]] || fail "no '$part' in: ${text:0:2000}"
    done
}

# until_true COMMAND...: again and again until it succeeds; after some minutes it has failed.
until_true() {
    local end=$((SECONDS + ${PATIENCE:-150}))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { fail "never came true: $*" && return 1; }
        sleep 0.02
    done
}

lines() { [ "$(wc -l <"$1")" -ge "$2" ]; } # FILE COUNT: has that many
has() { grep -q -- "$2" "$1"; }            # FILE PATTERN
is_gone() { ! kill -0 "$1" 2>/dev/null || [[ $(ps_state "$1") = Z ]]; }
ps_state() { sed 's/.*) //; s/ .*//' "/proc/$1/stat"; }

# The cluster.

cluster() {
    coproc CLUSTER { exec "$serve" --host $hub "$@"; }
    # shellcheck disable=SC2034 # used by the tests
    read -r at folder <&"${CLUSTER[0]}" || exit 1
    ports=$(grep -o ':[0-9]*' <<<"$at" | tr -d ':' | grep . | tr '\n' ' ')
    # shellcheck disable=SC2086
    loopback=$(printf '127.0.0.1:%s,' $ports)
    case " $* " in
    *" --tls "*) ;;
    *) until_true etcd put ready yes ;;
    esac
}

node() {
    local reply
    echo "$*" >&"${CLUSTER[1]}"
    read -r reply <&"${CLUSTER[0]}" && [ "$reply" = "done" ] || fail "node $*: ${reply:-no reply}"
}

leader() {
    local reply
    echo leader >&"${CLUSTER[1]}"
    read -r reply <&"${CLUSTER[0]}" && [ "$reply" != none ] && echo "$reply"
}

etcd() { python3 "$here/etcd.py" "${loopback%,}" "$@"; }
no_leases() { local all; all=$(etcd leases) && [ -z "$all" ]; }
no_keys() { local all; all=$(etcd keys "$1!") && [ -z "$all" ]; }
key_count() { [ "$(etcd keys "$1" | grep -c .)" = "$2" ]; } # PREFIX COUNT
waits() { key_count "$1!line/" "${2:-1}"; }                  # NAME [COUNT]: so many are in the cluster's line

relay() {
    local port=$1
    shift
    python3 "$here/relay.py" "$hub:$port" "127.0.0.1:${ports%% *}" "$@" >"$scratch/relay$port.up" &
    until_true lines "$scratch/relay$port.up" 1
}

# Machines.

declare -A machines=() numbers=()

machine() {
    local number=$((${#machines[@]} + 1))
    unshare --mount --uts --net --propagation private sh -c "
        mount -t tmpfs tmpfs /dev/shm && hostname $1 && ip link set lo up && echo up && exec sleep infinity" \
        >"$scratch/$1.up" &
    machines[$1]=$! numbers[$1]=$number
    until_true lines "$scratch/$1.up" 1
    ip link add "hub$number" type veth peer name wire netns "${machines[$1]}"
    ip addr add "10.77.$number.1/24" dev "hub$number"
    ip link set "hub$number" up
    on "$1" sh -c "ip addr add 10.77.$number.2/24 dev wire && ip link set wire up &&
        ip route add default via 10.77.$number.1"
    [ -z "$hub6" ] || ip addr add "fd77:$number::1/64" dev "hub$number" nodad
    [ -z "$hub6" ] || on "$1" sh -c "ip addr add fd77:$number::2/64 dev wire nodad &&
        ip route add default via fd77:$number::1"
}

on() {
    local pid=${machines[$1]}
    shift
    nsenter -t "$pid" --mount --uts --net --wd="$scratch" -- "$@"
}

# begin NAME FILE COMMAND...: in the background, with what it prints in FILE.out and FILE.err; its process is $begun. A
# process with that number executes the command itself, and ends with this script.
begin() {
    local pid=${machines[$1]} file=$scratch/$2
    shift 2
    : >"$file.out" # now: a test waits for what it prints, not for what another has
    : >"$file.err"
    nsenter -t "$pid" --mount --uts --net --wd="$scratch" -- "$@" >"$file.out" 2>"$file.err" </dev/null &
    # shellcheck disable=SC2034 # used by the tests
    begun=$!
}

# Requests are lost silently: they go to a neighbour that is not there. Answers have no route.
cut() {
    local number=${numbers[$1]}
    [ "${2:-requests}" != requests ] ||
        on "$1" ip neigh replace "10.77.$number.1" lladdr 02:00:00:00:00:99 dev wire nud permanent
    [ "${2:-answers}" != answers ] || ip route replace blackhole "10.77.$number.2/32"
}

mend() {
    local number=${numbers[$1]}
    on "$1" ip neigh del "10.77.$number.1" dev wire 2>/dev/null
    ip route del blackhole "10.77.$number.2/32" 2>/dev/null
    true
}

processes_of() {
    local here pid
    here=$(readlink "/proc/${machines[$1]}/ns/uts")
    for pid in /proc/[0-9]*; do
        [ "$(readlink "$pid/ns/uts" 2>/dev/null)" = "$here" ] && echo "${pid#/proc/}"
    done
}

# First all are stopped, until no new ones appear: no process of the machine sees that another was killed.
fail_machine() {
    local all before=""
    while all=$(processes_of "$1" | grep -vx "${machines[$1]}") && [ "$all" != "$before" ]; do
        # shellcheck disable=SC2086
        kill -STOP $all 2>/dev/null
        before=$all
    done
    # shellcheck disable=SC2086
    kill -KILL $all 2>/dev/null
}

resource() {
    cat >write <<'W'
exec 9>>"$1.lock"
flock 9
seen=$(tail -n 1 "$1" 2>/dev/null | cut -d' ' -f1)
[ "$2" -ge "${seen:-0}" ] || { echo "refused $2 $3"; exit 1; }
echo "$2 $3" >>"$1"
W
}

# The last line of each test.
verdict() {
    [ $failures = 0 ] || echo "$failures failures" >&2
    exit $((failures != 0))
}
