# SPDX-License-Identifier: MIT
# vigil bench: every row runs, and its output can be parsed. Speed does not matter here.

cmake_minimum_required(VERSION 3.22)

# refuses(STATUS ARGUMENT...): it prints what is wrong, writes nothing else, and exits with that status.
function(refuses status)
    execute_process(COMMAND ${VIGIL} bench ${ARGN} RESULT_VARIABLE got OUTPUT_VARIABLE out ERROR_VARIABLE said)
    if(NOT got STREQUAL status OR out OR NOT said MATCHES "^vigil bench: ")
        message(FATAL_ERROR "vigil bench ${ARGN}: exit status ${got}, printed '${out}', said '${said}'")
    endif()
endfunction()
refuses(64 --no-such-option)
refuses(64 --svg)
refuses(64 --rounds 0)
refuses(64 --only no_such_row)
refuses(64 --only ,)
refuses(64 --by no_such_contestant)
refuses(64 --by ,)
refuses(64 --json=yes)
refuses(64 no_such_argument)
refuses(3 --only notify_nobody --quick --svg ${OUT}/no/such/folder/bench.svg)

# With --json the message is an object on stdout.
function(refuses_json status)
    execute_process(COMMAND ${VIGIL} bench --json ${ARGN} RESULT_VARIABLE got OUTPUT_VARIABLE out ERROR_VARIABLE said)
    string(JSON error ERROR_VARIABLE no_json GET "${out}" error)
    if(NOT got STREQUAL status OR no_json OR said)
        message(FATAL_ERROR "vigil bench --json ${ARGN}: exit status ${got}, printed '${out}', said '${said}'")
    endif()
endfunction()
refuses_json(64 --no-such-option)
refuses_json(64 --only no_such_row)
refuses_json(3 --only notify_nobody --quick --svg ${OUT}/no/such/folder/bench.svg)

# If the figures cannot be written, nothing is measured.
execute_process(COMMAND sh -c "exec \"$1\" bench --quick >&-" sh ${VIGIL} RESULT_VARIABLE got ERROR_VARIABLE said)
if(NOT got STREQUAL 3 OR NOT said MATCHES "^vigil bench: cannot write")
    message(FATAL_ERROR "vigil bench without a standard output: exit status ${got}, said '${said}'")
endif()

file(MAKE_DIRECTORY ${OUT})
execute_process(COMMAND ${VIGIL} bench --quick --json --svg ${OUT}/bench.svg --markdown ${OUT}/figures.md
    OUTPUT_VARIABLE json
    COMMAND_ERROR_IS_FATAL ANY)

string(JSON others ERROR_VARIABLE no_load GET "${json}" load others)
if(no_load)
    message(FATAL_ERROR "the JSON does not say what other programs used: ${no_load}")
endif()
string(JSON json GET "${json}" rows)
string(JSON count LENGTH "${json}")
if(count LESS 40)
    message(FATAL_ERROR "only ${count} rows in the JSON")
endif()
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
    string(JSON name GET "${json}" ${i} name)
    string(JSON unit GET "${json}" ${i} unit)
    string(JSON better GET "${json}" ${i} better)
    string(JSON ours TYPE "${json}" ${i} vigil)
    string(JSON peers TYPE "${json}" ${i} peers)
    if(NOT name OR NOT unit OR NOT better MATCHES "^(lower|higher)$"
       OR NOT ours STREQUAL NUMBER OR NOT peers STREQUAL OBJECT)
        message(FATAL_ERROR "row ${i} of the JSON is not as it should be")
    endif()
endforeach()

# Rounds and contestants as asked for; from two rounds on, the report says how well a figure is known.
execute_process(COMMAND ${VIGIL} bench --quick --json --only sem_uncontended --by glibc --rounds 7
    OUTPUT_VARIABLE json ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(JSON ours TYPE "${json}" rows 0 vigil)
string(JSON peers LENGTH "${json}" rows 0 peers)
string(JSON error TYPE "${json}" rows 0 peer_errors glibc)
if(NOT "${ours} ${peers} ${error}" STREQUAL "NULL 1 NUMBER")
    message(FATAL_ERROR "vigil bench --by glibc --rounds 7: ${ours}, ${peers} peers, error ${error}")
endif()
execute_process(COMMAND ${VIGIL} bench --quick --json --only sem_uncontended --by vigil --rounds 7
    OUTPUT_VARIABLE json ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(JSON rounds GET "${json}" rows 0 rounds)
if(NOT rounds STREQUAL 7)
    message(FATAL_ERROR "vigil bench --rounds 7: ${rounds} rounds")
endif()

file(READ ${OUT}/bench.svg svg)
if(NOT svg MATCHES "^<svg .*</svg>\n$")
    message(FATAL_ERROR "bench.svg is not whole")
endif()
file(READ ${OUT}/figures.md page)
if(NOT page MATCHES "^<!-- SPDX.*\n# Figures\n.*\n\\| `mutex_uncontended` \\|.*\n## Targets\n.*\\|\n$")
    message(FATAL_ERROR "figures.md is not whole")
endif()
file(REMOVE_RECURSE ${OUT})
message("${count} rows")
