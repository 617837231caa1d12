# SPDX-License-Identifier: MIT
# Cross-compile for WebAssembly with threads, and run the programs in Node. Of wasi-libc the headers are used, and
# nothing else: its library cannot be linked with a shared memory.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_C_COMPILER_TARGET wasm32-unknown-unknown)
set(CMAKE_C_FLAGS_INIT
    "-matomics -mbulk-memory -mmutable-globals -ffunction-sections -isystem /usr/include/wasm32-wasi -D__wasi__ \
-DPRIM_PARK_MOST_NS=1000000000000000") # eleven days: see src/prim/wasm/prim.c
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # linking needs what is below
set(CMAKE_EXECUTABLE_SUFFIX_C .wasm)

# What src/prim/wasm/prim_wasm.h asks for. All instances begin on one stack, only to get their own. With -O2, clang
# would run a wasm-opt that it finds in PATH: what Debian's (binaryen 108) writes, the baseline compiler of Node 20 runs
# wrongly.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-O0 -nostdlib -Wl,--no-entry,--gc-sections,-z,stack-size=4096,--export-table\
,--shared-memory,--import-memory,--initial-memory=4194304,--max-memory=1073741824\
,--export=prim_wasm_door,--export=prim_wasm_threads,--export=__stack_pointer,--export=__wasm_init_tls")

find_program(NODE NAMES node nodejs REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR ${NODE} ${CMAKE_CURRENT_LIST_DIR}/../test/wasm/run.js)
