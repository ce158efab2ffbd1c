#!/bin/sh
# tools/entered.sh BUILD - through how many files one convolution goes, from its graph to its text: those of which
# some instruction is executed while docs/walk.c plans it, and how many of them do most of the work. It needs valgrind;
# BUILD has libjot.a, with -g.
cd "$(dirname "$0")/.." || exit 1
command -v valgrind >/dev/null || { echo "skipped: no valgrind here"; exit 77; }
out=$(mktemp) || exit 1
trap 'rm -f "$out" "$out".*' EXIT
${CC:-cc} -std=c99 -Wno-unused-function -D_GNU_SOURCE -I. docs/walk.c -o "$out.walk" "$1/libjot.a" -ldl -lpthread -lm || exit 1
valgrind -q --tool=callgrind --toggle-collect=jot_plan_make --callgrind-out-file="$out" "$out.walk" convolution >"$out.log" || { cat "$out.log"; exit 1; }
awk '
    /^(fl|fi|fe|cfi|cfl)=/ {                    # a file, by number; its name where it is met first
        at = index($0, ")")
        id = substr($0, index($0, "("), at - index($0, "(") + 1)
        if (length($0) > at) { name[id] = substr($0, at + 2) }
        if (/^f/) file = id
    }
    /^calls=/ { getline; next }                 # the next line is of what was called
    /^[-+*0-9]/ { cost[file] += $NF }
    END {
        for (id in cost)
            if (match(name[id], /(ops|fuse|plan|ccode|backends|target|prelude)\/[a-z_\/]*\.c$|base(_mem)?\.c$/))
                in_file[substr(name[id], RSTART)] += cost[id]
        for (file in in_file)
            print in_file[file], file
    }' "$out" | sort -rn >"$out.cost"
awk '{ all += $1; cost[NR] = $1 } END {
    for (i = 1; i <= NR; i++) {
        sum += cost[i]
        if (!most && sum >= 0.95 * all) most = i
        if (!rest && sum >= 0.99 * all) rest = i
    }
    printf "%d files entered; 95 of 100 instructions in %d of them, 99 in %d\n", NR, most, rest
}' "$out.cost"
[ -z "$2" ] || cat "$out.cost"
