# SPDX-License-Identifier: MIT
# package.cmake - for test/node and test/web: build a package in its own folder, as a user of the checkout would do it,
# and test it there. Where what it needs is missing, the tests say so and are skipped.
find_program(VIGIL_NODE node)
find_program(VIGIL_NPM npm)

# add_package(TARGET SCRIPT OUTPUT SOURCES...): SCRIPT builds OUTPUT, anew if a source, a glob, has changed.
function(add_package target script output)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS
        ${ARGN} ${PROJECT_SOURCE_DIR}/src/*.[ch] ${PROJECT_SOURCE_DIR}/include/*.h)
    add_custom_command(OUTPUT ${output} COMMAND sh -c "${script} || [ $? = 75 ]" # 75: npm fetches nothing here
        DEPENDS ${sources} ${script} COMMENT "Building ${target}" VERBATIM)
    add_custom_target(${target} ALL DEPENDS ${output})
endfunction()

# add_package_test(LABEL NAME TIMEOUT_S): run.sh of this folder runs it.
function(add_package_test label name timeout_s)
    add_test(NAME ${label}.${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run.sh ${name})
    set_tests_properties(${label}.${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout_s} SKIP_RETURN_CODE 77)
endfunction()
