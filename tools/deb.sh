#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# deb.sh FOLDER - build the Debian packages into FOLDER: libvigil0.1, libvigil-dev and vigil; and libvigil-etcd0.1 and
# libvigil-etcd-dev, if what they need is there. One for each component of cmake/install.cmake; what they are called and
# say of themselves is in cmake/debian. Needs no privilege.
set -euo pipefail
[ $# = 1 ] || { echo "usage: deb.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
unset DESTDIR MAKEFLAGS MAKELEVEL
umask 022

part() { awk -v part="VIGIL_VERSION_$1" '$2 == part { print $3 }' "$source/include/vigil/version.h"; }
soversion=$(part MAJOR).$(part MINOR)
version=$soversion.$(part PATCH)-1

build() {
    cmake -S "$source" -B "$folder/build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX=/usr \
        -DCMAKE_INSTALL_LIBDIR="lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)"
    cmake --build "$folder/build" -j "${JOBS:-$(nproc)}" --target installable
}

binaries_in() {
    find "$1" -type f \( -path '*/bin/*' -o -path '*/libexec/*' -o -name '*.so.*' -o -path '*/vigil/*.so' \)
}

# polish ROOT PACKAGE: what Debian wants of the files.
polish() {
    local root=$1 doc=$1/usr/share/doc/$2 zsh=$1/usr/share/zsh
    find "$root" -name '*.a' -exec strip --strip-debug --enable-deterministic-archives {} +
    binaries_in "$root" | xargs -r -d '\n' strip --strip-unneeded
    [ ! -d "$root/usr/share/man" ] || find "$root/usr/share/man" -type f -exec gzip -9n {} +
    [ ! -d "$zsh" ] || mv "$zsh/site-functions" "$zsh/vendor-completions" # where Debian's zsh looks
    mkdir -p "$doc"
    install -m 644 "$source/cmake/debian/copyright" "$doc/copyright"
    gzip -9n <debian/changelog >"$doc/changelog.Debian.gz"
}

# describe ROOT PACKAGE: what Debian wants to know of the package.
describe() {
    local root=$1 package=$2 binaries
    mapfile -t binaries < <(binaries_in "$root")
    mkdir "$root/DEBIAN"
    if [ "$package" != "${package%"$soversion"}" ]; then # a library
        echo "${package%"$soversion"} $soversion $package (>= $version)" >"$root/DEBIAN/shlibs"
        echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
    fi
    : >debian/substvars
    [ ${#binaries[@]} = 0 ] || dpkg-shlibdeps -S"$folder/work/libvigil$soversion" -S"$root" \
        -x"$package" -Tdebian/substvars "${binaries[@]}"
    dpkg-gencontrol -p"$package" -P"$root" -Tdebian/substvars -fdebian/files
    (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
}

# package NAME COMPONENT
package() {
    local root=$folder/work/$1
    DESTDIR=$root cmake --install "$folder/build" --component "$2"
    polish "$root" "$1"
    describe "$root" "$1"
    dpkg-deb --root-owner-group --build "$root" "$folder"
}

build
rm -rf "$folder/work" "$folder"/*.deb
mkdir -p "$folder/work/debian"
cd "$folder/work"
cp "$source/cmake/debian/control" debian/control
sed "s/@VERSION@/$version/" "$source/cmake/debian/changelog.in" >debian/changelog
package "libvigil$soversion" library
package libvigil-dev development
package vigil command
if [ -n "$(find "$folder/build" -name libvigil-etcd.so)" ]; then
    package "libvigil-etcd$soversion" etcd
    package libvigil-etcd-dev etcd-development
fi
