#!/bin/sh
# tools/wc.sh - lines of the library by room; of the engine, and of what a reader of the CPU's path meets of it
# (neither devices, nor what the host gives, nor the tuner); the longest function; files over 600 lines.
cd "$(dirname "$0")/.." || exit 1
files() { find "$@" -name '*.[ch]' -o -name '*.def' | sort; }
engine="ops fuse plan ccode backends"
layers="nn expr speculate data io onnx save command"
rooms=$(find target prelude $engine $layers -type d | sort)
printf '%7s %6s %6s  room\n' lines code files
for room in $rooms; do
    list=$(find "$room" -maxdepth 1 \( -name '*.[ch]' -o -name '*.def' \))
    [ -n "$list" ] || continue
    cat $list | awk -v n="$(echo "$list" | wc -l)" -v room="$room" '
        { all++; gsub(/\/\*([^*]|\*[^\/])*\*\//, "") }
        inside { if (sub(/.*\*\//, "")) inside = 0; else next }
        /\/\*/ { inside = 1; sub(/\/\*.*/, "") }
        /[^ \t]/ { code++ }
        END { printf "%7d %6d %6d  %s\n", all, code, n, room }'
done
path=$(cat $(files $engine | grep -vE \
    '^(ccode/device|plan/device|backends/(opencl|cuda|host))/|^plan/tier/(tune|trial|rates|profile)') | wc -l)
echo "$(cat $(files $engine) | wc -l) lines in $engine, of them $path on the CPU's path"
echo "$(cat $(files $layers) | wc -l) lines in $layers"
awk 'FNR == 1 { start = 0 }
     /^[a-z_].*[(]/ && !/;/ { name = $0; sub(/[(].*/, "", name) }
     /^{/ { start = FNR }
     /^}/ && start { n = FNR - start + 1; if (n > most) { most = n; where = name " of " FILENAME }; start = 0 }
     END { print "the longest function: " most " lines, " where }' $(files $engine $layers target prelude) core.c config.c print.c fail.c base.c base_mem.c
wc -l $(files $engine $layers target) | awk '$2 != "total" && $1 > 600 { print "over 600 lines: " $2 " " $1 }'
