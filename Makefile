# SPDX-License-Identifier: MIT
# The newcomer's entry. The build itself is CMake's: see CMakeLists.txt and CMakePresets.json.

PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
PORT ?= 8080

RELEASE = build/release
build = cmake --preset $(1) >/dev/null && cmake --build --preset $(1) -j $(JOBS) $(2) -- --no-print-directory -s
quietly = mkdir -p build/log; { $(1); } >build/log/make.log 2>&1 || { cat build/log/make.log; exit 1; }

.PHONY: all demo test bench soak install uninstall deb amalgamate node page clean help

all:
	@tools/need.sh build
	@$(call build,release,--target installable)
	@echo "Built $(RELEASE)/libvigil.so, libvigil.a and bin/vigil. Next: make demo, make test, make help."

demo:
	@tools/need.sh build
	@[ -x $(RELEASE)/bin/vigil-demo ] || echo "Building first: some ten seconds ..."
	@$(call quietly,$(call build,release,--target vigil_command vigil_demo))
	@$(RELEASE)/bin/vigil demo --svg build/demo.svg

test:
	@tools/need.sh test
	@JOBS=$(JOBS) tools/test.sh

bench:
	@tools/need.sh bench
	@[ -x build/bench/bin/vigil-bench ] || echo "Building first: half a minute ..."
	@$(call quietly,$(call build,bench))
	@build/bench/bin/vigil bench --json --svg build/bench.svg --markdown build/figures.md >build/bench.json
	@bench/node/bench.sh
	@bench/web/bench.sh
	@bench/remote/bench.sh

soak:
	@tools/need.sh test
	@JOBS=$(JOBS) tools/soak.sh

install:
	@tools/need.sh build
	@$(call build,release,--target installable)
	@umask 022; DESTDIR="$(DESTDIR)" cmake --install $(RELEASE) --prefix "$(PREFIX)"
	@mv $(RELEASE)/install_manifest.txt build/installed.txt # the tests make one of their own
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || echo "If programs don't find libvigil.so.0.1, run ldconfig as root."

uninstall:
	@DESTDIR="$(DESTDIR)" tools/uninstall.sh build/installed.txt

deb:
	@tools/need.sh deb
	@$(call quietly,JOBS=$(JOBS) tools/deb.sh build/deb)
	@ls build/deb/*.deb

amalgamate:
	@tools/need.sh build
	@tools/amalgamate.sh build/amalgamation
	@echo "Wrote build/amalgamation/vigil.h and vigil.c. Next: cc program.c vigil.c -pthread"

node:
	@tools/need.sh node
	@node/build.sh --all
	@node/pack.sh build/node

build/web/vigil.js: $(shell find web/lib web/native web/build.sh node/lib node/native include src -type f)
	@tools/need.sh web
	@echo "Building first: half a minute ..."
	@$(call quietly,web/build.sh)

page: build/web/vigil.js
	@tools/need.sh web
	@node web/serve.js $(PORT)

clean:
	rm -rf build node/prebuilds

help:
	@echo "make            build the library, static and shared, and the vigil command, into $(RELEASE)"
	@echo "make demo       threads, event loops and two processes at one mutex: watch, and look at build/demo.svg"
	@echo "make test       everything: compilers, sanitizers, simulator, aarch64, musl, fuzzing (minutes)"
	@echo "make bench      measure against the peers; writes build/bench.json, bench-node.json, bench-web.json,"
	@echo "                bench-remote.json, bench.svg"
	@echo "make soak       long random simulation, stress and fuzzing; SOAK_MINUTES=10"
	@echo "make install    into PREFIX=$(PREFIX), below DESTDIR if that is set; make uninstall takes it away again"
	@echo "make deb        Debian packages, into build/deb"
	@echo "make amalgamate the library as two files, vigil.h and vigil.c, into build/amalgamation"
	@echo "make node       the package for Node, @vigil/node, with binaries for x64 and arm64, glibc and musl: build/node"
	@echo "make page       the package for the browser, @vigil/web, into build/web, and its pages; PORT=$(PORT)"
	@echo "make clean      remove build/ and node/prebuilds/"
	@echo
	@echo "What a command needs and this machine lacks is installed through apt-get first, and named before."
