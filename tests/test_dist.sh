#!/bin/sh
# tests/test_dist.sh DIR PROGRAM - DIR/jot.c and jot.h compile without a warning under gcc, clang and
# tcc as C99, and PROGRAM, built against them with the libraries that README.md names, runs.
libs=$(sed -n 's/.*program\.c jot\.c \(\(-l[a-z]* *\)*\).*/\1/p' README.md)
dir=$1; program=$2; passed=0; failed=0; skipped=0
for cc in gcc clang tcc; do
    if ! command -v $cc >/dev/null; then
        echo "skipped: no $cc here"; skipped=$((skipped + 1)); continue
    fi
    sed 's/#include "core.h"/#include "jot.h"/' "$program" > "$dir/program.c"
    if $cc -std=c99 -Wall -Wextra -Wpedantic -I"$dir" -c "$dir/jot.c" -o "$dir/jot_$cc.o" 2>"$dir/log_$cc" \
        && [ ! -s "$dir/log_$cc" ] \
        && $cc -std=c99 -I"$dir" "$dir/program.c" "$dir/jot_$cc.o" -o "$dir/program_$cc" $libs \
        && "$dir/program_$cc" >"$dir/out_$cc" 2>&1; then
        passed=$((passed + 1))
    else
        echo "$cc: one-file build failed or warned"; head -n 20 "$dir/log_$cc"; failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
