# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion of vigil for bash. Subcommands and options are read from --help, and names of segments from ls --names.

_vigil_subcommands() { "$1" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p'; }

# Options that take a value end in "=".
_vigil_options() {
    "$1" "$2" --help 2>/dev/null |
        sed -nE 's/^  (-[a-zA-Z], )?(--[a-z-]+) [^ ].*/\2=/p; t; s/^  (-[a-zA-Z], )?(--[a-z-]+)( .*)?$/\2/p'
    echo --help
}

# The letters of options that take a value: -w -o.
_vigil_letters() { "$1" "$2" --help 2>/dev/null | sed -nE 's/^  (-[a-zA-Z]), --[a-z-]+ [^ ].*/\1/p'; }

# The placeholder in the help for the value of an option: FILE, T, "a|b".
_vigil_value() {
    "$1" "$2" --help 2>/dev/null | sed -nE "s/^  ((-[a-zA-Z], )?$3|$3, --[a-z-]+) ([^ ]+).*/\3/p"
}

_vigil() {
    local vigil=${COMP_WORDS[0]} subcommand=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]}
    local options letters option operands=0 i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_vigil_subcommands "$vigil") help --help --version" -- "$word")
        return
    fi
    options=$(_vigil_options "$vigil" "$subcommand")
    letters=$(_vigil_letters "$vigil" "$subcommand")
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [ "${COMP_WORDS[i]}" = -- ]; then
            _vigil_command $((i + 1))
            return
        elif [[ $options == *"${COMP_WORDS[i]}="* && ${COMP_WORDS[i]} == --* ]] ||
            [[ $letters == *"${COMP_WORDS[i]}"* && ${COMP_WORDS[i]} == -[a-zA-Z] ]]; then
            option=${COMP_WORDS[i]}
            i=$((i + 1)) # its value
            [ "${COMP_WORDS[i]-}" != = ] || i=$((i + 1)) # bash splits --name=value into three words
        elif [ "${COMP_WORDS[i]}" = = ]; then
            option=${COMP_WORDS[i - 1]} # an option whose value is optional
            i=$((i + 1))
        elif [[ ${COMP_WORDS[i]} != -* ]]; then
            operands=$((operands + 1))
            if [[ "$operands $subcommand" == @(2 lock|2 sem|1 run) ]]; then
                _vigil_command $i
                return
            fi
        fi
    done
    if [ "$i" -gt "$COMP_CWORD" ]; then # the word is a value
        local value
        word=${word#=} # the value is still empty
        value=$(_vigil_value "$vigil" "$subcommand" "$option")
        if [ "$value" = FILE ]; then mapfile -t COMPREPLY < <(compgen -f -- "$word")
        elif [[ $value == *\|* ]]; then mapfile -t COMPREPLY < <(compgen -W "${value//\|/ }" -- "$word"); fi
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${options//=/}" -- "$word")
    elif [ "$subcommand" = help ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_vigil_subcommands "$vigil")" -- "$word")
    elif [ "$subcommand" = run ]; then
        _vigil_command "$COMP_CWORD"
    elif [[ $subcommand == @(create|demo|bench) ]]; then
        : # create takes a new name, the others only options
    elif [[ $word == */* ]] && [[ $operands -eq 0 || $subcommand == @(rm|doctor) ]]; then # a path
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    elif [ "$operands" -eq 0 ] || [[ $subcommand == @(rm|doctor|top) ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$vigil" ls --names 2>/dev/null)" -- "$word")
    elif [[ $subcommand == @(lock|sem) ]]; then
        _vigil_command "$COMP_CWORD"
    fi
}

# Completes the command that vigil will run, which begins at word $1.
_vigil_command() {
    local word=${COMP_WORDS[COMP_CWORD]}
    if declare -F _command_offset >/dev/null; then _command_offset "$1"
    elif [ "$COMP_CWORD" -eq "$1" ]; then mapfile -t COMPREPLY < <(compgen -c -- "$word")
    else mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
}

complete -F _vigil vigil
