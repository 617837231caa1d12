#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Debian packages are built, installed below a folder with a package database of its own, used there, and removed
# without a trace. The system's own database is not touched.
. "$(dirname "$0")/common.sh"
for tool in dpkg-deb dpkg-gencontrol dpkg-shlibdeps; do
    command -v "$tool" >/dev/null || { echo "no $tool"; exit 77; }
done
as_root=""
if [ "$(id -u)" != 0 ]; then # files must belong to root: make dpkg believe that they do
    command -v fakeroot >/dev/null || { echo "neither root nor fakeroot"; exit 77; }
    as_root=fakeroot
fi
root=$(cd "$here/../.." && pwd)
debs=$(dirname "$stage")/deb # kept, so that the next run has less to build
"$root/tools/deb.sh" "$debs" >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"

system=$scratch/system
database=$system/var/lib/dpkg
mkdir -p "$database/info" "$database/updates" "$database/triggers"
touch "$database/status"
in_system() {
    $as_root dpkg --root="$system" --admindir="$database" --log="$scratch/dpkg.log" --force-not-root --force-bad-path \
        --force-depends "$@" >"$scratch/log" 2>&1 || fail "dpkg $*: $(cat "$scratch/log")"
}
files() { find "$system" -mindepth 1 -path "$system/var" -prune -o -print | sort; }

in_system --install "$debs"/*.deb
for package in libvigil0.1 libvigil-dev vigil; do
    in_system --verify "$package"
    [ ! -s "$scratch/log" ] || fail "$package: $(cat "$scratch/log")"
    status=$(dpkg-query --admindir="$database" -W -f '${Status} ${Version}' "$package")
    [ "${status% *}" = "install ok installed" ] || fail "$package: $status"
    echo "$package ${status##* }: $(dpkg-query --admindir="$database" -L "$package" | wc -l) files"
    [ -f "$system/usr/share/doc/$package/copyright" ] || fail "$package has no copyright file"
done

# The command, at its place now.
version=${status##* }
said=$("$system/usr/bin/vigil" --version)
[ "$said" = "vigil ${version%-*}" ] || fail "vigil --version says '$said'; its package is $version"
name=deb-test-$$
said=$("$system/usr/bin/vigil" lock "$name" -- echo held)
"$system/usr/bin/vigil" rm "$name"
[ "$said" = held ] || fail "vigil lock: '$said'"
finds_demo "$system/usr/bin/vigil" || fail "vigil demo is not found in libexec"
"$system/usr/bin/vigil" run -- grep -q libvigil-pthread /proc/self/maps || fail "vigil run does not preload its library"
for page in man1/vigil.1 man1/vigil-run.1 man7/vigil.7 man7/vigil-pthreads.7 man3/vigil_mutex_lock.3; do
    [ -e "$system/usr/share/man/$page.gz" ] || fail "no manual page $page.gz"
done
for file in bash-completion/completions/vigil zsh/vendor-completions/_vigil fish/vendor_completions.d/vigil.fish; do
    [ -s "$system/usr/share/$file" ] || fail "no $file"
done

# A program, linked to both libraries at Debian's paths.
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
library=$system/usr/lib/$multiarch
export PKG_CONFIG_PATH=$library/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs vigil)"
"$CC" -std=c11 $warnings "$here/consumer/main.c" "${flags[@]}" -o "$scratch/shared" -pthread
LD_LIBRARY_PATH=$library "$scratch/shared"
"$CC" -std=c11 $warnings -I"$system/usr/include" "$here/consumer/main.c" "$library/libvigil.a" -pthread \
    -o "$scratch/static"
"$scratch/static"
{ cmake -S "$here/consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$system/usr" && cmake --build "$scratch/build"; } \
    >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
"$scratch/build/shared"

etcd=()
[ ! -e "$library/libvigil-etcd.so" ] || etcd=(libvigil-etcd-dev libvigil-etcd0.1)
[ ${#etcd[@]} = 0 ] || pkg-config --libs vigil-etcd
in_system --purge vigil "${etcd[@]}" libvigil-dev libvigil0.1
left=$(files)
[ -z "$left" ] || fail "left behind: $left"
