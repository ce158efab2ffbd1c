#!/bin/sh
# tests/test_cxx.sh BUILD - core.h as C++: tests/use.cc built and run by g++ and clang++; a list that would dangle
# is warned of by clang, one that owns its elements is not; tcc takes 64 variables in a list and refuses 65.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1 passed=0 failed=0 skipped=0
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
ok() { passed=$((passed + 1)); }
bad() { echo "$*"; failed=$((failed + 1)); }

for cxx in g++ clang++; do
    if ! command -v $cxx >/dev/null; then
        echo "skipped: no $cxx here"; skipped=$((skipped + 1)); continue
    fi
    $cxx -std=c++11 -Wall -Wextra -Wpedantic -Werror -I. tests/use.cc -o "$dir/use" "$build/libjot.a" ${DATALIBS-} -ldl -lpthread -lm &&
        "$dir/use" >"$dir/said" && ok || { bad "$cxx: tests/use.cc"; cat "$dir/said"; }
done

cat >"$dir/list.cc" <<'END'
#include "core.h"
int rank() { KIND s = JOT_SHAPE(2, 3); jot_Ints l = s; return l.n; }
END
if command -v clang++ >/dev/null; then
    warns="clang++ -std=c++11 -Werror -I. -fsyntax-only"
    $warns -DKIND=auto "$dir/list.cc" && ok || bad "a list that owns its elements is warned of"
    $warns -DKIND=jot_Ints "$dir/list.cc" 2>"$dir/said"; grep -q Wdangling "$dir/said" && ok || bad "no warning of a list that dangles"
fi

variables() { # of n variables
    printf '#include "core.h"\nint main(void) { jot_Var a = {0}; return JOT_VARS(a'
    awk -v n="$1" 'BEGIN { for (k = 1; k < n; k++) printf ", a" }'
    printf ').n != %d; }\n' "$1"
}
for n in 1 64 65 300; do
    variables $n >"$dir/vars.c"
    if command -v tcc >/dev/null; then
        tcc -I. -c "$dir/vars.c" -o "$dir/vars.o" 2>/dev/null; [ $? = $((n > 64)) ] && ok || bad "tcc: $n variables"
    fi
    ${CC:-cc} -std=c99 -Wall -Wextra -Wpedantic -Werror -I. "$dir/vars.c" -o "$dir/vars" "$build/libjot.a" -ldl -lpthread -lm &&
        "$dir/vars" && ok || bad "$n variables"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
