#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is said where /dev/shm is full, too small or missing, and where another user has taken a name: each time in a
# mount namespace of its own, which needs root.
. "$(dirname "$0")/common.sh"

# elsewhere MOUNT COMMAND...: runs it where /dev/shm is what those commands of a shell make it.
elsewhere() { timeout 60 unshare --mount sh -c "$1 && shift && exec \"\$@\"" sh "$@"; }
small="mount -t tmpfs -o size=64k none /dev/shm"
elsewhere "$small" "$vigil" --version >/dev/null 2>&1 || { echo "needs a root that may use mount namespaces"; exit 77; }
status_of() { case $1 in lock | sem) echo 125 ;; *) echo 3 ;; esac; }

# says MOUNT CALL PART...: the call fails there, and its message has these parts.
says() {
    local mount=$1 call=$2 words
    read -r -a words <<<"$call"
    shift 2
    expect "$(status_of "${words[0]}")" elsewhere "$mount" "$vigil" "${words[@]}"
    contains "$err" "vigil ${words[0]}: " "$@"
    [ "$(wc -l <<<"$err")" = 1 ] || fail "not one line: $err"
}

# Too small, full, and full of files: how large it is, how much is free, and what to do. A lock needs 16 KiB.
for call in "create $name --length 1M" "lock $name -- true" "sem $name --slots 2 -- true"; do
    says "mount -t tmpfs -o size=8k none /dev/shm" "$call" \
        "$name: not enough memory: 8 KiB of 8 KiB are free in /dev/shm" "vigil rm --unused" \
        "mount -o remount,size=64M /dev/shm"
    says "$small && head -c 56k /dev/zero >/dev/shm/other" "$call" "8 KiB of 64 KiB are free in /dev/shm"
    says "mount -t tmpfs -o nr_inodes=2 none /dev/shm && : >/dev/shm/other" "$call" \
        "$name: /dev/shm has no room for another file" "vigil rm --unused" "mount -o remount,nr_inodes=4 /dev/shm"
done
says "mount -t tmpfs -o size=100M none /dev/shm" "create $name --length 1G" "100.0 MiB of 100.0 MiB are free" \
    "remount,size=201M"
expect 3 elsewhere "$small" "$vigil" create "$name" --length 1M --json
contains "$out" '"status":"out-of-memory"' "/dev/shm"
# What is proposed helps.
expect 0 elsewhere "$small && mount -o remount,size=64M /dev/shm" "$vigil" create "$name" --length 1M
expect 0 elsewhere "$small" "$vigil" lock "$name" -- true

# Another user has a file of that name: which file, which user, and what to do.
file=/dev/shm/vigil-$(id -u)-$name
for owner in 65534 54321; do
    user=$(getent passwd $owner | cut -d : -f 1)
    taken="mount -t tmpfs -o mode=1777 none /dev/shm && : >$file && chown $owner $file"
    for call in "create $name" "load $name" "show $name" "rm $name"; do
        says "$taken" "$call" "another user owns it: the file $file is of user ${user:-$owner}." \
            "remove it, or choose another name"
    done
    # Or the file of all names.
    book=/dev/shm/vigil-$(id -u)
    names_taken="mount -t tmpfs -o mode=1777 none /dev/shm && : >$book && chown $owner $book"
    for call in "lock $name -- true" "sem $name --slots 2 true" "rm $name" "ls" "rm --unused"; do
        says "$names_taken" "$call" "another user owns it: the file $book is of user ${user:-$owner}." \
            "remove it, or use a lock at a path"
    done
done
expect 0 elsewhere "$names_taken" "$vigil" lock "$scratch/lock" -- true

# The file of all names is damaged: which file it is, and how to get rid of it.
for damage in "truncate -s 100 $book" "truncate -s 5000 $book" "dd if=/dev/zero of=$book bs=1k count=1 conv=notrunc"; do
    damaged="mount -t tmpfs -o mode=1777 none /dev/shm && $vigil lock $name -- true && $damage 2>/dev/null"
    for call in "lock $name -- true" "sem $name --slots 2 true" "show $name" "rm $name" "ls" "rm --unused"; do
        says "$damaged" "$call" "the file with all your locks and semaphores, $book, is unusable" ": rm $book"
    done
    expect 0 elsewhere "$damaged && rm $book" "$vigil" lock "$name" -- true
done
expect 3 elsewhere "$taken" "$vigil" load "$name" --json
contains "$out" '"status":"other-owner"' "$file"

# None: that it is missing, and how to mount it. An empty folder over /dev hides it.
none="mount -t tmpfs none /dev"
mounts="mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm"
for call in "create $name" "lock $name -- true" "sem $name --slots 2 true" "load $name" "wait $name 0" "show $name"; do
    says "$none" "$call" "segments need /dev/shm, which is missing: $mounts"
done
if [ -x "${vigil%/*}/vigil-top" ]; then says "$none" "top --once" "cannot list the segments" "$mounts"; fi
expect 3 elsewhere "$none" "$vigil" load "$name" --json
contains "$out" '"status":"system"' "$mounts"
expect 0 elsewhere "$none && $mounts" "$vigil" lock "$name" -- true

verdict
