# SPDX-License-Identifier: MIT
# completion.zsh FOLDER <CASES: types each line into a zsh on its own terminal, presses the tabulator key, and looks for
# the words that should be proposed. What should not be, as "!word", is not looked for: a terminal shows too much.
zmodload zsh/zpty
zpty -b terminal zsh -f -i
screen=

# appears WORD...: all of them, within a minute.
appears() {
    local word part end=$((SECONDS + 60))
    for word in "$@"; do
        until [[ $screen == *$word* ]]; do
            zpty -rt terminal part && screen+=$part || sleep 0.01
            if ((SECONDS > end)); then
                print -r "FAILED: zsh: '$line' does not propose $word: ${(V)screen}" >&2
                return 1
            fi
        done
    done
}

type_keys() {
    screen=
    zpty -w -n terminal "$1"
}

# In so many columns no line is broken, whatever the terminal and however long the paths.
line=beginning
begin="stty columns 1000; PS1= fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=100000"
type_keys "$begin; echo rea\"\"dy"$'\n'
appears ready || exit 1
failures=0
while IFS='|' read -r line wanted; do
    words=(${${=wanted}:#!*})
    (($#words)) || continue
    type_keys "$line"$'\t\t'
    appears $words || failures=$((failures + 1))
    type_keys $'\C-u'"echo do\"\"ne"$'\n' # it reads on when it has shown everything
    appears done || exit 1
done
zpty -d terminal
exit $((failures > 0))
