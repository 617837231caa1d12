# SPDX-License-Identifier: MIT
#
# load.sh - to be sourced by a benchmark: what other programs use of the processors just before it and meanwhile, as
# load.c has it.

# The seconds since the machine was started; of these, used by all programs, without interrupts; kept back by the
# hypervisor; and used by this shell and what it has waited for.
load_seconds() {
    awk -v ticks="$(getconf CLK_TCK)" '
        FILENAME == "/proc/uptime" { clock = $1 }
        FILENAME == "/proc/stat" && $1 == "cpu" { busy = ($2 + $3 + $4) / ticks; stolen = $9 / ticks }
        FILENAME ~ "/proc/[0-9]+/stat" { sub(/.*\) /, ""); own = ($12 + $13 + $14 + $15) / ticks }
        END { print clock, busy, stolen, own }' /proc/uptime /proc/stat "/proc/$$/stat"
}

# load_say WHEN FROM: a sentence, about the time since FROM.
load_say() {
    echo "$2 $(load_seconds)" | awk -v when="$1" '{
        elapsed = $5 - $1; others = ($6 - $2 - ($8 - $4)) / elapsed; stolen = ($7 - $3) / elapsed
        if (others < 0) others = 0
        printf "Other programs used %.2f processors %s, the hypervisor kept back %.2f.%s\n", others, when, stolen,
            (others + stolen > 0.1 ? " So the figures are rough." : "") }'
}

load_before() {
    local from
    from=$(load_seconds)
    sleep 1
    load_text=$(load_say "before the run" "$from")
    load_from=$(load_seconds)
    echo "$load_text" >&2
}

# load_append FILE [MEANWHILE]: to build/figures.md, with the load. MEANWHILE: what is to be said of the time of the
# run, if the programs of the benchmark are not all waited for.
load_append() {
    local meanwhile=${2-}
    [ -n "$meanwhile" ] || meanwhile=$(load_say meanwhile "$load_from")
    echo "$meanwhile" >&2
    { echo; cat "$1"; printf '\n%s\n%s\n' "$load_text" "$meanwhile"; } >>build/figures.md
}
