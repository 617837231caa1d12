# SPDX-License-Identifier: MIT
# The manual, in man/man1, man3 and man7 of the build folder: sections 1 and 7 from doc/man, and section 3 made of the
# headers.
find_program(AWK NAMES awk mawk gawk REQUIRED)

foreach(page vigil.1 vigil-run.1 vigil.7 vigil-pthreads.7)
    string(REGEX REPLACE ".*\\." "" section ${page})
    configure_file(doc/man/${page} ${CMAKE_BINARY_DIR}/man/man${section}/${page} @ONLY)
endforeach()

file(GLOB manual_headers CONFIGURE_DEPENDS include/vigil/*.h adapter/*.h)
list(FILTER manual_headers EXCLUDE REGEX "/vigil.h$") # the sum of the others: vigil(7) is its page
set(manual_script ${CMAKE_CURRENT_SOURCE_DIR}/tools/manual.awk)
set(manual_stamp ${CMAKE_BINARY_DIR}/man/man3.stamp)
add_custom_command(OUTPUT ${manual_stamp}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/man/man3
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man/man3
    COMMAND ${AWK} -v folder=${CMAKE_BINARY_DIR}/man/man3 -v version=${PROJECT_VERSION}
        -f ${manual_script} ${manual_headers}
    COMMAND ${CMAKE_COMMAND} -E touch ${manual_stamp}
    DEPENDS ${manual_script} ${manual_headers}
    COMMENT "Making the manual of the headers"
    VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual_stamp})
