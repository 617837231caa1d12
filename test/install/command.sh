#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The installed command runs in place, also after the tree has been moved, finds its other programs in libexec, and its
# manual and completions are where the system looks for them.
. "$(dirname "$0")/common.sh"
name=install-test-$$
cp -a "$stage" "$scratch/moved"
for tree in "$stage" "$scratch/moved"; do
    vigil=$tree/bin/vigil
    "$vigil" --version
    said=$("$vigil" lock "$name" -- echo held)
    "$vigil" rm "$name"
    [ "$said" = held ] || fail "$vigil lock: '$said'"
    finds_demo "$vigil" || fail "$vigil does not find vigil-demo"
    "$vigil" run -- grep -q libvigil-pthread /proc/self/maps || fail "$vigil run does not preload its library"
done

for file in man/man1/vigil.1 man/man1/vigil-run.1 man/man7/vigil.7 man/man7/vigil-pthreads.7 \
    man/man3/vigil_mutex_lock.3 bash-completion/completions/vigil zsh/site-functions/_vigil \
    fish/vendor_completions.d/vigil.fish; do
    [ -s "$stage/share/$file" ] || fail "there is no $file"
done
