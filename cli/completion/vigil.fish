# SPDX-License-Identifier: MIT
# Completion of vigil for fish. Subcommands and options are read from --help, and names of segments from ls --names.

function __vigil_subcommands
    vigil --help 2>/dev/null | string replace -rf '^  ([a-z]+) +(.*)' '$1\t$2'
end

# One line per option, separated by tabs: the option, its value or nothing, the description.
function __vigil_options
    vigil $argv[1] --help 2>/dev/null |
        string replace -rf '^  (?:-[a-zA-Z], )?(--[a-z-]+)(?: ([^ ]+))?(?: +(.*))?$' '$1\t$2\t$3'
    printf '%s\t\t%s\n' --help 'print the help'
end

# The letters of options that take a value: -w -o.
function __vigil_letters
    vigil $argv[1] --help 2>/dev/null | string replace -rf '^  (-[a-zA-Z]), --[a-z-]+ [^ ].*' '$1'
end

# Whether the value of option $argv[1], as described in the following arguments, is a file.
function __vigil_is_file
    string match -qr -- "^$argv[1]\tFILE\t" $argv[2..-1]
end

# The values of option $argv[1], as described in the following arguments; nothing if they are not a fixed set, "a|b".
function __vigil_choices
    string replace -rf -- "^$argv[1]\t([^\t|]+(?:\|[^\t|]+)+)\t.*" '$1' $argv[2..-1] | string split '|'
end

function __vigil_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l word (commandline --cut-at-cursor --current-token)
    if test (count $words) -eq 1; or test "$words[2]" = help
        __vigil_subcommands
        test (count $words) -eq 1; and printf '%s\t%s\n' help 'print the help of a subcommand'
        return
    end
    set -l options (__vigil_options $words[2])
    set -l valued (string replace -rf '^(--[a-z-]+)\t[^\t]+\t.*' '$1' -- $options) (__vigil_letters $words[2])
    set -l runs_command (contains -- $words[2] lock sem run; and echo yes)
    set -l operands
    set -l option # the word is the value of this option
    for i in (seq 3 (count $words))
        if test -n "$option"
            set option
        else if test "$words[$i]" = --; and test -n "$runs_command"
            complete -C (string join -- ' ' $words[(math $i + 1)..-1] $word)
            return
        else if contains -- $words[$i] $valued
            set option $words[$i]
        else if not string match -q -- '-*' $words[$i]
            set -a operands $words[$i]
        end
    end
    if test -n "$option"
        __vigil_choices $option $options
        __vigil_is_file (string replace -r -- '^-o$' --output $option) $options; and __fish_complete_path $word
    else if string match -q -- '--*=*' $word
        set -l option (string split -m 1 = -- $word)[1]
        __vigil_choices $option $options | string replace -r -- '^' "$option="
    else if string match -q -- '-*' $word
        string replace -r '\t[^\t]*\t' '\t' -- $options
    else if test "$words[2]" = run
        complete -C (string join -- ' ' $operands $word)
    else if contains -- $words[2] create demo bench
        return # create takes a new name, the others only options
    else if string match -q -- '*/*' $word; and begin; not set -q operands[1]; or contains -- $words[2] rm doctor; end
        __fish_complete_path $word
    else if not set -q operands[1]; or contains -- $words[2] rm doctor top
        vigil ls --names 2>/dev/null
    end
end

complete -c vigil -f -a '(__vigil_complete)'
