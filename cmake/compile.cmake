# SPDX-License-Identifier: MIT
# How our own code is compiled. Nothing here reaches a program that uses the library.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20) # a peer in the benchmark, nothing else
set(CMAKE_CXX_EXTENSIONS OFF)

add_library(vigil_warnings INTERFACE)
target_compile_options(vigil_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
    $<$<BOOL:${VIGIL_WERROR}>:-Werror>)

if(VIGIL_SANITIZE)
    add_compile_options(-O1 -g -fno-omit-frame-pointer -fsanitize=${VIGIL_SANITIZE} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${VIGIL_SANITIZE})
    # gcc's thread sanitizer does not know fences and says so at each one; where the library needs one, the accesses
    # around it are atomic, so it has nothing to report there.
    if(VIGIL_SANITIZE STREQUAL thread AND CMAKE_C_COMPILER_ID STREQUAL GNU)
        add_compile_options(-Wno-tsan)
    endif()
endif()
