#!/bin/sh
# tools/run-tests.sh COMMAND... [--alone COMMAND...] - run the commands (one argument each) side by side, one
# more than there are processors (TEST_JOBS), since some of them wait, then those that must be alone one by one; add up their closing
# lines 'N passed, N failed, N skipped' and close with the sum.
#
#     a line for each, in the order given: what it closed with, seconds by the clock and of processors
#     what failed once more at the end: its name and what it said first
#
# A program that dies, or closes with no such line, counts as one failure, and so does one that takes longer
# than TEST_LIMIT seconds: a device's driver may wait for ever (PoCL 3.1 did so once, in clFinish). Commands
# begin in the order given, so the longest stand first. Ended by a signal it ends what it started.

one() { # folder, number: run that command, leave what it said, and what became of it in NUMBER.end
    at=$1/$2
    start=$(date +%s)
    sh -c 'echo $$ >"$1.pid"; exec $2 sh -c "$(cat "$1.cmd")"' sh "$at" "$watch" >"$at.log" 2>&1 </dev/null
    rc=$?
    rm -f "$at.pid"
    [ $rc != 124 ] || echo "ended after $limit s" >>"$at.log"
    times >"$at.times" # not in a pipe, which has times of its own
    cpu=$(tail -n 1 "$at.times" | tr ms '  ' | awk '{ print int($1 * 60 + $2 + $3 * 60 + $4 + 0.5) }')
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$at.log" | tail -n 1)
    # shellcheck disable=SC2046
    set -- "$2" $(echo "$line" | awk '{ print $1 + 0, $3 + 0, $5 + 0 }')
    p=$2; f=$3; s=$4
    [ $rc = 0 ] || [ "$f" != 0 ] || f=1
    [ "$line" ] || [ $rc != 0 ] || p=1
    echo "$p $f $s $(($(date +%s) - start)) $cpu $rc" >"$at.end"
    echo "$1"
}

show() { # number: its line, why it skipped, how it failed
    at=$dir/$1
    cmd=$(cat "$at.cmd")
    read -r p f s wall cpu rc <"$at.end"
    printf '%-44s %6d passed %3d failed %3d skipped %4ds %4d cpu\n' "$cmd" "$p" "$f" "$s" "$wall" "$cpu"
    grep -E '^skipped: ' "$at.log" | sort | uniq -c | sed 's/^ *\([0-9]*\) /    \1 x /' | head -n 12
    [ "$f" = 0 ] || {
        echo "    ---- rc $rc"; tail -n 40 "$at.log" | sed 's/^/    /'
        { echo "failed: $cmd"; grep -E ':[0-9]+: not |FAIL|^ *failed: |ERROR: |runtime error' "$at.log" |
            cut -c1-300 | head -n 8 | sed 's/^ */    /'; } >>"$dir/again"
    }
    passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + s)); used=$((used + cpu))
    rm -f "$at.log"
}

limit=${TEST_LIMIT:-3600}
watch=$(command -v timeout >/dev/null 2>&1 && echo "timeout $limit")
if [ "$1" = --one ]; then
    one "$2" "$3"
    exit 0
fi
cd "$(dirname "$0")/.." || exit 1
jobs=${TEST_JOBS:-$(($(nproc 2>/dev/null || echo 2) + 1))}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# side by side, what two programs compile is compiled once, and kept for the next run (TEST_KEPT: where; empty: it is
# not), by compilers and processor; what no run of two weeks took goes. No cache of a program's is read or filled.
export JOT_CACHE_DIR=
behind() { # name: that compiler; a link to ccache looks for it on PATH, and would find the script there
    IFS=:
    for folder in $PATH; do
        [ ! -x "$folder/$1" ] || case $(readlink -f "$folder/$1") in
            */ccache) ;;
            *) echo "$folder/$1"; break ;;
        esac
    done
}
compilers="cc aarch64-linux-gnu-gcc arm-none-eabi-gcc" # not gcc and clang, which test_flags compares by their files
machine() { # what objects depend on besides texts and flags
    for name in $compilers ld as ldd; do "$name" --version; done
    uname -m
    sed '/^$/q; /MHz\|bogomips\|apicid/d' /proc/cpuinfo
}
store=${TEST_KEPT-build/kept}
KEPT=${store:-$dir/kept}/$(machine 2>/dev/null | cksum | tr ' ' _)
mkdir -p "$KEPT" "$dir/bin"
KEPT=$(cd "$KEPT" && pwd) KEPT_NOT=$PWD
export KEPT KEPT_NOT
for name in $compilers; do
    cc=$(behind "$name")
    [ -z "$cc" ] || {
        printf '#!/bin/sh\nKEPT_CC="%s" KEPT_IS="%s"\n. "%s"\n' "$cc" "$("$cc" --version)" "$PWD/tools/cc-kept.sh" >"$dir/bin/$name"
        chmod +x "$dir/bin/$name"
    }
done
# the linker's name is in the script: who has an environment of their own still has PATH
ld=$(command -v ld) && printf '#!/bin/sh\nBARE_LD="%s" exec "%s" "$@"\n' "$ld" "$PWD/tools/ld-bare.sh" >"$dir/bin/ld" && chmod +x "$dir/bin/ld"
trap 'for pid in "$dir"/*.pid; do kill "$(cat "$pid")"; done 2>/dev/null; exit 1' INT TERM HUP
n=0; side=
for cmd; do
    if [ "$cmd" = --alone ]; then side=$n; continue; fi
    n=$((n + 1))
    printf '%s' "$cmd" >"$dir/$n.cmd"
done
side=${side:-$n}
: >"$dir/again"
passed=0; failed=0; skipped=0; used=0; next=1; began=$(date +%s)
{
    seq 1 "$side" | PATH="$dir/bin:$PATH" xargs -P "$jobs" -I {} sh tools/run-tests.sh --one "$dir" {}
    seq $((side + 1)) "$n" | xargs -P 1 -I {} sh tools/run-tests.sh --one "$dir" {}
} | {
    while read -r number; do
        while [ -e "$dir/$next.end" ]; do
            show $next
            next=$((next + 1))
        done
    done
    cat "$dir/again"
    [ $next -gt "$n" ] || { echo "$((n + 1 - next)) commands did not run"; failed=$((failed + 1)); }
    [ -z "$store" ] || find "$store" -type f -atime +14 -delete
    echo "$n commands, $jobs at a time: $(($(date +%s) - began)) s by the clock, $used s of processors"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ]
}
