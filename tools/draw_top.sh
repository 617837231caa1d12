#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# draw_top.sh [BUILD] - draw doc/top.svg: a build lock with a line of five, a semaphore with two slots, a server whose
# threads and event loops wait for a mutex, a process that died while it held a lock, and `vigil top` that looks at
# them. It takes half a minute, so that there are times to show. BUILD is where the project has been built:
# build/release.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
segments="build cache deploy jobs orders"
scratch=$(mktemp -d)
bin=$(cd "$build/bin" && pwd)
terminal() { tmux -L "draw-top-$$" -f /dev/null "$@"; }

for segment in $segments; do
    ! "$bin/vigil" show "$segment" >/dev/null 2>&1 ||
        { echo "There is a segment $segment: it would be in the picture" >&2; exit 1; }
done
finish() {
    terminal kill-server || true
    for pid in $(jobs -p); do kill -KILL "$pid" || true; done
    wait || true
    for segment in $segments; do "$bin/vigil" rm "$segment" >/dev/null || true; done
    rm -rf "$scratch"
}
trap 'finish 2>/dev/null' EXIT

# Commands that take their time.
for command in make pytest cargo npm ffmpeg rollout; do
    printf '#!/bin/sh\nexec sleep 1000\n' >"$scratch/$command"
    chmod +x "$scratch/$command"
done
cc -Iinclude test/cli/waiter.c "$build/libvigil.a" -pthread -o "$scratch/server"
PATH=$scratch:$bin:$PATH

# as NAME COMMAND...: in the background, with that name for a command line; then some seconds pass.
as() {
    (exec -a "$1" "${@:2}") &
    sleep "$pause_s"
}
shell() {
    "$@" &
    sleep "$pause_s"
}
pause_s=1.7
shell vigil lock build -- make -j8 all
shell vigil lock build -- make test
shell vigil lock build -- pytest -x tests/slow
as "reports --nightly" server cache read 128
{ kill -KILL $! && ! wait $!; } 2>/dev/null # and no process is there to notice
as "orders --port 8080" server orders lock 64
shell vigil lock build -- cargo build --release
shell vigil lock deploy --fair -- rollout europe
shell vigil lock deploy --fair -- rollout asia
as "orders --port 8081" server orders lock 64
shell vigil sem jobs --slots 2 -- ffmpeg -i talk.mkv talk.webm
shell vigil sem jobs --slots 2 -- ffmpeg -i demo.mkv demo.webm
as "orders-web --loop" server orders lock-async 64
shell vigil lock build -- npm ci
shell vigil lock deploy --fair -- rollout africa
shell vigil sem jobs --slots 2 -- ffmpeg -i tour.mkv tour.webm
shell vigil lock build -- make install
shell vigil sem jobs --slots 2 -- ffmpeg -i trip.mkv trip.webm

terminal new-session -d -x 80 -y 24 "TERM=screen vigil top $segments"
until terminal capture-pane -p | grep -q "q quit"; do sleep 0.1; done
terminal capture-pane -p -e -N | awk -v title="vigil top" -f tools/screen_svg.awk >doc/top.svg
echo "Drawn: doc/top.svg"
