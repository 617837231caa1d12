# SPDX-License-Identifier: MIT
# The native processor with musl in place of glibc. musl-gcc sees musl's headers only; the kernel's are not
# among them, so it is lent the system's.
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(kernel ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel})
execute_process(COMMAND gcc -print-multiarch OUTPUT_VARIABLE multiarch OUTPUT_STRIP_TRAILING_WHITESPACE)
file(CREATE_LINK /usr/include/linux ${kernel}/linux SYMBOLIC)
file(CREATE_LINK /usr/include/asm-generic ${kernel}/asm-generic SYMBOLIC)
file(CREATE_LINK /usr/include/${multiarch}/asm ${kernel}/asm SYMBOLIC)
set(CMAKE_C_FLAGS_INIT "-isystem ${kernel}")
